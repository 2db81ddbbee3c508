"""Finds where two files that should be aligned seem to part, by nothing but the lengths of their lines.

A line and its translation have similar lengths, so the ratio of lengths scatters little where files are aligned. For
each shift s, Page's cumulative sum test compares "line i belongs to line i" with "line i + s belongs to line i", line
by line, and raises the alarm when the second has explained the lengths clearly better for some time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

LEARNING_LINES = 1000  # lines from which the usual ratio and its scatter are taken
SLACK = 0.25  # how much better the shifted pairing must be on average, in units of the scatter
ALARM = 30.0  # the sum of advantages that no accident explains
GUESS = 4.0  # the sum that is enough if there surely is a shift
MAX_SHIFT = 1 << 20
TRIED_SHIFTS = 8
SERIOUS_SHARE = 0.02  # of the lines in a shifted stretch, beside which one that lasts to the end counts


@dataclass
class _Test:
    """The state of one shift's test: the sum of advantages, its lowest value and the line after that."""

    shift: int
    sum: float = 0.0
    lowest: float = 0.0
    lowest_at: int = 0
    advantages: float = 0.0
    highest: float = 0.0  # of the sum over its lowest value before

    def advance(self, advantages: Numbers, at: int) -> int | None:
        """Go on over lines at, at + 1, ...; return the index of the line where the shift began, once it is sure."""
        self.advantages += float(advantages.sum())
        sums = self.sum + np.cumsum(advantages - SLACK)
        lows = np.minimum(np.minimum.accumulate(sums), self.lowest)
        alarms = np.flatnonzero(sums - lows > ALARM)
        self.highest = max(self.highest, float((sums - lows).max()))
        end = int(alarms[0]) + 1 if len(alarms) else len(sums)
        place = int(np.argmin(sums[:end]))
        if sums[place] < self.lowest:
            self.lowest, self.lowest_at = float(sums[place]), at + place + 1
        self.sum = float(sums[-1])
        return self.lowest_at if len(alarms) else None


class PartingFinder:
    """Finds the first line from which two files seem shifted, by the lengths of their lines."""

    def __init__(self, shifts: Sequence[int]) -> None:
        self.tests = [_Test(shift) for shift in shifts]
        self.margin = max(abs(shift) for shift in shifts)
        self.at = 0  # the first line that has not been tested
        self.src = self.tgt = np.zeros(0)  # log lengths from there on
        self.center = self.scatter = 0.0
        self.near: int | None = None  # 1-based number of the line
        self.shift = 0  # of the test that found it

    def add(self, src_lengths: NDArray[np.int64], tgt_lengths: NDArray[np.int64]) -> None:
        """Go on over the next lines of both files; they need not be the same number."""
        if not self.tests:
            return
        self.src = np.append(self.src, np.log(src_lengths + 1.0))
        self.tgt = np.append(self.tgt, np.log(tgt_lengths + 1.0))
        if self.at or min(len(self.src), len(self.tgt)) - self.margin >= LEARNING_LINES:
            self.finish()

    def finish(self) -> None:
        """Test the lines that were kept back."""
        n = min(len(self.src), len(self.tgt)) - self.margin
        if n < 1 or not self.tests:
            return
        if not self.at:
            self._learn()
        plain = self._misfit(0, n)
        found = [test.advance(plain - self._misfit(test.shift, n), self.at) for test in self.tests]
        alarms = [(at, test.shift) for at, test in zip(found, self.tests, strict=True) if at is not None]
        if alarms and self.near is None and self._is_one_sided():
            self.near, self.shift = min(alarms)[0] + 1, min(alarms)[1]
        elif alarms and self.near is None:
            self.tests, n = [], max(len(self.src), len(self.tgt))  # lengths show nothing, so none are kept
        self.at += n
        self.src, self.tgt = self.src[n:], self.tgt[n:]

    @property
    def is_serious(self) -> bool:
        """True if the shift lasts to the end or for many lines, and is not a passage in a large corpus."""
        lasting = any(test.sum - test.lowest > ALARM for test in self.tests)
        return self.near is not None and (lasting or any(t.highest > SERIOUS_SHARE * self.at for t in self.tests))

    def _is_one_sided(self) -> bool:
        """Return False if shifts either way fit better, as in a corpus sorted by length: then lengths show nothing."""
        highest = [max((t.highest for t in self.tests if t.shift * sign > 0), default=0.0) for sign in (-1, 1)]
        return min(highest) < 0.5 * max(highest)

    def best_guess(self, n_lines: int) -> int | None:
        """Return the most likely first line of the last of the shifts, given that the files do part by line n_lines."""
        if not self.tests:
            return None
        test = self.tests[-1]
        if test.sum - test.lowest > GUESS:
            return test.lowest_at + 1
        return n_lines if test.advantages < -GUESS else None

    def _ratios(self, shift: int, n: int) -> Numbers:
        src, tgt = max(shift, 0), max(-shift, 0)
        ratios: Numbers = self.src[src : src + n] - self.tgt[tgt : tgt + n]
        return ratios

    def _misfit(self, shift: int, n: int) -> Numbers:
        return np.minimum(np.abs(self._ratios(shift, n) - self.center) / self.scatter, 4.0)

    def _learn(self) -> None:
        n = min(len(self.src), len(self.tgt), LEARNING_LINES + self.margin) - self.margin
        self.center = float(np.median(self._ratios(0, n)))
        spreads = [np.abs(self._ratios(shift, n) - self.center).mean() for shift in (0, *(t.shift for t in self.tests))]
        self.scatter = max(float(min(spreads)), 0.05)


def likely_shifts(src_lines: int, tgt_lines: int) -> list[int]:
    """Return the shifts that may explain a difference in the number of lines: part of it, and all of it."""
    missing = src_lines - tgt_lines
    sign = 1 if missing > 0 else -1
    shifts = [sign * n for n in range(1, min(abs(missing), TRIED_SHIFTS) + 1)]
    return shifts if missing in shifts or abs(missing) > MAX_SHIFT else [*shifts, missing]
