"""Two runs on one page: curves in the same charts, scores with significance, settings and samples that differ."""

import json
import re
import shutil
from pathlib import Path

import pytest
from command_line import run_text
from synthetic_run import make_run

from seqtool.evaluation.report.side_by_side import write_side_by_side
from seqtool.evaluation.scores.comparison import SystemLines, compare_systems
from seqtool.evaluation.scores.metrics import MetricOptions
from seqtool.run_directory import RunDir


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDir, RunDir]:
    """A run, and another that translates every third sentence as the reference does."""
    folder = tmp_path_factory.mktemp("runs")
    first = make_run(folder / "first")
    second = RunDir(Path(shutil.copytree(first.path, folder / "second")))
    records = read(second)
    for record in records[::3]:
        record["hyp"] = record["ref"]
    second.valid_lines.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    config = second.config.read_text(encoding="utf-8")
    second.config.write_text(config.replace("label_smoothing = 0.1", "label_smoothing = 0.2"), encoding="utf-8")
    metrics = second.metrics.read_text(encoding="utf-8").split("\n")
    second.metrics.write_text("\n".join(metrics[: len(metrics) // 2]) + "\n", encoding="utf-8")
    return first, second


def read(run: RunDir) -> list[dict[str, str]]:
    return [json.loads(line) for line in run.valid_lines.read_text(encoding="utf-8").split("\n")[:-1]]


def test_curves_scores_settings_and_samples_are_side_by_side(runs: tuple[RunDir, RunDir], tmp_path: Path) -> None:
    done = run_text("report", *(run.path for run in runs), "-o", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path / 'page.html'}\n"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    charts = re.findall(r"<figure.*?</figure>", page)
    assert len(charts) == 4
    assert all(re.findall(r'data-name="(\w+)"', chart) == ["first", "second"] for chart in charts)
    assert "<code>train.label_smoothing</code></td><td>0.1</td><td>0.2</td>" in page
    pairs = read(runs[0])
    (bleu,) = compare_systems(
        [SystemLines(run.path.name, [record["hyp"] for record in read(run)]) for run in runs],
        [[record["ref"] for record in pairs]],
        MetricOptions(metrics=("bleu",)),
        tests=("bs",),
    )
    assert bleu.verdict(1) == "better (p < 0.001)"
    for result in bleu.results:
        assert f'<td class="number">{result.score:.2f}</td>' in page
    assert f"second is significantly better than first (BLEU {bleu.difference(1):+.2f}, p = 0.000999" in page
    shown = re.findall(r'<article class="sample (\w+)">', page)
    assert shown == ["best"] * 5  # none is worse


def test_runs_that_share_no_validation_pairs_are_compared_without_their_translations(
    runs: tuple[RunDir, RunDir], tmp_path: Path
) -> None:
    other = RunDir(Path(shutil.copytree(runs[0].path, tmp_path / "other")))
    other.valid_lines.write_text('{"src": "a", "ref": "b", "hyp": "c"}\n', encoding="utf-8")
    notes = write_side_by_side([runs[0], other], tmp_path / "page.html")
    assert notes == ["the runs have no validation pairs in common, so their translations are not compared"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h2>Training</h2>" in page
    assert "<h2>Scores</h2>" not in page


def test_folders_of_one_name_are_told_apart_and_a_page_has_room_for_six(
    runs: tuple[RunDir, RunDir], tmp_path: Path
) -> None:
    done = run_text("report", runs[0].path, runs[0].path, "-o", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert f"{runs[0].path} (2)" in (tmp_path / "page.html").read_text(encoding="utf-8")
    done = run_text("report", *[runs[0].path] * 7, "-o", tmp_path / "page.html")
    assert done.returncode == 1
    assert "7 runs are too many for one page; give at most 6" in done.stderr
    done = run_text("report", runs[0].path, "-o", tmp_path / "page.html")
    assert done.returncode == 2
    assert "the report of one run is its report.html; -o is for the page of several" in done.stderr
