"""The list of mutations that `make mutation-test` tries still fits the code."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests" / "deep"))

from mutation import Mutation  # noqa: E402
from mutations import MUTATIONS  # noqa: E402


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_changes_one_place_and_names_tests(mutation: Mutation, tmp_path: Path) -> None:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    path = tmp_path / mutation.file
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    mutation.apply(tmp_path)  # raises where the code has changed: give the mutation its new text
    assert ast.dump(ast.parse(path.read_text(encoding="utf-8"))) != ast.dump(ast.parse(text))
    for file, _, test in (name.partition("::") for name in mutation.tests):
        assert (
            f"def {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")
            if test
            else (ROOT / "tests" / file).is_file()
        )


def test_a_text_that_is_not_there_exactly_once_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n")
    for old, times in (("x = 1", 2), ("x = 2", 0)):
        with pytest.raises(ValueError, match=f"{times} times"):
            Mutation(name="m", file="a.py", old=old, new="x = 3", tests=()).apply(tmp_path)
