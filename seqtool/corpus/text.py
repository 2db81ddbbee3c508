"""How a line of text is read, in training and in translation alike."""

import re

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_LINE_BYTES = 64 << 20
# What some program takes for the end of a line or a column, and NUL; each becomes a space.
_BREAKS = re.compile("[\0\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029]")
# A line without any such character shows nothing: it has only spaces, control characters and zero-width marks.
_VISIBLE = re.compile("[^\\s\0-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def clean_text(text: str) -> str:
    """Return a text as one line without white space around it; empty if nothing of it can be seen."""
    if text.isprintable():  # nearly always, and quick to find out: there is nothing but spaces to take away
        return text.strip()
    return _BREAKS.sub(" ", text).strip() if _VISIBLE.search(text) else ""


def decode_strictly(line: bytes) -> str | None:
    """Return the text of a line, None if it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None
