"""Lengths and length ratios of a corpus in one pass and bounded memory: what is usual, and what stands out."""

import heapq
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from seqtool.corpus.checking.examples import Example
from seqtool.corpus.reading.lines import Mask, Offsets

Numbers = NDArray[np.float64]

# An outlier lies this many (robust) standard deviations from the median, and at least this factor.
LENGTH_SIGMAS, LENGTH_FACTOR = 5.0, 4.0
RATIO_SIGMAS, RATIO_FACTOR = 6.0, 3.0
MAX_LENGTH_BIN = 1 << 16
RATIO_BINS, RATIO_BIN_WIDTH = 2001, 0.01
RATIO_PADDING = 5  # characters added to both sides, so that short texts do not look lopsided


class Histogram:
    """Counts of values that fall in bins; each bin stands for one value on a logarithmic scale."""

    def __init__(self, logs: Numbers) -> None:
        self.logs = logs
        self.counts = np.zeros(len(logs), np.int64)

    def add(self, bins: NDArray[np.int64]) -> None:
        self.counts += np.bincount(np.clip(bins, 0, len(self.counts) - 1), minlength=len(self.counts))

    def quantile(self, share: float) -> int:
        """Return the bin below which this share of the values lies."""
        return quantile_of(self.counts, share)

    def spread(self) -> tuple[float, float]:
        """Return the median and the standard deviation that the median deviation from it suggests."""
        median = self.logs[self.quantile(0.5)]
        deviations = np.abs(self.logs - median)
        order = np.argsort(deviations, kind="stable")
        return float(median), 1.4826 * float(deviations[order[quantile_of(self.counts[order], 0.5)]])

    def count_beyond(self, low: float, high: float) -> int:
        return int(self.counts[(self.logs < low) | (self.logs > high)].sum())


def quantile_of(counts: NDArray[np.int64], share: float) -> int:
    """Return the first index up to which this share of the counts lies."""
    sums = np.cumsum(counts)
    return int(np.searchsorted(sums, max(share * sums[-1], 1)))


class Extremes:
    """The few largest values of a stream, each with an example that is made only for them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.heap: list[tuple[float, int, Example]] = []

    def add(self, values: Numbers, number: int, make: Callable[[int], Example]) -> None:
        """Offer one value per line; number is that of the first line, make(i) gives the example of line number + i."""
        if not self.size:
            return
        floor = self.heap[0][0] if len(self.heap) == self.size else -math.inf
        candidates = np.flatnonzero(values > floor)
        if len(candidates) > self.size:
            candidates = np.sort(candidates[np.argsort(-values[candidates], kind="stable")[: self.size]])
        for i in candidates.tolist():
            entry = (float(values[i]), -(number + i), make(i))  # of equal values the first line stays
            if len(self.heap) < self.size:
                heapq.heappush(self.heap, entry)
            else:
                heapq.heappushpop(self.heap, entry)

    def above(self, limit: float) -> list[tuple[float, Example]]:
        """Return the examples with a value over a limit, and by how much, largest first."""
        return [(value - limit, item) for value, _, item in sorted(self.heap, reverse=True) if value > limit]


class LengthStatistics:
    """Lengths in characters of both sides, the ratio of the sides, and the pairs that stand out."""

    def __init__(self, n_examples: int) -> None:
        logs: Numbers = np.log(np.arange(MAX_LENGTH_BIN) + 1.0)
        self.src, self.tgt, self.both = Histogram(logs), Histogram(logs), Histogram(logs)
        self.ratio = Histogram(np.arange(-(RATIO_BINS // 2), RATIO_BINS // 2 + 1, dtype=np.float64) * RATIO_BIN_WIDTH)
        self.longest = Extremes(n_examples)
        self.heavy_src, self.heavy_tgt = Extremes(n_examples), Extremes(n_examples)

    def add(
        self, src: Offsets, tgt: Offsets, sound: tuple[Mask, Mask], number: int, make: Callable[[int], Example]
    ) -> None:
        """Add the pairs of a block by the characters of their sound sides; make(i) gives pair i as an example."""
        usable = sound[0] & sound[1]
        self.src.add(src[sound[0]])
        self.tgt.add(tgt[sound[1]])
        self.both.add((src + tgt)[usable])
        ratios = np.log((src + RATIO_PADDING) / (tgt + RATIO_PADDING))
        self.ratio.add(np.rint(ratios[usable] / RATIO_BIN_WIDTH).astype(np.int64) + RATIO_BINS // 2)
        self.longest.add(np.where(usable, np.log(src + tgt + 1.0), -np.inf), number, make)
        self.heavy_src.add(np.where(usable, ratios, -np.inf), number, make)
        self.heavy_tgt.add(np.where(usable, -ratios, -np.inf), number, make)

    def find_long(self) -> tuple[int, list[Example]]:
        """Return the number of unusually long pairs, and the longest."""
        median, sigma = self.both.spread()
        limit = median + max(LENGTH_SIGMAS * sigma, math.log(LENGTH_FACTOR))
        return self.both.count_beyond(-math.inf, limit), [example for _, example in self.longest.above(limit)]

    def find_lopsided(self) -> tuple[int, list[Example]]:
        """Return the number of pairs with an unusual ratio of lengths, and those with the most unusual ones."""
        median, sigma = self.ratio.spread()
        width = max(RATIO_SIGMAS * sigma, math.log(RATIO_FACTOR))
        heavy = self.heavy_src.above(median + width) + self.heavy_tgt.above(width - median)
        heavy.sort(key=lambda entry: entry[0], reverse=True)
        return self.ratio.count_beyond(median - width, median + width), [example for _, example in heavy]
