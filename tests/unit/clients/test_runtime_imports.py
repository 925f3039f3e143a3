"""The shipped Python client stands alone: what it imports is its own, the standard library's or httpx."""

import ast
import sys
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[3] / "entrypoints" / "clients" / "python" / "runtime"
ALLOWED = sys.stdlib_module_names | {"httpx"}


def foreign(text: str) -> list[str]:
    """The modules that the text imports from elsewhere."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append("." * node.level + (node.module or ""))
    return [name for name in found if not _is_own(name) and name.partition(".")[0] not in ALLOWED]


def _is_own(name: str) -> bool:
    """Of the runtime itself; further up is another package once it is shipped."""
    return name.startswith(".") and not name.startswith("..")


@pytest.mark.parametrize("file", sorted(RUNTIME.rglob("*.py")), ids=lambda file: file.name)
def test_a_module_imports_nothing_else(file: Path) -> None:
    assert foreign(file.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "import domain.kernel",
        "from entrypoints.http import codes",
        "def f():\n    import msgspec",
        "from .. import version",
    ],
)
def test_what_it_must_not_import(text: str) -> None:
    assert len(foreign(text)) == 1
