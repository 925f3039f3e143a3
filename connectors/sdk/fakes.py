"""Stands in for the service around a connector: answers without a network, and a context whose time stands still."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .context import Limits, Validators
from .tables import Report

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class Headers(dict[str, str]):
    """Headers that ignore case."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__({name.lower(): value for name, value in values.items()})

    def get(self, name: str, default: Any = None) -> Any:
        """The header's value, whatever the case of its name."""
        return super().get(name.lower(), default)

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        return super().__contains__(str(name).lower())


@dataclass(frozen=True, slots=True)
class FakeAnswer:
    """What a fake source answers. `final_url` stands for where a redirect led."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    final_url: str | None = None


@dataclass(frozen=True, slots=True)
class FakeResponse:
    """A fake answer under way (joinery_sdk.HttpResponse)."""

    status: int
    headers: Mapping[str, str]
    final_url: str
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that a fake source got."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class FakeHttp:
    """A client without a network. `answers` maps a URL to its answer, or to answers given one after the other.

    `always` answers every URL instead; what is not known answers 404. `asked` holds the requests in order.
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
        """Answer; 304 when the validators are those of the answer."""
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
        """Answer as to a GET."""
        yield self._response(url, self._answer("POST", url, headers, body))

    def _answer(self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None) -> FakeAnswer:
        self.asked.append(Asked(method, url, Headers(headers or {}), body))
        if self._always is not None:
            return self._always
        left = self._answers.get(url)
        if not left:
            return FakeAnswer(status=404)
        return left.pop(0) if len(left) > 1 else left[0]

    def _response(self, url: str, answer: FakeAnswer) -> FakeResponse:
        headers = Headers({"Content-Type": answer.content_type, **answer.headers})
        return FakeResponse(answer.status, headers, answer.final_url or url, _chunks(answer.body))


async def _chunks(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]


@dataclass(slots=True)
class FakeContext:
    """A context without a service around it; time stands still at NOON and `slept` sums up the waiting."""

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
        """NOON."""
        return NOON

    async def sleep(self, seconds: float) -> None:
        """Note the wait and go on at once."""
        self.slept += seconds

    def report(self, report: Report) -> None:
        """Keep the report."""
        self.reports.append(report)
