"""How far a long job has come, and how long the rest will take."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """So many pairs of so many are done with; total is None where it is not known."""

    stage: str
    done: int
    total: int | None

    @property
    def fraction(self) -> float | None:
        """How much of the stage is done, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else None


Report = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Report to nobody."""


class Stopwatch:
    """Estimates the time that is left of a stage from the time that it took so far."""

    def __init__(self) -> None:
        self._stage = ""
        self._began = 0.0

    def seconds_left(self, progress: Progress) -> float | None:
        """Return the seconds to the end of the stage; None while too little was measured."""
        now = time.monotonic()
        if progress.stage != self._stage:
            self._stage, self._began = progress.stage, now
        if not progress.fraction or now - self._began < 1.0:
            return None
        return (now - self._began) * (1 / progress.fraction - 1)
