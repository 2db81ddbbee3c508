"""`seqtool train` as users run it: what it leaves behind, budgets, fine-tuning, and what it says."""

import fcntl
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from command_line import run_command, run_seqtool
from safetensors.torch import load_file, save_file
from small_run import last_step, losses, read_metrics, run_to_end, train_command
from vouching import vouch

from seqtool import Translator
from seqtool.config import load_config
from seqtool.files import sha256_of
from seqtool.run_directory import RunDir
from seqtool.training.checkpoint import read_checkpoint, write_checkpoint


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, corpus: list[str]) -> tuple[RunDir, str]:
    run = RunDir(tmp_path_factory.mktemp("trained") / "run")
    settings = {"train_validate_every": 10, "train_tensorboard": "true", "decode_length_penalty": "auto"}
    done = run_to_end(train_command(corpus, run.path, train_steps=30, **settings))
    return run, done.stderr


def test_a_run_directory_is_complete_and_its_manifest_vouches_for_it(trained: tuple[RunDir, str]) -> None:
    run, _ = trained
    manifest = json.loads(run.manifest.read_text(encoding="utf-8"))  # as others read it
    assert set(manifest["files"]) == {"config.toml", "tokenizer.model", "model.safetensors"}
    for name, expected in manifest["files"].items():
        assert sha256_of(run.path / name) == expected
    assert manifest["training"]["steps"] == 30
    resolved = {name: manifest["training"][name] for name in ("device", "precision", "threads")}
    if not torch.cuda.is_available() and not torch.backends.mps.is_available():
        assert resolved == {"device": "cpu", "precision": "float32", "threads": 2}
    assert manifest["data"]["pairs"] > 100
    assert {score["metric"] for score in manifest["scores"]} == {"bleu", "chrf"}
    assert all("version:" in score["signature"] for score in manifest["scores"])
    assert {"weights at the last step", "moving average at the last step"} <= set(manifest["model"]["candidates"])
    penalty = manifest["model"]["length_penalty"]  # translation uses it, and the scores are those it gave
    assert {score["decoding"]["length_penalty"] for score in manifest["scores"]} == {penalty}
    assert Translator.load(run.path).make_options().length_penalty == penalty
    assert run.report.exists()
    assert load_config(run.config).model.d_model == 16


def test_the_summary_tells_scores_with_signatures_and_the_next_command(trained: tuple[RunDir, str]) -> None:
    run, said = trained
    assert "validation bleu" in said
    assert "nrefs:1|case:mixed" in said
    assert f"seqtool translate -m {run.path}" in said


def test_without_a_terminal_each_report_is_a_plain_line(trained: tuple[RunDir, str]) -> None:
    _, said = trained
    assert "\x1b" not in said
    assert len([line for line in said.splitlines() if line.startswith("step ") and "tokens/s" in line]) == 30
    lines = iter(said.splitlines())
    stages = ("reading", "training the tokenizer", "preparing")
    assert all(f"seqtool: {stage} ..." in lines for stage in stages)  # at once, and in this order


def test_tensorboard_files_are_written_when_asked_for(trained: tuple[RunDir, str]) -> None:
    assert list((trained[0].path / "tensorboard").glob("events.out.tfevents.*"))


def test_a_run_directory_translates_after_it_was_moved(trained: tuple[RunDir, str], tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(trained[0].path, moved, ignore=shutil.ignore_patterns("checkpoints", "prepared"))
    done = run_seqtool("translate", "-m", moved, stdin=b"The man sleeps.\n\nA child.\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"\n") == 3


def test_fine_tuning_starts_from_a_model_and_keeps_its_shape_and_tokenizer(
    trained: tuple[RunDir, str], corpus: list[str], tmp_path: Path
) -> None:
    run, _ = trained
    command = [*train_command(corpus, tmp_path / "tuned")[:-2], "--from", str(run.path)]
    command = [
        part for part in command if not part.startswith(("model.d_", "model.n_", "model.encoder", "model.decoder"))
    ]
    # every "--set" whose value was taken out goes too
    command = [
        part for i, part in enumerate(command) if not (part == "--set" and command[i + 1] in ("--set", "--from"))
    ]
    assert "the model will forget some of what it was trained on" in run_to_end([*command, "--steps", "5"]).stderr
    tuned = RunDir(tmp_path / "tuned")
    assert tuned.tokenizer.read_bytes() == run.tokenizer.read_bytes()
    assert load_config(tuned.config).model.decoder_layers == 2
    assert losses(tuned.path)[0][2] < losses(run.path)[0][2] - 0.5  # not from random weights


def test_fine_tuning_says_what_it_takes_and_records_the_model_and_its_scores_on_every_set(
    trained: tuple[RunDir, str], corpus: list[str], tmp_path: Path
) -> None:
    run, _ = trained
    old = tmp_path / "old.domain.tsv"
    old.write_text("A man walks.\tEin Mann läuft.\nTwo dogs play.\tZwei Hunde spielen.\n", encoding="utf-8")
    out = RunDir(tmp_path / "tuned")
    mixed = ["--corpus", f"{','.join(corpus[:2])}@0.5", "--valid", old]
    options = ["--from", run.path, "-o", out.path, "--set", "train.threads=2", "--set", "decode.beam=1"]
    done = run_seqtool("train", *corpus, *mixed, *options, "--set", "train.epochs=1")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert f"fine-tuning {run.path} on 180 pairs per epoch: " in said
    assert f"taken from {run.path} (" in said
    assert "not taken: its dropout, [train] settings and optimizer state" in said
    assert "will forget" not in said  # a further corpus is mixed in
    assert "  old.domain: valid loss " in said
    valid = [entry for entry in read_metrics(out.path) if entry["kind"] == "valid"]
    assert valid[0]["step"] == 0
    assert len(valid) >= 6
    assert all(set(entry["others"]) == {"old.domain"} for entry in valid)
    manifest = out.read_manifest()
    assert manifest.parent is not None
    assert manifest.parent.sha256 == sha256_of(run.weights)
    assert manifest.parent.scores == run.read_manifest().scores
    assert {score.set for score in manifest.parent.before} == {"valid", "valid old.domain"}
    assert {score.set for score in manifest.scores} == {"valid", "valid old.domain"}
    parent = json.loads(run_seqtool("info", out.path, "--json").stdout)["parent"]
    assert parent["path"] == str(run.path)
    shown = run_seqtool("info", out.path).stdout.decode()
    assert "before fine-tuning" in shown

    # The finished training takes a share of its parent without training again: all of it gives the parent.
    again = ["train", *corpus, *mixed, *options, "--set", "train.epochs=1", "--set", "train.parent_share=1"]
    done = run_seqtool(*again)
    assert done.returncode == 0, done.stderr
    assert b"1 of the parent in it" in done.stderr
    assert b"tokens/s" not in done.stderr
    parent_weights = load_file(run.weights)
    for name, tensor in load_file(out.weights).items():
        torch.testing.assert_close(tensor, parent_weights[name], rtol=0, atol=0)
    assert out.read_manifest().parent == replace(manifest.parent, share=1.0)
    assert "parent in the weights 100 %" in run_seqtool("info", out.path).stdout.decode()
    assert b"this run is finished" in run_seqtool(*again).stderr
    assert "1 epoch," in shown
    assert run_seqtool("info", run.path).stdout.decode().count("before fine-tuning") == 0


def test_the_scores_of_the_model_are_known_to_a_run_that_was_interrupted(
    trained: tuple[RunDir, str], corpus: list[str], tmp_path: Path
) -> None:
    out, options = RunDir(tmp_path / "tuned"), ["--from", trained[0].path, "--set", "train.threads=2"]
    for steps in ("1", "2"):
        done = run_seqtool("train", *corpus, "-o", out.path, *options, "--steps", steps)
        assert done.returncode == 0, done.stderr
    parent = out.read_manifest().parent
    assert parent is not None
    assert parent.before
    assert sum(entry["step"] == 0 for entry in read_metrics(out.path)) == 1


def test_print_config_shows_what_a_run_takes_from_its_model_and_its_earlier_session(
    trained: tuple[RunDir, str], corpus: list[str], tmp_path: Path
) -> None:
    run, _ = trained
    printed = run_seqtool("train", *corpus, "--from", run.path, "--print-config").stdout.decode()
    assert printed.startswith(f"# fine-tuning {run.path} on 120 pairs per epoch: ")
    assert "[fine-tuning]" in next(line for line in printed.splitlines() if line.startswith("lr = "))
    assert f"[the model {run.path}]" in next(line for line in printed.splitlines() if line.startswith("d_model = 16"))
    printed = run_seqtool("train", *corpus, "-o", run.path, "--preset", "tiny", "--print-config").stdout.decode()
    assert "[an earlier session of this run]" in next(
        line for line in printed.splitlines() if line.startswith("micro_tokens = 64")
    )
    assert not (tmp_path / "checkpoints").exists()


def test_fine_tuning_with_another_shape_is_refused(
    trained: tuple[RunDir, str], corpus: list[str], tmp_path: Path
) -> None:
    command = [*train_command(corpus, tmp_path / "tuned", model_d_model=32), "--from", str(trained[0].path)]
    done = run_command(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "model.d_model = 16" in done.stderr
    assert "32" in done.stderr


def test_a_time_budget_determines_the_number_of_steps_and_is_recorded(corpus: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = {
        "train_steps": 3,  # the minutes count
        "train_validate_every": 100000,
        "train_save_every": 100000,
        "train_schedule": "cosine",
    }
    run_to_end([*train_command(corpus, run, **settings), "--minutes", "0.03"])
    planned = RunDir(run).read_manifest().training.planned_steps
    assert planned == last_step(run) > 3
    notes = [entry["text"] for entry in read_metrics(run) if entry["kind"] == "note"]
    assert notes == [f"{planned:,} steps fit in 0.03 minutes"]
    rates = [entry["lr"] for entry in read_metrics(run) if entry["kind"] == "train"]
    assert rates[-1] < 0.01 * max(rates)  # the schedule reached its end


def test_a_slice_is_held_out_where_no_validation_set_is_given(corpus: list[str], tmp_path: Path) -> None:
    done = run_to_end(train_command(corpus[:2], tmp_path / "run", train_steps=2))
    assert "held out for validation" in done.stderr
    lines = (tmp_path / "run" / "valid.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 12  # a tenth of 120
    train_sides = {line for file in corpus[:2] for line in Path(file).read_text(encoding="utf-8").splitlines()}
    assert all(json.loads(line)["src"] in train_sides for line in lines)


def test_a_second_training_in_the_same_folder_is_kept_out(corpus: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    handle = os.open(run / ".lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    done = run_command(train_command(corpus, run), capture_output=True, text=True)
    os.close(handle)
    assert done.returncode == 1
    assert "another training is at work" in done.stderr


def test_losses_that_are_not_finite_stop_the_run_with_advice(corpus: list[str], tmp_path: Path) -> None:
    run, settings = tmp_path / "run", {"train_max_bad_steps": 7, "train_validate_every": 1000}
    run_to_end(train_command(corpus, run, train_steps=3, **settings))
    checkpoint = read_checkpoint(run / "checkpoints" / "step-000000003")
    groups = {name: checkpoint.tensors(name) for name in ("model", "ema", "optimizer")}
    groups["model"]["encoder_norm.weight"][0] = float("nan")
    write_checkpoint(checkpoint.path, groups, {key: value for key, value in checkpoint.state.items() if key != "files"})
    done = run_command(train_command(corpus, run, **settings), capture_output=True, text=True)
    assert done.returncode == 1
    assert "the last 7 steps before step 10" in done.stderr
    assert "lower train.lr" in done.stderr
    assert [entry["skipped"] for entry in read_metrics(run) if entry["step"] > 3] == [1] * 6


def test_a_model_whose_weights_are_no_numbers_is_not_fine_tuned(
    trained: tuple[RunDir, str], corpus: list[str], tmp_path: Path
) -> None:
    broken = RunDir(tmp_path / "broken")
    shutil.copytree(trained[0].path, broken.path)
    weights = load_file(broken.weights)
    weights["encoder_norm.weight"][0] = float("nan")
    save_file(weights, broken.weights)
    vouch(broken)
    done = run_seqtool("train", *corpus, "--from", broken.path, "-o", tmp_path / "run", "--set", "train.threads=2")
    assert done.returncode == 1
    assert b"the model's output is not a number; its weights are damaged" in done.stderr
