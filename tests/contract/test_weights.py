"""Reading the log ends by bytes as well as by number, and whoever goes on misses nothing."""

import pytest

from domain.changes.model import ALL, EventFilter, Reader
from domain.events.model import FieldChange, weight_of
from domain.kernel.bounds import CHANGES_BYTES, EVENT_BYTES
from domain.kernel.tenancy import Tenant
from tests.contract.test_event_reader import EVERYTHING, ids, written
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
FEED = EventFilter()


async def _filled(backend: Backend, tenant: Tenant) -> list[str]:
    """Small events, and every third of some 100 KiB."""
    made: list[str] = []
    for number in range(60):
        text = "x" * (10 if number % 3 else 100_000)
        made += await written(backend, tenant, fields=[FieldChange("data.description", None, text)])
    return made


async def test_pages_end_by_bytes_and_go_on(backend: Backend, tenant: Tenant) -> None:
    made = await _filled(backend, tenant)
    reader, position, seen, pages = Reader(tenant), 0, [], 0
    while page := await backend.events.page(reader, position, EVERYTHING, 100, ALL):
        assert weight_of(page) < CHANGES_BYTES + EVENT_BYTES
        seen, position, pages = seen + ids(page), page[-1].position, pages + 1
    assert seen == made
    assert pages == 2
    assert len(await backend.events.page(reader, 0, EVERYTHING, 100, ALL, most_bytes=1)) == 1


async def test_spliced_pages_end_where_the_others_do(backend: Backend, tenant: Tenant) -> None:
    await _filled(backend, tenant)
    page = await backend.events.page(Reader(tenant), 0, EVERYTHING, 100, FEED)
    splice = await backend.events.splice(tenant, 0, EVERYTHING, 100, FEED)
    assert (splice.count, splice.position) == (len(page), page[-1].position)
    assert splice.body == b",".join(event.body for event in page)
    assert splice.full
    rest = await backend.events.splice(tenant, splice.position, EVERYTHING, 100, FEED)
    assert splice.count + rest.count == 60
    assert not rest.full


async def test_the_newest_end_by_bytes(backend: Backend, tenant: Tenant) -> None:
    made = await _filled(backend, tenant)
    recent = await backend.events.recent(Reader(tenant), 0, EVERYTHING, 100, FEED)
    assert weight_of(recent) < CHANGES_BYTES + EVENT_BYTES
    assert ids(recent) == made[::-1][: len(recent)]
    assert 10 < len(recent) < 60
