"""The update of the weights: clipping, AdamW and Muon, loss scaling, the moving average, and bad gradients.

Nothing here makes the host wait for the device: a non-finite gradient is noticed and skipped on the device.

With train.shard = "optimizer" each worker keeps the optimizer's state and the moving average of some parameters only,
updates those, and gives them to the others; that is three quarters of the memory of a model in training, shared out.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from seqtool.config import TrainConfig
from seqtool.model.interface import TranslationModel
from seqtool.model.loading import weights_of
from seqtool.training.adamw import STATE_KEYS, AdamW
from seqtool.training.distributed import Workers
from seqtool.training.muon import Muon

FIRST_LOSS_SCALE = 2.0**15
GROW_LOSS_SCALE_AFTER = 2000  # good steps
MOMENTUM_KEY = "exp_avg"  # all that Muon keeps of a parameter


class Updater:
    """Owns the optimizer's state, the moving average and the counters of skipped steps."""

    def __init__(
        self, model: TranslationModel, config: TrainConfig, precision: str, workers: Workers | None = None
    ) -> None:
        self.model = model
        self.config = config
        self.names = {parameter: name for name, parameter in model.named_parameters()}
        self.parameters = list(model.parameters())
        device = self.parameters[0].device
        self.workers = workers or Workers(0, 1, device)
        self.owners = share_out(self.parameters, self.workers) if config.shard == "optimizer" else None
        self.mine = [
            i for i in range(len(self.parameters)) if self.owners is None or self.owners[i] == self.workers.rank
        ]
        matrices = model.muon_matrices() if config.optimizer == "muon" else {}
        self.by_muon = {i for i, name in enumerate(self.names.values()) if name in matrices}
        muons = {i: self.parameters[i] for i in self.mine if i in self.by_muon}
        self.muon = Muon(muons, {i: matrices[self.names[parameter]] for i, parameter in muons.items()})
        self.adamw = AdamW({i: self.parameters[i] for i in self.mine if i not in self.by_muon}, config)
        self.scales_loss = precision == "fp16"
        self.loss_scale = torch.tensor(FIRST_LOSS_SCALE if self.scales_loss else 1.0, device=device)
        # Since the run began: steps that counted, steps skipped, and skipped steps since the last one that counted.
        self.counts = torch.zeros(3, dtype=torch.int64, device=device)
        self.ema = {i: self.parameters[i].detach().clone() for i in self.mine} if config.ema else {}

    def update(self, gradients: list[Tensor], sums: Tensor, step: int, lr: float) -> Tensor:
        """Apply the gradient of a step, counted from 1; return [loss, nll, gradient norm, 1 if it counted]."""
        norm = torch.stack(torch._foreach_norm(gradients)).norm() / self.loss_scale
        good = torch.isfinite(norm) & torch.isfinite(sums).all()
        clip = (norm / self.config.clip_norm).clamp(min=1.0) if self.config.clip_norm else torch.ones_like(norm)
        divisor = self.loss_scale * clip
        self.muon.step(gradients, divisor, good, lr, self.config.weight_decay)
        self.adamw.step(gradients, divisor, good, lr)
        if self.owners is not None:
            self.workers.spread([p.detach() for p in self.parameters], self.owners)
        self._count(good)
        self._average(step)
        return torch.cat((sums, torch.stack((norm, good.float()))))

    def _count(self, good: Tensor) -> None:
        bad = (~good).long()
        self.counts[0] += 1 - bad
        self.counts[1] += bad
        self.counts[2] = (self.counts[2] + 1) * bad
        if self.scales_loss:
            grown = (self.counts[0] % GROW_LOSS_SCALE_AFTER == 0) & good
            self.loss_scale.mul_(torch.where(good, torch.where(grown, 2.0, 1.0), 0.5)).clamp_(1.0, 2.0**24)

    def _average(self, step: int) -> None:
        """Move the average towards the weights; early on it follows them more closely."""
        if self.ema:
            decay = min(self.config.ema, (1 + step) / (10 + step))
            weights = [self.parameters[i].detach() for i in self.mine]
            torch._foreach_lerp_(list(self.ema.values()), weights, 1 - decay)

    def ema_weights(self) -> dict[str, Tensor]:
        """Return the moving average under the names of the model's weights; empty when it is off.

        This and state_tensors are called by all workers together, since each may have only some of it.
        """
        if not self.config.ema:
            return {}
        averages = {i: self.ema[i] if i in self.ema else torch.empty_like(p) for i, p in enumerate(self.parameters)}
        return self._complete(averages)

    def state_tensors(self) -> dict[str, Tensor]:
        """Return everything that a resume needs beside the weights and their average."""
        tensors = {"counts": self.counts, "loss_scale": self.loss_scale}
        for key in STATE_KEYS:
            holders = [i for i in range(len(self.parameters)) if key == MOMENTUM_KEY or i not in self.by_muon]
            complete = self._complete({i: self._state_of(i, key) for i in holders})
            tensors.update({f"{key}/{name}": value for name, value in complete.items()})
        return tensors

    def _state_of(self, i: int, key: str) -> Tensor:
        """Return one tensor of the optimizer's state, or room for it where another worker has it."""
        if i in self.muon.momentum:
            return self.muon.momentum[i]
        if i in self.adamw.weights:
            return self.adamw.state[key][i]
        parameter = self.parameters[i]
        return torch.zeros((), device=parameter.device) if key == "step" else torch.zeros_like(parameter)

    def _complete(self, tensors: dict[int, Tensor]) -> dict[str, Tensor]:
        """Fill in what other workers have, and give each tensor the name of its parameter."""
        if self.owners is not None:
            self.workers.spread(list(tensors.values()), [self.owners[i] for i in tensors])
        return {self.names[self.parameters[i]]: tensor for i, tensor in tensors.items()}

    def restore(self, tensors: Mapping[str, Tensor], ema: Mapping[str, Tensor]) -> None:
        """Take up the state that `state_tensors` and `ema_weights` gave."""
        self.counts.copy_(tensors["counts"])
        self.loss_scale.copy_(tensors["loss_scale"])
        for i, momentum in self.muon.momentum.items():
            momentum.copy_(tensors[f"{MOMENTUM_KEY}/{self.names[self.parameters[i]]}"])
        for key, kept in self.adamw.state.items():
            for i, tensor in kept.items():
                tensor.copy_(tensors[f"{key}/{self.names[self.parameters[i]]}"])
        for i, average in self.ema.items():
            average.copy_(ema[self.names[self.parameters[i]]])


def share_out(parameters: list[nn.Parameter], workers: Workers) -> list[int]:
    """Return the rank that each parameter belongs to, so that all have about the same number of values."""
    loads = [0] * workers.size
    owners = [0] * len(parameters)
    for i in sorted(range(len(parameters)), key=lambda i: -parameters[i].numel()):
        owners[i] = loads.index(min(loads))
        loads[owners[i]] += parameters[i].numel()
    return owners


def weights_by_name(model: TranslationModel, weights: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
    """Return the model's weights, or others of the same names in its place, each name once."""
    names = weights_of(model)
    return names if weights is None else {name: weights[name] for name in names}
