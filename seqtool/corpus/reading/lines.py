"""Blocks of lines and of pairs of lines, as bytes: what every reader yields and every later step computes on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Offsets = NDArray[np.int64]
Mask = NDArray[np.bool_]


class RawPair(NamedTuple):
    """One pair as it stands in the files; tgt is None if the line of a TSV file has no tab."""

    number: int
    src: bytes
    tgt: bytes | None


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
