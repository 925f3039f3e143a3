"""Collection of findings from the event log and from sources, and composition of due notifications."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from domain.access.usecases import find_member_scopes
from domain.catalogue.model import ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.search_terms import category_term, normalise_brand
from domain.changes.model import OPEN_END, EventFilter, LogView
from domain.changes.ports import EventReader
from domain.events.model import LoggedEvent, LogPosition
from domain.jobs.model import ClaimedJob, NewJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LEASE
from domain.jobs.usecases.ticks import log_errors
from domain.kernel.errors import CursorExpired
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest, list_all
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.notifications import findings as rules_of_findings
from domain.notifications.findings import RuleFinding, find_change, is_reported, merge_findings, sort_findings
from domain.notifications.model import (
    CHECK_INTERVAL,
    MAX_FINDINGS,
    MAX_ITEMS,
    SOURCE_KINDS,
    Notification,
    NotificationRule,
    StopReason,
    get_required_scope,
)
from domain.notifications.ports import NotificationRuleStore, NotificationUpkeep
from domain.notifications.schedules import compute_due_time
from domain.notifications.usecases.observation import observe_sources
from domain.notifications.usecases.sending import create_sending_job, stop_rule
from domain.sources.ports import SourceStore
from ports.clock import Clock
from ports.codec import Codec
from ports.unit_of_work import Tx, UnitOfWork

COLLECTION_JOB = "notifications.collect"
_LANE = "notifications"
_PAGE_SIZE = 1_000
_LOG = logging.getLogger("joinery.notifications")
_MAX_QUEUED = 1_000
"""Maximum number of tenants whose jobs one tick queues in each database."""
MAX_CANDIDATES = 100
"""Maximum number of products that are read for one notification; those that no longer exist are left out."""


def create_collection_job(tenant: Tenant) -> NewJob:
    """Return the job that collects findings and composes due notifications; at most one of a tenant is open."""
    return NewJob(COLLECTION_JOB, f"{_LANE}:{tenant.mode}", tenant, key=COLLECTION_JOB)


@dataclass(frozen=True, slots=True)
class FindingSelector:
    """Selection of the events that concern rules."""

    codec: Codec

    async def select(
        self, tx: Tx, rules: Sequence[NotificationRule], events: Sequence[LoggedEvent]
    ) -> Mapping[str, list[RuleFinding]]:
        """Return the findings of each rule in events after the rule's position, one per subject."""
        matches = await asyncio.to_thread(self._find_changes, rules, events)
        found = [merge_findings(await _select_products(tx, rule, matches[rule.id])) for rule in rules]
        return {rule.id: findings for rule, findings in zip(rules, found, strict=True)}

    def _find_changes(
        self, rules: Sequence[NotificationRule], events: Sequence[LoggedEvent]
    ) -> Mapping[str, list[RuleFinding]]:
        """Return the findings of each rule, in the order of the events. Takes long for thousands of large events."""
        data = [self.codec.decode(event.body)["data"] for event in events]
        return {
            rule.id: [
                change
                for event, values in zip(events, data, strict=True)
                if event.position > rule.position and (change := find_change(rule, event, values)) is not None
            ]
            for rule in rules
        }


async def _select_products(tx: Tx, rule: NotificationRule, matches: list[RuleFinding]) -> list[RuleFinding]:
    """Return the findings about products of the rule's brands and categories."""
    if not matches or rule.kind in SOURCE_KINDS or not (rule.brands or rule.categories):
        return matches
    products = {finding.product for finding in matches if finding.product is not None}
    brands, terms = map(normalise_brand, rule.brands), map(category_term, rule.categories)
    permitted = await tx[NotificationRuleStore].filter_products(sorted(products), list(brands), list(terms))
    return [finding for finding in matches if finding.product in permitted]


@dataclass(frozen=True, slots=True)
class NotificationCollector:
    """Handler of the jobs that collect findings and compose notifications, and the task that queues these jobs.

    Each step is one transaction: findings with the positions up to which events were examined, or a notification with the job
    that sends it and without its findings. A worker that fails therefore neither loses nor repeats any.
    """

    uow: UnitOfWork
    events: EventReader
    selector: FindingSelector
    upkeep: NotificationUpkeep
    clock: Clock
    codec: Codec

    async def queue_due(self) -> None:
        """Queue a job for each tenant with due work."""
        now = self.clock.now()
        context = AuditContext(Actor("service", "scheduler"), COLLECTION_JOB)
        for tenant in await self.upkeep.list_due(now, now - CHECK_INTERVAL, _MAX_QUEUED):
            with log_errors(_LOG, "notifications not collected", tenant):
                async with self.uow.begin(tenant, context) as tx:
                    await tx[JobStore].add(create_collection_job(tenant))

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Collect the tenant's findings, and compose its due notifications."""
        context = job.create_context("notifications")
        while await self._read_events(job, context):
            pass
        async with self.uow.begin(job.tenant, context) as tx:
            await self._examine_sources(tx)
            await tx[JobStore].renew_lease(job, LEASE)
        is_composing = True
        while is_composing:
            async with self.uow.begin(job.tenant, context) as tx:
                is_composing = await self._compose_due(tx)
                await tx[JobStore].renew_lease(job, LEASE)
        async with self.uow.begin(job.tenant, context) as tx:
            await tx[JobStore].finish(job)

    async def _read_events(self, job: ClaimedJob, context: AuditContext) -> bool:
        """Examine a page of the log; return whether more may follow."""
        async with self.uow.begin_reading(job.tenant) as tx:
            rules = await tx[NotificationRuleStore].list_enabled()
        types = rules_of_findings.select_event_types(rules)
        if not types:
            return False
        start = min(rule.position for rule in rules if rules_of_findings.EVENT_TYPES[rule.kind])
        view, end, wanted = LogView.own(job.tenant), LogPosition(position=OPEN_END), EventFilter(types)
        last = OPEN_END
        try:
            batch = await self.events.read_page(view, LogPosition(position=start), end, _PAGE_SIZE, wanted)
        except CursorExpired:  # events were deleted by age, or a part of the database was restored
            bounds = await self.events.confirm_bounds(job.tenant)
            resumed, last = bounds.find_resume_position(LogPosition(position=start)), bounds.last
            batch = await self.events.read_page(view, resumed, end, _PAGE_SIZE, wanted)
        async with self.uow.begin(job.tenant, context) as tx:
            rules = await tx[NotificationRuleStore].lock_enabled()
            found = await self.selector.select(tx, rules, batch.events)
            counts = await tx[NotificationRuleStore].count_findings() if any(found.values()) else {}
            for rule in rules:
                position = max(min(rule.position, last), batch.position.position)
                await _add_findings(tx, replace(rule, position=position), found[rule.id], counts)
            await tx[JobStore].renew_lease(job, LEASE)
        return not batch.caught_up

    async def _examine_sources(self, tx: Tx) -> None:
        """Examine the sources for the rules that are due for it."""
        rules = [
            rule
            for rule in await tx[NotificationRuleStore].lock_enabled()
            if rule.kind in SOURCE_KINDS and rule.checked_at <= tx.now - CHECK_INTERVAL
        ]
        if not rules:
            return
        observed, counts = await observe_sources(tx), await tx[NotificationRuleStore].count_findings()
        for rule in rules:
            state, found = rules_of_findings.observe_sources(rule, observed.late, observed.problems, tx.now)
            await _add_findings(tx, replace(rule, state=state, checked_at=tx.now), found, counts)

    async def _compose_due(self, tx: Tx) -> bool:
        """Compose the notification of a rule that is due; return whether there was one."""
        rule = await tx[NotificationRuleStore].lock_due(tx.now)
        if rule is None:
            return False
        found = [one for one in await tx[NotificationRuleStore].list_findings(rule.id) if is_reported(rule, one)]
        await tx[NotificationRuleStore].delete_findings(rule.id)
        after = replace(rule, due_at=None, has_overflow=False)
        if not rule.is_shared and not await _may_read(tx, rule):
            await stop_rule(tx, after, StopReason.NO_ACCESS)
            return True
        items = await self.build_items(tx, rule, sort_findings(rule, found)[:MAX_CANDIDATES])
        if items:
            after = replace(after, notified_at=tx.now)
            notification = Notification(
                id=new_id("ntf"),
                rule=rule.id,
                kind=rule.kind,
                total=len(found) if len(found) > MAX_CANDIDATES else len(items),
                is_total_exact=not rule.has_overflow,
                items=tuple(items[:MAX_ITEMS]),
                created_at=tx.now,
                next_attempt_at=tx.now,
            )
            await tx.store(Notification).add(notification)
            await tx[JobStore].add(create_sending_job(tx.tenant, notification.id))
        await tx[NotificationRuleStore].save(after)
        return True

    async def build_items(self, tx: Tx, rule: NotificationRule, found: Sequence[RuleFinding]) -> list[dict[str, Any]]:
        """Return findings as items; those about products or sources that no longer exist are left out."""
        names = {source.id: source.name for source in await list_all(tx[SourceStore].page)}
        if rule.kind in SOURCE_KINDS:
            return [rules_of_findings.build_item(rule, one, None, names) for one in found if one.source in names]
        products = await self._load_products(tx, {one.product for one in found if one.product is not None})
        return [
            rules_of_findings.build_item(rule, one, products[one.product], names)
            for one in found
            if one.product in products
        ]

    async def _load_products(self, tx: Tx, ids: Collection[str]) -> Mapping[str | None, Any]:
        """Return products as in the API, by ID; for a product that was merged, the one that is shown for it."""
        if not ids:
            return {}
        catalogue = tx[CatalogueStore]
        page = await catalogue.list_products(ProductFilter(id=sorted(ids)), PageRequest(MAX_CANDIDATES))
        bodies = {document.id: document.body for document in page.items}
        for id_ in set(ids) - bodies.keys():
            if (document := await catalogue.get_product(id_)) is not None:
                bodies[id_] = document.body
        return {id_: self.codec.decode(body) for id_, body in bodies.items()}


async def _add_findings(
    tx: Tx, rule: NotificationRule, found: Sequence[RuleFinding], counts: Mapping[str, int]
) -> None:
    """Store findings with the rule, and when its next notification is due; beyond MAX_FINDINGS, they are not stored."""
    store = tx[NotificationRuleStore]
    space = MAX_FINDINGS - counts.get(rule.id, 0)
    if len(found) > space:
        known = await store.filter_found(rule.id, [one.subject for one in found])
        new = [one for one in found if one.subject not in known]
        found = [one for one in found if one.subject in known] + new[: max(0, space)]
        rule = replace(rule, has_overflow=rule.has_overflow or len(new) > max(0, space))
    if found:
        await store.save_findings(found)
        rule = replace(rule, due_at=rule.due_at or compute_due_time(rule, tx.now))
    await store.save(rule)


async def _may_read(tx: Tx, rule: NotificationRule) -> bool:
    """Return whether the person of the rule is a member whose present role may read what the rule reports."""
    return get_required_scope(rule.kind) in await find_member_scopes(tx, rule.person)
