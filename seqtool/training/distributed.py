"""The workers of a run: who they are, and the few things they do together. One process is a group of one."""

import datetime
import time
import uuid
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from seqtool import process
from seqtool.config import TrainConfig

# Preparing a corpus is one worker's task, and the others wait for it: hours must not look like a failure.
PATIENCE = datetime.timedelta(hours=24)


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
        """Tell whether the flag is set for any worker."""
        if self.size == 1:
            return flag
        total = torch.tensor(float(flag), device=self.device)
        dist.all_reduce(total)
        return bool(total.item() > 0)

    def spread(self, tensors: list[Tensor], owners: list[int]) -> None:
        """Give every worker each tensor as its owner has it."""
        if self.size > 1:
            for tensor, owner in zip(tensors, owners, strict=True):
                dist.broadcast(tensor, src=owner)

    def leave(self) -> None:
        """End the group's connections."""
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()


def join_workers(config: TrainConfig) -> Workers:
    """Join the group that torchrun started, or be a group of one."""
    rank, size, device = process.rank(), process.world_size(), process.choose_device(config.device)
    if size > 1 and not dist.is_initialized():
        if device.type == "cuda":
            torch.cuda.set_device(device)
        store, rank, size = next(rendezvous("env://", timeout=PATIENCE))
        store = PrefixStore(agree_on_name(store, rank, size), store)
        backend = "nccl" if device.type == "cuda" else "gloo"
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
