"""Cells of recurrent networks that torch has on GPUs only, as single kernels; here of operations that a CPU has too.

Legend: B rows, W width of the state.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
Optional = Tensor | None


def lstm(
    x_gates: Tensor, h_gates: Tensor, cx: Tensor, x_bias: Optional = None, h_bias: Optional = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return h and c (B, W), and the four gates (B, 4 * W) for the backward pass."""
    i, f, g, o = _add(x_gates, h_gates, x_bias, h_bias).chunk(4, dim=1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    c = f * cx + i * g
    return o * c.tanh(), c, torch.cat((i, f, g, o), 1)


def lstm_backward(
    grad_h: Optional, grad_c: Optional, cx: Tensor, c: Tensor, gates: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Optional]:
    """Return the gradients of the sum of the gates, of the former c and of a bias."""
    i, f, g, o = gates.chunk(4, dim=1)
    grad_h = torch.zeros_like(c) if grad_h is None else grad_h
    grad_c = grad_h * o * (1 - c.tanh() ** 2) + (0 if grad_c is None else grad_c)
    grad_i, grad_f = grad_c * g * i * (1 - i), grad_c * cx * f * (1 - f)
    grad_g, grad_o = grad_c * i * (1 - g**2), grad_h * c.tanh() * o * (1 - o)
    grad_gates = torch.cat((grad_i, grad_f, grad_g, grad_o), 1)
    return grad_gates, grad_c * f, grad_gates.sum(0) if has_bias else None


def gru(
    x_gates: Tensor, h_gates: Tensor, hx: Tensor, x_bias: Optional = None, h_bias: Optional = None
) -> tuple[Tensor, Tensor]:
    """Return h (B, W), and what the backward pass needs (B, 5 * W)."""
    x_r, x_z, x_n = (x_gates if x_bias is None else x_gates + x_bias).chunk(3, dim=1)
    h_r, h_z, h_n = (h_gates if h_bias is None else h_gates + h_bias).chunk(3, dim=1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return n + z * (hx - n), torch.cat((r, z, n, hx, h_n), 1)


def gru_backward(grad_h: Tensor, kept: Tensor, has_bias: bool) -> tuple[Tensor, Tensor, Tensor, Optional, Optional]:
    """Return the gradients of both gates, of the former h and of both biases."""
    r, z, n, hx, h_n = kept.chunk(5, dim=1)
    grad_z, grad_n = grad_h * (hx - n) * z * (1 - z), grad_h * (1 - z) * (1 - n**2)
    grad_r = grad_n * h_n * r * (1 - r)
    of_x, of_h = torch.cat((grad_r, grad_z, grad_n), 1), torch.cat((grad_r, grad_z, grad_n * r), 1)
    biases = (of_x.sum(0), of_h.sum(0)) if has_bias else (None, None)
    return of_x, of_h, grad_h * z, *biases


def _add(x_gates: Tensor, h_gates: Tensor, x_bias: Optional, h_bias: Optional) -> Tensor:
    gates = x_gates + h_gates
    return gates if x_bias is None or h_bias is None else gates + x_bias + h_bias


SUBSTITUTES: dict[Any, Callable[..., Any]] = {
    aten._thnn_fused_lstm_cell.default: lstm,
    aten._thnn_fused_lstm_cell_backward_impl.default: lstm_backward,
    aten._thnn_fused_gru_cell.default: gru,
    aten._thnn_fused_gru_cell_backward.default: gru_backward,
}
