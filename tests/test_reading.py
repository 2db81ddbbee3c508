r"""Lines are split on "\n" only, and numbered as `wc -l` counts them."""

import gzip
import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from seqtool.corpus.reading import blocks as reading
from seqtool.corpus.reading import opening
from seqtool.corpus.reading.blocks import count_lines, count_pairs, read_blocks, read_lines, read_pairs
from seqtool.corpus.reading.corpus import Corpus, parse_corpus, parse_corpus_option
from seqtool.corpus.reading.forms import LINES, TSV, form_of
from seqtool.corpus.reading.lines import LineBlock, RawPair
from seqtool.corpus.reading.parting import LineCountError
from seqtool.corpus.text import decode_strictly
from seqtool.errors import SeqtoolError

# Bytes that matter to a reader of lines are drawn more often than others.
lively_bytes = st.lists(
    st.one_of(
        st.sampled_from(
            [b"\n", b"\r\n", b"\r", b"\t", b"\x00", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b"]
        ),
        st.binary(max_size=4),
    ),
    max_size=30,
).map(b"".join)
lively_bytes = lively_bytes.filter(lambda data: not data.startswith(tuple(opening.MAGIC)))


def split_naively(data: bytes) -> list[bytes]:
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reading")


@pytest.fixture(params=[1, 3, 1 << 19], ids=lambda size: f"{size} bytes at once")
def chunk_bytes(request, monkeypatch):
    monkeypatch.setattr(opening, "CHUNK_BYTES", request.param)


@pytest.mark.usefixtures("chunk_bytes")
class TestInChunksOfAnySize:
    @given(data=lively_bytes)
    @settings(deadline=None)
    def test_lines_are_those_of_a_naive_split(self, folder, data):
        assume(form_of("text", data) == LINES)
        (folder / "text").write_bytes(data)
        assert list(read_lines(folder / "text")) == split_naively(data)
        assert count_lines(folder / "text") == len(split_naively(data))

    @given(data=lively_bytes)
    @settings(deadline=None)
    def test_a_tsv_line_gives_its_first_two_columns(self, folder, data):
        assume(form_of("text", data) in (LINES, TSV))
        (folder / "text").write_bytes(data)
        expected = []
        for number, line in enumerate(split_naively(data), 1):
            columns = line.split(b"\t")
            expected.append(RawPair(number, columns[0], columns[1] if len(columns) > 1 else None))
        assert list(read_pairs(Corpus(folder / "text", None))) == expected

    @given(src=lively_bytes, tgt=lively_bytes)
    @settings(deadline=None)
    def test_aligned_files_give_pairs_and_then_a_difference_in_length(self, folder, src, tgt):
        assume(all(form_of("text", data) == LINES for data in (src, tgt)))
        (folder / "src").write_bytes(src)
        (folder / "tgt").write_bytes(tgt)
        src_lines, tgt_lines = split_naively(src), split_naively(tgt)
        pairs = read_pairs(Corpus(folder / "src", folder / "tgt"))
        for number, (a, b) in enumerate(zip(src_lines, tgt_lines, strict=False), 1):
            assert next(pairs) == RawPair(number, a, b)
        if len(src_lines) == len(tgt_lines):
            assert list(pairs) == []
        else:
            with pytest.raises(LineCountError) as caught:
                next(pairs)
            assert (caught.value.src_lines, caught.value.tgt_lines) == (len(src_lines), len(tgt_lines))


AWKWARD = (
    b"\xef\xbb\xbfbyte order mark\r\n"
    b"line\xe2\x80\xa8separator\n"
    b"next\xc2\x85line\n"
    b"vertical\x0btab\n"
    b"form\x0cfeed\r\n"
    b"nul\x00byte\n"
    b"\n"
    b"inner\rreturn\n"
    b"file\x1cseparator\n"
    b"not\xff\xfeutf-8\n"
    b"\xef\xbb\xbfa later mark stays\n"
    b"no final newline"
)


def test_awkward_characters_never_split_a_line(tmp_path):
    path = tmp_path / "awkward.txt"
    path.write_bytes(AWKWARD)
    lines = list(read_lines(path))
    newlines = int(subprocess.run(["wc", "-l", path], capture_output=True, check=True).stdout.split()[0])
    assert len(lines) == newlines + 1  # wc does not count a last line without a newline
    assert lines[0] == b"byte order mark"
    assert lines[4] == b"form\x0cfeed"
    assert lines[7] == b"inner\rreturn"
    assert lines[9] == b"not\xff\xfeutf-8"
    assert lines[10].startswith(b"\xef\xbb\xbf")
    assert lines[11] == b"no final newline"


def test_line_numbers_are_those_of_sed(tmp_path):
    path = tmp_path / "awkward.txt"
    path.write_bytes(AWKWARD)
    for pair in read_pairs(Corpus(path, None)):
        if pair.src:
            printed = subprocess.run(["sed", "-n", f"{pair.number}p", path], capture_output=True, check=True).stdout
            assert pair.src in printed


def test_a_line_that_is_not_utf8_decodes_to_none():
    assert decode_strictly(b"gr\xfc\xdfe") is None
    assert decode_strictly("grüße".encode()) == "grüße"


def test_columns_after_the_second_are_ignored_and_marked(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"a\tb\tc\td\ne\tf\ng\nh\t\ti\n")
    (block,) = read_blocks(Corpus(tmp_path / "a.tsv", None))
    assert block.src.lines() == [b"a", b"e", b"g", b"h"]
    assert block.tgt.lines() == [b"b", b"f", b"", b""]
    assert block.missing.tolist() == [False, False, True, False]
    assert block.extra.tolist() == [True, False, False, True]


def test_a_pair_of_files_may_be_compressed_differently(tmp_path):
    (tmp_path / "a.en.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    (tmp_path / "a.de").write_bytes(b"eins\r\nzwei\r\n")
    corpus = parse_corpus([tmp_path / "a.en.gz", tmp_path / "a.de"])
    assert list(read_pairs(corpus)) == [(1, b"one", b"eins"), (2, b"two", b"zwei")]
    assert count_pairs(corpus) == 2


def test_a_line_without_end_is_an_error_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(opening, "CHUNK_BYTES", 100)
    path = tmp_path / "binary"
    path.write_bytes(b"short\n" + b"x" * 5000)
    with pytest.raises(SeqtoolError, match="binary: line 2 is longer than"):
        list(read_lines(path))


def test_a_pipe_can_be_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"a\tb\nc\td\n"))
    writer.start()
    assert list(read_pairs(Corpus(pipe, None))) == [(1, b"a", b"b"), (2, b"c", b"d")]
    writer.join()


def test_different_line_counts_are_named_with_the_place_and_the_cure(tmp_path):
    # Line n has 5 to 64 letters in no order, and its translation has as many: files whose lengths show the alignment.
    lines = [b"x" * (5 + n * 37 % 60) for n in range(500)]
    (tmp_path / "a.en").write_bytes(b"\n".join(lines))
    (tmp_path / "a.de").write_bytes(b"\n".join(lines[:200] + lines[201:]))
    corpus = parse_corpus([tmp_path / "a.en", tmp_path / "a.de"])
    for read in (count_pairs, lambda corpus: list(read_blocks(corpus))):
        with pytest.raises(LineCountError) as caught:
            read(corpus)
        assert "a.en has 500 lines but " in str(caught.value)
        assert "a.de has 499; first difference in shape near line 2" in str(caught.value)
        assert f"Run 'seqtool check {corpus}'." in str(caught.value)
        assert abs(caught.value.near - 201) <= 2


def test_a_block_can_be_cut(tmp_path):
    block = LineBlock.from_lines([b"one", b"", b"three", b"four"])
    assert block.lines() == [b"one", b"", b"three", b"four"]
    assert block.cut(1, 3).lines() == [b"", b"three"]
    assert block.cut(2, 2).lines() == []
    assert len(block.cut(2, 3).data) == 5
    assert LineBlock.from_lines([]).lines() == []


@pytest.mark.parametrize(
    ("text", "names", "weight"),
    [
        ("a.tsv", ["a.tsv"], 1.0),
        ("a.tsv@0.5", ["a.tsv"], 0.5),
        ("a.en,a.de", ["a.en", "a.de"], 1.0),
        ("a.en,a.de@2", ["a.en", "a.de"], 2.0),
        ("dir@home/a.tsv", ["dir@home/a.tsv"], 1.0),
        ("dir@home/a.tsv@3e-1", ["dir@home/a.tsv"], 0.3),
    ],
)
def test_a_corpus_option_names_files_and_weight(text, names, weight):
    corpus = parse_corpus_option(text)
    assert [str(path) for path in corpus.paths] == names
    assert corpus.weight == weight


def test_a_file_whose_name_looks_like_an_option_is_found(tmp_path):
    path = tmp_path / "a,b@2"
    path.touch()
    assert parse_corpus_option(str(path)) == Corpus(path, None, 1.0)
    assert parse_corpus_option(f"{path}@0.5") == Corpus(path, None, 0.5)


@pytest.mark.parametrize("text", ["a.en,", ",a.de", "", "a.tsv@0", "a.tsv@-1", "a.tsv@nan", "a.tsv@heavy", "a,b,c"])
def test_a_bad_corpus_option_is_refused(text):
    with pytest.raises(SeqtoolError):
        parse_corpus_option(text)


@pytest.mark.parametrize("n", [0, 3])
def test_a_corpus_is_one_file_or_two(n):
    with pytest.raises(SeqtoolError, match=f"not {n} files"):
        parse_corpus([Path("a")] * n)
