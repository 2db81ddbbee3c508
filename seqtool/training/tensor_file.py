"""Writes safetensors files tensor by tensor, so that memory holds one at a time and not the whole model.

The library's own writer takes all tensors at once. The bytes are the same: the length of the header, the header with
every tensor's type, shape and place, then the numbers; tensors are in the order of their types, then of their names.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from seqtool.training.distributed import Workers
from seqtool.training.sharding import AnyTensor, Rows, gathered

TYPES = {torch.int64: "I64", torch.float32: "F32"}  # in the library's order


def write_tensors(path: Path | None, tensors: Mapping[str, AnyTensor], workers: Workers) -> None:
    """Write a file of tensors; without a path, only help the worker that writes to put them together."""
    kinds = list(TYPES)
    names = sorted(tensors, key=lambda name: (kinds.index(_local(tensors[name]).dtype), name))
    if path is None:
        for name in names:
            gathered(tensors[name], workers)
        return
    header, place = {}, 0
    for name in names:
        shape, dtype = tensors[name].shape, _local(tensors[name]).dtype
        size = shape.numel() * dtype.itemsize
        header[name] = {"dtype": TYPES[dtype], "shape": list(shape), "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            whole = gathered(tensors[name], workers).detach().cpu().contiguous()
            file.write(whole.numpy().data)


def _local(tensor: AnyTensor) -> Tensor:
    return tensor.local if isinstance(tensor, Rows) else tensor
