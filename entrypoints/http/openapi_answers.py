"""The answers part of the OpenAPI description: what each operation can answer, with an example for every answer."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from adapters.wire import problems
from domain.kernel import schema
from entrypoints.http.codes import CODES
from entrypoints.http.openapi_schemas import ComponentSchemas
from entrypoints.http.operation import Operation
from entrypoints.http.query_string import parameters_of
from entrypoints.http.steps.respond import PREVIEW_TYPE

Json = dict[str, Any]

REQUEST_ID: Final = "req_01J8ZQ5T3V7XK2M9RB4CDW"
_FIELD_ERROR: Final = {"field": "query.limit", "code": "too_large", "detail": "Must lie between 1 and 100."}

HEADERS: Final[dict[str, Json]] = {
    "Request-Id": {
        "description": "The request's id, also in its log.",
        "schema": schema.id_of("req"),
    },
    "Service-Version": {
        "description": "The version that the body is shaped for.",
        "schema": schema.text("2026-10-04"),
    },
    "Service-Dry-Run": {"description": "Present on a dry run.", "schema": schema.enum("true", "explain")},
    "ETag": {"description": "Strong validator for If-None-Match and, where a version is in it, If-Match.",
             "schema": schema.text('"7-5d1ca8b77e0a3c1f2b44c9d0"')},
    "RateLimit-Policy": {"description": "The budget: its burst and the seconds to refill it fully.",
                         "schema": schema.text('"standard.read";q=200;w=2')},
    "RateLimit": {"description": "What is left of the budget, and the seconds until it is full.",
                  "schema": schema.text('"standard.read";r=199;t=1')},
    "Retry-After": {"description": "Seconds to wait.", "schema": schema.integer(1, least=0)},
    "Location": {"description": "The address of what was made.",
                 "schema": schema.text("https://api.example/v1/sources/src_01J8ZQ5T3V7XK2M9RB4CDW")},
    "Idempotent-Replayed": {"description": "The answer of an earlier request with this Idempotency-Key.",
                            "schema": schema.enum("true")},
    "Service-Stream-From": {"description": "The cursor of the position before the first event of the stream.",
                            "schema": schema.text("q83vASNFZ4mrze8BMTIzNA")},
    "WWW-Authenticate": {"description": "Where it is described how credentials are sent (RFC 9728).",
                         "schema": schema.text('Bearer resource_metadata="https://…"')},
    "Allow": {"description": "The methods that the address answers.", "schema": schema.text("GET, HEAD, OPTIONS")},
}  # fmt: skip
"""Response headers by name."""

PREVIEW: Final = schema.record(
    "preview",
    {
        "operation": schema.text("sources.update"),
        "allowed": schema.boolean(),
        "changes": schema.array(
            schema.record(
                None,
                {
                    "object": schema.text("source"),
                    "id": schema.text("src_01J8ZQ5T3V7XK2M9RB4CDW"),
                    "action": schema.enum("create", "update", "delete"),
                    "fields": schema.array(schema.record(None, {"path": schema.text("name"), "old": {}, "new": {}})),
                },
            )
        ),
        "events": schema.array(
            schema.record(None, {"type": schema.text("source.recovered"), "subject": schema.text("src_…")})
        ),
        "jobs": schema.array(
            schema.record(None, {"kind": schema.text("runs.execute"), "subject": schema.text("src_…")})
        ),
        "warnings": schema.array(schema.text("Nothing was fetched.")),
    },
    description="What the operation would do (Service-Dry-Run: explain).",
)


def _refs(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def codes_of(operation: Operation) -> list[str]:
    """Every code that the operation can answer with, in the order of the checks."""
    codes = ["invalid_request", "authentication_required", "permission_denied"]
    if operation.feature:
        codes.append("feature_unavailable")
    if operation.ids:
        codes.append("not_found")
    if operation.writes:
        codes += ["payload_too_large", "unsupported_media_type"]
    if operation.idempotent:
        codes += ["idempotency_request_in_progress", "idempotency_key_reused"]
    if operation.if_match:
        codes += ["precondition_required", "precondition_failed"]
    if operation.body_feature:
        codes.append("feature_unavailable")
    codes += [code for code in operation.errors if code not in codes]
    return [*codes, "rate_limited", "internal_error", "unavailable", "overloaded"]


def problem_example(code: str, docs_url: str) -> Json:
    """A problem as a component of the examples."""
    known = CODES[code]
    detail = known.cause.split(". ")[0].rstrip(".") + "."
    body = problems.to_wire(f"{docs_url}/errors/{code}", known.title, known.status, code, detail, REQUEST_ID)
    if code == "invalid_request":
        body["errors"] = [_FIELD_ERROR]
    if code == "rate_limited":
        body["violated-policies"] = ["standard.read"]
    return {"summary": known.title, "value": body}


def problem_answers(operation: Operation) -> Json:
    """The problem answers by status, each code with an example."""
    by_status: dict[int, list[str]] = {}
    for code in codes_of(operation):
        by_status.setdefault(CODES[code].status, []).append(code)
    return {str(status): _problem(status, codes) for status, codes in sorted(by_status.items())}


def _problem(status: int, codes: list[str]) -> Json:
    names = ["Request-Id"]
    if status not in (400, 401):
        names += ["RateLimit", "RateLimit-Policy"]
    if status in (429, 503) or "idempotency_request_in_progress" in codes:
        names.append("Retry-After")
    if status == 401:
        names.append("WWW-Authenticate")
    examples = {code: {"$ref": f"#/components/examples/{code}"} for code in codes}
    return {
        "description": " · ".join(f"`{code}`: {CODES[code].cause}" for code in codes),
        "headers": _refs(*names),
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/problem"}, "examples": examples}},
    }


def _success_headers(operation: Operation) -> Json:
    names = ["Request-Id", "Service-Version", "RateLimit", "RateLimit-Policy"]
    if operation.streams:
        names.append("Service-Stream-From")
    elif not operation.writes:
        names.append("ETag")
    else:
        names.append("Service-Dry-Run")
    if operation.idempotent:
        names.append("Idempotent-Replayed")
    if operation.status in (201, 202):
        names.append("Location")
    return _refs(*names)


def success_answers(operation: Operation, reply: Mapping[str, Any] | None) -> Json:
    """The successful answers: the operation's own, and 304."""
    own: Json = {"description": operation.summary + ".", "headers": _success_headers(operation)}
    if reply is not None and operation.reply is not None:
        value = operation.example if operation.example is not None else schema.example(dict(operation.reply))
        media = "text/event-stream" if operation.streams else "application/json"
        own["content"] = {media: {"schema": dict(reply), "examples": {"usual": {"value": value}}}}
    answers: Json = {str(operation.status): own}
    if not operation.writes and not operation.streams:
        answers["304"] = {
            "description": "The representation that If-None-Match names is the present one.",
            "headers": _refs("Request-Id", "ETag", "RateLimit", "RateLimit-Policy"),
        }
    return answers


def preview_answer(table: Iterable[Operation], schemas: ComponentSchemas) -> Json:
    """What every write answers to `Service-Dry-Run: explain`.

    It stands apart from the operations' own answers: clients that are generated from those would have to tell the two
    apart in every call, and nobody explains what they do not ask for.
    """
    further = {name: part for operation in table for name, part in operation.preview.items()}
    described = PREVIEW | {"properties": PREVIEW["properties"] | further}
    return {
        "description": "What the operation would do; nothing was done.",
        "headers": _refs("Request-Id", "Service-Version", "Service-Dry-Run", "RateLimit", "RateLimit-Policy"),
        "content": {
            PREVIEW_TYPE.decode(): {
                "schema": schemas.of(described, "preview"),
                "examples": {"explain": {"value": schema.example(described)}},
            }
        },
    }


def query_parameters(operation: Operation, schemas: ComponentSchemas) -> list[Json]:
    """The query parameters as OpenAPI has them."""
    noun = operation.id.replace(".", "_")
    return [
        _parameter(name, dict(schema), schemas, f"{noun}_{name}") for name, schema in parameters_of(operation).items()
    ]


def _parameter(name: str, schema: Json, schemas: ComponentSchemas, noun: str) -> Json:
    required = bool(schema.pop("x-required", False))
    description = schema.pop("description", None)
    made: Json = {"name": name, "in": "query", "required": required, "schema": schemas.of(schema, noun)}
    if description:
        made["description"] = description
    if schema.get("type") == "array":
        made |= {"style": "form", "explode": False}
    return made
