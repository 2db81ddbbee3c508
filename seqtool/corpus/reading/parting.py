"""Two files that do not belong together line by line: of different length, or shifted; and where they seem to part."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.reading.lines import LineBlock, PairBlock
from seqtool.corpus.reading.shifts import PartingFinder, likely_shifts
from seqtool.errors import SeqtoolError

OpenSides = Callable[[], tuple[Iterator[LineBlock], Iterator[LineBlock]]]


SHIFTS = (-3, -2, -1, 1, 2, 3)


class ShiftWatch:
    """Finds out, while the pairs of a corpus stream by, whether its sides seem shifted against each other."""

    def __init__(self) -> None:
        self._finder = PartingFinder(SHIFTS)

    def add(self, block: PairBlock) -> None:
        """Go on over the next pairs."""
        self._finder.add(block.src.ends - block.src.starts, block.tgt.ends - block.tgt.starts)

    def finish(self) -> None:
        """Look at the pairs that were kept back."""
        self._finder.finish()

    @property
    def near(self) -> int | None:
        """The line from which a stretch of the corpus seems shifted."""
        return self._finder.near

    def problem(self, corpus: Corpus) -> str | None:
        """Return why training on the corpus would be wrong, None if nothing speaks against it."""
        if not self._finder.is_serious:
            return None
        n, near = abs(self._finder.shift), self._finder.near
        src, tgt = (corpus.source, corpus.target) if corpus.target else ("the source column", "the target column")
        side = tgt if self._finder.shift > 0 else src
        missing = f"{n} {'line is' if n == 1 else 'lines are'} missing there in {side}"
        return (
            f"{corpus}: source and target seem shifted against each other from about line {near:,} on, as if {missing}."
            " Look at the lines around it and mend the file; if it is right as it is, set"
            " clean.shifted = true."
        )


class LineCountError(SeqtoolError):
    """Two aligned files have different numbers of lines; near is the line where they seem to part."""

    def __init__(self, corpus: Corpus, names: tuple[str, str], lines: tuple[int, int], near: int | None) -> None:
        self.src_lines, self.tgt_lines = lines
        self.near = near
        place = f"; first difference in shape near line {near:,}" if near else ""
        self.summary = f"{names[0]} has {lines[0]:,} lines but {names[1]} has {lines[1]:,}{place}."
        super().__init__(f"{self.summary} Run 'seqtool check {corpus}'.")


def line_count_error(
    corpus: Corpus, names: tuple[str, str], lines: tuple[int, int], sides: OpenSides
) -> LineCountError:
    """Make the error for two files of different length, with the place where they seem to part."""
    near = None
    if all(Path(path).is_file() for path in corpus.paths):  # a pipe cannot be read again
        near = find_parting(sides, *lines)
    return LineCountError(corpus, names, lines, near)


def find_parting(sides: OpenSides, src_lines: int, tgt_lines: int) -> int | None:
    """Return the line from which two files of different length seem shifted, None if their lengths do not show it."""
    finder = PartingFinder(likely_shifts(src_lines, tgt_lines))
    src, tgt = sides()
    none = np.zeros(0, np.int64)
    while finder.near is None and finder.tests:
        src_is_behind = len(finder.src) <= len(finder.tgt)
        block = next(src if src_is_behind else tgt, None)
        if block is None:  # what is left has no counterpart
            break
        lengths = block.ends - block.starts
        finder.add(*((lengths, none) if src_is_behind else (none, lengths)))
    finder.finish()
    return finder.near or finder.best_guess(min(src_lines, tgt_lines) + 1)
