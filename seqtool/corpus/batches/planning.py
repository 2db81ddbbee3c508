"""Decides which pairs form which batch: a pure function of (seed, epoch, lengths, batch_tokens)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from seqtool.corpus.batches.ordering import (
    CHUNK,
    GROUP,
    Chunks,
    Ints,
    Lengths,
    RandomBits,
    SortedFile,
    make_keys,
    sort_in_memory,
)
from seqtool.corpus.preparing.token_array import PairRange
from seqtool.errors import SeqtoolError

_MIN_SHIFTED = 8  # batches in an epoch from which on their cuts are shifted


@dataclass(frozen=True)
class EpochPlan:
    """The batches of one epoch, shuffled; each is an array of pair numbers, sorted by length."""

    order: Ints  # all pair numbers of the epoch, sorted by length
    starts: Ints  # (batches + 1,), where each batch begins in `order`
    shuffled: Ints  # (batches,)

    def __len__(self) -> int:
        return len(self.shuffled)

    def __getitem__(self, index: int) -> Ints:
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        batch = int(self.shuffled[index])
        return self.order[int(self.starts[batch]) : int(self.starts[batch + 1])]

    def __iter__(self) -> Iterator[Ints]:
        return (self[index] for index in range(len(self)))


class BatchPlan:
    """The batches of every epoch over a corpus with these lengths (in tokens, without begin and end)."""

    def __init__(
        self,
        src_lengths: Ints,
        tgt_lengths: Ints,
        batch_tokens: int,
        seed: int,
        ranges: Sequence[PairRange] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Take lengths, and a folder of this corpus and seed for the files of epochs too large for the memory."""
        if not len(src_lengths):
            raise SeqtoolError("the corpus has no pairs left to train on; run 'seqtool check' to see what was dropped")
        assert len(src_lengths) == len(tgt_lengths)
        self.src_lengths, self.tgt_lengths = src_lengths, tgt_lengths
        self.batch_tokens, self.seed = batch_tokens, seed
        self.ranges = tuple(ranges) if ranges is not None else (PairRange(0, len(src_lengths)),)
        self.folder = folder
        self.epoch = lru_cache(maxsize=2)(self._plan_epoch)

    def _plan_epoch(self, epoch: int) -> EpochPlan:
        """Return the batches of an epoch; the last two that were asked for are kept."""
        chunks = partial(self._pairs_of, epoch)
        lengths = Lengths.survey(chunks, self.src_lengths, self.tgt_lengths)
        order = self._sort(epoch, chunks, lengths)
        phase = int(random_bits(1, self.seed, epoch, 1)[0])
        starts = cut_batches(lengths.counts, self.batch_tokens, phase)
        shuffled = np.argsort(random_bits(len(starts) - 1, self.seed, epoch, 2), kind="stable")
        return EpochPlan(order, starts, shuffled)

    def _sort(self, epoch: int, chunks: Chunks, lengths: Lengths) -> Ints:
        """Return the pairs by length, in random order among equals."""
        is_small = all(span.last <= 1 << 32 for span in self.ranges)
        dtype = np.dtype(np.uint32 if is_small else np.int64)

        def keys() -> Iterator[tuple[Ints, Ints]]:
            bits = RandomBits(self.seed, epoch, 0)
            return make_keys(chunks, self.src_lengths, self.tgt_lengths, lengths, bits)

        if self.folder is None or len(lengths) <= GROUP:
            return sort_in_memory(keys(), lengths, dtype)
        return SortedFile(self.folder, epoch, dtype).open_or_write(keys, lengths)

    def _pairs_of(self, epoch: int) -> Iterator[Ints]:
        """Yield the pairs of an epoch, each as often as its weight says, sorted by number.

        A pair of weight w occurs floor((e + 1) w + u) - floor(e w + u) times in epoch e, where u in [0, 1) is its own
        random number: exactly w times where w is whole, and never more than one off from e w after e epochs.
        """
        for number, span in enumerate(self.ranges):
            bits, size = RandomBits(self.seed, number, 3), max(1, int(CHUNK / max(1.0, span.weight)))
            for first in range(span.first, span.last, size):
                pairs = np.arange(first, min(first + size, span.last), dtype=np.uint64)
                if span.weight == int(span.weight):
                    times: Any = int(span.weight)
                else:
                    own = (bits.take(len(pairs)) >> np.uint64(11)) * 2.0**-53
                    times = np.floor((epoch + 1) * span.weight + own) - np.floor(epoch * span.weight + own)
                    times = times.astype(int)
                found = pairs if span.weight == 1 else np.repeat(pairs, times)
                if len(found):
                    yield found


def random_bits(count: int, *seed: int) -> Ints:
    """Return random uint64 numbers that follow from the seed alone."""
    return RandomBits(*seed).take(count)


def cut_batches(counts: Ints, batch_tokens: int, phase: int) -> Ints:
    """Cut sorted pairs into batches as large as rows * longest <= batch_tokens allows; return where each begins.

    `counts` are the pairs of each length; a batch also holds an end for each row. The phase makes the first batch
    smaller, so that the cuts fall elsewhere in each epoch, unless there are few batches. A pair that is longer
    than the budget is a batch by itself. The loop is over the different lengths only.
    """
    present = np.flatnonzero(counts)
    if not len(present):
        return np.zeros(1, np.int64)
    longest, run_ends = present + 1, np.cumsum(counts[present])
    run_starts = run_ends - counts[present]
    if int((longest * counts[present]).sum()) < _MIN_SHIFTED * batch_tokens:
        phase = 0
    start = -(phase % max(1, batch_tokens // int(longest[0])))  # of the batch that is still open
    cuts: list[Ints] = []
    for length, first, last in zip(longest.tolist(), run_starts.tolist(), run_ends.tolist(), strict=True):
        rows = max(1, batch_tokens // length)
        next_cut = max(first, start + rows)
        found = np.arange(next_cut, last, rows)
        if len(found):
            cuts.append(found)
            start = int(found[-1])
    return np.concatenate([[0], *cuts, [run_ends[-1]]]).astype(np.int64)
