"""Use cases of rules about notifications: forms of the console, previews, test messages and the link in emails."""

import base64
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, Final

from domain.audit.ports import AuditLog
from domain.audit.resources import ResourceService
from domain.catalogue import categories
from domain.changes.ports import EventReader
from domain.events.ports import EventLog
from domain.kernel.addresses import PORTS, describe_url_refusal
from domain.kernel.clock_schedule import list_zones
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from domain.kernel.paging import Page, PageRequest, list_all
from domain.kernel.resource import require_found
from domain.notifications import findings as rules_of_findings
from domain.notifications.findings import COMPARED_PRICES, RuleFinding, is_reported, merge_findings, sort_findings
from domain.notifications.model import (
    AUDITED,
    MAX_ITEMS,
    MAX_NAME_CHARS,
    MAX_RULES_PER_PERSON,
    MAX_THRESHOLD,
    SOURCE_KINDS,
    Frequency,
    Notification,
    NotificationChannel,
    NotificationFilter,
    NotificationKind,
    NotificationRule,
    StopReason,
    get_required_scope,
)
from domain.notifications.ports import NotificationRuleStore
from domain.notifications.schedules import MINUTES_PER_DAY, compute_due_time
from domain.notifications.usecases.collection import MAX_CANDIDATES, NotificationCollector
from domain.notifications.usecases.observation import observe_sources
from domain.notifications.usecases.sending import hint_address, stop_rule
from domain.notifications.usecases.summaries import read_recent_events
from domain.orgs.usecases.service import require_person
from domain.secrets.ports import Vault
from domain.sources.ports import SourceStore
from domain.webhooks.usecases.secrets import SIGNING_PREFIX
from ports.unit_of_work import Tx

PREVIEW_PERIOD = timedelta(days=7)
"""Period of past events in which a preview counts what a rule would have found."""
MAX_PREVIEW_EVENTS = 5_000
"""Maximum number of newest matching events that a preview examines."""
SHARED_SCOPE: Final = "webhooks:write"
"""Scope that a person must have to create and change rules that send data to receivers outside the service."""
_NOT_READABLE = "Your role does not include what this rule reports."
_MAX_FILTER_VALUES = 100
_MAX_ADDRESS_CHARS = 1_000
_SECRET_BYTES = 32
_PAGE_SIZE = 1_000


@dataclass(frozen=True, slots=True)
class RulePreview:
    """Preview of what a rule would have reported. `total` is a minimum if not `is_complete`; `items` are the first ones."""

    kind: NotificationKind
    total: int
    is_complete: bool
    items: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class CreatedRule:
    """Created rule, and the secret that signs its requests; empty unless it sends signed webhooks."""

    rule: NotificationRule
    secret: str = ""


@dataclass(frozen=True)
class NotificationRuleService(ResourceService[NotificationRule]):
    """Use cases of rules. The caller is a person, who sees their own rules and those of the organisation.

    Attributes:
        allowed_hosts: Hosts (`host`, `host:port`) that are permitted although their addresses are private.
    """

    kind: ClassVar = NotificationRule
    prefix: ClassVar = "ntr"
    audited: ClassVar = AUDITED
    vault: Vault
    events: EventReader
    collector: NotificationCollector
    allowed_hosts: frozenset[str] = frozenset()

    def _store(self, tx: Tx) -> NotificationRuleStore:
        return tx[NotificationRuleStore]

    async def list_visible(self, tx: Tx, person: str) -> Sequence[NotificationRule]:
        """Return the rules of the organisation and the person's own, oldest first."""
        return await self._store(tx).list_visible(person)

    async def get_visible(self, tx: Tx, id: str, person: str) -> NotificationRule:
        """Return a rule of the organisation or of the person. Raises NotFound."""
        rule = await self.get(tx, id)
        if not rule.is_shared and rule.person != person:
            raise NotFound
        return rule

    async def lock_changeable(self, tx: Tx, id: str, scopes: Collection[str]) -> NotificationRule:
        """Return a rule that the person in the transaction may change, locked. Raises NotFound or PermissionDenied."""
        rule = await self.get(tx, id, lock=True)
        if not rule.is_shared and rule.person != require_person(tx):
            raise NotFound
        _require_scopes(rule, scopes)
        return rule

    async def create_for_person(
        self, tx: Tx, values: Mapping[str, Any], url: str, scopes: Collection[str]
    ) -> CreatedRule:
        """Create a rule of the person in the transaction, which reports what happens from now on.

        Args:
            tx: The transaction.
            values: The rule's fields.
            url: URL of the receiver; ignored for email.
            scopes: Scopes of the person.

        Raises:
            InvalidRequest: A value is invalid.
            PermissionDenied: The person may not read what the rule reports, or not send it to other receivers.
            Conflict: The person has MAX_RULES_PER_PERSON rules.
        """
        person, now = require_person(tx), tx.now
        if await self._store(tx).count_by_person(person) >= MAX_RULES_PER_PERSON:
            raise Conflict(f"You have {MAX_RULES_PER_PERSON} rules, which is the maximum. Delete a rule first.")
        rule, secret = self._create_row(tx, {**values, "person": person, "checked_at": now}), ""
        rule = await self._validate(tx, rule, ())
        _require_scopes(rule, scopes)
        if rule.is_shared:
            if rule.channel == NotificationChannel.WEBHOOK:
                secret = SIGNING_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
            rule = self._with_address(tx, rule, url, secret)
        rule = await self._with_present_state(tx, rule)
        await self._store(tx).add(rule)
        await tx[AuditLog].add(AUDITED.describe_creation(rule))
        return CreatedRule(rule, secret)

    async def change(
        self, tx: Tx, id: str, values: Mapping[str, Any], url: str, scopes: Collection[str], version: int | None
    ) -> NotificationRule:
        """Change a rule; an empty URL keeps the receiver. What was found and not sent yet is kept.

        Raises NotFound, PermissionDenied, InvalidRequest, PreconditionFailed.
        """
        before = await self.lock_changeable(tx, id, scopes)
        values = {name: value for name, value in values.items() if name != "channel"}
        _require_scopes(replace(before, **values), scopes)
        if before.is_shared and url:
            changed = self._with_address(tx, before, url)
            values |= {"address": changed.address, "address_hint": changed.address_hint}
        return await self.update(tx, id, values, version)

    async def set_enabled(self, tx: Tx, id: str, scopes: Collection[str], *, enabled: bool) -> NotificationRule:
        """Enable or disable a rule; an enabled one reports what happens from now on. Raises NotFound, PermissionDenied."""
        await self.lock_changeable(tx, id, scopes)
        return await self.update(tx, id, {"enabled": enabled})

    def _with_derived_fields(self, before: NotificationRule, changes: dict[str, Any]) -> Mapping[str, Any]:
        return {**changes, "stopped_for": None, "due_at": None} if "enabled" in changes else changes

    async def _save(self, tx: Tx, before: NotificationRule, after: NotificationRule) -> NotificationRule:
        starts_again = after.enabled and not before.enabled
        if starts_again or (before.kind, before.sources) != (after.kind, after.sources):
            after = await self._with_present_state(tx, replace(after, due_at=None, has_overflow=False))
            await self._store(tx).delete_findings(after.id)
        elif after.due_at is not None:
            after = replace(after, due_at=compute_due_time(after, tx.now))
        return await super()._save(tx, before, after)

    async def _with_present_state(self, tx: Tx, rule: NotificationRule) -> NotificationRule:
        """Return the rule with the present end of the log and state of the sources, so that only later changes count."""
        rule = replace(rule, position=await tx[EventLog].get_high_watermark(), state={}, checked_at=tx.now)
        if rule.kind not in SOURCE_KINDS:
            return rule
        observed = await observe_sources(tx)
        return replace(rule, state=rules_of_findings.observe_sources(rule, observed.late, observed.problems, tx.now)[0])

    async def delete_own(self, tx: Tx, id: str, scopes: Collection[str]) -> None:
        """Delete a rule with its notifications. Raises NotFound, PermissionDenied."""
        await self.lock_changeable(tx, id, scopes)
        await self.delete(tx, id)

    async def unsubscribe(self, tx: Tx, person: str) -> int:
        """Disable all rules that send email to the person; return their number."""
        rules = await self._store(tx).lock_by_person(person)
        for rule in rules:
            await stop_rule(tx, rule, StopReason.UNSUBSCRIBED)
        return len(rules)

    async def list_notifications(self, tx: Tx, id: str, request: PageRequest) -> Page[Notification]:
        """Return a page of a rule's notifications, newest first."""
        return await tx.store(Notification).page(request, NotificationFilter(rule=id))

    async def list_newest(self, tx: Tx, ids: Sequence[str]) -> Sequence[Notification]:
        """Return the newest notification of each of these rules, if any."""
        return await self._store(tx).list_newest(ids)

    async def list_source_names(self, tx: Tx) -> Mapping[str, str]:
        """Return the names of all sources by ID."""
        return {source.id: source.name for source in await list_all(tx[SourceStore].page)}

    async def get_notification(self, tx: Tx, rule: str, id: str) -> Notification:
        """Return a notification of the rule. Raises NotFound."""
        found = require_found(await tx.store(Notification).get(id))
        if found.rule != rule:
            raise NotFound
        return found

    async def preview_draft(self, tx: Tx, values: Mapping[str, Any], scopes: Collection[str]) -> RulePreview:
        """Return the preview of a rule with these fields. Raises InvalidRequest, PermissionDenied."""
        rule = self._create_row(tx, {**values, "name": "-", "person": "", "checked_at": tx.now})
        if get_required_scope(rule.kind) not in scopes:
            raise PermissionDenied(_NOT_READABLE)
        return await self.preview(tx, await self._validate(tx, rule, ()))

    async def preview(self, tx: Tx, rule: NotificationRule) -> RulePreview:
        """Return what a rule would have reported in the last PREVIEW_PERIOD, as one digest."""
        since = tx.now - PREVIEW_PERIOD
        rule, is_complete = replace(rule, position=-1), True
        if rule.kind == NotificationKind.PROBLEMS:
            found = await self._preview_problems(tx, rule)
        else:
            types = rules_of_findings.EVENT_TYPES[rule.kind]
            recent, is_complete = await read_recent_events(self.events, tx, types, since, MAX_PREVIEW_EVENTS)
            found = (await self.collector.selector.select(tx, [rule], recent))[rule.id]
            if rule.kind == NotificationKind.FEED:
                late = (await observe_sources(tx)).late
                found = merge_findings(
                    [*found, *rules_of_findings.observe_sources(replace(rule, state={}), late, {}, tx.now)[1]]
                )
        reported = sort_findings(rule, [one for one in found if is_reported(rule, one)])
        items = await self.collector.build_items(tx, rule, reported[:MAX_CANDIDATES])
        total = len(reported) if len(reported) > MAX_CANDIDATES else len(items)
        return RulePreview(rule.kind, total, is_complete, items[:MAX_ITEMS])

    async def _preview_problems(self, tx: Tx, rule: NotificationRule) -> list[RuleFinding]:
        """Return how the numbers of problems have changed over the period, by source."""
        found, last = list[RuleFinding](), dict[str, int]()
        for source, count in await self._store(tx).list_problem_counts(tx.now - PREVIEW_PERIOD):
            if source in last and (not rule.sources or source in rule.sources):
                old, new = {"problems": last[source]}, {"problems": count}
                found.append(RuleFinding(rule.id, source, None, source, old, new, tx.now))
            last[source] = count
        return merge_findings(found)

    def _with_address(self, tx: Tx, rule: NotificationRule, url: str, secret: str = "") -> NotificationRule:
        """Return the rule with the encrypted URL; an empty secret keeps the former one. Raises InvalidRequest."""
        _refuse_address(url, self.allowed_hosts, livemode=tx.tenant.livemode)
        if not secret and rule.channel == NotificationChannel.WEBHOOK:
            secret = self.vault.decrypt(rule.address or b"", rule.id)["secret"]
        address = self.vault.encrypt({"url": url, "secret": secret}, rule.id)
        return replace(rule, address=address, address_hint=hint_address(url))

    async def _validate(self, tx: Tx, row: NotificationRule, names: Collection[str]) -> NotificationRule:
        row = replace(row, name=" ".join(row.name.split()))
        for field, is_valid, detail in _list_checks(row):
            if not is_valid:
                raise InvalidRequest.for_field(field, "invalid_value", detail)
        if row.sources:
            known = {source.id for source in await list_all(tx[SourceStore].page)}
            if not known.issuperset(row.sources):
                raise InvalidRequest.for_field("sources", "invalid_value", "A source does not exist. Select it again.")
        return row


def _require_scopes(rule: NotificationRule, scopes: Collection[str]) -> None:
    """Raise PermissionDenied if a person with the scopes may not have such a rule."""
    if get_required_scope(rule.kind) not in scopes:
        raise PermissionDenied(_NOT_READABLE)
    if rule.is_shared and SHARED_SCOPE not in scopes:
        raise PermissionDenied("Only owners, admins and developers can send notifications to Slack and webhooks.")


def _refuse_address(url: str, allowed_hosts: frozenset[str], *, livemode: bool) -> None:
    """Raise InvalidRequest for a URL to which notifications must not be sent.

    HTTPS is required in both modes, except for hosts that the operator permits. Test mode permits any port.
    """
    reason: str | None = None
    if len(url) > _MAX_ADDRESS_CHARS:
        reason = f"Use at most {_MAX_ADDRESS_CHARS} characters."
    elif not url.startswith("https://") and describe_url_refusal(url, allowed_hosts, frozenset()) is not None:
        reason = "Enter a URL that starts with https://."
    else:
        reason = describe_url_refusal(url, allowed_hosts, PORTS if livemode else None)
    if reason:
        raise InvalidRequest.for_field("url", "invalid_value", reason)


def _list_checks(rule: NotificationRule) -> list[tuple[str, bool, str]]:
    """Return field, validity and detail of the error of each check of a rule."""
    known_categories = categories.category_by_id()
    minutes = range(MINUTES_PER_DAY)
    is_quiet_valid = (rule.quiet_from is None) == (rule.quiet_until is None) and all(
        minute is None or minute in minutes for minute in (rule.quiet_from, rule.quiet_until)
    )
    is_name_valid = 0 < len(rule.name) <= MAX_NAME_CHARS and rule.name.isprintable()
    lists = (("sources", rule.sources), ("brands", rule.brands), ("categories", rule.categories))
    return [
        ("name", is_name_valid, f"Enter a name of at most {MAX_NAME_CHARS} characters."),
        ("kind", rule.kind in list(NotificationKind), "Select what to report."),
        ("channel", rule.channel in list(NotificationChannel), "Select a channel."),
        ("frequency", rule.frequency in list(Frequency), "Select a frequency."),
        ("threshold", 0 < rule.threshold <= MAX_THRESHOLD, "Enter a percentage between 0.01 and 1000."),
        ("prices", bool(rule.prices) and set(rule.prices) <= set(COMPARED_PRICES), "Select at least one price."),
        ("send_at", rule.send_at in minutes, "Enter a time such as 08:00."),
        ("weekday", rule.weekday in range(7), "Select a day of the week."),
        ("time_zone", rule.time_zone in list_zones(), "Select a time zone such as Europe/Berlin."),
        ("quiet_from", is_quiet_valid, "Enter both times of the quiet hours, or none."),
        ("categories", set(rule.categories) <= known_categories.keys(), "A category does not exist. Select it again."),
        *((name, len(values) <= _MAX_FILTER_VALUES, "Select at most 100.") for name, values in lists),
    ]  # fmt: skip
