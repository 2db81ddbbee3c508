"""Several processes that answer on one socket: started, restarted when one dies, and ended together."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from seqtool.errors import SeqtoolError
from seqtool.serving.metrics import forget_process

SHORT_LIFE = 10.0  # seconds; a process that dies sooner, and more often than ALLOWED_DEATHS, has no chance
ALLOWED_DEATHS = 3
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
WHILE_STARTING = dict(zip(SIGNALS, (signal.SIG_DFL, signal.SIG_IGN, signal.SIG_IGN, signal.SIG_DFL), strict=True))


@dataclass
class WorkerLife:
    """How a process that answers requests reports that it is ready, and learns that its parent is gone."""

    ready: Callable[[], None]
    parent: int | None = field(default=None)  # a file that ends with the parent


def supervise(
    work: Callable[[WorkerLife], None],
    n_workers: int,
    announce: Callable[[], None],
    listener: socket.socket,
    notify: Callable[[str], None],
) -> None:
    """Run the work in so many processes until a signal ends all of them; SIGHUP is passed on."""
    _Supervisor(work, announce, notify).run(n_workers, listener)


class _Supervisor:
    def __init__(
        self, work: Callable[[WorkerLife], None], announce: Callable[[], None], notify: Callable[[str], None]
    ) -> None:
        self._work, self._announce, self._notify = work, announce, notify
        self._context = multiprocessing.get_context("fork")  # nothing heavy is loaded yet, and no thread runs
        self._processes: dict[multiprocessing.process.BaseProcess, float] = {}
        self._ready, self._tell_ready = os.pipe()
        self._alive, self._hold_alive = os.pipe()
        self._problems, self._report_problem = os.pipe()
        os.set_blocking(self._problems, False)
        self._is_announced = False
        self._deaths = 0
        self._is_ending = False

    def run(self, n_workers: int, listener: socket.socket) -> None:
        wake, waker = socket.socketpair()
        for end in (wake, waker):
            end.setblocking(False)
        former = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        try:
            for _ in range(n_workers):
                self._start()
            waiting = n_workers
            while self._processes:
                for source in multiprocessing.connection.wait([wake, self._ready] if waiting else [wake]):
                    if source is wake:
                        self._heed(wake.recv(64), listener)
                    else:
                        waiting -= len(os.read(self._ready, 1))
                        if not waiting:
                            self._is_announced = True
                            self._announce()
        finally:
            signal.set_wakeup_fd(-1)
            for process in self._processes:
                process.terminate()
            for number, handler in former.items():
                signal.signal(number, handler)

    def _start(self) -> None:
        process = self._context.Process(target=self._run_worker)
        former = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # no signal gets lost between two handlers
        process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
        self._processes[process] = time.monotonic()

    def _run_worker(self) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in WHILE_STARTING.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.close(self._hold_alive)  # it ends when the parent, which alone has it, does
        try:
            self._work(WorkerLife(self._report_ready, self._alive))
        except SeqtoolError as error:
            os.write(self._report_problem, f"{error}\n".encode()[: select.PIPE_BUF])
            sys.exit(1)

    def _report_ready(self) -> None:
        os.write(self._tell_ready, b"1")

    def _heed(self, signals: bytes, listener: socket.socket) -> None:
        if signal.SIGHUP in signals:
            self._pass_on(signal.SIGHUP)
        if signal.SIGTERM in signals or signal.SIGINT in signals:
            self._is_ending = True
            listener.close()  # the processes have it too, and close it when they no longer accept
            self._pass_on(signal.SIGTERM)
        for process in [process for process in self._processes if process.exitcode is not None]:
            self._bury(process)

    def _pass_on(self, number: signal.Signals) -> None:
        for process in self._processes:
            if process.pid is not None and process.exitcode is None:
                os.kill(process.pid, number)

    def _bury(self, process: multiprocessing.process.BaseProcess) -> None:
        started = self._processes.pop(process)
        if process.pid is not None:
            forget_process(process.pid)
        if self._is_ending:
            return
        with contextlib.suppress(BlockingIOError):
            problem = os.read(self._problems, select.PIPE_BUF).decode(errors="replace").partition("\n")[0]
            if not self._is_announced:
                raise SeqtoolError(problem)
            self._notify(problem)
        self._deaths = self._deaths + 1 if time.monotonic() - started < SHORT_LIFE else 1
        if self._deaths > ALLOWED_DEATHS:
            raise SeqtoolError(
                f"a process ended {self._deaths} times soon after its start (exit code {process.exitcode}); "
                "run it with `workers=1` to see why"
            )
        self._notify(f"a process ended with exit code {process.exitcode}; another is started")
        self._start()
