"""Summaries of what has changed in a catalogue since a time, and the time since which they are new to a person."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from domain.changes.model import OPEN_END, EventFilter, LogView
from domain.changes.ports import EventReader
from domain.events.model import LoggedEvent
from domain.kernel.enums import StoredEnum
from domain.notifications.findings import (
    EVENT_TYPES,
    RuleFinding,
    is_reported,
    list_price_changes,
    sort_findings,
)
from domain.notifications.model import NotificationKind, NotificationRule, SeenChanges
from domain.notifications.usecases.collection import NotificationCollector
from ports.unit_of_work import Tx

MAX_EVENTS = 2_000
"""Maximum number of newest events that are examined for each group of changes."""
FIRST_PERIOD = timedelta(days=7)
"""Period that a person sees at the first time."""
MIN_ABSENCE = timedelta(minutes=30)
"""Time without a view after which the next view starts a new period."""
_SAVE_INTERVAL = timedelta(minutes=5)
"""Time after which a further view in the same period is stored."""
_PAGE_SIZE = 1_000
_MERGE_EVENTS = frozenset({"product.merged", "product.unmerged"})


class ChangeGroup(StoredEnum):
    """Groups of changes."""

    PRICE_UP = "price_up"
    PRICE_DOWN = "price_down"
    NEW_PRODUCTS = "new_products"
    DISCONTINUED = "discontinued"
    OUT_OF_STOCK = "out_of_stock"
    BACK_IN_STOCK = "back_in_stock"


KIND_BY_GROUP: Final[Mapping[ChangeGroup, NotificationKind]] = {
    ChangeGroup.PRICE_UP: NotificationKind.PRICE_CHANGE,
    ChangeGroup.PRICE_DOWN: NotificationKind.PRICE_CHANGE,
    ChangeGroup.NEW_PRODUCTS: NotificationKind.NEW_PRODUCTS,
    ChangeGroup.DISCONTINUED: NotificationKind.DISCONTINUED,
    ChangeGroup.OUT_OF_STOCK: NotificationKind.OUT_OF_STOCK,
    ChangeGroup.BACK_IN_STOCK: NotificationKind.BACK_IN_STOCK,
}
"""Kind of findings of each group."""


@dataclass(frozen=True, slots=True)
class ChangeSummary:
    """Changes since a time, by group, as net changes of each subject. There may be more in the groups `incomplete_groups`."""

    since: datetime
    findings: Mapping[ChangeGroup, Sequence[RuleFinding]]
    incomplete_groups: frozenset[ChangeGroup]


@dataclass(frozen=True, slots=True)
class ChangeSummaryService:
    """Summaries of the changes of a tenant's catalogue."""

    events: EventReader
    collector: NotificationCollector

    async def summarise(
        self,
        tx: Tx,
        since: datetime,
        *,
        sources: Sequence[str] = (),
        groups: Collection[ChangeGroup] = KIND_BY_GROUP.keys(),
    ) -> ChangeSummary:
        """Return the changes since a time, large ones first. A new product that is merged into another one is omitted.

        Args:
            tx: The transaction.
            since: The time.
            sources: IDs of the sources whose changes count; all if empty.
            groups: The groups to return.
        """
        kinds = {group: kind for group, kind in KIND_BY_GROUP.items() if group in groups}
        by_group: dict[ChangeGroup, Sequence[RuleFinding]] = dict.fromkeys(kinds, ())
        incomplete: set[ChangeGroup] = set()
        # Events of products are few beside those of offers, and are therefore read separately.
        for types in dict.fromkeys(EVENT_TYPES[kind] for kind in kinds.values()):
            examined = {group: kind for group, kind in kinds.items() if EVENT_TYPES[kind] == types}
            events, is_complete = await read_recent_events(self.events, tx, types, since, MAX_EVENTS)
            rules = {kind: self._create_rule(tx, kind, sources) for kind in examined.values()}
            found = await self.collector.selector.select(tx, [*rules.values()], events)
            for group, kind in examined.items():
                rule = rules[kind]
                reported = [one for one in found[rule.id] if is_reported(rule, one)]
                if kind == NotificationKind.PRICE_CHANGE:
                    reported = [one for one in reported if _is_increase(rule, one) is (group == ChangeGroup.PRICE_UP)]
                by_group[group] = sort_findings(rule, reported)
            incomplete.update(() if is_complete else examined)
        if new := by_group.get(ChangeGroup.NEW_PRODUCTS):
            merges, _ = await read_recent_events(self.events, tx, _MERGE_EVENTS, since, MAX_EVENTS)
            is_merged = {event.subject: event.type == "product.merged" for event in merges}
            by_group[ChangeGroup.NEW_PRODUCTS] = [one for one in new if not is_merged.get(one.subject)]
        return ChangeSummary(since, by_group, frozenset(incomplete))

    async def build_items(
        self, tx: Tx, group: ChangeGroup, findings: Sequence[RuleFinding]
    ) -> Sequence[Mapping[str, Any]]:
        """Return findings of a group as items (`findings.build_item`); products that no longer exist are left out."""
        return await self.collector.build_items(tx, self._create_rule(tx, KIND_BY_GROUP[group], ()), findings)

    def _create_rule(self, tx: Tx, kind: NotificationKind, sources: Sequence[str]) -> NotificationRule:
        """Return a rule, which is not stored, that reports every change of a kind."""
        now = tx.now
        return NotificationRule(
            id=kind, person="", name="", kind=kind, threshold=1, prices=("price", "cost"), sources=tuple(sources),
            position=-1, checked_at=now, created_at=now, updated_at=now,
        )  # fmt: skip

    async def record_view(self, tx: Tx, person: str) -> datetime:
        """Record that the person views the changes now; return the time since which changes are new to the person."""
        seen = await tx.store(SeenChanges).get(person)
        if seen is None:
            await tx.store(SeenChanges).add(SeenChanges(id=person, since=tx.now - FIRST_PERIOD, seen_at=tx.now))
            return tx.now - FIRST_PERIOD
        after = replace(seen, seen_at=tx.now)
        if tx.now - seen.seen_at >= MIN_ABSENCE:
            after = replace(after, since=seen.seen_at)
        if after.since != seen.since or tx.now - seen.seen_at >= _SAVE_INTERVAL:
            await tx.store(SeenChanges).save(after)
        return after.since


async def hide_steps(tx: Tx, person: str) -> None:
    """Record that the person no longer wants to see the first steps."""
    seen = await tx.store(SeenChanges).get(person)
    if seen is None:
        await tx.store(SeenChanges).add(
            SeenChanges(id=person, since=tx.now - FIRST_PERIOD, seen_at=tx.now, hides_steps=True)
        )
    elif not seen.hides_steps:
        await tx.store(SeenChanges).save(replace(seen, hides_steps=True))


def _is_increase(rule: NotificationRule, finding: RuleFinding) -> bool:
    """Return whether the first changed price has increased; a price in another currency counts as increased."""
    percent = list_price_changes(rule, finding)[0].percent
    return percent is None or percent > 0


async def read_recent_events(
    reader: EventReader, tx: Tx, types: frozenset[str], since: datetime, limit: int
) -> tuple[list[LoggedEvent], bool]:
    """Return the newest events of some types since a time, oldest first, and whether these are all.

    Args:
        reader: The reader of the log.
        tx: The transaction of the tenant.
        types: The event types.
        since: The time.
        limit: Number of events from which no more are read.
    """
    events, before = list[LoggedEvent](), OPEN_END
    while len(events) < limit:
        found = await reader.read_recent(LogView.own(tx.tenant), before, _PAGE_SIZE, EventFilter(types))
        events += [event for event in found.events if event.time >= since]
        if not found.events or found.events[-1].time < since or found.position <= 1:
            return events[::-1], True
        before = found.position
    return events[::-1], False
