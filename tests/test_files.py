"""Locks, and names of files in a run directory."""

import errno
import fcntl
from pathlib import Path

import pytest

from seqtool.errors import SeqtoolError
from seqtool.files import RunDir, locked


def test_a_lock_keeps_others_out_until_it_is_given_back(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "lock"):
        with locked(path, "busy"), pytest.raises(SeqtoolError, match="busy"), locked(path, "busy", patience=0.2):
            pass
        with locked(path, "busy"):
            pass


def test_a_file_system_without_locks_does_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    entered = False
    with locked(tmp_path, "busy"):
        entered = True
    assert entered


@pytest.mark.parametrize(
    "content", ["[]", '{"files": []}', '{"training": "x"}', '{"scores": [{}]}', '{"scores": {}}', "{"]
)
def test_what_is_no_manifest_is_named(tmp_path: Path, content: str) -> None:
    run = RunDir(tmp_path)
    run.manifest.write_text(content, encoding="utf-8")
    with pytest.raises(SeqtoolError, match=r"manifest\.json: .*; restore it from a copy"):
        run.read_manifest()


def test_only_folders_with_the_names_of_checkpoints_are_checkpoints(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for name in ("step-000000020", "step-000000003", "step-000000020-good", "step-000000030.tmp", "best"):
        (run.checkpoints / name).mkdir(parents=True)
    assert [path.name for path in run.checkpoint_folders()] == ["step-000000003", "step-000000020"]
