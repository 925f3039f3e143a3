"""Messages of the contract suite about faulty connectors, with expected and actual values."""

import json
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from connectors.sdk import BadData, ConnectorSpec, Fetched, Refused, RetryLater, Table, Unreachable
from connectors.sdk.fetching import stream_file
from connectors.sdk.responses import raise_for_status
from connectors.sdk.testing import ConnectorContract, ConnectorExample, FakeHttp, StockCheckItem, StubResponse

URL = "https://api.odd.example/items"
TOKEN = "not-a-real-token"
ANSWERS = {URL: StubResponse(b'[{"sku": "A", "price": 1}, {"sku": "B", "price": 2}]')}


def parse_items(items: Any) -> Iterator[Table]:
    """Yield the table of a correct connector."""
    rows = ((number, [item.get("sku"), item.get("price")]) for number, item in enumerate(items, start=1))
    yield Table(None, ("sku", "price"), rows, ("sku", "price@currency=eur"))


class ConfigurableConnector:
    """Correct connector with configurable deviations."""

    def __init__(self, make: Callable[[Any], Iterator[Table]] = parse_items, **ways: Any) -> None:
        self.parse, self.overrides = make, ways

    def fetch(self, ctx: Any) -> Any:
        """Request the items."""
        return self.overrides["fetch"](ctx) if "fetch" in self.overrides else stream_file(ctx, URL, {})

    def parse_tables(self, ctx: Any, path: Path) -> Iterator[Table]:
        """Parse the items."""
        try:
            items = json.loads(path.read_bytes())
        except ValueError:
            if "broken" in self.overrides:
                yield from self.overrides["broken"]()
                return
            raise BadData("this is no JSON") from None
        yield from self.parse(items)


SPEC = ConnectorSpec(
    name="odd",
    title="Odd",
    kinds=frozenset({"api"}),
    streams=frozenset({"stock"}),
    can_fetch=True,
    config_schema={"type": "object", "properties": {"page": {"type": "integer", "description": "Which."}}},
    credentials_schema={"type": "object", "properties": {"token": {"type": "string", "description": "Yours."}}},
    open=ConfigurableConnector,
)


def create_suite(spec: ConnectorSpec = SPEC, **changes: Any) -> ConnectorContract:
    """Create the suite with the example."""
    contract = ConnectorContract()
    contract.example = replace(
        ConnectorExample(spec=spec, config={"page": 1}, credentials={"token": TOKEN}, responses=ANSWERS, rows=2),
        **changes,
    )
    return contract


def create_spec(*make: Any, **ways: Any) -> ConnectorSpec:
    """Create the spec of a connector with deviations."""
    return replace(SPEC, open=lambda: ConfigurableConnector(*make, **ways))


def catch_failure(test: Callable[[], None]) -> str:
    """Return the failure message of a test of the suite."""
    with pytest.raises(AssertionError) as caught:
        test()
    return str(caught.value)


def test_a_correct_connector_passes() -> None:
    contract = create_suite()
    tests = [name for name in dir(contract) if name.startswith("test_")]
    assert len(tests) == 9
    for name in tests:
        getattr(contract, name)()


@pytest.mark.parametrize(
    ("change", "expected", "came"),
    [
        ({"api": 1}, "ConnectorSpec.api\n  expected: 2", "1"),
        ({"name": "Odd One"}, "ConnectorSpec.name\n  expected: lower-case letters", "Odd One"),
        ({"title": " "}, "ConnectorSpec.title\n  expected: a human-readable title", " "),
        ({"kinds": frozenset({"ftp"})}, "kinds\n  expected: one or more of api, file, mail, push, url", "['ftp']"),
        ({"streams": frozenset()}, "streams\n  expected: one or more of catalogue, stock", "[]"),
        ({"address_settings": frozenset("a"), "neutral_settings": frozenset("a")}, "address_settings and neutral_settings\n  expected: disjoint", "['a']"),
        ({"config_schema": {"type": "array"}}, "config_schema\n  expected: a JSON Schema of type object", "type 'array'"),
        ({"config_schema": {"type": "object", "properties": {"page": {}}}}, "expected: a description", "no description of ['page']"),
        ({"config_schema": {"type": "object", "required": ["url"]}}, "ConnectorExample.config\n  expected: settings", "the whole object: required"),
        ({"config_schema": {"type": "object", "properties": {"page": {"type": "string", "description": "P"}}}},
         "ConnectorExample.config\n  expected: settings that config_schema accepts", "page: type"),
        ({"config_schema": {"type": "object", "required": 3}}, "config_schema\n  expected: a valid JSON Schema", ""),
        ({"credentials_schema": None}, "credentials_schema\n  expected: a JSON Schema, because ConnectorExample.cred", "None"),
    ],
)  # fmt: skip
def test_descriptions(change: dict[str, Any], expected: str, came: str) -> None:
    text = catch_failure(create_suite(replace(SPEC, **change)).test_description)
    assert expected in text
    assert f"\n  actual: {came}" in text


def create_table_spec(headers: tuple[str, ...], rows: list[Any], given: Any = None) -> ConnectorSpec:
    """Create the spec of a connector with the table, in a sheet."""
    return create_spec(lambda _: iter([Table("Stock", headers, iter(rows), given)]))


@pytest.mark.parametrize(
    ("spec", "expected", "came"),
    [
        (create_table_spec(("a",), [(1, ["x"])]), "Rows of all tables\n  expected: 2 (ConnectorExample.rows)", "1"),
        (create_table_spec((), [(1, []), (2, [])]), "Table 1 (Stock), headers\n  expected: one or more", "()"),
        (create_table_spec(("",), [(1, [1]), (2, [1])]), "headers\n  expected: headers that are not empty", "['']"),
        (create_table_spec(("a",), [(1, [1]), (2, [1])], ()), "number of fields\n  expected: 1, as many as headers", "0"),
        (create_table_spec(("a",), [(1, [1]), (2, [1])], ("prize",)), "fields\n  expected: names in joinery_sdk.DECLARED", "['prize']"),
        (create_table_spec(("a",), [(1, [1]), (2, [1])], ("dimensions.widht",)), "fields\n  expected: names in", "['dimensions.widht']"),
        (create_table_spec(("a",), [(2, [1]), (1, [1])]), "lines of its rows\n  expected: ascending line numbers", "[2, 1]"),
        (create_table_spec(("a",), [(0, [1]), (1, [1])]), "lines of its rows\n  expected: ascending line numbers", "[0, 1]"),
        (create_table_spec(("a", "b"), [(1, [1, 2]), (2, [1])]), "Table 1 (Stock), line 2, cells\n  expected: 2, one per header", "1"),
        (create_table_spec(("a",), [(1, [1]), (7, [49.9])]), "line 7, column a\n  expected: text, whole numbers, Decimal", "49.9 (float)"),
        (create_table_spec(("a",), [(1, [1]), (7, [{"w": 0.5}])]), "line 7, column a\n  expected: text", "{'w': 0.5} (dict)"),
    ],
)  # fmt: skip
def test_rows(spec: ConnectorSpec, expected: str, came: str) -> None:
    text = catch_failure(create_suite(spec).test_rows)
    assert expected in text
    assert f"\n  actual: {came}" in text


def test_state_that_is_kept() -> None:
    kept: list[int] = []

    def more(items: Any) -> Iterator[Table]:
        kept.append(1)
        return iter([Table(None, ("n",), iter([(1, [len(kept)])]))])

    assert "the same rows, [[(1, [1])]]\n  actual: [[(1, [2])]]" in catch_failure(
        create_suite(create_spec(more)).test_repeated_calls
    )

    @asynccontextmanager
    async def fetch(ctx: Any) -> Any:
        kept.append(1)
        async with FakeHttp(always=StubResponse(b"[%d]" % len(kept))).get(URL) as answer:
            yield Fetched(answer.status, answer.chunks)

    kept.clear()
    text = catch_failure(create_suite(create_spec(fetch=fetch)).test_repeated_calls)
    assert text == "Fetching twice\n  expected: the same 3 bytes\n  actual: b'[2]'"


def test_requests_during_parsing_are_refused() -> None:
    class Requesting(ConfigurableConnector):
        """A connector that sends a request while it reads."""

        def parse_tables(self, ctx: Any, path: Path) -> Iterator[Table]:
            """Send a request."""
            ctx.http._find_reply("GET", URL, {}, None)
            return super().parse_tables(ctx, path)

    text = catch_failure(create_suite(replace(SPEC, open=Requesting)).test_parsing_without_network)
    assert text == f"Reading a snapshot\n  expected: no request\n  actual: ['GET {URL}']"


def create_failing_spec(error: Exception | None) -> ConnectorSpec:
    """Create the spec of a connector that ignores the response: it raises the error, or accepts any response."""

    @asynccontextmanager
    async def fetch(ctx: Any) -> Any:
        async with ctx.http.get(URL) as answer:
            if error is not None:
                raise error
            yield Fetched(answer.status, answer.chunks)

    return create_spec(fetch=fetch)


ITEM = StockCheckItem("A", "A")


class CheckingConnector(ConfigurableConnector):
    """Connector with configurable stock checks; `stock` is the snapshot."""

    def fetch_stock(self, ctx: Any, item: StockCheckItem) -> Any:
        """Send the configured number of requests, and yield the stock."""

        @asynccontextmanager
        async def answering() -> Any:
            found = self.overrides.get("stock")
            for _ in range(self.overrides.get("times", 1)):
                async with ctx.http.get(URL) as answer:
                    raise_for_status(answer, ctx)
                    found = found or answer.chunks
            await ctx.sleep(self.overrides.get("wait", 0))
            yield Fetched(200, found)

        return answering()


def create_checking_suite(
    example: Any = MappingProxyType({"item": ITEM, "stock_responses": ANSWERS}), **ways: Any
) -> ConnectorContract:
    """Create the suite of a connector with the stock check."""
    return create_suite(replace(SPEC, open=lambda: CheckingConnector(**ways), can_check_stock=True), **example)


def test_stock_checks() -> None:
    good = create_checking_suite()
    for name in ("test_description", "test_stock_check"):
        getattr(good, name)()
    assert "ConnectorSpec.can_check_stock\n  expected: only for" in catch_failure(
        create_suite(replace(SPEC, can_check_stock=True)).test_description
    )
    assert "expected: a connector with the method fetch_stock" in catch_failure(
        create_suite(replace(SPEC, can_check_stock=True), item=ITEM).test_stock_check
    )
    assert (
        "ConnectorExample.item, because ConnectorSpec.can_check_stock is set\n  expected: a StockCheckItem"
        in catch_failure(create_checking_suite({}).test_stock_check)
    )
    assert "Requests of a stock check\n  expected: 1 to 5" in catch_failure(
        create_checking_suite(times=6).test_stock_check
    )
    assert (
        "Wait time of a stock check\n  expected: 0 seconds, because the caller waits for the result\n  actual: 30"
        in catch_failure(create_checking_suite(wait=30).test_stock_check)
    )
    other = create_checking_suite({"item": StockCheckItem("C", "C"), "stock_responses": ANSWERS})
    assert "Rows of a stock check\n  expected: one of StockCheckItem" in catch_failure(other.test_stock_check)
    assert "HTTP 404 to a stock check\n  expected: ConnectorError" in catch_failure(
        create_suite(
            replace(
                SPEC,
                open=lambda: CheckingConnector(lambda _: iter([]), stock=stream_chunks(b"[]"), times=0),
                can_check_stock=True,
            ),
            item=ITEM,
        ).test_stock_check_refusals
    )


async def stream_chunks(content: bytes) -> Any:
    """Yield the content in one chunk."""
    yield content


def test_refusals() -> None:
    assert "HTTP 404 from the source\n  expected: ConnectorError\n  actual: no error" in catch_failure(
        create_suite(create_spec(lambda _: iter([]), fetch=create_failing_spec(None).open().fetch)).test_refusals
    )
    assert "HTTP 401 from the source\n  expected: Refused\n  actual: Unreachable('no')" in catch_failure(
        create_suite(create_failing_spec(Unreachable("no"))).test_refusals
    )
    assert "HTTP 429 from the source\n  expected: RetryLater\n  actual: Refused('no')" in catch_failure(
        create_suite(create_failing_spec(Refused("no"))).test_refusals
    )


def test_errors_outside_the_sdk_are_refused() -> None:
    text = catch_failure(create_suite(create_failing_spec(KeyError("account"))).test_refusals)
    assert (
        text
        == "A source whose response is HTTP 404 with application/json\n  expected: an error of joinery_sdk\n  actual: KeyError('account')"
    )


def test_a_wait_time_that_is_not_forwarded() -> None:
    class ConnectorWithoutWaitTime(ConfigurableConnector):
        """Distinguishes the kinds of errors but omits the wait time."""

        def fetch(self, ctx: Any) -> Any:
            """Fail by the status."""

            @asynccontextmanager
            async def run() -> Any:
                async with ctx.http.get(URL) as answer:
                    raise (Refused if answer.status in (401, 403) else RetryLater)("so")
                    yield

            return run()

    text = catch_failure(create_suite(replace(SPEC, open=ConnectorWithoutWaitTime)).test_refusals)
    assert text.startswith("RetryLater.until at HTTP 404, Retry-After 30\n  expected: 2026-11-20 12:00:30+00:00")
    assert text.endswith("actual: None")


def test_secrets_are_removed_from_messages() -> None:
    text = catch_failure(create_suite(create_failing_spec(Refused(f"the token {TOKEN} is wrong"))).test_refusals)
    assert text.startswith("The message of HTTP 404\n  expected: no value of the credentials")
    assert TOKEN not in text


def test_a_web_page_that_is_read() -> None:
    assert "A web page in place of the feed\n  expected: a ConnectorError\n  actual: no error" in catch_failure(
        create_suite(
            create_spec(parse_items, broken=lambda: iter([]), fetch=create_failing_spec(None).open().fetch)
        ).test_web_page
    )
    assert "Reading a web page\n  expected: BadData\n  actual: no error, and 0 rows" in catch_failure(
        create_suite(
            replace(create_spec(parse_items, broken=lambda: iter([])), can_fetch=False), snapshot=b"[]"
        ).test_web_page
    )


def test_bad_snapshots() -> None:
    def silent() -> Any:
        raise BadData("")

    def failed() -> Any:
        raise KeyError("items")

    spoilt = create_suite(create_spec(parse_items, broken=lambda: iter([]))).test_bad_snapshots
    assert catch_failure(spoilt) == "Reading an empty file\n  expected: BadData\n  actual: no error, and 0 rows"
    assert "expected: BadData with a message" in catch_failure(
        create_suite(create_spec(parse_items, broken=silent)).test_bad_snapshots
    )
    message = catch_failure(create_suite(create_spec(parse_items, broken=failed)).test_bad_snapshots)
    assert message == "Reading an empty file\n  expected: BadData\n  actual: KeyError('items')"


def test_a_truncated_snapshot_that_fails_otherwise() -> None:
    class Frail(ConfigurableConnector):
        """Takes for granted that a file ends as it should."""

        def parse_tables(self, ctx: Any, path: Path) -> Iterator[Table]:
            """Fail at what is long and broken."""
            if path.stat().st_size > 1_000:
                raise KeyError("items")
            return super().parse_tables(ctx, path)

    text = catch_failure(create_suite(replace(SPEC, open=Frail)).test_bad_snapshots)
    assert text == "Reading noise\n  expected: rows or BadData\n  actual: KeyError('items')"


def test_an_address_without_example_response() -> None:
    with pytest.raises(Unreachable) as caught:
        create_suite(responses={"https://api.odd.example/other": StubResponse(b"[]")}).test_rows()
    assert caught.value.__notes__ == [
        f"The example answers ['https://api.odd.example/other']; the connector requested ['{URL}']."
    ]
