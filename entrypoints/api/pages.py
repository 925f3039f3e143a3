"""Public pages and files: documentation, OpenAPI description, API clients, and status page."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import Final

import msgspec

from domain.kernel.paging import PageRequest
from domain.platform.incidents import Incident
from domain.platform.usecases import PlatformService, PlatformStatus
from entrypoints.clients.distribution import FILE_NAMES, build_distribution
from entrypoints.console.rendering import get_static_files
from entrypoints.http.exchange import HeaderList, Response
from entrypoints.http.representations import OPEN_CORS_HEADERS, PublicFile
from entrypoints.operations.openapi import build_document
from entrypoints.operations.table import OperationTable
from entrypoints.site import status as status_page
from entrypoints.site.site import PLAIN_POLICY, Site, render_standalone
from ports.clock import Clock


class PublicPages:
    """Public files: documentation, OpenAPI description and API clients. A file is rendered at its first request."""

    def __init__(self, table: OperationTable, base_url: str, docs_url: str) -> None:
        self._table, self._base_url, self._docs_url = table, base_url.rstrip("/"), docs_url.rstrip("/")
        self._pages: dict[str, PublicFile] = {}
        self._lock = Lock()
        self._site = Site(self._base_url, self._docs_url)
        self._build_security_headers = _build_security_headers(self._site.policy)

    def is_cached(self, path: str) -> bool:
        """Return whether the file at the path is cached, so that it need not be rendered."""
        return path in self._pages

    def find_response(self, path: str, if_none_match: str, accept_encoding: str | None = None) -> Response | None:
        """Return the response with the file at the path, or with a redirect; None if the path does not exist.

        The body is compressed if the client accepts that. The status is 304 if the client's copy is current.
        """
        if redirect_target := self._site.find_redirect(path):
            return Response(302, [(b"location", redirect_target.encode()), (b"content-length", b"0")])
        if path not in self._pages:
            with self._lock:
                page = self._pages.get(path) or self._render(path)
            if page is None:
                return None
            self._pages[path] = page
        return self._pages[path].respond(if_none_match, accept_encoding)

    def build_not_found_response(self, path: str, accept_encoding: str | None = None) -> Response:
        """Return the 404 response with a page that links to pages with similar paths."""
        page = PublicFile(
            b"text/html; charset=utf-8",
            self._site.render_not_found(path, get_static_files().build_path).encode(),
            _build_security_headers(PLAIN_POLICY),
            allows_gzip=True,
        )
        response = page.respond("", accept_encoding)
        response.status = 404
        response.headers.append((b"vary", b"Accept"))
        return response

    def _render(self, path: str) -> PublicFile | None:
        """Return the rendered file at the path; None if the path does not exist."""
        if path == "/":
            html = render_standalone("front", get_static_files().build_path).encode()
            return PublicFile(
                b"text/html; charset=utf-8", html, _build_security_headers(PLAIN_POLICY), allows_gzip=True
            )
        if path == "/openapi.json":
            openapi = msgspec.json.encode(build_document(self._table, self._base_url, self._docs_url))
            return PublicFile(b"application/json", openapi, OPEN_CORS_HEADERS, allows_gzip=True)
        if path.startswith(CLIENTS_PATH):
            return self._find_client_file(path)
        file = self._site.read(path)
        return PublicFile(file[0].encode(), file[1], self._build_security_headers, allows_gzip=True) if file else None

    def _find_client_file(self, path: str) -> PublicFile | None:
        """Return a file of an API client; None if it does not exist. The first call builds all files."""
        if path.removeprefix(CLIENTS_PATH) in FILE_NAMES:
            content_by_name = build_distribution(build_document(self._table, self._base_url, self._docs_url))
            files = {
                name: PublicFile(
                    _MEDIA_TYPE_BY_EXTENSION[name.rpartition(".")[2]], content_by_name[name], OPEN_CORS_HEADERS
                )
                for name in FILE_NAMES
            }
            self._pages |= {CLIENTS_PATH + name: file for name, file in files.items()}
        return self._pages.get(path)


def _build_security_headers(policy: str) -> HeaderList:
    return [(b"content-security-policy", policy.encode()), (b"referrer-policy", b"no-referrer")]


CLIENTS_PATH = "/docs/clients/"
_MEDIA_TYPE_BY_EXTENSION: Final[Mapping[str, bytes]] = {
    "whl": b"application/zip",
    "tgz": b"application/gzip",
    "json": b"application/json",
}


STATUS_CACHE_SECONDS = 10.0
"""Seconds for which the state of the service is cached."""
STATUS_TIMEOUT_SECONDS = 2.0
MAX_INCIDENTS = 20
"""Maximum number of incidents on the status page, which shows the newest."""


class StatusPage:
    """Public status page, which shows the last known state while the database is unavailable.

    Args:
        service: Reads the state and the incidents.
        check_dependencies: Returns for the name of each dependency, such as the database, whether it responds.
        clock: The clock.
    """

    def __init__(
        self, service: PlatformService, check_dependencies: Callable[[], Awaitable[Mapping[str, bool]]], clock: Clock
    ) -> None:
        self._service, self._check_dependencies, self._clock = service, check_dependencies, clock
        self._status: PlatformStatus | None = None
        self._history: Sequence[Incident] = ()
        self._status_at: datetime | None = None
        self._down: Sequence[str] = ()
        self._refresh_task: asyncio.Task[None] | None = None
        self._refreshed_at = float("-inf")

    async def __call__(self) -> Response:
        """Return the response with the page. The state is refreshed at most once in STATUS_CACHE_SECONDS."""
        due = asyncio.get_running_loop().time() - self._refreshed_at >= STATUS_CACHE_SECONDS
        if due and (self._refresh_task is None or self._refresh_task.done()):
            self._refresh_task = asyncio.create_task(self._refresh(), name="status page")
        if self._refresh_task is not None:
            await asyncio.shield(self._refresh_task)
        body = status_page.render_status_page(
            self._status,
            self._history,
            self._down,
            self._clock.now(),
            self._status_at,
            get_static_files().build_path,
        ).encode()
        kind, length = (b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())
        return Response(
            200, [kind, length, (b"cache-control", b"public, max-age=10"), *_build_security_headers(PLAIN_POLICY)], body
        )

    async def _refresh(self) -> None:
        availability, state = await asyncio.gather(
            self._check_dependencies(), self._read_state(), return_exceptions=True
        )
        self._down = (
            []
            if isinstance(availability, BaseException)
            else [name for name, is_up in availability.items() if not is_up]
        )
        if isinstance(state, BaseException):
            self._down = self._down or ["database"]
        self._refreshed_at = asyncio.get_running_loop().time()

    async def _read_state(self) -> None:
        async with asyncio.timeout(STATUS_TIMEOUT_SECONDS):
            status = await self._service.get_status()
            history = (await self._service.list_incidents(PageRequest(limit=MAX_INCIDENTS))).items
        self._status, self._history, self._status_at = status, history, self._clock.now()
