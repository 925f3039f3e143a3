"""Reduction of Stripe's OpenAPI specification to the routes of the server: `python -m tests.stripe_server.prune SPEC3`."""

import gzip
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
FORM = "application/x-www-form-urlencoded"
_OMITTED = frozenset({"description", "title", "format", "summary"})
_ORIGIN = """\
# Part of Stripe's OpenAPI specification of the v1 API, which `python -m tests.stripe_server.prune` makes; see LICENSE.
repository = "github.com/stripe/openapi"
path = "openapi/spec3.json"
tag = "unknown"
version = "{version}"
original_sha256 = "{original}"
pruned_sha256 = "{pruned}"  # of the uncompressed file
"""


def convert_schema(schema: Any) -> Any:
    """Return a JSON schema without OpenAPI's own keywords, in which every object with properties is closed."""
    if isinstance(schema, list):
        return [convert_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {
        name: value if name in ("enum", "required") else convert_schema(value)
        for name, value in schema.items()
        if name not in _OMITTED and not name.startswith("x-") and name not in ("nullable", "properties")
    }
    if schema.get("properties"):
        converted["properties"] = {name: convert_schema(value) for name, value in schema["properties"].items()}
        converted.setdefault("additionalProperties", False)
    return {"anyOf": [converted, {"type": "null"}]} if schema.get("nullable") else converted


def find_references(schema: Any) -> set[str]:
    """Return the names of the components that the schema refers to directly."""
    if isinstance(schema, dict):
        own = {schema["$ref"].rpartition("/")[2]} if isinstance(schema.get("$ref"), str) else set()
        return own.union(*(find_references(value) for value in schema.values()))
    return set().union(*(find_references(value) for value in schema)) if isinstance(schema, list) else set()


def prune_specification(specification: dict[str, Any], routes: set[tuple[str, str]]) -> dict[str, Any]:
    """Return the operations of the routes with converted schemas, and the components that these refer to."""
    operations: dict[str, Any] = {}
    for method, path in sorted(routes):
        operation = specification["paths"][path][method.lower()]
        body = operation.get("requestBody", {}).get("content", {}).get(FORM, {}).get("schema", {})
        parameters = [each for each in operation.get("parameters", []) if each["in"] == "query"]
        required = [*body.get("required", []), *(each["name"] for each in parameters if each.get("required"))]
        operations[f"{method} {path}"] = {
            "request": {
                "type": "object",
                "properties": {each["name"]: convert_schema(each["schema"]) for each in parameters}
                | {name: convert_schema(schema) for name, schema in body.get("properties", {}).items()},
                "required": required,
                "additionalProperties": False,
            },
            "response": convert_schema(operation["responses"]["200"]["content"]["application/json"]["schema"]),
        }
    schemas, pending = {}, find_references(operations) | {"event", "error"}
    while pending:
        name = pending.pop()
        schemas[name] = convert_schema(specification["components"]["schemas"][name])
        pending |= find_references(schemas[name]) - schemas.keys()
    return {
        "info": {"version": specification["info"]["version"]},
        "events": specification["paths"]["/v1/webhook_endpoints"]["post"]["requestBody"]["content"][FORM]["schema"][
            "properties"
        ]["enabled_events"]["items"]["enum"],
        "operations": operations,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def main(source: Path) -> None:
    """Write the pruned specification and its origin."""
    from tests.stripe_server.server import ROUTES

    original = source.read_bytes()
    specification = prune_specification(json.loads(original), {(route.method, route.path) for route in ROUTES})
    pruned = json.dumps(specification, separators=(",", ":")).encode()
    (FOLDER / "specification.json.gz").write_bytes(gzip.compress(pruned, mtime=0))
    (FOLDER / "SOURCE.toml").write_text(
        _ORIGIN.format(
            version=specification["info"]["version"],
            original=hashlib.sha256(original).hexdigest(),
            pruned=hashlib.sha256(pruned).hexdigest(),
        ),
        "utf-8",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
