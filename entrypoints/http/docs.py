"""GET /docs: the reference for people, rendered from the operation table."""

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from adapters.wire import schema
from entrypoints.areas.area import Area
from entrypoints.http.codes import CODES
from entrypoints.http.docs_schema import bounds_of, fields, note_of, type_of
from entrypoints.http.docs_style import page, text
from entrypoints.http.openapi import body_example, header_names
from entrypoints.http.openapi_answers import codes_of
from entrypoints.http.operation import Operation
from entrypoints.http.query_string import parameters_of
from entrypoints.http.table import Table

WHO: Final = {
    "any": "any credential",
    "person": "a person's own sign-in",
    "member_session": "a member in the console",
    "owner": "an owner, as a person",
}

GUIDE: Final = text("docs_guide.html")


def _code(text: str) -> str:
    return f'<div class="copy"><button type="button">Copy</button><pre><code>{escape(text)}</code></pre></div>'


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def curl(operation: Operation, base_url: str) -> str:
    """A call that can be pasted into a shell."""
    path = operation.path
    for name, prefix in operation.ids.items():
        path = path.replace(f"{{{name}}}", str(schema.example(schema.id_of(prefix))))
    path = re.sub(r"{(\w+)}", r"\1", path)
    lines = [f"curl{' -N' if operation.streams else ''} {base_url}{path}", '-H "Authorization: Bearer $JOINERY_KEY"']
    if operation.method != "GET":
        lines.insert(1, f"-X {operation.method}")
    if operation.idempotent:
        lines.append('-H "Idempotency-Key: $(uuidgen)"')
    if operation.if_match:
        lines.append("""-H 'If-Match: "7-5d1ca8b77e0a3c1f2b44c9d0"'""")
    if operation.body is not None:
        body = json.dumps(body_example(operation), ensure_ascii=False, default=str).replace("'", "'\\''")
        lines += ['-H "Content-Type: application/json"', f"-d '{body}'"]
    return " \\\n  ".join(lines)


def _tags(operation: Operation) -> str:
    tags = [f"rate class {operation.rate}", WHO[operation.who]]
    if operation.scope:
        tags.insert(0, f"scope {operation.scope}")
    if operation.feature:
        tags.append(f"plan feature {operation.feature}")
    return '<div class="tags">' + "".join(f"<span>{escape(tag)}</span>" for tag in tags) + "</div>"


def _parameters(operation: Operation) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{type_of(schema)}</td><td>{note_of(schema)}</td></tr>"
        for name, schema in parameters_of(operation).items()
    )
    return f"<h4>Query</h4><table><tr><th>Name<th>Type<th></tr>{rows}</table>" if rows else ""


def _body(operation: Operation) -> str:
    if operation.body is None:
        return ""
    note = "" if operation.body.required else " <span class=soft>(optional)</span>"
    return f"<h4>Body{note}</h4>{fields(operation.body.schema)}{bounds_of(operation.body.schema)}"


def _reply(operation: Operation) -> str:
    if operation.streams:
        described = dict(operation.reply or {})
        return f"<h4>Answer {operation.status}</h4><p>{escape(described['description'])}</p>{_code(schema.example(described))}"
    if operation.reply is None:
        return f"<h4>Answer {operation.status}</h4><p>No body.</p>"
    value = operation.example if operation.example is not None else schema.example(dict(operation.reply))
    example = f"<details><summary>Example</summary>{_code(_pretty(value))}</details>"
    return f"<h4>Answer {operation.status}</h4>{fields(operation.reply)}{example}"


def _errors(operation: Operation) -> str:
    links = (f'<a href="/errors/{code}">{CODES[code].status} {code}</a>' for code in codes_of(operation))
    return f"<h4>Errors</h4><p>{' · '.join(links)}</p>"


def _article(operation: Operation, base_url: str) -> str:
    headers = ", ".join(f"<code>{name}</code>" for name in header_names(operation))
    return (
        f'<article id="{operation.id}"><h3>{escape(operation.summary)}</h3>'
        f'<p class="route"><span class="method {operation.method}">{operation.method}</span> {escape(operation.path)}</p>'
        f"{_tags(operation)}<p>{escape(operation.description)}</p>{_code(curl(operation, base_url))}"
        f"{_parameters(operation)}<p class=soft>Headers read: {headers}</p>{_body(operation)}{_reply(operation)}"
        f"{_errors(operation)}</article>"
    )


def _nav(areas: Sequence[Area]) -> str:
    guide = re.findall(r'<h2 id="([^"]+)">([^<]+)</h2>', GUIDE)
    parts = ['<a class="brand" href="/docs">Joinery</a><h2>Guide</h2><ul>']
    parts += [f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in guide]
    parts.append('<li><a href="/errors">Error codes</a></li></ul>')
    for area in areas:
        parts.append(f'<h2><a href="#area-{area.name}">{escape(area.title)}</a></h2><ul>')
        parts += [f'<li><a href="#{row.id}">{escape(row.summary)}</a></li>' for row in area.operations]
        parts.append("</ul>")
    return "".join(parts)


def reference(table: Table, base_url: str) -> str:
    """The whole page."""
    sections = [GUIDE]
    for area in table.areas:
        sections.append(f'<h2 id="area-{area.name}">{escape(area.title)}</h2><p>{escape(area.description)}</p>')
        sections += [_article(row, base_url) for row in area.operations]
    return page("Joinery API reference", _nav(table.areas), "".join(sections))
