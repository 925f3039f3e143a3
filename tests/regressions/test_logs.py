"""Defects of event logs: each test states what is expected."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.changes.model import ALL, OPEN_END, EventFilter, LogView, get_network_tenant
from domain.events.model import LogPosition
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.contract.test_event_reader import append_events, list_ids, query_bounds
from tests.contract.test_network_log import publish_events
from tests.support.backend import Backend
from tests.support.log_changes import grant_licence

pytestmark = pytest.mark.asyncio
END = LogPosition(position=OPEN_END)
NETWORK = get_network_tenant(True)


async def test_distant_events_of_one_delivery_are_read(backend: Backend, tenant: Tenant) -> None:
    """Expected: `at` returns all requested events. It read the 2,000 positions after the first only, so that a coalesced
    delivery (whose events are released and read again) lost events later in its window.
    """
    owner, catalogue = await backend.tenant(), new_id("cat")
    await grant_licence(backend.pool, owner, catalogue, tenant.org)
    start = (await query_bounds(backend, NETWORK)).last
    made = await publish_events(backend, owner, catalogue, 2_300)
    await backend.relay(owner)
    found = await backend.events.get_at(LogView.network(tenant), [start + 1, start + 2_300])
    assert list_ids(found) == [made[0], made[-1]]


@pytest.mark.parametrize("wanted", [ALL, EventFilter(), EventFilter(types=frozenset({"source.blocked"}))])
async def test_events_after_a_clock_correction_are_read(backend: Backend, tenant: Tenant, wanted: EventFilter) -> None:
    """Expected: a reader gets events that are written after the clock was corrected. Events dated more than a day before the
    reader's position were skipped and its cursor moved to the end: they were lost without a 410.
    """
    await append_events(backend, tenant, 3)
    async with backend.pool.connect_as_owner() as link:  # written by a server whose clock is two days ahead
        ahead = datetime.now(UTC) + timedelta(days=2)
        for table in ("events", "event_logs"):
            await link.cursor.execute(f"UPDATE {table} SET time = %s WHERE org = %s", (ahead, tenant.org))
    reader = (await query_bounds(backend, tenant)).end
    made = await append_events(backend, tenant, 2, type="source.blocked")
    bounds = await query_bounds(backend, tenant)
    assert bounds.can_continue_after(reader)
    page = await backend.events.read_page(LogView.own(tenant), reader, bounds.end, 100, wanted)
    assert list_ids(page.events) == made, (page.position, bounds.end)
