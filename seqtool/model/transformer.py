"""The encoder-decoder Transformer of "Attention Is All You Need".

Legend: B sentences, R = B * beams target rows, S source length, T target length, D width, V vocabulary.
"""

from typing import cast

import torch
from torch import Tensor, nn

from seqtool.config import TransformerConfig
from seqtool.corpus.tokenizer.interface import Vocabularies
from seqtool.model.attention import MultiHeadAttention
from seqtool.model.cache import Cache
from seqtool.model.dropout import draw_uniform
from seqtool.model.embedding import Embedding, token_tables
from seqtool.model.interface import Memory, TranslationModel
from seqtool.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    added_positions,
    layer_matrices,
    make_norm,
)


class Transformer(TranslationModel):
    """Encodes a source sentence and predicts each next target token from it and from the tokens so far."""

    config: TransformerConfig

    def __init__(self, config: TransformerConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        src_tokens, tgt_tokens = token_tables(config, vocabularies)
        zero_id, scaled = vocabularies.target.special.bos if config.zero_start else None, config.scale_embeddings
        self.src_embedding = Embedding(config, src_tokens, added_positions(config), scaled=scaled)
        self.tgt_embedding = Embedding(config, tgt_tokens, added_positions(config), zero_id, scaled)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        pre_norm = config.norm == "pre"  # a residual stream that was never normalised is so once, at its end
        self.encoder_norm = make_norm(config) if pre_norm else nn.Identity()
        self.decoder_norm = make_norm(config) if pre_norm else nn.Identity()
        self.bias = nn.Parameter(torch.zeros(vocabularies.target.size)) if config.output_bias else None
        initialise(self)

    @property
    def output_bias(self) -> Tensor | None:
        """The bias (V) of the logits, if the configuration asks for one."""
        return self.bias

    def encode(self, src: Tensor) -> Memory:
        """Encode source ids (B, S)."""
        mask = src != self.vocabularies.source.special.pad  # (B, S)
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
                x = layer(x, memory.states, memory.mask[:, None, None, :], None, attention)
            else:
                x = layer(x, cache.source[index], cache.mask, cache.layer(index), attention)
        if cache is not None:
            cache.advance(*tgt.shape)
        return cast(Tensor, self.decoder_norm(x))

    @property
    def skips_layers(self) -> bool:
        """Return whether a pass in training may leave out some layers: LayerDrop."""
        return self.config.layer_drop > 0

    def stack_layers(self) -> list[nn.Module]:
        """Return the layers of both stacks."""
        return [*self.encoder, *self.decoder]

    def muon_matrices(self) -> dict[str, int]:
        """Return the matrices of the layers; embeddings and tables of positions are looked up row by row."""
        return layer_matrices(self, self.config)

    def bytes_per_token(self) -> int:
        """Count what layers keep for the backward pass: about 16 vectors of d_model and 3 of d_ff per token."""
        config = self.config
        return (config.encoder_layers + 2 * config.decoder_layers) * 4 * (16 * config.d_model + 3 * config.d_ff)

    def compile_for_translation(self) -> None:
        """Compile what knows no cache: the encoder and the decoder's feed-forward layers.

        The cache's sizes vary so much that torch.compile would compile again and again, and then give up.
        """
        super().compile_for_translation()
        for layer in cast(list[DecoderLayer], self.decoder):
            layer.feed_forward.compile(dynamic=True)

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
