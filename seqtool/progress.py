"""How far a long job has come: what a job reports, and the line of stderr that shows it."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from seqtool.durations import format_seconds
from seqtool.visible import make_visible

BAR_WIDTH = 16
SECONDS_IN_PLACE = 0.1  # between two states of a line on a terminal
SECONDS_APART = 10.0  # between two lines if there is no terminal


@dataclass(frozen=True)
class Progress:
    """How many pairs or lines of a stage are done; total is None if it is not known."""

    stage: str
    done: int
    total: int | None = None
    unit: str = "pairs"
    share: float | None = None  # how much is done, from 0 to 1, if it is known without a total

    @property
    def fraction(self) -> float | None:
        """How much of the stage is done, from 0 to 1."""
        if self.share is not None:
            return min(1.0, self.share)
        return min(1.0, self.done / self.total) if self.total else None


ShowProgress = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Show nothing."""


class Stopwatch:
    """Estimates speed and remaining time of a stage from what was done since its first report."""

    def __init__(self) -> None:
        self._first = Progress("", 0)
        self._began = 0.0

    def read(self, progress: Progress) -> tuple[float | None, float | None]:
        """Return how much is done per second, and the seconds that are left; None while too little is done."""
        now = time.monotonic()
        if progress.stage != self._first.stage:
            self._first, self._began = progress, now
        seconds = now - self._began
        if seconds < 1.0:
            return None, None
        speed = (progress.done - self._first.done) / seconds
        worked = (progress.fraction or 0.0) - (self._first.fraction or 0.0)
        left = seconds * (1 - progress.fraction) / worked if progress.fraction and worked > 0 else None
        return speed, left


class ProgressLine:
    """Shows how far a job is on stderr: in place on a terminal, elsewhere as a line for each stage and now and then.

    `also` gets the names of the stages, for a log file.
    """

    def __init__(
        self,
        where: Literal["anywhere", "terminal", "nowhere"] = "anywhere",
        also: Callable[[str], None] | None = None,
    ) -> None:
        self._watch = Stopwatch()
        self._in_place = where != "nowhere" and sys.stderr.isatty()
        self._in_lines = where == "anywhere" and not self._in_place
        self._is_shown = False
        self._also = also
        self._stage = ""
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        """Show how far it is, unless that was just done."""
        speed, left = self._watch.read(progress)
        if progress.stage != self._stage:
            self._begin(progress.stage)
        if time.monotonic() < self._next or not (self._in_place or self._in_lines):
            return
        if self._in_lines:
            self._print_line(", ".join(describe(progress, speed, left)))
            return
        self._next = time.monotonic() + SECONDS_IN_PLACE
        text = "  ".join(describe(progress, speed, left, bar_width=BAR_WIDTH))
        print(f"\r{text[: terminal_width() - 1]}\x1b[K", end="", file=sys.stderr, flush=True)
        self._is_shown = True

    def _begin(self, stage: str) -> None:
        self._stage = stage
        if self._also is not None:
            self._also(f"{stage} ...")
        if self._in_lines:
            self._print_line(f"{stage} ...")

    def _print_line(self, text: str) -> None:
        print(f"seqtool: {text}", file=sys.stderr, flush=True)
        self._next = time.monotonic() + SECONDS_APART

    def clear(self) -> None:
        """Remove the line, for something else to be printed; the next report shows it again."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_shown, self._next = False, 0.0

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()


def describe(progress: Progress, speed: float | None, left: float | None, bar_width: int = 0) -> list[str]:
    """Describe a state in words: stage, share done, what is done, speed, time left."""
    parts = [make_visible(progress.stage)]
    if progress.fraction is not None:
        bar = f"{'█' * int(progress.fraction * bar_width):░<{bar_width}} " if bar_width else ""
        parts.append(f"{bar}{progress.fraction:.0%}")
    if progress.done:
        parts.append(f"{progress.done:,} {progress.unit}")
    if speed:
        parts.append(f"{speed:,.0f} {progress.unit}/s")
    if left is not None:
        parts.append(f"{format_seconds(left)} left")
    return parts


def terminal_width() -> int:
    """Return the columns of the terminal behind stderr."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
