"""The report's parts: charts with readable axes, maps, and a page that is whole and safe."""

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import SEQTOOL, run_command
from hypothesis import example, given
from hypothesis import strategies as st
from synthetic_run import BLEU_SIGNATURE, CHRF_SIGNATURE, make_run

from seqtool.evaluation.report.attention_map import attention_svg, attention_text
from seqtool.evaluation.report.attention_reading import AttentionReader, choose_maps
from seqtool.evaluation.report.charts import Bar, Series, bar_chart, format_number, line_chart, nice_ticks, thin_out
from seqtool.evaluation.report.history import History, read_history
from seqtool.evaluation.report.parts import curves, mark_differences
from seqtool.evaluation.report.report import write_report
from seqtool.run_directory import RunDir

WEIGHTS = [[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = make_run(tmp_path_factory.mktemp("report") / "run", prepared=True)
    assert write_report(run) == []
    return run


class PageReader(HTMLParser):
    """Collects what a page links to and whether its tags are balanced."""

    VOID = ("meta", "link", "br", "img", "input", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_one_small_file_without_outside_resources(run: RunDir) -> None:
    page = run.report.read_text(encoding="utf-8")
    assert len(page.encode()) < 2_000_000
    reader = PageReader()
    reader.feed(page)
    assert reader.open == []
    assert reader.links == ["data:,"]
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/2000/svg", "", page)
    assert "@import" not in page
    assert "url(" not in page


def test_the_page_shows_curves_scores_samples_and_maps(run: RunDir) -> None:
    page = run.report.read_text(encoding="utf-8")
    for expected in ("Loss per token", "Validation scores", "Learning rate", "Speed", "BLEU by source length"):
        assert expected in page
    assert "Gradient norm: before clipping from 0.8 to 0.8" in page
    assert "F1 of words by frequency: " in page
    assert "BLEU on valid, beam 5" in page
    for expected in (
        BLEU_SIGNATURE,
        CHRF_SIGNATURE,
        "29,000",
        "5b1f0c0a9be7",
        "beam 5",
        "batch_tokens",
        "average of 5",
    ):
        assert expected in page
    assert len(re.findall(r'<article class="sample (best|median|worst)"', page)) == 12
    assert len(re.findall(r'<svg [^>]*class="attention"', page)) == 6


def test_the_page_shows_what_check_found_and_which_setting_drops_it(run: RunDir) -> None:
    page = run.report.read_text(encoding="utf-8")
    rows = re.findall(r"<tr>(.*?)</tr>", page.split("What check found in the corpus")[1].split("</section>")[0])
    cells = [[re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row)] for row in rows[1:]]
    assert cells == [
        ["repeated pair", "340", "1.16 %", "dropped", "clean.duplicate"],
        ["empty side", "12", "0.04 %", "dropped", "clean.empty"],
        ["other numbers", "130", "2.60 %", "left in", "clean.numbers"],
        ["swapped sides", "4", "0.08 %", "left in", "clean.language"],
    ]


def test_validations_with_a_beam_of_their_own_are_named() -> None:
    history = History(valid=({"step": 5, "bleu": 3.0, "decoding": {"beam": 1}},))
    assert "Validation scores with beam 1" in curves(history)
    assert "Validation scores:" in curves(History(valid=({"step": 5, "bleu": 3.0},)))


def test_text_of_the_corpus_cannot_become_markup(run: RunDir) -> None:
    page = run.report.read_text(encoding="utf-8")
    samples = "".join(re.findall(r"<article.*?</article>", page))
    assert "<b>" not in samples
    assert "&lt;b&gt;" in samples
    assert "&lt;after a signal&gt;" in page
    assert mark_differences("<i>a b", "a b & c") == (
        "<mark>&lt;i&gt;a</mark> b",
        "<mark>a</mark> b <mark>&amp; c</mark>",
    )


def test_attention_data_holds_the_models_own_weights(run: RunDir) -> None:
    page = run.report.read_text(encoding="utf-8")
    found = re.search(r'id="attention-data">(.*?)</script>', page, re.DOTALL)
    assert found
    import base64

    first = json.loads(found[1])[0]
    weights = base64.b64decode(first["weights"])
    assert len(weights) == first["layers"] * first["heads"] * first["rows"] * first["columns"]
    row = [value / 255 for value in weights[: first["columns"]]]
    assert sum(row) == pytest.approx(1, abs=first["columns"] / 255)


def test_maps_prefer_sentences_whose_order_changes(run: RunDir) -> None:
    reader = AttentionReader(run.path)
    nouns = ("child", "man", "woman", "teacher", "sister")
    pairs = [(f"The {noun} has seen the dog.", "Das Kind hat den Hund gesehen.") for noun in nouns]
    crossings = [reader.read(*pair).crossing for pair in pairs]
    ranked = sorted(range(len(pairs)), key=lambda index: -crossings[index])
    assert ranked[:2] != [0, 1]  # or the order of the pairs would do
    first_of_the_rest = min(ranked[2:])
    maps = choose_maps(reader, pairs, n_maps=3)
    assert [one.src_text for one in maps] == [pairs[index][0] for index in (*ranked[:2], first_of_the_rest)]


def test_a_map_holds_a_distribution_for_each_target_token(run: RunDir) -> None:
    reader = AttentionReader(run.path)
    pairs = [("The child has seen the dog.", "Das Kind hat den Hund gesehen."), ("The dog", "Hund"), ("", "")]
    (one,) = choose_maps(reader, pairs)
    assert one.weights.shape == (3, 4, len(one.tgt_tokens), len(one.src_tokens))
    assert one.weights.sum(axis=-1) == pytest.approx(1, abs=1e-4)
    assert "".join(one.tgt_tokens[:-1]).replace("▁", " ").strip() == "Das Kind hat den Hund gesehen."
    assert 0 <= one.crossing <= 1


def test_a_run_in_training_gets_a_report_of_what_is_there(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", finished=False)
    notes = write_report(run)
    assert len(notes) == 1
    page = run.report.read_text(encoding="utf-8")
    assert "Still in training at step 3,000" in page
    assert "Learning rate" in page


def test_the_command_writes_the_page_and_prints_its_path(run: RunDir, tmp_path: Path) -> None:
    run.report.unlink()
    command = [*SEQTOOL, "report", str(run.path), "--no-attention"]
    found = run_command(command, capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, f"{run.report}\n"), found.stderr
    assert run.report.is_file()
    found = run_command([*command[:-2], str(tmp_path / "none")], capture_output=True, text=True)
    assert found.returncode == 1
    assert "no such run directory" in found.stderr
    write_report(run)


def test_a_step_that_was_trained_twice_counts_once(tmp_path: Path) -> None:
    records = [{"kind": "train", "step": step, "loss": loss} for step, loss in ((1, 5.0), (2, 4.0), (2, 3.0))]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records) + '{"kin')
    history = read_history(RunDir(tmp_path))
    assert history.points("train", "loss") == [(1.0, 5.0), (2.0, 3.0)]
    assert history.last_step == 2


def test_losses_that_are_not_finite_are_left_out_of_curves(tmp_path: Path) -> None:
    records = [{"kind": "valid", "step": step, "loss": loss} for step, loss in enumerate((math.nan, math.inf, 3.0))]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read_history(RunDir(tmp_path)).points("valid", "loss") == [(2.0, 3.0)]


def test_charts_are_well_formed_and_stay_inside_their_frame() -> None:
    series = [Series("a & b", [(100.0 * i, 9 - i * 0.1) for i in range(80)], 1), Series("v", [(400.0, 7.0)], 2)]
    for chart in (
        line_chart("Loss <1>", series),
        bar_chart("Score", [Bar("0-5", 31.26, "0-5 words"), Bar("6-10", 0.0, "none")], "words"),
    ):
        svg = ElementTree.fromstring(chart).find("svg")
        assert svg is not None
        _, _, width, height = map(float, svg.attrib["viewBox"].split())
        for text in svg.iter("text"):
            assert 0 <= float(text.attrib["x"]) <= width
            assert 0 <= float(text.attrib["y"]) <= height
        for path in svg.iter("path"):
            for pair in path.attrib["d"][1:].split("L"):
                x, y = map(float, pair.split(","))
                assert 0 <= x <= width
                assert 0 <= y <= height
    assert line_chart("nothing", [Series("none", [])]) == ""


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(2, 8))
@example(0.0, 5e-324, 2)
@example(1e6, math.nextafter(1e6, 2e6), 4)
def test_ticks_surround_the_values_and_are_evenly_spaced(a: float, b: float, n_wanted: int) -> None:
    low, high = min(a, b), max(a, b)
    ticks = nice_ticks(low, high, n_wanted)
    slack = 1e-6 * max(abs(low), abs(high), 1e-3)
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
    assert 2 <= len(ticks) <= 2 * n_wanted + 3
    assert len(set(ticks)) == len(ticks)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=2000))
def test_thinning_keeps_the_ends_and_stays_within_the_range(values: list[float]) -> None:
    points = [(float(x), y) for x, y in enumerate(values)]
    thin = thin_out(points, most=50)
    assert len(thin) <= 50
    assert thin[0] == points[0]
    assert thin[-1] == points[-1]
    assert min(values) - 1e-9 <= min(y for _, y in thin)
    assert max(values) + 1e-9 >= max(y for _, y in thin)


def test_numbers_on_axes_are_short() -> None:
    found = [
        format_number(value) for value in (0, 0.25, 7e-4, 950, 2000, 12500, 3_500_000, 1234, 999_600, -2e9, 1.2288e9)
    ]
    assert found == ["0", "0.25", "7e-4", "950", "2k", "12.5k", "3.5M", "1234", "1M", "-2G", "1.23G"]


def test_a_map_by_itself_is_a_whole_svg_file_with_readable_cells() -> None:
    svg = attention_svg(["▁the", "▁dog", "</s>"], ["▁den", "<Hund>"], WEIGHTS)
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    cells = [rect for rect in root.iter(f"{space}rect") if rect.attrib.get("class") == "cell"]
    assert len(cells) == 6
    assert cells[0].attrib["fill-opacity"] == "1.00"
    assert cells[0].find(f"{space}title").text == "▁den ← ▁the: 0.90"  # type: ignore[union-attr]
    assert "prefers-color-scheme" in svg


def test_a_map_as_text_shows_the_most_attended_token() -> None:
    lines = attention_text(["▁the", "▁dog", "</s>"], ["▁den", "▁Hund"], WEIGHTS).split("\n")
    assert lines == [" ▁den │██    │ ▁the 0.90", "▁Hund │░░░░▒▒│ </s> 0.50"]
