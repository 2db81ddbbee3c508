"""A corpus whose sides are shifted is not trained on unless the user insists, and nothing is begun before."""

from pathlib import Path

import pytest
from command_line import run_text
from planted_corpus import make_pairs, write_corpus


@pytest.fixture
def shifted(tmp_path: Path) -> list[str]:
    corpus = write_corpus(tmp_path, make_pairs(3000))
    lines = corpus.target.read_bytes().splitlines(keepends=True)
    corpus.target.write_bytes(b"".join([*lines[:1000], *lines[1001:], b"Ende.\n"]))
    return [str(path) for path in corpus.paths]


def test_check_prepare_and_train_refuse_it(shifted: list[str], tmp_path: Path) -> None:
    sets = ["--valid", "valid.tsv"]
    (tmp_path / "valid.tsv").write_bytes(b"".join(a + b"\t" + b + b"\n" for a, b in make_pairs(50, seed=9)))
    run_text("prepare", "valid.tsv", "-o", "other", "--set", "tokenizer.vocab_size=310", cwd=tmp_path)
    for command in (
        ["check", *shifted],
        ["prepare", *shifted, "-o", "run"],
        ["prepare", *shifted, "-o", "run", *sets, "--tokenizer", "other"],  # which has no need of a first look
        ["train", *shifted, "-o", "run"],
        ["train", "valid.tsv", "--corpus", ",".join(shifted), "-o", "run"],
    ):
        found = run_text(*command, cwd=tmp_path)
        assert found.returncode == 1, command
        assert "seem shifted against each other from about line 1,0" in found.stderr
        assert "if it is right as it is, set clean.shifted = true" in found.stderr
        assert not (tmp_path / "run" / "prepared").exists()
        assert not (tmp_path / "run" / "tokenizer.model").exists()


def test_a_user_may_insist(shifted: list[str], tmp_path: Path) -> None:
    insist = ["--set", "clean.shifted=true"]
    found = run_text("check", *shifted, *insist, cwd=tmp_path)
    assert found.returncode == 0
    assert "seems shifted" in found.stdout
    found = run_text("prepare", *shifted, "-o", "run", "--set", "tokenizer.vocab_size=310", *insist, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
