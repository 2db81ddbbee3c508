"""The encoder-decoder Transformer of "Attention Is All You Need".

Legend: B sentences, R = B * beams target rows, S source length, T target length, D width, V vocabulary.
"""

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqtool.config import ModelConfig
from seqtool.corpus.tokenizer.bpe import PAD
from seqtool.errors import SeqtoolError
from seqtool.model.attention import MultiHeadAttention
from seqtool.model.cache import Cache
from seqtool.model.dropout import Dropout, draw_uniform
from seqtool.model.interface import Memory
from seqtool.model.layers import DecoderLayer, EncoderLayer, FeedForward, make_norm
from seqtool.model.positions import LearnedPositions, SinusoidalPositions


class Embedding(nn.Module):
    """Token vectors scaled by sqrt(D), with positions added and dropout on the sum."""

    def __init__(self, config: ModelConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens = tokens
        self.scale = math.sqrt(config.d_model)
        self.word_dropout = config.word_dropout
        self.drop = Dropout(config.dropout)
        self.positions: SinusoidalPositions | LearnedPositions | None = None
        if config.positions == "sinusoidal":
            self.positions = SinusoidalPositions(config.d_model)
        elif config.positions == "learned":
            self.positions = LearnedPositions(config.d_model, config.max_positions)

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """ids (B, T) at positions start, start + 1, ... -> (B, T, D)."""
        x = self.tokens(ids) * self.scale  # (B, T, D)
        if self.training and self.word_dropout:
            x = x * (draw_uniform(ids.shape, ids.device) >= self.word_dropout)[..., None]
        if self.positions is not None:
            x = self.positions(x, start)
        return cast(Tensor, self.drop(x))


class Transformer(nn.Module):
    """Encodes a source sentence and predicts each next target token from it and from the tokens so far."""

    def __init__(self, config: ModelConfig, src_vocab: int, tgt_vocab: int) -> None:
        super().__init__()
        self.config = config
        if config.share_embeddings and src_vocab != tgt_vocab:
            raise SeqtoolError(
                f"vocabularies of {src_vocab} and {tgt_vocab} tokens cannot share embeddings; "
                "set model.share_embeddings = false, or use one joint vocabulary (tokenizer.joint = true)"
            )
        src_tokens = nn.Embedding(src_vocab, config.d_model)
        tgt_tokens = src_tokens if config.share_embeddings else nn.Embedding(tgt_vocab, config.d_model)
        self.src_embedding = Embedding(config, src_tokens)
        self.tgt_embedding = Embedding(config, tgt_tokens)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        pre_norm = config.norm == "pre"  # a residual stream that was never normalised is so once, at its end
        self.encoder_norm = make_norm(config) if pre_norm else nn.Identity()
        self.decoder_norm = make_norm(config) if pre_norm else nn.Identity()
        initialise(self)

    @property
    def output_weight(self) -> Tensor:
        """The (V, D) weights that turn decoder states into logits: the target embeddings."""
        return self.tgt_embedding.tokens.weight

    def set_word_dropout(self, rate: float) -> None:
        """Change the chance of hiding a whole input token, which a training may do on its way."""
        self.src_embedding.word_dropout = self.tgt_embedding.word_dropout = rate

    def encode(self, src: Tensor) -> Memory:
        """Encode source ids (B, S)."""
        mask = src != PAD  # (B, S)
        x = self.src_embedding(src)
        for layer in self.encoder:
            if not self._is_dropped():
                x = layer(x, mask[:, None, None, :])
        return Memory(self.encoder_norm(x), mask)

    def start_cache(self, memory: Memory) -> Cache:
        """Compute the source's keys and values of every decoder layer, once for all steps."""
        layers = cast(list[DecoderLayer], self.decoder)
        source = [layer.cross_attention.project_context(memory.states) for layer in layers]
        return Cache(source, memory.mask[:, None, None, :])

    def decode_states(
        self, tgt: Tensor, memory: Memory, cache: Cache | None = None, attention: list[Tensor] | None = None
    ) -> Tensor:
        """Return the decoder's states (R, T, D) for target ids (R, T), before the output projection."""
        start = cache.length if cache is not None else 0
        x = self.tgt_embedding(tgt, start)
        for index, layer in enumerate(cast(list[DecoderLayer], self.decoder)):
            if self._is_dropped():
                continue
            if cache is None:
                kv, mask = layer.cross_attention.project_context(memory.states), memory.mask[:, None, None, :]
                x = layer(x, kv, mask, None, attention)
            else:
                x = layer(x, cache.source[index], cache.mask, cache.layer(index), attention)
        if cache is not None:
            cache.advance(*tgt.shape)
        return cast(Tensor, self.decoder_norm(x))

    def project(self, states: Tensor) -> Tensor:
        """Return the logits (..., V) of decoder states (..., D)."""
        return F.linear(states, self.output_weight)

    def decode(
        self, tgt: Tensor, memory: Memory, cache: Cache | None = None, attention: list[Tensor] | None = None
    ) -> Tensor:
        """Return logits (R, T, V); with a cache, tgt holds only the new positions and the cache moves on."""
        return self.project(self.decode_states(tgt, memory, cache, attention))

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return the decoder's states (B, T, D) for a training batch; the loss projects them."""
        return self.decode_states(tgt_in, self.encode(src))

    def cross_attention(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return every layer's cross-attention weights (L, B, H, T, S), for pictures and alignments."""
        attention: list[Tensor] = []
        self.decode_states(tgt_in, self.encode(src), attention=attention)
        return torch.stack(attention)

    def _is_dropped(self) -> bool:
        """Draw whether to skip a layer in this step (on the host, so that no device has to be waited for)."""
        rate = self.config.layer_drop
        return self.training and rate > 0 and float(draw_uniform((), "cpu")) < rate


def initialise(model: Transformer) -> None:
    """Set the starting weights.

    Embeddings have standard deviation 1/sqrt(D): scaled by sqrt(D) on the way in they have unit variance, like the
    positions added to them, and on the way out they give logits of unit variance (but for the token that was just
    read: its own embedding is in the state, and the first steps unlearn to predict it again). Matrices are
    Xavier-uniform, the query, key and value parts each by themselves. The last matrix of every residual branch is
    divided by the root of the number of branches in its stack: then the sum of all branches starts no larger than
    one of them, whatever the depth, which is what keeps deep stacks (tested to 24 layers) and low-precision
    arithmetic from diverging.
    """
    for embedding in dict.fromkeys((model.src_embedding.tokens, model.tgt_embedding.tokens)):
        nn.init.normal_(embedding.weight, std=model.config.d_model**-0.5)
    stacks = ((model.encoder, 2), (model.decoder, 3))
    for stack, branches in stacks:
        shrink = (branches * len(stack)) ** -0.5
        for module in stack.modules():
            if isinstance(module, MultiHeadAttention):
                for part in module.qkv.weight.detach().chunk(3):
                    nn.init.xavier_uniform_(part)
                nn.init.xavier_uniform_(module.out.weight, gain=shrink)
                nn.init.zeros_(module.qkv.bias)
                nn.init.zeros_(module.out.bias)
            elif isinstance(module, FeedForward):
                nn.init.xavier_uniform_(module.inner.weight)
                nn.init.xavier_uniform_(module.outer.weight, gain=shrink)
                nn.init.zeros_(module.inner.bias)
                nn.init.zeros_(module.outer.bias)
