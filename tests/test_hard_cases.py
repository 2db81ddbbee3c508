"""What an attacker, a typing error or a full process table once broke: limits, file names, encodings, tiny corpora."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import SEQTOOL, run_text, start_command
from tiny_run import make_lines, make_run, translate_words
from vouching import vouch

from seqtool.files import sha256_of, to_json
from seqtool.metrics_log import read_metrics
from seqtool.run_directory import RunDir
from seqtool.verification import seal


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A model with its exported form."""
    pytest.importorskip("ctranslate2")
    from seqtool.translation.export.ctranslate2 import export_ctranslate2

    run = make_run(tmp_path_factory.mktemp("hard") / "run", trained=True)
    export_ctranslate2(run, "int8", check=False)
    return run


def translate(run: RunDir, *options: object, stdin: str = "two dogs play\n") -> "subprocess.CompletedProcess[str]":
    done = run_text("translate", "-m", run.path, *options, stdin=stdin)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize(
    "options", [("--threads", 100_000), ("--threads", 100_000, "--engine", "torch"), ("--sample", "--n-best", 10_000)]
)
def test_numbers_that_no_machine_bears_are_wrong_usage(model: RunDir, options: tuple[object, ...]) -> None:
    done = translate(model, *options)
    assert done.returncode == 2
    assert str(options[0 if options[0] == "--threads" else 1]) in done.stderr


def test_the_input_is_never_replaced_by_its_translation(model: RunDir, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("two dogs play\n")
    (tmp_path / "link").symlink_to("in")
    os.link(path, tmp_path / "other name")
    for name in ("in", "link", "other name"):
        done = translate(model, "-i", path, "-o", tmp_path / name)
        assert done.returncode == 1
        assert "is the input itself" in done.stderr
    assert path.read_text() == "two dogs play\n"


@pytest.mark.parametrize("code", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("how", ["file", "stdin"])
def test_utf_16_is_named_as_such(model: RunDir, tmp_path: Path, code: str, how: str) -> None:
    path = tmp_path / "in"
    path.write_bytes("two dogs play\nshe waves\n".encode(code))
    command = [*SEQTOOL, "translate", "-m", str(model.path), *(["-i", str(path)] if how == "file" else [])]
    with open(path, "rb") as file, start_command(command, stdin=file, stdout=-1, stderr=-1) as process:
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, b"")
    assert b"is UTF-16" in errors
    assert b"iconv" in errors


def test_lines_with_some_nul_bytes_are_translated_as_ever(model: RunDir) -> None:
    lines = ["two\0dogs\0play", "\0" * 7 + "she waves"]
    assert len(translate(model, stdin="\n".join(lines) + "\n").stdout.splitlines()) == 2


def test_a_prefix_beyond_the_positions_of_the_export_goes_to_torch(model: RunDir) -> None:
    prefix = "zwei Hunde " * 400
    done = translate(model, "--prefix", prefix)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("zwei Hunde zwei Hunde")
    assert "the slower torch engine is used" in done.stderr
    assert translate(model, "--prefix", prefix, "--engine", "ctranslate2").returncode == 2


def interrupt(model: RunDir, path: Path, out: Path, number: signal.Signals, moment: str) -> tuple[int, str]:
    """Send a signal when a file is there; return the exit code and what was printed."""
    command = [*SEQTOOL, "translate", "-m", str(model.path), "-i", str(path), "-o", str(out)]
    process = start_command(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not out.with_name(out.name + moment).exists():
        time.sleep(0.002)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_translation_says_what_is_kept(model: RunDir, tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "in"
    os.mkfifo(path)
    command = [*SEQTOOL, "translate", "-m", str(model.path), "-i", str(path), "-o", str(tmp_path / "out")]
    process = start_command(command, stderr=subprocess.PIPE, text=True)
    with open(path, "wb"):  # it waits for the first line
        assert (tmp_path / "out.partial").exists()
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert errors == "seqtool: interrupted\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]
    path.unlink()
    path.write_text("\n".join(make_lines(20_000)) + "\n")
    code, errors = interrupt(model, path, tmp_path / "more", number, ".partial.json")
    assert code == 128 + number
    assert "more.partial; continue with --resume" in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_python_ends_is_no_traceback(number: signal.Signals) -> None:
    program = (
        "import atexit, os, sys; from seqtool.cli.main import main\n"
        f"atexit.register(os.kill, os.getpid(), {number.value})\n"
        "sys.argv = ['seqtool', '--version']; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (-number, "")
    assert done.stdout


@pytest.mark.parametrize("damage", ["partial", "shorter", "state", "nested"])
def test_a_translation_is_not_continued_from_changed_bytes(model: RunDir, tmp_path: Path, damage: str) -> None:
    path, out = tmp_path / "in", tmp_path / "out"
    path.write_text("\n".join(make_lines(20_000)) + "\n")
    interrupt(model, path, out, signal.SIGTERM, ".partial.json")
    partial, state = (tmp_path / f"out.{end}" for end in ("partial", "partial.json"))
    if damage == "partial":
        partial.write_bytes(partial.read_bytes().replace(b"e", b"a", 1))
    elif damage == "shorter":
        os.truncate(partial, json.loads(state.read_text())["bytes"] - 3)
    elif damage == "state":
        state.write_text(state.read_text().replace('"lines": ', '"lines": 1'))
    else:
        state.write_text("[" * 50_000)
    done = translate(model, "-i", path, "-o", out, "--resume")
    assert done.returncode == 1
    assert "delete" in done.stderr
    assert not out.exists()


def reseal(run: RunDir, name: str, content: bytes) -> None:
    """Change a file of an export so that its record vouches for it."""
    (run.ctranslate2 / name).write_bytes(content)
    path = run.ctranslate2 / "seqtool.json"
    record = json.loads(path.read_text())
    record["files"][name] = sha256_of(run.ctranslate2 / name)
    del record["sha256"]
    path.write_text(to_json({**record, "sha256": seal(record)}))


def test_an_export_with_another_vocabulary_is_not_used_whoever_vouches_for_it(tmp_path: Path) -> None:
    from seqtool.translation.export.ctranslate2 import export_ctranslate2

    run = make_run(tmp_path / "run", trained=True)
    export_ctranslate2(run, "int8", check=False)
    pieces = json.loads((run.ctranslate2 / "shared_vocabulary.json").read_text())
    for other in (pieces[:50], [*pieces[:100], *pieces[:99:-1]]):
        reseal(run, "shared_vocabulary.json", json.dumps(other).encode())
        done = translate(run)
        assert (done.returncode, done.stdout) == (0, "zwei Hunde spielen\n")
        assert "is not the vocabulary of the model" in done.stderr
    path = run.ctranslate2 / "seqtool.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "files": []}))
    assert translate(run).returncode == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"d_model = 32": "d_model = 65536"},
        {"encoder_layers = 1": "encoder_layers = 256"},
        {'"sinusoidal"': '"learned"', "max_positions = 1024": "max_positions = 1000000000"},
    ],
    ids=["d_model", "layers", "positions"],
)
def test_a_configuration_larger_than_its_weights_takes_no_memory(tmp_path: Path, changes: dict[str, str]) -> None:
    run = make_run(tmp_path / "run")
    text = run.config.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    run.config.write_text(text)
    vouch(run)
    for command in (["translate", "-m"], ["export", "--to", "ctranslate2", "-m"]):
        done = run_text(*command, run.path, stdin="two dogs play\n")
        assert done.returncode == 1
        assert "parameters, but the model of config.toml has" in done.stderr


@pytest.mark.parametrize("value", ["0x" + "f" * 5001, "[" * 3000, "9" * 5001])
def test_a_setting_that_python_cannot_write_out_is_an_error_like_others(tmp_path: Path, value: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[train]\nseed = {value}\n")
    for arguments in (["--config", path], ["--set", f"train.seed={value}"]):
        done = run_text("train", "a.tsv", "-o", tmp_path / "run", *arguments)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert len(done.stderr) < 2000


def test_damaged_lines_of_the_metrics_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    good = {"kind": "train", "step": 1, "epoch": 0, "loss": 1, "nll": 2.0, "lr": 1e-3, "tokens_per_s": 5.0}
    bad = ["{" * 9999, "[]", '"x"', json.dumps({**good, "step": "1"}), json.dumps({**good, "stdp": 2, "step": None})]
    bad += [json.dumps({**good, "loss": 1 << 70}), json.dumps({**good, "kind": []}), "\x00"]
    cut_short = json.dumps(good)[:20]
    path.write_text("\n".join([json.dumps(good), *bad, json.dumps({**good, "step": 2}), cut_short]))
    entries, n_damaged = read_metrics(path)
    assert [entry["step"] for entry in entries] == [1, 2]
    assert n_damaged == len(bad)


def test_a_corpus_of_one_repeated_pair_is_refused_as_such_and_a_tiny_one_is_warned_of(tmp_path: Path) -> None:
    same, tiny = tmp_path / "same.tsv", tmp_path / "tiny.tsv"
    same.write_text("a man\tein Mann\n" * 300)
    done = run_text("prepare", same, "-o", tmp_path / "same", "--preset", "tiny")
    assert done.returncode == 1
    assert "of 300 pairs only 1 differ" in done.stderr
    tiny.write_text("".join(f"{line}\t{translate_words(line)}\n" for line in sorted(set(make_lines(10)))))
    done = run_text("prepare", tiny, "-o", tmp_path / "tiny", "--preset", "tiny")
    assert done.returncode == 0
    assert "warning: so few pairs" in done.stderr
