"""Which segments are translated next: a queue that is fair to clients and makes large batches.

A batch holds segments of one shape (search options and length), which is what an engine computes together. Each
client has its turn to lead a batch; the places that its own segments leave free go to others of the same shape.
Segments of short requests are in a lane of their own, from which most batches are led, and long requests do not fill
those up, so that a long document does not hold up a short sentence. Knows no threads and no clock.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

SHORT, LONG = 0, 1
SHORT_REQUEST = 16  # segments of a request that counts as short
LONG_EVERY = 8  # one batch of so many is led by a long request while short ones wait too


@dataclass(eq=False, slots=True)
class Waiting:
    """A segment that waits for its translation."""

    segment: Any
    shape: Hashable
    client: str
    lane: int
    owner: Any
    arrived: float


Bucket = OrderedDict[Waiting, None]  # in order of arrival
Buckets = dict[Hashable, Bucket]  # by shape


class WaitingSegments:
    """The segments that wait, by lane, client and shape."""

    def __init__(self, rows: Callable[[Any], int]) -> None:
        """`rows` returns how many segments of a shape fit into a batch."""
        self._rows = rows
        self._lanes: tuple[OrderedDict[str, Buckets], OrderedDict[str, Buckets]] = (OrderedDict(), OrderedDict())
        self._n = 0
        self._since_long = 0  # batches led by short requests since the last that was led by a long one

    def __len__(self) -> int:
        return self._n

    def put(self, items: Iterable[Waiting]) -> None:
        """Add segments."""
        for item in items:
            buckets = self._lanes[item.lane].setdefault(item.client, {})
            buckets.setdefault(item.shape, OrderedDict())[item] = None
            self._n += 1

    def remove(self, items: Iterable[Waiting]) -> None:
        """Remove those of the segments that still wait."""
        for item in items:
            bucket = self._lanes[item.lane].get(item.client, {}).get(item.shape)
            if bucket is not None and item in bucket:
                del bucket[item]
                self._n -= 1
                self._tidy(item)

    def take(self, now: float) -> list[Waiting]:
        """Remove and return the segments of the next batch; none if none wait."""
        if not self._n:
            return []
        lane = self._choose_lane()
        client, buckets = next(iter(self._lanes[lane].items()))
        self._lanes[lane].move_to_end(client)
        shape = max(buckets, key=lambda shape: self._urgency(shape, buckets[shape], now))
        batch = list(self._pick(shape, client, lane))
        self._n -= len(batch)
        return batch

    def _choose_lane(self) -> int:
        if not self._lanes[LONG]:
            return SHORT
        self._since_long += 1
        if not self._lanes[SHORT] or self._since_long >= LONG_EVERY:
            self._since_long = 0
            return LONG
        return SHORT

    def _urgency(self, shape: Any, bucket: Bucket, now: float) -> float:
        """Return about how long the segments of the next batch of a shape have waited, all together."""
        return min(len(bucket), self._rows(shape)) * (now - next(iter(bucket)).arrived + 0.001)

    def _pick(self, shape: Any, client: str, lane: int) -> Iterator[Waiting]:
        """Take segments of a shape: first the leader's, then others' of its lane; with a long one's also short ones."""
        free = self._rows(shape)
        others = ((place, name) for place in range(lane, -1, -1) for name in list(self._lanes[place]))
        for place, name in ((lane, client), *others):
            bucket = self._lanes[place].get(name, {}).get(shape)
            while bucket and free:
                item, _ = bucket.popitem(last=False)
                free -= 1
                yield item
                if not bucket:
                    self._tidy(item)
            if not free:
                return

    def _tidy(self, item: Waiting) -> None:
        """Forget a bucket, and a client, of which nothing waits any longer."""
        buckets = self._lanes[item.lane][item.client]
        if not buckets[item.shape]:
            del buckets[item.shape]
        if not buckets:
            del self._lanes[item.lane][item.client]
