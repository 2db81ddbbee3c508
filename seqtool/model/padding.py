"""Rows of different lengths in one batch: the real positions come first, padding stands behind them.

Legend: B rows, T padded length.
"""

import torch
from torch import Tensor


def reverse_real(x: Tensor, lengths: Tensor) -> Tensor:
    """Reverse the real positions of each row of x (B, T, ...); padding stays behind them."""
    places = torch.arange(x.shape[1], device=x.device)[None]
    places = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)  # (B, T)
    return x.take_along_dim(places.view(*places.shape, *[1] * (x.dim() - 2)), dim=1)
