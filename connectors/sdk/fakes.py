"""Test doubles for a connector's environment: an HTTP client without a network, and a context with a fixed time."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .context import Limits, Validators
from .tables import Report

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class Headers(dict[str, str]):
    """Headers whose names ignore case."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__({name.lower(): value for name, value in values.items()})

    def get(self, name: str, default: Any = None) -> Any:
        """Return the header's value; names ignore case."""
        return super().get(name.lower(), default)

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        return super().__contains__(str(name).lower())


@dataclass(frozen=True, slots=True)
class FakeAnswer:
    """Response of a fake source. `final_url` is the URL after a redirect."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    final_url: str | None = None


@dataclass(frozen=True, slots=True)
class FakeResponse:
    """Fake response being read (joinery_sdk.HttpResponse)."""

    status: int
    headers: Mapping[str, str]
    final_url: str
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class Asked:
    """Request that a fake source received."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class FakeHttp:
    """HTTP client without a network. `answers` maps a URL to its response, or to consecutive responses.

    `always` answers every URL instead; an unknown URL is answered with 404. `asked` lists the requests in order.
    """

    def __init__(
        self,
        answers: Mapping[str, FakeAnswer | Sequence[FakeAnswer]] | None = None,
        *,
        always: FakeAnswer | None = None,
    ) -> None:
        self._answers = {url: [it] if isinstance(it, FakeAnswer) else list(it) for url, it in (answers or {}).items()}
        self._always = always
        self.asked: list[Asked] = []

    @asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: Validators | None = None,
        hosts: frozenset[str] | None = None,
        private: frozenset[str] = frozenset(),
    ) -> AsyncIterator[FakeResponse]:
        """Return the response; 304 if the validators match its ETag."""
        answer = self._answer("GET", url, headers, None)
        etag = Headers(answer.headers).get("ETag")
        if conditional is not None and etag is not None and conditional.etag == etag:
            answer = FakeAnswer(status=304, headers=answer.headers)
        yield self._response(url, answer)

    @asynccontextmanager
    async def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
    ) -> AsyncIterator[FakeResponse]:
        """Return the response, as for a GET."""
        yield self._response(url, self._answer("POST", url, headers, body))

    def _answer(self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None) -> FakeAnswer:
        self.asked.append(Asked(method, url, Headers(headers or {}), body))
        if self._always is not None:
            return self._always
        remaining = self._answers.get(url)
        if not remaining:
            return FakeAnswer(status=404)
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    def _response(self, url: str, answer: FakeAnswer) -> FakeResponse:
        headers = Headers({"Content-Type": answer.content_type, **answer.headers})
        return FakeResponse(answer.status, headers, answer.final_url or url, _chunks(answer.body))


async def _chunks(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]


@dataclass(slots=True)
class FakeContext:
    """Context without a service; the time is always NOON and `slept` is the total wait in seconds."""

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
        """Return NOON."""
        return NOON

    async def sleep(self, seconds: float) -> None:
        """Add to `slept` and return at once."""
        self.slept += seconds

    def report(self, report: Report) -> None:
        """Append to `reports`."""
        self.reports.append(report)
