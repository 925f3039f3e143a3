"""Network log (domain/events/ports.py, NetworkLog): published events, each once, in order and by licence."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from random import Random
from typing import Any

import pytest
import pytest_asyncio

from domain.changes.model import ALL, BEGINNING, OPEN_END, EventFilter, LogView, get_network_tenant
from domain.changes.ports import PublishedEvents
from domain.changes.usecases import network as relaying
from domain.changes.usecases.network import NetworkRelay
from domain.events.model import LoggedEvent, LogPosition
from domain.kernel.errors import CursorExpired
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from ports.signals import Channel, Signal
from tests.contract.test_event_reader import append_events, list_ids, query_bounds, read_log
from tests.support.backend import Backend
from tests.support.log_changes import delete_events, grant_licence, revoke_licence

pytestmark = pytest.mark.asyncio
END = LogPosition(position=OPEN_END)
FEED = EventFilter()
NETWORK = get_network_tenant(True)


@pytest_asyncio.fixture
async def owner(backend: Backend) -> Tenant:
    return await backend.tenant()


@pytest_asyncio.fixture
async def network_end(backend: Backend) -> AsyncIterator[LogPosition]:
    """Return the end of the network log, to which other tests publish as well."""
    yield (await query_bounds(backend, NETWORK)).end


async def read_network(
    backend: Backend, holder: Tenant, after: LogPosition, wanted: EventFilter = ALL
) -> list[LoggedEvent]:
    """Return the events of the network log that the holder can read after that position."""
    found, position, caught_up = list[LoggedEvent](), after, False
    while not caught_up:
        page = await backend.events.read_page(LogView.network(holder), position, END, 50, wanted)
        found += page.events
        position, caught_up = page.position, page.caught_up
    return found


async def publish_events(backend: Backend, owner: Tenant, catalogue: str, count: int = 1, **changes: Any) -> list[str]:
    """Append published events."""
    return await append_events(backend, owner, count, catalogue=catalogue, is_published=True, **changes)


async def test_publishing_catalogues_are_listed(backend: Backend, tenant: Tenant, owner: Tenant) -> None:
    sandbox = Tenant(owner.org, False)
    await append_events(backend, tenant, catalogue=new_id("cat"))
    await publish_events(backend, owner, new_id("cat"), 2)
    await publish_events(backend, sandbox, new_id("cat"))
    among = await backend.network.list_publishers([tenant, owner, sandbox])
    assert among == await backend.events.query_bounds([owner, sandbox])
    everybody = await backend.network.list_publishers()
    assert among.items() <= everybody.items() and tenant not in everybody
    assert await backend.network.list_publishers([]) == {}


async def test_published_events_keep_the_owners_order(backend: Backend, owner: Tenant) -> None:
    catalogue = new_id("cat")
    first = await publish_events(backend, owner, catalogue, 3)
    await append_events(backend, owner, 2, catalogue=catalogue)
    last = await publish_events(backend, owner, catalogue, 2)
    found = await backend.network.read_published(owner, BEGINNING, 100)
    assert list_ids(found) == [*first, *last]
    assert [event.position for event in found] == [1, 2, 3, 6, 7]
    assert list_ids(await backend.network.read_published(owner, BEGINNING.with_position(2), 2)) == [first[2], last[0]]
    assert await backend.network.read_published(owner, BEGINNING.with_position(7), 100) == []


async def test_copied_events_equal_the_originals(
    backend: Backend, tenant: Tenant, owner: Tenant, network_end: LogPosition
) -> None:
    catalogue = new_id("cat")
    await grant_licence(backend.pool, owner, catalogue, tenant.org, "stock")
    await publish_events(
        backend, owner, catalogue, subject="ofr_1", type="offer.changed", version=3, source="src_1",
        data={"id": "ofr_1", "product": "prod_1"}, fields=[("price", 1, 2)], facets=["price"],
    )  # fmt: skip
    [original] = await read_log(backend, owner)
    await backend.relay(owner)
    [copy] = await read_network(backend, tenant, network_end)
    assert copy.is_from_network and copy.groups == {"base", "retail", "stock"}
    for name in ("id", "type", "subject", "product", "source", "catalogue", "version", "body"):
        assert getattr(copy, name) == getattr(original, name)
    assert json.loads(copy.body)["tenant_id"] == owner.org
    assert copy.time >= original.time
    assert (await query_bounds(backend, NETWORK)).end == LogPosition(
        (await query_bounds(backend, NETWORK)).epoch, copy.position, copy.time
    )


async def test_each_owners_events_are_copied_once_in_order(
    backend: Backend, tenant: Tenant, network_end: LogPosition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Applies to any transaction sizes of the relay and to interleaved events of others."""
    monkeypatch.setattr(relaying, "MAX_BATCH_EVENTS", 7)
    owners, dice = [await backend.tenant() for _ in range(4)], Random(11)
    catalogues = {owner: new_id("cat") for owner in owners}
    made: dict[Tenant, list[str]] = {owner: [] for owner in owners}
    for owner in owners:
        await grant_licence(backend.pool, owner, catalogues[owner], tenant.org)
    for _ in range(12):
        for owner in dice.sample(owners, 3):
            made[owner] += await publish_events(backend, owner, catalogues[owner], dice.choice((1, 2, 9)))
            await append_events(backend, owner, dice.randrange(1, 3), catalogue=catalogues[owner])
        await backend.relay(*owners)
    found = await read_network(backend, tenant, network_end)
    assert len(found) == sum(map(len, made.values()))
    for owner in owners:
        assert [event.id for event in found if event.catalogue == catalogues[owner]] == made[owner]
    assert [event.position for event in found] == sorted({event.position for event in found})


async def test_positions_of_the_networks_log_have_no_gaps(
    backend: Backend, owner: Tenant, network_end: LogPosition
) -> None:
    await publish_events(backend, owner, new_id("cat"), 5)
    await backend.relay(owner)
    await backend.relay(owner)
    assert (await query_bounds(backend, NETWORK)).last == network_end.position + 5


async def test_concurrent_relays_copy_nothing_twice(
    backend: Backend, tenant: Tenant, network_end: LogPosition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A former leader may continue for a moment after the next one has begun."""
    monkeypatch.setattr(relaying, "MAX_BATCH_EVENTS", 5)
    owners = [await backend.tenant() for _ in range(3)]
    catalogues, made = {owner: new_id("cat") for owner in owners}, dict[Tenant, list[str]]()
    for owner in owners:
        await grant_licence(backend.pool, owner, catalogues[owner], tenant.org)
        made[owner] = await publish_events(backend, owner, catalogues[owner], 30)
    async with asyncio.timeout(60):
        await asyncio.gather(*(backend.relay(*owners) for _ in range(3)))
    found = await read_network(backend, tenant, network_end)
    for owner in owners:
        assert [event.id for event in found if event.catalogue == catalogues[owner]] == made[owner]
    assert len(found) == 90


async def test_a_checkpoint_is_moved_from_its_stored_position_only(
    backend: Backend, owner: Tenant, network_end: LogPosition
) -> None:
    await publish_events(backend, owner, new_id("cat"), 4)
    events = await backend.network.read_published(owner, BEGINNING.with_position(0), 4)
    first, second = LogPosition(7, 2), LogPosition(7, 4)

    async def append(was: LogPosition | None, reached: LogPosition, some: Sequence[LoggedEvent]) -> bool:
        return await backend.network.append(NETWORK, [PublishedEvents(owner, was, reached, some)])

    assert owner not in await backend.network.load_checkpoints(True)
    assert not await append(first, second, events[2:])
    assert await append(None, first, events[:2])
    assert (await backend.network.load_checkpoints(True))[owner] == first
    assert not await append(None, first, events[:2])
    assert not await append(LogPosition(8, 2), second, events[2:])
    assert await append(first, second, events[2:])
    assert not await append(first, second, events[2:])
    assert (await backend.network.load_checkpoints(True))[owner] == second
    assert owner not in await backend.network.load_checkpoints(False)
    assert (await query_bounds(backend, NETWORK)).last == network_end.position + 4


async def test_nothing_is_copied_if_any_checkpoint_was_moved(
    backend: Backend, owner: Tenant, network_end: LogPosition
) -> None:
    other = await backend.tenant()
    parts = []
    for log in (owner, other):
        await publish_events(backend, log, new_id("cat"))
        parts.append(
            PublishedEvents(log, None, LogPosition(7, 1), await backend.network.read_published(log, BEGINNING, 1))
        )
    assert await backend.network.append(NETWORK, parts[1:])
    assert not await backend.network.append(NETWORK, parts)
    assert (await query_bounds(backend, NETWORK)).last == network_end.position + 1
    assert owner not in await backend.network.load_checkpoints(True)


async def test_a_restored_publisher_is_followed_from_its_new_epoch(
    backend: Backend, tenant: Tenant, owner: Tenant, network_end: LogPosition
) -> None:
    """Events published before stay published, lost events are not withdrawn, and new ones are copied once."""
    catalogue = new_id("cat")
    await grant_licence(backend.pool, owner, catalogue, tenant.org)
    made = await publish_events(backend, owner, catalogue, 5)
    await backend.relay(owner)
    owner_bounds = await query_bounds(backend, owner)
    await delete_events(backend.pool, owner, 4)
    await backend.events.begin_epoch(owner, owner_bounds.end)
    made += await publish_events(backend, owner, catalogue, 4)
    await backend.relay(owner)
    made += await publish_events(backend, owner, catalogue, 1)
    await backend.relay(owner)
    assert list_ids(await read_network(backend, tenant, network_end)) == made
    bounds = await query_bounds(backend, owner)
    assert (await backend.network.load_checkpoints(True))[owner] == LogPosition(bounds.epoch, 8)


async def test_a_running_relay_copies_committed_events(
    backend: Backend, tenant: Tenant, owner: Tenant, network_end: LogPosition
) -> None:
    """A notification alone triggers the copy, without a sweep."""
    catalogue = new_id("cat")
    await grant_licence(backend.pool, owner, catalogue, tenant.org)
    task = asyncio.create_task(NetworkRelay(backend.network, backend.signals, sweep_seconds=0.5).run())
    try:
        made: list[str] = []
        async with asyncio.timeout(30):
            for _ in range(3):
                made += await publish_events(backend, owner, catalogue, 2)
                while list_ids(await read_network(backend, tenant, network_end)) != made:
                    await asyncio.sleep(0.02)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_relay_notifies_followers(backend: Backend, owner: Tenant) -> None:
    async with backend.signals.subscribe(Channel.EVENTS) as listener:
        heard = set[Signal]()
        await publish_events(backend, owner, new_id("cat"))
        async with asyncio.timeout(20):
            await backend.relay(owner)
            while Signal(NETWORK) not in heard:
                await listener.wait(1)
                heard |= listener.take_signals().signals


async def test_a_holder_reads_the_events_that_its_licences_cover(
    backend: Backend, tenant: Tenant, owner: Tenant, network_end: LogPosition
) -> None:
    catalogue, second, closed = new_id("cat"), new_id("cat"), new_id("cat")
    await grant_licence(backend.pool, owner, catalogue, "*")
    await grant_licence(backend.pool, owner, second, "*")
    await grant_licence(backend.pool, owner, second, tenant.org, "stock", "trade")
    await grant_licence(backend.pool, owner, closed, new_id("org"), "trade")
    await grant_licence(backend.pool, Tenant(owner.org, False), closed, "*")
    first = await publish_events(backend, owner, catalogue, 2)
    await append_events(backend, owner, catalogue=catalogue)
    await publish_events(backend, owner, closed)
    await publish_events(backend, Tenant(owner.org, False), catalogue)
    last = await publish_events(backend, owner, second, type="product.updated")
    await publish_events(backend, tenant, catalogue)
    await backend.relay(owner, tenant, Tenant(owner.org, False))
    found = await read_network(backend, tenant, network_end)
    assert list_ids(found) == [*first, *last]
    plain = {"base", "retail"}
    assert [event.groups for event in found] == [plain, plain, plain | {"stock", "trade"}]
    for wanted, expected in (
        (EventFilter(catalogues=frozenset({catalogue, closed})), first),
        (EventFilter(types=frozenset({"product.updated"})), last),
        (EventFilter(types=frozenset({"product.updated"}), catalogues=frozenset({catalogue})), []),
    ):
        assert list_ids(await read_network(backend, tenant, network_end, wanted)) == expected
    view, end = LogView.network(tenant), (await query_bounds(backend, NETWORK)).last
    recent = await backend.events.read_recent(view, end + 1, 2, FEED)
    assert list_ids(recent.events) == [*first, *last][::-1][:2]
    positions = [event.position for event in found]
    assert list_ids(await backend.events.get_at(view, [positions[2], positions[0]])) == [first[0], last[0]]
    assert await read_network(backend, owner, network_end) == [], "an owner does not get its own events again"
    assert {event.catalogue for event in await read_network(backend, await backend.tenant(), network_end)} == {
        catalogue,
        second,
    }
    await revoke_licence(backend.pool, owner, catalogue, "*")
    assert list_ids(await read_network(backend, tenant, network_end)) == last
    assert list_ids(await backend.events.get_at(view, positions)) == last


async def test_licensed_holders_are_listed(backend: Backend, tenant: Tenant, owner: Tenant) -> None:
    """Other tests may have granted licences to all organisations."""
    others, catalogue = [await backend.tenant() for _ in range(2)], new_id("cat")
    sandbox = Tenant(tenant.org, False)
    everybody = [tenant, owner, sandbox, *others]
    before = await backend.events.filter_licensed(everybody)
    await grant_licence(backend.pool, owner, catalogue, tenant.org, "stock")
    assert await backend.events.filter_licensed(everybody) == before | {tenant}
    assert await backend.events.filter_licensed([sandbox, *others]) == before & {sandbox, *others}
    assert await backend.events.filter_licensed([]) == frozenset()
    await revoke_licence(backend.pool, owner, catalogue, tenant.org)
    assert await backend.events.filter_licensed(everybody) == before
    await grant_licence(backend.pool, owner, catalogue, "*")
    assert await backend.events.filter_licensed(everybody) >= {tenant, *others}
    await revoke_licence(backend.pool, owner, catalogue, "*")


@pytest.mark.parametrize("licences", [10, 10_000])
async def test_the_number_of_licences_does_not_change_the_result(
    backend: Backend, tenant: Tenant, owner: Tenant, network_end: LogPosition, licences: int
) -> None:
    catalogues = [new_id("cat") for _ in range(10)]
    for catalogue in catalogues:
        await grant_licence(backend.pool, owner, catalogue, tenant.org, "stock")
    for _ in range(licences - len(catalogues)):
        if licences <= 10:
            await grant_licence(backend.pool, owner, new_id("cat"), tenant.org)
    if licences > 10:
        await _add_licences(backend, owner, tenant, licences - len(catalogues))
    made: list[str] = []
    for number in range(60):
        made += await publish_events(backend, owner, catalogues[number % 10])
        await publish_events(backend, owner, new_id("cat"))
    await backend.relay(owner)
    found = await read_network(backend, tenant, network_end)
    assert list_ids(found) == made
    assert {event.groups for event in found} == {frozenset({"base", "retail", "stock"})}
    recent = await backend.events.read_recent(LogView.network(tenant), OPEN_END, 1000, FEED)
    assert list_ids(recent.events)[:60] == made[::-1]


async def _add_licences(backend: Backend, owner: Tenant, holder: Tenant, count: int) -> None:
    pool: Any = backend.events._pool  # type: ignore[attr-defined]
    async with pool.connect_as_owner() as link:
        await link.cursor.execute(
            "INSERT INTO licences (org, livemode, catalogue, holder, groups) "
            "SELECT %s, %s, 'cat_' || %s || n, %s, '{}' FROM generate_series(1, %s) n",
            (owner.org, owner.livemode, owner.org, holder.org, count),
        )


async def test_a_new_licence_covers_later_events(
    backend: Backend, tenant: Tenant, owner: Tenant, network_end: LogPosition
) -> None:
    catalogue = new_id("cat")
    await publish_events(backend, owner, catalogue)
    await backend.relay(owner)
    assert [event for event in await read_network(backend, tenant, network_end) if event.catalogue == catalogue] == []
    reached = (await query_bounds(backend, NETWORK)).end
    await grant_licence(backend.pool, owner, catalogue, tenant.org)
    made = await publish_events(backend, owner, catalogue, 2)
    await backend.relay(owner)
    assert list_ids(await read_network(backend, tenant, reached)) == made


async def test_a_restored_network_log_expires_cursors(
    backend: Backend, tenant: Tenant, owner: Tenant, network_end: LogPosition
) -> None:
    catalogue = new_id("cat")
    await grant_licence(backend.pool, owner, catalogue, tenant.org)
    await publish_events(backend, owner, catalogue, 3)
    await backend.relay(owner)
    old = (await query_bounds(backend, NETWORK)).end
    await delete_events(backend.pool, NETWORK, network_end.position + 2)
    with pytest.raises(CursorExpired):
        await backend.events.read_page(LogView.network(tenant), old, END, 10, ALL)
    assert len(await read_network(backend, tenant, network_end)) == 1


async def test_losses_after_invisible_events_are_reported(
    backend: Backend, tenant: Tenant, owner: Tenant, network_end: LogPosition
) -> None:
    """The log ends at the same position as before; only the time shows that the event is a different one."""
    shown_to, foreign = new_id("cat"), new_id("cat")
    await grant_licence(backend.pool, owner, shown_to, tenant.org)
    made = await publish_events(backend, owner, shown_to, 2)
    await publish_events(backend, owner, foreign, 3)
    await backend.relay(owner)
    page = await backend.events.read_page(LogView.network(tenant), network_end, END, 10, ALL)
    assert list_ids(page.events) == made and page.position.position == network_end.position + 5
    assert (await backend.events.read_page(LogView.network(tenant), page.position, END, 10, ALL)).caught_up
    await delete_events(backend.pool, NETWORK, network_end.position + 4)
    await backend.pass_time(timedelta(milliseconds=1))
    await publish_events(backend, owner, shown_to, 2)
    await backend.relay(owner)
    with pytest.raises(CursorExpired):
        await backend.events.read_page(LogView.network(tenant), page.position, END, 10, ALL)


async def test_a_long_log_with_few_visible_events_is_read_completely(
    backend: Backend, tenant: Tenant, owner: Tenant, network_end: LogPosition
) -> None:
    """The log is longer than one scan."""
    catalogue, foreign = new_id("cat"), new_id("cat")
    await grant_licence(backend.pool, owner, catalogue, tenant.org)
    made: list[str] = []
    for _ in range(3):
        made += await publish_events(backend, owner, catalogue)
        await publish_events(backend, owner, foreign, 1_500)
    made += await publish_events(backend, owner, catalogue)
    await backend.relay(owner)
    assert list_ids(await read_network(backend, tenant, network_end)) == made
    view, before, seen = LogView.network(tenant), (await query_bounds(backend, NETWORK)).last + 1, list[str]()
    while before > network_end.position + 1:
        recent = await backend.events.read_recent(view, before, 2, FEED)
        seen += [event.id for event in recent.events if event.position > network_end.position]
        before = recent.position
    assert seen == made[::-1]
    known = (await query_bounds(backend, NETWORK)).end
    page = await backend.events.read_page(view, known, known, 10, ALL)
    assert (list(page.events), page.position, page.caught_up) == ([], known, True)
