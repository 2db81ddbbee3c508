"""How the model represents positions: sinusoidal, learned, rotary and relative.

Legend: B batch, H heads, Q query positions, K key positions, T positions, D width, E width of a head,
W the window: farther distances than W count as W.
"""

import torch
from torch import Tensor, nn

from seqtool.errors import SeqtoolError
from seqtool.model.sinusoids import sinusoids


class SinusoidalPositions(nn.Module):
    """Adds the paper's fixed encoding; works at any length."""

    table: Tensor

    def __init__(self, d_model: int, ready: int = 512) -> None:
        super().__init__()
        self.d_model = d_model
        # Not part of the saved weights: it follows from the formula, and longer tables are made as needed.
        self.register_buffer("table", self.make_table(ready, torch.get_default_device()), persistent=False)

    def forward(self, x: Tensor, start: int) -> Tensor:
        """Add the encodings of positions start, start + 1, ... to x (B, T, D)."""
        table, end = self.table, start + x.shape[1]
        if end > table.shape[0]:
            # Not within a compiled graph, whose roundings are others; without one, the compiler is not loaded.
            make = torch.compiler.disable(self.make_table) if torch.compiler.is_compiling() else self.make_table
            table = make(2 * end, table.device)
            self.table = table  # set once, read once: several threads may come here together
        return x + table[start:end].to(x.dtype)

    def make_table(self, n_positions: int, device: torch.device) -> Tensor:
        """Return the encodings (T, D) of the first positions."""
        with torch.inference_mode(False):  # what grows in translation must serve training too
            return torch.from_numpy(sinusoids(n_positions, self.d_model)).to(device)


class LearnedPositions(nn.Module):
    """Adds a learned vector for each position up to a fixed number."""

    def __init__(self, d_model: int, max_positions: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_positions, d_model))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, x: Tensor, start: int) -> Tensor:
        """Add the vectors of positions start, start + 1, ... to x (B, T, D)."""
        end = start + x.shape[1]
        if end > self.table.shape[0]:
            raise SeqtoolError(
                f"a sequence of {end} tokens is longer than the {self.table.shape[0]} learned positions of this model; "
                "shorten it, or train with a larger model.max_positions or other model.positions"
            )
        return x + self.table[start:end]


class RotaryPositions(nn.Module):
    """Turns pairs of a query's and key's values by an angle that grows with the position (Su et al. 2021)."""

    turns: Tensor

    def __init__(self, width: int, ready: int = 512) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("turns", rotary_turns(torch.arange(ready), width), persistent=False)

    def forward(self, x: Tensor, start: int) -> Tensor:
        """Turn x (B, H, T, E), whose first position is `start`."""
        turns, end = self.turns, start + x.shape[2]
        if end > turns.shape[1]:
            with torch.inference_mode(False):  # what grows in translation must serve training too
                turns = rotary_turns(torch.arange(2 * end, device=turns.device), self.width)
            self.turns = turns  # set once, read once: several threads may come here together
        cos, sin = turns[:, start:end].to(x.dtype).unbind(0)  # (T, E / 2)
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def rotary_turns(positions: Tensor, width: int) -> Tensor:
    """Return cosine and sine of the turning angles: (2, T, width / 2)."""
    rate = 10000.0 ** -(torch.arange(0, width, 2, device=positions.device, dtype=torch.float32) / width)
    angles = positions.float()[:, None] * rate
    return torch.stack((angles.cos(), angles.sin()))


class RelativePositions(nn.Module):
    """Learned vectors for the distance between query and key, added to keys and values (Shaw et al. 2018)."""

    def __init__(self, window: int, width: int) -> None:
        super().__init__()
        self.window = window
        self.keys = nn.Parameter(torch.empty(2 * window + 1, width))
        self.values = nn.Parameter(torch.empty(2 * window + 1, width))
        nn.init.xavier_uniform_(self.keys)
        nn.init.xavier_uniform_(self.values)

    def distances(self, n_queries: int, n_keys: int, device: torch.device) -> Tensor:
        """Return (Q, K) rows of the tables; the queries are the last Q of the K positions."""
        keys = torch.arange(n_keys, device=device)
        queries = keys[n_keys - n_queries :]
        return (keys[None, :] - queries[:, None]).clamp(-self.window, self.window) + self.window

    def key_scores(self, q: Tensor, n_keys: int) -> Tensor:
        """Return what the distances add to the unscaled scores (B, H, Q, K)."""
        by_distance = q @ self.keys.T  # (B, H, Q, 2W + 1)
        index = self.distances(q.shape[2], n_keys, q.device).expand(*q.shape[:2], -1, -1)  # (B, H, Q, K)
        return by_distance.gather(-1, index)

    def value_sums(self, weights: Tensor) -> Tensor:
        """Return what the distances add to the combined values (B, H, Q, E)."""
        index = self.distances(weights.shape[2], weights.shape[3], weights.device).expand_as(weights)
        by_distance = weights.new_zeros(*weights.shape[:3], 2 * self.window + 1).scatter_add(-1, index, weights)
        return by_distance @ self.values
