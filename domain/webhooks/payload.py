"""Contents of payloads: removal of values, combination of events, and earlier versions of objects."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from domain.events.model import OFF_THE_FEED, to_omitted_field
from domain.kernel.ids import is_id

CREATED = "created"
_LATER = ("updated", "changed")
_CORRELATION = b'"correlation_id":"'
_FACETS = ("price", "stock", "availability")
"""The order in which facets are listed."""

Envelope = dict[str, Any]
"""Decoded envelope of an event."""
SUBJECT_KINDS_WITH_OBJECT = ("product", "variant", "offer")
"""Kinds of subjects whose fat payloads contain an object."""


def can_combine(earlier: str, later: str) -> bool:
    """Return whether two events of the same subject with these types can be combined.

    A creation or change of a product, variant or offer can be combined with a later change.
    """
    noun, _, kind = earlier.partition(".")
    later_noun, _, later_kind = later.partition(".")
    return (
        noun == later_noun
        and noun in ("product", "variant", "offer")
        and kind in (CREATED, *_LATER)
        and later_kind in _LATER
    )


def find_run_id(body: bytes) -> str | None:
    """Return the correlation ID of an encoded envelope if it is a run ID (a run caused the event), or None."""
    # the envelope is not decoded, because it may be large
    _, found, rest = body.rpartition(_CORRELATION)
    id_ = rest.partition(b'"')[0].decode("ascii", "replace") if found else ""
    return id_ if is_id("run", id_) else None


def make_thin(event: Mapping[str, Any]) -> Envelope:
    """Return the envelope with the paths of changed fields but without their values."""
    data = event["data"]
    if "fields" not in data or event["type"] in OFF_THE_FEED:
        return dict(event)
    return {**event, "data": {**data, "fields": [{"path": change["path"]} for change in data["fields"]]}}


def combine_envelopes(events: Sequence[Mapping[str, Any]]) -> Envelope:
    """Combine the envelopes of one subject, oldest first, into the last envelope with the net changes of all.

    Each path has its first old and its last new value, or no values if one of the events omits them. Paths whose values
    are equal again are omitted. `fields_omitted`, the number of omitted changes, is the maximum of all envelopes.
    Raises ValueError if there are no envelopes.
    """
    if not events:
        raise ValueError("There are no events to combine.")
    first, last = events[0], events[-1]
    is_creation = first["type"].endswith(CREATED)
    data = {**last["data"], "fields": _find_net_changes(events)}
    data.pop("fields_omitted", None)
    if omitted_count := max(event["data"].get("fields_omitted", 0) for event in events):
        data["fields_omitted"] = omitted_count
    for name, value in (("previous_version", first["data"].get("previous_version")), ("facets", _merge_facets(events))):
        data.pop(name, None)
        if value is not None and not is_creation:
            data[name] = value
    return {**last, "type": first["type"] if is_creation else last["type"], "data": data}


def _find_net_changes(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one net change for each changed path, in the order of first changes."""
    net: dict[str, dict[str, Any]] = {}
    for event in events:
        for change in event["data"].get("fields", ()):
            earlier = net.get(change["path"])
            if earlier is None:
                net[change["path"]] = dict(change)
            elif "old" in earlier and "new" in change:
                net[change["path"]] = {**change, "old": earlier["old"]}
            else:
                net[change["path"]] = to_omitted_field(change)
    return [change for change in net.values() if "old" not in change or change["old"] != change["new"]]


def _merge_facets(events: Sequence[Mapping[str, Any]]) -> list[str] | None:
    lists = [event["data"]["facets"] for event in events if "facets" in event["data"]]
    named = {facet for facets in lists for facet in facets}
    return [facet for facet in _FACETS if facet in named] + sorted(named.difference(_FACETS)) if lists else None


def find_object(product: Mapping[str, Any], subject: str) -> dict[str, Any] | None:
    """Return the object with the ID `subject`: the product, or one of its variants or offers; None if there is none."""
    if product["id"] == subject:
        return dict(product)
    for variant in product["variants"]:
        if variant["id"] == subject:
            return {**variant, "product": product["id"]}
        for offer in variant["offers"]:
            if offer["id"] == subject:
                parent_ids = {"variant": variant["id"], "catalogue": product["catalogue"], "product": product["id"]}
                return {**offer, **parent_ids}
    return None


def revert_object(
    current: dict[str, Any], later_events: Sequence[Mapping[str, Any]], version: int
) -> dict[str, Any] | None:
    """Return the object as it was at an earlier version, by undoing the changes of later events.

    Args:
        current: The current object, which is changed in place.
        later_events: Envelopes of later events of the object, newest first.
        version: The version to restore.

    Returns:
        The object, or None if events are missing or one of them omits an old value.
    """
    current_version = current["version"]
    for event in later_events:
        if event["version"] != current_version or current_version == version:
            continue
        if "fields_omitted" in event["data"]:
            return None
        for change in event["data"].get("fields", ()):
            if "old" not in change:
                return None
            _set_path(current, change["path"].split(".", 2), change["old"])  # axis names may contain dots
        current_version -= 1
    current["version"] = current_version
    return current if current_version == version else None


def _set_path(target: dict[str, Any], path: Sequence[str], value: Any) -> None:
    name, *rest = path
    if rest:
        inner = dict(target.get(name) or {})
        _set_path(inner, rest, value)
        value = inner or None
    if value is None:
        target.pop(name, None)
    else:
        target[name] = value


EventOccurrence = tuple[str, str, datetime]
"""Subject, type and time of an event."""


def count_deliveries(events: Iterable[EventOccurrence], coalesce_seconds: int) -> int:
    """Return the number of deliveries that result from these events if changes are combined.

    Args:
        events: The events, ordered by subject and time.
        coalesce_seconds: Seconds for which each delivery waits for further changes.
    """
    count = 0
    waiting: tuple[str, str, datetime] | None = None
    for subject, type, time in events:
        if waiting and waiting[0] == subject and time < waiting[2] and can_combine(waiting[1], type):
            kind = waiting[1] if waiting[1].endswith(".created") else type
            waiting = (subject, kind, waiting[2])
        else:
            count += 1
            waiting = (subject, type, time + timedelta(seconds=coalesce_seconds))
    return count
