"""Tests of one file name can exist in several folders, since their folders are packages."""

from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_folder_of_tests_is_a_package() -> None:
    folders = {path.parent for path in TESTS.rglob("test_*.py")}
    assert len(folders) > 20
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").exists()]
