"""A database of the release before, whose events are flagged for others, and a reader and an endpoint that have had them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import psycopg
import pytest

from adapters.memory.clock import SystemClock
from adapters.postgres.nodes.connecting import connect
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.migrate import apply, migrate
from adapters.postgres.network import PostgresNetworkLog
from adapters.postgres.nodes.pool import Pool
from adapters.wire.cursors import _read
from adapters.wire.events import WireEventRendering
from adapters.memory.signals import MemorySignals
from domain.changes.model import EventFilter, FeedPosition, network_of
from domain.changes.usecases.service import ChangesService
from domain.changes.usecases.tailing import LogTailer
from domain.kernel.tenancy import Tenant
from tests.postgres.databases import database_alone
from tests.support.network import relay

pytestmark = pytest.mark.asyncio
OWNER, READER = Tenant("org_owner", True), Tenant("org_reader", True)
_BODY = (
    '{"id":"evt_%s","type":"offer.changed","subject":"ofr_1","time":"2026-11-22T00:00:00Z","tenant_id":"org_owner",'
    '"data":{"id":"ofr_1","product":"prod_1","fields":[{"path":"price","old":1,"new":2}]}}'
)


async def test_what_was_read_before_the_upgrade_is_not_told_again() -> None:
    """Expected: nothing; or 410. A cursor of the former release stood behind everything, others' events included; now the network's part of
    it is 0, the relay copies 30 days of what was told already, and the reader is given all of it again ("each exactly once")."""
    async with database_alone("upgraded_network", migrated=False) as address:
        async with await connect(address, "test") as owner:
            async with owner.transaction():
                await apply(owner, "0009_runs_that_die")
            await owner.execute("SELECT set_config('joinery.org', '*', false)")
            for org in (OWNER.org, READER.org):
                await owner.execute(
                    "INSERT INTO organisations (id, name, kind, plan, live_catalogue, test_catalogue, created_at)"
                    " VALUES (%s, %s, 'vendor', 'standard', %s, %s, now())",
                    (org, org, f"cat_{org}", f"cat_{org}_test"),
                )
            await owner.execute("INSERT INTO licences VALUES ('org_owner', true, 'cat_org_owner', 'org_reader', '{}')")
            for _ in range(5):
                [(position,)] = await (await owner.execute("SELECT nextval('event_position')")).fetchall()
                await owner.execute(
                    "INSERT INTO events (position, org, livemode, id, type, subject, catalogue, version, time, network, body)"
                    " VALUES (%s, 'org_owner', true, %s, 'offer.changed', 'ofr_1', 'cat_org_owner', 1, now(), true, %s)",
                    (position, f"evt_{position}", (_BODY % position).encode()),
                )
        await migrate(address)
        pool = Pool(address, size=3)
        try:
            await relay(PostgresNetworkLog(pool, SystemClock()), MemorySignals())
            reader = PostgresEventReader(pool)
            service = ChangesService(reader, LogTailer(reader, WireEventRendering(), MemorySignals()))
            old = _read("5")  # what the cursor of the former release holds
            after = await service.start(READER, FeedPosition(old, _read("")))
            page = await service.page(READER, after, 100, EventFilter())
            assert page.count == 0, page.body
        finally:
            await pool.close()
