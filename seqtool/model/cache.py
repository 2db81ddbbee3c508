"""What decoding remembers: the keys and values of earlier target positions and of the source.

Legend: L layers, B sentences, N beams per sentence, R = B * N rows, H heads, E head width, S source length,
P target positions so far, T new positions, C room for entries.

Keys and values never move while beams are exchanged. A sentence's entries, those of all its beams, are one list; each
beam has a lineage, the entries of its own past, and sees no others. Exchanging beams changes lineages only.
"""

import torch
from torch import Tensor

from seqtool.model.transfer import to_device


class LayerCache:
    """One layer's view of the cache during one decoding step."""

    def __init__(self, cache: "Cache", layer: int) -> None:
        self.cache, self.layer = cache, layer

    @property
    def length(self) -> int:
        return self.cache.length

    def fold(self, x: Tensor) -> Tensor:
        """Make the beams of a sentence further positions: (R, H, T, E) -> (B, H, N * T, E)."""
        R, H, T, E = x.shape
        return x.view(-1, self.cache.n_beams(R), H, T, E).transpose(1, 2).flatten(2, 3)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Store the new positions' keys and values (R, H, T, E); return all entries (B, H, entries, E) and a mask.

        The mask (B, 1, N * T, entries) is for folded queries; it is None if a sentence has one beam.
        """
        start, end = self.cache.n_entries, self.cache.n_entries + self.cache.n_beams(len(k)) * k.shape[2]
        states = self.cache.room_for(end, k)[self.layer]  # (2, B, H, C, E)
        states[0, :, :, start:end] = self.fold(k)
        states[1, :, :, start:end] = self.fold(v)
        return states[0, :, :, :end], states[1, :, :, :end], self.cache.visible(len(k), k.shape[2])

    def append_apart(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new positions and return those of each row by itself (R, H, P, E); slower, since it copies."""
        all_k, all_v, _ = self.append(k, v)
        lineage = self.cache.next_lineage(len(k), k.shape[2])  # (B, N, P)
        return gather_rows(all_k, lineage), gather_rows(all_v, lineage)


class Cache:
    """Keys and values of all decoder layers; the source's are held once per sentence, however many beams it has."""

    def __init__(self, source: list[tuple[Tensor, Tensor]], mask: Tensor) -> None:
        self.source = source  # a layer's keys and values, each (B, H, S, E)
        self.mask = as_added(mask, source[0][0].dtype)  # (B, 1, 1, S)
        self.lineage = torch.zeros((mask.shape[0], 1, 0), dtype=torch.long, device=mask.device)  # (B, N, P)
        self.n_entries = 0
        self._states: Tensor | None = None  # (L, 2, B, H, C, E)
        self._visible: Tensor | None = None  # this step's mask, made by the first layer

    @property
    def length(self) -> int:
        """The target positions decoded so far."""
        return self.lineage.shape[2]

    def layer(self, index: int) -> LayerCache:
        """Return the view that layer `index` appends to."""
        return LayerCache(self, index)

    def n_beams(self, n_rows: int) -> int:
        """Return how many of n_rows rows each sentence has."""
        return n_rows // self.mask.shape[0]

    def room_for(self, end: int, like: Tensor) -> Tensor:
        """Return the store, grown so that entries up to `end` fit."""
        if self._states is None or end > self._states.shape[4]:
            R, H, _, E = like.shape
            usual = self.n_beams(R) * (self.mask.shape[3] + 16)  # most targets are about as long as their sources
            room = end if self._states is None else max(usual, 2 * end)  # the first step does not know the beams yet
            grown = like.new_empty(len(self.source), 2, self.mask.shape[0], H, room, E)
            if self._states is not None:
                grown[:, :, :, :, : self.n_entries] = self._states[:, :, :, :, : self.n_entries]
            self._states = grown
        return self._states

    def visible(self, n_rows: int, n_new: int) -> Tensor | None:
        """Return which entries the queries of n_rows with n_new positions each may see."""
        N, T = self.n_beams(n_rows), n_new
        if self.needs_mask(N) and self._visible is None:
            B, device = self.mask.shape[0], self.mask.device
            past = self.past(N)
            same_beam = torch.eye(N, dtype=torch.bool, device=device)[:, None, :, None]
            not_later = torch.ones((T, T), dtype=torch.bool, device=device).tril()[None, :, None, :]
            present = (same_beam & not_later).view(N * T, N * T).expand(B, -1, -1)
            allowed = torch.cat((past.repeat_interleave(T, dim=1), present), dim=2)[:, None]  # (B, 1, N * T, entries)
            self._visible = as_added(allowed, self.mask.dtype)
        return self._visible

    def past(self, n_beams: int) -> Tensor:
        """Return which entries are of each beam's own past: (B, N, entries)."""
        shape = (self.mask.shape[0], n_beams, self.n_entries)
        return torch.zeros(shape, dtype=torch.bool, device=self.mask.device).scatter_(2, self.lineage, True)

    def needs_mask(self, n_beams: int) -> bool:
        """Return whether anything has to be hidden: a single beam may see all there is but what comes later."""
        return n_beams > 1

    def next_lineage(self, n_rows: int, n_new: int) -> Tensor:
        """Return the lineages (B, N, P + T) with the entries of this step."""
        beams = self.n_beams(n_rows)
        own = torch.arange(self.n_entries, self.n_entries + beams * n_new, device=self.lineage.device)
        return torch.cat((self.lineage, own.view(beams, n_new).expand(len(self.lineage), -1, -1)), dim=2)

    def advance(self, n_rows: int, n_new: int) -> None:
        """End a step in which every layer appended n_new positions to n_rows rows."""
        self.lineage = self.next_lineage(n_rows, n_new)
        self.n_entries += self.n_beams(n_rows) * n_new
        self._visible = None

    def reorder(self, rows: Tensor) -> None:
        """Make row i the continuation of the old row rows[i] of the same sentence; no key or value is copied."""
        B, N, P = self.lineage.shape
        parents = rows.view(B, N) - torch.arange(0, B * N, N, device=rows.device)[:, None]
        self.lineage = self.lineage.gather(1, parents[:, :, None].expand(-1, -1, P))

    def select(self, sentences: Tensor, beams: int) -> None:
        """Keep only these sentences, given on the host, each with its `beams` rows."""
        moves = plan_moves(sentences, self.mask.device)
        self.source = [(keep(k, 0, len(sentences), moves), keep(v, 0, len(sentences), moves)) for k, v in self.source]
        kept = to_device(sentences, self.mask.device)
        self.mask = self.mask.index_select(0, kept)
        self.lineage = self.lineage.index_select(0, kept)
        if self._states is not None:
            keep(self._states[:, :, :, :, : self.n_entries], 2, len(sentences), moves)
            self._states = self._states[:, :, : len(sentences)]

    def expand(self, beams: int) -> None:
        """Give every sentence `beams` rows instead of one; they share the past."""
        self.lineage = self.lineage.repeat_interleave(beams, dim=1)


def as_added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask that is True where attention is allowed into numbers to add, once for all layers and not in each."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, float("-inf"))


def plan_moves(sentences: Tensor, device: torch.device) -> Tensor:
    """Return the new and the old place (2, M) of each of the sentences that does not stay where it is.

    The sentences are named on the host: to find out on a device what moves would make the host wait for it.
    """
    moved = (sentences != torch.arange(len(sentences))).nonzero().squeeze(1)
    return to_device(torch.stack((moved, sentences[moved])), device)


def keep(x: Tensor, dim: int, n: int, moves: Tensor) -> Tensor:
    """Make the moves (2, M) along a dimension of x, in place, and return the first n slices."""
    front = x.narrow(dim, 0, n)
    front.index_copy_(dim, moves[0], x.index_select(dim, moves[1]))
    return front


def gather_rows(entries: Tensor, lineage: Tensor) -> Tensor:
    """Return the entries (B, H, C, E) along each lineage (B, N, P): (R, H, P, E)."""
    _, H, _, E = entries.shape
    B, N, P = lineage.shape
    index = lineage.view(B, 1, N * P, 1).expand(-1, H, -1, E)
    rows = entries.gather(2, index).view(B, H, N, P, E).transpose(1, 2).flatten(0, 1)
    return rows.contiguous()  # matrix products of other layouts round differently
