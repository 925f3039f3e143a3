"""Pages of the API reference, with a form that sends a request to an operation in test mode."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from babel.lists import format_list
from markupsafe import Markup

from domain.access.model import KEY_PREFIXES, is_well_formed_secret
from domain.kernel import schema as wire
from domain.kernel.errors import InvalidRequest, NotFound
from domain.kernel.ids import new_id
from entrypoints.console.context import PageContext, Pages, encode_json
from entrypoints.console.request import FormData
from entrypoints.console.translation import N_, get_current_locale, gettext
from entrypoints.http.exchange import Response
from entrypoints.operations.openapi import build_body_example
from entrypoints.operations.operation import Operation
from entrypoints.operations.query_string import list_query_parameters
from entrypoints.settings import Settings
from entrypoints.site.calls import describe_rate_class, format_curl
from entrypoints.site.schemas import CALLER_DESCRIPTIONS, render_fields, render_inline, render_paragraphs

Schema = Mapping[str, Any]
_TEST_KEY_PREFIXES = tuple(prefix for (livemode, _), prefix in KEY_PREFIXES.items() if not livemode)
_MAX_SHOWN_BYTES = 200_000
"""Maximum number of bytes of a response body that the page shows."""

pages = Pages("/console/developers/reference", section="Developers")


class RequestInput(NamedTuple):
    """Field of the form for a request.

    Attributes:
        name: The name in the form, such as `query.limit`.
        label: The name of the parameter or property.
        kind: `text`, `number`, `choice` or `json`.
        required: Whether a value is required.
        note: The description, as trusted markup of the documentation.
        example: An example of a value.
        options: The options of a choice.
    """

    name: str
    label: str
    kind: str
    required: bool
    note: Markup
    example: str = ""
    options: tuple[str, ...] = ()


@pages.register_get(title=N_("API reference"))
async def list_operations(page: PageContext) -> Response:
    """Show the operations that match the search, or all operations, by area."""
    search_text = page.query.get("q").casefold()
    areas = [
        (area.title, [one for one in area.operations if search_text in f"{one.summary} {one.path} {one.id} {one.method}".casefold()])
        for area in page.console.pipeline.table.areas
    ]  # fmt: skip
    return page.render("reference/list.html", areas=[area for area in areas if area[1]], q=page.query.get("q"))


@pages.register_form("/<operation>")
async def show_operation(page: PageContext) -> Response:
    """Show an operation with its parameters and response, and a form for a request; if it is submitted, send the request."""
    operation = next(
        (one for one in page.console.pipeline.table.operations if one.id == page.path_parameters["operation"]), None
    )
    if operation is None:
        raise NotFound(gettext("This operation does not exist."))
    if page.is_post and operation.is_stream:
        raise NotFound(gettext("A stream never ends, so it can't run on this page. Copy the example request instead."))
    example = operation.example if operation.example is not None else wire.build_example(dict(operation.reply or {}))
    return page.render(
        "reference/operation.html",
        exchange=await _send_request(page, operation) if page.must_process else None,
        operation=operation,
        # The site's functions escape their input.
        description=Markup(render_paragraphs(operation.description)),  # noqa: S704
        response_fields=Markup(render_fields(operation.reply, with_bounds=False))  # noqa: S704
        if operation.reply and page.query["part"] == "fields"
        else "",
        permitted_caller=CALLER_DESCRIPTIONS[operation.caller_kind],
        rate_limit=describe_rate_class(operation.rate),
        documentation_url=f"/docs/reference/{operation.area}#{operation.id}",
        inputs=build_request_inputs(operation),
        example_response="" if operation.reply is None or operation.is_stream else _to_text(example),
        example_request=format_curl(operation, page.dependencies[Settings].base_url.rstrip("/")),
        form=page.form,
        is_permitted=page.may(operation.scope),
    )


def build_request_inputs(operation: Operation) -> dict[str, list[RequestInput]]:
    """Return the form fields for a request to an operation by location: `path`, `query` and `body`."""
    id_note = Markup(gettext("An ID that starts with <code>{}_</code>."))  # noqa: S704  a message of the catalogue
    ids = {name: id_note.format(prefix) for name, prefix in operation.ids.items()}
    example = build_body_example(operation) if operation.body else None
    example_values: Mapping[str, Any] = example if isinstance(example, Mapping) else {}
    schema = operation.body.schema if operation.body else {}
    query_schemas, body_schemas, required = (
        list_query_parameters(operation),
        schema.get("properties", {}),
        schema.get("required", ()),
    )
    return {
        "path": [
            RequestInput(f"path.{parameter}", parameter, "text", True, ids.get(parameter, Markup()))
            for parameter in operation.path_parameters
        ],
        "query": [
            _build_input("query", name, field_schema, bool(field_schema.get("x-required")))
            for name, field_schema in query_schemas.items()
        ],
        "body": [
            _build_input("body", name, field_schema, name in required, example_values.get(name))
            for name, field_schema in body_schemas.items()
        ],
    }


def _build_input(location: str, name: str, schema: Schema, required: bool, example: Any = None) -> RequestInput:
    """Return the form field for a query parameter or a property of the body. `location` is `query` or `body`."""
    note = Markup(render_inline(str(schema.get("description", ""))))  # noqa: S704  escaped by the site
    kind = schema.get("type", "object")
    options = tuple(map(_to_text, schema.get("enum", ()))) or (("true", "false") if kind == "boolean" else ())
    kinds = {"integer": "number", "number": "number", "string": "text"}
    input_kind = "choice" if options else kinds.get(str(kind), "text" if location == "query" else "json")
    return RequestInput(f"{location}.{name}", name, input_kind, required, note, _to_text(example), options)


def _to_text(value: Any) -> str:
    """Return a JSON value as the text of a form field; None becomes an empty text."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.format(encode_json(value), indent=2).decode()


async def _send_request(page: PageContext, operation: Operation) -> dict[str, Any]:
    """Send the request in the form to the API in test mode.

    The entered API key authenticates the request. Without a key, the request is sent as the signed-in person.

    Returns:
        Template variables: the request as a curl command, the response, its body as text, and whether the body was cut off.

    Raises:
        InvalidRequest: The form contains invalid JSON or a key that is not a test key.
    """
    form, base_url = page.form, page.dependencies[Settings].base_url.rstrip("/")
    path = operation.path.format_map(
        {name: quote(form.get(f"path.{name}"), safe="") or "-" for name in operation.path_parameters}
    )
    query = urlencode({name: text for name in list_query_parameters(operation) if (text := form.get(f"query.{name}"))})
    body, key, headers = _build_body(operation, form), form.get("key"), _build_headers(operation, form)
    if key and not is_well_formed_secret(key, _TEST_KEY_PREFIXES):
        prefixes = format_list(_TEST_KEY_PREFIXES, "or", locale=get_current_locale())
        text = gettext("Enter a test key, which starts with %(prefixes)s.", prefixes=prefixes)
        raise InvalidRequest.for_field("key", "invalid_format", text)
    request_headers = {name.lower(): value for name, value in headers.items()}
    request_headers |= {"authorization": f"Bearer {key}"} if key else {}
    caller = None if key else replace(page.principal, tenant=replace(page.principal.tenant, livemode=False))
    response = await page.api.send(operation.method, path, body, request_headers, query=query, caller=caller)
    shown_body = response.body[:_MAX_SHOWN_BYTES]
    is_truncated = len(shown_body) < len(response.body)
    if not is_truncated and "json" in (response.find_header("content-type") or ""):
        shown_body = msgspec.json.format(shown_body, indent=2)
    # The curl command reads the key from the environment.
    url = f"{base_url}{path}?{query}".rstrip("?")
    lines = [f"curl {shlex.quote(url)}"]
    lines += [f"-X {operation.method}"] if operation.method != "GET" else []
    headers |= {"Content-Type": "application/json"} if body else {}
    lines += ['-H "Authorization: Bearer $JOINERY_KEY"']
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
    lines += [f"-d {shlex.quote(body.decode())}"] if body else []
    call = " \\\n  ".join(lines)
    return {
        "curl": call,
        "response": response,
        "body": shown_body.decode("utf-8", "replace"),
        "is_truncated": is_truncated,
    }


def _build_headers(operation: Operation, form: FormData) -> dict[str, str]:
    """Return the headers of the request in the form, except the credential."""
    headers = {"Idempotency-Key": new_id("key")} if operation.requires_idempotency_key else {}
    if operation.requires_if_match:
        headers["If-Match"] = form.get("if_match") or "*"
    if operation.is_write and form["dry_run"] in ("true", "explain"):
        headers["Service-Dry-Run"] = form["dry_run"]
    return headers


def _build_body(operation: Operation, form: FormData) -> bytes:
    """Return the JSON body of the request in the form; empty if nothing was entered and the operation requires no body.

    Raises InvalidRequest if the entered text of an object or list is not valid JSON.
    """
    if operation.body is None:
        return b""
    properties = operation.body.schema.get("properties", {})
    text_and_schema_by_name = {name: (form.get(f"body.{name}"), part) for name, part in properties.items()}
    values = {
        name: _parse_value(f"body.{name}", text, part) for name, (text, part) in text_and_schema_by_name.items() if text
    }
    return encode_json(values) if values or operation.body.is_required else b""


def _parse_value(name: str, text: str, schema: Schema) -> Any:
    """Convert an entered text to a JSON value. An invalid number remains text, so that the operation rejects it.

    Args:
        name: The name of the form field, for the error message.
        text: The entered text.
        schema: The JSON Schema of the value.

    Raises:
        InvalidRequest: The text of an object or list is not valid JSON.
    """
    kind = schema.get("type", "object")
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind in ("integer", "number"):
        try:
            return int(text) if kind == "integer" else Decimal(text)
        except (ValueError, InvalidOperation):
            return text
    if kind == "string" or "enum" in schema:
        return text
    if kind == ["string", "null"]:
        return None if text == "null" else text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        problem = gettext("This is not valid JSON. Enter an object, an array or null.")
        raise InvalidRequest.for_field(name, "invalid_format", problem) from None
