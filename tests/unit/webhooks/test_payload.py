"""Payloads of events: thin, combined and fat."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.api_json.codec import JsonCodec
from adapters.api_json.webhooks import JsonPayloadRendering
from domain.changes.model import FeedPosition
from domain.events.model import TYPES, LoggedEvent
from domain.kernel.tenancy import Tenant
from domain.kernel.versions import Version, Versions
from domain.webhooks.model import EncryptedSecrets
from domain.webhooks.payload import can_combine, combine_envelopes
from domain.webhooks.ports import Subscriber
from domain.webhooks.usecases.payloads import PayloadRenderer
from tests.support import builders

RENDERING = JsonPayloadRendering()
PATHS = ("price", "quantity", "incoming", "withdrawn_at", "data.title", "data.dimensions.width")
VALUES = st.one_of(st.none(), st.integers(0, 3), st.sampled_from(["a", "b", [1], {"x": 1.5}]))


def _build_event(
    type: str, version: int, changes: dict[str, tuple[Any, Any]], facets: list[str] | None = None
) -> dict[str, Any]:
    data: dict[str, Any] = {"id": "ofr_1", "variant": "var_1", "availability": f"at {version}", "version": version}
    if version > 1:
        data["previous_version"] = version - 1
    if facets is not None:
        data["facets"] = facets
    if changes:
        data["fields"] = [
            {"path": path, "old": old, "new": new, "provenance": {"source": f"src_{version}", "confidence": 1.0}}
            for path, (old, new) in changes.items()
        ]
    return {
        "id": f"evt_{version}", "type": type, "spec_version": "1.0", "source": "service/catalog", "subject": "ofr_1",
        "time": f"2026-11-20T13:08:0{version}.000Z", "tenant_id": "org_1", "version": version, "schema_version": 1,
        "livemode": True, "data": data, "correlation_id": f"run_{version}", "causation_id": None,
    }  # fmt: skip


def _encode(event: Any) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def _get_fields(event: Any) -> dict[str, tuple[Any, Any]]:
    return {change["path"]: (change["old"], change["new"]) for change in event["data"]["fields"]}


class EmptyReconstructor:
    """Reconstructor without objects."""

    async def reconstruct(self, tenant: Tenant, event: LoggedEvent) -> None:
        """Return None."""


def _create_renderer() -> PayloadRenderer:
    return PayloadRenderer(JsonCodec(), RENDERING, EmptyReconstructor())  # type: ignore[arg-type]


def _render(payloads: PayloadRenderer, *bodies: bytes, payload: str = "thin") -> bytes:
    """Return the payload of events with these bodies."""
    subscriber = Subscriber(
        Tenant("org_1", True),
        builders.endpoint(payload=payload),
        EncryptedSecrets(b""),
        FeedPosition(),
        includes_fat_payloads=True,
    )
    events = [
        LoggedEvent(number, f"evt_{number}", "offer.changed", "ofr_1", None, None, None, number, builders.MOMENT, body)
        for number, body in enumerate(bodies, start=1)
    ]
    return asyncio.run(payloads.render(subscriber, events))


# Thin


def test_a_thin_payload_names_the_changed_fields() -> None:
    whole = _build_event("offer.changed", 7, {"price": (1, 2), "quantity": (None, 4)}, ["price", "stock"])
    thin = json.loads(_render(_create_renderer(), _encode(whole)))
    assert thin["data"]["fields"] == [{"path": "price"}, {"path": "quantity"}]
    whole["data"]["fields"] = thin["data"]["fields"]
    assert thin == whole


def test_a_thin_payload_without_fields_is_the_event() -> None:
    whole = _build_event("product.withdrawn", 3, {})
    assert json.loads(_render(_create_renderer(), _encode(whole))) == whole


@pytest.mark.parametrize("type", sorted(name for name, kind in TYPES.items() if "feed" not in kind.channels))
def test_events_of_resources_are_complete(type: str) -> None:
    whole = {**_build_event(type, 1, {}), "data": {"object": "export", "fields": ["a"], "version": 1}}
    assert json.loads(_render(_create_renderer(), _encode(whole))) == whole


def test_several_endpoints_receive_the_same_bytes() -> None:
    payloads, body = _create_renderer(), _encode(_build_event("offer.changed", 7, {"price": (1, 2)}))
    assert _render(payloads, body) is _render(payloads, body)


def test_a_thin_payload_of_several_events_names_all_changed_fields() -> None:
    events = [
        _build_event("offer.changed", 7, {"price": (1, 2)}),
        _build_event("offer.changed", 8, {"quantity": (None, 4)}),
    ]
    thin = json.loads(_render(_create_renderer(), *map(_encode, events)))
    assert thin["data"]["fields"] == [{"path": "price"}, {"path": "quantity"}]


# Fat


def test_a_fat_payload_contains_the_unchanged_bytes_of_the_object() -> None:
    body = _encode(_build_event("offer.changed", 7, {"price": (1, 2)})).replace(b'"old":1', b'"old":1.50')
    fat = RENDERING.add_object(body, b'{"object": "offer",  "price":1.10}')
    assert fat == body.replace(b"}}]}", b'}}],"object":{"object": "offer",  "price":1.10}}')
    assert RENDERING.add_object(body, None) == body


def test_numbers_keep_their_digits() -> None:
    body = _encode(_build_event("offer.changed", 7, {"price": (1, 2)}))
    body = body.replace(b'"old":1', b'"old":12345678901234567890.12345678901234567890')
    later = _encode(_build_event("offer.changed", 8, {"price": (2, 3)}))
    assert b"12345678901234567890.12345678901234567890" in _render(_create_renderer(), body, later, payload="fat")


# Combined


def test_a_single_event_is_not_combined() -> None:
    body = _encode(_build_event("offer.changed", 7, {"price": (1, 2)}))
    assert _render(_create_renderer(), body, payload="fat") is body


def test_combining_requires_an_event() -> None:
    with pytest.raises(ValueError, match="no events"):
        combine_envelopes([])


def test_a_combined_event_has_the_first_old_and_the_last_new_values() -> None:
    events = [
        _build_event("offer.changed", 5, {"price": (10, 12), "quantity": (1, 2)}, ["price", "stock"]),
        _build_event("offer.changed", 6, {"availability": ("in_stock", "low_stock")}, ["availability"]),
        _build_event("offer.changed", 7, {"price": (12, 9)}, ["price"]),
    ]
    combined = json.loads(_render(_create_renderer(), *map(_encode, events), payload="fat"))
    for name in ("id", "type", "time", "version", "correlation_id"):
        assert combined[name] == events[-1][name]
    assert _get_fields(combined) == {"price": (10, 9), "quantity": (1, 2), "availability": ("in_stock", "low_stock")}
    sources = {change["path"]: change["provenance"]["source"] for change in combined["data"]["fields"]}
    assert sources == {"price": "src_7", "quantity": "src_5", "availability": "src_6"}
    assert combined["data"]["previous_version"] == 4 and combined["data"]["version"] == 7
    assert combined["data"]["facets"] == ["price", "stock", "availability"]
    assert combined["data"]["availability"] == "at 7"


def test_reverted_changes_are_dropped() -> None:
    moment = "2026-11-20T13:00:00.000Z"
    events = [
        _build_event("offer.changed", 5, {"quantity": (4, 0), "withdrawn_at": (None, moment)}, ["stock"]),
        _build_event("offer.changed", 6, {"quantity": (0, 4), "withdrawn_at": (moment, None)}, ["stock"]),
    ]
    combined = combine_envelopes(events)
    assert combined["data"]["fields"] == []
    assert (combined["version"], combined["data"]["previous_version"], combined["data"]["facets"]) == (6, 4, ["stock"])


def test_a_second_withdrawal_has_the_later_time() -> None:
    events = [
        _build_event("offer.changed", 5, {"withdrawn_at": (None, "a")}),
        _build_event("offer.changed", 6, {"withdrawn_at": ("a", None)}),
        _build_event("offer.changed", 7, {"withdrawn_at": (None, "b")}),
    ]
    assert _get_fields(combine_envelopes(events)) == {"withdrawn_at": (None, "b")}


def test_a_created_and_changed_object_is_created_with_its_last_values() -> None:
    events = [
        _build_event("offer.created", 1, {"price": (None, 10), "msrp": (None, 20)}),
        _build_event("offer.changed", 2, {"price": (10, 12), "msrp": (20, None), "cost": (None, 5)}, ["price"]),
    ]
    combined = combine_envelopes(events)
    assert (combined["type"], combined["version"], combined["id"]) == ("offer.created", 2, "evt_2")
    assert _get_fields(combined) == {"price": (None, 12), "cost": (None, 5)}
    assert "previous_version" not in combined["data"] and "facets" not in combined["data"]


def test_a_combined_event_of_events_without_previous_version_has_none() -> None:
    events = [_build_event("offer.changed", 5, {"price": (1, 2)}), _build_event("offer.changed", 7, {"price": (2, 3)})]
    del events[0]["data"]["previous_version"]
    assert "previous_version" not in combine_envelopes(events)["data"]


@given(st.lists(st.dictionaries(st.sampled_from(PATHS), VALUES, min_size=1), min_size=1, max_size=6))
def test_a_combined_event_has_the_same_effect(steps: list[dict[str, Any]]) -> None:
    """Applying the combined event gives the same result as applying all events."""
    start = dict.fromkeys(PATHS)
    now, events = dict(start), []
    for number, step in enumerate(steps):
        changes = {path: (now[path], value) for path, value in step.items()}
        now |= step
        events.append(_build_event("offer.changed", number + 2, changes))
    combined = json.loads(_render(_create_renderer(), *map(_encode, events), payload="fat"))
    applied = dict(start)
    for path, (old, new) in _get_fields(combined).items():
        assert applied[path] == old != new or len(events) == 1
        applied[path] = new
    assert applied == now
    assert combined["data"]["previous_version"] == 1 and combined["version"] == len(steps) + 1


@given(st.lists(st.dictionaries(st.sampled_from(PATHS), VALUES), min_size=3, max_size=3))
def test_combining_in_steps_gives_the_same_event(steps: list[dict[str, Any]]) -> None:
    now: dict[str, Any] = {}
    events = []
    for number, step in enumerate(steps):
        changes = {path: (now.get(path), value) for path, value in step.items()}
        now |= step
        events.append(_build_event("offer.changed", number + 2, changes, ["price"] if number else ["stock"]))
    at_once, in_steps = combine_envelopes(events), combine_envelopes([combine_envelopes(events[:2]), events[2]])
    assert _get_fields(at_once) == _get_fields(in_steps)
    assert at_once["data"].get("facets") == in_steps["data"].get("facets")


def test_combinable_events_are_recognised() -> None:
    pairs = {(one, two) for one in TYPES for two in TYPES if can_combine(one, two)}
    assert pairs == {
        ("offer.created", "offer.changed"),
        ("offer.changed", "offer.changed"),
        ("product.created", "product.updated"),
        ("product.updated", "product.updated"),
        ("variant.created", "variant.updated"),
        ("variant.updated", "variant.updated"),
    }


# Versions


def test_payloads_have_the_shape_of_the_version() -> None:
    body = _encode({"object": "thing", "price": "1.50", "inner": {"object": "thing"}})
    assert RENDERING.convert_to_version(body, "2026-10-01") is body
    older = Versions((Version("2020-01-01"), Version("2026-10-04", {"thing": lambda thing: thing | {"was": 1}})))
    rendering = JsonPayloadRendering(older)
    assert rendering.convert_to_version(body, "2026-10-04") is body
    assert json.loads(rendering.convert_to_version(body, "2020-01-01"))["inner"] == {"object": "thing", "was": 1}


def test_omitted_fields_of_one_event_are_kept_when_combined() -> None:
    def event(version: int, **data: Any) -> dict[str, Any]:
        fields = [{"path": "data.title", "old": str(version - 1), "new": str(version)}]
        return {"type": "product.updated", "version": version, "data": {"version": version, "fields": fields, **data}}

    assert combine_envelopes([event(2, fields_omitted=12), event(3)])["data"]["fields_omitted"] == 12
    assert combine_envelopes([event(2, fields_omitted=3), event(3, fields_omitted=5)])["data"]["fields_omitted"] == 5
    assert "fields_omitted" not in combine_envelopes([event(2), event(3)])["data"]
