"""Named arrays and a few facts through a pipe: a line of JSON, then the bytes of each array. No pickle."""

import json
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from seqtool.corpus.preparing.token_array import Ints


@dataclass(frozen=True)
class Message:
    """What one process sends to another."""

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Ints] = field(default_factory=dict)


def write_message(stream: IO[bytes], message: Message) -> None:
    """Write a message and flush it."""
    shapes = [(name, array.dtype.str, len(array)) for name, array in message.arrays.items()]
    stream.write(json.dumps([message.facts, shapes]).encode() + b"\n")
    for array in message.arrays.values():
        stream.write(np.ascontiguousarray(array).data)
    stream.flush()


def read_message(stream: IO[bytes]) -> Message | None:
    """Read a message; None if the other side has ended."""
    header = stream.readline()
    if not header.endswith(b"\n"):
        return None
    facts, shapes = json.loads(header)
    arrays = {}
    for name, kind, count in shapes:
        content = stream.read(count * np.dtype(kind).itemsize)
        if len(content) < count * np.dtype(kind).itemsize:
            return None
        arrays[name] = np.frombuffer(content, kind)
    return Message(facts, arrays)
