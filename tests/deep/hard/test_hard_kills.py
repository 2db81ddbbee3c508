"""Signals at every kind of moment of every command that writes; the same command again then gives the same result.

A process sends the signal to itself when it is about to change a file, so it is known where it died.
"""

import json
import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest
from command_line import SEQTOOL, run_command
from faults import count, list_moments, strike
from hard_runs import make_stopped, quick_command, stage_of
from small_run import assert_same_run, run_to_end, write_corpus
from tiny_run import make_lines, make_run

from seqtool.translation.export.ctranslate2 import export_ctranslate2

pytest.importorskip("ctranslate2")

SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
PARTS = [(number, part) for number, parts in zip(SIGNALS, (4, 1, 1), strict=True) for part in range(parts)]
KILLS = 11  # of trainings in each part
KILLS_ELSEWHERE = {"split": 20, "tokenizer": 20}  # with each signal; of the others, which take longer:
FEWER = 6
REFUSALS = {"split": "is there already; remove it", "average": "holds a model already; give another folder"}


def choose(moments: Counter[str], wanted: int, seed: int) -> list[tuple[str, int]]:
    """Choose moments so that each name comes about equally often, each time at another of its occurrences."""
    draw = random.Random(seed)
    waiting = {name: draw.sample(range(1, times + 1), times) for name, times in sorted(moments.items())}
    chosen: list[tuple[str, int]] = []
    while len(chosen) < wanted:
        names = [name for name, times in waiting.items() if times]
        if not names:  # all of them, and again from the first
            waiting = {name: draw.sample(range(1, times + 1), times) for name, times in sorted(moments.items())}
            continue
        chosen += [(name, waiting[name].pop()) for name in draw.sample(names, len(names))]
    return chosen[:wanted]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path, Counter[str]]:
    """A corpus, a training of it from beginning to end, and the moments of that."""
    folder = tmp_path_factory.mktemp("undisturbed")
    corpus = write_corpus(folder)
    moments = list_moments(quick_command(corpus, folder / "run"), folder / "run")
    return corpus, folder / "run", Counter({name: min(times, 3) for name, times in moments.items()})


@pytest.mark.parametrize(("number", "part"), PARTS)
def test_a_training_that_is_struck_anywhere_gives_the_same_model(
    undisturbed: tuple[list[str], Path, Counter[str]], tmp_path: Path, number: signal.Signals, part: int
) -> None:
    corpus, expected, moments = undisturbed
    run = tmp_path / "work" / "run"
    n_parts = sum(1 for each, _ in PARTS if each == number)
    for moment in choose(moments, KILLS * n_parts, seed=number)[part::n_parts]:
        shutil.rmtree(run.parent, ignore_errors=True)
        run.parent.mkdir()
        strike(quick_command(corpus, run), run, moment, number)
        run_to_end(quick_command(corpus, run))
        assert_same_run(run, expected)
        left = [path for path in run.rglob("*") if path.name.endswith((".tmp", ".seqtool"))]
        assert not left, (moment, left)
        count(f"{number.name} in train", stage_of(moment[0]), "the same model")


def content_of(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, a manifest without the time when it was made."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    found = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    for name, content in found.items():
        if name.endswith("average/manifest.json"):
            manifest = json.loads(content)
            found[name] = json.dumps({**manifest, "created": "", "sha256": ""}).encode()
    return found


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("name", ["translate", "export", "split", "tokenizer", "prepare", "average"])
def test_other_commands_that_are_struck_anywhere_give_the_same_files(
    tmp_path: Path, name: str, number: signal.Signals
) -> None:
    corpus_and_valid = write_corpus(tmp_path)
    corpus = corpus_and_valid[:2]
    model = make_run(tmp_path / "model", trained=True, steps=20)
    export_ctranslate2(model, "int8", check=False)
    lines = tmp_path / "lines"
    lines.write_text("\n".join(make_lines(1000, longest=20)) + "\n")
    steps = make_stopped(corpus_and_valid, tmp_path / "run") / "checkpoints" if name == "average" else tmp_path

    def command(out: Path) -> list[str]:
        out.mkdir(parents=True, exist_ok=True)
        ours, text = str(model.path), str(out / "text")
        options = {
            "translate": ["translate", "-m", ours, "-i", str(lines), "-o", text, "--resume", "--beam", "1"],
            "export": ["export", "-m", ours, "--to", "ctranslate2", "-o", str(out / "ct2")],
            "split": ["split", *corpus, "-o", str(out), "--valid", "10", "--test", "10"],
            "tokenizer": ["tokenizer", "train", *corpus, "-o", str(out / "tokenizer"), "--vocab-size", "400"],
            "prepare": ["prepare", *corpus, "-o", str(out), "--preset", "tiny", "--set", "tokenizer.vocab_size=400"],
            "average": ["average", "-o", str(out / "average"), *map(str, sorted(steps.glob("step-*")))],
        }
        return [*SEQTOOL, *options[name]]

    expected, out = tmp_path / "expected", tmp_path / "work" / "out"
    moments = list_moments(command(expected), expected)
    whole = content_of(expected)
    for moment in choose(moments, KILLS_ELSEWHERE.get(name, FEWER), seed=number):
        shutil.rmtree(out.parent, ignore_errors=True)
        strike(command(out), out, moment, number)
        left = content_of(out)
        assert [file for file in left.keys() & whole.keys() if left[file] != whole[file]] == [], moment
        if left.keys() & whole.keys() and name in REFUSALS:  # these replace nothing
            done = run_command(command(out), capture_output=True, text=True)
            assert done.returncode == 1
            assert REFUSALS[name] in done.stderr
            shutil.rmtree(out)
        run_to_end(command(out))
        found = content_of(out)
        assert found.keys() == whole.keys(), moment
        assert [file for file in whole if found[file] != whole[file]] == [], moment
        count(f"{number.name} in {name}", moment[0].partition(" ")[2], "the same files")
