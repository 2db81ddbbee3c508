"""Faults for files and processes: damages of every kind, signals at a chosen moment, and a count of them all."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from command_line import run_command

ROOT = Path(__file__).parent.parent
COUNTS = "SEQTOOL_FAULTS"  # names the file that counts are appended to, in all processes of a session
SECONDS = 60.0  # in which a command must end, on a busy machine

Damage = Callable[[Path, Path | None], object]


def count(kind: str, stage: str, outcome: str, **figures: float) -> None:
    """Count a fault, how it ended, and what it cost; of each figure the largest is shown."""
    if path := os.environ.get(COUNTS):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps([kind, stage, outcome, figures]) + "\n")


def sum_up(found: Iterable[tuple[str, str, str, dict[str, float]]]) -> Iterator[str]:
    """Return the lines of a table of what was counted."""
    counts: Counter[tuple[str, str, str]] = Counter()
    most: defaultdict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    for kind, stage, outcome, figures in found:
        counts[kind, stage, outcome] += 1
        for key in ((kind,), (kind, stage, outcome)):
            for name, value in figures.items():
                most[key][name] = max(value, most[key].get(name, value))

    def shown(*key: str) -> str:
        return "".join(f", at most {value:.4g} {name}" for name, value in most[key].items())

    for kind in sorted({kind for kind, _, _ in counts}):
        rows = sorted((key, n) for key, n in counts.items() if key[0] == kind)
        yield f"{kind}: {sum(n for _, n in rows)}{shown(kind)}"
        yield from (f"  {n:5}  {stage}: {outcome}{shown(kind, stage, outcome)}" for (_, stage, outcome), n in rows)


def change_bit(path: Path, place: float) -> None:
    """Change one bit of a file, and none of its time stamps."""
    facts, content = path.stat(), bytearray(path.read_bytes())
    content[min(int(len(content) * place), len(content) - 1)] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def exchange_values(path: Path) -> None:
    """Exchange two groups of four bytes that differ: each value is one that the file had before."""
    content = bytearray(path.read_bytes())
    first = len(content) // 2 // 8 * 8
    for second in range(first + 8, len(content) - 4, 8):
        if content[first : first + 4] != content[second : second + 4]:
            pair = content[second : second + 4], content[first : first + 4]
            content[first : first + 4], content[second : second + 4] = pair
            break
    else:
        content[first] ^= 1
    path.write_bytes(content)


def blank_out(path: Path) -> None:
    """Make 64 bytes in the middle zero, as a lost block of a disk is."""
    content = bytearray(path.read_bytes())
    start = len(content) // 2
    content[start : start + 64] = bytes(len(content[start : start + 64]))
    path.write_bytes(content)


def replace_by(path: Path, make: Callable[[Path], object]) -> None:
    """Put something else in the place of a file."""
    path.unlink()
    make(path)


def link_to_copy(path: Path) -> None:
    """Move a file out of its folder, and leave a link."""
    outside = path.parent.parent / f"outside-{path.name}"
    shutil.move(path, outside)
    path.symlink_to(outside)


def take_from(path: Path, other: Path | None) -> None:
    """Take the file of the same name of another run, or any other file of its folder."""
    if other is None or not other.is_file() or other.read_bytes() == path.read_bytes():
        beside = [file for file in sorted(path.parent.iterdir()) if file.is_file() and file != path]
        other = next((file for file in beside if file.read_bytes() != path.read_bytes()), None)
    path.write_bytes(other.read_bytes() if other else b"something else")


DAMAGES: dict[str, Damage] = {
    **{f"bit at {place:.0%}": lambda path, _, at=place: change_bit(path, at) for place in (0, 0.02, 0.3, 0.6, 0.9, 1)},
    "values exchanged": lambda path, _: exchange_values(path),
    "block of zeros": lambda path, _: blank_out(path),
    "empty": lambda path, _: os.truncate(path, 0),
    "half": lambda path, _: os.truncate(path, path.stat().st_size // 2),
    "last byte cut": lambda path, _: os.truncate(path, max(0, path.stat().st_size - 1)),
    "one byte more": lambda path, _: path.write_bytes(path.read_bytes() + b"\0"),
    "of another run": take_from,
    "pipe": lambda path, _: replace_by(path, os.mkfifo),
    "device": lambda path, _: replace_by(path, lambda place: place.symlink_to("/dev/zero")),
    "link out": lambda path, _: link_to_copy(path),
    "link to itself": lambda path, _: replace_by(path, lambda place: place.symlink_to(place.name)),
    "folder": lambda path, _: replace_by(path, Path.mkdir),
    "missing": lambda path, _: path.unlink(),
}


def with_fault(command: list[str], **wanted: object) -> list[str]:
    """Return a command of seqtool that meets a fault: see faulty.py."""
    assert command[1:3] == ["-m", "seqtool"]
    return [sys.executable, "-m", "tests.faulty", json.dumps(wanted), *command[3:]]


def run_faulty(command: list[str], **wanted: object) -> "subprocess.CompletedProcess[str]":
    """Run a command that meets a fault."""
    options = {"capture_output": True, "text": True, "errors": "replace", "cwd": ROOT, "timeout": 5 * SECONDS}
    return run_command(with_fault(command, **wanted), **options)


def list_moments(command: list[str], within: Path) -> Counter[str]:
    """Run a command to its end; return the changes of files that it makes in a folder, and how often."""
    log = within.parent / "moments"
    log.unlink(missing_ok=True)
    done = run_faulty(command, within=str(within), log=str(log))
    assert done.returncode == 0, done.stderr
    return Counter(log.read_text().splitlines())


def strike(command: list[str], within: Path, moment: tuple[str, int], number: signal.Signals) -> str:
    """Send a signal to a command at a moment; return what it printed. It must have reached that moment and ended."""
    proof = within.parent / "proof"
    proof.unlink(missing_ok=True)
    done = run_faulty(command, within=str(within), at=moment, proof=str(proof), signal=number)
    assert proof.exists(), f"{moment} never came: {done.returncode} {done.stderr}"
    assert proof.read_text() == f"{moment[0]} {moment[1]}\n"
    proof.unlink()
    allowed = {signal.SIGKILL: [-9], signal.SIGTERM: [143, 0], signal.SIGINT: [130, 0]}[number]
    assert done.returncode in allowed, (moment, done.returncode, done.stderr)  # 0 where all that counts was done
    assert "Traceback" not in done.stderr, (moment, done.stderr)
    return done.stderr


class Measured(NamedTuple):
    """How a process ended, and what it cost."""

    code: int
    out: str
    errors: str
    seconds: float  # of computation
    mebibytes: int  # at its peak


LAUNCHER = """
import json, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
try:
    code = subprocess.run(sys.argv[3:], timeout=float(sys.argv[2])).returncode
except subprocess.TimeoutExpired:
    code = -9
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
json.dump([code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10], open(sys.argv[1], "w"))
"""


def run_measured(*arguments: object, stdin: str | Path = "", patience: float = 5 * SECONDS) -> Measured:
    """Run `seqtool ARGUMENTS` as a new process; it may not wait for ever, nor take all memory.

    It is launched by a small process, as one that is forked from a large one would count that one's memory as its own.
    """
    command = [sys.executable, "-m", "seqtool", *map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        given, out, errors, usage = (Path(folder, name) for name in ("in", "out", "errors", "usage"))
        if isinstance(stdin, str):
            given.write_text(stdin)
        source = given if isinstance(stdin, str) else stdin
        launch = [sys.executable, "-S", "-c", LAUNCHER, str(usage), str(patience), *command]
        with open(source, "rb") as file, open(out, "wb") as to, open(errors, "wb") as said:
            subprocess.run(launch, stdin=file, stdout=to, stderr=said, check=True)
        code, seconds, mebibytes = json.loads(usage.read_text())
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in (out, errors)]
    return Measured(code, *texts, seconds, mebibytes)
