"""What all tests share. Nothing heavy is imported here: some tests hold that a command starts without torch."""

import fcntl
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from small_run import name_corpus, run_to_end, train_command, write_corpus

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
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of one session share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def make_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Make a folder, unless another process of this session has; wait for one that is at it."""
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder)
    return folder


@pytest.fixture(scope="session")
def corpus(shared: Path) -> list[str]:
    """The arguments that name a small corpus, and pairs to validate on."""
    return name_corpus(make_once(shared / "corpus", write_corpus))


@pytest.fixture(scope="session")
def served_run(shared: Path) -> Path:
    """A run directory, exported for CTranslate2, with a model that translates word by word: what is served."""

    def make(folder: Path) -> None:
        from tiny_run import make_run

        from seqtool.translation.export.ctranslate2 import export_ctranslate2

        export_ctranslate2(make_run(folder / "run", trained=True), "int8")

    return make_once(shared / "served", make) / "run"


@pytest.fixture(scope="session")
def finished(shared: Path, corpus: list[str]) -> Path:
    """An undisturbed small run, in which nothing imports torch's compiler: that takes as long as importing torch.

    No fork server has begun it, so all that is compared with it also shows that a forked process trains as a new one.
    """

    def make(folder: Path) -> None:
        python, *arguments = train_command(corpus, folder / "run")
        program = "import sys; sys.modules['torch._dynamo'] = None; from seqtool.cli.main import main; main()"
        run_to_end([python, "-c", program, *arguments[2:]])

    return make_once(shared / "finished", make) / "run"
