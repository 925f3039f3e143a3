"""Host of connectors: errors are reported, secrets hidden, limits enforced."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.pluggy.allowlist import BUILT_IN
from adapters.pluggy.host import PluggyConnectors
from adapters.pluggy.loader import LoadedPlugins, ProvidedConnector, load_plugins
from connectors.sdk import (
    BadData,
    ConnectorSpec,
    Context,
    Fetched,
    HttpClient,
    Limits,
    Refused,
    RetryLater,
    StockCheckItem,
    Table,
    Unreachable,
    Validators,
)  # fmt: skip
from connectors.sdk.responses import raise_for_status
from connectors.sdk.testing import FakeHttp, StubResponse
from domain.ingestion.ports import Connectors, ConnectorTask, FetchFailed, ParseFailed, ResponseHead, StockRequest
from domain.ingestion.ports import HttpValidators as Known
from domain.kernel.problems import Problem

SECRET = "tok en/9!"
LATER = datetime(2026, 11, 21, tzinfo=UTC)


class ScriptedConnector:
    """Connector with configurable behaviour."""

    def __init__(
        self, fetch: Callable[[Context], AsyncIterator[bytes]] | None = None, rows: Iterable[Any] = ()
    ) -> None:
        self._fetch = fetch
        self._rows = rows

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        assert self._fetch is not None
        yield Fetched(200, self._fetch(ctx), validators=Validators("e", "m"))

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        yield Table(None, ("A",), iter(self._rows), ("sku",))


def create_host(
    connector: ScriptedConnector, http: HttpClient | None = None, hosts: str = "*", **limits: Any
) -> PluggyConnectors:
    """Return a host of the connector, named `one`."""
    spec = ConnectorSpec(
        name="one", title="One", kinds=frozenset({"api"}), streams=frozenset({"catalogue"}), can_fetch=True,
        config_schema={"type": "object"}, open=lambda: connector,
    )  # fmt: skip
    loaded = LoadedPlugins({"one": ProvidedConnector(spec, "acme", "1", frozenset({hosts}))})
    return PluggyConnectors(loaded, http or FakeHttp(), limits=Limits(**limits))


def create_task(**config: Any) -> ConnectorTask:
    """Return a task with a secret."""
    return ConnectorTask(config, {"token": SECRET, "inner": {"pin": "123456"}}, "catalogue")


def fetch_snapshot(connectors: Connectors, name: str = "one", what: ConnectorTask | None = None) -> bytes:
    """Return the fetched bytes."""

    async def run() -> bytes:
        async with connectors.fetch(name, what or create_task()) as answer:
            return b"".join([chunk async for chunk in answer.chunks])

    return asyncio.run(run())


def create_failing_connector(error: BaseException) -> ScriptedConnector:
    """Return a connector whose chunks end with an error."""

    async def chunks(_: Context) -> AsyncIterator[bytes]:
        yield b"x"
        raise error

    return ScriptedConnector(chunks)


@pytest.mark.parametrize(
    ("error", "code", "waiting"),
    [
        (RetryLater("busy", until=LATER), "fetch_failed", "rate_limited"),
        (RetryLater("busy", reason="upstream_busy"), "fetch_failed", "upstream_busy"),
        (Refused("go away"), "fetch_refused", None),
        (Refused("who are you", is_credentials_error=True), "credentials_refused", None),
        (Unreachable("nothing there"), "fetch_failed", None),
        (BadData("what is this"), "parse_failed", None),
        (KeyError("anything"), "fetch_failed", None),
        (TimeoutError(), "fetch_failed", None),
    ],
)
def test_errors_of_fetching(error: BaseException, code: str, waiting: str | None) -> None:
    with pytest.raises(FetchFailed) as caught:
        fetch_snapshot(create_host(create_failing_connector(error)))
    assert (caught.value.code, caught.value.wait_reason) == (code, waiting)
    assert caught.value.retry_at == (LATER if waiting == "rate_limited" else None)


@pytest.mark.parametrize("text", [SECRET, "key=tok%20en%2F9%21", "key=tok+en%2F9%21", "pin 123456"])
def test_secrets_are_hidden(text: str) -> None:
    with pytest.raises(FetchFailed) as caught:
        fetch_snapshot(create_host(create_failing_connector(Unreachable(f"could not ask {text} for it"))))
    assert "[hidden]" in str(caught.value)
    assert "tok" not in str(caught.value)
    assert "123456" not in str(caught.value)
    with pytest.raises(FetchFailed) as caught:
        fetch_snapshot(create_host(create_failing_connector(ValueError(text))))
    assert str(caught.value) == "The connector one failed (ValueError)."
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("kind", "code"), [("refused_address", "fetch_refused"), ("dns", "fetch_failed"), ("too_slow", "fetch_failed")]
)
def test_failures_of_the_client(kind: str, code: str) -> None:
    class Failure(Exception):
        def __init__(self) -> None:
            self.kind = kind
            super().__init__("It came to nothing.")

    class Client(FakeHttp):
        @asynccontextmanager
        async def get(self, url: str, **_: Any) -> AsyncIterator[Any]:
            raise Failure
            yield

    connectors = PluggyConnectors(load_plugins(BUILT_IN, release_version="1"), Client())
    with pytest.raises(FetchFailed) as caught:
        fetch_snapshot(connectors, "csv", ConnectorTask({"url": "https://files.example/a.csv"}, None, "catalogue"))
    assert caught.value.code == code


def test_conditional_fetch() -> None:
    http = FakeHttp(
        {"https://files.example/a.csv": StubResponse(b"SKU\nA\n", content_type="text/csv", headers={"ETag": "e"})}
    )
    connectors: Connectors = PluggyConnectors(load_plugins(BUILT_IN, release_version="1"), http)
    config = {"url": "https://files.example/a.csv"}

    async def run(known: Known) -> tuple[bool, Known, str | None, bytes]:
        async with connectors.fetch("csv", ConnectorTask(config, None, "catalogue", known)) as answer:
            return (
                answer.is_not_modified,
                answer.validators,
                answer.filename,
                b"".join([c async for c in answer.chunks]),
            )

    assert asyncio.run(run(Known())) == (False, Known("e", None), "a.csv", b"SKU\nA\n")
    assert asyncio.run(run(Known("e")))[::3] == (True, b"")


def test_limits_of_fetching() -> None:
    async def endless(_: Context) -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1024 * 1024

    async def stuck(_: Context) -> AsyncIterator[bytes]:
        await asyncio.sleep(60)
        yield b""

    with pytest.raises(FetchFailed, match="larger than 3 MiB"):
        fetch_snapshot(create_host(ScriptedConnector(endless), snapshot_bytes=3 * 1024 * 1024))
    with pytest.raises(FetchFailed, match="too long"):
        fetch_snapshot(create_host(ScriptedConnector(stuck), fetch_seconds=0.05))


def test_hosts_of_a_plugin() -> None:
    seen: list[Any] = []

    class Client(FakeHttp):
        @asynccontextmanager
        async def get(self, url: str, **more: Any) -> AsyncIterator[Any]:
            seen.append(more["hosts"])
            async with super().get(url) as response:
                yield response

    async def fetch_file(ctx: Context) -> AsyncIterator[bytes]:
        async with ctx.http.get("https://b.example/", hosts=frozenset({"b.example"})) as response:
            async for chunk in response.chunks:
                yield chunk

    client = Client(always=StubResponse(b"ok"))
    assert fetch_snapshot(create_host(ScriptedConnector(fetch_file), client, hosts="api.example")) == b"ok"
    assert fetch_snapshot(create_host(ScriptedConnector(fetch_file), client)) == b"ok"
    assert seen == [frozenset({"api.example"}), frozenset({"b.example"})]


def test_rows_are_passed_unchanged(tmp_path: Path) -> None:
    rows = [(number, [str(number)]) for number in range(1, 10_001)]
    (table,) = create_host(ScriptedConnector(rows=iter(rows))).parse_tables(
        "one", create_task(), tmp_path, lambda _: 0, [].append
    )
    assert (table.headers, table.declared_fields) == (("A",), ("sku",))
    walked = list(table.rows)
    assert walked == rows
    assert walked[0] is rows[0]


def test_errors_of_reading(tmp_path: Path) -> None:
    def rows(error: Exception) -> Iterator[Any]:
        yield 1, ["a"]
        raise error

    for error, message in (
        (BadData(f"no: {SECRET}"), "No: \\[hidden\\]"),
        (KeyError(SECRET), "could not parse .*KeyError"),
    ):
        with pytest.raises(ParseFailed, match=message):
            read_rows(create_host(ScriptedConnector(rows=rows(error))), tmp_path)


def test_limits_of_reading(tmp_path: Path) -> None:
    many = [(number, ["a"]) for number in range(1, 9_999)]
    with pytest.raises(ParseFailed, match="more than 4,000 rows"):
        read_rows(create_host(ScriptedConnector(rows=many), rows=4_000), tmp_path)
    with pytest.raises(ParseFailed, match="too long"):
        read_rows(create_host(ScriptedConnector(rows=many), parse_seconds=-1), tmp_path)


def read_rows(connectors: Connectors, path: Path) -> list[Any]:
    """Return the rows of the only table."""
    (table,) = connectors.parse_tables("one", create_task(), path, lambda _: 0, [].append)
    return list(table.rows)


def test_unknown_connectors(tmp_path: Path) -> None:
    connectors = create_host(ScriptedConnector())
    assert connectors.find_connector("two") is None
    assert [info.name for info in connectors.list_connectors()] == ["one"]
    with pytest.raises(FetchFailed):
        fetch_snapshot(connectors, "two")
    with pytest.raises(ParseFailed):
        list(connectors.parse_tables("two", create_task(), tmp_path, len, [].append))


def test_reports(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("SKU,Qty\nA,1,secret value\nB,2\n")
    got: list[Problem] = []
    connectors = PluggyConnectors(load_plugins(BUILT_IN, release_version="1"), FakeHttp())
    for table in connectors.parse_tables("csv", ConnectorTask({}, None, "catalogue"), path, lambda _: 0, got.append):
        assert len(list(table.rows)) == 2
    (problem,) = got
    assert problem.line == 2
    assert "secret value" not in problem.detail


class CheckingConnector(ScriptedConnector):
    """Connector with stock checks."""

    def __init__(self, fetch_item: Callable[[Context, StockCheckItem], AsyncIterator[bytes]]) -> None:
        super().__init__()
        self.fetch_item = fetch_item

    @asynccontextmanager
    async def fetch_stock(self, ctx: Context, item: StockCheckItem) -> AsyncIterator[Fetched]:
        yield Fetched(200, self.fetch_item(ctx, item))


def fetch_stock(connectors: Connectors) -> bytes:
    """Return the result of a stock check."""

    async def run() -> bytes:
        async with connectors.fetch_stock(
            "one", ConnectorTask({}, {"token": SECRET}, "stock"), StockRequest("P", "V", "S")
        ) as answer:
            return b"".join([chunk async for chunk in answer.chunks])

    return asyncio.run(run())


def create_checking_host(
    fetch_item: Callable[[Context, StockCheckItem], AsyncIterator[bytes]], **limits: Any
) -> PluggyConnectors:
    """Return a host of a connector with the stock check."""
    made = create_host(CheckingConnector(fetch_item), **limits)
    provided = made._loaded.connectors["one"]
    spec = replace(provided.spec, can_check_stock=True)
    return PluggyConnectors(LoadedPlugins({"one": replace(provided, spec=spec)}), FakeHttp(), limits=Limits(**limits))


def test_a_stock_check_has_tighter_limits() -> None:
    async def fetch_item(ctx: Context, item: StockCheckItem) -> AsyncIterator[bytes]:
        assert (ctx.stream, ctx.limits.max_wait_seconds, ctx.credentials) == ("stock", 0.0, {"token": SECRET})
        yield repr(item).encode()

    async def endless(_: Context, __: StockCheckItem) -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1024 * 1024

    async def failing(_: Context, __: StockCheckItem) -> AsyncIterator[bytes]:
        raise Refused(f"Not {SECRET}.", is_credentials_error=True)
        yield b""

    assert fetch_stock(create_checking_host(fetch_item)) == b"StockCheckItem(product_key='P', variant_key='V', sku='S')"
    with pytest.raises(FetchFailed, match="larger than 1 MiB"):
        fetch_stock(create_checking_host(endless, page_bytes=1024 * 1024))
    with pytest.raises(FetchFailed, match="Not .hidden.") as caught:
        fetch_stock(create_checking_host(failing))
    assert caught.value.code == "credentials_refused"


def test_connectors_that_can_check_one_item_are_declared() -> None:
    shops = PluggyConnectors(load_plugins(BUILT_IN, release_version="1"), FakeHttp())
    able = {one.name for one in shops.list_connectors() if one.can_check_stock}
    assert able == {"bigcommerce", "shopify", "shopify-admin", "woocommerce"}
    with pytest.raises(FetchFailed, match="does not support stock checks"):
        fetch_stock(create_host(ScriptedConnector()))


def test_a_busy_host_is_retried_later() -> None:
    class Busy(Exception):
        kind, seconds = "host_busy", 90.0

    class Client(FakeHttp):
        @asynccontextmanager
        async def get(self, url: str, **_: Any) -> AsyncIterator[Any]:
            raise Busy("Not our turn.")
            yield

    connectors = PluggyConnectors(load_plugins(BUILT_IN, release_version="1"), Client())
    with pytest.raises(FetchFailed) as caught:
        fetch_snapshot(connectors, "csv", ConnectorTask({"url": "https://files.example/a.csv"}, None, "catalogue"))
    assert (caught.value.code, caught.value.wait_reason, caught.value.is_throttled_locally) == (
        "fetch_failed",
        "retry",
        True,
    )
    assert caught.value.retry_at is not None and caught.value.retry_at > datetime.now(UTC)


@pytest.mark.parametrize("begun", [False, True], ids=["at the first response", "at a later one"])
@pytest.mark.parametrize("status", [404, 401, 429, 503])
def test_a_failure_has_the_head_of_the_last_response(status: int, begun: bool) -> None:
    address = f"https://a.example/feed?key={SECRET}"

    async def fetch(ctx: Context) -> AsyncIterator[bytes]:
        if begun:
            yield b"some"
        async with ctx.http.get(address) as response:
            raise_for_status(response, ctx)
        yield b""

    http = FakeHttp({address: StubResponse(b"", status, "text/HTML; charset=utf-8")})
    with pytest.raises(FetchFailed) as caught:
        fetch_snapshot(create_host(ScriptedConnector(fetch), http))
    assert caught.value.response == ResponseHead(status, "https://a.example/feed", "text/html")


def test_a_source_that_cannot_be_reached_has_no_response() -> None:
    async def fetch(ctx: Context) -> AsyncIterator[bytes]:
        raise Unreachable("There is no such host.")
        yield b""

    with pytest.raises(FetchFailed) as caught:
        fetch_snapshot(create_host(ScriptedConnector(fetch)))
    assert caught.value.response is None


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/feed?key=Zm9v%2FYmFy%2BcXV4%3D%3D",
        "https://user:Zm9v@a.example/feed#Zm9v",
        "https://a.example/feed?X-Amz-Signature=Zm9v",
    ],
)
def test_addresses_are_reported_without_credentials(url: str) -> None:
    class Redirected(ScriptedConnector):
        @asynccontextmanager
        async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
            async def chunks() -> AsyncIterator[bytes]:
                yield b""

            yield Fetched(200, chunks(), final_url=url)

    async def run() -> str | None:
        async with create_host(Redirected()).fetch("one", create_task()) as answer:
            return answer.final_url

    assert asyncio.run(run()) == "https://a.example/feed"
