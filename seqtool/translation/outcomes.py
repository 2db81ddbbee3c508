"""What came of a search: the translations of a segment, as the hypothesis guard chose; and a memory of the latest."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.results import Hypothesis

ENTRY_BYTES, HYPOTHESIS_BYTES, TOKEN_BYTES = 500, 400, 60  # about, as CPython stores them; an aligned token takes most
LARGEST_SHARE = 0.01  # of the memory for one outcome: longer lines hardly ever come again


class Segment(NamedTuple):
    """What an engine translates at once: a whole line, a sentence of it, or one part of an over-long one."""

    ids: tuple[int, ...]
    prefix: tuple[int, ...]


class PlannedLine(NamedTuple):
    """A line as it will be translated."""

    text: str
    segments: list[Segment]  # none if the line is blank
    breaks: list[str]  # for each segment the line breaks before it in the text
    n_sentences: int = 1  # that are translated by themselves


class Outcome(NamedTuple):
    """The translations of a segment, best first."""

    hypotheses: list[Hypothesis]
    replaced: bool  # the search's best was empty or looping, and gave way to the next best
    doubtful: bool  # all of them are empty or looping


class OutcomeCache:
    """Keeps the outcomes that were used last, in about max_bytes (0: none); several threads may use it."""

    def __init__(self, max_bytes: int = 0) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._entries: OrderedDict[tuple[SearchOptions, Segment], Outcome] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, search: SearchOptions, segments: Iterable[Segment]) -> dict[Segment, Outcome]:
        """Return the outcomes that are known."""
        found = {}
        with self._lock:
            for segment in segments if self._entries else ():
                if (outcome := self._entries.get((search, segment))) is not None:
                    self._entries.move_to_end((search, segment))
                    found[segment] = outcome
        return found

    def keep(self, search: SearchOptions, outcomes: Mapping[Segment, Outcome]) -> None:
        """Add outcomes, and drop those that were not used for longest."""
        if not self.max_bytes:
            return
        with self._lock:
            for segment, outcome in outcomes.items():
                size = count_bytes(segment, outcome)
                if size <= LARGEST_SHARE * self.max_bytes and (search, segment) not in self._entries:
                    self._entries[search, segment] = outcome
                    self.n_bytes += size
            while self.n_bytes > self.max_bytes:
                (_, segment), outcome = self._entries.popitem(last=False)
                self.n_bytes -= count_bytes(segment, outcome)


def count_bytes(segment: Segment, outcome: Outcome) -> int:
    """Return about how many bytes an outcome takes with its segment."""
    n_tokens = len(segment.ids) + sum(len(one.tokens) for one in outcome.hypotheses)
    n_chars = sum(len(one.text) for one in outcome.hypotheses)
    return ENTRY_BYTES + HYPOTHESIS_BYTES * len(outcome.hypotheses) + TOKEN_BYTES * n_tokens + 4 * n_chars
