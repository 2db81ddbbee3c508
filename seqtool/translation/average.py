"""The mean of several checkpoints' weights as a new model folder.

One tensor at a time is read from every file, so that memory holds one model, however many are averaged.
"""

import contextlib
import dataclasses
import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from seqtool.config import load_config
from seqtool.errors import SeqtoolError
from seqtool.files import make_folder, open_whole, require_new, sha256_of, whole_folder
from seqtool.manifest import Manifest, ModelFacts
from seqtool.model.loading import save_weights
from seqtool.run_directory import RunDir
from seqtool.translation.search.ensemble import check_same_tokens
from seqtool.unfinished import STATE, open_checkpoint
from seqtool.verification import checksum

FLOATS = ("F64", "F32", "F16", "BF16")  # as safetensors names them

Shapes = dict[str, tuple[int, ...]]  # of tensors by name


@dataclass(frozen=True)
class Source:
    """One of the models to average: its weights, and the run directory with its configuration and tokenizer."""

    weights: Path
    run: RunDir


def average(paths: Sequence[Path], out: Path) -> RunDir:
    """Average checkpoints, run directories or safetensors files into the new model folder `out`."""
    if not paths:
        raise SeqtoolError("there is nothing to average; name checkpoints or run directories")
    sources = [find_source(path) for path in paths]
    run = RunDir(out)
    if run.weights.exists():
        raise SeqtoolError(f"{out}: holds a model already; give another folder as `out`")
    require_new(out)
    check_same_tokens([source.run for source in sources])
    for source in sources:
        verify(source)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open_weights(source.weights)) for source in sources]
        shapes = read_shapes(files[0], sources[0].weights)
        for file, source in zip(files[1:], sources[1:], strict=True):
            check_shapes(shapes, read_shapes(file, source.weights), sources[0].weights, source.weights)
        check_same_model(sources)
        make_folder(out.absolute().parent)
        try:
            with whole_folder(out) as folder:
                new = RunDir(folder)
                copy_companions(sources[0].run, new)
                save_weights({name: mean_of(files, name) for name in shapes}, new.weights)
                new.write_manifest(describe(new, sources, shapes))
        except OSError as error:
            raise SeqtoolError(
                f"{out}: cannot be written ({error.strerror}); make room or give another `out`"
            ) from None
    return run


def find_source(path: Path) -> Source:
    """Find the weights that a path means and the run directory around them."""
    if not path.exists():
        raise SeqtoolError(f"{path}: no such checkpoint; the newest are in the folder 'checkpoints' of a run directory")
    weights = RunDir(path).weights if path.is_dir() else path
    if not weights.is_file():
        raise SeqtoolError(f"{path}: has no {weights.name}; name a checkpoint or a run directory")
    for folder in list(weights.absolute().parents)[:3]:  # a run directory, or a checkpoint two folders down in one
        run = RunDir(folder)
        if run.config.is_file() and run.tokenizer.is_file():
            return Source(weights, run)
    raise SeqtoolError(
        f"{path}: neither its folder nor one above has a config.toml; leave the checkpoint in its run directory"
    )


def verify(source: Source) -> None:
    """Raise if the weights, the settings or the tokenizers are not those that the checkpoint or the model records."""
    folder, name = source.weights.parent, source.weights.name
    if (folder / STATE).exists():
        recorded = open_checkpoint(source.run, folder).state["files"].get(name)
        if recorded != checksum(source.weights):
            raise SeqtoolError(f"{source.weights}: damaged (it does not match its checksum in {STATE}); leave it out")
    elif source.run.manifest.exists():
        source.run.verify()


@contextlib.contextmanager
def open_weights(path: Path) -> Iterator[Any]:
    """Open a safetensors file without reading its tensors."""
    try:
        opened = safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise SeqtoolError(f"{path}: damaged or not a safetensors file ({error}); leave it out") from None
    with opened as file:
        yield file


def read_shapes(file: Any, path: Path) -> Shapes:
    """Return the shape of every tensor of a file, all of which must be floats."""
    shapes = {}
    for name in sorted(file.keys()):
        tensor = file.get_slice(name)
        if tensor.get_dtype() not in FLOATS:
            raise SeqtoolError(f"{path}: {name} has type {tensor.get_dtype()}, which has no mean; leave this file out")
        shapes[name] = tuple(tensor.get_shape())
    return shapes


def check_shapes(first: Shapes, other: Shapes, first_path: Path, other_path: Path) -> None:
    """Raise unless two files have tensors of the same names and shapes."""
    names = sorted(first.keys() ^ other.keys())
    if names:
        has = first_path if names[0] in first else other_path
        raise SeqtoolError(
            f"{first_path} and {other_path} are of different models: only {has} has {names[0]}; "
            "average checkpoints of one configuration"
        )
    for name, shape in first.items():
        if other[name] != shape:
            raise SeqtoolError(
                f"{first_path} and {other_path} are of different models: {name} has shape {shape} in one and "
                f"{other[name]} in the other; average checkpoints of one configuration"
            )


def check_same_model(sources: Sequence[Source]) -> None:
    """Raise unless the models compute alike: positions, heads and activation leave no trace in the weights' shapes."""
    first, *others = [(source.weights, load_config(source.run.config).model) for source in sources]
    for path, model in others:
        for field in dataclasses.fields(model):
            ours, theirs = getattr(first[1], field.name), getattr(model, field.name)
            if ours != theirs and "drop" not in field.name:  # dropout is for training
                raise SeqtoolError(
                    f"{first[0]} and {path} are of different models: {field.name} is {ours} in one and {theirs} in the "
                    "other; average checkpoints of one configuration"
                )


def mean_of(files: Sequence[Any], name: str) -> Tensor:
    """Return the mean of one tensor of several files, in the type that it has in the first."""
    tensors = [file.get_tensor(name) for file in files]
    return mean_tensor(tensors).to(tensors[0].dtype)


def mean_tensor(tensors: Sequence[Tensor]) -> Tensor:
    """Return the mean of tensors, summed in double precision."""
    total = tensors[0].to(torch.float64, copy=True)
    for tensor in tensors[1:]:
        total += tensor.double()
    return total / len(tensors)


def copy_companions(source: RunDir, run: RunDir) -> None:
    """Copy what a model needs beside its weights."""
    for file in source.model_files:
        if file != source.weights:
            with open(file, "rb") as reader, open_whole(run.path / file.name) as writer:
                shutil.copyfileobj(reader, writer)


def describe(run: RunDir, sources: Sequence[Source], shapes: Shapes) -> Manifest:
    """Return the manifest of an averaged model."""
    origin = sources[0].run.read_manifest()
    model = ModelFacts(
        parameters=sum(math.prod(shape) for shape in shapes.values()),
        source=f"average of {len(sources)} checkpoints",
        averaged=tuple({"file": str(source.weights), "sha256": sha256_of(source.weights)} for source in sources),
        length_penalty=origin.model.length_penalty,
    )
    others = {"languages": origin.others["languages"]} if "languages" in origin.others else {}
    return replace(run.make_manifest(model, origin.data), others=others)
