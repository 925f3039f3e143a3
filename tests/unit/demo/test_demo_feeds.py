"""The vendors' web servers: feeds, product pages, images and validators."""

import asyncio
import csv
import io
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import ClientSession
from PIL import Image

from entrypoints.demo import feeds
from entrypoints.demo.feeds import DATA_FOLDER, IMAGE_URL_PLACEHOLDER, read_feed
from entrypoints.up.service_processes import find_free_port

FetchedResponse = tuple[int, Mapping[str, str], bytes]


PORT = find_free_port()
BASE_URL = f"http://127.0.0.1:{PORT}"
"""One port for all tests, because the feeds contain it."""


def fetch(path: str, **headers: str) -> FetchedResponse:
    async def run() -> FetchedResponse:
        runner = await feeds.start_server(PORT)
        try:
            async with ClientSession() as session, session.get(BASE_URL + path, headers=headers) as response:
                return response.status, response.headers, await response.read()
        finally:
            await runner.cleanup()

    return asyncio.run(run())


def list_products(path: str) -> list[dict[str, Any]]:
    status, _, body = fetch(path)
    assert status == 200
    found: list[dict[str, Any]] = json.loads(body)["products"]
    return found


def test_the_item_master_is_served() -> None:
    status, headers, body = fetch(feeds.ITEM_MASTER)
    assert status == 200
    assert headers["Content-Type"] == "text/csv; charset=utf-8"
    assert body == read_feed("item-master.csv").replace(IMAGE_URL_PLACEHOLDER.encode(), BASE_URL.encode())
    assert IMAGE_URL_PLACEHOLDER.encode() not in body


def test_the_dining_room_is_served() -> None:
    status, _, body = fetch(feeds.DINING_ROOM)
    title, _, _, _, headers, *rows = csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""))
    assert (status, title) == (200, ["LINDGREN & FALK  |  Makers of furniture"])
    assert {row[headers.index("Category")] for row in rows} == {"Dining Room"}
    assert len({row[headers.index("Handle")] for row in rows}) == 120


@pytest.mark.parametrize(
    "path",
    [
        feeds.ITEM_MASTER,
        feeds.DINING_ROOM,
        feeds.STOCK_SHEET,
        "/products.json?limit=250&page=1",
        "/pictures/sofa-light.jpg",
    ],
)
def test_unchanged_feeds_are_not_sent_again(path: str) -> None:
    _, headers, _ = fetch(path)
    status, again, body = fetch(path, **{"If-None-Match": headers["ETag"]})
    assert (status, again["ETag"], body) == (304, headers["ETag"], b"")
    assert fetch(path, **{"If-None-Match": '"other"'})[0] == 200


def test_product_pages_are_served() -> None:
    assert len(list_products("/products.json")) == 30
    assert len(list_products("/products.json?limit=1000")) == 250
    whole = [
        *list_products("/products.json?limit=250&page=1"),
        *list_products("/collections/all/products.json?limit=250&page=2"),
    ]
    assert whole == json.loads(read_feed("products.json").replace(IMAGE_URL_PLACEHOLDER.encode(), BASE_URL.encode()))
    assert list_products("/products.json?limit=250&page=3") == []
    assert len(list_products("/products.json?limit=nonsense&page=-1")) == 30


def test_images_of_the_feeds_are_served() -> None:
    text = read_feed("item-master.csv") + read_feed("products.json")
    named = {
        name.decode() for name in re.findall(IMAGE_URL_PLACEHOLDER.encode() + rb"/pictures/([a-z0-9-]+\.jpg)", text)
    }
    assert text.count(IMAGE_URL_PLACEHOLDER.encode()) == text.count(IMAGE_URL_PLACEHOLDER.encode() + b"/pictures/")
    pictures = {path.name: path.read_bytes() for path in (DATA_FOLDER / "pictures").iterdir()}
    assert named == set(pictures)
    assert len(set(pictures.values())) == len(pictures)
    for picture in pictures.values():
        with Image.open(io.BytesIO(picture)) as image:
            assert (image.format, image.size) == ("JPEG", (640, 480))
    status, headers, body = fetch("/pictures/sofa-light.jpg?v=1")
    assert (status, headers["Content-Type"], body) == (200, "image/jpeg", pictures["sofa-light.jpg"])
    assert fetch("/pictures/unknown.jpg")[0] == 404


def test_every_item_has_an_image() -> None:
    rows = list(csv.DictReader(io.StringIO(read_feed("item-master.csv").decode("utf-8-sig")).readlines()[4:]))
    assert all(row["Image 1"].startswith(IMAGE_URL_PLACEHOLDER) for row in rows if row["Item #"])
    assert all(product["images"] for product in json.loads(read_feed("products.json")))


def test_a_used_port_is_reported() -> None:
    async def run() -> None:
        port = find_free_port()
        runner = await feeds.start_server(port)
        try:
            with pytest.raises(OSError):
                await feeds.start_server(port)
        finally:
            await runner.cleanup()

    asyncio.run(run())
