"""The pages that need no credential: the reference, the error codes, the machine-readable description."""

import gzip
from typing import Final

import msgspec

from entrypoints.http.codes import CODES
from entrypoints.http.docs import reference
from entrypoints.http.docs_errors import one, overview
from entrypoints.http.docs_style import POLICY
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.openapi import document
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
