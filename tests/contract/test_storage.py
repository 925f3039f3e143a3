"""Storage ledger (domain/storage/ports.py): usage, eviction and expiry."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from secrets import token_hex
from typing import Any

import pytest

from domain.kernel import retention
from domain.kernel.tenancy import Tenant
from domain.orgs.model import MeterAllowance
from domain.runs.model import Run
from domain.runs.ports import PushStore, RunStore
from domain.storage.admission import create_snapshot_entry
from domain.storage.model import StoredKind, StoredObject, build_push_key, build_snapshot_key, build_upload_key
from domain.storage.ports import StorageLedger
from ports.unit_of_work import Tx, UnitOfWork
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
DAY = timedelta(days=1)


async def create_tenant(backend: Backend, included: int) -> Tenant:
    """Create a tenant whose plan includes that many bytes."""
    plan = builders.plan(f"p{token_hex(6)}", meters={"stored_bytes": MeterAllowance(included, 1, 0)})
    await backend.offer(plan)
    organisation = builders.organisation(plan=plan)
    await backend.registry.create(organisation)
    return Tenant(organisation.id, True)


def build_snapshot(
    tx: Tx, content: str, bytes: int, *, age: timedelta = timedelta(), run: str = "run_1"
) -> StoredObject:
    """Return a snapshot that was fetched `age` ago."""
    return create_snapshot_entry(tx.tenant, run, content, bytes, tx.now - age)


def build_upload(tx: Tx, id: str, bytes: int, *, age: timedelta = timedelta()) -> StoredObject:
    return StoredObject(build_upload_key(tx.tenant, id), StoredKind.UPLOAD, bytes, tx.now - age)


async def store_snapshots(uow: UnitOfWork, tenant: Tenant, *made: tuple[str, int, timedelta]) -> list[str]:
    """Store snapshots and return their keys."""
    keys = []
    async with uow.begin(tenant, CALL) as tx:
        for content, bytes, age in made:
            entry = await tx[StorageLedger].add_entry(build_snapshot(tx, content, bytes, age=age))
            assert entry is not None
            keys.append(entry.key)
    return keys


async def add_runs(uow: UnitOfWork, tenant: Tenant, *runs: Run) -> None:
    async with uow.begin(tenant, CALL) as tx:
        for run in runs:
            await tx[RunStore].add(run)


async def list_counted(uow: UnitOfWork, tenant: Tenant, keys: Sequence[str]) -> list[bool]:
    """Return for each key whether its entry still counts."""
    async with uow.begin_reading(tenant) as tx:
        return [await tx[StorageLedger].get(key) is not None for key in keys]


async def test_counts_stored_objects_until_they_are_freed(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin_reading(tenant) as tx:
        assert await tx[StorageLedger].count_used_bytes() == 0
    async with uow.begin(tenant, CALL) as tx:
        wanted = build_upload(tx, "upl_1", 70)
        assert await tx[StorageLedger].add_entry(wanted) == wanted
        assert await tx[StorageLedger].add_entry(build_snapshot(tx, "aa", 30)) is not None
        assert await tx[StorageLedger].get(wanted.key) == wanted
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[StorageLedger].count_used_bytes() == 100
        assert await tx[StorageLedger].count_unassigned(StoredKind.UPLOAD) == 1
        await tx[StorageLedger].assign_to_run(wanted.key, "run_1")
        assert await tx[StorageLedger].count_unassigned(StoredKind.UPLOAD) == 0
        for _ in range(2):
            await tx[StorageLedger].free(wanted.key)
            assert await tx[StorageLedger].count_used_bytes() == 30
        await tx[StorageLedger].free("uploads/unknown")
        assert await tx[StorageLedger].get(wanted.key) is None


async def test_the_same_content_is_stored_once(uow: UnitOfWork, tenant: Tenant) -> None:
    [key] = await store_snapshots(uow, tenant, ("aa", 30, 3 * DAY))
    async with uow.begin(tenant, CALL) as tx:
        again = await tx[StorageLedger].add_entry(build_snapshot(tx, "aa", 30, run="run_2"))
        assert again is not None and again.key == key and again.run == "run_2"
        assert again.free_after > tx.now + retention.SNAPSHOTS - DAY
        assert await tx[StorageLedger].count_used_bytes() == 30
        await tx[StorageLedger].free(key)
        stored_again = await tx[StorageLedger].add_entry(build_snapshot(tx, "aa", 30))
        assert stored_again is not None and stored_again.key != key, "no key is used twice"
        assert await tx[StorageLedger].count_used_bytes() == 30


async def test_nothing_is_shared_with_others(backend: Backend, tenant: Tenant) -> None:
    await store_snapshots(backend.uow, tenant, ("aa", 30, DAY))
    for other in (replace(tenant, livemode=False), await backend.tenant()):
        [key] = await store_snapshots(backend.uow, other, ("aa", 30, DAY))
        assert key.startswith(f"snapshots/{other.org}/{'live' if other.livemode else 'test'}/") and key.endswith("-aa")
        async with backend.uow.begin_reading(other) as tx:
            assert await tx[StorageLedger].count_used_bytes() == 30


async def test_a_snapshot_replaces_its_upload(backend: Backend) -> None:
    tenant = await create_tenant(backend, 100)
    async with backend.uow.begin(tenant, CALL) as tx:
        given = await tx[StorageLedger].add_entry(build_upload(tx, "upl_1", 80))
        assert given is not None
    for _ in range(2):  # the second time, a worker has died in between
        async with backend.uow.begin(tenant, CALL) as tx:
            assert await tx[StorageLedger].add_entry(build_snapshot(tx, "aa", 80), given.key) is not None
            assert await tx[StorageLedger].count_used_bytes() == 80
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[StorageLedger].free(given.key)
        assert await tx[StorageLedger].count_used_bytes() == 80


@pytest.mark.parametrize("batch", [True, False])
async def test_a_snapshot_replaces_pushed_parts(backend: Backend, batch: bool) -> None:
    tenant = await create_tenant(backend, 100)
    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[StorageLedger].make_space(0)
        for sequence in range(2):
            assert await tx[PushStore].add_part("run_1", sequence, b"x" * 39, tx.now if batch else None)
    for _ in range(2):  # the second time, a worker has died in between
        async with backend.uow.begin(tenant, CALL) as tx:
            assert (
                await tx[StorageLedger].add_entry(build_snapshot(tx, "aa", 80), build_push_key(tenant, "run_1"))
                is not None
            )
            assert await tx[StorageLedger].count_used_bytes() == 80
    async with backend.uow.begin(tenant, CALL) as tx:
        assert [await tx[PushStore].get_part("run_1", number) is None for number in range(3)] == [False, False, True]
        await tx[PushStore].delete_parts("run_1")
        assert await tx[StorageLedger].count_used_bytes() == 80


async def test_refuses_objects_above_the_quota(backend: Backend) -> None:
    tenant = await create_tenant(backend, 100)
    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[StorageLedger].add_entry(build_upload(tx, "upl_1", 60)) is not None
        assert await tx[StorageLedger].add_entry(build_upload(tx, "upl_2", 40)) is not None
    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[StorageLedger].add_entry(build_upload(tx, "upl_3", 1)) is None
        assert not await tx[StorageLedger].make_space(1)
        assert await tx[StorageLedger].make_space(0)
        assert not await tx[PushStore].add_part("run_1", 0, b"[]", tx.now)
        assert await tx[StorageLedger].count_used_bytes() == 100
    async with backend.uow.begin(replace(tenant, livemode=False), CALL) as tx:
        assert await tx[StorageLedger].make_space(100), "each mode has the plan's amount"


async def test_a_plan_without_a_limit_includes_any_amount(backend: Backend) -> None:
    plan = builders.plan(f"p{token_hex(6)}", meters={})
    await backend.offer(plan)
    organisation = builders.organisation(plan=plan)
    await backend.registry.create(organisation)
    async with backend.uow.begin(Tenant(organisation.id, True), CALL) as tx:
        assert await tx[StorageLedger].make_space(10**15)
        assert await tx[PushStore].add_part("run_1", 0, b"[]", tx.now)


async def test_concurrent_objects_are_accepted_up_to_the_quota(backend: Backend) -> None:
    tenant = await create_tenant(backend, 100)

    async def announce(number: int) -> bool:
        async with backend.uow.begin(tenant, CALL) as tx:
            return await tx[StorageLedger].add_entry(build_upload(tx, f"upl_{number}", 30)) is not None

    async def push(number: int) -> bool:
        async with backend.uow.begin(tenant, CALL) as tx:
            return await tx[PushStore].add_part(f"run_{number}", 0, b"x" * 29, tx.now)

    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[StorageLedger].make_space(0)
    let_in = await asyncio.gather(*(announce(number) if number % 2 else push(number) for number in range(8)))
    assert sum(let_in) == 3
    async with backend.uow.begin_reading(tenant) as tx:
        assert await tx[StorageLedger].count_used_bytes() == 90


async def test_concurrent_objects_of_the_same_content_count_once(backend: Backend) -> None:
    tenant = await create_tenant(backend, 1000)

    async def keep(run: int) -> str:
        async with backend.uow.begin(tenant, CALL) as tx:
            entry = await tx[StorageLedger].add_entry(build_snapshot(tx, "aa", 30, run=f"run_{run}"))
        assert entry is not None
        return entry.key

    assert len(set(await asyncio.gather(*map(keep, range(6))))) == 1
    async with backend.uow.begin_reading(tenant) as tx:
        assert await tx[StorageLedger].count_used_bytes() == 30


async def test_rolled_back_objects_do_not_count(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        await tx[StorageLedger].add_entry(build_upload(tx, "upl_1", 70))
        tx.is_dry_run = True
    with pytest.raises(RuntimeError):
        async with uow.begin(tenant, CALL) as tx:
            await tx[StorageLedger].add_entry(build_upload(tx, "upl_1", 70))
            raise RuntimeError
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[StorageLedger].count_used_bytes() == 0


def build_run(key: str, **changes: Any) -> Run:
    """Return a successful run with that snapshot."""
    return builders.run("src_1", **{"status": "succeeded", "snapshot": key, **changes})


async def test_frees_objects_that_no_run_needs(backend: Backend) -> None:
    tenant = await create_tenant(backend, 100)
    uow = backend.uow
    made = [(letter, 20, age * DAY) for letter, age in (("a", 6), ("b", 5), ("c", 4), ("d", 3), ("e", 0))]
    keys = await store_snapshots(uow, tenant, *made)
    older, last = build_run(keys[0]), build_run(keys[1])
    await add_runs(uow, tenant, older, last, build_run(keys[2], status="running", trigger="push"))
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[StorageLedger].make_space(20)
    assert await list_counted(uow, tenant, keys) == [False, True, True, True, True], (
        "the least recently used objects are freed first"
    )
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[StorageLedger].add_entry(build_upload(tx, "upl_1", 40)) is not None
    assert await list_counted(uow, tenant, keys) == [False, True, True, False, True]
    async with uow.begin(tenant, CALL) as tx:
        assert not await tx[StorageLedger].make_space(20), "the last successful, a running and a new snapshot remain"
        tx.is_dry_run = True
    assert await list_counted(uow, tenant, keys) == [False, True, True, False, True]


async def test_expired_objects_are_freed_unless_a_run_needs_them(uow: UnitOfWork, tenant: Tenant) -> None:
    ages = [9, 9, 9, 9, 9, 9, 1]
    keys = await store_snapshots(uow, tenant, *((f"c{number}", 10, age * DAY) for number, age in enumerate(ages)))
    superseded, good, stock, mapping, working, failed, _young = keys
    await add_runs(
        uow, tenant, build_run(superseded), build_run(good), build_run(stock, stream="stock"),
        build_run(mapping, status="needs_mapping"), build_run(working, status="running", trigger="push"),
        build_run(failed, status="failed"),
    )  # fmt: skip
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[StorageLedger].free_due(keys, tx.now + DAY) == 20
        assert await tx[StorageLedger].count_used_bytes() == 50
        postponed = await tx[StorageLedger].get(good)
        assert postponed is not None and postponed.free_after == tx.now + DAY
        assert await tx[StorageLedger].free_due(keys, tx.now + DAY) == 0
    assert await list_counted(uow, tenant, keys) == [False, True, True, True, True, False, True]


async def test_uploads_are_kept_while_a_run_reads_them(uow: UnitOfWork, tenant: Tenant) -> None:
    reading, over = builders.run("src_1", status="queued"), builders.run("src_2", status="failed")
    await add_runs(uow, tenant, reading, over)
    async with uow.begin(tenant, CALL) as tx:
        entries = [build_upload(tx, f"upl_{number}", 10, age=DAY) for number in range(3)]
        for entry in entries:
            await tx[StorageLedger].add_entry(entry)
        await tx[StorageLedger].assign_to_run(entries[0].key, reading.id)
        await tx[StorageLedger].assign_to_run(entries[1].key, over.id)
        await tx[StorageLedger].free_due([entry.key for entry in entries], tx.now + DAY)
    assert await list_counted(uow, tenant, [entry.key for entry in entries]) == [True, False, False]


async def test_the_sweeper_lists_due_and_freed_objects(backend: Backend, tenant: Tenant) -> None:
    uow, upkeep = backend.uow, backend.storage
    keys = await store_snapshots(uow, tenant, ("a", 10, 9 * DAY), ("b", 10, 8 * DAY), ("c", 10, DAY))
    due = [key for whose, key in await upkeep.list_due({StoredKind.SNAPSHOT}, backend.now(), 10**6) if whose == tenant]
    assert due == keys[:2]
    assert not [whose for whose, _ in await upkeep.list_due({StoredKind.PUSH}, backend.now(), 10**6) if whose == tenant]
    async with uow.begin(tenant, CALL) as tx:
        await tx[StorageLedger].free_due(due, tx.now)
    freed = [key for whose, key in await upkeep.list_freed("", 10**6) if whose == tenant]
    assert freed == sorted(keys[:2])
    assert freed[0] not in [key for _, key in await upkeep.list_freed(freed[0], 10**6)]
    await upkeep.delete_entries(tenant, keys)
    assert not [whose for whose, _ in await upkeep.list_freed("", 10**6) if whose == tenant]
    assert await list_counted(uow, tenant, keys) == [False, False, True], "only freed objects are deleted"


async def test_orphans_are_objects_without_an_entry(backend: Backend, tenant: Tenant) -> None:
    uow = backend.uow
    [held, freed] = await store_snapshots(uow, tenant, ("a", 10, DAY), ("b", 10, DAY))
    async with uow.begin(tenant, CALL) as tx:
        await tx[StorageLedger].free(freed)
    unlisted, orphan = build_snapshot_key(tenant, "c", "0"), build_snapshot_key(tenant, "d", "0")
    run = build_run(unlisted, status="failed")
    announced = builders.upload("src_1", key=build_upload_key(tenant, "x"), run=run.id)
    reader = builders.run("src_2", status="queued")
    read = builders.upload("src_1", run=reader.id)
    read = replace(read, key=build_upload_key(tenant, read.id))
    await add_runs(uow, tenant, run, reader)
    async with uow.begin(tenant, CALL) as tx:
        await tx.store(type(read)).add(read)
        await tx.store(type(read)).add(announced)
    keys = [held, freed, unlisted, orphan, read.key, announced.key]
    assert set(await backend.storage.select_orphans({tenant: keys})) == {orphan, announced.key}
    unknown = Tenant("org_0000000000000000000000", True)
    assert not await backend.storage.select_orphans({unknown: [build_snapshot_key(unknown, "a", "0")]}), (
        "another service's"
    )
    assert set(await backend.storage.select_orphans({replace(tenant, livemode=False): [held]})) == {held}


async def test_the_operator_gets_sums(backend: Backend, tenant: Tenant) -> None:
    before = {holding.kind: holding for holding in await backend.storage.sum_by_kind(backend.now())}
    waiting = await backend.storage.sum_freed()
    _, freed, _ = await store_snapshots(backend.uow, tenant, ("a", 10, 9 * DAY), ("b", 20, DAY), ("c", 40, DAY))
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[StorageLedger].free(freed)
        await tx[StorageLedger].make_space(0)
        await tx[PushStore].add_part("run_1", 0, b"[]", tx.now + DAY)
    after = {holding.kind: holding for holding in await backend.storage.sum_by_kind(backend.now())}
    was, now = before.get(StoredKind.SNAPSHOT), after[StoredKind.SNAPSHOT]
    counts = (was.count, was.bytes, was.due_count, was.due_bytes) if was else (0, 0, 0, 0)
    assert (now.count, now.bytes, now.due_count, now.due_bytes) == tuple(
        old + more for old, more in zip(counts, (2, 50, 1, 10), strict=True)
    )
    assert await backend.storage.sum_freed() == (waiting[0] + 1, waiting[1] + 20)
    assert (tenant, "run_1", 3) in [batch[:3] for batch in await backend.storage.list_open_batches()]
