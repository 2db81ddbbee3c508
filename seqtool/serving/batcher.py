"""Translates what arrives together in batches: requests put segments into a queue, threads take batches from it."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seqtool.serving.errors import overloaded
from seqtool.serving.metrics import Metrics
from seqtool.serving.waiting import LONG, SHORT, SHORT_REQUEST, Waiting, WaitingSegments
from seqtool.translation.engines.interface import Engine, SearchOptions
from seqtool.translation.outcomes import Outcome, PlannedLine, Segment
from seqtool.translation.results import Translation
from seqtool.translation.translator import Translator

PORTION = 256  # segments of one request that wait at the same time
PLAN_AT_ONCE = 2000  # characters that are tokenized by the event loop itself; more are by a thread


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
        if sum(map(len, texts)) > PLAN_AT_ONCE:
            lines = await asyncio.to_thread(self.translator.plan, texts, search)
        else:
            lines = self.translator.plan(texts, search)
        n_segments = sum(len(line.segments) for line in lines)
        lane = SHORT if n_segments <= SHORT_REQUEST else LONG
        done: list[Translation] = []
        for number, portion in enumerate(portions(lines)):
            found = await self._search(portion, search, client, lane, is_accepted=number > 0)
            done += [self.translator.assemble(line, found, search) for line in portion]
        return done

    async def _search(
        self, lines: Sequence[PlannedLine], search: SearchOptions, client: str, lane: int, is_accepted: bool
    ) -> dict[Segment, Outcome]:
        wanted = dict.fromkeys(segment for line in lines for segment in line.segments)
        found = self.translator.recall(search, wanted)
        missing = [segment for segment in wanted if segment not in found]
        self._metrics.cache_hits.inc(len(found))
        self._metrics.cache_misses.inc(len(missing))
        if not missing:
            return found
        while len(self._waiting) + len(missing) > self._max_queue and len(self._waiting):
            if not is_accepted:
                raise overloaded()
            await asyncio.sleep(0.02)  # a request that was begun is finished
        ticket = Ticket(asyncio.get_running_loop())
        self._put(ticket, missing, search, client, lane)
        try:
            await ticket.done
        except asyncio.CancelledError:
            with self._changed:
                self._waiting.remove(ticket.items)
            raise
        return found | ticket.found

    def _put(self, ticket: Ticket, segments: list[Segment], search: SearchOptions, client: str, lane: int) -> None:
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


def portions(lines: Sequence[PlannedLine]) -> Iterator[list[PlannedLine]]:
    """Share out lines so that each portion has at most PORTION segments, or one line."""
    portion: list[PlannedLine] = []
    size = 0
    for line in lines:
        if portion and size + len(line.segments) > PORTION:
            yield portion
            portion, size = [], 0
        portion.append(line)
        size += len(line.segments)
    if portion:
        yield portion
