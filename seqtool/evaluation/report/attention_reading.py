"""Reads cross-attention out of a model for given pairs of sentences, and chooses the pairs worth showing.

Legend: L decoder layers, H heads, T target tokens with the end symbol, S source tokens with the end symbol.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir
from seqtool.unfinished import use_models

if TYPE_CHECKING:
    from torch import Tensor

    from seqtool.model.interface import TranslationModel

MAX_TOKENS = 32  # longer sentences make pictures that no screen shows
MAX_BYTES = 600_000  # of all maps in a report


@dataclass(frozen=True)
class AttentionMap:
    """The weights with which each target token was predicted from the source tokens."""

    src_text: str
    tgt_text: str
    src_tokens: tuple[str, ...]
    tgt_tokens: tuple[str, ...]
    weights: NDArray[np.float32]  # (L, H, T, S); each row sums to 1

    def average(self) -> list[list[float]]:
        """Return the mean over layers and heads, (T, S)."""
        found: list[list[float]] = self.weights.mean(axis=(0, 1)).tolist()
        return found

    @property
    def crossing(self) -> float:
        """The share of pairs of target tokens that look at the source in the opposite order."""
        looked = self.weights.mean(axis=(0, 1))[:-1, :-1].argmax(axis=1) if min(self.weights.shape[2:]) > 1 else []
        n = len(looked)
        n_crossed = sum(int(looked[i] > looked[j]) for i in range(n) for j in range(i + 1, n))
        return n_crossed / (n * (n - 1) / 2) if n > 1 else 0.0


class AttentionReader:
    """A model whose attention can be read; loads torch."""

    def __init__(self, path: Path) -> None:
        from seqtool.model.loading import load_model

        def load(runs: list[RunDir]) -> "tuple[TokenizerPair, TranslationModel]":
            tokenizers = load_pair(runs[0])
            return tokenizers, load_model(runs[0], tokenizers.vocabularies)

        self.tokenizers, self.model = use_models([path], load)

    @property
    def has_attention(self) -> bool:
        """True if the model looks back at the source, so that there is something to read."""
        return self.model.has_attention

    def read(self, src_text: str, tgt_text: str) -> AttentionMap:
        """Return the attention of the model when it is made to say `tgt_text` for `src_text`."""
        import torch

        src, tgt = self.tokenizers.source.encode(src_text), self.tokenizers.target.encode(tgt_text)
        if not src or not tgt:
            raise SeqtoolError("an attention map needs a source and a translation that are not empty")
        if not self.has_attention:
            raise SeqtoolError("this kind of model has no attention, so there is none to draw")
        with torch.inference_mode():
            weights = self.model.attention_weights(*self._as_batch(src, tgt))
        return AttentionMap(
            src_text,
            tgt_text,
            (*self.tokenizers.source.pieces(src), "</s>"),
            (*self.tokenizers.target.pieces(tgt), "</s>"),
            torch.stack(weights)[:, 0].float().numpy(),  # (L, H, T, S)
        )

    def _as_batch(self, src: list[int], tgt: list[int]) -> "tuple[Tensor, Tensor]":
        import torch

        of_src, of_tgt = self.tokenizers.special
        return torch.tensor([[*src, of_src.eos]]), torch.tensor([[of_tgt.bos, *tgt]])

    def fits(self, src_text: str, tgt_text: str) -> bool:
        """Return whether a pair is neither trivial nor too long for a picture."""
        src, tgt = self.tokenizers.source.encode(src_text), self.tokenizers.target.encode(tgt_text)
        return 4 <= len(src) < MAX_TOKENS and 4 <= len(tgt) < MAX_TOKENS


def choose_maps(
    reader: AttentionReader, pairs: Sequence[tuple[str, str]], n_maps: int = 6, n_tried: int = 48
) -> list[AttentionMap]:
    """Return maps of a few pairs: half of them those whose word order changes most, the rest as they come."""
    maps: list[AttentionMap] = []
    for src_text, tgt_text in pairs:
        if len(maps) < n_tried and reader.fits(src_text, tgt_text):
            maps.append(reader.read(src_text, tgt_text))
    by_crossing = sorted(range(len(maps)), key=lambda index: -maps[index].crossing)
    crossed = by_crossing[: (n_maps + 1) // 2]
    others = [index for index in range(len(maps)) if index not in crossed]
    chosen: list[AttentionMap] = []
    n_bytes = 0
    for index in [*crossed, *others]:
        if len(chosen) < n_maps and n_bytes + maps[index].weights.size <= MAX_BYTES:
            chosen.append(maps[index])
            n_bytes += maps[index].weights.size
    return chosen
