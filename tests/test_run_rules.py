"""What `seqtool train` does at the edges of a run: larger budgets, damage, interruptions, and what --fresh removes."""

import os
import shutil
import signal
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import run_command, run_seqtool
from small_run import (
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

from seqtool.config import TrainConfig, load_config
from seqtool.run_directory import RunDir
from seqtool.training.finishing import AveragedTensors
from seqtool.training.schedule import learning_rate
from seqtool.training.state import RunState


@pytest.fixture
def run(tmp_path: Path, finished: Path) -> Path:
    """A copy of the finished run, to be spoiled."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def test_a_batch_size_fitted_to_the_memory_is_kept_by_the_same_command(tmp_path: Path, corpus: list[str]) -> None:
    command = train_command(corpus, tmp_path / "run", train_batch_tokens="auto", train_steps=4, train_save_every=2)
    first = run_to_end(command)
    assert "fits the memory" in first.stderr
    fitted = load_config(tmp_path / "run" / "config.toml").train
    assert isinstance(fitted.batch_tokens, int)
    again = run_to_end(command)
    assert "this run is finished" in again.stderr
    assert load_config(tmp_path / "run" / "config.toml").train == fitted


def reason_to_stop(state: RunState, config: TrainConfig) -> str | None:
    """Return why a run in this state ends that is continued with these settings."""
    return state.reason_to_stop(state.resolve_steps(config))


def test_more_minutes_continue_a_run_that_used_up_its_minutes() -> None:
    state = RunState(step=100, seconds=600.0, planned_steps=100, planned_minutes=10.0)
    assert "fit in 10 minutes" in (reason_to_stop(state, TrainConfig(minutes=10.0)) or "")
    longer = TrainConfig(minutes=20.0)
    assert reason_to_stop(state, longer) is None
    state.plan_steps(longer)
    assert 190 < state.resolve_steps(longer).steps <= 200
    assert reason_to_stop(state, TrainConfig(steps=5000)) is None  # without --minutes the plan is void


def test_fewer_minutes_are_planned_right_after_a_slow_start() -> None:
    state = RunState(step=40, seconds=100.0)
    state.plan_steps(TrainConfig(minutes=60.0))
    assert state.slow_steps == 40  # the next ones would be measured
    state.plan_steps(TrainConfig(minutes=10.0))
    assert state.planned_steps == 40 + int(0.97 * 500 / 2.5)


def plan(steps: Iterable[float], minutes: float, **settings: Any) -> tuple[RunState, TrainConfig]:
    """Return the state and the fitted settings of a run whose steps take this many seconds, when they are planned."""
    config, state = TrainConfig(minutes=minutes, **settings), RunState()
    for seconds in steps:
        state.step, state.seconds = state.step + 1, state.seconds + seconds
        assert reason_to_stop(state, config) is None
        state.plan_steps(config)
        if state.is_planned(config):
            return state, state.resolve_steps(config)
    raise AssertionError("the steps ended before they were planned")


def test_a_slow_start_is_not_counted_on() -> None:
    state, fitted = plan([5.0] * 5 + [0.5] * 1000, 20)  # slow for 25 of 1200 seconds
    assert state.seconds == 60  # a twentieth
    assert fitted.steps == state.step + int(0.97 * (1200 - 60) / 0.5)


def test_slow_steps_are_planned_before_the_time_is_over() -> None:
    state, fitted = plan([60.0] * 20, 15, warmup=4000)
    assert state.step == 4  # a fifth of the time is over
    assert fitted.steps == 4 + int(0.97 * 660 / 60)
    assert fitted.warmup == 1


def test_the_schedule_ends_with_the_time_even_if_that_is_short() -> None:
    _, fitted = plan([0.1] * 100, 1, warmup=300, schedule="cosine", lr=1.0)
    assert fitted.warmup == fitted.steps // 10 < 60
    rates = [learning_rate(step, fitted, 128) for step in range(1, fitted.steps + 1)]
    assert max(rates) == 1.0
    assert rates[-1] == pytest.approx(0.0, abs=1e-9)
    assert (
        learning_rate(500, RunState().resolve_steps(TrainConfig(minutes=9, warmup=300, schedule="cosine")), 128) == 7e-4
    )


def test_a_number_of_epochs_fits_the_schedule_and_ends_with_the_last_epoch() -> None:
    config = TrainConfig(epochs=4, warmup=300, schedule="cosine", lr=1.0)
    state = RunState(epoch_steps=50, fitted=["warmup", "validate_every", "steps"])
    fitted = state.resolve_steps(config)
    assert (fitted.steps, fitted.warmup, fitted.validate_every, fitted.save_every) == (200, 20, 40, 1000)
    assert learning_rate(200, fitted, 128) == pytest.approx(0.0, abs=1e-9)
    state.step, state.epoch = 200, 3  # the later epochs had a batch more
    assert state.reason_to_stop(fitted) is None
    state.epoch = 4
    assert state.reason_to_stop(fitted) == "4 epochs are done"
    given = RunState(epoch_steps=50, fitted=["warmup"], step=100)  # the steps were given too
    assert reason_to_stop(given, replace(config, steps=100)) == "100 steps are done"


@pytest.mark.parametrize(("planned", "steps"), [(120, 120), (1000, 200)])
def test_of_minutes_and_epochs_the_shorter_shapes_the_schedule(planned: int, steps: int) -> None:
    state = RunState(epoch_steps=50, fitted=["warmup", "steps"], planned_steps=planned, planned_minutes=3)
    assert state.resolve_steps(TrainConfig(epochs=4, minutes=3)).steps == steps


def test_epochs_alone_end_a_run_with_at_least_five_validations(tmp_path: Path, corpus: list[str]) -> None:
    run = tmp_path / "run"
    command = train_command(corpus, run, train_epochs=2, train_schedule="linear")
    left_to_fit = ("train.steps=", "train.warmup=", "train.validate_every=", "train.save_every=")
    taken_out = {
        i + n
        for i, part in enumerate(command)
        if command[i + 1 : i + 2] and command[i + 1].startswith(left_to_fit)
        for n in (0, 1)
    }
    done = run_to_end([part for i, part in enumerate(command) if i not in taken_out])
    assert "2 epochs are done" in done.stderr
    entries = read_metrics(run)
    assert sum(entry["kind"] == "valid" for entry in entries) >= 5
    rates = [entry["lr"] for entry in entries if entry["kind"] == "train"]
    assert max(rates) == 0.01
    assert rates[-1] < 0.1 * max(rates)


def test_other_minutes_are_planned_before_the_next_step(tmp_path: Path, corpus: list[str]) -> None:
    settings = {"train_schedule": "linear", "train_warmup": 1, "train_report_every": 1, "train_steps": 20}
    command = train_command(corpus, tmp_path / "run", **settings)
    run_to_end(command)
    ended, minutes = last_step(tmp_path / "run"), read_metrics(tmp_path / "run")[-1]["minutes"]
    run_to_end([*command, "--minutes", f"{3 * minutes:.4f}"])  # enough was measured, and time is left
    rates = {entry["step"]: entry["lr"] for entry in read_metrics(tmp_path / "run") if entry["kind"] == "train"}
    planned = RunDir(tmp_path / "run").read_manifest().training.planned_steps
    assert last_step(tmp_path / "run") == planned > ended
    expected = load_config(tmp_path / "run" / "config.toml").train.lr * (1 - ended / (planned - 1))
    assert rates[ended + 1] == pytest.approx(expected)


def test_epochs_and_patience_end_a_run(tmp_path: Path, corpus: list[str]) -> None:
    done = run_to_end(train_command(corpus, tmp_path / "epochs", train_epochs=2, train_steps=1000))
    assert "2 epochs are done" in done.stderr
    settings = {"train_validate_every": 1, "train_patience": 2, "train_metric": "loss", "train_lr": 0.0}
    done = run_to_end(train_command(corpus, tmp_path / "patience", **settings))
    assert "2 validations brought no better loss" in done.stderr
    assert last_step(tmp_path / "patience") == 3


def test_fresh_starts_over_but_not_before_the_corpus_is_known_to_be_there(
    tmp_path: Path, corpus: list[str], run: Path
) -> None:
    missing = train_command([str(tmp_path / "typo.en"), str(tmp_path / "typo.de")], run)
    done = run_command([*missing, "--fresh"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no such file" in done.stderr
    assert (run / "model.safetensors").exists()
    done = run_to_end([*train_command(corpus, run, train_steps=4, train_lr=0.02), "--fresh"])
    assert "continuing" not in done.stderr
    assert last_step(run) == 4


def test_workers_that_torchrun_restarts_do_not_start_over(corpus: list[str], run: Path) -> None:
    command = [*train_command(corpus, run), "--fresh"]
    environment = {**os.environ, "TORCHELASTIC_RESTART_COUNT": "1"}
    done = run_command(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0
    assert "this run is finished" in done.stderr


def test_fine_tuning_into_the_same_folder_is_refused(corpus: list[str], run: Path) -> None:
    command = [*train_command(corpus, run), "--fresh", "--from", str(run)]
    done = run_command(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--from and -o are the same folder" in done.stderr
    assert (run / "model.safetensors").exists()


def test_a_shape_in_a_file_that_differs_from_the_model_to_tune_is_named(
    tmp_path: Path, corpus: list[str], run: Path
) -> None:
    (tmp_path / "other.toml").write_text("[model]\nd_model = 32\n")
    flags = ["--config", str(tmp_path / "other.toml"), "--from", str(run)]
    done = run_seqtool("train", *corpus, "-o", tmp_path / "tuned", *flags)
    assert done.returncode == 1
    assert b"its model has model.d_model = 16" in done.stderr


def test_sigterm_near_the_end_changes_neither_checkpoints_nor_model(
    tmp_path: Path, corpus: list[str], finished: Path
) -> None:
    run = tmp_path / "run"
    for step in (29, 32):  # saves are at multiples of 3, and the last three checkpoints are averaged
        process = start(train_command(corpus, run))
        assert wait_for_step(run, step, process)
        assert stop(process, signal.SIGTERM)[0] == 143
    run_to_end(train_command(corpus, run))
    names = [[path.name for path in RunDir(folder).checkpoint_folders()] for folder in (run, finished)]
    assert names[0] == names[1]
    models = [RunDir(folder).read_manifest().model for folder in (run, finished)]
    assert models[0] == models[1]
    assert losses(run) == losses(finished)


def test_damage_to_older_checkpoints_and_the_best_does_not_keep_a_run_from_its_end(
    corpus: list[str], run: Path
) -> None:
    older = RunDir(run).checkpoint_folders()[-2]
    for folder in (older, run / "checkpoints" / "best"):
        (folder / "model.safetensors").write_bytes(b"damaged")
    done = run_to_end(train_command(corpus, run, train_steps=37))
    assert f"{older.name}: damaged checkpoint" in done.stderr
    assert "best: damaged checkpoint" in done.stderr
    assert RunDir(run).read_manifest().training.steps == 37


def test_a_checkpoint_that_was_being_replaced_when_the_run_was_killed_is_there_again(
    corpus: list[str], run: Path
) -> None:
    for path in RunDir(run).checkpoint_folders():
        workshop = path.with_name(f".{path.name}.seqtool")
        (workshop / "new").mkdir(parents=True)
        path.rename(workshop / "old")
    done = run_to_end(train_command(corpus, run, train_steps=37))
    assert "continuing at step 36" in done.stderr
    assert not list((run / "checkpoints").glob(".*"))


def test_an_end_that_was_cut_short_is_done_again(corpus: list[str], run: Path) -> None:
    manifest = RunDir(run).read_manifest()
    assert manifest.training is not None
    assert manifest.training.finished == "36 steps are done at step 36"
    RunDir(run).write_manifest(replace(manifest, complete=False))
    (run / "report.html").unlink()
    shutil.rmtree(run / "ctranslate2", ignore_errors=True)
    before = (run / "model.safetensors").read_bytes()
    run_to_end(train_command(corpus, run))
    assert (run / "report.html").exists()
    assert (run / "model.safetensors").read_bytes() == before
    assert RunDir(run).read_manifest().complete
    assert "not finished" not in (run / "report.html").read_text(encoding="utf-8")


def test_another_beam_for_a_finished_run_leaves_its_files_vouched_for(corpus: list[str], run: Path) -> None:
    run_to_end(train_command(corpus, run, decode_beam=3))
    assert load_config(run / "config.toml").decode.beam == 3
    assert run_seqtool("info", run).returncode == 0


def test_a_lost_prepared_corpus_is_made_again(corpus: list[str], run: Path, finished: Path) -> None:
    shutil.rmtree(run / "prepared")
    run_to_end(train_command(corpus, run, train_steps=40))
    assert last_step(run) == 40
    assert losses(run)[: len(losses(finished))] == losses(finished)


def test_a_model_without_checkpoints_is_not_trained_over(corpus: list[str], run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    done = run_command(train_command(corpus, run), capture_output=True, text=True)
    assert done.returncode == 1
    assert "holds a model, and no checkpoint to continue from" in done.stderr
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("one side only\n", "give it twice, for the source and for the target"),
        ("", "the validation set is empty"),
        ("a\tb\nc\t\udcff\n", "line 2 is not valid UTF-8"),
    ],
)
def test_a_bad_validation_set_is_named_before_anything_is_removed_or_made(
    tmp_path: Path, corpus: list[str], run: Path, content: str, message: str
) -> None:
    (tmp_path / "valid").write_text(content, encoding="utf-8", errors="surrogateescape")
    prepared = (run / "prepared" / "manifest.json").stat()
    command = train_command([*corpus[:2], "--valid", str(tmp_path / "valid")], run)
    done = run_command([*command, "--fresh"], capture_output=True, text=True)
    assert done.returncode == 1
    assert message in done.stderr
    assert (run / "model.safetensors").exists()
    assert (run / "prepared" / "manifest.json").stat() == prepared


def test_a_corpus_too_small_to_hold_pairs_out_is_named_before_training(tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text("a small house\tein kleines Haus\n")
    done = run_command(train_command([str(tmp_path / "one.tsv")], tmp_path / "run"), capture_output=True, text=True)
    assert done.returncode == 1
    assert "too small to hold pairs out of it; give more, or a validation set as --valid" in done.stderr
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_corpus_that_changed_is_named_even_where_auto_would_choose_otherwise_for_it(
    tmp_path: Path, run: Path
) -> None:
    corpus = write_corpus(tmp_path, 121)
    done = run_seqtool("train", *corpus, "-o", run, "--preset", "auto")
    assert done.returncode == 1
    assert b"the corpus is not the one that this run was begun with" in done.stderr
    assert b"train.en has changed" in done.stderr


def test_a_setting_that_was_given_is_not_silently_left_to_auto(corpus: list[str], run: Path) -> None:
    text = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(text.replace('precision = "auto"', 'precision = "float32"'), encoding="utf-8")
    done = run_command(train_command(corpus, run), capture_output=True, text=True)
    assert done.returncode == 1
    assert "train.precision was 'float32' and is now 'auto' (the default)" in done.stderr


def test_a_copy_of_a_checkpoint_beside_the_others_does_no_harm(corpus: list[str], run: Path) -> None:
    newest = RunDir(run).checkpoint_folders()[-1]
    shutil.copytree(newest, newest.with_name(newest.name + "-good"))
    run_to_end(train_command(corpus, run, train_steps=40))
    assert last_step(run) == 40
    assert newest.with_name(newest.name + "-good").exists()


def test_fine_tuning_keeps_the_settings_of_the_tokenizer(tmp_path: Path, corpus: list[str], run: Path) -> None:
    tuned = train_command(corpus, tmp_path / "tuned", train_steps=2)
    done = run_command([*tuned, "--from", str(run), "--set", "tokenizer.vocab_size=500"], capture_output=True)
    assert done.returncode == 1
    assert b"its model has tokenizer.vocab_size = 400" in done.stderr
    command = ["train", *corpus, "-o", tmp_path / "auto", "--from", run, "--steps", "1", "--set", "train.threads=2"]
    done = run_seqtool(*command)
    assert done.returncode == 0, done.stderr
    assert b"very small corpus" not in done.stderr
    config = load_config(tmp_path / "auto" / "config.toml")
    assert config.tokenizer.vocab_size == 400
    assert config.train.both_ways == 0  # auto has it, and would unlearn what the model can


def test_the_second_step_is_turned_where_both_ways_are_trained(
    tmp_path: Path, corpus: list[str], finished: Path
) -> None:
    one_way = tmp_path / "run"
    run_to_end(train_command(corpus, one_way, train_steps=2, train_both_ways=0))
    reports = [[entry for entry in read_metrics(run) if entry["kind"] == "train"] for run in (one_way, finished)]
    seen = [[entry["seen_tokens"] for entry in entries] for entries in reports]
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] != seen[1][1]  # the second batch has more tokens on one side than on the other


def test_training_goes_on_with_the_tokenizer_that_preparation_was_given(tmp_path: Path, corpus: list[str]) -> None:
    model, run = tmp_path / "own.model", tmp_path / "run"
    assert run_seqtool("tokenizer", "train", *corpus[:2], "--vocab-size", 450, "-o", model).returncode == 0
    done = run_seqtool("prepare", *corpus, "-o", run, "--tokenizer", model, "--preset", "tiny")
    assert done.returncode == 0, done.stderr
    wrong = run_command(train_command(corpus, run, train_steps=2), capture_output=True, text=True)
    assert "was prepared with a given tokenizer, which has tokenizer.vocab_size = 450" in wrong.stderr
    run_to_end(train_command(corpus, run, train_steps=2, tokenizer_vocab_size=450))
    assert (run / "tokenizer.model").read_bytes() == model.read_bytes()
    assert load_config(run / "config.toml").tokenizer.vocab_size == 450


def test_a_test_set_is_kept_out_of_training(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    for side in ("en", "de"):
        lines = (tmp_path / f"train.{side}").read_text(encoding="utf-8").split("\n")[:7]
        (tmp_path / f"test.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = [str(tmp_path / f"test.{side}") for side in ("en", "de")]
    command = [*train_command(corpus, tmp_path / "run", train_steps=2), "--against", files[0], "--against", files[1]]
    run_to_end(command)
    assert RunDir(tmp_path / "run").read_manifest().data.cleaning["overlap"] >= 7


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_preparation_can_be_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    lines = "".join(f"line number {i} of many\tZeile Nummer {i} von vielen\n" for i in range(400_000))
    (tmp_path / "large.tsv").write_text(lines, encoding="utf-8")
    process = start(train_command([str(tmp_path / "large.tsv")], tmp_path / "run"))
    while not RunDir(tmp_path / "run").lock.exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.3)  # the corpus is being read, which takes some seconds
    code, errors = stop(process, number)
    assert code == 128 + number
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "run" / "prepared").exists()


def test_the_second_ctrl_c_ends_a_run_at_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    slow = {"model_d_model": 64, "train_batch_tokens": 10**5, "train_micro_tokens": 10**5}
    command = train_command(write_corpus(tmp_path, 3000), run, **slow, train_validate_every=1000)
    process = start(command)
    assert wait_for_step(run, 1, process)
    time.sleep(0.3)  # the second step has begun
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)  # two signals at once would count as one
    code, said = stop(process, signal.SIGINT)  # within the second step, which takes some seconds
    assert code == 130
    assert "everything is saved" not in said


@pytest.mark.parametrize("damage", ["swapped tokens", "other lengths", "manifest"])
def test_a_damaged_prepared_corpus_is_named_and_prepared_again(run: Path, corpus: list[str], damage: str) -> None:
    prepared = RunDir(run).prepared
    before = {path.name: path.read_bytes() for path in prepared.iterdir()}
    names = {"swapped tokens": "target.tokens", "other lengths": "source.lengths", "manifest": "manifest.json"}
    name = names[damage]
    content = bytearray(before[name])
    if damage == "manifest":
        content = bytearray(before[name].replace(b'"weight": 1.0', b'"weight": 2.0', 1))
    else:
        content[:4] = content[2:4] + content[:2]
    assert bytes(content) != before[name]
    (prepared / name).write_bytes(content)
    done = run_to_end(train_command(corpus, run))
    assert f"{name} is damaged" in done.stderr
    assert "this run is finished" in done.stderr
    assert {path.name: path.read_bytes() for path in prepared.iterdir()} == before


def test_a_damaged_model_is_made_again_from_its_checkpoints(run: Path, corpus: list[str]) -> None:
    weights = RunDir(run).weights
    before = weights.read_bytes()
    weights.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    done = run_to_end(train_command(corpus, run))
    assert "model.safetensors: is not the file that manifest.json records" in done.stderr
    assert weights.read_bytes() == before


def test_a_share_of_the_parent_is_a_share_of_each_weight() -> None:
    tuned, parent = {"w": torch.tensor([4.0, -2.0])}, {"w": torch.tensor([0.0, 2.0])}
    assert AveragedTensors([tuned, parent], [0.75, 0.25])["w"].tolist() == [3.0, -1.0]
    assert AveragedTensors([tuned, parent])["w"].tolist() == [2.0, 0.0]
