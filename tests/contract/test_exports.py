"""Exports from queue to files: completion, failure, takeover, limits, metering and expiry."""

import asyncio
import gzip
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
import pytest_asyncio

from adapters.api_json.codec import JsonCodec
from adapters.api_json.cursors import FeedCursorSigner
from adapters.api_json.events import JsonEventRendering
from adapters.api_json.exports import render_export
from adapters.files.compression import Copier, GzipCompressor
from adapters.files.product_files import create_product_file
from adapters.files.workspaces import FileWorkspaces
from domain.access.model import SCOPES
from domain.catalogue.model import ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.changes.model import ALL, LogView
from domain.changes.usecases.log_tailer import LogTailer
from domain.changes.usecases.service import ChangesService
from domain.events.ports import EventLog
from domain.exports.model import MAX_FAILURES, MAX_OPEN_EXPORTS, MAX_STORED_EXPORTS, Export, ExportKind, NewExport
from domain.exports.ports import ExportStore
from domain.exports.usecases.execution import ExportExecution
from domain.exports.usecases.expiry import ExportExpiry, expire_excess
from domain.exports.usecases.service import ExportRequester, ExportService
from domain.jobs.model import ClaimedJob, build_lane_name
from domain.kernel.errors import (
    Conflict,
    FeatureUnavailable,
    InsufficientScope,
    LeaseLost,
    NotFound,
    PermissionDenied,
    QuotaExceeded,
    Unprocessable,
)
from domain.kernel.ids import new_id
from domain.kernel.lines import Lines
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.model import MeterAllowance
from domain.secrets.keys import SigningKeys
from domain.sources.ports import SourceStore
from domain.storage.usecases import StorageSweeper
from ports.unit_of_work import Tx
from tests.support import builders, catalogues
from tests.support.backend import Backend
from tests.support.memory.clock import SettableClock
from tests.support.memory.objects import MemoryObjects

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
SHORT_LEASE, PAST_LEASE = timedelta(milliseconds=150), timedelta(milliseconds=250)
REQUESTER_SCOPES = frozenset({"products:read", "sources:read"})


class FakeDatasets:
    """Two small datasets in addition to the products."""

    names = ("products", "notes", "nothing", "counted")
    scopes = frozenset({"products:read", "sources:read"})

    async def stream_lines(self, tx: Tx, dataset: str) -> AsyncGenerator[Lines, None]:
        if dataset == "notes":
            yield Lines(2, b'{"n":1}\n{"n":2}\n')
        if dataset == "counted":
            page = await tx[CatalogueStore].list_products(ProductFilter(), PageRequest(limit=100))
            yield Lines(1, json.dumps(sorted(document.id for document in page.items)).encode() + b"\n")


class GatedObjects(MemoryObjects):
    """Object store that blocks writes until `gate` is set, and fails the next `failures_left` writes."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.reached, self.failures_left = asyncio.Event(), asyncio.Event(), 0
        self.gate.set()

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        async def passed() -> AsyncIterator[bytes]:
            async for chunk in chunks:
                self.reached.set()
                await self.gate.wait()
                if self.failures_left:
                    self.failures_left -= 1
                    raise OSError("the store is full")
                yield chunk

        await super().put_stream(key, passed())

    def list_keys(self) -> set[str]:
        return set(self._objects)

    def read_lines(self, key: str) -> list[bytes]:
        return gzip.decompress(self._objects[key]).splitlines()


@dataclass
class ExportHarness:
    """Organisation with the service and the job of its exports."""

    backend: Backend
    tenant: Tenant
    requester: ExportRequester
    objects: GatedObjects = field(default_factory=GatedObjects)
    cursors: FeedCursorSigner = field(default_factory=lambda: FeedCursorSigner(SigningKeys(b"k" * 32)))

    def __post_init__(self) -> None:
        self.service = ExportService(self.objects, FakeDatasets())
        events = self.backend.events
        tailer = LogTailer(events, JsonEventRendering(), self.backend.signals)
        self.changes = ChangesService(events, tailer)

    def create_handler(self, lease: timedelta = timedelta(seconds=30), interval: float = 0.02) -> ExportExecution:
        return ExportExecution(
            uow=self.backend.uow, objects=self.objects, compressor_factory=GzipCompressor, copier_factory=Copier,
            workspaces=FileWorkspaces(), product_file_factory=create_product_file, datasets=FakeDatasets(), codec=JsonCodec(),
            cursors=self.cursors, find_feed_end=self.changes.find_end, render_export=render_export, lease=lease,
            progress_interval=interval,
        )  # fmt: skip

    async def request_export(self, kind: ExportKind = ExportKind.PRODUCTS, **more: object) -> Export:
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            new: NewExport = {"kind": kind, **more}  # type: ignore[typeddict-item]
            return (await self.service.create(tx, new, self.requester)).export

    async def claim_jobs(self, lease: timedelta = timedelta(seconds=30)) -> list[ClaimedJob]:
        mode = "live" if self.tenant.livemode else "test"
        return list(await self.backend.dispatch.claim(build_lane_name(self.tenant.org, f"exports:{mode}"), 50, lease))

    async def run_jobs(self) -> None:
        """Run each waiting job once."""
        for job in await self.claim_jobs():
            await self.create_handler()(job, asyncio.Event())

    async def create_export(self, kind: ExportKind = ExportKind.PRODUCTS, **more: object) -> Export:
        requested = await self.request_export(kind, **more)
        await self.run_jobs()
        return await self.load_export(requested)

    async def load_export(self, export: Export) -> Export:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            return (await self.service.get(tx, export.id, SCOPES)).export

    async def list_documents(self, **filter: object) -> list[bytes]:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            page = await tx[CatalogueStore].list_products(ProductFilter(**filter), PageRequest(limit=100))  # type: ignore[arg-type]
            return sorted(document.body for document in page.items)

    async def add_products(self, count: int, key: str = "P") -> None:
        source = builders.source()
        products = [builders.product(source.id, source.catalogue, f"{key}{n}") for n in range(count)]
        for product in products:
            builders.offer(builders.variant(product, f"{product.key}-1"))
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            await tx[SourceStore].add(source)
        await catalogues.add_products(self.backend.uow, self.tenant, *products)

    async def list_notifications(self) -> list[tuple[str, str]]:
        """Return status and error of every export event."""
        page = await self.changes._events.read_recent(LogView.own(self.tenant), 1 << 40, 50, ALL)
        bodies = [json.loads(event.body)["data"] for event in page.events if event.type == "export.completed"]
        return [(body["status"], body.get("error", "")) for body in bodies]

    async def sweep_storage(self) -> None:
        clock = SettableClock()
        clock.advance(self.backend.now() - clock.now())
        await StorageSweeper(self.backend.uow, self.backend.storage, self.objects, clock).free_due()


async def create_harness(
    backend: Backend, *, livemode: bool = True, rows: int = 1_000, **changes: object
) -> ExportHarness:
    plan = builders.plan(new_id("job"), meters={"export_rows": MeterAllowance(rows, 1, 1)}, **changes)
    await backend.offer(plan)
    organisation = await backend.organisation(plan=plan)
    return ExportHarness(backend, Tenant(organisation.id, livemode), ExportRequester(plan, REQUESTER_SCOPES))


@pytest_asyncio.fixture
async def harness(backend: Backend) -> ExportHarness:
    return await create_harness(backend)


async def test_an_export_has_a_line_for_each_product(harness: ExportHarness) -> None:
    await harness.add_products(7)
    requested = await harness.request_export()
    assert (requested.status, requested.files) == ("pending", ())
    assert (await harness.backend.exports.find_oldest_waiting()) is not None
    await harness.run_jobs()
    made = await harness.load_export(requested)
    assert (made.status, made.rows, made.error) == ("succeeded", 7, None)
    products, manifest = made.files
    assert sorted(harness.objects.read_lines(products.key)) == await harness.list_documents()
    [described] = [json.loads(line) for line in harness.objects.read_lines(manifest.key)]
    data = harness.objects._objects[products.key]
    assert described == {
        "dataset": "products",
        "rows": 7,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    assert products.bytes == len(data) and manifest.dataset == "manifest" and manifest.rows == 1
    assert await harness.list_notifications() == [("succeeded", "")]
    assert await harness.claim_jobs() == []


async def test_the_cursor_continues_after_the_export(harness: ExportHarness) -> None:
    async def append(subject: str) -> None:
        async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
            await tx[EventLog].append([builders.event(subject)])

    await append("prod_before")
    made = await harness.create_export()
    await append("prod_after")
    assert made.changes_cursor is not None
    position = harness.cursors.verify(harness.tenant, made.changes_cursor)
    page = await harness.changes.read_page(harness.tenant, position, 100, ALL)
    subjects = [json.loads(f"[{body.decode()}]") for body in page.bodies]
    seen = [event["subject"] for events in subjects for event in events]
    assert "prod_before" not in seen and seen[-1] == "prod_after"


async def test_lines_and_cursor_belong_to_the_same_snapshot(harness: ExportHarness) -> None:
    """Writers commit before, during and after the snapshot: its lines are exactly the data before the cursor."""
    source, stop = builders.source(), asyncio.Event()

    async def write(name: str) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            product = builders.product(source.id, source.catalogue, f"{name}{number}")
            async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
                await tx[CatalogueStore].save_batch(
                    catalogues.full_key_range(source.id), catalogues.build_batch(product), tx.now
                )
                event = builders.event(product.id, type="product.created", version=1, data={"id": product.id})
                await tx[EventLog].append([event])
            await asyncio.sleep(0.003)

    writers = [asyncio.create_task(write(name)) for name in "ABC"]
    sizes = []
    for _ in range(5):
        await asyncio.sleep(0.02)
        requested = await harness.request_export(ExportKind.ORGANISATION)
        harness.objects.gate.clear()
        working = asyncio.create_task(harness.run_jobs())
        await harness.objects.reached.wait()
        await asyncio.sleep(0.02)
        harness.objects.gate.set()
        await working
        made = await harness.load_export(requested)
        [counted] = harness.objects.read_lines(made.files[3].key)
        lines = sorted(json.loads(line)["id"] for line in harness.objects.read_lines(made.files[0].key))
        assert set(json.loads(counted)) <= set(lines) and len(json.loads(counted)) == min(100, len(lines))
        position = harness.cursors.verify(harness.tenant, str(made.changes_cursor))
        assert position is not None
        changes = await harness.changes._events.read_recent(
            LogView.own(harness.tenant), position.own.position + 1, 1_000, ALL
        )
        assert sorted(event.subject for event in changes.events if event.type == "product.created") == lines
        sizes.append(len(lines))
        harness.objects.reached.clear()
    stop.set()
    await asyncio.gather(*writers)
    assert sizes == sorted(set(sizes)) and sizes[-1] < len(
        (await harness.backend.events.read_recent(LogView.own(harness.tenant), 1 << 40, 5_000, ALL)).events
    )


async def test_an_export_waits_for_a_slot(harness: ExportHarness) -> None:
    requested = await harness.request_export()
    handler = replace(harness.create_handler(), concurrency_limit=asyncio.Semaphore(1))
    await handler.concurrency_limit.acquire()
    [job] = await harness.claim_jobs()
    await handler(job, asyncio.Event())
    assert (await harness.load_export(requested)).status == "pending" and await harness.claim_jobs() == []
    await harness.backend.dispatch.release(job, harness.backend.now())
    handler.concurrency_limit.release()
    [job] = await harness.claim_jobs()
    await handler(job, asyncio.Event())
    assert (await harness.load_export(requested)).status == "succeeded"


async def test_an_empty_dataset_is_an_empty_file(harness: ExportHarness) -> None:
    made = await harness.create_export()
    assert (made.status, made.rows) == ("succeeded", 0)
    assert harness.objects.read_lines(made.files[0].key) == [] and made.files[0].bytes > 0


async def test_a_product_larger_than_a_batch_is_exported(harness: ExportHarness) -> None:
    source = builders.source()
    large = builders.product(source.id, source.catalogue, "L", data={"title": "Large", "description": "ö" * 1_700_000})
    await catalogues.add_products(harness.backend.uow, harness.tenant, large)
    await harness.add_products(2)
    made = await harness.create_export()
    lines = {json.loads(line)["id"]: line for line in harness.objects.read_lines(made.files[0].key)}
    async with harness.backend.uow.begin_reading(harness.tenant) as tx:
        document = await tx[CatalogueStore].get_product(large.id)
    assert document is not None and lines[large.id] == document.body and len(lines) == made.rows == 3


async def test_only_recently_changed_products_are_exported(harness: ExportHarness) -> None:
    await harness.add_products(2)
    now = harness.backend.now() + timedelta(hours=1)
    source = builders.source()
    fresh = builders.product(source.id, source.catalogue, "fresh")
    await catalogues.add_products(harness.backend.uow, harness.tenant, fresh, now=now)
    made = await harness.create_export(filters={"updated_since": now})
    assert harness.objects.read_lines(made.files[0].key) == await harness.list_documents(updated_since=now)
    assert made.rows == 1 and made.filters.updated_since == now


async def test_a_file_for_each_dataset(harness: ExportHarness) -> None:
    await harness.add_products(3)
    made = await harness.create_export(ExportKind.ORGANISATION)
    assert [(file.dataset, file.rows) for file in made.files] == [
        ("products", 3), ("notes", 2), ("nothing", 0), ("counted", 1), ("manifest", 4),
    ]  # fmt: skip
    assert made.rows == 6 and harness.objects.read_lines(made.files[1].key) == [b'{"n":1}', b'{"n":2}']


async def test_export_permissions(harness: ExportHarness) -> None:
    harness.requester = replace(harness.requester, scopes=frozenset({"sources:read"}))
    with pytest.raises(PermissionDenied, match="products:read"):
        await harness.request_export()
    with pytest.raises(InsufficientScope, match="products:read"):
        await harness.request_export(ExportKind.ORGANISATION)
    harness.requester = ExportRequester(builders.plan(features=frozenset()), REQUESTER_SCOPES)
    with pytest.raises(FeatureUnavailable):
        await harness.request_export()
    with pytest.raises(Unprocessable):
        await harness.request_export(ExportKind.ORGANISATION, filters={"updated_since": builders.MOMENT})
    assert (await harness.request_export(ExportKind.ORGANISATION, filters={})).status == "pending"
    with pytest.raises(NotFound):
        await harness.load_export(replace(await harness.request_export(ExportKind.ORGANISATION), id=new_id("exp")))


async def test_open_exports_are_limited_under_concurrent_requests(harness: ExportHarness) -> None:
    outcomes = await asyncio.gather(*(harness.request_export() for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(one, Export) for one in outcomes) == MAX_OPEN_EXPORTS
    assert all(isinstance(one, Export | Conflict) for one in outcomes)
    await harness.run_jobs()
    assert (await harness.request_export()).status == "pending"


async def test_progress_is_recorded_during_the_export(harness: ExportHarness) -> None:
    await harness.add_products(4)
    harness.objects.gate.clear()
    requested = await harness.request_export()
    working = asyncio.create_task(harness.run_jobs())
    await harness.objects.reached.wait()
    async with asyncio.timeout(10):
        while (await harness.load_export(requested)).rows != 4:
            await asyncio.sleep(0.01)
    assert (await harness.load_export(requested)).status == "running"
    harness.objects.gate.set()
    await working
    assert (await harness.load_export(requested)).status == "succeeded"


async def test_an_attempt_with_an_expired_lease_changes_nothing(harness: ExportHarness) -> None:
    await harness.add_products(2)
    requested = await harness.request_export()
    harness.objects.gate.clear()
    [job] = await harness.claim_jobs(SHORT_LEASE)
    late = asyncio.create_task(harness.create_handler(SHORT_LEASE, interval=60)(job, asyncio.Event()))
    await harness.objects.reached.wait()
    first = (await harness.load_export(requested)).keys
    await harness.backend.pass_time(PAST_LEASE)
    [again] = await harness.claim_jobs()
    assert again.has_expired_lease and again.attempt == 2
    harness.objects.gate.set()
    slow = harness.create_handler()
    await slow(again, asyncio.Event())
    ended = await harness.load_export(requested)
    with pytest.raises(LeaseLost):
        await late
    assert ended.status == "succeeded" and ended.crashes == 1 and ended == await harness.load_export(requested)
    assert not set(ended.keys) & set(first)
    await harness.sweep_storage()
    assert harness.objects.list_keys() == set(ended.keys)
    assert await harness.list_notifications() == [("succeeded", "")]


async def test_an_export_whose_attempts_die_is_reported_as_failed(harness: ExportHarness) -> None:
    requested = await harness.request_export()
    for _ in range(3):
        harness.objects.gate.clear()
        harness.objects.reached.clear()
        [job] = await harness.claim_jobs(SHORT_LEASE)
        dying = asyncio.create_task(harness.create_handler(SHORT_LEASE, interval=60)(job, asyncio.Event()))
        await harness.objects.reached.wait()
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        await harness.backend.pass_time(PAST_LEASE)
    harness.objects.gate.set()
    await harness.run_jobs()
    ended = await harness.load_export(requested)
    assert (ended.status, ended.crashes) == ("failed", 3) and "interrupted" in str(ended.error)
    [(status, error)] = await harness.list_notifications()
    assert status == "failed" and error == ended.error
    await harness.sweep_storage()
    assert harness.objects.list_keys() == set()


async def test_a_deployment_is_not_a_failure(harness: ExportHarness) -> None:
    requested = await harness.request_export()
    harness.objects.gate.clear()
    [job] = await harness.claim_jobs()
    working = asyncio.create_task(harness.create_handler()(job, asyncio.Event()))
    await harness.objects.reached.wait()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await harness.backend.dispatch.release(job, harness.backend.now())
    harness.objects.gate.set()
    await harness.run_jobs()
    ended = await harness.load_export(requested)
    assert (ended.status, ended.crashes, ended.failures) == ("succeeded", 0, 0)


async def test_temporary_store_failures_are_retried(harness: ExportHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("domain.exports.usecases.execution.compute_retry_delay", lambda _: timedelta())
    await harness.add_products(1)
    harness.objects.failures_left = 1
    requested = await harness.request_export()
    await harness.run_jobs()
    waiting = await harness.load_export(requested)
    assert (waiting.status, waiting.failures, waiting.rows) == ("pending", 1, 0)
    await harness.run_jobs()
    assert (await harness.load_export(requested)).status == "succeeded"

    harness.objects.failures_left = MAX_FAILURES
    requested = await harness.request_export()
    for _ in range(MAX_FAILURES):
        await harness.run_jobs()
    ended = await harness.load_export(requested)
    assert ended.status == "failed" and "object store" in str(ended.error) and ended.files == ()
    assert [status for status, _ in await harness.list_notifications()] == ["failed", "succeeded"]
    await harness.sweep_storage()
    assert all(requested.id not in key for key in harness.objects.list_keys())


async def test_rows_count_once_and_are_limited_by_the_plan(backend: Backend) -> None:
    harness = await create_harness(backend, rows=5)
    await harness.add_products(3)
    assert (await harness.create_export()).status == "succeeded"
    refused = await harness.create_export()
    assert refused.status == "failed" and "plan" in str(refused.error) and refused.rows == 0
    assert (await harness.create_export(ExportKind.ORGANISATION)).status == "succeeded"
    await harness.add_products(1, "Q")
    now = harness.backend.now() + timedelta(hours=1)
    source = builders.source()
    fresh = [builders.product(source.id, source.catalogue, f"F{n}") for n in range(2)]
    await catalogues.add_products(harness.backend.uow, harness.tenant, *fresh, now=now)
    assert (await harness.create_export(filters={"updated_since": now})).status == "succeeded"
    with pytest.raises(QuotaExceeded) as refusal:
        await harness.request_export()
    assert refusal.value.extra == {"meter": "export_rows"} and refusal.value.retry_after
    test = ExportHarness(backend, Tenant(harness.tenant.org, False), harness.requester)
    await test.add_products(6)
    assert (await test.create_export()).rows == 6


async def test_files_expire(harness: ExportHarness) -> None:
    await harness.add_products(1)
    made = await harness.create_export()
    async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
        linked = await harness.service.add_links(made, tx.now, SCOPES)
        assert len(linked.urls) == 2
        await tx[ExportStore].save(replace(made, expires_at=tx.now))
    clock = SettableClock()
    clock.advance(harness.backend.now() + timedelta(seconds=1) - clock.now())
    assert await ExportExpiry(harness.backend.uow, harness.backend.exports, clock).expire_due() >= 1
    gone = await harness.load_export(made)
    assert (gone.status, gone.files, gone.rows) == ("expired", (), 1) and gone.changes_cursor
    await harness.sweep_storage()
    assert harness.objects.list_keys() == set()


async def test_only_the_newest_exports_are_kept(harness: ExportHarness) -> None:
    async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
        made = [builders.export().with_success((), "cursor", tx.now) for _ in range(MAX_STORED_EXPORTS + 1)]
        await tx[ExportStore].add_all(made)
        await expire_excess(tx)
        kept = [export.id for export in await tx[ExportStore].list_with_files()]
    assert kept == sorted((export.id for export in made), reverse=True)[: MAX_STORED_EXPORTS - 1]
