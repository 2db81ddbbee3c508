"""The long form of the tests on a pretend GPU: 50 steps in each precision, every kind of model, little memory, resume.

make gpu-stand-in
"""

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from gpu_cases import assert_searches_wait_seldom, copies_per_step, largest_difference, waits_in_steps
from on_stand_in import OBSTACLE, STEPS, Outcome, run_on_gpu, train_on_gpu
from small_run import DEMO, assert_same_run, losses, run_to_end, train_command, write_corpus

pytestmark = pytest.mark.skipif(OBSTACLE is not None, reason=OBSTACLE or "")

N_STEPS = 50
QUIET = {
    "model_dropout": 0,
    "model_word_dropout": 0,
    "tokenizer_bpe_dropout": 0,
    "train_steps": N_STEPS,
    "train_threads": 1,
    "train_lr": 0.002,
    "train_report_every": 10,
    "train_save_every": 25,
    "train_validate_every": 25,
}
LIVELY = {**QUIET, "model_dropout": 0.2, "model_word_dropout": 0.1, "tokenizer_bpe_dropout": 0.1}
# Half precision rounds to 8 and 11 bits; weights move by at most about the sum of the learning rates, 0.08 here.
WEIGHTS = {"float32": 1e-4, "bf16": 2e-2, "fp16": 5e-3}
LOSSES = {"float32": 1e-5, "bf16": 2e-2, "fp16": 2e-3}
KINDS = ("rnn", "decoder", "conv")
ROOMS = (2_000_000, 1_200_000)  # bytes


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory: pytest.TempPathFactory, corpus: list[str]) -> Path:
    """The run on a CPU that the others are compared with."""
    run = tmp_path_factory.mktemp("cpu") / "run"
    run_to_end(train_command(corpus, run, **QUIET, train_precision="float32"))
    return run


@pytest.fixture(scope="module")
def on_gpu(tmp_path_factory: pytest.TempPathFactory, corpus: list[str]) -> tuple[Path, Outcome]:
    """The same run on a pretend GPU."""
    folder = tmp_path_factory.mktemp("gpu")
    outcome = train_on_gpu(train_command(corpus, folder / "run", **QUIET, train_precision="float32"), folder)
    return folder / "run", outcome


def loss_difference(run: Path, other: Path) -> float:
    ours, theirs = losses(run), losses(other)
    assert [entry[:2] for entry in ours] == [entry[:2] for entry in theirs]
    return max(abs(one[2] - two[2]) for one, two in zip(ours, theirs, strict=True))


def test_fifty_steps_in_float32_are_those_of_a_cpu(on_cpu: Path, on_gpu: tuple[Path, Outcome]) -> None:
    run, outcome = on_gpu
    weights, loss = largest_difference(run, on_cpu), loss_difference(run, on_cpu)
    events = [event for event in outcome.events if event["waits"]]
    steps, searched = outcome.calls[STEPS], sum(outcome.count("_search", waits=True).values())
    print(
        f"\nfloat32, {N_STEPS} steps: weights differ by {weights:.1e}, losses by {loss:.1e}; waits inside training "
        f"steps: {sum(waits_in_steps(outcome).values())}, copies to the device per step: "
        f"{copies_per_step(outcome, N_STEPS):.1f} (none waits), waits per step of a search: {searched / steps:.2f}, "
        f"waits of the whole run: {sum(event['times'] for event in events)}"
    )
    assert weights < WEIGHTS["float32"]
    assert loss < LOSSES["float32"]
    assert (run / "valid.jsonl").read_bytes() == (on_cpu / "valid.jsonl").read_bytes()
    assert waits_in_steps(outcome) == {}
    assert_searches_wait_seldom(outcome)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_stays_near_float32(tmp_path: Path, corpus: list[str], on_cpu: Path, precision: str) -> None:
    run = tmp_path / "run"
    outcome = train_on_gpu(train_command(corpus, run, **QUIET, train_precision=precision), tmp_path)
    weights, loss = largest_difference(run, on_cpu), loss_difference(run, on_cpu)
    same = sum(a == b for a, b in zip(read_hypotheses(run), read_hypotheses(on_cpu), strict=True))
    print(
        f"\n{precision}, {N_STEPS} steps: weights differ by {weights:.1e}, losses by {loss:.1e}; "
        f"{same} of 4 translations equal"
    )
    assert 0 < weights < WEIGHTS[precision]
    assert loss < LOSSES[precision]
    assert waits_in_steps(outcome) == {}


def read_hypotheses(run: Path) -> list[str]:
    return [json.loads(line)["hyp"] for line in (run / "valid.jsonl").read_text().splitlines()]


def test_the_precision_is_chosen_by_what_the_gpu_can(tmp_path: Path, corpus: list[str]) -> None:
    for capability, expected in ((8, "bf16"), (7, "fp16")):
        run = tmp_path / expected
        command = train_command(corpus, run, **{**QUIET, "train_steps": 5, "train_save_every": 5})
        train_on_gpu(command, tmp_path, capability=capability)
        assert json.loads((run / "manifest.json").read_text())["training"]["precision"] == expected


def test_losses_too_large_for_fp16_lower_the_scale_and_training_goes_on(tmp_path: Path, corpus: list[str]) -> None:
    """The first scale is 2^15; with a loss summed over many tokens some gradient overflows until it has fallen."""
    script = tmp_path / "overflow.py"
    script.write_text(OVERFLOW)
    outcome = run_on_gpu([script], tmp_path)
    assert outcome.done.returncode == 0, outcome.done.stderr
    assert outcome.done.stdout.split() == ["[0.0,", "1.0]", "16384.0", "[1,", "1,", "0]"]


OVERFLOW = """
import torch
from special_ids import vocabularies
from seqtool.config import TrainConfig, TransformerConfig
from seqtool.model.kinds import build_model
from seqtool.training.optimizer import Updater

sizes = {"d_model": 16, "d_ff": 16, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1}
model = build_model(TransformerConfig(**sizes), vocabularies(40)).to("cuda")
updater = Updater(model, TrainConfig(), "fp16")
good = []
for step, size in ((1, float("inf")), (2, 1.0)):
    gradients = [torch.full_like(parameter, size) for parameter in model.parameters()]
    good.append(updater.update(gradients, torch.ones(2, device="cuda"), step, 1e-3)[3].item())
print(good, updater.loss_scale.item(), updater.counts.tolist())
"""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_trains_as_on_a_cpu(tmp_path: Path, corpus: list[str], kind: str) -> None:
    settings = {**QUIET, "model_kind": kind, "train_precision": "float32"}
    run_to_end(train_command(corpus, tmp_path / "cpu", **settings))
    outcome = train_on_gpu(train_command(corpus, tmp_path / "gpu", **settings), tmp_path)
    weights = largest_difference(tmp_path / "gpu", tmp_path / "cpu")
    print(f"\n{kind}, {N_STEPS} steps in float32: weights differ by {weights:.1e}")
    assert weights < WEIGHTS["float32"]
    assert (tmp_path / "gpu" / "valid.jsonl").read_bytes() == (tmp_path / "cpu" / "valid.jsonl").read_bytes()
    assert waits_in_steps(outcome) == {}
    assert_searches_wait_seldom(outcome)


@pytest.mark.parametrize("precision", ["float32", "fp16"])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path, corpus: list[str], precision: str) -> None:
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    train_on_gpu(train_command(corpus, whole, **LIVELY, train_precision=precision), tmp_path)
    shutil.copytree(whole, resumed)
    shutil.rmtree(resumed / "checkpoints" / "step-000000050")
    shutil.rmtree(resumed / "checkpoints" / "best", ignore_errors=True)
    (resumed / "manifest.json").unlink()
    train_on_gpu(train_command(corpus, resumed, **LIVELY, train_precision=precision), tmp_path)
    assert_same_run(resumed, whole)


def test_a_run_begun_on_a_gpu_goes_on_on_a_cpu(tmp_path: Path, corpus: list[str], on_gpu: tuple[Path, Outcome]) -> None:
    run = tmp_path / "run"
    shutil.copytree(on_gpu[0], run)
    done = run_to_end(train_command(corpus, run, **{**QUIET, "train_steps": 75}, train_precision="float32"))
    assert "continuing at step 50" in done.stderr


@pytest.mark.parametrize("room", ROOMS)
def test_a_batch_that_runs_out_of_memory_is_done_in_parts(
    tmp_path: Path, corpus: list[str], on_cpu: Path, room: int
) -> None:
    settings = {**QUIET, "train_precision": "float32", "train_micro_tokens": 4096}
    outcome = train_on_gpu(train_command(corpus, tmp_path / "run", **settings), tmp_path, memory=room)
    print(f"\n{room:,} bytes: {outcome.refused} allocations were refused, peak {outcome.peak:,} bytes")
    assert outcome.peak <= room
    assert outcome.refused == 0 or largest_difference(tmp_path / "run", on_cpu) < WEIGHTS["float32"]


def test_the_commands_on_a_model_give_what_they_give_on_a_cpu(tmp_path: Path, on_cpu: Path) -> None:
    lines = (DEMO / "test.en").read_text().splitlines()[:20]
    source, reference = tmp_path / "test.en", tmp_path / "test.de"
    source.write_text("\n".join(lines) + "\n")
    reference.write_text("\n".join((DEMO / "test.de").read_text().splitlines()[:20]) + "\n")
    commands = {
        "translate": ["translate", "-m", on_cpu, "-i", source, "--json"],
        "greedy": ["translate", "-m", on_cpu, "-i", source, "--beam", 1],
        "n best": ["translate", "-m", on_cpu, "-i", source, "--n-best", 3, "--beam", 3],
        "sample": ["translate", "-m", on_cpu, "-i", source, "--sample", "--top-k", 5],
        "score": ["score", "-m", on_cpu, source, reference],
        "eval": ["eval", "-m", on_cpu, source, reference, "--json"],
    }
    for name, command in commands.items():
        results = {
            device: run_on_gpu([*command, "--engine", "torch", "--device", device], tmp_path) for device in DEVICES
        }
        assert results["cuda"].events, name
        assert_same_numbers(results["cuda"].done.stdout, results["cpu"].done.stdout)


DEVICES = ("cpu", "cuda")


def assert_same_numbers(one: str, two: str) -> None:
    """Assert that two outputs have the same words, and the same numbers but for rounding."""
    ours, theirs = one.split(), two.split()
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs, strict=True):
        if a != b:
            assert float(a.strip(",}]")) == pytest.approx(float(b.strip(",}]")), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("quantization", ["int8", "float32"])
def test_a_model_trained_on_a_gpu_is_exported(tmp_path: Path, on_gpu: tuple[Path, Outcome], quantization: str) -> None:
    out = tmp_path / quantization
    command = ["export", "-m", on_gpu[0], "--quantization", quantization, "-o", out]
    outcome = run_on_gpu(command, tmp_path)
    assert outcome.done.returncode == 0, outcome.done.stderr
    assert (out / "model.bin").exists()


def test_a_batch_is_fitted_to_the_memory(tmp_path: Path, corpus: list[str]) -> None:
    fitted = {}
    for memory in (2**25, 2**27):
        settings = {**QUIET, "train_steps": 2, "train_save_every": 2, "train_batch_tokens": "auto"}
        outcome = train_on_gpu(train_command(corpus, tmp_path / str(memory), **settings), tmp_path, memory=memory)
        fitted[memory] = int(outcome.done.stderr.split("train.batch_tokens = ")[1].split(" ")[0].replace(",", ""))
        print(f"\n{memory:,} bytes: {fitted[memory]:,} tokens, peak {outcome.peak:,} bytes")
        assert outcome.refused == 0 or outcome.peak <= memory
    assert fitted[2**25] < fitted[2**27]


ACTIVATIONS = """
import torch
from special_ids import vocabularies
from train_speed import endless, make_pairs
from seqtool.config import TrainConfig, TransformerConfig
from seqtool.model.kinds import build_model
from seqtool.training.distributed import Workers
from seqtool.training.step import GradientMaker, LossOf

batch = next(endless(make_pairs(100, 400), 2048))

def compute(layers, recomputed):
    torch.manual_seed(1)
    sizes = {"d_model": 64, "d_ff": 256, "n_heads": 4, "encoder_layers": layers, "decoder_layers": layers}
    model = build_model(TransformerConfig(**sizes, dropout=0.1), vocabularies(100)).to("cuda")
    config = TrainConfig(activation_checkpointing=recomputed, micro_tokens=10**6)
    maker = GradientMaker(LossOf(model, config), config, Workers(0, 1, torch.device("cuda")), "float32", 1)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    gradients, _ = maker.run(batch, 1)
    taken = torch.cuda.max_memory_allocated() - before - sum(gradient.nbytes for gradient in gradients)
    maker.close()
    return taken, torch.stack([gradient.norm() for gradient in gradients]).norm().item()

for layers in (2, 8):
    for recomputed in (False, True):
        print(*compute(layers, recomputed))
"""


def test_activation_checkpointing_keeps_little_more_than_the_activations_of_one_layer(tmp_path: Path) -> None:
    script = tmp_path / "activations.py"
    script.write_text(ACTIVATIONS)
    done = run_on_gpu([script], tmp_path).done
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    (few, few_recomputed, many, many_recomputed), norms = (list(column) for column in zip(*lines, strict=True))
    assert norms[0] == norms[1]  # with the same dropout
    assert norms[2] == norms[3]
    each, rest = (int(many) - int(few)) / 12, int(few) - (int(many) - int(few)) / 3  # 2 + 2 layers, and 8 + 8
    print(
        f"\nactivations of 8 + 8 layers: {int(many) / 1e6:.1f} MB, recomputed {int(many_recomputed) / 1e6:.1f} MB; "
        f"a layer's: {each / 1e6:.1f} MB, of no layer: {rest / 1e6:.1f} MB"
    )
    assert int(many_recomputed) < rest + 3 * each
    assert int(many_recomputed) < 1.3 * int(few_recomputed)
