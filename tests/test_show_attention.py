"""seqtool translate --show-attention: the translation stays as it is, and the first line's attention is drawn."""

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import run_text
from synthetic_run import make_run

from seqtool.run_directory import RunDir

LINES = "\nThe child has seen the dog.\nMy sister has found it.\n"


def run_translate(*arguments: object, lines: str = LINES) -> subprocess.CompletedProcess[str]:
    return run_text("translate", "--engine", "torch", "--beam", "1", *arguments, stdin=lines)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return make_run(tmp_path_factory.mktemp("attention") / "run")


def test_the_map_of_the_first_line_is_written_and_the_output_is_the_same(run: RunDir, tmp_path: Path) -> None:
    picture = tmp_path / "map.svg"
    plain = run_translate("-m", run.path)
    found = run_translate("-m", run.path, "--show-attention", picture)
    assert found.returncode == 0, found.stderr
    assert found.stdout == plain.stdout
    assert found.stdout.count("\n") == 3
    texts = [text.text for text in ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text")]
    first_line = "".join(text or "" for text in texts)
    assert "▁The" in first_line
    assert "▁sister" not in first_line


def test_a_dash_draws_with_characters_on_stderr(run: RunDir) -> None:
    found = run_translate("-m", run.path, "--show-attention", "-")
    assert found.returncode == 0, found.stderr
    assert "│" in found.stderr
    assert "│" not in found.stdout


def test_lines_that_are_too_long_to_draw_are_passed_over(run: RunDir, tmp_path: Path) -> None:
    picture = tmp_path / "map.svg"
    found = run_translate("-m", run.path, "--show-attention", picture, lines="the dog " * 2000 + LINES)
    assert found.returncode == 0, found.stderr
    assert picture.stat().st_size < 1_000_000
    texts = ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text")
    assert "▁child" in "".join(text.text or "" for text in texts)


def test_what_cannot_be_drawn_is_a_clear_error(run: RunDir, tmp_path: Path) -> None:
    found = run_translate("-m", run.path, "--show-attention", tmp_path / "none" / "map.svg")
    assert (found.returncode, found.stdout) == (1, "")
    assert "folder that exists" in found.stderr
    for name in ("map.png", "map"):
        found = run_translate("-m", run.path, "--show-attention", tmp_path / name)
        assert (found.returncode, found.stdout) == (2, "")
        assert "a name that ends in .svg" in found.stderr
    found = run_translate("-m", run.path, "--show-attention", "-", lines="\n")
    assert found.returncode == 1
    assert "there is no line to draw" in found.stderr
