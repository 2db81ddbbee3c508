"""Scores are sacreBLEU's own: each test asks the real sacrebleu command and compares strings."""

import importlib.util
import json
import random
import sys
from pathlib import Path

import pytest
from command_line import run_command

from seqtool.errors import SeqtoolError
from seqtool.evaluation.scores.metrics import (
    METRIC_NAMES,
    MetricOptions,
    score_bleu_chrf,
    score_corpus,
    score_sentences,
)

COMBINATIONS: dict[str, tuple[dict[str, object], list[str]]] = {
    "defaults": ({}, []),
    "intl, lowercase, floor": (
        {"tokenize": "intl", "lowercase": True, "smooth_method": "floor", "smooth_value": 0.2},
        ["--tokenize", "intl", "--lowercase", "--smooth-method", "floor", "--smooth-value", "0.2"],
    ),
    "char, add-k, chrF of letters alone": (
        {"tokenize": "char", "smooth_method": "add-k", "chrf_char_order": 4, "chrf_lowercase": True},
        ["--tokenize", "char", "--smooth-method", "add-k", "--chrf-char-order", "4", "--chrf-lowercase"],
    ),
    "none, TER with case and without punctuation": (
        {"tokenize": "none", "smooth_method": "none", "ter_case_sensitive": True, "ter_no_punct": True},
        ["--tokenize", "none", "--smooth-method", "none", "--ter-case-sensitive", "--ter-no-punct"],
    ),
    "zh, whitespace in chrF, TER normalized, confidence": (
        {"tokenize": "zh", "chrf_whitespace": True, "chrf_beta": 3, "ter_normalized": True, "confidence": 50},
        [
            "--tokenize",
            "zh",
            "--chrf-whitespace",
            "--chrf-beta",
            "3",
            "--ter-normalized",
            "-ci",
            "--confidence-n",
            "50",
        ],
    ),
}


def make_texts(n_lines: int = 60) -> tuple[list[str], list[list[str]]]:
    """A translation with errors, an empty line and trailing blanks, and two reference sets."""
    rng = random.Random(4)
    text = "The the cat sees a small house, Ärger über Straße 3.5 dogs; however (never) they're said: 'no' 世界 ."
    words = text.split()
    reference = [" ".join(rng.choices(words, k=rng.randint(1, 15))) for _ in range(n_lines)]
    other = [" ".join(line.split()[::-1]) for line in reference]
    hypothesis = [" ".join(word for word in line.split() if rng.random() > 0.15) for line in reference]
    hypothesis[3] = ""
    hypothesis[5] += " \t\r"
    reference[7] += "\u2028"
    return hypothesis, [reference, other]


def run_sacrebleu(folder: Path, hypothesis: list[str], references: list[list[str]], *options: str) -> str:
    names = []
    for number, lines in enumerate([hypothesis, *references]):
        (folder / f"{number}.txt").write_bytes("".join(line + "\n" for line in lines).encode())
        names.append(str(folder / f"{number}.txt"))
    command = [sys.executable, "-m", "sacrebleu", *names[1:], "-i", names[0], "--no-color", "--quiet", *options]
    return run_command(command, capture_output=True, text=True, check=True).stdout.rstrip("\n")


@pytest.mark.parametrize("name", COMBINATIONS)
def test_scores_and_signatures_equal_the_sacrebleu_command_string_for_string(tmp_path: Path, name: str) -> None:
    changes, flags = COMBINATIONS[name]
    hypothesis, references = make_texts()
    scores = {
        score.name: score
        for score in score_corpus(hypothesis, references, MetricOptions(**changes))  # type: ignore[arg-type]
    }
    assert tuple(scores) == METRIC_NAMES
    for metrics in (("bleu", "chrf", "ter"), ("chrf++",)):
        chosen = ["--metrics", *(metric.rstrip("+") for metric in metrics)]
        chosen += ["--chrf-word-order", "2"] if "chrf++" in metrics else []
        text = run_sacrebleu(tmp_path, hypothesis, references, *flags, *chosen, "--format", "text")
        assert [scores[metric].text for metric in metrics] == [line.strip() for line in text.split("\n")]
        found = json.loads(run_sacrebleu(tmp_path, hypothesis, references, *flags, *chosen, "--width", "9"))
        for metric, theirs in zip(metrics, found if len(metrics) > 1 else [found], strict=True):
            ours = scores[metric].to_json(width=9)
            assert (ours["score"], ours["signature"]) == (theirs["score"], theirs["signature"])
            if "confidence" in changes:
                assert ours["confidence_mean"] == theirs["confidence_mean"]
                assert ours["confidence_interval"] == theirs["confidence_var"]


def test_sentence_scores_equal_the_sacrebleu_command(tmp_path: Path) -> None:
    hypothesis, references = make_texts(20)
    ours = score_sentences(hypothesis, references)
    for metric, values in (("chrf", [score.chrf for score in ours]), ("bleu", [score.bleu for score in ours])):
        flags = ["--sentence-level", "--metrics", metric, "--score-only", "--width", "6"]
        theirs = run_sacrebleu(tmp_path, hypothesis, references, *flags)
        assert [f"{value:.6f}" for value in values] == theirs.split("\n")


def test_the_validation_score_is_the_default_score() -> None:
    hypothesis, references = make_texts()
    bleu, chrf = score_bleu_chrf(hypothesis, references)
    by_name = {score.name: score for score in score_corpus(hypothesis, references)}
    assert bleu == by_name["bleu"]
    assert chrf == by_name["chrf"]


def test_a_different_number_of_lines_is_an_error() -> None:
    with pytest.raises(SeqtoolError, match=r"has 2 lines but reference 2 has 1;"):
        score_corpus(["a", "b"], [["a", "b"], ["a"]])


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(SeqtoolError, match="no lines"):
        score_corpus([], [[]])
    with pytest.raises(SeqtoolError, match="no reference"):
        score_corpus(["a"], [])


def test_an_unknown_metric_or_tokenizer_suggests_a_known_one() -> None:
    with pytest.raises(SeqtoolError, match="unknown metric 'blue'; did you mean 'bleu'"):
        MetricOptions(metrics=("blue",))
    with pytest.raises(SeqtoolError, match="unknown tokenizer '13b'; did you mean '13a'"):
        MetricOptions(tokenize="13b")


@pytest.mark.skipif(importlib.util.find_spec("MeCab") is not None, reason="MeCab is installed")
def test_a_tokenizer_that_is_not_installed_is_named() -> None:
    with pytest.raises(SeqtoolError, match="cannot load the tokenizer 'ja-mecab'"):
        score_corpus(["a"], [["a"]], MetricOptions(tokenize="ja-mecab"))
