"""torch.compile changes no loss, and lengths that vary from batch to batch do not make it compile again and again."""

import random
import shutil
from collections.abc import Callable

import pytest
import torch
from special_ids import PAD, vocabularies
from test_kinds import tiny
from tiny_models import VOCAB, make_sentences, pad, shift, tiny_config
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch._dynamo.utils import counters

from seqtool.model.interface import TranslationModel
from seqtool.model.transformer import Transformer
from seqtool.training.loss import smoothed_cross_entropy

FIRST_AND_THREE_MORE = 4  # graphs: one compilation and at most 3 recompilations


@pytest.fixture(autouse=True)
def _forget_compiled_code():
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def make_batches(n: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return batches (src, tgt_in, tgt_out) whose sentences and lengths, of 2 to 60 tokens, all vary."""
    draw = random.Random(1)
    batches = []
    for seed in range(n):
        n_rows, src_length, tgt_length = draw.randint(2, 6), draw.randint(2, 60), draw.randint(2, 60)
        src = make_sentences([max(1, src_length - row) for row in range(n_rows)], seed)
        tgt = make_sentences([max(1, tgt_length - row) for row in range(n_rows)], seed + 1000)
        batches.append((pad(src), pad(shift(tgt)), pad(tgt)))
    return batches


def train(
    model: TranslationModel, forward: Callable[..., Tensor], batches: list[tuple[Tensor, Tensor, Tensor]]
) -> list[float]:
    """Return the losses of training by `forward`, which is the model itself or its compiled form."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for src, tgt_in, tgt_out in batches:
        real = tgt_out != PAD
        loss, _ = smoothed_cross_entropy(forward(src, tgt_in)[real], model.output_weight, None, tgt_out[real], 0.1)
        (loss / real.sum()).backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item() / int(real.sum()))
    return losses


def make_model(**changes: object) -> Transformer:
    torch.manual_seed(1)
    return Transformer(tiny_config(encoder_layers=1, decoder_layers=1, **changes), vocabularies(VOCAB)).train()


@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="torch.compile needs a C++ compiler")
def test_compiled_training_has_the_same_losses_and_recompiles_at_most_three_times():
    """200 batches through the real compiler."""
    batches = make_batches(200)
    plain, model = make_model(), make_model()
    expected = train(plain, plain, batches)
    losses = train(model, torch.compile(model, dynamic=True), batches)
    assert losses == pytest.approx(expected, rel=1e-3)
    assert 1 <= counters["stats"]["unique_graphs"] <= FIRST_AND_THREE_MORE
    assert not counters["graph_break"]


@pytest.mark.parametrize(("positions", "norm"), [("rotary", "post"), ("relative", "pre")])
def test_other_variants_are_one_graph_too(positions, norm):
    """With dropout on; what is captured is run as it is, for the test's speed."""
    model = make_model(positions=positions, norm=norm, dropout=0.1, attention_dropout=0.1, word_dropout=0.1)
    counter = CompileCounterWithBackend("eager")
    compiled = torch.compile(model, dynamic=True, backend=counter, fullgraph=True)
    losses = train(model, compiled, make_batches(25))
    assert all(0 < loss < 20 for loss in losses)
    assert 1 <= counter.frame_count <= FIRST_AND_THREE_MORE


@pytest.mark.parametrize("changes", [{}, {"input_feeding": True}, {"kind": "decoder"}, {"kind": "conv"}], ids=str)
def test_other_kinds_compile_few_graphs_with_the_same_losses(
    changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is captured is run as it is, for the test's speed; a recurrent network compiles the steps of its cells."""
    counter, compile_ = CompileCounterWithBackend("eager"), torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda function, dynamic: compile_(function, dynamic=dynamic, backend=counter, fullgraph=True)
    )
    plain, model = tiny(**changes).float().train(), tiny(**changes).float().train()
    batches = make_batches(12)
    expected = train(plain, plain, batches)
    assert train(model, model.compile_for_training(), batches) == pytest.approx(expected, rel=1e-5)
    cells = len({module.step for module in model.modules() if hasattr(module, "step")})
    assert 1 <= counter.frame_count <= FIRST_AND_THREE_MORE * max(1, cells)
