"""Durations, numbers of things and line numbers, as people write them."""

from collections.abc import Iterable


def format_seconds(seconds: float) -> str:
    """Return a duration for a person: 45 s, 12:34, 3:05:07."""
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    hours, rest = divmod(total, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def count(number: float, noun: str) -> str:
    """Return a number with its noun: 1 epoch, 2,000 epochs."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def name_lines(numbers: Iterable[int]) -> str:
    """Name lines for a message: "line 7", "lines 3, 9-12"."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    names = [f"{first:,}" if first == last else f"{first:,}-{last:,}" for first, last in ranges]
    single = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"line{'' if single else 's'} {', '.join(names)}"


def estimate_seconds(total: int, now: tuple[int, float], begun: tuple[int, float]) -> float:
    """Return how long the rest of `total` steps takes, from the step and the seconds now and when this session began.

    The session's own speed counts: an earlier one may have had another machine, or shared it.
    """
    steps, seconds = (now[0] - begun[0], now[1] - begun[1]) if now[0] > begun[0] else now
    return (total - now[0]) * seconds / max(1, steps)
