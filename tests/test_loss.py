"""The sliced loss against hand-worked values and torch's own cross-entropy, in value, gradients and memory."""

import json
import math
import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from seqtool.training import loss as loss_module
from seqtool.training.loss import consistent_cross_entropy, smoothed_cross_entropy, tokens_in_slice


def make_case(n: int, width: int, vocab: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return states (n, width) and weights (vocab, width) that record gradients, and targets (n)."""
    torch.manual_seed(seed)
    states, weight = torch.randn(n, width), torch.randn(vocab, width) / math.sqrt(width)
    return states.requires_grad_(), weight.requires_grad_(), torch.randint(vocab, (n,))


def naive(states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    return F.cross_entropy(states @ weight.T, targets, reduction="sum", label_smoothing=smoothing)


@pytest.fixture(params=[1, 3, 10**6], ids=lambda n: f"{n}_in_a_slice")
def slices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of one token, of a few, and one slice for all; the vocabulary of these tests has 11 words."""
    monkeypatch.setattr(loss_module, "SLICE_ON_CPU", request.param * 11)


def test_the_loss_worked_out_by_hand():
    # Weights are the identity, so the states are the logits: ln 6, ln 3, ln 1 have the softmax 6, 3, 1 over 10.
    #   -ln p = -ln .6 = .510826, -ln .3 = 1.203973, -ln .1 = 2.302585; their mean is 4.017384 / 3 = 1.339128.
    # Target 1 with smoothing .1: .9 * 1.203973 + .1 * 1.339128 = 1.083576 + .133913 = 1.217488.
    # A second token with equal logits has -ln p = ln 3 = 1.098612 everywhere, smoothed or not.
    states = torch.tensor([[math.log(6), math.log(3), 0.0], [0.0, 0.0, 0.0]])
    loss, nll = smoothed_cross_entropy(states, torch.eye(3), None, torch.tensor([1, 2]), 0.1)
    assert loss.item() == pytest.approx(1.217488 + 1.098612, abs=1e-5)
    assert nll.item() == pytest.approx(1.203973 + 1.098612, abs=1e-5)


def test_the_gradient_worked_out_by_hand():
    # The gradient of the smoothed loss in the logits is p - ((1 - .1) onehot + .1 / 3):
    #   (.6, .3, .1) - (.033333, .933333, .033333) = (.566667, -.633333, .066667).
    states = torch.tensor([[math.log(6), math.log(3), 0.0]], requires_grad=True)
    smoothed_cross_entropy(states, torch.eye(3), None, torch.tensor([1]), 0.1)[0].backward()
    torch.testing.assert_close(states.grad, torch.tensor([[0.566667, -0.633333, 0.066667]]), atol=1e-5, rtol=0)


@pytest.mark.usefixtures("slices")
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("n", [1, 7])
def test_loss_and_gradients_equal_those_of_torch(n, smoothing):
    states, weight, targets = make_case(n, 5, 11)
    expected = naive(states, weight, targets, smoothing)
    expected_grads = torch.autograd.grad(expected * 0.25, (states, weight))
    loss, nll = smoothed_cross_entropy(states, weight, None, targets, smoothing)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, naive(states, weight, targets, 0.0))
    torch.testing.assert_close(torch.autograd.grad(loss * 0.25, (states, weight)), expected_grads)


def test_a_large_vocabulary_in_ordinary_slices():
    """Against float64: torch's own float32 sums over this many words are off by more than ours."""
    vocab = 32_000
    states, weight, targets = make_case(2 * tokens_in_slice(vocab, "cpu") + 1, 8, vocab)
    exact_inputs = [tensor.detach().double().requires_grad_() for tensor in (states, weight)]
    expected = naive(*exact_inputs, targets, 0.1)
    expected_grads = [grad.float() for grad in torch.autograd.grad(expected, exact_inputs)]
    loss, _ = smoothed_cross_entropy(states, weight, None, targets, 0.1)
    torch.testing.assert_close(loss, expected.float())
    for grad, other in zip(torch.autograd.grad(loss, (states, weight)), expected_grads, strict=True):
        torch.testing.assert_close(grad, other, atol=2e-5, rtol=1e-4)


def test_no_tokens_give_no_loss_and_no_gradient():
    states, weight, targets = make_case(0, 5, 11)
    loss, nll = smoothed_cross_entropy(states, weight, None, targets, 0.1)
    loss.backward()
    assert loss.item() == nll.item() == 0.0
    assert weight.grad.count_nonzero() == 0
    assert states.grad.shape == (0, 5)


def test_extreme_logits_stay_finite():
    states = torch.tensor([[1000.0, 0.0], [0.0, 1000.0]], requires_grad=True)
    loss, nll = smoothed_cross_entropy(states, torch.eye(2), None, torch.tensor([0, 0]), 0.1)
    loss.backward()
    # The right token costs 0, the wrong one 1000; smoothed, .05 * 1000 for the first and .95 * 1000 for the second.
    assert (nll.item(), loss.item()) == (pytest.approx(1000.0), pytest.approx(1000.0))
    assert states.grad.isfinite().all()


def test_the_log_likelihood_that_is_reported_has_no_gradient():
    states, weight, targets = make_case(4, 5, 11)
    loss, nll = smoothed_cross_entropy(states, weight, None, targets, 0.1)
    assert loss.requires_grad
    assert not nll.requires_grad


def test_validation_computes_no_gradients():
    """Without gradients the work is one matrix product of n by vocabulary, 2 * 7 * 5 * 11 operations."""
    states, weight, targets = make_case(7, 5, 11)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        smoothed_cross_entropy(states, weight, None, targets, 0.1)
    assert counter.get_total_flops() == 2 * 7 * 5 * 11


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_gradients_stay_near_the_exact_ones(dtype):
    """Under autocast, products are in low precision; a large vocabulary must not lose its many small gradients."""
    states, weight, targets = make_case(64, 32, 4000)
    exact = torch.autograd.grad(naive(states, weight, targets, 0.1), (states, weight))
    with torch.autocast("cpu", dtype):
        loss, _ = smoothed_cross_entropy(states, weight, None, targets, 0.1)
    assert loss.dtype == torch.float32
    rough = torch.autograd.grad(loss, (states, weight))
    for one, other in zip(rough, exact, strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.02 * other.norm()
    untargeted = torch.ones(4000, dtype=torch.bool).index_fill(0, targets, False)
    assert (rough[1] - exact[1])[untargeted].norm() < 0.05 * exact[1][untargeted].norm()


@pytest.mark.usefixtures("slices")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_two_passes_is_their_mean_plus_the_mean_of_both_divergences(smoothing):
    first, weight, targets = make_case(7, 5, 11)
    second, _, _ = make_case(7, 5, 11, seed=1)
    logits = [states @ weight.T for states in (first, second)]
    p, q = (torch.log_softmax(one, -1) for one in logits)
    apart = (F.kl_div(p, q, reduction="sum", log_target=True) + F.kl_div(q, p, reduction="sum", log_target=True)) / 2
    plain = [F.cross_entropy(one, targets, reduction="sum", label_smoothing=smoothing) for one in logits]
    expected = sum(plain) / 2 + 5.0 * apart
    expected_grads = torch.autograd.grad(expected * 0.5, (first, second, weight))
    loss, nll = consistent_cross_entropy(first, second, weight, None, targets, smoothing, 5.0)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, sum(F.cross_entropy(one, targets, reduction="sum") for one in logits) / 2)
    torch.testing.assert_close(torch.autograd.grad(loss * 0.5, (first, second, weight)), expected_grads)


MEASURE = """
import json, pathlib, resource, sys
import torch
import torch.nn.functional as F
from seqtool.training.loss import smoothed_cross_entropy

def peak():  # bytes
    status = pathlib.Path("/proc/self/status")
    if not status.exists():  # macOS
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Not ru_maxrss here: on Linux that begins with the memory of the process that started this one.
    return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024

def naive(states, weight, targets):
    return F.cross_entropy(states @ weight.T, targets, reduction="sum", label_smoothing=0.1)

def sliced(states, weight, targets):
    return smoothed_cross_entropy(states, weight, None, targets, 0.1)[0]

def run(way, n, vocab):
    torch.manual_seed(1)
    states, weight = torch.randn(n, 64, requires_grad=True), (torch.randn(vocab, 64) / 8).requires_grad_()
    targets, before = torch.randint(vocab, (n,)), peak()
    loss = way(states, weight, targets)
    loss.backward()
    extra = peak() - before
    directions = torch.randn_like(states), torch.randn_like(weight)
    grads = [(states.grad * directions[0]).sum().item(), (weight.grad * directions[1]).sum().item()]
    return {"extra": extra, "loss": loss.item(), "grads": grads}

ways = {"naive": naive, "sliced": sliced}
for way in ways.values():
    run(way, 64, 1000)  # what torch loads on first use is not the loss's memory
print(json.dumps([run(ways[name], int(n), 32000) for name, n in (argument.split("=") for argument in sys.argv[1:])]))
"""


def measure(**n_tokens: int) -> list[dict[str, Any]]:
    """Return each way's loss, random projections of its gradients and the memory it adds to what there was at most."""
    command = [sys.executable, "-c", MEASURE, *(f"{way}={n}" for way, n in n_tokens.items())]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_a_large_loss_takes_under_a_quarter_of_the_naive_memory():
    """8,192 tokens and 32,000 words, forward and backward.

    The naive way is measured at an eighth of the tokens, to be quick: it holds whole tensors of logits, so its memory
    grows in proportion.
    """
    (sliced,), (naive_small, sliced_small) = measure(sliced=8192), measure(naive=1024, sliced=1024)
    assert naive_small["extra"] > 2 * 1024 * 32_000 * 4  # the logits and at least one more tensor like them
    assert sliced["extra"] < 8 * naive_small["extra"] / 4
    assert sliced_small["loss"] == pytest.approx(naive_small["loss"], rel=1e-5)
    assert sliced_small["grads"] == pytest.approx(naive_small["grads"], rel=1e-3)


@pytest.mark.usefixtures("slices")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_an_output_bias_and_its_gradient_equal_those_of_torch(smoothing):
    states, weight, targets = make_case(7, 5, 11)
    bias = torch.randn(11, generator=torch.Generator().manual_seed(5)).requires_grad_()
    inputs = (states, weight, bias)
    logits = torch.nn.functional.linear(states, weight, bias)
    expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    loss, nll = smoothed_cross_entropy(*inputs, targets, smoothing)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, torch.nn.functional.cross_entropy(logits, targets, reduction="sum"))
    torch.testing.assert_close(torch.autograd.grad(loss, inputs), torch.autograd.grad(expected, inputs))


@pytest.mark.usefixtures("slices")
def test_the_consistency_loss_has_the_gradient_of_its_formula_with_an_output_bias():
    first, weight, targets = make_case(7, 5, 11)
    second = (first.detach() + 0.3 * torch.randn(7, 5, generator=torch.Generator().manual_seed(6))).requires_grad_()
    bias = torch.randn(11, generator=torch.Generator().manual_seed(5)).requires_grad_()
    inputs = (first, second, weight, bias)
    logits = [torch.nn.functional.linear(states, weight, bias) for states in (first, second)]
    logs = [one.log_softmax(-1) for one in logits]
    losses = [torch.nn.functional.cross_entropy(one, targets, label_smoothing=0.1, reduction="sum") for one in logits]
    divergences = [(a.exp() * (a - b)).sum() for a, b in (logs, logs[::-1])]
    expected = sum(losses) / 2 + 5.0 * sum(divergences) / 2
    loss, _ = consistent_cross_entropy(*inputs, targets, 0.1, 5.0)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, inputs), torch.autograd.grad(expected, inputs))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sums_over_many_tokens_are_computed_in_float32_under_autocast(dtype: torch.dtype) -> None:
    """float16 ends at 65,504, which the sum of 40,000 states of 4 exceeds; bfloat16 would keep three digits."""
    torch.manual_seed(1)
    states, weight = 4 + 0.1 * torch.randn(40_000, 8), torch.randn(16, 8).to(dtype).float()
    targets = torch.randint(16, (40_000,))
    rounded = states.to(dtype).float()
    expected = F.cross_entropy((rounded @ weight.T).to(dtype).float(), targets, reduction="sum", label_smoothing=0.1)
    with torch.autocast("cpu", dtype):
        loss, _ = smoothed_cross_entropy(states, weight, None, targets, 0.1)
        both, _ = consistent_cross_entropy(states, states, weight, None, targets, 0.1, 1.0)
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=0)
    torch.testing.assert_close(both, expected, rtol=1e-4, atol=0)
