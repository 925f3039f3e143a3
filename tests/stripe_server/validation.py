"""Validation of requests, answers and events against Stripe's specification."""

import gzip
import json
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jsonschema_rs

from tests.stripe_server.errors import InvalidParameters

_PATH = Path(__file__).parent / "specification.json.gz"
_WITHOUT_EFFECT = frozenset(
    "client_secret mandate_data off_session payment_behavior proration_behavior proration_date return_url "
    "setup_future_usage use_stripe_sdk".split()
)
"""Parameters that an operation does not read in each case."""
_SEGMENT = re.compile(r"\[([^\]]*)\]")


@cache
def load_specification() -> dict[str, Any]:
    """Return the pruned specification."""
    return json.loads(gzip.decompress(_PATH.read_bytes()))


@cache
def _compile(reference: str) -> Any:
    """Return the validator of `components/schemas/NAME`, or `operations/METHOD PATH/request`."""
    document = load_specification()
    section, name, *part = reference.split("|")
    schema = document["components"]["schemas"][name] if section == "component" else document[section][name][part[0]]
    return jsonschema_rs.Draft7Validator(
        {**schema, "components": document["components"]}
        if "$ref" not in schema
        else {"allOf": [schema], "components": document["components"]}
    )


def complete_document(value: Any, schema: dict[str, Any], omitted: Collection[str] = ()) -> None:
    """Add the absent nullable fields of a document and of its parts."""
    if "$ref" in schema:
        schema = load_specification()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        for each in value if "items" in schema else ():
            complete_document(each, schema["items"])
    elif isinstance(value, dict) and "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") not in ("null", "string")]
        if len(options) == 1:
            complete_document(value, options[0])
    elif isinstance(value, dict):
        for name, part in schema.get("properties", {}).items():
            if name in value:
                complete_document(value[name], part)
            elif {"type": "null"} in part.get("anyOf", ()) and name not in omitted:
                value[name] = None


class Parameters(dict[str, Any]):
    """Parameters of a request, which record the names that the operation reads."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self._names = {"expand"}

    def __getitem__(self, name: str) -> Any:
        self._names.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._names.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._names.add(name)
        return super().get(name, default)

    def find_ignored(self) -> list[str]:
        """Return the names that the operation has not read."""
        return sorted(self.keys() - self._names - _WITHOUT_EFFECT)


def decode_form(text: str) -> dict[str, Any]:
    """Decode a form, in which `a[b][0]` is an element of a nested list, to dictionaries, lists and strings."""
    root: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        head, *segments = [name.partition("[")[0], *_SEGMENT.findall(name)]
        node, key = root, head
        for segment in segments:
            node = node.setdefault(key, {})
            if not isinstance(node, dict):
                raise InvalidParameters(f"Invalid parameter: {name}", name)
            key = segment or str(len(node))
        node[key] = value
    return root


def _convert(value: Any, schema: dict[str, Any], name: str) -> Any:
    """Convert decoded strings to the types of the schema. Raises InvalidParameters for unknown parameters."""
    if "anyOf" in schema:
        options = schema["anyOf"]
        if value == "" and any(value in option.get("enum", ()) for option in options):
            return value
        errors = []
        for option in options:
            try:
                converted = _convert(value, option, name)
            except InvalidParameters as error:
                errors.append(error)
                continue
            if jsonschema_rs.is_valid(option, converted):
                return converted
        if errors:
            raise errors[0]
        return value
    kind = schema.get("type")
    if kind == "array" and isinstance(value, dict) and all(key.isdigit() for key in value):
        return [_convert(value[key], schema["items"], f"{name}[{key}]") for key in sorted(value, key=int)]
    if kind == "object" and isinstance(value, dict):
        return {key: _convert(each, _describe(schema, key, name), _join(name, key)) for key, each in value.items()}
    if kind == "integer" and isinstance(value, str):
        if not re.fullmatch(r"-?\d{1,15}", value):
            raise InvalidParameters(f"Invalid integer: {value}", name, "parameter_invalid_integer")
        return int(value)
    if kind == "boolean" and value in ("true", "false"):
        return value == "true"
    if kind == "number" and isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value):
        return float(value)
    return value


def _join(name: str, key: str) -> str:
    return f"{name}[{key}]" if name else key


def _describe(schema: dict[str, Any], key: str, name: str) -> dict[str, Any]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if key in properties:
        return properties[key]
    if others is False:
        raise InvalidParameters(
            f"Received unknown parameter: {_join(name, key)}", _join(name, key), "parameter_unknown"
        )
    return others if isinstance(others, dict) else {}


def read_parameters(operation: str, form: str) -> Parameters:
    """Return the typed parameters of a request. Raises InvalidParameters as Stripe does."""
    schema = load_specification()["operations"][operation]["request"]
    parameters = _convert(decode_form(form), schema, "")
    for error in _compile(f"operations|{operation}|request").iter_errors(parameters):
        head, *rest = [str(key) for key in error.instance_path] or [""]
        name = head + "".join(f"[{key}]" for key in rest)
        if found := re.fullmatch(r'"(.+)" is a required property', error.message):
            name = _join(name, found[1])
            raise InvalidParameters(f"Missing required param: {name}.", name, "parameter_missing")
        raise InvalidParameters(f"Invalid {name}: {error.message}", name)
    return Parameters(parameters)


def find_violations(reference: str, document: Any) -> list[str]:
    """Return the deviations of a document from a schema: `component|NAME` or `operations|METHOD PATH|response`."""
    validator = _compile(reference)
    if validator.is_valid(document):
        return []
    return [
        f"{reference} at {'/'.join(map(str, error.instance_path))}: {error.message[:600]}"
        for error in validator.iter_errors(document)
    ]


def find_event_violations(event: dict[str, Any]) -> list[str]:
    """Return the deviations of an event and of the object that it contains."""
    body = event["data"]["object"]
    if event["type"] not in load_specification()["events"]:
        return [f"unknown type of event {event['type']}"]
    return find_violations("component|event", event) + find_violations(f"component|{body['object']}", body)
