"""Interface of connectors: the description of a connector, and the protocols that a connector must implement."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from .context import Context, Validators
from .tables import Table

API = 2
"""Version of the interface between connectors and the service. Only connectors of this version are loaded."""
KINDS = frozenset({"api", "url", "file", "push", "mail"})
"""Kinds of sources, by the way in which they receive data.

`api`: the connector signs in to the vendor's API; `url`: a URL is fetched; `file`: users upload files; `push`: a program
sends records; `mail`: the vendor sends email.
"""
STREAMS = frozenset({"catalogue", "stock"})
"""Streams: data that one run imports."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Response of a fetch.

    Attributes:
        status: HTTP status.
        chunks: The snapshot as one byte stream, which is stored unchanged and can be parsed again later. Connectors
            that fetch pages write one JSON document per line.
        final_url: URL after redirects, without credentials; None if it is unknown.
        content_type: Media type, or None.
        filename: Name of the file, or None.
        served_by: Name of the API that responded, if the connector can use several APIs; else None.
        not_modified: Whether the source has no new data since the last fetch; `chunks` is empty then.
        validators: ETag and Last-Modified for the next conditional request.
    """

    status: int
    chunks: AsyncIterator[bytes]
    final_url: str | None = None
    content_type: str | None = None
    filename: str | None = None
    served_by: str | None = None
    not_modified: bool = False
    validators: Validators = field(default_factory=Validators)


@dataclass(frozen=True, slots=True)
class StockCheckItem:
    """Variant whose stock is checked, identified by values from rows that the connector returned earlier.

    `product_key` and `variant_key` are the values of the columns with these fields. Both are equal if the feed has only
    one of the columns. `sku` is None if it is unknown.
    """

    product_key: str
    variant_key: str
    sku: str | None = None


class Connector(Protocol):
    """Connector that ConnectorSpec.open returns. It keeps no state between calls; each call receives a context."""

    def fetch(self, ctx: Context) -> AbstractAsyncContextManager[Fetched]:
        """Fetch a snapshot from the source.

        Raises ConnectorError, also while chunks are read. The exit of the context manager closes all connections.
        """
        ...

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Parse the snapshot in a local file into tables, whose rows are read from the file as they are iterated.

        The network is not available. Raises BadData, also while rows are iterated.
        """
        ...


@runtime_checkable
class StockChecker(Connector, Protocol):
    """Connector that can also fetch the stock of one item (`ConnectorSpec.can_check_stock`)."""

    def fetch_stock(self, ctx: Context, item: StockCheckItem) -> AbstractAsyncContextManager[Fetched]:
        """Fetch a small snapshot that contains the stock of one item, in as few requests as possible.

        `parse_tables` parses the snapshot with `ctx.stream` set to `stock`, whether or not the connector has that stream.
        Rows of other items are ignored.

        Raises:
            ConnectorError: RetryLater at once if the source requests a wait, because a caller waits for the result;
                Unreachable if the source has no such item.
        """
        ...


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """Description of one connector.

    Stored credentials are deleted when a setting changes that may lead requests to another server. Changes of
    `neutral_settings` do not count; of `address_settings`, only changes of scheme, host or port count.

    Attributes:
        name: Lower-case ASCII name (`acme`, `acme-stock`), the value of the field `connector` of sources.
        title: Name for people.
        kinds: Kinds of sources that may use the connector, a subset of KINDS.
        streams: Streams that the connector provides, a subset of STREAMS.
        can_fetch: Whether the connector can fetch; otherwise it only parses files.
        config_schema: JSON Schema (Draft 2020-12) of the settings, of type object.
        open: Function that returns a Connector.
        credentials_schema: JSON Schema of the credentials; None if the connector uses none.
        api: Version of the connector interface for which the connector is written (API).
        address_settings: Names of settings that are URLs.
        neutral_settings: Names of settings that do not affect which server receives requests.
        can_check_stock: Whether `open` returns a StockChecker.
        stock_setting: Name of the setting that a source has if it has a separate stock feed; None without such a
            setting.
    """

    name: str
    title: str
    kinds: frozenset[str]
    streams: frozenset[str]
    can_fetch: bool
    config_schema: Mapping[str, Any]
    open: Callable[[], Connector]
    credentials_schema: Mapping[str, Any] | None = None
    api: int = API
    address_settings: frozenset[str] = frozenset()
    neutral_settings: frozenset[str] = frozenset()
    can_check_stock: bool = False
    stock_setting: str | None = None
