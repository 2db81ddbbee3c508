"""The length penalty that training chooses by validation, and that translation then uses."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from small_run import run_to_end, train_command, write_corpus
from tiny_run import make_run

from seqtool import Translator
from seqtool.evaluation.scores.metrics import score_bleu_chrf
from seqtool.manifest import ModelFacts
from seqtool.run_directory import RunDir
from seqtool.training.finishing import Candidate, Choice, choose_length_penalty
from seqtool.training.validation import Validation, Validator
from seqtool.translation.average import average


class ScoreTable:
    """A validator whose BLEU is a function of the length penalty; remembers what it was asked."""

    def __init__(self, bleu: Callable[[float], float]) -> None:
        self.bleu = bleu
        self.asked: list[float] = []

    def run(self, weights: Any, beam: int, length_penalty: float = 1.0) -> Validation:
        self.asked.append(length_penalty)
        bleu, chrf = score_bleu_chrf(["a"], [["a"]])
        return Validation(1.0, replace(bleu, score=self.bleu(length_penalty)), chrf, ["a"], {})


@pytest.mark.parametrize(
    ("bleu", "chosen", "tried"),
    [
        (lambda p: -((p - 0.6) ** 2), 0.5, [1.5, 0.5, 0.0]),  # down to the top, and one step beyond it
        (lambda p: -p, 0.0, [1.5, 0.5, 0.0]),  # down, but not below none at all
        (lambda p: p, 1.5, [1.5]),  # not beyond the highest
        (lambda p: 30.0, 1.0, [1.5, 0.5]),  # what is no better is not taken
    ],
)
def test_the_walk_ends_at_the_best_penalty(bleu: Callable[[float], float], chosen: float, tried: list[float]) -> None:
    table = ScoreTable(bleu)
    start = Choice(Candidate("last", 1, {}), table.run({}, 5), {"last": 1.0})
    table.asked.clear()
    found = choose_length_penalty(start, cast(Validator, table), 5, "bleu")
    assert (found.length_penalty, table.asked) == (chosen, tried)
    assert found.validation.bleu.score == bleu(chosen)
    assert (found.candidate, found.scores) == (start.candidate, start.scores)


def put_into_manifest(run: RunDir, penalty: float) -> None:
    run.write_manifest(replace(run.read_manifest(), model=ModelFacts(length_penalty=penalty)))


def test_translation_uses_what_training_chose_unless_told_otherwise(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert Translator.load(run.path, engine="torch").make_options().length_penalty == 1.0
    put_into_manifest(run, 2.5)
    translator = Translator.load(run.path, engine="torch")
    assert translator.make_options().length_penalty == 2.5
    assert translator.describe()["length_penalty"] == 2.5
    assert translator.make_options(length_penalty=0.4).length_penalty == 0.4
    text = run.config.read_text(encoding="utf-8")
    assert 'length_penalty = "auto"' in text
    run.config.write_text(text.replace('length_penalty = "auto"', "length_penalty = 0.7"), encoding="utf-8")
    assert Translator.load(run.path, engine="torch").make_options().length_penalty == 0.7


def test_an_average_keeps_the_penalty_of_its_first_model(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, seed=seed) for seed, name in enumerate(("one", "two"))]
    put_into_manifest(runs[0], 2.0)
    mean = average([run.path for run in runs], tmp_path / "mean")
    assert Translator.load(mean.path, engine="torch").make_options().length_penalty == 2.0


def test_a_penalty_that_the_user_gave_is_not_chosen_anew(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    settings = {"train_steps": 2, "decode_length_penalty": 0.3}
    said = run_to_end(train_command(write_corpus(tmp_path), run.path, **settings)).stderr
    assert "chosen by validation" not in said
    assert run.read_manifest().model.length_penalty is None
    assert Translator.load(run.path).make_options().length_penalty == 0.3
