"""A bounded, seeded sample of a stream of unknown length."""

import math
import random
from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def sample_stream(items: Iterable[Item], size: int, seed: int) -> list[Item]:
    """Return `size` items chosen evenly from a stream, all of them if there are fewer; equal for equal seeds.

    Li's Algorithm L: the gap to the next chosen item is drawn at once, so the items between cost almost nothing.
    """
    stream = iter(items)
    chosen = list(islice(stream, size))
    if len(chosen) < size:
        return chosen
    draw = random.Random(seed)
    weight = 1.0
    while True:
        weight *= math.exp(math.log(_positive(draw)) / size)
        gap = math.floor(math.log(_positive(draw)) / math.log1p(-weight)) if weight > 0.0 else 1 << 62
        found = list(islice(stream, gap, gap + 1))
        if not found:
            return chosen
        chosen[draw.randrange(size)] = found[0]


def _positive(draw: random.Random) -> float:
    """Return a random number in (0, 1]; its logarithm exists."""
    return 1.0 - draw.random()
