"""Recurrent cells, run over positions one by one in Python, or all at once by torch's own kernels in training.

Legend: B rows, T positions, D width of the input, W width of the state, G gates of a cell (4 for an LSTM, 3 for a GRU).
"""

import torch
from torch import Tensor, nn

LEAST_ROWS = 4  # a product of fewer rows rounds differently on CPUs, and a sentence alone must not differ
SHUT = 1e4  # added to a gate, it is open or shut exactly
State = tuple[Tensor, ...]  # (h, c) of an LSTM, (h,) of a GRU, each (B, W)


def lstm_step(x_gates: Tensor, h_gates: Tensor, state: State) -> State:
    """Hochreiter and Schmidhuber 1997 with forget gates: c = f * c + i * g, h = o * tanh(c)."""
    i, f, g, o = (x_gates + h_gates).chunk(4, dim=-1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_step(x_gates: Tensor, h_gates: Tensor, state: State) -> State:
    """Cho et al. 2014: h = (1 - z) * n + z * h, where the candidate n sees what the reset gate leaves of h."""
    (x_r, x_z, x_n), (h_r, h_z, h_n) = x_gates.chunk(3, dim=-1), h_gates.chunk(3, dim=-1)
    z = (x_z + h_z).sigmoid()
    n = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
    return (n + z * (state[0] - n),)


# A step, its gates, the tensors of its state, and what keeps a state of zeros: i shut in an LSTM, z open in a GRU.
CELLS = {"lstm": (lstm_step, 4, 2, (-SHUT, 0, 0, 0)), "gru": (gru_step, 3, 1, (0, SHUT, 0))}
ONE_LAYER = (True, 1, 0.0, True, False, True)  # with biases; no dropout; training; one direction; batch first


class Recurrence(nn.Module):
    """One cell run over positions in order; gates are in the order of torch.nn.LSTM and torch.nn.GRU."""

    keeps: Tensor

    def __init__(self, cell: str, d_in: int, width: int) -> None:
        super().__init__()
        self.cell, self.width = cell, width
        self.step, gates, self.n_state, keeps = CELLS[cell]
        self.x_gates = nn.Linear(d_in, gates * width)
        self.h_gates = nn.Linear(width, gates * width)
        self.register_buffer("keeps", torch.tensor(keeps, dtype=torch.float).repeat_interleave(width), persistent=False)

    def forward(self, x: Tensor, state: State | None = None, blank: Tensor | None = None) -> tuple[Tensor, State]:
        """x (B, T, D) -> the outputs (B, T, W) and the last state.

        Where blank (B, T) is True, which only the first positions of a row may be, the state stays zero.
        """
        state = state or (x.new_zeros(len(x), self.width),) * self.n_state
        if self.training and x.shape[1] > 1:
            return self.at_once(x, state, blank)
        return self.one_by_one(x, state, blank)

    def one_by_one(self, x: Tensor, state: State, blank: Tensor | None) -> tuple[Tensor, State]:
        """Run the cell in a loop; a row's results do not depend on the other rows."""
        if (B := len(x)) < LEAST_ROWS and not self.training:
            blank = None if blank is None else fill_rows(blank)
            y, last = self.one_by_one(fill_rows(x), tuple(map(fill_rows, state)), blank)
            return y[:B], tuple(part[:B] for part in last)
        gates = self.x_gates(x)  # (B, T, G * W); of all positions together, since they depend on x alone
        if blank is not None:
            gates = gates + blank[..., None] * self.keeps.to(gates.dtype)
        outputs = []
        for x_gates in gates.unbind(1):
            state = self.step(x_gates, self.h_gates(state[0]), state)
            outputs.append(state[0])
        return torch.stack(outputs, dim=1), state

    def at_once(self, x: Tensor, state: State, blank: Tensor | None) -> tuple[Tensor, State]:
        """Run torch's kernel, to which `blank` is one more input, with `keeps` as its weights."""
        matrix = self.x_gates.weight
        if blank is not None:
            x = torch.cat((x, blank[..., None].to(x.dtype)), dim=-1)  # (B, T, D + 1)
            matrix = torch.cat((matrix, self.keeps[:, None].to(matrix.dtype)), dim=1)
        weights = [matrix, self.h_gates.weight, self.x_gates.bias, self.h_gates.bias]
        given = [part[None] for part in state]  # (1, B, W): torch has an axis for layers
        if self.cell == "gru":
            y, *last = torch.gru(x, given[0], weights, *ONE_LAYER)
        else:
            y, *last = torch.lstm(x, given, weights, *ONE_LAYER)
        return y, tuple(part[0] for part in last)


def fill_rows(x: Tensor) -> Tensor:
    """Repeat the last row of x (B, ...) up to LEAST_ROWS."""
    return torch.cat((x, x[-1:].expand(LEAST_ROWS - len(x), *x.shape[1:])))
