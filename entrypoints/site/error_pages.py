"""The pages of the error codes: cause, remedy, an example, and which operations can answer with each."""

from collections.abc import Mapping
from html import escape
from typing import Final

from entrypoints.operations.codes import FIELD_CODES, Code
from entrypoints.operations.openapi import codes_of, problem_example
from entrypoints.operations.table import Table
from entrypoints.site.blocks import Blocks
from entrypoints.site.calls import pretty
from entrypoints.site.layout import Link, Section
from entrypoints.site.markdown import inline
from entrypoints.site.reference import route, url_of

HOME: Final = "/errors"


def section(codes: Mapping[str, Code]) -> Section:
    """The menu of the error codes."""
    links = (Link(f"{HOME}/{name}", f"{code.status} {name}") for name, code in codes.items())
    return Section("Error codes", (Link(HOME, "All error codes"), *links))


def overview(codes: Mapping[str, Code]) -> str:
    """The contents of the page of all codes."""
    blocks = Blocks()
    rows = [
        (str(code.status), f'<a href="{HOME}/{name}"><code>{name}</code></a>', inline(code.cause))
        for name, code in codes.items()
    ]
    field_rows = [(f"<code>{name}</code>", inline(meaning)) for name, meaning in FIELD_CODES.items()]
    return (
        '<h1>Error codes</h1><p class="lead">Every error is a problem document (RFC 9457), media type '
        "<code>application/problem+json</code>.</p><p>Programs go by <code>code</code>, which stays the same. "
        "<code>detail</code> tells people what happened this time. Give <code>request_id</code> to the operator when you ask for help. How to handle "
        'them is a guide: <a href="/docs/guides/errors">errors and retries</a>.</p>'
        f"{blocks.table(('Status', 'Code', 'Cause'), rows)}"
        '<h2 id="fields">Entries of errors[]</h2><p>An <code>invalid_request</code> names each wrong field: '
        "<code>config.url</code> in the body, <code>query.limit</code> for a parameter, "
        f"<code>header.Idempotency-Key</code> for a header.</p>{blocks.table(('Code', 'Meaning'), field_rows)}"
    )


def _answered_by(code: str, table: Table) -> str:
    rows = [row for row in table if code in codes_of(row)]
    if len(rows) == len(table.operations):
        return "<p>Every operation.</p>"
    if not rows:
        return "<p>It belongs to no single operation of this release.</p>"
    links = "".join(
        f'<li><a href="{url_of(row)}">{escape(row.summary)}</a> <span class="route">{route(row)}</span></li>'
        for row in rows
    )
    return f'<ul class="operations">{links}</ul>'


def one(code: Code, docs_url: str, table: Table) -> str:
    """The contents of the page of one code."""
    return (
        f'<h1><code>{code.name}</code></h1><p class="lead">HTTP {code.status}. {escape(code.title)}.</p>'
        f"<h2>Cause</h2><p>{inline(code.cause)}</p><h2>What to do</h2><p>{inline(code.remedy)}</p>"
        f"<h2>Example</h2>{Blocks().code(pretty(problem_example(code.name, docs_url)['value']), 'JSON')}"
        f"<h2>Which operations answer it</h2>{_answered_by(code.name, table)}"
    )
