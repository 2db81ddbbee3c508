"""seqtool info as people and programs run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_run import BLEU_SIGNATURE, make_run

from seqtool.evaluation.report.card import read_card
from seqtool.run_directory import RunDir


def run_info(*arguments: object, without: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command; modules named in `without` cannot be imported in it."""
    blocked = f"import sys; [sys.modules.__setitem__(name, None) for name in {without.split()!r}];"
    start = f"{blocked} sys.argv[0] = 'seqtool'; from seqtool.cli.main import main; main()"
    command = [sys.executable, "-c", start, "info", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return make_run(tmp_path_factory.mktemp("info") / "run")


def test_the_card_names_sizes_data_scores_and_files_and_needs_no_torch(trained: RunDir) -> None:
    found = run_info(trained.path, without="torch ctranslate2")
    assert found.returncode == 0, found.stderr
    text = " ".join(found.stdout.split())
    for expected in ("68,512", "29,000", "duplicate 340", BLEU_SIGNATURE, "model.safetensors", "whole", "average of 5"):
        assert expected in text
    assert found.stderr == ""


def test_json_is_one_object_with_scores_and_signatures(trained: RunDir) -> None:
    found = json.loads(run_info(trained.path, "--json").stdout)
    assert found["state"] == "trained"
    assert found["whole"] is True
    assert found["model"]["parameters"] == 68512
    assert found["scores"][0]["signature"] == BLEU_SIGNATURE
    assert found["config"]["model"]["d_model"] == 32
    assert {check["name"]: check["state"] for check in found["files"]}["config.toml"] == "whole"


def test_parameters_in_the_weights_equal_the_formula(trained: RunDir) -> None:
    from seqtool.model.counting import count_parameters

    card = read_card(trained)
    assert card.config is not None
    assert card.vocabulary is not None
    assert card.n_parameters == count_parameters(card.config.model, *card.vocabulary).total


@pytest.mark.parametrize("name", ["config.toml", "tokenizer.model", "model.safetensors"])
def test_one_changed_byte_in_any_file_is_found_and_named(tmp_path: Path, trained: RunDir, name: str) -> None:
    for path in trained.path.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    found = run_info(tmp_path, "--json")
    assert found.returncode == 1
    assert f"{name} is damaged" in found.stderr
    assert json.loads(found.stdout)["problems"] == [f"{name} is damaged"]


def test_a_missing_file_is_named(tmp_path: Path, trained: RunDir) -> None:
    for path in trained.path.iterdir():
        if path.name != "tokenizer.model":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    found = run_info(tmp_path)
    assert found.returncode == 1
    assert "tokenizer.model is missing" in found.stderr


def test_a_run_in_training_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", finished=False)
    with open(run.metrics, "a") as file:
        file.write('{"kind": "train", "step": 3050, "lo')  # cut short by a crash
    found = run_info(run.path)
    assert found.returncode == 0, found.stderr
    assert "in training" in found.stdout
    assert "3,000 steps" in found.stdout
    assert BLEU_SIGNATURE in found.stdout
    assert json.loads(run_info(run.path, "--json").stdout)["model"]["parameters"] == 68512


def test_an_averaged_model_is_trained_and_finished(tmp_path: Path, trained: RunDir) -> None:
    from seqtool.translation.average import average

    averaged = average([trained.path, trained.path], tmp_path / "mean")
    found = run_info(averaged.path)
    assert "trained" in found.stdout
    assert "average of 2 checkpoints" in found.stdout
    assert "not finished" not in found.stdout
    card = json.loads(run_info(averaged.path, "--json").stdout)
    assert (card["state"], card["training"]["finished"]) == ("trained", True)


def test_what_is_no_run_is_an_error(tmp_path: Path) -> None:
    found = run_info(tmp_path / "none")
    assert (found.returncode, found.stdout) == (1, "")
    assert "no such run directory" in found.stderr
    found = run_info(tmp_path)
    assert found.returncode == 1
    assert "no config.toml" in found.stderr
