"""Makes a model of another's translations and a larger one's cost: to measure speeds without hours of training.

    python benchmarks/enlarge.py RUN NEW_RUN [--factor 4] [--layers 6] [--d-ff 2048]

Each feature of a pre-norm Transformer with sinusoidal positions is repeated, each head too, and layers are added that
add next to nothing. Almost every logit stays what it was, so sentences keep their lengths, on which speed depends.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from seqtool.config import config_to_toml, load_config
from seqtool.corpus.tokenizer.registry import load_pair
from seqtool.manifest import Manifest
from seqtool.model.kinds import build_model
from seqtool.model.loading import read_weights, save_weights, weights_of
from seqtool.model.sinusoids import sinusoids
from seqtool.run_directory import RunDir
from seqtool.translation.export.ctranslate2 import export_ctranslate2

N_POSITIONS = 1024
ADDED = ("out.", "outer.")  # layers whose output is added to what the layers before have made
ALMOST_NOTHING = 1e-4


def repeat_rows(tensor: Tensor, factor: int, n_parts: int = 1) -> Tensor:
    """Repeat the outputs of a layer; those of queries, keys and values each by themselves."""
    return torch.cat([part.repeat(factor, *[1] * (tensor.dim() - 1)) for part in tensor.chunk(n_parts)])


def widen(name: str, tensor: Tensor, factor: int) -> Tensor:
    """Return a weight of the wider model."""
    if name.endswith("tokens.weight"):
        return tensor.repeat(1, factor) / factor**0.5  # it is multiplied by the root of the width
    if name.startswith("decoder_norm."):
        return tensor.repeat(factor) / factor**0.5  # what the logits have too much by that
    if "norm." in name:
        return tensor.repeat(factor)
    wider = repeat_rows(tensor, factor, n_parts=3 if ".qkv." in name else 1)
    return wider.repeat(1, factor) / factor if name.endswith(".weight") else wider


def enlarge(old: RunDir, new: RunDir, factor: int, n_layers: int, d_ff: int) -> None:
    """Write the larger model's run directory."""
    config = load_config(old.config)
    small = config.model
    larger = replace(
        small,
        d_model=small.d_model * factor,
        n_heads=small.n_heads * factor,
        d_ff=d_ff,
        encoder_layers=n_layers,
        decoder_layers=n_layers,
        positions="learned",
        max_positions=N_POSITIONS,
    )
    new.path.mkdir(parents=True)
    new.tokenizer.write_bytes(old.tokenizer.read_bytes())
    new.config.write_text(config_to_toml(replace(config, model=larger)), encoding="utf-8")
    torch.manual_seed(1)
    weights = weights_of(build_model(larger, load_pair(new).vocabularies))
    known = read_weights(old.weights)
    for name, tensor in weights.items():
        if name.endswith("positions.table"):
            table = torch.from_numpy(sinusoids(N_POSITIONS, small.d_model)).repeat(1, factor)
            tensor[: len(table)] = table
        elif name in known:
            wide = widen(name, known[name], factor)
            tensor.zero_()
            tensor[tuple(slice(size) for size in wide.shape)] = wide
        elif any(part in name for part in ADDED):
            tensor.mul_(ALMOST_NOTHING)
    save_weights(weights, new.weights)
    new.write_manifest(Manifest(files=new.checksums()))
    export_ctranslate2(new, "int8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("new_run", type=Path)
    parser.add_argument("--factor", type=int, default=4)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--d-ff", type=int, default=2048)
    args = parser.parse_args()
    enlarge(RunDir(args.run), RunDir(args.new_run), args.factor, args.layers, args.d_ff)


if __name__ == "__main__":
    main()
