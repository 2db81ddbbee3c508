"""What search, training and scoring know of a model, so that other architectures can join.

Legend: B sentences, R = B * beams target rows (the beams of a sentence stand next to each other),
S source length, T target length, D width, V target vocabulary.
"""

from typing import Any, NamedTuple, Protocol

from torch import Tensor


class Memory(NamedTuple):
    """The encoded source: what the decoder reads."""

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
        """Keep only these sentences, given on the host, each with all its beams (`beams` rows a sentence)."""
        ...

    def expand(self, beams: int) -> None:
        """Repeat every row `beams` times; used once, when one row a sentence becomes a beam."""
        ...


class Seq2Seq(Protocol):
    """A model that translates: encodes a source once, then extends targets position by position."""

    def encode(self, src: Tensor) -> Memory:
        """Encode source ids (B, S), padded with PAD."""
        ...

    def start_cache(self, memory: Memory) -> DecoderCache:
        """Return an empty cache for decoding from this memory, one row a sentence."""
        ...

    def decode(self, tgt: Tensor, memory: Memory, cache: Any = None, attention: list[Tensor] | None = None) -> Tensor:
        """Return logits (R, T, V) for target ids (R, T); with a cache of this model's, T counts only the new
        positions.

        A list given as `attention` receives the cross-attention (R, H, T, S) of every layer.
        """
        ...
