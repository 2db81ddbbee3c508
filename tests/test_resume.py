"""A run that is stopped at any moment and started again gives what the undisturbed run gives, bit for bit."""

import shutil
import signal
import time
from pathlib import Path

import pytest
from command_line import run_command
from small_run import (
    assert_same_run,
    last_step,
    losses,
    read_metrics,
    run_to_end,
    start,
    stop,
    train_command,
    wait_for_step,
    write_corpus,
)


def test_a_run_killed_again_and_again_ends_as_the_undisturbed_one(
    tmp_path: Path, corpus: list[str], finished: Path
) -> None:
    run = tmp_path / "run"
    for step in (7, 28):  # between two saves before the first validation, and between two validations
        process = start(train_command(corpus, run))
        assert wait_for_step(run, step, process)
        assert stop(process, signal.SIGKILL)[0] == -signal.SIGKILL
    run_to_end(train_command(corpus, run))
    assert_same_run(run, finished)


@pytest.mark.parametrize("kind", ["rnn", "decoder", "conv"])
def test_a_killed_run_of_every_kind_ends_as_the_undisturbed_one(tmp_path: Path, corpus: list[str], kind: str) -> None:
    settings = {"model_kind": kind, "train_steps": 12, "train_validate_every": 6}
    run_to_end(train_command(corpus, tmp_path / "undisturbed", **settings))
    process = start(train_command(corpus, tmp_path / "run", **settings))
    assert wait_for_step(tmp_path / "run", 5, process)
    assert stop(process, signal.SIGKILL)[0] == -signal.SIGKILL
    run_to_end(train_command(corpus, tmp_path / "run", **settings))
    assert_same_run(tmp_path / "run", tmp_path / "undisturbed")


def test_a_run_with_a_time_budget_keeps_its_plan_when_killed(tmp_path: Path, corpus: list[str]) -> None:
    """And ends as a run of that many steps does, with Muon and rotary positions as auto chooses them."""
    settings = {
        "train_schedule": "constant",  # so that the steps before the plan do not depend on it
        "train_warmup": 0,
        "train_optimizer": "muon",
        "train_weight_decay": 0.1,
        "model_positions": "rotary",
        "train_save_every": 50,
        "train_validate_every": 50,
    }
    timed = [*train_command(corpus, tmp_path / "timed", **settings), "--minutes", "0.03"]
    process = start(timed)
    assert wait_for_step(tmp_path / "timed", 1, process)
    while not (notes := [entry for entry in read_metrics(tmp_path / "timed") if entry["kind"] == "note"]):
        assert process.poll() is None
        time.sleep(0.01)
    assert wait_for_step(tmp_path / "timed", notes[0]["step"] + 1, process)
    assert stop(process, signal.SIGKILL)[0] == -signal.SIGKILL
    run_to_end(timed)
    steps = last_step(tmp_path / "timed")
    assert notes[0]["text"] == f"{steps:,} steps fit in 0.03 minutes"
    run_to_end(train_command(corpus, tmp_path / "counted", **settings, train_steps=steps))
    assert losses(tmp_path / "timed") == losses(tmp_path / "counted")


def test_sigterm_saves_at_once_and_the_run_ends_as_the_undisturbed_one(
    tmp_path: Path, corpus: list[str], finished: Path
) -> None:
    run = tmp_path / "run"
    process = start(train_command(corpus, run, train_save_every=1000))
    assert wait_for_step(run, 10, process)
    code, errors = stop(process, signal.SIGTERM)
    assert code == 143
    assert "everything is saved" in errors
    saved = [path.name for path in (run / "checkpoints").glob("step-*")]
    assert saved == [f"step-{last_step(run):09d}"]
    run_to_end(train_command(corpus, run, train_save_every=1000))
    assert losses(run) == losses(finished)


def test_a_damaged_checkpoint_is_told_and_the_one_before_is_used(
    tmp_path: Path, corpus: list[str], finished: Path
) -> None:
    run = tmp_path / "run"
    process = start(train_command(corpus, run))
    assert wait_for_step(run, 20, process)
    stop(process, signal.SIGTERM)
    checkpoints = sorted((run / "checkpoints").glob("step-*"))
    weights = checkpoints[-1] / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(bytes(content))
    done = run_to_end(train_command(corpus, run))
    assert f"{checkpoints[-1].name}: damaged checkpoint" in done.stderr
    assert f"continuing at step {int(checkpoints[-2].name.split('-')[1])}" in done.stderr
    assert_same_run(run, finished)


def test_a_finished_run_says_so_and_a_larger_budget_continues_it(
    tmp_path: Path, corpus: list[str], finished: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    before = (run / "model.safetensors").stat().st_mtime_ns
    done = run_to_end(train_command(corpus, run))
    assert "this run is finished: 36 steps are done" in done.stderr
    assert (run / "model.safetensors").stat().st_mtime_ns == before
    run_to_end(train_command(corpus, run, train_steps=40))
    assert last_step(run) == 40
    assert losses(run)[: len(losses(finished))] == losses(finished)


def test_changed_settings_or_corpus_are_named_with_what_to_do(
    tmp_path: Path, corpus: list[str], finished: Path
) -> None:

    run = tmp_path / "run"
    shutil.copytree(finished, run)
    done = run_command(train_command(corpus, run, model_dropout=0.3), capture_output=True, text=True)
    assert done.returncode == 1
    assert "model.dropout was 0.2 and is now 0.3" in done.stderr
    assert "--fresh" in done.stderr
    other = write_corpus(tmp_path, pairs=110)
    done = run_command(train_command(other, run), capture_output=True, text=True)
    assert done.returncode == 1
    assert "--fresh" in done.stderr
    assert losses(run) == losses(finished)


def test_no_step_is_reported_twice(finished: Path) -> None:
    steps = [entry["step"] for entry in read_metrics(finished) if entry["kind"] == "train"]
    assert steps == list(range(1, 37))
