"""Event logs under random writes, licences, losses and reads, compared with a reference model."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

import pytest

from domain.catalogue.licences import NETWORK_GROUPS
from domain.changes.model import EventFilter, LogView, get_network_tenant
from domain.events.model import Event, LoggedEvent, LogPosition
from domain.events.ports import EventLog
from domain.kernel.errors import CursorExpired
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.contract.test_event_reader import query_bounds
from tests.support import builders
from tests.support.backend import Backend
from tests.support.log_changes import delete_events, grant_licence, revoke_licence

pytestmark = pytest.mark.asyncio
STEPS = 120
NETWORK = get_network_tenant(True)
TYPES = ("offer.changed", "product.updated", "source.blocked", "credits.low")


class Rollback(Exception):
    """Exception that rolls a transaction back."""


@dataclass
class LogModel:
    """Expected contents: the events of each log in order, and the granted licences."""

    backend: Backend
    tenants: Sequence[Tenant]
    catalogues: Sequence[str]
    network_start: int
    """Last position of the network log before the test."""
    dice: Random
    logs: dict[Tenant, list[Event]] = field(default_factory=lambda: defaultdict(list))
    network: list[tuple[Tenant, Event]] = field(default_factory=list)
    relayed_counts: dict[Tenant, int] = field(default_factory=lambda: defaultdict(int))
    grants: dict[tuple[Tenant, str, str], frozenset[str]] = field(default_factory=dict)

    async def append_events(self) -> None:
        """Append events of one tenant, sometimes concurrently with another, and roll some back in whole or in part."""
        dice, tenant = self.dice, self.dice.choice(self.tenants)
        made = [self._build_event() for _ in range(dice.choice((1, 2, 7, 45)))]
        undone, in_part = dice.random() < 0.15, dice.random() < 0.2
        try:
            async with self.backend.uow.begin(tenant, builders.CALL) as tx:
                await tx[EventLog].append(made)
                if dice.random() < 0.5:
                    await self._append_concurrently()
                if in_part:
                    with pytest.raises(Rollback):
                        async with tx.savepoint():
                            await tx[EventLog].append([self._build_event()])
                            raise Rollback
                if undone:
                    raise Rollback
        except Rollback:
            return
        self.logs[tenant] += made

    async def _append_concurrently(self) -> None:
        tenant, event = self.dice.choice(self.tenants), self._build_event()
        async with self.backend.uow.begin(tenant, builders.CALL) as tx:
            await tx[EventLog].append([event])
        self.logs[tenant].append(event)

    def _build_event(self) -> Event:
        dice = self.dice
        catalogue, network = dice.choice((*self.catalogues, None)), dice.random() < 0.5
        return builders.event(
            f"src_{dice.randrange(3)}",
            type=dice.choice(TYPES),
            catalogue=catalogue,
            is_published=network and catalogue is not None,
        )

    async def relay_events(self) -> None:
        """Relay all published events, owner by owner."""
        for owner in self.tenants:
            await self.backend.relay(owner)
            events = self.logs[owner]
            self.network += [(owner, event) for event in events[self.relayed_counts[owner] :] if event.is_published]
            self.relayed_counts[owner] = len(events)

    async def toggle_licence(self) -> None:
        """Grant a catalogue to one holder or to all, or revoke the grant."""
        dice, (owner, *others) = self.dice, self.dice.sample(self.tenants, len(self.tenants))
        key = (owner, dice.choice(self.catalogues), dice.choice([other.org for other in others] + ["*"]))
        if key in self.grants:
            del self.grants[key]
            await revoke_licence(self.backend.pool, *key)
        else:
            self.grants[key] = frozenset(dice.sample(("stock", "trade"), dice.randrange(3)))
            await grant_licence(self.backend.pool, *key, *sorted(self.grants[key]))

    async def lose_events(self) -> None:
        """Delete the newest events of one log that are not relayed; a reader at its end gets an error."""
        tenant, view = self.dice.choice(self.tenants), None
        events, copied = self.logs[tenant], self.relayed_counts[tenant]
        if len(events) - copied < 2:
            return
        old, view = (await query_bounds(self.backend, tenant)).end, LogView.own(tenant)
        keep = self.dice.randrange(copied, len(events) - 1)
        await delete_events(self.backend.pool, tenant, keep + 1)
        del events[keep:]
        await self.backend.pass_time(timedelta(milliseconds=5))
        if self.dice.random() < 0.5:
            await self.append_events()
        with pytest.raises(CursorExpired):
            await self.backend.events.read_page(
                view, old, (await query_bounds(self.backend, tenant)).end, 10, EventFilter()
            )

    def _list_visible(self, view: LogView) -> list[tuple[int, str, Event, frozenset[str] | None]]:
        """Return position, ID, event and field groups of each event that the view shows."""
        if not view.is_network:
            return [(at, event.id, event, None) for at, event in enumerate(self.logs[view.tenant], start=1)]
        found = []
        for at, (owner, event) in enumerate(self.network, start=self.network_start + 1):
            opened = [
                groups
                for (granting, catalogue, holder), groups in self.grants.items()
                if (granting, catalogue) == (owner, event.catalogue) and holder in (view.tenant.org, "*")
            ]
            if opened and owner.org != view.tenant.org:
                found.append((at, event.id, event, NETWORK_GROUPS.union(*opened)))
        return found

    async def check_view(self) -> None:
        """Compare one view with the model, with a random filter, page size and start, in both directions."""
        dice, tenant = self.dice, self.dice.choice(self.tenants)
        view = dice.choice((LogView.own(tenant), LogView.network(tenant)))
        wanted, limit, bounds = (
            self._build_filter(),
            dice.choice((1, 3, 20, 500)),
            await query_bounds(self.backend, view.log),
        )
        first = self.network_start if view.is_network else 0
        length = len(self.network) if view.is_network else len(self.logs[tenant])
        assert bounds.last == first + length
        expected = [
            (at, id, groups)
            for at, id, event, groups in self._list_visible(view)
            if (wanted.includes_webhook_types or event.type != "credits.low")
            and (wanted.types is None or event.type in wanted.types)
            and (wanted.catalogues is None or event.catalogue in wanted.catalogues)
        ]
        after = dice.randrange(first, bounds.last + 1)
        seen, position, caught_up = list[LoggedEvent](), LogPosition(bounds.epoch, after), False
        while not caught_up:
            page = await self.backend.events.read_page(view, position, bounds.end, limit, wanted)
            assert len(page.events) <= limit and (page.caught_up or page.position.position > position.position)
            seen, position, caught_up = [*seen, *page.events], page.position, page.caught_up
        assert position.position == bounds.last
        assert [(one.position, one.id, one.groups) for one in seen] == [one for one in expected if one[0] > after]
        back, before = list[LoggedEvent](), bounds.last + 1
        while before > first + 1:
            recent = await self.backend.events.read_recent(view, before, limit, wanted)
            assert len(recent.events) <= limit and recent.position < before
            back, before = [*back, *(one for one in recent.events if one.position > first)], recent.position
        assert [(one.position, one.id, one.groups) for one in back] == expected[::-1]

    def _build_filter(self) -> EventFilter:
        dice = self.dice
        return EventFilter(
            types=frozenset(dice.sample(TYPES, dice.randrange(1, 3))) if dice.random() < 0.4 else None,
            catalogues=frozenset(dice.sample(self.catalogues, dice.randrange(1, 3))) if dice.random() < 0.4 else None,
            includes_webhook_types=dice.random() < 0.5,
        )


@pytest.mark.parametrize("seed", range(3))
async def test_logs_agree_with_the_model(backend: Backend, seed: int) -> None:
    tenants, catalogues = [await backend.tenant() for _ in range(3)], [new_id("cat") for _ in range(3)]
    model = LogModel(backend, tenants, catalogues, (await query_bounds(backend, NETWORK)).last, Random(seed))
    steps = (model.append_events, model.check_view, model.relay_events, model.toggle_licence, model.lose_events)
    try:
        for _ in range(STEPS):
            [step] = model.dice.choices(steps, (30, 50, 12, 8, 3))
            await step()
        await model.relay_events()
        for _ in range(10):
            await model.check_view()
    finally:
        for key in model.grants:
            await revoke_licence(backend.pool, *key)
    assert len(model.network) > 50
