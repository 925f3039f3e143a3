"""Payloads of events: thin, whole, with their object, or several events of one subject combined (delivery rule 7)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from domain.events.model import OFF_THE_FEED, omitted
from domain.kernel.ids import is_id

CREATED = "created"
_LATER = ("updated", "changed")
_CORRELATION = b'"correlation_id":"'
_FACETS = ("price", "stock", "availability")
"""The order in which facets are listed."""

Envelope = dict[str, Any]
NOUNS = ("product", "variant", "offer")
"""Subjects of events that have an object."""


def combinable(earlier: str, later: str) -> bool:
    """Return whether two events of these types about one subject can be combined.

    Creations and changes can; other types (merged, published, discontinued, the health of a source, what only webhooks
    carry) are sent separately.
    """
    noun, _, kind = earlier.partition(".")
    later_noun, _, later_kind = later.partition(".")
    return (
        noun == later_noun
        and noun in ("product", "variant", "offer")
        and kind in (CREATED, *_LATER)
        and later_kind in _LATER
    )


def run_of(body: bytes) -> str | None:
    """Return the run in a JSON envelope's correlation id, without decoding the possibly large envelope."""
    _, found, rest = body.rpartition(_CORRELATION)
    id_ = rest.partition(b'"')[0].decode("ascii", "replace") if found else ""
    return id_ if is_id("run", id_) else None


def thin(event: Mapping[str, Any]) -> Envelope:
    """Return the envelope with the paths of changes instead of values; resources in `data` remain whole."""
    data = event["data"]
    if "fields" not in data or event["type"] in OFF_THE_FEED:
        return dict(event)
    return {**event, "data": {**data, "fields": [{"path": change["path"]} for change in data["fields"]]}}


def combined(events: Sequence[Mapping[str, Any]]) -> Envelope:
    """Combine several events of one subject, oldest first, into one: the last envelope with all changes.

    Each path has its first old and its last new value. Paths that returned to their old value are omitted, so `fields`
    may be empty while the version has risen. A path whose values one event omits has none. `fields_omitted` is the
    maximum of the events, a lower bound. Raises ValueError without events.
    """
    if not events:
        raise ValueError("There are no events to combine.")
    first, last = events[0], events[-1]
    created = first["type"].endswith(CREATED)
    data = {**last["data"], "fields": _net(events)}
    data.pop("fields_omitted", None)
    if left_out := max(event["data"].get("fields_omitted", 0) for event in events):
        data["fields_omitted"] = left_out
    for name, value in (("previous_version", first["data"].get("previous_version")), ("facets", _facets(events))):
        data.pop(name, None)
        if value is not None and not created:
            data[name] = value
    return {**last, "type": first["type"] if created else last["type"], "data": data}


def _net(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the net changes by path, in the order of their first change."""
    net: dict[str, dict[str, Any]] = {}
    for event in events:
        for change in event["data"].get("fields", ()):
            before = net.get(change["path"])
            if before is None:
                net[change["path"]] = dict(change)
            elif "old" in before and "new" in change:
                net[change["path"]] = {**change, "old": before["old"]}
            else:
                net[change["path"]] = omitted(change)
    return [change for change in net.values() if "old" not in change or change["old"] != change["new"]]


def _facets(events: Sequence[Mapping[str, Any]]) -> list[str] | None:
    lists = [event["data"]["facets"] for event in events if "facets" in event["data"]]
    named = {facet for facets in lists for facet in facets}
    return [facet for facet in _FACETS if facet in named] + sorted(named.difference(_FACETS)) if lists else None


def inside(product: Mapping[str, Any], subject: str) -> dict[str, Any] | None:
    """Return the product itself, or its variant or offer with that id, or None."""
    if product["id"] == subject:
        return dict(product)
    for variant in product["variants"]:
        if variant["id"] == subject:
            return {**variant, "product": product["id"]}
        for offer in variant["offers"]:
            if offer["id"] == subject:
                around = {"variant": variant["id"], "catalogue": product["catalogue"], "product": product["id"]}
                return {**offer, **around}
    return None


def reverted(found: dict[str, Any], later: Sequence[Mapping[str, Any]], version: int) -> dict[str, Any] | None:
    """Return the object at an earlier version by undoing later events' changes (newest first).

    None if the events are incomplete, or one of them omits an old value.
    """
    at = found["version"]
    for event in later:
        if event["version"] != at or at == version:
            continue
        if "fields_omitted" in event["data"]:
            return None
        for change in event["data"].get("fields", ()):
            if "old" not in change:
                return None
            _put(found, change["path"].split(".", 2), change["old"])  # axis names may contain dots
        at -= 1
    found["version"] = at
    return found if at == version else None


def _put(target: dict[str, Any], path: Sequence[str], value: Any) -> None:
    name, *rest = path
    if rest:
        inner = dict(target.get(name) or {})
        _put(inner, rest, value)
        value = inner or None
    if value is None:
        target.pop(name, None)
    else:
        target[name] = value


Happening = tuple[str, str, datetime]
"""Subject, type and time of an event."""


def posts(events: Iterable[Happening], window: int) -> int:
    """Return the number of POSTs for events, ordered by subject and time, with a window in seconds.

    A POST waits for the window from its first event on and includes what follows, until an event cannot be combined.
    """
    count = 0
    waiting: tuple[str, str, datetime] | None = None
    for subject, type, time in events:
        if waiting and waiting[0] == subject and time < waiting[2] and combinable(waiting[1], type):
            kind = waiting[1] if waiting[1].endswith(".created") else type
            waiting = (subject, kind, waiting[2])
        else:
            count += 1
            waiting = (subject, type, time + timedelta(seconds=window))
    return count
