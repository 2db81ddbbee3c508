"""The paired tests are sacreBLEU's own: compared with the real command, p-value for p-value."""

import random
import sys
from pathlib import Path

import pytest
from command_line import run_command

from seqtool.errors import SeqtoolError
from seqtool.evaluation.scores.comparison import (
    Comparison,
    PairedResult,
    SystemLines,
    compare_systems,
    conclude,
    format_p,
    significance_level,
    unique_names,
)
from seqtool.evaluation.scores.metrics import MetricOptions

TITLES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}


def make_systems(folder: Path, n_lines: int = 80) -> tuple[list[Path], Path]:
    """A reference and three translations: one with some words lost, one with a few more lost, one much worse."""
    rng = random.Random(11)
    words = ["the", "cat", "sees", "a", "small", "house", "and", "two", "old", "dogs", "near", "the", "river"]
    reference = [rng.choices(words, k=rng.randint(3, 12)) for _ in range(n_lines)]
    paths = []
    for name, kept in (("ours", 0.9), ("near", 0.89), ("worse", 0.5)):
        lines = [" ".join(word for word in line if rng.random() < kept) for line in reference]
        paths.append(folder / f"{name}.txt")
        paths[-1].write_text("".join(line + "\n" for line in lines))
    (folder / "ref.txt").write_text("".join(" ".join(line) + "\n" for line in reference))
    return paths, folder / "ref.txt"


def read(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1]


@pytest.mark.parametrize(("test", "n_samples", "seed"), [("bs", 300, "77"), ("ar", 400, "12345")])
def test_the_comparison_equals_the_sacrebleu_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str, n_samples: int, seed: str
) -> None:
    paths, reference = make_systems(tmp_path)
    monkeypatch.setenv("SACREBLEU_SEED", seed)
    command = [sys.executable, "-m", "sacrebleu", str(reference), "-i", *map(str, paths), "-m", "bleu", "chrf", "ter"]
    command += [f"--paired-{test}", f"--paired-{test}-n", str(n_samples), "--quiet", "--no-color"]
    # (its JSON form fails on the bootstrap's numpy numbers, so the table is read)
    command += ["--format", "latex", "--width", "8"]
    theirs = run_command(command, capture_output=True, text=True, check=True).stdout
    rows = [line.removesuffix("\\\\").split("&")[1:] for line in theirs.split("\n") if ".txt" in line and "&" in line]
    ours = compare_systems(
        [SystemLines(str(path), read(path)) for path in paths],
        [read(reference)],
        MetricOptions(metrics=("bleu", "chrf", "ter")),
        tests=[test],
        n_resamples=n_samples,
        n_trials=n_samples,
    )
    assert [comparison.metric for comparison in ours] == list(TITLES)
    assert len(rows) == len(paths)
    for column, comparison in enumerate(ours):
        assert [cell_text(result) for result in comparison.results] == [row[column].strip() for row in rows]
        assert f" - {TITLES[comparison.metric]:<10} {comparison.signature}\n" in theirs


def cell_text(result: PairedResult) -> str:
    """One cell of sacreBLEU's table."""
    text = f"{result.score:.8f}"
    text += "" if result.mean is None else f" ({result.mean:.8f} ± {result.interval:.8f})"
    if result.p_value is not None:
        text += f" (p = {result.p_value:.4f})" + ("*" if result.p_value <= 0.05 else "")
    return text


def test_the_verdict_says_which_is_better_and_at_what_level(tmp_path: Path) -> None:
    paths, reference = make_systems(tmp_path)
    systems = [SystemLines(path.stem, read(path)) for path in paths]
    bleu, ter = compare_systems(
        systems, [read(reference)], MetricOptions(metrics=("bleu", "ter")), tests=["ar"], n_trials=2000
    )
    assert [bleu.verdict(row) for row in range(3)] == ["baseline", "no significant difference", "worse (p < 0.001)"]
    assert bleu.difference(2) < 0 < ter.difference(2)
    assert ter.verdict(2) == "worse (p < 0.001)"
    assert bleu.to_json()["systems"][2]["level"] == 0.001


def test_levels_are_the_strictest_that_hold() -> None:
    assert [significance_level(p) for p in (0.0001, 0.001, 0.02, 0.05, 0.6)] == [0.001, 0.01, 0.05, None, None]


def compared(test: str, metric: str, difference: float, p_value: float) -> Comparison:
    """One test of one metric over two systems."""
    results = (PairedResult(50.0, None), PairedResult(50.0 + difference, p_value))
    return Comparison(test, metric, "", ("a.de", "b.de"), results)


def test_the_conclusion_is_one_sentence_in_plain_words() -> None:
    both = [compared(test, "bleu", 2.5, p) for test, p in (("bs", 0.001), ("ar", 0.0004))]
    assert conclude(both, 1) == "b.de is significantly better than a.de (BLEU +2.50, p = 0.001)."
    assert conclude([compared("bs", "ter", 3.0, 0.02)], 1) == (
        "b.de is significantly worse than a.de (TER +3.00, p = 0.02)."  # of TER less is better
    )
    neither = [compared("bs", "bleu", -0.1, 0.4), compared("bs", "chrf", 0.2, 0.31)]
    assert conclude(neither, 1) == (
        "b.de and a.de do not differ significantly (BLEU -0.10, p = 0.4; chrF +0.20, p = 0.31)."
    )
    assert conclude([*both, *neither[1:]], 1) == (
        "b.de is significantly better than a.de (BLEU +2.50, p = 0.001), "
        "the other differences are not significant (chrF +0.20, p = 0.31)."
    )
    unsure = [compared("bs", "bleu", 1.0, 0.04), compared("ar", "bleu", 1.0, 0.06)]
    assert conclude(unsure, 1) == "the tests of b.de and a.de disagree (BLEU +1.00, p = 0.06)."


def test_equal_translations_do_not_differ() -> None:
    lines = ["a b c d e", "f g h i j", "k l m n o"]
    systems = [SystemLines(name, lines) for name in ("one", "same")]
    options = MetricOptions(metrics=("bleu", "ter"))
    found = compare_systems(systems, [["a b c d", "f g h i", "k l m"]], options, n_resamples=100, n_trials=100)
    assert {comparison.verdict(1) for comparison in found} == {"no difference"}
    assert conclude(found, 1) == "same and one do not differ significantly (BLEU equal; TER equal)."


def test_a_p_value_shows_on_which_side_of_a_level_it_is() -> None:
    assert format_p(1 / 1001) == "0.000999"  # the least of 1000 resamples, and below 0.001
    assert [format_p(p) for p in (0.0456, 0.0499999, 0.05, 1.0)] == ["0.0456", "0.05", "0.05", "1"]


def test_a_system_with_other_lines_is_named() -> None:
    with pytest.raises(SeqtoolError, match=r"^short: the translation has 1 lines but the reference has 2"):
        compare_systems(
            [SystemLines("whole", ["a", "b"]), SystemLines("short", ["a"])], [["a", "b"]], MetricOptions(), n_trials=10
        )


def test_one_system_is_not_a_comparison() -> None:
    with pytest.raises(SeqtoolError, match="add one with vs"):
        compare_systems([SystemLines("alone", ["a"])], [["a"]], MetricOptions())


def test_systems_with_the_same_name_are_numbered() -> None:
    assert unique_names(["a", "b", "a", "a"]) == ["a", "b", "a (2)", "a (3)"]
