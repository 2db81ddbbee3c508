"""Lines of megabytes: one line out, in bounded memory, cut in places that depend on nothing but the line."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_run import make_lines, make_run, translate_words

from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir
from seqtool.translation.lines import long_lines
from seqtool.translation.lines.long_lines import LONG_BYTES, WINDOW, LineText, translate_long, windows
from seqtool.translation.lines.stream import LineTranslator, json_form
from seqtool.translation.translator import Translator


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    pytest.importorskip("ctranslate2")
    from seqtool.translation.export.ctranslate2 import export_ctranslate2

    run = make_run(tmp_path_factory.mktemp("long") / "run", trained=True)
    export_ctranslate2(run, "int8", check=False)
    return run


TEXTS = {
    "sentences": "A man walks. Two dogs play! " * 4000,
    "clauses": "a man walks, two dogs play; " * 4000,
    "words": "word " * 20_000,
    "no spaces": "字" * 50_000,
    "accents": "e\u0301\u0302" * 30_000,
    "full stops": "." * 50_000,
    "blank": " " * 50_000,
}


@pytest.mark.parametrize("name", TEXTS)
def test_windows_hold_the_whole_text_and_none_is_too_long(name: str) -> None:
    text = TEXTS[name]
    whole = list(windows([text]))
    assert "".join(whole) == text
    assert max(map(len, whole)) <= WINDOW + long_lines.LONGEST_CLUSTER
    draw = random.Random(1)
    cuts = sorted(draw.sample(range(len(text)), 20))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert list(windows(pieces)) == whole
    if name == "accents":
        assert not any(window[0] in "\u0301\u0302" for window in whole)
    if name in ("sentences", "clauses", "words"):
        assert all(window.endswith(" ") for window in whole)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=40), st.integers(1, 7))
def test_pieces_of_a_line_are_decoded_as_the_whole(start: bytes, size: int) -> None:
    line = start.replace(b"\n", b"") + "häßlich €".encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_lines, "PIECE_BYTES", size)
        text = LineText(line)
        assert "".join(text) == line.decode("utf-8", "replace")
    assert text.is_valid == (line.decode("utf-8", "ignore").encode() == line)


def test_a_long_line_is_translated_whole_and_its_neighbours_too(run: RunDir) -> None:
    notes: list[str] = []
    lines = make_lines(LONG_BYTES // 12, seed=3)
    long = ". ".join(line.capitalize() for line in lines).encode() + b"\xff"
    assert len(long) >= LONG_BYTES
    with Translator.load(run.path, threads=2) as translator:
        worker = LineTranslator(translator, notify=notes.append)
        out = worker.translate([b"two dogs play", long, b"", b"she waves"], 7)
        again = translate_long(translator, long, translator.make_options())
    assert [out[0], out[2], out[3]] == [b"zwei Hunde spielen\n", b"\n", b"sie winkt\n"]
    assert out[1] == again.text + b"\n"
    assert out[1].count(b"\n") == 1
    wanted = sum(len(translate_words(line)) + 1 for line in lines)
    assert 0.5 < len(out[1].decode()) / wanted < 2
    assert any("line 8: not valid UTF-8" in note for note in notes)
    assert any("line 8: longer than" in note for note in notes)
    assert worker.summary.n_lines == 4


def test_details_of_a_line_beyond_the_limit_are_refused_by_its_number(run: RunDir) -> None:
    with Translator.load(run.path, threads=2) as translator:
        worker = LineTranslator(translator, form=json_form(1))
        with pytest.raises(SeqtoolError, match=r"line 3: has 2,000,000 bytes, but only lines of up to 1 MiB"):
            worker.translate([b"a", b"b", b"a" * 2_000_000], 1)


def peak_of(run: RunDir, path: Path) -> int:
    """Translate a file with the command in a process of its own; return its peak memory in bytes."""
    program = (
        "import sys; from seqtool.cli.main import main\n"
        "try: main()\n"
        "finally: print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, "translate", "-m", str(run.path), "-i", str(path), "--beam", "1"]
    done = subprocess.run([*command, "-o", str(path) + ".out"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert Path(f"{path}.out").read_bytes().count(b"\n") == 1
    return int(done.stderr.split()[-1]) * 1024


def test_memory_hardly_grows_with_a_line(run: RunDir, tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells the peak of a process without that of its parent")
    peaks = []
    for size in (1, 3):  # MB
        path = tmp_path / f"{size}"
        path.write_bytes((" ".join(make_lines(2000, seed=1)).encode() * 100)[: size * 10**6])
        peaks.append(peak_of(run, path))
    assert peaks[1] < 200 * 10**6
    assert peaks[1] - peaks[0] < 10 * 2 * 10**6  # for each byte of the line at most ten
