"""Byte limits of log pages, after which the next page continues without gaps."""

import pytest

from domain.changes.model import ALL, BEGINNING, EventFilter, LogView
from domain.events.model import FieldChange, sum_body_bytes
from domain.kernel.bounds import CHANGES_BYTES, EVENT_BYTES
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.contract.test_event_reader import END, EVERYTHING, append_events, list_ids, query_bounds
from tests.support.backend import Backend
from tests.support.log_changes import grant_licence

pytestmark = pytest.mark.asyncio
FEED = EventFilter()


async def _fill_log(backend: Backend, tenant: Tenant, catalogue: str | None = None) -> list[str]:
    """Append small events, of which every third has about 100 KiB."""
    made: list[str] = []
    for number in range(60):
        text = "x" * (10 if number % 3 else 100_000)
        fields = [FieldChange("data.description", None, text)]
        made += await append_events(
            backend, tenant, fields=fields, catalogue=catalogue, is_published=catalogue is not None
        )
    return made


@pytest.mark.parametrize("of_network", [False, True])
async def test_pages_end_at_the_byte_limit_and_continue(backend: Backend, tenant: Tenant, of_network: bool) -> None:
    view, start = LogView.own(tenant), BEGINNING
    if of_network:
        owner, catalogue, view = await backend.tenant(), new_id("cat"), LogView.network(tenant)
        await grant_licence(backend.pool, owner, catalogue, tenant.org)
        start = (await query_bounds(backend, view.log)).end
        made = await _fill_log(backend, owner, catalogue)
        await backend.relay(owner)
    else:
        made = await _fill_log(backend, tenant)
    position, seen, pages = start, [], 0
    while (page := await backend.events.read_page(view, position, END, 100, ALL)).events:
        assert sum_body_bytes(page.events) < CHANGES_BYTES + EVENT_BYTES
        assert page.caught_up == (len(seen) + len(page.events) == 60)
        seen, position, pages = seen + list_ids(page.events), page.position, pages + 1
    assert seen == made
    assert pages == 2
    assert len((await backend.events.read_page(view, start, END, 100, ALL, max_bytes=1)).events) == 1


async def test_spliced_pages_end_at_the_same_events(backend: Backend, tenant: Tenant) -> None:
    await _fill_log(backend, tenant)
    page = await backend.events.read_page(LogView.own(tenant), BEGINNING, END, 100, FEED)
    splice = await backend.events.read_joined(tenant, BEGINNING, END, 100, FEED)
    assert (splice.count, splice.position) == (len(page.events), page.position)
    assert splice.body == b",".join(event.body for event in page.events)
    assert not splice.caught_up
    rest = await backend.events.read_joined(tenant, splice.position, END, 100, FEED)
    assert splice.count + rest.count == 60
    assert rest.caught_up


async def test_the_newest_events_end_at_the_byte_limit(backend: Backend, tenant: Tenant) -> None:
    made = await _fill_log(backend, tenant)
    found = await backend.events.read_recent(LogView.own(tenant), EVERYTHING, 100, FEED)
    assert sum_body_bytes(found.events) < CHANGES_BYTES + EVENT_BYTES
    assert list_ids(found.events) == made[::-1][: len(found.events)]
    assert found.position == found.events[-1].position
    assert 10 < len(found.events) < 60
