"""What the suite of hard use shares: the counts of faults, which are printed at its end."""

import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from faults import COUNTS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak-minutes", type=float, default=0.5, help="how long translate is kept at work over a pipe")


def pytest_configure(config: pytest.Config) -> None:
    if COUNTS not in os.environ:
        handle, os.environ[COUNTS] = tempfile.mkstemp(prefix="faults-", suffix=".jsonl")
        os.close(handle)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    path = Path(os.environ[COUNTS])
    found = Counter(tuple(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())
    terminalreporter.section("faults")
    for kind in dict.fromkeys(kind for kind, _, _ in sorted(found)):
        terminalreporter.write_line(f"{kind}: {sum(n for key, n in found.items() if key[0] == kind)}")
        for (_, stage, outcome), n in sorted((key, n) for key, n in found.items() if key[0] == kind):
            terminalreporter.write_line(f"  {n:5}  {stage}: {outcome}")
