"""What the suite of hard use shares: its order, and the counts of faults, which are printed at its end."""

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from faults import COUNTS, sum_up


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak-minutes", type=float, default=0.5, help="how long translate is kept at work over a pipe")


def pytest_configure(config: pytest.Config) -> None:
    if COUNTS not in os.environ:  # the first process, whose environment the others inherit
        handle, os.environ[COUNTS] = tempfile.mkstemp(prefix="faults-", suffix=".jsonl")
        os.close(handle)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest and needs least: the others are done beside it."""
    items.sort(key=lambda item: "soak" not in item.name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("faults")
    path = Path(os.environ[COUNTS])
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in sum_up(json.loads(line) for line in lines):
        terminalreporter.write_line(line)
