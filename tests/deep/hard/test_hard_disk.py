"""Disks that are full at every moment, folders that may not be written and files that may not be read."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import SEQTOOL, run_command
from faults import count, run_faulty
from hard_runs import make_stopped, quick_command
from small_run import assert_same_run, run_to_end, write_corpus
from tiny_run import make_lines, make_run

from seqtool.run_directory import RunDir
from seqtool.translation.export.ctranslate2 import export_ctranslate2

pytest.importorskip("ctranslate2")
PAGES = 4096
SIZES = 20  # of the disk that a training is given
SIZES_ELSEWHERE = 5


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory whose size can be changed."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs more rights than this user has")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def resize(disk: Path, n_bytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={n_bytes}", str(disk)], check=True)


def clear(disk: Path) -> None:
    resize(disk, 100 << 20)
    for entry in disk.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def used(folder: Path) -> int:
    """Return the bytes that a folder takes, in whole pages."""
    sizes = [path.lstat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(-(-size // PAGES) * PAGES for size in sizes)


def name_stage(errors: str, disk: Path) -> str:
    """Return which file an error names."""
    place = errors.partition(str(disk))[2].partition(":")[0]
    named = "the folder" if str(disk) in errors else "nothing is named"
    return "".join("#" if char.isdigit() else char for char in place) or named


def assert_full(done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    wanted = ("the disk is full", "No space left", "make room", "space on its disk")
    assert any(words in done.stderr for words in wanted), done.stderr


def test_a_training_whose_disk_is_full_at_any_size_goes_on_after_making_room(disk: Path, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    expected = tmp_path / "expected"
    run_to_end(quick_command(corpus, expected))
    whole, run = used(expected), disk / "run"
    for part in range(SIZES):
        clear(disk)
        size = PAGES * (2 + whole * part // SIZES // PAGES)
        resize(disk, size)
        done = run_command(quick_command(corpus, run), capture_output=True, text=True)
        if done.returncode == 0:  # there was enough after all
            assert_same_run(run, expected)
            continue
        assert_full(done)
        count("full disk in train", name_stage(done.stderr, disk), "the same model after making room")
        resize(disk, 100 << 20)
        run_to_end(quick_command(corpus, run))
        assert_same_run(run, expected)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = make_run(tmp_path_factory.mktemp("model") / "model", trained=True)
    export_ctranslate2(run, "int8", check=False)
    return run


def writing_commands(folder: Path, model: RunDir, out: Path) -> dict[str, list[str]]:
    """Return commands that write to a place."""
    corpus = write_corpus(folder)[:2]
    lines = folder / "lines"
    lines.write_text("\n".join(make_lines(1500, longest=20)) + "\n")
    ours = str(model.path)
    found = {
        "translate": ["translate", "-m", ours, "-i", str(lines), "-o", str(out / "text"), "--beam", "1"],
        "export": ["export", "-m", ours, "--to", "ctranslate2", "-o", str(out / "export")],
        "split": ["split", *corpus, "-o", str(out), "--valid", "10", "--test", "10"],
        "tokenizer": ["tokenizer", "train", *corpus, "-o", str(out / "tokenizer"), "--vocab-size", "400"],
        "prepare": ["prepare", *corpus, "-o", str(out), "--preset", "tiny", "--set", "tokenizer.vocab_size=400"],
        "average": ["average", "-o", str(out / "average"), ours, ours],
        "attention": ["translate", "-m", ours, "-i", str(lines), "--show-attention", str(out / "map.svg")],
    }
    return {name: [*SEQTOOL, *command] for name, command in found.items()}


@pytest.mark.parametrize("name", ["translate", "export", "split", "tokenizer", "prepare", "average", "attention"])
def test_other_commands_say_that_the_disk_is_full(disk: Path, tmp_path: Path, model: RunDir, name: str) -> None:
    command = writing_commands(tmp_path, model, disk)[name]
    run_to_end(command)
    size = max(used(disk), PAGES)
    for part in range(SIZES_ELSEWHERE):
        clear(disk)
        resize(disk, max(PAGES, size * part // SIZES_ELSEWHERE // PAGES * PAGES))
        filler = disk / "filler"
        if size == PAGES:  # there is no smaller disk
            filler.write_bytes(b"x" * PAGES)
        done = run_command(command, capture_output=True, text=True)
        if done.returncode == 0:
            continue
        assert_full(done)
        count(f"full disk in {name}", name_stage(done.stderr, disk), "a message")
        clear(disk)
        run_to_end(command)


@pytest.mark.parametrize(
    "name", ["translate", "export", "split", "tokenizer", "prepare", "average", "attention", "train"]
)
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path, model: RunDir, name: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    commands = writing_commands(tmp_path, model, out)
    commands["train"] = quick_command(write_corpus(tmp_path), out)
    out.chmod(0o555)
    done = run_faulty(commands[name], unprivileged=True)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert str(out) in done.stderr
    assert list(out.iterdir()) == []
    count("read-only folder", name, "named")


@pytest.mark.parametrize("name", ["config.toml", "tokenizer.model", "model.safetensors", "manifest.json"])
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, model: RunDir, name: str) -> None:
    run = RunDir(Path(shutil.copytree(model.path, tmp_path / "run")))
    (run.path / name).chmod(0)
    lines = tmp_path / "lines"
    lines.write_text("two dogs\n")
    for command in (["translate", "-m", str(run.path), "-i", str(lines)], ["info", str(run.path)]):
        done = run_faulty([*SEQTOOL, *command], unprivileged=True)
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        assert name in done.stderr + done.stdout
    count("unreadable file", name, "named")


def test_a_model_that_may_only_be_read_translates(tmp_path: Path, model: RunDir) -> None:
    run = RunDir(Path(shutil.copytree(model.path, tmp_path / "run")))
    lines = tmp_path / "lines"
    lines.write_text("two dogs\n")
    for path in (*run.path.rglob("*"), run.path):
        path.chmod(0o555 if path.is_dir() else 0o444)
    ours, pair = str(run.path), [str(lines), str(lines)]
    commands = (["translate", "-m", ours, "-i", str(lines)], ["info", ours], ["score", "-m", ours, *pair])
    for command in (*commands, ["eval", "-m", ours, *pair]):
        done = run_faulty([*SEQTOOL, *command], unprivileged=True)
        assert done.returncode == 0, (command, done.stderr)
        count("read-only model", command[0], "works")


def test_a_run_that_may_only_be_read_is_not_continued(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    run = make_stopped(corpus, tmp_path / "work" / "run")
    for path in (*run.rglob("*"), run):
        path.chmod(0o555 if path.is_dir() else 0o444)
    done = run_faulty(quick_command(corpus, run), unprivileged=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(run) in done.stderr
    count("read-only folder", "train, continued", "named")
