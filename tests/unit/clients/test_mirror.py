"""The mirror with responses that do not come from the service."""

import json
from collections.abc import Callable
from gzip import compress
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from entrypoints.clients.python.runtime.async_core import AsyncCore
from entrypoints.clients.python.runtime.errors import UnexpectedResponse
from entrypoints.mirror.copies import open_copy
from entrypoints.mirror.replication import MirrorReplication

pytestmark = pytest.mark.asyncio
BODIES = (
    b"<html>Sign in</html>",
    b"[]",
    b'{"data": [{}], "has_more": false}',
    b'{"data": [], "has_more": true, "next_cursor": null}',
)
NOTHING = {"data": [], "next_cursor": "c", "caught_up": True}


def create_transport(products: Callable[[], httpx.Response]) -> httpx.MockTransport:
    """Return a service without exports and changes whose product pages come from `products`."""

    def respond(request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/v1/changes":
                return httpx.Response(200, json=NOTHING)
            case "/v1/products":
                return products()
        return httpx.Response(403, json={"code": "feature_unavailable"})

    return httpx.MockTransport(respond)


async def mirror_products(path: Path, products: Callable[[], httpx.Response]) -> int:
    """Mirror the service once; return the number of products in the copy."""
    core = AsyncCore("http://x", "k", version="v", agent="tests", transport=create_transport(products))
    async with httpx.AsyncClient() as files:
        with open_copy(path / "copy.sqlite") as copy:
            await MirrorReplication(core, files, copy, lambda _: None, stops_when_current=True).run()
            return copy.count_products()


@pytest.mark.parametrize("body", BODIES)
async def test_invalid_pages_are_reported(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(UnexpectedResponse, match="does not have the service's format"):
        await mirror_products(tmp_path, lambda: httpx.Response(200, content=body))


async def test_valid_pages_are_stored(tmp_path: Path) -> None:
    pages = [
        {"data": [{"id": "prod_1"}], "has_more": True, "next_cursor": "c"},
        {"data": [{"id": "prod_2"}], "has_more": False},
    ]
    assert await mirror_products(tmp_path, lambda: httpx.Response(200, json=pages.pop(0))) == 2


async def test_files_of_an_export_are_downloaded_from_their_location(tmp_path: Path) -> None:
    products = compress(b'{"id": "prod_1"}\n')
    manifest = json.dumps({"dataset": "products", "sha256": sha256(products).hexdigest()}).encode()
    files = {"/products": products, "/manifest": compress(manifest + b"\n")}
    urls = [{"dataset": name[1:], "url": f"http://store{name}"} for name in files]
    export = {"id": "exp_1", "status": "succeeded", "rows": 1, "changes_cursor": "c", "files": urls}

    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=NOTHING if request.url.path == "/v1/changes" else export)

    def respond_with_file(request: httpx.Request) -> httpx.Response:
        if request.url.host == "store":
            return httpx.Response(307, headers={"location": f"http://region{request.url.path}"})
        return httpx.Response(200, content=files[request.url.path])

    core = AsyncCore("http://x", "k", version="v", agent="tests", transport=httpx.MockTransport(respond))
    async with httpx.AsyncClient(transport=httpx.MockTransport(respond_with_file)) as client:
        with open_copy(tmp_path / "copy.sqlite") as copy:
            await MirrorReplication(core, client, copy, lambda _: None, stops_when_current=True).run()
            assert copy.count_products() == 1
