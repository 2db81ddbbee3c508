"""Starts several workers of one command as torchrun does, without torchrun, which takes longer than the test itself."""

import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from command_line import start_command


def run_workers(command: list[str], n_workers: int = 2, timeout: float = 300) -> None:
    """Run a command in processes with the environment that torchrun gives them; all must succeed without warnings."""
    workers = start_workers(command, n_workers)
    messages = [worker.communicate(timeout=timeout)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * n_workers, "\n".join(messages)
    assert not any("Warning" in message for message in messages), "\n".join(messages)  # of torch or Python


def start_workers(
    command: list[str], n_workers: int = 2, machines: Sequence[Path] = ()
) -> "list[subprocess.Popen[str]]":
    """Start the processes; if folders are given, each process is started in one and takes itself for a machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    n_local = 1 if machines else n_workers
    common = {"WORLD_SIZE": n_workers, "LOCAL_WORLD_SIZE": n_local, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    workers = []
    for rank in range(n_workers):
        added = {**common, "RANK": rank, "LOCAL_RANK": rank % n_local, "TORCHELASTIC_RESTART_COUNT": 0}
        environment = {**os.environ, **{name: str(value) for name, value in added.items()}}
        options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "env": environment}
        workers.append(start_command(command, text=True, cwd=machines[rank] if machines else None, **options))
    return workers
