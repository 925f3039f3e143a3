"""Serves what needs no credential: the documentation site and the machine-readable description."""

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from threading import Lock
from typing import Final

import msgspec

from domain.platform.incidents import Incident
from domain.platform.usecases import PlatformStatus
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.openapi import document
from entrypoints.http.public_file import OPEN, PublicFile
from entrypoints.http.table import Table
from entrypoints.site import status as status_page
from entrypoints.site.site import Site

HOME: Final = b"/docs"
_REMEMBERED: Final = 100
"""Searches whose answers are kept."""


_GUARDED: HeaderList = [(b"content-security-policy", Site.POLICY.encode()), (b"referrer-policy", b"no-referrer")]


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

    @staticmethod
    def status(
        status: PlatformStatus | None,
        history: Sequence[Incident],
        down: Sequence[str],
        now: datetime,
        read_at: datetime | None,
    ) -> Response:
        """How the service does, as far as this process knows; kept by nobody for longer than ten seconds."""
        text = status_page.page(status, history, down, now, read_at).encode()
        kind, length = (b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(text)).encode())
        return Response(200, [kind, length, (b"cache-control", b"public, max-age=10"), *_GUARDED], text)

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
    return PublicFile(b"text/html; charset=utf-8", text.encode(), _GUARDED, packs=True)
