"""The shipped Python client imports only its own modules, the standard library and httpx."""

import ast
import sys
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[3] / "entrypoints" / "clients" / "python" / "runtime"
ALLOWED = sys.stdlib_module_names | {"httpx"}


def find_foreign_imports(text: str) -> list[str]:
    """Return the imported modules that do not belong to the client."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append("." * node.level + (node.module or ""))
    return [name for name in found if not _is_own(name) and name.partition(".")[0] not in ALLOWED]


def _is_own(name: str) -> bool:
    """Return whether the import is of the runtime; imports from a parent package are not."""
    return name.startswith(".") and not name.startswith("..")


@pytest.mark.parametrize("file", sorted(RUNTIME.rglob("*.py")), ids=lambda file: file.name)
def test_modules_import_only_allowed_modules(file: Path) -> None:
    assert find_foreign_imports(file.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "import domain.kernel",
        "from entrypoints.http import codes",
        "def f():\n    import msgspec",
        "from .. import version",
    ],
)
def test_foreign_imports_are_detected(text: str) -> None:
    assert len(find_foreign_imports(text)) == 1
