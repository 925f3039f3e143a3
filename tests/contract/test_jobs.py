"""Jobs: queued in a transaction, claimed by lane with leases, fenced by attempt (domain/jobs/ports.py)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.jobs.model import MAX_LANES_PER_ORG, ClaimedJob, NewJob, build_lane_name, split_lane_name
from domain.jobs.ports import JobStore
from domain.kernel.errors import LeaseLost
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.sources.ports import SourceStore
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
LEASE = timedelta(seconds=30)
SHORT_LEASE = timedelta(milliseconds=150)
PAST_LEASE = timedelta(milliseconds=200)


def _create_lane_name() -> str:
    return f"source:{new_id('src')}"


async def _add_jobs(backend: Backend, *jobs: NewJob) -> list[str]:
    ids = []
    for job in jobs:
        async with backend.uow.begin(job.tenant, CALL) as tx:
            ids.append(await tx[JobStore].add(job))
    return ids


async def _list_due_lanes(backend: Backend, limit: int) -> list[str]:
    """Return the due lanes without their organisation."""
    return [split_lane_name(lane)[1] for lane in await backend.dispatch.dispatch_due_lanes(limit)]


async def _finish_job(backend: Backend, job: ClaimedJob) -> None:
    async with backend.uow.begin(job.tenant, CALL) as tx:
        await tx[JobStore].finish(job)


async def test_a_job_is_claimed_as_it_was_queued(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    job = NewJob("runs.execute", lane, replace(tenant, livemode=False), {"run": "run_1", "parts": [1, 2]}, key="run_1")
    [id] = await _add_jobs(backend, job)
    [claimed] = await backend.dispatch.claim(lane, 10, LEASE)
    assert claimed == ClaimedJob(id, job.kind, lane, job.tenant, job.args, 1)
    assert list(await backend.dispatch.claim(_create_lane_name(), 10, LEASE)) == []


async def test_nothing_is_queued_before_the_commit(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    async with backend.uow.begin(tenant, CALL) as tx:
        tx.is_dry_run = True
        await tx[JobStore].add(NewJob("a", lane, tenant))
        assert list(await backend.dispatch.claim(lane, 10, LEASE)) == []
    assert list(await backend.dispatch.claim(lane, 10, LEASE)) == []


async def test_a_key_is_unique_while_its_job_is_open(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    job = NewJob("a", lane, tenant, key="k")
    first, again, other_kind, other_mode = await _add_jobs(
        backend, job, job, replace(job, kind="b"), replace(job, tenant=replace(tenant, livemode=False))
    )
    assert first == again
    assert len({first, other_kind, other_mode}) == 3
    claimed = await backend.dispatch.claim(lane, 10, LEASE)
    assert len(claimed) == 3
    assert await _add_jobs(backend, job) == [first]
    await _finish_job(backend, next(one for one in claimed if one.id == first))
    [fresh] = await _add_jobs(backend, job)
    assert fresh != first


async def test_a_lane_is_claimed_in_order_by_one_worker(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    ids = []
    for number in range(5):
        ids += await _add_jobs(backend, NewJob("a", lane, tenant, {"number": number}))
        await backend.pass_time(timedelta(milliseconds=2))
    first = await backend.dispatch.claim(lane, 2, LEASE)
    assert [job.id for job in first] == ids[:2]
    assert list(await backend.dispatch.claim(lane, 2, LEASE)) == []
    await _finish_job(backend, first[0])
    assert list(await backend.dispatch.claim(lane, 2, LEASE)) == []
    await _finish_job(backend, first[1])
    assert [job.id for job in await backend.dispatch.claim(lane, 9, LEASE)] == ids[2:]


async def test_a_job_waits_for_its_time(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    await _add_jobs(backend, NewJob("a", lane, tenant, run_at=backend.now() + SHORT_LEASE))
    assert list(await backend.dispatch.claim(lane, 1, LEASE)) == []
    assert lane not in await _list_due_lanes(backend, 10_000)
    due = await backend.dispatch.find_next_due()
    assert due is not None and due <= backend.now() + SHORT_LEASE
    await backend.pass_time(PAST_LEASE)
    assert lane in await _list_due_lanes(backend, 10_000)
    assert len(await backend.dispatch.claim(lane, 1, LEASE)) == 1


async def test_an_expired_lease_releases_the_job(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    await _add_jobs(backend, NewJob("a", lane, tenant))
    [old] = await backend.dispatch.claim(lane, 1, SHORT_LEASE)
    await backend.pass_time(PAST_LEASE)
    [new] = await backend.dispatch.claim(lane, 1, LEASE)
    assert (new.id, new.attempt) == (old.id, old.attempt + 1)
    with pytest.raises(LeaseLost):
        await _finish_job(backend, old)
    assert not await backend.dispatch.renew_lease(old, LEASE)
    async with backend.uow.begin(tenant, CALL) as tx:
        for refused in (
            tx[JobStore].finish(old),
            tx[JobStore].reschedule(old, backend.now()),
            tx[JobStore].renew_lease(old, LEASE),
        ):
            with pytest.raises(LeaseLost):
                async with tx.savepoint():
                    await refused
    await backend.dispatch.release(old, backend.now())
    assert list(await backend.dispatch.claim(lane, 1, LEASE)) == []
    await _finish_job(backend, new)
    with pytest.raises(LeaseLost):
        await _finish_job(backend, new)


async def test_writes_of_a_fenced_attempt_are_rolled_back(backend: Backend, tenant: Tenant) -> None:
    lane, source = _create_lane_name(), builders.source()
    await _add_jobs(backend, NewJob("a", lane, tenant))
    [old] = await backend.dispatch.claim(lane, 1, SHORT_LEASE)
    await backend.pass_time(PAST_LEASE)
    await backend.dispatch.claim(lane, 1, LEASE)
    with pytest.raises(LeaseLost):
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[SourceStore].add(source)
            await tx[JobStore].renew_lease(old, LEASE)
    async with backend.uow.begin_reading(tenant) as tx:
        assert await tx[SourceStore].get(source.id) is None


@pytest.mark.parametrize("inside", [True, False])
async def test_a_renewed_lease_holds(backend: Backend, tenant: Tenant, inside: bool) -> None:
    lane = _create_lane_name()
    await _add_jobs(backend, NewJob("a", lane, tenant))
    [job] = await backend.dispatch.claim(lane, 1, SHORT_LEASE)
    if inside:
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[JobStore].renew_lease(job, LEASE)
    else:
        assert await backend.dispatch.renew_lease(job, LEASE)
    await backend.pass_time(PAST_LEASE)
    assert list(await backend.dispatch.claim(lane, 1, LEASE)) == []
    await _finish_job(backend, job)


async def test_a_job_is_postponed(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    [id] = await _add_jobs(backend, NewJob("a", lane, tenant))
    [job] = await backend.dispatch.claim(lane, 1, LEASE)
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[JobStore].reschedule(job, backend.now() + SHORT_LEASE)
    assert list(await backend.dispatch.claim(lane, 1, LEASE)) == []
    await backend.pass_time(PAST_LEASE)
    [again] = await backend.dispatch.claim(lane, 1, LEASE)
    assert (again.id, again.attempt) == (id, 2)


async def test_a_job_is_released(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    await _add_jobs(backend, NewJob("a", lane, tenant), NewJob("b", lane, tenant))
    held = await backend.dispatch.claim(lane, 2, LEASE)
    await backend.dispatch.release(held[1], backend.now() - LEASE)
    await _finish_job(backend, held[0])
    [again] = await backend.dispatch.claim(lane, 2, LEASE)
    assert (again.id, again.attempt) == (held[1].id, 2)


async def test_a_due_lane_is_notified_once(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    await _add_jobs(backend, NewJob("a", lane, tenant), NewJob("b", lane, tenant))
    assert list(await _list_due_lanes(backend, 10_000)).count(lane) == 1
    assert lane not in await _list_due_lanes(backend, 10_000)
    await backend.dispatch.reset_dispatched()
    assert lane in await _list_due_lanes(backend, 10_000)


async def test_a_lane_whose_worker_died_is_notified_again(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    await _add_jobs(backend, NewJob("a", lane, tenant))
    assert lane in await _list_due_lanes(backend, 10_000)
    await backend.dispatch.claim(lane, 1, SHORT_LEASE)
    assert lane not in await _list_due_lanes(backend, 10_000)
    await backend.pass_time(PAST_LEASE)
    assert lane in await _list_due_lanes(backend, 10_000)


async def test_a_released_or_postponed_job_is_notified_again(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    await _add_jobs(backend, NewJob("a", lane, tenant))
    await _list_due_lanes(backend, 10_000)
    [job] = await backend.dispatch.claim(lane, 1, LEASE)
    await backend.dispatch.release(job, backend.now() - LEASE)
    assert lane in await _list_due_lanes(backend, 10_000)
    [job] = await backend.dispatch.claim(lane, 1, LEASE)
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[JobStore].reschedule(job, backend.now() - LEASE)
    assert lane in await _list_due_lanes(backend, 10_000)


async def test_no_organisation_takes_all_lanes(backend: Backend, tenant: Tenant) -> None:
    greedy, modest = await backend.tenant(), tenant
    many = [_create_lane_name() for _ in range(MAX_LANES_PER_ORG + 3)]
    long_due = backend.now() - timedelta(hours=1)
    for number, lane in enumerate(many):
        job = NewJob("a", lane, greedy, run_at=long_due + timedelta(seconds=number))
        await _add_jobs(backend, job, job)
    own = [_create_lane_name(), _create_lane_name()]
    for number, lane in enumerate(own):
        await _add_jobs(backend, NewJob("a", lane, modest, run_at=long_due + timedelta(seconds=number)))
    first = [lane for lane in await _list_due_lanes(backend, 1000) if lane in {*many, *own}]
    assert first[:4] in ([many[0], own[0], many[1], own[1]], [own[0], many[0], own[1], many[1]])
    assert sorted(first) == sorted([*many[:MAX_LANES_PER_ORG], *own])
    assert not {*many, *own} & set(await _list_due_lanes(backend, 1000))
    for job in await backend.dispatch.claim(many[0], 10, LEASE):
        await _finish_job(backend, job)
    assert [lane for lane in await _list_due_lanes(backend, 1000) if lane in many] == [many[MAX_LANES_PER_ORG]]


async def test_an_attempt_with_an_expired_lease_is_reported(backend: Backend, tenant: Tenant) -> None:
    lane = _create_lane_name()
    await _add_jobs(backend, NewJob("a", lane, tenant))
    [first] = await backend.dispatch.claim(lane, 1, SHORT_LEASE)
    await backend.pass_time(PAST_LEASE)
    [second] = await backend.dispatch.claim(lane, 1, LEASE)
    await backend.dispatch.release(second, backend.now())
    [third] = await backend.dispatch.claim(lane, 1, LEASE)
    assert [job.has_expired_lease for job in (first, second, third)] == [False, True, False]


async def test_a_due_lane_names_its_organisation(backend: Backend, tenant: Tenant) -> None:
    """Two organisations may have lanes of the same name; each is notified and claimed separately."""
    lane, other = _create_lane_name(), await backend.tenant()
    mine, theirs = await _add_jobs(backend, NewJob("a", lane, tenant), NewJob("a", lane, other))
    due = await backend.dispatch.dispatch_due_lanes(10_000)
    assert {build_lane_name(tenant.org, lane), build_lane_name(other.org, lane)} <= set(due)
    [claimed] = await backend.dispatch.claim(build_lane_name(tenant.org, lane), 10, LEASE)
    assert (claimed.id, claimed.lane, claimed.tenant) == (mine, lane, tenant)
    [claimed] = await backend.dispatch.claim(build_lane_name(other.org, lane), 10, LEASE)
    assert (claimed.id, claimed.tenant) == (theirs, other)


async def test_a_lane_name_of_the_previous_release_is_claimed(backend: Backend, tenant: Tenant) -> None:
    """A queue may still contain lane names without an organisation."""
    lane = _create_lane_name()
    [id] = await _add_jobs(backend, NewJob("a", lane, tenant))
    assert [job.id for job in await backend.dispatch.claim(lane, 10, LEASE)] == [id]
