"""Each rule of cleaning, and the measures that the rules use."""

import re
from collections import Counter

import numpy as np
import pytest
from cleaner import Cleaner
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtool.config import CleanConfig
from seqtool.corpus.cleaning.measuring import measure_lines, measure_pairs
from seqtool.corpus.cleaning.rules import (
    RULES,
    CleaningRules,
    Deduplicator,
    OverlapHashes,
    dropped_lines,
    require_usable,
)
from seqtool.corpus.reading.blocks import read_blocks
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.reading.lines import LineBlock, PairBlock
from seqtool.corpus.text import clean_text, decode_strictly
from seqtool.errors import SeqtoolError

CONFIG = CleanConfig(max_words=10, max_chars=60, max_ratio=3.0)
GOOD = (b"A dog runs.", b"Ein Hund rennt.")

text_lines = st.one_of(
    st.text(max_size=20),
    st.text(alphabet=" \t\u00a0\u3000\u2003ab\x0b\x0c\x00\x85\u2028\u200b\u00ad\ufeffé漢", max_size=8),
).map(lambda text: text.replace("\n", "").encode("utf-8", "surrogatepass"))
any_lines = st.one_of(text_lines, st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")))
CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


@given(st.lists(any_lines, max_size=12))
@settings(deadline=None)
def test_measures_are_those_of_plain_python(lines):
    measures = measure_lines(LineBlock.from_lines(lines))
    for i, line in enumerate(lines):
        text = decode_strictly(line)
        assert measures.invalid[i] == (text is None)
        if text is not None:
            ascii_space = "\t\n\v\f\r "
            assert measures.chars[i] == len(text.strip(ascii_space))
            assert measures.words[i] == len(re.split(f"[{ascii_space}]+", text.strip(ascii_space))) * bool(
                text.strip(ascii_space)
            )
            assert measures.control[i] == bool(CONTROL.search(text))
            assert measures.blank[i] == (not clean_text(text))


@given(st.lists(st.tuples(any_lines, any_lines), min_size=1, max_size=10))
@settings(deadline=None)
def test_a_tsv_file_is_measured_like_two_files(tmp_path_factory, pairs):
    pairs = [
        (src.replace(b"\t", b" ").replace(b"\r", b""), tgt.replace(b"\t", b" ").replace(b"\r", b""))
        for src, tgt in pairs
    ]
    path = tmp_path_factory.getbasetemp() / "a.tsv"
    path.write_bytes(b"x\ty\n" + b"".join(src + b"\t" + tgt + b"\n" for src, tgt in pairs))
    (block,) = read_blocks(Corpus(path, None))
    for measures, lines in zip(measure_pairs(block), zip((b"x", b"y"), *pairs, strict=True), strict=True):
        expected = measure_lines(LineBlock.from_lines(lines))
        for name, values in vars(expected).items():
            assert vars(measures)[name].tolist() == values.tolist(), name


@pytest.mark.parametrize(
    ("rule", "src", "tgt"),
    [
        (None, *GOOD),
        (None, b"A\tB", b"C\tD"),
        (None, b"soft\xc2\xadhyphen", b"zero\xe2\x80\x8bwidth"),
        ("undecodable", b"gr\xfc\xdfe", b"greetings"),
        ("undecodable", b"greetings", b"gr\xfc\xdfe"),
        ("undecodable", b"\xed\xa0\x80", b"a lone surrogate"),
        ("columns", b"no tab here", None),
        ("empty", b"", b"nothing"),
        ("empty", b"blank", b" \t "),
        ("empty", b"\xe3\x80\x80\xc2\xa0", b"blank in Unicode"),
        ("control", b"nul\x00byte", b"Nullbyte"),
        ("control", b"delete", b"l\x7fschen"),
        ("control", b"next\xc2\x85line", b"Zeile"),
        ("control", b"vertical\x0btab", b"Tabulator"),
        ("control", b"form\x0cfeed", b"Seite"),
        ("control", b"inner\rreturn", b"Zeile"),
        ("control", b"line\xe2\x80\xa8separator", b"Zeile"),
        ("control", b"paragraph\xe2\x80\xa9separator", b"Absatz"),
        ("identical", b"the same", b"the same"),
        ("identical", b"the same ", b" the same"),
        ("too_long", b"a b c d e f g h i j k", b"elf Buchstaben"),
        ("too_long", b"x" * 61, b"y" * 40),
        (None, b"x" * 60, "ü".encode() * 60),
        ("ratio", b"x" * 50, b"y" * 16),
        (None, b"x" * 20, b"y"),
    ],
)
def test_each_rule_drops_what_it_should(rule, src, tgt):
    assert Cleaner(CONFIG).rule_for(src, tgt) == rule


def test_a_repeated_pair_is_dropped_in_any_block():
    cleaner = Cleaner(CONFIG)
    assert [cleaner.rule_for(*GOOD) for _ in range(3)] == [None, "duplicate", "duplicate"]
    block = PairBlock.from_pairs([(b"a", b"b"), (b"a", b"c"), (b"a", b"b"), (b" a", b"b "), (b"b", b"a")])
    assert cleaner.judge(block).kept.tolist() == [True, True, False, False, True]
    assert cleaner.dropped == {"duplicate": 4}
    assert cleaner.pairs == 8


def test_a_pair_with_a_side_in_the_validation_set_is_dropped(tmp_path):
    (tmp_path / "valid.tsv").write_bytes(b"seen source\tgesehenes Ziel\n\t\nnot utf-8 \xff\tno matter\n")
    against = OverlapHashes.read([Corpus(tmp_path / "valid.tsv", None)])
    cleaner = Cleaner(CONFIG, against)
    assert cleaner.rule_for(b"seen source", b"anders") == "overlap"
    assert cleaner.rule_for(b"other", b" gesehenes Ziel") == "overlap"
    assert cleaner.rule_for(b"gesehenes Ziel", b"seen source") is None
    assert Cleaner(CleanConfig(overlap=False), against).rule_for(b"seen source", b"anders") is None


def test_a_set_to_keep_apart_needs_both_sides(tmp_path):
    (tmp_path / "test.de").write_bytes(b"\nEin Hund.\n")
    with pytest.raises(SeqtoolError, match=r"test\.de: line 2 has no tab and so no target"):
        OverlapHashes.read([Corpus(tmp_path / "test.de", None)])


@pytest.mark.parametrize(
    ("settings_", "pair"),
    [
        ({"empty": False}, (b"", b"nothing")),
        ({"control": False}, (b"nul\x00byte", b"Nullbyte")),
        ({"identical": False}, (b"the same", b"the same")),
        ({"max_words": 0}, (b"a " * 300, b"b " * 300)),
        ({"max_chars": 0}, (b"a" * 3000, b"b" * 3000)),
        ({"max_ratio": 0.0}, (b"a" * 1000, b"b")),
        ({"ratio_from": 1000}, (b"a" * 1000, b"b")),
    ],
)
def test_each_rule_can_be_turned_off(settings_, pair):
    assert Cleaner(CleanConfig()).rule_for(*pair) is not None
    assert Cleaner(CleanConfig(**settings_)).rule_for(*pair) is None


def test_without_cleaning_only_what_cannot_be_read_is_dropped():
    cleaner = Cleaner(CleanConfig(enabled=False, max_chars=5))
    pairs = [
        (b"\xff", b"a"),
        (b"a", None),
        (b"", b"a"),
        (b"\x00a", b"aa"),
        (b"a", b"a"),
        (b"a", b"a"),
        (b"x" * 99, b"a"),
    ]
    rules = [cleaner.rule_for(*pair) for pair in pairs]
    assert rules == ["undecodable", "columns", "empty", None, None, None, None]


def test_repeats_are_kept_where_the_rule_is_off():
    cleaner = Cleaner(CleanConfig(duplicate=False))
    assert [cleaner.rule_for(*GOOD) for _ in range(3)] == [None, None, None]


@given(st.lists(st.tuples(any_lines, any_lines), max_size=30), st.integers(1, 7))
@settings(deadline=None)
def test_the_size_of_blocks_changes_no_verdict(pairs, size):
    whole, parts = Cleaner(CONFIG), Cleaner(CONFIG)
    expected = whole.judge(PairBlock.from_pairs(pairs)).rules.tolist()
    found = []
    for start in range(0, len(pairs), size):
        found += parts.judge(PairBlock.from_pairs(pairs[start : start + size])).rules.tolist()
    assert found == expected
    assert parts.dropped == whole.dropped == Counter(RULES[rule] for rule in expected if rule < len(RULES))


def test_the_rules_look_at_a_pair_by_itself_and_the_deduplicator_at_all():
    rules = CleaningRules(CONFIG, OverlapHashes(np.zeros(0, np.uint64), np.zeros(0, np.uint64)))
    verdicts = rules.judge(PairBlock.from_pairs([GOOD, (b"", b""), GOOD]))
    assert verdicts.counts() == {"empty": 1}
    Deduplicator(CONFIG).mark(verdicts)
    assert verdicts.counts() == {"empty": 1, "duplicate": 1}


def test_dropped_pairs_are_written_with_rule_and_line_number():
    block = PairBlock.from_pairs([GOOD, (b"gr\xfc\tn", b"green"), (b"", b"x"), (b"lonely", None)], number=101)
    lines = dropped_lines(block, Cleaner(CONFIG).judge(block)).decode().splitlines()
    assert lines == ["undecodable\t102\tgr� n\tgreen", "empty\t103\t\tx", "columns\t104\tlonely\t"]


def test_a_corpus_that_is_mostly_not_utf8_is_refused():
    require_usable(CleanConfig(), "a.tsv", 1000, {"undecodable": 10})
    with pytest.raises(SeqtoolError, match=r"a\.tsv: 11 of 1,000 pairs are not UTF-8"):
        require_usable(CleanConfig(), "a.tsv", 1000, {"undecodable": 11})


def test_a_corpus_without_a_usable_pair_is_refused():
    with pytest.raises(SeqtoolError, match="no lines"):
        require_usable(CleanConfig(), "a.tsv", 0, {})
    with pytest.raises(SeqtoolError, match="must be TSV"):
        require_usable(CleanConfig(), "a.txt", 10, {"columns": 9, "empty": 1})
