"""Filtered reads of a log (domain/events/ports.py): the results equal those of an unfiltered scan."""

from collections.abc import AsyncIterator, Sequence
from random import Random

import pytest
import pytest_asyncio

from domain.changes.model import BEGINNING, OPEN_END, EventFilter, LogView
from domain.events.model import Event, LoggedEvent, LogPosition
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.contract.test_event_reader import append_events, list_ids, query_bounds, read_log
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
END = LogPosition(position=OPEN_END)
RARE, SPARSE, DENSE = "source.blocked", "product.merged", "offer.changed"
LENGTH = 9_000
"""Events of a long log, of which one request scans a part only."""


async def read_forwards(
    backend: Backend, tenant: Tenant, wanted: EventFilter, limit: int, end: LogPosition | None = None
) -> list[LoggedEvent]:
    """Read forwards, page by page, up to `end` or the current end."""
    known = end or (await query_bounds(backend, tenant)).end
    found, position, caught_up = list[LoggedEvent](), BEGINNING, False
    while not caught_up:
        page = await backend.events.read_page(LogView.own(tenant), position, known, limit, wanted)
        assert len(page.events) <= limit
        assert page.caught_up or page.position.position > position.position, "the position advances"
        assert page.position.time is not None, "the time identifies the log"
        assert all(position.position < event.position <= page.position.position for event in page.events)
        found, position, caught_up = [*found, *page.events], page.position, page.caught_up
    assert position.position == known.position
    return found


async def read_backwards(backend: Backend, tenant: Tenant, wanted: EventFilter, limit: int) -> list[LoggedEvent]:
    """Read backwards, page by page."""
    found, before = list[LoggedEvent](), (await query_bounds(backend, tenant)).last + 1
    while before > 1:
        recent = await backend.events.read_recent(LogView.own(tenant), before, limit, wanted)
        assert len(recent.events) <= limit and recent.position < before
        found, before = [*found, *recent.events], recent.position
    return found


def _build_filter(types: Sequence[str] | None, catalogues: Sequence[str] | None) -> EventFilter:
    return EventFilter(frozenset(types) if types else None, frozenset(catalogues) if catalogues else None)


class LongLog:
    """Log with rare, sparse and frequent types and catalogues."""

    def __init__(self, tenant: Tenant, length: int) -> None:
        self.tenant, self.length = tenant, length
        self.rare, self.dense, self.once = (new_id("cat") for _ in range(3))

    async def append_events(self, backend: Backend) -> None:
        """Append the events in transactions of different sizes."""
        dice, left = Random(3), self.length
        while left:
            count = min(left, dice.choice((1, 40, 41, 500, 1_300)))
            async with backend.uow.begin(self.tenant, builders.CALL) as tx:
                await tx[EventLog].append([self._build_event(self.length - left + number) for number in range(count)])
            left -= count

    def _build_event(self, number: int) -> Event:
        kind = RARE if number % 9_001 == 4_500 else SPARSE if number % 640 == 100 else DENSE
        if number == 17:
            return builders.event("src_1", type=kind, catalogue=self.once)
        catalogue = self.rare if number % 1_100 == 7 else self.dense if number % 3 else None
        return builders.event("src_1", type=kind, catalogue=catalogue)


@pytest_asyncio.fixture
async def long_log(backend: Backend, tenant: Tenant) -> AsyncIterator[LongLog]:
    made = LongLog(tenant, LENGTH)
    await made.append_events(backend)
    yield made


async def test_a_long_log_is_read_completely_with_any_filter(backend: Backend, long_log: LongLog) -> None:
    tenant = long_log.tenant
    known = (await query_bounds(backend, tenant)).end
    page = await backend.events.read_page(
        LogView.own(tenant), BEGINNING, known, long_log.length + 1, EventFilter(), max_bytes=1 << 40
    )
    everything = page.events
    assert len(everything) == long_log.length
    for types, catalogues in (
        ([RARE], None), ([SPARSE], None), ([SPARSE, RARE], None), (None, [long_log.rare]), (None, [long_log.once]),
        ([SPARSE], [long_log.dense]), ([RARE], [long_log.rare]), ([DENSE], [long_log.once, long_log.rare]),
        (["product.created"], None), (None, [new_id("cat")]), ([RARE, "credits.low"], None),
    ):  # fmt: skip
        wanted = _build_filter(types, catalogues)
        expected = [event.id for event in everything if wanted.matches(event)]
        for limit in (3, 1_000):
            assert list_ids(await read_forwards(backend, tenant, wanted, limit)) == expected
            assert list_ids(await read_backwards(backend, tenant, wanted, limit)) == expected[::-1]


async def test_frequent_types_fill_their_pages(backend: Backend, long_log: LongLog) -> None:
    wanted = _build_filter([DENSE], [long_log.dense])
    known = (await query_bounds(backend, long_log.tenant)).end
    page = await backend.events.read_page(LogView.own(long_log.tenant), BEGINNING, known, 500, wanted)
    assert len(page.events) == 500 and not page.caught_up
    recent = await backend.events.read_recent(LogView.own(long_log.tenant), known.position + 1, 500, wanted)
    assert len(recent.events) == 500


async def test_the_end_can_be_open(backend: Backend, long_log: LongLog) -> None:
    """Events that are appended after the end of the scan are not skipped."""
    tenant, view = long_log.tenant, LogView.own(long_log.tenant)
    for wanted in (_build_filter([SPARSE], None), _build_filter([RARE], None), _build_filter(None, [long_log.rare])):
        position, seen, expected = BEGINNING, list[str](), list_ids(await read_forwards(backend, tenant, wanted, 1_000))
        for _ in range(100):
            page = await backend.events.read_page(view, position, END, 1_000, wanted)
            assert page.position.position <= (await query_bounds(backend, tenant)).last, "there are no events yet"
            seen, position = seen + list_ids(page.events), page.position
            if page.caught_up:
                break
        assert seen == expected
        more = await append_events(backend, tenant, type=RARE, catalogue=long_log.rare)
        more += await append_events(backend, tenant, type=SPARSE, catalogue=long_log.rare)
        found = await backend.events.read_page(view, position, END, 10, wanted)
        assert len(found.events) in (1, 2) and set(list_ids(found.events)) <= set(more)


@pytest.mark.parametrize(
    "blocks", [1, 3, 42, *(pytest.param(blocks, marks=pytest.mark.soak) for blocks in (2, 10, 41, 43))]
)
async def test_logs_can_end_with_any_block(backend: Backend, tenant: Tenant, blocks: int) -> None:
    """Each block contains one matching event, and the log ends within the last block."""
    for _ in range(blocks - 1):
        await append_events(backend, tenant, type=RARE)
        await append_events(backend, tenant, 511)
    await append_events(backend, tenant, type=RARE)
    wanted, view, position, seen = _build_filter([RARE], None), LogView.own(tenant), BEGINNING, 0
    for _ in range(10):
        page = await backend.events.read_page(view, position, END, 1_000, wanted)
        seen, position = seen + len(page.events), page.position
        if page.caught_up:
            break
    assert seen == blocks
    made = await append_events(backend, tenant, type=RARE)
    assert list_ids((await backend.events.read_page(view, position, END, 1_000, wanted)).events) == made
    assert len(await read_backwards(backend, tenant, wanted, 5)) == blocks + 1


async def test_a_rollback_hides_no_later_events(backend: Backend, tenant: Tenant) -> None:
    """The same connection may have been about to record the type for this block."""
    wanted = _build_filter([RARE], None)
    await append_events(backend, tenant, 3)
    with pytest.raises(LookupError):
        async with backend.uow.begin(tenant, builders.CALL) as tx:
            await tx[EventLog].append([builders.event("src_1", type=RARE)])
            if (flush := getattr(tx, "flush", None)) is not None:
                await flush()
            raise LookupError
    made = await append_events(backend, tenant, type=RARE)
    made += await append_events(backend, tenant, type=RARE)
    assert list_ids(await read_forwards(backend, tenant, wanted, 10)) == made
    assert list_ids(await read_backwards(backend, tenant, wanted, 10)) == made[::-1]


async def test_logs_record_their_own_terms(backend: Backend, tenant: Tenant) -> None:
    """The logs share one connection."""
    other, sandbox, catalogue = await backend.tenant(), Tenant(tenant.org, False), new_id("cat")
    wanted = _build_filter([RARE], [catalogue])
    for log in (tenant, other, sandbox, tenant):
        made = await append_events(backend, log, type=RARE, catalogue=catalogue)
        assert list_ids(await read_forwards(backend, log, wanted, 10))[-1:] == made
    assert [len(await read_forwards(backend, log, wanted, 10)) for log in (tenant, other, sandbox)] == [2, 1, 1]


async def test_events_at_a_block_boundary_are_found(backend: Backend, tenant: Tenant) -> None:
    wanted = _build_filter([RARE], None)
    await append_events(backend, tenant, 511)
    made = await append_events(backend, tenant, type=RARE)
    made += await append_events(backend, tenant, type=RARE)
    found = await read_forwards(backend, tenant, wanted, 10)
    assert (list_ids(found), [event.position for event in found]) == (made, [512, 513])
    known = (await query_bounds(backend, tenant)).end
    for event in found:
        at = LogPosition(known.epoch).after(event)
        page = await backend.events.read_page(LogView.own(tenant), at, known, 10, wanted)
        assert list_ids(page.events) == made[made.index(event.id) + 1 :]
        recent = await backend.events.read_recent(LogView.own(tenant), event.position, 10, wanted)
        assert list_ids(recent.events) == made[: made.index(event.id)]
    assert len(await read_log(backend, tenant)) == 513
