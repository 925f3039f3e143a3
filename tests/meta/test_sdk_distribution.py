"""The SDK is a separate distribution without imports of Joinery and with declared libraries only."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

SDK = Path(__file__).parents[2] / "connectors" / "sdk"
PROJECT = tomllib.loads((SDK / "pyproject.toml").read_text("utf-8"))
EXTRAS = {"readers/json_ld.py": "json-ld", "testing.py": "testing"}
"""Modules that need an extra, by extra."""
MODULES = {path.relative_to(SDK).as_posix(): ast.parse(path.read_text("utf-8")) for path in SDK.rglob("*.py")}


def list_libraries(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a module imports absolutely, without the standard library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        yield from {name.partition(".")[0] for name in names} - sys.stdlib_module_names


def list_packages(requirements: list[str]) -> set[str]:
    """Return the packages of the requirements."""
    return {re.split(r"[^A-Za-z0-9_-]", requirement)[0].replace("-", "_") for requirement in requirements}


def test_imported_libraries_are_declared() -> None:
    always = list_packages(PROJECT["project"]["dependencies"])
    extras = {name: list_packages(needed) for name, needed in PROJECT["project"]["optional-dependencies"].items()}
    used: set[str] = set()
    for module, tree in MODULES.items():
        found = set(list_libraries(tree))
        used |= found
        assert found <= always | extras.get(EXTRAS.get(module, ""), set()), module
    assert (always | set().union(*extras.values())) - used == {"pytest"}, "a library that nothing uses"


def test_modules_import_each_other_relatively() -> None:
    for module, tree in MODULES.items():
        deepest = module.count("/") + 1
        levels = [node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert max(levels, default=0) <= deepest, module


def test_every_folder_is_packaged() -> None:
    folders = {module.rpartition("/")[0] for module in MODULES}
    packages = {f"joinery_sdk.{folder.replace('/', '.')}".rstrip("."): folder or "." for folder in folders}
    tool = PROJECT["tool"]["setuptools"]
    assert tool["package-dir"] == packages
    assert set(tool["packages"]) == set(packages)
