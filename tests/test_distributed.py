"""Several workers with gloo: the same losses as one process, and a killed worker is survived under a real torchrun."""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch.distributed as dist
from safetensors.torch import load_file, save
from several_workers import run_workers
from small_run import assert_same_run, losses, read_metrics, run_to_end, train_command

from seqtool.training.distributed import agree_on_name

# Dropout draws differ with the split of a batch over workers, so it is off where one process is compared with two.
QUIET = {
    "model_dropout": 0.0,
    "model_word_dropout": 0.0,
    "train_steps": 30,
    "train_validate_every": 30,
    "train_threads": 1,
}
TWENTY = {**QUIET, "train_steps": 20, "train_validate_every": 20, "train_save_every": 5}
LIVELY = {**QUIET, "model_dropout": 0.2, "train_save_every": 5, "train_optimizer": "muon"}


def torchrun(command: list[str], restarts: int) -> list[str]:
    """Return a train command as torchrun starts it with two workers."""
    flags = ["--standalone", "--nproc-per-node", "2", "--max-restarts", str(restarts), "--monitor-interval", "0.1"]
    assert command[1:3] == ["-m", "seqtool"]
    return [sys.executable, "-m", "torch.distributed.run", *flags, "-m", "seqtool", *command[3:]]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, corpus: list[str]) -> Path:
    """An undisturbed run of two workers."""
    run = tmp_path_factory.mktemp("calm") / "run"
    run_workers(train_command(corpus, run, **LIVELY))
    return run


def test_two_workers_give_the_losses_of_one_process_and_each_resumes_the_run_of_the_other(
    tmp_path: Path, corpus: list[str]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    run_to_end(train_command(corpus, one, **TWENTY))
    run_workers(train_command(corpus, two, **TWENTY))
    expected = losses(one)
    assert_near(losses(two), expected)
    seen = [[entry["seen_tokens"] for entry in read_metrics(run) if "seen_tokens" in entry] for run in (one, two)]
    assert seen[0] == seen[1]
    for run in (one, two):
        shutil.rmtree(run / "checkpoints" / "step-000000020")
    run_workers(train_command(corpus, one, **TWENTY, train_shard="model"))
    run_to_end(train_command(corpus, two, **TWENTY))
    assert_near(losses(one), expected)
    assert_near(losses(two), expected)


def assert_near(found: list[tuple[str, int, float]], expected: list[tuple[str, int, float]]) -> None:
    """Assert that the losses of two runs of 20 steps are the same but for rounding."""
    assert [entry[:2] for entry in found] == [entry[:2] for entry in expected]
    assert len([entry for entry in found if entry[0] == "train"]) == 20
    assert max(abs(a[2] - b[2]) for a, b in zip(found, expected, strict=True)) < 1e-5


def test_a_shared_out_model_gives_the_losses_of_a_whole_one_and_resumes_exactly(
    tmp_path: Path, corpus: list[str], calm: Path
) -> None:
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    run_workers(train_command(corpus, whole, **LIVELY, train_shard="model"))
    found, expected = losses(whole), losses(calm)
    assert [entry[:2] for entry in found] == [entry[:2] for entry in expected]
    assert max(abs(a[2] - b[2]) for a, b in zip(found, expected, strict=True)) < 1e-3  # dropout's draws are the same
    shutil.copytree(whole, resumed)
    for path in ((resumed / "checkpoints" / f"step-{step:09d}") for step in (25, 30)):
        shutil.rmtree(path)
    run_workers(train_command(corpus, resumed, **LIVELY, train_shard="model"))
    assert_same_run(resumed, whole)
    file = whole / "checkpoints" / "step-000000030" / "optimizer.safetensors"
    assert file.read_bytes() == save(load_file(file))  # as the library writes it


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the process ids of the workers that a torchrun has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in children.read_text().split()] if children.exists() else []


def test_workers_find_each_other_where_killed_ones_have_left_their_traces() -> None:
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    names = []
    for _ in range(3):
        for rank in (1, 2):
            server.set(f"here/{rank}", "killed before it was answered")
        stores = [dist.TCPStore("127.0.0.1", server.port, is_master=False) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            agreed = list(pool.map(agree_on_name, stores, range(3), [3] * 3))
        assert len(set(agreed)) == 1
        names.append(agreed[0])
    assert len(set(names)) == 3


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers through /proc")
def test_a_killed_worker_is_restarted_and_the_run_ends_as_the_undisturbed_one(
    tmp_path: Path, corpus: list[str], calm: Path
) -> None:
    command = torchrun(train_command(corpus, tmp_path / "run", **LIVELY), restarts=2)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while len(read_metrics(tmp_path / "run")) < 12 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(workers_of(process)[-1], signal.SIGKILL)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert "continuing at step" in errors
    assert_same_run(tmp_path / "run", calm)
