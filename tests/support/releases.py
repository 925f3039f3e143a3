"""The last release, extracted from the Git history, to run its processes together with this release's."""

import subprocess
import tarfile
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest

LAST_RELEASE = "d8285d3530acfaf5254d92565aaaf5cc7f457b0a"
"""The commit whose processes must work with the current schema (docs/operations.md#upgrades)."""
_ROOT = Path(__file__).parents[2]


@cache
def extract_last_release(folder: Path) -> Path:
    """Extract the last release below `folder`; skip the test if the Git history does not contain it."""
    completed = subprocess.run(["git", "archive", LAST_RELEASE], cwd=_ROOT, capture_output=True, check=False)
    if completed.returncode:
        pytest.skip(f"the history lacks {LAST_RELEASE} (a shallow clone?)")
    with tarfile.open(fileobj=BytesIO(completed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder
