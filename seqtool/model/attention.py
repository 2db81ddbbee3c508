"""Multi-head scaled dot-product attention: one module for self- and cross-attention.

Legend: B batch, Q query positions, K key positions, D width of the model, H heads, E = D / H width of a head.
A mask is True where attention is allowed, or holds what is added to the scores (0 or -inf).
This file does not know what a layer or a vocabulary is.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqtool.model.dropout import current_generator, drop
from seqtool.model.positions import RelativePositions


class MultiHeadAttention(nn.Module):
    """Queries from one sequence attend to keys and values of another (or of the same one)."""

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0, relative_window: int = 0) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.dropout = dropout
        # The query, key and value weights are one matrix, so that self-attention projects with one matrix product.
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.relative = RelativePositions(relative_window, d_model // n_heads) if relative_window else None

    def project_self(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of x (B, Q, D), each (B, H, Q, E)."""
        B, Q, D = x.shape
        qkv = self.qkv(x).view(B, Q, 3, self.n_heads, D // self.n_heads)  # (B, Q, 3, H, E)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v

    def project_query(self, x: Tensor) -> Tensor:
        """Return the queries (B, H, Q, E) of x (B, Q, D)."""
        D = x.shape[-1]
        weight, bias = self.qkv.weight.split([D, 2 * D])[0], self.qkv.bias.split([D, 2 * D])[0]
        return self.split_heads(F.linear(x, weight, bias))

    def project_context(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values (B, H, K, E) of context (B, K, D); cross-attention needs them once per sentence."""
        B, K, D = context.shape
        weight, bias = self.qkv.weight.split([D, 2 * D])[1], self.qkv.bias.split([D, 2 * D])[1]
        kv = F.linear(context, weight, bias).view(B, K, 2, self.n_heads, D // self.n_heads)  # (B, K, 2, H, E)
        k, v = kv.permute(2, 0, 3, 1, 4).unbind(0)
        return k, v

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, Q, D) -> (B, H, Q, E)."""
        B, Q, D = x.shape
        return x.view(B, Q, self.n_heads, D // self.n_heads).transpose(1, 2)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, weights: list[Tensor] | None = None
    ) -> Tensor:
        """Combine values by attention and project the result: (B, Q, D).

        `causal` means that query i, counted from the end, sees no key after its own position.
        A list given as `weights` receives the attention weights (B, H, Q, K), at the price of a slower path.
        """
        dropout = self.dropout if self.training else 0.0
        own_generator = dropout > 0 and current_generator() is not None  # SDPA can draw from torch's default one only
        if self.relative is not None or weights is not None or own_generator:
            y, w = attend_explicitly(q, k, v, with_causal(mask, causal, q, k), dropout, self.relative)
            if weights is not None:
                weights.append(w)
        elif causal and q.shape[2] > 1 and (mask is not None or q.shape[2] != k.shape[2]):
            # SDPA's is_causal takes no other mask and counts positions from the start: several new positions after
            # cached ones need an explicit mask.
            y = F.scaled_dot_product_attention(q, k, v, with_causal(mask, causal, q, k), dropout)
        else:
            alone = q.shape[2] == 1  # one new position may see all that is there
            y = F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal=causal and not alone)
        return self.out(y.transpose(1, 2).flatten(2))  # (B, Q, D)


def with_causal(mask: Tensor | None, causal: bool, q: Tensor, k: Tensor) -> Tensor | None:
    """Join a mask with the look-ahead mask of the last Q of K positions, if asked for."""
    if not causal:
        return mask
    Q, K = q.shape[2], k.shape[2]
    look_back = torch.ones(Q, K, dtype=torch.bool, device=q.device).tril(K - Q)
    return look_back if mask is None else mask & look_back


def attend_explicitly(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, relative: RelativePositions | None
) -> tuple[Tensor, Tensor]:
    """Attention by its formula; returns the combined values (B, H, Q, E) and the weights (B, H, Q, K)."""
    scores = q @ k.transpose(-2, -1)  # (B, H, Q, K)
    if relative is not None:
        scores = scores + relative.key_scores(q, k.shape[2])
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    weights = scores.softmax(-1)
    used = drop(weights, dropout) if dropout else weights
    y = used @ v  # (B, H, Q, E)
    if relative is not None:
        y = y + relative.value_sums(used)
    return y, weights
