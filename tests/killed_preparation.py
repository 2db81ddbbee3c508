"""Kills `seqtool prepare` at random moments and compares what it makes in the end with what it makes undisturbed."""

import os
import random
import subprocess
import time
from pathlib import Path

from command_line import SEQTOOL, start_command

ROOT = Path(__file__).parents[1]


def write_corpus(path: Path, pairs: int) -> None:
    """Write a TSV file of pairs that differ, with repeated and empty ones among them."""
    draw = random.Random(3)
    words = ["".join(draw.choices("abdegilmnorstuv", k=draw.randint(2, 9))) for _ in range(4000)]
    with path.open("w", encoding="utf-8", newline="") as file:
        for i in range(pairs):
            length = draw.randint(3, 25)
            src, tgt = (" ".join(draw.choices(words, k=length)) for _ in range(2))
            file.write(f"{src} {i}\t{tgt}\n" if i % 50 else "repeated\twiederholt\n" if i % 100 else "\tleer\n")


def start_prepare(corpus: Path, out: Path) -> "subprocess.Popen[bytes]":
    """Start the command in a process group of its own, with two worker processes."""
    options = ["--set", "data.workers=2", "--set", "data.held_out=50", "--preset", "tiny"]
    return start_command(
        [*SEQTOOL, "prepare", str(corpus), "-o", str(out), *options],
        stderr=subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    )


def finish(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a command that must succeed."""
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors.decode()


def content_of(out: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def wait_for_group(process: "subprocess.Popen[bytes]") -> None:
    """Wait until the workers of a killed command have ended by themselves."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("worker processes outlive the command that started them")


def kill_and_compare(folder: Path, pairs: int, kills: int, seed: int) -> None:
    """Kill a preparation that often, each time at another moment, let it complete, and compare every byte."""
    corpus = folder / "corpus.tsv"
    write_corpus(corpus, pairs)
    began = time.monotonic()
    finish(start_prepare(corpus, folder / "whole"))
    seconds = time.monotonic() - began
    expected = content_of(folder / "whole")
    draw = random.Random(seed)
    out = folder / "killed"
    interrupted = 0
    for _ in range(5 * kills):
        process = start_prepare(corpus, out)
        try:
            moment = draw.uniform(0.05, seconds)
            process.wait(moment)
            seconds = moment  # what earlier ones left makes a preparation shorter
        except subprocess.TimeoutExpired:
            interrupted += 1
            process.kill()
        process.communicate()
        wait_for_group(process)
        prepared = out / "prepared"
        if prepared.exists():
            assert content_of(prepared) == content_of(folder / "whole" / "prepared")
            prepared.rename(folder / f"complete-{len(list(folder.iterdir()))}")  # so that the next one has work to do
        if interrupted == kills:
            break
    assert interrupted == kills
    finish(start_prepare(corpus, out))
    assert content_of(out) == expected
