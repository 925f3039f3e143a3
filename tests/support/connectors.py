"""Connectors that answer what a test tells them to, in place of the network."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectors.sdk.settings import URL, config_schema
from domain.ingestion.model import FeedTable
from domain.ingestion.ports import Answer, ConnectorInfo, FetchFailed, Item, Job, ParseFailed, Validators
from domain.kernel.problems import Problem

TOKEN = {
    "type": "object",
    "properties": {"token": {"type": "string", "minLength": 1}},
    "required": ["token"],
    "additionalProperties": False,
}


def info(name: str, kinds: str, streams: str = "catalogue stock", **changes: Any) -> ConnectorInfo:
    """A connector's declaration; it takes a URL and a number of pages as settings, and a token."""
    fields: dict[str, Any] = {
        "name": name,
        "title": name.title(),
        "kinds": frozenset(kinds.split()),
        "streams": frozenset(streams.split()),
        "fetches": True,
        "config_schema": config_schema({"url": URL, "pages": {"type": "integer", "minimum": 1}}),
        "credentials_schema": TOKEN,
        "distribution": "joinery",
        "version": "0.1.0",
    }
    return ConnectorInfo(**fields | changes)


@dataclass
class FakeConnectors:
    """Connectors. `feed` is what every fetch gives (chunks, or what it raises); `asked` the jobs it was opened for.

    `stock` is what every check of one item gives, or raises; `checked` the items.
    Feeds are comma-separated lines, the first one the headers; a line `?` cannot be read.
    """

    feed: list[bytes] | FetchFailed = field(default_factory=list)
    asked: list[Job] = field(default_factory=list)
    stock: list[bytes] | Exception = field(default_factory=list)
    checked: list[Item] = field(default_factory=list)
    known: list[ConnectorInfo] = field(
        default_factory=lambda: [
            info("api", "api"),
            info("csv", "url file mail"),
            info(
                "files", "url", config_schema=config_schema({"url": URL, "stock_url": URL}), stock_setting="stock_url"
            ),
            info("open", "url", credentials_schema=None),
            info("reader", "url file", fetches=False),
            info("shop", "url api", checks=True),
            info("shopify", "url api", "catalogue"),
        ]
    )

    def infos(self) -> Sequence[ConnectorInfo]:
        """Every connector, by name."""
        return self.known

    def info(self, name: str) -> ConnectorInfo | None:
        """One connector's declaration."""
        return next((one for one in self.known if one.name == name), None)

    @asynccontextmanager
    async def fetch(self, name: str, job: Job) -> AsyncIterator[Answer]:
        """Give the feed."""
        self.asked.append(job)
        if isinstance(self.feed, FetchFailed):
            raise self.feed
        url = job.config.get("url")
        yield Answer(200, url, "text/csv", "feed.csv", None, False, Validators(), _chunks(self.feed))

    @asynccontextmanager
    async def check(self, name: str, job: Job, item: Item) -> AsyncIterator[Answer]:
        """Give the stock."""
        self.asked.append(job)
        self.checked.append(item)
        if isinstance(self.stock, Exception):
            raise self.stock
        url = job.config.get("url")
        yield Answer(200, url, "text/csv", "stock.csv", None, False, Validators(), _chunks(self.stock))

    def tables(
        self,
        name: str,
        job: Job,
        snapshot: Path,
        score_header: Callable[[Sequence[str]], int],
        reported: Callable[[Problem], None],
    ) -> Iterator[FeedTable]:
        """The feed's lines as one table."""
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
