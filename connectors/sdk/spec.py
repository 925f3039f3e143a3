"""What a plugin returns: a description of each connector, and how to open it."""

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
    """How a fetch began. `chunks` is the snapshot: one stream of bytes, kept as it is and read again on replay.

    Connectors that read page by page write one JSON document a line. `not_modified`: there is nothing to read.
    `served_by` names the API that answered, for connectors with several.
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
    """One item whose stock is asked for, by the keys that the connector's own rows gave it.

    `product_key` and `variant_key` are what columns of these meanings stated; they are the same where a feed has one key
    for both. `sku` is there where it is known.
    """

    product_key: str
    variant_key: str
    sku: str | None = None


class Connector(Protocol):
    """One opened connector. It keeps no state between calls; everything it needs is in the context."""

    def fetch(self, ctx: Context) -> AbstractAsyncContextManager[Fetched]:
        """Ask the source. Raises ConnectorError, also while chunks are read; leaving the context closes everything."""
        ...

    def tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Read a snapshot from a local file, streaming, without network. Raises BadData, also while rows are walked."""
        ...


@runtime_checkable
class StockChecker(Connector, Protocol):
    """A connector that can also ask for the stock of one item (`ConnectorSpec.checks`)."""

    def check(self, ctx: Context, item: Item) -> AbstractAsyncContextManager[Fetched]:
        """Ask for the stock of one item now, by as few requests as it takes; somebody waits for the answer.

        What comes is no more than is needed: a snapshot that `tables` reads where `ctx.stream` is `stock`, whatever
        streams the connector has. Rows of other items are passed over. Raises ConnectorError, RetryLater at once where the
        source asks to wait, Unreachable where it does not know the item.
        """
        ...


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """One connector. `name` is lower-case ASCII (`acme`, `acme-stock`), what sources name in `connector`.

    `kinds` are source kinds (KINDS), `streams` of STREAMS. `fetches` tells whether it pulls; else it only reads files.
    The schemas are JSON Schemas, Draft 2020-12, of type object; `credentials_schema` None means it takes none.
    `open` gives a Connector. `api` is the version of this interface that it was written for. `checks` says that what
    `open` gives is a StockChecker. `stock_setting` names the setting without which a source has no stock feed of its own.

    Stored credentials are forgotten when a setting changes that may send them elsewhere: of `addresses` (settings that
    are URLs) scheme, host and port count, `harmless` settings not at all, every other one as a whole.
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
