"""A training records its languages, so that export and serve know them."""

from pathlib import Path

import pytest
from command_line import run_text
from small_run import run_to_end, train_command, write_corpus

from seqtool.run_directory import RunDir
from seqtool.translation.export.languages import known_codes


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus whose file names do not say its languages."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    for name in ("train", "valid"):
        for old, new in (("en", "src"), ("de", "tgt")):
            (folder / f"{name}.{old}").rename(folder / f"{name}.{new}")
    return folder


def train(corpus: Path, out: Path, *more: str) -> None:
    files = [str(corpus / f"{name}.{side}") for name in ("train", "valid") for side in ("src", "tgt")]
    arguments = [*files[:2], "--valid", files[2], "--valid", files[3]]
    run_to_end([*train_command(arguments, out, train_steps=2), *more])


def test_the_languages_of_a_training_are_recorded_and_handed_on(corpus: Path, tmp_path: Path) -> None:
    train(corpus, tmp_path / "run")
    assert known_codes(RunDir(tmp_path / "run")) is None
    train(corpus, tmp_path / "run", "--languages", "hsb-de")  # of a run that is finished, too
    run = RunDir(tmp_path / "run").require_model()
    assert known_codes(run) == ("hsb", "de")
    train(corpus, tmp_path / "tuned", "--from", str(run.path))
    assert known_codes(RunDir(tmp_path / "tuned")) == ("hsb", "de")
    average = run_text("average", "-o", tmp_path / "average", run.path)
    assert average.returncode == 0, average.stderr
    assert known_codes(RunDir(tmp_path / "average")) == ("hsb", "de")


def test_languages_that_are_no_pair_are_refused(corpus: Path, tmp_path: Path) -> None:
    done = run_text("train", corpus / "train.src", corpus / "train.tgt", "-o", tmp_path / "run", "--languages", "ende")
    assert done.returncode == 1
    assert "--languages ende: write source and target with a hyphen between them, as in en-de" in done.stderr
    assert not (tmp_path / "run").exists()
