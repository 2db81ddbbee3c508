"""Training on two machines: network namespaces with addresses of their own, joined by a cable that can be unplugged.

make machines-test
"""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from small_run import assert_same_run, last_step, read_metrics, train_command, write_corpus
from two_machines import TwoMachines, wait_until, why_not

OBSTACLE = why_not()
pytestmark = pytest.mark.skipif(OBSTACLE is not None, reason=OBSTACLE or "")

VANISHINGS = 5
SETTINGS = {"train_steps": 300, "train_save_every": 5, "train_validate_every": 150, "train_threads": 1}
PATIENCE = 300


def make_storage(folder: Path) -> list[Path]:
    """Make the storage of two machines, each with its own copy of the corpus."""
    machines = [folder / "one", folder / "two"]
    machines[0].mkdir(parents=True)
    write_corpus(machines[0])
    shutil.copytree(*machines)
    return machines


def command(**changes: object) -> list[str]:
    """Return a training command whose paths are relative to a machine's storage."""
    names = [f"{name}.{side}" for name in ("train", "valid") for side in ("en", "de")]
    corpus = [*names[:2], "--valid", names[2], "--valid", names[3]]
    return train_command(corpus, Path("run"), **{**SETTINGS, **changes})


def finish(*processes: "subprocess.Popen[str]") -> list[str]:
    """Wait for commands that must succeed; return what they printed."""
    messages = [process.communicate(timeout=PATIENCE)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(messages)
    return messages


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbs: two workers on one machine."""
    folder = make_storage(tmp_path_factory.mktemp("calm"))[0]
    finish(start_here(2, folder, command()))
    return folder / "run"


def start_here(n_workers: int, folder: Path, command: list[str]) -> "subprocess.Popen[str]":
    """Start several workers on one machine."""
    flags = ["--standalone", "--nproc-per-node", str(n_workers)]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *flags, "-m", "seqtool", *command[3:]]
    return subprocess.Popen(torchrun, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def test_two_machines_without_shared_storage_train_as_one_does(tmp_path: Path, calm: Path) -> None:
    storage = make_storage(tmp_path)
    with TwoMachines() as machines:
        finish(*(machines.start_workers(number, command(), cwd=storage[number]) for number in range(2)))
        assert machines.sent_bytes(1) > 1e6
    assert_same_run(storage[0] / "run", calm)


def test_two_machines_with_shared_storage_train_as_one_does(tmp_path: Path, calm: Path) -> None:
    folder = make_storage(tmp_path)[0]
    with TwoMachines() as machines:
        finish(*(machines.start_workers(number, command(), cwd=folder) for number in range(2)))
    assert_same_run(folder / "run", calm)


def test_two_workers_on_each_of_two_machines_share_out_a_model(tmp_path: Path) -> None:
    storage, settings = make_storage(tmp_path), {"train_shard": "model", "train_steps": 20, "train_validate_every": 20}
    with TwoMachines() as machines:
        started = [machines.start_workers(n, command(**settings), n_workers=2, cwd=storage[n]) for n in range(2)]
        finish(*started)
    four = make_storage(tmp_path / "four")[0]
    finish(start_here(4, four, command(**settings)))
    assert_same_run(storage[0] / "run", four / "run")


def test_a_slow_link_changes_the_time_and_nothing_else(tmp_path: Path, calm: Path) -> None:
    storage = make_storage(tmp_path)
    with TwoMachines() as machines:
        machines.limit(megabits=4)
        finish(*(machines.start_workers(number, command(), cwd=storage[number]) for number in range(2)))
    assert_same_run(storage[0] / "run", calm)


def test_machines_with_other_corpora_do_not_begin(tmp_path: Path) -> None:
    storage = make_storage(tmp_path)
    for side in ("en", "de"):
        file = storage[1] / f"train.{side}"
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    with TwoMachines() as machines:
        started = [machines.start_workers(number, command(), cwd=storage[number]) for number in range(2)]
        for process in started:
            message = process.communicate(timeout=PATIENCE)[1]
            assert process.returncode != 0
            assert "run: worker 1, on machine2, has another tokenizer than the first worker, on machine1" in message
    assert not (storage[0] / "run" / "checkpoints").exists()


@pytest.mark.parametrize("number", [1, 0])
def test_a_machine_that_vanishes_and_comes_back_changes_nothing(tmp_path: Path, calm: Path, number: int) -> None:
    """Machine 1 vanishes without a word and comes back: torchrun on the other notices and starts all workers again.

    With machine 0 go the rendezvous and the checkpoints' storage, so torchrun ends on the other and is started on both.
    With --fresh, machine 0 starts the run over when its torchrun is started, not when machine 1 comes back.
    """
    storage, rng = make_storage(tmp_path), random.Random(number)
    run = storage[0] / "run"
    with TwoMachines() as machines:

        def start(which: int) -> "subprocess.Popen[str]":
            wanted = [*command(), "--fresh"] if number == 1 else command()
            return machines.start_workers(which, wanted, restarts=2 * VANISHINGS, cwd=storage[which])

        started = {which: start(which) for which in range(2)}
        for _ in range(VANISHINGS):
            before = last_step(run)
            assert wait_until(lambda: last_step(run) > before, PATIENCE)  # noqa: B023
            time.sleep(rng.uniform(0, 2))
            machines.unplug()
            machines.crash(number)
            time.sleep(rng.uniform(0, 2))
            machines.plug()
            if number == 0:
                machines.crash(1)
                started[1] = start(1)
            started[number] = start(number)
        steps = last_step(run)
        assert steps < SETTINGS["train_steps"], "the run was over before the last vanishing"
        finish(*started.values())
    print(f"\nmachine {number} vanished {VANISHINGS} times, the last time after step {steps}")
    assert_same_run(run, calm)
    assert len([entry for entry in read_metrics(run) if entry["kind"] == "train"]) == SETTINGS["train_steps"]
