"""Runs seqtool as a user would: in a process of its own."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def run_seqtool(
    *arguments: str | Path,
    stdin: bytes = b"",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[bytes]:
    """Run `seqtool ARGUMENTS`; return its exit code, stdout and stderr."""
    command = [sys.executable, "-m", "seqtool", *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, capture_output=True, cwd=cwd, env=dict(env) if env else None, timeout=timeout, check=False
    )
