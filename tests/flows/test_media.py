"""Images from a vendor's server to a download, with a real database, files and processes."""

import asyncio
import io
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from PIL import Image

from adapters.postgres.dump import open_snapshot
from domain.jobs.model import ClaimedJob, build_lane_name
from domain.jobs.ports import JobDispatcher
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.errors import LeaseLost
from domain.media.fetch_jobs import FETCH
from domain.media.model import MAX_FAILED_FETCHES
from domain.media.usecases.image_fetch import ImageFetchJob
from domain.storage.ports import StorageUpkeep
from domain.storage.usecases import StorageSweeper
from entrypoints.areas import media
from entrypoints.operations.operation import create_handlers
from ports.clock import Clock
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork
from tests.flows.feeds import FeedServer, build_csv, serve_feeds
from tests.flows.in_process_service import InProcessService, open_service
from tests.flows.service_processes import FEEDS
from tests.support import images
from tests.support.postgres import database

pytestmark = pytest.mark.asyncio
HEADERS = ("Handle", "Title", "SKU", "Price", "Image URL")


@pytest.fixture
def server() -> Iterator[FeedServer]:
    """Run a vendor's server of feeds and images."""
    with serve_feeds() as served:
        yield served


class ImageSource:
    """The service, and a vendor whose items have images."""

    def __init__(self, service: InProcessService, server: FeedServer, folder: Path) -> None:
        self.service, self.server, self.folder = service, server, folder
        self.source = ""

    async def pull(self, *urls: str, price: int = 10) -> None:
        """Import a feed with one item per URL."""
        rows = [(f"item-{n}", f"Chair {n}", f"SKU-{n}", f"{price}.00", url) for n, url in enumerate(urls)]
        self.server.serve("/feed.csv", build_csv(HEADERS, list(rows)))
        if not self.source:
            config = {"url": self.server.url("/feed.csv"), "currency": "usd"}
            self.source = await self.service.create_source(config=config)
        assert (await self.service.client.post(f"/v1/sources/{self.source}/runs")).status == 202
        await self.service.process_lane(self.source)
        assert (await self.service.get_newest_run(self.source))["status"] == "succeeded"

    async def process_jobs(self, lanes: Sequence[str] = (), **kinds: Any) -> None:
        """Process the organisation's image jobs, like a worker."""
        container = self.service.world.dependencies
        handlers = {**create_handlers([media.AREA], container), **kinds}
        drain = LaneProcessor(container[JobDispatcher], handlers, lease=timedelta(seconds=10))
        for lane in lanes or (self.source, f"{FEEDS}:{self.server.port}"):
            async with asyncio.timeout(60):
                await drain.process_lane(build_lane_name(self.service.tenant.org, f"media:{lane}"))

    async def make_due(self) -> None:
        """Make waiting images and jobs due."""
        for table_, column in (("image_addresses", "due_at"), ("jobs", "run_at")):
            await self.execute(
                f"UPDATE {table_} SET {column} = now() - interval '1 second' WHERE org = %s AND {column} > now()"
            )

    async def execute(self, statement: str) -> None:
        await self.service.fetch_rows(statement + " RETURNING 1", self.service.tenant.org)

    async def list_media(self) -> list[dict[str, Any]]:
        """Return the first media item of each product."""
        return [data["media"][0] for data in await self.service.list_product_data()]

    async def measure_storage(self) -> tuple[int, int]:
        """Return the counted bytes and the bytes on disk of images."""
        rows = await self.service.fetch_rows(
            "SELECT coalesce(sum(bytes), 0) FROM stored_objects WHERE org = %s AND kind = 'image' AND NOT freed",
            self.service.tenant.org,
        )
        return int(rows[0][0]), sum(path.stat().st_size for path in self.list_files())

    def list_files(self) -> list[Path]:
        """Return the files of the images."""
        return [path for path in (self.folder / "objects" / "images").rglob("*") if path.is_file()]

    async def sweep_storage(self) -> None:
        parts = self.service.world.dependencies
        await StorageSweeper(parts[UnitOfWork], parts[StorageUpkeep], parts[ObjectStore], parts[Clock]).free_due()


@pytest_asyncio.fixture
async def gallery(tmp_path: Path, server: FeedServer) -> AsyncIterator[ImageSource]:
    """Create an image source."""
    async with open_service(tmp_path) as service:
        yield ImageSource(service, server, tmp_path)


async def test_an_image_is_fetched_and_downloaded(gallery: ImageSource) -> None:
    service, server = gallery.service, gallery.server
    one = server.serve("/1.jpg", images.build_jpeg(1), etag='"one"', content_type="image/jpeg")
    same = server.serve("/same", images.build_jpeg(1), content_type="text/plain")
    two = server.serve("/2.png", images.encode_image(images.build_image(), "PNG"))
    server.pages["/moved.jpg"] = lambda _: (302, {"Location": "/2.png"}, b"")
    await gallery.pull(one, same, two, server.url("/moved.jpg"))
    product = (await service.client.get("/v1/products?limit=1")).json()["data"][0]
    events = await service.fetch_rows("SELECT count(*) FROM events WHERE org = %s", service.tenant.org)
    await gallery.process_jobs()
    first, second, third, moved = await gallery.list_media()
    assert first["id"] == second["id"] != third["id"] == moved["id"], "stored once by content"
    assert first["url"] == one and first["stored_url"].endswith(f"/v1/media/{first['id']}")
    after = (await service.client.get(f"/v1/products/{product['id']}")).json()
    assert (after["version"], after["updated_at"]) == (product["version"], product["updated_at"])
    assert await service.fetch_rows("SELECT count(*) FROM events WHERE org = %s", service.tenant.org) == events, (
        "no event of it"
    )
    answer = await service.client.get(urlsplit(first["stored_url"]).path)
    listed = answer.json()
    assert (answer.status, listed["object"], listed["id"]) == (200, "media", first["id"])
    assert (listed["width"], listed["height"], listed["content_type"]) == (60, 40, "image/webp")
    link = urlsplit(listed["download"]["url"])
    got = await service.client.get(f"{link.path}?{link.query}")
    assert got.status == 200 and len(got.body) == listed["bytes"]
    assert Image.open(io.BytesIO(got.body)).format == "WEBP"
    left = "SELECT 1 FROM jobs WHERE org = %s AND kind LIKE 'media.%%'"
    assert await service.fetch_rows(left, service.tenant.org) == [], "nothing is left to be done"
    await gallery.sweep_storage()
    counted, on_disk = await gallery.measure_storage()
    assert counted == on_disk > 0
    async with open_snapshot(await database()) as dump:
        named = await dump.list_object_keys()
    kept = {
        f"images/{path.parent.parent.name}/{path.parent.name}/{path.name.rstrip('~')}" for path in gallery.list_files()
    }
    assert len(kept) == 2 and all(named.get(key) for key in kept), "backups hold them"
    await gallery.pull(one, same, two, server.url("/moved.jpg"), price=12)
    assert [item["id"] for item in await gallery.list_media()] == [first["id"], first["id"], third["id"], third["id"]]
    await gallery.process_jobs()
    assert server.count("/1.jpg") == 1, "the image was checked recently"


async def test_renditions_are_stored_counted_and_deleted_with_the_image(gallery: ImageSource) -> None:
    large = gallery.server.serve("/large.jpg", images.encode_image(images.build_image(1200, 900)))
    await gallery.pull(large)
    await gallery.process_jobs()
    [item] = await gallery.list_media()
    image = (await gallery.service.client.get(f"/v1/media/{item['id']}")).json()
    assert [(one["width"], one["height"]) for one in image["renditions"]] == [(320, 240), (960, 720)]
    for one in image["renditions"]:
        link = urlsplit(one["url"])
        got = await gallery.service.client.get(f"{link.path}?{link.query}")
        assert got.status == 200 and len(got.body) == one["bytes"]
        assert Image.open(io.BytesIO(got.body)).size == (one["width"], one["height"])
    counted, on_disk = await gallery.measure_storage()
    assert counted == on_disk == image["bytes"] + sum(one["bytes"] for one in image["renditions"])
    async with open_snapshot(await database()) as dump:
        named = await dump.list_object_keys()
    kept = {
        f"images/{path.parent.parent.name}/{path.parent.name}/{path.name.rstrip('~')}" for path in gallery.list_files()
    }
    assert len(kept) == 3 and all(named.get(key) for key in kept), "backups hold them"
    await gallery.pull(gallery.server.serve("/other.jpg", images.build_jpeg(1)), price=12)
    await gallery.process_jobs()
    await gallery.sweep_storage()
    counted, on_disk = await gallery.measure_storage()
    assert counted == on_disk < image["bytes"] and len(gallery.list_files()) == 1


async def test_file_names_are_resolved_against_the_configured_address(gallery: ImageSource) -> None:
    service, server = gallery.service, gallery.server
    server.serve("/old/pics/AB%201.jpg", images.build_jpeg(1))
    server.serve("/new/images/AB-2.jpg", images.build_jpeg(2))
    server.serve("/new/AB%201.jpg", images.build_jpeg(3))
    names = ("AB 1.jpg", "images/AB-2.jpg", "../secret.jpg", "http://127.0.0.1:1/x.jpg")
    await gallery.pull(*names)
    assert [data.get("media", [{}])[0].get("url") for data in await service.list_product_data()] == [
        None,
        None,
        None,
        names[3],
    ]
    problems = (await service.get_newest_run(gallery.source))["problems"]
    assert [one["problem"] for one in problems if one["field"] == "media"] == ["unreadable"] * 3

    async def placed(folder: str | None) -> None:
        source = (await service.client.get(f"/v1/sources/{gallery.source}")).json()
        config = {name: value for name, value in source["config"].items() if name != "media_base_url"}
        config |= {"media_base_url": server.url(folder)} if folder else {}
        path = f"/v1/sources/{gallery.source}"
        changed = await service.client.send_json("PATCH", path, {"config": config}, if_match="*")
        assert changed.status == 200, changed.body

    await placed("/old/pics/")
    await gallery.pull(*names)
    await gallery.process_jobs()
    first, second = [data["media"][0] for data in (await service.list_product_data())[:2]]
    assert first["url"] == server.url("/old/pics/AB%201.jpg") and "stored_url" in first
    assert second["url"] == server.url("/old/pics/images/AB-2.jpg") and "stored_url" not in second
    assert server.count("/old/pics/AB%201.jpg") == 1

    await placed("/new")
    await gallery.pull(*names)
    await gallery.process_jobs()
    found = [data.get("media", [{}])[0] for data in await service.list_product_data()]
    assert [item.get("url") for item in found] == [
        server.url("/new/AB%201.jpg"), server.url("/new/images/AB-2.jpg"), None, names[3]
    ]  # fmt: skip
    assert ["stored_url" in item for item in found] == [True, True, False, False]
    problems = (await service.get_newest_run(gallery.source))["problems"]
    assert [one["problem"] for one in problems if one["field"] == "media"] == ["unreadable"]

    await placed(None)
    await gallery.pull(*names)
    kept = [data.get("media", [{}])[0] for data in await service.list_product_data()]
    assert [item.get("url") for item in kept] == [item.get("url") for item in found], "unreadable images keep their URL"
    problems = (await service.get_newest_run(gallery.source))["problems"]
    assert [one["problem"] for one in problems if one["field"] == "media"] == ["unreadable"] * 3


async def test_images_are_refetched_and_deleted(gallery: ImageSource) -> None:
    server = gallery.server
    one, two = server.serve("/1.jpg", images.build_jpeg(1), etag='"one"'), server.serve("/2.jpg", images.build_jpeg(2))
    await gallery.pull(one, two)
    await gallery.process_jobs()
    before = await gallery.list_media()
    await gallery.execute("UPDATE image_addresses SET checked_at = now() - interval '8 days' WHERE org = %s")
    server.serve("/2.jpg", images.build_jpeg(203))
    await gallery.pull(one, two, price=11)
    await gallery.process_jobs()
    after = await gallery.list_media()
    etags = [request.headers.get("If-None-Match") for request in server.requests if request.path == "/1.jpg"]
    assert after[0] == before[0] and etags == [None, '"one"']
    assert after[1]["id"] != before[1]["id"]
    assert (await gallery.service.client.get(f"/v1/media/{before[1]['id']}")).status == 404
    await gallery.pull(two, two, price=12)
    await gallery.process_jobs()
    gone = await gallery.service.client.get(f"/v1/media/{before[0]['id']}")
    unknown = await gallery.service.client.get("/v1/media/img_0000000000000000000000")
    assert gone.status == unknown.status == 404
    assert {**gone.json(), "request_id": "", "instance": ""} == {**unknown.json(), "request_id": "", "instance": ""}
    await gallery.sweep_storage()
    counted, on_disk = await gallery.measure_storage()
    assert counted == on_disk > 0


async def test_invalid_images_are_abandoned_and_reported(gallery: ImageSource) -> None:
    server = gallery.server
    pages = {
        "/svg.jpg": images.SVG, "/page.jpg": images.HTML, "/cut.jpg": images.build_jpeg()[:-300],
        "/large.png": images.build_png(20_000, 10_000), "/empty.jpg": b"",
    }  # fmt: skip
    urls = [server.serve(path, content) for path, content in pages.items()]
    good = server.serve("/good.jpg", images.build_jpeg(7))
    urls += [server.url("/missing.jpg"), "http://127.0.0.1:1/private.jpg", server.fail("/busy.jpg", 500)]
    server.pages["/away.jpg"] = lambda _: (302, {"Location": "http://169.254.169.254/latest/meta-data"}, b"")
    await gallery.pull(good, *urls, server.url("/away.jpg"))
    await gallery.process_jobs()
    assert ["stored_url" in item for item in await gallery.list_media()] == [True] + [False] * 9
    assert server.count("/page.jpg") == 1
    for _ in range(MAX_FAILED_FETCHES):
        await gallery.make_due()
        await gallery.process_jobs()
    assert {server.count(path) for path in (*pages, "/missing.jpg", "/busy.jpg")} == {MAX_FAILED_FETCHES}
    run = await gallery.service.get_newest_run(gallery.source)
    failures = {
        problem["detail"].removeprefix("The image at ").split(" could not be fetched")[0]: problem
        for problem in run["problems"]
        if problem["field"] == "media"
    }
    local = {*urls, server.url("/away.jpg")} - {"http://127.0.0.1:1/private.jpg"}
    assert local <= failures.keys() and good not in failures
    assert (
        "200,000,000" in failures[server.url("/large.png")]["detail"]
        or "20000" in failures[server.url("/large.png")]["detail"]
    )
    assert failures[server.url("/away.jpg")]["problem"] == "unsafe_url" and server.count("/away.jpg") == 1
    assert run["stats"]["problems"] >= len(local)


async def test_a_host_that_sends_retry_after_and_a_slow_host(gallery: ImageSource) -> None:
    server, most, now = gallery.server, 0, 0

    def slow(handler: BaseHTTPRequestHandler) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        content = images.build_jpeg(len(server.requests))
        time.sleep(0.05)
        now -= 1
        handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(content) + content
        )

    urls = [server.url(f"/{number}.jpg") for number in range(9)]
    server.raw = {f"/{number}.jpg": slow for number in range(9)}
    await gallery.pull(*urls)
    await gallery.process_jobs()
    assert most <= 2 and all("id" in item for item in await gallery.list_media())
    pressed = [server.fail(f"/busy{number}.jpg", 429) for number in range(9)]
    await gallery.pull(*pressed, price=11)
    await gallery.process_jobs()
    assert sum(server.count(urlsplit(url).path) for url in pressed) <= 2, "the host is left alone"


async def test_an_unreachable_host_fails_as_a_whole(gallery: ImageSource) -> None:
    """Its URLs are not requested one by one; when abandoned, the run reports all of them in one sentence."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    await gallery.pull(*(f"http://{FEEDS}:{port}/{number}.jpg" for number in range(9)))
    org, tries = gallery.service.tenant.org, "SELECT min(tries), max(tries) FROM image_addresses WHERE org = %s"
    for failed in range(1, 7):
        await gallery.process_jobs(lanes=(gallery.source, f"{FEEDS}:{port}"))
        assert await gallery.service.fetch_rows(tries, org) == [(failed, failed)], "all of them, once each time"
        await gallery.make_due()
    [problem] = (await gallery.service.get_newest_run(gallery.source))["problems"]
    assert problem["field"] == "media" and problem["detail"].startswith(
        f"9 images at http://{FEEDS}:{port}/ could not be fetched"
    )


async def test_a_failing_host_does_not_affect_other_hosts(gallery: ImageSource) -> None:
    """An image moved to an unreachable host does not affect the images of the first host."""
    server = gallery.server
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    server.pages["/moved.jpg"] = lambda _: (302, {"Location": f"http://{FEEDS}:{port}/1.jpg"}, b"")
    urls = [server.serve(f"/{number}.jpg", images.build_jpeg(number)) for number in range(4)]
    await gallery.pull(server.url("/moved.jpg"), *urls)
    await gallery.process_jobs()
    assert ["id" in item for item in await gallery.list_media()] == [False, True, True, True, True]


async def test_an_exhausted_plan_stores_no_image(gallery: ImageSource) -> None:
    server, org = gallery.server, gallery.service.tenant.org
    urls = [server.serve(f"/{number}.jpg", images.build_jpeg(number)) for number in range(5)]
    await gallery.pull(*urls)
    await gallery.execute("UPDATE storage_usage SET bytes = bytes + (1::bigint << 55) WHERE org = %s")
    await gallery.process_jobs()
    assert not any("id" in item for item in await gallery.list_media())
    assert await gallery.measure_storage() == (0, 0)
    [(tries,)] = await gallery.service.fetch_rows(
        "SELECT max(tries) FROM image_addresses WHERE org = %s AND due_at > now()", org
    )
    assert tries == 0, "the host is not blamed"
    await gallery.execute("UPDATE storage_usage SET bytes = bytes - (1::bigint << 55) WHERE org = %s")
    await gallery.make_due()
    await gallery.process_jobs()
    assert all("id" in item for item in await gallery.list_media())


async def test_a_nearly_exhausted_plan_stores_no_renditions(gallery: ImageSource) -> None:
    server, org = gallery.server, gallery.service.tenant.org
    content = images.encode_image(images.build_image(1200, 900))
    await gallery.pull(server.serve("/1.jpg", content))
    await gallery.process_jobs()
    [item] = await gallery.list_media()
    image = (await gallery.service.client.get(f"/v1/media/{item['id']}")).json()
    await gallery.pull("https://vendor.invalid/none.jpg", price=11)
    await gallery.process_jobs()
    await gallery.sweep_storage()
    assert await gallery.measure_storage() == (0, 0)
    await gallery.pull(server.serve("/2.jpg", content), price=12)
    [(left,)] = await gallery.service.fetch_rows(
        "SELECT (p.meters #>> '{stored_bytes,included}')::bigint - u.bytes FROM storage_usage u, plans p "
        "WHERE u.org = %s AND p.code = 'max'",
        org,
    )
    more = left - image["bytes"] - image["renditions"][0]["bytes"] - 1
    await gallery.execute(f"UPDATE storage_usage SET bytes = bytes + {more} WHERE org = %s")
    await gallery.process_jobs()
    assert await gallery.measure_storage() == (0, 0) and "id" not in (await gallery.list_media())[0]
    await gallery.execute(f"UPDATE storage_usage SET bytes = bytes - {more} WHERE org = %s")
    await gallery.make_due()
    await gallery.process_jobs()
    [item] = await gallery.list_media()
    assert len((await gallery.service.client.get(f"/v1/media/{item['id']}")).json()["renditions"]) == 2


class ProcessKilled(BaseException):
    """Simulated end of the process."""


class CrashingObjectStore:
    """Object store that ends the process after `written` objects."""

    def __init__(self, inner: Any, *, written: int) -> None:
        self._inner, self._written = inner, written

    async def put_file(self, key: str, path: Path) -> None:
        if self._written > 0:
            await self._inner.put_file(key, path)
        self._written -= 1
        if self._written <= 0:
            raise ProcessKilled


@pytest.mark.parametrize("written", [0, 1, 3], ids=["counted", "one written", "written"])
async def test_a_worker_crash_during_storage_leaves_no_uncounted_files(gallery: ImageSource, written: int) -> None:
    await gallery.pull(gallery.server.serve("/1.jpg", images.encode_image(images.build_image(1200, 900))))
    handler = create_handlers([media.AREA], gallery.service.world.dependencies)[FETCH]
    assert isinstance(handler, ImageFetchJob)
    dying = replace(handler, objects=CrashingObjectStore(handler.objects, written=written))  # type: ignore[arg-type]
    with pytest.raises(BaseException) as death:
        await gallery.process_jobs(**{FETCH: dying})
    assert (
        death.group_contains(ProcessKilled)
        if isinstance(death.value, BaseExceptionGroup)
        else death.type is ProcessKilled
    )
    counted, on_disk = await gallery.measure_storage()
    assert counted > 0 and len(gallery.list_files()) == written and (on_disk == counted) == (written == 3)
    await gallery.execute("UPDATE jobs SET lease_until = NULL, run_at = now() - interval '1 second' WHERE org = %s")
    await gallery.process_jobs()
    [item] = await gallery.list_media()
    assert (await gallery.service.client.get(f"/v1/media/{item['id']}")).status == 200
    await gallery.execute(
        "WITH aged AS MATERIALIZED (SELECT org, key, free_after - interval '2 days' AS at FROM stored_objects) "
        "UPDATE stored_objects s SET free_after = a.at FROM aged a WHERE s.org = %s AND s.org = a.org AND s.key = a.key AND s.kind = 'image'"
    )
    await gallery.sweep_storage()
    swept, on_disk = await gallery.measure_storage()
    assert swept == on_disk == counted, "files of the crashed attempt are freed, current ones remain"


async def test_an_attempt_without_its_lease_writes_nothing(gallery: ImageSource) -> None:
    await gallery.pull(gallery.server.serve("/1.jpg", images.build_jpeg(1)))
    container = gallery.service.world.dependencies
    taken: list[ClaimedJob] = []

    async def overtaken(job: ClaimedJob, lost: asyncio.Event) -> None:
        taken.append(job)
        stale = replace(job, attempt=job.attempt - 1)
        with pytest.raises(LeaseLost):
            await create_handlers([media.AREA], container)[FETCH](stale, lost)
        raise LeaseLost

    await gallery.process_jobs(**{FETCH: overtaken})
    assert taken and await gallery.measure_storage() == (0, 0)
    assert not any("id" in item for item in await gallery.list_media())
