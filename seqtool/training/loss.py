"""Label-smoothed cross-entropy that never holds more than a slice of the logits.

Legend: N real target tokens (padding is left out before), C of them in one slice, D width, V vocabulary.

The logits of a large vocabulary are the largest tensor of training by far. Here a slice of them is computed, turned
into its loss and its gradient, and given up again before the next slice is made.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

# Logits in one slice. On a CPU a slice should stay in the cache; a GPU wants enough work to fill it.
SLICE_ON_CPU = 2**20
SLICE_ON_GPU = 2**25


def smoothed_cross_entropy(
    states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the smoothed loss and the plain negative log-likelihood, each summed over the N tokens.

    states (N, D), weight (V, D), bias (V) or None, targets (N). The loss is (1 - smoothing) * nll + smoothing times
    the mean over the vocabulary of -log p, as in torch.nn.functional.cross_entropy. Only the first result has a
    gradient.
    """
    states, weight = _in_autocast_type(states, weight)
    if not torch.is_grad_enabled():
        states, weight = states.detach(), weight.detach()  # else a slice's gradient is computed even if never used
        bias = None if bias is None else bias.detach()
    arguments = (states, weight, bias, targets, smoothing)
    with _without_autocast(states.device.type):
        return _SlicedCrossEntropy.apply(*arguments)  # type: ignore[no-untyped-call, no-any-return]


def _in_autocast_type(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors in the type of the autocast that is on, or as they are."""
    device = tensors[0].device.type
    if _autocast_is_on(device):
        return tuple(tensor.to(torch.get_autocast_dtype(device)) for tensor in tensors)
    return tensors


def _autocast_is_on(device_type: str) -> bool:
    return torch.amp.is_autocast_available(device_type) and torch.is_autocast_enabled(device_type)


def _without_autocast(device_type: str) -> AbstractContextManager[Any]:
    """Return a context in which each product is computed in the type that its factors have.

    The sums over all tokens are in float32; autocast would bring them to 16 bits, which float16 does not hold.
    """
    return torch.autocast(device_type, enabled=False) if _autocast_is_on(device_type) else nullcontext()


def tokens_in_slice(vocab: int, device_type: str) -> int:
    """Return how many tokens' logits fit in one slice."""
    return max(1, (SLICE_ON_CPU if device_type == "cpu" else SLICE_ON_GPU) // vocab)


class _SlicedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        size = tokens_in_slice(weight.shape[0], states.device.type)
        wants_gradient = any(ctx.needs_input_grad[:3])
        state_grad = torch.empty_like(states) if wants_gradient else None
        weight_grad = torch.zeros(weight.shape, dtype=torch.float32, device=weight.device) if wants_gradient else None
        bias_grad = torch.zeros(len(bias), device=bias.device) if wants_gradient and bias is not None else None
        nll = torch.zeros((), dtype=torch.float32, device=states.device)
        norms = torch.zeros_like(nll)  # the sum over all tokens of log(sum(exp(logits)))
        for start in range(0, states.shape[0], size):
            part = slice(start, start + size)
            logits = _logits_of(states[part], weight, bias)  # (C, V)
            highest, wanted = logits.amax(-1), logits.gather(1, targets[part, None]).squeeze(1)  # (C,)
            probs = logits.softmax(-1)
            norm = highest - probs.amax(-1).log()
            norms += norm.sum()
            nll += (norm - wanted).sum()
            if state_grad is not None and weight_grad is not None:
                grad = _subtract_targets(probs, targets[part], smoothing).to(states.dtype)
                torch.mm(grad, weight, out=state_grad[part])
                if bias_grad is not None:
                    bias_grad += grad.float().sum(0)
                if grad.dtype == torch.float32:
                    weight_grad.addmm_(grad.T, states[part])
                else:
                    weight_grad += grad.T @ states[part]
        if state_grad is not None and weight_grad is not None:
            if smoothing:
                # The gradient of the mean of -log p is p - 1/V; the constant part, the same for all logits, is
                # added here once instead of being subtracted from every slice.
                state_grad -= (smoothing * weight.float().mean(0)).to(state_grad.dtype)
                weight_grad -= states.float().sum(0) * (smoothing / weight.shape[0])
                if bias_grad is not None:
                    bias_grad -= len(states) * smoothing / weight.shape[0]
            ctx.save_for_backward(state_grad, weight_grad.to(weight.dtype), bias_grad)
        loss = (1 - smoothing) * nll
        if smoothing:
            all_logits = states.float().sum(0) @ weight.float().sum(0)  # their sum, without looking at each again
            if bias is not None:
                all_logits = all_logits + len(states) * bias.float().sum()
            loss += smoothing * (norms - all_logits / weight.shape[0])
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        state_grad, weight_grad, bias_grad = ctx.saved_tensors
        scaled = None if bias_grad is None else bias_grad * grads[0]
        return state_grad * grads[0], weight_grad * grads[0], scaled, None, None


def _logits_of(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the logits (C, V) of one slice."""
    logits = (states @ weight.T).float()
    return logits if bias is None else logits.add_(bias)


def _subtract_targets(probs: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Turn probabilities (C, V) in place into p - (1 - smoothing) * onehot(target)."""
    return probs.scatter_add_(1, targets[:, None], probs.new_full((len(targets), 1), smoothing - 1.0))


def consistent_cross_entropy(
    first: Tensor,
    second: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    strength: float,
) -> tuple[Tensor, Tensor]:
    """Return R-Drop's loss (Liang et al. 2021) and the plain negative log-likelihood, each summed over the N tokens.

    first and second (N, D) are the states of two passes with different dropout. The loss is the mean of their
    smoothed cross-entropies, plus `strength` times the mean of the two divergences KL(p, q) and KL(q, p).
    """
    first, second, weight = _in_autocast_type(first, second, weight)
    arguments = (first, second, weight, bias, targets, smoothing, strength)
    with _without_autocast(first.device.type):
        return _SlicedConsistency.apply(*arguments)  # type: ignore[no-untyped-call, no-any-return]


class _SlicedConsistency(torch.autograd.Function):
    """With d = log p - log q, the divergence has the gradient (p * (d - KL(p, q)) + p - q) / 2 at the logits of p."""

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        strength: float,
    ) -> tuple[Tensor, Tensor]:
        size = tokens_in_slice(weight.shape[0], first.device.type)
        grads = torch.empty_like(first), torch.empty_like(second)
        weight_grad = torch.zeros(weight.shape, dtype=torch.float32, device=weight.device)
        bias_grad = None if bias is None else torch.zeros(len(bias), device=bias.device)
        nll, norms, divergence = (torch.zeros((), dtype=torch.float32, device=first.device) for _ in range(3))
        for start in range(0, first.shape[0], size):
            part = slice(start, start + size)
            wanted = targets[part, None]  # (C, 1)
            logits = [_logits_of(states[part], weight, bias) for states in (first, second)]  # (C, V)
            logs = [one.log_softmax(-1) for one in logits]
            probs = [one.exp() for one in logs]
            apart = logs[0] - logs[1]
            for this, other, sign, states, grad in zip(
                (0, 1), (1, 0), (1.0, -1.0), (first, second), grads, strict=True
            ):
                norms += (logits[this][:, 0] - logs[this][:, 0]).sum() / 2
                nll -= logs[this].gather(1, wanted).sum() / 2
                kl = sign * (probs[this] * apart).sum(-1, keepdim=True)
                divergence += kl.sum() / 2
                slope = apart.mul(sign * strength).sub_(strength * kl).add_(1 + strength).mul_(probs[this])
                slope.sub_(probs[other], alpha=strength)
                slope = _subtract_targets(slope, targets[part], smoothing).mul_(0.5).to(states.dtype)
                torch.mm(slope, weight, out=grad[part])
                weight_grad += slope.T @ states[part]
                if bias_grad is not None:
                    bias_grad += slope.float().sum(0)
        both = (first.float().sum(0) + second.float().sum(0)) / 2
        if smoothing:
            for grad in grads:
                grad -= (smoothing / 2 * weight.float().mean(0)).to(grad.dtype)
            weight_grad -= both * (smoothing / weight.shape[0])
            if bias_grad is not None:
                bias_grad -= len(first) * smoothing / weight.shape[0]
        ctx.save_for_backward(*grads, weight_grad.to(weight.dtype), bias_grad)
        loss = (1 - smoothing) * nll + strength * divergence
        if smoothing:
            mean_logits = both @ weight.float().mean(0)  # summed over the tokens
            if bias is not None:
                mean_logits = mean_logits + len(first) * bias.float().mean()
            loss += smoothing * (norms - mean_logits)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        scaled = (None if saved is None else saved * grads[0] for saved in ctx.saved_tensors)
        return (*scaled, None, None, None)
