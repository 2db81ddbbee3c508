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

LENGTH_STEP = 16
MIN_ROWS = 4
LEAST_TOKENS = 768  # a batch as small as this still computes well


def padded_length(length: int) -> int:
    """Return the length that a row of `length` tokens is padded to, at least."""
    return -(-length // LENGTH_STEP) * LENGTH_STEP


def pad_rows(rows: Sequence[Sequence[int]], pad: int, n_positions: int = 0) -> Tensor:
    """Return rows of ids as one array (B, S), filled up with padding, but not beyond n_positions (0: no limit)."""
    longest = max(map(len, rows))
    width = max(longest, min(padded_length(longest), n_positions or padded_length(longest)))
    padded = np.full((len(rows), width), pad, np.int64)
    for into, ids in zip(padded, rows, strict=True):
        into[: len(ids)] = ids
    return torch.from_numpy(padded)


def plan_batches(lengths: Sequence[int], batch_tokens: int, n_workers: int = 1) -> list[list[int]]:
    """Share out rows of these lengths to batches of similar length, longest first.

    A batch with its padding has at most batch_tokens tokens (or one row). Several workers get smaller and smaller
    batches, so that they end at about the same time, and few rows are shared out to all of them.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    left = sum(padded_length(length) for length in lengths)
    fair_share = -(-left // n_workers)
    batches: list[list[int]] = []
    room = 0
    for row in order:
        length = padded_length(lengths[row])
        if room == 0:
            batches.append([])
            size = min(batch_tokens, fair_share)
            if n_workers > 1:
                size = min(size, max(LEAST_TOKENS, left // (2 * n_workers)))
            room = max(1, size // length)
        batches[-1].append(row)
        room -= 1
        left -= length
    return batches
