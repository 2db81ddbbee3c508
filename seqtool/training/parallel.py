"""The gradient of a global batch by several workers: torch's DistributedDataParallel or FSDP2 joins their shares.

The exchange runs beside the backward pass of a batch's last part; the parts before it are only added up. All workers do
the same exchanges in the same order, whatever their rows, so that none waits for one that another leaves out.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from seqtool.config import TrainConfig
from seqtool.corpus.batches.batches import Batch
from seqtool.errors import SeqtoolError
from seqtool.model.interface import TranslationModel
from seqtool.training.distributed import Workers
from seqtool.training.sharding import local_of, shard_model
from seqtool.training.step import AUTOCAST, GradientMaker, LossOf, MicroBatch, count_parts, split_batch

MESSAGES = 16  # that a gradient is sent in, at least, if they are not smaller than a MiB
LARGEST_MESSAGE = 25  # MiB


class JoinedGradientMaker(GradientMaker):
    """Computes a worker's share of a gradient and joins it with the others'."""

    def __init__(self, loss_of: LossOf, config: TrainConfig, workers: Workers, precision: str) -> None:
        super().__init__(loss_of, config, workers, precision, threads=1)
        self._blank = make_blank(loss_of.model, workers.device)
        self._fitted = (0, 0)  # the most positions, and the longest side, of a part that the memory had room for
        self._is_joining = False
        self.engine = self._join_models()

    def _join_models(self) -> DistributedDataParallel:
        """Return the engine, after two passes that change nothing.

        The first shows which gradients come when, and in the second the engine groups its messages accordingly. That
        fixes the order of all sums; else those of a session's first step would differ from the same step's in a run
        that was not interrupted.
        """
        self._compute(self.loss_of, self._blank, 0).backward()
        has_unused = self.loss_of.model.skips_layers or any(p.grad is None for p in self.parameters)
        self.loss_of.zero_grad(set_to_none=True)
        constants = [name for name, _ in self.loss_of.named_buffers()]  # else they are sent in every pass
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(self.loss_of, constants)
        engine = DistributedDataParallel(
            self.loss_of,
            find_unused_parameters=has_unused,
            gradient_as_bucket_view=True,
            bucket_cap_mb=megabytes_of_message(self.parameters),  # type: ignore[arg-type]  # a fraction is welcome too
        )
        for _ in range(2):
            self._compute(engine, self._blank, 0).backward()
        return engine

    def _run(self, batch: Batch, step: int, scale: Tensor | float, micro_tokens: int) -> tuple[list[Tensor], Tensor]:
        parts = split_batch(batch, micro_tokens, 1, self.workers.device)
        joined = parts.pop() if parts and self._has_fitted(parts[-1]) else self._blank
        factor = scale * (self.workers.size / batch.n_tgt_tokens)  # torch's engines average over the workers
        sums = torch.zeros(2, device=self.workers.device)
        for gradient in self._present_gradients():
            gradient.zero_()
        with self.engine.no_sync():
            for index, part in enumerate(parts):
                loss = self._compute(self.engine, part, self._seed(step, index), sums)
                (loss * factor).backward()
                self._note_fit(part)
        self._join(self._compute(self.engine, joined, self._seed(step, len(parts)), sums) * factor, sums)
        return self._gradients(), sums

    def _gradients(self) -> list[Tensor]:
        return [p.grad if p.grad is not None else torch.zeros_like(p) for p in self.parameters]

    def _compute(self, module: nn.Module, part: MicroBatch, seed: int, sums: Tensor | None = None) -> Tensor:
        """Return the loss of a part, and add [loss, nll] to the sums; a blank one counts as nothing."""
        with self._randomness(seed), self._autocast():
            loss, nll = module(part)
        if part.is_blank:
            return loss * 0.0
        if sums is not None:
            sums += torch.stack((loss.detach(), nll))
        return loss

    def _join(self, loss: Tensor, sums: Tensor) -> None:
        """Compute a part's gradient, and meanwhile sum over the workers what they have gathered."""
        self._is_joining = True
        exchange = dist.all_reduce(sums, async_op=True)
        loss.backward()
        assert exchange is not None
        exchange.wait()
        self._is_joining = False

    def _present_gradients(self) -> list[Tensor]:
        return [p.grad for p in self.parameters if p.grad is not None]

    def _has_fitted(self, part: MicroBatch) -> bool:
        """Return whether the memory had room for such a part before.

        One that is larger is computed before any exchange begins, for then this worker alone can do it again in smaller
        parts while the others wait.
        """
        return all(size <= fitted for size, fitted in zip(part.size, self._fitted, strict=True))

    def _note_fit(self, part: MicroBatch) -> None:
        positions, longest = part.size
        self._fitted = (max(self._fitted[0], positions), max(self._fitted[1], longest))

    def check_can_repeat(self, error: Exception) -> None:
        """Raise if the other workers already have a part of the gradient."""
        if self._is_joining:
            raise SeqtoolError(
                f"worker {self.workers.rank} ran out of memory while gradients were exchanged; give a lower "
                "train.micro_tokens, and run the same command again"
            ) from error


class ShardedGradientMaker(JoinedGradientMaker):
    """Computes a worker's share of a gradient of a model that is shared out, and keeps its rows of the sum.

    Every pass brings layers together from all workers, so all do the same number of passes.
    """

    def __init__(self, loss_of: LossOf, config: TrainConfig, workers: Workers, precision: str) -> None:
        GradientMaker.__init__(self, loss_of, config, workers, precision, threads=1)
        self._blank = make_blank(loss_of.model, workers.device)
        shard_model(loss_of, loss_of.model, AUTOCAST.get(precision), workers)
        self.parameters = list(loss_of.model.parameters())

    def _run(self, batch: Batch, step: int, scale: Tensor | float, micro_tokens: int) -> tuple[list[Tensor], Tensor]:
        parts = split_batch(batch, micro_tokens, 1, self.workers.device)
        parts += [self._blank] * (min(count_parts(batch, micro_tokens), batch.extent[0]) - len(parts))
        factor = scale * (self.workers.size / batch.n_tgt_tokens)  # torch's engines average over the workers
        sums = torch.zeros(2, device=self.workers.device)
        for index, part in enumerate(parts):
            (self._compute(self.loss_of, part, self._seed(step, index), sums) * factor).backward()
        dist.all_reduce(sums)
        gradients = self._gradients()
        self.loss_of.zero_grad(set_to_none=True)  # else they would take memory until the next step
        return gradients, sums

    def _gradients(self) -> list[Tensor]:
        return [torch.zeros_like(local_of(p)) if p.grad is None else local_of(p.grad) for p in self.parameters]

    def check_can_repeat(self, error: Exception) -> None:
        """Raise: the other workers are in the midst of the same pass."""
        raise SeqtoolError(
            f"worker {self.workers.rank} ran out of memory; give a lower train.micro_tokens, or set "
            "train.activation_checkpointing = true, and run the same command again"
        ) from error


def megabytes_of_message(parameters: Sequence[Tensor]) -> float:
    """Return how many MiB of gradients to send at once: torch's default, or less for a model that is small.

    The last message is sent after the backward pass, so it should be a small part of all. One of less than a MiB takes
    hardly any time; compiled layers need at least that.
    """
    whole = sum(parameter.nbytes for parameter in parameters) / 2**20
    return min(LARGEST_MESSAGE, max(1.0, whole / MESSAGES))


def make_blank(model: TranslationModel, device: torch.device) -> MicroBatch:
    """Return a part for a worker that has no rows: two sentences of two tokens."""
    sides = model.vocabularies.source.special, model.vocabularies.target.special
    src, tgt = (torch.full((2, 2), special.eos, device=device) for special in sides)
    places = torch.arange(4, device=device)
    return MicroBatch(src, tgt, places, tgt.flatten(), src_real=places[:2], is_blank=True)


def make_gradient_maker(
    model: TranslationModel, config: TrainConfig, workers: Workers, precision: str, threads: int
) -> GradientMaker:
    """Return what computes gradients for this number of workers."""
    loss_of = LossOf(model, config, workers.size)
    if workers.size == 1:
        return GradientMaker(loss_of, config, workers, precision, threads)
    kind = ShardedGradientMaker if config.shard == "model" else JoinedGradientMaker
    return kind(loss_of, config, workers, precision)
