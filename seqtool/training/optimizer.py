"""The update of the weights: clipping, AdamW and Muon, loss scaling, the moving average, and bad gradients.

Nothing here makes the host wait for the device: a non-finite gradient is noticed and skipped on the device.

Of a model that is shared out among workers, each updates the rows that it has.
"""

from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import Tensor

from seqtool.config import TrainConfig
from seqtool.model.interface import TranslationModel
from seqtool.model.loading import weights_of
from seqtool.training.adamw import STATE_KEYS, AdamW
from seqtool.training.distributed import Workers
from seqtool.training.muon import Muon
from seqtool.training.sharded_muon import ShardedMuon
from seqtool.training.sharding import AnyTensor, is_sharded, like, local_of, put_rows

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
        self.locals = [local_of(parameter) for parameter in self.parameters]
        device = self.locals[0].device
        self.workers = workers or Workers(0, 1, device)
        self.sharded = any(map(is_sharded, self.parameters))
        matrices = model.muon_matrices() if config.optimizer == "muon" else {}
        self.by_muon = {i for i, name in enumerate(self.names.values()) if name in matrices}
        parts = {i: matrices[self.names[self.parameters[i]]] for i in self.by_muon}
        muons = {i: self.locals[i] for i in sorted(self.by_muon)}
        self.muon: Muon | ShardedMuon
        if self.sharded:
            self.muon = ShardedMuon(muons, {i: (self.parameters[i].shape, parts[i]) for i in muons}, self.workers)
        else:
            self.muon = Muon(muons, parts)
        self.adamw = AdamW({i: local for i, local in enumerate(self.locals) if i not in self.by_muon}, config)
        self.scales_loss = precision == "fp16"
        self.loss_scale = torch.tensor(FIRST_LOSS_SCALE if self.scales_loss else 1.0, device=device)
        # Since the run began: steps that counted, steps skipped, and skipped steps since the last one that counted.
        self.counts = torch.zeros(3, dtype=torch.int64, device=device)
        self.ema = {i: local.clone() for i, local in enumerate(self.locals)} if config.ema else {}

    def update(self, gradients: list[Tensor], sums: Tensor, step: int, lr: float) -> Tensor:
        """Apply the gradient of a step, counted from 1; return [loss, nll, gradient norm, 1 if it counted]."""
        norm = self._norm(gradients) / self.loss_scale
        good = torch.isfinite(norm) & torch.isfinite(sums).all()
        clip = (norm / self.config.clip_norm).clamp(min=1.0) if self.config.clip_norm else torch.ones_like(norm)
        divisor = self.loss_scale * clip
        self.muon.step(gradients, divisor, good, lr, self.config.weight_decay)
        self.adamw.step(gradients, divisor, good, lr)
        self._count(good)
        self._average(step)
        return torch.cat((sums, torch.stack((norm, good.float()))))

    def _norm(self, gradients: list[Tensor]) -> Tensor:
        norm = torch.stack(torch._foreach_norm(gradients)).norm()
        if not self.sharded:
            return norm
        square = norm.square()
        dist.all_reduce(square)
        return square.sqrt()

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
            torch._foreach_lerp_(list(self.ema.values()), self.locals, 1 - decay)

    def ema_weights(self) -> dict[str, AnyTensor]:
        """Return the moving average under the names of the model's weights; empty when it is off."""
        return self._by_name(self.ema)

    def state_tensors(self) -> dict[str, AnyTensor]:
        """Return everything that a resume needs beside the weights and their average."""
        tensors: dict[str, AnyTensor] = {"counts": self.counts, "loss_scale": self.loss_scale}
        for key in STATE_KEYS:
            kept = dict(self.adamw.state[key])
            if key == MOMENTUM_KEY:
                kept.update(self.muon.momentum)
            tensors.update(
                {f"{key}/{name}": value for name, value in self._by_name(dict(sorted(kept.items()))).items()}
            )
        return tensors

    def _by_name(self, tensors: Mapping[int, Tensor]) -> dict[str, AnyTensor]:
        """Give each tensor the name of its parameter, and say of which shape it has some rows."""
        found: dict[str, AnyTensor] = {}
        for i, tensor in tensors.items():
            parameter = self.parameters[i]
            found[self.names[parameter]] = like(parameter, tensor) if tensor.dim() else tensor
        return found

    def restore(self, tensors: Mapping[str, Tensor], ema: Mapping[str, Tensor]) -> None:
        """Take up the state that `state_tensors` and `ema_weights` gave."""
        self.counts.copy_(tensors["counts"])
        self.loss_scale.copy_(tensors["loss_scale"])
        for i, momentum in self.muon.momentum.items():
            put_rows(momentum, tensors[f"{MOMENTUM_KEY}/{self.names[self.parameters[i]]}"], self.workers)
        for key, kept in self.adamw.state.items():
            for i, tensor in kept.items():
                put_rows(tensor, tensors[f"{key}/{self.names[self.parameters[i]]}"], self.workers)
        for i, average in self.ema.items():
            put_rows(average, ema[self.names[self.parameters[i]]], self.workers)


def weights_by_name(model: TranslationModel) -> dict[str, AnyTensor]:
    """Return the model's weights, each name once."""
    return {name: like(tensor, local_of(tensor)) for name, tensor in weights_of(model).items()}
