"""How far a job is, in one line: shares, speed and time left, in place on a terminal and as lines elsewhere."""

import os
import re

import pytest

from seqtool import progress as module
from seqtool.durations import estimate_seconds, format_seconds
from seqtool.progress import Progress, ProgressLine, Stopwatch
from seqtool.translation.lines.stream import InputProgress

BLOCK = [b"x" * 9] * 5  # 50 bytes with the line breaks


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set by the test."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> ProgressLine:
    """A line on a wide terminal."""
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(module.os, "get_terminal_size", lambda handle: os.terminal_size((100, 24)))
    return ProgressLine()


def test_share_speed_and_time_left(
    terminal: ProgressLine, clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(Progress("preparing", 0, 20))
    assert capsys.readouterr().err == "\rpreparing  ░░░░░░░░░░░░░░░░ 0%\x1b[K"
    clock[0] += 10
    terminal(Progress("preparing", 5, 20))
    # By hand: 5 of 20 in 10 seconds, so 15 more take 30.
    assert capsys.readouterr().err == "\rpreparing  ████░░░░░░░░░░░░ 25%  5 pairs  0 pairs/s  30 s left\x1b[K"
    clock[0] += 0.05  # too soon to be shown again
    terminal(Progress("preparing", 6, 20))
    assert capsys.readouterr().err == ""


def test_a_line_is_never_longer_than_the_terminal(
    terminal: ProgressLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "terminal_width", lambda: 20)
    terminal(Progress("preparing", 12345678, 20000000))
    assert capsys.readouterr().err == "\rpreparing  ████████\x1b[K"


def test_without_a_terminal_a_line_is_printed_at_once_and_then_now_and_again(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    anywhere, silent = ProgressLine(), ProgressLine("terminal")
    for seconds in range(25):
        clock[0] = 100.0 + seconds
        for line in (anywhere, silent):
            line(Progress("reading", 1000 * seconds, 50_000))
    for line in (anywhere, silent):
        line(Progress("preparing", 0))
        line.clear()
    assert capsys.readouterr().err == (
        "seqtool: reading ...\n"
        "seqtool: reading, 20%, 10,000 pairs, 1,000 pairs/s, 40 s left\n"
        "seqtool: reading, 40%, 20,000 pairs, 1,000 pairs/s, 30 s left\n"
        "seqtool: preparing ...\n"
    )


def test_time_left_is_estimated_from_the_pace_of_the_stage(clock: list[float]) -> None:
    watch = Stopwatch()
    assert watch.read(Progress("reading", 0, 100)) == (None, None)
    clock[0] += 10
    assert watch.read(Progress("reading", 25, 100)) == (2.5, 30.0)
    assert watch.read(Progress("preparing", 50, 100)) == (None, None)  # another stage has another pace
    clock[0] += 10
    assert watch.read(Progress("preparing", 75, 100)) == (2.5, 10.0)  # half was done before it was looked at


def test_what_an_earlier_run_did_is_no_work(
    terminal: ProgressLine, clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = InputProgress(terminal, 200)
    for _ in range(2):
        clock[0] += 1
        progress.add(BLOCK)
    progress.report(BLOCK, 0.0)
    clock[0] += 4
    progress.report(BLOCK, 1.0)
    # By hand: 50 bytes in 4 seconds, 50 to go; three blocks of five lines are done, one of them in this run.
    assert "75%  15 lines  1 lines/s  4 s left" in capsys.readouterr().err.split("\r")[-1]


def test_a_block_is_counted_once(
    terminal: ProgressLine, clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = InputProgress(terminal, 200)
    progress.report(BLOCK, 1.0)
    progress.add(BLOCK)
    clock[0] += 10
    progress.report(BLOCK, 0.2)
    assert "30%  6 lines" in capsys.readouterr().err.split("\r")[-1]


def test_the_size_need_not_be_known(
    terminal: ProgressLine, clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = InputProgress(terminal, 0)
    progress.report(BLOCK, 0.0)
    clock[0] += 1
    progress.report(BLOCK, 1.0)
    assert capsys.readouterr().err.endswith("\rtranslating  5 lines  5 lines/s\x1b[K")


def test_a_note_stands_on_a_line_of_its_own(
    terminal: ProgressLine, clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.clear()
    assert capsys.readouterr().err == ""  # nothing was shown
    terminal(Progress("reading", 1, 2))
    terminal.clear()
    print("a note", file=module.sys.stderr)
    terminal(Progress("reading", 2, 2))
    lines = capsys.readouterr().err.split("\n")
    assert lines[0].endswith("\r\x1b[Ka note")
    assert re.search("100%", lines[1])  # it is back at once


def test_times_are_short() -> None:
    assert [format_seconds(value) for value in (5.4, 754, 5025)] == ["5 s", "12:34", "1:23:45"]


def test_the_time_left_follows_the_speed_of_the_present_session() -> None:
    assert estimate_seconds(100, (50, 500.0), (0, 0.0)) == 500
    assert estimate_seconds(100, (60, 510.0), (50, 500.0)) == 40  # a second a step since it went on, ten before
    assert estimate_seconds(100, (50, 500.0), (50, 500.0)) == 500
