"""The pages that need no credential: the reference, the error codes, the machine-readable description."""

import gzip
import json
from html import escape
from typing import Final

import msgspec

from entrypoints.http.codes import CODES, FIELD_CODES, Code
from entrypoints.http.docs import reference
from entrypoints.http.docs_style import POLICY, page
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.openapi import document
from entrypoints.http.openapi_answers import problem_example
from entrypoints.http.steps.respond import hash_of, is_unchanged
from entrypoints.http.table import Table

HTML: Final = b"text/html; charset=utf-8"
JSON: Final = b"application/json"
HOME: Final = b"/docs"

_Page = tuple[HeaderList, bytes, bytes, str]


class Pages:
    """Each page is rendered when it is first asked for, and served from memory from then on."""

    def __init__(self, table: Table, base_url: str, docs_url: str) -> None:
        self._table, self._base_url, self._docs_url = table, base_url.rstrip("/"), docs_url.rstrip("/")
        self._pages: dict[str, _Page] = {}

    def find(self, path: str, if_none_match: str, accept_encoding: str = "") -> Response | None:
        """The page at the path, or None; gzipped for those who read that, 304 for those who have it."""
        if path == "/":
            return Response(302, [(b"location", HOME), (b"content-length", b"0")])
        found = self._pages.get(path) or self._render(path)
        if found is None:
            return None
        self._pages[path] = found
        headers, plain, packed, etag = found
        if if_none_match and is_unchanged(if_none_match, etag):
            return Response(304, [header for header in headers if header[0] != b"content-type"])
        if "gzip" in accept_encoding:
            return Response(200, [*headers, (b"content-encoding", b"gzip"), _length(packed)], packed)
        return Response(200, [*headers, _length(plain)], plain)

    def _render(self, path: str) -> _Page | None:
        if path == "/openapi.json":
            return _page(JSON, msgspec.json.encode(document(self._table, self._base_url, self._docs_url)))
        if path == "/docs":
            return _page(HTML, reference(self._table, self._base_url).encode())
        if path == "/errors":
            return _page(HTML, overview().encode())
        code = CODES.get(path.removeprefix("/errors/"))
        return _page(HTML, one(code, self._docs_url).encode()) if code is not None else None


def _length(body: bytes) -> tuple[bytes, bytes]:
    return b"content-length", str(len(body)).encode()


def _page(kind: bytes, body: bytes) -> _Page:
    etag = f'"{hash_of(body)}"'
    headers: HeaderList = [
        (b"content-type", kind),
        (b"etag", etag.encode()),
        (b"cache-control", b"public, max-age=300"),
        (b"vary", b"Accept-Encoding"),
        (b"x-content-type-options", b"nosniff"),
    ]
    if kind == JSON:
        headers.append((b"access-control-allow-origin", b"*"))
    else:
        headers += [(b"content-security-policy", POLICY.encode()), (b"referrer-policy", b"no-referrer")]
    return headers, body, gzip.compress(body, 6, mtime=0), etag


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
