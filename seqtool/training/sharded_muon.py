"""Muon for matrices of which each worker has some rows.

A matrix can be made orthogonal only as a whole. As many parameters as there are workers are done at once: each worker
receives all rows of one of them, and sends its move back in the same way.

Legend: W workers, P rows of a parameter per worker, C columns.
"""

from collections.abc import Iterator, Mapping

import torch
import torch.distributed as dist
from torch import Tensor

from seqtool.training.distributed import Workers
from seqtool.training.muon import ADAMW_STEP, MOMENTUM, orthogonalise
from seqtool.training.sharding import rows_per_worker

Shape = tuple[torch.Size, int]  # of the whole parameter, and how many matrices stand one below the other in it


class ShardedMuon:
    """Updates this worker's rows of some matrices; keeps one tensor of momentum for each."""

    def __init__(self, parameters: Mapping[int, Tensor], shapes: Mapping[int, Shape], workers: Workers) -> None:
        """Take this worker's rows of parameters by their numbers."""
        self.parameters = dict(parameters)
        self.shapes = shapes
        self.workers = workers
        self.momentum = {number: torch.zeros_like(rows) for number, rows in parameters.items()}

    def step(self, gradients: list[Tensor], divisor: Tensor, good: Tensor, lr: float, weight_decay: float) -> None:
        """Move the matrices by their gradients divided by `divisor`; if `good` is false, nothing changes."""
        for shape, numbers in self._rounds():
            ahead = [self._look_ahead(number, gradients[number] / divisor, good) for number in numbers]
            for number, move in zip(numbers, self._orthogonalise(ahead, shape), strict=False):
                weight = self.parameters[number]
                if weight_decay:
                    weight.mul_(1 - lr * weight_decay * good)
                weight.add_(move[: len(weight)], alpha=-lr * ADAMW_STEP)

    def _rounds(self) -> Iterator[tuple[Shape, list[int]]]:
        """Yield at most as many parameters of one shape as there are workers."""
        for shape in dict.fromkeys(self.shapes.values()):
            same = [number for number, other in self.shapes.items() if other == shape]
            for first in range(0, len(same), self.workers.size):
                yield shape, same[first : first + self.workers.size]

    def _look_ahead(self, number: int, gradient: Tensor, good: Tensor) -> Tensor:
        momentum = self.momentum[number]
        momentum.copy_(torch.where(good, momentum.lerp(gradient, 1 - MOMENTUM), momentum))
        return torch.where(good, gradient.lerp(momentum, MOMENTUM), 0.0)

    def _orthogonalise(self, rows: list[Tensor], shape: Shape) -> Tensor:
        """Return this worker's rows (W, P, C) of the orthogonal matrices nearest to those of which it has `rows`."""
        (n_rows, n_columns), n_matrices = shape
        per_worker = rows_per_worker(n_rows, self.workers.size)
        sent = rows[0].new_zeros(self.workers.size, per_worker, n_columns)
        for place, part in zip(sent, rows, strict=False):
            place[: len(part)] = part
        received = torch.empty_like(sent)  # the rows of the one parameter that is this worker's task, from all workers
        dist.all_to_all_single(received, sent)
        whole = received.flatten(0, 1)  # (W * P, C)
        if self.workers.rank < len(rows):
            matrices = whole[:n_rows].unflatten(0, (n_matrices, -1))
            scale = max(matrices.shape[1:]) ** 0.5
            whole[:n_rows] = orthogonalise(matrices).flatten(0, 1) * scale
        dist.all_to_all_single(sent, received)
        return sent
