"""A tiny model for tests of the search: logits that look random and depend on all of the source and the target so far.

It follows the same interface as the Transformer and is exact in any batch, so that results can be compared for
equality; and its vocabulary is small enough to try every translation.
"""

import itertools
import math
from collections.abc import Iterator, Sequence

import torch
from special_ids import BOS, EOS, PAD, vocabularies
from torch import Tensor

from seqtool.model.interface import Memory
from seqtool.translation.engines.interface import SearchOptions

PRIME = 1_000_003


class TableCache:
    """A number for each row that follows from its tokens so far; it stands for keys and values."""

    def __init__(self, sources: Tensor) -> None:
        self.length = 0
        self.sources = sources  # (B)
        self.rows = sources.clone()  # (R)

    def reorder(self, rows: Tensor) -> None:
        self.rows = self.rows.index_select(0, rows)

    def select(self, sentences: Tensor, beams: int) -> None:
        self.sources = self.sources.index_select(0, sentences)
        self.rows = self.rows.view(-1, beams).index_select(0, sentences).flatten()

    def expand(self, beams: int) -> None:
        self.rows = self.rows.repeat_interleave(beams)


class TableModel:
    """Gives every combination of source and target so far a row of a random table of logits."""

    def __init__(self, vocab: int, seed: int = 0, spread: float = 2.0, end_bias: float = 0.0, size: int = 997) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.table = torch.randn(size, vocab, generator=generator) * spread
        self.table[:, EOS] += end_bias
        self.vocabularies = vocabularies(vocab)

    has_attention = True
    position_limit = 0

    def to(self, device: str) -> "TableModel":
        self.table = self.table.to(device)
        return self

    def encode(self, src: Tensor) -> Memory:
        code = torch.ones(src.shape[0], dtype=torch.long, device=src.device)
        for column in src.unbind(1):
            code = torch.where(column == PAD, code, (code * 31 + column) % PRIME)
        return Memory(code[:, None, None], src != PAD)

    def start_cache(self, memory: Memory) -> TableCache:
        return TableCache(memory.states[:, 0, 0])

    def decode(self, tgt: Tensor, memory: Memory, cache: TableCache | None = None) -> Tensor:
        code = cache.rows if cache is not None else memory.states[:, 0, 0]
        logits = []
        for column in tgt.unbind(1):
            code = (code * 37 + column + 1) % PRIME
            logits.append(self.table[code % self.table.shape[0]])
        if cache is not None:
            cache.rows = code
            cache.length += tgt.shape[1]
        return torch.stack(logits, dim=1)

    def attention_weights(self, src: Tensor, tgt_in: Tensor) -> list[Tensor]:
        weights = (src != PAD)[:, None, None, :].float().expand(-1, 1, tgt_in.shape[1], -1)
        return [weights / weights.sum(-1, keepdim=True)]


def log_prob(model: TableModel, source: Sequence[int], target: Sequence[int]) -> float:
    """Return the log-probability of a target and its end."""
    memory = model.encode(torch.tensor([[*source, EOS]]))
    log_probs = model.decode(torch.tensor([[BOS, *target]]), memory)[0].double().log_softmax(-1)
    return float(log_probs[range(len(target) + 1), [*target, EOS]].sum())


def all_targets(vocab: int, limit: int) -> Iterator[tuple[int, ...]]:
    """Yield every possible translation of up to `limit` tokens."""
    tokens = [token for token in range(vocab) if token not in (PAD, BOS, EOS)]
    for length in range(limit + 1):
        yield from itertools.product(tokens, repeat=length)


def best_of_all(
    model: TableModel, source: Sequence[int], options: SearchOptions, limit: int
) -> list[tuple[float, tuple[int, ...]]]:
    """Rank every possible translation by its score."""
    memory = model.encode(torch.tensor([[*source, EOS]]))
    ranked = []
    for length, group in itertools.groupby(all_targets(model.table.shape[1], limit), key=len):
        targets = list(group)
        tgt = torch.tensor([[BOS, *target] for target in targets])
        log_probs = model.decode(tgt, memory.select(torch.zeros(len(tgt), dtype=torch.long))).double().log_softmax(-1)
        asked = torch.tensor([[*target, EOS] for target in targets])
        totals = log_probs.gather(2, asked[:, :, None]).sum((1, 2)) / math.pow(
            (5 + length + 1) / 6, options.length_penalty
        )
        ranked += zip(totals.tolist(), targets, strict=True)
    return sorted(ranked, reverse=True)
