"""Models shared out among workers by torch's FSDP2: each keeps some rows of every parameter.

A layer is put together for the time that it computes, and its gradients are summed and taken apart at once. Rows are
divided as torch.chunk does it: equal pieces, but for the last ones.
"""

import warnings
from dataclasses import dataclass
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from seqtool.errors import SeqtoolError
from seqtool.model.interface import TranslationModel
from seqtool.training.distributed import Workers


@dataclass(frozen=True)
class Rows:
    """This worker's rows of a tensor."""

    local: Tensor
    shape: torch.Size  # of the whole tensor

    def gather(self, workers: Workers) -> Tensor:
        """Put the whole tensor together on the host; all workers call this together and have it."""
        n_rows = rows_per_worker(self.shape[0], workers.size)
        mine = self.local.detach().cpu()
        padded = torch.zeros(n_rows, *self.shape[1:], dtype=mine.dtype)
        padded[: len(mine)] = mine
        whole = torch.empty(workers.size * n_rows, *self.shape[1:], dtype=mine.dtype)
        dist.all_gather(list(whole.chunk(workers.size)), padded)
        return whole[: self.shape[0]]


AnyTensor = Tensor | Rows


def rows_per_worker(n_rows: int, n_workers: int) -> int:
    """Return how many rows every worker but the last ones has."""
    return -(-n_rows // n_workers)


def is_sharded(tensor: Tensor) -> bool:
    """Return whether this is one of FSDP2's tensors."""
    return hasattr(tensor, "to_local")


def local_of(tensor: Tensor) -> Tensor:
    """Return what this worker has of a tensor; writing to it changes the tensor."""
    tensor = tensor.detach()
    return cast(Tensor, tensor.to_local()) if is_sharded(tensor) else tensor  # type: ignore[attr-defined]


def like(parameter: Tensor, local: Tensor) -> AnyTensor:
    """Describe a tensor that is divided as a parameter is."""
    return Rows(local, parameter.shape) if is_sharded(parameter) else local


def gathered(tensor: AnyTensor, workers: Workers) -> Tensor:
    """Return a whole tensor; if it is shared out, all workers call this together."""
    return tensor.gather(workers) if isinstance(tensor, Rows) else tensor


def put_rows(local: Tensor, whole: Tensor, workers: Workers) -> None:
    """Copy this worker's rows of a whole tensor, or all of it if the shapes are equal, into place."""
    if local.shape != whole.shape:
        first = workers.rank * rows_per_worker(len(whole), workers.size)
        whole = whole[first : first + len(local)]
    local.copy_(whole)


def shard_model(root: nn.Module, model: TranslationModel, dtype: torch.dtype | None, workers: Workers) -> None:
    """Share out the layers, and the rest as one more piece that stays whole from the forward to the backward pass.

    With a dtype of half precision the weights are sent and used in it, and gradients are summed in float32.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    if model.skips_layers:
        raise SeqtoolError(
            "layers that are left out at random (model.layer_drop) cannot be shared out; set model.layer_drop = 0 "
            "or train.shard = none"
        )
    # Keys, values and states that layers return beside their output are views; nothing writes to them.
    warnings.filterwarnings("ignore", r"FSDP2-wrapped module \(.*\) returned a view tensor")
    mesh = init_device_mesh(workers.device.type, (workers.size,))
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)
    for module in (*model.stack_layers(), root):
        fully_shard(module, mesh=mesh, mp_policy=policy)
