"""Reads the folder of a Hugging Face model that may come from a stranger.

Only files of known names are opened, none outside the folder (but for the store that Hugging Face's own cache links
to), JSON is parsed and nothing is run. An old pickle is read by torch's loader for weights alone.
"""

import json
import os
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqtool.errors import SeqtoolError
from seqtool.translation.export.ctranslate2 import read_float32
from seqtool.verification import MIB, count_written, read_limited

MAX_BYTES = 16 * MIB  # of any file but the weights: five times a vocabulary of OPUS-MT
SAFETENSORS, INDEX, PICKLE = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
MOST_NAMES = 4  # of the same embeddings, each a view of the same numbers
_SHARD = re.compile(r"model-\d{1,5}-of-\d{1,5}\.safetensors")


class ModelFolder:
    """The files of a Hugging Face model."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not os.path.lexists(path / "config.json"):
            raise SeqtoolError(f"{path}: {explain_no_model(path)}")
        self._allowed = [path.resolve()]
        if path.resolve().parent.name == "snapshots":  # of Hugging Face's cache, where files are links to this
            self._allowed.append(path.resolve().parent.parent / "blobs")

    def find(self, name: str) -> Path | None:
        """Return the path of a file of this name, None if there is none."""
        path = self.path / name
        if not path.exists() and not path.is_symlink():
            return None
        try:
            real = path.resolve()
        except (OSError, RuntimeError):  # links in a circle
            raise SeqtoolError(f"{path}: a link that leads nowhere; download the model again") from None
        if not any(real.is_relative_to(folder) for folder in self._allowed):
            raise SeqtoolError(f"{path}: leads out of the model's folder, to {real}; put a copy in its place")
        if not real.is_file():
            raise SeqtoolError(f"{path}: not a file; download the model again")
        return path

    def require(self, name: str) -> Path:
        """Return the path of a file that every such model has."""
        path = self.find(name)
        if path is None:
            raise SeqtoolError(f"{self.path}: has no {name}; download all files of the model again")
        return path

    def read(self, name: str) -> bytes:
        """Return the content of a file that every such model has, which may not be large."""
        path = self.require(name)
        try:
            return read_limited(path, MAX_BYTES)
        except OSError as error:
            raise SeqtoolError(f"{path}: cannot be read ({error.strerror}); download it again") from None

    def read_json(self, name: str, optional: bool = False) -> dict[str, Any]:
        """Return the object in a JSON file; an optional file that is not there is empty."""
        if optional and self.find(name) is None:
            return {}
        path = self.path / name
        try:
            content = json.loads(self.read(name).decode())
        except (ValueError, RecursionError) as error:
            raise SeqtoolError(f"{path}: not valid JSON ({error}); download it again") from None
        if not isinstance(content, dict):
            raise SeqtoolError(f"{path}: not a JSON object; download it again")
        return content

    def weight_files(self) -> list[Path]:
        """Return the files of the weights: safetensors, or an old pickle if there are none."""
        if self.find(SAFETENSORS):
            return [self.require(SAFETENSORS)]
        shards = self.read_json(INDEX, optional=True).get("weight_map", {})
        if shards and isinstance(shards, dict):
            odd = [name for name in shards.values() if not isinstance(name, str) or not _SHARD.fullmatch(name)]
            if odd:
                raise SeqtoolError(f"{self.path / INDEX}: names a file {odd[0]!r}, which is no part of a model")
            return [self.require(name) for name in sorted(set(shards.values()))]
        if self.find(PICKLE):
            return [self.require(PICKLE)]
        raise SeqtoolError(f"{self.path}: has no {SAFETENSORS} and no {PICKLE}; download all files of the model again")


def explain_no_model(path: Path) -> str:
    """Return what a path is that is no folder of a Hugging Face model, and what to give."""
    if path.is_file():
        return "is a file; give the folder that it is in, with config.json and the other files of the model"
    if not path.is_dir():
        is_name = len(path.parts) == 2 and not path.is_absolute()  # as on Hugging Face
        name = path if is_name else Path("Helsinki-NLP/opus-mt-en-de")
        return f"no such folder; download the model first, as with: hf download {name} --local-dir {name.name}"
    if (path / "config.toml").exists():
        return "is a run directory of seqtool already; use it as it is, with `model`"
    inside = sorted(path.glob("*/config.json")) + sorted(path.glob("snapshots/*/config.json"))  # as in the cache
    return f"has no config.json; {f'give {inside[0].parent}' if inside else 'download all files of the model again'}"


def read_weight_files(files: list[Path]) -> dict[str, NDArray[np.float32]]:
    """Return all weights as float32."""
    weights: dict[str, NDArray[np.float32]] = {}
    for file in files:
        weights.update(dict(read_pickle(file)) if file.name == PICKLE else read_float32(file))
    for name, values in weights.items():
        if not np.isfinite(values).all():
            raise SeqtoolError(f"{files[0]}: {name} holds values that are no numbers; download the model again")
    return weights


def read_pickle(path: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the tensors of an old pytorch_model.bin; torch's loader for weights alone runs nothing that is in it."""
    import torch

    safer = "take the model in safetensors format instead, or download it again"
    check_zip(path)
    try:
        with warnings.catch_warnings(action="ignore"):  # of pickles that torch would not write
            content = torch.load(path, map_location="cpu", weights_only=True)  # noqa: TID251 (it refuses all but tensors)
    except Exception as error:  # whatever a made-up file makes the loader stumble over
        called = re.search(r"GLOBAL (\S{1,100})", str(error))
        reason = f"it asks for {called[1]}, which was not run" if called else "it is damaged or holds something else"
        raise SeqtoolError(f"{path}: not a file of weights alone: {reason}; {safer}") from None
    if not isinstance(content, dict):
        raise SeqtoolError(f"{path}: holds no weights by name; {safer}")
    n_bytes = 0
    for name, tensor in content.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            raise SeqtoolError(f"{path}: holds {name!r}, which is no weight; {safer}")
        if tensor.layout != torch.strided or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise SeqtoolError(f"{path}: {name} is larger than its data; {safer}")
        n_bytes += tensor.numel() * tensor.element_size()
        if n_bytes > MOST_NAMES * path.stat().st_size:
            raise SeqtoolError(f"{path}: its weights are larger than the file; {safer}")
        yield name, tensor.detach().float().contiguous().numpy()


def check_size(files: list[Path], least: int, most: int) -> None:
    """Raise if files of weights are smaller or larger than a configuration allows, or for the most part not there.

    The rest is holes, which read as zeros: a download that was broken off, or a file made to fill the memory.
    """
    size = sum(file.stat().st_size for file in files)
    if not least <= size <= most:
        limits = f"at least {least:,}" if size < least else f"at most {most:,}"
        raise SeqtoolError(
            f"{files[0].parent}: config.json describes weights of {limits} bytes, but the files have {size:,}; "
            "download all files of the model again"
        )
    for file in files:
        if count_written(file) < file.stat().st_size / 2:
            raise SeqtoolError(f"{file}: most of its bytes were never written; download it again")


def check_zip(path: Path) -> None:
    """Raise for an archive that would unpack to more than it is; torch stores weights uncompressed."""
    if not zipfile.is_zipfile(path):
        return  # the format before 2020
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise SeqtoolError(f"{path}: is compressed, as torch never writes it; download the model again")
    if sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise SeqtoolError(f"{path}: claims to hold more than its size; download the model again")
