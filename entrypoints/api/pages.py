"""Public resources: documentation site, OpenAPI description, API clients, and status page."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import Final

import msgspec

from domain.kernel.paging import PageRequest
from domain.platform.incidents import Incident
from domain.platform.usecases import PlatformService, PlatformStatus
from entrypoints.clients.shipped import NAMES, shipped
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.representations import OPEN, PublicFile
from entrypoints.operations.openapi import document
from entrypoints.operations.table import Table
from entrypoints.site import status as status_page
from entrypoints.site.site import PLAIN_POLICY, Site
from ports.clock import Clock


class Pages:
    """Public files, each rendered at its first request in a worker thread and served from memory afterwards."""

    def __init__(self, table: Table, base_url: str, docs_url: str) -> None:
        self._table, self._base_url, self._docs_url = table, base_url.rstrip("/"), docs_url.rstrip("/")
        self._pages: dict[str, PublicFile] = {}
        self._lock = Lock()
        self._site = Site(self._base_url, self._docs_url)
        self._security_headers = _security_headers(self._site.policy)

    def is_ready(self, path: str) -> bool:
        """Return whether the page is in memory."""
        return path in self._pages

    def find(self, path: str, if_none_match: str, accept_encoding: str | None = None) -> Response | None:
        """Return the page at the path, or None; with gzip if accepted, 304 if the client has it."""
        if moved := self._site.moved(path):
            return Response(302, [(b"location", moved.encode()), (b"content-length", b"0")])
        if path not in self._pages:
            with self._lock:
                page = self._pages.get(path) or self._render(path)
            if page is None:
                return None
            self._pages[path] = page
        return self._pages[path].answer(if_none_match, accept_encoding)

    def lost(self, path: str, accept_encoding: str | None = None) -> Response:
        """Return the 404 page for people, with links to similar pages."""
        page = PublicFile(
            b"text/html; charset=utf-8", self._site.lost(path).encode(), _security_headers(PLAIN_POLICY), packs=True
        )
        answer = page.answer("", accept_encoding)
        answer.status = 404
        answer.headers.append((b"vary", b"Accept"))
        return answer

    def _render(self, path: str) -> PublicFile | None:
        if path == "/openapi.json":
            openapi = msgspec.json.encode(document(self._table, self._base_url, self._docs_url))
            return PublicFile(b"application/json", openapi, OPEN, packs=True)
        if path.startswith(CLIENTS_PLACE):
            return self._client_file(path)
        file = self._site.read(path)
        return PublicFile(file[0].encode(), file[1], self._security_headers, packs=True) if file else None

    def _client_file(self, path: str) -> PublicFile | None:
        """Return a file of an API client; the first request generates all of them, in about 0.1 s."""
        if path.removeprefix(CLIENTS_PLACE) in NAMES:
            content_by_name = shipped(document(self._table, self._base_url, self._docs_url))
            files = {name: PublicFile(_KINDS[name.rpartition(".")[2]], content_by_name[name], OPEN) for name in NAMES}
            self._pages |= {CLIENTS_PLACE + name: file for name, file in files.items()}
        return self._pages.get(path)


def _security_headers(policy: str) -> HeaderList:
    return [(b"content-security-policy", policy.encode()), (b"referrer-policy", b"no-referrer")]


CLIENTS_PLACE = "/docs/clients/"
_KINDS: Final[Mapping[str, bytes]] = {
    "whl": b"application/zip",
    "tgz": b"application/gzip",
    "json": b"application/json",
}


STATUS_SECONDS = 10.0
"""Seconds for which the last state is shown."""
PATIENCE = 2.0
SHOWN = 20
"""Maximum incidents on the page."""


class StatusPage:
    """Public status page, one per process. It keeps the last state for times when the database is unavailable."""

    def __init__(
        self, service: PlatformService, look: Callable[[], Awaitable[Mapping[str, bool]]], clock: Clock
    ) -> None:
        self._service, self._look, self._clock = service, look, clock
        self._status: PlatformStatus | None = None
        self._history: Sequence[Incident] = ()
        self._status_at: datetime | None = None
        self._down: Sequence[str] = ()
        self._refresh_task: asyncio.Task[None] | None = None
        self._refreshed_at = float("-inf")

    async def __call__(self) -> Response:
        """Return the page; concurrent requests share one refresh, at most one per STATUS_SECONDS."""
        due = asyncio.get_running_loop().time() - self._refreshed_at >= STATUS_SECONDS
        if due and (self._refresh_task is None or self._refresh_task.done()):
            self._refresh_task = asyncio.create_task(self._refresh(), name="status page")
        if self._refresh_task is not None:
            await asyncio.shield(self._refresh_task)
        body = status_page.page(self._status, self._history, self._down, self._clock.now(), self._status_at).encode()
        kind, length = (b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())
        return Response(
            200, [kind, length, (b"cache-control", b"public, max-age=10"), *_security_headers(PLAIN_POLICY)], body
        )

    async def _refresh(self) -> None:
        answers, known = await asyncio.gather(self._look(), self._read_state(), return_exceptions=True)
        self._down = [name for name, up in answers.items() if not up] if not isinstance(answers, BaseException) else []
        if isinstance(known, BaseException):
            self._down = self._down or ["database"]
        self._refreshed_at = asyncio.get_running_loop().time()

    async def _read_state(self) -> None:
        async with asyncio.timeout(PATIENCE):
            status = await self._service.status()
            history = (await self._service.history(PageRequest(limit=SHOWN))).items
        self._status, self._history, self._status_at = status, history, self._clock.now()
