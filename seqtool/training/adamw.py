"""AdamW (Loshchilov and Hutter 2019) by torch's fused kernel, called directly.

`torch.optim.AdamW` calls the same kernel, but imports torch's compiler first, which takes as long as importing torch.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from seqtool.config import TrainConfig

EPS = 1e-9
STATE_KEYS = ("step", "exp_avg", "exp_avg_sq")  # what is kept of each parameter


class AdamW:
    """Updates some parameters of a model; embeddings decay like matrices, biases and norms do not."""

    def __init__(self, parameters: Mapping[int, Tensor], config: TrainConfig) -> None:
        """Take parameters by their numbers."""
        self.config = config
        self.weights = {number: parameter.detach() for number, parameter in parameters.items()}
        self.state = {
            "step": {number: torch.zeros((), device=weight.device) for number, weight in self.weights.items()},
            "exp_avg": {number: torch.zeros_like(weight) for number, weight in self.weights.items()},
            "exp_avg_sq": {number: torch.zeros_like(weight) for number, weight in self.weights.items()},
        }

    def step(self, gradients: list[Tensor], divisor: Tensor, good: Tensor, lr: float) -> None:
        """Move the parameters by their gradients divided by `divisor`; if `good` is false, nothing changes."""
        bad = (~good).float()
        matrices = [number for number, weight in self.weights.items() if weight.dim() > 1]
        vectors = [number for number, weight in self.weights.items() if weight.dim() <= 1]
        for numbers, weight_decay in ((matrices, self.config.weight_decay), (vectors, 0.0)):
            if not numbers:
                continue
            steps, exp_avgs, exp_avg_sqs = ([self.state[key][number] for number in numbers] for key in STATE_KEYS)
            torch._foreach_add_(steps, 1)
            torch._fused_adamw_(
                [self.weights[number] for number in numbers],
                [gradients[number].contiguous() for number in numbers],  # the kernel reads them in a row
                exp_avgs,
                exp_avg_sqs,
                [],  # only AMSGrad keeps maxima
                steps,
                lr=lr,
                beta1=self.config.beta1,
                beta2=self.config.beta2,
                weight_decay=weight_decay,
                eps=EPS,
                amsgrad=False,
                maximize=False,
                grad_scale=divisor,
                found_inf=bad,
            )
            torch._foreach_sub_(steps, [bad] * len(steps))
