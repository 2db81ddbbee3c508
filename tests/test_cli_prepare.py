"""`seqtool prepare` as users run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run_text
from killed_preparation import kill_and_compare, write_corpus

from seqtool.corpus.preparing.prepared import PreparedCorpus
from seqtool.corpus.preparing.run_corpus import count_each
from seqtool.corpus.reading.corpus import parse_corpus
from seqtool.run_directory import RunDir


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "c.tsv"
    write_corpus(path, 600)
    return path


def test_three_kills_change_no_byte(tmp_path: Path) -> None:
    kill_and_compare(tmp_path, pairs=4000, kills=3, seed=1)


def test_it_prepares_says_what_it_did_and_does_it_once(corpus: Path, tmp_path: Path) -> None:
    out, dropped = tmp_path / "run", tmp_path / "dropped.tsv"
    done = run_text("prepare", corpus, "-o", out, "--dropped", dropped, "--set", "data.held_out=20")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "pairs are for training; dropped: " in done.stderr
    assert "duplicate 5, empty 6" in done.stderr or "empty 6, duplicate 5" in done.stderr
    assert "20 pairs were held out for validation" in done.stderr
    prepared = PreparedCorpus.open(out / "prepared")
    assert (prepared.n_read, len(prepared)) == (600, 600 - 11 - 20)
    assert len(dropped.read_text().split("\n")) - 1 == 31
    again = run_text("prepare", corpus, "-o", out, "--set", "data.held_out=20")
    assert "prepared already and has not changed" in again.stderr


def test_a_validation_set_and_a_second_corpus_can_be_given(corpus: Path, tmp_path: Path) -> None:
    lines = corpus.read_text().split("\n")
    (tmp_path / "valid.tsv").write_text(lines[1] + "\n")
    (tmp_path / "a.en").write_text("one more here\n")
    (tmp_path / "a.de").write_text("noch eins hier\n")
    more = f"{tmp_path / 'a.en'},{tmp_path / 'a.de'}@2.5"
    done = run_text("prepare", corpus, "-o", tmp_path / "run", "--valid", tmp_path / "valid.tsv", "--corpus", more)
    assert done.returncode == 0, done.stderr
    assert "overlap 1" in done.stderr
    prepared = PreparedCorpus.open(tmp_path / "run" / "prepared")
    assert prepared.held_out == []
    assert [(part.last - part.first, part.weight) for part in prepared.ranges] == [(600 - 11 - 1, 1.0), (1, 2.5)]


def test_a_tokenizer_of_one_s_own_can_be_given(corpus: Path, tmp_path: Path) -> None:
    model = tmp_path / "t.model"
    assert run_text("tokenizer", "train", corpus, "--vocab-size", 700, "-o", model).returncode == 0
    done = run_text("prepare", corpus, "-o", tmp_path / "run", "--tokenizer", model)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == model.read_bytes()
    other = ("--tokenizer", model, "--set", "tokenizer.joint=false", "--set", "model.share_embeddings=false")
    done = run_text("prepare", corpus, "-o", tmp_path / "run", *other)
    assert done.returncode == 1
    assert f"{model} has tokenizer.joint = True, but --set asks for False" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.tsv", "-o", "run"], "missing.tsv: no such file"),
        (["c.tsv", "-o", "run", "--set", "data.max_token=9"], "did you mean 'max_tokens'?"),
        (["c.tsv", "-o", "c.tsv"], "is a file, but a folder is needed"),
        (["c.tsv", "-o", "run", "--valid", "missing.tsv"], "missing.tsv: no such file"),
        (["latin.tsv", "-o", "run"], "are not UTF-8"),
        (["c.tsv", "-o", "run", "--tokenizer", "c.tsv"], "not a SentencePiece model"),
        (
            ["c.tsv", "-o", "run", "--set", "tokenizer.vocab_size=300", "--set", "tokenizer.user_symbols=['a b']"],
            "'a b'",
        ),
    ],
)
def test_what_is_wrong_is_named(corpus: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "c.tsv").write_bytes(corpus.read_bytes())
    (tmp_path / "latin.tsv").write_bytes("Häuser\tx\n".encode("latin-1") * 20)
    done = run_text("prepare", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "prepared").exists()


def test_a_full_disk_is_named(corpus: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands in for a disk that is full."""
    code = (
        "import resource, sys; from seqtool.cli.main import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000));"
        f"sys.argv = ['seqtool', 'prepare', {str(corpus)!r}, '-o', {str(tmp_path / 'run')!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pipe_is_refused_since_it_can_be_read_only_once(corpus: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for command, option in (("prepare", "--against"), ("prepare", "--corpus"), ("train", "--against")):
        done = run_text(command, corpus, "-o", tmp_path / "run", option, tmp_path / "pipe")
        assert done.returncode == 1
        assert "pipe: a pipe can be read only once" in done.stderr
    assert not (tmp_path / "run" / "prepared").exists()


def test_columns_that_are_not_used_are_told(tmp_path: Path) -> None:
    (tmp_path / "c.tsv").write_text("".join(f"id {i}\tsentence {i}\tSatz {i}\n" for i in range(200)))
    done = run_text("prepare", tmp_path / "c.tsv", "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "200 lines have more than two columns; the first is the source" in done.stderr


def test_the_pairs_of_the_corpora_at_hand_are_counted_and_no_others(corpus: Path, tmp_path: Path) -> None:
    write_corpus(tmp_path / "more.tsv", 100)
    run = RunDir(tmp_path / "run")
    both = [parse_corpus([corpus]), parse_corpus([tmp_path / "more.tsv"])]
    assert run_text("prepare", corpus, "--corpus", tmp_path / "more.tsv", "-o", run.path).returncode == 0
    assert sum(count_each(run, both)) == 700
    assert sum(count_each(run, both[:1])) == 600
