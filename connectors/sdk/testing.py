"""Contract tests of connectors: subclass ConnectorContract, and pytest runs them."""

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
from .fakes import NOON, Asked, FakeAnswer, FakeContext, FakeHttp, FakeResponse, Headers
from .spec import API, KINDS, STREAMS, ConnectorSpec, Item, StockChecker
from .tables import Table, is_given

__all__ = [
    "NOON",
    "Asked",
    "ConnectorContract",
    "Example",
    "FakeAnswer",
    "FakeContext",
    "FakeHttp",
    "FakeResponse",
    "Headers",
    "Item",
    "checked",
    "fetched",
    "read",
    "stored",
]

_CELLS = "text, whole numbers, Decimal, bool, None, and lists and dicts of these"
_SHOWN = 500
_CHECKING = 5
"""How many requests a stock check may take."""


def fetched(spec: ConnectorSpec, ctx: FakeContext) -> bytes:
    """Return the whole snapshot that a connector fetches. Raises ConnectorError."""

    async def run() -> bytes:
        async with spec.open().fetch(ctx) as answer:
            return b"".join([chunk async for chunk in answer.chunks])

    return asyncio.run(run())


def checked(spec: ConnectorSpec, ctx: FakeContext, item: Item) -> bytes:
    """Return the snapshot of a connector's stock check of one item. Raises ConnectorError."""

    async def run() -> bytes:
        connector: Any = spec.open()
        checks = isinstance(connector, StockChecker)
        _check(checks, "ConnectorSpec.open, as checks is set", "a connector with the method check", connector)
        async with connector.check(ctx, item) as answer:
            return b"".join([chunk async for chunk in answer.chunks])

    return asyncio.run(run())


def read(spec: ConnectorSpec, ctx: FakeContext, snapshot: bytes) -> list[tuple[Table, list[tuple[int, list[Any]]]]]:
    """Return every table of a snapshot with its rows. Raises BadData."""
    with stored(snapshot) as path:
        return [(table, list(table.rows)) for table in spec.open().tables(ctx, path)]


@contextmanager
def stored(snapshot: bytes) -> Iterator[Path]:
    """Store the bytes in a temporary file for the duration of the context."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        path.write_bytes(snapshot)
        yield path


@dataclass(frozen=True, slots=True)
class Example:
    """Test data of a connector: valid settings and credentials, and the responses of its source.

    `answers` are by URL; `snapshot` replaces them for a connector that only parses; `rows` is the number of rows in all
    tables. For a connector that checks stock, `item` is the item to check, and `stock` the responses by URL.
    """

    spec: ConnectorSpec
    config: Mapping[str, Any] = field(default_factory=dict)
    credentials: Mapping[str, Any] | None = None
    answers: Mapping[str, FakeAnswer | Sequence[FakeAnswer]] = field(default_factory=dict)
    snapshot: bytes | None = None
    rows: int = 1
    item: Item | None = None
    stock: Mapping[str, FakeAnswer | Sequence[FakeAnswer]] = field(default_factory=dict)


class ConnectorContract:
    """Contract tests of every connector, run on a subclass's example. Failures state the expected and the actual value."""

    example: Example

    @property
    def spec(self) -> ConnectorSpec:
        """Connector under test."""
        return self.example.spec

    def context(self, http: FakeHttp | None = None) -> FakeContext:
        """Return a fresh context of the example."""
        client = http or FakeHttp(self.example.answers)
        return FakeContext(config=self.example.config, credentials=self.example.credentials, http=client)

    def taken(self) -> bytes:
        """Return the snapshot to parse: the example's, or a fetched one."""
        if self.example.snapshot is not None:
            return self.example.snapshot
        context = self.context()
        try:
            return fetched(self.spec, context)
        except ConnectorError as error:
            urls = [request.url for request in context.http.asked]
            error.add_note(f"The example answers {[*self.example.answers]}; the connector requested {urls}.")
            raise

    def failure(self, answer: FakeAnswer) -> ConnectorError | None:
        """Return the error of fetching or parsing if the source always gives this response, or None; fail for other errors."""
        context = self.context(FakeHttp(always=answer))
        try:
            read(self.spec, context, fetched(self.spec, context))
        except ConnectorError as error:
            return error
        except Exception as error:
            subject = f"A source that answers HTTP {answer.status}, {answer.content_type}"
            raise AssertionError(_message(subject, "an error of joinery_sdk", error)) from error
        return None

    def test_description(self) -> None:
        """The description is complete, settings have descriptions, and the example's values are valid by the schemas."""
        spec = self.spec
        _check(spec.api == API, "ConnectorSpec.api", API, spec.api)
        named = re.fullmatch(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*", spec.name) is not None
        _check(named, "ConnectorSpec.name", "lower-case letters, digits and single dashes", spec.name)
        _check(bool(spec.title.strip()), "ConnectorSpec.title", "a title for people", spec.title)
        for name, values, known in (("kinds", spec.kinds, KINDS), ("streams", spec.streams, STREAMS)):
            some = bool(values) and values <= known
            _check(some, f"ConnectorSpec.{name}", f"one or more of {', '.join(sorted(known))}", sorted(values))
        checker = isinstance(spec.open(), StockChecker) and spec.fetches
        _check(
            checker or not spec.checks, "ConnectorSpec.checks", "only for connectors that fetch and check", spec.checks
        )
        both = sorted(spec.addresses & spec.harmless)
        _check(not both, "ConnectorSpec.addresses and harmless", "no setting in both", both)
        _check_schema("config_schema", spec.config_schema, "Example.config", self.example.config)
        if self.example.credentials is not None:
            _check_schema(
                "credentials_schema", spec.credentials_schema, "Example.credentials", self.example.credentials
            )

    def test_same_twice(self) -> None:
        """Fetching and parsing twice gives the same: an opened connector keeps no state."""
        snapshot, again = self.taken(), self.taken()
        _check(snapshot == again, "Fetching twice", f"the same {len(snapshot)} bytes", again)
        first, second = ([rows for _, rows in read(self.spec, self.context(), snapshot)] for _ in range(2))
        _check(first == second, "Reading one snapshot twice", f"the same rows, {_shown(first)}", second)

    def test_rows(self) -> None:
        """Rows fit their headers, line numbers ascend, cells are exact, `given` names known fields."""
        tables = read(self.spec, self.context(), self.taken())
        count = sum(len(rows) for _, rows in tables)
        _check(count == self.example.rows, "Rows of all tables", f"{self.example.rows} (Example.rows)", count)
        for number, (table, rows) in enumerate(tables, start=1):
            where = f"Table {number}" if table.sheet is None else f"Table {number} ({table.sheet})"
            _check_table(where, table)
            lines = [line for line, _ in rows]
            rising = lines == sorted(lines) and all(line >= 1 for line in lines)
            _check(rising, f"{where}, lines of its rows", "from 1 upwards, never falling", lines)
            for line, cells in rows:
                _check_row(f"{where}, line {line}", table.headers, cells)

    def test_snapshot_is_lines(self) -> None:
        """Parsing needs no network: the snapshot is enough."""
        http = FakeHttp(always=FakeAnswer(status=500))
        read(self.spec, self.context(http), self.taken())
        _check(not http.asked, "Reading a snapshot", "no request", [f"{one.method} {one.url}" for one in http.asked])

    def test_refusals(self) -> None:
        """Statuses map to the runner's errors, without any part of the credentials."""
        if self.spec.fetches:
            self._refusals("from the source", self.failure)

    def test_stock_check(self) -> None:
        """A stock check takes few requests, and parses like a snapshot of the stock stream, twice the same."""
        if not self.spec.checks:
            return
        item, http = self._item(), FakeHttp(self.example.stock)
        context = replace(self.context(http), stream="stock")
        snapshot = checked(self.spec, context, item)
        some = 1 <= len(http.asked) <= _CHECKING
        _check(some, "Requests of a stock check", f"1 to {_CHECKING}", [asked.url for asked in http.asked])
        _check(context.slept == 0, "A stock check, for which somebody waits", "no wait", context.slept)
        again = checked(self.spec, replace(self.context(FakeHttp(self.example.stock)), stream="stock"), item)
        _check(snapshot == again, "Checking twice", f"the same {len(snapshot)} bytes", again)
        offline = replace(self.context(FakeHttp(always=FakeAnswer(status=500))), stream="stock")
        tables = read(self.spec, offline, snapshot)
        for number, (table, rows) in enumerate(tables, start=1):
            _check_table(f"Table {number} of a stock check", table)
            for line, cells in rows:
                _check_row(f"Table {number} of a stock check, line {line}", table.headers, cells)
        keys = [key for table, rows in tables for key in _keys(table, rows)]
        named = item.variant_key in keys or (item.sku is not None and item.sku in keys)
        _check(named, "Rows of a stock check", f"one of {item}", keys)

    def test_stock_check_refusals(self) -> None:
        """Statuses of a stock check map to the runner's errors; a web page instead of an item's stock raises ConnectorError."""
        if self.spec.checks:
            self._refusals("to a stock check", self.check_failure)
            page = FakeAnswer(b"<!DOCTYPE html><html><body>Please sign in</body></html>", content_type="text/html")
            error = self.check_failure(page)
            _check(error is not None, "A web page in place of an item's stock", "a ConnectorError", "no error")

    def check_failure(self, answer: FakeAnswer) -> ConnectorError | None:
        """Return the error of a stock check if the source always gives this response, or None; fail for other errors."""
        context = replace(self.context(FakeHttp(always=answer)), stream="stock")
        try:
            read(self.spec, context, checked(self.spec, context, self._item()))
        except ConnectorError as error:
            return error
        except Exception as error:
            subject = f"A stock check that is answered HTTP {answer.status}, {answer.content_type}"
            raise AssertionError(_message(subject, "an error of joinery_sdk", error)) from error
        return None

    def _item(self) -> Item:
        item = self.example.item
        if item is None:
            _check(False, "Example.item, as ConnectorSpec.checks is set", "an Item, and Example.stock", "None")
            raise AssertionError
        return item

    def _refusals(self, where: str, failure: Callable[[FakeAnswer], ConnectorError | None]) -> None:
        failed = {404: ConnectorError, 500: ConnectorError}
        expected = {401: Refused, 403: Refused, 429: RetryLater, 503: RetryLater}
        for status, kind in {**failed, **expected}.items():
            error = failure(FakeAnswer(b"{}", status=status, headers={"Retry-After": "30"}))
            came = "no error" if error is None else repr(error)
            hidden = not any(secret in came for secret in _secrets(self.example.credentials))
            _check(
                hidden, f"The message of HTTP {status}", "no value of the credentials", "one that holds such a value"
            )
            _check(isinstance(error, kind), f"HTTP {status} {where}", kind.__name__, came)
            if isinstance(error, RetryLater):
                later = NOON + timedelta(seconds=30)
                _check(error.until == later, f"RetryLater.until at HTTP {status}, Retry-After 30", later, error.until)

    def test_web_page(self) -> None:
        """A web page with status 200 is never parsed as a feed."""
        page = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please sign in</body></html>"
        if not self.spec.fetches:
            self._refuses("a web page", page)
            return
        error = self.failure(FakeAnswer(page, content_type="text/html"))
        _check(error is not None, "A web page in place of the feed", "a ConnectorError", "no error: it was read")

    def test_bad_snapshots(self) -> None:
        """An empty file, noise and a truncated snapshot raise BadData or give fewer rows; they never raise another error."""
        self._refuses("an empty file", b"")
        self._survives("noise", bytes(range(256)) * 8)
        self._survives("zero bytes", b"\0" * 2000)
        self._survives("JSON that breaks off", b'{"a": [1, 2')
        self._survives("the snapshot without its last 7 bytes", self.taken()[:-7])

    def _refuses(self, what: str, snapshot: bytes) -> None:
        rows, error = self._outcome(what, snapshot, "BadData")
        _check(error is not None, f"Reading {what}", "BadData", f"no error, and {rows} rows")
        _check(bool(str(error)), f"Reading {what}", "BadData with a message", "BadData without one")

    def _survives(self, what: str, snapshot: bytes) -> None:
        self._outcome(what, snapshot, "rows or BadData")

    def _outcome(self, what: str, snapshot: bytes, expected: str) -> tuple[int, BadData | None]:
        """Return the number of rows of a snapshot, or its BadData; fail for other errors."""
        try:
            return sum(len(rows) for _, rows in read(self.spec, self.context(), snapshot)), None
        except BadData as error:
            return 0, error
        except Exception as error:
            raise AssertionError(_message(f"Reading {what}", expected, error)) from error


def _check(holds: bool, what: str, expected: object, came: object) -> None:
    """Fail with the expected and the actual value, as pytest does not explain asserts of an installed package."""
    __tracebackhide__ = True
    if not holds:
        raise AssertionError(_message(what, expected, came))


def _message(what: str, expected: object, came: object) -> str:
    return f"{what}\n  expected: {expected}\n  came: {_shown(came)}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"


def _check_schema(name: str, schema: Mapping[str, Any] | None, of: str, values: Mapping[str, Any]) -> None:
    __tracebackhide__ = True
    if schema is None:
        _check(False, f"ConnectorSpec.{name}", f"a JSON Schema, as there is {of}", "None")
        return
    kind = schema.get("type")
    _check(kind == "object", f"ConnectorSpec.{name}", "a JSON Schema of type object", f"type {kind!r}")
    silent = [name for name, setting in schema.get("properties", {}).items() if not setting.get("description")]
    _check(not silent, f"ConnectorSpec.{name}", "a description of every setting", f"none of {silent}")
    try:
        validator = jsonschema_rs.Draft202012Validator(dict(schema))
    except ValueError as error:
        raise AssertionError(_message(f"ConnectorSpec.{name}", "a valid JSON Schema", str(error))) from None
    faults = [
        f"{'.'.join(map(str, error.instance_path)) or 'the whole'}: {error.kind.name}"
        for error in validator.iter_errors(dict(values))
    ]
    _check(not faults, of, f"settings that are valid by {name}", "; ".join(faults))


def _check_table(where: str, table: Table) -> None:
    __tracebackhide__ = True
    _check(bool(table.headers), f"{where}, headers", "one or more", table.headers)
    blank = [header for header in table.headers if not isinstance(header, str) or not header]
    _check(not blank, f"{where}, headers", "text that is not empty", blank)
    if table.given is not None:
        said = f"{len(table.headers)}, as many as headers"
        _check(len(table.given) == len(table.headers), f"{where}, entries of given", said, len(table.given))
        unknown = [entry for entry in table.given if entry is not None and not is_given(entry)]
        _check(not unknown, f"{where}, given", "fields of joinery_sdk.GIVEN_FIELDS or parts of them", unknown)


def _check_row(where: str, headers: Sequence[str], cells: Sequence[object]) -> None:
    __tracebackhide__ = True
    _check(len(cells) == len(headers), f"{where}, cells", f"{len(headers)}, one a header", len(cells))
    for header, cell in zip(headers, cells, strict=True):
        if not _is_cell(cell):
            _check(False, f"{where}, column {header}", _CELLS, f"{_shown(cell)} ({type(cell).__name__})")


def _is_cell(cell: object) -> bool:
    if isinstance(cell, list):
        return all(_is_cell(element) for element in cell)
    if isinstance(cell, dict):
        return all(isinstance(key, str) and _is_cell(value) for key, value in cell.items())
    return cell is None or isinstance(cell, (str, int, bool, Decimal))


def _keys(table: Table, rows: Sequence[tuple[int, Sequence[object]]]) -> list[object]:
    """Return the cells of columns that key variants, or of all columns if the table has no fields."""
    given = table.given or [None] * len(table.headers)
    places = [at for at, field in enumerate(given) if table.given is None or field in ("variant_key", "sku")]
    return [cells[at] for _, cells in rows for at in places]


def _secrets(credentials: Mapping[str, Any] | None) -> list[str]:
    return [value for value in (credentials or {}).values() if isinstance(value, str) and len(value) > 3]
