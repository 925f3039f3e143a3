"""The size of an event is bounded for any number of changes, and its JSON still describes the change."""

import json
from datetime import UTC, datetime
from typing import Any

from adapters.api_json.events import JsonEventRendering
from domain.events.model import Event, FieldChange, Provenance
from domain.kernel.bounds import EVENT_BYTES
from domain.kernel.tenancy import Tenant
from domain.webhooks.payload import combine_envelopes, revert_object

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def _encode_event(*changes: FieldChange, version: int = 2) -> dict[str, Any]:
    provenance = Provenance("src_1", "mapped", 1.0, NOW)
    event = Event("product.updated", "prod_1", version, {"id": "prod_1"}, fields=changes, provenance=provenance)
    body = JsonEventRendering().encode_event(event, Tenant("org_1", True), NOW)
    assert len(body) <= EVENT_BYTES
    found: dict[str, Any] = json.loads(body)
    return found


def test_the_largest_values_are_omitted_and_the_others_kept() -> None:
    many = ["x" * 100] * 3_000
    fields = _encode_event(FieldChange("data.features", many, many[1:]), FieldChange("data.title", "Old", "New"))[
        "data"
    ]["fields"]
    assert [field["path"] for field in fields] == ["data.features", "data.title"]
    assert {*fields[0]} == {"path", "provenance", "omitted"}
    assert (fields[1]["old"], fields[1]["new"]) == ("Old", "New")


def test_an_event_within_the_limit_is_sent_completely() -> None:
    text = "x" * (EVENT_BYTES // 3)
    (field,) = _encode_event(FieldChange("data.description", text, text + "y"))["data"]["fields"]
    assert (field["old"], field["new"]) == (text, text + "y")


def test_paths_are_listed_up_to_the_bound() -> None:
    data = _encode_event(*(FieldChange(f"data.axes.{number}", None, "x" * 50) for number in range(20_000)))["data"]
    assert len(data["fields"]) + data["fields_omitted"] == 20_000
    assert len(data["fields"]) > 100


def test_combining_marks_omitted_values() -> None:
    many = ["x" * 100] * 3_000
    events = [
        _encode_event(FieldChange("data.tags", ["a"], many), FieldChange("data.title", "A", "B")),
        _encode_event(FieldChange("data.tags", many, ["b"]), FieldChange("data.title", "B", "C"), version=3),
    ]
    tags, title = combine_envelopes(events)["data"]["fields"]
    assert tags["omitted"]
    assert "old" not in tags
    assert (title["old"], title["new"]) == ("A", "C")


def test_omitted_values_cannot_be_reverted() -> None:
    many = ["x" * 100] * 3_000
    later = [_encode_event(FieldChange("data.tags", many, ["b"]))]
    assert revert_object({"id": "prod_1", "version": 2, "data": {"tags": ["b"]}}, later, 1) is None
