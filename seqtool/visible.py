"""Text from outside, as a terminal may show it: nothing in it moves the cursor, sets a colour or begins a line."""

from typing import Any

LONGEST_SHOWN = 200  # characters of a value in a message
JOINERS, SPACES = "\u200c\u200d", "\u00a0\u202f\u3000"  # not printable to Python, but part of ordinary text


def make_visible(text: str) -> str:
    """Write what does not print as an escape, so that a terminal shows it and obeys none of it."""
    if text.isprintable():
        return text
    harmless = JOINERS if not text.strip() else JOINERS + SPACES
    shown = (char if char.isprintable() or char in harmless else repr(char)[1:-1] for char in text)
    return "".join(shown)


def show_value(value: Any) -> str:
    """Write a value that somebody gave for a message: never long, whatever it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists
        return "a value too long to show"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
