"""The run of a stock check: it asks a source for one item's stock and updates the item's offers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from domain.catalogue import search
from domain.catalogue.batch import Batch, KeyRange
from domain.catalogue.data import OfferData
from domain.catalogue.differences import CHECKED
from domain.catalogue.model import Product, SourceItem, Stream
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import ProductStatement
from domain.catalogue.usecases.writing import write
from domain.checks.model import unstated
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.ingestion.ports import (
    Connectors,
    FeedReaders,
    FetchFailed,
    Item,
    Job,
    ParseFailed,
    ReaderDied,
    ReadingOrder,
)
from domain.ingestion.reading import NeedsMapping, Stated
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError
from domain.kernel.tenancy import AuditContext
from domain.runs.chunks import outdated
from domain.runs.model import CheckInput, Run, RunError, RunErrorCode, RunStatus
from domain.runs.ports import RunStore
from domain.runs.sheets import context_of
from domain.runs.usecases import outcome
from domain.secrets.ports import Vault
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.sources.usecases.signing import opened_credentials
from ports.unit_of_work import Tx, UnitOfWork
from ports.workspaces import Workspaces

_LOG = logging.getLogger("joinery.checks")
_TRIES = 3
_OWN_ERROR = "The service met an error of its own; nothing was changed. Its operators can see it in the log."
_NOTHING = "The source's answer states no stock of this item; what was known of it stays."


@dataclass(frozen=True, slots=True)
class Question:
    """The item to ask about, and its source."""

    run: Run
    source: Source
    item: SourceItem
    job: Job

    @property
    def key(self) -> str:
        """The source's own key of the item; an item that two products state is stored under a longer one."""
        return self.item.variant_key.removesuffix(f" / {self.item.product_key}") or self.item.variant_key

    def about(self, statements: Sequence[ProductStatement]) -> Sequence[ProductStatement]:
        """Return the statements about the item: those with its key, or the only one with its SKU."""
        found = [one for one in statements if one.key in (self.key, self.item.variant_key)]
        if found or not (code := search.code(self.item.sku or "")):
            return found
        found = [one for one in statements if search.code(one.key) == code]
        return found if len(found) == 1 else []


@dataclass(frozen=True, slots=True)
class CheckExecution:
    """The handler of `runs.check` jobs.

    A check does not affect the source's health, freshness or schedule, because one item says nothing about the feed. It
    does not wait for a source that throttles requests, because the current stock is requested.
    """

    uow: UnitOfWork
    connectors: Connectors
    vault: Vault
    readers: FeedReaders
    workspaces: Workspaces
    slots: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(2))
    lease: timedelta = timedelta(seconds=30)

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Ask the source and update the item's offers. Raises LeaseLost if another worker took over the job."""
        context = job.context()
        question = await self._begin(job, context)
        if question is None:
            return
        try:
            question, stated = await self._answered(job, question)
        except FetchFailed as failure:
            await self._fail(job, context, RunErrorCode(failure.code), str(failure))
        except (ParseFailed, NeedsMapping, ReaderDied) as failure:
            await self._fail(job, context, RunErrorCode.PARSE_FAILED, str(failure))
        except DomainError:
            raise
        except Exception:
            if job.attempt < _TRIES:
                raise
            _LOG.exception("stock check given up after %d attempts", _TRIES, extra={"run": question.run.id})
            await self._fail(job, context, RunErrorCode.INTERNAL_ERROR, _OWN_ERROR)
        else:
            async with self.uow.begin(job.tenant, context) as tx:
                await _keep(tx, job, question, stated)

    async def _begin(self, job: ClaimedJob, context: AuditContext) -> Question | None:
        async with self.uow.begin(job.tenant, context) as tx:
            run = await tx[RunStore].get(str(job.args["run"]))
            source = await tx[SourceStore].get(run.source, lock=True) if run else None
            asked = run.input if run else None
            if run is None or source is None or run.finished_at is not None or not isinstance(asked, CheckInput):
                await tx[JobStore].finish(job)
                return None
            if not source.runnable:
                await outcome.cancel(tx, job, run, f"The source is {source.status}.")
                return None
            run, item = run.started(tx.now), await tx[CatalogueStore].item(asked.variant)
            try:
                credentials = await opened_credentials(tx, self.vault, self.connectors, source)
            except ValueError:
                message = "The stored credentials cannot be opened; store them again."
                await _end(tx, job, run, RunError(RunErrorCode.CREDENTIALS_REFUSED, message))
                return None
            if item is None:
                await _end(tx, job, run, RunError(RunErrorCode.PARSE_FAILED, _NOTHING))
                return None
            await tx[RunStore].save(run)
            await tx[JobStore].hold(job, self.lease)
            asked_as = Job(source.config, credentials, Stream.STOCK.value, caller=tx.tenant.org)
            return Question(run, source, item, asked_as)

    async def _answered(self, job: ClaimedJob, question: Question) -> tuple[Question, Stated]:
        """Fetch and read the source's response. Raises FetchFailed, ParseFailed, ReaderDied."""
        source, item = question.source, question.item
        asked = Item(item.product_key, question.key, item.sku)
        with self.workspaces.folder() as folder:
            path = folder / "snapshot"
            async with self.connectors.check(source.connector, question.job, asked) as answer:
                await _write(path, answer.chunks)
                run = replace(question.run, served_by=answer.served_by)
            async with self.slots.slot(job.tenant.org):
                return replace(question, run=run), await self._read(source, path)

    async def _read(self, source: Source, path: Path) -> Stated:
        settings = context_of(source, Stream.STOCK)
        order = ReadingOrder(
            str(path), str(path.parent), source.connector, source.config, Stream.STOCK.value, settings, whole=False
        )
        async with self.readers.open(order) as reader:
            buckets = range(len((await reader.spool(_unheard)).held))
            keys = [fingerprint.key for fingerprint in (await reader.gather(buckets)).fingerprints]
            return await reader.states(buckets, keys)

    async def _fail(self, job: ClaimedJob, context: AuditContext, code: RunErrorCode, message: str) -> None:
        async with self.uow.begin(job.tenant, context) as tx:
            run = await tx[RunStore].get(str(job.args["run"]))
            if run is not None:
                await _end(tx, job, run, RunError(code, message))


async def _unheard(_: int) -> None:
    """Ignore the number of rows, which is irrelevant for one item."""


async def _write(path: Path, chunks: AsyncIterator[bytes]) -> None:
    with path.open("wb") as file:
        async for chunk in chunks:
            file.write(chunk)


async def _keep(tx: Tx, job: ClaimedJob, question: Question, answer: Stated) -> None:
    """Store the item's offers, the events, the run and the job's end in one transaction."""
    run, item, id = question.run, question.item, question.source.id
    about = question.about(answer.statements)
    source = await tx[SourceStore].get(id, lock=True)
    await tx[CatalogueStore].take_turn()
    found = await tx[CatalogueStore].load(id, [], [item.variant_key])
    owners = [(product, own) for product in found.values() for own in product.variants if own.id == item.variant]
    if source is not None and not source.runnable:
        await outcome.cancel(tx, job, run, f"The source is {source.status}.")  # a person was quicker than its answer
        return
    if source is None or not about or not owners:
        await _end(tx, job, run, RunError(RunErrorCode.PARSE_FAILED, _NOTHING))
        return
    product, variant = owners[0]
    reconciler = CatalogueReconciler(source, run.id, run.stream, tx.now, False, {product.key: product}, lambda _: True)
    offers = [one for one in variant.offers if one.source == id and one.withdrawn_at is None]
    stated = _stated(about)
    named = [offer for offer in offers if offer.location in stated]
    for offer in named:
        reconciler.check(product, offer, stated[offer.location])
    events: Sequence[Event] = ()
    if reconciler.events:
        events = await _save(tx, reconciler, product, [variant.key, *(one.key for one in about)])
        await tx[SourceStore].save(replace(source, checked_at=tx.now))
    keys = {one.key for one in about}
    problems = [*(one for one in answer.problems if one.external_id in keys), *reconciler.problems]
    problems += unstated(offer for offer in offers if offer not in named)
    stats = {"rows": len(about), "problems": len(problems), **reconciler.counts}
    run = replace(run, stats=stats, problems=tuple(problems))
    await _end(tx, job, run, None if named else RunError(RunErrorCode.PARSE_FAILED, _NOTHING), events)


def _stated(statements: Iterable[ProductStatement]) -> Mapping[str, OfferData]:
    """Return the stated stock by location, limited to offers that state stock or availability."""
    offers = (offer for one in statements for variant in one.variants for offer in variant.offers)
    return {offer.location: offer.data for offer in offers if any(name in offer.data for name in CHECKED)}


async def _save(tx: Tx, reconciler: CatalogueReconciler, product: Product, keys: Sequence[str]) -> Sequence[Event]:
    """Write the offers and invalidate the fingerprints of their rows, so that the next run applies them again.

    The stock stream may key an item by its own key or by the code that a response to a check uses.
    """
    source = reconciler.source.id
    reconciler.batch.outdated = [outdated(key, Stream.STOCK) for key in dict.fromkeys(keys)]
    events = await write(tx, KeyRange(source, Stream.STOCK, 0, 0), reconciler)
    whole = Batch(outdated=[outdated(product.key, Stream.CATALOGUE)])
    await tx[CatalogueStore].save(KeyRange(source, Stream.CATALOGUE, 0, 0), whole, tx.now)
    return events


async def _end(tx: Tx, job: ClaimedJob, run: Run, error: RunError | None = None, events: Sequence[Event] = ()) -> None:
    status = RunStatus.FAILED if error else RunStatus.SUCCEEDED
    await tx[RunStore].save(run.ended(status, tx.now, error))
    await tx[EventLog].append(events)  # last before the fence: events hold the log's high watermark back
    await tx[JobStore].finish(job)
