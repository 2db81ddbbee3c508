"""The recurrent encoder-decoder, without attention (Sutskever et al. 2014) or with it (Bahdanau et al. 2015; Luong et
al. 2015). Its cells are in recurrence.py, the scores that the literature knows for it in attention_scores.py.

Legend: B sentences, R = B * beams target rows, S source length, T target length, Q queries (beams * T), D width,
W width of one direction.
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
from seqtool.model.padding import reverse_real
from seqtool.model.recurrence import CELLS, Recurrence, State
from seqtool.model.transfer import to_device


class EncoderLayer(nn.Module):
    """A recurrence over the source, or one in each direction side by side."""

    def __init__(self, config: RnnConfig) -> None:
        super().__init__()
        width = config.d_model // 2 if config.bidirectional else config.d_model
        self.forwards = Recurrence(config.cell, config.d_model, width)
        self.backwards = Recurrence(config.cell, config.d_model, width) if config.bidirectional else None

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, State]:
        """x (B, S, D), mask (B, S) -> outputs (B, S, D), and the states (B, D) at each sentence's last token.

        Padding is read first, and changes no state: so all sentences end at the same position.
        """
        lengths, blank = mask.sum(1), ~mask.flip(1)
        y, final = self.forwards(reverse_real(x, lengths).flip(1), blank=blank)
        y = reverse_real(y.flip(1), lengths)
        if self.backwards is None:
            return y, final
        back, other = self.backwards(x.flip(1), blank=blank)
        final = tuple(torch.cat(pair, dim=-1) for pair in zip(final, other, strict=True))
        return torch.cat((y, back.flip(1)), dim=-1), final


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
            y, state = layer(x, mask)
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
            y, cache.states[index] = layer(x, cache.states[index])
            x = x + self.drop(y) if self.config.residual and index else self.drop(y)
        if not self.has_attention:
            return x, None
        result, weights = self.attend(x, memory)
        cache.fed = result[:, -1]
        return result, weights

    def attend(self, x: Tensor, memory: RnnMemory) -> tuple[Tensor, Tensor]:
        """Return the attentional states (R, T, D) of decoder states x (R, T, D), and the weights (R, T, S)."""
        B, (R, T, D) = len(memory.mask), x.shape
        scores = self.score(x.view(B, R // B * T, D), memory.keys)  # (B, Q, S)
        weights = scores.masked_fill(~memory.mask[:, None], float("-inf")).softmax(-1)
        context = (weights @ memory.states).view(R, T, D)
        result = self.drop(torch.tanh(self.combine(torch.cat((context, x), dim=-1))))  # Luong et al. 2015, formula 5
        return result, weights.view(R, T, -1)

    def compile_for_translation(self) -> None:
        """Compile the same as for training."""
        self.compile_for_training()

    def compile_for_training(self, by_layer: bool = False) -> Callable[[Tensor, Tensor], Tensor]:
        """Compile attention and one step of the cells; a loop would be compiled again for every length."""
        self.attend = torch.compile(self.attend, dynamic=True)  # type: ignore[method-assign]
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
