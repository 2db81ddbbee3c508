"""Batches of padded token ids, at any place of any epoch, made ahead of time in the background.

B rows of the global batch that belong to this worker, S and T their longest source and target, each with its end.
Worker r of n takes rows r, r + n, r + 2n, ... of each global batch; the global batches are the same for any n.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from seqtool.corpus.batches.bpe_dropout import BpeDropout
from seqtool.corpus.batches.ordering import Ints
from seqtool.corpus.batches.planning import BatchPlan, EpochPlan
from seqtool.corpus.batches.prefetch import Prefetched
from seqtool.corpus.preparing.token_array import TokenArray
from seqtool.corpus.tokenizer.interface import SpecialIds

__all__ = ["Batch", "BatchPlan", "EpochPlan", "iterate_batches", "make_batch"]


BothSpecialIds = tuple[SpecialIds, SpecialIds]  # of source and target


class PairArrays(Protocol):
    """A corpus of token ids: a PreparedCorpus, or two arrays in memory."""

    @property
    def source(self) -> TokenArray: ...
    @property
    def target(self) -> TokenArray: ...


@dataclass(frozen=True)
class Batch:
    """One worker's rows of a global batch; there may be none if the batch has fewer rows than workers."""

    src: Ints  # (B, S) int64, each row the source ids and the end, then padding
    tgt_in: Ints  # (B, T) int64, each row the begin and the target ids, then padding
    tgt_out: Ints  # (B, T) int64, each row the target ids and the end, then padding
    pairs: Ints  # (B,) pair numbers in the corpus
    epoch: int
    index: int  # of the global batch in its epoch
    n_src_tokens: int  # of the whole global batch, ends included and padding not
    n_tgt_tokens: int
    last_in_epoch: bool
    special: SpecialIds  # of the target
    src_pad: int  # the source's padding
    shared: tuple[int, int] | None = None  # the extent if workers share a global batch

    @property
    def extent(self) -> tuple[int, int]:
        """The rows of the worker that has the most of them, and the longest side of the global batch with its end."""
        return self.shared or (len(self), max(self.src.shape[1], self.tgt_out.shape[1]))

    def __len__(self) -> int:
        return len(self.src)

    def turned(self) -> "Batch":
        """Return the batch with source and target in each other's place."""
        special = self.special
        words = np.where(self.src == special.eos, special.pad, self.src)[:, :-1]
        return replace(
            self,
            src=self.tgt_out,
            tgt_in=np.pad(words, ((0, 0), (1, 0)), constant_values=special.bos),
            tgt_out=self.src,
            n_src_tokens=self.n_tgt_tokens,
            n_tgt_tokens=self.n_src_tokens,
        )


def iterate_batches(
    corpus: PairArrays,
    plan: BatchPlan,
    special: BothSpecialIds,
    start: tuple[int, int] = (0, 0),
    rank: int = 0,
    n_workers: int = 1,
    prefetch: int = 8,
    dropout: BpeDropout | None = None,
) -> Iterator[Batch]:
    """Yield one worker's batches without end from (epoch, index) on; close() ends the thread that makes them."""

    def batches() -> Iterator[Batch]:
        first_epoch, first_index = start
        for epoch in itertools.count(first_epoch):
            epoch_plan = plan.epoch(epoch)
            for index in range(first_index, len(epoch_plan)):
                yield make_batch(corpus, epoch_plan, special, epoch, index, rank, n_workers, dropout)
            first_index = 0

    return Prefetched(batches(), prefetch) if prefetch else batches()


def make_batch(
    corpus: PairArrays,
    epoch_plan: EpochPlan,
    special: BothSpecialIds,
    epoch: int,
    index: int,
    rank: int = 0,
    n_workers: int = 1,
    dropout: BpeDropout | None = None,
) -> Batch:
    """Make one worker's rows of one global batch."""
    of_src, of_tgt = special
    pairs = epoch_plan[index].astype(np.int64)
    mine = slice(rank, None, n_workers)
    if dropout is None:
        src, src_lengths = corpus.source.gather(pairs[mine])
        tgt, tgt_lengths = corpus.target.gather(pairs[mine])
        n_src_tokens, n_tgt_tokens = corpus.source.count(pairs), corpus.target.count(pairs)
        longest = max(int(corpus.source.lengths[pairs].max()), int(corpus.target.lengths[pairs].max()))
    else:  # the whole global batch, since its number of tokens must be known
        src, src_lengths = dropout.source.apply(*corpus.source.gather(pairs), epoch, index)
        tgt, tgt_lengths = dropout.target.apply(*corpus.target.gather(pairs), epoch, index)
        n_src_tokens, n_tgt_tokens = len(src), len(tgt)
        longest = max(int(src_lengths.max()), int(tgt_lengths.max()))
        src, src_lengths = _take_rows(src, src_lengths, mine)
        tgt, tgt_lengths = _take_rows(tgt, tgt_lengths, mine)
    return Batch(
        src=_with_end(_pad(src, src_lengths, 0, of_src), src_lengths, of_src),
        tgt_in=_with_begin(_pad(tgt, tgt_lengths, 1, of_tgt), of_tgt),
        tgt_out=_with_end(_pad(tgt, tgt_lengths, 0, of_tgt), tgt_lengths, of_tgt),
        pairs=pairs[mine],
        epoch=epoch,
        index=index,
        n_src_tokens=n_src_tokens + len(pairs),
        n_tgt_tokens=n_tgt_tokens + len(pairs),
        last_in_epoch=index == len(epoch_plan) - 1,
        special=of_tgt,
        src_pad=of_src.pad,
        shared=(-(-len(pairs) // n_workers), longest + 1),
    )


def _take_rows(tokens: Ints, lengths: Ints, mine: slice) -> tuple[Ints, Ints]:
    wanted = np.zeros(len(lengths), bool)
    wanted[mine] = True
    return tokens[np.repeat(wanted, lengths)], lengths[mine]


def _pad(tokens: Ints, lengths: Ints, shift: int, special: SpecialIds) -> Ints:
    """Lay rows out with one place more than the longest needs, each `shift` places in from the left."""
    places = np.arange(int(lengths.max(initial=0)) + 1)
    padded = np.full((len(lengths), len(places)), special.pad, np.int64)  # (B, T)
    padded[(places >= shift) & (places < lengths[:, None] + shift)] = tokens
    return padded


def _with_begin(padded: Ints, special: SpecialIds) -> Ints:
    padded[:, 0] = special.bos
    return padded


def _with_end(padded: Ints, lengths: Ints, special: SpecialIds) -> Ints:
    padded[np.arange(len(lengths)), lengths] = special.eos
    return padded
