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
from adapters.files.compression import GzipCompressor
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
SHORT, PAST_IT = timedelta(milliseconds=150), timedelta(milliseconds=250)
MAY = frozenset({"products:read", "sources:read"})


class Notes:
    """Two small datasets in addition to the products."""

    names = ("products", "notes", "nothing", "counted")
    scopes = frozenset({"products:read", "sources:read"})

    async def stream_lines(self, tx: Tx, dataset: str) -> AsyncGenerator[Lines, None]:
        if dataset == "notes":
            yield Lines(2, b'{"n":1}\n{"n":2}\n')
        if dataset == "counted":
            page = await tx[CatalogueStore].list_products(ProductFilter(), PageRequest(limit=100))
            yield Lines(1, json.dumps(sorted(document.id for document in page.items)).encode() + b"\n")


class Gate(MemoryObjects):
    """Object store that blocks writes until `gate` is set, and fails the next `failures_left` writes."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.reached, self.broken = asyncio.Event(), asyncio.Event(), 0
        self.gate.set()

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        async def passed() -> AsyncIterator[bytes]:
            async for chunk in chunks:
                self.reached.set()
                await self.gate.wait()
                if self.broken:
                    self.broken -= 1
                    raise OSError("the store is full")
                yield chunk

        await super().put_stream(key, passed())

    def stored(self) -> set[str]:
        return set(self._objects)

    def lines(self, key: str) -> list[bytes]:
        return gzip.decompress(self._objects[key]).splitlines()


@dataclass
class Desk:
    """Organisation with the service and the job of its exports."""

    backend: Backend
    tenant: Tenant
    requester: ExportRequester
    objects: Gate = field(default_factory=Gate)
    cursors: FeedCursorSigner = field(default_factory=lambda: FeedCursorSigner(SigningKeys(b"k" * 32)))

    def __post_init__(self) -> None:
        self.service = ExportService(self.objects, Notes())
        events = self.backend.events
        tailer = LogTailer(events, JsonEventRendering(), self.backend.signals)
        self.changes = ChangesService(events, tailer)

    def handler(self, lease: timedelta = timedelta(seconds=30), interval: float = 0.02) -> ExportExecution:
        return ExportExecution(
            uow=self.backend.uow, objects=self.objects, compressor_factory=GzipCompressor, datasets=Notes(), codec=JsonCodec(),
            cursors=self.cursors, find_feed_end=self.changes.find_end, render_export=render_export, lease=lease,
            progress_interval=interval,
        )  # fmt: skip

    async def request(self, kind: ExportKind = ExportKind.PRODUCTS, **more: object) -> Export:
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            new: NewExport = {"kind": kind, **more}  # type: ignore[typeddict-item]
            return (await self.service.create(tx, new, self.requester)).export

    async def claim(self, lease: timedelta = timedelta(seconds=30)) -> list[ClaimedJob]:
        mode = "live" if self.tenant.livemode else "test"
        return list(await self.backend.dispatch.claim(build_lane_name(self.tenant.org, f"exports:{mode}"), 50, lease))

    async def work(self) -> None:
        """Run each waiting job once."""
        for job in await self.claim():
            await self.handler()(job, asyncio.Event())

    async def made(self, kind: ExportKind = ExportKind.PRODUCTS, **more: object) -> Export:
        requested = await self.request(kind, **more)
        await self.work()
        return await self.stored(requested)

    async def stored(self, export: Export) -> Export:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            return (await self.service.get(tx, export.id, SCOPES)).export

    async def listed(self, **filter: object) -> list[bytes]:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            page = await tx[CatalogueStore].list_products(ProductFilter(**filter), PageRequest(limit=100))  # type: ignore[arg-type]
            return sorted(document.body for document in page.items)

    async def fill(self, count: int, key: str = "P") -> None:
        source = builders.source()
        products = [builders.product(source.id, source.catalogue, f"{key}{n}") for n in range(count)]
        for product in products:
            builders.offer(builders.variant(product, f"{product.key}-1"))
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            await tx[SourceStore].add(source)
        await catalogues.add_products(self.backend.uow, self.tenant, *products)

    async def notified(self) -> list[tuple[str, str]]:
        """Return status and error of every export event."""
        page = await self.changes._events.read_recent(LogView.own(self.tenant), 1 << 40, 50, ALL)
        bodies = [json.loads(event.body)["data"] for event in page.events if event.type == "export.completed"]
        return [(body["status"], body.get("error", "")) for body in bodies]

    async def sweep(self) -> None:
        clock = SettableClock()
        clock.advance(self.backend.now() - clock.now())
        await StorageSweeper(self.backend.uow, self.backend.storage, self.objects, clock).free_due()


async def desk_of(backend: Backend, *, livemode: bool = True, rows: int = 1_000, **changes: object) -> Desk:
    plan = builders.plan(new_id("job"), meters={"export_rows": MeterAllowance(rows, 1, 1)}, **changes)
    await backend.offer(plan)
    organisation = await backend.organisation(plan=plan)
    return Desk(backend, Tenant(organisation.id, livemode), ExportRequester(plan, MAY))


@pytest_asyncio.fixture
async def desk(backend: Backend) -> Desk:
    return await desk_of(backend)


async def test_a_line_for_each_product_as_it_is_listed(desk: Desk) -> None:
    await desk.fill(7)
    requested = await desk.request()
    assert (requested.status, requested.files) == ("pending", ())
    assert (await desk.backend.exports.find_oldest_waiting()) is not None
    await desk.work()
    made = await desk.stored(requested)
    assert (made.status, made.rows, made.error) == ("succeeded", 7, None)
    products, manifest = made.files
    assert sorted(desk.objects.lines(products.key)) == await desk.listed()
    [described] = [json.loads(line) for line in desk.objects.lines(manifest.key)]
    data = desk.objects._objects[products.key]
    assert described == {
        "dataset": "products",
        "rows": 7,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    assert products.bytes == len(data) and manifest.dataset == "manifest" and manifest.rows == 1
    assert await desk.notified() == [("succeeded", "")]
    assert await desk.claim() == []


async def test_the_cursor_leads_to_what_came_after(desk: Desk) -> None:
    async def append(subject: str) -> None:
        async with desk.backend.uow.begin(desk.tenant, CALL) as tx:
            await tx[EventLog].append([builders.event(subject)])

    await append("prod_before")
    made = await desk.made()
    await append("prod_after")
    assert made.changes_cursor is not None
    position = desk.cursors.verify(desk.tenant, made.changes_cursor)
    page = await desk.changes.read_page(desk.tenant, position, 100, ALL)
    subjects = [json.loads(f"[{body.decode()}]") for body in page.bodies]
    seen = [event["subject"] for events in subjects for event in events]
    assert "prod_before" not in seen and seen[-1] == "prod_after"


async def test_lines_and_cursor_are_of_one_moment(desk: Desk) -> None:
    """Writers commit before, during and after the snapshot: its lines are exactly the data before the cursor."""
    source, stop = builders.source(), asyncio.Event()

    async def write(name: str) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            product = builders.product(source.id, source.catalogue, f"{name}{number}")
            async with desk.backend.uow.begin(desk.tenant, CALL) as tx:
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
        requested = await desk.request(ExportKind.ORGANISATION)
        desk.objects.gate.clear()
        working = asyncio.create_task(desk.work())
        await desk.objects.reached.wait()
        await asyncio.sleep(0.02)
        desk.objects.gate.set()
        await working
        made = await desk.stored(requested)
        [counted] = desk.objects.lines(made.files[3].key)
        lines = sorted(json.loads(line)["id"] for line in desk.objects.lines(made.files[0].key))
        assert set(json.loads(counted)) <= set(lines) and len(json.loads(counted)) == min(100, len(lines))
        position = desk.cursors.verify(desk.tenant, str(made.changes_cursor))
        assert position is not None
        changes = await desk.changes._events.read_recent(
            LogView.own(desk.tenant), position.own.position + 1, 1_000, ALL
        )
        assert sorted(event.subject for event in changes.events if event.type == "product.created") == lines
        sizes.append(len(lines))
        desk.objects.reached.clear()
    stop.set()
    await asyncio.gather(*writers)
    assert sizes == sorted(set(sizes)) and sizes[-1] < len(
        (await desk.backend.events.read_recent(LogView.own(desk.tenant), 1 << 40, 5_000, ALL)).events
    )


async def test_one_that_finds_no_turn_waits(desk: Desk) -> None:
    requested = await desk.request()
    handler = replace(desk.handler(), concurrency_limit=asyncio.Semaphore(1))
    await handler.concurrency_limit.acquire()
    [job] = await desk.claim()
    await handler(job, asyncio.Event())
    assert (await desk.stored(requested)).status == "pending" and await desk.claim() == []
    await desk.backend.dispatch.release(job, desk.backend.now())
    handler.concurrency_limit.release()
    [job] = await desk.claim()
    await handler(job, asyncio.Event())
    assert (await desk.stored(requested)).status == "succeeded"


async def test_nothing_is_an_empty_file(desk: Desk) -> None:
    made = await desk.made()
    assert (made.status, made.rows) == ("succeeded", 0)
    assert desk.objects.lines(made.files[0].key) == [] and made.files[0].bytes > 0


async def test_a_product_larger_than_a_portion(desk: Desk) -> None:
    source = builders.source()
    large = builders.product(source.id, source.catalogue, "L", data={"title": "Large", "description": "ö" * 1_700_000})
    await catalogues.add_products(desk.backend.uow, desk.tenant, large)
    await desk.fill(2)
    made = await desk.made()
    lines = {json.loads(line)["id"]: line for line in desk.objects.lines(made.files[0].key)}
    async with desk.backend.uow.begin_reading(desk.tenant) as tx:
        document = await tx[CatalogueStore].get_product(large.id)
    assert document is not None and lines[large.id] == document.body and len(lines) == made.rows == 3


async def test_only_what_changed_lately(desk: Desk) -> None:
    await desk.fill(2)
    now = desk.backend.now() + timedelta(hours=1)
    source = builders.source()
    fresh = builders.product(source.id, source.catalogue, "fresh")
    await catalogues.add_products(desk.backend.uow, desk.tenant, fresh, now=now)
    made = await desk.made(filters={"updated_since": now})
    assert desk.objects.lines(made.files[0].key) == await desk.listed(updated_since=now)
    assert made.rows == 1 and made.filters.updated_since == now


async def test_a_file_for_each_dataset(desk: Desk) -> None:
    await desk.fill(3)
    made = await desk.made(ExportKind.ORGANISATION)
    assert [(file.dataset, file.rows) for file in made.files] == [
        ("products", 3), ("notes", 2), ("nothing", 0), ("counted", 1), ("manifest", 4),
    ]  # fmt: skip
    assert made.rows == 6 and desk.objects.lines(made.files[1].key) == [b'{"n":1}', b'{"n":2}']


async def test_export_permissions(desk: Desk) -> None:
    desk.requester = replace(desk.requester, scopes=frozenset({"sources:read"}))
    with pytest.raises(PermissionDenied, match="products:read"):
        await desk.request()
    with pytest.raises(InsufficientScope, match="products:read"):
        await desk.request(ExportKind.ORGANISATION)
    desk.requester = ExportRequester(builders.plan(features=frozenset()), MAY)
    with pytest.raises(FeatureUnavailable):
        await desk.request()
    with pytest.raises(Unprocessable):
        await desk.request(ExportKind.ORGANISATION, filters={"updated_since": builders.MOMENT})
    assert (await desk.request(ExportKind.ORGANISATION, filters={})).status == "pending"
    with pytest.raises(NotFound):
        await desk.stored(replace(await desk.request(ExportKind.ORGANISATION), id=new_id("exp")))


async def test_open_exports_are_limited_under_concurrent_requests(desk: Desk) -> None:
    outcomes = await asyncio.gather(*(desk.request() for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(one, Export) for one in outcomes) == MAX_OPEN_EXPORTS
    assert all(isinstance(one, Export | Conflict) for one in outcomes)
    await desk.work()
    assert (await desk.request()).status == "pending"


async def test_rows_move_while_it_runs(desk: Desk) -> None:
    await desk.fill(4)
    desk.objects.gate.clear()
    requested = await desk.request()
    working = asyncio.create_task(desk.work())
    await desk.objects.reached.wait()
    async with asyncio.timeout(10):
        while (await desk.stored(requested)).rows != 4:
            await asyncio.sleep(0.01)
    assert (await desk.stored(requested)).status == "running"
    desk.objects.gate.set()
    await working
    assert (await desk.stored(requested)).status == "succeeded"


async def test_who_comes_too_late_changes_nothing(desk: Desk) -> None:
    await desk.fill(2)
    requested = await desk.request()
    desk.objects.gate.clear()
    [job] = await desk.claim(SHORT)
    late = asyncio.create_task(desk.handler(SHORT, interval=60)(job, asyncio.Event()))
    await desk.objects.reached.wait()
    first = (await desk.stored(requested)).keys
    await desk.backend.pass_time(PAST_IT)
    [again] = await desk.claim()
    assert again.has_expired_lease and again.attempt == 2
    desk.objects.gate.set()
    slow = desk.handler()
    await slow(again, asyncio.Event())
    ended = await desk.stored(requested)
    with pytest.raises(LeaseLost):
        await late
    assert ended.status == "succeeded" and ended.crashes == 1 and ended == await desk.stored(requested)
    assert not set(ended.keys) & set(first)
    await desk.sweep()
    assert desk.objects.stored() == set(ended.keys)
    assert await desk.notified() == [("succeeded", "")]


async def test_an_export_whose_attempts_die_is_reported_as_failed(desk: Desk) -> None:
    requested = await desk.request()
    for _ in range(3):
        desk.objects.gate.clear()
        desk.objects.reached.clear()
        [job] = await desk.claim(SHORT)
        dying = asyncio.create_task(desk.handler(SHORT, interval=60)(job, asyncio.Event()))
        await desk.objects.reached.wait()
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        await desk.backend.pass_time(PAST_IT)
    desk.objects.gate.set()
    await desk.work()
    ended = await desk.stored(requested)
    assert (ended.status, ended.crashes) == ("failed", 3) and "interrupted" in str(ended.error)
    [(status, error)] = await desk.notified()
    assert status == "failed" and error == ended.error
    await desk.sweep()
    assert desk.objects.stored() == set()


async def test_a_deploy_is_no_failure(desk: Desk) -> None:
    requested = await desk.request()
    desk.objects.gate.clear()
    [job] = await desk.claim()
    working = asyncio.create_task(desk.handler()(job, asyncio.Event()))
    await desk.objects.reached.wait()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await desk.backend.dispatch.release(job, desk.backend.now())
    desk.objects.gate.set()
    await desk.work()
    ended = await desk.stored(requested)
    assert (ended.status, ended.crashes, ended.failures) == ("succeeded", 0, 0)


async def test_a_store_that_fails_temporarily(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("domain.exports.usecases.execution.compute_retry_delay", lambda _: timedelta())
    await desk.fill(1)
    desk.objects.broken = 1
    requested = await desk.request()
    await desk.work()
    waiting = await desk.stored(requested)
    assert (waiting.status, waiting.failures, waiting.rows) == ("pending", 1, 0)
    await desk.work()
    assert (await desk.stored(requested)).status == "succeeded"

    desk.objects.broken = MAX_FAILURES
    requested = await desk.request()
    for _ in range(MAX_FAILURES):
        await desk.work()
    ended = await desk.stored(requested)
    assert ended.status == "failed" and "object store" in str(ended.error) and ended.files == ()
    assert [status for status, _ in await desk.notified()] == ["failed", "succeeded"]
    await desk.sweep()
    assert all(requested.id not in key for key in desk.objects.stored())


async def test_rows_count_once_and_no_more_than_the_plan_lets_out(backend: Backend) -> None:
    desk = await desk_of(backend, rows=5)
    await desk.fill(3)
    assert (await desk.made()).status == "succeeded"
    refused = await desk.made()
    assert refused.status == "failed" and "plan" in str(refused.error) and refused.rows == 0
    assert (await desk.made(ExportKind.ORGANISATION)).status == "succeeded"
    await desk.fill(1, "Q")
    now = desk.backend.now() + timedelta(hours=1)
    source = builders.source()
    fresh = [builders.product(source.id, source.catalogue, f"F{n}") for n in range(2)]
    await catalogues.add_products(desk.backend.uow, desk.tenant, *fresh, now=now)
    assert (await desk.made(filters={"updated_since": now})).status == "succeeded"
    with pytest.raises(QuotaExceeded) as refusal:
        await desk.request()
    assert refusal.value.extra == {"meter": "export_rows"} and refusal.value.retry_after
    test = Desk(backend, Tenant(desk.tenant.org, False), desk.requester)
    await test.fill(6)
    assert (await test.made()).rows == 6


async def test_files_go_in_time(desk: Desk) -> None:
    await desk.fill(1)
    made = await desk.made()
    async with desk.backend.uow.begin(desk.tenant, CALL) as tx:
        linked = await desk.service.add_links(made, tx.now, SCOPES)
        assert len(linked.urls) == 2
        await tx[ExportStore].save(replace(made, expires_at=tx.now))
    clock = SettableClock()
    clock.advance(desk.backend.now() + timedelta(seconds=1) - clock.now())
    assert await ExportExpiry(desk.backend.uow, desk.backend.exports, clock).expire_due() >= 1
    gone = await desk.stored(made)
    assert (gone.status, gone.files, gone.rows) == ("expired", (), 1) and gone.changes_cursor
    await desk.sweep()
    assert desk.objects.stored() == set()


async def test_only_the_newest_are_kept(desk: Desk) -> None:
    async with desk.backend.uow.begin(desk.tenant, CALL) as tx:
        made = [builders.export().with_success((), "cursor", tx.now) for _ in range(MAX_STORED_EXPORTS + 1)]
        await tx[ExportStore].add_all(made)
        await expire_excess(tx)
        kept = [export.id for export in await tx[ExportStore].list_with_files()]
    assert kept == sorted((export.id for export in made), reverse=True)[: MAX_STORED_EXPORTS - 1]
