r"""Reads a parallel corpus as a stream of blocks of lines. Lines are bytes here; decoding them is a later step.

Lines are split on "\n" only, so that line numbers are those of `wc -l`; one "\r" at the end of a line and a byte order
mark at the start of a file are left out. Memory is bounded by the block, or by the longest line.

    for block in read_blocks(corpus):        # PairBlock: a few thousand pairs, quick to send and to compute on
        block.src.line(i), block.tgt.line(i) # bytes
    for pair in read_pairs(corpus):          # RawPair: one by one
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from seqtool.corpus.reading.archives import Member, choose_members
from seqtool.corpus.reading.corpus import Corpus, names_pairs, parse_corpus
from seqtool.corpus.reading.forms import (
    ARCHIVES,
    CSV,
    JSONL,
    LINES,
    PO,
    TMX,
    TSV,
    OpenFile,
    open_file,
    recognise,
    require_lines,
)
from seqtool.corpus.reading.lines import LineBlock, PairBlock, RawPair
from seqtool.corpus.reading.parting import OpenSides, line_count_error
from seqtool.corpus.reading.po import read_po
from seqtool.corpus.reading.records import Columns, in_blocks
from seqtool.corpus.reading.tables import read_csv, read_jsonl, read_tsv_columns
from seqtool.corpus.reading.tmx import read_tmx
from seqtool.corpus.text import BYTE_ORDER_MARK, MAX_LINE_BYTES, decode_strictly
from seqtool.errors import SeqtoolError


def read_line_blocks(path: Path) -> Iterator[LineBlock]:
    """Yield the lines of one file in blocks; raise if it plainly is no text with one sentence per line."""
    file = open_file(path)
    require_lines(file)
    yield from split_into_blocks(file)


def split_into_blocks(file: OpenFile) -> Iterator[LineBlock]:
    """Yield the lines of an open file in blocks."""
    pending: list[bytes] = []  # the start of a line whose end has not been read
    pending_bytes = n_lines = 0
    for chunk in file.chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            block = _split_lines(b"".join([*pending, chunk[:cut]]), is_start=n_lines == 0)
            n_lines += len(block)
            yield block
            pending, pending_bytes = [], 0
        pending.append(chunk[cut:])
        pending_bytes += len(pending[-1])
        if pending_bytes > MAX_LINE_BYTES:
            raise SeqtoolError(
                f"{file.name}: line {n_lines + 1:,} is longer than {MAX_LINE_BYTES >> 20} MiB;"
                " a corpus is text with one sentence per line"
            )
    block = _split_lines(b"".join(pending), is_start=n_lines == 0)
    if len(block):
        yield block


def _split_lines(data: bytes, is_start: bool) -> LineBlock:
    if is_start and data.startswith(BYTE_ORDER_MARK):
        data = data[len(BYTE_ORDER_MARK) :]
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    if data and not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    if b"\r" in data:
        before = codes[np.maximum(ends - 1, 0)] == ord("\r")
        ends = ends - (before & (ends > starts))
    return LineBlock(data, starts, ends)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of one file."""
    for block in read_line_blocks(path):
        yield from block.lines()


def read_all_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a text file, or the texts of both sides of a file with pairs."""
    if not names_pairs(path):
        yield from read_lines(path)
        return
    for block in read_blocks(parse_corpus([path])):
        yield from block.src.lines()
        yield from block.tgt.lines()


def read_blocks(corpus: Corpus) -> Iterator[PairBlock]:
    """Yield the pairs of a corpus in blocks; after the last whole pair raise LineCountError if one file goes on."""
    if corpus.target is None:
        return _read_pair_file(corpus)
    src, tgt = corpus.paths
    return _read_aligned_blocks(corpus, (str(src), str(tgt)), lambda: (read_line_blocks(src), read_line_blocks(tgt)))


def _read_pair_file(corpus: Corpus) -> Iterator[PairBlock]:
    file = open_file(corpus.source)
    if file.form in ARCHIVES:
        members = choose_members(corpus.source, file.form, corpus.columns)
        if len(members) == 2:
            src, tgt = members
            yield from _read_aligned_blocks(
                corpus,
                (src.name, tgt.name),
                lambda: (split_into_blocks(_as_lines(src)), split_into_blocks(_as_lines(tgt))),
            )
            return
        file = recognise(members[0].name, members[0].chunks())
    yield from _read_form(file, corpus.columns)


def _as_lines(member: Member) -> OpenFile:
    file = recognise(member.name, member.chunks())
    require_lines(file)
    return file


def _read_form(file: OpenFile, columns: Columns | None) -> Iterator[PairBlock]:
    """Yield the pairs of a file that holds both sides."""
    name = file.name
    if file.form == TMX:
        return in_blocks(read_tmx(name, file.chunks, columns))
    if file.form in ARCHIVES:
        raise SeqtoolError(f"{name}: is an archive in an archive; unpack it first")
    lines = (line for block in split_into_blocks(file) for line in block.lines())
    if file.form == CSV:
        return in_blocks(read_csv(name, lines, columns))
    if file.form == JSONL:
        return in_blocks(read_jsonl(name, lines, columns))
    if file.form == PO:
        return in_blocks(read_po(name, lines))
    if columns:
        return in_blocks(read_tsv_columns(name, lines, columns))
    return _read_tsv_blocks(file)


def read_pairs(corpus: Corpus) -> Iterator[RawPair]:
    """Yield the pairs of a corpus one by one; read_blocks is quicker."""
    for block in read_blocks(corpus):
        pairs = zip(block.src.lines(), block.tgt.lines(), block.missing.tolist(), strict=True)
        for number, (src, tgt, missing) in enumerate(pairs, block.number):
            yield RawPair(number, src, None if missing else tgt)


def read_texts(corpus: Corpus, advice: str) -> list[tuple[str, str]]:
    """Read the pairs of a small corpus as text; a line that is missing or cannot be decoded is an error with advice,
    since a score depends on each."""
    pairs = []
    for pair in read_pairs(corpus):
        if pair.tgt is None:
            raise SeqtoolError(f"{corpus}: line {pair.number:,} has no tab and so no target; {advice}")
        src, tgt = decode_strictly(pair.src), decode_strictly(pair.tgt)
        if src is None or tgt is None:
            raise SeqtoolError(f"{corpus}: line {pair.number:,} is not valid UTF-8; convert it with iconv, or mend it")
        pairs.append((src, tgt))
    return pairs


def count_pairs(corpus: Corpus) -> int:
    """Return the number of pairs of a corpus; raise LineCountError if its files differ."""
    if corpus.target is None:
        file = open_file(corpus.source)
        plain = file.form in (LINES, TSV) and not corpus.columns
        return sum(map(len, split_into_blocks(file) if plain else read_blocks(corpus)))
    src, tgt = corpus.paths
    counts = count_lines(src), count_lines(tgt)
    if counts[0] != counts[1]:
        sides: OpenSides = lambda: (read_line_blocks(src), read_line_blocks(tgt))  # noqa: E731
        raise line_count_error(corpus, (str(src), str(tgt)), counts, sides)
    return counts[0]


def count_lines(path: Path) -> int:
    """Return the number of lines of one file; a last line without "\\n" counts."""
    return sum(len(block) for block in read_line_blocks(path))


def _read_tsv_blocks(file: OpenFile) -> Iterator[PairBlock]:
    number = 1
    for block in split_into_blocks(file):
        yield _split_columns(block, number)
        number += len(block)


def _split_columns(block: LineBlock, number: int) -> PairBlock:
    tabs = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\t"))
    tabs = np.append(tabs, [len(block.data)] * 2)  # so that two more can always be looked up
    first = np.searchsorted(tabs[:-1], block.starts)
    first = np.minimum(first, len(tabs) - 2)
    missing = tabs[first] >= block.ends
    extra = ~missing & (tabs[first + 1] < block.ends)
    src = LineBlock(block.data, block.starts, np.where(missing, block.ends, tabs[first]))
    tgt_starts = np.where(missing, block.ends, tabs[first] + 1)
    tgt = LineBlock(block.data, tgt_starts, np.where(extra, tabs[first + 1], block.ends))
    return PairBlock(number, src, tgt, missing, extra)


def _read_aligned_blocks(corpus: Corpus, names: tuple[str, str], open_sides: OpenSides) -> Iterator[PairBlock]:
    sides = open_sides()
    none = LineBlock.from_lines([])
    blocks, places = [none, none], [0, 0]
    n_pairs = 0
    while True:
        for side in (0, 1):
            if places[side] == len(blocks[side]):
                blocks[side], places[side] = next(sides[side], none), 0
        n = min(len(blocks[side]) - places[side] for side in (0, 1))
        if n == 0:
            break
        src, tgt = (blocks[side].cut(places[side], places[side] + n) for side in (0, 1))
        yield PairBlock(n_pairs + 1, src, tgt, np.zeros(n, bool), np.zeros(n, bool))
        n_pairs += n
        places = [place + n for place in places]
    counts = [n_pairs + len(blocks[s]) - places[s] + sum(len(block) for block in sides[s]) for s in (0, 1)]
    if counts[0] != counts[1]:
        raise line_count_error(corpus, names, (counts[0], counts[1]), open_sides)
