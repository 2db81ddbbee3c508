"""A model at work on a batch: its memory and cache, extended token by token. Shared by beam search and sampling.

Legend: B sentences, R = B * beams rows, S source length, V vocabulary.
"""

from bisect import bisect_left
from collections.abc import Sequence

import torch
from torch import Tensor

from seqtool.model.interface import Seq2Seq
from seqtool.model.transfer import to_device
from seqtool.translation.search.ensemble import join_logits

DROP_SHARE = 0.05  # finished sentences are dropped when they are this share of the batch


class Decoding:
    """Encodes sources once, then gives the probabilities of next tokens; several models answer as one."""

    def __init__(self, models: Sequence[Seq2Seq], src: Tensor, n_sentences: int) -> None:
        """Encode source ids, and then repeat the last as ballast so that there are n_sentences: (B, S)."""
        self.models = models
        self.memories = [model.encode(src) for model in models]
        if n_sentences > src.shape[0]:
            sentences = torch.arange(n_sentences, device=src.device).clamp(max=src.shape[0] - 1)
            self.memories = [memory.select(sentences) for memory in self.memories]
        self.caches = [model.start_cache(memory) for model, memory in zip(models, self.memories, strict=True)]
        self.n_beams = 1
        self.first = torch.full(
            (n_sentences, 1), models[0].vocabularies.target.special.bos, dtype=torch.long, device=src.device
        )  # (B, 1)

    def log_probs(self, tokens: Tensor) -> Tensor:
        """Append tokens (R, T) and return the log-probabilities (R, T, V) of what follows each."""
        parts = zip(self.models, self.memories, self.caches, strict=True)
        return join_logits([model.decode(tokens, memory, cache) for model, memory, cache in parts])

    def expand(self, beams: int) -> None:
        """Repeat the one row of each sentence."""
        self.n_beams = beams
        for cache in self.caches:
            cache.expand(beams)

    def reorder(self, parents: Tensor) -> None:
        """Make a sentence's rows continue its rows `parents` (B, beams)."""
        offsets = torch.arange(parents.shape[0], device=parents.device)[:, None] * self.n_beams
        rows = (parents + offsets).flatten()  # (R)
        for cache in self.caches:
            cache.reorder(rows)

    def select(self, sentences: list[int]) -> None:
        """Keep only some sentences."""
        kept = torch.tensor(sentences)
        on_device = to_device(kept, self.first.device)
        self.memories = [memory.select(on_device) for memory in self.memories]
        for cache in self.caches:
            cache.select(kept, self.n_beams)


class OpenSentences:
    """The row of each sentence in the batch, while finished ones are dropped; computed on the host only.

    Matrix products of fewer rows than `min_rows` round differently on some processors, and a sentence must not depend
    on what else is in its batch; so some finished sentences stay as ballast.
    """

    def __init__(self, n_sentences: int, beams: int, min_rows: int = 1) -> None:
        """Add as much ballast to n_sentences as the first step needs, in which each has one row."""
        self.places: list[int | None] = [*range(n_sentences), *[None] * (min_rows - n_sentences)]
        self.least = -(-min_rows // beams)

    @property
    def any(self) -> bool:
        """Return whether a sentence is still open."""
        return any(place is not None for place in self.places)

    def close(self, done: list[bool]) -> tuple[list[int], list[int]]:
        """Take note of what is done; return the rows that just became so, and the sentences they are."""
        rows = [row for row, place in enumerate(self.places) if done[row] and place is not None]
        sentences = [place for row in rows if (place := self.places[row]) is not None]
        for row in rows:
            self.places[row] = None
        return rows, sentences

    def drop(self, share: float) -> list[int] | None:
        """Return the rows to keep, or None while fewer than `share` of them could be dropped.

        The last rows take the places of those that go, so that few have to be moved.
        """
        keep = [row for row, place in enumerate(self.places) if place is not None]
        ballast = [row for row, place in enumerate(self.places) if place is None]
        keep = sorted(keep + ballast[: max(0, self.least - len(keep))])
        n = len(keep)
        if len(self.places) - n < max(1, share * len(self.places)):
            return None
        stay = set(keep[: bisect_left(keep, n)])
        movers = iter(keep[len(stay) :])
        keep = [row if row in stay else next(movers) for row in range(n)]
        self.places = [self.places[row] for row in keep]
        return keep
