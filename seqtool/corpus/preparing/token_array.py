"""Many token sequences in one flat array: how a prepared corpus lies on disk, to be read without loading it."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[Any]


@dataclass(frozen=True)
class TokenArray:
    """Row i is tokens[offsets[i] : offsets[i + 1]]; lengths[i] is its number of tokens, without begin and end."""

    tokens: Ints
    offsets: Ints  # (rows + 1,)
    lengths: Ints  # (rows,)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> Ints:
        return self.tokens[int(self.offsets[row]) : int(self.offsets[row + 1])]

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[int]]) -> "TokenArray":
        """Make an array in memory."""
        lengths = np.array([len(row) for row in rows], np.uint32)
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.uint64)]).astype(np.uint64)
        tokens = np.fromiter((token for row in rows for token in row), np.uint32, int(offsets[-1]))
        return cls(tokens, offsets, lengths)

    def count(self, rows: Ints) -> int:
        """Return how many tokens the given rows have together."""
        return int(self.lengths[rows].sum(dtype=np.int64))

    def gather(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the tokens of the given rows one after the other, and the length of each, as int64."""
        lengths = self.lengths[rows].astype(np.int64)
        ends = np.cumsum(lengths)
        first = self.offsets[rows].astype(np.int64)
        places = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(first - (ends - lengths), lengths)
        return self.tokens[places].astype(np.int64), lengths


@dataclass(frozen=True)
class PairRange:
    """The pairs first .. last - 1, all of one corpus; each is expected `weight` times an epoch."""

    first: int
    last: int
    weight: float = 1.0


def smallest_type(highest: int) -> np.dtype[Any]:
    """Return the unsigned type of 16 or 32 bits that holds a value."""
    return np.dtype("<u2") if highest < 1 << 16 else np.dtype("<u4")


class TokenArrayWriter:
    """Writes a TokenArray to three files, `name.tokens`, `name.offsets` and `name.lengths`, as its rows arrive."""

    PARTS = ("tokens", "offsets", "lengths")

    def __init__(self, folder: Path, name: str, vocab_size: int, max_tokens: int) -> None:
        self.types = {"tokens": smallest_type(vocab_size - 1), "lengths": smallest_type(max_tokens)}
        self.types["offsets"] = np.dtype("<u8")
        self._files = {part: open(folder / f"{name}.{part}", "wb") for part in self.PARTS}  # noqa: SIM115
        self._hashes = {part: hashlib.sha256() for part in self.PARTS}
        self._counts = dict.fromkeys(self.PARTS, 0)
        self._name = name
        self._write("offsets", np.zeros(1))

    def append(self, tokens: Ints, lengths: Ints) -> None:
        """Add rows: their tokens one after the other, and the length of each."""
        before = self._counts["tokens"]
        self._write("tokens", tokens)
        self._write("lengths", lengths)
        self._write("offsets", before + np.cumsum(lengths, dtype=np.uint64))

    def finish(self) -> dict[str, dict[str, Any]]:
        """Put everything on disk and return what the manifest says of each file: type, count and sha256."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        self.close()
        return {
            f"{self._name}.{part}": {
                "type": self.types[part].str,
                "count": self._counts[part],
                "sha256": self._hashes[part].hexdigest(),
            }
            for part in self.PARTS
        }

    def close(self) -> None:
        """Close the files as they are."""
        for file in self._files.values():
            file.close()

    def _write(self, part: str, values: Ints) -> None:
        content = values.astype(self.types[part], copy=False).tobytes()
        self._files[part].write(content)
        self._hashes[part].update(content)
        self._counts[part] += len(values)


def open_token_array(folder: Path, name: str, files: dict[str, dict[str, Any]]) -> TokenArray:
    """Map the three files of a TokenArray into memory, as the manifest describes them."""
    return TokenArray(
        *(map_array(folder / f"{name}.{part}", files[f"{name}.{part}"]) for part in TokenArrayWriter.PARTS)
    )


def map_array(path: Path, described: dict[str, Any]) -> Ints:
    """Map one file into memory; an empty one, which cannot be mapped, is an empty array."""
    if described["count"] == 0:
        return np.zeros(0, described["type"])
    return np.memmap(path, described["type"], "r", shape=(described["count"],))
