"""Runs seqtool as a user would: in a process of its own, which may not wait for ever."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def run_seqtool(
    *arguments: object,
    stdin: bytes = b"",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[bytes]:
    """Run `seqtool ARGUMENTS` with `env` on top of the environment; return its exit code, stdout and stderr."""
    command = [sys.executable, "-m", "seqtool", *map(str, arguments)]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(
        command, input=stdin, capture_output=True, cwd=cwd, env=environment, timeout=timeout, check=False
    )


def run_text(
    *arguments: object, stdin: str = "", cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `seqtool ARGUMENTS` as run_seqtool does, with text in and out."""
    done = run_seqtool(*arguments, stdin=stdin.encode(), cwd=cwd, env=env)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
