"""Starts several workers of one command as torchrun does, without torchrun, which takes longer than the test itself."""

import os
import socket
import subprocess

from command_line import start_command


def run_workers(command: list[str], n_workers: int = 2, timeout: float = 300) -> None:
    """Run a command in several processes, each with the environment that torchrun gives it; all must succeed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": n_workers, "LOCAL_WORLD_SIZE": n_workers, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    workers = []
    for rank in range(n_workers):
        added = {**common, "RANK": rank, "LOCAL_RANK": rank, "TORCHELASTIC_RESTART_COUNT": 0}
        environment = {**os.environ, **{name: str(value) for name, value in added.items()}}
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        workers.append(start_command(command, env=environment, text=True, **pipes))
    messages = [worker.communicate(timeout=timeout)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * n_workers, "\n".join(messages)
