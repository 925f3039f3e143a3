"""The connector `network`, which reads another organisation's published catalogue from the database (docs/publishing.md)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from domain.catalogue.licences import ReadableCatalogue
from domain.catalogue.model import Document, ProductFilter
from domain.catalogue.ports import CatalogueStore, HeldLicences
from domain.changes.ports import NetworkLog
from domain.ingestion.model import FeedTable
from domain.ingestion.ports import (
    ConnectorInfo,
    Connectors,
    ConnectorTask,
    FetchFailed,
    FetchResponse,
    HttpValidators,
    StockRequest,
)
from domain.kernel.clock import now
from domain.kernel.paging import PageRequest
from domain.kernel.problems import Problem
from domain.kernel.schema import id_schema, strict_object
from domain.kernel.tenancy import Tenant
from domain.sources.copied_records import build_record
from domain.sources.model import NETWORK_CONNECTOR, SourceKind
from ports.codec import Codec
from ports.unit_of_work import UnitOfWork

_PAGE_SIZE = 100
"""Maximum number of products that are read in one transaction."""
_LICENCE_CHANGED = "The licence of the catalogue changed while it was read. It is read again."
_INFO: Final = ConnectorInfo(
    name=NETWORK_CONNECTOR,
    title="Published catalogue",
    kinds=frozenset({SourceKind.API.value}),
    streams=frozenset({"catalogue"}),
    can_fetch=True,
    config_schema=strict_object({"catalogue": id_schema("cat", "The catalogue to follow.")}, ("catalogue",)),
    credentials_schema=None,
    distribution="joinery",
    version="1",
    neutral_settings=frozenset({"catalogue"}),
)


@dataclass(frozen=True, slots=True)
class CombinedConnectors:
    """Installed connectors and the connector `network`; an implementation of the port Connectors."""

    installed: Connectors
    uow: UnitOfWork
    network: NetworkLog
    codec: Codec

    def list_connectors(self) -> Sequence[ConnectorInfo]:
        """Return the properties of all connectors, ordered by name."""
        return sorted([*self.installed.list_connectors(), _INFO], key=lambda info: info.name)

    def find_connector(self, name: str) -> ConnectorInfo | None:
        """Return the properties of a connector, or None."""
        return _INFO if name == NETWORK_CONNECTOR else self.installed.find_connector(name)

    def fetch(self, name: str, task: ConnectorTask) -> AbstractAsyncContextManager[FetchResponse]:
        """Fetch the feed of a source; that of the connector `network` consists of records. Raises FetchFailed."""
        return self._fetch_catalogue(task) if name == NETWORK_CONNECTOR else self.installed.fetch(name, task)

    def fetch_stock(
        self, name: str, task: ConnectorTask, item: StockRequest
    ) -> AbstractAsyncContextManager[FetchResponse]:
        """Fetch the stock of one variant; the connector `network` does not support this. Raises FetchFailed."""
        if name == NETWORK_CONNECTOR:
            raise FetchFailed("fetch_failed", "The connector network does not support stock checks.")
        return self.installed.fetch_stock(name, task, item)

    def parse_tables(
        self,
        name: str,
        task: ConnectorTask,
        snapshot: Path,
        score_header: Callable[[Sequence[str]], int],
        report_problem: Callable[[Problem], None],
    ) -> Iterator[FeedTable]:
        """Parse a stored file of an installed connector. Raises ParseFailed."""
        return self.installed.parse_tables(name, task, snapshot, score_header, report_problem)

    @asynccontextmanager
    async def _fetch_catalogue(self, task: ConnectorTask) -> AsyncIterator[FetchResponse]:
        """Yield a response with the records of all products that the task's tenant can read; without a licence, there are none.

        The state is determined before the products are read, so that a later change leads to another run.
        """
        if (tenant := task.tenant) is None:
            raise FetchFailed("fetch_failed", "The catalogue cannot be read without an organisation.")
        catalogue = str(task.config["catalogue"])
        positions = await self.network.load_checkpoints(tenant.livemode)
        async with self.uow.begin_reading(tenant) as tx:
            readable = await tx[HeldLicences].get_readable(catalogue)
        state = readable.describe_state(positions.get(Tenant(readable.publisher or "", tenant.livemode)))
        is_unchanged = state == task.validators.etag
        chunks = self._read_records(tenant, catalogue, readable)
        yield FetchResponse(200, None, "application/json", None, None, is_unchanged, HttpValidators(state), chunks)

    async def _read_records(self, tenant: Tenant, catalogue: str, readable: ReadableCatalogue) -> AsyncIterator[bytes]:
        """Yield a line for each product: an array with its record. Each page is a transaction of its own.

        Raises FetchFailed if a page was not read with the licence `readable`: a licence that exists only during the run would change
        the records, but not the state that the next run compares.
        """
        key: str | None = None
        while True:
            async with self.uow.begin_reading(tenant) as tx, tx.snapshot():
                if await tx[HeldLicences].get_readable(catalogue) != readable:
                    raise FetchFailed("fetch_failed", _LICENCE_CHANGED, wait_reason="retry", retry_at=now())
                page = await tx[CatalogueStore].list_products(
                    ProductFilter(catalogue=catalogue), PageRequest(_PAGE_SIZE, key=key)
                )
            yield await asyncio.to_thread(self._encode_records, page.items)
            if (key := page.next_key) is None:
                return

    def _encode_records(self, documents: Sequence[Document]) -> bytes:
        records = (build_record(self.codec.decode(document.body)) for document in documents)
        return b"".join(b"%b\n" % self.codec.encode([record]) for record in records)
