"""Connectors with configured answers, in place of the network."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectors.sdk.settings import URL, build_config_schema
from domain.ingestion.model import FeedTable
from domain.ingestion.ports import (
    ConnectorInfo,
    ConnectorTask,
    FetchFailed,
    FetchResponse,
    HttpValidators,
    ParseFailed,
    StockRequest,
)
from domain.kernel.problems import Problem

TOKEN = {
    "type": "object",
    "properties": {"token": {"type": "string", "minLength": 1}},
    "required": ["token"],
    "additionalProperties": False,
}


def info(name: str, kinds: str, streams: str = "catalogue stock", **changes: Any) -> ConnectorInfo:
    """Return the declaration of a connector with the settings `url` and `pages`, and a token."""
    fields: dict[str, Any] = {
        "name": name,
        "title": name.title(),
        "kinds": frozenset(kinds.split()),
        "streams": frozenset(streams.split()),
        "can_fetch": True,
        "config_schema": build_config_schema({"url": URL, "pages": {"type": "integer", "minimum": 1}}),
        "credentials_schema": TOKEN,
        "distribution": "joinery",
        "version": "0.1.0",
    }
    return ConnectorInfo(**fields | changes)


@dataclass
class FakeConnectors:
    """Connectors that return `feed` for every fetch, or raise it if it is an exception; `tasks` records the tasks of the calls.

    `stock` is returned or raised by every stock check; `checked` records the checked items. Feeds are comma-separated lines, the first
    of which has the headers; a line `?` cannot be read.
    """

    feed: list[bytes] | FetchFailed = field(default_factory=list)
    tasks: list[ConnectorTask] = field(default_factory=list)
    stock: list[bytes] | Exception = field(default_factory=list)
    checked: list[StockRequest] = field(default_factory=list)
    known: list[ConnectorInfo] = field(
        default_factory=lambda: [
            info("api", "api"),
            info("csv", "url file mail"),
            info(
                "files",
                "url",
                config_schema=build_config_schema({"url": URL, "stock_url": URL}),
                stock_setting="stock_url",
            ),
            info("open", "url", credentials_schema=None),
            info("reader", "url file", can_fetch=False),
            info("shop", "url api", can_check_stock=True),
            info("shopify", "url api", "catalogue"),
        ]
    )

    def list_connectors(self) -> Sequence[ConnectorInfo]:
        """Return all connectors by name."""
        return self.known

    def find_connector(self, name: str) -> ConnectorInfo | None:
        """Return the declaration of a connector."""
        return next((one for one in self.known if one.name == name), None)

    @asynccontextmanager
    async def fetch(self, name: str, task: ConnectorTask) -> AsyncIterator[FetchResponse]:
        """Yield the configured feed."""
        self.tasks.append(task)
        if isinstance(self.feed, FetchFailed):
            raise self.feed
        url = task.config.get("url")
        yield FetchResponse(200, url, "text/csv", "feed.csv", None, False, HttpValidators(), _chunks(self.feed))

    @asynccontextmanager
    async def fetch_stock(self, name: str, task: ConnectorTask, item: StockRequest) -> AsyncIterator[FetchResponse]:
        """Yield the configured stock."""
        self.tasks.append(task)
        self.checked.append(item)
        if isinstance(self.stock, Exception):
            raise self.stock
        url = task.config.get("url")
        yield FetchResponse(200, url, "text/csv", "stock.csv", None, False, HttpValidators(), _chunks(self.stock))

    def parse_tables(
        self,
        name: str,
        task: ConnectorTask,
        snapshot: Path,
        score_header: Callable[[Sequence[str]], int],
        report_problem: Callable[[Problem], None],
    ) -> Iterator[FeedTable]:
        """Return the lines of the feed as one table."""
        lines = snapshot.read_text("utf-8", "replace").splitlines()
        if not lines:
            raise ParseFailed("The feed is empty.")
        yield FeedTable(None, tuple(lines[0].split(",")), _rows(lines[1:]))


def _rows(lines: list[str]) -> Iterator[tuple[int, list[Any]]]:
    for number, line in enumerate(lines, start=2):
        if line == "?":
            raise ParseFailed(f"Line {number} cannot be read.")
        yield number, list(line.split(","))


async def _chunks(feed: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in feed:
        yield chunk
