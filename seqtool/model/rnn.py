"""The recurrent encoder-decoder, without attention (Sutskever et al. 2014) or with it (Bahdanau et al. 2015; Luong et
al. 2015): the scores that the literature knows for it are in attention_scores.py.

Legend: B sentences, R = B * beams target rows, S source length, T target length, Q queries (beams * T), D width,
W width of one direction, G gates of a cell (4 for an LSTM, 3 for a GRU).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from seqtool.config import RnnConfig
from seqtool.corpus.tokenizer.interface import Vocabularies
from seqtool.model.attention_scores import Score
from seqtool.model.dropout import Dropout
from seqtool.model.embedding import Embedding, token_tables
from seqtool.model.interface import TranslationModel
from seqtool.model.padding import last_real, reverse_real
from seqtool.model.transfer import to_device

LEAST_ROWS = 4  # a product of fewer rows rounds differently on CPUs, and a sentence alone must not differ
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


CELLS = {"lstm": (lstm_step, 4, 2), "gru": (gru_step, 3, 1)}  # a step, its gates, the tensors of its state


class Recurrence(nn.Module):
    """One cell run over positions in order; gates are in the order of torch.nn.LSTM and torch.nn.GRU."""

    def __init__(self, cell: str, d_in: int, width: int) -> None:
        super().__init__()
        self.step, gates, self.n_state = CELLS[cell]
        self.width = width
        self.x_gates = nn.Linear(d_in, gates * width)
        self.h_gates = nn.Linear(width, gates * width)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, list[State]]:
        """x (B, T, D) -> the outputs (B, T, W) and the state after every position."""
        B = len(x)
        state = state or (x.new_zeros(B, self.width),) * self.n_state
        if B < LEAST_ROWS and not self.training:
            y, states = self(fill_rows(x), tuple(map(fill_rows, state)))
            return y[:B], [tuple(part[:B] for part in after) for after in states]
        gates = self.x_gates(x).unbind(1)  # T times (B, G * W); all positions at once, since they depend on x alone
        states = []
        for x_gates in gates:
            state = self.step(x_gates, self.h_gates(state[0]), state)
            states.append(state)
        return torch.stack([h for h, *_ in states], dim=1), states


def fill_rows(x: Tensor) -> Tensor:
    """Repeat the last row of x (B, ...) up to LEAST_ROWS."""
    return torch.cat((x, x[-1:].expand(LEAST_ROWS - len(x), *x.shape[1:])))


class EncoderLayer(nn.Module):
    """A recurrence over the source, or one in each direction side by side."""

    def __init__(self, config: RnnConfig) -> None:
        super().__init__()
        width = config.d_model // 2 if config.bidirectional else config.d_model
        self.forwards = Recurrence(config.cell, config.d_model, width)
        self.backwards = Recurrence(config.cell, config.d_model, width) if config.bidirectional else None

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        """x (B, S, D) -> outputs (B, S, D), and the states (B, D) at each sentence's last token."""
        y, states = self.forwards(x)
        final = last_real(states, lengths)
        if self.backwards is None:
            return y, final
        back, states = self.backwards(reverse_real(x, lengths))
        final = tuple(torch.cat(pair, dim=-1) for pair in zip(final, last_real(states, lengths), strict=True))
        return torch.cat((y, reverse_real(back, lengths)), dim=-1), final


class RnnMemory(NamedTuple):
    """The encoded source: what attention reads, and the state that the decoder begins with."""

    states: Tensor  # (B, S, D)
    keys: Tensor  # (B, S, D)
    mask: Tensor  # (B, S), True where there is a real token
    final: tuple[State, ...]  # of each encoder layer, (B, D)

    def select(self, sentences: Tensor) -> "RnnMemory":
        """Keep some sentences, or put them in another order."""
        final = tuple(tuple(part.index_select(0, sentences) for part in state) for state in self.final)
        states, keys, mask = (x.index_select(0, sentences) for x in self[:3])
        return RnnMemory(states, keys, mask, final)


class RnnCache:
    """The decoder's state after the positions so far, a row for each hypothesis."""

    def __init__(self, states: list[State], fed: Tensor) -> None:
        self.states, self.fed, self.length = states, fed, 0

    def _map(self, change: Callable[[Tensor], Tensor]) -> None:
        self.states = [tuple(map(change, state)) for state in self.states]
        self.fed = change(self.fed)

    def reorder(self, rows: Tensor) -> None:
        """Make row i the continuation of the old row rows[i]."""
        self._map(lambda x: x.index_select(0, rows))

    def select(self, sentences: Tensor, beams: int) -> None:
        """Keep only these sentences, given on the host, each with its `beams` rows."""
        kept = to_device(sentences, self.fed.device)
        self._map(lambda x: x.unflatten(0, (-1, beams)).index_select(0, kept).flatten(0, 1))

    def expand(self, beams: int) -> None:
        """Give every sentence `beams` rows instead of one."""
        self._map(lambda x: x.repeat_interleave(beams, 0))


class Rnn(TranslationModel):
    """Encodes a source with one stack of recurrences and predicts each next target token with another."""

    config: RnnConfig

    def __init__(self, config: RnnConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        src_tokens, tgt_tokens = token_tables(config, vocabularies)
        self.src_embedding, self.tgt_embedding = Embedding(config, src_tokens), Embedding(config, tgt_tokens)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        d_in = [config.d_model * (2 if config.input_feeding and i == 0 else 1) for i in range(config.decoder_layers)]
        self.decoder = nn.ModuleList(Recurrence(config.cell, size, config.d_model) for size in d_in)
        self.drop = Dropout(config.dropout, over_time=config.variational)
        self.has_attention = config.attention != "none"
        if self.has_attention:
            self.score = Score(config)
            self.combine = nn.Linear(2 * config.d_model, config.d_model, bias=False)
        initialise(self)

    def encode(self, src: Tensor) -> RnnMemory:
        """Encode source ids (B, S)."""
        mask = src != self.vocabularies.source.special.pad  # (B, S)
        lengths = mask.sum(1)
        x = self.src_embedding(reverse_real(src, lengths) if self.config.reverse_source else src)
        final: list[State] = []
        for layer in self.encoder:
            y, state = layer(x, lengths)
            x = x + self.drop(y) if self.config.residual and final else self.drop(y)
            final.append(state)
        if self.config.reverse_source:
            x = reverse_real(x, lengths)
        return RnnMemory(x, self.score.keys(x) if self.has_attention else x, mask, tuple(final))

    def start_cache(self, memory: RnnMemory) -> RnnCache:
        """Begin each decoder layer with the final state of the encoder layer beside it."""
        last = len(memory.final) - 1
        states = [memory.final[min(layer, last)] for layer in range(self.config.decoder_layers)]
        return RnnCache(states, torch.zeros_like(states[0][0]))

    def decode_states(
        self, tgt: Tensor, memory: RnnMemory, cache: RnnCache | None = None, attention: list[Tensor] | None = None
    ) -> Tensor:
        """Return the attentional states (R, T, D) for target ids (R, T), before the output projection."""
        cache = cache or self.start_cache(memory)
        x = self.tgt_embedding(tgt)  # (R, T, D)
        if len(x) > len(cache.fed):
            cache.expand(len(x) // len(cache.fed))
        pieces = x.split(1, dim=1) if self.config.input_feeding else [x]
        results, weights = zip(*(self._advance(piece, memory, cache) for piece in pieces), strict=True)
        cache.length += tgt.shape[1]
        if attention is not None and self.has_attention:
            attention.append(torch.cat(weights, dim=1)[:, None])  # (R, 1, T, S)
        return torch.cat(results, dim=1)

    def _advance(self, x: Tensor, memory: RnnMemory, cache: RnnCache) -> tuple[Tensor, Tensor | None]:
        """Run the decoder over inputs x (R, T, D); T is 1 where the result is fed to the next step."""
        if self.config.input_feeding:
            x = torch.cat((x, cache.fed[:, None]), dim=-1)
        for index, layer in enumerate(self.decoder):
            y, states = layer(x, cache.states[index])
            cache.states[index] = states[-1]
            x = x + self.drop(y) if self.config.residual and index else self.drop(y)
        if not self.has_attention:
            return x, None
        B, (R, T, D) = len(memory.mask), x.shape
        scores = self.score(x.view(B, R // B * T, D), memory.keys)  # (B, Q, S)
        weights = scores.masked_fill(~memory.mask[:, None], float("-inf")).softmax(-1)
        context = (weights @ memory.states).view(R, T, D)
        result = self.drop(torch.tanh(self.combine(torch.cat((context, x), dim=-1))))  # Luong et al. 2015, formula 5
        cache.fed = result[:, -1]
        return result, weights.view(R, T, -1)

    def compile_for_translation(self) -> None:
        """Compile the same as for training."""
        self.compile_for_training()

    def compile_for_training(self, by_layer: bool = False) -> Callable[[Tensor, Tensor], Tensor]:
        """Compile one step of the cells; a loop over positions would be compiled again for every length."""
        for module in self.modules():
            if isinstance(module, Recurrence):
                module.step = torch.compile(module.step, dynamic=True)
        return self

    def stack_layers(self) -> list[nn.Module]:
        """Return the layers of both stacks, but not a decoder's that is called anew for each position."""
        return [*self.encoder, *([] if self.config.input_feeding else self.decoder)]

    def muon_matrices(self) -> dict[str, int]:
        """Return the matrices of the cells, gate by gate, and of attention."""
        gates = CELLS[self.config.cell][1]
        matrices = (name for name, weight in self.named_parameters() if weight.dim() == 2 and ".tokens." not in name)
        return {name: gates if "gates" in name else 1 for name in matrices}

    def bytes_per_token(self) -> int:
        """Count what layers keep for the backward pass: about 16 vectors of d_model for a recurrence."""
        layers = self.config.encoder_layers + self.config.decoder_layers + 1
        return layers * 4 * 16 * self.config.d_model


def initialise(model: Rnn) -> None:
    """Set the starting weights: embeddings as in the Transformer; matrices uniform or orthogonal, gate by gate."""
    for embedding in dict.fromkeys((model.src_embedding.tokens, model.tgt_embedding.tokens)):
        nn.init.normal_(embedding.weight, std=model.config.d_model**-0.5)
    parts = model.muon_matrices()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in parts:
                for part in parameter.chunk(parts[name]):
                    (nn.init.orthogonal_ if "h_gates" in name else nn.init.xavier_uniform_)(part)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
                if model.config.cell == "lstm" and "x_gates" in name:
                    nn.init.ones_(parameter.chunk(4)[1])  # forget little at first
            elif name == "score.v":
                nn.init.normal_(parameter, std=model.config.d_model**-0.5)
    if model.config.attention == "cosine":
        nn.init.constant_(model.score.strength.bias, 10.0)
