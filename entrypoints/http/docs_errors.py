"""GET /errors and /errors/<code>: every code with its cause and remedy."""

import json
from html import escape

from entrypoints.http.codes import CODES, FIELD_CODES, Code
from entrypoints.http.docs_style import page
from entrypoints.http.openapi_answers import problem_example


def _nav(current: str = "") -> str:
    items = "".join(
        f'<li><a href="/errors/{name}"{" aria-current=page" if name == current else ""}>{code.status} {name}</a></li>'
        for name, code in CODES.items()
    )
    home = '<a class="brand" href="/docs">Joinery</a><ul><li><a href="/docs">Reference</a></li></ul>'
    return f'{home}<h2><a href="/errors">Error codes</a></h2><ul>{items}</ul>'


def overview() -> str:
    """The page of all codes."""
    rows = "".join(
        f'<tr><td>{code.status}</td><td><a href="/errors/{name}"><code>{name}</code></a></td><td>{escape(code.cause)}</td></tr>'
        for name, code in CODES.items()
    )
    field_rows = "".join(
        f"<tr><td><code>{name}</code></td><td>{escape(meaning)}</td></tr>" for name, meaning in FIELD_CODES.items()
    )
    main = (
        "<h1>Error codes</h1><p>Errors are problem details (RFC 9457), <code>application/problem+json</code>. "
        "<code>code</code> is stable; <code>detail</code> tells about this occurrence; give <code>request_id</code> to support."
        f"</p><table><tr><th>Status<th>Code<th>Cause</tr>{rows}</table>"
        '<h2 id="fields">Entries of errors[]</h2><p>An <code>invalid_request</code> names each offending field by its dotted '
        "path: <code>config.url</code> in the body, <code>query.limit</code> for a parameter, "
        f"<code>header.Idempotency-Key</code> for a header.</p><table><tr><th>Code<th>Meaning</tr>{field_rows}</table>"
    )
    return page("Joinery: error codes", _nav(), main)


def one(code: Code, docs_url: str) -> str:
    """The page of one code."""
    example = json.dumps(problem_example(code.name, docs_url), indent=2)
    main = (
        f'<p class="soft">HTTP {code.status}</p><h1><code>{code.name}</code></h1><p>{escape(code.title)}.</p>'
        f"<h2>Cause</h2><p>{escape(code.cause)}</p><h2>Remedy</h2><p>{escape(code.remedy)}</p>"
        f"<h2>Example</h2><pre><code>{escape(example)}</code></pre>"
    )
    return page(f"Joinery: {code.name}", _nav(code.name), main)
