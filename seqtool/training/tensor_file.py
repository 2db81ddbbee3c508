"""Writes safetensors files tensor by tensor, so that memory holds one at a time and not the whole model.

The library's own writer takes all tensors at once. The bytes are the same: the length of the header, the header with
every tensor's type, shape and place, then the numbers; tensors are in the order of their types, then of their names.
"""

import json
from collections.abc import Mapping
from typing import BinaryIO

import torch
from torch import Tensor

from seqtool.training.distributed import Workers
from seqtool.training.sharding import AnyTensor, Rows, gathered

TYPES = {torch.int64: "I64", torch.float32: "F32"}  # in the library's order


def write_tensors(file: BinaryIO | None, tensors: Mapping[str, AnyTensor], workers: Workers) -> None:
    """Write tensors; without a file, only help the worker that writes to put them together."""
    kinds = list(TYPES)
    found = {name: (tensor.shape, _local(tensor).dtype) for name, tensor in tensors.items()}
    names = sorted(found, key=lambda name: (kinds.index(found[name][1]), name))
    if file is None:
        for name in names:
            gathered(tensors[name], workers)
        return
    header, place = {}, 0
    for name in names:
        shape, dtype = found[name]
        size = shape.numel() * dtype.itemsize
        header[name] = {"dtype": TYPES[dtype], "shape": list(shape), "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in names:
        whole = gathered(tensors[name], workers).detach().cpu().contiguous()
        file.write(whole.numpy().data)


def _local(tensor: AnyTensor) -> Tensor:
    return tensor.local if isinstance(tensor, Rows) else tensor
