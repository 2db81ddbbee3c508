r"""Reads a parallel corpus as a stream of blocks of lines. Lines are bytes here; decoding them is a later step.

Lines are split on "\n" only, so that line numbers are those of `wc -l`; one "\r" at the end of a line and a byte order
mark at the start of a file are left out. Memory is bounded by the block, or by the longest line.

    for block in read_blocks(corpus):        # PairBlock: a few thousand pairs, quick to send and to compute on
        block.src.line(i), block.tgt.line(i) # bytes
    for pair in read_pairs(corpus):          # RawPair: one by one
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.reading.opening import read_chunks
from seqtool.corpus.reading.shifts import PartingFinder, likely_shifts
from seqtool.corpus.text import BYTE_ORDER_MARK, MAX_LINE_BYTES
from seqtool.errors import SeqtoolError

Offsets = NDArray[np.int64]
Mask = NDArray[np.bool_]


class RawPair(NamedTuple):
    """One pair as it stands in the files; tgt is None where the line of a TSV file has no tab."""

    number: int
    src: bytes
    tgt: bytes | None


class LineCountError(SeqtoolError):
    """Two aligned files have different numbers of lines; near is the line where they seem to part."""

    def __init__(self, corpus: Corpus, src_lines: int, tgt_lines: int, near: int | None) -> None:
        self.src_lines, self.tgt_lines, self.near = src_lines, tgt_lines, near
        place = f"; first difference in shape near line {near:,}" if near else ""
        self.summary = f"{corpus.source} has {src_lines:,} lines but {corpus.target} has {tgt_lines:,}{place}."
        super().__init__(f"{self.summary} Run 'seqtool check {corpus}'.")


@dataclass(frozen=True)
class LineBlock:
    """Consecutive lines: data[starts[i]:ends[i]] is line i, with a newline, tab or "\\r\\n" between it and the next."""

    data: bytes
    starts: Offsets
    ends: Offsets

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, i: int) -> bytes:
        return self.data[self.starts[i] : self.ends[i]]

    def lines(self) -> list[bytes]:
        return [self.data[a:b] for a, b in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def cut(self, first: int, last: int) -> "LineBlock":
        """Return lines first..last-1 with no more data than they need."""
        if first == 0 and last == len(self):
            return self
        if first == last:
            return LineBlock(b"", self.starts[:0], self.ends[:0])
        low, high = int(self.starts[first]), int(self.ends[last - 1])
        return LineBlock(self.data[low:high], self.starts[first:last] - low, self.ends[first:last] - low)

    @classmethod
    def from_lines(cls, lines: Sequence[bytes]) -> "LineBlock":
        """Make a block of given lines."""
        lengths = np.array([len(line) for line in lines], np.int64)
        ends = np.cumsum(lengths + 1) - 1
        return cls(b"\n".join(lines), ends - lengths, ends)


@dataclass(frozen=True)
class PairBlock:
    """Consecutive pairs; number is the 1-based line number of the first. In a TSV file a line may lack its second
    column (missing: its target reads as empty) or have more than two (extra: they are ignored)."""

    number: int
    src: LineBlock
    tgt: LineBlock
    missing: Mask
    extra: Mask

    def __len__(self) -> int:
        return len(self.src)

    @classmethod
    def from_pairs(cls, pairs: Sequence[tuple[bytes, bytes | None]], number: int = 1) -> "PairBlock":
        """Make a block of given pairs."""
        missing = np.array([tgt is None for _, tgt in pairs], bool)
        src = LineBlock.from_lines([src for src, _ in pairs])
        return cls(number, src, LineBlock.from_lines([tgt or b"" for _, tgt in pairs]), missing, np.zeros_like(missing))


def decode_line(line: bytes) -> str | None:
    """Return the text of a line, None where it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def read_line_blocks(path: Path) -> Iterator[LineBlock]:
    """Yield the lines of one file in blocks."""
    pending: list[bytes] = []  # the start of a line whose end has not been read
    pending_bytes = n_lines = 0
    for chunk in read_chunks(path):
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
                f"{path}: line {n_lines + 1:,} is longer than {MAX_LINE_BYTES >> 20} MiB;"
                " a corpus is text with one sentence a line"
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


def read_blocks(corpus: Corpus) -> Iterator[PairBlock]:
    """Yield the pairs of a corpus in blocks; after the last whole pair raise LineCountError where one file goes on."""
    if corpus.target is None:
        return _read_tsv_blocks(corpus.source)
    return _read_aligned_blocks(corpus)


def read_pairs(corpus: Corpus) -> Iterator[RawPair]:
    """Yield the pairs of a corpus one by one; read_blocks is quicker."""
    for block in read_blocks(corpus):
        pairs = zip(block.src.lines(), block.tgt.lines(), block.missing.tolist(), strict=True)
        for number, (src, tgt, missing) in enumerate(pairs, block.number):
            yield RawPair(number, src, None if missing else tgt)


def count_pairs(corpus: Corpus) -> int:
    """Return the number of lines of a corpus; raise LineCountError where its files differ."""
    n_src = count_lines(corpus.source)
    if corpus.target is not None and (n_tgt := count_lines(corpus.target)) != n_src:
        raise line_count_error(corpus, n_src, n_tgt)
    return n_src


def count_lines(path: Path) -> int:
    """Return the number of lines of one file; a last line without "\\n" counts."""
    return sum(len(block) for block in read_line_blocks(path))


def line_count_error(corpus: Corpus, src_lines: int, tgt_lines: int) -> LineCountError:
    """Make the error for two files of different length, with the place where they seem to part."""
    near = None
    if all(path.is_file() for path in corpus.paths):  # a pipe cannot be read again
        near = find_parting(corpus, src_lines, tgt_lines)
    return LineCountError(corpus, src_lines, tgt_lines, near)


def find_parting(corpus: Corpus, src_lines: int, tgt_lines: int) -> int | None:
    """Return the line from which two files of different length seem shifted, None where their lengths do not tell."""
    finder = PartingFinder(likely_shifts(src_lines, tgt_lines))
    src, tgt = (read_line_blocks(path) for path in corpus.paths)
    none = np.zeros(0, np.int64)
    while finder.near is None and finder.tests:
        src_is_behind = len(finder.src) <= len(finder.tgt)
        block = next(src if src_is_behind else tgt, None)
        if block is None:  # what is left has no counterpart
            break
        lengths = block.ends - block.starts
        finder.add(*((lengths, none) if src_is_behind else (none, lengths)))
    finder.finish()
    return finder.near or finder.best_guess(min(src_lines, tgt_lines) + 1)


def _read_tsv_blocks(path: Path) -> Iterator[PairBlock]:
    number = 1
    for block in read_line_blocks(path):
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


def _read_aligned_blocks(corpus: Corpus) -> Iterator[PairBlock]:
    assert corpus.target is not None
    sides = [read_line_blocks(corpus.source), read_line_blocks(corpus.target)]
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
        raise line_count_error(corpus, counts[0], counts[1])
