"""Ports to connectors and feed readers: declarations of connectors, snapshots and their tables."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from domain.ingestion.mapping.learned import KnownMapping
from domain.ingestion.model import FeedSettings, FeedTable
from domain.ingestion.reading import Excerpt, FoundRows, Gathered, Sample, SpooledRows, Stated
from domain.kernel.problems import Problem


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """Declaration of a connector. The schemas are JSON Schemas (Draft 2020-12).

    Attributes:
        kinds: The kinds of sources.
        streams: The streams: catalogue and possibly stock.
        fetches: Whether the service can pull the feed.
        credentials_schema: The schema of credentials; None if the connector takes none.
        addresses: The settings whose origin determines where credentials are sent.
        harmless: The settings that have no influence on where credentials are sent.
        checks: Whether the connector can request the stock of one item.
        stock_setting: The setting without which a source has no stock feed.

    """

    name: str
    title: str
    kinds: frozenset[str]
    streams: frozenset[str]
    fetches: bool
    config_schema: Mapping[str, Any]
    credentials_schema: Mapping[str, Any] | None
    distribution: str
    version: str
    addresses: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    checks: bool = False
    stock_setting: str | None = None

    def reads(self, stream: str, config: Mapping[str, Any]) -> bool:
        """Return whether a source with these settings has a feed for the stream."""
        has_feed = stream != "stock" or self.stock_setting is None or bool(config.get(self.stock_setting))
        return stream in self.streams and has_feed

    def destination(self, config: Mapping[str, Any]) -> str:
        """Return the destination to which the credentials of a source with these settings are bound."""
        return destination(self.name, config, self.addresses, self.harmless)


@dataclass(frozen=True, slots=True)
class Validators:
    """Validators of the last snapshot, for a conditional request (RFC 9110 §13)."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """Task of a connector: the source's settings, decrypted credentials and stream, and the last validators.

    `caller` is the organisation on whose behalf the request is made; organisations that request one host take turns.
    """

    config: Mapping[str, Any]
    credentials: Mapping[str, Any] | None
    stream: str
    validators: Validators = field(default_factory=Validators)
    caller: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """Item of a source: the source's own keys, and its SKU if known."""

    product_key: str
    variant_key: str
    sku: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Response to a fetch. With `not_modified` there is nothing to read; `chunks` are the bytes of the snapshot."""

    status: int
    final_url: str | None
    content_type: str | None
    filename: str | None
    served_by: str | None
    not_modified: bool
    validators: Validators
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Head of the last HTTP response of a failed fetch, without any text of the credentials."""

    status: int
    final_url: str
    content_type: str | None


class FetchFailed(Exception):
    """Error of a fetch that returned no feed.

    Attributes:
        code: The code for the source's `status_reason`.
        waiting: The run's waiting reason (rate_limited, upstream_busy, retry) if the run should wait, else None.
        retry_at: The earliest time of the next attempt, if known.
        own: Whether no request was sent because of other requests to the host; the source is not at fault.
        response: The last response, if there was one.

    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        waiting: str | None = None,
        retry_at: datetime | None = None,
        own: bool = False,
    ) -> None:
        self.code = code
        self.response: ResponseHead | None = None
        self.waiting = waiting
        self.retry_at = retry_at
        self.own = own
        super().__init__(message)


class ParseFailed(Exception):
    """Error of a snapshot that the connector cannot read; the message states the remedy."""


class Connectors(Protocol):
    """Connectors that this deployment has loaded."""

    def infos(self) -> Sequence[ConnectorInfo]:
        """Return the declarations of all usable connectors, ordered by name."""
        ...

    def info(self, name: str) -> ConnectorInfo | None:
        """Return the connector's declaration, or None if it is not loaded."""
        ...

    def fetch(self, name: str, job: Job) -> AbstractAsyncContextManager[Answer]:
        """Fetch the feed of a source. Raises FetchFailed; leaving the context closes the connection."""
        ...

    def check(self, name: str, job: Job, item: Item) -> AbstractAsyncContextManager[Answer]:
        """Fetch the stock of one item within 30 seconds. Raises FetchFailed.

        `tables` reads the response as a snapshot of the stream `stock`, which can contain other items as well.
        """
        ...

    def tables(
        self,
        name: str,
        job: Job,
        snapshot: Path,
        score_header: Callable[[Sequence[str]], int],
        reported: Callable[[Problem], None],
    ) -> Iterator[FeedTable]:
        """Read a snapshot as a stream in the calling thread. Raises ParseFailed, also while rows are iterated.

        `reported` is called with problems that do not end reading, such as cells without a header.
        """
        ...


DEFAULTS = FeedSettings()


class ReaderDied(Exception):
    """Error of a reader process that ended unexpectedly or timed out; the message states how."""


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """Order to read a snapshot file with a connector and its settings.

    Attributes:
        folder: The folder for spooled rows, in `buckets` files of at most `room` bytes together.
        settings: The settings for reading values.
        pushed: Whether the snapshot consists of records, which are merged unless they are the `whole` catalogue.
        may_be_stock: Whether a file that states only stock raises StockSheet.
        known: The confirmed mappings (ingestion.mapping.learned.bounded), those of the source first.
        limit: The maximum number of rows to read, or None.

    """

    snapshot: str
    folder: str
    connector: str
    config: Mapping[str, Any]
    stream: str
    settings: FeedSettings = DEFAULTS
    buckets: int = 1
    room: int = 1 << 30
    pushed: bool = False
    may_be_stock: bool = False
    known: tuple[KnownMapping, ...] = ()
    whole: bool = True
    limit: int | None = None


Place: TypeAlias = "tuple[str | None, int]"
"""Line of a feed: its sheet (None without sheets) and its number from 1."""
Told = Callable[[int], Awaitable[None]]
"""Callback that receives the number of rows read, from time to time."""


class FeedReader(Protocol):
    """Reader of one snapshot. Every call can raise ReaderDied, after which the reader is unusable."""

    async def spool(self, told: Told) -> SpooledRows:
        """Read the whole snapshot once, map its columns and spool its rows.

        Raises ParseFailed; NeedsMapping if no table has keys; StockSheet if the order permits it.
        """
        ...

    async def gather(self, buckets: range) -> Gathered:
        """Return the keys of the spooled rows in these buckets."""
        ...

    async def states(self, buckets: range, keys: Collection[str]) -> Stated:
        """Return the feed's statements for those of the keys that are in the buckets."""
        ...

    async def sample(self, count: int) -> Sample:
        """Return the snapshot's first `count` records without spooling rows."""
        ...

    async def find(self, texts: Collection[str], most: int) -> FoundRows:
        """Return the first `most` rows with a cell equal to one of the texts, or pushed records with such a key.

        At most the order's `limit` rows are searched. Raises ParseFailed.
        """
        ...

    async def excerpt(self, lines: Collection[Place], beside: int) -> Sequence[Excerpt]:
        """Return the lines as they are in the feed, with `beside` lines before and after each. Raises ParseFailed."""
        ...


class FeedReaders(Protocol):
    """Factory of feed readers."""

    async def warm(self) -> None:
        """Prepare for the first snapshot."""
        ...

    def open(self, order: ReadingOrder) -> AbstractAsyncContextManager[FeedReader]:
        """Return a context with a reader of the snapshot, which is stopped on leaving. Raises ReaderDied."""
        ...


# Destinations of credentials: the connector and the origins in its settings (docs/conventions.md#source).


_PORTS = {"http": 80, "https": 443}


def origin(address: str) -> str:
    """Return the origin of an address (RFC 6454) with its port; return the text itself if it is not an address."""
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return address
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else address


def destination(
    connector: str, config: Mapping[str, Any], addresses: Collection[str], harmless: Collection[str]
) -> str:
    """Return a text that identifies where credentials can be sent.

    It contains the origins of the settings in `addresses` and the values of all others except the `harmless` ones, since
    any of them could affect the destination.
    """
    origins = {origin(str(config[name])) for name in addresses if name in config}
    others = {name: value for name, value in config.items() if name not in addresses and name not in harmless}
    bound = {"connector": connector, "origins": sorted(origins), "settings": others}
    return json.dumps(bound, sort_keys=True, separators=(",", ":"), default=float)
