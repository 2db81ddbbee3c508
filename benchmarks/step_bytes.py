"""The bytes that a worker sends for a training step, counted on the cable between two machines, and by formula.

    sudo python benchmarks/step_bytes.py

Each of two network namespaces has one worker; the model is whole on both, or shared out. Parts of a batch are the
passes that it takes. Gloo sends the gradients of shared out models twice as far as NCCL does: it has no reduce-scatter
of its own and sums them for all workers.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from overlap import ROOT, measure
from two_machines import TwoMachines, why_not

from seqtool.config import TransformerConfig
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.model.kinds import build_model
from seqtool.run_directory import RunDir

N_WORKERS = 2
SIZES = {"d_model": 128, "d_ff": 512, "n_heads": 4, "encoder_layers": 3, "decoder_layers": 3}
LARGEST_SHARE = 460  # tokens of a worker's rows of a batch of 768, padding counted
CASES = (
    ("none", "float32", 1),
    ("none", "float32", 2),
    ("model", "float32", 1),
    ("model", "float32", 2),
    ("model", "bf16", 1),
)
BYTES = {"float32": 4, "bf16": 2}


@dataclass(frozen=True)
class Parameters:
    """How many parameters a model has."""

    layers: int
    rest: int  # embeddings and what else belongs to no layer


def sent_by_formula(parameters: Parameters, shard: str, precision: str, n_parts: int, is_gloo: bool) -> float:
    """Return the bytes that each worker sends in a step.

    Whole models: gradients are summed for all once a step. Shared out ones: in each pass weights are gathered, those of
    layers once more for the backward pass, and gradients are summed in float32, each row for the worker that has it.
    """
    share = (N_WORKERS - 1) / N_WORKERS
    everything = parameters.layers + parameters.rest
    if shard == "none":
        return 2 * share * 4 * everything
    gathered = BYTES[precision] * (2 * parameters.layers + parameters.rest)
    return n_parts * share * (gathered + 4 * everything * (2 if is_gloo else 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=46)
    arguments = parser.parse_args()
    if obstacle := why_not():
        sys.exit(obstacle)
    print("| model | precision | parts | MB sent per step | formula for gloo | for NCCL |")
    print("| --- | --- | --- | --- | --- | --- |")
    for shard, precision, n_parts in CASES:
        found, parameters = count(shard, precision, n_parts, arguments.steps)
        wanted = [sent_by_formula(parameters, shard, precision, n_parts, is_gloo) for is_gloo in (True, False)]
        sizes = " | ".join(f"{size / 1e6:.2f}" for size in (found, *wanted))
        print(f"| {'shared out' if shard == 'model' else 'whole'} | {precision} | {n_parts} | {sizes} |", flush=True)


def count(shard: str, precision: str, n_parts: int, steps: int) -> tuple[float, Parameters]:
    """Train for some steps; return the bytes that a worker sent in each, and the size of the model."""
    changes = {
        **{f"model.{name}": value for name, value in SIZES.items()},
        "train.batch_tokens": 768,
        "train.shard": shard,
        "train.precision": precision,
        "train.micro_tokens": LARGEST_SHARE // n_parts,
    }
    with tempfile.TemporaryDirectory() as name, TwoMachines() as machines:
        _, found = measure(machines, ROOT, Path(name), steps, changes=changes)
        vocabularies = load_pair(RunDir(next(Path(name).glob("run-*")))).vocabularies
    model = build_model(TransformerConfig(**SIZES), vocabularies)
    layers = sum(weight.numel() for layer in model.stack_layers() for weight in layer.parameters())
    return found, Parameters(layers, sum(weight.numel() for weight in model.parameters()) - layers)


if __name__ == "__main__":
    main()
