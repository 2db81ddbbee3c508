"""Runs seqtool commands, or scripts, on pretend GPUs (gpu_stand_in/) in a process of their own."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_stand_in.build import why_not

RUN = Path(__file__).parent / "gpu_stand_in" / "run.py"
OBSTACLE = why_not()
STEPS = "seqtool.translation.search.decoding:Decoding.log_probs"  # called once in each step of a search


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and what went between host and device."""

    done: "subprocess.CompletedProcess[str]"
    events: list[dict[str, Any]] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    peak: int = 0
    refused: int = 0

    def count(self, *functions: str, waits: bool | None = None, kind: str = "") -> Counter[str]:
        """Count events in which all these functions of seqtool were at work, by the place that caused each."""
        found: Counter[str] = Counter()
        for event in self.events:
            names = [place.split(":")[1] for place in event["stack"]]
            fits = all(name in names for name in functions) and (not kind or event["kind"] == kind)
            if fits and (waits is None or event["waits"] == waits):
                found[event["stack"][-1] if event["stack"] else "?"] += event["times"]
        return found


def run_on_gpu(
    command: Sequence[object], folder: Path, *, memory: int = 0, capability: int = 8, devices: int = 1, **options: Any
) -> Outcome:
    """Run a command of seqtool, given without its name, or a script (FILE.py ...), and return what happened."""
    ledger = folder / "ledger.json"
    arguments = ["--ledger", ledger, "--memory", memory, "--capability", capability, "--devices", devices]
    what = command if str(command[0]).endswith(".py") else ["seqtool", *command]
    whole = [sys.executable, RUN, *arguments, "--count", STEPS, *what]
    options = {"capture_output": True, "text": True, "timeout": 900, **options}
    done = subprocess.run([str(part) for part in whole], **options)
    if not ledger.exists():
        raise AssertionError(f"the stand-in did not start:\n{done.stderr}")
    found = json.loads(ledger.read_text())
    ledger.unlink()
    return Outcome(done, found["events"], found["calls"], max(found["peak"].values(), default=0), found["refused"])


def train_on_gpu(command: list[str], folder: Path, **options: Any) -> Outcome:
    """Run a command of small_run.train_command on a pretend GPU; it must succeed."""
    arguments = command[command.index("train") :]
    outcome = run_on_gpu([*arguments, "--device", "cuda"], folder, **options)
    assert outcome.done.returncode == 0, outcome.done.stderr
    return outcome
