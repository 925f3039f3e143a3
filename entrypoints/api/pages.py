"""Serves what needs no credential: the documentation site, the description, the clients of the API, and the state of the service."""

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
    """Each file is read when it is first asked for, by one thread however many ask, and served from memory from then on."""

    def __init__(self, table: Table, base_url: str, docs_url: str) -> None:
        self._table, self._base_url, self._docs_url = table, base_url.rstrip("/"), docs_url.rstrip("/")
        self._pages: dict[str, PublicFile] = {}
        self._making = Lock()
        self._site = Site(self._base_url, self._docs_url)
        self._guarded = _guarded(self._site.policy)

    def is_ready(self, path: str) -> bool:
        """Whether the page is in memory, so that finding it costs nothing."""
        return path in self._pages

    def find(self, path: str, if_none_match: str, accept_encoding: str | None = None) -> Response | None:
        """The page at the path, or None; gzipped for those who read that, 304 for those who have it."""
        if moved := self._site.moved(path):
            return Response(302, [(b"location", moved.encode()), (b"content-length", b"0")])
        if path not in self._pages:
            with self._making:
                made = self._pages.get(path) or self._render(path)
            if made is None:
                return None
            self._pages[path] = made
        return self._pages[path].answer(if_none_match, accept_encoding)

    def lost(self, path: str, accept_encoding: str | None = None) -> Response:
        """What people see at an address that there is not: 404, with the nearest pages."""
        page = PublicFile(
            b"text/html; charset=utf-8", self._site.lost(path).encode(), _guarded(PLAIN_POLICY), packs=True
        )
        answer = page.answer("", accept_encoding)
        answer.status = 404
        answer.headers.append((b"vary", b"Accept"))
        return answer

    def _render(self, path: str) -> PublicFile | None:
        if path == "/openapi.json":
            described = msgspec.json.encode(document(self._table, self._base_url, self._docs_url))
            return PublicFile(b"application/json", described, OPEN, packs=True)
        if path.startswith(CLIENTS_PLACE):
            return self._client_file(path)
        found = self._site.read(path)
        return PublicFile(found[0].encode(), found[1], self._guarded, packs=True) if found else None

    def _client_file(self, path: str) -> PublicFile | None:
        """A client of the API; all of them are made with the first, in a tenth of a second."""
        if path.removeprefix(CLIENTS_PLACE) in NAMES:
            made = shipped(document(self._table, self._base_url, self._docs_url))
            files = {name: PublicFile(_KINDS[name.rpartition(".")[2]], made[name], OPEN) for name in NAMES}
            self._pages |= {CLIENTS_PLACE + name: file for name, file in files.items()}
        return self._pages.get(path)


def _guarded(policy: str) -> HeaderList:
    return [(b"content-security-policy", policy.encode()), (b"referrer-policy", b"no-referrer")]


CLIENTS_PLACE = "/docs/clients/"
_KINDS: Final[Mapping[str, bytes]] = {
    "whl": b"application/zip",
    "tgz": b"application/gzip",
    "json": b"application/json",
}


STATUS_SECONDS = 10.0
"""Seconds for which what was read is shown again."""
PATIENCE = 2.0
SHOWN = 20
"""Incidents on the page."""


class StatusPage:
    """One a process. It remembers what it read last, so that there is something to show when nothing can be read."""

    def __init__(
        self, service: PlatformService, look: Callable[[], Awaitable[Mapping[str, bool]]], clock: Clock
    ) -> None:
        self._service, self._look, self._clock = service, look, clock
        self._status: PlatformStatus | None = None
        self._history: Sequence[Incident] = ()
        self._read_at: datetime | None = None
        self._down: Sequence[str] = ()
        self._reading: asyncio.Task[None] | None = None
        self._read = float("-inf")

    async def __call__(self) -> Response:
        """The page. Whoever asks while it is read is shown what comes of that; nobody has it read more often."""
        due = asyncio.get_running_loop().time() - self._read >= STATUS_SECONDS
        if due and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._refresh(), name="status page")
        if self._reading is not None:
            await asyncio.shield(self._reading)
        shown = status_page.page(self._status, self._history, self._down, self._clock.now(), self._read_at).encode()
        kind, length = (b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(shown)).encode())
        return Response(200, [kind, length, (b"cache-control", b"public, max-age=10"), *_guarded(PLAIN_POLICY)], shown)

    async def _refresh(self) -> None:
        answers, known = await asyncio.gather(self._look(), self._known(), return_exceptions=True)
        self._down = [name for name, up in answers.items() if not up] if not isinstance(answers, BaseException) else []
        if isinstance(known, BaseException):
            self._down = self._down or ["database"]
        self._read = asyncio.get_running_loop().time()

    async def _known(self) -> None:
        async with asyncio.timeout(PATIENCE):
            status = await self._service.status()
            history = (await self._service.history(PageRequest(limit=SHOWN))).items
        self._status, self._history, self._read_at = status, history, self._clock.now()
