"""Runs seqtool as a user would: in a process of its own, which may not wait for ever."""

import atexit
import functools
import json
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fork_server import INT

SEQTOOL = [sys.executable, "-m", "seqtool"]
FORKED = ("seqtool", "sacrebleu", "tests.faulty")
# Names of variables that are read when Python starts or a library is loaded, so before a fork.
READ_EARLY = re.compile("PYTHON|LANG|LC_|LD_|OMP_|MKL_|OPENBLAS_|TORCH_|CT2_|SACREBLEU$")


def start_command(command: list[str], **options: Any) -> "subprocess.Popen[Any]":
    """Start a command as subprocess.Popen does; where it is one of the modules above, fork it from a loaded process.

    A test that is about the start itself, and what is imported then, calls subprocess.
    """
    may_fork = command[:2] == [sys.executable, "-m"] and command[2] in FORKED
    if may_fork and read_early(options.get("env") or os.environ) == fork_server().environment:
        return Forked(list(map(str, command)), **options)
    return subprocess.Popen(command, **options)


def run_command(
    command: list[str],
    *,
    input: Any = None,
    capture_output: bool = False,
    check: bool = False,
    timeout: float = 300,
    **options: Any,
) -> "subprocess.CompletedProcess[Any]":
    """Run a command as subprocess.run does, started by start_command."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with start_command(command, **options) as process:
        try:
            out, errors = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, errors)
    if check:
        done.check_returncode()
    return done


def run_seqtool(
    *arguments: object,
    stdin: bytes = b"",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> "subprocess.CompletedProcess[bytes]":
    """Run `seqtool ARGUMENTS` with `env` on top of the environment; return its exit code, stdout and stderr."""
    command = [*SEQTOOL, *map(str, arguments)]
    environment = {**os.environ, **(env or {})}
    return run_command(command, input=stdin, capture_output=True, cwd=cwd, env=environment, timeout=timeout)


def run_text(
    *arguments: object, stdin: str = "", cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run `seqtool ARGUMENTS` as run_seqtool does, with text in and out."""
    done = run_seqtool(*arguments, stdin=stdin.encode(), cwd=cwd, env=env)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def read_early(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if READ_EARLY.match(name)}


class ForkServer(NamedTuple):
    """The socket that takes requests, and what the server found in the environment when it loaded the libraries."""

    requests: socket.socket
    environment: dict[str, str]


@functools.cache
def fork_server() -> ForkServer:
    """Start the process to fork from, which ends with this one."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, str(Path(__file__).with_name("fork_server.py")), str(theirs.fileno())]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # else it starts threads as it is loaded
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environment)
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)  # runs first, and ends the server
    return ForkServer(ours, read_early(os.environ))


class Forked(subprocess.Popen):  # type: ignore[type-arg]
    """A process like any that Popen starts, but begun, and waited for, by the fork server."""

    def _execute_child(self, args: list[str], *others: Any) -> None:
        cwd, env = others[4:6]
        pipes, new_session = others[9:15], others[-2]
        streams = [number if handle == -1 else handle for number, handle in enumerate(pipes[i] for i in (0, 3, 5))]
        wanted = {
            "module": args[2],
            "arguments": args[3:],
            "environment": dict(os.environ if env is None else env),
            "cwd": os.path.abspath(cwd or "."),
            "new_session": new_session,
        }
        self._reply, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(fork_server().requests, [b"1"], [*streams, theirs.fileno()])
        self._reply.sendall(json.dumps(wanted).encode())
        self._reply.shutdown(socket.SHUT_WR)
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
        self.pid = self._receive()
        self._child_created = True

    def _receive(self) -> int:
        answer = self._reply.recv(INT.size, socket.MSG_WAITALL)
        assert answer, "the fork server has ended"
        return INT.unpack(answer)[0]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags & os.WNOHANG and not select.select([self._reply], [], [], 0)[0]:
            return 0, 0
        status = self._receive()
        self._reply.close()
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and (found := self._try_wait(os.WNOHANG))[0]:
            self._handle_exitstatus(found[1])  # type: ignore[attr-defined]
        return self.returncode
