"""What the rest of seqtool knows of a model, so that other architectures can join.

Legend: B sentences, R = B * beams target rows (the beams of a sentence stand next to each other),
S source length, T target length, D width, V target vocabulary, L layers, H heads.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqtool.config import ModelConfig
from seqtool.corpus.tokenizer.interface import Vocabularies
from seqtool.model.embedding import Embedding


class EncodedSource(Protocol):
    """What a model keeps of its encoded sources."""

    def select(self, sentences: Tensor) -> Self:
        """Keep some sentences, or put them in another order."""
        ...


class Memory(NamedTuple):
    """An encoded source as a state for each position."""

    states: Tensor  # (B, S, D)
    mask: Tensor  # (B, S), True where there is a real token

    def select(self, sentences: Tensor) -> "Memory":
        """Keep some sentences, or put them in another order."""
        return Memory(self.states.index_select(0, sentences), self.mask.index_select(0, sentences))


class DecoderCache(Protocol):
    """What decoding remembers between steps."""

    @property
    def length(self) -> int:
        """The target positions decoded so far."""
        ...

    def reorder(self, rows: Tensor) -> None:
        """Make row i the continuation of the old row rows[i]; sentences and their number stay as they are."""
        ...

    def select(self, sentences: Tensor, beams: int) -> None:
        """Keep only these sentences, given on the host, each with all its beams (`beams` rows per sentence)."""
        ...

    def expand(self, beams: int) -> None:
        """Repeat every row `beams` times; used once, when one row per sentence becomes a beam."""
        ...


class Seq2Seq(Protocol):
    """What search needs of a model: it encodes a source once, then extends targets position by position."""

    @property
    def vocabularies(self) -> Vocabularies:
        """The sizes and special ids of both sides' vocabularies."""
        ...

    def encode(self, src: Tensor) -> Any:
        """Encode source ids (B, S), padded with the source's padding id; return an EncodedSource of this model's."""
        ...

    def start_cache(self, memory: Any) -> DecoderCache:
        """Return an empty cache for decoding from this memory, one row per sentence."""
        ...

    def decode(self, tgt: Tensor, memory: Any, cache: Any = None) -> Tensor:
        """Return logits (R, T, V) for target ids (R, T); with a cache of this model's, T counts only the new
        positions.
        """
        ...


class TranslationModel(nn.Module, ABC):
    """A model of any kind: all that training, search, validation, scoring, export and reports use of it."""

    tgt_embedding: Embedding

    def __init__(self, config: ModelConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.vocabularies = vocabularies

    @abstractmethod
    def encode(self, src: Tensor) -> Any:
        """Encode source ids (B, S)."""

    @abstractmethod
    def start_cache(self, memory: Any) -> DecoderCache:
        """Return an empty cache for decoding from this memory, one row per sentence."""

    @abstractmethod
    def decode_states(
        self, tgt: Tensor, memory: Any, cache: Any = None, attention: list[Tensor] | None = None
    ) -> Tensor:
        """Return the decoder's states (R, T, D) for target ids (R, T), before the output projection.

        With a cache, tgt holds only the new positions and the cache moves on. A list given as `attention` receives the
        weights (R, H, T, S) with which each layer looks at the source, from a model that has attention.
        """

    @property
    def output_weight(self) -> Tensor:
        """The matrix (V, D) that turns decoder states into logits: the target embeddings, unless a kind says else."""
        return self.tgt_embedding.tokens.weight

    @property
    def output_bias(self) -> Tensor | None:
        """What is added to the logits (V), if the model has such a bias."""
        return None

    def project(self, states: Tensor) -> Tensor:
        """Return the logits (..., V) of decoder states (..., D)."""
        return F.linear(states, self.output_weight, self.output_bias)

    def decode(self, tgt: Tensor, memory: Any, cache: Any = None) -> Tensor:
        """Return logits (R, T, V); with a cache, tgt holds only the new positions and the cache moves on."""
        return self.project(self.decode_states(tgt, memory, cache))

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return the decoder's states (B, T, D) for a training batch; the loss projects them."""
        return self.decode_states(tgt_in, self.encode(src))

    @property
    def source_loss(self) -> float:
        """The weight of a loss on the source's tokens in training, for a model that predicts them too."""
        return 0.0

    def source_states(self, memory: Any) -> Tensor | None:
        """Return the states (B, S, D) that predict each next source token; None if the model predicts none."""
        return None

    has_attention = True  # False for a model that does not look back at the source's positions

    def attention_weights(self, src: Tensor, tgt_in: Tensor) -> list[Tensor]:
        """Return each layer's attention to the source (B, H, T, S); the last one gives the alignment."""
        attention: list[Tensor] = []
        self.decode_states(tgt_in, self.encode(src), attention=attention)
        return attention

    @property
    def position_limit(self) -> int:
        """The longest sequence that the model can represent; 0 if there is no limit."""
        return self.config.position_limit

    def set_word_dropout(self, rate: float) -> None:
        """Change the chance of hiding a whole input token, which a schedule may do during training."""
        for module in self.modules():
            if isinstance(module, Embedding):
                module.word_dropout = rate

    @property
    def skips_layers(self) -> bool:
        """Return whether a pass in training may leave out some layers."""
        return False

    def stack_layers(self) -> list[nn.Module]:
        """Return the layers: large submodules that a pass over a training batch uses only by calling them.

        Training shards, recomputes and (with several workers) compiles each by itself. Parameters in none of them
        stay whole for the length of a pass.
        """
        return []

    def muon_matrices(self) -> dict[str, int]:
        """Return the parameters that Muon may update, and how many matrices stand one below the other in each."""
        return {}

    @abstractmethod
    def bytes_per_token(self) -> int:
        """Estimate the memory that a forward pass keeps for the backward pass, per target token, in float32."""

    def compile_for_training(self, by_layer: bool = False) -> Callable[[Tensor, Tensor], Tensor]:
        """Return what computes a training batch's states as `forward` does, compiled whole or layer by layer.

        A layer is replaced in its `forward` only, so that the hooks of torch's engines stay outside.
        """
        if not (by_layer and self.stack_layers()):
            return torch.compile(self, dynamic=True)
        for layer in self.stack_layers():
            layer.forward = torch.compile(layer.forward, dynamic=True)
        return self

    def compile_for_translation(self) -> None:
        """Apply torch.compile to the parts whose shapes vary little in translation: here the encoder."""
        self.encode = torch.compile(self.encode, dynamic=True)  # type: ignore[method-assign]
