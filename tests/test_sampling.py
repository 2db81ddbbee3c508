"""Sampling: the right shares, the right support, and random numbers that belong to the sentence."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from special_ids import BOS, EOS, PAD, vocabularies
from table_model import TableModel, log_prob
from torch import Tensor

from seqtool.config import TransformerConfig
from seqtool.corpus.tokenizer.bpe import SPECIAL
from seqtool.model.transformer import Transformer
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.engines.torch_engine import TorchEngine
from seqtool.translation.search.beam_step import NOTHING
from seqtool.translation.search.constraints import Constraints
from seqtool.translation.search.decoding import OpenSentences
from seqtool.translation.search.sampling import draw, random_numbers, sample

quickly = partial(settings, deadline=None, derandomize=True, database=None)
VOCAB = 9


def shares(probs: list[float], **options: object) -> list[float]:
    """Return how often each token is drawn, over numbers that are spread evenly."""
    n = 1000
    chances = (torch.arange(n) + 0.5) / n
    log_probs = torch.tensor(probs).log().expand(n, -1)
    tokens = draw(log_probs, chances, SearchOptions(sample=True, **options))
    return (torch.bincount(tokens, minlength=len(probs)) / n).tolist()


def test_tokens_are_drawn_by_their_probability():
    assert shares([0.1, 0.0, 0.6, 0.3]) == pytest.approx([0.1, 0.0, 0.6, 0.3], abs=0.002)


def test_a_temperature_sharpens_or_flattens():
    # By hand: at temperature 0.5 probabilities are squared, 0.04 : 0.64, and at 2 their roots are taken, 1 : 2.
    assert shares([0.2, 0.8], temperature=0.5) == pytest.approx([1 / 17, 16 / 17], abs=0.002)
    assert shares([0.2, 0.8], temperature=2.0) == pytest.approx([1 / 3, 2 / 3], abs=0.002)


def test_top_k_leaves_the_k_most_probable():
    assert shares([0.1, 0.4, 0.2, 0.3], top_k=2) == pytest.approx([0.0, 4 / 7, 0.0, 3 / 7], abs=0.002)
    assert shares([0.1, 0.4, 0.2, 0.3], top_k=99) == pytest.approx([0.1, 0.4, 0.2, 0.3], abs=0.002)


def test_top_p_leaves_the_fewest_that_reach_p():
    # By hand: 0.4 + 0.3 do not reach 0.75, with 0.2 they do.
    assert shares([0.1, 0.4, 0.2, 0.3], top_p=0.75) == pytest.approx([0.0, 4 / 9, 2 / 9, 3 / 9], abs=0.002)
    assert shares([0.1, 0.4, 0.2, 0.3], top_p=1e-6) == [0.0, 1.0, 0.0, 0.0]


@quickly(max_examples=100)
@given(
    st.lists(st.one_of(st.just(NOTHING), st.floats(-30, 0, width=32)), min_size=1, max_size=40),
    st.sampled_from([0.0, 2.0**-24, 0.5, 1 - 2.0**-24]),
    st.integers(0, 5),
    st.sampled_from([1.0, 0.9, 0.01]),
    st.sampled_from([0.1, 1.0, 10.0]),
)
def test_what_is_forbidden_is_never_drawn(values, chance, top_k, top_p, temperature):
    log_probs = torch.tensor([[*values, -1.0]])
    options = SearchOptions(sample=True, top_k=top_k, top_p=top_p, temperature=temperature)
    token = int(draw(log_probs, torch.tensor([chance]), options))
    assert log_probs[0, token] > NOTHING


def test_random_numbers_depend_on_seed_sentence_and_sample_only():
    numbers = random_numbers(1, [4, 5], 0, 50)
    assert torch.equal(numbers, random_numbers(1, (4, 5), 0, 50))
    assert torch.equal(numbers[:20], random_numbers(1, [4, 5], 0, 20))
    assert ((numbers >= 0) & (numbers < 1)).all()
    others = [random_numbers(2, [4, 5], 0, 50), random_numbers(1, [4, 6], 0, 50), random_numbers(1, [4, 5], 1, 50)]
    assert not any(torch.equal(numbers, other) for other in others)
    # The stream itself must never change: numpy's Generator(Philox(key)).random(3) with the hashed key.
    assert numbers[:3].tolist() == pytest.approx([0.11264325, 0.42450733, 0.67345497], abs=1e-7)


@quickly(max_examples=25)
@given(
    st.integers(0, 1000),
    st.lists(
        st.tuples(st.lists(st.integers(4, 8), max_size=5), st.lists(st.integers(4, 8), max_size=3)),
        min_size=2,
        max_size=9,
    ),
    st.data(),
)
def test_company_changes_no_sample(seed, pairs, data):
    engine = TorchEngine([TableModel(VOCAB, seed)], threads=1)
    options = SearchOptions(
        sample=True,
        n_best=3,
        seed=seed,
        max_length_ratio=1.0,
        top_k=data.draw(st.sampled_from([0, 3])),
        no_repeat_ngram=data.draw(st.sampled_from([0, 2])),
        required=data.draw(st.sampled_from([(), (5,)])),
    )
    order = data.draw(st.permutations(range(len(pairs))))
    together = engine.translate([pairs[i][0] for i in order], options, [pairs[i][1] for i in order])
    for place, i in enumerate(order):
        source, prefix = pairs[i]
        assert engine.translate([source], options, [prefix])[0] == together[place]
        for one in together[place]:
            assert one.ids[: len(prefix)] == prefix
            assert set(options.required) <= set(one.ids)


def test_samples_have_the_scores_of_the_model_and_come_best_first():
    model = TableModel(VOCAB, seed=4)
    options = SearchOptions(sample=True, n_best=20, temperature=2.0, length_penalty=0.6)
    (samples,) = TorchEngine([model], threads=1).translate([[4, 5, 6]], options)
    for one in samples:
        assert one.log_prob == pytest.approx(log_prob(model, [4, 5, 6], one.ids), abs=1e-4)
        assert one.score == pytest.approx(one.log_prob / math.pow((6 + len(one.ids)) / 6, 0.6), abs=1e-4)
    assert [one.score for one in samples] == sorted((one.score for one in samples), reverse=True)
    assert len({tuple(one.ids) for one in samples}) > 5


def test_equal_samples_all_count():
    engine = TorchEngine([TableModel(VOCAB, end_bias=20.0)], threads=1)  # it hardly ever says anything
    (samples,) = engine.translate([[4, 5]], SearchOptions(sample=True, n_best=7))
    assert len(samples) == 7


def test_the_seed_decides():
    engine = TorchEngine([TableModel(VOCAB, seed=4)], threads=1)
    first, again, other = (
        engine.translate([[4, 5]] * 2, SearchOptions(sample=True, n_best=5, seed=seed)) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert first[0] == first[1]  # the same line is the same sentence


def test_a_low_temperature_is_greedy():
    engine = TorchEngine([TableModel(VOCAB, seed=4)], threads=1)
    sources = [[4, 5], [6], [7, 8, 4]]
    cold = engine.translate(sources, SearchOptions(sample=True, temperature=1e-4))
    greedy = engine.translate(sources, SearchOptions(beam=1))
    assert [one[0].ids for one in cold] == [one[0].ids for one in greedy]


def test_samples_end_at_the_limit():
    engine = TorchEngine([TableModel(VOCAB, end_bias=-50.0)], threads=1)
    options = SearchOptions(sample=True, max_length_ratio=1.0)
    assert [len(one[0].ids) for one in engine.translate([[4], [5] * 10], options)] == [17, 26]


def test_sampling_runs_on_the_meta_device():
    """No step needs a value from the device; only looks for what is done do."""
    config = TransformerConfig(d_model=16, d_ff=32, n_heads=4, encoder_layers=1, decoder_layers=2)
    with torch.device("meta"):
        model = Transformer(config, vocabularies(200)).eval()
        options = SearchOptions(sample=True, n_best=2, top_k=5, top_p=0.9)
        constraints = Constraints(options, SPECIAL, [5, 9, 7], [[], [5], []], torch.device("meta"))
        with torch.inference_mode():
            src = torch.ones(3, 16, dtype=torch.long)
            sentences = OpenSentences(3, 2)
            results = sample([model], src, torch.rand(3, 2, 10), constraints, options, sentences, look_every=1000)
    assert results[0][1].ids.device.type == "meta"


def test_specials_are_never_said():
    class Insistent(TableModel):
        def decode(self, *args: object, **kwargs: object) -> Tensor:
            logits = super().decode(*args, **kwargs)
            logits[..., [PAD, BOS]] = 50.0
            return logits

    engine = TorchEngine([Insistent(VOCAB)], threads=1)
    for options in (SearchOptions(sample=True, n_best=4), SearchOptions(beam=4, n_best=4)):
        for one in engine.translate([[4, 5]], options)[0]:
            assert not {PAD, BOS, EOS} & set(one.ids)
