"""seqtool: from a parallel corpus to a translator you can ship, in one command."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Hypothesis", "SeqtoolError", "Translation", "Translator", "__version__"]

if TYPE_CHECKING:
    from seqtool.errors import SeqtoolError
    from seqtool.translation.translator import Hypothesis, Translation, Translator

_HOMES = {
    "SeqtoolError": "seqtool.errors",
    "Hypothesis": "seqtool.translation.translator",
    "Translation": "seqtool.translation.translator",
    "Translator": "seqtool.translation.translator",
}


def __getattr__(name: str) -> Any:
    """Load the public names on first use, so that `import seqtool` and the command line stay quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'seqtool' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
