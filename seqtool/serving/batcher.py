"""Translates what arrives together in batches: requests put segments into a queue, threads take batches from it."""

import asyncio
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from seqtool.serving.errors import bad_request, overloaded
from seqtool.serving.metrics import Metrics
from seqtool.serving.waiting import LONG, SHORT, SHORT_REQUEST, Waiting, WaitingSegments
from seqtool.translation.engines.interface import Engine, SearchOptions
from seqtool.translation.outcomes import Outcome, PlannedLine, Segment
from seqtool.translation.results import Translation
from seqtool.translation.translator import Translator

PORTION = 256  # segments of one request that wait at the same time, at most
PLANNED = 500  # lines that a thread makes segments of at a time
LONGEST_LINE = 100_000  # characters; to cut a longer one into sentences holds up other requests
AT_ONCE = 2000  # characters whose lines are made and put together by the event loop itself; more are by a thread


class Shape(NamedTuple):
    """What the segments of a batch have in common."""

    search: SearchOptions
    length: int  # in steps of the engine
    prefix: int


class Ticket:
    """A request's portion of segments: complete when all of them are translated."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.done: asyncio.Future[None] = loop.create_future()
        self.found: dict[Segment, Outcome] = {}
        self.items: list[Waiting] = []
        self.n_left = 0

    def deliver(self, found: dict[Segment, Outcome]) -> None:
        """Take outcomes; in the event loop."""
        self.found.update(found)
        self.n_left -= len(found)
        if self.n_left <= 0 and not self.done.done():
            self.done.set_result(None)

    def fail(self, error: BaseException) -> None:
        """Take the news that a batch failed; in the event loop."""
        if not self.done.done():
            self.done.set_exception(error)


class Batcher:
    """One model's queue and the threads that empty it."""

    def __init__(self, translator: Translator, metrics: Metrics, *, max_queue: int, wait: float = 0.0) -> None:
        """Start threads; past max_queue waiting segments a request is refused. An idle thread waits for `wait` s."""
        self.translator = translator
        self._metrics = metrics
        self._max_queue = max_queue
        self._wait = wait
        self._waiting = WaitingSegments(self._rows)
        self._filling_since = 0.0
        self._changed = threading.Condition()
        self._closed = False
        self._engine: Engine = translator.engine
        self._threads = [
            threading.Thread(target=self._work, name=f"seqtool-batches-{number}", daemon=True)
            for number in range(self._engine.batching.callers)
        ]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        return len(self._waiting)

    async def translate(self, texts: Sequence[str], search: SearchOptions, client: str = "") -> list[Translation]:
        """Translate lines, whatever else is translated at the same time; if cancelled, they cost no more."""
        longest = max(map(len, texts), default=0)
        if longest > LONGEST_LINE:
            raise bad_request(f"a line of {longest:,} characters exceeds the limit for a line ({LONGEST_LINE:,})")
        is_long = sum(map(len, texts)) > AT_ONCE
        lines = await self._plan_in_thread(texts, search) if is_long else self.translator.plan(texts, search)
        wanted = list(dict.fromkeys(segment for line in lines for segment in line.segments))
        found = await self._search(wanted, search, client)
        assemble = partial(self._assemble, lines, found, search)
        return await asyncio.to_thread(assemble) if is_long else assemble()

    async def _plan_in_thread(self, texts: Sequence[str], search: SearchOptions) -> list[PlannedLine]:
        lines: list[PlannedLine] = []
        for start in range(0, len(texts), PLANNED):  # what is cancelled ends after one of the steps
            lines += await asyncio.to_thread(self.translator.plan, texts[start : start + PLANNED], search)
        return lines

    def _assemble(
        self, lines: Sequence[PlannedLine], found: dict[Segment, Outcome], search: SearchOptions
    ) -> list[Translation]:
        return [self.translator.assemble(line, found, search) for line in lines]

    async def _search(self, wanted: Sequence[Segment], search: SearchOptions, client: str) -> dict[Segment, Outcome]:
        """Return the outcomes of segments, which wait in portions if they are many."""
        lane = SHORT if len(wanted) <= SHORT_REQUEST else LONG
        found = self.translator.recall(search, wanted)
        missing = [segment for segment in wanted if segment not in found] if found else wanted
        if found:
            self._metrics.cache_hits.inc(len(found))
        if missing:
            self._metrics.cache_misses.inc(len(missing))
        start = 0
        while start < len(missing):
            size = self._portion(lane, len(missing))
            if size:
                found |= await self._wait_for(missing[start : start + size], search, client, lane)
                start += size
            elif start:
                await asyncio.sleep(0.02)  # a request that was begun is finished
            else:
                raise overloaded()
        return found

    def _portion(self, lane: int, n_segments: int) -> int:
        """Return how many segments of a request may wait now.

        A quarter of the queue is for short requests. Of the rest a long one may take a part of what is left, so that
        many long ones find a place, each a smaller one.
        """
        n_waiting = len(self._waiting)
        if lane == SHORT:
            return n_segments if n_waiting + n_segments <= self._max_queue or not n_waiting else 0
        left = self._max_queue * 3 // 4 - n_waiting
        return min(PORTION, max(1, left // 4)) if left > 0 or not n_waiting else 0

    async def _wait_for(
        self, segments: Sequence[Segment], search: SearchOptions, client: str, lane: int
    ) -> dict[Segment, Outcome]:
        """Put segments into the queue, and return their outcomes when they have all been translated."""
        ticket = Ticket(asyncio.get_running_loop())
        self._put(ticket, segments, search, client, lane)
        try:
            await ticket.done
        except asyncio.CancelledError:
            with self._changed:
                self._waiting.remove(ticket.items)
            raise
        return ticket.found

    def _put(self, ticket: Ticket, segments: Sequence[Segment], search: SearchOptions, client: str, lane: int) -> None:
        now = time.monotonic()
        ticket.n_left = len(segments)
        ticket.items = [
            Waiting(segment, self._shape(search, segment), client, lane, ticket, now) for segment in segments
        ]
        with self._changed:
            if self._closed:
                raise overloaded()
            if not len(self._waiting):
                self._filling_since = now
            self._waiting.put(ticket.items)
            self._changed.notify(len(segments))

    def _shape(self, search: SearchOptions, segment: Segment) -> Shape:
        return Shape(search, -(-len(segment.ids) // self._engine.batching.step), len(segment.prefix))

    def _rows(self, shape: Shape) -> int:
        tokens = shape.length * self._engine.batching.step + shape.prefix
        return max(1, min(self._engine.batching.rows, self._engine.batch_tokens // (tokens + 1)))

    def _next(self) -> list[Waiting]:
        """Wait for a batch; an empty one is the end."""
        with self._changed:
            while True:
                if not len(self._waiting):
                    if self._closed:
                        return []
                    self._changed.wait()
                    continue
                now = time.monotonic()
                left = self._filling_since + self._wait - now
                if left <= 0 or self._closed:
                    return self._waiting.take(now)
                self._changed.wait(left)

    def _work(self) -> None:
        while batch := self._next():
            segments = list(dict.fromkeys(item.segment for item in batch))
            try:
                found = self.translator.search(batch[0].shape.search, segments)  # type: ignore[attr-defined]
            except Exception as error:
                tell(batch, error)
            else:
                self._metrics.batches.observe(len(segments))
                tell(batch, found)

    def close(self) -> None:
        """Finish what waits, and end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()


def tell(batch: list[Waiting], news: dict[Segment, Outcome] | Exception) -> None:
    """Report what became of a batch to the requests whose segments were in it; from a thread."""
    loops = {item.owner.loop for item in batch}
    for loop in loops:
        items = [item for item in batch if item.owner.loop is loop]
        try:
            loop.call_soon_threadsafe(_tell, items, news)
        except RuntimeError:  # the loop has ended, and nobody waits
            continue


def _tell(items: list[Waiting], news: dict[Segment, Outcome] | Exception) -> None:
    for item in items:
        if isinstance(news, Exception):
            item.owner.fail(news)
        else:
            item.owner.deliver({item.segment: news[item.segment]})
