"""Encoder and decoder layers, and the feed-forward and normalisation parts they are made of.

Legend: B batch, R target rows, S source length, T target length, D width of the model, F width of the feed-forward.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from seqtool.config import TransformerConfig
from seqtool.config.model import SelfAttentionConfig
from seqtool.model.attention import MultiHeadAttention
from seqtool.model.cache import LayerCache
from seqtool.model.dropout import Dropout
from seqtool.model.positions import LearnedPositions, RotaryPositions, SinusoidalPositions


def make_norm(config: SelfAttentionConfig) -> nn.Module:
    """Return the normalisation the configuration asks for."""
    return nn.LayerNorm(config.d_model) if config.norm_kind == "layer" else nn.RMSNorm(config.d_model, eps=1e-6)


def added_positions(config: SelfAttentionConfig) -> nn.Module | None:
    """Return the positions that are added to embeddings; the others act inside attention."""
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.d_model)
    return LearnedPositions(config.d_model, config.max_positions) if config.positions == "learned" else None


def layer_matrices(model: nn.Module, config: SelfAttentionConfig) -> dict[str, int]:
    """Return the matrices of a model's layers, and how many stand one below the other in each parameter."""
    inner = 2 if config.activation == "swiglu" else 1
    parts = {"qkv.weight": 3, "out.weight": 1, "inner.weight": inner, "outer.weight": 1}
    places = {name: ".".join(name.split(".")[-2:]) for name, _ in model.named_parameters()}
    return {name: parts[place] for name, place in places.items() if place in parts}


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, applied to each position by itself."""

    def __init__(self, config: SelfAttentionConfig) -> None:
        super().__init__()
        self.activation = config.activation
        gated = config.activation == "swiglu"
        self.inner = nn.Linear(config.d_model, config.d_ff * (2 if gated else 1))
        self.outer = nn.Linear(config.d_ff, config.d_model)
        self.drop = Dropout(config.ff_dropout)

    def forward(self, x: Tensor) -> Tensor:
        h = self.inner(x)  # (B, T, F), or (B, T, 2F) when gated
        if self.activation == "relu":
            h = F.relu(h, inplace=True)
        elif self.activation == "gelu":
            h = F.gelu(h)
        elif self.activation == "swish":
            h = F.silu(h)
        else:
            gate, h = h.chunk(2, dim=-1)
            h = F.silu(gate) * h
        return self.outer(self.drop(h))  # (B, T, D)


class SelfAttention(MultiHeadAttention):
    """Attention of a sequence to itself, with the positions that act inside attention."""

    def __init__(self, config: TransformerConfig) -> None:
        window = config.relative_window if config.positions == "relative" else 0
        super().__init__(config.d_model, config.n_heads, config.attention_dropout, window)
        self.rotary = RotaryPositions(config.d_model // config.n_heads) if config.positions == "rotary" else None

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool, cache: LayerCache | None = None) -> Tensor:
        """x (B, T, D) attends to itself, and to what the cache holds of earlier positions."""
        q, k, v = self.project_self(x)
        start = cache.length if cache is not None else 0
        if self.rotary is not None:
            q, k = self.rotary(q, start), self.rotary(k, start)
        if cache is None:
            return self.attend(q, k, v, mask, causal)
        if self.relative is not None:  # distances are counted along each row
            return self.attend(q, *cache.append_apart(k, v), mask, causal)
        k, v, visible = cache.append(k, v)
        y = self.attend(cache.fold(q), k, v, visible, causal and visible is None)  # (sentences, beams * T, D)
        return y.view(x.shape)


class CrossAttention(MultiHeadAttention):
    """Attention of target positions to the encoded source."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config.d_model, config.n_heads, config.attention_dropout)

    def forward(self, x: Tensor, kv: tuple[Tensor, Tensor], mask: Tensor, weights: list[Tensor] | None) -> Tensor:
        """x (R, T, D) attends to keys and values (B, H, S, E); the R = B * beams rows of a sentence share them."""
        R, T, D = x.shape
        B = kv[0].shape[0]
        q = self.project_query(x.view(B, R // B * T, D))  # the beams of a sentence become further query positions
        y = self.attend(q, *kv, mask, causal=False, weights=weights)
        if weights is not None:
            w = weights.pop()  # (B, H, beams * T, S)
            weights.append(w.unflatten(2, (R // B, T)).transpose(1, 2).flatten(0, 1))  # (R, H, T, S)
        return y.view(R, T, D)


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each with a residual connection."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.self_attention = SelfAttention(config)
        self.feed_forward = FeedForward(config)
        self.self_norm = make_norm(config)
        self.ff_norm = make_norm(config)
        self.drop = Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, S, D); mask (B, 1, 1, S)."""
        if self.pre_norm:
            x = self.drop.add(x, self.self_attention(self.self_norm(x), mask, causal=False))
            return self.drop.add(x, self.feed_forward(self.ff_norm(x)))
        x = self.self_norm(self.drop.add(x, self.self_attention(x, mask, causal=False)))
        return self.ff_norm(self.drop.add(x, self.feed_forward(x)))


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the source and feed-forward, each with a residual connection."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.self_attention = SelfAttention(config)
        self.cross_attention = CrossAttention(config)
        self.feed_forward = FeedForward(config)
        self.self_norm = make_norm(config)
        self.cross_norm = make_norm(config)
        self.ff_norm = make_norm(config)
        self.drop = Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        source: Tensor | tuple[Tensor, Tensor],
        mask: Tensor,
        cache: LayerCache | None,
        weights: list[Tensor] | None,
    ) -> Tensor:
        """x (R, T, D); mask (B, 1, 1, S) says which source positions are real.

        The source is its states (B, S, D), or what a cache keeps of them: this layer's keys and values.
        """
        kv = source if isinstance(source, tuple) else self.cross_attention.project_context(source)
        if self.pre_norm:
            x = self.drop.add(x, self.self_attention(self.self_norm(x), None, causal=True, cache=cache))
            x = self.drop.add(x, self.cross_attention(self.cross_norm(x), kv, mask, weights))
            return self.drop.add(x, self.feed_forward(self.ff_norm(x)))
        x = self.self_norm(self.drop.add(x, self.self_attention(x, None, causal=True, cache=cache)))
        x = self.cross_norm(self.drop.add(x, self.cross_attention(x, kv, mask, weights)))
        return self.ff_norm(self.drop.add(x, self.feed_forward(x)))
