"""What the pipeline asks of connectors: what they are, a raw snapshot, and the tables in it."""

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
    """What a connector declares. `kinds` are source kinds, `streams` catalogue and perhaps stock.

    `fetches` tells whether the service itself can pull; `config_schema` and `credentials_schema` are JSON Schemas
    (Draft 2020-12); without the latter the connector takes no credentials. Settings that are `addresses` decide by their
    origin where credentials go, `harmless` ones not at all; of all others nothing is known. `checks` tells whether it can
    ask for the stock of one item. Where `stock_setting` names a setting, sources without it have no stock feed.
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
        """What the credentials of a source with these settings are bound to."""
        return destination(self.name, config, self.addresses, self.harmless)


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server said of the snapshot last fetched, for a conditional request (RFC 9110 §13)."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """What a connector is opened for: the source's settings, opened credentials and stream, and the last validators.

    `caller` is the organisation for which the source is asked: those who ask one host take turns.
    """

    config: Mapping[str, Any]
    credentials: Mapping[str, Any] | None
    stream: str
    validators: Validators = field(default_factory=Validators)
    caller: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a source by the keys that the source itself gave it, and its SKU where it is known."""

    product_key: str
    variant_key: str
    sku: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """How a fetch began. `not_modified`: nothing to read. `chunks` is the snapshot, one stream of bytes."""

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
    """The head of the last HTTP response of a fetch that failed, without any text of the credentials."""

    status: int
    final_url: str
    content_type: str | None


class FetchFailed(Exception):
    """The source did not give its feed. `code` is a source's status_reason code; `retry_at` asks to come back later.

    `waiting` is a run's waiting reason (rate_limited, upstream_busy, retry) when the run should wait, else None. `own`: the
    source was not asked, as others ask its host; that is no refusal of its, however often it happens. `response` is the last
    response, where there was one.
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
    """The snapshot is not what the connector reads; the message tells the person what to do about it."""


class Connectors(Protocol):
    """The connectors that this deployment loaded."""

    def infos(self) -> Sequence[ConnectorInfo]:
        """Every usable connector, by name."""
        ...

    def info(self, name: str) -> ConnectorInfo | None:
        """One connector's declaration, or None when none of that name is loaded."""
        ...

    def fetch(self, name: str, job: Job) -> AbstractAsyncContextManager[Answer]:
        """Ask the source. Raises FetchFailed; the connection is closed on leaving the context."""
        ...

    def check(self, name: str, job: Job, item: Item) -> AbstractAsyncContextManager[Answer]:
        """Ask the source for one item's stock, within half a minute. Raises FetchFailed.

        What comes is read by `tables` as a snapshot of the stream `stock`; it may tell of other items as well.
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
        """Read a snapshot, streaming, in the calling thread. Raises ParseFailed, also while rows are walked.

        `reported` is called with what could not be kept as it was (cells without a header, for one); reading goes on.
        """
        ...


DEFAULTS = FeedSettings()


class ReaderDied(Exception):
    """What read the feed ended without a word, or took too long; the message tells how."""


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """A snapshot to be read: the file's path, the connector that reads it with its settings, and the stream.

    `folder` is where rows may be put aside, by `buckets`, `room` bytes at most; `settings` say how values are read. `pushed`: the snapshot
    holds records, which are to be merged unless they are the source's `whole` catalogue. `may_be_stock`: a file that states
    stock alone raises StockSheet. `known` is what people have confirmed of headers (ingestion.mapping.learned.bounded), the source's
    own first. `limit`: no more rows are read than that.
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
"""A line of a feed: its sheet, where it has sheets, and the number that people count it by."""
Told = Callable[[int], Awaitable[None]]
"""Told now and then how many rows are read."""


class FeedReader(Protocol):
    """One snapshot being read. Every call may raise ReaderDied, after which there is nothing more to be had."""

    async def spool(self, told: Told) -> SpooledRows:
        """Read the whole snapshot, map its columns and put its rows aside, once.

        Raises ParseFailed, NeedsMapping when no table can be keyed, StockSheet when the order allows for it.
        """
        ...

    async def gather(self, buckets: range) -> Gathered:
        """What is put aside in these buckets, by key."""
        ...

    async def states(self, buckets: range, keys: Collection[str]) -> Stated:
        """What the feed states under those of the buckets' keys."""
        ...

    async def sample(self, count: int) -> Sample:
        """The snapshot's first `count` records, read without putting anything aside."""
        ...

    async def find(self, texts: Collection[str], most: int) -> FoundRows:
        """The first `most` rows of which a cell is one of the texts; the order's `limit` bounds how many are looked at.

        Of pushed records those that go by one of them. Raises ParseFailed.
        """
        ...

    async def excerpt(self, lines: Collection[Place], beside: int) -> Sequence[Excerpt]:
        """Those lines as the feed has them, with `beside` lines before and after each. Raises ParseFailed."""
        ...


class FeedReaders(Protocol):
    """Where readers are had."""

    async def warm(self) -> None:
        """Be ready before the first snapshot comes."""
        ...

    def open(self, order: ReadingOrder) -> AbstractAsyncContextManager[FeedReader]:
        """A reader of that snapshot, stopped on leaving the context whatever it does. Raises ReaderDied."""
        ...


# Where a source's credentials may go: the connector, and the origins that its settings name (docs/conventions.md#source).


_PORTS = {"http": 80, "https": 443}


def origin(address: str) -> str:
    """Scheme, host and port of an address (RFC 6454), the usual port written out; what is no address stands as it is."""
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return address
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else address


def destination(
    connector: str, config: Mapping[str, Any], addresses: Collection[str], harmless: Collection[str]
) -> str:
    """What credentials are bound to, as a text that differs when they would go elsewhere.

    Of the settings that are `addresses` only their origins count, `harmless` ones not at all, all others as they are:
    nothing is known of what they decide.
    """
    origins = {origin(str(config[name])) for name in addresses if name in config}
    others = {name: value for name, value in config.items() if name not in addresses and name not in harmless}
    bound = {"connector": connector, "origins": sorted(origins), "settings": others}
    return json.dumps(bound, sort_keys=True, separators=(",", ":"), default=float)
