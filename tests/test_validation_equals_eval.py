"""One decoder, one scorer: what training logs is what `seqtool eval` finds for the same weights, digit for digit."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import SEQTOOL, run_command, run_text
from small_run import read_metrics, run_to_end, train_command, write_corpus
from vouching import vouch

from seqtool.run_directory import RunDir

SETTINGS = {  # enough to say a few words rightly
    "train_steps": 120,
    "train_validate_every": 40,
    "train_save_every": 40,
    "train_batch_tokens": 1024,
    "train_micro_tokens": 1024,
    "train_valid_beam": 2,
    "decode_beam": 3,
    "model_d_model": 32,
    "model_dropout": 0.0,
    "model_word_dropout": 0.0,
    "tokenizer_bpe_dropout": 0.0,
}


def run_eval(model: Path, corpus: Path, *options: object) -> dict[str, Any]:
    files = [corpus / "valid.en", corpus / "valid.de"]
    done = run_text("eval", "-m", model, *files, "--engine", "torch", "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    run_to_end(train_command(write_corpus(folder), folder / "run", **SETTINGS))
    return folder


def test_the_logged_validation_score_equals_eval_of_that_checkpoint(corpus: Path, tmp_path: Path) -> None:
    from seqtool.model.loading import save_weights
    from seqtool.training.checkpoint import read_checkpoint

    run = RunDir(corpus / "run")
    checkpoint = read_checkpoint(run.best)
    for file in (run.config, run.tokenizer):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    save_weights(checkpoint.tensors("model"), RunDir(tmp_path).weights)
    vouch(RunDir(tmp_path))
    logged = next(
        entry
        for entry in read_metrics(run.path)
        if entry["kind"] == "valid" and entry["step"] == checkpoint.state["step"]
    )
    found = run_eval(tmp_path, corpus, "--beam", 2)
    for name in ("bleu", "chrf"):
        assert found[name]["score"] == logged[name]
        assert found[name]["signature"] == logged[f"{name}_signature"]
    assert found["bleu"]["score"] > 0


def test_the_recorded_score_equals_eval_of_the_finished_model(corpus: Path) -> None:
    run = RunDir(corpus / "run")
    found = run_eval(run.path, corpus)
    recorded = {score.metric: score for score in run.read_manifest().scores}
    for name in ("bleu", "chrf"):
        assert found[name]["score"] == recorded[name].score
        assert found[name]["signature"] == recorded[name].signature
    for name, value in recorded["bleu"].decoding.items():
        assert found["decoding"][name] == value


def test_the_report_is_made_at_the_end_of_training_and_info_finds_all_files_whole(corpus: Path) -> None:
    run = RunDir(corpus / "run")
    page = run.report.read_text(encoding="utf-8")
    for expected in ("Loss per token", "Validation scores", "Sample translations", 'id="attention-layer"'):
        assert expected in page
    command = [*SEQTOOL, "info", str(run.path), "--json"]
    found = json.loads(run_command(command, capture_output=True, text=True, check=True).stdout)
    assert (found["state"], found["whole"]) == ("trained", True)


def test_validation_splits_lines_and_tells_its_settings_as_eval_does(tmp_path: Path) -> None:
    """Where positions are learned a translation must fit into them, so lines are split earlier."""
    import torch
    from tiny_run import make_lines, make_run

    from seqtool.config import load_config
    from seqtool.corpus.tokenizer.registry import load_pair
    from seqtool.model.loading import read_weights
    from seqtool.training.distributed import Workers
    from seqtool.training.validation import Validator
    from seqtool.translation.translator import Translator

    run = make_run(tmp_path / "run", positions="learned", max_positions=40, max_tokens=30)
    pairs = [(line, line) for line in make_lines(12, longest=20)]
    validator = Validator(pairs, load_pair(run), load_config(run.config), Workers(0, 1, torch.device("cpu")), threads=2)
    found = validator.run(read_weights(run.weights), beam=2)
    translator = Translator.load(run.path, engine="torch")
    expected = translator.translate([source for source, _ in pairs], beam=2)
    assert max(one.n_parts for one in expected) > 1
    assert found.hypotheses == [one.text for one in expected]
    assert found.decoding == translator.describe(beam=2)
    assert found.decoding.keys() >= {"beam", "max_length_ratio", "coverage_penalty", "engine", "quantization"}
