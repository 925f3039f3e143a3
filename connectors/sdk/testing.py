"""Contract tests of connectors, which pytest runs for each subclass of ConnectorContract."""

import asyncio
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema_rs

from .errors import BadData, ConnectorError, Refused, RetryLater
from .fakes import NOON, FakeContext, FakeHttp, FakeResponse, Headers, RecordedRequest, StubResponse
from .spec import API, KINDS, STREAMS, ConnectorSpec, StockChecker, StockCheckItem
from .tables import Table, is_declarable_field

__all__ = [
    "NOON",
    "ConnectorContract",
    "ConnectorExample",
    "FakeContext",
    "FakeHttp",
    "FakeResponse",
    "Headers",
    "RecordedRequest",
    "StockCheckItem",
    "StubResponse",
    "parse_snapshot",
    "run_fetch",
    "run_stock_check",
    "temporary_snapshot",
]

_CELLS = "text, whole numbers, Decimal, bool, None, and lists and dicts of these"
_MAX_VALUE_CHARS = 500
_MAX_STOCK_CHECK_REQUESTS = 5


def run_fetch(spec: ConnectorSpec, ctx: FakeContext) -> bytes:
    """Fetch with a connector and return the whole snapshot. Raises ConnectorError."""

    async def run() -> bytes:
        async with spec.open().fetch(ctx) as fetched:
            return b"".join([chunk async for chunk in fetched.chunks])

    return asyncio.run(run())


def run_stock_check(spec: ConnectorSpec, ctx: FakeContext, item: StockCheckItem) -> bytes:
    """Check the stock of one item with a connector and return the whole snapshot. Raises ConnectorError."""

    async def run() -> bytes:
        connector: Any = spec.open()
        checks = isinstance(connector, StockChecker)
        _check(
            checks,
            "ConnectorSpec.open, because can_check_stock is set",
            "a connector with the method fetch_stock",
            connector,
        )
        async with connector.fetch_stock(ctx, item) as fetched:
            return b"".join([chunk async for chunk in fetched.chunks])

    return asyncio.run(run())


def parse_snapshot(
    spec: ConnectorSpec, ctx: FakeContext, snapshot: bytes
) -> list[tuple[Table, list[tuple[int, list[Any]]]]]:
    """Parse a snapshot with a connector and return its tables, each with a list of its rows. Raises BadData."""
    with temporary_snapshot(snapshot) as path:
        return [(table, list(table.rows)) for table in spec.open().parse_tables(ctx, path)]


@contextmanager
def temporary_snapshot(snapshot: bytes) -> Iterator[Path]:
    """Store a snapshot in a temporary file for the duration of the context, and yield the file's path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        path.write_bytes(snapshot)
        yield path


@dataclass(frozen=True, slots=True)
class ConnectorExample:
    """Test data of a connector: valid settings and credentials, and the responses of its source.

    Attributes:
        spec: Description of the connector.
        config: Settings of the source.
        credentials: Credentials of the source, or None.
        responses: Responses of the source to a fetch, by URL.
        snapshot: Snapshot that replaces `responses`, for a connector that cannot fetch.
        rows: Expected number of rows of all tables together.
        item: Item for a stock check, for a connector that supports stock checks.
        stock_responses: Responses of the source to the stock check, by URL.
    """

    spec: ConnectorSpec
    config: Mapping[str, Any] = field(default_factory=dict)
    credentials: Mapping[str, Any] | None = None
    responses: Mapping[str, StubResponse | Sequence[StubResponse]] = field(default_factory=dict)
    snapshot: bytes | None = None
    rows: int = 1
    item: StockCheckItem | None = None
    stock_responses: Mapping[str, StubResponse | Sequence[StubResponse]] = field(default_factory=dict)


class ConnectorContract:
    """Contract tests that every connector must pass. A subclass sets `example`, the test data of one connector."""

    example: ConnectorExample

    @property
    def spec(self) -> ConnectorSpec:
        """Connector under test."""
        return self.example.spec

    def build_context(self, http: FakeHttp | None = None) -> FakeContext:
        """Return a new context with the settings and credentials of the example."""
        client = http or FakeHttp(self.example.responses)
        return FakeContext(config=self.example.config, credentials=self.example.credentials, http=client)

    def load_snapshot(self) -> bytes:
        """Return the snapshot to parse: the example's or, if that is None, a fetched one."""
        if self.example.snapshot is not None:
            return self.example.snapshot
        context = self.build_context()
        try:
            return run_fetch(self.spec, context)
        except ConnectorError as error:
            urls = [request.url for request in context.http.requests]
            error.add_note(f"The example answers {[*self.example.responses]}; the connector requested {urls}.")
            raise

    def find_fetch_error(self, response: StubResponse) -> ConnectorError | None:
        """Fetch and parse while the source sends the same response to every request; return the error, or None.

        An error that is not a ConnectorError fails the test.

        Args:
            response: The response of the source to every request.
        """
        context = self.build_context(FakeHttp(always=response))
        try:
            parse_snapshot(self.spec, context, run_fetch(self.spec, context))
        except ConnectorError as error:
            return error
        except Exception as error:
            label = f"A source whose response is HTTP {response.status} with {response.content_type}"
            raise AssertionError(_format_failure(label, "an error of joinery_sdk", error)) from error
        return None

    def test_description(self) -> None:
        """Check that the ConnectorSpec is valid, settings are described, and the example conforms to the schemas."""
        spec = self.spec
        _check(spec.api == API, "ConnectorSpec.api", API, spec.api)
        named = re.fullmatch(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*", spec.name) is not None
        _check(named, "ConnectorSpec.name", "lower-case letters, digits and single dashes", spec.name)
        _check(bool(spec.title.strip()), "ConnectorSpec.title", "a human-readable title", spec.title)
        for name, values, known in (("kinds", spec.kinds, KINDS), ("streams", spec.streams, STREAMS)):
            some = bool(values) and values <= known
            _check(some, f"ConnectorSpec.{name}", f"one or more of {', '.join(sorted(known))}", sorted(values))
        checker = isinstance(spec.open(), StockChecker) and spec.can_fetch
        _check(
            checker or not spec.can_check_stock,
            "ConnectorSpec.can_check_stock",
            "only for connectors that fetch and check",
            spec.can_check_stock,
        )
        both = sorted(spec.address_settings & spec.neutral_settings)
        _check(not both, "ConnectorSpec.address_settings and neutral_settings", "disjoint settings", both)
        _check_schema("config_schema", spec.config_schema, "ConnectorExample.config", self.example.config)
        if self.example.credentials is not None:
            _check_schema(
                "credentials_schema", spec.credentials_schema, "ConnectorExample.credentials", self.example.credentials
            )

    def test_repeated_calls(self) -> None:
        """Check that a second fetch and a second parsing give equal results, because a connector keeps no state."""
        snapshot, again = self.load_snapshot(), self.load_snapshot()
        _check(snapshot == again, "Fetching twice", f"the same {len(snapshot)} bytes", again)
        first, second = (
            [rows for _, rows in parse_snapshot(self.spec, self.build_context(), snapshot)] for _ in range(2)
        )
        _check(first == second, "Reading one snapshot twice", f"the same rows, {_shorten(first)}", second)

    def test_rows(self) -> None:
        """Check that rows have one cell per header, line numbers ascend, no cell is a float, and fields are valid."""
        tables = parse_snapshot(self.spec, self.build_context(), self.load_snapshot())
        count = sum(len(rows) for _, rows in tables)
        _check(count == self.example.rows, "Rows of all tables", f"{self.example.rows} (ConnectorExample.rows)", count)
        for number, (table, rows) in enumerate(tables, start=1):
            where = f"Table {number}" if table.sheet is None else f"Table {number} ({table.sheet})"
            _check_table(where, table)
            lines = [line for line, _ in rows]
            rising = lines == sorted(lines) and all(line >= 1 for line in lines)
            _check(rising, f"{where}, lines of its rows", "ascending line numbers, starting at 1 or later", lines)
            for line, cells in rows:
                _check_row(f"{where}, line {line}", table.headers, cells)

    def test_parsing_without_network(self) -> None:
        """Check that a snapshot can be parsed without a network."""
        http = FakeHttp(always=StubResponse(status=500))
        parse_snapshot(self.spec, self.build_context(http), self.load_snapshot())
        _check(
            not http.requests, "Reading a snapshot", "no request", [f"{one.method} {one.url}" for one in http.requests]
        )

    def test_refusals(self) -> None:
        """Check that a fetch raises the right error at each HTTP error status, without credentials in the message.

        The errors are Refused at 401 and 403, RetryLater at 429 and 503, and any ConnectorError at 404 and 500.
        """
        if self.spec.can_fetch:
            self._check_statuses("from the source", self.find_fetch_error)

    def test_stock_check(self) -> None:
        """Check that a stock check sends 1 to 5 requests, never waits, is repeatable, and returns a row of the item."""
        if not self.spec.can_check_stock:
            return
        item, http = self._require_item(), FakeHttp(self.example.stock_responses)
        context = replace(self.build_context(http), stream="stock")
        snapshot = run_stock_check(self.spec, context, item)
        some = 1 <= len(http.requests) <= _MAX_STOCK_CHECK_REQUESTS
        _check(
            some,
            "Requests of a stock check",
            f"1 to {_MAX_STOCK_CHECK_REQUESTS}",
            [request.url for request in http.requests],
        )
        _check(
            context.slept == 0,
            "Wait time of a stock check",
            "0 seconds, because the caller waits for the result",
            context.slept,
        )
        again = run_stock_check(
            self.spec, replace(self.build_context(FakeHttp(self.example.stock_responses)), stream="stock"), item
        )
        _check(snapshot == again, "Checking twice", f"the same {len(snapshot)} bytes", again)
        offline = replace(self.build_context(FakeHttp(always=StubResponse(status=500))), stream="stock")
        tables = parse_snapshot(self.spec, offline, snapshot)
        for number, (table, rows) in enumerate(tables, start=1):
            _check_table(f"Table {number} of a stock check", table)
            for line, cells in rows:
                _check_row(f"Table {number} of a stock check, line {line}", table.headers, cells)
        keys = [key for table, rows in tables for key in _collect_keys(table, rows)]
        named = item.variant_key in keys or (item.sku is not None and item.sku in keys)
        _check(named, "Rows of a stock check", f"one of {item}", keys)

    def test_stock_check_refusals(self) -> None:
        """Check that a stock check raises the right error at each HTTP error status, and rejects a web page.

        The errors are the same as in `test_refusals`.
        """
        if self.spec.can_check_stock:
            self._check_statuses("to a stock check", self.find_stock_check_error)
            page = StubResponse(b"<!DOCTYPE html><html><body>Please sign in</body></html>", content_type="text/html")
            error = self.find_stock_check_error(page)
            _check(error is not None, "A web page in place of an item's stock", "a ConnectorError", "no error")

    def find_stock_check_error(self, response: StubResponse) -> ConnectorError | None:
        """Check stock while the source sends the same response to every request; return the error, or None.

        An error that is not a ConnectorError fails the test.

        Args:
            response: The response of the source to every request.
        """
        context = replace(self.build_context(FakeHttp(always=response)), stream="stock")
        try:
            parse_snapshot(self.spec, context, run_stock_check(self.spec, context, self._require_item()))
        except ConnectorError as error:
            return error
        except Exception as error:
            label = f"A stock check whose response is HTTP {response.status} with {response.content_type}"
            raise AssertionError(_format_failure(label, "an error of joinery_sdk", error)) from error
        return None

    def _require_item(self) -> StockCheckItem:
        item = self.example.item
        if item is None:
            _check(
                False,
                "ConnectorExample.item, because ConnectorSpec.can_check_stock is set",
                "a StockCheckItem, and ConnectorExample.stock",
                "None",
            )
            raise AssertionError
        return item

    def _check_statuses(self, context: str, failure: Callable[[StubResponse], ConnectorError | None]) -> None:
        failed = {404: ConnectorError, 500: ConnectorError}
        expected = {401: Refused, 403: Refused, 429: RetryLater, 503: RetryLater}
        for status, kind in {**failed, **expected}.items():
            error = failure(StubResponse(b"{}", status=status, headers={"Retry-After": "30"}))
            actual = "no error" if error is None else repr(error)
            hidden = not any(secret in actual for secret in _list_secrets(self.example.credentials))
            _check(
                hidden, f"The message of HTTP {status}", "no value of the credentials", "a message with such a value"
            )
            _check(isinstance(error, kind), f"HTTP {status} {context}", kind.__name__, actual)
            if isinstance(error, RetryLater):
                later = NOON + timedelta(seconds=30)
                _check(error.until == later, f"RetryLater.until at HTTP {status}, Retry-After 30", later, error.until)

    def test_web_page(self) -> None:
        """Check that a web page with status 200 is never parsed as a feed."""
        page = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please sign in</body></html>"
        if not self.spec.can_fetch:
            self._check_rejected("a web page", page)
            return
        error = self.find_fetch_error(StubResponse(page, content_type="text/html"))
        _check(
            error is not None, "A web page in place of the feed", "a ConnectorError", "no error, the page was parsed"
        )

    def test_bad_snapshots(self) -> None:
        """Check that an empty file raises BadData, and that damaged snapshots raise no error other than BadData."""
        self._check_rejected("an empty file", b"")
        self._check_no_crash("noise", bytes(range(256)) * 8)
        self._check_no_crash("zero bytes", b"\0" * 2000)
        self._check_no_crash("truncated JSON", b'{"a": [1, 2')
        self._check_no_crash("the snapshot without its last 7 bytes", self.load_snapshot()[:-7])

    def _check_rejected(self, case: str, snapshot: bytes) -> None:
        rows, error = self._parse_or_fail(case, snapshot, "BadData")
        _check(error is not None, f"Reading {case}", "BadData", f"no error, and {rows} rows")
        _check(bool(str(error)), f"Reading {case}", "BadData with a message", "BadData without one")

    def _check_no_crash(self, case: str, snapshot: bytes) -> None:
        self._parse_or_fail(case, snapshot, "rows or BadData")

    def _parse_or_fail(self, case: str, snapshot: bytes, expected: str) -> tuple[int, BadData | None]:
        """Parse a snapshot; return the number of rows and None, or 0 and the BadData. Other errors fail the test.

        Args:
            case: The name of the test case in the failure message, such as "an empty file".
            snapshot: The contents of the snapshot.
            expected: The expected result in the failure message, such as "rows or BadData".
        """
        try:
            return sum(len(rows) for _, rows in parse_snapshot(self.spec, self.build_context(), snapshot)), None
        except BadData as error:
            return 0, error
        except Exception as error:
            raise AssertionError(_format_failure(f"Reading {case}", expected, error)) from error


def _check(holds: bool, label: str, expected: object, actual: object) -> None:
    """Raise AssertionError with the expected and the actual value, unless `holds`.

    Args:
        holds: Whether the expectation is met.
        label: What was examined, the first line of the failure message.
        expected: The expected value.
        actual: The actual value.
    """
    __tracebackhide__ = True  # and no plain assert, which pytest does not explain in an installed package
    if not holds:
        raise AssertionError(_format_failure(label, expected, actual))


def _format_failure(label: str, expected: object, actual: object) -> str:
    return f"{label}\n  expected: {expected}\n  actual: {_shorten(actual)}"


def _shorten(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}… ({len(text):,} characters)"


def _check_schema(name: str, schema: Mapping[str, Any] | None, label: str, values: Mapping[str, Any]) -> None:
    __tracebackhide__ = True
    if schema is None:
        _check(False, f"ConnectorSpec.{name}", f"a JSON Schema, because {label} is set", "None")
        return
    kind = schema.get("type")
    _check(kind == "object", f"ConnectorSpec.{name}", "a JSON Schema of type object", f"type {kind!r}")
    silent = [name for name, setting in schema.get("properties", {}).items() if not setting.get("description")]
    _check(not silent, f"ConnectorSpec.{name}", "a description of every setting", f"no description of {silent}")
    try:
        validator = jsonschema_rs.Draft202012Validator(dict(schema))
    except ValueError as error:
        raise AssertionError(_format_failure(f"ConnectorSpec.{name}", "a valid JSON Schema", str(error))) from None
    faults = [
        f"{'.'.join(map(str, error.instance_path)) or 'the whole object'}: {error.kind.name}"
        for error in validator.iter_errors(dict(values))
    ]
    _check(not faults, label, f"settings that {name} accepts", "; ".join(faults))


def _check_table(label: str, table: Table) -> None:
    __tracebackhide__ = True
    _check(bool(table.headers), f"{label}, headers", "one or more headers", table.headers)
    blank = [header for header in table.headers if not isinstance(header, str) or not header]
    _check(not blank, f"{label}, headers", "headers that are not empty", blank)
    if table.fields is not None:
        expected = f"{len(table.headers)}, as many as headers"
        _check(len(table.fields) == len(table.headers), f"{label}, number of fields", expected, len(table.fields))
        unknown = [entry for entry in table.fields if entry is not None and not is_declarable_field(entry)]
        _check(
            not unknown,
            f"{label}, fields",
            "names in joinery_sdk.DECLARED_FIELDS or their subfields, such as dimensions.width",
            unknown,
        )


def _check_row(label: str, headers: Sequence[str], cells: Sequence[object]) -> None:
    __tracebackhide__ = True
    _check(len(cells) == len(headers), f"{label}, cells", f"{len(headers)}, one per header", len(cells))
    for header, cell in zip(headers, cells, strict=True):
        if not _is_cell(cell):
            _check(False, f"{label}, column {header}", _CELLS, f"{_shorten(cell)} ({type(cell).__name__})")


def _is_cell(cell: object) -> bool:
    if isinstance(cell, list):
        return all(_is_cell(element) for element in cell)
    if isinstance(cell, dict):
        return all(isinstance(key, str) and _is_cell(value) for key, value in cell.items())
    return cell is None or isinstance(cell, (str, int, bool, Decimal))


def _collect_keys(table: Table, rows: Sequence[tuple[int, Sequence[object]]]) -> list[object]:
    """Return the cells of all rows in the columns with the field variant_key or sku.

    If `table.fields` is None, return the cells of all columns.
    """
    fields = table.fields or [None] * len(table.headers)
    indices = [at for at, field in enumerate(fields) if table.fields is None or field in ("variant_key", "sku")]
    return [cells[at] for _, cells in rows for at in indices]


def _list_secrets(credentials: Mapping[str, Any] | None) -> list[str]:
    return [value for value in (credentials or {}).values() if isinstance(value, str) and len(value) > 3]
