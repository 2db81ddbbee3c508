"""Runs for the tests of faults: a training of a second, and what is left of one that was stopped in the middle."""

import shutil
from pathlib import Path

from faults import strike
from small_run import run_to_end, train_command

QUICK = {"train_steps": 12, "train_threads": 1, "train_validate_every": 6, "train_keep": 2, "train_average": 2}
STAGES = {  # by how the names of the files that are changed begin
    "tokenizer": "tokenizer",
    "prepared": "preparing",
    ".prepared": "preparing",
    "config": "configuration",
    "metrics": "metrics",
    "plan": "plan",
    "checkpoints/best": "best checkpoint",
    "checkpoints/.best": "best checkpoint",
    "checkpoints": "checkpoint",
    "model.safetensors": "model",
    "manifest": "manifest",
    "valid": "validation lines",
    ".ctranslate": "export",
    "report": "report",
}


def quick_command(corpus: list[str], out: Path, **changes: object) -> list[str]:
    """Return the command of a training of twelve steps."""
    return train_command(corpus, out, **{**QUICK, **changes})


def stage_of(moment: str) -> str:
    """Return the stage in which a file is changed."""
    name = moment.partition(" ")[2]
    return next((stage for start, stage in STAGES.items() if name.startswith(start)), "beginning and end")


def make_whole(corpus: list[str], out: Path) -> Path:
    """Train to the end."""
    run_to_end(quick_command(corpus, out))
    return out


def make_stopped(corpus: list[str], out: Path) -> Path:
    """Train until the checkpoint at step 9 is written."""
    import signal

    strike(quick_command(corpus, out), out, ("rmdir checkpoints/.step-#.seqtool", 3), signal.SIGKILL)
    return out


def copy_run(run: Path, place: Path) -> Path:
    """Copy a run directory, what is in it that is no file too."""
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(run, place, symlinks=True))
