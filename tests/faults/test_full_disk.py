"""A full object store: pulls fail with a reason, uploads and pushes wait, requests get a 503."""

import asyncio
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.kernel.errors import StorageFull
from domain.runs.model import MAX_WAITS
from ports.objects import ObjectStore
from ports.workspaces import Workspaces
from tests.flows.feeds import FeedServer, build_catalogue, serve_feeds
from tests.flows.in_process_service import open_service

pytestmark = pytest.mark.asyncio


class FullObjectStore:
    """Object store that can be read but not written."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.full = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def put_file(self, key: str, path: Path) -> None:
        """Fail like a full disk, until space is available."""
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        await self._inner.put_file(key, path)


class RefusingObjectStore(FullObjectStore):
    """Object store that reports itself as full."""

    async def put_file(self, key: str, path: Path) -> None:
        """Refuse snapshots; uploads are already stored."""
        if path.name == "snapshot":
            raise StorageFull
        await self._inner.put_file(key, path)


@pytest.fixture
def feeds() -> Iterator[FeedServer]:
    """Run a feed server."""
    with serve_feeds() as served:
        yield served


async def test_a_run_on_a_full_disk(tmp_path: Path, feeds: FeedServer) -> None:
    async with open_service(tmp_path) as service:
        url = feeds.serve("/feed.csv", build_catalogue(3))
        source = await service.create_source(config={"url": url, "currency": "usd"})
        await service.client.post(f"/v1/sources/{source}/runs")
        await service.process_lane(source)
        before = await service.fetch_catalogue_rows()
        disk = FullObjectStore(service.world.dependencies[ObjectStore])
        service.world.dependencies[ObjectStore] = disk
        feeds.serve("/feed.csv", build_catalogue(4))
        for _ in range(4):
            assert (await service.client.post(f"/v1/sources/{source}/runs")).status == 202
            await service.process_lane(source)
            run = await service.get_newest_run(source)
            assert (run["status"], run["error"]["code"]) == ("failed", "storage_full")
            assert "space" in run["error"]["message"]
        assert await service.fetch_catalogue_rows() == before
        assert (await service.client.get(f"/v1/sources/{source}")).json()["status"] == "active"
        disk.full = False
        await service.client.post(f"/v1/sources/{source}/runs")
        await service.process_lane(source)
        assert (await service.get_newest_run(source))["stats"]["products_created"] == 1


async def test_pushed_records_survive_a_full_store(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        source = await service.create_source("push", config={"currency": "usd"})
        disk = FullObjectStore(service.world.dependencies[ObjectStore])
        service.world.dependencies[ObjectStore] = disk
        for key in ("A", "B"):
            records = [{"product": {"external_id": key, "title": f"Chair {key}"}}]
            assert (await service.client.post(f"/v1/sources/{source}/records", {"records": records})).status == 202
        for _ in range(10):  # more often than failing runs are retried
            await service.execute("UPDATE jobs SET run_at = now() WHERE org = %s", service.tenant.org)
            await service.process_lane(source)
            run = (await service.client.get(f"/v1/sources/{source}/runs")).json()["data"][-1]
            assert (run["status"], run["waiting"]["reason"]) == ("waiting", "retry")
            assert "no space left" in run["waiting"]["detail"]
        disk.full = False
        await service.execute("UPDATE jobs SET run_at = now() WHERE org = %s", service.tenant.org)
        await service.process_lane(source)
        assert [data["title"] for data in await service.list_product_data()] == ["Chair A", "Chair B"]


class FullWorkspaces:
    """Work folders without space."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_folder(self) -> Any:
        """Fail like a full disk."""
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("place", ["work folder", "object store"])
async def test_uploads_wait_without_limit_for_the_object_store_only(tmp_path: Path, place: str) -> None:
    async with open_service(tmp_path) as service:
        source = await service.create_source("file", config={"currency": "usd"})
        container = service.world.dependencies
        if place == "work folder":
            container[Workspaces] = FullWorkspaces(container[Workspaces])
        else:
            container[ObjectStore] = RefusingObjectStore(container[ObjectStore])
        run = await service.import_file(b"SKU,Title,Price\nA,Chair,1\n", source)
        assert (run["status"], run["waiting"]["reason"]) == ("waiting", "retry")
        for _ in range(2 * MAX_WAITS):
            await service.execute("UPDATE jobs SET run_at = now() WHERE org = %s", service.tenant.org)
            await service.process_lane(source)
        run = await service.get_newest_run(source)
        if place == "work folder":
            assert (run["status"], run["error"]["code"]) == ("failed", "storage_full")
            assert "again" in run["error"]["message"]
        else:
            assert (run["status"], run["waiting"]["reason"]) == ("waiting", "retry")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a filesystem of 1 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=False).returncode
    ):
        pytest.skip("only root can mount a small filesystem")
    yield folder
    subprocess.run(["umount", folder], check=True)


async def test_files_for_a_full_disk_are_refused_and_accepted_later(tmp_path: Path, small_disk: Path) -> None:
    async with open_service(tmp_path, JOINERY_OBJECTS_URL=f"file://{small_disk}/objects") as service:
        ballast = small_disk / "ballast"
        await asyncio.to_thread(_fill_disk, ballast)
        source = await service.create_source("file", config={"currency": "usd"})
        content = b"SKU,Title,Price\n" + b"".join(b"A-%d,Chair,1\n" % n for n in range(20_000))
        announced = {"filename": "feed.csv", "content_type": "text/csv", "bytes": len(content)}
        upload = (await service.client.post(f"/v1/sources/{source}/uploads", announced)).json()
        target = upload["target"]["url"].removeprefix("http://127.0.0.1:8080")
        for _ in range(2):
            answer = await service.client.send("PUT", target, body=content, headers=upload["target"]["headers"])
            assert (answer.status, answer.json()["code"]) == (503, "unavailable")
            assert int(answer.headers["retry-after"]) > 0
        assert (await service.client.post(f"/v1/uploads/{upload['id']}/complete")).status == 409
        ballast.unlink()
        answer = await service.client.send("PUT", target, body=content, headers=upload["target"]["headers"])
        assert answer.status == 200, answer.body
        assert (await service.client.post(f"/v1/uploads/{upload['id']}/complete")).status == 200


def _fill_disk(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC
