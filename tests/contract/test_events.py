"""Event log (domain/events/ports.py): positions and visibility of events."""

import asyncio

import pytest

from domain.changes.model import ALL, BEGINNING, OPEN_END, LogBounds, LogView
from domain.events.model import LoggedEvent, LogPosition
from domain.events.ports import EventLog
from domain.kernel.ids import is_id, new_id
from domain.kernel.tenancy import Tenant
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


async def query_bounds(backend: Backend, log: Tenant) -> LogBounds:
    return (await backend.events.query_bounds([log]))[log]


async def read_log(backend: Backend, tenant: Tenant) -> list[LoggedEvent]:
    """Return the events of the log."""
    end = LogPosition(position=OPEN_END)
    return list((await backend.events.read_page(LogView.own(tenant), BEGINNING, end, 10_000, ALL)).events)


async def test_events_get_ids(backend: Backend, tenant: Tenant) -> None:
    named = builders.event("src_1", id=new_id("evt"))
    fresh = builders.event("src_2")
    id = named.id
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[EventLog].append([named, fresh])
        await tx[EventLog].append([])
        assert named.id == id and is_id("evt", fresh.id)
        assert [event.subject for event in tx.recorded.events] == ["src_1", "src_2"]


async def test_a_log_without_events_has_no_epoch_and_no_end(backend: Backend, tenant: Tenant) -> None:
    assert await query_bounds(backend, tenant) == LogBounds()
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[EventLog].append([])
    assert await query_bounds(backend, tenant) == LogBounds()


async def test_the_high_watermark_moves_with_commits_and_never_back(backend: Backend, tenant: Tenant) -> None:
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[EventLog].append([builders.event("src_1")])
        assert await query_bounds(backend, tenant) == LogBounds()
    first = await query_bounds(backend, tenant)
    assert (first.last, first.low, first.epoch_start) == (1, 0, 0) and first.epoch > 0
    with pytest.raises(LookupError):
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[EventLog].append([builders.event("src_1")])
            raise LookupError
    assert await query_bounds(backend, tenant) == first
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[EventLog].append([builders.event("src_1") for _ in range(3)])
    after = await query_bounds(backend, tenant)
    assert (after.epoch, after.last) == (first.epoch, 4)
    [*_, last] = await read_log(backend, tenant)
    assert after.end == LogPosition(first.epoch, last.position, last.time)


async def test_a_unit_of_work_knows_its_high_watermark(backend: Backend, tenant: Tenant) -> None:
    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[EventLog].get_high_watermark() == 0
        await tx[EventLog].append([builders.event("src_1")])
    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[EventLog].get_high_watermark() == 1


@pytest.mark.parametrize("count", [1, 40, 41, 300])
async def test_positions_begin_at_one_without_gaps_after_rollbacks(
    backend: Backend, tenant: Tenant, count: int
) -> None:
    """Each mode of each organisation has its own positions."""
    sandbox, made = Tenant(tenant.org, False), dict[Tenant, list[str]]()
    for log in (tenant, sandbox, tenant):
        events = [builders.event(f"src_{number}") for number in range(count)]
        with pytest.raises(LookupError):
            async with backend.uow.begin(log, CALL) as tx:
                await tx[EventLog].append([builders.event("src_x") for _ in range(count)])
                raise LookupError
        async with backend.uow.begin(log, CALL) as tx:
            await tx[EventLog].append(events[:1])
            with pytest.raises(LookupError):
                async with tx.savepoint():
                    await tx[EventLog].append([builders.event("src_y")])
                    raise LookupError
            await tx[EventLog].append(events[1:])
        made.setdefault(log, []).extend(event.id for event in events)
    for log, ids in made.items():
        found = await read_log(backend, log)
        assert [event.id for event in found] == ids
        assert [event.position for event in found] == list(range(1, len(ids) + 1))


async def test_positions_follow_the_order_of_commits(backend: Backend, tenant: Tenant) -> None:
    """The transaction that commits last has the highest positions, whenever it appended."""
    async with asyncio.timeout(20):
        async with backend.uow.begin(tenant, CALL) as slow:
            await slow[EventLog].append([builders.event("src_slow")])
            async with backend.uow.begin(tenant, CALL) as quick:
                await quick[EventLog].append([builders.event("src_quick")])
            seen = await read_log(backend, tenant)
            assert [(event.subject, event.position) for event in seen] == [("src_quick", 1)]
    assert [(event.subject, event.position) for event in await read_log(backend, tenant)] == [
        ("src_quick", 1),
        ("src_slow", 2),
    ]


async def test_an_uncommitted_append_is_never_visible_and_delays_no_other(backend: Backend, tenant: Tenant) -> None:
    other = await backend.tenant()
    async with asyncio.timeout(20):
        async with backend.uow.begin(tenant, CALL) as open_one:
            await open_one[EventLog].append([builders.event("src_1")])
            for log in (other, tenant, Tenant(tenant.org, False)):
                async with backend.uow.begin(log, CALL) as quick:
                    await quick[EventLog].append([builders.event("src_2")])
                assert (await query_bounds(backend, log)).last == 1
                assert [event.subject for event in await read_log(backend, log)] == ["src_2"]
    assert (await query_bounds(backend, tenant)).last == 2


async def test_the_events_of_a_transaction_have_its_time(backend: Backend, tenant: Tenant) -> None:
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[EventLog].append([builders.event("src_1"), builders.event("src_2")])
        now = tx.now
    found = await read_log(backend, tenant)
    assert {event.time for event in found} == {now}
    assert (await query_bounds(backend, tenant)).time == now
