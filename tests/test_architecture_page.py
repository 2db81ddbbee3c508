"""docs/architecture.md names files and folders: each of them exists, and no room or module beside them is missing."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_path_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:seqtool|tests|docs|benchmarks)/[\w./-]*)`", PAGE)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_room_is_named() -> None:
    modules = {f"seqtool/{path.name}" for path in (ROOT / "seqtool").glob("[!_]*.py")}
    assert [module for module in sorted(modules) if f"`{module}`" not in PAGE] == []
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "seqtool").glob("**/*.py")}
    rooms = {f"{folder}/" for folder in folders if folder != Path("seqtool")}
    parents = {"seqtool/corpus/", "seqtool/translation/", "seqtool/evaluation/"}
    assert [room for room in sorted(rooms - parents) if room not in PAGE] == []


def test_every_name_of_a_class_that_the_page_uses_is_defined() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "seqtool").glob("**/*.py"))
    classes = set(re.findall(r"`([A-Z]\w+[a-z])`", PAGE))
    assert classes
    assert [name for name in sorted(classes) if f"class {name}" not in source] == []
