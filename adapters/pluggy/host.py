"""Runner of connectors, which converts between the kit's types and errors and the port's."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

from adapters.pluggy.allowlist import read
from adapters.pluggy.cells import Tell, bounded, named
from adapters.pluggy.context import BoundHttp, HostContext, NotOurTurn, asking
from adapters.pluggy.loading import Loaded, PluginReport, Provided, load
from connectors.sdk import context as sdk
from connectors.sdk import spec as sdk_spec
from connectors.sdk import tables as sdk_tables
from connectors.sdk.answers import media_type
from connectors.sdk.credentials import secret_texts
from connectors.sdk.errors import BadData, ConnectorError, Refused, RetryLater
from connectors.sdk.spec import Fetched
from domain.ingestion.model import FeedTable, Row
from domain.ingestion.ports import (
    Answer,
    ConnectorInfo,
    FetchFailed,
    Item,
    Job,
    ParseFailed,
    ResponseHead,
    Validators,
)
from domain.kernel.problems import Problem, ProblemKind

Opening = Callable[[Provided, HostContext], AbstractAsyncContextManager[Fetched]]

_STRIDE = 4_096
_HIDDEN = "[hidden]"
_SHORTEST_SECRET = 4
_CHECK_SECONDS = 20.0
_END = object()


def connect(
    plugins: Path, http: sdk.HttpClient, *, product_version: str, limits: sdk.Limits | None = None
) -> "PluggyConnectors":
    """Load the plugins in plugins.toml, or the built-in ones without that file. Raises AllowlistError."""
    return PluggyConnectors(load(read(plugins), product_version=product_version), http, limits=limits)


class PluggyConnectors:
    """ports.connectors.Connectors over loaded plugins.

    `http` is the guarded client; `limits` bound every fetch and parse.
    """

    def __init__(self, loaded: Loaded, http: sdk.HttpClient, *, limits: sdk.Limits | None = None) -> None:
        self._loaded = loaded
        self._http = http
        self._limits = limits or sdk.Limits()
        self._infos = {name: _info(provided) for name, provided in sorted(loaded.connectors.items())}

    def report(self) -> list[PluginReport]:
        """Return the state of each plugin that is listed or installed, in the order of plugins.toml."""
        return list(self._loaded.reports)

    def infos(self) -> Sequence[ConnectorInfo]:
        return list(self._infos.values())

    def info(self, name: str) -> ConnectorInfo | None:
        return self._infos.get(name)

    def fetch(self, name: str, job: Job) -> AbstractAsyncContextManager[Answer]:
        def opening(provided: Provided, context: HostContext) -> AbstractAsyncContextManager[Fetched]:
            if not provided.spec.fetches:
                raise BadData(
                    f"The connector {name} is not loaded, or does not fetch; the operator can load it (plugins.toml)."
                )
            return provided.spec.open().fetch(context)

        return self._open_fetch(name, job, self._limits, opening)

    def check(self, name: str, job: Job, item: Item) -> AbstractAsyncContextManager[Answer]:
        asked = sdk_spec.Item(item.product_key, item.variant_key, item.sku)

        def opening(provided: Provided, context: HostContext) -> AbstractAsyncContextManager[Fetched]:
            connector = provided.spec.open()
            if not provided.spec.checks or not isinstance(connector, sdk_spec.StockChecker):
                raise BadData(f"The connector {name} cannot check a single item.")
            return connector.check(context, asked)

        return self._open_fetch(name, job, _of_a_check(self._limits), opening)

    @asynccontextmanager
    async def _open_fetch(self, name: str, job: Job, limits: sdk.Limits, opened: Opening) -> AsyncIterator[Answer]:
        """Yield the connector's response within the limits; everything is closed on leaving."""
        deadline = asyncio.get_running_loop().time() + limits.fetch_seconds
        if (provided := self._provided(name)) is None:
            raise FetchFailed(
                "parse_failed", f"The connector {name} is not loaded; the operator can load it (plugins.toml)."
            )
        context = self._context(provided, job, _no_header, limits=limits)
        with _fetching(name, job, context.http):
            opening = opened(provided, context)
            async with asyncio.timeout_at(deadline):
                fetched = await opening.__aenter__()
        chunks = self._chunks(name, job, fetched, deadline, context)
        try:
            yield _answer(fetched, chunks, job)
        finally:
            await chunks.aclose()
            with suppress(Exception):
                await opening.__aexit__(None, None, None)

    def tables(
        self,
        name: str,
        job: Job,
        snapshot: Path,
        score_header: Callable[[Sequence[str]], int],
        reported: Callable[[Problem], None],
    ) -> Iterator[FeedTable]:
        provided = self._provided(name)
        deadline = monotonic() + self._limits.parse_seconds
        with _parsing(name, job):
            if provided is None:
                raise BadData(f"The connector {name} is not loaded; the operator can load it (plugins.toml).")
            context = self._context(provided, job, score_header, lambda report: reported(_problem(report)))
            found = iter(provided.spec.open().tables(context, snapshot))
        while True:
            with _parsing(name, job):
                table = next(found, None)
            if table is None:
                return
            if len(table.headers) > self._limits.columns:
                raise ParseFailed(f"The feed has more than {self._limits.columns:,} columns.")
            tell = _teller(table.sheet, reported)
            headers = named(table.headers, tell)
            rows = bounded(self._rows(name, job, table, deadline), headers, self._limits, tell)
            yield FeedTable(table.sheet, headers, rows, table.given)

    def _provided(self, name: str) -> Provided | None:
        return self._loaded.connectors.get(name)

    def _context(
        self,
        provided: Provided,
        job: Job,
        score_header: Callable[[Sequence[str]], int],
        reported: Callable[[sdk_tables.Report], None] = lambda _: None,
        *,
        limits: sdk.Limits | None = None,
    ) -> HostContext:
        secrets = frozenset(secret_texts(job.credentials))
        return HostContext(
            config=job.config,
            credentials=job.credentials,
            stream=job.stream,
            validators=sdk.Validators(job.validators.etag, job.validators.last_modified),
            http=BoundHttp(asking(self._http, job.caller, secrets), provided.hosts, secrets),
            limits=limits or self._limits,
            score_header=score_header,
            reported=reported,
        )

    async def _chunks(
        self, name: str, job: Job, fetched: Fetched, deadline: float, context: HostContext
    ) -> AsyncGenerator[bytes, None]:
        """Yield the snapshot's bytes, bounded in size and time."""
        remaining = most = context.limits.snapshot_bytes
        walk = aiter(fetched.chunks)
        while True:
            with _fetching(name, job, context.http):
                async with asyncio.timeout_at(deadline):
                    chunk = await anext(walk, None)
                if chunk is None:
                    return
                remaining -= len(chunk)
                if remaining < 0:
                    raise BadData(f"The feed is larger than {most // (1024 * 1024)} MiB.")
            yield chunk

    def _rows(self, name: str, job: Job, table: sdk_tables.Table, deadline: float) -> Iterator[Row]:
        """Yield the rows unchanged; time and number are checked every 4,096 rows, for speed."""
        rows = table.rows
        remaining = self._limits.rows
        with _parsing(name, job):
            while (first := next(rows, _END)) is not _END:
                yield first  # type: ignore[misc]
                yield from islice(rows, _STRIDE - 1)
                remaining -= _STRIDE
                if remaining < 0:
                    raise BadData(f"the feed has more than {self._limits.rows:,} rows")
                if monotonic() > deadline:
                    raise BadData("reading the feed takes too long")


def _of_a_check(limits: sdk.Limits) -> sdk.Limits:
    """Return the limits of a stock check: one page, a short time, and no waits, as a caller is waiting."""
    return replace(
        limits,
        snapshot_bytes=min(limits.snapshot_bytes, limits.page_bytes),
        fetch_seconds=min(limits.fetch_seconds, _CHECK_SECONDS),
        patience_seconds=0.0,
    )


def _no_header(_: Sequence[str]) -> int:
    return 0


def _info(provided: Provided) -> ConnectorInfo:
    spec = provided.spec
    described: Any = {item.name: getattr(spec, item.name) for item in fields(ConnectorInfo) if hasattr(spec, item.name)}
    described["checks"] = spec.checks and spec.fetches
    return ConnectorInfo(**described, distribution=provided.distribution, version=provided.version)


def _answer(fetched: Fetched, chunks: AsyncIterator[bytes], job: Job) -> Answer:
    return Answer(
        status=fetched.status,
        final_url=_public_url(fetched.final_url, job) if fetched.final_url else None,
        content_type=fetched.content_type,
        filename=fetched.filename,
        served_by=fetched.served_by,
        not_modified=fetched.not_modified,
        validators=Validators(fetched.validators.etag, fetched.validators.last_modified),
        chunks=chunks,
    )


@contextmanager
def _fetching(name: str, job: Job, http: BoundHttp) -> Iterator[None]:
    """Translate every exception of a fetch to FetchFailed, without the credentials' texts."""
    try:
        yield
    except Exception as error:
        failure = _failure(error, name, job)
        if (last := http.last) is not None:
            failure.response = ResponseHead(last.status, _public_url(last.final_url, job), media_type(last) or None)
        raise failure from None


def _failure(error: Exception, name: str, job: Job) -> FetchFailed:
    if isinstance(error, RetryLater):
        own = isinstance(error, NotOurTurn)
        return FetchFailed("fetch_failed", _clean(error, job), waiting=error.reason, retry_at=error.until, own=own)
    if isinstance(error, ConnectorError):
        return FetchFailed(_code(error), _clean(error, job))
    if isinstance(error, TimeoutError):
        return FetchFailed("fetch_failed", "Fetching the feed took too long.")
    return FetchFailed("fetch_failed", f"The connector {name} failed ({type(error).__name__}).")


def _code(error: ConnectorError) -> str:
    """Return the source's status_reason code (docs/conventions.md#enumerations)."""
    if isinstance(error, Refused):
        return "credentials_refused" if error.credentials else "fetch_refused"
    return "parse_failed" if isinstance(error, BadData) else "fetch_failed"


@contextmanager
def _parsing(name: str, job: Job) -> Iterator[None]:
    """Translate every exception of a parse to ParseFailed."""
    try:
        yield
    except ConnectorError as error:
        raise ParseFailed(_clean(error, job)) from None
    except Exception as error:
        raise ParseFailed(f"The connector {name} could not read the feed ({type(error).__name__}).") from None


def _public_url(url: str, job: Job) -> str:
    """Return the URL without user, query and fragment, which may hold credentials in any encoding."""
    parts = urlsplit(url)
    return _redact(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")), job)


def _clean(error: Exception, job: Job) -> str:
    """Return the error's message as one bounded line, with every value of the credentials hidden."""
    text = _redact(" ".join(str(error).split()), job)[:500] or type(error).__name__
    return text[:1].upper() + text[1:]


def _redact(text: str, job: Job) -> str:
    """Return the text with every value of the credentials hidden in all usual encodings."""
    for secret in sorted(_secrets(job.credentials or {}), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _secrets(credentials: Mapping[str, Any]) -> Iterator[str]:
    for value in credentials.values():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and len(value) >= _SHORTEST_SECRET:
            yield from {value, quote(value, safe=""), quote_plus(value), repr(value)[1:-1]}


def _teller(sheet: str | None, reported: Callable[[Problem], None]) -> Tell:
    """Return a function that reports an oversized value as a problem."""
    return lambda detail, line, column: reported(Problem("row", ProblemKind.TOO_LONG, detail, line, column, sheet))


def _problem(report: sdk_tables.Report) -> Problem:
    return Problem("row", ProblemKind.UNREADABLE, report.detail, report.line, report.column, report.sheet)
