"""OpenAPI 3.1 description of the API, generated from the operation table."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any, Final

from adapters.wire import problems
from adapters.wire.event_types import EVENT_TYPES, TYPED_EVENT
from domain.kernel import schema
from domain.kernel.versions import SUPPORTED
from entrypoints.operations.codes import CODES
from entrypoints.operations.operation import PREVIEW_TYPE, Operation, Undoing
from entrypoints.operations.query_string import parameters_of
from entrypoints.operations.scopes import SENTENCES
from entrypoints.operations.table import Table

Json = dict[str, Any]
_PARTS: Final[Json] = json.loads(files(__package__).joinpath("openapi.json").read_text("utf-8"))
"""The parts that are independent of the table: headers, webhook responses, previews."""
REQUEST_HEADERS: Final[Json] = _PARTS["request_headers"]
REQUEST_HEADERS["Service-Version"]["schema"] = schema.named("service_version", schema.enum(*SUPPORTED.dates))
WEBHOOK_HEADERS: Final[Json] = _PARTS["webhook_headers"]
WEBHOOK_HEADERS["Service-Version"] = schema.enum(*reversed(SUPPORTED.dates)) | WEBHOOK_HEADERS["Service-Version"]
PREVIEW: Final[Json] = _PARTS["preview"]

_NOTES = ("description", "examples", "default")
"""Keys that may differ between uses of one schema; they are written next to the reference."""
_VERBATIM = frozenset({"examples", "enum", "const", "default", "required", "discriminator"})


def _content(schema: Mapping[str, Any]) -> str:
    """Return the identity of a schema: its content without its own notes and without all examples."""
    success = {key: value for key, value in schema.items() if key not in _NOTES}
    return json.dumps(_without_examples(success), sort_keys=True, default=str)


def _without_examples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_examples(part) for key, part in value.items() if key != "examples"}
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return sorted(value)  # the order of choices and required names is irrelevant
    return [_without_examples(part) for part in value] if isinstance(value, (list, tuple)) else value


def _singular(name: str) -> str:
    """Return the singular of a collection's name: `columns` to `column`; a name that is not a plural gets `_item`."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith("s") and not name.endswith("ss"):
        return name[:-1]
    return f"{name}_item"


class ComponentSchemas:
    """Collector of `#/components/schemas`.

    A schema is named by its `title`, or else by the place of its first use; later uses refer to the same component.
    """

    def __init__(self) -> None:
        self.named: dict[str, Json] = {}
        self._content: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def of(self, schema: Any, name: str) -> Any:
        """Return the schema with nested components replaced by references; `name` is used if it has no title.

        Raises ValueError if two different schemas have the same name.
        """
        if not isinstance(schema, Mapping):
            return schema
        if not ("title" in schema or "properties" in schema or len(schema.get("enum", ())) > 1):
            return self._resolve_members(schema, name)  # clients need no type for it
        content = _content(schema)
        component = schema.get("title") or self._names.get(content) or name
        if self._content.setdefault(component, content) != content:
            raise ValueError(f"{component} is the name of two schemas: {content} and {self._content[component]}")
        self._names.setdefault(content, component)
        if component not in self.named:
            self.named[component] = {}
            self.named[component] = {"title": component} | self._resolve_members(schema, component)
        return {"$ref": f"#/components/schemas/{component}"} | self._own_description(schema, component)

    def _own_description(self, schema: Mapping[str, Any], component: str) -> Json:
        """Return the description if it differs from that of the component."""
        description = schema.get("description")
        same = description is None or description == self.named[component].get("description", description)
        return {} if same else {"description": description}

    def _resolve_members(self, schema: Mapping[str, Any], name: str) -> Json:
        return {
            key: value if key in _VERBATIM else self._resolve_member(key, value, name) for key, value in schema.items()
        }

    def _resolve_member(self, key: str, value: Any, name: str) -> Any:
        if key == "properties":
            return {field: self.of(part, f"{name}_{field}") for field, part in value.items()}
        if key in ("items", "additionalProperties"):
            return self.of(value, _singular(name))
        if key in ("anyOf", "oneOf", "allOf"):
            return [self.of(part, name) for part in value]
        return value


WEBHOOK_PARAMETERS: Final[dict[str, Json]] = {
    f"event-{name}": {"name": name, "in": "header", "required": True, "schema": event_schema}
    for name, event_schema in WEBHOOK_HEADERS.items()
}
"""The headers of every webhook request, as components."""


def event_webhook(type: str, reference: Callable[[Any, str], Any]) -> Json:
    """Return the path item of the webhook request of one event type; `reference` replaces resources by references."""
    event_schema = EVENT_TYPES[type]
    name = type.replace(".", "_")
    content = {"schema": reference(event_schema, name), "examples": {"usual": {"value": schema.example(event_schema)}}}
    return {
        "post": {
            "operationId": f"receive_{name}",
            "tags": ["events"],
            "summary": f"{type}: sent to your endpoint",
            "description": "Events of one product, variant or offer arrive in order, but not in order with those of others. Use "
            "`version` to apply them. An event may arrive more than once. Thin payloads contain only the paths in `data.fields`; fat "
            "payloads also contain old and new values and the product, variant or offer as `data.object`.",
            "parameters": [{"$ref": f"#/components/parameters/{key}"} for key in WEBHOOK_PARAMETERS],
            "requestBody": {"required": True, "content": {"application/json": content}},
            "responses": _PARTS["webhook_answers"],
            "security": [],
        }
    }


WEBHOOKS: Final[dict[str, Callable[[Callable[[Any, str], Any]], Json]]] = {
    type: partial(event_webhook, type) for type in EVENT_TYPES
}
"""The path items of the service's own requests, by event type."""


REQUEST_ID = "req_01J8ZQ5T3V7XK2M9RB4CDW"
_FIELD_ERROR = {"field": "query.limit", "code": "too_large", "detail": "Must be between 1 and 100."}


def _refs(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def codes_of(operation: Operation) -> list[str]:
    """Return all error codes of the operation, in the order of the checks."""
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
    """Return a problem as a component of the examples."""
    component = CODES[code]
    detail = component.cause.split(". ")[0].rstrip(".") + "."
    body = problems.to_wire(f"{docs_url}/errors/{code}", component.title, component.status, code, detail, REQUEST_ID)
    if code == "invalid_request":
        body["errors"] = [_FIELD_ERROR]
    if code == "rate_limited":
        body["violated-policies"] = ["standard.read"]
    return {"summary": component.title, "value": body}


def problem_answers(operation: Operation) -> Json:
    """Return the problem responses by status, each code with an example."""
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
    """Return the successful responses: the operation's own, and 304."""
    success: Json = {"description": operation.summary + ".", "headers": _success_headers(operation)}
    if reply is not None and operation.reply is not None:
        value = operation.example if operation.example is not None else schema.example(dict(operation.reply))
        media = "text/event-stream" if operation.streams else "application/json"
        success["content"] = {media: {"schema": dict(reply), "examples": {"usual": {"value": value}}}}
    answers: Json = {str(operation.status): success}
    if not operation.writes and not operation.streams:
        answers["304"] = {
            "description": "The representation in If-None-Match is current.",
            "headers": _refs("Request-Id", "ETag", "RateLimit", "RateLimit-Policy"),
        }
    return answers


def preview_answer(table: Iterable[Operation], schemas: ComponentSchemas) -> Json:
    """Return the response of every write to `Service-Dry-Run: explain`.

    It is separate from the operations' own responses, because generated clients would otherwise have to distinguish the
    two in every call.
    """
    extra_properties = {name: part for operation in table for name, part in operation.preview.items()}
    event_schema = PREVIEW | {"properties": PREVIEW["properties"] | extra_properties}
    return {
        "description": "Preview of the operation. Nothing was changed.",
        "headers": _refs("Request-Id", "Service-Version", "Service-Dry-Run", "RateLimit", "RateLimit-Policy"),
        "content": {
            PREVIEW_TYPE.decode(): {
                "schema": schemas.of(event_schema, "preview"),
                "examples": {"explain": {"value": schema.example(event_schema)}},
            }
        },
    }


def query_parameters(operation: Operation, schemas: ComponentSchemas) -> list[Json]:
    """Return the query parameters in OpenAPI's form."""
    return [
        _parameter(name, dict(schema), schemas, f"{operation.slug}_{name}")
        for name, schema in parameters_of(operation).items()
    ]


def _parameter(name: str, schema: Json, schemas: ComponentSchemas, noun: str) -> Json:
    required = bool(schema.pop("x-required", False))
    description = schema.pop("description", None)
    result: Json = {"name": name, "in": "query", "required": required, "schema": schemas.of(schema, noun)}
    if description:
        result["description"] = description
    if schema.get("type") == "array":
        result |= {"style": "form", "explode": False}
    return result


def _slug(name: str) -> str:
    return name.replace("-", "")


def header_names(operation: Operation) -> list[str]:
    """Return the request headers that apply to the operation."""
    names = ["Service-Version", "Service-Mode", "Request-Id"]
    if operation.streams:
        return [*names, "Last-Event-ID"]
    names += ["Service-Dry-Run"] if operation.writes else ["If-None-Match"]
    if operation.idempotent:
        names.append("Idempotency-Key")
    if operation.if_match:
        names.append("If-Match")
    return names


def _describe(operation: Operation) -> str:
    notes = [operation.description or operation.summary + "."]
    if operation.scope:
        notes.append(f"Requires the scope `{operation.scope}`.")
    if operation.feature:
        notes.append(f"Requires the plan feature `{operation.feature}`.")
    if operation.undo is not None:
        how = operation.undo.how if isinstance(operation.undo, Undoing) else operation.undo
        notes.append(f"{'Can' if operation.reversible else 'Cannot'} be undone through the audit log: {how}")
    return "\n\n".join(notes)


def _describe_operation(operation: Operation, schemas: ComponentSchemas) -> Json:
    parameters: list[Json] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": schema.id_of(operation.ids[name]) if name in operation.ids else schema.text(name),
        }
        for name in operation.path_parameters
    ]
    parameters += query_parameters(operation, schemas)
    parameters += [{"$ref": f"#/components/parameters/{_slug(name)}"} for name in header_names(operation)]
    reply = schemas.of(operation.reply, f"{operation.slug}_answer") if operation.reply is not None else None
    result: Json = {
        "operationId": operation.id,
        "tags": [operation.area],
        "summary": operation.summary,
        "description": _describe(operation),
        "parameters": parameters,
        "responses": success_answers(operation, reply) | problem_answers(operation),
        "security": [{"bearer": []}, {"oauth2": [operation.scope] if operation.scope else []}],
        "x-rate-class": operation.rate,
        "x-who": operation.who,
        "x-scope": operation.scope,
        "x-feature": operation.feature,
    }
    if operation.writes:
        result["x-dry-run"] = {"explain": {"$ref": "#/components/responses/preview"}}
        undo = operation.undo
        component = {"how": undo.how} if isinstance(undo, Undoing) else {"reason": undo}
        result["x-undo"] = {"reversible": operation.reversible, **component}
    if operation.body is not None:
        content = {
            "schema": schemas.of(operation.body.schema, f"{operation.slug}_body"),
            "examples": {"usual": {"value": body_example(operation)}},
        }
        result["requestBody"] = {"required": operation.body.required, "content": {"application/json": content}}
    return result


def body_example(operation: Operation) -> Any:
    """Return an example of the operation's body, or None."""
    return schema.example(dict(operation.body.schema)) if operation.body is not None else None


def _schemes(base_url: str) -> dict[str, Any]:
    """Return the security schemes: API keys, and OAuth tokens (docs/oauth.md), both sent as bearer tokens."""
    base, scopes = base_url.rstrip("/"), dict(sorted(SENTENCES.items()))
    flow = {"tokenUrl": f"{base}/oauth/token", "scopes": scopes}
    code = {"authorizationUrl": f"{base}/oauth/authorize", "refreshUrl": f"{base}/oauth/token"} | flow
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or an access token."},
        "oauth2": {"type": "oauth2", "flows": {"authorizationCode": code, "clientCredentials": flow}},
    }


def _components(schemas: ComponentSchemas, table: Table, docs_url: str, base_url: str) -> Json:
    parameters = {
        _slug(name): {"name": name, "in": "header", "required": False}
        | event_schema
        | {"schema": schemas.of(event_schema["schema"], _slug(name))}
        for name, event_schema in REQUEST_HEADERS.items()
    } | (WEBHOOK_PARAMETERS if any(area.webhooks for area in table.areas) else {})
    codes = dict.fromkeys(code for operation in table for code in codes_of(operation))
    schemas.of(problems.PROBLEM, "problem")
    return {
        "securitySchemes": _schemes(base_url),
        "headers": _PARTS["answer_headers"],
        "parameters": parameters,
        "responses": {"preview": preview_answer(table, schemas)},
        "examples": {code: problem_example(code, docs_url) for code in codes},
        "schemas": schemas.named,
    }


def document(table: Table, base_url: str, docs_url: str) -> Json:
    """Return the whole description as a JSON value."""
    schemas, info, paths = ComponentSchemas(), _PARTS["info"], dict[str, Json]()
    for operation in table:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe_operation(operation, schemas)
    schemas.of(TYPED_EVENT, "typed_event")
    return {
        "openapi": "3.1.0",
        "info": info | {"version": SUPPORTED.latest, "description": info["description"].format(docs=docs_url)},
        "servers": [{"url": base_url}],
        "tags": [{"name": area.name, "description": area.description} for area in table.areas],
        "security": [{"bearer": []}, {"oauth2": []}],
        "paths": paths,
        "webhooks": {name: result(schemas.of) for area in table.areas for name, result in area.webhooks.items()},
        "components": _components(schemas, table, docs_url, base_url),
    }
