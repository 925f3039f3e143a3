"""Serves what needs no credential: the documentation site and the machine-readable description."""

from functools import cached_property, lru_cache
from threading import Lock
from typing import Final

import msgspec

from entrypoints.http.exchange import Response
from entrypoints.http.openapi import document
from entrypoints.http.public_file import OPEN, PublicFile
from entrypoints.http.table import Table
from entrypoints.site.site import Site

HOME: Final = b"/docs"
_REMEMBERED: Final = 100
"""Searches whose answers are kept."""


class Pages:
    """Each page is rendered when it is first asked for, by one thread however many ask, and served from memory from then on."""

    SEARCH: Final = Site.SEARCH
    """The page that answers searches, each of them anew."""

    def __init__(self, table: Table, base_url: str, docs_url: str) -> None:
        self._table, self._base_url, self._docs_url = table, base_url.rstrip("/"), docs_url.rstrip("/")
        self._pages: dict[str, PublicFile] = {}
        self._making = Lock()
        self._searched = lru_cache(_REMEMBERED)(lambda query: _html(self._site.search(query)))

    @cached_property
    def _site(self) -> Site:
        return Site(self._table, self._base_url, self._docs_url)

    def is_ready(self, path: str) -> bool:
        """Whether the page is in memory, so that finding it costs nothing."""
        return path in self._pages or path == "/"

    def find(self, path: str, query: str, if_none_match: str, accept_encoding: str | None = None) -> Response | None:
        """The page at the path, or None; gzipped for those who read that, 304 for those who have it.

        `query` is what is searched for, on the page of searches.
        """
        if path == "/":
            return _led_to(HOME)
        made = self._pages.get(path)
        if made is None:
            with self._making:
                if path.endswith("/") and self._site.has(path.rstrip("/")):
                    return _led_to(path.rstrip("/").encode())
                made = self._searched(query[: Site.LONGEST]) if path == Site.SEARCH else self._made(path)
        return None if made is None else made.answer(if_none_match, accept_encoding)

    def _made(self, path: str) -> PublicFile | None:
        """The page, made once; called by one thread at a time."""
        made = self._pages.get(path) or self._render(path)
        if made is not None:
            self._pages[path] = made
        return made

    def lost(self, path: str, accept_encoding: str | None = None) -> Response:
        """What people see at an address that there is not: 404, with search and the nearest pages."""
        with self._making:
            answer = _html(self._site.lost(path)).answer("", accept_encoding)
        answer.status = 404
        answer.headers.append((b"vary", b"Accept"))
        return answer

    def _render(self, path: str) -> PublicFile | None:
        if path == "/openapi.json":
            described = msgspec.json.encode(document(self._table, self._base_url, self._docs_url))
            return PublicFile(b"application/json", described, OPEN, packs=True)
        html = self._site.page(path)
        return _html(html) if html is not None else None


def _led_to(place: bytes) -> Response:
    return Response(302, [(b"location", place), (b"content-length", b"0")])


def _html(text: str) -> PublicFile:
    headers = [(b"content-security-policy", Site.POLICY.encode()), (b"referrer-policy", b"no-referrer")]
    return PublicFile(b"text/html; charset=utf-8", text.encode(), headers, packs=True)
