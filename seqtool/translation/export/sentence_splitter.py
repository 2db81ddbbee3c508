"""A sentence splitter of two kilobytes in ONNX, in the form that MiniSBD, which Argos Translate uses, expects.

It is a rule: a sentence ends at . ! ? or … where a space and then a capital letter follow, and at their full-width
forms. MiniSBD gives a text as characters (`units`, by a vocabulary in the file) and features (`features`, here whether
a character is a capital letter), and takes three scores for each: nothing ends here, a word ends, a sentence ends.

ONNX files are Protocol Buffers: fields of a number, a wire type and a value. The few that are needed are written here.
"""

import json
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

FLOAT, INT64 = 1, 7  # ONNX's numbers of these types
ENDS, WIDE_ENDS, SPACES = ".!?…", "。！？｡", " "
UNITS = ["<PAD>", "<UNK>", *ENDS, *WIDE_ENDS, *SPACES]


def make_splitter() -> bytes:
    """Return the content of the .onnx file."""
    kinds = [[0, unit in ENDS, unit in WIDE_ENDS, unit in SPACES] for unit in UNITS]  # with room for the capital
    table = np.array([row[1:] for row in kinds], np.float32)  # (units, 3)
    # The score of "a sentence ends" is 1 only where an end, a space and a capital follow one another, or at a wide end.
    rule = np.zeros(
        (3, 4, 3), np.float32
    )  # (scores, end / wide end / space / capital, this character and the next two)
    rule[2, 0, 0] = rule[2, 2, 1] = rule[2, 3, 2] = 1
    rule[2, 1, 0] = 3
    bias = np.array([0, -1, -2.5], np.float32)
    nodes = [
        node("Gather", ["table", "units"], "kinds"),  # (B, T, 3)
        node("Concat", ["kinds", "features"], "all", axis=2),  # (B, T, 4)
        node("Transpose", ["all"], "columns", perm=[0, 2, 1]),
        node("Conv", ["columns", "rule", "bias"], "scored", kernel_shape=[3], pads=[0, 2]),  # (B, 3, T)
        node("Transpose", ["scored"], "logits", perm=[0, 2, 1]),
    ]
    graph = [
        *(field(1, one) for one in nodes),
        field(2, "sentence_splitter"),
        *(field(5, tensor(name, value)) for name, value in (("table", table), ("rule", rule), ("bias", bias))),
        field(11, value_info("units", INT64, ["B", "T"])),
        field(11, value_info("features", FLOAT, ["B", "T", 1])),
        field(12, value_info("logits", FLOAT, ["B", "T", 3])),
    ]
    config = {"feat_funcs": ["capitalized"], "max_seqlen": 1000, "batch_size": 1}
    ids = {unit: index for index, unit in enumerate(UNITS)}
    vocabulary = {"lang": "", "idx": 0, "cutoff": 0, "lower": False, "_unit2id": ids, "_id2unit": UNITS}
    notes = {"config": json.dumps(config), "vocab": json.dumps(vocabulary)}
    model = [
        field(1, 8),  # version of the format
        field(2, "seqtool"),
        field(7, b"".join(graph)),
        field(8, field(2, 13)),  # version of the operators
        *(field(14, field(1, key) + field(2, text)) for key, text in notes.items()),
    ]
    return b"".join(model)


def node(kind: str, inputs: Sequence[str], output: str, **attributes: int | list[int]) -> bytes:
    """Return an operator of the graph."""
    parts = [*(field(1, name) for name in inputs), field(2, output), field(4, kind)]
    for name, value in attributes.items():
        if isinstance(value, int):
            parts.append(field(5, field(1, name) + field(3, value) + field(20, 2)))
        else:
            parts.append(field(5, field(1, name) + b"".join(field(8, one) for one in value) + field(20, 7)))
    return b"".join(parts)


def tensor(name: str, value: NDArray[np.float32]) -> bytes:
    """Return a constant."""
    shape = b"".join(field(1, size) for size in value.shape)
    return shape + field(2, FLOAT) + field(8, name) + field(9, value.astype("<f4").tobytes())


def value_info(name: str, kind: int, shape: Iterable[int | str]) -> bytes:
    """Return the name, type and shape of an input or output; a text names a size that varies."""
    sizes = b"".join(field(1, field(1, size) if isinstance(size, int) else field(2, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, sizes)))


def field(number: int, value: int | str | bytes) -> bytes:
    """Return one field: a number as a varint, a text or a message with its length before it."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first; all but the last have the highest bit set."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])
