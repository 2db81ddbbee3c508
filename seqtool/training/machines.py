"""Machines of one training whose storage may not be shared: who keeps files where, and whether all train on the same.

Workers that see the first worker's run directory read what it writes there. On a machine that does not see it, the
first of its workers prepares the corpus from that machine's own files.
"""

import contextlib
import hashlib
import socket
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from seqtool import process
from seqtool.errors import SeqtoolError
from seqtool.files import to_json
from seqtool.run_directory import RunDir
from seqtool.training.data import TrainingData
from seqtool.training.distributed import Workers


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a worker finds on its machine: the same for all of them where storage is shared."""

    machine: str
    tokenizers: str
    corpus: str
    valid: str
    precision: str
    newest: int  # the step of its newest checkpoint, -1 without one


def keeps_files(run: RunDir, workers: Workers) -> bool:
    """Return whether this worker prepares the corpus: the first of all, and of each machine with storage of its own."""
    if workers.size == 1:
        return True
    name = workers.share(f".here-{uuid.uuid4().hex}" if workers.is_first else None)
    with _marked(run, name) if workers.is_first else contextlib.nullcontext():
        workers.wait_for_all()
        is_shared = (run.path / name).exists()
        workers.wait_for_all()
    return workers.is_first or (process.local_rank() == 0 and not is_shared)


@contextlib.contextmanager
def _marked(run: RunDir, name: str) -> Iterator[None]:
    (run.path / name).touch()
    try:
        yield
    finally:
        (run.path / name).unlink()


def check_machines(run: RunDir, data: TrainingData, precision: str, workers: Workers) -> None:
    """Raise if a machine has other data than the first, computes otherwise, or has newer checkpoints."""
    if workers.size == 1:
        return
    folders = run.checkpoint_folders()
    mine = Surroundings(
        machine=socket.gethostname(),
        tokenizers=_digest(data.corpus.manifest["tokenizers"]),
        corpus=data.corpus.fingerprint,
        valid=_digest([data.valid, data.also_valid]),
        precision=precision,
        newest=int(folders[-1].name.removeprefix("step-")) if folders else -1,
    )
    if problem := find_difference(run, workers.join(mine)):
        raise SeqtoolError(problem)


def find_difference(run: RunDir, found: Sequence[Surroundings]) -> str | None:
    """Return what a worker, by rank, finds otherwise than the first one; None if there is nothing."""
    first = found[0]
    for rank, other in enumerate(found):
        who, where = f"{run.path}: worker {rank}, on {other.machine},", f"the first worker, on {first.machine}"
        if other.newest > first.newest:
            return (
                f"{who} has a checkpoint of step {other.newest:,}, newer than any of {where}; start torchrun such that "
                f"{other.machine} has the first worker (--node-rank 0), or copy {run.checkpoints.name}/ from there to "
                f"{first.machine}"
            )
        if other.precision != first.precision:
            return (
                f"{who} would compute in {other.precision}, and {where}, in {first.precision}; set train.precision to "
                "what all of them can do"
            )
        for what, difference in DIFFERENCES.items():
            if getattr(other, what) != getattr(first, what):
                return (
                    f"{who} {difference} than {where}; give each machine the same files and the same versions of "
                    f"seqtool and sentencepiece, or copy {run.prepared.name}/ and {run.tokenizer.name} of the run "
                    "directory from one to the other"
                )
    return None


DIFFERENCES = {
    "tokenizers": "has another tokenizer",
    "corpus": "has prepared another corpus",
    "valid": "validates on other pairs",
}


def _digest(value: Any) -> str:
    return hashlib.sha256(to_json(value).encode()).hexdigest()
