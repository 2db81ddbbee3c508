"""The live panel of a training in a terminal: what it shows, and how it is drawn again when the terminal is resized."""

import math
from collections import deque
from typing import Any

from rich.console import Console, ConsoleRenderable, Group
from rich.control import Control
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.segment import ControlType
from rich.table import Table
from rich.text import Text

from seqtool.durations import format_seconds

SPARKS = "▁▂▃▄▅▆▇█"
MARGIN = 3  # columns on the right: a ^C that the terminal echoes behind the panel must not break the line


class TrainingPanel:
    """The figures of a run, as the panel shows them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.total = 0  # steps of the run; 0 before they are planned
        self.step = 0
        self.seconds_left: float | None = None
        self.losses: deque[float] = deque(maxlen=400)
        self.train: dict[str, Any] = {}
        self.valid: dict[str, Any] = {}

    def remember(self, entry: dict[str, Any]) -> None:
        """Take up one report."""
        if entry["kind"] == "train":
            self.train = entry
            self.step = max(self.step, entry["step"])
            self.losses.append(entry["nll"])
        elif entry["kind"] == "valid":
            self.valid = entry

    def render(self) -> Panel:
        """Return the panel as it is now, for the present width of the terminal."""
        grid = Table.grid(padding=(0, 2))
        for _ in range(4):
            grid.add_column(no_wrap=True)
        for left, right in zip(self._train_cells(), self._valid_cells(), strict=True):
            grid.add_row(*left, *right)
        for name, other in self.valid.get("others", {}).items():
            grid.add_row("", "", f"BLEU {name}", f"{other['bleu']:.2f}")
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(ratio=1)
        bar.add_column(no_wrap=True, justify="right")
        share = f"{100 * self.step / self.total:.0f} %" if self.total else ""
        left_over = f"  {format_seconds(self.seconds_left)} left" if self.seconds_left is not None else ""
        bar.add_row(ProgressBar(total=self.total or None, completed=self.step), share + left_over)
        curve = Text("loss ", style="dim") + Text(sparkline(list(self.losses), 60), style="cyan")
        curve.no_wrap = True
        content = Group(bar, grid, curve)
        width = max(1, self.console.width - MARGIN)
        return Panel(content, title="seqtool train", title_align="left", border_style="dim", width=width)

    def _train_cells(self) -> list[tuple[str, str]]:
        t = self.train
        return [
            ("step", f"{self.step:,}" + (f" / {self.total:,}" if self.total else "")),
            ("epoch", f"{t.get('epoch', 0):,}"),
            ("loss", f"{t['nll']:.4f}" if t else "–"),
            ("tokens/s", f"{t['tokens_per_s']:,.0f}" if t else "–"),
            ("lr", f"{t['lr']:.2e}" + (f"  {t['skipped']} steps skipped" if t.get("skipped") else "") if t else "–"),
        ]

    def _valid_cells(self) -> list[tuple[str, str]]:
        v = self.valid
        return [
            ("validated at", f"step {v['step']:,}" if v else "–"),
            ("valid loss", f"{v['loss']:.4f}" if v else "–"),
            ("perplexity", f"{v['perplexity']:.2f}" if v else "–"),
            ("BLEU", f"{v['bleu']:.2f}" + (" (best)" if v.get("best") else "") if v else "–"),
            ("chrF", f"{v['chrf']:.2f}" if v else "–"),
        ]


class LivePanel(Live):
    """The panel at the bottom of a terminal.

    A terminal that becomes narrower breaks each line of the old drawing into several, so that the cursor has to go
    up by more lines than were drawn.
    """

    def __init__(self, panel: TrainingPanel) -> None:
        super().__init__(get_renderable=panel.render, console=panel.console, refresh_per_second=4)
        self._drawn_width = 0  # of the terminal, at the last drawing

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Put before the new drawing what removes the old one."""
        found = super().process_renderables(renderables)
        width, before = self.console.width, self._drawn_width - MARGIN
        n_lines = self._live_render.last_render_height
        if self.console.is_interactive and n_lines and 0 < width < before:
            found[0] = erase_lines(n_lines * math.ceil(before / width))
        self._drawn_width = width
        return found


def erase_lines(n_lines: int) -> Control:
    """Return what erases the line of the cursor and those above it, n_lines in all."""
    up = [(ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)] * (n_lines - 1)
    return Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2), *up)


def sparkline(values: list[float], width: int) -> str:
    """Draw values as small blocks, averaged so that they fit the width."""
    values = [value for value in values if math.isfinite(value)]
    if not values:
        return ""
    size = max(1, math.ceil(len(values) / width))
    means = [sum(values[i : i + size]) / len(values[i : i + size]) for i in range(0, len(values), size)]
    low, high = min(means), max(means)
    return "".join(SPARKS[int((value - low) / ((high - low) or 1.0) * (len(SPARKS) - 1))] for value in means)
