"""The run of a stock check: it requests one item's stock from a source and updates the item's offers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from domain.catalogue import search_terms
from domain.catalogue.batch import Batch, SlotRange
from domain.catalogue.data import OfferData
from domain.catalogue.differences import STOCK_CHECK_FIELDS
from domain.catalogue.model import Product, SourceItem, Stream
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import ProductStatement
from domain.catalogue.usecases.writer import write_reconciled
from domain.checks.model import describe_missing_offers
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.ingestion.ports import (
    Connectors,
    ConnectorTask,
    FeedReaderFactory,
    FeedReaderFailed,
    FetchFailed,
    ParseFailed,
    ReadRequest,
    StockRequest,
)
from domain.ingestion.snapshot_results import FeedStatements, MappingRequired
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError
from domain.kernel.tenancy import AuditContext
from domain.runs.chunks import create_invalid_fingerprint
from domain.runs.model import CheckInput, Run, RunError, RunErrorCode, RunStatus
from domain.runs.ports import RunStore
from domain.runs.sheets import create_feed_settings
from domain.runs.usecases import outcome
from domain.secrets.ports import Vault
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.sources.usecases.credentials import decrypt_credentials
from ports.unit_of_work import Tx, UnitOfWork
from ports.workspaces import Workspaces

_LOG = logging.getLogger("joinery.checks")
_ATTEMPTS = 3
_INTERNAL_ERROR = "An internal error occurred. Nothing was changed. The operator can find the error in the log."
_NO_STOCK = "The source's response does not contain the stock of this item. The stored stock is unchanged."


@dataclass(frozen=True, slots=True)
class StockQuery:
    """Query of one item's stock at a source, for the run of a stock check."""

    run: Run
    source: Source
    item: SourceItem
    connector_task: ConnectorTask

    @property
    def key(self) -> str:
        """The item's key at the source: the variant's key without the product's key.

        The product's key is appended to the keys of items that the feed lists under several products.
        """
        return self.item.variant_key.removesuffix(f" / {self.item.product_key}") or self.item.variant_key

    def select_statements(self, statements: Sequence[ProductStatement]) -> Sequence[ProductStatement]:
        """Return the products with the item's key in the response or, if there are none, the only product with the item's SKU."""
        found = [one for one in statements if one.key in (self.key, self.item.variant_key)]
        if found or not (code := search_terms.normalise_code(self.item.sku or "")):
            return found
        found = [one for one in statements if search_terms.normalise_code(one.key) == code]
        return found if len(found) == 1 else []


@dataclass(frozen=True, slots=True)
class CheckExecution:
    """Handler of `runs.check` jobs.

    A check does not affect the source's health, freshness or schedule, because it reads only one item. If the source
    throttles requests, the check fails immediately, because a later response would not be current.
    """

    uow: UnitOfWork
    connectors: Connectors
    vault: Vault
    readers: FeedReaderFactory
    workspaces: Workspaces
    concurrency_limit: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(2))
    lease: timedelta = timedelta(seconds=30)

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Request the stock and update the item's offers. Raises LeaseLost if another worker has taken over the job."""
        context = job.create_context()
        query = await self._start_check(job, context)
        if query is None:
            return
        try:
            query, stated = await self._fetch_stock(job, query)
        except FetchFailed as failure:
            await self._fail(job, context, RunErrorCode(failure.code), str(failure))
        except (ParseFailed, MappingRequired, FeedReaderFailed) as failure:
            await self._fail(job, context, RunErrorCode.PARSE_FAILED, str(failure))
        except DomainError:
            raise
        except Exception:
            if job.attempt < _ATTEMPTS:
                raise
            _LOG.exception("stock check failed after %d attempts", _ATTEMPTS, extra={"run": query.run.id})
            await self._fail(job, context, RunErrorCode.INTERNAL_ERROR, _INTERNAL_ERROR)
        else:
            async with self.uow.begin(job.tenant, context) as tx:
                await _store_result(tx, job, query, stated)

    async def _start_check(self, job: ClaimedJob, context: AuditContext) -> StockQuery | None:
        async with self.uow.begin(job.tenant, context) as tx:
            run = await tx[RunStore].get(str(job.args["run"]))
            source = await tx[SourceStore].get(run.source, lock=True) if run else None
            check_input = run.input if run else None
            if run is None or source is None or run.finished_at is not None or not isinstance(check_input, CheckInput):
                await tx[JobStore].finish(job)
                return None
            if not source.is_runnable:
                await outcome.cancel_run(tx, job, run, f"The source is {source.status}.")
                return None
            run, item = run.with_start(tx.now), await tx[CatalogueStore].get_source_item(check_input.variant)
            try:
                credentials = await decrypt_credentials(tx, self.vault, self.connectors, source)
            except ValueError:
                message = "The stored credentials cannot be decrypted. Enter them again."
                await _end(tx, job, run, RunError(RunErrorCode.CREDENTIALS_REFUSED, message))
                return None
            if item is None:
                await _end(tx, job, run, RunError(RunErrorCode.PARSE_FAILED, _NO_STOCK))
                return None
            await tx[RunStore].save(run)
            await tx[JobStore].renew_lease(job, self.lease)
            task = ConnectorTask(source.config, credentials, Stream.STOCK.value, tenant=tx.tenant)
            return StockQuery(run, source, item, task)

    async def _fetch_stock(self, job: ClaimedJob, query: StockQuery) -> tuple[StockQuery, FeedStatements]:
        """Fetch and parse the source's response. Raises FetchFailed, ParseFailed, FeedReaderFailed.

        Returns:
            The query, whose run names the source's API that served the response, and the parsed response.
        """
        source, item = query.source, query.item
        item_query = StockRequest(item.product_key, query.key, item.sku)
        with self.workspaces.create_folder() as folder:
            path = folder / "snapshot"
            async with self.connectors.fetch_stock(source.connector, query.connector_task, item_query) as response:
                await _write(path, response.chunks)
                run = replace(query.run, served_by=response.served_by)
            async with self.concurrency_limit.slot(job.tenant.org):
                return replace(query, run=run), await self._read(source, path)

    async def _read(self, source: Source, path: Path) -> FeedStatements:
        settings = create_feed_settings(source, Stream.STOCK)
        order = ReadRequest(
            str(path),
            str(path.parent),
            source.connector,
            source.config,
            Stream.STOCK.value,
            settings,
            is_complete=False,
        )
        async with self.readers.open(order) as reader:
            buckets = range(len((await reader.spool(_discard_progress)).bucket_sizes))
            keys = [fingerprint.key for fingerprint in (await reader.load_keys(buckets)).fingerprints]
            return await reader.load_statements(buckets, keys)

    async def _fail(self, job: ClaimedJob, context: AuditContext, code: RunErrorCode, message: str) -> None:
        async with self.uow.begin(job.tenant, context) as tx:
            run = await tx[RunStore].get(str(job.args["run"]))
            if run is not None:
                await _end(tx, job, run, RunError(code, message))


async def _discard_progress(_: int) -> None:
    """Ignore the number of rows read, because a check reads only one item."""


async def _write(path: Path, chunks: AsyncIterator[bytes]) -> None:
    with path.open("wb") as file:
        async for chunk in chunks:
            file.write(chunk)


async def _store_result(tx: Tx, job: ClaimedJob, query: StockQuery, response: FeedStatements) -> None:
    """Update the item's offers from the source's response, and end the run and the job."""
    run, item, id = query.run, query.item, query.source.id
    about = query.select_statements(response.statements)
    source = await tx[SourceStore].get(id, lock=True)
    await tx[CatalogueStore].lock_for_writing()
    found = await tx[CatalogueStore].load_products(id, [], [item.variant_key])
    owners = [(product, own) for product in found.values() for own in product.variants if own.id == item.variant]
    if source is not None and not source.is_runnable:
        await outcome.cancel_run(
            tx, job, run, f"The source is {source.status}."
        )  # a person changed the source before its response
        return
    if source is None or not about or not owners:
        await _end(tx, job, run, RunError(RunErrorCode.PARSE_FAILED, _NO_STOCK))
        return
    product, variant = owners[0]
    reconciler = CatalogueReconciler(source, run.id, run.stream, tx.now, False, {product.key: product}, lambda _: True)
    offers = [one for one in variant.offers if one.source == id and one.withdrawn_at is None]
    stated = _find_stock_by_location(about)
    named = [offer for offer in offers if offer.location in stated]
    for offer in named:
        reconciler.apply_stock_check(product, offer, stated[offer.location])
    events: Sequence[Event] = ()
    if reconciler.events:
        events = await _write_offers(tx, reconciler, product, [variant.key, *(one.key for one in about)])
        await tx[SourceStore].save(replace(source, checked_at=tx.now))
    keys = {one.key for one in about}
    problems = [*(one for one in response.problems if one.external_id in keys), *reconciler.problems]
    problems += describe_missing_offers(offer for offer in offers if offer not in named)
    stats = {"rows": len(about), "problems": len(problems), **reconciler.counts}
    run = replace(run, stats=stats, problems=tuple(problems))
    await _end(tx, job, run, None if named else RunError(RunErrorCode.PARSE_FAILED, _NO_STOCK), events)


def _find_stock_by_location(statements: Iterable[ProductStatement]) -> Mapping[str, OfferData]:
    """Return the data of the offers that have stock or an availability, by location."""
    offers = (offer for one in statements for variant in one.variants for offer in variant.offers)
    return {offer.location: offer.data for offer in offers if any(name in offer.data for name in STOCK_CHECK_FIELDS)}


async def _write_offers(
    tx: Tx, reconciler: CatalogueReconciler, product: Product, keys: Sequence[str]
) -> Sequence[Event]:
    """Write the offers, and return the events of the changes.

    Fingerprints are invalidated, so that the next run of each stream applies the item's rows again. `keys` are the keys
    under which the stock feed may contain the item: the variant's key and the keys in the response.
    """
    source = reconciler.source.id
    reconciler.batch.invalidated_fingerprints = [
        create_invalid_fingerprint(key, Stream.STOCK) for key in dict.fromkeys(keys)
    ]
    events = await write_reconciled(tx, SlotRange(source, Stream.STOCK, 0, 0), reconciler)
    batch = Batch(invalidated_fingerprints=[create_invalid_fingerprint(product.key, Stream.CATALOGUE)])
    await tx[CatalogueStore].save_batch(SlotRange(source, Stream.CATALOGUE, 0, 0), batch, tx.now)
    return events


async def _end(tx: Tx, job: ClaimedJob, run: Run, error: RunError | None = None, events: Sequence[Event] = ()) -> None:
    status = RunStatus.FAILED if error else RunStatus.SUCCEEDED
    await tx[RunStore].save(run.with_end(status, tx.now, error))
    await tx[EventLog].append(events)  # last before the fence: events hold the log's high watermark back
    await tx[JobStore].finish(job)
