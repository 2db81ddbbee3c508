"""The real commands on a pretend GPU with real numbers: placement, copies and waits (more in tests/deep)."""

import json
from pathlib import Path

import pytest
from gpu_cases import assert_searches_wait_seldom, copies_per_step, largest_difference, waits_in_steps
from on_stand_in import OBSTACLE, Outcome, run_on_gpu, train_on_gpu
from small_run import run_to_end, train_command

pytestmark = pytest.mark.skipif(OBSTACLE is not None, reason=OBSTACLE or "")

STEPS = 12
# Without anything random, and in one part: so that a CPU and a GPU compute the same but for rounding.
SETTINGS = {
    "model_dropout": 0,
    "model_word_dropout": 0,
    "tokenizer_bpe_dropout": 0,
    "train_steps": STEPS,
    "train_threads": 1,
    "train_precision": "float32",
    "train_report_every": 4,
    "train_save_every": 6,
    "train_validate_every": 6,
}


@pytest.fixture(scope="module")
def trained(corpus: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Outcome]:
    """The same run on a CPU and on a pretend GPU, and what the latter was asked to do."""
    folder = tmp_path_factory.mktemp("stand-in")
    run_to_end(train_command(corpus, folder / "cpu", **SETTINGS))
    outcome = train_on_gpu(train_command(corpus, folder / "gpu", **SETTINGS), folder)
    return folder / "cpu", folder / "gpu", outcome


def test_a_run_on_a_gpu_gives_the_weights_of_one_on_a_cpu(trained: tuple[Path, Path, Outcome]) -> None:
    cpu, gpu, _ = trained
    assert largest_difference(cpu, gpu) < 1e-5


def test_validation_on_a_gpu_gives_the_translations_of_a_cpu(trained: tuple[Path, Path, Outcome]) -> None:
    cpu, gpu, _ = trained
    assert (gpu / "valid.jsonl").read_bytes() == (cpu / "valid.jsonl").read_bytes()


def test_nothing_waits_for_the_gpu_inside_a_training_step(trained: tuple[Path, Path, Outcome]) -> None:
    outcome = trained[2]
    assert waits_in_steps(outcome) == {}
    assert copies_per_step(outcome, STEPS) > 0  # so that the ledger did see the steps


def test_a_search_waits_only_to_look_at_what_is_done_and_to_read_the_results(
    trained: tuple[Path, Path, Outcome],
) -> None:
    assert_searches_wait_seldom(trained[2])


def test_the_model_is_exported_after_training_on_a_gpu(trained: tuple[Path, Path, Outcome]) -> None:
    _, gpu, outcome = trained
    assert "no CTranslate2 form" not in outcome.done.stderr
    assert (gpu / "ctranslate2" / "model.bin").exists()


MISTAKES = """
import torch

def fails(what, error=RuntimeError):
    try:
        what()
    except error as found:
        print(type(found).__name__)
    else:
        raise SystemExit("no error")

x = torch.ones(3, 4, device="cuda")
fails(lambda: x + torch.ones(4))                                  # a tensor of the host
fails(lambda: x + torch.ones(4, device="cuda:1"))                 # of another GPU
fails(lambda: torch.ones(3, 4) @ x.T)
fails(lambda: torch.cat((x, torch.ones(3, 4))))
fails(lambda: x.index_select(0, torch.tensor([1])))               # an index of the host, where CUDA takes none
fails(lambda: torch.nn.functional.embedding(torch.tensor([1]), x))
fails(x.numpy, TypeError)
with torch.inference_mode():
    fails(lambda: torch.nn.functional.linear(x, torch.ones(2, 4)))
assert (x + torch.tensor(1.0)).device == x.device                 # a single number of the host is welcome
print("values", (x * 2).sum().item())
"""

WAITS = """
import json, sys
import torch
from gpu_stand_in.device import LEDGER

def count(what):
    LEDGER.events.clear()
    what()
    return {kind: sum(n for e, n in LEDGER.events.items() if e.kind == kind and e.waits) for kind in
            ("h2d", "d2h", "value", "shape")} | {"free": sum(n for e, n in LEDGER.events.items() if not e.waits)}

x, host = torch.ones(3, 4, device="cuda"), torch.ones(3, 4)
mask = x > 0
print(json.dumps([
    count(lambda: x.sum().item()), count(lambda: bool(mask.any())), count(lambda: x.tolist()), count(lambda: x.cpu()),
    count(lambda: mask.nonzero()), count(lambda: x[mask]), count(lambda: torch.tensor([1, 2], device="cuda")),
    count(lambda: host.to("cuda")), count(lambda: host.pin_memory().to("cuda")),
    count(lambda: host.pin_memory().to("cuda", non_blocking=True)), count(lambda: x.masked_fill(mask, 0.0)),
    count(lambda: torch.where(mask, x, 2.0).softmax(-1).topk(2)), count(lambda: x[torch.tensor([0, 1])]),
]))
"""


CELLS = """
import torch

def run(device, name):
    torch.manual_seed(1)
    module = getattr(torch.nn, name)(3, 5, batch_first=True).to(device)
    x = torch.randn(4, 6, 3).to(device).requires_grad_()
    y, state = module(x)
    (y.square().sum() + sum(part.sum() for part in (state if name == "LSTM" else [state]))).backward()
    return [tensor.detach().cpu() for tensor in (y, x.grad, *(weight.grad for weight in module.parameters()))]

for name in ("LSTM", "GRU"):
    for ours, theirs in zip(run("cuda", name), run("cpu", name), strict=True):
        torch.testing.assert_close(ours, theirs)
print("equal")
"""


def test_recurrent_cells_of_the_stand_in_are_those_of_a_cpu(tmp_path: Path) -> None:
    script = tmp_path / "cells.py"
    script.write_text(CELLS)
    done = run_on_gpu([script], tmp_path).done
    assert done.stdout == "equal\n", done.stderr


def test_the_stand_in_refuses_what_a_gpu_refuses(tmp_path: Path) -> None:
    """Else the tests above would prove nothing."""
    script = tmp_path / "mistakes.py"
    script.write_text(MISTAKES)
    outcome = run_on_gpu([script], tmp_path, devices=2)
    assert outcome.done.stdout.split("\n")[:-1] == ["RuntimeError"] * 6 + ["TypeError", "RuntimeError", "values 24.0"]


def test_the_stand_in_counts_copies_and_waits(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    nothing = {"h2d": 0, "d2h": 0, "value": 0, "shape": 0, "free": 0}
    expected = [
        {"value": 1},  # item
        {"value": 1},  # bool
        {"d2h": 1},  # tolist
        {"d2h": 1},  # cpu
        {"shape": 1},  # nonzero
        {"shape": 1},  # a boolean index
        {"h2d": 1},  # torch.tensor(..., device="cuda")
        {"h2d": 1},  # from ordinary memory
        {"h2d": 1},  # from pinned memory, but waiting
        {"free": 1},  # from pinned memory, by itself
        {},
        {},
        {"h2d": 1},  # an index of the host
    ]
    outcome = run_on_gpu([script], tmp_path)
    assert outcome.done.returncode == 0, outcome.done.stderr
    assert json.loads(outcome.done.stdout) == [nothing | found for found in expected]
