"""Traces of requests in their jobs and of runs in their deliveries; counts of waiting work for operators."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from domain.jobs.model import ClaimedJob, NewJob, build_lane_name
from domain.jobs.ports import JobStore
from domain.jobs.usecases.job_observer import JobObserver
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.kernel.trace_context import parse_trace_context
from domain.runs.ports import RunStore
from domain.sources.ports import SourceStore
from domain.webhooks.payload import find_run_id
from domain.webhooks.ports import PostResult, Subscriber
from domain.webhooks.usecases.attempts import MAX_TRACED_PER_RUN, DeliveryObserver
from entrypoints.worker.metrics import WorkerMetrics
from ports.telemetry import SpanKind
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
LEASE = timedelta(seconds=30)


async def test_job_attempts_belong_to_the_trace_that_queued_the_job(backend: Backend, tenant: Tenant) -> None:
    lane, seen = f"source:{new_id('src')}", list[ClaimedJob]()
    further = NewJob("further", f"media:{new_id('src')}", tenant, {"a": 1})
    with backend.tracing.open_span("request", SpanKind.SERVER):
        queued_by = backend.tracing.get_current()
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[JobStore].add(NewJob("work", lane, tenant, {"run": "run_1"}))

    async def handler(job: ClaimedJob, _: asyncio.Event) -> None:
        seen.append(job)
        async with backend.uow.begin(tenant, CALL) as tx:
            if len(seen) == 1:
                return await tx[JobStore].reschedule(job, tx.now)
            await tx[JobStore].add(further)
            await tx[JobStore].finish(job)
        raise OSError("after all")

    metrics = WorkerMetrics()
    drain = LaneProcessor(
        backend.dispatch, {"work": handler}, lease=LEASE, observer=JobObserver(metrics, backend.tracing)
    )
    await drain.process_lane(build_lane_name(tenant.org, lane))
    request, first, second = backend.tracing.spans
    assert [dict(job.args) for job in seen] == [{"run": "run_1"}] * 2, "handlers get their own arguments only"
    assert first.parent == second.parent == request.context == parse_trace_context(queued_by)
    assert (first.failure, second.failure) == (None, "OSError")
    assert first.notes["joinery.job.attempt"] == 1 and first.notes["joinery.correlation_id"] == "run_1"
    assert first.notes["joinery.org"] == tenant.org
    [next_job] = await backend.dispatch.claim(build_lane_name(tenant.org, further.lane), 1, LEASE)
    assert parse_trace_context(next_job.trace) == second.context and next_job.args == {"a": 1}
    text = metrics.render_text().decode()
    assert 'joinery_job_attempts_total{kind="work",outcome="failed"} 1.0' in text
    assert 'joinery_job_attempts_total{kind="work",outcome="done"} 1.0' in text


async def test_nothing_is_stored_without_tracing(backend: Backend, tenant: Tenant) -> None:
    lane = f"source:{new_id('src')}"
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[JobStore].add(NewJob("work", lane, tenant))
    [job] = await backend.dispatch.claim(build_lane_name(tenant.org, lane), 1, LEASE)
    assert job.trace is None and job.args == {}
    source = builders.source()
    run = builders.run(source.id)
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].add(source)
        await tx[RunStore].add(run)
    assert await backend.delivery_log.get_trace_context(tenant, run.id) is None


async def test_the_last_trace_of_a_run_is_found_by_its_own_tenant_only(backend: Backend, tenant: Tenant) -> None:
    source = builders.source()
    run = builders.run(source.id)
    with backend.tracing.open_span("request", SpanKind.SERVER) as request:
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[SourceStore].add(source)
            await tx[RunStore].add(run)
    assert parse_trace_context(await backend.delivery_log.get_trace_context(tenant, run.id)) == request.context
    with backend.tracing.open_span("runs.execute", SpanKind.CONSUMER) as attempt:
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[RunStore].save(run)
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[RunStore].save(run)
    assert parse_trace_context(await backend.delivery_log.get_trace_context(tenant, run.id)) == attempt.context
    assert await backend.delivery_log.get_trace_context(await backend.tenant(), run.id) is None


def _build_subscriber(tenant: Tenant, **changes: Any) -> Subscriber:
    from domain.changes.model import FeedPosition
    from domain.webhooks.model import EncryptedSecrets

    return Subscriber(
        tenant, builders.endpoint(**changes), EncryptedSecrets(b"sealed"), FeedPosition(), includes_fat_payloads=False
    )


async def test_deliveries_belong_to_the_trace_of_their_run_up_to_a_limit(backend: Backend, tenant: Tenant) -> None:
    source = builders.source()
    run = builders.run(source.id)
    with backend.tracing.open_span("runs.execute", SpanKind.CONSUMER) as attempt:
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[SourceStore].add(source)
            await tx[RunStore].add(run)
    body = (
        b'{"data":{"title":"a \\"correlation_id\\":\\"run_x\\""},"correlation_id":"%s","causation_id":null}'
        % run.id.encode()
    )
    subscriber = _build_subscriber(tenant, url="https://me.example/hooks/secret-path?token=secret-value")
    metrics = WorkerMetrics()
    observer = DeliveryObserver(backend.delivery_log, metrics, backend.tracing)
    for number in range(MAX_TRACED_PER_RUN + 1):
        async with observer.trace_attempt(subscriber, builders.delivery(subscriber.endpoint.id), body) as span:
            observer.record_result(
                span,
                PostResult(None, 500) if number == 0 else PostResult(None, 200),
                "http_status" if number == 0 else None,
                0.1,
            )
    first, second, *_, last = list(backend.tracing.spans)[1:]
    assert (
        first.parent == second.parent == attempt.context and first.failure == "http_status" and second.failure is None
    )
    assert last.parent is None and last.link == attempt.context and last.context.trace != attempt.context.trace
    assert first.notes["server.address"] == "me.example" and first.notes["joinery.correlation_id"] == run.id
    assert "secret" not in repr(first.notes)
    assert (
        f'joinery_delivery_attempts_total{{outcome="succeeded"}} {MAX_TRACED_PER_RUN}.0'
        in metrics.render_text().decode()
    )


async def test_the_run_is_read_from_an_envelope() -> None:
    run = new_id("run")
    assert find_run_id(f'{{"correlation_id":"{run}"}}'.encode()) == run
    for body in (
        b"",
        b'{"correlation_id":"',
        b'{"correlation_id":"run_short"}',
        b'{"correlation_id":"\xff"}',
        b'{"id":"x"}',
    ):
        assert find_run_id(body) is None


async def test_waiting_jobs_are_counted_by_kind_of_lane(backend: Backend, tenant: Tenant) -> None:
    """Others may use the backend at the same time, so the test counts lanes of its own kinds."""
    kind = new_id("src")
    async with backend.uow.begin(tenant, CALL) as tx:
        for number in range(3):
            await tx[JobStore].add(NewJob("k", f"{kind}:{number}", tenant))
        await tx[JobStore].add(NewJob("k", f"{kind}:later", tenant, run_at=backend.now() + timedelta(hours=1)))
    [job] = await backend.dispatch.claim(build_lane_name(tenant.org, f"{kind}:0"), 1, LEASE)
    [found] = [one for one in await backend.dispatch.count_backlog() if one.lane_kind == kind]
    assert (
        (found.waiting_count, found.running_count) == (2, 1)
        and found.oldest_due_at is not None
        and found.oldest_due_at <= backend.now()
    )
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[JobStore].finish(job)
