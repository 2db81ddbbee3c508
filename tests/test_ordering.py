"""The order of a large epoch: sorted in pieces, in a file that processes share, it is the one made in memory."""

import threading
from pathlib import Path

import numpy as np
import pytest

from seqtool.corpus.batches import ordering, planning
from seqtool.corpus.batches.planning import BatchPlan
from seqtool.corpus.preparing.token_array import PairRange

RANGES = [PairRange(0, 700, 1.7), PairRange(700, 1500), PairRange(1500, 2000, 3.0)]


def make_plan(folder: Path | None = None, ranges: list[PairRange] | None = RANGES, seed: int = 1) -> BatchPlan:
    rng = np.random.default_rng(7)
    lengths = [rng.integers(1, 60, 2000).astype(np.uint16) for _ in range(2)]
    lengths[0][300:900] = lengths[1][300:900] = 17  # more pairs of one length than are sorted at once
    return BatchPlan(*lengths, batch_tokens=500, seed=seed, ranges=ranges, folder=folder)


@pytest.fixture
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "CHUNK", 64)
    for module in (planning, ordering):
        monkeypatch.setattr(module, "GROUP", 100)


@pytest.mark.parametrize("ranges", [None, RANGES])
def test_pieces_and_files_change_no_batch(
    tmp_path: Path, request: pytest.FixtureRequest, ranges: list[PairRange] | None
) -> None:
    whole = [[batch.tolist() for batch in make_plan(ranges=ranges).epoch(epoch)] for epoch in range(3)]
    request.getfixturevalue("_small_pieces")
    for folder in (None, tmp_path / "plan"):
        plan = make_plan(folder, ranges)
        assert [[batch.tolist() for batch in plan.epoch(epoch)] for epoch in range(3)] == whole
    assert sorted(path.name for path in (tmp_path / "plan").iterdir()) == [f"epoch-00000{e}.order" for e in (1, 2)]


@pytest.mark.usefixtures("_small_pieces")
def test_processes_that_want_an_order_at_once_sort_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write = ordering.SortedFile._write
    monkeypatch.setattr(ordering.SortedFile, "_write", lambda *a: (written.append(1), write(*a)))
    plans = [make_plan(tmp_path) for _ in range(4)]
    threads = [threading.Thread(target=plan.epoch, args=(0,)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(written) == 1
    assert len({plan.epoch(0).order.tobytes() for plan in plans}) == 1


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("damage", ["shorter", "a changed byte"])
def test_a_damaged_order_is_made_anew(tmp_path: Path, damage: str) -> None:
    expected = make_plan(tmp_path).epoch(0).order.tobytes()
    path = tmp_path / "epoch-000000.order"
    content = bytearray(path.read_bytes())
    if damage == "shorter":
        del content[100:]
    else:
        content[40] ^= 1
    path.write_bytes(content)
    assert make_plan(tmp_path).epoch(0).order.tobytes() == expected
