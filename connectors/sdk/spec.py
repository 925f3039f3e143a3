"""Interface of a connector: its description, and the protocols that it implements."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from .context import Context, Validators
from .tables import Table

API = 1
KINDS = frozenset({"api", "url", "file", "push", "mail"})
STREAMS = frozenset({"catalogue", "stock"})


@dataclass(frozen=True, slots=True)
class Fetched:
    """Response of a fetch. `chunks` is the snapshot: one byte stream, stored unchanged and parsed again on replay.

    Connectors that read page by page write one JSON document a line. `not_modified` states that there is nothing to
    read. `served_by` names the API that answered, for connectors with several.
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
class Item:
    """Item of a stock check, by the keys from the connector's own rows.

    `product_key` and `variant_key` are the values of columns with these fields; they are equal if a feed has one key
    for both. `sku` is set if it is known.
    """

    product_key: str
    variant_key: str
    sku: str | None = None


class Connector(Protocol):
    """Opened connector. It keeps no state between calls; everything it needs is in the context."""

    def fetch(self, ctx: Context) -> AbstractAsyncContextManager[Fetched]:
        """Fetch from the source.

        Raises ConnectorError, also while chunks are read; leaving the context closes everything.
        """
        ...

    def tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Parse a snapshot from a local file, streaming, without network. Raises BadData, also while rows are iterated."""
        ...


@runtime_checkable
class StockChecker(Connector, Protocol):
    """Connector that can also fetch the stock of one item (`ConnectorSpec.checks`)."""

    def check(self, ctx: Context, item: Item) -> AbstractAsyncContextManager[Fetched]:
        """Fetch the stock of one item now, in as few requests as possible, as a caller waits for the response.

        The snapshot is no larger than needed; `tables` parses it with `ctx.stream` set to `stock`, whatever streams the
        connector has. Rows of other items are ignored.

        Raises:
            ConnectorError: RetryLater at once if the source requests a wait, Unreachable if it does not know the item.

        """
        ...


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """Description of one connector. `name` is lower-case ASCII (`acme`, `acme-stock`), used by sources as `connector`.

    `kinds` are source kinds (KINDS), `streams` of STREAMS. `fetches` states whether the connector fetches, or only
    parses files. The schemas are JSON Schemas, Draft 2020-12, of type object; without `credentials_schema` it takes no
    credentials. `open` returns a Connector. `api` is the version of this interface that it implements. `checks` states
    that `open` returns a StockChecker. `stock_setting` names the setting without which a source has no stock feed of
    its own.

    Stored credentials are deleted when a setting changes that may send them elsewhere. Of `addresses` (settings that
    are URLs) scheme, host and port count; `harmless` settings do not count; all others count as a whole.
    """

    name: str
    title: str
    kinds: frozenset[str]
    streams: frozenset[str]
    fetches: bool
    config_schema: Mapping[str, Any]
    open: Callable[[], Connector]
    credentials_schema: Mapping[str, Any] | None = None
    api: int = API
    addresses: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    checks: bool = False
    stock_setting: str | None = None
