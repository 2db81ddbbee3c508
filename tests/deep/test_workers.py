"""Runs of 1, 2 and 4 workers compared over 200 steps, whole models and shared out ones, and kills of single workers.

make workers-test
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from several_workers import run_workers, start_workers
from small_run import assert_same_run, last_step, losses, train_command, wait_for_step, write_corpus

STEPS = 200
HALF = STEPS // 2
# Dropout's draws differ with the split of a batch over workers, so it is off where numbers of them are compared.
QUIET = {
    "model_dropout": 0.0,
    "model_word_dropout": 0.0,
    "train_steps": STEPS,
    "train_validate_every": 50,
    "train_save_every": 20,
    "train_keep": 10,
    "train_threads": 1,
    "train_lr": 0.002,
}
LIVELY = {**QUIET, "model_dropout": 0.2, "model_word_dropout": 0.1}
GROUPS = [(2, "none"), (4, "none"), (2, "model"), (4, "model")]
# Each of the groups, and one process, resumes a run of another twice.
CHAIN = [(1, "none"), *GROUPS, (1, "none"), (4, "model"), (2, "none"), (2, "model"), (4, "none"), (1, "none")]
OTHER_KINDS, OTHER_STEPS = ("rnn", "conv", "decoder"), 50
KILLS = 10  # in each series
SERIES = [("none", 1), ("model", 2)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def train(corpus: list[str], run: Path, n_workers: int, **settings: object) -> Path:
    """Train to the end with a number of workers."""
    run_workers(train_command(corpus, run, **settings), n_workers)
    return run


def cut_back(run: Path, copy: Path) -> Path:
    """Copy a run as it was when half of it was done."""
    shutil.copytree(run, copy)
    for path in (copy / "checkpoints").glob("step-*"):
        if int(path.name.removeprefix("step-")) > HALF:
            shutil.rmtree(path)
    shutil.rmtree(copy / "checkpoints" / "best", ignore_errors=True)
    (copy / "manifest.json").unlink()
    return copy


def difference(run: Path, other: Path, steps: int = STEPS) -> float:
    """Return the largest difference between the losses of two runs, in training and in validation."""
    ours, theirs = losses(run), losses(other)
    assert [entry[:2] for entry in ours] == [entry[:2] for entry in theirs]
    assert len(ours) >= steps
    return max(abs(one[2] - two[2]) for one, two in zip(ours, theirs, strict=True))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, corpus: list[str]) -> Path:
    """The run of one process that the others are compared with."""
    return train(corpus, tmp_path_factory.mktemp("alone") / "run", 1, **QUIET)


@pytest.mark.parametrize(("n_workers", "shard"), GROUPS)
def test_loss_curves_do_not_depend_on_the_number_of_workers(
    tmp_path: Path, corpus: list[str], alone: Path, n_workers: int, shard: str
) -> None:
    found = difference(train(corpus, tmp_path / "run", n_workers, train_shard=shard, **QUIET), alone)
    print(f"\n{n_workers} workers, shard = {shard}: losses of {STEPS} steps differ by {found:.1e}")
    assert found < 1e-5


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_loss_curves_of_other_kinds_do_not_either(tmp_path: Path, corpus: list[str], kind: str) -> None:
    settings = {**QUIET, "model_kind": kind, "train_steps": OTHER_STEPS}
    one = train(corpus, tmp_path / "one", 1, **settings)
    for shard in ("none", "model"):
        found = difference(train(corpus, tmp_path / shard, 4, train_shard=shard, **settings), one, OTHER_STEPS)
        print(f"\n{kind}, 4 workers, shard = {shard}: losses of {OTHER_STEPS} steps differ by {found:.1e}")
        assert found < 1e-5


@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("shard", ["none", "model"])
def test_workers_that_compile_have_the_losses_of_others(tmp_path: Path, corpus: list[str], shard: str) -> None:
    settings = {**QUIET, "train_steps": 10, "train_shard": shard}
    plain = train(corpus, tmp_path / "plain", 2, **settings)
    compiled = train(corpus, tmp_path / "compiled", 2, **settings, train_compile="true")
    found = difference(compiled, plain, 10)
    print(f"\n2 workers that compile, shard = {shard}: losses of 10 steps differ by {found:.1e}")
    assert found < 1e-5


@pytest.mark.parametrize(("n_workers", "shard"), [(1, "none"), *GROUPS])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path, corpus: list[str], n_workers: int, shard: str) -> None:
    run = train(corpus, tmp_path / "run", n_workers, train_shard=shard, **LIVELY)
    resumed = train(corpus, cut_back(run, tmp_path / "resumed"), n_workers, train_shard=shard, **LIVELY)
    assert_same_run(resumed, run)
    print(
        f"\n{n_workers} workers, shard = {shard}: resumed after step {HALF}, {STEPS} losses and the weights are equal"
    )


def test_any_number_of_workers_resumes_a_run_of_any_other(tmp_path: Path, corpus: list[str], alone: Path) -> None:
    run, stops = tmp_path / "run", [0]
    for n_workers, shard in CHAIN[:-1]:
        workers = start_workers(train_command(corpus, run, train_shard=shard, **QUIET), n_workers)
        assert wait_for_step(run, stops[-1] + 5, workers[0])
        workers[-1].send_signal(signal.SIGTERM)  # all stop at the same step
        messages = [worker.communicate(timeout=120)[1] for worker in workers]
        stops.append(last_step(run))
        assert stops[-1] > stops[-2], "\n".join(messages)
    found = difference(train(corpus, run, 1, **QUIET), alone)
    groups = ", ".join(
        f"{n_workers} {shard} to {step}" for (n_workers, shard), step in zip(CHAIN, stops[1:], strict=False)
    )
    print(f"\nworkers, shard, and the last step of each: {groups}, 1: losses of {STEPS} steps differ by {found:.1e}")
    assert found < 1e-5


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the process ids of the workers that a torchrun has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in children.read_text().split()] if children.exists() else []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers through /proc")
@pytest.mark.parametrize(("shard", "series"), SERIES)
def test_kills_of_one_worker_of_four_change_nothing(tmp_path: Path, corpus: list[str], shard: str, series: int) -> None:
    settings = {**LIVELY, "train_steps": 500, "train_save_every": 4, "train_keep": 4, "train_shard": shard}
    expected, run = train(corpus, tmp_path / "expected", 4, **settings), tmp_path / "run"
    flags = ["--standalone", "--nproc-per-node", "4", "--max-restarts", str(KILLS), "--monitor-interval", "0.1"]
    command = train_command(corpus, run, **settings)
    torchrun = [sys.executable, "-m", "torch.distributed.run", *flags, "-m", "seqtool", *command[3:]]
    process = subprocess.Popen(torchrun, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    rng, done = random.Random(series), 0
    while done < KILLS:
        workers = wait_for_workers(process)
        if done % 4:  # in training; every fourth time whenever it comes, so that starts are hit too
            wait_for_more_steps(run, process, rng.randint(1, 60))
            time.sleep(rng.uniform(0, 0.1))
        else:
            time.sleep(rng.uniform(0, 5))
        victim = rng.choice(workers)
        os.kill(victim, signal.SIGKILL)
        done += 1
        while process.poll() is None and victim in workers_of(process):
            time.sleep(0.05)
    steps = last_step(run)
    assert 100 < steps < 500, f"the last kill came after step {steps}"
    _, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors
    print(f"\nshard = {shard}: {done} kills, the last one after step {steps}")
    assert_same_run(run, expected)


def wait_for_workers(process: subprocess.Popen[str]) -> list[int]:
    """Wait until a torchrun has started four workers; return their process ids."""
    deadline = time.monotonic() + 120
    while len(workers := workers_of(process)) < 4:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return workers


def wait_for_more_steps(run: Path, process: subprocess.Popen[str], number: int) -> None:
    """Wait until a run has reported so many steps more."""
    wanted, deadline = last_step(run) + number, time.monotonic() + 300
    while last_step(run) < wanted:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)
