"""Threads that work on batches side by side, each computing with one thread of torch; started once for an engine."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = (
    4  # batches per thread that a caller has waiting or at work; few, so that callers take turns and Ctrl-C is quick
)

_starting = threading.Lock()


class WorkerThreads:
    """A fixed number of threads that any number of callers share; each caller's results come in its own order."""

    def __init__(self, n_threads: int) -> None:
        """Start the threads; those that run already keep their number of torch threads."""
        self._ahead = AHEAD * n_threads
        ready = threading.Barrier(n_threads + 1)

        def start() -> None:
            torch.get_num_threads()  # a thread's first question sets its number to the common one: let that be over
            torch.set_num_threads(1)
            ready.wait()

        self._pool = ThreadPoolExecutor(n_threads, "seqtool-engine", initializer=start)
        # To set the number for one thread also sets it for threads that begin later; so it is set back, and no two
        # engines do this at the same time.
        with _starting:
            usual = torch.get_num_threads()
            waits = [self._pool.submit(lambda: None) for _ in range(n_threads)]
            ready.wait()
            torch.set_num_threads(usual)
        for wait in waits:
            wait.result()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the result of each item in order; what a caller no longer waits for is not begun."""
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(self._pool.submit(work, item))
                if len(waiting) >= self._ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for job in waiting:
                job.cancel()

    def close(self) -> None:
        """End the threads when what they work on is done."""
        self._pool.shutdown()
