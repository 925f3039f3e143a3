"""Pages of the API reference, with a form that runs an operation in test mode."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from babel.lists import format_list
from markupsafe import Markup

from domain.access.model import KEY_PREFIXES, is_secret
from domain.kernel import schema as wire
from domain.kernel.errors import InvalidRequest, NotFound
from domain.kernel.ids import new_id
from entrypoints.console.context import PageContext, Pages, encode
from entrypoints.console.request import FormData
from entrypoints.console.translation import N_, current_locale, gettext
from entrypoints.http.exchange import Response
from entrypoints.operations.openapi import body_example
from entrypoints.operations.operation import Operation
from entrypoints.operations.query_string import parameters_of
from entrypoints.settings import Settings
from entrypoints.site.calls import curl, in_words
from entrypoints.site.schemas import WHO, fields, inline, paragraphs

Schema = Mapping[str, Any]
_TEST_KEYS = tuple(prefix for (livemode, _), prefix in KEY_PREFIXES.items() if not livemode)
_LONGEST_SHOWN = 200_000
"""Number of bytes shown of a response body."""

pages = Pages("/console/developers/reference", section="Developers")


class Input(NamedTuple):
    """A field of the form.

    `kind` is text, number, choice or json, `options` are those of a choice, and `note` is trusted markup of the site.
    """

    name: str
    label: str
    kind: str
    required: bool
    note: Markup
    example: str = ""
    options: tuple[str, ...] = ()


@pages.get(title=N_("API reference"))
async def list_operations(page: PageContext) -> Response:
    """Show the operations by area, or those that match the search."""
    sought = page.query.get("q").casefold()
    areas = [
        (area.title, [row for row in area.operations if sought in f"{row.summary} {row.path} {row.id} {row.method}".casefold()])
        for area in page.console.pipeline.table.areas
    ]  # fmt: skip
    return page.render("reference/list.html", areas=[area for area in areas if area[1]], q=page.query.get("q"))


@pages.form("/<operation>")
async def show_operation(page: PageContext) -> Response:
    """Show an operation with its parameters, its response, a form to run it and the response to the last run."""
    row = next((one for one in page.console.pipeline.table.operations if one.id == page.ids["operation"]), None)
    if row is None:
        raise NotFound(gettext("This operation does not exist."))
    if page.sent and row.streams:
        raise NotFound(gettext("A stream never ends, so it can't run on this page. Copy the example request instead."))
    example = row.example if row.example is not None else wire.example(dict(row.reply or {}))
    return page.render(
        "reference/operation.html",
        tried=await _send(page, row) if page.submitted else None,
        row=row,
        # The site's functions escape their input.
        described=Markup(paragraphs(row.description)),  # noqa: S704
        answers=Markup(fields(row.reply, bounded=False)) if row.reply and page.query["part"] == "fields" else "",  # noqa: S704
        who=WHO[row.who],
        limit=in_words(row.rate),
        docs=f"/docs/reference/{row.area}#{row.id}",
        inputs=inputs_of(row),
        example="" if row.reply is None or row.streams else _text(example),
        call=curl(row, page.dependencies[Settings].base_url.rstrip("/")),
        form=page.form,
        may=page.may(row.scope),
    )


def inputs_of(row: Operation) -> dict[str, list[Input]]:
    """Return the fields of an operation by location: path, query and body."""
    prefixed = Markup(gettext("An ID that starts with <code>{}_</code>."))  # noqa: S704  a message of the catalogue
    ids = {name: prefixed.format(prefix) for name, prefix in row.ids.items()}
    example = body_example(row) if row.body else None
    shown: Mapping[str, Any] = example if isinstance(example, Mapping) else {}
    schema = row.body.schema if row.body else {}
    queried, sent, required = parameters_of(row), schema.get("properties", {}), schema.get("required", ())
    return {
        "path": [Input(f"path.{one}", one, "text", True, ids.get(one, Markup())) for one in row.path_parameters],
        "query": [_input("query", name, part, bool(part.get("x-required"))) for name, part in queried.items()],
        "body": [_input("body", name, part, name in required, shown.get(name)) for name, part in sent.items()],
    }


def _input(where: str, name: str, schema: Schema, required: bool, shown: Any = None) -> Input:
    note = Markup(inline(str(schema.get("description", ""))))  # noqa: S704  escaped by the site
    kind = schema.get("type", "object")
    options = tuple(map(_text, schema.get("enum", ()))) or (("true", "false") if kind == "boolean" else ())
    kinds = {"integer": "number", "number": "number", "string": "text"}
    looks = "choice" if options else kinds.get(str(kind), "text" if where == "query" else "json")
    return Input(f"{where}.{name}", name, looks, required, note, _text(shown), options)


def _text(value: Any) -> str:
    """Return a value as the text of its field; empty for None."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.format(encode(value), indent=2).decode()


async def _send(page: PageContext, row: Operation) -> dict[str, Any]:
    """Run the request of the form in this process in test mode, as the person or with the entered key.

    Returns:
        The request as a curl command, the response, its body as text, and whether the body was cut.

    Raises:
        InvalidRequest: The JSON is invalid, or the key is not a test key.

    """
    form, base_url = page.form, page.dependencies[Settings].base_url.rstrip("/")
    path = row.path.format_map({name: quote(form.get(f"path.{name}"), safe="") or "-" for name in row.path_parameters})
    query = urlencode({name: text for name in parameters_of(row) if (text := form.get(f"query.{name}"))})
    body, key, headers = _body_of(row, form), form.get("key"), _headers_of(row, form)
    if key and not is_secret(key, _TEST_KEYS):
        prefixes = format_list(_TEST_KEYS, "or", locale=current_locale())
        text = gettext("Enter a key of test mode, which starts with %(prefixes)s.", prefixes=prefixes)
        raise InvalidRequest.of("key", "invalid_format", text)
    sent = {name.lower(): value for name, value in headers.items()}
    sent |= {"authorization": f"Bearer {key}"} if key else {}
    caller = None if key else replace(page.principal, tenant=replace(page.principal.tenant, livemode=False))
    response = await page.api.send(row.method, path, body, sent, query=query, caller=caller)
    shown = response.body[:_LONGEST_SHOWN]
    cut = len(shown) < len(response.body)
    if not cut and "json" in (response.header("content-type") or ""):
        shown = msgspec.json.format(shown, indent=2)
    # The curl command reads the key from the environment.
    url = f"{base_url}{path}?{query}".rstrip("?")
    lines = [f"curl {shlex.quote(url)}"]
    lines += [f"-X {row.method}"] if row.method != "GET" else []
    headers |= {"Content-Type": "application/json"} if body else {}
    lines += ['-H "Authorization: Bearer $JOINERY_KEY"']
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
    lines += [f"-d {shlex.quote(body.decode())}"] if body else []
    call = " \\\n  ".join(lines)
    return {"curl": call, "response": response, "body": shown.decode("utf-8", "replace"), "shortened": cut}


def _headers_of(row: Operation, form: FormData) -> dict[str, str]:
    headers = {"Idempotency-Key": new_id("key")} if row.idempotent else {}
    if row.if_match:
        headers["If-Match"] = form.get("if_match") or "*"
    if row.writes and form["dry_run"] in ("true", "explain"):
        headers["Service-Dry-Run"] = form["dry_run"]
    return headers


def _body_of(row: Operation, form: FormData) -> bytes:
    if row.body is None:
        return b""
    properties = row.body.schema.get("properties", {})
    typed = {name: (form.get(f"body.{name}"), part) for name, part in properties.items()}
    made = {name: _value(f"body.{name}", text, part) for name, (text, part) in typed.items() if text}
    return encode(made) if made or row.body.required else b""


def _value(name: str, text: str, schema: Schema) -> Any:
    """Return the entered text as a JSON value; an invalid number stays text, which the operation refuses."""
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
        problem = gettext("This is not valid JSON. Enter an object, a list or null.")
        raise InvalidRequest.of(name, "invalid_format", problem) from None
