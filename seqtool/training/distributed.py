"""The workers of a run: who they are, and the few things they do together. One process is a group of one."""

import contextlib
import datetime
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from seqtool import process
from seqtool.config import TrainConfig
from seqtool.errors import SeqtoolError

# Preparing a corpus is one worker's task, and the others wait for it: hours must not look like a failure.
PATIENCE = datetime.timedelta(hours=24)
# Between two exchanges of a training there are at most minutes: a worker that is silent for longer is lost.
PATIENCE_IN_TRAINING = datetime.timedelta(minutes=30)


@dataclass(frozen=True)
class Workers:
    """This worker's place in the group."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Only the first worker writes and prints."""
        return self.rank == 0

    def wait_for_all(self) -> None:
        """Return when every worker has come here."""
        if self.size > 1:
            dist.barrier()

    def share(self, value: Any) -> Any:
        """Give every worker the first one's value."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set for any worker."""
        if self.size == 1:
            return flag
        total = torch.tensor(float(flag), device=self.device)
        dist.all_reduce(total)
        return bool(total.item() > 0)

    def join(self, value: Any) -> list[Any]:
        """Give every worker the values of all, by rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def share_tensor(self, tensor: Tensor | None) -> Tensor:
        """Give every worker the first one's tensor, on the host."""
        if self.size == 1:
            assert tensor is not None
            return tensor
        shape, dtype = self.share(None if tensor is None else (tuple(tensor.shape), tensor.dtype))
        host = torch.empty(shape, dtype=dtype) if tensor is None else tensor.detach().cpu().contiguous()
        dist.broadcast(host, src=0)
        return host

    def limit_waits(self, patience: datetime.timedelta = PATIENCE_IN_TRAINING) -> None:
        """From now on take a worker that is silent for this long as lost; what waits for it fails."""
        if self.size > 1:
            dist.distributed_c10d._set_pg_timeout(patience)

    @contextlib.contextmanager
    def explaining_losses(self) -> Iterator[None]:
        """Name the cause where another worker has ended, or cannot be reached."""
        try:
            yield
        except RuntimeError as error:
            if self.size == 1 or not is_loss(error):
                raise
            raise SeqtoolError(
                f"worker {self.rank}, on {socket.gethostname()}, has lost another one: it has ended, and its own "
                "message says why, or it cannot be reached. The same command on all machines continues from the last "
                "checkpoint; torchrun --max-restarts gives it by itself"
            ) from error

    def leave(self) -> None:
        """End the group's connections."""
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()


class FromFirst(Mapping[str, Tensor]):
    """Tensors by name that only the first worker has; all workers take the same ones in the same order."""

    def __init__(self, workers: Workers, tensors: Mapping[str, Tensor] | None) -> None:
        self.workers, self.tensors = workers, tensors
        self.names: list[str] = workers.share(None if tensors is None else list(tensors))

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.names:
            raise KeyError(name)
        return self.workers.share_tensor(None if self.tensors is None else self.tensors[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def is_loss(error: BaseException) -> bool:
    """Return whether an error means that the connection to another worker is lost."""
    return isinstance(error, dist.DistError) or any(sign in str(error) for sign in ("gloo/", "Gloo", "NCCL"))


def join_workers(config: TrainConfig) -> Workers:
    """Join the group that torchrun started, or be a group of one."""
    rank, size, device = process.rank(), process.world_size(), process.choose_device(config.device)
    if size > 1 and not dist.is_initialized():
        if device.type == "cuda":
            torch.cuda.set_device(device)
        store, rank, size = next(rendezvous("env://", timeout=PATIENCE))
        store = PrefixStore(agree_on_name(store, rank, size), store)
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
    return Workers(rank, size, device)


def agree_on_name(store: Store, rank: int, size: int) -> str:
    """Return a name that only the workers now alive share.

    After a restart, torchrun's store still holds the addresses of the killed workers; under a new name nobody finds
    them. The first worker makes the name, and gives it to everyone who asks until all have confirmed it.
    """
    own = uuid.uuid4().hex
    if rank > 0:
        store.set(f"here/{rank}", own)
        name = store.get(f"welcome/{own}").decode()
        store.set(f"joined/{name}/{rank}", "yes")
        return name
    for other in range(1, size):
        while not store.check([f"joined/{own}/{other}"]):
            if store.check([f"here/{other}"]):
                store.set(f"welcome/{store.get(f'here/{other}').decode()}", own)
            time.sleep(0.01)
    return own
