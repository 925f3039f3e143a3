"""Samples have the shape of what runs tell."""

import json
from typing import Any

import pytest

from adapters.wire.changes import EVENT
from adapters.wire.events import WireEventRendering
from adapters.wire.products import PRODUCT, VARIANT
from domain.catalogue import categories
from domain.events.model import TYPES, Event
from domain.ingestion.values.words import valid
from domain.kernel.ids import is_id, new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.webhooks.samples import TYPES_WITH_SAMPLE, sample
from entrypoints.operations.validation import Validator
from tests.support.builders import MOMENT

TENANT = Tenant(new_id("org"), False)
PREFIXES = {"product": "prod", "variant": "var", "offer": "ofr", "source": "src", "catalogue": "cat"}


def _told(event: Event) -> Any:
    event.identify(AuditContext(Actor("user", "usr_1"), "webhooks.emit_sample", "req_1"))
    return json.loads(WireEventRendering().event(event, TENANT, MOMENT))


def _nested(fields: list[Any], prefix: str) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for change in fields:
        *above, name = change["path"].removeprefix(prefix).split(".")
        place = data
        for part in above:
            place = place.setdefault(part, {})
        place[name] = change["new"]
    return data


def test_there_is_one_of_each_marked_type() -> None:
    assert set(TYPES_WITH_SAMPLE) == {name for name, entry in TYPES.items() if entry.sample}
    assert len(TYPES_WITH_SAMPLE) == 18


@pytest.mark.parametrize("type", TYPES_WITH_SAMPLE)
def test_it_is_an_event_of_the_catalogue(type: str) -> None:
    catalogue = new_id("cat")
    event = sample(type, catalogue, MOMENT)
    told = _told(event)
    assert Validator(EVENT).faults(told) == ()
    assert event.type == type and event.catalogue == catalogue and not event.network
    assert is_id(PREFIXES[type.partition(".")[0]], event.subject)
    assert told["data"]["id"] == event.subject
    for name, prefix in (("product", "prod"), ("variant", "var"), ("source", "src"), ("run", "run")):
        if name in told["data"]:
            assert is_id(prefix, told["data"][name])
    assert ("merged_into" in told["data"]) == type.endswith(".merged")


@pytest.mark.parametrize(("type", "schema"), [("product.created", PRODUCT), ("variant.created", VARIANT)])
def test_created_things_have_every_field_valid(type: str, schema: Any) -> None:
    told = _told(sample(type, new_id("cat"), MOMENT))
    assert all(change["old"] is None for change in told["data"]["fields"])
    data = _nested(told["data"]["fields"], "data.")
    closed = {**schema["properties"]["data"], "additionalProperties": False}
    assert Validator(closed).faults(data) == ()
    if "gtin" in data:
        assert valid(data["gtin"])
    if "category" in data:
        assert data["category_path"] == list(categories.everything()[data["category"]].path)


def test_two_samples_are_two_events() -> None:
    one, two = sample("offer.changed", "cat_1", MOMENT), sample("offer.changed", "cat_1", MOMENT)
    assert one.subject != two.subject and one.source != two.source
