"""A cursor file that cannot be used is noticed before anything is asked, and said by its name."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.shipped_clients import imported
from tests.unit.clients.test_typescript_runtime import Ask, ask

__all__ = ["ask"]
PAGE = {"data": [{"id": "evt_1"}], "next_cursor": "c2", "caught_up": True}
TORN = [b"", b" \n", b"\xff\xfeab", b"hello\nworld", b"c1\x00\x00", "cä".encode()]


def followed(place: Path) -> tuple[list[str], Exception | None]:
    """The cursors that are asked for, and the error."""
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params.get("cursor"))
        return httpx.Response(200, json=PAGE)

    with imported().Joinery("http://x", "k", transport=httpx.MockTransport(answer)) as client:
        try:
            next(iter(client.changes.follow("begin", place)))
        except (ValueError, OSError) as error:
            return asked, error
    return asked, None


def scripted(ask: Ask, place: Path) -> tuple[list[str], Any]:
    asked, error = ask("cursorFile", str(place))
    return asked, error


@pytest.mark.parametrize("content", TORN)
def test_a_torn_one(ask: Ask, tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "cursor.txt"
    place.write_bytes(content)
    for asked, error in (followed(place), scripted(ask, place)):
        assert asked == [] and str(place) in str(error) and "contains no cursor" in str(error)


def test_one_without_its_folder(ask: Ask, tmp_path: Path) -> None:
    place = tmp_path / "no" / "cursor.txt"
    for asked, error in (followed(place), scripted(ask, place)):
        assert asked == [] and "does not exist" in str(error) and str(place.parent) in str(error)
    for asked, error in (followed(tmp_path), scripted(ask, tmp_path)):
        assert asked == [] and error is not None


def test_good_ones(ask: Ask, tmp_path: Path) -> None:
    place = tmp_path / "cursor.txt"
    assert followed(place) == (["begin"], None) and scripted(ask, place) == (["begin"], None)
    place.write_bytes(b"c1\n")
    assert followed(place) == (["c1"], None) and scripted(ask, place) == (["c1"], None)
