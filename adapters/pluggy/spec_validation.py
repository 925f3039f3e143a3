"""Validation of a connector's description (ConnectorSpec) before the connector is used."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from connectors.sdk.spec import API, KINDS, STREAMS, ConnectorSpec

_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
_MAX_NAME_LENGTH = 64
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def find_spec_faults(spec: object) -> list[str]:
    """Return the faults of a connector's description as texts; an empty list if the description is valid."""
    if not isinstance(spec, ConnectorSpec):
        return ["the object is not a ConnectorSpec"]
    if spec.api != API:
        return [f"the connector is written for version {spec.api!r} of the connector interface; this is version {API}"]
    return [*_check_values(spec), *_check_schemas(spec)]


def _check_values(spec: ConnectorSpec) -> Iterator[str]:
    if not isinstance(spec.name, str) or len(spec.name) > _MAX_NAME_LENGTH or not _NAME.fullmatch(spec.name):
        yield "name must consist of lower-case letters, digits and single dashes"
    if not isinstance(spec.title, str) or not spec.title.strip():
        yield "title is missing"
    if not _is_subset(spec.kinds, KINDS):
        yield f"kinds must be a subset of {', '.join(sorted(KINDS))}"
    if not _is_subset(spec.streams, STREAMS):
        yield f"streams must be a subset of {', '.join(sorted(STREAMS))}"
    if not _are_names(spec.address_settings) or not _are_names(spec.neutral_settings):
        yield "address_settings and neutral_settings must be sets of setting names"
    elif spec.address_settings & spec.neutral_settings:
        yield "address_settings and neutral_settings must be disjoint"
    if not callable(spec.open):
        yield "open is not callable"


def _is_subset(values: object, allowed: frozenset[str]) -> bool:
    return isinstance(values, (set, frozenset)) and bool(values) and values <= allowed


def _are_names(values: object) -> bool:
    return isinstance(values, (set, frozenset)) and all(isinstance(value, str) for value in values)


def _check_schemas(spec: ConnectorSpec) -> Iterator[str]:
    for name, schema in (("config_schema", spec.config_schema), ("credentials_schema", spec.credentials_schema)):
        if schema is None and name == "credentials_schema":
            continue
        reason = _find_schema_fault(schema)
        if reason:
            yield f"{name} {reason}"


def _find_schema_fault(schema: object) -> str | None:
    if not isinstance(schema, Mapping):
        return "is not a JSON Schema"
    if schema.get("$schema", _DRAFT) != _DRAFT:
        return "is not of Draft 2020-12"
    if schema.get("type") != "object":
        return "is not of type object"
    if any(not str(reference).startswith("#") for reference in _iterate_references(schema)):
        return "contains a reference to another document"
    try:
        jsonschema_rs.Draft202012Validator(dict(schema))
    except (ValueError, TypeError) as error:
        return f"is not a valid JSON Schema (Draft 2020-12): {' '.join(str(error).split())[:200]}"
    return None


def _iterate_references(schema: Any) -> Iterator[object]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in {"$ref", "$dynamicRef"}:
                yield value
            else:
                yield from _iterate_references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _iterate_references(value)
