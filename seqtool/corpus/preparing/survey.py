"""A first, quick look at a corpus before it is prepared: a sample of its pairs, and which to hold out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from seqtool.corpus.cleaning.hashing import Hashes, hash_lines, hash_pairs
from seqtool.corpus.cleaning.rules import CleaningRules, require_usable
from seqtool.corpus.reading.blocks import read_blocks
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.reading.lines import PairBlock
from seqtool.corpus.reading.parting import ShiftWatch
from seqtool.corpus.text import clean_text
from seqtool.errors import SeqtoolError
from seqtool.progress import Progress, ShowProgress, ignore

_SPARE = 4  # candidates for each pair to hold out, since some of them are not clean
_HIGHEST = 0xFFFFFFFFFFFFFFFF

RawTexts = tuple[bytes, bytes]


@dataclass
class Sample:
    """About `size` clean pairs, chosen by their numbers; kept as a few large buffers, since there may be many."""

    rules: CleaningRules
    size: int
    pairs: int  # in the corpora
    seed: int
    _seen: int = 0
    _chosen: int = 0
    _dropped: Counter[str] = field(default_factory=Counter)
    _lines: list[RawTexts] = field(default_factory=list)  # many lines each, as in a file

    def add(self, block: PairBlock) -> None:
        """Take the chosen ones among the next pairs."""
        if not self.size:
            return
        numbers = np.arange(self._seen, self._seen + len(block), dtype=np.uint64)
        self._seen += len(block)
        limit = np.uint64(min(_HIGHEST, (_HIGHEST + 1) * self.size // max(1, self.pairs)))
        chosen = np.flatnonzero(hash_pairs(numbers, np.full(len(block), self.seed, np.uint64)) <= limit).tolist()
        if not chosen:
            return
        found = PairBlock.from_pairs(
            [(block.src.line(i), None if block.missing[i] else block.tgt.line(i)) for i in chosen]
        )
        verdicts = self.rules.judge(found)
        self._chosen += len(found)
        self._dropped.update(verdicts.counts())
        kept = np.flatnonzero(verdicts.kept).tolist()
        if kept:
            src, tgt = (b"\n".join([side.line(i) for i in kept]) for side in (found.src, found.tgt))
            self._lines.append((src, tgt))

    def require_usable(self, name: str) -> None:
        """Raise if the sample shows already that the corpus cannot be trained on."""
        if self._chosen == self.pairs or (self._chosen and not self._lines):
            require_usable(self.rules.config, name, self._chosen, dict(self._dropped))

    def texts(self, sides: tuple[int, ...], without: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
        """Yield the lines of the given sides (0: source, 1: target), except of some pairs."""
        excluded = set(without)
        for buffers in self._lines:
            for pair in zip(*(buffer.decode("utf-8").split("\n") for buffer in buffers), strict=True):
                if pair not in excluded:
                    yield from (clean_text(pair[side]) for side in sides)


@dataclass(frozen=True)
class Survey:
    """What a first look found."""

    pairs: int
    sample: Sample  # for the tokenizer
    held_out: list[tuple[str, str]]

    def sample_texts(self, sides: tuple[int, ...]) -> Iterator[str]:
        """Yield text of the given sides to train a tokenizer on, without what is held out."""
        return self.sample.texts(sides, self.held_out)


class Candidates:
    """Keeps the pairs with the lowest hashes: a choice that depends on the seed and the pairs, not on their order."""

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._seed = size, seed
        self._limit = np.uint64(_HIGHEST)
        self._found: dict[int, RawTexts] = {}

    def add(self, block: PairBlock) -> None:
        """Look at a block of pairs; equal ones count once."""
        if not self._size:
            return
        hashes = self._hash(block)
        for i in np.flatnonzero(hashes < self._limit).tolist():
            self._found.setdefault(int(hashes[i]), (block.src.line(i), block.tgt.line(i)))
        if len(self._found) > 2 * self._size:
            self._shrink()

    def in_order(self) -> list[RawTexts]:
        """Return the candidates by rising hash."""
        self._shrink()
        return list(self._found.values())

    def _hash(self, block: PairBlock) -> Hashes:
        src, tgt = (hash_lines(side.data, side.starts, side.ends) for side in (block.src, block.tgt))
        return hash_pairs(hash_pairs(src, tgt), np.full(len(block), self._seed, np.uint64))

    def _shrink(self) -> None:
        kept = sorted(self._found)[: self._size]
        self._found = {number: self._found[number] for number in kept}
        if kept and len(kept) == self._size:
            self._limit = np.uint64(kept[-1])


def survey_corpora(
    corpora: Sequence[Corpus],
    rules: CleaningRules,
    *,
    pairs: int,
    sample_pairs: int,
    held_out: int,
    seed: int,
    show: ShowProgress = ignore,
) -> Survey:
    """Read all corpora once, keeping little of them; `pairs` is their number of pairs. Raise if one is shifted."""
    sample = Sample(rules, sample_pairs, pairs, seed)
    candidates = Candidates(_SPARE * held_out, seed)
    done = 0
    for corpus in corpora:
        watch = ShiftWatch()
        for block in read_blocks(corpus):
            sample.add(block)
            candidates.add(block)
            watch.add(block)
            done += len(block)
            show(Progress("reading", done, pairs))
        watch.finish()
        if not rules.config.shifted and (problem := watch.problem(corpus)):
            raise SeqtoolError(problem)
    if corpora and not done:
        raise SeqtoolError(f"{', '.join(map(str, corpora))}: there is not a single pair in it")
    sample.require_usable(", ".join(map(str, corpora)))
    wanted = min(held_out, max(1, done // 10)) if done > 1 else 0
    return Survey(done, sample, choose_held_out(candidates.in_order(), rules, wanted))


def choose_held_out(candidates: Sequence[RawTexts], rules: CleaningRules, wanted: int) -> list[tuple[str, str]]:
    """Return the first of the candidates that cleaning would keep, as text."""
    kept = rules.judge(PairBlock.from_pairs(candidates)).kept
    chosen = np.flatnonzero(kept)[:wanted].tolist()
    return [(candidates[i][0].decode("utf-8"), candidates[i][1].decode("utf-8")) for i in chosen]
