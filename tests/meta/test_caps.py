"""Files stay small enough to read at one sitting, functions small enough to see at once, and each module says why."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = ("domain", "ports", "adapters", "connectors", "entrypoints")
SOURCES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_file_is_short_and_says_why_it_exists(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 400
    assert path.stem not in FORBIDDEN_NAMES
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring and len(docstring) > 10


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_functions_are_short(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno + 1 <= 40, f"{node.name} has more than 40 lines"
