"""Workload of the service (domain/platform/ports.py)."""

from datetime import timedelta

import pytest

from domain.jobs.model import NewJob
from domain.jobs.ports import JobStore
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.runs.model import RunStatus
from domain.runs.ports import RunStore
from domain.sources.model import SourceStatus, StatusReason
from domain.sources.ports import SourceStore
from domain.usage.ports import UsageMeters
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio


async def test_slow_and_failing_sources_are_listed(backend: Backend) -> None:
    tenant, now = await backend.tenant(livemode=False), backend.now().replace(microsecond=0)
    reason = StatusReason("fetch_failed", "It does not answer.")
    sick = builders.source(id=new_id("src"), status=SourceStatus.BLOCKED, failures=1_000_000, status_reason=reason)
    slow, idle = builders.source(id=new_id("src"), name="Slow"), builders.source(id=new_id("src"))
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        for source in (sick, slow, idle):
            await tx[SourceStore].add(source)
        for days, source in ((40_000, slow), (4, sick)):
            await tx[RunStore].add(
                builders.run(
                    source.id, id=new_id("run"), status=RunStatus.SUCCEEDED,
                    started_at=now - timedelta(days=days), finished_at=now,
                )
            )  # fmt: skip
    slowest = await backend.workload.list_slowest_sources()
    (found,) = (one for one in slowest if one.id == slow.id)
    assert found.seconds == 40_000 * 86_400.0 and found.run_status == "succeeded" and not found.livemode
    assert found.name == "Slow" and found.org == tenant.org
    assert idle.id not in {one.id for one in slowest}
    (troubled,) = (one for one in await backend.workload.list_failing_sources() if one.org == tenant.org)
    assert (troubled.id, troubled.reason, troubled.failures) == (sick.id, reason.message, 1_000_000)


async def test_tenants_are_listed_with_their_load(backend: Backend) -> None:
    org = await backend.organisation(name="Busy")
    tenant, now = Tenant(org.id, True), backend.now()
    await backend.sink.write([builders.request_log(tenant, created_at=now - timedelta(minutes=n)) for n in (1, 59, 61)])
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[UsageMeters].add_usage("records", 7, "run_1")
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[UsageMeters].aggregate()
    loads = {(one.org, one.livemode): one for one in await backend.workload.list_tenants(now)}
    found = loads[org.id, True]
    assert (found.name, found.records, found.requests, found.deliveries) == ("Busy", 7, 2, 0)


async def test_open_work_is_counted_up_to_a_limit(backend: Backend) -> None:
    tenant, lane = await backend.tenant(), f"backlog{new_id('src')}"
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        for number in range(3):
            await tx[JobStore].add(NewJob("runs.execute", f"{lane}:{number}", tenant))
    (found,) = (one for one in await backend.dispatch.count_backlog() if one.lane_kind == lane)
    assert (found.waiting_count, found.running_count) == (3, 0) and found.oldest_due_at is not None
    assert sum(one.waiting_count + one.running_count for one in await backend.dispatch.count_backlog(2)) == 2
