"""Which pairs, or which documents, become the validation and test sets: a choice that follows from the seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqtool.config import CleanConfig
from seqtool.corpus.cleaning.hashing import Hashes, hash_pairs
from seqtool.corpus.cleaning.measuring import measure_pairs
from seqtool.corpus.cleaning.rules import CleaningRules
from seqtool.corpus.preparing.survey import Candidates
from seqtool.corpus.reading.blocks import read_blocks
from seqtool.corpus.reading.corpus import Corpus
from seqtool.corpus.reading.lines import Mask, PairBlock
from seqtool.errors import SeqtoolError

Sizes = tuple[int, int]  # of the validation set and of the test set
Numbers = NDArray[np.int64]

SPARE = 8  # candidates for each pair wanted, since some are not clean or share a side with others


@dataclass(frozen=True)
class LineHashes:
    """Hashes of one set's sources and targets, without blank ones, and of its pairs if these were chosen one by one."""

    src: Hashes
    tgt: Hashes
    pairs: Hashes

    def contain(self, block: "HashedBlock") -> Mask:
        """Return True for the pairs whose source or target is in the set."""
        return (np.isin(block.src, self.src) & ~block.src_blank) | (np.isin(block.tgt, self.tgt) & ~block.tgt_blank)


@dataclass(frozen=True)
class HashedBlock:
    """A block of pairs with what a split depends on: the hashes of its lines and the document of each pair."""

    pairs: PairBlock
    src: Hashes
    tgt: Hashes
    src_blank: Mask
    tgt_blank: Mask
    document: Numbers  # a blank pair, which ends a document, belongs to it


def read_hashed(corpus: Corpus) -> Iterator[HashedBlock]:
    """Read a corpus with the hashes of its lines and the number of the document of each pair."""
    document = 0
    for block in read_blocks(corpus):
        src, tgt = measure_pairs(block)
        ends = src.blank & tgt.blank
        numbers = document + np.cumsum(ends) - ends
        document += int(ends.sum())
        yield HashedBlock(block, src.hashes, tgt.hashes, src.blank, tgt.blank, numbers)


# Pairs


def choose_pairs(corpus: Corpus, clean: CleanConfig, sizes: Sizes, seed: int) -> list[LineHashes]:
    """Choose pairs for the validation and the test set: clean ones, no two with the same source or target, and rather
    those that the corpus has once than those that it repeats."""
    candidates = Candidates(SPARE * sum(sizes), seed)
    for block in read_blocks(corpus):
        candidates.add(block)
    found = PairBlock.from_pairs(candidates.in_order())
    src, tgt = measure_pairs(found)
    rules = CleaningRules.learn(clean, None, [corpus])
    kept = np.flatnonzero(rules.judge_measured(found, src, tgt).kept)
    sides = src.hashes[kept], tgt.hashes[kept]
    is_repeated = np.maximum(*(_count(corpus, hashes, side) for side, hashes in enumerate(sides))) > 1
    chosen = _different([sides[0].tolist(), sides[1].tolist()], np.argsort(is_repeated, kind="stable"))
    if len(chosen) < sum(sizes):
        raise SeqtoolError(
            f"{corpus}: only {len(chosen):,} clean pairs with a source and a target of their own were found to choose"
            f" from, fewer than the {sum(sizes):,} wanted; lower `valid` or `test`"
        )
    parts = np.split(np.array(chosen[: sum(sizes)], np.int64), [sizes[0]])
    pairs = hash_pairs(*sides)
    return [LineHashes(sides[0][part], sides[1][part], pairs[part]) for part in parts]


def _count(corpus: Corpus, hashes: Hashes, side: int) -> Numbers:
    """Return how often lines with these hashes are on one side of the corpus."""
    ordered, places = np.unique(hashes, return_inverse=True)
    counts = np.zeros(len(ordered), np.int64)
    if len(ordered):
        for block in read_hashed(corpus):
            present = (block.src, block.tgt)[side]
            at = np.minimum(np.searchsorted(ordered, present), len(ordered) - 1)
            counts += np.bincount(at[ordered[at] == present], minlength=len(ordered))
    return counts[places]


def _different(sides: Sequence[list[int]], order: Numbers) -> list[int]:
    """Return the pairs in this order, without those that share a source or target with one before."""
    seen: tuple[set[int], set[int]] = (set(), set())
    chosen = []
    for i in order.tolist():
        if sides[0][i] not in seen[0] and sides[1][i] not in seen[1]:
            chosen.append(i)
            seen[0].add(sides[0][i])
            seen[1].add(sides[1][i])
    return chosen


# Documents


def choose_documents(corpus: Corpus, sizes: Sizes, seed: int) -> list[Numbers]:
    """Choose whole documents for the validation and the test set, up to the size of each; none larger than a set."""
    lengths = _document_lengths(corpus)
    numbers = np.arange(len(lengths), dtype=np.uint64)
    order = np.argsort(hash_pairs(numbers, np.full(len(lengths), seed, np.uint64)), kind="stable")
    chosen: list[Numbers] = []
    for name, size in zip(("`valid`", "`test`"), sizes, strict=True):
        fitting = order[lengths[order] <= max(1, size)]
        totals = np.cumsum(lengths[fitting])
        part = fitting[: int(np.searchsorted(totals, size)) + 1] if size else fitting[:0]
        if size and (not len(totals) or totals[-1] < size or len(part) >= len(order)):
            raise SeqtoolError(f"{corpus}: too few documents for {name} {size}; lower it, or give `documents='never'`")
        chosen.append(np.sort(part))
        order = order[~np.isin(order, part)]
    return chosen


def _document_lengths(corpus: Corpus) -> Numbers:
    """Return the number of pairs of each document, without the blank one at its end."""
    lengths: list[Numbers] = []
    last = -1  # document that the block before ended in
    for block in read_hashed(corpus):
        first = int(block.document[0])
        counted = ~(block.src_blank & block.tgt_blank)
        counts = np.bincount(block.document - first, weights=counted).astype(np.int64)
        if first == last:
            lengths[-1][-1] += counts[0]
            counts = counts[1:]
        if len(counts):
            lengths.append(counts)
        last = int(block.document[-1])
    return np.concatenate([*lengths, np.zeros(0, np.int64)])
