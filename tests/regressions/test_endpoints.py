"""Start position of an endpoint in the network log."""

import asyncio
from typing import Any

import pytest

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.api_json.webhooks import render_endpoint
from adapters.postgres.event_log import PostgresNetworkLog
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import PostgresOrgRegistry
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from domain.webhooks.usecases.service import WebhookService
from tests.contract.delivery_harness import FixedSecretVault
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.memory.clock import SystemClock
from tests.support.memory.messages import MemorySignals
from tests.support.network import relay_events

pytestmark = pytest.mark.asyncio


async def test_concurrently_created_endpoints_begin_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """Expected: all are created at once, each at the network's end. `_now` queried bounds over a second connection while its
    unit of work held one: as many requests as the pool has connections waited for each other (5 s, with a transaction and
    its locks), and then began at 0: all 30 days of the network were POSTed to a licensed endpoint. The same happened while
    the network's node was unavailable.
    """
    async with create_temporary_database("endpoints") as address:
        pool = Pool(address, size=2, max_wait_seconds=1.0)
        try:
            uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
            registry = PostgresOrgRegistry(pool)
            plan = await registry.find_plan("max")
            owners = [builders.organisation(plan=plan) for _ in range(3)]
            for organisation in owners:
                await registry.create(organisation)
            async with uow.begin(Tenant(owners[2].id, True), builders.CALL) as tx:
                await tx[EventLog].append(
                    [builders.event("src_1", catalogue="cat_1", is_published=True) for _ in range(5)]
                )
            await relay_events(PostgresNetworkLog(pool, SystemClock()), MemorySignals())
            service = WebhookService(FixedSecretVault(), JsonEventRendering(), render_endpoint)
            begun = asyncio.Barrier(2)

            async def create(org: str) -> Any:
                async with uow.begin(Tenant(org, True), builders.CALL) as tx:
                    await begun.wait()
                    return await service.create_with_secret(
                        tx, {"url": "https://a.example/", "event_types": ("*",)}, "2026-10-04"
                    )

            await asyncio.gather(*(create(organisation.id) for organisation in owners[:2]))
            async with pool.connect_as_owner() as link:
                cursor = await link.cursor.execute("SELECT network_checkpoint FROM webhook_endpoints")
                stored = [position for (position,) in await cursor.fetchall()]
            assert stored == [5, 5]
        finally:
            await pool.close()
