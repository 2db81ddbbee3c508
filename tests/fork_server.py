"""A process that has torch and all of seqtool loaded, and forks into `python -m seqtool` (or sacrebleu) on request.

`command_line` starts one with each process of tests and asks it; importing torch anew would take most tests' time. What
it forks is a process like any other, with the pipes, signals and exit code of its own. A request is one byte with four
file descriptors: stdin, stdout, stderr, and a socket on which the rest is read: a JSON object with the module, its
arguments, the environment, the folder to run in and whether to begin a session. On that socket come the process id and,
when the process has ended, its wait status, each as INT.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import NoReturn

INT = struct.Struct("!i")
LEAVING: dict[str, object] = {}  # the exit code, once it is known
THREADS = Path("/proc/self/task")  # where Linux lists a process's threads


def load_everything() -> None:
    """Import all modules of seqtool and the libraries that its commands load."""
    import safetensors.torch  # noqa: F401

    with contextlib.suppress(ImportError):  # seqtool works without it, and imports it only where it is used
        import ctranslate2  # noqa: F401

    import seqtool

    for module in pkgutil.walk_packages(seqtool.__path__, "seqtool."):
        if module.name != "seqtool.__main__":
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # else every forked process would copy the pages of all objects as it looks for garbage
    assert not THREADS.exists() or len(list(THREADS.iterdir())) == 1, "a fork has none of the threads it may wait for"


def serve(control: socket.socket) -> socket.socket:
    """Fork on each request until the other side is closed; return, in the forked process, the socket of its request."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the tests
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([control, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            report_the_ended(running)
        if control in ready:
            byte, streams, _, _ = socket.recv_fds(control, 1, 4)
            if not byte:
                sys.exit()
            request = socket.socket(fileno=streams[3])
            process = os.fork()
            if process == 0:
                signal.set_wakeup_fd(-1)
                for number, stream in enumerate(streams[:3]):
                    os.dup2(stream, number)
                    os.close(stream)
                for other in (control, *running.values()):
                    other.close()
                os.close(wake)
                os.close(waker)
                return request
            for stream in streams[:3]:
                os.close(stream)
            running[process] = request
            request.sendall(INT.pack(process))


def report_the_ended(running: dict[int, socket.socket]) -> None:
    """Send the wait status of each process that has ended."""
    for process in list(running):
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            with running.pop(process) as request, contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
                request.sendall(INT.pack(status))


def become(request: socket.socket) -> NoReturn:
    """Run `python -m MODULE` with what the request says, as a new process would."""
    with request, request.makefile("rb") as file:
        wanted = json.load(file)
    if wanted["new_session"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["cwd"])
    sys.path[0] = wanted["cwd"]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        reopen(number, name)
    sys.argv = ["-m", *wanted["arguments"]]
    try:
        runpy.run_module(wanted["module"], run_name="__main__", alter_sys=True)
        sys.exit(0)
    except SystemExit as end:
        LEAVING["code"] = 0 if end.code is None else end.code
        raise


def leave() -> None:
    """End a process when all else is done, without taking thousands of loaded modules apart."""
    if isinstance(LEAVING.get("code"), int):
        with contextlib.suppress(OSError, ValueError):  # Python tries again, and says so
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(LEAVING["code"])


def reopen(number: int, name: str) -> None:
    """Open one of the three streams as Python does when it starts: stdout may be a terminal, and stderr never waits."""
    like, mode, buffering = getattr(sys, name), "w" if number else "r", 1 if name == "stderr" else -1
    stream = open(number, mode, buffering, like.encoding, like.errors, closefd=False)  # noqa: SIM115
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    sys.path[0] = os.getcwd()
    atexit.register(leave)  # first, so that it runs last
    load_everything()
    become(serve(socket.socket(fileno=int(sys.argv[1]))))
