"""Makes the items of an iterator ahead of time in a background thread, so that their user need not wait."""

import queue
import threading
import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")

_POLL_SECONDS = 0.2  # how soon a thread that waits for room notices that nobody wants more


class Prefetched(Generic[Item]):
    """Iterates over items made in a thread, at most `depth` ahead; what goes wrong there is raised here."""

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        self._ready: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(depth)
        self._unwanted = threading.Event()
        arguments = (items, self._ready, self._unwanted)  # not self, so that a forgotten iterator can be collected
        self._thread = threading.Thread(target=_fill, args=arguments, name="prefetch", daemon=True)
        self._thread.start()
        # Runs when this is collected or the interpreter ends, whichever comes first.
        self._closed = weakref.finalize(self, _stop, self._unwanted, self._ready, self._thread)
        self._ended: BaseException | None = None

    def __iter__(self) -> "Prefetched[Item]":
        return self

    def __next__(self) -> Item:
        if self._ended is not None:
            raise self._ended
        if not self._closed.alive:
            raise StopIteration
        item, self._ended = self._ready.get()
        if self._ended is not None:
            raise self._ended
        return item  # type: ignore[return-value]

    def close(self) -> None:
        """End the thread; items that are ready are lost."""
        self._closed()

    def __enter__(self) -> "Prefetched[Item]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _fill(
    items: Iterator[Item],
    ready: "queue.Queue[tuple[Item | None, BaseException | None]]",
    unwanted: threading.Event,
) -> None:
    def put(item: Item | None, error: BaseException | None) -> None:
        while not unwanted.is_set():
            try:
                ready.put((item, error), timeout=_POLL_SECONDS)
                break
            except queue.Full:
                continue

    try:
        while not unwanted.is_set():
            put(next(items), None)
    except BaseException as error:  # StopIteration too: the user of the items sees what they would see without a thread
        put(None, error)


def _stop(
    unwanted: threading.Event,
    ready: "queue.Queue[tuple[Item | None, BaseException | None]]",
    thread: threading.Thread,
) -> None:
    unwanted.set()
    while not ready.empty():  # make room, so that a thread that waits for it ends at once
        try:
            ready.get_nowait()
        except queue.Empty:
            break
    if thread is not threading.current_thread():
        thread.join(timeout=10)
