"""Effects of finished runs on their source: health, freshness, next pull and delays by the host."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.catalogue.model import Stream
from domain.ingestion.ports import FetchFailed
from domain.kernel.tenancy import Tenant
from domain.runs import model
from domain.runs.model import Run, RunStatus, StartRun, WaitingReason
from domain.runs.ports import RunStore
from domain.runs.usecases.service import RunService
from domain.sources.model import Schedule, Source
from domain.sources.ports import SourceStore
from tests.support import builders
from tests.support.backend import Backend
from tests.support.check_harness import CheckHarness, create_check_harness

pytestmark = pytest.mark.asyncio
FEED = b"SKU,Title,Price\nA-1,Oak chair,100\n"
OTHER = b"SKU,Title,Price\nA-1,Oak chair,90\n"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
HOURLY = Schedule(interval_minutes=60, adaptive=True)


async def _load_source(desk: CheckHarness) -> Source:
    async with desk.backend.uow.begin_reading(desk.tenant) as tx:
        found = await tx[SourceStore].get(desk.source.id)
    assert found is not None
    return found


async def _change_source(desk: CheckHarness, **changes: Any) -> None:
    async with desk.backend.uow.begin(desk.tenant, builders.CALL) as tx:
        found = await tx[SourceStore].get(desk.source.id, lock=True)
        assert found is not None
        await tx[SourceStore].save(replace(found, **changes))


async def _queue_pull(desk: CheckHarness) -> Run:
    async with desk.backend.uow.begin(desk.tenant, builders.CALL) as tx:
        return await RunService(desk.connectors).queue_pull(tx, desk.source.id, StartRun(Stream.CATALOGUE))


async def _run_failing_pull(desk: CheckHarness, code: str = "fetch_failed") -> Run:
    desk.connectors.feed = FetchFailed(code, "No.")
    run = await _queue_pull(desk)
    await desk.process_jobs()
    return await desk.get_run(run.id)


async def _run_replay(desk: CheckHarness) -> Run:
    async with desk.backend.uow.begin(desk.tenant, builders.CALL) as tx:
        run = await RunService(desk.connectors).queue_replay(tx, desk.source.id, StartRun(Stream.CATALOGUE))
    await desk.process_jobs()
    return await desk.get_run(run.id)


async def test_an_adaptive_schedule_changes_its_interval(backend: Backend, tenant: Tenant) -> None:
    desk = await create_check_harness(backend, tenant, schedule=HOURLY)
    paces = []
    for feed in (FEED, FEED, FEED, FEED, OTHER, None, OTHER):
        await (desk.pull(feed) if feed else _run_failing_pull(desk))
        source = await _load_source(desk)
        paces.append(source.interval_factor["catalogue"])
        assert source.next_pull is not None
        minutes = (source.next_pull - backend.now()).total_seconds() / 60
        assert 0.89 < minutes / (60 * paces[-1]) < 1.11
    assert paces == [0.5, 1.0, 2.0, 4.0, 2.0, 2.0, 4.0], "a failed run counts neither as changed nor as unchanged"


async def test_a_replay_is_not_a_pull(backend: Backend, tenant: Tenant) -> None:
    desk = await create_check_harness(backend, tenant, schedule=HOURLY)
    await desk.pull(FEED)
    before = await _load_source(desk)
    assert before.catalogue_at is not None
    await _change_source(desk, failures=2)
    await backend.pass_time(timedelta(milliseconds=20))
    run = await _run_replay(desk)
    assert run.status == RunStatus.SUCCEEDED
    after = await _load_source(desk)
    assert after == replace(before, failures=2), "freshness, due time and health are unchanged"
    await _run_failing_pull(desk)
    assert (await _load_source(desk)).status == "degraded"
    await _run_replay(desk)
    assert (await _load_source(desk)).status == "degraded", "the source itself was not requested"
    await desk.pull(FEED)
    assert (await _load_source(desk)).status == "active"
    async with desk.backend.uow.begin_reading(desk.tenant) as tx:
        good = await tx[RunStore].find_last_successful(desk.source.id, Stream.CATALOGUE)
    assert good is not None and good.snapshot is not None
    await desk.objects.delete(good.snapshot)
    assert (await _run_replay(desk)).status == RunStatus.FAILED
    assert (await _load_source(desk)).failures == 0, "a source that was not requested does not fail"


async def test_each_change_of_state_is_published_and_audited(backend: Backend, tenant: Tenant) -> None:
    desk = await create_check_harness(backend, tenant)
    for _ in range(3):
        await _run_failing_pull(desk)
    await desk.pull(FEED)
    await _run_failing_pull(desk, "credentials_refused")
    heard = []
    for kind in ("source.degraded", "source.recovered", "source.blocked"):
        heard += [event["data"]["status"] for event in await desk.list_events(kind)]
    assert heard == ["degraded", "active", "blocked"]
    source = await _load_source(desk)
    assert source.status_reason is not None and source.status_reason.code == "credentials_refused"


async def test_waiting_for_a_host_is_not_a_failure(
    backend: Backend, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "MAX_WAITS", 1)
    desk = await create_check_harness(backend, tenant)
    desk.connectors.feed = FetchFailed(
        "fetch_failed", "Not our turn.", wait_reason="retry", retry_at=LONG_AGO, is_throttled_locally=True
    )
    run = await _queue_pull(desk)
    for number in (1, 2, 3):
        await _run_due_jobs(desk)
        found = await desk.get_run(run.id)
        assert (found.status, found.waits, found.host_waits) == (RunStatus.WAITING, 0, number)
        assert found.waiting is not None
        assert (found.waiting.reason, found.waiting.attempt) == (WaitingReason.RETRY, number)
    desk.connectors.feed = [FEED]
    await _run_due_jobs(desk)
    assert (await desk.get_run(run.id)).status == RunStatus.SUCCEEDED
    assert (await _load_source(desk)).failures == 0


async def test_a_source_that_sends_retry_after_is_retried_a_limited_number_of_times(
    backend: Backend, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "MAX_WAITS", 2)
    desk = await create_check_harness(backend, tenant)
    desk.connectors.feed = FetchFailed("fetch_failed", "Busy.", wait_reason="upstream_busy", retry_at=LONG_AGO)
    run = await _queue_pull(desk)
    for _ in range(3):
        await _run_due_jobs(desk)
    ended = await desk.get_run(run.id)
    assert ended.status == RunStatus.FAILED and ended.error is not None and ended.error.code == "fetch_failed"
    assert (await _load_source(desk)).failures == 1
    assert len(desk.connectors.tasks) == 3


async def _run_due_jobs(desk: CheckHarness) -> None:
    """Run the due jobs and advance the time to the next attempt."""
    opened = len(desk.connectors.tasks)
    for _ in range(2):
        await desk.process_jobs()
    assert len(desk.connectors.tasks) == opened + 1, "no source is requested again immediately"
    await desk.backend.pass_time(timedelta(seconds=1.05))
