"""Test doubles of a connector's environment: an HTTP client without a network, and a context with a fixed time."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .context import Limits, Validators
from .tables import Report

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class Headers(dict[str, str]):
    """HTTP headers by name, in which the case of names does not matter."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__({name.lower(): value for name, value in values.items()})

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of the header `name` in any case, or `default`."""
        return super().get(name.lower(), default)

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        return super().__contains__(str(name).lower())


@dataclass(frozen=True, slots=True)
class StubResponse:
    """Response that a test defines, and that FakeHttp returns as a FakeResponse.

    `final_url` is the URL after a redirect; None without a redirect.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    final_url: str | None = None


@dataclass(frozen=True, slots=True)
class FakeResponse:
    """Response that FakeHttp yields to the connector, an implementation of joinery_sdk.HttpResponse."""

    status: int
    headers: Mapping[str, str]
    final_url: str
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """Request that a fake source received."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class FakeHttp:
    """HTTP client without a network.

    Args:
        responses: Response by URL, or a list of responses to consecutive requests of the URL. Other URLs have status 404.
        always: Response to every URL, instead of `responses`.

    Attributes:
        requests: Received requests, in order.
    """

    def __init__(
        self,
        responses: Mapping[str, StubResponse | Sequence[StubResponse]] | None = None,
        *,
        always: StubResponse | None = None,
    ) -> None:
        self._responses = {
            url: [it] if isinstance(it, StubResponse) else list(it) for url, it in (responses or {}).items()
        }
        self._always = always
        self.requests: list[RecordedRequest] = []

    @asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: Validators | None = None,
        hosts: frozenset[str] | None = None,
        secrets: frozenset[str] = frozenset(),
    ) -> AsyncIterator[FakeResponse]:
        """Record the request and yield the URL's response, or status 304 if `conditional` has the response's ETag."""
        response = self._find_reply("GET", url, headers, None)
        etag = Headers(response.headers).get("ETag")
        if conditional is not None and etag is not None and conditional.etag == etag:
            response = StubResponse(status=304, headers=response.headers)
        yield self._build_response(url, response)

    @asynccontextmanager
    async def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
    ) -> AsyncIterator[FakeResponse]:
        """Record the request and yield the response for the URL."""
        yield self._build_response(url, self._find_reply("POST", url, headers, body))

    def _find_reply(self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None) -> StubResponse:
        self.requests.append(RecordedRequest(method, url, Headers(headers or {}), body))
        if self._always is not None:
            return self._always
        remaining = self._responses.get(url)
        if not remaining:
            return StubResponse(status=404)
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    def _build_response(self, url: str, response: StubResponse) -> FakeResponse:
        headers = Headers({"Content-Type": response.content_type, **response.headers})
        return FakeResponse(response.status, headers, response.final_url or url, _iterate_chunks(response.body))


async def _iterate_chunks(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]


@dataclass(slots=True)
class FakeContext:
    """Context of a connector under test, without a network and with a fixed time.

    `reports` are the reports of the connector. `slept` is the number of seconds that it has waited in total.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    credentials: Mapping[str, Any] | None = None
    stream: str = "catalogue"
    validators: Validators = field(default_factory=Validators)
    http: FakeHttp = field(default_factory=FakeHttp)
    limits: Limits = field(default_factory=Limits)
    score_header: Callable[[Sequence[str]], int] = field(default=lambda cells: 0)
    reports: list[Report] = field(default_factory=list)
    slept: float = 0.0

    def now(self) -> datetime:
        """Return the constant NOON as the current time."""
        return NOON

    async def sleep(self, seconds: float) -> None:
        """Add the seconds to `slept` and return without waiting."""
        self.slept += seconds

    def report(self, report: Report) -> None:
        """Append the report to `reports`."""
        self.reports.append(report)
