"""A corpus with planted defects: each is found, by line number."""

import io

import numpy as np
import pytest
from cleaner import Cleaner
from planted_corpus import PLANTED, make_pairs, write_corpus, write_planted

from seqtool.config import CleanConfig
from seqtool.corpus.checking.checker import FINDINGS, check_corpus
from seqtool.corpus.checking.scripts import find_scripts, script_table
from seqtool.corpus.cleaning.rules import RULES
from seqtool.corpus.reading.blocks import read_blocks
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.reading.lines import PairBlock


@pytest.fixture
def planted(tmp_path):
    return write_planted(tmp_path)


def test_every_planted_defect_is_found_by_line_number(planted, tmp_path):
    valid = tmp_path / "valid.tsv"
    src, tgt = make_pairs(2000)[1776]
    valid.write_bytes(src + b"\tanders\n" + b"anders\t" + tgt + b"\n")
    report = check_corpus(planted, CleanConfig(), [Corpus(valid, None)])
    expected = {name: [] for name in FINDINGS}
    for line, (name, _, _) in PLANTED.items():
        expected[name].append(line)
    expected["duplicate"], expected["overlap"] = [1500], [1777]
    for name, lines in expected.items():
        found = report.findings[name]
        assert set(lines) <= set(found.lines), name
        if name not in ("unusually_long", "unusually_lopsided", "numbers", "language"):  # planted lines have those too
            assert (found.lines, found.pairs) == (lines, len(lines)), name
    assert sorted(report.findings["unusually_long"].lines) == [99, 155]
    assert sorted(report.findings["unusually_lopsided"].lines) == [111, 144]
    assert report.problems == []
    assert report.shifted_near is None


def test_examples_say_what_is_wrong(planted):
    findings = check_corpus(planted, CleanConfig(), n_examples=5).findings
    notes = {example.line: example.note for name in RULES[::-1] for example in findings[name].examples}
    notes |= {example.line: example.note for example in findings["other_script"].examples}
    assert notes[11] == "source: byte 0xE9 at 8"
    assert notes[33] == "source: U+0000 (NUL)"
    assert notes[44] == "target: U+2028 (line separator)"
    assert notes[55] == "source: U+0085 (next line)"
    assert notes[66] == "source"
    assert notes[77] == "target"
    assert notes[1500] == "as line 500"
    assert notes[111] == "56 and 3 characters"
    assert notes[122] == "target is Cyrillic"
    assert findings["undecodable"].examples[0].source == "The caf\ufffd is closed."


def test_a_check_drops_what_cleaning_drops(planted):
    cleaner, written = Cleaner(CleanConfig()), io.BytesIO()
    for block in read_blocks(planted):
        cleaner.judge(block)
    report = check_corpus(planted, CleanConfig(), dropped=written)
    assert report.dropped == cleaner.dropped
    assert report.kept == 2000 - sum(cleaner.dropped.values())
    lines = [line.split("\t") for line in written.getvalue().decode().split("\n")[:-1]]
    assert [line[:2] for line in lines[:3]] == [["undecodable", "11"], ["undecodable", "22"], ["control", "33"]]
    assert len(lines) == sum(cleaner.dropped.values())


def test_findings_do_not_depend_on_the_rules_that_are_on(planted):
    on, off = (check_corpus(planted, CleanConfig(enabled=enabled)) for enabled in (True, False))
    assert {name: f.lines for name, f in on.findings.items()} == {name: f.lines for name, f in off.findings.items()}
    assert off.dropped == {"undecodable": 2, "empty": 2}


def test_totals_are_those_of_plain_python(tmp_path):
    pairs = make_pairs(100)
    report = check_corpus(write_corpus(tmp_path, pairs), CleanConfig())
    for side, facts in enumerate((report.source, report.target)):
        texts = [pair[side].decode() for pair in pairs]
        assert facts.lines == 100
        assert facts.words == sum(len(text.split()) for text in texts)
        assert facts.chars == sum(len(text) for text in texts)
        assert facts.max_chars == max(len(text) for text in texts)
        assert facts.median_chars == sorted(len(text) for text in texts)[49]
        assert facts.scripts == {"Latin": 1.0}
    assert not any(finding.pairs for finding in report.findings.values())


def test_files_of_different_length_are_a_problem_with_a_place(tmp_path):
    corpus = write_corpus(tmp_path, make_pairs(1000))
    lines = corpus.target.read_bytes().splitlines(keepends=True)
    corpus.target.write_bytes(b"".join(lines[:400] + lines[403:]))
    report = check_corpus(corpus, CleanConfig())
    assert (report.source.lines, report.target.lines, report.pairs) == (1000, 997, 997)
    assert abs(report.parts_near - 401) < 15
    assert "has 1,000 lines but" in report.problems[0]
    assert "Run 'seqtool check" not in report.problems[0]


def test_files_of_equal_length_that_are_shifted_are_suspected(tmp_path):
    corpus = write_corpus(tmp_path, make_pairs(3000))
    lines = corpus.target.read_bytes().splitlines(keepends=True)
    corpus.target.write_bytes(b"".join([*lines[:1000], *lines[1001:], b"Ende.\n"]))
    report = check_corpus(corpus, CleanConfig())
    assert report.shifted_near is not None
    assert abs(report.shifted_near - 1001) < 30
    assert "from about line 1,0" in report.problems[0]
    assert f"as if 1 line is missing there in {corpus.target}" in report.problems[0]
    assert check_corpus(corpus, CleanConfig(shifted=True)).problems == []


def test_a_shift_is_found_in_one_file_with_pairs_too(tmp_path):
    pairs = make_pairs(3000)
    sources, targets = zip(*pairs, strict=True)
    rows = zip((*sources[:1500], *sources[1502:], b"The end.", b"End."), targets, strict=True)
    (tmp_path / "a.tsv").write_bytes(b"".join(src + b"\t" + tgt + b"\n" for src, tgt in rows))
    (problem,) = check_corpus(Corpus(tmp_path / "a.tsv", None), CleanConfig()).problems
    assert "as if 2 lines are missing there in the source column" in problem


@pytest.mark.parametrize(("stretch", "is_serious"), [(60, False), (1000, True)])
def test_a_short_shifted_passage_is_told_and_a_long_one_is_a_problem(tmp_path, stretch, is_serious):
    corpus = write_corpus(tmp_path, make_pairs(8000))
    lines = corpus.target.read_bytes().splitlines(keepends=True)
    lines = [*lines[:2000], *lines[2001 : 2001 + stretch], b"Ende.\n", *lines[2001 + stretch :]]
    corpus.target.write_bytes(b"".join(lines))
    report = check_corpus(corpus, CleanConfig())
    assert abs(report.shifted_near - 2001) < 30
    assert bool(report.problems) == is_serious


def test_the_median_is_that_of_the_lines_of_its_own_side(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"x" * 9998 + b"\t\n")
    report = check_corpus(Corpus(tmp_path / "a.tsv", None), CleanConfig())
    assert (report.source.median_chars, report.source.max_chars, report.target.median_chars) == (9998, 9998, 0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "no lines"),
        (b"no tab\n" * 5, "must be TSV"),
        ("Grüße\tgreetings\n".encode("latin-1") + b"a\tb\n", "not UTF-8"),
        ("a\tb\nc\td\n".encode("utf-16"), "not UTF-8"),
        (b"\t\n\t\n", "no pair is fit"),
    ],
)
def test_what_cannot_be_trained_on_is_a_problem(tmp_path, content, problem):
    (tmp_path / "a.tsv").write_bytes(content)
    report = check_corpus(Corpus(tmp_path / "a.tsv", None), CleanConfig())
    assert len(report.problems) == 1
    assert problem in report.problems[0]


def test_columns_are_counted_in_a_tsv_file(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"a\tb\nno tab\nc\td\textra\n")
    findings = check_corpus(Corpus(tmp_path / "a.tsv", None), CleanConfig()).findings
    assert findings["columns"].lines == [2]
    assert findings["extra_columns"].lines == [3]
    assert findings["empty"].pairs == 0


def test_examples_and_line_numbers_are_bounded(tmp_path):
    report = check_corpus(write_corpus(tmp_path, [(b"x" * 9000, b"")] * 500), CleanConfig(), n_examples=2)
    finding = report.findings["empty"]
    assert finding.pairs == 500
    assert finding.lines == list(range(1, 51))
    assert len(finding.examples) == 2
    assert len(finding.examples[0].source) == 300


def test_a_side_may_be_at_home_in_several_scripts(tmp_path):
    # Serbian is written in both; the one Greek line is a stranger.
    pairs = [
        (b"A good day %d to you" % n, f"{'Добар дан вама' if n % 2 else 'Dobar dan vama'} {n}".encode())
        for n in range(60)
    ]
    pairs.append((b"A good day to all", "Καλημέρα σε όλους".encode()))
    report = check_corpus(write_corpus(tmp_path, pairs), CleanConfig())
    assert report.findings["other_script"].lines == [61]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Hello, world!", "Latin"),
        ("Привет, Bob и Алиса", "Cyrillic"),
        ("你好", "Chinese/Japanese"),
        ("カタカナとひらがな", "Chinese/Japanese"),
        ("안녕하세요", "Hangul"),
        ("नमस्ते", "Devanagari"),
        ("გამარჯობა ᲒᲐ", "Georgian"),
        ("ＡＢＣ", "Latin"),
        ("12 + 3 = 15 °C µ", "none"),
        ("ab вг", "none"),
    ],
)
def test_the_script_of_most_letters_is_named(text, script):
    block = PairBlock.from_pairs([(b"before", b""), (text.encode(), b""), (b"\xff", b"")]).src
    assert [script_table().names[s] for s in find_scripts(block).dominant] == ["Latin", script, "none"]


def test_letters_are_counted_once_a_side_in_a_tsv_file(tmp_path):
    (tmp_path / "a.tsv").write_bytes("abc\tабвг\n".encode())
    (block,) = read_blocks(Corpus(tmp_path / "a.tsv", None))
    names = script_table().names
    src, tgt = find_scripts(block.src).letters, find_scripts(block.tgt).letters
    assert {names[i]: int(src[i]) for i in np.flatnonzero(src)} == {"Latin": 3}
    assert {names[i]: int(tgt[i]) for i in np.flatnonzero(tgt)} == {"Cyrillic": 4}
