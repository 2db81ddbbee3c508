"""What a run shows while it works: a live display in a terminal, plain lines elsewhere."""

import math
import sys
from collections import deque
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from seqtool.durations import format_seconds
from seqtool.visible import make_visible

SPARKS = "▁▂▃▄▅▆▇█"


class TrainingDisplay:
    """Shows a run; in a terminal the figures stay in place, elsewhere each report is a line."""

    def __init__(self, quiet: bool = False, live: bool | None = None) -> None:
        self.quiet = quiet
        self.console = Console(stderr=True, highlight=False)
        self.live: Live | None = None
        self._wants_live = (self.console.is_terminal if live is None else live) and not quiet
        self._losses: deque[float] = deque(maxlen=400)
        self._train: dict[str, Any] = {}
        self._valid: dict[str, Any] = {}
        self._total = 0
        self._signed = False  # whether it was said how validation scores

    def say(self, text: str) -> None:
        """Show one line that stays."""
        if not self.quiet:
            self.console.print(make_visible(text), soft_wrap=True, markup=False)

    def sign(self, bleu: str, chrf: str) -> None:
        """Say by which signatures validation scores, before the first score is shown."""
        if not self._signed:
            self.say(f"BLEU is {bleu}, chrF is {chrf}")
            self._signed = True

    def start(self, history: list[dict[str, Any]], total_steps: int) -> None:
        """Begin the live display, if there is a terminal; 0 steps mean that their number is not planned yet."""
        self._total = total_steps
        for entry in history:
            self._remember(entry)
        if self._wants_live:
            self.live = Live(self._render(), console=self.console, refresh_per_second=4, transient=False)
            self.live.start()

    def report(self, entry: dict[str, Any], total_steps: int, seconds_left: float | None) -> None:
        """Show one report of training or validation."""
        self._total = total_steps
        self._remember({**entry, "seconds_left": seconds_left})
        if entry["kind"] == "valid":
            self.sign(entry["bleu_signature"], entry["chrf_signature"])
        if self.live is not None:
            self.live.update(self._render())
        elif entry["kind"] == "train":
            self.say(train_line(entry, total_steps, seconds_left))
        elif entry["kind"] == "valid":
            for line in valid_lines(entry):
                self.say(line)
        if entry["kind"] == "note":
            self.say(entry["text"])

    def stop(self) -> None:
        """End the live display; what it shows stays on the screen."""
        if self.live is not None:
            self.live.stop()
            self.live = None
        sys.stderr.flush()

    def _remember(self, entry: dict[str, Any]) -> None:
        if entry["kind"] == "train":
            self._train = entry
            self._losses.append(entry["loss"])
        elif entry["kind"] == "valid":
            self._valid = entry

    def _render(self) -> Panel:
        grid = Table.grid(padding=(0, 2))
        for _ in range(4):
            grid.add_column(no_wrap=True)
        for left, right in zip(self._train_cells(), self._valid_cells(), strict=True):
            grid.add_row(*left, *right)
        for name, other in self._valid.get("others", {}).items():
            grid.add_row("", "", f"BLEU {name}", f"{other['bleu']:.2f}")
        step = self._train.get("step", 0)
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(ratio=1)
        bar.add_column(no_wrap=True, justify="right")
        seconds = self._train.get("seconds_left")
        share = f"{100 * step / self._total:.0f} %" if self._total else ""
        bar.add_row(
            ProgressBar(total=self._total or None, completed=step),
            share + (f"  {format_seconds(seconds)} left" if seconds is not None else ""),
        )
        curve = Text("loss ", style="dim") + Text(sparkline(list(self._losses), 60), style="cyan")
        width = self.console.width - 3  # a ^C that the terminal echoes behind it must not break the line
        return Panel(
            Group(bar, grid, curve), title="seqtool train", title_align="left", border_style="dim", width=width
        )

    def _train_cells(self) -> list[tuple[str, str]]:
        t = self._train
        return [
            ("step", f"{t.get('step', 0):,}" + (f" / {self._total:,}" if self._total else "")),
            ("epoch", f"{t.get('epoch', 0):,}"),
            ("loss", f"{t['loss']:.4f}" if t else "–"),
            ("tokens/s", f"{t['tokens_per_s']:,.0f}" if t else "–"),
            ("lr", f"{t['lr']:.2e}" + (f"  {t['skipped']} steps skipped" if t.get("skipped") else "") if t else "–"),
        ]

    def _valid_cells(self) -> list[tuple[str, str]]:
        v = self._valid
        return [
            ("validated at", f"step {v['step']:,}" if v else "–"),
            ("valid loss", f"{v['loss']:.4f}" if v else "–"),
            ("perplexity", f"{v['perplexity']:.2f}" if v else "–"),
            ("BLEU", f"{v['bleu']:.2f}" + (" (best)" if v.get("best") else "") if v else "–"),
            ("chrF", f"{v['chrf']:.2f}" if v else "–"),
        ]


def sparkline(values: list[float], width: int) -> str:
    """Draw values as small blocks, averaged so that they fit the width."""
    values = [value for value in values if math.isfinite(value)]
    if not values:
        return ""
    size = max(1, math.ceil(len(values) / width))
    means = [sum(values[i : i + size]) / len(values[i : i + size]) for i in range(0, len(values), size)]
    low, high = min(means), max(means)
    return "".join(SPARKS[int((value - low) / ((high - low) or 1.0) * (len(SPARKS) - 1))] for value in means)


def train_line(entry: dict[str, Any], total_steps: int, seconds_left: float | None) -> str:
    """Return a training report as a line."""
    left = f"  {format_seconds(seconds_left)} left" if seconds_left is not None else ""
    skipped = f"  {entry['skipped']} steps skipped" if entry.get("skipped") else ""
    total = f"/{total_steps:,}" if total_steps else ""
    return (
        f"step {entry['step']:,}{total}  epoch {entry['epoch']}  loss {entry['loss']:.4f}  "
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
