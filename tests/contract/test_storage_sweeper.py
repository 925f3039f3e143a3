"""Sweeps of unneeded objects (domain/storage/usecases): no needed object is lost and no orphan remains."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from domain.kernel import retention
from domain.kernel.errors import Conflict
from domain.kernel.tenancy import Tenant
from domain.runs.model import PushInput, Run, RunErrorCode
from domain.runs.ports import PushStore, RunStore
from domain.runs.usecases.scheduling import BatchExpiry
from domain.runs.usecases.service import PushRequest, RunService
from domain.sources.ports import SourceStore
from domain.storage.admission import create_snapshot_entry
from domain.storage.model import OBJECT_PREFIXES, build_snapshot_key, build_upload_key
from domain.storage.ports import StorageLedger
from domain.storage.usecases import StorageSweeper
from ports.objects import ObjectInfo, ObjectMissing
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.connectors import FakeConnectors
from tests.support.memory.clock import SettableClock
from tests.support.memory.objects import MemoryObjects

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


class GatedDeletionObjects(MemoryObjects):
    """Object store whose deletions call `deleting` and block until `gate` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.deleting: Callable[[str], None] = lambda _: None
        self.gate = asyncio.Event()
        self.gate.set()

    async def delete(self, key: str) -> None:
        self.deleting(key)
        await self.gate.wait()
        await super().delete(key)


@pytest.fixture(name="objects")
def create_objects() -> GatedDeletionObjects:
    return GatedDeletionObjects()


@pytest.fixture(name="sweeper")
def create_sweeper(backend: Backend, objects: GatedDeletionObjects) -> StorageSweeper:
    return StorageSweeper(backend.uow, backend.storage, objects, _create_clock(backend))


def _create_clock(backend: Backend) -> SettableClock:
    clock = SettableClock()
    clock.set(backend.now())
    return clock


@pytest_asyncio.fixture(name="fetch")
async def create_fetcher(
    uow: UnitOfWork, objects: GatedDeletionObjects, tenant: Tenant, tmp_path: Path
) -> "SnapshotFetcher":
    return SnapshotFetcher(uow, objects, tenant, tmp_path / "file")


class SnapshotFetcher:
    """Fetch of a snapshot as in a run: ledger entry, then object."""

    def __init__(self, uow: UnitOfWork, objects: GatedDeletionObjects, tenant: Tenant, path: Path) -> None:
        self.uow, self.objects, self.tenant, self.path = uow, objects, tenant, path

    async def __call__(self, content: str, *, ago: timedelta = timedelta(), write: bool = True) -> str:
        """Store a snapshot with that content and return its key."""
        self.path.write_bytes(content.encode())
        async with self.uow.begin(self.tenant, CALL) as tx:
            entry = await tx[StorageLedger].add_entry(
                create_snapshot_entry(self.tenant, "run_1", content, len(content), tx.now - ago)
            )
        assert entry is not None
        if write:
            await self.objects.put_file(entry.key, self.path)
        return entry.key

    async def is_stored(self, key: str) -> bool:
        try:
            return await self.objects.get_size(key) > 0
        except ObjectMissing:
            return False

    async def count_used_bytes(self) -> int:
        async with self.uow.begin_reading(self.tenant) as tx:
            return await tx[StorageLedger].count_used_bytes()


async def test_frees_by_age_and_deletes(sweeper: StorageSweeper, fetch: SnapshotFetcher) -> None:
    old, young, never_written = (
        await fetch("old", ago=8 * DAY),
        await fetch("young"),
        await fetch("not", ago=8 * DAY, write=False),
    )
    assert await sweeper.free_due() >= 6
    assert [await fetch.is_stored(key) for key in (old, young, never_written)] == [False, True, False]
    assert await fetch.count_used_bytes() == 5
    assert not [key for tenant, key in await sweeper.upkeep.list_freed("", 10**6) if tenant == fetch.tenant]


async def test_sweeps_more_than_one_batch(sweeper: StorageSweeper, fetch: SnapshotFetcher) -> None:
    keys = [await fetch(f"c{number}", ago=8 * DAY) for number in range(230)]
    await sweeper.free_due()
    assert await fetch.count_used_bytes() == 0 and not any([await fetch.is_stored(key) for key in keys])


async def test_a_killed_sweep_is_continued(
    sweeper: StorageSweeper, fetch: SnapshotFetcher, objects: GatedDeletionObjects
) -> None:
    """The sweep is killed before it deletes, or before it records the deletion; the next one continues."""
    old = await fetch("old", ago=8 * DAY)
    objects.gate.clear()
    dying = asyncio.create_task(sweeper.free_due())
    while not [key for _, key in await sweeper.upkeep.list_freed("", 10**6) if key == old]:
        await asyncio.sleep(0.01)
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    assert await fetch.is_stored(old) and await fetch.count_used_bytes() == 0
    objects.gate.set()
    await objects.delete(old)
    await sweeper.free_due()
    assert not [key for _, key in await sweeper.upkeep.list_freed("", 10**6) if key == old]


async def test_failed_deletions_are_retried(
    sweeper: StorageSweeper, fetch: SnapshotFetcher, objects: GatedDeletionObjects
) -> None:
    bad, good = sorted([await fetch("a", ago=8 * DAY), await fetch("b", ago=8 * DAY)])

    def refuse(key: str) -> None:
        if key == bad:
            raise OSError("the store is down")

    objects.deleting = refuse
    await sweeper.free_due()
    assert [await fetch.is_stored(key) for key in (bad, good)] == [True, False]
    objects.deleting = lambda _: None
    await sweeper.free_due()
    assert not await fetch.is_stored(bad)


async def test_content_stored_again_during_its_deletion_is_not_lost(
    sweeper: StorageSweeper, fetch: SnapshotFetcher, objects: GatedDeletionObjects
) -> None:
    """A run fetches the same content during its deletion, or while the deleting process is suspended."""
    old = await fetch("same", ago=8 * DAY)
    objects.gate.clear()
    sweeping = asyncio.create_task(sweeper.free_due())
    while not [key for _, key in await sweeper.upkeep.list_freed("", 10**6) if key == old]:
        await asyncio.sleep(0.01)
    stored_again = await fetch("same")
    objects.gate.set()
    await sweeping
    await sweeper.delete_orphans()
    assert stored_again != old and await fetch.is_stored(stored_again) and not await fetch.is_stored(old)
    assert await fetch.count_used_bytes() == 4


async def test_the_same_content_can_be_fetched_and_swept_concurrently(
    sweeper: StorageSweeper, fetch: SnapshotFetcher
) -> None:
    """In any order, the object is stored and counted once afterwards."""
    for number in range(12):
        content = f"content-{number}"
        await fetch(content, ago=8 * DAY)
        key, *_ = await asyncio.gather(fetch(content), sweeper.free_due(), sweeper.free_due(), fetch(content))
        await sweeper.free_due()
        assert await fetch.is_stored(key)
    assert await fetch.count_used_bytes() == sum(len(f"content-{number}") for number in range(12))


async def test_orphans_are_counted_and_deleted(
    sweeper: StorageSweeper, fetch: SnapshotFetcher, objects: GatedDeletionObjects
) -> None:
    held = await fetch("held", ago=2 * DAY)
    tenant = fetch.tenant
    keys = [
        build_snapshot_key(tenant, "left", "0"), build_upload_key(tenant, "upl_1"), build_snapshot_key(tenant, "young", "0"),
        f"notes/{tenant.org}/live/x", "snapshots/notes.txt", build_snapshot_key(Tenant("org_x", True), "other", "0"),
    ]  # fmt: skip
    for key in keys:
        await objects.put_file(key, fetch.path)
    for key in (held, *keys):
        objects.written[key] = sweeper.clock.now() - (timedelta() if "young" in key else 2 * DAY)
    orphans = await sweeper.sum_orphans()
    assert (orphans.count, orphans.bytes) == (2, 8) and await fetch.is_stored(keys[0])
    assert await sweeper.delete_orphans() == orphans
    assert [await fetch.is_stored(key) for key in (held, *keys)] == [True, False, False, True, True, True, True]
    assert (await sweeper.sum_orphans()).count == 0


async def test_only_one_page_of_objects_is_held_at_a_time(backend: Backend, tenant: Tenant) -> None:
    class PagedObjects(MemoryObjects):
        async def list_objects(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
            for page in range(20):
                keys = (f"{prefix}{tenant.org}/live/{page}-{number}" for number in range(500))
                yield [ObjectInfo(key, 1, backend.now() - 2 * DAY) for key in keys]

    class CountingStorage:
        largest = 0

        async def select_orphans(self, keys: Mapping[Tenant, Collection[str]]) -> Collection[str]:
            self.largest = max(self.largest, sum(map(len, keys.values())))
            return await backend.storage.select_orphans(keys)

    upkeep: Any = CountingStorage()
    found = await StorageSweeper(backend.uow, upkeep, PagedObjects(), _create_clock(backend)).sum_orphans()
    assert (found.count, upkeep.largest) == (len(OBJECT_PREFIXES) * 20 * 500, 500)


async def _create_open_batch(uow: UnitOfWork, tenant: Tenant, *, ago: timedelta, **changes: Any) -> Run:
    """Create a batch whose last part arrived `ago` before the expiry of open batches."""
    source = builders.source(kind="push", connector="push")
    run = builders.run(source.id, **{"trigger": "push", "input": PushInput("monday", parts=1), **changes})
    async with uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].add(source)
        await tx[RunStore].add(run)
        assert await tx[StorageLedger].make_space(0)
        assert await tx[PushStore].add_part(run.id, 0, b"[1]", tx.now - ago + retention.OPEN_BATCHES)
    return run


async def _read_state(uow: UnitOfWork, tenant: Tenant, run: Run) -> tuple[str, bool, int]:
    """Return the run's status, whether its part exists, and the used bytes."""
    async with uow.begin_reading(tenant) as tx:
        found = await tx[RunStore].get(run.id)
        assert found is not None
        return (
            found.status,
            await tx[PushStore].get_part(run.id, 0) is not None,
            await tx[StorageLedger].count_used_bytes(),
        )


async def test_open_batches_expire(backend: Backend, uow: UnitOfWork) -> None:
    expiry = BatchExpiry(uow, backend.storage, _create_clock(backend))
    batches = [
        (await backend.tenant(), {"ago": 25 * HOUR}, ("cancelled", False, 0)),
        (await backend.tenant(), {"ago": 23 * HOUR}, ("queued", True, 4)),
        (await backend.tenant(), {"ago": 25 * HOUR, "status": "failed"}, ("failed", False, 0)),
        (await backend.tenant(), {"ago": 25 * HOUR, "input": PushInput(parts=1, open=False)}, ("queued", True, 4)),
        (await backend.tenant(), {"ago": 25 * HOUR, "status": "running"}, ("running", True, 4)),
    ]
    runs = [await _create_open_batch(uow, tenant, **how) for tenant, how, _ in batches]
    assert await expiry.expire_batches() >= 1
    for (tenant, _, expected), run in zip(batches, runs, strict=True):
        assert await _read_state(uow, tenant, run) == expected
    async with uow.begin_reading(batches[0][0]) as tx:
        given_up = await tx[RunStore].get(runs[0].id)
    assert given_up is not None and given_up.error is not None and given_up.finished_at is not None
    assert given_up.error.code == RunErrorCode.BATCH_EXPIRED and "24 hours" in given_up.error.message
    assert await expiry.expire_batches() == 0


async def test_a_part_during_the_expiry_of_its_batch_is_consistent(backend: Backend, uow: UnitOfWork) -> None:
    """The part either keeps the batch open or finds it expired; it is never added to a deleted batch."""
    expiry, service = BatchExpiry(uow, backend.storage, _create_clock(backend)), RunService(FakeConnectors())
    for _ in range(6):
        tenant = await backend.tenant()
        run = await _create_open_batch(uow, tenant, ago=25 * HOUR)

        async def push(tenant: Tenant = tenant, run: Run = run) -> bool:
            try:
                async with uow.begin(tenant, CALL) as tx:
                    await service.push(tx, run.source, PushRequest(b"[2]", 1, batch="monday", has_more=True))
            except Conflict as refused:
                assert "expired" in refused.detail
                return False
            return True

        saved, *_ = await asyncio.gather(push(), expiry.expire_batches(), expiry.expire_batches())
        assert await _read_state(uow, tenant, run) == (("queued", True, 8) if saved else ("cancelled", False, 0))
