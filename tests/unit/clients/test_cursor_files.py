"""An unusable cursor file is reported by name before any request is sent."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.shipped_clients import import_client
from tests.unit.clients.test_typescript_runtime import RunScript, run_script

__all__ = ["run_script"]
PAGE = {"data": [{"id": "evt_1"}], "next_cursor": "c2", "caught_up": True}
CORRUPT = [b"", b" \n", b"\xff\xfeab", b"hello\nworld", b"c1\x00\x00", "cä".encode()]


def follow_changes(path: Path) -> tuple[list[str], Exception | None]:
    """Return the cursors of the requests, and the error."""
    cursors = []

    def respond(request: httpx.Request) -> httpx.Response:
        cursors.append(request.url.params.get("cursor"))
        return httpx.Response(200, json=PAGE)

    with import_client().Joinery("http://x", "k", transport=httpx.MockTransport(respond)) as client:
        try:
            next(iter(client.changes.follow("begin", path)))
        except (ValueError, OSError) as error:
            return cursors, error
    return cursors, None


def follow_with_script(run_script: RunScript, path: Path) -> tuple[list[str], Any]:
    cursors, error = run_script("cursorFile", str(path))
    return cursors, error


@pytest.mark.parametrize("content", CORRUPT)
def test_a_corrupt_cursor_file_is_reported(run_script: RunScript, tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "cursor.txt"
    place.write_bytes(content)
    for cursors, error in (follow_changes(place), follow_with_script(run_script, place)):
        assert cursors == [] and str(place) in str(error) and "contains no cursor" in str(error)


def test_a_cursor_file_without_a_folder_is_reported(run_script: RunScript, tmp_path: Path) -> None:
    place = tmp_path / "no" / "cursor.txt"
    for cursors, error in (follow_changes(place), follow_with_script(run_script, place)):
        assert cursors == [] and "does not exist" in str(error) and str(place.parent) in str(error)
    for cursors, error in (follow_changes(tmp_path), follow_with_script(run_script, tmp_path)):
        assert cursors == [] and error is not None


def test_valid_cursor_files_are_read(run_script: RunScript, tmp_path: Path) -> None:
    place = tmp_path / "cursor.txt"
    assert follow_changes(place) == (["begin"], None) and follow_with_script(run_script, place) == (["begin"], None)
    place.write_bytes(b"c1\n")
    assert follow_changes(place) == (["c1"], None) and follow_with_script(run_script, place) == (["c1"], None)
