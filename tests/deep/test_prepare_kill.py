"""Killed by SIGKILL at a random moment twenty times, `seqtool prepare` completes to byte-identical files."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from killed_preparation import kill_and_compare


def test_twenty_kills_change_no_byte(tmp_path: Path) -> None:
    kill_and_compare(tmp_path, pairs=60_000, kills=20, seed=20)
