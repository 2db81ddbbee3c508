"""Decoding with a cache equals decoding without, whatever happens to the rows between the steps."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import NORM_KINDS, NORMS, POSITIONS, VOCAB, exact_model, make_sentences, pad, shift
from torch import Tensor

from seqtool.model.interface import Memory
from seqtool.model.transformer import Transformer

SRC = make_sentences([6, 2, 4])


@dataclass
class Search:
    """A search by rote: it drives the cache, and keeps every row's tokens to decode them again in full."""

    model: Transformer
    memory: Memory
    beams: int = 1

    def __post_init__(self) -> None:
        self.cache = self.model.start_cache(self.memory)
        self.tokens = torch.empty(len(self.memory.mask), 0, dtype=torch.int64)  # (R, positions so far)

    @property
    def n_sentences(self) -> int:
        return len(self.memory.mask)

    def feed(self, new: Tensor) -> None:
        """Extend every row by the same number of tokens and compare the logits with those of full decoding."""
        cached = self.model.decode(new, self.memory, self.cache)
        self.tokens = torch.cat([self.tokens, new], dim=1)
        owners = torch.arange(len(self.tokens)) // self.beams  # full decoding gives each row a source of its own
        full = self.model.decode(self.tokens, self.memory.select(owners))
        torch.testing.assert_close(cached, full[:, -new.shape[1] :])
        assert self.cache.length == self.tokens.shape[1]

    def reorder(self, rows: Tensor) -> None:
        self.cache.reorder(rows)
        self.tokens = self.tokens[rows]

    def select(self, sentences: Tensor) -> None:
        self.cache.select(sentences, self.beams)
        self.tokens = self.tokens.view(self.n_sentences, self.beams, -1)[sentences].flatten(0, 1)
        self.memory = self.memory.select(sentences)

    def expand(self, beams: int) -> None:
        self.cache.expand(beams)
        self.tokens = self.tokens.repeat_interleave(beams, dim=0)
        self.beams = beams


def draw_tokens(draw: st.DataObject, n_rows: int, n_new: int) -> Tensor:
    generator = torch.Generator().manual_seed(draw.draw(st.integers(0, 2**31), label="tokens"))
    return torch.randint(1, VOCAB, (n_rows, n_new), generator=generator)


def draw_action(draw: st.DataObject, search: Search) -> None:
    """Feed some positions, move rows inside their sentences, or end and move sentences."""
    action = draw.draw(st.sampled_from(["feed", "feed", "reorder", "select"]), label="action")
    if action == "feed":
        n_new = draw.draw(st.sampled_from([1, 1, 1, 2, 5]), label="new positions")
        search.feed(draw_tokens(draw, len(search.tokens), n_new))
    elif action == "reorder":
        beam = st.integers(0, search.beams - 1)
        origins = [
            sentence * search.beams + draw.draw(beam, label="origin")
            for sentence in range(search.n_sentences)
            for _ in range(search.beams)
        ]
        search.reorder(torch.tensor(origins))
    else:
        kept = draw.draw(st.permutations(range(search.n_sentences)), label="sentences")
        search.select(torch.tensor(kept[: draw.draw(st.integers(1, len(kept)), label="how many")]))


@pytest.mark.parametrize("norm_kind", NORM_KINDS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_cached_decoding_equals_full_decoding(positions, norm, norm_kind):
    model = exact_model(positions=positions, norm=norm, norm_kind=norm_kind)

    @settings(max_examples=15, deadline=None, derandomize=True, database=None)
    @given(draw=st.data())
    def follow(draw: st.DataObject) -> None:
        with torch.inference_mode():
            search = Search(model, model.encode(pad(SRC)))
            if draw.draw(st.booleans(), label="prefix before the beams"):
                search.feed(draw_tokens(draw, search.n_sentences, draw.draw(st.integers(1, 4), label="prefix")))
            search.expand(draw.draw(st.integers(1, 3), label="beams"))
            for _ in range(draw.draw(st.integers(1, 7), label="actions")):
                draw_action(draw, search)
            search.feed(draw_tokens(draw, len(search.tokens), 1))

    follow()


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_cache_grows_with_the_target(positions):
    """Step by step past every size the cache may have begun with."""
    model = exact_model(positions=positions)
    tgt = pad(shift(make_sentences([150, 150], seed=2)))
    with torch.inference_mode():
        memory = model.encode(pad(SRC[:2]))
        cache = model.start_cache(memory)
        steps = [model.decode(tgt[:, i : i + 1], memory, cache) for i in range(tgt.shape[1])]
        torch.testing.assert_close(torch.cat(steps, dim=1), model.decode(tgt, memory))


def test_the_cache_reads_the_encoded_source_once():
    """After the start the steps need nothing of the encoder's states but the cache."""
    model = exact_model()
    memory = model.encode(pad(SRC))
    cache = model.start_cache(memory)
    first = torch.full((3, 1), 2)
    expected = model.decode(first, memory)
    memory.states.detach().fill_(float("nan"))
    torch.testing.assert_close(model.decode(first, memory, cache), expected)


def test_cross_attention_can_be_read_out_step_by_step():
    model = exact_model()
    memory, tgt = model.encode(pad(SRC)), pad(shift(make_sentences([4, 4, 4], seed=2)))
    full: list[Tensor] = []
    model.decode_states(tgt, memory, attention=full)
    cache = model.start_cache(memory)
    for i in range(4):
        step: list[Tensor] = []
        model.decode_states(tgt[:, i : i + 1], memory, cache, attention=step)
        torch.testing.assert_close(torch.stack(step)[:, :, :, 0], torch.stack(full)[:, :, :, i])
