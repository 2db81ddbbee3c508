"""What every kind of model must do, each with several settings: one set of tests, and no copies."""

import math
import random
from dataclasses import fields
from typing import Any

import pytest
import torch
from special_ids import BOS, EOS, PAD, vocabularies
from torch import Tensor

from seqtool.config.model import SCORES, model_section
from seqtool.model.interface import TranslationModel
from seqtool.model.kinds import build_model, kind_of
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.engines.torch_engine import TorchEngine

VOCAB = 37
SIZES = {"d_model": 16, "d_ff": 24, "n_heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
SIZES |= {"max_positions": 40}


def tiny(kind: str = "rnn", **changes: Any) -> TranslationModel:
    """Return a tiny model in float64 whose every weight differs from its neutral value."""
    torch.manual_seed(1)
    section = model_section(kind)
    known = {field.name for field in fields(section)}
    values = {name: value for name, value in SIZES.items() if name in known} | changes
    model = build_model(section(kind=kind, **values), vocabularies(VOCAB)).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
    return model


VARIANTS = [
    {"kind": "transformer"},
    {"kind": "transformer", "positions": "relative", "norm": "post"},
    {"kind": "decoder"},
    {"kind": "decoder", "positions": "sinusoidal", "norm": "post", "norm_kind": "rms"},
    {"kind": "decoder", "positions": "learned", "prefix_attention": False, "activation": "swiglu"},
    {"kind": "decoder", "prefix_attention": False, "source_loss": 0.5},
    {"kind": "conv"},
    {"kind": "conv", "kernel": 4, "share_embeddings": False},
    {"attention": "none"},
    {"attention": "none", "reverse_source": True, "bidirectional": False},
    {"attention": "additive", "input_feeding": True},
    {"attention": "dot", "cell": "gru"},
    {"attention": "general", "bidirectional": False, "residual": False},
    {"attention": "scaled", "cell": "gru", "input_feeding": True},
    {"attention": "location"},
    {"attention": "cosine", "share_embeddings": False},
]


def pad(rows: list[list[int]]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_padding_and_cached_decoding_change_nothing(changes: dict[str, Any]) -> None:
    model = tiny(**changes)
    src = pad([[5, 6, 7, 8, EOS], [9, EOS], [10, 11, EOS]])
    tgt = torch.tensor([[BOS, 5, 6, 7], [BOS, 8, 9, 10], [BOS, 11, 12, 13]])
    with torch.inference_mode():
        memory = model.encode(src)
        full = model.decode(tgt, memory)
        alone = [
            model.decode(tgt[i : i + 1], model.encode(src[i : i + 1, : int((src[i] != PAD).sum())])) for i in (0, 1, 2)
        ]
        torch.testing.assert_close(torch.cat(alone), full)
        cache = model.start_cache(memory)
        steps = [model.decode(tgt[:, i : i + 1], memory, cache) for i in range(2)]
        steps.append(model.decode(tgt[:, 2:], memory, cache))
        torch.testing.assert_close(torch.cat(steps, 1), full)
        assert cache.length == 4


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_beams_are_expanded_exchanged_and_dropped(changes: dict[str, Any]) -> None:
    model = tiny(**changes)
    src = pad([[5, 6, 7, 8, EOS], [9, EOS], [10, 11, EOS]])
    with torch.inference_mode():
        memory = model.encode(src)
        cache = model.start_cache(memory)
        model.decode(torch.full((3, 1), BOS), memory, cache)
        cache.expand(2)
        model.decode(torch.tensor([[5], [6], [7], [8], [9], [10]]), memory, cache)
        cache.reorder(torch.tensor([1, 1, 3, 2, 4, 4]))
        kept = torch.tensor([0, 2])
        memory = memory.select(kept)
        cache.select(kept, 2)
        found = model.decode(torch.tensor([[11], [12], [13], [14]]), memory, cache)
        pasts = [[BOS, 6, 11], [BOS, 6, 12], [BOS, 9, 13], [BOS, 9, 14]]
        expected = model.decode(torch.tensor(pasts), memory)[:, -1:]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_attention_sums_to_one_over_the_real_tokens(changes: dict[str, Any]) -> None:
    model = tiny(**changes)
    src, tgt = pad([[5, 6, 7, EOS], [9, EOS]]), torch.tensor([[BOS, 5, 6], [BOS, 7, 8]])
    weights = model.attention_weights(src, tgt)
    assert bool(weights) == model.has_attention == (changes.get("attention") != "none")
    for w in weights:
        assert (w.shape[0], *w.shape[2:]) == (2, 3, 4)
        torch.testing.assert_close(w.sum(-1), torch.ones_like(w[..., 0]))
        assert w[1, :, :, 2:].abs().max() == 0


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_parameters_are_counted_by_the_formula(changes: dict[str, Any]) -> None:
    model = tiny(**changes)
    counted = kind_of(model.config).count_parameters(model.config, VOCAB, VOCAB)
    assert counted.total == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_no_target_token_knows_a_later_one_and_every_weight_learns(changes: dict[str, Any]) -> None:
    model = tiny(**changes)
    src, tgt = pad([[5, 6, 7, EOS]]), torch.tensor([[BOS, 5, 6, 7]])
    other = tgt.clone()
    other[0, 3] = 9
    memory = model.encode(src)
    torch.testing.assert_close(model.decode(other, memory)[:, :3], model.decode(tgt, memory)[:, :3])
    assert not torch.allclose(model.decode(other, memory)[:, 3], model.decode(tgt, memory)[:, 3])
    model(src, tgt).square().sum().backward()
    weights = dict(model.named_parameters())
    assert [name for name, weight in weights.items() if weight.grad is None] == []


@pytest.mark.parametrize("changes", [one for one in VARIANTS if one.get("positions") != "relative"], ids=str)
def test_the_floating_point_operations_are_those_that_torch_counts(changes: dict[str, Any]) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    model = tiny(**changes).float()
    src, tgt = torch.full((5, 6), 5), torch.full((5, 7), 6)
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model.project(model(src, tgt))
    expected = 5 * kind_of(model.config).count_forward_flops(model.config, VOCAB, 6, 7)
    assert counter.get_total_flops() == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_muon_takes_whole_matrices(changes: dict[str, Any]) -> None:
    model = tiny(**changes)
    weights = dict(model.named_parameters())
    matrices = model.muon_matrices()
    assert matrices
    for name, parts in matrices.items():
        assert weights[name].dim() == 2
        assert len(weights[name]) % parts == 0
        assert ".tokens." not in name


def make_engine(*models: TranslationModel) -> TorchEngine:
    return TorchEngine([model.float() for model in models], "cpu", batch_tokens=256, threads=2)


def random_sources(n: int, seed: int = 0) -> list[list[int]]:
    draw = random.Random(seed)
    return [[draw.randrange(4, VOCAB) for _ in range(draw.randint(1, 30))] for _ in range(n)]


KINDS: list[dict[str, Any]] = [{"kind": "transformer"}, {"kind": "decoder"}, {"kind": "conv"}]
KINDS += [{"attention": score} for score in SCORES]
KINDS += [{"attention": "none", "cell": "gru"}, {"attention": "additive", "input_feeding": True}]


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_what_else_is_in_a_batch_changes_no_translation(changes: dict[str, Any]) -> None:
    engine = make_engine(tiny(d_model=64, **changes))  # whole vectors, as of any model that is used
    sources, options = random_sources(24), SearchOptions(beam=3, n_best=2, max_length_ratio=0.5)
    together = engine.translate(sources, options)
    for source, found in zip(sources[::5], together[::5], strict=True):
        assert engine.translate([source], options) == [found]
    mixed = engine.translate(sources[::-1] + random_sources(7, seed=1), options)
    assert mixed[:24] == together[::-1]


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_the_score_of_a_translation_is_that_of_the_search(changes: dict[str, Any]) -> None:
    engine = make_engine(tiny(**changes))
    sources, options = random_sources(6), SearchOptions(beam=4, n_best=2, max_length_ratio=0.5)
    for source, found in zip(sources, engine.translate(sources, options), strict=True):
        scores = engine.score([source] * len(found), [one.ids for one in found])
        for one, tokens in zip(found, scores, strict=True):
            assert sum(tokens) == pytest.approx(one.log_prob, abs=1e-4)


def test_models_of_different_kinds_answer_as_one() -> None:
    models = [tiny(), tiny(kind="decoder"), tiny(kind="conv"), tiny(attention="none")]
    engine, sources = make_engine(*models), random_sources(5)
    options = SearchOptions(beam=3, max_length_ratio=0.5, alignment=True)
    found = engine.translate(sources, options)
    targets = [ranked[0].ids for ranked in found]
    alone = [make_engine(model).score(sources, targets) for model in models]
    together = engine.score(sources, targets)
    for row, tokens in enumerate(together):
        for place, log_prob in enumerate(tokens):
            mean = sum(math.exp(scores[row][place]) for scores in alone) / len(models)
            assert log_prob == pytest.approx(math.log(mean), abs=1e-4)
    assert all(len(ranked[0].alignment or []) == len(ranked[0].ids) for ranked in found)
