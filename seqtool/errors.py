"""The one exception for what a user can fix, and the spelling help that its messages give."""

from collections.abc import Iterable


class SeqtoolError(Exception):
    """A problem that the user can fix; the message says what is wrong, where, and what to do next."""


def suggest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known word, or the list of known words when none is near."""
    import difflib  # a hundredth of a second that only mistakes should cost

    known = list(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else f"; known are: {', '.join(known)}"
