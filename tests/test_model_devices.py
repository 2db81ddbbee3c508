"""The model away from float32 on a CPU: the meta device stands in for a GPU, CPU autocast for mixed precision."""

import pytest
import torch
from special_ids import PAD, vocabularies
from tiny_models import (
    ACTIVATIONS,
    NORM_KINDS,
    NORMS,
    POSITIONS,
    VOCAB,
    make_sentences,
    pad,
    shift,
    tiny_config,
    tiny_model,
)
from torch import Tensor

from seqtool.config import TrainConfig
from seqtool.model.transformer import Transformer
from seqtool.training.loss import consistent_cross_entropy, smoothed_cross_entropy
from seqtool.training.optimizer import Updater

SRC, TGT = make_sentences([7, 3, 5]), make_sentences([4, 6, 2], seed=1)
EVERY_DROPOUT = {"dropout": 0.1, "attention_dropout": 0.1, "ff_dropout": 0.1, "word_dropout": 0.1, "layer_drop": 0.3}


def meta_model(**changes: object) -> Transformer:
    torch.manual_seed(1)
    return Transformer(tiny_config(**changes), vocabularies(VOCAB)).to("meta")


def real_positions(tgt: Tensor) -> Tensor:
    """Return the places of real tokens in the flattened targets: found on the host, before anything is sent."""
    return (tgt != PAD).flatten().nonzero().squeeze(1)


def compute_loss(model: Transformer, device: str) -> Tensor:
    tgt_out = pad(TGT)
    real = real_positions(tgt_out)
    targets = tgt_out.flatten()[real].to(device)
    states = model(pad(SRC).to(device), pad(shift(TGT)).to(device))
    return smoothed_cross_entropy(states.flatten(0, 1)[real.to(device)], model.output_weight, None, targets, 0.1)[0]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_training_step_runs_on_the_meta_device(positions, norm):
    """Forward, loss, backward, clipping and update; a host tensor or a look at a value would raise."""
    model = meta_model(positions=positions, norm=norm, **EVERY_DROPOUT).train()
    optimizer = "muon" if norm == "pre" else "adamw"
    updater = Updater(model, TrainConfig(optimizer=optimizer, weight_decay=0.1, ema=0.9), "fp16")
    for step in range(1, 5):  # so that layers are dropped in some of them
        loss = compute_loss(model, "meta")
        found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
        gradients = [torch.zeros_like(p) if g is None else g for g, p in zip(found, model.parameters(), strict=True)]
        result = updater.update(gradients, torch.ones(2, device="meta"), step, 1e-3)
    assert (loss.device.type, result.device.type) == ("meta", "meta")


def test_the_consistency_loss_runs_on_the_meta_device():
    model = meta_model().train()
    src, tgt_in = pad(SRC).to("meta"), pad(shift(TGT)).to("meta")
    first, second = model(src, tgt_in).flatten(0, 1), model(src, tgt_in).flatten(0, 1)
    targets = torch.zeros(len(first), dtype=torch.long, device="meta")
    consistent_cross_entropy(first, second, model.output_weight, None, targets, 0.1, 5.0)[0].backward()
    assert model.output_weight.grad is not None


@pytest.mark.parametrize("positions", POSITIONS)
def test_encoding_and_cached_decoding_run_on_the_meta_device(positions):
    model = meta_model(positions=positions).eval()
    with torch.inference_mode():
        memory = model.encode(pad(SRC).to("meta"))
        cache = model.start_cache(memory)
        model.decode(torch.ones(3, 31, dtype=torch.int64, device="meta"), memory, cache)
        cache.expand(2)
        one = torch.ones(6, 1, dtype=torch.int64, device="meta")
        for _ in range(3):
            logits = model.decode(one, memory, cache)
            cache.reorder(torch.arange(6).flip(0).to("meta"))
        kept = torch.tensor([2, 0])
        cache.select(kept, beams=2)
        read: list[Tensor] = []
        logits = model.project(model.decode_states(one[:4], memory.select(kept.to("meta")), cache, attention=read))
    assert (logits.shape, logits.device.type) == ((4, 1, VOCAB), "meta")
    assert [weights.shape for weights in read] == [(4, 4, 1, 7)] * 2


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "relative"])
def test_longer_tables_are_made_on_the_device(positions):
    model = meta_model(positions=positions, encoder_layers=1)
    assert model.encode(torch.ones(1, 600, dtype=torch.int64, device="meta")).states.shape == (1, 600, 16)


def test_the_meta_device_does_catch_host_tensors_and_looks_at_values():
    """Else the tests above would prove nothing."""
    states = meta_model().encode(pad(SRC).to("meta")).states
    with pytest.raises(RuntimeError):
        states + torch.ones(16)
    with pytest.raises(RuntimeError):
        states.sum().item()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("norm_kind", NORM_KINDS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_bf16_autocast_gives_nearly_the_loss_of_float32(positions, norm, norm_kind, activation):
    model = tiny_model(positions=positions, norm=norm, norm_kind=norm_kind, activation=activation).train()
    expected = compute_loss(model, "cpu")
    with torch.autocast("cpu", torch.bfloat16):
        loss = compute_loss(model, "cpu")
    loss.backward()
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=0.02, atol=0)
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.dtype == torch.float32
        assert weight.grad.isfinite().all(), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("positions", POSITIONS)
def test_every_dropout_works_under_autocast(positions, dtype):
    torch.manual_seed(2)
    model = tiny_model(positions=positions, **EVERY_DROPOUT).train()
    with torch.autocast("cpu", dtype):
        loss = compute_loss(model, "cpu")
    loss.backward()
    assert loss.isfinite()
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_cached_decoding_under_autocast_equals_full_decoding(positions, norm):
    model = tiny_model(positions=positions, norm=norm)
    tgt_in = pad(shift(make_sentences([6, 6, 6], seed=1)))
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        memory = model.encode(pad(SRC))
        cache = model.start_cache(memory)
        steps = [model.decode(piece, memory, cache) for piece in tgt_in.split([2, 1, 3], dim=1)]
        full = model.decode(tgt_in, memory)
    torch.testing.assert_close(torch.cat(steps, dim=1), full, rtol=0.05, atol=0.1)
