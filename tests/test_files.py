"""Locks."""

import errno
import fcntl
from pathlib import Path

import pytest

from seqtool.errors import SeqtoolError
from seqtool.files import locked


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
