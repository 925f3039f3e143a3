"""A run with unexpected errors is retried, then fails, without effect on source health."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from adapters.postgres.nodes.pool import Pool
from domain.ingestion.ports import Connectors, FeedReaderFactory
from domain.jobs.model import ClaimedJob
from domain.runs.model import MAX_ATTEMPTS
from tests.flows.feeds import build_catalogue, serve_feeds
from tests.flows.in_process_service import open_service
from tests.support.readers import create_in_process_readers
from tests.support.services import create_run_handler

pytestmark = pytest.mark.asyncio


class FailingConnectors:
    """Connectors that fetch correctly and fail to parse."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def parse_tables(self, *_: Any, **__: Any) -> Any:
        """Raise an error outside of the connector contract."""
        raise TypeError("unhashable type: 'sofa'")


async def test_a_run_fails_after_several_attempts(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        with serve_feeds() as feeds:
            source = await service.create_source(
                config={"url": feeds.serve("/feed.csv", build_catalogue(3)), "currency": "usd"}
            )
            run = (await service.client.post(f"/v1/sources/{source}/runs")).json()["id"]
            container = service.world.dependencies
            readers = create_in_process_readers(FailingConnectors(container[Connectors]))
            container[FeedReaderFactory] = readers
            execution = create_run_handler(container)
            async with container[Pool].connect_to_coordinator() as link:
                cursor = await link.driver_connection.execute("SELECT id, org FROM jobs WHERE key = %s", (run,))
                id_, org = await cursor.fetchone()

            async def attempt(number: int) -> None:
                from domain.kernel.tenancy import Tenant

                async with container[Pool].connect_to_coordinator() as link:
                    await link.driver_connection.execute("UPDATE jobs SET attempt = %s WHERE id = %s", (number, id_))
                job = ClaimedJob(id_, "runs.execute", f"source:{source}", Tenant(org, True), {"run": run}, number)
                await execution(job, asyncio.Event())

            with pytest.raises(TypeError):
                await attempt(1)
            assert (await service.client.get(f"/v1/runs/{run}")).json()["status"] == "running"
            await attempt(MAX_ATTEMPTS)
        ended = (await service.client.get(f"/v1/runs/{run}")).json()
        assert (ended["status"], ended["error"]["code"]) == ("failed", "internal_error")
        assert "sofa" not in ended["error"]["message"]
        assert (await service.client.get(f"/v1/sources/{source}")).json()["status"] == "active"
