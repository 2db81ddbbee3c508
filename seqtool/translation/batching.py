"""Batches of sentences that change nothing in what each of them gives.

A sum of floating-point numbers depends on the order in which it is taken, and matrix libraries choose that order by
the shapes they see. What keeps it the same for a sentence in every batch, measured with MKL and oneDNN on CPUs:
- lengths are padded to a multiple of LENGTH_STEP, so that longer padding only adds whole vectors of zeros;
- no matrix has fewer than MIN_ROWS rows, so that no special routine for few rows is chosen;
- each batch is computed by one thread, so that no sum is shared out by size.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seqtool.corpus.tokenizer import PAD

LENGTH_STEP = 16
MIN_ROWS = 4


def padded_length(length: int) -> int:
    """Return the length that a row of `length` tokens is padded to, at least."""
    return -(-length // LENGTH_STEP) * LENGTH_STEP


def pad_rows(rows: Sequence[Sequence[int]], n_positions: int = 0) -> Tensor:
    """Return rows of ids as one array (B, S), filled up with PAD, but not beyond n_positions (0: no limit)."""
    longest = max(map(len, rows))
    width = max(longest, min(padded_length(longest), n_positions or padded_length(longest)))
    padded = np.full((len(rows), width), PAD, np.int64)
    for into, ids in zip(padded, rows, strict=True):
        into[: len(ids)] = ids
    return torch.from_numpy(padded)


def plan_batches(lengths: Sequence[int], batch_tokens: int, n_workers: int = 1) -> list[list[int]]:
    """Share out rows of these lengths to batches of similar length, longest first.

    A batch with its padding has at most batch_tokens tokens (or one row), and few rows are shared out to all workers.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    fair_share = -(-sum(padded_length(length) for length in lengths) // n_workers)
    batches: list[list[int]] = []
    room = 0
    for row in order:
        if room == 0:
            batches.append([])
            room = max(1, min(batch_tokens, fair_share) // padded_length(lengths[row]))
        batches[-1].append(row)
        room -= 1
    return batches
