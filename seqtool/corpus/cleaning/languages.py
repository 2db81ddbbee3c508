"""Which side of a corpus a line reads like: statistics of letters, learnt from the first pairs of the corpus itself.

A line is a sum over its n-grams of four bytes, letters and spaces alone. Two sums tell its language: how usual it is
for its own side, and how much more so than for the other side. No language is known by name.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqtool.corpus.reading.lines import LineBlock, Mask, PairBlock

Numbers = NDArray[np.float32]
Grams = tuple[NDArray[np.uint32], NDArray[np.int64]]  # of many lines one after the other, and the number of each line's

LEARNT_PAIRS, LEARNT_BYTES = 50_000, 8 << 20
FEWEST_PAIRS = 500  # from which anything is learnt
BITS = 18
MULTIPLIER = np.uint32(2654435761)
UNSEEN = 0.3  # the count of an n-gram that was not seen
FEWEST_LINES = 50  # of a length, to tell what is usual
MIN_GRAMS = 12  # in a line that is judged
LENGTHS = np.array([12, 20, 40, 80])  # n-grams of a line; longer lines scatter less about what is usual
USUAL_SHAPE = (2, 2, len(LENGTHS), 2)  # side, sum, length, median and scatter
FOREIGN = -0.25  # nats an n-gram by which a line reads more like the other side
STRANGE = -4.0  # standard deviations by which the two sums together lie below what is usual
LETTERS = bytes(code if code >= 0x80 or chr(code).isalpha() else 0x20 for code in range(256))


@dataclass(frozen=True)
class Languages:
    """What was learnt: the logarithm of each n-gram's frequency on both sides, and what sums the lines have."""

    tables: tuple[Numbers, Numbers]
    usual: Numbers  # of USUAL_SHAPE

    @classmethod
    def learn(cls, blocks: Iterable[PairBlock]) -> "Languages | None":
        """Learn from the first pairs of a corpus; None if there are too few."""
        counts = [np.zeros(1 << BITS), np.zeros(1 << BITS)]
        kept: list[tuple[Grams, Grams]] = []
        pairs = size = 0
        for block in blocks:
            kept.append((_find_grams(block.src), _find_grams(block.tgt)))
            for table, (grams, _) in zip(counts, kept[-1], strict=True):
                table += np.bincount(grams, minlength=1 << BITS)
            pairs += len(block)
            size += int((block.src.ends - block.src.starts).sum() + (block.tgt.ends - block.tgt.starts).sum())
            if pairs >= LEARNT_PAIRS or size >= LEARNT_BYTES:
                break
        if pairs < FEWEST_PAIRS:
            return None
        src, tgt = (np.log((table + UNSEEN) / max(table.sum(), 1.0)).astype(np.float32) for table in counts)
        return cls((src, tgt), cls((src, tgt), np.zeros(0, np.float32))._find_usual(kept))

    def _find_usual(self, blocks: Iterable[tuple[Grams, Grams]]) -> Numbers:
        """Return the median and scatter of both sums by the length of lines; of few lines, nothing is unusual."""
        usual = np.zeros(USUAL_SHAPE, np.float32)
        usual[..., 1] = np.inf
        measured = [[self._measure(found, side) for side, found in enumerate(block)] for block in blocks]
        for side in (0, 1):
            *sums, numbers = (np.concatenate([block[side][part] for block in measured]) for part in range(3))
            lengths = _length_of(numbers)
            for i, values in enumerate(sums):
                for length in range(len(LENGTHS)):
                    part = values[(lengths == length) & (numbers >= MIN_GRAMS)]
                    if len(part) >= FEWEST_LINES:
                        median = np.median(part)
                        usual[side, i, length] = median, 1.4826 * np.median(np.abs(part - median)) + 0.05
        return usual

    def _measure(self, found: Grams, side: int) -> tuple[Numbers, Numbers, NDArray[np.int64]]:
        """Return how usual each line is for its side, how much more so than for the other, and its n-grams."""
        grams, numbers = found
        own, other = (_sums(self.tables[number][grams], numbers) for number in (side, 1 - side))
        scale = 1 / np.maximum(numbers, 1)
        return (own * scale).astype(np.float32), ((own - other) * scale).astype(np.float32), numbers

    def find(self, block: PairBlock) -> tuple[Mask, Mask]:
        """Return True for the pairs whose sides are swapped, and for those with a side in another language."""
        return self.examine(block)[:2]

    def examine(self, block: PairBlock) -> tuple[Mask, Mask, Numbers]:
        """Return what `find` does, and for both sides of each pair how far below what is usual they lie."""
        foreign, strange, depths = [], [], []
        for side, lines in enumerate((block.src, block.tgt)):
            *sums, numbers = self._measure(_find_grams(lines), side)
            judged, lengths = numbers >= MIN_GRAMS, _length_of(numbers)
            usual = self.usual[side][:, lengths]  # (sum, line, [median, scatter])
            own, more = ((values - usual[i, :, 0]) / usual[i, :, 1] for i, values in enumerate(sums))
            below = own + np.minimum(more, 0)  # a third language can be even less like the other side than usual lines
            foreign.append(judged & (sums[1] < FOREIGN))
            strange.append(judged & (below < STRANGE))
            depths.append(np.where(judged, -below, 0))
        swapped = foreign[0] & foreign[1]
        other = (foreign[0] | foreign[1] | strange[0] | strange[1]) & ~swapped
        return swapped, other, np.stack(depths)


def _length_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    places: NDArray[np.int64] = np.maximum(np.searchsorted(LENGTHS, numbers, side="right") - 1, 0)
    return places


def _find_grams(lines: LineBlock) -> Grams:
    """Return the n-grams of all lines, those with two spaces or more left out, and their number in each line."""
    data = lines.data.lower().translate(LETTERS) + b"    "
    words: NDArray[np.uint32] = np.ndarray(len(data) - 3, "<u4", data, strides=(1,))
    spaces = (np.frombuffer(data, np.uint8) == 0x20).view(np.uint8)
    blank = spaces[:-3] + spaces[1:-2] + spaces[2:-1] + spaces[3:]
    ends = np.maximum(lines.ends - 3, lines.starts)
    depth = np.zeros(len(words) + 1, np.int8)  # the other side may lie in the same buffer, between these lines
    np.add.at(depth, lines.starts, 1)
    np.add.at(depth, ends, -1)
    places = np.flatnonzero((blank < 2) & (np.cumsum(depth[:-1], dtype=np.int8) > 0))
    numbers: NDArray[np.int64] = np.searchsorted(places, ends) - np.searchsorted(places, lines.starts)
    return (words[places] * MULTIPLIER) >> np.uint32(32 - BITS), numbers


def _sums(values: Numbers, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of the values of each line; they stand one after the other, as many for each line as `numbers`."""
    sums = np.zeros(len(numbers))
    if len(values):
        filled = numbers > 0
        sums[filled] = np.add.reduceat(values, (np.cumsum(numbers) - numbers)[filled], dtype=np.float64)
    return sums
