"""The report in a real browser: no errors, the selectors work, all fits at desktop and phone width, light and dark."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import run_browser, set_screen
from synthetic_run import make_run

from seqtool.evaluation.report.report import write_report
from seqtool.evaluation.report.side_by_side import write_side_by_side
from seqtool.run_directory import RunDir

SIZES = {"desktop": (1280, 900), "phone": (375, 700), "wide phone": (390, 800)}

# Pairs of texts of one picture whose boxes overlap by more than a hair.
OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll("svg.curves, svg.bars")) {
  const boxes = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
  boxes.forEach(([a, one], i) => boxes.slice(i + 1).forEach(([b, two]) => {
    const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left);
    const high = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
    if (wide > 1 && high > 3) found.push(a + " / " + b);
  }));
}
return found;
"""
# What has to be scrolled sideways by itself, but for the attention maps, whose size is the sentence's.
SCROLLING = """
return [...document.querySelectorAll(".scroll:not(.map)")].filter((e) => e.scrollWidth > e.clientWidth)
  .map((e) => e.textContent.slice(0, 80));
"""
# Texts of a chart that stick out of the card around it.
STICKING_OUT = """
return [...document.querySelectorAll(".chart")].flatMap((card) => {
  const frame = card.getBoundingClientRect();
  return [...card.querySelectorAll("text, figcaption *")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left || box.right > frame.right || box.bottom > frame.bottom;
  }).map((text) => text.textContent);
});
"""
# The contrast (WCAG) of every kind of text against what it stands on.
CONTRAST = """
const parse = (color) => color.match(/[0-9.]+/g).slice(0, 3).map(Number);
const light = (color) => parse(color).map((v) => v / 255)
  .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const color = getComputedStyle(e).backgroundColor;
    if (color !== "rgba(0, 0, 0, 0)") return color;
  }
  return "rgb(255, 255, 255)";
};
const names = "h1, h2, h3, .lead, .note, .tile b, .tile span, .key, th, td, dt, dd, mark, .rank, summary, select, text";
const shown = [...document.querySelectorAll(names)].filter((e) => e.textContent.trim() && e.getClientRects().length);
return shown.map((e) => {
  const style = getComputedStyle(e);
  const [a, b] = [light(e instanceof SVGElement ? style.fill : style.color), light(behind(e))];
  return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + "." + e.getAttribute("class")];
}).sort((x, y) => x[0] - y[0])[0];
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = make_run(tmp_path_factory.mktemp("browser") / "run", prepared=True)
    write_report(run)
    return run.report.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from run_browser(tmp_path_factory.mktemp("browser"))


def open_page(browser: Any, page: str, size: str = "desktop", scheme: str = "light") -> None:
    set_screen(browser, *SIZES[size], scheme, is_phone=size != "desktop")
    browser.get(page)


def select(browser: Any, name: str, value: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element(By.ID, f"attention-{name}")).select_by_value(value)


def cells(browser: Any) -> list[str]:
    """The darkness of the cells of the map that is shown."""
    script = (
        "return [...document.querySelectorAll('.map:not([hidden]) .cell')].map((c) => c.getAttribute('fill-opacity'))"
    )
    found: list[str] = browser.execute_script(script)
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page_is_legible_without_errors_or_overlap(browser: Any, page: str, size: str, scheme: str) -> None:
    open_page(browser, page, size, scheme)
    assert browser.get_log("browser") == []
    browser.execute_script("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    assert browser.execute_script("return document.documentElement.scrollWidth") == SIZES[size][0]
    assert browser.execute_script(SCROLLING) == []
    assert browser.execute_script(OVERLAPS) == []
    assert browser.execute_script(STICKING_OUT) == []
    contrast, where = browser.execute_script(CONTRAST)
    assert contrast >= 4.5, where
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(247, 248, 250)" if scheme == "light" else "rgb(16, 20, 26)")


def test_no_request_leaves_the_page(browser: Any, page: str) -> None:
    import json

    browser.get_log("performance")
    open_page(browser, page)
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith("data:")] == [page]


def test_the_selectors_show_another_layer_head_and_sentence(browser: Any, page: str) -> None:
    open_page(browser, page)
    mean = cells(browser)
    select(browser, "layer", "1")
    layer = cells(browser)
    select(browser, "head", "2")
    head = cells(browser)
    assert mean != layer != head
    assert all(max(map(float, shown)) == 1 for shown in (mean, layer, head))
    select(browser, "sentence", "2")
    assert browser.execute_script("return document.querySelectorAll('.map:not([hidden])').length") == 1
    assert browser.execute_script("return document.querySelectorAll('.map')[2].hidden") is False
    select(browser, "sentence", "0")
    select(browser, "layer", "all")
    select(browser, "head", "all")
    assert cells(browser) == mean
    assert browser.get_log("browser") == []


def test_the_drawing_without_script_shows_the_same_mean_as_the_script(browser: Any, page: str) -> None:
    import re
    from urllib.parse import unquote, urlparse

    content = Path(unquote(urlparse(page).path)).read_text(encoding="utf-8")
    drawn = re.findall(r'<rect class="cell"[^>]*fill-opacity="([^"]+)"', content)
    open_page(browser, page)
    shown = cells(browser)
    assert [float(one) for one in shown] == pytest.approx([float(one) for one in drawn[: len(shown)]], abs=0.05)


def test_a_pointer_reads_values_from_curves_and_maps(browser: Any, page: str) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    open_page(browser, page)
    chart = browser.find_element(By.CSS_SELECTOR, "svg.curves")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    ActionChains(browser).move_to_element(chart).perform()
    tip = browser.find_element(By.CSS_SELECTOR, ".chart .tip").text.split("\n")
    assert tip[0].startswith("step ")
    assert [line.rpartition(" ")[0] for line in tip[1:]] == ["training", "validation"]
    cell = browser.find_elements(By.CSS_SELECTOR, ".map:not([hidden]) .cell")[3]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", cell)
    ActionChains(browser).move_to_element(cell).perform()
    assert "←" in browser.find_element(By.CSS_SELECTOR, ".readout").text
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("size", SIZES)
def test_runs_side_by_side_are_legible(browser: Any, tmp_path: Path, page: str, size: str) -> None:
    from urllib.parse import unquote, urlparse

    run = Path(unquote(urlparse(page).path)).parent
    other = tmp_path / "other-run-with-a-longer-name"
    shutil.copytree(run, other)
    write_side_by_side([RunDir(run), RunDir(other)], tmp_path / "page.html")
    open_page(browser, (tmp_path / "page.html").as_uri(), size)
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") == SIZES[size][0]
    assert browser.execute_script(SCROLLING) == []
    assert browser.execute_script(OVERLAPS) == []
    assert browser.execute_script(STICKING_OUT) == []
