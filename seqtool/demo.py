"""Where the demo corpus lies: beside the package in a checkout, inside it when installed."""

from pathlib import Path

from seqtool.errors import SeqtoolError


def demo_folder() -> Path:
    """Return the folder with the demo corpus and its settings."""
    package = Path(__file__).parent
    for folder in (package / "demo_corpus", package.parent / "data"):
        if (folder / "train.en").is_file() and (folder / "demo.toml").is_file():
            return folder
    raise SeqtoolError(
        f"the demo corpus is not installed with seqtool (looked in {package / 'demo_corpus'}); "
        "reinstall seqtool, or give a corpus: seqtool train SOURCE TARGET -o DIR"
    )
