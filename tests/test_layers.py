"""The parts of a layer by their formulas: feed-forward, norms, and what is random in training alone."""

import math

import pytest
import torch
from tiny_models import ACTIVATIONS, make_sentences, pad, shift, tiny_config, tiny_model
from torch import Tensor

from seqtool.model.layers import FeedForward, make_norm

SRC, TGT_IN = pad(make_sentences([7, 3, 5])), pad(shift(make_sentences([4, 6, 2], seed=1)))


def activate(h: Tensor, activation: str) -> Tensor:
    """The activations by their definitions."""
    if activation == "relu":
        return h.clamp(min=0)
    if activation == "gelu":
        return h * (1 + torch.erf(h / math.sqrt(2))) / 2
    if activation == "swish":
        return h / (1 + (-h).exp())
    gate, value = h[..., : h.shape[-1] // 2], h[..., h.shape[-1] // 2 :]
    return gate / (1 + (-gate).exp()) * value


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_feed_forward_follows_its_formula(activation):
    torch.manual_seed(3)
    layer, x = FeedForward(tiny_config(activation=activation)), torch.randn(2, 3, 16)
    h = activate(x @ layer.inner.weight.T + layer.inner.bias, activation)
    assert h.shape[-1] == 24
    torch.testing.assert_close(layer(x), h @ layer.outer.weight.T + layer.outer.bias)


@pytest.mark.parametrize("norm_kind", ["layer", "rms"])
def test_norms_follow_their_formulas(norm_kind):
    torch.manual_seed(3)
    norm, x = make_norm(tiny_config(norm_kind=norm_kind)), 3 * torch.randn(2, 3, 16) + 1
    if norm_kind == "layer":
        x_0 = x - x.mean(-1, keepdim=True)
        expected = x_0 / (x_0.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    else:
        expected = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(norm(x), expected)


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "ff_dropout", "word_dropout", "layer_drop"])
@pytest.mark.parametrize("positions", ["sinusoidal", "relative"])
def test_dropout_of_every_kind_acts_in_training_only(kind, positions):
    model = tiny_model(positions=positions, **{kind: 0.5})
    plain = tiny_model(positions=positions)(SRC, TGT_IN)
    torch.testing.assert_close(model(SRC, TGT_IN), plain)
    model.train()
    torch.manual_seed(7)
    outputs = [model(SRC, TGT_IN) for _ in range(8)]
    assert len({tuple(output.flatten().tolist()) for output in outputs}) > 1
    torch.manual_seed(7)
    assert all(torch.equal(model(SRC, TGT_IN), output) for output in outputs)


def test_dropout_keeps_the_mean():
    model = tiny_model(dropout=0.4).train()
    torch.manual_seed(8)
    dropped = model.src_embedding.drop(torch.ones(400, 500))
    assert dropped.unique().tolist() == [0.0, pytest.approx(1 / 0.6)]
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)


def test_dropped_words_keep_their_position():
    """A hidden token's vector is the position alone."""
    model = tiny_model(word_dropout=0.9).train()
    torch.manual_seed(9)
    embedded = model.src_embedding(SRC)
    positions = model.src_embedding.positions.table[: SRC.shape[1]].expand_as(embedded)
    hidden = (embedded - positions).abs().amax(-1) < 1e-6
    assert 0 < hidden.sum() < hidden.numel()


def test_a_dropped_layer_passes_its_input_on():
    """With almost every layer dropped, some training step is the model without layers: embeddings and last norm."""
    model = tiny_model(layer_drop=0.95).train()
    torch.manual_seed(10)
    expected = model.encoder_norm(model.src_embedding(SRC))
    assert any(torch.equal(model.encode(SRC).states, expected) for _ in range(20))
