"""Label-smoothed cross-entropy that never holds more than a slice of the logits.

Legend: N real target tokens (padding is left out before), C of them in one slice, D width, V vocabulary.

The logits of a large vocabulary are the largest tensor of training by far. Here a slice of them is computed, turned
into its loss and its gradient, and given up again before the next slice is made.
"""

from typing import Any

import torch
from torch import Tensor

# Logits in one slice. On a CPU a slice should stay in the cache; a GPU wants enough work to fill it.
SLICE_ON_CPU = 2**20
SLICE_ON_GPU = 2**25


def smoothed_cross_entropy(states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return the smoothed loss and the plain negative log-likelihood, each summed over the N tokens.

    states (N, D), weight (V, D), targets (N). The loss is (1 - smoothing) * nll + smoothing * the mean over the
    vocabulary of -log p, as in torch.nn.functional.cross_entropy. Only the first result has a gradient.
    """
    device = states.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        states, weight = states.to(dtype), weight.to(dtype)
    if not torch.is_grad_enabled():
        states, weight = states.detach(), weight.detach()  # else a slice's gradient is computed even if never used
    return _SlicedCrossEntropy.apply(states, weight, targets, smoothing)  # type: ignore[no-untyped-call, no-any-return]


def tokens_in_slice(vocab: int, device_type: str) -> int:
    """Return how many tokens' logits fit in one slice."""
    return max(1, (SLICE_ON_CPU if device_type == "cpu" else SLICE_ON_GPU) // vocab)


class _SlicedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        size = tokens_in_slice(weight.shape[0], states.device.type)
        wants_gradient = any(ctx.needs_input_grad[:2])
        state_grad = torch.empty_like(states) if wants_gradient else None
        weight_grad = torch.zeros(weight.shape, dtype=torch.float32, device=weight.device) if wants_gradient else None
        nll = torch.zeros((), dtype=torch.float32, device=states.device)
        norms = torch.zeros_like(nll)  # the sum over all tokens of log(sum(exp(logits)))
        for start in range(0, states.shape[0], size):
            part = slice(start, start + size)
            logits = (states[part] @ weight.T).float()  # (C, V)
            highest, wanted = logits.amax(-1), logits.gather(1, targets[part, None]).squeeze(1)  # (C,)
            probs = logits.softmax(-1)
            norm = highest - probs.amax(-1).log()
            norms += norm.sum()
            nll += (norm - wanted).sum()
            if state_grad is not None and weight_grad is not None:
                grad = _subtract_targets(probs, targets[part], smoothing).to(states.dtype)
                torch.mm(grad, weight, out=state_grad[part])
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
            ctx.save_for_backward(state_grad, weight_grad.to(weight.dtype))
        loss = (1 - smoothing) * nll
        if smoothing:
            all_logits = states.float().sum(0) @ weight.float().sum(0)  # their sum, without looking at each again
            loss += smoothing * (norms - all_logits / weight.shape[0])
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        state_grad, weight_grad = ctx.saved_tensors
        return state_grad * grads[0], weight_grad * grads[0], None, None


def _subtract_targets(probs: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Turn probabilities (C, V) in place into p - (1 - smoothing) * onehot(target)."""
    return probs.scatter_add_(1, targets[:, None], probs.new_full((len(targets), 1), smoothing - 1.0))


def consistency_loss(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    """Return R-Drop's term (Liang et al. 2021): the mean of both KL divergences, summed over the N tokens."""
    return _SlicedConsistency.apply(first, second, weight)  # type: ignore[no-untyped-call, no-any-return]


class _SlicedConsistency(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
        size = tokens_in_slice(weight.shape[0], first.device.type)
        loss = torch.zeros((), dtype=torch.float32, device=first.device)
        grads = (torch.empty_like(first), torch.empty_like(second), torch.zeros_like(weight))
        weight = weight.detach().requires_grad_()
        for start in range(0, first.shape[0], size):
            part = slice(start, start + size)
            a, b = first[part].detach().requires_grad_(), second[part].detach().requires_grad_()
            with torch.enable_grad():
                p, q = torch.log_softmax((a @ weight.T).float(), -1), torch.log_softmax((b @ weight.T).float(), -1)
                value = ((p.exp() - q.exp()) * (p - q)).sum() / 2
            grad_a, grad_b, grad_weight = torch.autograd.grad(value, (a, b, weight))
            grads[0][part], grads[1][part] = grad_a, grad_b
            grads[2].add_(grad_weight)
            loss += value.detach()
        ctx.save_for_backward(*grads)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        return tuple(saved * grads[0] for saved in ctx.saved_tensors)
