"""Gated convolutions with attention in every decoder layer, after ConvS2S (Gehring et al. 2017).

Layers are normalised before each branch, as in today's Transformers, where the paper scales and normalises weights.

Legend: B sentences, R = B * beams target rows, S source length, T target length, D width, K width of the kernel.
"""

import math
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqtool.config import ConvConfig
from seqtool.corpus.tokenizer.interface import Vocabularies
from seqtool.model.dropout import Dropout
from seqtool.model.embedding import Embedding, token_tables
from seqtool.model.interface import TranslationModel
from seqtool.model.positions import SinusoidalPositions
from seqtool.model.transfer import to_device


class GatedConvolution(nn.Module):
    """A convolution whose output is gated by a second one; each position is one product with its window."""

    def __init__(self, d_model: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.window = nn.Linear(kernel * d_model, 2 * d_model)

    def forward(self, x: Tensor, left: int) -> Tensor:
        """x (B, T, D) with `left` zeros before it and the rest of the kernel's zeros behind it -> (B, T, D)."""
        return self.valid(F.pad(x, (0, 0, left, self.kernel - 1 - left)))

    def valid(self, x: Tensor) -> Tensor:
        """x (B, T + K - 1, D) -> (B, T, D): one output for each whole window."""
        windows = x.unfold(1, self.kernel, 1).transpose(2, 3).flatten(2)  # (B, T, K * D)
        return F.glu(self.window(windows), dim=-1)


class EncoderLayer(nn.Module):
    """A gated convolution with a residual connection."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model)
        self.conv = GatedConvolution(config.d_model, config.kernel)
        self.out = nn.Linear(config.d_model, config.d_model)
        self.drop = Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, S, D), mask (B, S, 1); padding is silenced, or a window at a sentence's end would see it."""
        h = self.conv(self.norm(x) * mask, left=(self.conv.kernel - 1) // 2)
        return self.drop.add(x, self.out(h))


class DecoderLayer(nn.Module):
    """A gated convolution over the target so far, then attention to the source, each with a residual connection."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.norm, self.query_norm = nn.LayerNorm(config.d_model), nn.LayerNorm(config.d_model)
        self.conv = GatedConvolution(config.d_model, config.kernel)
        self.out = nn.Linear(config.d_model, config.d_model)
        self.query = nn.Linear(config.d_model, config.d_model)
        self.context = nn.Linear(config.d_model, config.d_model)
        self.drop = Dropout(config.dropout)

    def forward(
        self, x: Tensor, earlier: Tensor, memory: "ConvMemory", weights: list[Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        """x (R, T, D) after the K - 1 inputs of the convolution `earlier` (R, K - 1, D); return those for the next."""
        inputs = torch.cat((earlier, self.norm(x)), dim=1)  # (R, K - 1 + T, D)
        x = self.drop.add(x, self.out(self.conv.valid(inputs)))
        B, (R, T, D) = len(memory.mask), x.shape
        q = self.query(self.query_norm(x)).view(B, R // B * T, D)  # the beams of a sentence share its keys and values
        scores = q @ memory.keys.transpose(1, 2) / math.sqrt(D)
        w = scores.masked_fill(~memory.mask[:, None], float("-inf")).softmax(-1)  # (B, beams * T, S)
        if weights is not None:
            weights.append(w.view(R, 1, T, -1))
        x = self.drop.add(x, self.context((w @ memory.values).view(R, T, D)))
        return x, inputs[:, inputs.shape[1] - self.conv.kernel + 1 :]


class ConvMemory(NamedTuple):
    """The encoded source: states to compare with, and the same with the embeddings added, to read from."""

    keys: Tensor  # (B, S, D)
    values: Tensor  # (B, S, D)
    mask: Tensor  # (B, S), True where there is a real token

    def select(self, sentences: Tensor) -> "ConvMemory":
        """Keep some sentences, or put them in another order."""
        return ConvMemory(*(x.index_select(0, sentences) for x in self))


class ConvCache:
    """The last K - 1 inputs of each decoder layer's convolution: as much for the thousandth token as for the first."""

    def __init__(self, earlier: Tensor) -> None:
        self.earlier, self.length = earlier, 0  # (L, R, K - 1, D)

    def reorder(self, rows: Tensor) -> None:
        """Make row i the continuation of the old row rows[i]."""
        self.earlier = self.earlier.index_select(1, rows)

    def select(self, sentences: Tensor, beams: int) -> None:
        """Keep only these sentences, given on the host, each with its `beams` rows."""
        by_sentence = self.earlier.unflatten(1, (-1, beams))
        self.earlier = by_sentence.index_select(1, to_device(sentences, by_sentence.device)).flatten(1, 2)

    def expand(self, beams: int) -> None:
        """Give every sentence `beams` rows instead of one."""
        self.earlier = self.earlier.repeat_interleave(beams, 1)


class Conv(TranslationModel):
    """Encodes the source with stacked windows and writes the target with windows that end at the present token."""

    config: ConvConfig

    def __init__(self, config: ConvConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        src_tokens, tgt_tokens = token_tables(config, vocabularies)
        positions = SinusoidalPositions(config.d_model)
        self.src_embedding = Embedding(config, src_tokens, positions)
        self.tgt_embedding = Embedding(config, tgt_tokens, positions)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(config.d_model), nn.LayerNorm(config.d_model)
        initialise(self)

    def encode(self, src: Tensor) -> ConvMemory:
        """Encode source ids (B, S)."""
        mask = src != self.vocabularies.source.special.pad  # (B, S)
        embedded = x = self.src_embedding(src)
        for layer in self.encoder:
            x = layer(x, mask[..., None])
        keys = self.encoder_norm(x)
        return ConvMemory(keys, (keys + embedded) * math.sqrt(0.5), mask)

    def start_cache(self, memory: ConvMemory) -> ConvCache:
        """Begin with silence before the target."""
        B, _, D = memory.keys.shape
        return ConvCache(memory.keys.new_zeros(len(self.decoder), B, self.config.kernel - 1, D))

    def decode_states(
        self, tgt: Tensor, memory: ConvMemory, cache: ConvCache | None = None, attention: list[Tensor] | None = None
    ) -> Tensor:
        """Return the decoder's states (R, T, D) for target ids (R, T), before the output projection."""
        cache = cache or self.start_cache(memory)
        x = self.tgt_embedding(tgt, cache.length)
        if len(x) > cache.earlier.shape[1]:
            cache.expand(len(x) // cache.earlier.shape[1])
        left = []
        for layer, earlier in zip(self.decoder, cache.earlier, strict=True):
            x, last = layer(x, earlier, memory, attention)
            left.append(last)
        cache.earlier, cache.length = torch.stack(left), cache.length + tgt.shape[1]
        return cast(Tensor, self.decoder_norm(x))

    def stack_layers(self) -> list[nn.Module]:
        """Return the layers of both stacks."""
        return [*self.encoder, *self.decoder]

    def muon_matrices(self) -> dict[str, int]:
        """Return the matrices of the layers; the two halves of a gated convolution are one matrix each."""
        found = [name for name, weight in self.named_parameters() if weight.dim() == 2 and ".tokens." not in name]
        return {name: 2 if "window" in name else 1 for name in found}

    def bytes_per_token(self) -> int:
        """Count what layers keep for the backward pass: windows, gates, and the attention of the decoder."""
        config = self.config
        per_layer = 4 * config.d_model * (config.kernel + 10)
        return (config.encoder_layers + 2 * config.decoder_layers) * per_layer


def initialise(model: Conv) -> None:
    """Set the starting weights as in the Transformer: the last matrix of each residual branch is made smaller."""
    for embedding in dict.fromkeys((model.src_embedding.tokens, model.tgt_embedding.tokens)):
        nn.init.normal_(embedding.weight, std=model.config.d_model**-0.5)
    for stack, branches in ((model.encoder, 1), (model.decoder, 2)):
        shrink = (branches * len(stack)) ** -0.5
        for name, parameter in stack.named_parameters():
            if parameter.dim() == 2:
                gain = shrink if ".out." in name or ".context." in name else 1.0
                for part in parameter.detach().chunk(2 if "window" in name else 1):
                    nn.init.xavier_uniform_(part, gain=gain)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
