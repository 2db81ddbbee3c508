"""Durations and numbers of things, as people write them."""


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
