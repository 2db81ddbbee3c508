"""Checkpoints: whole or not there, checked when read, and written while training goes on."""

import errno
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from seqtool.errors import SeqtoolError
from seqtool.files import sha256_of, to_json, whole_folder
from seqtool.run_directory import RunDir
from seqtool.training.distributed import Workers
from seqtool.training.sharding import AnyTensor, Rows
from seqtool.training.tensor_file import write_tensors
from seqtool.unfinished import STATE, read_state
from seqtool.verification import require_regular, seal

Groups = Mapping[str, Mapping[str, AnyTensor]]  # tensors by name, by the file they go to
ALONE = Workers(0, 1, torch.device("cpu"))


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint on disk."""

    path: Path
    state: dict[str, Any]

    def tensors(self, group: str) -> "StoredTensors":
        """Return one group of tensors, each of which is read when it is asked for; empty if there is none."""
        return StoredTensors(self.path / f"{group}.safetensors")


class StoredTensors(Mapping[str, Tensor]):
    """The tensors of a file, read one by one; none if there is no file."""

    def __init__(self, path: Path) -> None:
        self._file = safe_open(path, "pt") if path.exists() else None
        self._names = list(self._file.keys()) if self._file is not None else []  # type: ignore[no-untyped-call]

    def __getitem__(self, name: str) -> Tensor:
        if self._file is None or name not in self._names:
            raise KeyError(name)
        return cast(Tensor, self._file.get_tensor(name))  # type: ignore[no-untyped-call]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Checkpoints:
    """The checkpoints of one run; the newest few are kept.

    Those of an interruption, at any other step than a multiple of `every`, serve the resume and go with the next one:
    a run that was interrupted ends with the same checkpoints, and the same average of them, as one that was not.
    """

    def __init__(self, run: RunDir, keep: int, every: int, workers: Workers | None = None) -> None:
        self.workers = workers or ALONE
        self.run = run
        self.keep = keep
        self.every = every
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None

    def save(self, step: int, groups: Groups, state: dict[str, Any]) -> None:
        """Copy the tensors and return; a background thread writes them. Waits only for the checkpoint before."""
        self.wait()
        filled = {name: group for name, group in groups.items() if group}
        if is_shared_out(filled):  # all workers take part in the writing, tensor by tensor
            self._write_and_prune(step, filled, state)
        elif self.workers.is_first:
            copies = {name: _copy_to_host(group) for name, group in filled.items()}
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
        write_checkpoint(written, groups, state, self.workers)
        if not self.workers.is_first:
            return
        folders = self.run.checkpoint_folders()
        regular = [path for path in folders if path < written and self._is_regular(path)]
        kept = [*regular[max(0, len(regular) - self.keep + 1) :], written]
        for path in folders:  # those after it are damaged: else the run would have gone on from there
            if path not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def _is_regular(self, path: Path) -> bool:
        step = int(path.name.removeprefix("step-"))
        return step > 0 and step % self.every == 0


def is_shared_out(groups: Groups) -> bool:
    """Return whether each worker has only some rows of the tensors."""
    return any(isinstance(tensor, Rows) for group in groups.values() for tensor in group.values())


def write_checkpoint(path: Path, groups: Groups, state: dict[str, Any], workers: Workers = ALONE) -> None:
    """Write a checkpoint folder, whole or not at all; all workers call this, and the first one writes."""
    if not workers.is_first:
        for tensors in groups.values() if is_shared_out(groups) else ():
            write_tensors(None, tensors, workers)
        return
    try:
        with whole_folder(path) as folder:
            sums = {}
            for name, tensors in groups.items():
                file = folder / f"{name}.safetensors"
                if is_shared_out(groups):
                    with open(file, "wb") as out:
                        write_tensors(out, tensors, workers)
                else:
                    save_file(
                        {n: t.detach().cpu().contiguous() for n, t in tensors.items() if isinstance(t, Tensor)}, file
                    )
                sums[file.name] = sha256_of(file)
            content = {"files": sums, **state}
            text = to_json({"sha256": seal(content), **content})
            (folder / STATE).write_text(text, encoding="utf-8")
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
        state = read_state(path)
        for name, expected in state["files"].items():
            require_regular(path / name, path)
            if sha256_of(path / name) != expected:
                raise SeqtoolError(f"{path}: damaged checkpoint ({name} does not match its checksum)")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SeqtoolError(f"{path}: damaged checkpoint ({error})") from None
    return Checkpoint(path, state)


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error means that there is no room left; safetensors gives it as text only."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return "No space left" in str(error) or "Disk quota" in str(error)


def _copy_to_host(tensors: Mapping[str, AnyTensor]) -> dict[str, AnyTensor]:
    copies: dict[str, AnyTensor] = {}
    for name, tensor in tensors.items():
        assert isinstance(tensor, Tensor)
        copies[name] = torch.empty_like(tensor, device="cpu").copy_(tensor.detach()).contiguous()
    return copies
