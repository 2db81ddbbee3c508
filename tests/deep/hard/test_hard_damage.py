"""Damage to each file of a model and of a run: it is named, made again or without effect, never used in silence."""

import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import SEQTOOL, run_command
from faults import DAMAGES, SECONDS, count
from hard_runs import copy_run, make_stopped, make_whole, quick_command
from small_run import name_corpus, write_corpus
from tiny_run import make_lines, make_run

from seqtool.run_directory import RunDir
from seqtool.translation.export.ctranslate2 import export_ctranslate2

pytest.importorskip("ctranslate2")

LINES = "\n".join(make_lines(12)) + "\n"
MODEL_FILES = ["config.toml", "tokenizer.model", "model.safetensors", "manifest.json"]
EXPORT_FILES = ["model.bin", "shared_vocabulary.json", "config.json", "seqtool.json"]
PREPARED = [f"prepared/{side}.{part}" for side in ("source", "target") for part in ("tokens", "offsets", "lengths")]
CHECKPOINT = ["model.safetensors", "ema.safetensors", "optimizer.safetensors", "state.json"]
RUN_FILES = [
    *(*PREPARED, "prepared/manifest.json", "prepared/held_out.jsonl", "tokenizer.model", "config.toml"),
    *("metrics.jsonl", *(f"checkpoints/step-000000009/{name}" for name in CHECKPOINT)),
    *("checkpoints/best/model.safetensors", "checkpoints/best/state.json"),
]
FEWER = [  # damages of each file of a run, whose training takes longer
    *("bit at 2%", "bit at 60%", "bit at 100%", "values exchanged", "half"),
    *("of another run", "pipe", "device", "link out", "missing"),
]
COMMANDS = ["info", "score", "eval", "report", "export"]  # beside translate, each in its turn


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDir, RunDir]:
    """Two models of the same shape with their exports."""
    folder = tmp_path_factory.mktemp("models")
    both = make_run(folder / "one", trained=True), make_run(folder / "two", seed=5)
    for run in both:
        export_ctranslate2(run, "float32", check=False)
    return both


def run_it(*arguments: object, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    command = [*SEQTOOL, *map(str, arguments)]
    done = run_command(command, input=stdin, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 1), done.stderr
    return done


def arguments_of(command: str, run: Path, folder: Path) -> list[object]:
    """Return the arguments of a command that opens a model."""
    (folder / "src").write_text(LINES)
    (folder / "out").mkdir(exist_ok=True)
    pair = folder / "src", folder / "src"
    return {
        "info": ["info", run, "--json"],
        "score": ["score", "-m", run, *pair],
        "eval": ["eval", "-m", run, *pair],
        "report": ["report", run, "--no-attention"],
        "export": ["export", "-m", run, "--to", "ctranslate2", "-o", folder / "out" / "export"],
    }[command]


@pytest.mark.parametrize("name", [*MODEL_FILES, *(f"ctranslate2/{name}" for name in EXPORT_FILES)])
def test_a_damaged_model_never_translates_otherwise(models: tuple[RunDir, RunDir], tmp_path: Path, name: str) -> None:
    whole, other = models
    expected = run_it("translate", "-m", whole.path, stdin=LINES).stdout
    for index, (damage, do) in enumerate(DAMAGES.items()):
        run = copy_run(whole.path, tmp_path / "run")
        do(run / name, other.path / name)
        done = run_it("translate", "-m", run, stdin=LINES)
        if done.returncode:
            assert Path(name).name in done.stderr, (damage, done.stderr)
            assert done.stdout == ""
            outcome = "error that names it"
        elif done.stdout == expected:
            outcome = "translates as before" + (", with a note" if name.partition("/")[0] in done.stderr else "")
        else:
            assert "[decode] is not as it was" in done.stderr, (damage, done.stdout, done.stderr)
            outcome = "a setting of [decode] has changed, which is noted"
        count("damage", f"model, {name}", outcome)
        command = COMMANDS[index % len(COMMANDS)]
        second = run_it(*arguments_of(command, run, tmp_path))
        is_of_model = name in MODEL_FILES and done.returncode == 1
        assert second.returncode == 1 or not is_of_model or command == "report", (damage, command, second.stdout)
        count(f"damage, then {command}", f"model, {name}", "error" if second.returncode else "as before")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A corpus, a training from beginning to end, one that was stopped, and one with another seed that was stopped."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "other corpus").mkdir()
    corpus = write_corpus(folder)[:2]  # without a validation set, so that pairs are held out for it
    other = write_corpus(folder / "other corpus", pairs=119)[:2]
    return {
        "corpus": folder,
        "whole": make_whole(corpus, folder / "whole"),
        "stopped": make_stopped(corpus, folder / "a" / "stopped"),
        "other": make_stopped(other, folder / "b" / "other"),
    }


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_damaged_run_never_trains_another_model(runs: dict[str, Path], tmp_path: Path, name: str) -> None:
    expected = (runs["whole"] / "model.safetensors").read_bytes()
    run = tmp_path / "run"
    for damage, do in ((damage, DAMAGES[damage]) for damage in FEWER):
        copy_run(runs["stopped"], run)
        assert (run / name).stat().st_size > 0
        do(run / name, runs["other"] / name)
        done = run_it(*quick_command(name_corpus(runs["corpus"])[:2], run)[3:])
        if done.returncode:
            named = (Path(name).name, "checkpoint", "the corpus is not the one")
            assert any(words in done.stderr for words in named), (damage, done.stderr)
            outcome = "error that names it"
        else:
            assert (run / "model.safetensors").read_bytes() == expected, (damage, done.stderr)
            is_named = Path(name).name in done.stderr or "damaged" in done.stderr or "prepar" in done.stderr
            outcome = "the same model" + (", with a note" if is_named else "")
        count("damage", f"run, {name}", outcome)
        for path in (run, tmp_path / f"outside-{Path(name).name}"):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
