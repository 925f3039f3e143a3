"""Website checks from queue to report: single completion, takeover, failure and limits."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from adapters.markup.documents import MarkupDocuments
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.errors import Conflict, LeaseLost, NotFound, Unprocessable
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.probes.facts import PageFacts, ProbeResponse
from domain.probes.model import MAX_PROBES_PER_OPEN_STATUS, Probe
from domain.probes.usecases.execution import ProbeJob
from domain.probes.usecases.polite_client import ProbeLimits
from domain.probes.usecases.service import ProbeService
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.memory.hosts import MemoryWeb
from tests.unit.probes import shop_sites
from tests.unit.probes.shop_sites import SITE

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
LEASE = timedelta(seconds=30)
SHORT_LEASE = timedelta(milliseconds=150)
PAST_LEASE = timedelta(milliseconds=200)
SERVICE = ProbeService(frozenset())


class GatedWeb(MemoryWeb):
    """Website whose home page blocks until `gate` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.reached = asyncio.Event(), asyncio.Event()

    async def get(self, url: str, **options: Any) -> ProbeResponse:
        if url == f"{SITE}/":
            self.reached.set()
            await self.gate.wait()
        return await super().get(url, **options)


class FailingDocuments(MarkupDocuments):
    """Parser with an internal error."""

    async def parse_page(self, response: ProbeResponse) -> PageFacts:
        raise ZeroDivisionError


async def _skip_sleep(_: float) -> None:
    pass


def _create_handler(uow: UnitOfWork, web: MemoryWeb, **changes: Any) -> ProbeJob:
    documents = changes.pop("documents", None) or MarkupDocuments()
    limits = ProbeLimits(**changes)
    return ProbeJob(uow, web, documents, lambda _: True, limits=limits, sleep=_skip_sleep)


async def _queue_probe(uow: UnitOfWork, tenant: Tenant, url: str = f"{SITE}/") -> Probe:
    async with uow.begin(tenant, CALL) as tx:
        return await SERVICE.create_probe(tx, {"url": url})


async def _load_probe(uow: UnitOfWork, tenant: Tenant, probe: Probe) -> Probe:
    async with uow.begin_reading(tenant) as tx:
        return await SERVICE.get(tx, probe.id)


async def _claim_jobs(backend: Backend, tenant: Tenant, lease: timedelta = LEASE) -> Sequence[ClaimedJob]:
    return [job for job in await backend.dispatch.claim("probe:vendor.example", 50, lease) if job.tenant == tenant]


def _create_shop() -> MemoryWeb:
    web = MemoryWeb()
    shop_sites.serve_shopify_shop(web)
    return web


async def test_a_probe_is_carried_out_once(backend: Backend, tenant: Tenant) -> None:
    probe = await _queue_probe(backend.uow, tenant)
    assert (probe.status, probe.report) == ("queued", None)
    [job] = await _claim_jobs(backend, tenant)
    await _create_handler(backend.uow, _create_shop())(job, asyncio.Event())
    ended = await _load_probe(backend.uow, tenant, probe)
    assert ended.status == "succeeded" and ended.report is not None and ended.report.platform == "shopify"
    assert ended.proposal is not None and ended.proposal["connector"] == "shopify"
    assert ended.completed_at is not None and ended.failure is None and ended.crashes == 0
    assert await _claim_jobs(backend, tenant) == []
    with pytest.raises(LeaseLost):
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[JobStore].renew_lease(job, LEASE)


async def test_an_unreachable_site_is_reported(backend: Backend, tenant: Tenant) -> None:
    probe = await _queue_probe(backend.uow, tenant)
    [job] = await _claim_jobs(backend, tenant)
    await _create_handler(backend.uow, MemoryWeb())(job, asyncio.Event())
    ended = await _load_probe(backend.uow, tenant, probe)
    assert ended.status == "failed" and ended.failure is not None
    assert (ended.failure.code, ended.report, ended.proposal) == ("fetch_failed", None, None)


async def test_an_internal_error_fails_the_probe(
    backend: Backend, tenant: Tenant, caplog: pytest.LogCaptureFixture
) -> None:
    probe = await _queue_probe(backend.uow, tenant)
    [job] = await _claim_jobs(backend, tenant)
    await _create_handler(backend.uow, _create_shop(), documents=FailingDocuments())(job, asyncio.Event())
    ended = await _load_probe(backend.uow, tenant, probe)
    assert ended.failure is not None and ended.failure.code == "internal_error"
    assert "ZeroDivisionError" in caplog.text and "Zero" not in ended.failure.message


async def test_an_attempt_with_an_expired_lease_changes_nothing(backend: Backend, tenant: Tenant) -> None:
    probe, slow = await _queue_probe(backend.uow, tenant), GatedWeb()
    shop_sites.serve_robots(slow)
    [job] = await _claim_jobs(backend, tenant, SHORT_LEASE)
    handler = _create_handler(backend.uow, slow)
    handler._lease = SHORT_LEASE
    late = asyncio.create_task(handler(job, asyncio.Event()))
    await slow.reached.wait()
    await backend.pass_time(PAST_LEASE)
    [again] = await _claim_jobs(backend, tenant)
    assert again.has_expired_lease and again.attempt == 2
    await _create_handler(backend.uow, _create_shop())(again, asyncio.Event())
    ended = await _load_probe(backend.uow, tenant, probe)
    slow.gate.set()
    with pytest.raises(LeaseLost):
        await late
    assert ended.crashes == 1 and ended == await _load_probe(backend.uow, tenant, probe)


async def test_a_probe_whose_attempts_die_is_given_up(backend: Backend, tenant: Tenant) -> None:
    probe = await _queue_probe(backend.uow, tenant)
    for attempt in range(1, 4):
        web = GatedWeb()
        shop_sites.serve_robots(web)
        [job] = await _claim_jobs(backend, tenant, SHORT_LEASE)
        assert job.attempt == attempt
        handler = _create_handler(backend.uow, web)
        handler._lease = SHORT_LEASE
        dying = asyncio.create_task(handler(job, asyncio.Event()))
        await web.reached.wait()
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        await backend.pass_time(PAST_LEASE)
    [job] = await _claim_jobs(backend, tenant)
    web = GatedWeb()
    await _create_handler(backend.uow, web)(job, asyncio.Event())
    ended = await _load_probe(backend.uow, tenant, probe)
    assert (ended.status, ended.crashes, web.requests) == ("failed", 3, [])
    assert ended.failure is not None and ended.failure.code == "timed_out"
    assert await _claim_jobs(backend, tenant) == []


async def test_a_probe_that_never_ends_is_stopped(
    backend: Backend, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.probes.usecases.execution._EXTRA_SECONDS", 0.0)
    probe, web = await _queue_probe(backend.uow, tenant), GatedWeb()
    shop_sites.serve_robots(web)
    [job] = await _claim_jobs(backend, tenant)
    await _create_handler(backend.uow, web, seconds=0.3, pause=0.0)(job, asyncio.Event())
    ended = await _load_probe(backend.uow, tenant, probe)
    assert ended.failure is not None and ended.failure.code == "timed_out"


async def test_probes_of_one_host_take_turns_in_a_process(backend: Backend, tenant: Tenant) -> None:
    other = await backend.tenant()
    first, second = await _queue_probe(backend.uow, tenant), await _queue_probe(backend.uow, other)
    web = GatedWeb()
    shop_sites.serve_shopify_shop(web)
    jobs = await backend.dispatch.claim("probe:vendor.example", 50, LEASE)
    [mine] = [job for job in jobs if job.tenant == tenant]
    [theirs] = [job for job in jobs if job.tenant == other]
    handler = _create_handler(backend.uow, web)
    one = asyncio.create_task(handler(mine, asyncio.Event()))
    await web.reached.wait()
    requested = len(web.requests)
    two = asyncio.create_task(handler(theirs, asyncio.Event()))
    await asyncio.sleep(0.1)
    assert len(web.requests) == requested
    web.gate.set()
    await asyncio.gather(one, two)
    assert (await _load_probe(backend.uow, tenant, first)).status == "succeeded"
    assert (await _load_probe(backend.uow, other, second)).status == "succeeded"


async def test_open_probes_are_limited(backend: Backend, tenant: Tenant) -> None:
    for _ in range(MAX_PROBES_PER_OPEN_STATUS):
        await _queue_probe(backend.uow, tenant)
    with pytest.raises(Conflict, match="queued"):
        await _queue_probe(backend.uow, tenant)
    await _queue_probe(backend.uow, Tenant(tenant.org, False))
    [first, *_] = await _claim_jobs(backend, tenant)
    await _create_handler(backend.uow, MemoryWeb())(first, asyncio.Event())
    await _queue_probe(backend.uow, tenant)
    async with backend.uow.begin_reading(tenant) as tx:
        assert len((await SERVICE.list_probes(tx, PageRequest(limit=100))).items) == MAX_PROBES_PER_OPEN_STATUS + 1


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://localhost/", "https://vendor.example:8443/", "https://me@vendor.example/", "http://[::1]/", "https://", "ftp://vendor.example/"])  # fmt: skip
async def test_invalid_addresses_are_never_requested(backend: Backend, tenant: Tenant, url: str) -> None:
    with pytest.raises(Unprocessable):
        await _queue_probe(backend.uow, tenant, url)


async def test_missing_rows_are_none(backend: Backend, tenant: Tenant) -> None:
    with pytest.raises(NotFound):
        await _load_probe(backend.uow, tenant, builders.probe())
