"""A progress bar in one line of the terminal."""

import sys
import time

from seqtool.durations import format_seconds

WIDTH = 24


class ProgressBar:
    """Shows lines and speed on stderr, and where the size of the input is known the share done and the time left."""

    def __init__(self, total_bytes: int = 0) -> None:
        """Begin for an input of so many bytes (0: not known)."""
        self._total = total_bytes
        self._start = time.monotonic()
        self._shown = 0.0
        self._done = (0.0, 0.0)  # bytes and lines
        self._skipped = (0.0, 0.0)  # those that were there before, which took no time

    def update(self, block: list[bytes], share: float) -> None:
        """Show that `share` of the present block is done."""
        now = time.monotonic()
        if now - self._shown > 0.1:
            self._shown = now
            self._show(*self._after(block, share), now - self._start)

    def finish(self, block: list[bytes]) -> None:
        """Count a block as done, and show it."""
        self.update(block, 1.0)
        self._done = self._after(block, 1.0)

    def skip(self, block: list[bytes]) -> None:
        """Pass over a block that an earlier run has done; the time left is reckoned from here."""
        self._done = self._skipped = self._after(block, 1.0)
        self._start = time.monotonic()

    def clear(self) -> None:
        """Remove the bar until the next update, for something else to be printed."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._shown = 0.0

    def _after(self, block: list[bytes], share: float) -> tuple[float, float]:
        return self._done[0] + share * (sum(map(len, block)) + len(block)), self._done[1] + share * len(block)

    def _show(self, n_bytes: float, n_lines: float, seconds: float) -> None:
        speed = (n_lines - self._skipped[1]) / seconds if seconds > 0 else 0.0
        text = f"{n_lines:,.0f} lines  {speed:,.0f} lines/s"
        if self._total:
            done = min(1.0, n_bytes / self._total)
            filled = "█" * int(done * WIDTH)
            text = f"{filled:░<{WIDTH}} {done:4.0%}  {text}  {self._time_left(n_bytes, seconds)} left"
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def _time_left(self, n_bytes: float, seconds: float) -> str:
        worked = n_bytes - self._skipped[0]
        return format_seconds(seconds * max(0.0, self._total - n_bytes) / worked) if worked > 0 else "--:--"
