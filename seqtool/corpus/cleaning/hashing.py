"""64-bit hashes of lines, and a compact table that knows which hashes it has seen. Both work on whole arrays.

A hash depends on the bytes alone: it is the same in every process and on every machine. Among 100 million different
lines the chance that any two share a hash is about one in 4,000.
"""

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Offsets = NDArray[np.int64]

# Odd constants without pattern; the two multipliers of the mixing step are those of MurmurHash3's finalizer.
STEP, LENGTH = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
FIRST, SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
SHIFT = np.uint64(33)
# KEPT_BYTES[n] keeps the first n bytes of a little-endian word.
KEPT_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)

LARGE = 1 << 24  # slots from which a table grows by half only, to spare memory


def hash_lines(data: bytes, starts: Offsets, ends: Offsets) -> Hashes:
    """Hash data[starts[i]:ends[i]] for each i: the sum of its mixed 8-byte words, mixed again with the length."""
    lengths = ends - starts
    n_words = (lengths + 7) >> 3
    firsts = np.cumsum(n_words) - n_words  # where each line's words begin
    total = int(n_words.sum())
    indices = np.arange(total) - np.repeat(firsts, n_words)  # of a word in its line
    places = np.repeat(starts, n_words) + 8 * indices
    # A view in which element i is the word that starts at byte i; the padding lets the last ones be read whole.
    overlapping = np.ndarray(len(data) + 1, "<u8", data + bytes(8), strides=(1,))
    words = overlapping[places].astype(np.uint64, copy=False)
    words &= KEPT_BYTES[np.minimum(np.repeat(lengths, n_words) - 8 * indices, 8)]
    words += indices.astype(np.uint64) * STEP
    sums = np.zeros(len(starts), np.uint64)
    filled = n_words > 0
    if total:
        sums[filled] = np.add.reduceat(_mix(words), firsts[filled])
    return _mix(sums + lengths.astype(np.uint64) * LENGTH)


def hash_pairs(src: Hashes, tgt: Hashes) -> Hashes:
    """Join the hashes of the two sides of pairs; the order of the sides matters."""
    return _mix(src * STEP + tgt)


def _mix(values: Hashes) -> Hashes:
    values = values ^ (values >> SHIFT)
    values *= FIRST
    values ^= values >> SHIFT
    values *= SECOND
    values ^= values >> SHIFT
    return values


class HashTable:
    """A set of hashes in one growing array (11 to 16 bytes per hash), with a number for each hash if asked for.

    Open addressing: a hash lives in the first free slot of those 0, 1, 3, 6, 10, ... after its home. Homes rise with
    the hashes, so that a sorted batch walks through the memory in order.
    """

    def __init__(self, with_numbers: bool = False, capacity: int = 1 << 16) -> None:
        self.count = 0
        self.slots = np.zeros(capacity, np.uint64)  # 0 is a free slot
        self.numbers = np.zeros(capacity, np.uint32) if with_numbers else None

    def add(self, hashes: Hashes, numbers: NDArray[np.uint32] | None = None) -> NDArray[np.bool_]:
        """Add hashes in their order; return True for those that were there, or came before in the same batch."""
        hashes = np.maximum(hashes, np.uint64(1))
        ordered, firsts = np.unique(hashes, return_index=True)
        repeated = np.ones(len(hashes), bool)
        if self.numbers is not None and numbers is not None:
            numbers = numbers[firsts]
        repeated[firsts] = ~self._insert(ordered, numbers)
        return repeated

    def numbers_of(self, hashes: Hashes) -> NDArray[np.uint32]:
        """Return the number that each hash was first added with; the hashes must be there."""
        assert self.numbers is not None
        hashes = np.maximum(hashes, np.uint64(1))
        places = self._homes(hashes)
        distance = 1
        while len(astray := np.flatnonzero(self.slots[places] != hashes)):
            places[astray] = self._further(places[astray], distance)
            distance += 1
        return self.numbers[places]

    def _homes(self, hashes: Hashes) -> Offsets:
        high = hashes >> np.uint64(32)
        return ((high * np.uint64(len(self.slots))) >> np.uint64(32)).astype(np.int64)

    def _further(self, places: Offsets, distance: int) -> Offsets:
        places = places + distance
        places[places >= len(self.slots)] -= len(self.slots)
        return places

    def _insert(self, hashes: Hashes, numbers: NDArray[np.uint32] | None) -> NDArray[np.bool_]:
        """Insert distinct hashes; return True for the new ones."""
        while self.count + len(hashes) > 0.75 * len(self.slots):
            self._grow()
        is_new = self._place(hashes, numbers)
        self.count += int(is_new.sum())
        return is_new

    def _place(self, hashes: Hashes, numbers: NDArray[np.uint32] | None) -> NDArray[np.bool_]:
        is_new = np.zeros(len(hashes), bool)
        waiting, places, distance = np.arange(len(hashes)), self._homes(hashes), 1
        while len(waiting):
            found = self.slots[places]
            free = np.flatnonzero(found == 0)
            self.slots[places[free]] = hashes[free]  # where several want one slot, the last one gets it
            won = free[self.slots[places[free]] == hashes[free]]
            is_new[waiting[won]] = True
            if self.numbers is not None and numbers is not None:
                self.numbers[places[won]] = numbers[waiting[won]]
            still = found != hashes
            still[won] = False
            waiting, hashes, places = waiting[still], hashes[still], self._further(places[still], distance)
            distance += 1
        return is_new

    def _grow(self) -> None:
        slots, numbers = self.slots, self.numbers
        capacity = len(slots) * 2 if len(slots) < LARGE else len(slots) + (len(slots) >> 1)
        self.slots = np.zeros(capacity, np.uint64)
        self.numbers = None if numbers is None else np.zeros(capacity, np.uint32)
        for start in range(0, len(slots), 1 << 20):
            part = slice(start, start + (1 << 20))
            used = slots[part] != 0
            self._place(slots[part][used], None if numbers is None else numbers[part][used])
