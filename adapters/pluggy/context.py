"""Environment of a connector: the job's settings and a client limited to its plugin's hosts."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from connectors.sdk.context import HttpClient, HttpFailure, HttpResponse, Limits, Validators
from connectors.sdk.errors import Refused, RetryLater, Unreachable
from connectors.sdk.tables import Report
from domain.kernel.clock import CLOCK


@dataclass(frozen=True, slots=True)
class HostContext:
    """Context of one fetch or parse (connectors.sdk.Context)."""

    config: Mapping[str, Any]
    credentials: Mapping[str, Any] | None = field(repr=False)
    stream: str
    validators: Validators
    http: "BoundHttp"
    limits: Limits
    score_header: Callable[[Sequence[str]], int]
    reported: Callable[[Report], None] = field(default=lambda _: None)

    def now(self) -> datetime:
        return CLOCK.now()

    async def sleep(self, seconds: float) -> None:
        """Wait for some seconds."""
        await asyncio.sleep(seconds)

    def report(self, report: Report) -> None:
        """Pass the report to `reported`."""
        self.reported(report)


@dataclass(frozen=True, slots=True)
class _Response:
    """Response whose chunks raise failures as the kit's errors."""

    status: int
    headers: Mapping[str, str]
    final_url: str
    chunks: AsyncIterator[bytes]


@runtime_checkable
class PacingClient(Protocol):
    """Client that shares the turns at a host among its callers."""

    def asking(self, caller: str, account: frozenset[str]) -> HttpClient:
        """Return a client for an organisation, signed in by these texts or none."""
        ...


def asking(client: HttpClient, caller: str, account: frozenset[str]) -> HttpClient:
    """Return a client for an organisation, or the same client if it has no turns."""
    return client.asking(caller, account) if isinstance(client, PacingClient) else client


class NotOurTurn(RetryLater):
    """Host that was not requested, as no turn was free."""


class BoundHttp:
    """Guarded client of one plugin: limited to its hosts, with failures as connectors.sdk errors.

    `secrets` are the texts of the source's credentials. `last` is the last response, for the report of a failure.
    """

    def __init__(self, client: HttpClient, hosts: frozenset[str], secrets: frozenset[str] = frozenset()) -> None:
        self._client, self._hosts, self._secrets = client, hosts, secrets
        self.last: HttpResponse | None = None

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: Validators | None = None,
        hosts: frozenset[str] | None = None,
        private: frozenset[str] = frozenset(),
    ) -> AbstractAsyncContextManager[HttpResponse]:
        known, private = self._narrowed(hosts), private | self._secrets
        return self._bound(
            self._client.get(url, headers=headers, conditional=conditional, hosts=known, private=private)
        )

    def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
    ) -> AbstractAsyncContextManager[HttpResponse]:
        return self._bound(self._client.post(url, body=body, headers=headers, hosts=self._narrowed(hosts)))

    def _narrowed(self, hosts: frozenset[str] | None) -> frozenset[str] | None:
        """Return the permitted hosts; a connector may restrict them only if its plugin may reach any host."""
        if "*" in self._hosts:
            return hosts
        return self._hosts

    @asynccontextmanager
    async def _bound(self, request: AbstractAsyncContextManager[HttpResponse]) -> AsyncIterator[HttpResponse]:
        with _translated():
            response = await request.__aenter__()
        chunks = _chunks(response)
        self.last = _Response(response.status, response.headers, response.final_url, chunks)
        try:
            yield self.last
        finally:
            await chunks.aclose()
            await request.__aexit__(None, None, None)


async def _chunks(response: HttpResponse) -> AsyncGenerator[bytes, None]:
    with _translated():
        async for chunk in response.chunks:
            yield chunk


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not isinstance(error, HttpFailure):
            raise
        if error.kind == "host_busy":
            until = CLOCK.now() + timedelta(seconds=getattr(error, "seconds", 60.0))
            raise NotOurTurn(str(error), until=until, reason="retry") from None
        if error.kind == "refused_address":
            raise Refused(f"The address may not be reached. {error}") from None
        raise Unreachable(str(error)) from None
