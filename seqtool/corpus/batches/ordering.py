"""Sorts the pairs of an epoch by length, in memory that does not grow with their number.

Everything that the order depends on is packed into one integer per pair. Those of a large epoch go to a file, grouped
by length; then each group is sorted by itself. The workers on a machine share the file of sorted pairs.
"""

import hashlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from seqtool.files import locked, sync

Ints = NDArray[Any]
Chunks = Callable[[], Iterable[Ints]]  # the pairs of an epoch in order of their numbers, from the beginning each time

CHUNK = 1 << 21  # pairs at a time
GROUP = 1 << 23  # pairs sorted at once, unless more have one length
KEY_BITS = 64
MAX_SKEW = 2047  # differences of source and target length beyond this are equal in sorting
PATIENCE = 24 * 3600.0  # seconds that a worker waits for the one that sorts
CHECKSUM = 32  # bytes at the end of a file


class RandomBits:
    """Random uint64 numbers that follow from the seed alone, whatever the version of numpy."""

    def __init__(self, *seed: int) -> None:
        self._generator = np.random.PCG64(np.random.SeedSequence(seed))

    def take(self, count: int) -> Ints:
        """Return the next numbers."""
        return np.asarray(self._generator.random_raw(count), np.uint64)


@dataclass(frozen=True)
class Lengths:
    """How long the pairs of an epoch are: all that their order and the cuts between batches need to know of them."""

    counts: Ints  # (longest + 1,), pairs by their longer side
    low: int  # the smallest and largest difference of source and target
    high: int
    last: int  # the number of the last pair

    @classmethod
    def survey(cls, chunks: Chunks, src_lengths: Ints, tgt_lengths: Ints) -> "Lengths":
        """Go through the pairs once."""
        counts, lows, highs, last = np.zeros(1, np.int64), [0], [0], 0
        for number, pairs in enumerate(chunks()):
            longest, skew = measure(pairs, src_lengths, tgt_lengths)
            found = np.bincount(longest, minlength=len(counts))
            found[: len(counts)] += counts
            counts, last = found, int(pairs[-1])
            if number == 0:
                lows, highs = [], []
            lows.append(int(skew.min()))
            highs.append(int(skew.max()))
        return cls(counts, min(lows), max(highs), last)

    def __len__(self) -> int:
        return int(self.counts.sum())

    @property
    def pair_bits(self) -> int:
        """The bits that the number of a pair takes."""
        return self.last.bit_length()

    def groups(self) -> Ints:
        """Return the group of each length: neighbours that together are not too many to be sorted at once."""
        groups, size, number = np.zeros(len(self.counts), np.int64), 0, 0
        for length, count in enumerate(self.counts.tolist()):
            if size and size + count > GROUP:
                size, number = 0, number + 1
            size += count
            groups[length] = number
        return groups


def measure(pairs: Ints, src_lengths: Ints, tgt_lengths: Ints) -> tuple[Ints, Ints]:
    """Return the longer side of each pair, and by how much the source is longer."""
    src, tgt = src_lengths[pairs].astype(np.int32), tgt_lengths[pairs].astype(np.int32)
    return np.maximum(src, tgt), np.clip(src - tgt, -MAX_SKEW, MAX_SKEW).astype(np.int16)


def make_keys(
    chunks: Chunks, src_lengths: Ints, tgt_lengths: Ints, lengths: Lengths, bits: RandomBits
) -> Iterator[tuple[Ints, Ints]]:
    """Yield the integers to sort, and the longer sides; the pair is in the low bits.

    Pairs are sorted by their longer side, then by how much longer it is. That second order runs up and down in turn, so
    that neighbours are alike everywhere; equals are in random order.
    """
    is_even = np.cumsum(lengths.counts > 0) % 2 == 0
    widths = [(len(lengths.counts) - 1).bit_length(), (lengths.high - lengths.low).bit_length(), 0, lengths.pair_bits]
    widths[2] = KEY_BITS - sum(widths)
    assert widths[2] > 0
    for pairs in chunks():
        longest, skew = measure(pairs, src_lengths, tgt_lengths)
        skew = np.where(is_even[longest], skew - np.int16(lengths.low), np.int16(lengths.high) - skew).astype(np.uint16)
        keys = bits.take(len(pairs))
        keys >>= np.uint64(KEY_BITS - widths[2])
        keys <<= np.uint64(widths[3])
        keys |= pairs.astype(np.uint64)
        keys |= skew.astype(np.uint64) << np.uint64(widths[2] + widths[3])
        if widths[0]:
            keys |= longest.astype(np.uint64) << np.uint64(KEY_BITS - widths[0])
        yield keys, longest


def sort_in_memory(keys: Iterable[tuple[Ints, Ints]], lengths: Lengths, dtype: np.dtype[Any]) -> Ints:
    """Return the pairs in the order of their keys."""
    collected, place = np.empty(len(lengths), np.uint64), 0
    for chunk, _ in keys:
        collected[place : place + len(chunk)] = chunk
        place += len(chunk)
    return pairs_of(collected, lengths.pair_bits, dtype)


def pairs_of(keys: Ints, width: int, dtype: np.dtype[Any]) -> Ints:
    """Sort keys in place, and return the pairs in their low bits."""
    keys.sort()
    keys &= np.uint64((1 << width) - 1)
    return keys.astype(dtype)


class SortedFile:
    """The sorted pairs of one epoch in a file, which the first process to want it writes and all map into memory."""

    def __init__(self, folder: Path, epoch: int, dtype: np.dtype[Any]) -> None:
        self.folder, self.epoch, self.dtype = folder, epoch, dtype
        self.path = folder / f"epoch-{epoch:06d}.order"

    def open_or_write(self, keys: Callable[[], Iterable[tuple[Ints, Ints]]], lengths: Lengths) -> Ints:
        """Return the pairs, sorted now unless the file is there and whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder, f"{self.folder}: another process has been sorting for a day; end it", PATIENCE):
            if not self._is_whole(len(lengths)):
                self._write(keys(), lengths)
                self._remove_others()
        return np.memmap(self.path, self.dtype, "r", shape=(len(lengths),))

    def _is_whole(self, n_pairs: int) -> bool:
        if not self.path.is_file() or self.path.stat().st_size != n_pairs * self.dtype.itemsize + CHECKSUM:
            return False
        content, left = hashlib.sha256(), n_pairs * self.dtype.itemsize
        with open(self.path, "rb") as file:
            while left:
                block = file.read(min(left, 1 << 20))
                content.update(block)
                left -= len(block)
            return file.read() == content.digest()

    def _write(self, keys: Iterable[tuple[Ints, Ints]], lengths: Lengths) -> None:
        grouped, new = (self.folder / f"{self._mark}{what}" for what in ("keys", "order"))
        try:
            with open(grouped, "w+b") as scratch, open(new, "wb") as file:
                sizes = group_keys(keys, lengths, scratch)
                grouped.unlink()  # the space is free when the file is closed, however that comes
                content = hashlib.sha256()
                for size in sizes.tolist():
                    block = pairs_of(np.fromfile(scratch, np.uint64, size), lengths.pair_bits, self.dtype).data
                    content.update(block)
                    file.write(block)
                file.write(content.digest())
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self.path)
            sync(self.folder)
        finally:
            for path in (grouped, new):
                path.unlink(missing_ok=True)

    @property
    def _mark(self) -> str:
        """What begins the names of this machine's unfinished files: others may write to the same storage."""
        return f".{socket.gethostname()}-"

    def _remove_others(self) -> None:
        """Remove the files of epochs that are over; the one before may still be read from."""
        for path in self.folder.glob("epoch-*.order"):
            if not self.epoch - 1 <= int(path.stem.removeprefix("epoch-")) <= self.epoch:
                path.unlink(missing_ok=True)


def group_keys(keys: Iterable[tuple[Ints, Ints]], lengths: Lengths, file: BinaryIO) -> Ints:
    """Write keys so that those of a group of lengths stand together; return the groups' sizes."""
    groups = lengths.groups()
    sizes = np.bincount(groups, lengths.counts).astype(np.int64)
    places = np.concatenate([[0], np.cumsum(sizes)[:-1]]) * 8  # in the file, where the next key of each group goes
    for chunk, longest in keys:
        group = groups[longest].astype(np.uint16)
        chunk = chunk[np.argsort(group, kind="stable")]
        ends = np.cumsum(np.bincount(group, minlength=len(sizes)))
        for number in np.unique(group).tolist():
            first = int(ends[number - 1]) if number else 0
            part = chunk[first : int(ends[number])]
            os.pwrite(file.fileno(), part.data, int(places[number]))
            places[number] += part.nbytes
    file.seek(0)
    return sizes
