"""Ports to connectors, which fetch and parse feeds, and to feed readers, which read stored files."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from domain.ingestion.mapping.learned import ConfirmedMapping
from domain.ingestion.model import FeedSettings, FeedTable
from domain.ingestion.snapshot_results import (
    BucketKeys,
    FeedExcerpt,
    FeedStatements,
    RowSearchResult,
    SnapshotSample,
    SpoolResult,
)
from domain.kernel.problems import Problem
from domain.kernel.tenancy import Tenant


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """Properties that a connector declares about itself.

    Attributes:
        name: The identifier, such as `shopify`.
        title: The name for people.
        kinds: The kinds of sources that can use the connector.
        streams: The supported streams: `catalogue`, and possibly `stock`.
        can_fetch: Whether the connector can fetch feeds; if not, vendors send or upload them.
        config_schema: The JSON Schema (Draft 2020-12) of a source's settings.
        credentials_schema: The JSON Schema of credentials, or None if the connector needs no credentials.
        distribution: The name of the Python distribution that contains the connector.
        address_settings: The names of settings with URLs; credentials are sent to the origins of these URLs.
        neutral_settings: The names of settings that cannot influence where credentials are sent.
        can_check_stock: Whether the connector can request the stock of one item.
        stock_setting: The name of the setting without which there is no feed for the stream `stock`; None if none is required.
    """

    name: str
    title: str
    kinds: frozenset[str]
    streams: frozenset[str]
    can_fetch: bool
    config_schema: Mapping[str, Any]
    credentials_schema: Mapping[str, Any] | None
    distribution: str
    version: str
    address_settings: frozenset[str] = frozenset()
    neutral_settings: frozenset[str] = frozenset()
    can_check_stock: bool = False
    stock_setting: str | None = None

    def has_feed(self, stream: str, config: Mapping[str, Any]) -> bool:
        """Return whether a source has a feed for a stream."""
        has_feed = stream != "stock" or self.stock_setting is None or bool(config.get(self.stock_setting))
        return stream in self.streams and has_feed

    def describe_credential_destination(self, config: Mapping[str, Any]) -> str:
        """Return a text that changes whenever settings change in a way that could send the credentials elsewhere."""
        return describe_credential_destination(self.name, config, self.address_settings, self.neutral_settings)


@dataclass(frozen=True, slots=True)
class HttpValidators:
    """HTTP headers ETag and Last-Modified of the last stored file, for a conditional request (RFC 9110 §13)."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectorTask:
    """Task for a connector: the source and the stream to fetch or parse.

    Attributes:
        config: The settings of the source.
        credentials: The decrypted credentials, or None.
        stream: The stream: `catalogue` or `stock`.
        validators: The HTTP validators of the last stored file.
        tenant: The tenant of the source: the connector `network` reads as this tenant, and requests of different
            organisations to the same host alternate. None for data that is not fetched.
    """

    config: Mapping[str, Any]
    credentials: Mapping[str, Any] | None
    stream: str
    validators: HttpValidators = field(default_factory=HttpValidators)
    tenant: Tenant | None = None


@dataclass(frozen=True, slots=True)
class StockRequest:
    """Variant whose stock is requested from a source.

    Attributes:
        product_key: The key of the product at the source.
        variant_key: The key of the variant at the source.
        sku: The SKU, or None if unknown.
    """

    product_key: str
    variant_key: str
    sku: str | None = None


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """Feed that a connector has fetched, or the information that the feed has not changed.

    Attributes:
        status: The HTTP status.
        final_url: The URL after redirects, or None.
        served_by: The name of the API that responded, for connectors that can use several APIs.
        is_not_modified: Whether the feed has not changed since the last fetch, so that `chunks` is empty.
        validators: The HTTP validators for the next fetch.
        chunks: The bytes of the feed.
    """

    status: int
    final_url: str | None
    content_type: str | None
    filename: str | None
    served_by: str | None
    is_not_modified: bool
    validators: HttpValidators
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Status, URL and content type of the last HTTP response of a failed fetch, without any text from the credentials."""

    status: int
    final_url: str
    content_type: str | None


class FetchFailed(Exception):
    """Error: a connector could not fetch a feed.

    Attributes:
        code: The code for the source's `status_reason`.
        wait_reason: The reason why the run waits and tries again (`rate_limited`, `upstream_busy` or `retry`); None if the run fails.
        retry_at: The earliest time of the next attempt, or None if unknown.
        is_throttled_locally: Whether Joinery itself sent no request, because it already sends too many to the host.
        response: The last HTTP response, or None.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        wait_reason: str | None = None,
        retry_at: datetime | None = None,
        is_throttled_locally: bool = False,
    ) -> None:
        self.code = code
        self.response: ResponseHead | None = None
        self.wait_reason = wait_reason
        self.retry_at = retry_at
        self.is_throttled_locally = is_throttled_locally
        super().__init__(message)


class ParseFailed(Exception):
    """Error: the connector cannot parse a stored file. The message states what to do."""


class Connectors(Protocol):
    """Port to the connectors that are installed in this deployment."""

    def list_connectors(self) -> Sequence[ConnectorInfo]:
        """Return the properties of all installed connectors, ordered by name."""
        ...

    def find_connector(self, name: str) -> ConnectorInfo | None:
        """Return the properties of a connector, or None if the connector is not installed."""
        ...

    def fetch(self, name: str, task: ConnectorTask) -> AbstractAsyncContextManager[FetchResponse]:
        """Fetch the feed of a source with a connector. Leaving the context closes the connection. Raises FetchFailed."""
        ...

    def fetch_stock(
        self, name: str, task: ConnectorTask, item: StockRequest
    ) -> AbstractAsyncContextManager[FetchResponse]:
        """Fetch the current stock of one variant within 30 seconds. Raises FetchFailed.

        `parse_tables` parses the response as a feed of the stream `stock`. The response can also contain other variants.
        """
        ...

    def parse_tables(
        self,
        name: str,
        task: ConnectorTask,
        snapshot: Path,
        score_header: Callable[[Sequence[str]], int],
        report_problem: Callable[[Problem], None],
    ) -> Iterator[FeedTable]:
        """Parse a stored file in the calling thread, and yield its tables.

        Args:
            name: The name of the connector.
            task: The task with settings and stream.
            snapshot: The path of the stored file.
            score_header: Function that counts the cells of a row that are known headers. The row with the highest count
                is the header row.
            report_problem: Function that is called with each problem after which parsing continues, such as cells without a header.

        Raises:
            ParseFailed: The connector cannot parse the file. Iterating over the rows of a table can also raise it.
        """
        ...


DEFAULT_FEED_SETTINGS = FeedSettings()


class FeedReaderFailed(Exception):
    """Error: a reader process ended unexpectedly or timed out. The message states which of the two happened."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Request to read a stored file with a connector.

    Attributes:
        snapshot: The path of the stored file.
        folder: The folder for buckets, which are temporary files with the rows.
        connector: The name of the connector.
        settings: The settings for reading values.
        buckets: The number of buckets.
        max_bytes: The maximum total size of the rows in the buckets; larger feeds raise ParseFailed.
        has_records: Whether the file consists of records (docs/push.md).
        may_be_stock: Whether StockOnlySnapshot is raised for a file that contains only stock.
        confirmed_mappings: Mappings that people confirmed, those of the same source first. `limit_mappings` in
            domain.ingestion.mapping.learned limits their number.
        is_complete: Whether pushed records are the complete catalogue; if not, they are merged with the stored catalogue.
        max_rows: The maximum number of rows to read, or None.
    """

    snapshot: str
    folder: str
    connector: str
    config: Mapping[str, Any]
    stream: str
    settings: FeedSettings = DEFAULT_FEED_SETTINGS
    buckets: int = 1
    max_bytes: int = 1 << 30
    has_records: bool = False
    may_be_stock: bool = False
    confirmed_mappings: tuple[ConfirmedMapping, ...] = ()
    is_complete: bool = True
    max_rows: int | None = None


FeedLine: TypeAlias = "tuple[str | None, int]"
"""Position of a line in a feed: the name of the sheet (None in formats without sheets) and the line number from 1."""
ProgressCallback = Callable[[int], Awaitable[None]]
"""Function that is called repeatedly with the number of rows read so far."""


class FeedReader(Protocol):
    """Port to a reader of one stored file. Every method can raise FeedReaderFailed, after which the reader is unusable."""

    async def spool(self, on_progress: ProgressCallback) -> SpoolResult:
        """Read the whole file once, map its columns to fields, and write its rows to temporary files (buckets).

        Raises:
            ParseFailed: The file cannot be read.
            MappingRequired: No table has a column that identifies items.
            StockOnlySnapshot: The file contains only stock, and `may_be_stock` of the request is set.
        """
        ...

    async def load_keys(self, buckets: range) -> BucketKeys:
        """Return the keys of the rows in a range of buckets."""
        ...

    async def load_statements(self, buckets: range, keys: Collection[str]) -> FeedStatements:
        """Parse the rows of some keys; return what they state about products. Keys whose rows are not in the buckets are ignored."""
        ...

    async def read_sample(self, count: int) -> SnapshotSample:
        """Return the first `count` records of the file without writing buckets."""
        ...

    async def find_rows(self, texts: Collection[str], max_results: int) -> RowSearchResult:
        """Find rows with a cell that equals one of the texts, or pushed records whose key does. Raises ParseFailed.

        At most `ReadRequest.max_rows` rows of the file are searched.

        Args:
            texts: The texts to find.
            max_results: The maximum number of rows to return.
        """
        ...

    async def read_excerpts(self, lines: Collection[FeedLine], context_rows: int) -> Sequence[FeedExcerpt]:
        """Return lines of the feed with the original texts of their cells. Raises ParseFailed.

        Args:
            lines: The positions of the lines.
            context_rows: The number of further lines to return before and after each line.
        """
        ...


class FeedReaderFactory(Protocol):
    """Port to a factory of feed readers, which run in separate processes."""

    async def prepare(self) -> None:
        """Start the parent process of readers, so that the first reader opens fast."""
        ...

    def open(self, request: ReadRequest) -> AbstractAsyncContextManager[FeedReader]:
        """Return a context manager that starts a reader for the request and stops the reader at the end. Raises FeedReaderFailed."""
        ...


# Destinations of credentials: the connector and the origins in its settings (docs/conventions.md#source).


_PORTS = {"http": 80, "https": 443}


def extract_origin(url: str) -> str:
    """Return the origin of an http or https URL including the port (RFC 6454), or the unchanged text for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return url
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else url


def describe_credential_destination(
    connector: str, config: Mapping[str, Any], url_settings: Collection[str], neutral_settings: Collection[str]
) -> str:
    """Return a text that changes whenever settings change in a way that could send the credentials elsewhere.

    The text contains the origins of URLs in `url_settings`, and the values of all settings that are not in `neutral_settings`.

    Args:
        connector: The name of the connector.
        config: The settings of the source.
        url_settings: The names of settings with URLs.
        neutral_settings: The names of settings that cannot influence where credentials are sent.
    """
    origins = {extract_origin(str(config[name])) for name in url_settings if name in config}
    others = {
        name: value for name, value in config.items() if name not in url_settings and name not in neutral_settings
    }
    bound = {"connector": connector, "origins": sorted(origins), "settings": others}
    return json.dumps(bound, sort_keys=True, separators=(",", ":"), default=float)
