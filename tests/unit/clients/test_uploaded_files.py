"""A file that grows or shrinks during its upload raises an error with its name."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.support.shipped_clients import import_client
from tests.unit.clients.test_redirects import serve_status

CONTENT = b"a,b\n" * 50_000


@pytest.mark.parametrize("later", [CONTENT * 2, CONTENT + b"x", CONTENT[:-1], b""])
def test_a_changed_size_is_reported(tmp_path: Path, later: bytes) -> None:
    file = tmp_path / "feed.csv"
    file.write_bytes(later)
    with serve_status(200) as (address, _):
        with import_client().Joinery(address, "k", retries=0) as client:
            with pytest.raises(OSError, match=r"feed\.csv changed its size"):
                client._core.put(address + "/objects/1", {}, file, len(CONTENT))

        async def upload() -> None:
            async with import_client().AsyncJoinery(address, "k", retries=0) as client:
                await client._core.put(address + "/objects/1", {}, file, len(CONTENT))

        with pytest.raises(OSError, match=r"feed\.csv changed its size"):
            asyncio.run(upload())


def test_a_file_that_changes_after_the_announcement_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "feed.csv"
    file.write_bytes(CONTENT)

    def respond(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            file.write_bytes(CONTENT * 2)
        request.read()
        return httpx.Response(200, json={"id": "upl_1", "target": {"url": "http://x/put", "headers": {}}})

    with (
        import_client().Joinery("http://x", "k", retries=0, transport=httpx.MockTransport(respond)) as client,
        pytest.raises(OSError, match="changed its size"),
    ):
        client.sources.upload_file("src_1", file)


@pytest.mark.parametrize("content", [CONTENT, b"", b"a"])
def test_an_unchanged_file_is_sent(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "feed.csv"
    file.write_bytes(content)
    with serve_status(200) as (address, seen), import_client().Joinery(address, "k", retries=0) as client:
        client._core.put(address + "/objects/1", {}, file, len(content))
        assert seen == ["PUT /objects/1"]
