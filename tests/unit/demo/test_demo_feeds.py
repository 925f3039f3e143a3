"""The vendors' web servers: pages, their bounds, validators."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import ClientSession

from entrypoints.demo import feeds
from entrypoints.demo.demonstration import free_port
from entrypoints.demo.lindgren_sheets import item_master
from entrypoints.demo.pictures.names import HOME
from entrypoints.demo.quillmere_products import products

Answer = tuple[int, Mapping[str, str], bytes]


PORT = free_port()
HERE = f"http://127.0.0.1:{PORT}"
"""One port for all of them: the feeds name it, so it is part of what they say."""


def get(path: str, **headers: str) -> Answer:
    async def run() -> Answer:
        runner = await feeds.serve(PORT)
        try:
            async with ClientSession() as session, session.get(HERE + path, headers=headers) as it:
                return it.status, it.headers, await it.read()
        finally:
            await runner.cleanup()

    return asyncio.run(run())


def listed(path: str) -> list[dict[str, Any]]:
    status, _, body = get(path)
    assert status == 200
    found: list[dict[str, Any]] = json.loads(body)["products"]
    return found


def test_file() -> None:
    status, headers, body = get(feeds.ITEM_MASTER)
    assert status == 200
    assert headers["Content-Type"] == "text/csv; charset=utf-8"
    assert body == item_master().replace(HOME.encode(), HERE.encode())
    assert HOME.encode() not in body


@pytest.mark.parametrize("path", [feeds.ITEM_MASTER, feeds.STOCK_SHEET, "/products.json?limit=250&page=1"])
def test_not_modified(path: str) -> None:
    _, headers, _ = get(path)
    status, again, body = get(path, **{"If-None-Match": headers["ETag"]})
    assert (status, again["ETag"], body) == (304, headers["ETag"], b"")
    assert get(path, **{"If-None-Match": '"other"'})[0] == 200


def test_pages() -> None:
    assert len(listed("/products.json")) == 30
    assert len(listed("/products.json?limit=1000")) == 250
    whole = [*listed("/products.json?limit=250&page=1"), *listed("/collections/all/products.json?limit=250&page=2")]
    assert whole == json.loads(json.dumps(products()).replace(HOME, HERE))
    assert listed("/products.json?limit=250&page=3") == []
    assert len(listed("/products.json?limit=nonsense&page=-1")) == 30


def test_too_far() -> None:
    status, _, body = get("/products.json?limit=250&page=101")
    assert status == 400
    assert b"25000" in body


def test_port_taken() -> None:
    async def run() -> None:
        port = free_port()
        runner = await feeds.serve(port)
        try:
            with pytest.raises(OSError):
                await feeds.serve(port)
        finally:
            await runner.cleanup()

    asyncio.run(run())
