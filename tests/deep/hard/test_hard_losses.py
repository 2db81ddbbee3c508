"""Trainings forced to losses that are not finite: they stop with advice, and write no other model."""

import shutil
from pathlib import Path

import pytest
import torch
from command_line import run_command
from faults import count
from hard_runs import quick_command
from safetensors.torch import load_file
from small_run import run_to_end, write_corpus

from seqtool.training.checkpoint import read_checkpoint, write_checkpoint

KINDS = ("transformer", "rnn", "decoder", "conv")
POISONS = {
    "one weight is NaN": lambda tensor: tensor.view(-1)[:1].fill_(float("nan")),
    "one weight is infinite": lambda tensor: tensor.view(-1)[-1:].fill_(float("inf")),
    "all weights are too large to be squared": lambda tensor: tensor.mul_(1e38),
}


def poison(folder: Path, case: str) -> None:
    """Change the weights of a checkpoint, whose state vouches for them."""
    checkpoint = read_checkpoint(folder)
    groups = {name: checkpoint.tensors(name) for name in ("model", "ema", "optimizer")}
    tensors = [groups["model"][name] for name in sorted(groups["model"])]
    for tensor in tensors if case.startswith("all") else tensors[:1]:
        POISONS[case](tensor)
    write_checkpoint(folder, groups, {key: value for key, value in checkpoint.state.items() if key != "files"})


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_that_meets_such_losses_stops_and_writes_no_other_model(tmp_path: Path, kind: str) -> None:
    corpus = write_corpus(tmp_path)
    begun = tmp_path / "begun"
    changes = {"model_kind": kind, "train_validate_every": 1000, "train_max_bad_steps": 5}
    run_to_end(quick_command(corpus, begun, **{**changes, "train_steps": 3}))
    for case in POISONS:
        run = Path(shutil.copytree(begun, tmp_path / "run"))
        poison(run / "checkpoints" / "step-000000003", case)
        for _ in range(2):  # the second time from the same checkpoint
            done = run_command(quick_command(corpus, run, **changes), capture_output=True, text=True)
            assert done.returncode == 1, (case, done.stderr)
            assert "Traceback" not in done.stderr
            assert "the last 5 steps before step 8 gave a loss or gradient that is not finite" in done.stderr
            assert "lower train.lr" in done.stderr
        assert (run / "model.safetensors").read_bytes() == (begun / "model.safetensors").read_bytes()
        count("losses that are not finite", f"{kind}, {case}", "stops with advice, writes no other model")
        shutil.rmtree(run)


@pytest.mark.parametrize("kind", KINDS)
def test_the_highest_learning_rate_ends_with_finite_weights_or_advice(tmp_path: Path, kind: str) -> None:
    corpus, run = write_corpus(tmp_path), tmp_path / "run"
    changes = {"train_lr": 100, "train_warmup": 1, "train_max_bad_steps": 4, "train_steps": 24}
    done = run_command(quick_command(corpus, run, model_kind=kind, **changes), capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or "not finite" in done.stderr, done.stderr
    for file in run.rglob("*.safetensors"):
        assert all(bool(torch.isfinite(tensor).all()) for tensor in load_file(file).values()), file
    count("losses that are not finite", f"{kind}, lr 100", "advice" if done.returncode else "finite weights")
