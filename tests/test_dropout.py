"""Dropout by a thread's own generator: as random as torch's, and the same whichever thread is quicker."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tiny_models import make_sentences, pad, shift, tiny_model
from torch import Tensor

from seqtool.model.dropout import Dropout, drawing_from
from seqtool.model.transformer import Transformer

SRC, TGT_IN = pad(make_sentences([7, 3, 5])), pad(shift(make_sentences([4, 6, 2], seed=1)))


def states_with_seed(model: Transformer, seed: int) -> Tensor:
    with drawing_from(torch.Generator().manual_seed(seed)):
        return model(SRC, TGT_IN)


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "ff_dropout", "word_dropout", "layer_drop"])
@pytest.mark.parametrize("positions", ["sinusoidal", "relative"])
def test_dropout_of_every_kind_draws_from_the_thread_s_generator_alone(kind, positions):
    model = tiny_model(positions=positions, **{kind: 0.5}).train()
    before = torch.get_rng_state()
    outputs = [states_with_seed(model, seed) for seed in range(6)]
    assert torch.equal(torch.get_rng_state(), before)
    assert len({tuple(output.flatten().tolist()) for output in outputs}) > 1
    torch.manual_seed(99)
    assert all(torch.equal(states_with_seed(model, seed), output) for seed, output in enumerate(outputs))


def test_threads_at_once_draw_what_each_would_draw_alone():
    model = tiny_model(dropout=0.3, attention_dropout=0.3, ff_dropout=0.3, word_dropout=0.3, layer_drop=0.3).train()
    alone = [states_with_seed(model, seed) for seed in range(16)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: states_with_seed(model, seed), range(16)))
    assert all(map(torch.equal, together, alone))


@pytest.mark.parametrize("length", [600, 2000])
def test_threads_at_once_may_meet_sentences_longer_than_the_tables(length):
    model = tiny_model(positions="rotary", encoder_layers=1)
    sentences = [pad(make_sentences([n])) for n in (length, 3, length + 700, 5) * 4]
    with torch.no_grad(), ThreadPoolExecutor(4) as pool:
        states = list(pool.map(lambda src: model.encode(src).states, sentences))
    assert [s.shape[1] for s in states] == [src.shape[1] for src in sentences]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_share_and_the_scale_are_right(p, dtype):
    drop, x = Dropout(p).train(), torch.ones(1001, 999, dtype=dtype)
    with drawing_from(torch.Generator().manual_seed(1)):
        dropped, added = drop(x), drop.add(torch.ones_like(x), x)
    for output, zero in ((dropped, 0.0), (added, 1.0)):
        values = output.unique().tolist()
        assert values == [zero, pytest.approx(zero + 1 / (1 - p), rel=0.01)]
        assert (output == zero).float().mean().item() == pytest.approx(p, abs=0.002)


def test_neighbours_are_dropped_independently():
    with drawing_from(torch.Generator().manual_seed(1)):
        dropped = (Dropout(0.5).train()(torch.ones(1000, 1000)) == 0).float() - 0.5
    for distance in (1, 2, 3, 4, 1000):
        flat = dropped.flatten()
        assert abs((flat[distance:] * flat[:-distance]).mean().item()) < 0.25 * 0.01


def test_the_gradient_passes_where_the_value_did():
    x = torch.randn(50, 60, requires_grad=True)
    with drawing_from(torch.Generator().manual_seed(1)):
        dropped = Dropout(0.3).train()(x)
    dropped.sum().backward()
    torch.testing.assert_close(x.grad * x, dropped)


def test_the_generator_of_one_thread_is_not_another_s():
    drop, x = Dropout(0.5).train(), torch.ones(4, 5)
    with drawing_from(torch.Generator().manual_seed(1)):
        expected = drop(x)
        with drawing_from(None):
            torch.manual_seed(3)
            default = drop(x)
    torch.manual_seed(3)
    assert torch.equal(drop(x), default)
    with drawing_from(torch.Generator().manual_seed(1)):
        assert torch.equal(drop(x), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_thread_s_generator_works_under_autocast(dtype):
    model = tiny_model(dropout=0.3, attention_dropout=0.3, ff_dropout=0.3).train()
    with torch.autocast("cpu", dtype):
        states = states_with_seed(model, 1)
    states.float().square().sum().backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())
