"""Muon (Jordan et al. 2024): each weight matrix moves along the orthogonal matrix nearest to its momentum.

AdamW scales every number by itself. A gradient of a matrix is usually dominated by a few directions; made orthogonal,
it moves all directions by the same amount, and a model learns as much in fewer steps. Matrices of one shape are
orthogonalised together, since each alone is too little work to keep a processor busy.

Legend: G matrices of one shape, R rows, C columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

MOMENTUM = 0.95
ADAMW_STEP = 0.2  # the usual root mean square of AdamW's steps, in learning rates; so that the same rates fit both
# A polynomial that brings singular values from (0, 1] near to 1 within a few rounds; they end between 0.7 and 1.2.
ROUNDS = 5
LINEAR, CUBIC, QUINTIC = 3.4445, -4.7750, 2.0315


@dataclass(frozen=True)
class Matrix:
    """One matrix: a part of the parameter with this number."""

    number: int
    part: slice
    weight: Tensor  # (R, C), a view of the parameter


class Muon:
    """Updates some matrices of a model; keeps one tensor of momentum for each."""

    def __init__(self, parameters: Mapping[int, Tensor], parts: Mapping[int, int]) -> None:
        """Take parameters by their numbers, and how many matrices stand one below the other in each."""
        self.momentum = {number: torch.zeros_like(parameter) for number, parameter in parameters.items()}
        self._groups: dict[tuple[int, ...], list[Matrix]] = {}
        for number, parameter in parameters.items():
            rows = len(parameter) // parts[number]
            for first in range(0, len(parameter), rows):
                part = slice(first, first + rows)
                matrix = Matrix(number, part, parameter.detach()[part])
                self._groups.setdefault(tuple(matrix.weight.shape), []).append(matrix)

    def step(self, gradients: list[Tensor], divisor: Tensor, good: Tensor, lr: float, weight_decay: float) -> None:
        """Move the matrices by their gradients divided by `divisor`; if `good` is false, nothing changes."""
        for shape, matrices in self._groups.items():
            gradient = torch.stack([gradients[m.number][m.part] for m in matrices]) / divisor  # (G, R, C)
            momenta = [self.momentum[m.number][m.part] for m in matrices]
            momentum = torch.stack(momenta)
            momentum = torch.where(good, momentum.lerp(gradient, 1 - MOMENTUM), momentum)
            torch._foreach_copy_(momenta, list(momentum.unbind()))
            ahead = torch.where(good, gradient.lerp(momentum, MOMENTUM), 0.0)
            moves = orthogonalise(ahead) * (-lr * ADAMW_STEP * max(shape) ** 0.5)
            weights = [m.weight for m in matrices]
            if weight_decay:
                torch._foreach_mul_(weights, 1 - lr * weight_decay * good)
            torch._foreach_add_(weights, list(moves.unbind()))


def orthogonalise(x: Tensor) -> Tensor:
    """Return about the nearest matrices with orthogonal rows, or columns if those are fewer, to x (G, R, C)."""
    if x.shape[1] > x.shape[2]:
        return orthogonalise(x.transpose(1, 2)).transpose(1, 2)
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-20)
    for _ in range(ROUNDS):
        square = x @ x.transpose(1, 2)  # (G, R, R)
        factor = torch.baddbmm(square, square, square, beta=CUBIC, alpha=QUINTIC)
        x = torch.baddbmm(x, factor, x, beta=LINEAR)
    return x
