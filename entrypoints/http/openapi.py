"""The OpenAPI 3.1 description of the API, made from the operation table alone."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.wire import problems, schema
from adapters.wire.versions import SUPPORTED
from entrypoints.http.openapi_answers import (
    HEADERS,
    PREVIEW,
    Json,
    problem_answers,
    query_parameters,
    success_answers,
)
from entrypoints.http.operation import Operation
from entrypoints.http.table import Table

REQUEST_HEADERS: Final[dict[str, Json]] = {
    "Service-Version": {
        "description": "The dated version of the answer's shape; without it the version your organisation is pinned to.",
        "schema": schema.enum(*SUPPORTED.dates),
    },
    "Service-Mode": {
        "description": "An OAuth token works on live data unless this says `test`. A key's mode is fixed.",
        "schema": schema.enum("live", "test"),
    },
    "Request-Id": {"description": "Your own id for the request.", "schema": schema.id_of("req")},
    "Idempotency-Key": {
        "description": "Makes repeating safe: within 24 hours the same key answers the same, and nothing is done twice.",
        "required": True,
        "schema": schema.text("import-2026-11-20-001", longest=257),
    },
    "Service-Dry-Run": {
        "description": "`true` answers as if it were done, `explain` tells what would change; nothing is done.",
        "schema": schema.enum("true", "explain"),
    },
    "If-Match": {
        "description": "The ETag of the representation that you read, or `*`.",
        "required": True,
        "schema": schema.text('"7-5d1ca8b77e0a3c1f2b44c9d0"'),
    },
    "Last-Event-ID": {
        "description": "The id of the last event received: the stream goes on after it. It wins over `cursor`.",
        "schema": schema.text("q83vASNFZ4mrze8BMTIzNA"),
    },
    "If-None-Match": {
        "description": "An ETag that you hold; when it is the present one, the answer is 304 without a body.",
        "schema": schema.text('"5d1ca8b77e0a3c1f2b44c9d0"'),
    },
}
"""Request headers by name, as components."""


def _slug(name: str) -> str:
    return name.replace("-", "")


def header_names(operation: Operation) -> list[str]:
    """The request headers that mean something to the operation."""
    names = ["Service-Version", "Service-Mode", "Request-Id"]
    if operation.streams:
        return [*names, "Last-Event-ID"]
    names += ["Service-Dry-Run"] if operation.writes else ["If-None-Match"]
    if operation.idempotent:
        names.append("Idempotency-Key")
    if operation.if_match:
        names.append("If-Match")
    return names


class _Schemas:
    """Named schemas, each described once."""

    def __init__(self) -> None:
        self.named: dict[str, Json] = {}

    def of(self, schema: Any) -> Any:
        """The schema with every resource in it replaced by a reference."""
        if isinstance(schema, list):
            return [self.of(item) for item in schema]
        if not isinstance(schema, Mapping):
            return schema
        name = schema.get("title")
        if not isinstance(name, str) or "properties" not in schema:
            return {key: value if key in ("examples", "enum") else self.of(value) for key, value in schema.items()}
        if name not in self.named:
            self.named[name] = {}
            self.named[name] = {key: self.of(value) if key != "examples" else value for key, value in schema.items()}
        return {"$ref": f"#/components/schemas/{name}"}


def _path_parameters(operation: Operation) -> list[Json]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": schema.id_of(operation.ids[name]) if name in operation.ids else schema.text(name),
        }
        for name in names
    ]


def _described(operation: Operation) -> str:
    notes = [operation.description or operation.summary + "."]
    if operation.scope:
        notes.append(f"Needs the scope `{operation.scope}`.")
    if operation.feature:
        notes.append(f"Needs the plan feature `{operation.feature}`.")
    return "\n\n".join(notes)


def _operation(operation: Operation, schemas: _Schemas, docs_url: str) -> Json:
    parameters = [*_path_parameters(operation), *query_parameters(operation)]
    parameters += [{"$ref": f"#/components/parameters/{_slug(name)}"} for name in header_names(operation)]
    reply = schemas.of(operation.reply) if operation.reply is not None else None
    made: Json = {
        "operationId": operation.id,
        "tags": [operation.area],
        "summary": operation.summary,
        "description": _described(operation),
        "parameters": parameters,
        "responses": success_answers(operation, reply) | problem_answers(operation, docs_url),
        "security": [{"bearer": []}],
        "x-rate-class": operation.rate,
        "x-who": operation.who,
        "x-scope": operation.scope,
        "x-feature": operation.feature,
    }
    if operation.body is not None:
        content = {
            "schema": schemas.of(operation.body.schema),
            "examples": {"usual": {"value": body_example(operation)}},
        }
        made["requestBody"] = {"required": operation.body.required, "content": {"application/json": content}}
    return made


def body_example(operation: Operation) -> Any:
    """An example of the operation's body."""
    return schema.example(dict(operation.body.schema)) if operation.body is not None else None


def _info(docs_url: str) -> Json:
    return {
        "title": "Joinery API",
        "version": SUPPORTED.latest,
        "summary": "Joins furniture vendors' feeds into one catalogue.",
        "description": f"Reference with examples: {docs_url}/docs. Every error code: {docs_url}/errors.\n\n"
        "Every GET is answered to HEAD as well, without the body.",
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    }


def document(table: Table, base_url: str, docs_url: str) -> Json:
    """The whole description as a JSON value."""
    schemas = _Schemas()
    paths: dict[str, Json] = {}
    for operation in table:
        item = paths.setdefault(operation.path, {})
        item[operation.method.lower()] = _operation(operation, schemas, docs_url)
    schemas.of(PREVIEW)
    parameters = {
        _slug(name): {"name": name, "in": "header", "required": False} | described
        for name, described in REQUEST_HEADERS.items()
    }
    return {
        "openapi": "3.1.0",
        "info": _info(docs_url),
        "servers": [{"url": base_url}],
        "tags": [{"name": area.name, "description": area.description} for area in table.areas],
        "security": [{"bearer": []}],
        "paths": paths,
        "webhooks": {name: made(schemas.of) for area in table.areas for name, made in area.webhooks.items()},
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "An API key or an OAuth access token."}
            },
            "headers": HEADERS,
            "parameters": parameters,
            "schemas": schemas.named | {"problem": problems.PROBLEM},
        },
    }
