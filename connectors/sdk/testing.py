"""Proves a connector against what every connector promises; subclass ConnectorContract and pytest does the rest."""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema_rs

from .context import Limits, Validators
from .errors import BadData, ConnectorError, Refused, RetryLater
from .spec import API, KINDS, STREAMS, ConnectorSpec
from .tables import GIVEN_FIELDS, Report, Table, given_field

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
    """A fake answer under way (connectors.sdk.HttpResponse)."""

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


def fetched(spec: ConnectorSpec, ctx: FakeContext) -> bytes:
    """The whole snapshot that a connector fetches. Raises ConnectorError."""

    async def run() -> bytes:
        async with spec.open().fetch(ctx) as answer:
            return b"".join([chunk async for chunk in answer.chunks])

    return asyncio.run(run())


def read(spec: ConnectorSpec, ctx: FakeContext, snapshot: bytes) -> list[tuple[Table, list[tuple[int, list[Any]]]]]:
    """Every table of a snapshot with its rows. Raises BadData."""
    with stored(snapshot) as path:
        return [(table, list(table.rows)) for table in spec.open().tables(ctx, path)]


@contextmanager
def stored(snapshot: bytes) -> Iterator[Path]:
    """The bytes as a file, for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        path.write_bytes(snapshot)
        yield path


@dataclass(frozen=True, slots=True)
class Example:
    """What to try a connector with: settings and credentials that its schemas take, and what its source then answers.

    `answers` are by URL; `snapshot` stands for them where a connector only reads; `rows` come out of all tables.
    """

    spec: ConnectorSpec
    config: Mapping[str, Any] = field(default_factory=dict)
    credentials: Mapping[str, Any] | None = None
    answers: Mapping[str, FakeAnswer | Sequence[FakeAnswer]] = field(default_factory=dict)
    snapshot: bytes | None = None
    rows: int = 1


class ConnectorContract:
    """What every connector promises, over the example that a subclass sets."""

    example: Example

    @property
    def spec(self) -> ConnectorSpec:
        """The connector under test."""
        return self.example.spec

    def context(self, http: FakeHttp | None = None) -> FakeContext:
        """A fresh context of the example."""
        client = http or FakeHttp(self.example.answers)
        return FakeContext(config=self.example.config, credentials=self.example.credentials, http=client)

    def taken(self) -> bytes:
        """The snapshot to read: fetched, or the one given."""
        given = self.example.snapshot
        return given if given is not None else fetched(self.spec, self.context())

    def failure(self, answer: FakeAnswer) -> ConnectorError | None:
        """What the connector raises when its source always answers this, in fetching or in reading."""
        context = self.context(FakeHttp(always=answer))
        try:
            read(self.spec, context, fetched(self.spec, context))
        except ConnectorError as error:
            return error
        return None

    def test_description(self) -> None:
        """The description is whole, each setting says what it is for, and the example's are valid by the schemas."""
        spec = self.spec
        assert spec.api == API
        assert re.fullmatch(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*", spec.name)
        assert spec.title.strip()
        assert KINDS >= spec.kinds != frozenset()
        assert STREAMS >= spec.streams != frozenset()
        for schema in filter(None, (spec.config_schema, spec.credentials_schema)):
            unexplained = [
                name for name, setting in schema.get("properties", {}).items() if not setting.get("description")
            ]
            assert not unexplained, f"settings without a description: {unexplained}"
        jsonschema_rs.Draft202012Validator(dict(spec.config_schema)).validate(dict(self.example.config))
        if self.example.credentials is not None:
            assert spec.credentials_schema is not None
            jsonschema_rs.Draft202012Validator(dict(spec.credentials_schema)).validate(dict(self.example.credentials))

    def test_same_twice(self) -> None:
        """Fetching and reading again gives the same: an opened connector keeps no state."""
        assert self.taken() == self.taken()
        snapshot = self.taken()
        first, second = (read(self.spec, self.context(), snapshot) for _ in range(2))
        assert [rows for _, rows in first] == [rows for _, rows in second]

    def test_rows(self) -> None:
        """Rows fit their headers, lines rise, cells are exact, `given` names known fields."""
        tables = read(self.spec, self.context(), self.taken())
        assert sum(len(rows) for _, rows in tables) == self.example.rows
        for table, rows in tables:
            assert table.headers
            assert all(isinstance(header, str) and header for header in table.headers)
            if table.given is not None:
                assert len(table.given) == len(table.headers)
                assert {given_field(entry) for entry in table.given if entry is not None} <= GIVEN_FIELDS
            lines = [line for line, _ in rows]
            assert lines == sorted(lines)
            assert all(line >= 1 for line in lines)
            for _, cells in rows:
                assert len(cells) == len(table.headers)
                assert all(_is_cell(cell) for cell in cells)

    def test_snapshot_is_lines(self) -> None:
        """Reading needs no network: what was fetched is enough."""
        http = FakeHttp(always=FakeAnswer(status=500))
        read(self.spec, self.context(http), self.taken())
        assert not http.asked

    def test_refusals(self) -> None:
        """Statuses are told by what the runner does next, without a word of the credentials."""
        if not self.spec.fetches:
            return
        failed = {404: ConnectorError, 500: ConnectorError}
        expected = {401: Refused, 403: Refused, 429: RetryLater, 503: RetryLater}
        for status, kind in {**failed, **expected}.items():
            error = self.failure(FakeAnswer(b"{}", status=status, headers={"Retry-After": "30"}))
            assert isinstance(error, kind), f"HTTP {status} gives {error!r}"
            assert not any(secret in str(error) for secret in _secrets(self.example.credentials))
            if isinstance(error, RetryLater):
                assert error.until == NOON + timedelta(seconds=30)

    def test_web_page(self) -> None:
        """A web page with status 200 is never taken for a feed."""
        page = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please sign in</body></html>"
        if self.spec.fetches:
            assert self.failure(FakeAnswer(page, content_type="text/html")) is not None
        else:
            self._refuses(page)

    def test_bad_snapshots(self) -> None:
        """An empty file, noise and a truncated snapshot give BadData, or fewer rows; never another error."""
        self._refuses(b"")
        for snapshot in (bytes(range(256)) * 8, b"\0" * 2000, b'{"a": [1, 2', self.taken()[:-7]):
            try:
                read(self.spec, self.context(), snapshot)
            except BadData:
                continue

    def _refuses(self, snapshot: bytes) -> None:
        said: str | None = None
        try:
            read(self.spec, self.context(), snapshot)
        except BadData as error:
            said = str(error)
        assert said, "BadData with a message was expected"


def _is_cell(cell: object) -> bool:
    if isinstance(cell, list):
        return all(_is_cell(element) for element in cell)
    if isinstance(cell, dict):
        return all(isinstance(key, str) and _is_cell(value) for key, value in cell.items())
    return cell is None or isinstance(cell, (str, int, bool, Decimal))


def _secrets(credentials: Mapping[str, Any] | None) -> list[str]:
    return [value for value in (credentials or {}).values() if isinstance(value, str) and len(value) > 3]
