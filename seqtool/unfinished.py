"""Models of trainings that have not ended: a checkpoint in a run directory takes the place of model.safetensors.

A checkpoint says which files it belongs to, so that all that shapes a translation is verified: its own weights, the
tokenizers beside it and the settings of the model. A training that is at work may remove it at any moment.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from seqtool.errors import SeqtoolError
from seqtool.run_directory import MOST_LISTINGS, RunDir
from seqtool.verification import MIB, checksum, read_limited, require_regular, seal

STATE = "state.json"
MAX_STATE = 4 * MIB
AVERAGE, PLAIN = "ema.safetensors", "model.safetensors"
T = TypeVar("T")
SHAPING = ("model", "tokenizer", "data")  # sections of config.toml that a translation depends on, beside [decode]


@dataclass(frozen=True)
class CheckpointRun(RunDir):
    """A run directory with the weights of one of its checkpoints: the moving average if there is one."""

    folder: Path
    state: dict[str, Any]
    warnings: tuple[str, ...] = field(default=())  # of newer checkpoints

    @property
    def weights(self) -> Path:
        return self.folder / (AVERAGE if AVERAGE in self.state["files"] else PLAIN)

    @property
    def ctranslate2(self) -> Path:
        """Where an export would be; there is none, as that of the run is of other weights."""
        return self.folder / "ctranslate2"

    @property
    def step(self) -> int:
        """The step of the weights."""
        return step_of(self.state)

    def verify(self) -> None:
        """Raise if the weights, the tokenizers or the settings are not those that the checkpoint records."""
        try:
            self._compare()
        except OSError as error:  # it is being removed
            cause = f"cannot be read ({error.strerror}); a training removes old checkpoints: give the command again"
            raise SeqtoolError(f"{self.folder}: {cause}") from None

    def _compare(self) -> None:
        for file in self.model_files:
            require_regular(file, self.path)
        if checksum(self.weights) != self.state["files"].get(self.weights.name):
            raise SeqtoolError(f"{self.folder}: damaged checkpoint ({self.weights.name} does not match its checksum)")
        recorded, found = self.state.get("belongs_to"), describe_surroundings(self)
        if recorded is not None and recorded != found:  # an early version recorded nothing
            names = sorted(name for name in recorded.keys() | found.keys() if recorded.get(name) != found.get(name))
            raise SeqtoolError(
                f"{self.path / names[0]}: is not the one that {self.folder} was written with; restore it from a copy"
            )

    def note_changes(self) -> list[str]:
        """Return notes for the user: of checkpoints that are damaged, and which one is used."""
        kind = "moving average of the weights" if self.weights.name == AVERAGE else "weights"
        return [*self.warnings, f"{self.folder}: the {kind} at step {self.step:,} of this training, not a final model"]


def find_model(path: Path) -> RunDir:
    """Return the model that a path means, verified: a finished one, a checkpoint, or the newest one of a training."""
    if (path / STATE).exists():
        return open_checkpoint(RunDir(path.absolute().parent.parent), path)
    run = RunDir(path)
    if run.weights.exists() or not run.checkpoint_folders():
        return run.require_model()
    return find_newest(run)


def use_models(paths: Sequence[Path], use: Callable[[list[RunDir]], T]) -> T:
    """Return what `use` makes of models; again if a training has meanwhile removed a checkpoint."""
    while True:
        runs = [find_model(path) for path in paths]
        try:
            return use(runs)
        except (SeqtoolError, FileNotFoundError):
            if all(run.weights.exists() for run in runs):
                raise


def find_newest(run: RunDir) -> CheckpointRun:
    """Return the newest whole checkpoint of a training; one that is removed meanwhile has a newer one after it."""
    damaged: dict[Path, str] = {}
    listings = 0  # that show none to try
    while listings < MOST_LISTINGS:
        folders = [folder for folder in run.checkpoint_folders() if folder not in damaged]
        if not folders:
            listings += 1
            continue
        try:
            return open_checkpoint(run, folders[-1], tuple(damaged.values()))
        except SeqtoolError as error:
            if (folders[-1] / STATE).exists():
                damaged[folders[-1]] = f"warning: {error}; using the one before"
    raise SeqtoolError(f"{run.checkpoints}: no checkpoint is whole; start over with 'seqtool train --fresh'")


def open_checkpoint(run: RunDir, folder: Path, warnings: tuple[str, ...] = ()) -> CheckpointRun:
    """Open a checkpoint of a run as a model, verified."""
    try:
        opened = CheckpointRun(run.path, folder, read_state(folder), warnings)
        opened.require_files()
        opened.verify()
        step_of(opened.state)
    except (KeyError, TypeError, ValueError) as error:
        raise SeqtoolError(f"{folder}: damaged checkpoint (it does not say which step it is of)") from error
    return opened


def read_state(folder: Path) -> dict[str, Any]:
    """Return state.json of a checkpoint, which must match its own checksum."""
    try:
        state = json.loads(read_limited(folder / STATE, MAX_STATE))
        if state.pop("sha256") != seal(state):
            raise SeqtoolError(f"{folder}: damaged checkpoint ({STATE} does not match its checksum)")
        if not all(isinstance(name, str) and Path(name).name == name for name in state["files"]):
            raise SeqtoolError(f"{folder}: damaged checkpoint ({STATE} names a file outside of its folder)")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SeqtoolError(f"{folder}: damaged checkpoint ({error})") from None
    return dict(state)


def step_of(state: dict[str, Any]) -> int:
    """Return the step of a checkpoint's state; that of the best weights has nothing else of the run."""
    return int(state["run"]["step"] if "run" in state else state["step"])


def describe_surroundings(run: RunDir) -> dict[str, str]:
    """Return checksums of what a checkpoint's weights are used with: the tokenizers, and the settings that shape it."""
    from seqtool.config.reading import read_toml

    values = read_toml(run.config).values
    settings = seal({name: values.get(name) for name in SHAPING})
    tokenizers = [file for file in (run.tokenizer, run.target_tokenizer) if file.exists()]
    return {run.config.name: settings, **{file.name: checksum(file) for file in tokenizers}}
