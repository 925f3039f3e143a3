"""The reference: a page for each area, an article for each operation, made from the operation table."""

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from domain.kernel import schema
from entrypoints.operations.codes import CODES
from entrypoints.operations.openapi import REQUEST_HEADERS, codes_of, header_names
from entrypoints.operations.operation import Area, Operation
from entrypoints.operations.query_string import parameters_of
from entrypoints.operations.table import Table
from entrypoints.site.blocks import Blocks
from entrypoints.site.calls import curl, pretty
from entrypoints.site.client_calls import in_clients
from entrypoints.site.layout import Link, Section
from entrypoints.site.limits import in_words
from entrypoints.site.markdown import inline, paragraphs
from entrypoints.site.schemas import bounds_of, fields, note_of, type_of

WHO: Final = {
    "any": "any credential",
    "person": "a person who is signed in",
    "member_session": "a member who is signed in to the console",
    "owner": "an owner of the organisation who is signed in",
}
HOME: Final = "/docs/reference"


def url_of(operation: Operation) -> str:
    """Where the operation is described."""
    return f"{HOME}/{operation.area}#{operation.id}"


def route(operation: Operation) -> str:
    """Method and path."""
    return f'<span class="method {operation.method}">{operation.method}</span> <span class="path">{escape(operation.path)}</span>'


def section(areas: Sequence[Area]) -> Section:
    """The menu of the reference; an area shows its operations on its own page."""
    links = [Link(HOME, "All operations")]
    for area in areas:
        below = tuple(Link(url_of(row), row.summary) for row in area.operations)
        links.append(Link(f"{HOME}/{area.name}", area.title, below))
    return Section("Reference", tuple(links))


def _access(operation: Operation) -> str:
    said = [("Who may call", WHO[operation.who])]
    if operation.scope:
        said.append(
            ('<a href="/docs/guides/words">Scope</a>', f"the credential needs <code>{escape(operation.scope)}</code>")
        )
    if operation.feature:
        said.append(("Plan", f"must include <code>{escape(operation.feature)}</code>"))
    said.append(('<a href="/docs/guides/limits">Rate class</a>', escape(in_words(operation.rate))))
    return (
        '<dl class="facts">' + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in said) + "</dl>"
    )


def _path_rows(operation: Operation) -> list[tuple[str, str, str]]:
    return [
        (
            f"<code>{name}</code>",
            "in the path",
            f"An id that begins with <code>{operation.ids[name]}_</code>." if name in operation.ids else "",
        )
        for name in operation.path_parameters
    ]


def _parameters(operation: Operation, blocks: Blocks) -> str:
    rows = _path_rows(operation)
    for name, described in parameters_of(operation).items():
        required = ", required" if described.get("x-required") else ""
        rows.append((f"<code>{escape(name)}</code>", type_of(described) + required, note_of(described)))
    return f"<h3>Parameters</h3>{blocks.table(('Name', 'Type', 'Meaning'), rows)}" if rows else ""


def _headers(operation: Operation, blocks: Blocks) -> str:
    rows = [
        (
            f"<code>{name}</code>{', required' if REQUEST_HEADERS[name].get('required') else ''}",
            inline(str(REQUEST_HEADERS[name]["description"])),
        )
        for name in header_names(operation)
    ]
    return f"<details><summary>Headers that it reads</summary>{blocks.table(('Header', 'Meaning'), rows)}</details>"


def _body(operation: Operation) -> str:
    if operation.body is None:
        return ""
    note = "" if operation.body.required else ' <span class="soft">(may be left out)</span>'
    bounds = bounds_of(operation.body.schema)
    return f"<h3>Body{note}</h3>{fields(operation.body.schema)}{f'<p>{bounds}</p>' if bounds else ''}"


def _example(operation: Operation) -> Any:
    return operation.example if operation.example is not None else schema.example(dict(operation.reply or {}))


def _reply(operation: Operation, blocks: Blocks) -> str:
    title = f"<h3>Answer: {operation.status}</h3>"
    if operation.reply is None:
        return f"{title}<p>No body.</p>"
    if operation.streams:
        described = dict(operation.reply)
        return f"{title}<p>{inline(described['description'])}</p>{blocks.code(schema.example(described), 'stream')}"
    example = f"<details><summary>Example</summary>{blocks.code(pretty(_example(operation)), 'JSON')}</details>"
    return f"{title}{fields(operation.reply, bounded=False)}{example}"


def _errors(operation: Operation) -> str:
    links = (f'<li><a href="/errors/{code}">{CODES[code].status} {code}</a></li>' for code in codes_of(operation))
    return f'<h3>Errors</h3><ul class="codes">{"".join(links)}</ul>'


def _article(operation: Operation, base_url: str, blocks: Blocks) -> str:
    return (
        f'<article aria-labelledby="{operation.id}"><h2 id="{operation.id}">{escape(operation.summary)}</h2>'
        f'<p class="route">{route(operation)}</p>{paragraphs(operation.description)}'
        f"{_access(operation)}{blocks.tabs([('curl', curl(operation, base_url)), *in_clients(operation)])}"
        f"{_parameters(operation, blocks)}{_headers(operation, blocks)}{_body(operation)}{_reply(operation, blocks)}"
        f"{_errors(operation)}</article>"
    )


def _listed(area: Area) -> str:
    rows = "".join(
        f'<li><a href="{url_of(row)}">{escape(row.summary)}</a> <span class="route">{route(row)}</span></li>'
        for row in area.operations
    )
    return f'<ul class="operations">{rows}</ul>'


def area_page(area: Area, base_url: str) -> str:
    """The contents of an area's page."""
    blocks = Blocks()
    articles = "".join(_article(row, base_url, blocks) for row in area.operations)
    return f'<h1>{escape(area.title)}</h1><p class="lead">{inline(area.description)}</p>{_listed(area)}{articles}'


def overview(table: Table) -> str:
    """The contents of the page that lists every operation."""
    parts = [
        '<h1>Reference</h1><p class="lead">Every operation, by what it is about. Programs read the same from '
        '<a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p>'
        "<p>Requests and answers are JSON; every path begins with <code>/v1</code>. Send "
        "<code>Authorization: Bearer &lt;key&gt;</code> with each request.</p>"
    ]
    for area in table.areas:
        link = f'<a href="{HOME}/{area.name}">{escape(area.title)}</a>'
        parts.append(f'<h2 id="{area.name}">{link}</h2><p>{inline(area.description)}</p>{_listed(area)}')
    return "".join([*parts, _all_headers()])


def _all_headers() -> str:
    rows = [(f"<code>{name}</code>", inline(str(text["description"]))) for name, text in REQUEST_HEADERS.items()]
    return f'<h2 id="headers">Request headers</h2>{Blocks().table(("Header", "Meaning"), rows)}'
