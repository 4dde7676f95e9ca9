"""docs/failures.md names no test that is not there, and says nothing that no test shows."""

import ast
import re
from functools import cache

import pytest

from tests.project.sources import ROOT

PAGE = (ROOT / "docs" / "failures.md").read_text()
INSIDE, _, OUTSIDE = PAGE.partition("\n## Not here, and why\n")
LINE = re.compile(r'- <a id="([a-z0-9-]+)"></a>\*\*([A-Z0-9"].+?)\*\* (.+)')
NAMED = re.compile(r"`(tests/[^`]+)`")
Classes = dict[str, ast.ClassDef]


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("-")]


@cache
def contracts() -> Classes:
    """Suites of their own, run by the classes that are held to them."""
    files = sorted((ROOT / "tests" / "store" / "contracts").glob("*.py"))
    bodies = [body_of(str(file.relative_to(ROOT))) for file in files]
    return {node.name: node for body in bodies for node in body if isinstance(node, ast.ClassDef)}


@cache
def body_of(file: str) -> list[ast.stmt]:
    return ast.parse((ROOT / file).read_bytes()).body


def names_in(body: list[ast.stmt]) -> set[str]:
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def named_by(one: ast.ClassDef) -> set[str]:
    """Its own, and those of the contracts it is held to."""
    bases = [contracts().get(ast.unparse(base).rpartition(".")[2]) for base in one.bases]
    return names_in(one.body).union(*(named_by(base) for base in bases if base))


def is_there(test: str) -> bool:
    file, *inner, name = test.split("::")
    path = ROOT / file
    if not (path.is_file() and path.name.startswith("test_") and name.startswith("test_")):
        return False
    if not inner:
        return name in names_in(body_of(file))
    found = [
        node for node in body_of(file) if isinstance(node, ast.ClassDef) and [node.name] == inner
    ]
    return any(name in named_by(node) for node in found)


@pytest.mark.parametrize("test", sorted(set(NAMED.findall(PAGE))))
def test_every_test_it_names_is_there(test: str) -> None:
    assert is_there(test)


def test_a_test_that_is_not_there_would_be_missed() -> None:
    file, contract = "tests/project/test_failures.py", "tests/store/test_postgres_contract.py"
    assert is_there(f"{file}::test_a_test_that_is_not_there_would_be_missed")
    assert is_there(f"{contract}::TestClaim::test_a_clock_set_back_hides_no_row")
    assert not is_there(f"{file}::test_nothing")
    assert not is_there(f"{file}::is_there")
    assert not is_there(f"{contract}::TestSettle::test_a_clock_set_back_hides_no_row")
    assert not is_there("tests/project/sources.py::test_nothing")


def test_no_line_is_without_what_happened_what_is_done_and_a_test() -> None:
    assert len(lines(INSIDE)) > 50
    for line in lines(INSIDE):
        assert LINE.fullmatch(line), line
        _, separator, tests = line.partition(" · ")
        assert separator, line
        assert NAMED.sub("", tests).strip() == "", line
        assert NAMED.findall(tests), line


def test_what_is_not_here_says_why() -> None:
    assert lines(OUTSIDE)
    assert all(LINE.fullmatch(line) for line in lines(OUTSIDE))


def test_every_line_can_be_pointed_at() -> None:
    anchors = re.findall(r'<a id="([^"]*)"', PAGE)
    assert len(anchors) == len(set(anchors)) == len(lines(PAGE))
