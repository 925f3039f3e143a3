"""Findings: what a rule's events, late sources and problems change in total, and whether the rule reports it.

A finding has the first old and the last new values since the rule's last notification. A value that returns to its
original state is therefore not reported.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from domain.catalogue.model import Availability
from domain.events.model import LoggedEvent
from domain.notifications.model import NotificationKind, NotificationRule

Values = Mapping[str, Any]
"""Values by name, as JSON."""
COMPARED_PRICES: Final = ("price", "cost", "msrp", "map")
"""Prices that rules can compare."""
_UNAVAILABLE = frozenset({Availability.OUT_OF_STOCK, Availability.DISCONTINUED})
_ORDERABLE = frozenset({Availability.IN_STOCK, Availability.LOW_STOCK, Availability.BACKORDER, Availability.PREORDER})
_IN_STOCK = frozenset({Availability.IN_STOCK, Availability.LOW_STOCK})
_STOPPED = frozenset({"degraded", "blocked"})
_OFFER_EVENTS = frozenset({"offer.changed"})
EVENT_TYPES: Final[Mapping[NotificationKind, frozenset[str]]] = {
    NotificationKind.PRICE_CHANGE: _OFFER_EVENTS,
    NotificationKind.OUT_OF_STOCK: _OFFER_EVENTS,
    NotificationKind.BACK_IN_STOCK: _OFFER_EVENTS,
    NotificationKind.NEW_PRODUCTS: frozenset({"product.created"}),
    NotificationKind.DISCONTINUED: frozenset({"product.discontinued"}),
    NotificationKind.FEED: frozenset({"source.degraded", "source.blocked", "source.recovered"}),
    NotificationKind.PROBLEMS: frozenset(),
}
"""Event types that rules of each kind examine; late sources and problems are found by examining sources."""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """Change of one subject (an offer, a product or a source) for one rule.

    Attributes:
        old: The values before the first change.
        new: The values after the last change.
    """

    rule: str
    subject: str
    product: str | None
    source: str | None
    old: Values
    new: Values
    found_at: datetime

    def with_later(self, later: "RuleFinding") -> "RuleFinding":
        """Return the finding with a later change of the same subject added."""
        old, new = {**later.old, **self.old}, {**self.new, **later.new}
        return RuleFinding(self.rule, self.subject, later.product, later.source, old, new, later.found_at)


def merge_findings(findings: Iterable[RuleFinding]) -> list[RuleFinding]:
    """Return one finding per subject, in the order of first changes; the findings of a subject must be in order."""
    merged: dict[str, RuleFinding] = {}
    for finding in findings:
        earlier = merged.get(finding.subject)
        merged[finding.subject] = earlier.with_later(finding) if earlier is not None else finding
    return list(merged.values())


def find_change(rule: NotificationRule, event: LoggedEvent, data: Mapping[str, Any]) -> RuleFinding | None:
    """Return what an event changes for the rule; None if the event does not concern it.

    Brands and categories are not examined, because they are those of the product at present.

    Args:
        rule: The rule.
        event: The event.
        data: The `data` of the event's envelope.
    """
    if event.type not in EVENT_TYPES[rule.kind] or (rule.sources and event.source not in rule.sources):
        return None
    changes = {
        change["path"]: (change["old"], change["new"]) for change in data.get("fields", ()) if not change.get("omitted")
    }
    match rule.kind:
        case NotificationKind.PRICE_CHANGE:
            names = [name for name in rule.prices if name in changes]
            names += ["currency"] if names and "currency" in changes else []
        case NotificationKind.OUT_OF_STOCK | NotificationKind.BACK_IN_STOCK:
            names = ["availability"] if "availability" in changes else []
        case NotificationKind.FEED:
            names = ["status"] if "status" in changes else []
        case _:
            return RuleFinding(rule.id, event.subject, event.product, event.source, {}, {}, event.time)
    if not names:
        return None
    old, new = ({name: changes[name][side] for name in names} for side in (0, 1))
    return RuleFinding(rule.id, event.subject, event.product, event.source, old, new, event.time)


@dataclass(frozen=True, slots=True)
class PriceChange:
    """Change of one price; `percent` is None if the currency changed, or the old price was 0."""

    name: str
    old: int
    new: int
    percent: Decimal | None


def list_price_changes(rule: NotificationRule, finding: RuleFinding) -> list[PriceChange]:
    """Return the changes of prices that the rule reports, computed from exact amounts in minor units.

    A price in another currency counts as changed whatever its amount.
    """
    currencies = finding.old.get("currency"), finding.new.get("currency")
    has_other_currency = None not in currencies and currencies[0] != currencies[1]
    found = []
    for name in rule.prices:
        old, new = finding.old.get(name), finding.new.get(name)
        if old is None or new is None or (old == new and not has_other_currency):
            continue
        if has_other_currency or not old:
            found.append(PriceChange(name, old, new, None))
        elif abs(new - old) * 10_000 >= rule.threshold * abs(old):
            found.append(PriceChange(name, old, new, Decimal(new - old) * 100 / Decimal(old)))
    return found


def is_reported(rule: NotificationRule, finding: RuleFinding) -> bool:
    """Return whether the rule reports the finding as a whole."""
    old, new = finding.old, finding.new
    match rule.kind:
        case NotificationKind.PRICE_CHANGE:
            return bool(list_price_changes(rule, finding))
        case NotificationKind.OUT_OF_STOCK:
            return old["availability"] in _ORDERABLE and new["availability"] in _UNAVAILABLE
        case NotificationKind.BACK_IN_STOCK:
            return old["availability"] in _UNAVAILABLE and new["availability"] in _IN_STOCK
        case NotificationKind.FEED:
            has_failed = new.get("status") in _STOPPED and new["status"] != old.get("status")
            return has_failed or bool(new.get("late") and not old.get("late"))
        case NotificationKind.PROBLEMS:
            return bool(new["problems"] > old["problems"])
    return True


def sort_findings(rule: NotificationRule, findings: Iterable[RuleFinding]) -> list[RuleFinding]:
    """Return the findings in the order of a notification: large changes first, otherwise the latest first."""

    def get_weight(finding: RuleFinding) -> tuple[Decimal, datetime, str]:
        size = Decimal(0)
        if rule.kind == NotificationKind.PRICE_CHANGE:
            shares = [change.percent for change in list_price_changes(rule, finding)]
            size = max(Decimal("Infinity") if share is None else abs(share) for share in shares)
        elif rule.kind == NotificationKind.PROBLEMS:
            size = Decimal(finding.new["problems"] - finding.old["problems"])
        return size, finding.found_at, finding.subject

    return sorted(findings, key=get_weight, reverse=True)


def observe_sources(
    rule: NotificationRule, late: Mapping[str, str], problems: Mapping[str, int], now: datetime
) -> tuple[dict[str, Any], list[RuleFinding]]:
    """Return the new state of the rule, and what differs from its former state.

    A source that stays late, or whose runs find the same number of problems, is therefore found once.

    Args:
        rule: A rule of a kind in SOURCE_KINDS.
        late: Label of the lateness of each late source.
        problems: Number of problems of the newest successful run of each source.
        now: The current time.
    """
    name, missing, seen = ("late", None, late) if rule.kind == NotificationKind.FEED else ("problems", 0, problems)
    ids = rule.sources or sorted(seen.keys() | rule.state.keys())
    state = {id_: seen[id_] for id_ in ids if id_ in seen}
    found = []
    for id_ in ids:
        old, new = rule.state.get(id_, missing), state.get(id_, missing)
        if bool(old) != bool(new) if name == "late" else old != new:
            found.append(RuleFinding(rule.id, id_, None, id_, {name: old}, {name: new}, now))
    return state, found


def build_item(
    rule: NotificationRule, finding: RuleFinding, product: Mapping[str, Any] | None, sources: Mapping[str, str]
) -> dict[str, Any]:
    """Return a finding as an item of a notification.

    Args:
        rule: The rule.
        finding: The finding.
        product: The product as in the API; None if the finding is about a source.
        sources: Names of sources by ID.
    """
    item: dict[str, Any] = {"subject": finding.subject}
    if finding.source is not None:
        item |= {"source": finding.source, "source_name": sources.get(finding.source, "")}
    if product is None:
        return {**item, "old": dict(finding.old), "new": dict(finding.new)}
    data = product["data"]
    item |= {"product": product["id"], "title": data.get("title", ""), "brand": data.get("brand", "")}
    pictures = (medium for medium in data.get("media", ()) if medium.get("role") not in ("video", "document"))
    item["picture"] = next((medium["id"] for medium in pictures if medium.get("id")), "")
    found = [
        (variant, offer)
        for variant in product["variants"]
        for offer in variant["offers"]
        if offer["id"] == finding.subject
    ]
    if found:
        item["sku"] = found[0][0]["data"].get("sku", "")
    if rule.kind != NotificationKind.PRICE_CHANGE:
        return {**item, "old": dict(finding.old), "new": dict(finding.new)}
    current = found[0][1].get("currency") if found else None
    old_currency, new_currency = finding.old.get("currency", current), finding.new.get("currency", current)
    item["prices"] = [
        {
            "name": change.name,
            "old": {"amount": change.old, "currency": old_currency or "xxx"},
            "new": {"amount": change.new, "currency": new_currency or "xxx"},
            "percent": None if change.percent is None else f"{change.percent:.1f}",
        }
        for change in list_price_changes(rule, finding)
    ]
    return item


def select_event_types(rules: Sequence[NotificationRule]) -> frozenset[str]:
    """Return the event types that the rules examine."""
    return frozenset().union(*(EVENT_TYPES[rule.kind] for rule in rules))
