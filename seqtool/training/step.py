"""One training step: a global batch in, one update of the weights out. Policy, files and display are elsewhere.

Legend: B rows, S source length, T target length, N real target tokens, D width.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from seqtool.config import TrainConfig
from seqtool.corpus.batches.batches import Batch
from seqtool.errors import SeqtoolError
from seqtool.model.dropout import drawing_from
from seqtool.model.interface import TranslationModel
from seqtool.model.oom import is_out_of_memory
from seqtool.model.transfer import to_device
from seqtool.process import quick_turns
from seqtool.training.distributed import Workers
from seqtool.training.layers import wrap_layers
from seqtool.training.loss import consistent_cross_entropy, smoothed_cross_entropy
from seqtool.training.optimizer import Updater

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class MicroBatch:
    """Some rows of a batch as tensors on the device."""

    src: Tensor  # (B, S)
    tgt_in: Tensor  # (B, T)
    real: Tensor  # (N,) places of the real target tokens in the flattened (B * T)
    targets: Tensor  # (N,) the tokens to predict there
    src_real: Tensor  # places of the real source tokens after the first in the flattened (B * (S - 1))
    is_blank: bool = False  # made up, for a worker without rows; its loss does not count

    @property
    def size(self) -> tuple[int, int]:
        """The positions of both sides, and the longer side: what the memory of a pass depends on."""
        (rows, src), tgt = self.src.shape, self.tgt_in.shape[1]
        return rows * (src + tgt), max(src, tgt)


def make_micro_batch(batch: Batch, rows: slice, device: torch.device) -> MicroBatch:
    """Bring some rows of a batch to the device without waiting for it."""
    tgt_out = np.ascontiguousarray(batch.tgt_out[rows]).reshape(-1)
    real = np.flatnonzero(tgt_out != batch.special.pad)  # found on the host: a device would make it wait
    src = np.ascontiguousarray(batch.src[rows], np.int64)
    src_real = np.flatnonzero(src[:, 1:] != batch.src_pad)
    arrays = (src, batch.tgt_in[rows], real, tgt_out[real], src_real)
    sent = [to_device(np.ascontiguousarray(array, np.int64), device) for array in arrays]
    return MicroBatch(src=sent[0], tgt_in=sent[1], real=sent[2], targets=sent[3], src_real=sent[4])


def split_batch(batch: Batch, micro_tokens: int, multiple: int, device: torch.device) -> list[MicroBatch]:
    """Cut a batch into parts of at most micro_tokens (padding counted); their number is a multiple of `multiple`."""
    n_parts = min(len(batch), math.ceil(count_parts(batch, micro_tokens) / multiple) * multiple)
    return [make_micro_batch(batch, slice(start, None, n_parts), device) for start in range(n_parts)]


def count_parts(batch: Batch, micro_tokens: int) -> int:
    """Return how many parts a batch is cut into: as many for every worker, but for those with fewer rows."""
    n_rows, longest = batch.extent
    return math.ceil(n_rows * longest / micro_tokens)


class LossOf(nn.Module):
    """A model together with its training loss, summed over the real target tokens."""

    def __init__(self, model: TranslationModel, config: TrainConfig, n_workers: int = 1) -> None:
        super().__init__()
        self.model = model
        self.smoothing = config.label_smoothing
        self.r_drop = config.r_drop
        self.run_model = wrap_layers(model, config, n_workers)

    def forward(self, part: MicroBatch) -> tuple[Tensor, Tensor]:
        """Return the loss to minimise and the plain negative log-likelihood, both sums."""
        if self.r_drop and self.training:
            return self._with_consistency(part)
        if self.model.source_loss and self.training:
            return self._with_source(part)
        return smoothed_cross_entropy(
            self._states(part), self.model.output_weight, self.model.output_bias, part.targets, self.smoothing
        )

    def _states(self, part: MicroBatch) -> Tensor:
        states: Tensor = self.run_model(part.src, part.tgt_in)  # (B, T, D)
        return states.flatten(0, 1).index_select(0, part.real)  # (N, D)

    def _with_source(self, part: MicroBatch) -> tuple[Tensor, Tensor]:
        """Add the loss of a model that predicts its source too; the likelihood that is reported is the target's."""
        model = self.model
        memory = model.encode(part.src)
        states = model.decode_states(part.tgt_in, memory).flatten(0, 1).index_select(0, part.real)  # (N, D)
        source = model.source_states(memory)
        assert source is not None
        output = (model.output_weight, model.output_bias)
        loss, nll = smoothed_cross_entropy(states, *output, part.targets, self.smoothing)
        predicted, wanted = source[:, :-1].flatten(0, 1), part.src[:, 1:].flatten()
        source_loss, _ = smoothed_cross_entropy(
            predicted.index_select(0, part.src_real), *output, wanted.index_select(0, part.src_real), self.smoothing
        )
        return loss + model.source_loss * source_loss, nll

    def _with_consistency(self, part: MicroBatch) -> tuple[Tensor, Tensor]:
        """R-Drop: two passes with different dropout, each with its loss, pulled towards each other."""
        return consistent_cross_entropy(
            self._states(part),
            self._states(part),
            self.model.output_weight,
            self.model.output_bias,
            part.targets,
            self.smoothing,
            self.r_drop,
        )


class GradientMaker:
    """Computes the gradient of a batch, on a CPU with several threads that each take some of its parts.

    Small models spend much of their time between operations, where one thread works and the others wait. Threads with
    a part each, and one core each, keep all cores busy; the gradients are summed in the order of the parts.
    """

    def __init__(self, loss_of: LossOf, config: TrainConfig, workers: Workers, precision: str, threads: int) -> None:
        self.loss_of = loss_of
        self.config = config
        self.workers = workers
        self.precision = precision
        self.parameters = list(loss_of.model.parameters())
        self.threads = threads if workers.device.type == "cpu" and not config.compile else 1
        self._pool = ThreadPoolExecutor(self.threads, initializer=torch.set_num_threads, initargs=(1,))

    def run(self, batch: Batch, step: int, scale: Tensor | float = 1.0) -> tuple[list[Tensor], Tensor]:
        """Return the gradient of the mean loss over the global batch times scale, and the sums [loss, nll]."""
        micro_tokens = self.config.micro_tokens
        while True:
            try:
                return self._run(batch, step, scale, micro_tokens)
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                self.check_can_repeat(error)
                if micro_tokens < 16:
                    raise SeqtoolError(
                        "the memory is too small for a single sentence; use a smaller model, or leave out the longest "
                        "sentences with a lower data.max_tokens"
                    ) from None
            # Whatever was computed is given up, and the whole batch is done again in smaller parts.
            micro_tokens = min(micro_tokens, batch.tgt_out.size) // 2
            if self.workers.device.type == "cuda":
                torch.cuda.empty_cache()

    def _run(self, batch: Batch, step: int, scale: Tensor | float, micro_tokens: int) -> tuple[list[Tensor], Tensor]:
        device = self.workers.device
        parts = split_batch(batch, micro_tokens, self.threads, device)
        factor = scale / batch.n_tgt_tokens
        seeds = [self._seed(step, index) for index in range(len(parts))]
        if self.threads > 1 and len(parts) > 1:
            groups = [list(range(first, len(parts), self.threads)) for first in range(self.threads)]
            with quick_turns():
                jobs = [
                    self._pool.submit(self._sum_parts, [parts[i] for i in g], [seeds[i] for i in g], factor)
                    for g in groups
                    if g
                ]
                results = [job.result() for job in jobs]
        else:
            results = [self._sum_parts(parts, seeds, factor)]
        gradients, sums = results[0]
        for more_gradients, more_sums in results[1:]:
            torch._foreach_add_(gradients, more_gradients)
            sums += more_sums
        return gradients, sums

    def _sum_parts(
        self, parts: Sequence[MicroBatch], seeds: Sequence[int], factor: Tensor | float
    ) -> tuple[list[Tensor], Tensor]:
        """Return the summed gradients and [loss, nll] of some parts."""
        sums = torch.zeros(2, device=self.workers.device)
        total: list[Tensor] | None = None
        for part, seed in zip(parts, seeds, strict=True):
            with self._randomness(seed), self._autocast():
                loss, nll = self.loss_of(part)
            gradients = torch.autograd.grad(loss * factor, self.parameters, allow_unused=True)
            filled = [
                g if g is not None else torch.zeros_like(p) for g, p in zip(gradients, self.parameters, strict=True)
            ]
            if total is None:
                total = filled
            else:
                torch._foreach_add_(total, filled)
            sums += torch.stack((loss.detach(), nll))
        return total if total is not None else [torch.zeros_like(p) for p in self.parameters], sums

    def check_can_repeat(self, error: Exception) -> None:
        """Raise if a batch that ran out of memory cannot be done again in smaller parts."""

    def _seed(self, step: int, part: int) -> int:
        return part_seed(self.config.seed, step, self.workers.rank, part)

    def _autocast(self) -> torch.autocast:
        dtype = AUTOCAST.get(self.precision, torch.bfloat16)
        return torch.autocast(self.workers.device.type, dtype=dtype, enabled=self.precision in AUTOCAST)

    def _randomness(self, seed: int) -> AbstractContextManager[None]:
        """Return a context in which all random numbers come from the seed."""
        if self.workers.device.type == "cpu" and not self.config.compile:
            return drawing_from(torch.Generator().manual_seed(seed))
        torch.manual_seed(seed)
        return drawing_from(None)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def part_seed(seed: int, step: int, rank: int, part: int) -> int:
    """Return the seed of a part's dropout: all that is random in a step follows from these four numbers."""
    return int(np.random.SeedSequence((seed, step, rank, part)).generate_state(1, np.uint64)[0] >> 1)


def train_step(gradient_maker: GradientMaker, updater: Updater, batch: Batch, step: int, lr: float) -> Tensor:
    """Do a step, counted from 1; return [loss sum, nll sum, gradient norm, 1 if it counted], still on the device."""
    gradients, sums = gradient_maker.run(batch, step, updater.loss_scale)
    return updater.update(gradients, sums, step, lr)
