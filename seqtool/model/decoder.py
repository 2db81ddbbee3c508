"""One causal stack over the source, its end and the target: the shape of GPT (Radford et al. 2018) for translation.

The source is a prefix that is seen causally or in full (Liu et al. 2018; Raffel et al. 2020). Positions count from the
start of each side, so that a target token is near the source token of its place (He et al. 2018), and a learned vector
tells the sides apart.

Legend: B sentences, N beams, R = B * N target rows, S source length, T target length, H heads, E head width, D width.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from seqtool.config import DecoderConfig
from seqtool.corpus.tokenizer.interface import Vocabularies
from seqtool.model.attention import MultiHeadAttention
from seqtool.model.cache import Cache, LayerCache
from seqtool.model.dropout import Dropout
from seqtool.model.embedding import Embedding, token_tables
from seqtool.model.interface import TranslationModel
from seqtool.model.layers import FeedForward, added_positions, layer_matrices, make_norm
from seqtool.model.positions import RotaryPositions

KeysValues = tuple[Tensor, Tensor]  # each (B, H, S, E)
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # queries, keys and values to what they find, (R, T, D)


class Block(nn.Module):
    """Self-attention and feed-forward, each with a residual connection; the same block reads source and target."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.attention = MultiHeadAttention(config.d_model, config.n_heads, config.attention_dropout)
        self.rotary = RotaryPositions(config.d_model // config.n_heads) if config.positions == "rotary" else None
        self.feed_forward = FeedForward(config)
        self.self_norm, self.ff_norm = make_norm(config), make_norm(config)
        self.drop = Dropout(config.dropout)

    def forward(self, x: Tensor, start: int, attend: Attend) -> tuple[Tensor, KeysValues]:
        """Return x (B, T, D) after this block, and the keys and values of its positions start, start + 1, ..."""
        q, k, v = self.project(x, start)
        return self.finish(x, attend(q, k, v)), (k, v)

    def project(self, x: Tensor, start: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values (B, H, T, E) of x (B, T, D) at positions start, start + 1, ..."""
        q, k, v = self.attention.project_self(self.self_norm(x) if self.pre_norm else x)
        return (self.rotary(q, start), self.rotary(k, start), v) if self.rotary is not None else (q, k, v)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Add what attention found to x (B, T, D), and then the feed-forward."""
        x = self.drop.add(x, attended)
        if self.pre_norm:
            return self.drop.add(x, self.feed_forward(self.ff_norm(x)))
        x = self.self_norm(x)
        return cast(Tensor, self.ff_norm(self.drop.add(x, self.feed_forward(x))))


class Prefix(NamedTuple):
    """The encoded source: each block's keys and values, and its states for the loss on the source."""

    layers: tuple[KeysValues, ...]
    mask: Tensor  # (B, S), True where there is a real token
    states: Tensor  # (B, S, D)

    def select(self, sentences: Tensor) -> "Prefix":
        """Keep some sentences, or put them in another order."""
        layers = tuple((k.index_select(0, sentences), v.index_select(0, sentences)) for k, v in self.layers)
        return Prefix(layers, self.mask.index_select(0, sentences), self.states.index_select(0, sentences))


class PrefixCache(Cache):
    """A cache that begins with the source's keys and values: one copy for all beams of a sentence."""

    def __init__(self, prefix: Prefix) -> None:
        empty = [(k[:, :, :0], v[:, :, :0]) for k, v in prefix.layers]
        super().__init__(empty, prefix.mask[:, None, None, :])
        self._states = torch.stack([torch.stack(layer) for layer in prefix.layers])  # (L, 2, B, H, S, E)
        self.n_entries = prefix.mask.shape[1]

    def past(self, n_beams: int) -> Tensor:
        """Return what each beam (B, N, entries) may see of what is stored: the real source, and its own past."""
        seen = super().past(n_beams)
        seen[:, :, : self.mask.shape[3]] = self.mask[:, 0] == 0  # the mask is added to scores: 0, or -inf for padding
        return seen

    def needs_mask(self, n_beams: int) -> bool:
        """Padding of the source has to be hidden from a single beam too."""
        return True


class Decoder(TranslationModel):
    """Reads the source with the stack that goes on to write the target."""

    config: DecoderConfig

    def __init__(self, config: DecoderConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        src_tokens, tgt_tokens = token_tables(config, vocabularies)
        self.src_embedding = Embedding(config, src_tokens, added_positions(config))
        self.tgt_embedding = Embedding(config, tgt_tokens, self.src_embedding.positions)
        self.sides = nn.Parameter(torch.zeros(2, config.d_model))  # of source and target
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.decoder_layers))
        self.last_norm = make_norm(config) if config.norm == "pre" else nn.Identity()
        initialise(self)

    def encode(self, src: Tensor) -> Prefix:
        """Read source ids (B, S), each position seeing the ones before it, or all with prefix_attention."""
        mask = src != self.vocabularies.source.special.pad  # (B, S)
        S = src.shape[1]
        may = mask[:, None, None, :]  # (B, 1, 1, S)
        if not self.config.prefix_attention:
            may = may & torch.ones(S, S, dtype=torch.bool, device=src.device).tril()
        x = self.src_embedding(src) + self.sides[0]
        layers: list[KeysValues] = []
        for block in cast(list[Block], self.blocks):
            x, kv = block(x, 0, partial(block.attention.attend, mask=may, causal=False))
            layers.append(kv)
        return Prefix(tuple(layers), mask, self.last_norm(x))

    def start_cache(self, memory: Prefix) -> PrefixCache:
        """Store the source's keys and values, for the target's to follow them."""
        return PrefixCache(memory)

    def decode_states(
        self, tgt: Tensor, memory: Prefix, cache: Cache | None = None, attention: list[Tensor] | None = None
    ) -> Tensor:
        """Return the states (R, T, D) for target ids (R, T), before the output projection."""
        start = cache.length if cache is not None else 0
        x = self.tgt_embedding(tgt, start) + self.sides[1]
        for index, block in enumerate(cast(list[Block], self.blocks)):
            if cache is not None:
                attend: Attend = partial(attend_cached, block, cache.layer(index), x.shape)
            else:
                attend = partial(attend_prefix, block, memory, memory.layers[index], attention)
            x, _ = block(x, start, attend)
        if cache is not None:
            cache.advance(*tgt.shape)
        return cast(Tensor, self.last_norm(x))

    @property
    def source_loss(self) -> float:
        """The weight of the loss on the source's tokens in training."""
        return self.config.source_loss

    def source_states(self, memory: Prefix) -> Tensor:
        """Return the states (B, S, D) that predict each next source token."""
        return memory.states

    def stack_layers(self) -> list[nn.Module]:
        """Return the blocks."""
        return list(self.blocks)

    def muon_matrices(self) -> dict[str, int]:
        """Return the matrices of the blocks; embeddings and tables of positions are looked up row by row."""
        return layer_matrices(self, self.config)

    def bytes_per_token(self) -> int:
        """Count what blocks keep for the backward pass, for a target token and the source token beside it."""
        return 2 * self.config.decoder_layers * 4 * (16 * self.config.d_model + 3 * self.config.d_ff)


def attend_cached(block: Block, cache: LayerCache, shape: torch.Size, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend from new target positions (R, H, T, E) to the source and what was decoded: (R, T, D), the shape."""
    k, v, visible = cache.append(k, v)
    return block.attention.attend(cache.fold(q), k, v, visible, causal=False).view(shape)


def attend_prefix(
    block: Block, memory: Prefix, source: KeysValues, weights: list[Tensor] | None, q: Tensor, k: Tensor, v: Tensor
) -> Tensor:
    """Attend from a whole target (R, H, T, E) to the source and the target so far: (R, T, D)."""
    (R, _, T, _), N = q.shape, q.shape[0] // len(memory.mask)
    src_k, src_v, src_mask = (x.repeat_interleave(N, 0) if N > 1 else x for x in (*source, memory.mask))
    look_back = torch.ones(T, T, dtype=torch.bool, device=q.device).tril().expand(R, 1, T, T)
    may = torch.cat((src_mask[:, None, None].expand(-1, 1, T, -1), look_back), dim=-1)  # (R, 1, T, S + T)
    y = block.attention.attend(
        q, torch.cat((src_k, k), 2), torch.cat((src_v, v), 2), may, causal=False, weights=weights
    )
    if weights is not None:
        to_source = weights.pop()[..., : src_k.shape[2]]  # (R, H, T, S)
        weights.append(to_source / to_source.sum(-1, keepdim=True))
    return y


def initialise(model: Decoder) -> None:
    """Set the starting weights as in the Transformer: the last matrix of each residual branch is made smaller."""
    for embedding in dict.fromkeys((model.src_embedding.tokens, model.tgt_embedding.tokens)):
        nn.init.normal_(embedding.weight, std=model.config.d_model**-0.5)
    parts, shrink = model.muon_matrices(), (2 * len(model.blocks)) ** -0.5
    for name, parameter in model.blocks.named_parameters():
        if (whole := f"blocks.{name}") in parts:
            gain = shrink if name.endswith(("out.weight", "outer.weight")) else 1.0
            for part in parameter.detach().chunk(3 if "qkv" in whole else 1):
                nn.init.xavier_uniform_(part, gain=gain)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
