"""Checkpoints: whole or not there, checked when read, and written while training goes on."""

import errno
import hashlib
import json
import shutil
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from seqtool.errors import SeqtoolError
from seqtool.files import sha256_of, to_json, whole_folder
from seqtool.run_directory import RunDir

Groups = Mapping[str, Mapping[str, Tensor]]  # tensors by name, by the file they go to


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint on disk."""

    path: Path
    state: dict[str, Any]

    def tensors(self, group: str) -> dict[str, Tensor]:
        """Read one group of tensors, empty where the checkpoint has none."""
        file = self.path / f"{group}.safetensors"
        return load_file(file) if file.exists() else {}


class Checkpoints:
    """The checkpoints of one run; the newest few are kept.

    Those of an interruption, at any other step than a multiple of `every`, serve the resume and go with the next one:
    a run that was interrupted ends with the same checkpoints, and the same average of them, as one that was not.
    """

    def __init__(self, run: RunDir, keep: int, every: int) -> None:
        self.run = run
        self.keep = keep
        self.every = every
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None

    def save(self, step: int, groups: Groups, state: dict[str, Any]) -> None:
        """Copy the tensors and return; a background thread writes them. Waits only for the checkpoint before."""
        self.wait()
        copies = {name: _copy_to_host(group) for name, group in groups.items() if group}
        self._pending = self._writer.submit(self._write_and_prune, step, copies, state)

    def wait(self) -> None:
        """Return when nothing is being written; an error of the writer surfaces here."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def check(self) -> None:
        """Raise the writer's error, if there was one, without waiting for it."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def newest_whole(self) -> tuple[Checkpoint | None, list[str]]:
        """Return the newest checkpoint that is not damaged, and a warning for each one that is."""
        warnings: list[str] = []
        for path in reversed(self.run.checkpoint_folders()):
            try:
                return read_checkpoint(path), warnings
            except SeqtoolError as error:
                warnings.append(f"{error}; using the one before")
        return None, warnings

    def _write_and_prune(self, step: int, groups: Groups, state: dict[str, Any]) -> None:
        written = self.run.checkpoints / f"step-{step:09d}"
        write_checkpoint(written, groups, state)
        folders = self.run.checkpoint_folders()
        regular = [path for path in folders if path < written and self._is_regular(path)]
        kept = [*regular[max(0, len(regular) - self.keep + 1) :], written]
        for path in folders:  # those after it are damaged: else the run would have gone on from there
            if path not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def _is_regular(self, path: Path) -> bool:
        step = int(path.name.removeprefix("step-"))
        return step > 0 and step % self.every == 0


def write_checkpoint(path: Path, groups: Groups, state: dict[str, Any]) -> None:
    """Write a checkpoint folder, whole or not at all."""
    try:
        with whole_folder(path) as folder:
            sums = {}
            for name, tensors in groups.items():
                file = folder / f"{name}.safetensors"
                save_file(dict(tensors), file)
                sums[file.name] = sha256_of(file)
            content = {"files": sums, **state}
            text = to_json({"sha256": _sum_of(content), **content})
            (folder / "state.json").write_text(text, encoding="utf-8")
    except Exception as error:
        if is_disk_full(error):
            raise SeqtoolError(
                f"{path}: the disk is full, so this checkpoint could not be written; the ones before it are whole. "
                "Make room and run the same command again"
            ) from None
        raise


def read_checkpoint(path: Path) -> Checkpoint:
    """Open a checkpoint after comparing every file with its checksum."""
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        if state.pop("sha256") != _sum_of(state):
            raise SeqtoolError(f"{path}: damaged checkpoint (state.json does not match its checksum)")
        for name, expected in state["files"].items():
            if sha256_of(path / name) != expected:
                raise SeqtoolError(f"{path}: damaged checkpoint ({name} does not match its checksum)")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SeqtoolError(f"{path}: damaged checkpoint ({error})") from None
    return Checkpoint(path, state)


def is_disk_full(error: BaseException) -> bool:
    """Tell whether an error means that there is no room left; safetensors gives it as text only."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return "No space left" in str(error) or "Disk quota" in str(error)


def _copy_to_host(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: torch.empty_like(t, device="cpu").copy_(t.detach()).contiguous() for name, t in tensors.items()}


def _sum_of(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
