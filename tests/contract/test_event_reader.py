"""Reading the event log (ports/events.py, EventReader): pages, filters, licences, on every backend."""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from domain.changes.model import ALL, EventFilter, Licence, Reader
from domain.events.model import LoggedEvent
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.contract.grants import grant, revoke
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
EVERYTHING = 1 << 62
FEED = EventFilter()


async def written(backend: Backend, tenant: Tenant, count: int = 1, **changes: Any) -> list[str]:
    """That many events in one transaction; answers their ids."""
    events = [builders.event(**{"subject": new_id("src")} | changes) for _ in range(count)]
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx.events.append(events)
    return [event.id for event in events]


def ids(events: Sequence[LoggedEvent]) -> list[str]:
    return [event.id for event in events]


async def test_a_page_goes_on_where_the_last_one_ended(backend: Backend, tenant: Tenant) -> None:
    made = await written(backend, tenant, 3) + await written(backend, tenant, 60)
    reader, position, seen = Reader(tenant), 0, []
    while page := await backend.events.page(reader, position, EVERYTHING, 7, ALL):
        assert len(page) == 7 or len(seen) + len(page) == 63
        assert [event.position for event in page] == sorted(event.position for event in page)
        seen += ids(page)
        position = page[-1].position
    assert seen == made


async def test_an_event_is_read_as_it_was_written(backend: Backend, tenant: Tenant) -> None:
    subject, source, catalogue = new_id("ofr"), new_id("src"), new_id("cat")
    await written(
        backend, tenant, subject=subject, type="offer.changed", version=3, source=source, catalogue=catalogue,
        data={"id": subject, "product": "prod_x"}, fields=[("price", 1, 2)], facets=["price"],
    )  # fmt: skip
    [event] = await backend.events.page(Reader(tenant), 0, EVERYTHING, 10, ALL)
    assert (event.subject, event.product, event.source, event.catalogue) == (subject, "prod_x", source, catalogue)
    assert (event.type, event.version, event.groups) == ("offer.changed", 3, None)
    told = json.loads(event.body)
    assert (told["id"], told["tenant_id"], told["livemode"]) == (event.id, tenant.org, True)
    assert told["data"]["previous_version"] == 2


async def test_bounds(backend: Backend, tenant: Tenant) -> None:
    made = await written(backend, tenant, 5)
    first, *_, last = await backend.events.page(Reader(tenant), 0, EVERYTHING, 10, ALL)
    assert ids(await backend.events.page(Reader(tenant), first.position, last.position - 1, 10, ALL)) == made[1:-1]
    assert await backend.events.page(Reader(tenant), last.position, EVERYTHING, 10, ALL) == []
    assert ids(await backend.events.recent(Reader(tenant), 0, last.position - 1, 2, FEED)) == made[2:-1][::-1]
    assert ids(await backend.events.recent(Reader(tenant), first.position, EVERYTHING, 9, FEED)) == made[1:][::-1]


async def test_a_splice_holds_the_very_bodies_of_a_page(backend: Backend, tenant: Tenant) -> None:
    await written(backend, tenant, 12)
    page = await backend.events.page(Reader(tenant), 0, EVERYTHING, 5, FEED)
    splice = await backend.events.splice(tenant, 0, EVERYTHING, 5, FEED)
    assert splice.body == b",".join(event.body for event in page)
    assert (splice.count, splice.position) == (5, page[-1].position)
    empty = await backend.events.splice(tenant, EVERYTHING - 1, EVERYTHING, 5, FEED)
    assert (empty.count, empty.position, empty.body) == (0, EVERYTHING - 1, b"")


async def test_at(backend: Backend, tenant: Tenant) -> None:
    made, other = await written(backend, tenant, 4), await backend.tenant()
    await written(backend, other)
    page = await backend.events.page(Reader(tenant), 0, EVERYTHING, 9, ALL)
    [foreign] = await backend.events.page(Reader(other), 0, EVERYTHING, 9, ALL)
    asked = [page[3].position, page[1].position, foreign.position, EVERYTHING]
    assert ids(await backend.events.at(Reader(tenant), asked)) == [made[1], made[3]]


async def test_a_stride_passes_so_many_events(backend: Backend, tenant: Tenant) -> None:
    await written(backend, tenant, 10)
    page = await backend.events.page(Reader(tenant), 0, EVERYTHING, 10, ALL)
    assert await backend.events.stride(Reader(tenant), 0, EVERYTHING, 4) == page[3].position
    assert await backend.events.stride(Reader(tenant), page[3].position, EVERYTHING, 6) == page[9].position
    assert await backend.events.stride(Reader(tenant), 0, EVERYTHING, 11) == EVERYTHING


async def test_filters_agree_with_the_model(backend: Backend, tenant: Tenant) -> None:
    dice = Random(7)
    types = ["offer.changed", "product.updated", "source.degraded", "credits.low", "export.completed"]
    catalogues = [new_id("cat") for _ in range(3)]
    for _ in range(40):
        await written(backend, tenant, type=dice.choice(types), catalogue=dice.choice([*catalogues, None]))
    everything = await backend.events.page(Reader(tenant), 0, EVERYTHING, 100, ALL)
    assert len(everything) == 40
    for _ in range(20):
        wanted = EventFilter(
            types=frozenset(dice.sample(types, dice.randrange(1, 4))) if dice.random() < 0.7 else None,
            catalogues=frozenset(dice.sample(catalogues, dice.randrange(1, 3))) if dice.random() < 0.7 else None,
            everything=dice.random() < 0.5,
        )
        expected = [event.id for event in everything if wanted.matches(event)]
        assert ids(await backend.events.page(Reader(tenant), 0, EVERYTHING, 100, wanted)) == expected
        assert ids(await backend.events.recent(Reader(tenant), 0, EVERYTHING, 100, wanted)) == expected[::-1]
        assert (await backend.events.splice(tenant, 0, EVERYTHING, 100, wanted)).count == len(expected)


async def test_nobody_reads_another_tenants_events(backend: Backend, tenant: Tenant) -> None:
    other, sandbox = await backend.tenant(), Tenant(tenant.org, False)
    await written(backend, tenant, network=True, catalogue=new_id("cat"))
    for stranger in (other, sandbox):
        assert await backend.events.page(Reader(stranger), 0, EVERYTHING, 10, ALL) == []
        assert await backend.events.recent(Reader(stranger), 0, EVERYTHING, 10, ALL) == []
        assert (await backend.events.splice(stranger, 0, EVERYTHING, 10, ALL)).count == 0


async def test_licences(backend: Backend, tenant: Tenant) -> None:
    owner, catalogue, other, foreign = await backend.tenant(), new_id("cat"), new_id("cat"), new_id("cat")
    sandbox = Tenant(owner.org, False)

    async def held() -> dict[str, Licence]:
        found = (await backend.events.licences([tenant, owner])).get(tenant, ())
        return {one.catalogue: one for one in found if one.owner.org in (owner.org, tenant.org)}

    assert await held() == {}
    await grant(backend, owner, catalogue, tenant.org, "stock")
    await grant(backend, owner, other, "*")
    await grant(backend, owner, foreign, new_id("org"), "trade")
    await grant(backend, sandbox, foreign, "*", "trade")
    await grant(backend, tenant, foreign, "*")
    assert await held() == {
        catalogue: Licence(owner, catalogue, frozenset({"base", "retail", "stock"})),
        other: Licence(owner, other, frozenset({"base", "retail"})),
    }
    await grant(backend, owner, other, tenant.org, "trade")
    assert (await held())[other].groups == {"base", "retail", "trade"}
    await revoke(backend, owner, catalogue, tenant.org)
    await revoke(backend, owner, other, "*")
    assert await held() == {other: Licence(owner, other, frozenset({"base", "retail", "trade"}))}


async def test_who_has_events_after_a_position(backend: Backend, tenant: Tenant) -> None:
    other, idle = await backend.tenant(), await backend.tenant()
    await backend.events.bounds()
    for owner in (tenant, other):
        async with backend.uow.begin(owner, builders.CALL) as tx:
            await tx.events.append([builders.event("src_1")])
    bounds = await backend.events.bounds()
    before = dict.fromkeys((tenant, other, idle, Tenant(tenant.org, False)), 0)
    assert await backend.events.tenants_with_new_events(before, bounds.last, bounds.since) == {tenant, other}
    assert await backend.events.tenants_with_new_events(before, 0, None) == frozenset()
    assert await backend.events.tenants_with_new_events({tenant: bounds.last, other: 0}, bounds.last, bounds.since) == {
        other
    }


async def test_days_before_the_bound_are_not_looked_into(backend: Backend, tenant: Tenant) -> None:
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx.events.append([builders.event("src_1")])
    bounds = await backend.events.bounds()
    found = await backend.events.page(Reader(tenant), 0, bounds.last, 10, ALL, since=bounds.since)
    assert [event.subject for event in found] == ["src_1"]


async def test_a_holder_reads_the_networks_share_among_its_own(backend: Backend, tenant: Tenant) -> None:
    owner, catalogue, second = await backend.tenant(), new_id("cat"), new_id("cat")
    licences = (
        Licence(owner, catalogue, frozenset({"base", "retail"})),
        Licence(owner, second, frozenset({"base", "retail", "stock"})),
    )
    reader = Reader(tenant, licences)
    own = await written(backend, tenant, catalogue=catalogue)
    first = await written(backend, owner, 2, catalogue=catalogue, network=True)
    await written(backend, owner, catalogue=catalogue)
    await written(backend, owner, catalogue=new_id("cat"), network=True)
    await written(backend, Tenant(owner.org, False), catalogue=catalogue, network=True)
    last = await written(backend, owner, catalogue=second, network=True) + await written(backend, tenant)
    expected = [*own, *first, *last]
    page = await backend.events.page(reader, 0, EVERYTHING, 100, FEED)
    assert ids(page) == expected
    groups = [None, licences[0].groups, licences[0].groups, licences[1].groups, None]
    assert [event.groups for event in page] == groups
    seen, position = [], 0
    while found := await backend.events.page(reader, position, EVERYTHING, 2, FEED):
        seen += ids(found)
        position = found[-1].position
    assert seen == expected
    assert ids(await backend.events.recent(reader, 0, EVERYTHING, 4, FEED)) == expected[::-1][:4]
    only = EventFilter(catalogues=frozenset({catalogue}))
    assert ids(await backend.events.page(reader, 0, EVERYTHING, 100, only)) == [*own, *first]
    assert 0 < await backend.events.stride(reader, 0, EVERYTHING, 2) <= page[2].position


async def test_reach_tells_what_was_dropped(backend: Backend, tenant: Tenant) -> None:
    await written(backend, tenant)
    bounds = await backend.events.bounds()
    assert 0 <= bounds.low_watermark <= bounds.high_watermark <= bounds.last
