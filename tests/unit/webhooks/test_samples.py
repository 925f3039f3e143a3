"""Sample events have the shape of the events of runs."""

import json
from typing import Any

import pytest

from adapters.api_json.changes import EVENT
from adapters.api_json.events import JsonEventRendering
from adapters.api_json.products import PRODUCT, VARIANT
from domain.catalogue import categories
from domain.events.model import TYPES, Event
from domain.ingestion.values.words import has_valid_check_digit
from domain.kernel.ids import is_id, new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.webhooks.samples import TYPES_WITH_SAMPLE, create_sample
from entrypoints.operations.validation import Validator
from tests.support.builders import MOMENT

TENANT = Tenant(new_id("org"), False)
PREFIXES = {"product": "prod", "variant": "var", "offer": "ofr", "source": "src", "catalogue": "cat"}


def _encode_sample(event: Event) -> Any:
    event.assign_ids(AuditContext(Actor("user", "usr_1"), "webhooks.emit_sample", "req_1"))
    return json.loads(JsonEventRendering().encode_event(event, TENANT, MOMENT))


def _nest_fields(fields: list[Any], prefix: str) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for change in fields:
        *above, name = change["path"].removeprefix(prefix).split(".")
        target = data
        for part in above:
            target = target.setdefault(part, {})
        target[name] = change["new"]
    return data


def test_each_marked_type_has_a_sample() -> None:
    assert set(TYPES_WITH_SAMPLE) == {name for name, entry in TYPES.items() if entry.has_sample}
    assert len(TYPES_WITH_SAMPLE) == 18


@pytest.mark.parametrize("type", TYPES_WITH_SAMPLE)
def test_samples_are_valid_events(type: str) -> None:
    catalogue = new_id("cat")
    event = create_sample(type, catalogue, MOMENT)
    rendered = _encode_sample(event)
    assert Validator(EVENT).find_field_errors(rendered) == ()
    assert event.type == type and event.catalogue == catalogue and not event.is_published
    assert is_id(PREFIXES[type.partition(".")[0]], event.subject)
    assert rendered["data"]["id"] == event.subject
    for name, prefix in (("product", "prod"), ("variant", "var"), ("source", "src"), ("run", "run")):
        if name in rendered["data"]:
            assert is_id(prefix, rendered["data"][name])
    assert ("merged_into" in rendered["data"]) == type.endswith(".merged")


@pytest.mark.parametrize(("type", "schema"), [("product.created", PRODUCT), ("variant.created", VARIANT)])
def test_samples_of_created_objects_have_valid_fields(type: str, schema: Any) -> None:
    rendered = _encode_sample(create_sample(type, new_id("cat"), MOMENT))
    assert all(change["old"] is None for change in rendered["data"]["fields"])
    data = _nest_fields(rendered["data"]["fields"], "data.")
    closed = {**schema["properties"]["data"], "additionalProperties": False}
    assert Validator(closed).find_field_errors(data) == ()
    if "gtin" in data:
        assert has_valid_check_digit(data["gtin"])
    if "category" in data:
        assert data["category_path"] == list(categories.category_by_id()[data["category"]].path)


def test_two_samples_are_different_events() -> None:
    one, two = create_sample("offer.changed", "cat_1", MOMENT), create_sample("offer.changed", "cat_1", MOMENT)
    assert one.subject != two.subject and one.source != two.source
