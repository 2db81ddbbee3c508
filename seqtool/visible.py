"""Text from outside, as a terminal may show it: nothing in it moves the cursor, sets a colour or begins a line."""

JOINERS, SPACES = "\u200c\u200d", "\u00a0\u202f\u3000"  # not printable to Python, but part of ordinary text


def make_visible(text: str) -> str:
    """Write what does not print as an escape, so that a terminal shows it and obeys none of it."""
    if text.isprintable():
        return text
    harmless = JOINERS if not text.strip() else JOINERS + SPACES
    shown = (char if char.isprintable() or char in harmless else repr(char)[1:-1] for char in text)
    return "".join(shown)
