"""Fuzzing of `seqtool translate` with every kind of model: hostile lines, pipes of single bytes, any text at all."""

import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from faults import count
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_run import make_lines, make_run

from seqtool.run_directory import RunDir
from seqtool.translation.export.ctranslate2 import export_ctranslate2
from seqtool.translation.translator import Translator

pytest.importorskip("ctranslate2")

SYSTEMS = [("transformer", "ctranslate2"), *((kind, "torch") for kind in ("transformer", "rnn", "decoder", "conv"))]
SCRIPTS = [
    "a man walks",
    "שלום עולם",
    "مرحبا بالعالم",
    "你好。再见。",
    "ดีใจที่ได้พบ",
    "😀👨‍👩‍👧🏽‍🚀",
    "e\u0301\u0302",
    "\u202eabc\u202c",
]
SEPARATORS = ["\u2028", "\u2029", "\x85", "\0", "\r", "\t", "\v", "\f", "\x1c", "\u00a0", "\u3000", "\ufeff", "\u200b"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunDir]:
    found = {kind: make_run(tmp_path_factory.mktemp(kind), trained=True, kind=kind) for kind in dict(SYSTEMS)}
    export_ctranslate2(found["transformer"], "int8")
    return found


def hostile_line(draw: random.Random) -> bytes:
    """Return a line of a kind that some translation program is known to stumble over."""
    kind = draw.randrange(12)
    if kind == 0:
        return b""
    if kind == 1:
        return draw.choice([b" ", b"\t \t", b"\r", " \u3000\u00a0".encode(), b"\0", "\ufeff".encode()])
    if kind == 2:
        return bytes(draw.choices([byte for byte in range(256) if byte != 10], k=draw.randint(1, 60)))
    if kind == 3:
        return "".join(draw.choice(SCRIPTS) + draw.choice(SEPARATORS) for _ in range(draw.randint(1, 6))).encode()
    if kind == 4:
        return draw.choice(SCRIPTS).encode()[: draw.randint(1, 20)]  # may end within a character
    if kind == 5:
        return (draw.choice("ax.!0 ") * draw.randint(1, 400)).encode()
    if kind == 6:
        return "".join(
            chr(draw.choice([draw.randrange(32, 0xD800), draw.randrange(0xE000, 0x110000)])) for _ in range(20)
        ).encode()
    line = make_lines(1, seed=draw.randrange(1000))[0]
    return (line + draw.choice(["", ".", "\r", " ", "\t"])).encode()


def is_blank(line: bytes) -> bool:
    text = line.decode("utf-8", "replace")
    return not "".join(char for char in text if char not in SEPARATORS).strip()


def check(lines: list[bytes], out: bytes) -> None:
    """Hold an output against the line contract."""
    assert out.endswith(b"\n") or not lines
    found = out.split(b"\n")[:-1]
    assert len(found) == len(lines)
    for line, one in zip(lines, found, strict=True):
        assert one.decode().splitlines() in ([], [one.decode()])
        if is_blank(line):
            assert one == b""


def numbers_of_invalid_lines(said: str) -> set[int]:
    """Return the lines that messages such as "lines 3, 9-12: not valid UTF-8; ..." name."""
    numbers: set[int] = set()
    for names in re.findall(r"lines? (.*): not valid UTF-8", said):
        for name in names.replace(",", "").split():
            first, _, last = name.partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


@pytest.mark.parametrize(("kind", "engine"), SYSTEMS)
def test_thousands_of_hostile_lines(runs: dict[str, RunDir], tmp_path: Path, kind: str, engine: str) -> None:
    draw = random.Random(7)
    n_lines = 3_000 if engine == "ctranslate2" else 500
    lines = [hostile_line(draw) for _ in range(n_lines)]
    lines[n_lines // 2] = b"the blue shirt waves, " * 2300  # 50,000 characters
    lines[n_lines // 3] = "字".encode() * 5000
    path = tmp_path / "in"
    path.write_bytes(b"\n".join(lines) + b"\nlast, without a newline")
    lines.append(b"last, without a newline")
    command = [sys.executable, "-m", "seqtool", "translate", "-m", str(runs[kind].path), "--engine", engine]
    done = subprocess.run([*command, "-i", str(path)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    check(lines, done.stdout)
    assert numbers_of_invalid_lines(done.stderr.decode()) == {
        number for number, line in enumerate(lines, 1) if line.decode("utf-8", "ignore").encode() != line
    }
    piped = subprocess.run([*command, "--beam", "1"], input=path.read_bytes(), capture_output=True)
    check(lines, piped.stdout)
    count("hostile lines", f"{kind}, {engine}", f"{len(lines):,} lines in, as many out, from a file and a pipe")


def test_a_pipe_of_single_bytes(runs: dict[str, RunDir]) -> None:
    draw = random.Random(8)
    lines = [line for line in (hostile_line(draw) for _ in range(300)) if len(line) < 500]
    command = [sys.executable, "-m", "seqtool", "translate", "-m", str(runs["transformer"].path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    handle = process.stdin.fileno()

    def send() -> None:
        for byte in b"\n".join(lines) + b"\n":
            os.write(handle, bytes([byte]))
        process.stdin.close()  # type: ignore[union-attr]

    thread = threading.Thread(target=send)
    thread.start()
    out = process.stdout.read()
    thread.join()
    assert process.wait() == 0
    check(lines, out)
    count("hostile lines", "a pipe of single bytes", f"{len(lines):,} lines in, as many out")


@pytest.mark.parametrize(("kind", "engine"), SYSTEMS)
def test_any_text_gives_one_line_alone_or_in_company(runs: dict[str, RunDir], kind: str, engine: str) -> None:
    translator = Translator.load(runs[kind].path, engine=engine)

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.text(max_size=80), max_size=6))
    def fuzz(sources: list[str]) -> None:
        together = [one.text for one in translator.translate(sources)]
        for source, text in zip(sources, together, strict=True):  # from Python a source may have several lines
            assert text.count("\n") <= source.count("\n")
            assert all(part.splitlines() in ([], [part]) for part in text.split("\n"))
        assert [translator.translate([source])[0].text for source in sources] == together
        count("hostile lines", f"{kind}, {engine}", "any text: one line each, alone or in company")

    fuzz()


@pytest.mark.parametrize(("kind", "engine"), SYSTEMS)
def test_lines_in_any_company(runs: dict[str, RunDir], kind: str, engine: str) -> None:
    translator = Translator.load(runs[kind].path, engine=engine)
    lines = make_lines(300, longest=12)
    together = [one.text for one in translator.translate(lines)]
    assert [translator.translate([line])[0].text for line in lines] == together
    for size in (7, 64):
        parts = [translator.translate(lines[start : start + size]) for start in range(0, len(lines), size)]
        assert [one.text for part in parts for one in part] == together
    order = random.Random(1).sample(range(len(lines)), len(lines))
    assert [one.text for one in translator.translate([lines[i] for i in order])] == [together[i] for i in order]
