"""Context that a connector receives, with an HTTP client that may reach only the permitted hosts of the plugin."""

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
class ConnectorContext:
    """Context of one fetch or parse, an implementation of connectors.sdk.Context.

    `report_sink` receives the reports of the connector.
    """

    config: Mapping[str, Any]
    credentials: Mapping[str, Any] | None = field(repr=False)
    stream: str
    validators: Validators
    http: "PluginHttpClient"
    limits: Limits
    score_header: Callable[[Sequence[str]], int]
    report_sink: Callable[[Report], None] = field(default=lambda _: None)

    def now(self) -> datetime:
        return CLOCK.now()

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        await asyncio.sleep(seconds)

    def report(self, report: Report) -> None:
        """Pass a report of the connector to `report_sink`."""
        self.report_sink(report)


@dataclass(frozen=True, slots=True)
class _Response:
    """Response whose chunks raise the errors of the connector SDK instead of those of the HTTP client."""

    status: int
    headers: Mapping[str, str]
    final_url: str
    chunks: AsyncIterator[bytes]


@runtime_checkable
class HostRateLimitedClient(Protocol):
    """HTTP client that limits the rate of requests to each host and treats all organisations equally."""

    def for_organisation(self, org: str, credentials: frozenset[str]) -> HttpClient:
        """Return a client for one organisation.

        Args:
            org: ID of the organisation.
            credentials: Secret values of the source's credentials, which identify the account at each host; empty without
                credentials.
        """
        ...


def select_client(client: HttpClient, org: str, credentials: frozenset[str]) -> HttpClient:
    """Return the organisation's client if `client` is a HostRateLimitedClient, else `client` itself.

    `org` and `credentials` are the arguments of HostRateLimitedClient.for_organisation.
    """
    return client.for_organisation(org, credentials) if isinstance(client, HostRateLimitedClient) else client


class HostTurnUnavailable(RetryLater):
    """Failure of a request that was not sent, because too many other requests to the host were waiting."""


class PluginHttpClient:
    """HTTP client of one plugin, which may reach only the permitted hosts and raises the errors of the connector SDK.

    Args:
        client: HTTP client of the service, which sends the requests.
        hosts: Host names that the plugin may reach; `*` permits all.
        secrets: Secret values of the source's credentials.

    Attributes:
        last_response: The last response, for the report of a failure.
    """

    def __init__(self, client: HttpClient, hosts: frozenset[str], secrets: frozenset[str] = frozenset()) -> None:
        self._client, self._hosts, self._secrets = client, hosts, secrets
        self.last_response: HttpResponse | None = None

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: Validators | None = None,
        hosts: frozenset[str] | None = None,
        secrets: frozenset[str] = frozenset(),
    ) -> AbstractAsyncContextManager[HttpResponse]:
        permitted, secrets = self._select_hosts(hosts), secrets | self._secrets
        return self._open_response(
            self._client.get(url, headers=headers, conditional=conditional, hosts=permitted, secrets=secrets)
        )

    def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
    ) -> AbstractAsyncContextManager[HttpResponse]:
        return self._open_response(self._client.post(url, body=body, headers=headers, hosts=self._select_hosts(hosts)))

    def _select_hosts(self, hosts: frozenset[str] | None) -> frozenset[str] | None:
        """Return the hosts that a request may reach; None for all hosts.

        These are the plugin's hosts. If the plugin may reach all hosts, they are the hosts that the request states.
        """
        if "*" in self._hosts:
            return hosts
        return self._hosts

    @asynccontextmanager
    async def _open_response(self, request: AbstractAsyncContextManager[HttpResponse]) -> AsyncIterator[HttpResponse]:
        with _translate_failures():
            response = await request.__aenter__()
        chunks = _iterate_chunks(response)
        self.last_response = _Response(response.status, response.headers, response.final_url, chunks)
        try:
            yield self.last_response
        finally:
            await chunks.aclose()
            await request.__aexit__(None, None, None)


async def _iterate_chunks(response: HttpResponse) -> AsyncGenerator[bytes, None]:
    with _translate_failures():
        async for chunk in response.chunks:
            yield chunk


@contextmanager
def _translate_failures() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not isinstance(error, HttpFailure):
            raise
        if error.kind == "host_busy":
            until = CLOCK.now() + timedelta(seconds=getattr(error, "seconds", 60.0))
            raise HostTurnUnavailable(str(error), until=until, reason="retry") from None
        if error.kind == "refused_address":
            raise Refused(f"The URL is not allowed. {error}") from None
        raise Unreachable(str(error)) from None
