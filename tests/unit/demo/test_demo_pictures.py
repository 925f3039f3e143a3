"""The vendors' pictures: one of everything that is sold, the same at every start, small, and none that no feed names."""

import asyncio
import io
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from aiohttp import ClientSession
from PIL import Image, ImageStat

from entrypoints.demo import feeds
from entrypoints.demo import lindgren_columns as col
from entrypoints.demo.demonstration import free_port
from entrypoints.demo.lindgren_catalogue import sound_rows
from entrypoints.demo.lindgren_items import DATA
from entrypoints.demo.pictures import gallery
from entrypoints.demo.pictures.album import album
from entrypoints.demo.pictures.drawing import DRAWN, picture
from entrypoints.demo.pictures.gallery import CONTENT_TYPE, Gallery
from entrypoints.demo.pictures.names import HEIGHT, HOME, WIDTH
from entrypoints.demo.quillmere_products import KINDS, products

ONE_OF_EACH = {subject.piece: path for path, subject in album().items() if not subject.room}


def named() -> Iterator[str]:
    for row in sound_rows():
        yield from (row[column] for column in (col.IMAGE_1, col.IMAGE_2) if row[column] != "-")
    yield from (image["src"] for product in products() for image in product["images"])


def test_album_has_what_the_feeds_name_and_no_more() -> None:
    assert {HOME + path for path in album()} == set(named())
    assert len(album()) <= 1500
    assert all(product["images"] for product in products())
    rooms = [subject for subject in album().values() if subject.room]
    assert 50 <= len(rooms) <= 200


def test_variants_of_a_finish_share_a_picture() -> None:
    shown: dict[tuple[str, str], set[str]] = {}
    for row in sound_rows():
        shown.setdefault((row[col.HANDLE], row.get(col.FINISH) or row.get(col.COLOR, "")), set()).add(row[col.IMAGE_1])
    assert {len(pictures) for pictures in shown.values()} == {1}
    assert len(set.union(*shown.values())) == len(shown)
    resold = [product for product in products() if product["vendor"] == "Lindgren & Falk"]
    assert all("/lindgren-falk/" in product["images"][0]["src"] for product in resold)


def test_everything_sold_is_drawn() -> None:
    families = ("bedroom", "dining", "living", "office", "seating", "accent")
    pieces = {entry["name"].split(" (")[0] for family in families for entry in DATA["pieces"][family]}
    assert pieces | {kind.title for kind in KINDS} | {"Rug"} == set(DRAWN) == set(ONE_OF_EACH)


@pytest.mark.parametrize("piece", sorted(ONE_OF_EACH))
def test_picture(piece: str) -> None:
    drawn = picture(album()[ONE_OF_EACH[piece]])
    assert 5_000 < len(drawn) <= 40_000
    with Image.open(io.BytesIO(drawn)) as image:
        assert (image.format, image.size) == ("JPEG", (WIDTH, HEIGHT))
        assert max(ImageStat.Stat(image).stddev) > 8  # there is something to see


def test_rooms_are_small_as_well() -> None:
    rooms = [path for path, subject in album().items() if subject.room]
    assert all(len(picture(album()[path])) <= 40_000 for path in rooms[::40])


def test_same_bytes_in_another_process() -> None:
    paths = [*ONE_OF_EACH.values()][::30]
    code = (
        "import sys; from hashlib import sha256; from entrypoints.demo.pictures.album import album;"
        "from entrypoints.demo.pictures.drawing import picture;"
        "print(*(sha256(picture(album()[path])).hexdigest() for path in sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [sha256(picture(album()[path])).hexdigest() for path in paths]
    assert len(set(done.stdout.split())) == len(paths)


def test_served_where_the_feeds_say() -> None:
    async def run() -> list[tuple[int, Any, bytes]]:
        port, found = free_port(), []
        runner = await feeds.serve(port)
        try:
            async with ClientSession() as session:
                listed = await (await session.get(f"http://127.0.0.1:{port}/products.json?limit=1")).json()
                address = listed["products"][0]["images"][0]["src"]
                for asked in (address, address + "?v=1", address.replace(".jpg", ".png"), address + "/../x.jpg"):
                    async with session.get(asked) as answer:
                        found.append((answer.status, answer.headers, await answer.read()))
                async with session.get(address, headers={"If-None-Match": found[0][1]["ETag"]}) as answer:
                    found.append((answer.status, answer.headers, await answer.read()))
        finally:
            await runner.cleanup()
        return found

    first, again, *unknown, same = asyncio.run(run())
    assert (first[0], first[1]["Content-Type"]) == (200, CONTENT_TYPE)
    assert first[2] == again[2]
    assert [status for status, _, _ in unknown] == [404, 404]
    assert (same[0], same[2]) == (304, b"")


def test_memory_is_bounded_and_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def slow(path: str) -> bytes:
        drawn.append(path)
        time.sleep(0.01)
        return path.encode()

    monkeypatch.setattr(gallery, "_drawn", slow)
    monkeypatch.setattr(gallery, "KEPT", 2)

    async def run() -> int:
        shown, turns = Gallery(pause=0), 0
        asked = asyncio.gather(*(shown.picture(path) for path in ("a", "a", "b", "c", "c", "a")))
        while not asked.done():
            turns += 1
            await asyncio.sleep(0.001)
        assert await asked == [b"a", b"a", b"b", b"c", b"c", b"a"]
        return turns

    assert asyncio.run(run()) > 4
    assert drawn == ["a", "b", "c", "a"]
