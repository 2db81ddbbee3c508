"""What a run shows while it works: a live panel in a terminal, plain lines elsewhere, and lines in a log file."""

import contextlib
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from seqtool.durations import count, format_seconds
from seqtool.errors import SeqtoolError
from seqtool.progress import ProgressLine
from seqtool.training.panel import LivePanel, TrainingPanel
from seqtool.visible import make_visible

ENOUGH_STEPS, FIRST_SECONDS = 5, 5.0  # before it is said how long all steps will take


class TrainingDisplay:
    """Shows a run; in a terminal the figures stay in place, elsewhere each report is a line.

    Quiet, it shows warnings alone; the log file has all lines in any case.
    """

    def __init__(self, quiet: bool = False, live: bool | None = None, log_file: Path | None = None) -> None:
        self.quiet = quiet
        self.console = Console(stderr=True, highlight=False)
        self.live: LivePanel | None = None
        self.panel = TrainingPanel(self.console)
        self._wants_live = (self.console.is_terminal if live is None else live) and not quiet
        self._signed = False  # whether it was said how validation scores
        self._first_steps: list[float] | None = []  # what they took; None once there were enough of them
        self._log = open_log(log_file) if log_file else None

    def say(self, text: str) -> None:
        """Show one line that stays."""
        if not self.quiet or text.startswith("warning:"):
            self.console.print(make_visible(text), soft_wrap=True, markup=False)
        self.note(text)

    def note(self, text: str) -> None:
        """Write a line to the log file alone."""
        if self._log is not None and text:
            self._log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {make_visible(text)}\n")

    def progress(self) -> ProgressLine:
        """Return what shows how far the preparation is."""
        return ProgressLine("nowhere" if self.quiet else "anywhere", also=self.note)

    def sign(self, bleu: str, chrf: str) -> None:
        """Say by which signatures validation scores, before the first score is shown."""
        if not self._signed:
            self.say(f"BLEU is {bleu}, chrF is {chrf}")
            self._signed = True

    def start(self, history: list[dict[str, Any]], total_steps: int, step: int = 0) -> None:
        """Begin the live panel, if there is a terminal; 0 steps mean that their number is not planned yet."""
        self.panel.total, self.panel.step = total_steps, step
        for entry in history:
            self.panel.remember(entry)
        if self._wants_live:
            self.live = LivePanel(self.panel)
            self.live.start(refresh=True)

    def advance(self, step: int, total_steps: int, seconds_left: float | None, seconds: float) -> None:
        """Note a step and what it took; the live panel shows it between reports."""
        self.panel.step, self.panel.total, self.panel.seconds_left = step, total_steps, seconds_left
        if self._first_steps is None:
            return
        self._first_steps.append(seconds)
        if not total_steps:  # the time is given, and the number of steps will follow from it
            self._first_steps = None
        elif len(self._first_steps) >= ENOUGH_STEPS and sum(self._first_steps) >= FIRST_SECONDS:
            left = total_steps - step
            estimated = left * statistics.median(self._first_steps)  # the first steps take longer
            text = f"about {format_seconds(estimated)} for {count(left, 'step')} more, not counting validation"
            (self.say if self.live is None else self.note)(text)
            self._first_steps = None

    def report(self, entry: dict[str, Any], total_steps: int, seconds_left: float | None) -> None:
        """Show one report of training or validation."""
        self.panel.remember(entry)
        self.panel.total, self.panel.seconds_left = total_steps, seconds_left
        if entry["kind"] == "valid":
            self.sign(entry["bleu_signature"], entry["chrf_signature"])
        if entry["kind"] == "note":
            self.say(entry["text"])
            return
        is_train = entry["kind"] == "train"
        for line in [train_line(entry, total_steps, seconds_left)] if is_train else valid_lines(entry):
            (self.say if self.live is None else self.note)(line)
        if self.live is not None:
            self.live.refresh()

    def stop(self) -> None:
        """End the live panel; what it shows stays on the screen."""
        if self.live is not None:
            self.live.stop()
            self.live = None
        sys.stderr.flush()

    @contextlib.contextmanager
    def noting_errors(self) -> Iterator[None]:
        """Write the error that ends a run into the log file too."""
        try:
            yield
        except SeqtoolError as error:
            self.note(f"error: {error}")
            raise

    def close(self) -> None:
        """Stop, and close the log file."""
        self.stop()
        if self._log is not None:
            self._log.close()
            self._log = None


def open_log(path: Path) -> Any:
    """Open a log file to add lines to, each written at once."""
    try:
        return open(path, "a", encoding="utf-8", buffering=1)
    except OSError as error:
        raise SeqtoolError(f"{path}: cannot be written ({error.strerror}); give `log_file` another path") from None


def train_line(entry: dict[str, Any], total_steps: int, seconds_left: float | None) -> str:
    """Return a training report as a line; its loss is comparable with that of validation, so without smoothing."""
    left = f"  {format_seconds(seconds_left)} left" if seconds_left is not None else ""
    skipped = f"  {entry['skipped']} steps skipped" if entry.get("skipped") else ""
    total = f"/{total_steps:,}" if total_steps else ""
    return (
        f"step {entry['step']:,}{total}  epoch {entry['epoch']}  loss {entry['nll']:.4f}  "
        f"lr {entry['lr']:.2e}  {entry['tokens_per_s']:,.0f} tokens/s{skipped}{left}"
    )


def valid_lines(entry: dict[str, Any]) -> list[str]:
    """Return a validation report as a line for each set."""
    best = "  (best so far)" if entry["best"] else ""
    first = (
        f"step {entry['step']:,}  valid loss {entry['loss']:.4f}  perplexity {entry['perplexity']:.2f}  "
        f"BLEU {entry['bleu']:.2f}  chrF {entry['chrf']:.2f}{best}"
    )
    return [first] + [
        f"  {name}: valid loss {other['loss']:.4f}  BLEU {other['bleu']:.2f}  chrF {other['chrf']:.2f}"
        for name, other in entry.get("others", {}).items()
    ]
