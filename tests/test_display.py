"""What a training shows: lines where there is no terminal, a panel that survives a resized one, and a log file."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from seqtool.training.display import TrainingDisplay, train_line
from seqtool.training.panel import LivePanel, TrainingPanel

TRAIN = {"kind": "train", "step": 50, "epoch": 1, "loss": 5.1, "nll": 4.2, "lr": 1e-3, "tokens_per_s": 900.0}


class Terminal(io.StringIO):
    """A terminal that shows what is written to it, and breaks its lines anew when it becomes narrower."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, self.rows, self.row, self.column = width, [""], 0, 0

    def write(self, text: str) -> int:
        for code in re.findall(r"\x1b\[\??\d*[A-Za-z]|\r|\n|[^\x1b\r\n]+", re.sub(r"\x1b\[[\d;]*m", "", text)):
            if code == "\r":
                self.column = 0
            elif code == "\n":
                self.row, self.column = self.row + 1, 0
                self.rows += [""] * (self.row + 1 - len(self.rows))
            elif code.endswith("A"):
                self.row = max(0, self.row - int(code[2:-1]))
            elif code == "\x1b[2K":
                self.rows[self.row] = ""
            elif not code.startswith("\x1b"):
                line = self.rows[self.row].ljust(self.column)
                self.rows[self.row] = line[: self.column] + code + line[self.column + len(code) :]
                self.column += len(code)
        return len(text)

    def resize(self, width: int) -> None:
        if width < self.width:
            broken = [[row[i : i + width] for i in range(0, len(row), width)] or [""] for row in self.rows]
            self.row = sum(map(len, broken[: self.row + 1])) - 1
            self.rows = [part for parts in broken for part in parts]
        self.width = width

    @property
    def shown(self) -> list[str]:
        return [row.rstrip() for row in self.rows if row.strip()]


@pytest.mark.parametrize("widths", [(60,), (31, 200), (99, 98, 40, 30), (130,)])
def test_a_resized_terminal_shows_the_panel_once(widths: tuple[int, ...]) -> None:
    terminal = Terminal(100)
    console = Console(file=terminal, force_terminal=True, width=100, height=50, legacy_windows=False)
    panel = TrainingPanel(console)
    panel.remember(TRAIN)
    live = LivePanel(panel)
    live.auto_refresh = False
    console.print("a note before")
    live.start(refresh=True)
    for width in widths:
        terminal.resize(width)
        console.width = width
        live.refresh()
    shown = terminal.shown
    assert shown[0] == "a note before"
    assert [row[0] for row in shown[1:]] == ["╭", *"│" * 7, "╰"]
    assert {len(row) for row in shown[1:]} == {widths[-1] - 3}
    live.stop()


def test_the_first_seconds_of_steps_say_how_long_all_will_take(capsys: pytest.CaptureFixture[str]) -> None:
    display = TrainingDisplay(live=False)
    for step, seconds in enumerate([9.0, 1.0, 1.0, 1.0], 1):
        display.advance(step, 605, None, seconds)
    assert capsys.readouterr().err == ""  # too few steps to tell
    display.advance(5, 605, None, 1.0)
    display.advance(6, 605, None, 1.0)
    # By hand: 600 steps of a second each; the first, which takes longer, does not count.
    assert capsys.readouterr().err == "about 10:00 for 600 steps more, not counting validation\n"


def test_a_time_budget_needs_no_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    display = TrainingDisplay(live=False)
    for step in range(1, 20):
        display.advance(step, 0 if step < 10 else 500, None, 1.0)
    assert capsys.readouterr().err == ""


def test_the_panel_counts_the_steps_between_reports() -> None:
    display = TrainingDisplay(live=False)
    display.report(TRAIN, 200, 30.0)
    display.advance(77, 200, 2000.0, 0.1)
    console = Console(width=100)
    with console.capture() as capture:
        console.print(display.panel.render())
    assert "77 / 200" in capture.get()
    assert "33:20 left" in capture.get()
    assert "4.2000" in capture.get()


def test_the_loss_that_is_shown_is_without_smoothing_as_in_validation() -> None:
    assert "loss 4.2000" in train_line(TRAIN, 100, None)


def test_quiet_shows_warnings_alone_and_the_log_file_has_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.txt"
    log.write_text("earlier\n")
    display = TrainingDisplay(quiet=True, live=True, log_file=log)
    entry: dict[str, Any] = TRAIN
    display.start([], 100)
    display.say("10 of 12 pairs are for training")
    display.say("warning: a checkpoint is damaged")
    display.report(entry, 100, 20.0)
    display.close()
    assert capsys.readouterr().err == "warning: a checkpoint is damaged\n"
    lines = log.read_text().split("\n")
    assert lines[0] == "earlier"
    assert [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", "", line) for line in lines[1:]] == [
        "10 of 12 pairs are for training",
        "warning: a checkpoint is damaged",
        train_line(entry, 100, 20.0),
        "",
    ]
