"""The OpenAPI 3.1 description of the API, made from the operation table alone."""

from typing import Any, Final

from adapters.wire import problems
from adapters.wire.event_types import TYPED_EVENT
from domain.kernel import schema
from domain.kernel.versions import SUPPORTED
from entrypoints.http.openapi_answers import (
    HEADERS,
    Json,
    codes_of,
    preview_answer,
    problem_answers,
    problem_example,
    query_parameters,
    success_answers,
)
from entrypoints.http.openapi_schemas import ComponentSchemas
from entrypoints.http.openapi_webhooks import PARAMETERS as WEBHOOK_PARAMETERS
from entrypoints.http.operation import Operation, Undoing
from entrypoints.http.table import Table
from entrypoints.oauth.sentences import SENTENCES

REQUEST_HEADERS: Final[dict[str, Json]] = {
    "Service-Version": {
        "description": "The dated version of the answer's shape; without it the version your organisation is pinned to.",
        "schema": schema.named("service_version", schema.enum(*SUPPORTED.dates)),
    },
    "Service-Mode": {
        "description": "A key's mode is fixed: another one than the key's is refused, so leave it out.",
        "schema": schema.named("service_mode", schema.enum("live", "test")),
    },
    "Request-Id": {"description": "Your own id for the request.", "schema": schema.id_of("req")},
    "Idempotency-Key": {
        "description": "Makes repeating safe: within 24 hours the same key answers the same, and nothing is done twice.",
        "required": True,
        "schema": schema.text("import-2026-11-20-001", longest=257),
    },
    "Service-Dry-Run": {
        "description": "`true` answers as if it were done, `explain` tells what would change; nothing is done.",
        "schema": schema.named("dry_run", schema.enum("true", "explain")),
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


def _slug_of(operation: Operation) -> str:
    return operation.id.replace(".", "_")


def _path_parameters(operation: Operation) -> list[Json]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": schema.id_of(operation.ids[name]) if name in operation.ids else schema.text(name),
        }
        for name in operation.path_parameters
    ]


def _described(operation: Operation) -> str:
    notes = [operation.description or operation.summary + "."]
    if operation.scope:
        notes.append(f"Needs the scope `{operation.scope}`.")
    if operation.feature:
        notes.append(f"Needs the plan feature `{operation.feature}`.")
    if operation.undo is not None:
        how = operation.undo.how if isinstance(operation.undo, Undoing) else operation.undo
        notes.append(f"{'Can' if operation.reversible else 'Cannot'} be undone through the audit log: {how}")
    return "\n\n".join(notes)


def _undo(operation: Operation) -> Json:
    """Whether the audit log can undo it, and how or why not."""
    if isinstance(operation.undo, Undoing):
        return {"reversible": True, "how": operation.undo.how}
    return {"reversible": False, "reason": operation.undo}


def _operation(operation: Operation, schemas: ComponentSchemas) -> Json:
    parameters = [*_path_parameters(operation), *query_parameters(operation, schemas)]
    parameters += [{"$ref": f"#/components/parameters/{_slug(name)}"} for name in header_names(operation)]
    reply = schemas.of(operation.reply, f"{_slug_of(operation)}_answer") if operation.reply is not None else None
    made: Json = {
        "operationId": operation.id,
        "tags": [operation.area],
        "summary": operation.summary,
        "description": _described(operation),
        "parameters": parameters,
        "responses": success_answers(operation, reply) | problem_answers(operation),
        "security": [{"bearer": []}, {"oauth2": [operation.scope] if operation.scope else []}],
        "x-rate-class": operation.rate,
        "x-who": operation.who,
        "x-scope": operation.scope,
        "x-feature": operation.feature,
    }
    if operation.writes:
        made["x-dry-run"] = {"explain": {"$ref": "#/components/responses/preview"}}
        made["x-undo"] = _undo(operation)
    if operation.body is not None:
        content = {
            "schema": schemas.of(operation.body.schema, f"{_slug_of(operation)}_body"),
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


def _paths(table: Table, schemas: ComponentSchemas) -> Json:
    paths: dict[str, Json] = {}
    for operation in table:
        item = paths.setdefault(operation.path, {})
        item[operation.method.lower()] = _operation(operation, schemas)
    return paths


def _schemes(base_url: str) -> dict[str, Any]:
    """How one gets in: by a key, or by OAuth (docs/oauth.md), whose tokens are sent the same way."""
    base, scopes = base_url.rstrip("/"), dict(sorted(SENTENCES.items()))
    places = {"tokenUrl": f"{base}/oauth/token", "scopes": scopes}
    code = {"authorizationUrl": f"{base}/oauth/authorize", "refreshUrl": f"{base}/oauth/token"} | places
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or an access token."},
        "oauth2": {"type": "oauth2", "flows": {"authorizationCode": code, "clientCredentials": places}},
    }


def _components(schemas: ComponentSchemas, table: Table, docs_url: str, base_url: str) -> Json:
    parameters = {
        _slug(name): {"name": name, "in": "header", "required": False}
        | described
        | {"schema": schemas.of(described["schema"], _slug(name))}
        for name, described in REQUEST_HEADERS.items()
    } | (WEBHOOK_PARAMETERS if any(area.webhooks for area in table.areas) else {})
    codes = dict.fromkeys(code for operation in table for code in codes_of(operation))
    schemas.of(problems.PROBLEM, "problem")
    return {
        "securitySchemes": _schemes(base_url),
        "headers": HEADERS,
        "parameters": parameters,
        "responses": {"preview": preview_answer(table, schemas)},
        "examples": {code: problem_example(code, docs_url) for code in codes},
        "schemas": schemas.named,
    }


def _webhooks(table: Table, schemas: ComponentSchemas) -> Json:
    schemas.of(TYPED_EVENT, "typed_event")
    return {name: made(schemas.of) for area in table.areas for name, made in area.webhooks.items()}


def document(table: Table, base_url: str, docs_url: str) -> Json:
    """The whole description as a JSON value."""
    schemas = ComponentSchemas()
    return {
        "openapi": "3.1.0",
        "info": _info(docs_url),
        "servers": [{"url": base_url}],
        "tags": [{"name": area.name, "description": area.description} for area in table.areas],
        "security": [{"bearer": []}, {"oauth2": []}],
        "paths": _paths(table, schemas),
        "webhooks": _webhooks(table, schemas),
        "components": _components(schemas, table, docs_url, base_url),
    }
