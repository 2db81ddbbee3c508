"""A progress bar in one line of the terminal, for files of known size."""

import sys
import time

WIDTH = 24


class ProgressBar:
    """Shows the share done, the speed and the time left on stderr; clears itself at the end."""

    def __init__(self, total_bytes: int) -> None:
        self._total = max(1, total_bytes)
        self._start = time.monotonic()
        self._shown = 0.0
        self._bytes = 0.0
        self._lines = 0.0

    def update(self, block: list[bytes], share: float) -> None:
        """Show that `share` of a block is done; 1 ends the block."""
        n_bytes = sum(map(len, block)) + len(block)
        now = time.monotonic()
        if now - self._shown > 0.1:
            self._shown = now
            self._show(self._bytes + share * n_bytes, self._lines + share * len(block), now - self._start)
        if share >= 1.0:
            self._bytes += n_bytes
            self._lines += len(block)

    def _show(self, n_bytes: float, n_lines: float, seconds: float) -> None:
        done = min(1.0, n_bytes / self._total)
        filled = "█" * int(done * WIDTH)
        left = format_seconds(seconds / done - seconds) if done > 0 else "--:--"
        speed = n_lines / seconds if seconds > 0 else 0.0
        text = f"{filled:░<{WIDTH}} {done:4.0%}  {n_lines:,.0f} lines  {speed:,.0f} lines/s  {left} left"
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the bar."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def format_seconds(seconds: float) -> str:
    """Write a time as 0:05, 12:34 or 1:23:45."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
