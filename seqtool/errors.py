"""The exceptions for what a user can fix, and the spelling help that their messages give."""

import re
from collections.abc import Iterable

# A message marks the parameters that it names: `beam` or `engine='torch'`.
PARAMETER = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")


class SeqtoolError(Exception):
    """A problem that the user can fix; the message says what is wrong, where, and what to do next.

    Parameters are named as in Python; the command line puts its options in their place.
    """

    def __str__(self) -> str:
        return PARAMETER.sub(lambda match: match[0].strip("`"), super().__str__())

    @property
    def marked(self) -> str:
        """The message with its parameters marked."""
        return super().__str__()


class Terminated(BaseException):
    """SIGTERM asked the process to end: it tidies up as after Ctrl-C."""


class OptionError(SeqtoolError):
    """A parameter that cannot be, or not beside the others: on the command line this is wrong usage."""


def suggest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known word, or the list of known words when none is near."""
    import difflib  # a hundredth of a second that only mistakes should cost

    known = list(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else f"; known are: {', '.join(known)}"
