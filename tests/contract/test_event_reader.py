"""Reads of event logs (domain/events/ports.py, EventReader): pages, filters, epochs and losses."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from domain.changes.model import ALL, BEGINNING, OPEN_END, EventFilter, LogBounds, LogView
from domain.events.model import LoggedEvent, LogPosition
from domain.events.ports import EventLog
from domain.kernel.errors import CursorExpired
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.support import builders
from tests.support.backend import Backend
from tests.support.log_changes import delete_events, raise_low_watermark

pytestmark = pytest.mark.asyncio
END = LogPosition(position=OPEN_END)
EVERYTHING = OPEN_END
FEED = EventFilter()


async def append_events(backend: Backend, tenant: Tenant, count: int = 1, **changes: Any) -> list[str]:
    """Append events in one transaction and return their IDs."""
    events = [builders.event(**{"subject": new_id("src")} | changes) for _ in range(count)]
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[EventLog].append(events)
    return [event.id for event in events]


def list_ids(events: Sequence[LoggedEvent]) -> list[str]:
    return [event.id for event in events]


async def query_bounds(backend: Backend, log: Tenant) -> LogBounds:
    return (await backend.events.query_bounds([log]))[log]


async def read_log(backend: Backend, tenant: Tenant) -> Sequence[LoggedEvent]:
    """Return the events of the tenant's log."""
    return (await backend.events.read_page(LogView.own(tenant), BEGINNING, END, 10_000, ALL)).events


async def test_a_page_continues_where_the_last_one_ended(backend: Backend, tenant: Tenant) -> None:
    made = await append_events(backend, tenant, 3) + await append_events(backend, tenant, 60)
    position, seen, caught_up = BEGINNING, [], False
    while not caught_up:
        page = await backend.events.read_page(LogView.own(tenant), position, END, 7, ALL)
        assert len(page.events) == 7 or page.caught_up
        assert [event.position for event in page.events] == sorted(event.position for event in page.events)
        assert page.position == (position.after(page.events[-1]) if page.events else position)
        seen += list_ids(page.events)
        position, caught_up = page.position, page.caught_up
    assert seen == made


async def test_an_event_is_read_as_it_was_written(backend: Backend, tenant: Tenant) -> None:
    subject, source, catalogue = new_id("ofr"), new_id("src"), new_id("cat")
    await append_events(
        backend, tenant, subject=subject, type="offer.changed", version=3, source=source, catalogue=catalogue,
        data={"id": subject, "product": "prod_x"}, fields=[("price", 1, 2)], facets=["price"],
    )  # fmt: skip
    [event] = await read_log(backend, tenant)
    assert (event.subject, event.product, event.source, event.catalogue) == (subject, "prod_x", source, catalogue)
    assert (event.type, event.version, event.groups, event.is_from_network) == ("offer.changed", 3, None, False)
    body = json.loads(event.body)
    assert (body["id"], body["tenant_id"], body["livemode"]) == (event.id, tenant.org, True)
    assert body["data"]["previous_version"] == 2


async def test_a_page_begins_after_a_position_and_ends_at_the_known_end(backend: Backend, tenant: Tenant) -> None:
    made, view = await append_events(backend, tenant, 5), LogView.own(tenant)
    first, *_, _last = await read_log(backend, tenant)
    known = (await query_bounds(backend, tenant)).end
    behind = replace(known, position=0, time=None).after(first)
    page = await backend.events.read_page(view, behind, known, 10, ALL)
    assert (list_ids(page.events), page.position, page.caught_up) == (made[1:], known, True)
    page = await backend.events.read_page(view, known, END, 10, ALL)
    assert (list(page.events), page.position, page.caught_up) == ([], known, True)
    page = await backend.events.read_page(view, behind, known, 4, ALL)
    assert (list_ids(page.events), page.position, page.caught_up) == (made[1:], known, False)


async def test_without_matching_events_the_position_moves_to_the_end(backend: Backend, tenant: Tenant) -> None:
    await append_events(backend, tenant, 5)
    known = (await query_bounds(backend, tenant)).end
    blocked = EventFilter(types=frozenset({"source.blocked"}))
    page = await backend.events.read_page(LogView.own(tenant), BEGINNING, known, 10, blocked)
    assert (list(page.events), page.position, page.caught_up) == ([], known, True)


async def test_the_newest_events_are_read(backend: Backend, tenant: Tenant) -> None:
    made, view = await append_events(backend, tenant, 5), LogView.own(tenant)
    found = await backend.events.read_recent(view, EVERYTHING, 9, FEED)
    assert (list_ids(found.events), found.position) == (made[::-1], 1)
    found = await backend.events.read_recent(view, 5, 2, FEED)
    assert (list_ids(found.events), found.position) == ([made[3], made[2]], 3)
    found = await backend.events.read_recent(view, found.position, 2, FEED)
    assert list_ids(found.events) == [made[1], made[0]]
    assert list((await backend.events.read_recent(view, 1, 2, FEED)).events) == []


async def test_a_splice_contains_the_bodies_of_a_page(backend: Backend, tenant: Tenant) -> None:
    await append_events(backend, tenant, 12)
    page = await backend.events.read_page(LogView.own(tenant), BEGINNING, END, 5, FEED)
    splice = await backend.events.read_joined(tenant, BEGINNING, END, 5, FEED)
    assert splice.body == b",".join(event.body for event in page.events)
    assert (splice.count, splice.position, splice.caught_up) == (5, page.position, False)
    known = (await query_bounds(backend, tenant)).end
    rest = await backend.events.read_joined(tenant, splice.position, known, 50, FEED)
    assert (rest.count, rest.position, rest.caught_up) == (7, known, True)
    empty = await backend.events.read_joined(tenant, known, END, 5, FEED)
    assert (empty.count, empty.position, empty.body, empty.caught_up) == (0, known, b"", True)


async def test_events_are_read_by_position(backend: Backend, tenant: Tenant) -> None:
    made, other = await append_events(backend, tenant, 4), await backend.tenant()
    await append_events(backend, other, 2)
    assert list_ids(await backend.events.get_at(LogView.own(tenant), [4, 2, 5, EVERYTHING])) == [made[1], made[3]]
    assert await backend.events.get_at(LogView.own(tenant), []) == []


async def test_later_events_of_a_subject_are_found(backend: Backend, tenant: Tenant) -> None:
    other = await backend.tenant()
    for log in (other, tenant):
        made = await append_events(backend, log, 3, subject="src_1") + await append_events(
            backend, log, subject="src_2"
        )
    made += await append_events(backend, tenant, 2, subject="src_1")
    assert list_ids(await backend.events.get_about_subject(tenant, "src_1", 1, 10)) == [
        made[5],
        made[4],
        made[2],
        made[1],
    ]
    assert list_ids(await backend.events.get_about_subject(tenant, "src_1", 1, 2)) == [made[5], made[4]]
    assert await backend.events.get_about_subject(tenant, "src_2", 4, 10) == []


async def test_filters_agree_with_the_model(backend: Backend, tenant: Tenant) -> None:
    dice, view = Random(7), LogView.own(tenant)
    types = ["offer.changed", "product.updated", "source.degraded", "credits.low", "export.completed"]
    catalogues = [new_id("cat") for _ in range(3)]
    for _ in range(40):
        await append_events(backend, tenant, type=dice.choice(types), catalogue=dice.choice([*catalogues, None]))
    everything = await read_log(backend, tenant)
    assert len(everything) == 40
    for _ in range(20):
        wanted = EventFilter(
            types=frozenset(dice.sample(types, dice.randrange(1, 4))) if dice.random() < 0.7 else None,
            catalogues=frozenset(dice.sample(catalogues, dice.randrange(1, 3))) if dice.random() < 0.7 else None,
            includes_webhook_types=dice.random() < 0.5,
        )
        expected = [event.id for event in everything if wanted.matches(event)]
        known = (await query_bounds(backend, tenant)).end
        page = await backend.events.read_page(view, BEGINNING, known, 100, wanted)
        assert (list_ids(page.events), page.position, page.caught_up) == (expected, known, True)
        assert (
            list_ids((await backend.events.read_recent(view, known.position + 1, 100, wanted)).events) == expected[::-1]
        )
        assert (await backend.events.read_joined(tenant, BEGINNING, known, 100, wanted)).count == len(expected)
        seen, position, caught_up = list[str](), BEGINNING, False
        while not caught_up:
            page = await backend.events.read_page(view, position, known, 3, wanted)
            seen, position, caught_up = seen + list_ids(page.events), page.position, page.caught_up
        assert seen == expected


async def test_no_tenant_reads_events_of_another(backend: Backend, tenant: Tenant) -> None:
    other, sandbox = await backend.tenant(), Tenant(tenant.org, False)
    made = await append_events(backend, tenant, is_published=True, catalogue=new_id("cat"))
    await backend.relay(tenant)
    for outsider in (other, sandbox):
        for view in (LogView.own(outsider), LogView.network(outsider)):
            page = await backend.events.read_page(view, BEGINNING, END, 100, ALL)
            assert set(made).isdisjoint(list_ids(page.events)) and (view.is_network or not page.events)
            recent = await backend.events.read_recent(view, EVERYTHING, 100, ALL)
            assert set(made).isdisjoint(list_ids(recent.events)) and (view.is_network or not recent.events)
        assert (await backend.events.read_joined(outsider, BEGINNING, END, 10, ALL)).count == 0
        assert await backend.events.get_at(LogView.own(outsider), [1]) == []
        assert await backend.events.get_about_subject(outsider, "src_1", 0, 10) == []


async def test_bounds_of_many_logs_are_read_together(backend: Backend, tenant: Tenant) -> None:
    other, idle, sandbox = await backend.tenant(), await backend.tenant(), Tenant(tenant.org, False)
    await append_events(backend, tenant, 2)
    await append_events(backend, other, 3)
    found = await backend.events.query_bounds([tenant, other, idle, sandbox])
    assert {log: bounds.last for log, bounds in found.items()} == {tenant: 2, other: 3, idle: 0, sandbox: 0}
    assert found[idle] == found[sandbox] == LogBounds()
    assert await backend.events.query_bounds([]) == {}


async def test_an_epoch_begins_once(backend: Backend, tenant: Tenant) -> None:
    """Several readers may detect the loss at once; readers within the new epoch have lost nothing."""
    await append_events(backend, tenant, 3)
    before = await query_bounds(backend, tenant)
    await backend.events.begin_epoch(tenant, before.end)
    assert await query_bounds(backend, tenant) == before == await backend.events.confirm_bounds(tenant)
    await backend.events.begin_epoch(tenant, LogPosition(before.epoch, before.last + 1))
    after = await query_bounds(backend, tenant)
    assert after.epoch not in (0, before.epoch)
    assert (after.last, after.epoch_start, after.time) == (3, 3, before.time)
    await backend.events.begin_epoch(tenant, LogPosition(before.epoch, before.last + 1))
    assert await query_bounds(backend, tenant) == after
    made = await append_events(backend, tenant)
    later = await query_bounds(backend, tenant)
    assert (later.epoch, later.last, later.epoch_start) == (after.epoch, 4, 3)
    page = await backend.events.read_page(LogView.own(tenant), after.end, END, 10, ALL)
    assert list_ids(page.events) == made


async def test_a_position_with_a_different_event_is_refused(backend: Backend, tenant: Tenant) -> None:
    """The log went back in time and reached the same length again before the next read."""
    await append_events(backend, tenant, 5)
    view, old = LogView.own(tenant), (await query_bounds(backend, tenant)).end
    kept = replace(old, position=0, time=None).after((await read_log(backend, tenant))[1])
    await delete_events(backend.pool, tenant, 3)
    await backend.pass_time(timedelta(milliseconds=20))
    made = await append_events(backend, tenant, 6)
    assert (await query_bounds(backend, tenant)).last == 8
    for position in (old, replace(old, position=4)):
        with pytest.raises(CursorExpired):
            await backend.events.read_page(view, position, END, 10, ALL)
        with pytest.raises(CursorExpired):
            await backend.events.read_page(view, position, END, 10, EventFilter(types=frozenset({"source.blocked"})))
        with pytest.raises(CursorExpired):
            await backend.events.read_joined(tenant, position, END, 10, FEED)
    assert list_ids((await backend.events.read_page(view, kept, END, 10, ALL)).events) == made


async def test_a_position_beyond_the_end_is_refused(backend: Backend, tenant: Tenant) -> None:
    await append_events(backend, tenant, 5)
    old = (await query_bounds(backend, tenant)).end
    await delete_events(backend.pool, tenant, 3)
    with pytest.raises(CursorExpired):
        await backend.events.read_page(LogView.own(tenant), old, END, 10, ALL)
    with pytest.raises(CursorExpired):
        await backend.events.read_joined(tenant, old, END, 10, FEED)


async def test_expired_events_are_below_the_low_watermark(backend: Backend, tenant: Tenant) -> None:
    made, view = await append_events(backend, tenant, 5), LogView.own(tenant)
    events = await read_log(backend, tenant)
    start = replace((await query_bounds(backend, tenant)).end, position=0, time=None)
    await raise_low_watermark(backend.pool, tenant, 3)
    bounds = await query_bounds(backend, tenant)
    assert (bounds.low, bounds.last) == (3, 5)
    assert list_ids(await read_log(backend, tenant)) == made[3:]
    assert list_ids((await backend.events.read_recent(view, EVERYTHING, 9, FEED)).events) == made[:2:-1]
    assert list_ids((await backend.events.read_page(view, start.after(events[2]), END, 10, ALL)).events) == made[3:]
    with pytest.raises(CursorExpired):
        await backend.events.read_page(view, start.after(events[1]), END, 10, ALL)
    await raise_low_watermark(backend.pool, tenant, 5)
    bounds = await query_bounds(backend, tenant)
    assert (bounds.low, bounds.last) == (5, 5)
    more = await append_events(backend, tenant)
    assert list_ids((await backend.events.read_page(view, start.after(events[4]), END, 10, ALL)).events) == more
    assert (await query_bounds(backend, tenant)).last == 6


async def test_readers_continue_after_two_epochs(backend: Backend, tenant: Tenant) -> None:
    """An earlier epoch is valid up to the lowest start of all later epochs."""
    await append_events(backend, tenant, 12)
    first = await query_bounds(backend, tenant)
    await delete_events(backend.pool, tenant, 10)
    await backend.events.begin_epoch(tenant, first.end)
    await append_events(backend, tenant, 7)
    second = await query_bounds(backend, tenant)
    await delete_events(backend.pool, tenant, 15)
    await backend.events.begin_epoch(tenant, second.end)
    bounds = await query_bounds(backend, tenant)
    assert bounds.epoch not in (first.epoch, second.epoch)
    assert bounds.find_resume_position(first.end).position <= 9
    assert bounds.find_resume_position(second.end).position <= 14
