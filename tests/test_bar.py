"""The progress bar: the time left counts work only, and notes stand on lines of their own."""

import pytest

from seqtool.cli import bar as module
from seqtool.cli.bar import ProgressBar
from seqtool.cli.translate import note_beside
from seqtool.durations import format_seconds

BLOCK = [b"x" * 9] * 5  # 50 bytes with the line breaks


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set by the test."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_share_speed_and_time_left(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(200)
    clock[0] += 10
    bar.update(BLOCK, 1.0)
    assert "25%  5 lines  0 lines/s  30 s left" in capsys.readouterr().err
    clock[0] += 0.05  # too soon to be shown again
    bar.update(BLOCK, 0.5)
    assert capsys.readouterr().err == ""


def test_a_block_is_counted_once(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(200)
    bar.update(BLOCK, 1.0)
    bar.finish(BLOCK)
    clock[0] += 10
    bar.update(BLOCK, 0.2)
    assert "30%  6 lines" in capsys.readouterr().err.split("\r")[-1]


def test_what_an_earlier_run_did_is_no_work(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(200)
    bar.skip(BLOCK)
    clock[0] += 1
    bar.skip(BLOCK)
    clock[0] += 4
    bar.update(BLOCK, 1.0)
    # By hand: 50 bytes in 4 seconds, 50 to go; three blocks of five lines are done, one of them in this run.
    assert "75%  15 lines  1 lines/s  4 s left" in capsys.readouterr().err


def test_the_size_need_not_be_known(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar()
    clock[0] += 1
    bar.update(BLOCK, 1.0)
    assert capsys.readouterr().err == "\r5 lines  5 lines/s\x1b[K"


def test_a_note_does_not_garble_the_bar(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(200)
    tell = note_beside(bar)
    tell("before")
    bar.update(BLOCK, 0.5)
    tell("line 3 is odd")
    bar.update(BLOCK, 1.0)
    lines = capsys.readouterr().err.split("\n")
    assert lines[0] == "seqtool: before"
    assert lines[1].endswith("\r\x1b[Kseqtool: line 3 is odd")
    assert "25%" in lines[2]  # the bar is back at once


def test_times_are_short() -> None:
    assert [format_seconds(value) for value in (5.4, 754, 5025)] == ["5 s", "12:34", "1:23:45"]
