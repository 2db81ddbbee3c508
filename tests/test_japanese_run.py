"""A corpus with a Japanese target: one tokenizer of BLEU in validation, eval, manifest and report, chosen by script."""

import json
from pathlib import Path

import pytest
from command_line import run_text
from noisy_tmx import make_units, write_tmx
from small_run import read_metrics, run_to_end, train_command

from seqtool.config import load_config
from seqtool.evaluation.scores.tokenizers import is_at_hand
from seqtool.run_directory import RunDir


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDir, str]:
    folder = tmp_path_factory.mktemp("japanese")
    write_tmx(folder / "memory.tmx", make_units(400))
    command = train_command([f"{folder / 'memory.tmx'}:en:ja"], folder / "run", train_steps=24, data_held_out=8)
    return RunDir(folder / "run"), run_to_end(command).stderr


def test_the_tokenizer_is_chosen_by_the_target_and_the_same_everywhere(trained: tuple[RunDir, str]) -> None:
    run, said = trained
    wanted = "ja-mecab" if is_at_hand("ja-mecab") else "char"
    assert "the target is Japanese" in said
    assert load_config(run.config).train.bleu_tokenize == wanted
    logged = [entry["bleu_signature"] for entry in read_metrics(run.path) if entry["kind"] == "valid"]
    recorded = [score.signature for score in run.read_manifest().scores if score.metric == "bleu"]
    assert logged
    assert all(f"tok:{wanted}" in str(signature) for signature in [*logged, *recorded])
    page = run.report.read_text(encoding="utf-8")
    assert f"tok:{wanted}" in page
    assert "tok:13a" not in page


def test_eval_of_a_model_uses_the_tokenizer_that_it_was_validated_with(
    trained: tuple[RunDir, str], tmp_path: Path
) -> None:
    run, _ = trained
    source, reference = tmp_path / "a.en", tmp_path / "a.ja"
    source.write_text("The girl lost the letter.\n", encoding="utf-8")
    reference.write_text("OK\n", encoding="utf-8")  # this reference alone would say 13a
    found = run_text("eval", "-m", run.path, source, reference, "--json")
    assert f"tok:{load_config(run.config).train.bleu_tokenize}" in json.loads(found.stdout)["bleu"]["signature"]


def test_what_was_measured_is_recorded_with_the_model(trained: tuple[RunDir, str]) -> None:
    text = trained[0].read_manifest().data.text
    assert text is not None
    assert set(text["scripts"]["target"]) >= {"Kana", "Han"}
    assert 0.8 < text["single_sentences"] < 0.95


def test_a_resumed_run_keeps_its_tokenizer(trained: tuple[RunDir, str], tmp_path: Path) -> None:
    run, _ = trained
    folder = run.path.parent
    command = train_command([f"{folder / 'memory.tmx'}:en:ja"], run.path, train_steps=26, data_held_out=8)
    assert "begun with other settings" not in run_to_end(command).stderr
    changed = run_text(*command[3:], "--set", "train.bleu_tokenize=13a")
    assert changed.returncode == 1
    assert "train.bleu_tokenize was" in changed.stderr
