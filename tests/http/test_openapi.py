"""The OpenAPI description is valid, complete and exemplified (docs/conventions.md#docs-and-health)."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from adapters.api_json.event_schemas import EVENT_SCHEMAS
from entrypoints.operations.openapi import ComponentSchemas, build_document, list_error_codes
from entrypoints.operations.table import OperationTable
from tests.http import example_area
from tests.support.operation_table import load_operation_table


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    """Build the description of all operations."""
    return build_document(load_operation_table(), "https://api.example", "https://docs.example")


def test_the_description_is_valid(description: dict[str, Any]) -> None:
    validate(description)


def test_the_example_area_is_valid() -> None:
    validate(build_document(OperationTable([example_area.AREA]), "https://api.example", "https://docs.example"))


def test_every_operation_and_response_is_described(description: dict[str, Any]) -> None:
    for row in load_operation_table():
        operation = description["paths"][row.path][row.method.lower()]
        assert operation["operationId"] == row.id
        assert operation["x-rate-class"] == row.rate
        assert operation["x-scope"] == row.scope
        assert operation["x-who"] == row.caller_kind
        documented = {
            code
            for status, response in operation["responses"].items()
            if int(status) >= 400
            for code in response["content"]["application/problem+json"]["examples"]
        }
        assert documented == set(list_error_codes(row))


NULLS = {
    "audit_event_actor.on_behalf_of", "event.causation_id", "run.served_by", "source_freshness.catalogue",
    "source_freshness.stock", "source_test.served_by",
}  # fmt: skip
"""Properties whose null has a meaning, in addition to next_cursor; other absent properties are omitted."""


def _list_nullable_properties(name: str, schema: Any) -> Iterator[str]:
    """List the nullable properties of a component, with the component's name."""
    for key, value in schema.get("properties", {}).items():
        types = [value, *value.get("anyOf", ()), *value.get("oneOf", ())]
        if any("null" in (kind if isinstance(kind := one.get("type"), list) else [kind]) for one in types):
            yield f"{name}.{key}"
        yield from _list_nullable_properties(f"{name}.{key}", value)
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            yield from _list_nullable_properties(name, schema[part])


def test_absent_properties_are_left_out(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    # Request bodies, and the schemas of event types, which repeat the schema of `event`.
    others = re.compile("_body|^pushed_|_(update|create)$|(?<!^audit)_event$")
    found = {
        path for name in schemas if not others.search(name) for path in _list_nullable_properties(name, schemas[name])
    }
    assert {path for path in found if not path.endswith(".next_cursor")} == NULLS


def test_every_response_with_content_has_a_valid_example(description: dict[str, Any]) -> None:
    for path, item in description["paths"].items():
        for method, operation in item.items():
            contents = [response.get("content", {}) for response in operation["responses"].values()]
            contents.append(operation.get("requestBody", {}).get("content", {}))
            for content in contents:
                for media in content.values():
                    schema = {**media["schema"], "components": description["components"]}
                    assert media["examples"], (method, path)
                    for given in media["examples"].values():
                        example = _resolve(given, description)
                        checker = Draft202012Validator(schema)
                        faults = [
                            f"{'.'.join(map(str, e.path))}: {e.message}" for e in checker.iter_errors(example["value"])
                        ]
                        assert not faults, (method, path, faults)


def _resolve(part: Any, description: dict[str, Any]) -> Any:
    """Resolve a reference."""
    while "$ref" in part:
        found: Any = description
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        part = found
    return part


@pytest.mark.parametrize("type", EVENT_SCHEMAS)
def test_webhook_payloads_are_described(description: dict[str, Any], type: str) -> None:
    post = description["webhooks"][type]["post"]
    names = {_resolve(parameter, description)["name"] for parameter in post["parameters"]}
    assert names == {
        "webhook-id", "webhook-timestamp", "webhook-signature", "Service-Version", "Service-Feed-Cursor", "User-Agent",
    }  # fmt: skip
    assert {"2XX", "410", "default"} == set(post["responses"])
    media = post["requestBody"]["content"]["application/json"]
    event = _resolve(media["schema"], description)
    assert event["properties"]["type"]["const"] == type
    schema = {**media["schema"], "components": description["components"]}
    assert not list(Draft202012Validator(schema).iter_errors(media["examples"]["usual"]["value"]))


def test_webhooks_have_a_tag_of_their_own(description: dict[str, Any]) -> None:
    """Generators create a class per tag; a shared tag would lose the operations of one side."""
    served = {tag for item in description["paths"].values() for operation in item.values() for tag in operation["tags"]}
    received = {
        tag for item in description["webhooks"].values() for operation in item.values() for tag in operation["tags"]
    }
    assert received and not served & received


def test_responses_have_no_alternatives(description: dict[str, Any]) -> None:
    """Responses of dry runs are described separately, not as alternatives."""
    preview = description["components"]["responses"]["preview"]["content"]
    assert list(preview) == ["application/vnd.furniops.preview+json"]
    for row in load_operation_table():
        operation = description["paths"][row.path][row.method.lower()]
        good = [response for status, response in operation["responses"].items() if int(status) < 300]
        assert len(good) == 1 and len(good[0].get("content", {})) <= 1, row.id
        assert ("x-dry-run" in operation) == row.is_write


def _walk_schemas(part: Any) -> Iterator[dict[str, Any]]:
    """Walk all schemas in the description, and other objects with their shape."""
    if isinstance(part, dict):
        yield part
        for key, value in part.items():
            if key not in ("examples", "example", "value"):
                yield from _walk_schemas(value)
    elif isinstance(part, list):
        for value in part:
            yield from _walk_schemas(value)


def test_every_schema_is_described_once(description: dict[str, Any]) -> None:
    for place in ("paths", "webhooks"):
        for schema in _walk_schemas(description[place]):
            assert "properties" not in schema, schema
            assert len(schema.get("enum", ())) < 2, schema
    for name, schema in description["components"]["schemas"].items():
        inside = [
            part
            for key in ("properties", "items", "anyOf", "oneOf", "allOf")
            for part in _walk_schemas(schema.get(key))
        ]
        assert not [one for one in inside if isinstance(one.get("enum"), list) and len(one["enum"]) > 1], name
    of_events = {event["properties"]["data"]["title"] for event in EVENT_SCHEMAS.values()}  # one per event type
    contents = [
        _remove_annotations(one) for name, one in description["components"]["schemas"].items() if name not in of_events
    ]
    assert len(contents) == len(set(contents))


def _remove_annotations(schema: dict[str, Any]) -> str:
    content = {key: value for key, value in schema.items() if key not in ("title", "description", "examples")}
    return json.dumps(content, sort_keys=True)


def test_no_alternative_is_repeated(description: dict[str, Any]) -> None:
    for schema in _walk_schemas(description):
        if isinstance(choices := schema.get("enum"), list):
            assert len(choices) == len(set(choices)), choices


def test_names_of_schemas_are_unique() -> None:
    schemas = ComponentSchemas()
    one = {"title": "one", "type": "object", "properties": {"a": {"type": "string"}}}
    schemas.add_schema(one, "first")
    assert schemas.add_schema(one | {"description": "again"}, "second") == {"$ref": "#/components/schemas/one"}
    with pytest.raises(ValueError, match="one is the name of two schemas"):
        schemas.add_schema(one | {"required": ["a"]}, "third")
