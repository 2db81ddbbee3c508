"""Shares jobs out to worker processes and brings the results back in order, with few of them in memory at a time.

The workers are plain programs that speak over their standard input and output: nothing of the calling program is
imported or copied into them, so this works from any script, notebook or thread. They end when their input ends, which
is also what they see when this process is killed.
"""

import contextlib
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from seqtool.corpus.preparing.messages import Message, read_message, write_message
from seqtool.errors import SeqtoolError

Answer = Callable[[Message], Message]
_WAITING_JOBS = 2  # for each worker, beside the one it is busy with


def map_in_order(jobs: Iterable[Message], program: str, setup: Message, n_workers: int) -> Iterator[Message]:
    """Yield the answer to each job in order; `program` is a module that calls `serve` when it is run."""
    with contextlib.ExitStack() as stack:
        idle: SimpleQueue[_Worker] = SimpleQueue()
        for _ in range(n_workers):
            idle.put(stack.enter_context(_Worker(program, setup)))
        threads = stack.enter_context(ThreadPoolExecutor(n_workers))
        waiting: deque[Future[Message]] = deque()
        try:
            for job in jobs:
                waiting.append(threads.submit(_ask, idle, job))
                if len(waiting) > n_workers * (1 + _WAITING_JOBS):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _ask(idle: "SimpleQueue[_Worker]", job: Message) -> Message:
    worker = idle.get()
    try:
        return worker.ask(job)
    finally:
        idle.put(worker)


def start_program(module: str) -> "subprocess.Popen[bytes]":
    """Start a module of this package as a program of its own, with pipes to its input and from its output."""
    package = str(Path(__file__).parents[3])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],  # -P: nothing in the current folder is imported
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )


class _Worker:
    """One worker process, used by one thread at a time."""

    def __init__(self, program: str, setup: Message) -> None:
        self._process = start_program(program)
        self._setup: Message | None = setup

    def ask(self, job: Message) -> Message:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer = None
        with contextlib.suppress(BrokenPipeError):
            if self._setup is not None:
                write_message(self._process.stdin, self._setup)
                self._setup = None
            write_message(self._process.stdin, job)
            answer = read_message(self._process.stdout)
        if answer is None:
            raise SeqtoolError(
                f"a worker process ended unexpectedly (exit code {self._process.wait()}); if the machine is short of "
                "memory, use fewer with data.workers = 1"
            )
        if "error" in answer.facts:
            raise RuntimeError(f"in a worker process: {answer.facts['error']}")
        return answer

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        self._process.wait()


def serve(make_answer: Callable[[Message], Answer]) -> None:
    """Be a worker: read the setup, then answer job after job until there are no more."""
    import signal
    import traceback

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the first process decides
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    setup = read_message(jobs)
    if setup is None:
        return
    with contextlib.suppress(BrokenPipeError):
        answer = make_answer(setup)
        while (job := read_message(jobs)) is not None:
            try:
                result = answer(job)
            except Exception:
                result = Message({"error": traceback.format_exc()})
            write_message(answers, result)
    os._exit(0)  # without flushing into a pipe that may be gone
