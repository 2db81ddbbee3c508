"""What the fork server forks is, to a test, a process of its own like one that was started anew."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import SEQTOOL, Forked, run_command, start_command


@pytest.mark.parametrize(
    "arguments", ["--help", "train --help", "train --set nonsense", "train --nonsense", "info none"]
)
def test_a_forked_command_says_and_returns_what_a_new_process_does(tmp_path: Path, arguments: str) -> None:
    command = [*SEQTOOL, *arguments.split()]
    both = [call(command, cwd=tmp_path, capture_output=True, input=b"") for call in (run_command, subprocess.run)]
    found, expected = ((done.returncode, done.stdout, done.stderr) for done in both)
    assert found == expected


def test_the_environment_is_the_one_that_was_given() -> None:
    command = [*SEQTOOL, "train", "--set", "nonsense"]
    for value, expected in (("1", True), ("0", False)):
        done = run_command(command, env={**os.environ, "SEQTOOL_DEBUG": value}, capture_output=True)
        assert (b"Traceback" in done.stderr) is expected


def test_a_variable_that_libraries_read_as_they_are_loaded_needs_a_new_process() -> None:
    for name, forked in (("OMP_NUM_THREADS", False), ("SEQTOOL_DEBUG", True)):
        environment = {**os.environ, name: "0" if name.startswith("SEQTOOL") else "3"}
        with start_command([*SEQTOOL, "--version"], env=environment, stdout=subprocess.PIPE) as process:
            assert isinstance(process, Forked) is forked


def test_signals_reach_a_forked_command_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for number, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
        command = [*SEQTOOL, "tokenizer", "train", str(tmp_path / "pipe"), "-o", str(tmp_path / "model")]
        process = start_command(command, stderr=subprocess.PIPE, start_new_session=True)
        with open(tmp_path / "pipe", "wb"):  # it has been opened for reading, so the command is at work
            assert process.poll() is None
            assert os.getpgid(process.pid) == process.pid != os.getpgid(0)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
        assert process.returncode == code
        assert b"Traceback" not in errors
