"""Decides which pairs form which batch: a pure function of (seed, epoch, lengths, batch_tokens)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqtool.errors import SeqtoolError

Ints = NDArray[Any]

_KEY_BITS = 64
_MIN_SHIFTED = 8  # batches in an epoch from which on their cuts are shifted
_MAX_SKEW = 2047  # differences of source and target length beyond this are not told apart in sorting


@dataclass(frozen=True)
class PairRange:
    """The pairs first .. last - 1, all of one corpus; each is expected `weight` times an epoch."""

    first: int
    last: int
    weight: float = 1.0


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
    ) -> None:
        if not len(src_lengths):
            raise SeqtoolError("the corpus has no pairs left to train on; run 'seqtool check' to see what was dropped")
        assert len(src_lengths) == len(tgt_lengths)
        self.src_lengths, self.tgt_lengths = src_lengths, tgt_lengths
        self.batch_tokens, self.seed = batch_tokens, seed
        self.ranges = tuple(ranges) if ranges is not None else (PairRange(0, len(src_lengths)),)
        self.epoch = lru_cache(maxsize=2)(self._plan_epoch)

    def _plan_epoch(self, epoch: int) -> EpochPlan:
        """Return the batches of an epoch; the last two that were asked for are kept."""
        pairs = self._pairs_of(epoch)
        bits = random_bits(len(pairs), self.seed, epoch, 0)
        order, longest = sort_by_length(pairs, self.src_lengths, self.tgt_lengths, bits)
        phase = int(random_bits(1, self.seed, epoch, 1)[0])
        starts = cut_batches(longest, self.batch_tokens, phase)
        shuffled = np.argsort(random_bits(len(starts) - 1, self.seed, epoch, 2), kind="stable")
        return EpochPlan(order, starts, shuffled)

    def _pairs_of(self, epoch: int) -> Ints:
        """Return the pairs of an epoch, each as often as its weight says, sorted by number.

        A pair of weight w occurs floor((e + 1) w + u) - floor(e w + u) times in epoch e, where u in [0, 1) is its own
        random number: exactly w times where w is whole, and never more than one off from e w after e epochs.
        """
        found = []
        for number, span in enumerate(self.ranges):
            pairs = np.arange(span.first, span.last, dtype=np.uint32 if span.last <= 1 << 32 else np.int64)
            if span.weight == int(span.weight):
                times: Any = int(span.weight)
            else:
                own = (random_bits(len(pairs), self.seed, number, 3) >> np.uint64(11)) * 2.0**-53
                times = (np.floor((epoch + 1) * span.weight + own) - np.floor(epoch * span.weight + own)).astype(int)
            found.append(pairs if span.weight == 1 else np.repeat(pairs, times))
        return np.concatenate(found) if len(found) > 1 else found[0]


def random_bits(count: int, *seed: int) -> Ints:
    """Return random uint64 numbers that follow from the seed alone, whatever the version of numpy."""
    bits = np.random.PCG64(np.random.SeedSequence(seed)).random_raw(count)
    return np.asarray(bits, np.uint64)


def sort_by_length(pairs: Ints, src_lengths: Ints, tgt_lengths: Ints, bits: Ints) -> tuple[Ints, Ints]:
    """Sort pairs by their longer side, then by how much longer it is; return them and their longer sides with its end.

    The second order runs up and down in turn, so that neighbours are alike everywhere; equals are in random order.
    Everything is packed into one integer per pair, which numpy sorts an order of magnitude faster than several keys.
    The random `bits` become those integers in place, and no array lives longer than it must: there may be many pairs.
    """
    if not len(pairs):
        return pairs, np.zeros(0, np.int32)
    src, tgt = src_lengths[pairs].astype(np.int32), tgt_lengths[pairs].astype(np.int32)
    longest = np.maximum(src, tgt)
    skew = np.clip(src - tgt, -_MAX_SKEW, _MAX_SKEW).astype(np.int16)
    del src, tgt
    low, high = int(skew.min()), int(skew.max())
    is_even = (np.cumsum(np.bincount(longest) > 0) % 2 == 0)[longest]
    skew = np.where(is_even, skew - np.int16(low), np.int16(high) - skew).astype(np.uint16)
    widths = [int(longest.max()).bit_length(), (high - low).bit_length(), 0, int(pairs[-1]).bit_length()]
    widths[2] = _KEY_BITS - sum(widths)
    assert widths[2] > 0
    keys = bits
    keys >>= np.uint64(_KEY_BITS - widths[2])
    keys <<= np.uint64(widths[3])
    keys |= pairs.astype(np.uint64)
    keys |= skew.astype(np.uint64) << np.uint64(widths[2] + widths[3])
    if widths[0]:
        keys |= longest.astype(np.uint64) << np.uint64(_KEY_BITS - widths[0])
    keys.sort()
    longest.sort()
    keys &= np.uint64((1 << widths[3]) - 1)
    return keys.astype(pairs.dtype), longest + np.int32(1)


def cut_batches(longest: Ints, batch_tokens: int, phase: int) -> Ints:
    """Cut sorted lengths into batches as large as rows * longest <= batch_tokens allows; return where each begins.

    The phase makes the first batch smaller, so that the cuts fall elsewhere in each epoch, except where there are few
    batches. A pair that is longer than the budget is a batch by itself. The loop is over the different lengths only.
    """
    if not len(longest):
        return np.zeros(1, np.int64)
    run_starts = np.concatenate([[0], np.flatnonzero(np.diff(longest)) + 1])
    run_ends = np.append(run_starts[1:], len(longest))
    if longest.sum() < _MIN_SHIFTED * batch_tokens:
        phase = 0
    start = -(phase % max(1, batch_tokens // int(longest[0])))  # of the batch that is still open
    cuts: list[Ints] = []
    for first, last in zip(run_starts.tolist(), run_ends.tolist(), strict=True):
        rows = max(1, batch_tokens // int(longest[first]))
        next_cut = max(first, start + rows)
        found = np.arange(next_cut, last, rows)
        if len(found):
            cuts.append(found)
            start = int(found[-1])
    return np.concatenate([[0], *cuts, [len(longest)]]).astype(np.int64)
