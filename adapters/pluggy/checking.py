"""Validation of a connector's description before it is used."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from connectors.sdk.spec import API, KINDS, STREAMS, ConnectorSpec

_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
_LONGEST = 64
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def faults(spec: object) -> list[str]:
    """Return the faults of a description as sentences; empty if it is valid."""
    if not isinstance(spec, ConnectorSpec):
        return ["it is not a ConnectorSpec"]
    if spec.api != API:
        return [f"it is written for version {spec.api!r} of the connector interface; this is version {API}"]
    return [*_plain(spec), *_schemas(spec)]


def _plain(spec: ConnectorSpec) -> Iterator[str]:
    if not isinstance(spec.name, str) or len(spec.name) > _LONGEST or not _NAME.fullmatch(spec.name):
        yield "its name is not lower-case letters, digits and single dashes"
    if not isinstance(spec.title, str) or not spec.title.strip():
        yield "it has no title"
    if not _subset(spec.kinds, KINDS):
        yield f"kinds is not a set out of {', '.join(sorted(KINDS))}"
    if not _subset(spec.streams, STREAMS):
        yield f"streams is not a set out of {', '.join(sorted(STREAMS))}"
    if not _names(spec.addresses) or not _names(spec.harmless):
        yield "addresses and harmless are not sets of settings' names"
    elif spec.addresses & spec.harmless:
        yield "addresses and harmless name the same settings"
    if not callable(spec.open):
        yield "open cannot be called"


def _subset(values: object, known: frozenset[str]) -> bool:
    return isinstance(values, (set, frozenset)) and bool(values) and values <= known


def _names(values: object) -> bool:
    return isinstance(values, (set, frozenset)) and all(isinstance(value, str) for value in values)


def _schemas(spec: ConnectorSpec) -> Iterator[str]:
    for name, schema in (("config_schema", spec.config_schema), ("credentials_schema", spec.credentials_schema)):
        if schema is None and name == "credentials_schema":
            continue
        reason = _schema_fault(schema)
        if reason:
            yield f"{name} {reason}"


def _schema_fault(schema: object) -> str | None:
    if not isinstance(schema, Mapping):
        return "is not a JSON Schema"
    if schema.get("$schema", _DRAFT) != _DRAFT:
        return "is not of Draft 2020-12"
    if schema.get("type") != "object":
        return "is not of type object"
    if any(not str(reference).startswith("#") for reference in _references(schema)):
        return "refers to a schema outside itself"
    try:
        jsonschema_rs.Draft202012Validator(dict(schema))
    except (ValueError, TypeError) as error:
        return f"is not a valid JSON Schema (Draft 2020-12): {' '.join(str(error).split())[:200]}"
    return None


def _references(schema: Any) -> Iterator[object]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in {"$ref", "$dynamicRef"}:
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)
