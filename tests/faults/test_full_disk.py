"""The objects' disk is full: the run fails and says why, nothing is lost, and the source is not blamed."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from tests.flows.bench import bench
from tests.flows.feeds import FeedServer, catalogue, feed_server

pytestmark = pytest.mark.asyncio


class FullDisk:
    """Objects that can be read, while nothing more can be written."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.full = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def put_file(self, key: str, path: Path) -> None:
        """Fail as a full disk does, until there is room."""
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        await self._inner.put_file(key, path)


@pytest.fixture
def feeds() -> Iterator[FeedServer]:
    """A server of feeds."""
    with feed_server() as served:
        yield served


async def test_a_run_on_a_full_disk(tmp_path: Path, feeds: FeedServer) -> None:
    async with bench(tmp_path) as desk:
        url = feeds.serve("/feed.csv", catalogue(3))
        source = await desk.source(config={"url": url, "currency": "usd"})
        await desk.client.post(f"/v1/sources/{source}/runs")
        await desk.worked(source)
        before = await desk.kept()
        disk = FullDisk(desk.world.container.objects())
        desk.world.container.objects.override(providers.Object(disk))
        desk.world.container.assembled.reset()
        feeds.serve("/feed.csv", catalogue(4))
        for _ in range(4):
            assert (await desk.client.post(f"/v1/sources/{source}/runs")).status == 202
            await desk.worked(source)
            run = await desk.newest(source)
            assert (run["status"], run["error"]["code"]) == ("failed", "storage_full")
            assert "space" in run["error"]["message"]
        assert await desk.kept() == before
        assert (await desk.client.get(f"/v1/sources/{source}")).json()["status"] == "active"
        disk.full = False
        await desk.client.post(f"/v1/sources/{source}/runs")
        await desk.worked(source)
        assert (await desk.newest(source))["stats"]["products_created"] == 1
