"""Long lines, lines that all differ, hours over a pipe: memory stays bounded and time grows in proportion."""

import os
import random
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from faults import count, run_measured
from tiny_run import WORDS, make_lines, make_run, translate_words

from seqtool.run_directory import RunDir
from seqtool.translation.export.ctranslate2 import export_ctranslate2

pytest.importorskip("ctranslate2")
LENGTHS = (1, 5, 20)  # MB
MOST_MEBIBYTES = 381  # 400 MB
GROWTH = 24  # MiB that a process at work for long may take beyond what it remembers of translations
REMEMBERED = 32


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = make_run(tmp_path_factory.mktemp("model") / "model", trained=True)
    export_ctranslate2(run, "int8", check=False)
    return run


def text_of(kind: str, n_bytes: int) -> bytes:
    """Return a line of a length: of words, of sentences, or without a space; no two parts of it are alike."""
    draw = random.Random(1)
    words = list(WORDS)
    if kind == "letters":
        return bytes(draw.choices(b"abcdefghijklmnopqrstuvwxyz", k=n_bytes))
    end = ". " if kind == "sentences" else " "
    parts: list[str] = []
    size = 0
    while size < n_bytes:
        parts.append(" ".join(draw.choices(words, k=draw.randint(3, 9))) + end)
        size += len(parts[-1])
    return "".join(parts).encode()[:n_bytes]


@pytest.mark.parametrize(
    ("kind", "lengths"), [("words", LENGTHS), ("sentences", LENGTHS[:2]), ("letters", LENGTHS[:1])]
)
def test_time_and_memory_of_long_lines(model: RunDir, tmp_path: Path, kind: str, lengths: tuple[int, ...]) -> None:
    seconds = []
    for length in lengths:
        path = tmp_path / f"{length}"
        path.write_bytes(b"two dogs\n" + text_of(kind, length * 10**6) + b"\nshe waves\n")
        done = run_measured("translate", "-m", model.path, "-i", path, "--beam", "1", patience=1800)
        assert done.code == 0, done.errors
        lines = done.out.split("\n")
        assert len(lines) == 4
        assert (lines[0], lines[2]) == (translate_words("two dogs"), translate_words("she waves"))
        assert len(lines[1]) > 0
        assert done.mebibytes < MOST_MEBIBYTES, (length, done.mebibytes)
        seconds.append(done.seconds)
        count("long line", f"{length:2} MB of {kind}", "translated", seconds=done.seconds, MiB=done.mebibytes)
    start = run_measured("translate", "-m", model.path, stdin="two dogs\n").seconds
    per_megabyte = [(one - start) / length for one, length in zip(seconds, lengths, strict=True)]
    assert all(long < 1.5 * short for short, long in pairwise(per_megabyte)), per_megabyte


@pytest.mark.parametrize("command", ["translate", "score", "eval"])
def test_memory_does_not_grow_with_lines_that_all_differ(model: RunDir, tmp_path: Path, command: str) -> None:
    peaks = []
    for n_lines in (6_000, 24_000):
        path = tmp_path / f"{n_lines}"
        draw = random.Random(2)
        words = list(WORDS)
        path.write_text("".join(f"{' '.join(draw.choices(words, k=5))}\n" for _ in range(n_lines)))
        arguments = {
            "translate": ["translate", "-m", model.path, "-i", path, "-o", tmp_path / "out", "--beam", "1"],
            "score": ["score", "-m", model.path, path, path],
            "eval": ["eval", "-m", model.path, path, path, "--beam", "1", "--metrics", "bleu"],
        }
        done = run_measured(*arguments[command], patience=1800)
        assert done.code == 0, done.errors
        peaks.append(done.mebibytes)
        count("lines that all differ", f"{command}, {n_lines:,} lines", "bounded memory", MiB=done.mebibytes)
    # What eval keeps is the lines and their statistics; a test set is small.
    limit = 100 if command == "eval" else REMEMBERED + GROWTH
    assert peaks[1] - peaks[0] < limit, peaks


def memory_of(process: "subprocess.Popen[bytes]") -> int:
    """Return the resident memory of a process in MiB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) >> 10


def test_a_soak_of_translate_over_a_pipe(model: RunDir, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    minutes = request.config.getoption("--soak-minutes")
    command = [sys.executable, "-m", "seqtool", "translate", "-m", str(model.path), "--beam", "1"]
    draw = random.Random(3)
    began = time.monotonic()
    n_lines, slowest, memory, open_files = 0, 0.0, [], set()
    notes = tmp_path / "notes"
    with (
        open(notes, "wb") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        while time.monotonic() - began < 60 * minutes:
            lines = ["two dogs", *make_lines(draw.choice([0, 0, 0, 4, 49]), seed=draw.randrange(10**9))]
            sent = time.monotonic()
            process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            process.stdin.flush()
            answers = [process.stdout.readline().decode() for _ in lines]
            assert answers[0] == f"{translate_words('two dogs')}\n"
            assert all(answer.endswith("\n") for answer in answers)
            slowest = max(slowest, time.monotonic() - sent)
            n_lines += len(lines)
            memory.append(memory_of(process))
            open_files.add(len(os.listdir(f"/proc/{process.pid}/fd")))
            time.sleep(draw.choice([0, 0, 0.05, 0.5, min(20.0, minutes)]))
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    assert all("empty or looping" in note for note in notes.read_text().splitlines())  # of a model so small
    early = memory[len(memory) // 10]
    assert max(memory) - early < GROWTH + REMEMBERED
    assert max(open_files) - min(open_files) <= 2
    figures = {"MiB": max(memory), "MiB early": early, "seconds for an answer": slowest}
    count("soak over a pipe", f"{minutes:g} minutes, {n_lines:,} lines", "each is answered", **figures)
