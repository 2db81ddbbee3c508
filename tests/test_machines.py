"""Workers on machines that share no storage, or that lose each other; on real networks: tests/deep/test_machines.py."""

import datetime
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from gloo_workers import run_together
from several_workers import start_workers
from small_run import assert_same_run, train_command, wait_for_step

from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir
from seqtool.training.distributed import Workers
from seqtool.training.machines import Surroundings, find_difference
from seqtool.training.pipeline import start_over
from seqtool.training.request import TrainRequest

SETTINGS = {"train_steps": 6, "train_validate_every": 6, "train_threads": 1, "data_held_out": 4}
HERE = Surroundings(machine="one", tokenizers="t", corpus="c", valid="v", precision="float32", newest=-1)


def make_machines(folder: Path, corpus: list[str]) -> list[Path]:
    """Make the folder of each of two machines, with its own copy of the training corpus."""
    machines = [folder / "one", folder / "two"]
    for machine in machines:
        machine.mkdir()
        for file in corpus[:2]:
            shutil.copy(file, machine)
    return machines


def command(**changes: object) -> list[str]:
    """Return a command that holds out its validation pairs; all paths are relative to the machine's folder."""
    return train_command(["train.en", "train.de"], Path("run"), **{**SETTINGS, **changes})


def test_each_machine_prepares_its_own_corpus_where_storage_is_not_shared(tmp_path: Path, corpus: list[str]) -> None:
    for name, n_folders in (("shared", 1), ("apart", 2)):
        (tmp_path / name).mkdir()
        machines = make_machines(tmp_path / name, corpus)
        workers = start_workers(command(), machines=machines if n_folders == 2 else [machines[0]] * 2)
        messages = [worker.communicate(timeout=300)[1] for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0], messages
    assert_same_run(tmp_path / "apart" / "one" / "run", tmp_path / "shared" / "one" / "run")
    assert (tmp_path / "apart" / "two" / "run" / "prepared" / "manifest.json").exists()
    assert not (tmp_path / "apart" / "two" / "run" / "model.safetensors").exists()
    assert not (tmp_path / "shared" / "two" / "run").exists()


def test_machines_with_other_corpora_do_not_begin(tmp_path: Path, corpus: list[str]) -> None:
    machines = make_machines(tmp_path, corpus)
    for side in ("en", "de"):
        file = machines[1] / f"train.{side}"
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    workers = start_workers(command(), machines=machines)
    for worker in workers:
        assert "run: worker 1, on " in (message := worker.communicate(timeout=300)[1])
        assert "give each machine the same files" in message
        assert "Traceback" not in message
        assert worker.returncode == 1
    assert not (machines[0] / "run" / "checkpoints").exists()


def test_what_machines_have_in_common_is_compared() -> None:
    def message(**changes: object) -> str | None:
        return find_difference(RunDir(Path("run")), [HERE, replace(HERE, machine="two", **changes)])  # type: ignore[arg-type]

    assert message() is None
    assert "on two, has another tokenizer than the first worker, on one" in str(message(tokenizers="u", corpus="d"))
    assert "has prepared another corpus" in str(message(corpus="d"))
    assert "validates on other pairs" in str(message(valid="w"))
    assert "in bf16, and the first worker, on one, in float32" in str(message(precision="bf16"))
    assert "has a checkpoint of step 4,000" in str(message(newest=4000))


def test_a_worker_that_loses_another_says_so_and_ends(tmp_path: Path, corpus: list[str]) -> None:
    run = tmp_path / "run"
    workers = start_workers(train_command(corpus, run, train_steps=100_000, train_threads=1))
    assert wait_for_step(run, 2, workers[0])
    workers[1].send_signal(signal.SIGKILL)
    message = workers[0].communicate(timeout=60)[1]
    workers[1].communicate(timeout=60)
    assert workers[0].returncode == 1
    assert "seqtool: error: worker 0, on " in message
    assert "has lost another one" in message
    assert "Traceback" not in message


def test_a_torchrun_starts_a_run_over_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDir(tmp_path)
    request = TrainRequest(corpora=(), out=tmp_path, fresh=True)
    for launch, is_new in (("one", True), ("one", False), ("two", True)):
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", launch)
        run.metrics.write_text("")
        assert start_over(request, run).fresh is is_new
        assert run.metrics.exists() is not is_new
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    for _ in range(2):
        run.metrics.write_text("")
        assert start_over(request, run).fresh
        assert not run.metrics.exists()


def wait_for_a_silent_one(workers: Workers) -> str:
    workers.limit_waits(datetime.timedelta(seconds=2))
    if workers.rank == 1:
        time.sleep(8)
        return ""
    try:
        with workers.explaining_losses():
            workers.wait_for_all()
    except SeqtoolError as error:
        return str(error)
    return "no error"


def test_a_silent_worker_is_not_waited_for_without_end() -> None:
    assert "has lost another one" in run_together(wait_for_a_silent_one, 2, part_in_peace=False)[0]


def fail_for_another_reason(workers: Workers) -> None:
    with pytest.raises(RuntimeError, match="shapes"), workers.explaining_losses():
        raise RuntimeError("shapes cannot be broadcast")


def test_other_errors_stay_what_they_are() -> None:
    run_together(fail_for_another_reason, 2)
