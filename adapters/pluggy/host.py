"""Plugin host: runs connectors, and converts the types and errors of the connector SDK to those of the port."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

from adapters.pluggy.allowlist import read_allowlist
from adapters.pluggy.cells import CellReporter, omit_oversized_cells, truncate_headers
from adapters.pluggy.context import ConnectorContext, HostTurnUnavailable, PluginHttpClient, select_client
from adapters.pluggy.loader import LoadedPlugins, PluginReport, ProvidedConnector, load_plugins
from connectors.sdk import context as sdk
from connectors.sdk import spec as sdk_spec
from connectors.sdk import tables as sdk_tables
from connectors.sdk.credentials import iterate_secret_texts
from connectors.sdk.errors import BadData, ConnectorError, Refused, RetryLater
from connectors.sdk.responses import parse_media_type
from connectors.sdk.spec import Fetched
from domain.ingestion.model import FeedTable, Row
from domain.ingestion.ports import (
    ConnectorInfo,
    ConnectorTask,
    FetchFailed,
    FetchResponse,
    HttpValidators,
    ParseFailed,
    ResponseHead,
    StockRequest,
)
from domain.kernel.problems import Problem, ProblemKind

OpenConnector = Callable[[ProvidedConnector, ConnectorContext], AbstractAsyncContextManager[Fetched]]

_ROWS_PER_CHECK = 4_096
_REDACTED = "[hidden]"
_MIN_SECRET_LENGTH = 4
_CHECK_SECONDS = 20.0
_END = object()


def load_connectors(
    plugins_path: Path, http: sdk.HttpClient, *, release_version: str, limits: sdk.Limits | None = None
) -> "PluggyConnectors":
    """Load the permitted plugins and return their connectors. Raises AllowlistError.

    Args:
        plugins_path: Path of plugins.toml, which may not exist.
        http: HTTP client for the connectors' requests.
        release_version: Version of Joinery, which is reported for the built-in connectors.
        limits: Limits of each fetch and parse.
    """
    return PluggyConnectors(
        load_plugins(read_allowlist(plugins_path), release_version=release_version), http, limits=limits
    )


class PluggyConnectors:
    """Connectors of the loaded plugins, an implementation of the port Connectors (domain/ingestion/ports.py).

    Args:
        loaded: The loaded plugins.
        http: HTTP client for the connectors' requests.
        limits: Limits of each fetch and parse.
    """

    def __init__(self, loaded: LoadedPlugins, http: sdk.HttpClient, *, limits: sdk.Limits | None = None) -> None:
        self._loaded = loaded
        self._http = http
        self._limits = limits or sdk.Limits()
        self._infos = {name: _build_info(provided) for name, provided in sorted(loaded.connectors.items())}

    def list_reports(self) -> list[PluginReport]:
        """Return the state of each plugin in plugins.toml, in order, and then of other installed plugins."""
        return list(self._loaded.reports)

    def list_connectors(self) -> Sequence[ConnectorInfo]:
        return list(self._infos.values())

    def find_connector(self, name: str) -> ConnectorInfo | None:
        return self._infos.get(name)

    def fetch(self, name: str, task: ConnectorTask) -> AbstractAsyncContextManager[FetchResponse]:
        def open_connector(
            provided: ProvidedConnector, context: ConnectorContext
        ) -> AbstractAsyncContextManager[Fetched]:
            if not provided.spec.can_fetch:
                raise BadData(
                    f"The connector {name} cannot fetch data. Set another connector, or create a source of kind file or push."
                )
            return provided.spec.open().fetch(context)

        return self._open_fetch(name, task, self._limits, open_connector)

    def fetch_stock(
        self, name: str, task: ConnectorTask, item: StockRequest
    ) -> AbstractAsyncContextManager[FetchResponse]:
        sdk_item = sdk_spec.StockCheckItem(item.product_key, item.variant_key, item.sku)

        def open_connector(
            provided: ProvidedConnector, context: ConnectorContext
        ) -> AbstractAsyncContextManager[Fetched]:
            connector = provided.spec.open()
            if not provided.spec.can_check_stock or not isinstance(connector, sdk_spec.StockChecker):
                raise BadData(f"The connector {name} does not support stock checks. Start a run of the source instead.")
            return connector.fetch_stock(context, sdk_item)

        return self._open_fetch(name, task, _reduce_limits_for_stock_check(self._limits), open_connector)

    @asynccontextmanager
    async def _open_fetch(
        self, name: str, task: ConnectorTask, limits: sdk.Limits, open_connector: OpenConnector
    ) -> AsyncIterator[FetchResponse]:
        """Open a fetch of a connector within the limits, and yield the response. Requests end with the context."""
        deadline = asyncio.get_running_loop().time() + limits.fetch_seconds
        if (provided := self._find_usable(name)) is None:
            raise FetchFailed(
                "parse_failed", f"The connector {name} is not loaded. Ask the operator to check plugins.toml."
            )
        context = self._build_context(provided, task, _ignore_header, limits=limits)
        with _translate_fetch_errors(name, task, context.http):
            fetch = open_connector(provided, context)
            async with asyncio.timeout_at(deadline):
                fetched = await fetch.__aenter__()
        chunks = self._iterate_chunks(name, task, fetched, deadline, context)
        try:
            yield _build_response(fetched, chunks, task)
        finally:
            await chunks.aclose()
            with suppress(Exception):
                await fetch.__aexit__(None, None, None)

    def parse_tables(
        self,
        name: str,
        task: ConnectorTask,
        snapshot: Path,
        score_header: Callable[[Sequence[str]], int],
        report_problem: Callable[[Problem], None],
    ) -> Iterator[FeedTable]:
        provided = self._find_usable(name)
        deadline = monotonic() + self._limits.parse_seconds
        with _translate_parse_errors(name, task):
            if provided is None:
                raise BadData(f"The connector {name} is not loaded. Ask the operator to check plugins.toml.")
            context = self._build_context(
                provided, task, score_header, lambda report: report_problem(_convert_report(report))
            )
            found = iter(provided.spec.open().parse_tables(context, snapshot))
        while True:
            with _translate_parse_errors(name, task):
                table = next(found, None)
            if table is None:
                return
            if len(table.headers) > self._limits.columns:
                raise ParseFailed(f"The feed has more than {self._limits.columns:,} columns. Remove unused columns.")
            report_cell = _create_cell_reporter(table.sheet, report_problem)
            headers = truncate_headers(table.headers, report_cell)
            rows = omit_oversized_cells(
                self._iterate_rows(name, task, table, deadline), headers, self._limits, report_cell
            )
            yield FeedTable(table.sheet, headers, rows, table.fields, table.notes[: sdk_tables.MAX_NOTES_CHARS])

    def _find_usable(self, name: str) -> ProvidedConnector | None:
        return self._loaded.connectors.get(name)

    def _build_context(
        self,
        provided: ProvidedConnector,
        task: ConnectorTask,
        score_header: Callable[[Sequence[str]], int],
        reported: Callable[[sdk_tables.Report], None] = lambda _: None,
        *,
        limits: sdk.Limits | None = None,
    ) -> ConnectorContext:
        secrets = frozenset(iterate_secret_texts(task.credentials))
        organisation = task.tenant.org if task.tenant else ""
        return ConnectorContext(
            config=task.config,
            credentials=task.credentials,
            stream=task.stream,
            validators=sdk.Validators(task.validators.etag, task.validators.last_modified),
            http=PluginHttpClient(select_client(self._http, organisation, secrets), provided.hosts, secrets),
            limits=limits or self._limits,
            score_header=score_header,
            report_sink=reported,
        )

    async def _iterate_chunks(
        self, name: str, task: ConnectorTask, fetched: Fetched, deadline: float, context: ConnectorContext
    ) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a snapshot. Raises FetchFailed if it is too large or the deadline has passed."""
        remaining = max_bytes = context.limits.snapshot_bytes
        chunks = aiter(fetched.chunks)
        while True:
            with _translate_fetch_errors(name, task, context.http):
                async with asyncio.timeout_at(deadline):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    return
                remaining -= len(chunk)
                if remaining < 0:
                    raise BadData(
                        f"The feed is larger than {max_bytes // (1024 * 1024)} MiB, the maximum. Provide a smaller feed."
                    )
            yield chunk

    def _iterate_rows(self, name: str, task: ConnectorTask, table: sdk_tables.Table, deadline: float) -> Iterator[Row]:
        """Yield the rows of a table. Raises ParseFailed for too many rows, or if the deadline has passed."""
        # Both are checked every 4,096 rows only, for speed.
        rows = table.rows
        remaining = self._limits.rows
        with _translate_parse_errors(name, task):
            while (first := next(rows, _END)) is not _END:
                yield first  # type: ignore[misc]
                yield from islice(rows, _ROWS_PER_CHECK - 1)
                remaining -= _ROWS_PER_CHECK
                if remaining < 0:
                    raise BadData(f"the feed has more than {self._limits.rows:,} rows; split the feed")
                if monotonic() > deadline:
                    raise BadData("parsing the feed takes too long; split the feed")


def _reduce_limits_for_stock_check(limits: sdk.Limits) -> sdk.Limits:
    """Return the limits of a stock check, whose caller waits for the result: one page, a short time, and no waiting."""
    return replace(
        limits,
        snapshot_bytes=min(limits.snapshot_bytes, limits.page_bytes),
        fetch_seconds=min(limits.fetch_seconds, _CHECK_SECONDS),
        max_wait_seconds=0.0,
    )


def _ignore_header(_: Sequence[str]) -> int:
    return 0


def _build_info(provided: ProvidedConnector) -> ConnectorInfo:
    spec = provided.spec
    values: Any = {item.name: getattr(spec, item.name) for item in fields(ConnectorInfo) if hasattr(spec, item.name)}
    values["can_check_stock"] = spec.can_check_stock and spec.can_fetch
    return ConnectorInfo(**values, distribution=provided.distribution, version=provided.version)


def _build_response(fetched: Fetched, chunks: AsyncIterator[bytes], task: ConnectorTask) -> FetchResponse:
    return FetchResponse(
        status=fetched.status,
        final_url=_strip_url(fetched.final_url, task) if fetched.final_url else None,
        content_type=fetched.content_type,
        filename=fetched.filename,
        served_by=fetched.served_by,
        is_not_modified=fetched.not_modified,
        validators=HttpValidators(fetched.validators.etag, fetched.validators.last_modified),
        chunks=chunks,
    )


@contextmanager
def _translate_fetch_errors(name: str, task: ConnectorTask, http: PluginHttpClient) -> Iterator[None]:
    """Replace each exception of a fetch by FetchFailed, whose message contains no credentials."""
    try:
        yield
    except Exception as error:
        failure = _build_failure(error, name, task)
        if (last := http.last_response) is not None:
            failure.response = ResponseHead(
                last.status, _strip_url(last.final_url, task), parse_media_type(last) or None
            )
        raise failure from None


def _build_failure(error: Exception, name: str, task: ConnectorTask) -> FetchFailed:
    if isinstance(error, RetryLater):
        is_local = isinstance(error, HostTurnUnavailable)
        return FetchFailed(
            "fetch_failed",
            _describe_error(error, task),
            wait_reason=error.reason,
            retry_at=error.until,
            is_throttled_locally=is_local,
        )
    if isinstance(error, ConnectorError):
        return FetchFailed(_select_failure_code(error), _describe_error(error, task))
    if isinstance(error, TimeoutError):
        return FetchFailed("fetch_failed", "Fetching the feed took too long.")
    return FetchFailed("fetch_failed", f"The connector {name} failed ({type(error).__name__}).")


def _select_failure_code(error: ConnectorError) -> str:
    """Return the code of an error for the field `status_reason` of the source (docs/conventions.md#enumerations)."""
    if isinstance(error, Refused):
        return "credentials_refused" if error.is_credentials_error else "fetch_refused"
    return "parse_failed" if isinstance(error, BadData) else "fetch_failed"


@contextmanager
def _translate_parse_errors(name: str, task: ConnectorTask) -> Iterator[None]:
    """Replace each exception of the parsing of a snapshot by ParseFailed."""
    try:
        yield
    except ConnectorError as error:
        raise ParseFailed(_describe_error(error, task)) from None
    except Exception as error:
        raise ParseFailed(f"The connector {name} could not parse the feed ({type(error).__name__}).") from None


def _strip_url(url: str, task: ConnectorTask) -> str:
    """Return the URL without user, query and fragment, which may contain credentials in any encoding."""
    parts = urlsplit(url)
    return _redact(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")), task)


def _describe_error(error: Exception, task: ConnectorTask) -> str:
    """Return the message of an error as one line of at most 500 characters, without values of the credentials."""
    text = _redact(" ".join(str(error).split()), task)[:500] or type(error).__name__
    return text[:1].upper() + text[1:]


def _redact(text: str, task: ConnectorTask) -> str:
    """Return the text with all values of the credentials, in all usual encodings, replaced by `[hidden]`."""
    for secret in sorted(_iterate_secrets(task.credentials or {}), key=len, reverse=True):
        text = text.replace(secret, _REDACTED)
    return text


def _iterate_secrets(credentials: Mapping[str, Any]) -> Iterator[str]:
    for value in credentials.values():
        if isinstance(value, Mapping):
            yield from _iterate_secrets(value)
        elif isinstance(value, str) and len(value) >= _MIN_SECRET_LENGTH:
            yield from {value, quote(value, safe=""), quote_plus(value), repr(value)[1:-1]}


def _create_cell_reporter(sheet: str | None, report: Callable[[Problem], None]) -> CellReporter:
    """Return a function that reports an omitted cell of the worksheet `sheet` as a problem."""
    return lambda detail, line, column: report(Problem("row", ProblemKind.TOO_LONG, detail, line, column, sheet))


def _convert_report(report: sdk_tables.Report) -> Problem:
    return Problem("row", ProblemKind.UNREADABLE, report.detail, report.line, report.column, report.sheet)
