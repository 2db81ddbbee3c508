"""The long form of the resume test: many kills at random moments, some while a checkpoint is being written.

make crash-test
"""

import random
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from small_run import assert_same_run, run_to_end, start, stop, train_command, write_corpus

KILLS = 20  # of the Transformer with each signal
KILLS_PER_KIND = 10  # of the other kinds of models
RUNS = [("transformer", signal.SIGKILL, KILLS), ("transformer", signal.SIGTERM, KILLS)]
RUNS += [(kind, signal.SIGKILL, KILLS_PER_KIND) for kind in ("rnn", "decoder", "conv")]


def kill_while_writing(run: Path, process, deadline: float) -> bool:  # type: ignore[no-untyped-def]
    """Kill a run at the moment an unfinished checkpoint is on disk; return whether that moment came."""
    while time.monotonic() < deadline and process.poll() is None:
        if any((run / "checkpoints").glob(".*.seqtool")):
            stop(process, signal.SIGKILL)
            return True
    return False


@pytest.mark.parametrize(("kind", "number", "kills"), RUNS)
def test_many_interruptions_change_nothing(tmp_path: Path, kind: str, number: signal.Signals, kills: int) -> None:
    corpus = write_corpus(tmp_path)
    settings = {"model_kind": kind, "train_steps": 1000, "train_save_every": 2, "train_validate_every": 250}
    expected, run = tmp_path / "expected", tmp_path / "run"
    run_to_end(train_command(corpus, expected, **settings), timeout=600)
    rng = random.Random(7)
    interrupted = while_writing = 0
    while interrupted < kills:
        process = start(train_command(corpus, run, **settings))
        if number == signal.SIGKILL and interrupted % 3 == 0:
            while_writing += kill_while_writing(run, process, time.monotonic() + 60)
        else:
            time.sleep(rng.uniform(1.0, 6.0))
            stop(process, number)
        assert process.wait() != 0, f"the run was over after {interrupted} interruptions: it needs more steps"
        interrupted += 1
    run_to_end(train_command(corpus, run, **settings), timeout=600)
    print(f"\n{kind}: {interrupted} interruptions, {while_writing} of them while a checkpoint was being written")
    if number == signal.SIGKILL:
        assert while_writing >= kills // 4
    assert_same_run(run, expected)
