"""What all tests share. Nothing heavy is imported here: some tests hold that a command starts without torch."""

import os
import signal
from pathlib import Path

import pytest
from small_run import run_to_end, train_command, write_corpus

# The commands that tests start, hundreds of them, need not compile seqtool anew each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tiny models and a busy machine: threads that spin while they wait would take the time of those that work. It must be
# said before torch is loaded, and is inherited by the commands that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes of tests as cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts what runs in its background with Ctrl-C ignored, and commands inherit that; tests send it on purpose.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The arguments that name a small corpus, and pairs to validate on."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, corpus: list[str]) -> Path:
    """An undisturbed small run, in which nothing imports torch's compiler: that takes as long as importing torch."""
    run = tmp_path_factory.mktemp("finished") / "run"
    python, *arguments = train_command(corpus, run)
    program = "import sys; sys.modules['torch._dynamo'] = None; from seqtool.cli.main import main; main()"
    run_to_end([python, "-c", program, *arguments[2:]])
    return run
