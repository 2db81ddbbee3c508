"""Checkpoints appear whole, are checked when read, and damage is reported and passed over."""

import errno
from pathlib import Path

import pytest
import torch

from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir
from seqtool.training import checkpoint as module
from seqtool.training.checkpoint import Checkpoints, is_disk_full, read_checkpoint, write_checkpoint


def save(checkpoints: Checkpoints, step: int) -> None:
    tensors = {"w": torch.full((3, 2), float(step)), "h": torch.tensor([1.5], dtype=torch.bfloat16)}
    checkpoints.save(step, {"model": tensors, "ema": {}}, {"run": {"step": step, "loss": 0.1 + 0.2}})


def test_a_checkpoint_reads_back_bit_for_bit(tmp_path: Path) -> None:
    checkpoints = Checkpoints(RunDir(tmp_path), keep=2, every=1)
    save(checkpoints, 7)
    checkpoints.wait()
    found, warnings = checkpoints.newest_whole()
    assert found is not None
    assert warnings == []
    assert found.path.name == "step-000000007"
    assert found.state["run"] == {"step": 7, "loss": 0.1 + 0.2}
    assert torch.equal(found.tensors("model")["w"], torch.full((3, 2), 7.0))
    assert found.tensors("model")["h"].dtype == torch.bfloat16
    assert found.tensors("ema") == {}


def test_saving_copies_so_that_training_may_go_on_at_once(tmp_path: Path) -> None:
    checkpoints = Checkpoints(RunDir(tmp_path), keep=1, every=1)
    weights = torch.zeros(1000)
    checkpoints.save(1, {"model": {"w": weights}}, {})
    weights.fill_(9.0)
    checkpoints.wait()
    found, _ = checkpoints.newest_whole()
    assert found is not None
    assert found.tensors("model")["w"].max() == 0.0


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(RunDir(tmp_path), keep=2, every=1)
    for step in (1, 2, 3, 10):
        save(checkpoints, step)
    checkpoints.wait()
    assert [path.name for path in RunDir(tmp_path).checkpoint_folders()] == ["step-000000003", "step-000000010"]


def test_checkpoints_of_an_interruption_go_with_the_next_one_and_displace_no_other(tmp_path: Path) -> None:
    checkpoints = Checkpoints(RunDir(tmp_path), keep=3, every=10)
    for step in (10, 20, 30, 33, 40, 42, 50):
        save(checkpoints, step)
        if step == 33:
            checkpoints.wait()
            names = [path.name[-2:] for path in RunDir(tmp_path).checkpoint_folders()]
            assert names == ["20", "30", "33"]
    checkpoints.wait()
    assert [path.name[-2:] for path in RunDir(tmp_path).checkpoint_folders()] == ["30", "40", "50"]


def test_a_checkpoint_before_the_first_step_is_not_kept_for_the_average(tmp_path: Path) -> None:
    checkpoints = Checkpoints(RunDir(tmp_path), keep=3, every=10)
    for step in (0, 10, 20):
        save(checkpoints, step)
    checkpoints.wait()
    assert [path.name[-2:] for path in RunDir(tmp_path).checkpoint_folders()] == ["10", "20"]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3 * len(content) // 10] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("damage", [truncate, flip_a_byte, Path.unlink])
@pytest.mark.parametrize("name", ["model.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path: Path, damage, name: str) -> None:  # type: ignore[no-untyped-def]
    checkpoints = Checkpoints(RunDir(tmp_path), keep=5, every=1)
    for step in (1, 2):
        save(checkpoints, step)
    checkpoints.wait()
    damage(tmp_path / "checkpoints" / "step-000000002" / name)
    found, warnings = checkpoints.newest_whole()
    assert found is not None
    assert found.path.name == "step-000000001"
    assert len(warnings) == 1
    assert "step-000000002: damaged checkpoint" in warnings[0]


def test_a_damaged_checkpoint_goes_when_the_run_that_passed_it_over_saves_an_earlier_one(tmp_path: Path) -> None:
    checkpoints = Checkpoints(RunDir(tmp_path), keep=5, every=1000)
    for step in (1000, 2000, 3000):
        save(checkpoints, step)
    checkpoints.wait()
    truncate(tmp_path / "checkpoints" / "step-000003000" / "model.safetensors")
    save(checkpoints, 2500)  # of an interruption
    checkpoints.wait()
    assert [path.name[-4:] for path in RunDir(tmp_path).checkpoint_folders()] == ["1000", "2000", "2500"]


def test_an_unfinished_checkpoint_does_not_count(tmp_path: Path) -> None:
    checkpoints = Checkpoints(RunDir(tmp_path), keep=5, every=1)
    save(checkpoints, 1)
    checkpoints.wait()
    (tmp_path / "checkpoints" / ".step-000000002.seqtool" / "new").mkdir(parents=True)
    found, warnings = checkpoints.newest_whole()
    assert found is not None
    assert found.path.name == "step-000000001"
    assert warnings == []


def test_an_error_of_the_background_writer_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    checkpoints = Checkpoints(RunDir(tmp_path), keep=5, every=1)
    save(checkpoints, 1)
    checkpoints.wait()
    monkeypatch.setattr(module, "save_file", no_room)
    save(checkpoints, 2)
    with pytest.raises(SeqtoolError, match="the disk is full"):
        checkpoints.wait()
    found, _ = checkpoints.newest_whole()
    assert found is not None
    assert found.path.name == "step-000000001"
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000000001"]


def test_writing_a_checkpoint_again_replaces_it(tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        write_checkpoint(tmp_path / "best", {"model": {"w": torch.tensor([value])}}, {"step": int(value)})
    found = read_checkpoint(tmp_path / "best")
    assert found.state["step"] == 2
    assert found.tensors("model")["w"].item() == 2.0


def test_a_full_disk_is_recognised_in_whatever_form_it_comes() -> None:
    assert is_disk_full(OSError(errno.ENOSPC, "x"))
    assert is_disk_full(RuntimeError("I/O error: No space left on device (os error 28)"))
    assert not is_disk_full(OSError(errno.EACCES, "x"))
