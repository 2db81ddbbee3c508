"""The scores of attention by their names in the literature: how well a decoder state s goes with an encoder state h.

Legend: B sentences, Q queries, S source length, D width.
"""

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqtool.config import RnnConfig


class Score(nn.Module):
    """The score of a decoder state s for an encoder state h, by its name in the literature."""

    def __init__(self, config: RnnConfig) -> None:
        super().__init__()
        self.name, d = config.attention, config.d_model
        if self.name in ("additive", "general"):
            self.query = nn.Linear(d, d, bias=False)
        if self.name == "additive":
            self.key, self.v = nn.Linear(d, d, bias=False), nn.Parameter(torch.empty(d))
        elif self.name == "location":
            self.places = nn.Linear(d, config.max_positions)
        elif self.name == "cosine":
            self.strength = nn.Linear(d, 1)

    def keys(self, h: Tensor) -> Tensor:
        """Compute once per sentence what the score needs of the encoder's states (B, S, D)."""
        if self.name == "additive":
            return cast(Tensor, self.key(h))
        return F.normalize(h, dim=-1) if self.name == "cosine" else h

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        """s (B, Q, D), keys (B, S, D) -> scores (B, Q, S)."""
        if self.name == "additive":  # Bahdanau et al. 2015: v . tanh(W s + U h)
            return (self.query(s)[:, :, None] + keys[:, None]).tanh() @ self.v
        if self.name == "general":  # Luong et al. 2015: s . W h
            return cast(Tensor, self.query(s) @ keys.transpose(1, 2))
        if self.name == "location":  # Luong et al. 2015: from the decoder's state alone
            return cast(Tensor, self.places(s)[..., : keys.shape[1]])
        if self.name == "cosine":  # Graves et al. 2014: the cosine, times a strength that the state chooses
            return F.softplus(self.strength(s)) * (F.normalize(s, dim=-1) @ keys.transpose(1, 2))
        scale = math.sqrt(s.shape[-1]) if self.name == "scaled" else 1.0  # dot, and dot over the root of D
        return (s @ keys.transpose(1, 2)) / scale
