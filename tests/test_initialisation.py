"""The starting weights: trainable from 2 to 24 layers in low precision, and of the sizes their docstring promises."""

import math

import pytest
import torch
from special_ids import PAD, vocabularies
from tiny_models import NORMS, POSITIONS, VOCAB, make_sentences, pad, shift, tiny_config
from torch import Tensor

from seqtool.model.transformer import Transformer
from seqtool.training.loss import smoothed_cross_entropy

DEPTHS = (2, 24)
SRC, TGT = make_sentences([9, 6, 8, 7]), make_sentences([7, 9, 6, 8], seed=1)


def fresh_model(layers: int, **changes: object) -> Transformer:
    torch.manual_seed(1)
    shape = {"d_model": 32, "d_ff": 64, "encoder_layers": layers, "decoder_layers": layers}
    return Transformer(tiny_config(**shape, **changes), vocabularies(VOCAB)).train()


def mean_loss(model: Transformer) -> Tensor:
    tgt_out = pad(TGT)
    real = tgt_out != PAD
    states = model(pad(SRC), pad(shift(TGT)))[real]
    return smoothed_cross_entropy(states, model.output_weight, None, tgt_out[real], 0.1)[0] / real.sum()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("layers", DEPTHS)
def test_a_handful_of_steps_in_low_precision_lowers_the_loss(layers, norm, dtype):
    model = fresh_model(layers, norm=norm)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
    losses = []
    for _ in range(8):
        with torch.autocast("cpu", dtype):
            loss = mean_loss(model)
        loss.backward()
        assert all(weight.grad.isfinite().all() for weight in model.parameters())
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert all(map(math.isfinite, losses))
    assert losses[-1] < losses[0] - 0.2


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("norm", NORMS)
def test_a_fresh_model_is_about_as_wrong_at_any_depth(norm, positions):
    """A uniform guess costs ln V; a little more, since the output's embeddings still know the input's token."""
    with torch.no_grad():
        shallow, deep = (mean_loss(fresh_model(layers, norm=norm, positions=positions)).item() for layers in DEPTHS)
    assert math.log(VOCAB) < shallow < math.log(VOCAB) + 2.5
    assert math.log(VOCAB) < deep < math.log(VOCAB) + 2.5


def test_embeddings_have_unit_variance_on_their_way_in():
    model = fresh_model(2)
    scaled = model.output_weight.detach() * model.src_embedding.scale
    assert scaled.std().item() == pytest.approx(1.0, abs=0.1)
    assert scaled.mean().item() == pytest.approx(0.0, abs=0.1)


def test_the_sum_of_all_residual_branches_does_not_grow_with_the_depth():
    sizes = {}
    for layers in DEPTHS:
        model = fresh_model(layers)
        with torch.no_grad():
            embedded = model.src_embedding(pad(SRC))
            model.encoder_norm = torch.nn.Identity()
            sizes[layers] = (model.encode(pad(SRC)).states - embedded).std().item()
    assert sizes[24] < 2 * sizes[2]
    assert sizes[24] < 2


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_reach_the_first_layer_of_a_deep_stack(norm):
    model = fresh_model(24, norm=norm)
    mean_loss(model).backward()
    for stack in (model.encoder, model.decoder):
        norms = [layer.feed_forward.inner.weight.grad.norm().item() for layer in stack]
        assert max(norms) < 30 * min(norms)


def test_query_key_and_value_start_alike():
    """They are drawn as three square matrices, not as one of three times the height: Xavier's bound is sqrt(6 / 2D)."""
    for part in fresh_model(2).encoder[0].self_attention.qkv.weight.detach().chunk(3):
        assert part.abs().max().item() == pytest.approx(math.sqrt(6 / 64), rel=0.02)
