"""A run directory that was made by an earlier version still opens, translates, scores and resumes.

runs/format-1.tar.xz was made by the version before manifests were typed and models had kinds: a corpus, a run of 40
steps on it, and what that version's `translate` and `score` made of it.
"""

import json
import tarfile
from pathlib import Path

import pytest
from command_line import run_text

SETTINGS = {
    "model.d_model": 16,
    "model.d_ff": 16,
    "model.n_heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "tokenizer.vocab_size": 400,
    "data.held_out": 10,
    "train.threads": 1,
    "train.save_every": 20,
    "train.validate_every": 20,
    "train.report_every": 10,
    "train.keep": 1,
    "train.average": 1,
    "train.batch_tokens": 512,
    "train.word_dropout_after": 0,
    "train.steps": 60,
}
LOSSES = {50: 6.2152, 60: 6.057280188}  # of the earlier version, when it went on to 60 steps


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(Path(__file__).parent / "runs" / "format-1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def test_info_finds_it_whole_and_knows_all_that_its_manifest_says(folder: Path) -> None:
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    done = run_text("info", "run", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["state"], found["whole"]) == ("trained", True)
    assert manifest["files"].items() <= {file["name"]: file["sha256"] for file in found["files"]}.items()
    for name in ("seqtool", "created", "versions", "model", "data", "scores", "training"):
        assert found[name] == manifest[name]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_both_engines_translate_as_before(folder: Path, engine: str) -> None:
    options = ("--engine", engine, "--beam", 2)
    done = run_text("translate", "-m", "run", *options, stdin=(folder / "input.txt").read_text(), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (folder / f"{engine}.txt").read_text()


def test_scores_are_those_of_before(folder: Path) -> None:
    done = run_text("score", "-m", "run", "corpus.en", "corpus.de", cwd=folder)
    assert done.returncode == 0, done.stderr
    expected = [float(line) for line in (folder / "score.txt").read_text().split()]
    assert [float(line) for line in done.stdout.split()[: len(expected)]] == pytest.approx(expected, rel=1e-4)


def test_the_same_command_with_more_steps_goes_on_from_where_it_was(folder: Path) -> None:
    before = json.loads((folder / "run" / "manifest.json").read_text())
    settings = [text for name, value in SETTINGS.items() for text in ("--set", f"{name}={value}")]
    done = run_text("train", "corpus.en", "corpus.de", "-o", "run", *settings, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "continuing at step 40" in done.stderr
    entries = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = {entry["step"]: entry["loss"] for entry in entries if entry["kind"] == "train" and entry["step"] > 40}
    assert losses == pytest.approx(LOSSES, abs=1e-3)  # other processors round otherwise
    after = json.loads((folder / "run" / "manifest.json").read_text())
    assert after["training"]["steps"] == 60
    assert after["data"] == before["data"]
    assert before.keys() <= after.keys()
    assert all(before[name].keys() <= after[name].keys() for name in ("model", "training"))
    assert run_text("info", "run", cwd=folder).returncode == 0


def test_a_shuffled_vocabulary_of_an_export_without_checksums_is_noticed(folder: Path) -> None:
    path = folder / "run" / "ctranslate2" / "shared_vocabulary.json"
    pieces = json.loads(path.read_text())
    path.write_text(json.dumps([*pieces[:4], *reversed(pieces[4:])]))
    done = run_text("translate", "-m", "run", "--engine", "ctranslate2", stdin="A dog.\n", cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not the vocabulary of the model" in done.stderr
