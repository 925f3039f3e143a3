"""OpenAPI 3.1 description of the API, generated from the operation table."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any, Final

from adapters.api_json import problems
from adapters.api_json.event_schemas import EVENT_SCHEMAS, EVENT_UNION_SCHEMA
from domain.kernel import schema
from domain.kernel.versions import SUPPORTED
from entrypoints.operations.codes import CODES
from entrypoints.operations.operation import PREVIEW_TYPE, Operation, UndoSupport
from entrypoints.operations.query_string import list_query_parameters
from entrypoints.operations.scopes import SENTENCE_BY_SCOPE
from entrypoints.operations.table import OperationTable

Json = dict[str, Any]
_PARTS: Final[Json] = json.loads(files(__package__).joinpath("openapi.json").read_text("utf-8"))
"""Parts of the document that do not depend on the operation table: headers, webhook responses, previews."""
REQUEST_HEADERS: Final[Json] = _PARTS["request_headers"]
REQUEST_HEADERS["Service-Version"]["schema"] = schema.with_title("service_version", schema.enum(*SUPPORTED.dates))
WEBHOOK_HEADERS: Final[Json] = _PARTS["webhook_headers"]
WEBHOOK_HEADERS["Service-Version"] = schema.enum(*reversed(SUPPORTED.dates)) | WEBHOOK_HEADERS["Service-Version"]
PREVIEW: Final[Json] = _PARTS["preview"]

_ANNOTATIONS = ("description", "examples", "default")
"""Keywords that are ignored when schemas are compared; in nested schemas, only `examples` is ignored."""
_DATA_KEYWORDS = frozenset({"examples", "enum", "const", "default", "required", "discriminator"})


def _build_comparison_text(schema: Mapping[str, Any]) -> str:
    """Return a text that is equal for schemas that differ only in annotations or in the order of texts in a list."""
    compared_keywords = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
    return json.dumps(_normalise_for_comparison(compared_keywords), sort_keys=True, default=str)


def _normalise_for_comparison(value: Any) -> Any:
    """Return the schema without `examples` and with sorted lists of texts, also in nested schemas."""
    if isinstance(value, Mapping):
        return {key: _normalise_for_comparison(part) for key, part in value.items() if key != "examples"}
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return sorted(value)  # the order of choices and required names is irrelevant
    return [_normalise_for_comparison(part) for part in value] if isinstance(value, (list, tuple)) else value


def _to_singular(name: str) -> str:
    """Return the singular of a plural: `column` for `columns`. For other names, append `_item`."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith("s") and not name.endswith("ss"):
        return name[:-1]
    return f"{name}_item"


class ComponentSchemas:
    """Collector of the schemas that the OpenAPI document defines in `#/components/schemas`.

    A component's name is the schema's `title`, or else the name under which it is first used. Equal
    schemas share a component. The attribute `schema_by_name` contains the schemas by component name.
    """

    def __init__(self) -> None:
        self.schema_by_name: dict[str, Json] = {}
        self._text_by_component: dict[str, str] = {}
        self._component_by_text: dict[str, str] = {}

    def add_schema(self, schema: Any, name: str) -> Any:
        """Add a schema and its nested schemas to the components, and return a reference to the component.

        Only a schema with a title, properties or several enum values becomes a component. Another schema is returned
        with references to the nested components.

        Args:
            schema: The schema. A value of another type is returned unchanged.
            name: The component's name if the schema has no title.

        Raises:
            ValueError: Two different schemas have the same name.
        """
        if not isinstance(schema, Mapping):
            return schema
        if not ("title" in schema or "properties" in schema or len(schema.get("enum", ())) > 1):
            return self._replace_nested_schemas(schema, name)
        text = _build_comparison_text(schema)
        component = schema.get("title") or self._component_by_text.get(text) or name
        if self._text_by_component.setdefault(component, text) != text:
            raise ValueError(f"{component} is the name of two schemas: {text} and {self._text_by_component[component]}")
        self._component_by_text.setdefault(text, component)
        if component not in self.schema_by_name:
            self.schema_by_name[component] = {}
            self.schema_by_name[component] = {"title": component} | self._replace_nested_schemas(schema, component)
        return {"$ref": f"#/components/schemas/{component}"} | self._select_own_description(schema, component)

    def _select_own_description(self, schema: Mapping[str, Any], component: str) -> Json:
        """Return an object with the schema's description if the component has a different one, else an empty object."""
        description = schema.get("description")
        is_same = description is None or description == self.schema_by_name[component].get("description", description)
        return {} if is_same else {"description": description}

    def _replace_nested_schemas(self, schema: Mapping[str, Any], name: str) -> Json:
        """Return the schema with references instead of the nested components. `name` is the name of the schema itself."""
        return {
            key: value if key in _DATA_KEYWORDS else self._replace_in_keyword(key, value, name)
            for key, value in schema.items()
        }

    def _replace_in_keyword(self, key: str, value: Any, name: str) -> Any:
        """Return the value of a keyword with references instead of the nested components."""
        if key == "properties":
            return {field: self.add_schema(part, f"{name}_{field}") for field, part in value.items()}
        if key in ("items", "additionalProperties"):
            return self.add_schema(value, _to_singular(name))
        if key in ("anyOf", "oneOf", "allOf"):
            return [self.add_schema(part, name) for part in value]
        return value


WEBHOOK_PARAMETERS: Final[dict[str, Json]] = {
    f"event-{name}": {"name": name, "in": "header", "required": True, "schema": event_schema}
    for name, event_schema in WEBHOOK_HEADERS.items()
}
"""OpenAPI parameter objects for the headers of every webhook request, by component name."""


def build_event_webhook(event_type: str, add_schema: Callable[[Any, str], Any]) -> Json:
    """Return the OpenAPI path item of the webhook request for one event type.

    Args:
        event_type: The event type.
        add_schema: Adds a schema to the components under a name and returns a reference to it.
    """
    event_schema = EVENT_SCHEMAS[event_type]
    name = event_type.replace(".", "_")
    content = {
        "schema": add_schema(event_schema, name),
        "examples": {"usual": {"value": schema.build_example(event_schema)}},
    }
    return {
        "post": {
            "operationId": f"receive_{name}",
            "tags": ["events"],
            "summary": f"{event_type}: sent to your endpoint",
            "description": "Events of the same product, variant or offer arrive in order. Other events may arrive in any order. "
            "An event may arrive more than once. Ignore an event of a product, variant or offer whose `version` is not higher than "
            "the one you have. In thin payloads, `data.fields` contains only the paths of the changed fields. Fat payloads also "
            "contain old and new values, and the product, variant or offer as `data.object`.",
            "parameters": [{"$ref": f"#/components/parameters/{key}"} for key in WEBHOOK_PARAMETERS],
            "requestBody": {"required": True, "content": {"application/json": content}},
            "responses": _PARTS["webhook_answers"],
            "security": [],
        }
    }


WEBHOOK_BUILDERS: Final[dict[str, Callable[[Callable[[Any, str], Any]], Json]]] = {
    type: partial(build_event_webhook, type) for type in EVENT_SCHEMAS
}
"""Functions that build the OpenAPI path items of webhook requests, by event type."""


REQUEST_ID = "req_01J8ZQ5T3V7XK2M9RB4CDW"
_FIELD_ERROR = {"field": "query.limit", "code": "too_large", "detail": "Must be between 1 and 100."}


def _build_header_references(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def list_error_codes(operation: Operation) -> list[str]:
    """Return the error codes of all responses of the operation, in the order in which the service checks requests."""
    codes = ["invalid_request", "authentication_required", "permission_denied"]
    if operation.feature:
        codes.append("feature_unavailable")
    if operation.ids:
        codes.append("not_found")
    if operation.is_write:
        codes += ["payload_too_large", "unsupported_media_type"]
    if operation.requires_idempotency_key:
        codes += ["idempotency_request_in_progress", "idempotency_key_reused"]
    if operation.requires_if_match:
        codes += ["precondition_required", "precondition_failed"]
    if operation.body_feature:
        codes.append("feature_unavailable")
    codes += [code for code in operation.errors if code not in codes]
    return [*codes, "rate_limited", "internal_error", "unavailable", "overloaded"]


def build_problem_example(code: str, docs_url: str) -> Json:
    """Return the OpenAPI example object of a problem response with the error code."""
    error_code = CODES[code]
    detail = error_code.cause.split(". ")[0].rstrip(".") + "."
    body = problems.render_problem(
        f"{docs_url}/errors/{code}", error_code.title, error_code.status, code, detail, REQUEST_ID
    )
    if code == "invalid_request":
        body["errors"] = [_FIELD_ERROR]
    if code == "rate_limited":
        body["violated-policies"] = ["standard.read"]
    return {"summary": error_code.title, "value": body}


def build_problem_responses(operation: Operation) -> Json:
    """Return the OpenAPI response objects of the operation's errors, by HTTP status."""
    by_status: dict[int, list[str]] = {}
    for code in list_error_codes(operation):
        by_status.setdefault(CODES[code].status, []).append(code)
    return {str(status): _build_problem_response(status, codes) for status, codes in sorted(by_status.items())}


def _build_problem_response(status: int, codes: list[str]) -> Json:
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
        "headers": _build_header_references(*names),
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/problem"}, "examples": examples}},
    }


def _build_success_headers(operation: Operation) -> Json:
    names = ["Request-Id", "Service-Version", "RateLimit", "RateLimit-Policy"]
    if operation.is_stream and not operation.is_write:
        names.append("Service-Stream-From")
    elif not operation.is_write:
        names.append("ETag")
    else:
        names.append("Service-Dry-Run")
    if operation.requires_idempotency_key:
        names.append("Idempotent-Replayed")
    if operation.status in (201, 202):
        names.append("Location")
    return _build_header_references(*names)


def build_success_responses(operation: Operation, reply_schema: Mapping[str, Any] | None) -> Json:
    """Return the OpenAPI response objects of the operation's successful responses and of 304, by HTTP status.

    `reply_schema` is the schema of the response body, or a reference to it.
    """
    success: Json = {"description": operation.summary + ".", "headers": _build_success_headers(operation)}
    if reply_schema is not None and operation.reply is not None:
        value = operation.example if operation.example is not None else schema.build_example(dict(operation.reply))
        media = "text/event-stream" if operation.is_stream else "application/json"
        success["content"] = {media: {"schema": dict(reply_schema), "examples": {"usual": {"value": value}}}}
    responses: Json = {str(operation.status): success}
    if not operation.is_write and not operation.is_stream:
        responses["304"] = {
            "description": "Not modified: the ETag in If-None-Match is current.",
            "headers": _build_header_references("Request-Id", "ETag", "RateLimit", "RateLimit-Policy"),
        }
    return responses


def build_preview_response(table: Iterable[Operation], schemas: ComponentSchemas) -> Json:
    """Return the OpenAPI response object that all writes have in common for `Service-Dry-Run: explain`."""
    # a component of its own: generated clients would otherwise have to distinguish two responses in every call
    extra_properties = {name: part for operation in table for name, part in operation.preview.items()}
    event_schema = PREVIEW | {"properties": PREVIEW["properties"] | extra_properties}
    return {
        "description": "Preview of the operation. Nothing was changed.",
        "headers": _build_header_references(
            "Request-Id", "Service-Version", "Service-Dry-Run", "RateLimit", "RateLimit-Policy"
        ),
        "content": {
            PREVIEW_TYPE.decode(): {
                "schema": schemas.add_schema(event_schema, "preview"),
                "examples": {"explain": {"value": schema.build_example(event_schema)}},
            }
        },
    }


def build_query_parameters(operation: Operation, schemas: ComponentSchemas) -> list[Json]:
    """Return the OpenAPI parameter objects of the operation's query parameters."""
    return [
        _build_query_parameter(name, dict(schema), schemas, f"{operation.slug}_{name}")
        for name, schema in list_query_parameters(operation).items()
    ]


def _build_query_parameter(name: str, schema: Json, schemas: ComponentSchemas, schema_name: str) -> Json:
    required = bool(schema.pop("x-required", False))
    schema.pop("x-cursor", None)
    description = schema.pop("description", None)
    result: Json = {
        "name": name,
        "in": "query",
        "required": required,
        "schema": schemas.add_schema(schema, schema_name),
    }
    if description:
        result["description"] = description
    if schema.get("type") == "array":
        result |= {"style": "form", "explode": False}
    return result


def _name_component(header: str) -> str:
    """Return the component name of a request header: `IfMatch` for `If-Match`."""
    return header.replace("-", "")


def list_header_names(operation: Operation) -> list[str]:
    """Return the names of the request headers that apply to the operation."""
    names = ["Service-Version", "Service-Mode", "Request-Id"]
    if operation.is_stream and not operation.is_write:
        return [*names, "Last-Event-ID"]
    names += ["Service-Dry-Run"] if operation.is_write else ["If-None-Match"]
    if operation.requires_idempotency_key:
        names.append("Idempotency-Key")
    if operation.requires_if_match:
        names.append("If-Match")
    return names


def _build_description(operation: Operation) -> str:
    notes = [operation.description or operation.summary + "."]
    if operation.scope:
        notes.append(f"Requires the scope `{operation.scope}`.")
    if operation.feature:
        notes.append(f"Requires the plan feature `{operation.feature}`.")
    if operation.undo is not None:
        explanation = operation.undo.description if isinstance(operation.undo, UndoSupport) else operation.undo
        notes.append(f"{'Can' if operation.is_reversible else 'Cannot'} be undone through the audit log: {explanation}")
    return "\n\n".join(notes)


def _build_operation(operation: Operation, schemas: ComponentSchemas) -> Json:
    parameters: list[Json] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": operation.build_path_schema(name),
        }
        for name in operation.path_parameters
    ]
    parameters += build_query_parameters(operation, schemas)
    parameters += [
        {"$ref": f"#/components/parameters/{_name_component(name)}"} for name in list_header_names(operation)
    ]
    reply = schemas.add_schema(operation.reply, f"{operation.slug}_answer") if operation.reply is not None else None
    result: Json = {
        "operationId": operation.id,
        "tags": [operation.area],
        "summary": operation.summary,
        "description": _build_description(operation),
        "parameters": parameters,
        "responses": build_success_responses(operation, reply) | build_problem_responses(operation),
        "security": [{"bearer": []}, {"oauth2": [operation.scope] if operation.scope else []}],
        "x-rate-class": operation.rate,
        "x-who": operation.caller_kind,
        "x-scope": operation.scope,
        "x-feature": operation.feature,
    }
    if operation.is_write:
        result["x-dry-run"] = {"explain": {"$ref": "#/components/responses/preview"}}
        undo = operation.undo
        component = {"how": undo.description} if isinstance(undo, UndoSupport) else {"reason": undo}
        result["x-undo"] = {"reversible": operation.is_reversible, **component}
    if operation.body is not None:
        content = {
            "schema": schemas.add_schema(operation.body.schema, f"{operation.slug}_body"),
            "examples": {"usual": {"value": build_body_example(operation)}},
        }
        result["requestBody"] = {"required": operation.body.is_required, "content": {"application/json": content}}
    return result


def build_body_example(operation: Operation) -> Any:
    """Return an example of the operation's request body; None if it has no body."""
    return schema.build_example(dict(operation.body.schema)) if operation.body is not None else None


def _build_security_schemes(base_url: str) -> dict[str, Any]:
    """Return the OpenAPI security schemes for API keys and OAuth tokens (docs/oauth.md), both sent as bearer tokens."""
    base, scopes = base_url.rstrip("/"), dict(sorted(SENTENCE_BY_SCOPE.items()))
    flow = {"tokenUrl": f"{base}/oauth/token", "scopes": scopes}
    code = {"authorizationUrl": f"{base}/oauth/authorize", "refreshUrl": f"{base}/oauth/token"} | flow
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or an access token."},
        "oauth2": {"type": "oauth2", "flows": {"authorizationCode": code, "clientCredentials": flow}},
    }


def _build_components(schemas: ComponentSchemas, table: OperationTable, docs_url: str, base_url: str) -> Json:
    parameters = {
        _name_component(name): {"name": name, "in": "header", "required": False}
        | event_schema
        | {"schema": schemas.add_schema(event_schema["schema"], _name_component(name))}
        for name, event_schema in REQUEST_HEADERS.items()
    } | (WEBHOOK_PARAMETERS if any(area.webhook_builders for area in table.areas) else {})
    codes = dict.fromkeys(code for operation in table for code in list_error_codes(operation))
    schemas.add_schema(problems.PROBLEM, "problem")
    return {
        "securitySchemes": _build_security_schemes(base_url),
        "headers": _PARTS["answer_headers"],
        "parameters": parameters,
        "responses": {"preview": build_preview_response(table, schemas)},
        "examples": {code: build_problem_example(code, docs_url) for code in codes},
        "schemas": schemas.schema_by_name,
    }


def build_document(table: OperationTable, base_url: str, docs_url: str) -> Json:
    """Return the OpenAPI document of the operations as a JSON value."""
    schemas, info, paths = ComponentSchemas(), _PARTS["info"], dict[str, Json]()
    for operation in table:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _build_operation(operation, schemas)
    schemas.add_schema(EVENT_UNION_SCHEMA, "typed_event")
    return {
        "openapi": "3.1.0",
        "info": info | {"version": SUPPORTED.latest, "description": info["description"].format(docs=docs_url)},
        "servers": [{"url": base_url}],
        "tags": [{"name": area.name, "description": area.description} for area in table.areas],
        "security": [{"bearer": []}, {"oauth2": []}],
        "paths": paths,
        "webhooks": {
            name: result(schemas.add_schema) for area in table.areas for name, result in area.webhook_builders.items()
        },
        "components": _build_components(schemas, table, docs_url, base_url),
    }
