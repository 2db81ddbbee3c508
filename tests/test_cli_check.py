"""`seqtool check` as a user runs it."""

import gzip
import json

import pytest
from command_line import run_text
from planted_corpus import PLANTED, make_pairs, write_corpus, write_planted


def run(*arguments, cwd=None):
    return run_text("check", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("sound"), make_pairs(200))


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return write_planted(tmp_path_factory.mktemp("planted"))


def test_a_sound_corpus_is_fit_for_training(sound):
    result = run(*sound.paths)
    assert result.returncode == 0
    assert "Cleaning keeps 200 of 200 pairs" in result.stdout
    assert "Fit for training." in result.stdout
    assert result.stderr == ""  # no progress where no terminal is


def test_the_report_names_each_defect_by_line(planted, tmp_path):
    result = run(*planted.paths)
    assert result.returncode == 0
    for line in [*PLANTED, 1500]:
        assert f"line {line}" in result.stdout, line
    assert "\x00" not in result.stdout
    assert "\\x00" in result.stdout
    assert "as line 500" in result.stdout
    assert max(map(len, result.stdout.split("\n"))) <= 80


def test_json_is_one_object_with_the_same_facts(planted, tmp_path):
    result = run(*planted.paths, "--json", "--examples", "1")
    report = json.loads(result.stdout)
    assert report["fit"] is True
    assert report["pairs"] == 2000
    assert report["parity"]["equal"] is True
    assert report["findings"]["undecodable"]["lines"] == [11, 22]
    assert len(report["findings"]["undecodable"]["examples"]) == 1
    assert report["findings"]["duplicate"]["examples"][0]["note"] == "as line 500"
    assert report["cleaning"]["kept"] + sum(report["cleaning"]["dropped"].values()) == 2000
    assert report["source"]["words"] > 10000


def test_different_line_counts_end_with_1_and_both_counts(sound, tmp_path):
    short = tmp_path / "short.de"
    short.write_bytes(b"".join(sound.target.read_bytes().splitlines(keepends=True)[:150]))
    result = run(sound.source, short)
    assert result.returncode == 1
    assert "a.en has 200 lines but" in result.stderr
    assert "short.de has 150" in result.stderr
    assert result.stdout.count("Not fit for training.") == 1
    assert (result.stdout + result.stderr).count("has 200 lines but") == 1  # reported once, wherever both go
    as_json = run(sound.source, short, "--json")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["parity"]["equal"] is False


def test_a_share_of_invalid_lines_over_the_limit_ends_with_1(planted):
    assert run(*planted.paths, "--set", "clean.max_undecodable=0.001").returncode == 0
    result = run(*planted.paths, "--set", "clean.max_undecodable=0.0005")
    assert result.returncode == 1
    assert "2 of 2,000 pairs are not UTF-8" in result.stderr


def test_overlap_is_checked_against_tsv_or_two_files(sound, tmp_path):
    src, tgt = (path.read_bytes().splitlines(keepends=True)[7] for path in sound.paths)
    (tmp_path / "test.en").write_bytes(src)
    (tmp_path / "test.de").write_bytes(b"anders\n")
    (tmp_path / "test.tsv.gz").write_bytes(gzip.compress(b"other\t" + tgt))
    two = ["--against", tmp_path / "test.en", "--against", tmp_path / "test.de"]
    joined = ["--against", f"{tmp_path}/test.en,{tmp_path}/test.de"]
    tsv = ["--against", tmp_path / "test.tsv.gz"]
    for arguments, side in ((two, "source"), (joined, "source"), (tsv, "target"), (two + tsv, "both sides")):
        overlap = json.loads(run(*sound.paths, *arguments, "--json").stdout)["findings"]["overlap"]
        assert overlap["lines"] == [8]
        assert overlap["examples"][0]["note"] == side
    assert run(*sound.paths, *two, "--against", tmp_path / "x").returncode == 2


def test_dropped_pairs_are_written_with_their_rule(planted, tmp_path):
    assert run(*planted.paths, "--dropped", tmp_path / "dropped.tsv").returncode == 0
    lines = (tmp_path / "dropped.tsv").read_text(encoding="utf-8").split("\n")
    assert lines[0].startswith("undecodable\t11\tThe caf\ufffd is closed.\t")
    result = run(*planted.paths, "--dropped", tmp_path / "none" / "dropped.tsv")
    assert result.returncode == 1
    assert "dropped.tsv: cannot be written" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Missing argument"),
        (["missing.en", "missing.de"], 1, "missing.en: no such file"),
        (["a", "b", "c"], 2, "or two aligned files (source, then target), not 3"),
        (["a.tsv", "--dropped", "."], 1, "is a folder; give --dropped a file"),
        (["a.tsv", "--set", "clean.max_rato=3"], 1, "did you mean 'max_ratio'"),
        (["a.tsv", "--examples", "-1"], 2, "--examples"),
    ],
)
def test_mistakes_are_named(arguments, code, message, tmp_path):
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_help_gives_an_example():
    result = run("--help")
    assert result.returncode == 0
    assert "seqtool check train.en train.de" in " ".join(result.stdout.split())
