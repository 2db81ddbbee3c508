"""`seqtool translate` as a user runs it: bytes in, bytes out, through files, pipes, breaks and several processes."""

import gzip
import json
import os
import pty
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import SEQTOOL, run_command, run_seqtool, start_command
from several_workers import run_workers
from tiny_run import make_lines, make_run
from vouching import vouch

from seqtool import Translator
from seqtool.run_directory import RunDir
from seqtool.translation.export.ctranslate2 import export_ctranslate2
from seqtool.translation.lines.output import fingerprint

pytest.importorskip("ctranslate2")

PROGRAM = [*SEQTOOL, "translate"]

HOSTILE = [
    b"a man walks",
    b"",
    b"   \t ",
    b"two dogs\r",
    "she\u2028waves\u2029\x85at night".encode(),
    b"nul\0nul",
    b"bad \xff\xfe utf-8 \xc3",
    b"tab\tand\x0bmore\x0c",
    "😀 👨‍👩‍👧 שלום עולם مرحبا 你好。再见。".encode(),
    b"the blue shirt, " * 300,
    b"x" * 5000,
    b"\xef\xbb\xbf",
    b"\r",
    b"no newline at the end",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = make_run(tmp_path_factory.mktemp("run"), trained=True)
    export_ctranslate2(run, "int8")
    return run


def translate(run: RunDir, content: bytes, *options: str, code: int = 0) -> tuple[bytes, str]:
    """Run the command on some bytes; return what it wrote to stdout and stderr."""
    done = run_seqtool("translate", "-m", run.path, *options, stdin=content)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout, done.stderr.decode()


def write_lines(path: Path, n_lines: int, n_different: int = 0) -> Path:
    lines = random.Random(0).choices(make_lines(n_different), k=n_lines) if n_different else make_lines(n_lines)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_hostile_lines_in_as_many_lines_out(run: RunDir) -> None:
    out, err = translate(run, b"\n".join(HOSTILE))
    lines = out.split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == len(HOSTILE)
    blank = [1, 2, 11, 12]
    assert [number for number, line in enumerate(lines) if not line] == blank
    assert lines[3] == translate(run, b"two dogs")[0].rstrip(b"\n")
    assert all(line.decode().splitlines() in ([], [line.decode()]) for line in lines)
    assert "line 7: not valid UTF-8" in err
    assert "lines 9-11: longer than 64 tokens; translated in parts" in err


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n", b"she", b"she\n", b"she\n\n"])
def test_the_last_line_counts_with_and_without_a_newline(run: RunDir, content: bytes) -> None:
    out, _ = translate(run, content)
    expected = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    assert out.count(b"\n") == expected
    assert out == b"" or out.endswith(b"\n")


def test_files_pipes_and_single_bytes_give_the_same(run: RunDir, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"\n".join(HOSTILE))
    expected, _ = translate(run, path.read_bytes())
    with open(path, "rb") as file:
        command = [*PROGRAM, "-m", str(run.path)]
        assert run_command(command, stdin=file, capture_output=True).stdout == expected
    assert translate(run, b"", "-i", str(path))[0] == expected
    assert translate(run, b"", "-i", str(path), "-o", str(tmp_path / "out"))[0] == b""
    assert (tmp_path / "out").read_bytes() == expected
    sender = f"import os\nfor byte in open({str(path)!r}, 'rb').read()[-700:]: os.write(1, bytes([byte]))"
    single = subprocess.Popen([sys.executable, "-c", sender], stdout=subprocess.PIPE)
    done = run_command([*PROGRAM, "-m", str(run.path)], stdin=single.stdout, capture_output=True)
    assert done.stdout == translate(run, path.read_bytes()[-700:])[0]


def test_a_line_through_a_pipe_is_answered_at_once(run: RunDir) -> None:
    command = [*PROGRAM, "-m", str(run.path)]
    with start_command(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (b"a man\n", b"\n", b"two dogs\n"):
            process.stdin.write(line)
            process.stdin.flush()
            answer = process.stdout.readline()
            assert (answer == b"\n") == (line == b"\n")
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


def test_compressed_bytes_are_told_from_text(run: RunDir) -> None:
    content = gzip.compress(b"a man walks\n")
    out, err = translate(run, content)
    assert out.count(b"\n") == content.count(b"\n") + 1
    assert "the input seems to be compressed, and a pipe is read as it is; give the file" in err


def test_a_line_through_a_named_pipe_is_answered_at_once(run: RunDir, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    command = [*PROGRAM, "-m", str(run.path), "-i", str(path)]
    with start_command(command, stdout=subprocess.PIPE) as process, open(path, "wb", buffering=0) as pipe:
        assert process.stdout is not None
        for line in (b"a man walks\n", b"two dogs\n"):
            pipe.write(line)
            assert process.stdout.readline() == translate(run, line)[0]
    assert process.returncode == 0


@pytest.mark.parametrize("n_lines", [1, 5000])
def test_a_full_disk_behind_stdout_is_one_message(run: RunDir, tmp_path: Path, n_lines: int) -> None:
    path = write_lines(tmp_path / "in", n_lines)
    with open("/dev/full", "wb") as full:
        command = [*PROGRAM, "-m", str(run.path), "-i", str(path)]
        done = run_command(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    (error,) = (line for line in done.stderr.splitlines() if not line.startswith("seqtool: line"))  # the rest are notes
    assert error.startswith("seqtool: error: the output cannot be written (No space left on device)")


def test_dev_stdout_is_written_into_even_where_it_is_a_file(run: RunDir, tmp_path: Path) -> None:
    with open(tmp_path / "out", "wb") as file:
        command = [*PROGRAM, "-m", str(run.path), "--output", "/dev/stdout"]
        run_command(command, input=b"a man walks\n", stdout=file, check=True)
    assert (tmp_path / "out").read_bytes() == translate(run, b"a man walks\n")[0]
    assert Path("/dev/stdout").is_symlink()


def test_a_closed_output_ends_quietly(run: RunDir, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in", 10000)
    script = f"{sys.executable} -m seqtool translate -m {run.path} < {path} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines() if not line.startswith("seqtool: line")] == []  # notes apart
    assert done.stdout.splitlines()[-1] == "141"


def test_an_output_that_was_killed_continues_where_it_was(run: RunDir, tmp_path: Path) -> None:
    path, out = write_lines(tmp_path / "in", 9000), tmp_path / "out"
    expected, _ = translate(run, path.read_bytes())
    command = [*PROGRAM, "-m", str(run.path), "-i", str(path), "--output", str(out)]
    process = start_command(command, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (tmp_path / "out.partial.json").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    again = run_command(command, capture_output=True, text=True)
    assert again.returncode == 1
    assert "--resume" in again.stderr
    resumed = run_command([*command, "--resume"], capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert out.read_bytes() == expected
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in", "out"]


def test_ctrl_c_exits_with_130_and_no_traceback(run: RunDir, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in", 20000)
    command = [*PROGRAM, "-m", str(run.path), "-i", str(path), "--output", str(tmp_path / "out")]
    process = start_command(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (tmp_path / "out.partial.json").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_json_and_n_best(run: RunDir) -> None:
    content = b"a man walks\n\nthe dogs\n"
    plain = translate(run, content)[0].decode().splitlines()
    objects = [json.loads(line) for line in translate(run, content, "--json")[0].splitlines()]
    assert [one["text"] for one in objects] == plain
    assert all({"text", "score", "tokens", "alignment"} <= one.keys() for one in objects)
    assert len(objects[0]["alignment"]) == len(objects[0]["tokens"])
    rows = [line.split("\t") for line in translate(run, content, "--n-best", "2")[0].decode().splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "3", "3"]
    assert [row[2] for row in (rows[0], rows[2], rows[3])] == plain
    both = [json.loads(line) for line in translate(run, content, "--json", "--n-best", "2")[0].splitlines()]
    assert [len(one["hypotheses"]) for one in both] == [2, 1, 2]


def test_token_scores_are_in_the_objects_on_request(run: RunDir) -> None:
    content = b"a man walks\n\n" + b"she waves, " * 40
    objects = [json.loads(line) for line in translate(run, content, "--json", "--token-scores")[0].splitlines()]
    assert len(objects[0]["token_scores"]) == len(objects[0]["tokens"]) + 1
    assert objects[1]["token_scores"] == []
    assert len(objects[2]["token_scores"]) > len(objects[2]["tokens"]) + 1  # each part has an end
    both = json.loads(translate(run, b"a man", "--json", "--token-scores", "--n-best", "2")[0])
    assert all(len(one["token_scores"]) == len(one["tokens"]) + 1 for one in both["hypotheses"])
    assert "token_scores" not in json.loads(translate(run, b"a man", "--json")[0])


def test_a_pipe_is_written_into_and_not_replaced(run: RunDir, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [*PROGRAM, "-m", str(run.path), "--output", str(pipe)]
    with start_command(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        with open(pipe, "rb") as reader:
            process.stdin.write(b"a man\n\ntwo dogs\n")
            process.stdin.close()
            found = reader.read()
    assert process.returncode == 0
    assert found == translate(run, b"a man\n\ntwo dogs\n")[0]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]
    _, err = translate(run, b"", "--output", str(pipe), "--resume", code=2)
    assert "--resume continues a file" in err


def test_the_fingerprint_changes_with_all_that_changes_a_translation(run: RunDir, tmp_path: Path) -> None:
    class Used:
        name, compute_type = "ctranslate2", "int8"

    def mark(run: RunDir, options: str = "options") -> str:
        return fingerprint(Translator.load(run.path), Used, [options])

    copy = RunDir(Path(shutil.copytree(run.path, tmp_path / "copy")))
    marks = [mark(copy)]
    assert marks[0] == mark(run)  # a copy is the same model
    marks.append(mark(copy, "other options"))
    for name, compute_type in (("ctranslate2", "float32"), ("torch", "float32")):
        Used.name, Used.compute_type = name, compute_type
        marks.append(mark(copy))
    record = copy.ctranslate2 / "seqtool.json"
    record.write_text(record.read_text().replace('"int8"', '"int8_float32"'))
    Used.name, Used.compute_type = "ctranslate2", "int8"
    marks.append(mark(copy))
    copy.write_manifest(replace(copy.read_manifest(), created="now"))
    assert marks[-1] == mark(copy)  # it is still the same model
    content = bytearray(copy.weights.read_bytes())
    content[-1] ^= 1
    copy.weights.write_bytes(content)
    vouch(copy)
    marks.append(mark(copy))
    assert len(set(marks)) == len(marks) == 6


def test_neither_torch_nor_sacrebleu_is_imported(run: RunDir) -> None:
    program = (
        "import sys\n"
        "for name in ('torch', 'sacrebleu', 'numpy', 'safetensors'): sys.modules[name] = None\n"
        f"sys.argv = ['seqtool', 'translate', '-m', {str(run.path)!r}, '--json']\n"
        "from seqtool.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], input=b"a man\n" + b"dogs " * 99, capture_output=True)
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 2


def test_options_that_the_engine_lacks(run: RunDir) -> None:
    out, err = translate(run, b"a man\n", "--sample", "--seed", "4")
    assert out.count(b"\n") == 1
    assert "does not offer --sample, so the slower torch engine is used" in err
    _, err = translate(run, b"a man\n", "--sample", "--engine", "ctranslate2", code=2)
    assert err.startswith("seqtool: error: the ctranslate2 engine does not offer --sample; use --engine torch\n")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--beam", "0"], 2, "--beam"),
        (["--engine", "tensorflow"], 2, "there is no engine 'tensorflow'"),
        (["--device", "tpu"], 2, "there is no device 'tpu'"),
        (["--n-best", "9", "--beam", "2"], 2, "--beam 9"),
        (["--resume"], 2, "name it with -o FILE"),
        (["-i", "/no/such/file"], 1, "no such file"),
        (["--ban", "Donaudampfschiff"], 1, "not one token"),
        (["--output", "/dev"], 1, "is a folder"),
        (["--token-scores"], 2, "add --json"),
        (["--ban", "</s>"], 2, "no translation could end"),
        (["--length-penalty", "11"], 2, "--length-penalty must be from 0 to 10, not 11.0"),
        (["--diverse-groups", "5", "--diversity", "inf"], 2, "--diversity must be from 0 to 100"),
        (["--coverage-penalty", "inf"], 2, "--coverage-penalty must be from 0 to 100"),
        (["--sample", "--seed", str(2**63)], 2, "--seed must be"),
        (["-i", "/dev"], 1, "is a folder"),
        (["--compute-type", "int9"], 2, "did you mean 'int8'"),
        (["--compile", "--engine", "ctranslate2"], 2, "--compile is for the torch engine"),
        (["--max-length-ratio", "99", "--engine", "ctranslate2"], 2, "--max-length-ratio 99 for lines of 64 tokens"),
    ],
    ids=str,
)
def test_wrong_usage_is_one_message(run: RunDir, options: list[str], code: int, message: str) -> None:
    out, err = translate(run, b"a man\n", *options, code=code)
    assert out == b""
    assert message in err
    assert "Traceback" not in err


def test_a_wish_that_the_engine_lacks_is_told_before_any_input_is_read(run: RunDir) -> None:
    command = [*PROGRAM, "-m", str(run.path), "--max-length-ratio", "99", "--engine", "ctranslate2"]
    with start_command(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"does not offer --max-length-ratio" in process.stderr.read()  # though stdin is still open
    assert process.returncode == 2


def test_bfloat16_is_one_option_away(run: RunDir) -> None:
    content = "".join(f"{line}\n" for line in make_lines(20)).encode()
    exact = [json.loads(line) for line in translate(run, content, "--json", "--engine", "torch")[0].splitlines()]
    options = ["--json", "--engine", "torch", "--compute-type", "bfloat16"]
    found = [json.loads(line) for line in translate(run, content, *options)[0].splitlines()]
    assert [one["score"] for one in found] != [one["score"] for one in exact]
    assert sum(ours["text"] == theirs["text"] for ours, theirs in zip(found, exact, strict=True)) >= 15


def test_a_terminal_sees_the_progress_of_a_file(run: RunDir, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in", 6000)
    terminal, side = pty.openpty()
    command = [*PROGRAM, "-m", str(run.path), "-i", str(path)]
    with start_command(command, stdout=subprocess.DEVNULL, stderr=side) as process:
        os.close(side)
        seen = b""
        while b"translating" not in seen and process.poll() is None:
            seen += read_terminal(terminal)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.2)  # a speed is shown after a second; this machine may need less for the rest
        process.send_signal(signal.SIGCONT)
        while process.poll() is None:
            seen += read_terminal(terminal)
        seen += read_terminal(terminal)
    os.close(terminal)
    assert process.returncode == 0
    assert "lines/s" in seen.decode()
    assert "left" in seen.decode()
    counts = [int(found.replace(",", "")) for found in re.findall(r"([\d,]+) lines ", seen.decode())]
    assert counts == sorted(counts)
    assert 0 < counts[-1] <= 6000


def read_terminal(handle: int) -> bytes:
    try:
        return os.read(handle, 4096)
    except OSError:  # the other side is closed
        return b""


def test_several_processes_share_a_file_and_join_it_in_order(run: RunDir, tmp_path: Path) -> None:
    path, out = write_lines(tmp_path / "in", 9000, n_different=600), tmp_path / "out"
    (tmp_path / "out.part-1-of-2.done").write_text("left over from another run")
    expected, _ = translate(run, path.read_bytes())
    run_workers([*PROGRAM, "-m", str(run.path), "-i", str(path), "--output", str(out)])
    assert out.read_bytes() == expected
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in", "out"]


def test_several_processes_do_not_share_a_pipe(run: RunDir, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = [*PROGRAM, "-m", str(run.path), "-i", str(tmp_path / "pipe"), "--output", str(tmp_path / "out")]
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "2"}
    done = run_command(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "several processes cannot share stdin, stdout or a pipe" in done.stderr


def test_memory_does_not_grow_with_the_input(run: RunDir, tmp_path: Path) -> None:
    """Lines of 1,000 bytes, all the same, so that they are translated once: 20 MB of them, and 120 MB."""
    program = (
        "import resource, subprocess, sys\n"
        "command = [sys.executable, '-m', 'seqtool', 'translate', '-m', sys.argv[1], '-i', sys.argv[2]]\n"
        "lines = subprocess.Popen(command, stdout=subprocess.PIPE)\n"
        "print(sum(1 for line in lines.stdout))\n"
        "assert lines.wait() == 0\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    peaks = []
    for n_lines in (20_000, 120_000):
        with open(tmp_path / "in", "wb") as file:
            file.writelines(b"a man" + b" " * 994 + b"\n" for _ in range(n_lines))
        command = [sys.executable, "-c", program, str(run.path), str(tmp_path / "in")]
        done = run_command(command, capture_output=True, text=True, timeout=300, check=True)
        count, peak = map(int, done.stdout.split())
        assert count == n_lines
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 20_000  # kilobytes
