"""What a process knows of itself: its place among others, its threads, and the device that a name stands for."""

from collections.abc import Callable

import pytest
import torch

from seqtool import process
from seqtool.errors import SeqtoolError
from seqtool.process import choose_device

Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Pretend to be on a machine with this many GPUs, with or without mps, in a process of torchrun or outside."""

    def pretend(n_gpus: int = 0, mps: bool = False, cores: int = 8, **environment: int) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: n_gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: n_gpus)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(process, "count_cores", lambda: cores)
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, str(value))

    return pretend


@pytest.mark.parametrize(
    ("name", "n_gpus", "mps", "expected"),
    [
        ("auto", 0, False, "cpu"),
        ("auto", 0, True, "mps"),
        ("auto", 2, True, "cuda:0"),
        ("cpu", 2, True, "cpu"),
        ("mps", 2, True, "mps"),
        ("cuda", 2, False, "cuda:0"),
        ("cuda:1", 2, False, "cuda:1"),
    ],
)
def test_a_name_stands_for_the_same_device_everywhere(
    machine: Machine, name: str, n_gpus: int, mps: bool, expected: str
) -> None:
    machine(n_gpus, mps)
    assert choose_device(name) == torch.device(expected)


def test_each_process_of_a_machine_takes_its_own_gpu_unless_one_is_named(machine: Machine) -> None:
    machine(4, RANK=6, LOCAL_RANK=2, WORLD_SIZE=8, LOCAL_WORLD_SIZE=4)
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda:2")
    assert choose_device("cuda:0") == torch.device("cuda:0")
    machine(1, RANK=1, LOCAL_RANK=1, WORLD_SIZE=2, LOCAL_WORLD_SIZE=2)
    with pytest.raises(SeqtoolError, match=r"no cuda device 1 on this machine; .* no more processes than"):
        choose_device("auto")


def test_a_device_that_is_not_there_is_named(machine: Machine) -> None:
    machine()
    for name, found in (("cuda", "cuda device"), ("cuda:3", "cuda device"), ("mps", "mps device")):
        with pytest.raises(SeqtoolError, match=f"there is no {found} on this machine; use device='auto' or "):
            choose_device(name)
    for name in ("gpu", "cpu:1", "cuda:", "cuda:x", "cuda:-1", ""):
        with pytest.raises(SeqtoolError, match=f"there is no device '{name}'"):
            choose_device(name)


def test_processes_on_one_machine_share_its_cores(machine: Machine) -> None:
    machine(cores=8)
    assert process.threads_per_process() == 8
    machine(cores=8, WORLD_SIZE=6, LOCAL_WORLD_SIZE=3)
    assert process.threads_per_process() == 2
    machine(cores=2, WORLD_SIZE=6, LOCAL_WORLD_SIZE=3)
    assert process.threads_per_process() == 1


def test_a_process_is_the_first_unless_several_were_started(machine: Machine) -> None:
    machine()
    assert (process.rank(), process.world_size(), process.is_restarted()) == (0, 1, False)
    machine(RANK=3)  # left over from something else: one process must not wait for others, nor keep silent
    assert (process.rank(), process.world_size()) == (0, 1)
    machine(RANK=3, LOCAL_RANK=1, WORLD_SIZE=4, TORCHELASTIC_RESTART_COUNT=2)
    assert (process.rank(), process.local_rank(), process.world_size(), process.is_restarted()) == (3, 1, 4, True)
