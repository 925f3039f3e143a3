"""An attempt that pauses before a transaction and resumes without its lease changes nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.files.workspaces import FileWorkspaces
from adapters.postgres.nodes.pool import Pool
from domain.ingestion.ports import Connectors, FeedReaderFactory
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobDispatcher
from domain.kernel.errors import LeaseLost
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs.run_queue import build_source_lane
from domain.runs.usecases.execution import RunExecution
from domain.secrets.ports import Vault
from ports.objects import ObjectStore
from ports.unit_of_work import Tx, UnitOfWork
from tests.flows.feeds import build_record
from tests.flows.in_process_service import InProcessService, open_service
from tests.support.services import create_run_handler

pytestmark = pytest.mark.asyncio
TRANSACTIONS = 6
"""Of a run with one chunk: start, fetch, comparison, write, ageing, end."""


class PausingUnitOfWork:
    """Units of work, of which the n-th waits until it is resumed."""

    def __init__(self, inner: Any, sleeps_before: int) -> None:
        self._inner, self._left = inner, sleeps_before
        self.paused, self.resumed = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def begin(self, tenant: Tenant, call: AuditContext) -> AsyncIterator[Tx]:
        """Begin a transaction, after the pause if any."""
        await self._pause()
        async with self._inner.begin(tenant, call) as tx:
            yield tx

    @asynccontextmanager
    async def begin_scratch(self, tenant: Tenant, call: AuditContext) -> AsyncIterator[Tx]:
        """Begin a transaction that is rolled back, after the pause if any."""
        await self._pause()
        async with self._inner.begin_scratch(tenant, call) as tx:
            yield tx

    async def _pause(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.paused.set()
            await self.resumed.wait()


class PausedAttempt:
    """An attempt of a source's run that pauses before its n-th transaction until its lease is over."""

    def __init__(self, service: InProcessService, source: str, sleeps_before: int) -> None:
        self.service, self.lane = service, build_source_lane(source)
        self.units = PausingUnitOfWork(service.world.dependencies[UnitOfWork], sleeps_before)

    async def claim_job(self) -> ClaimedJob:
        """Claim the run's job as the next attempt."""
        await self.service.fetch_rows("SELECT 1")
        async with self.service.world.dependencies[Pool].connect_to_coordinator() as link:
            await link.driver_connection.execute("UPDATE jobs SET lease_until = NULL WHERE lane = %s", (self.lane,))
        (job,) = await self.service.world.dependencies[JobDispatcher].claim(self.lane, 1, timedelta(seconds=30))
        return job

    async def start(self) -> "asyncio.Task[None]":
        """Start the attempt and wait until it pauses."""
        parts = self.service.world.dependencies
        execution = RunExecution(
            self.units, parts[Connectors], parts[ObjectStore], parts[Vault], parts[FeedReaderFactory], FileWorkspaces()
        )  # fmt: skip
        attempt = asyncio.create_task(execution(await self.claim_job(), asyncio.Event()))
        await asyncio.wait_for(self.units.paused.wait(), 10)
        return attempt

    async def resume(self, attempt: "asyncio.Task[None]") -> None:
        """Resume the attempt, which must fail with LeaseLost."""
        self.units.resumed.set()
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(attempt, 10)


async def _push_records(service: InProcessService) -> str:
    source = await service.create_source("push", config={"currency": "usd"})
    answer = await service.client.post(
        f"/v1/sources/{source}/records", {"records": [build_record("A"), build_record("B")], "complete": True}
    )
    assert answer.status == 202
    return source


@pytest.mark.parametrize("sleeps_before", range(1, TRANSACTIONS + 1))
async def test_an_attempt_resumed_after_the_run_ended_changes_nothing(tmp_path: Path, sleeps_before: int) -> None:
    async with open_service(tmp_path) as service:
        source = await _push_records(service)
        paused_attempt = PausedAttempt(service, source, sleeps_before)
        attempt = await paused_attempt.start()
        await create_run_handler(service.world.dependencies)(await paused_attempt.claim_job(), asyncio.Event())
        ended, kept = await service.get_newest_run(source), await service.fetch_catalogue_rows()
        assert (ended["status"], ended["stats"]["products_created"]) == ("succeeded", 2)
        await paused_attempt.resume(attempt)
        assert await service.get_newest_run(source) == ended and await service.fetch_catalogue_rows() == kept


@pytest.mark.parametrize("sleeps_before", range(1, TRANSACTIONS + 1))
async def test_an_attempt_resumed_after_the_run_was_claimed_changes_nothing(tmp_path: Path, sleeps_before: int) -> None:
    async with open_service(tmp_path) as service:
        source = await _push_records(service)
        paused_attempt = PausedAttempt(service, source, sleeps_before)
        attempt = await paused_attempt.start()
        job, before, kept = (
            await paused_attempt.claim_job(),
            await service.get_newest_run(source),
            await service.fetch_catalogue_rows(),
        )
        await paused_attempt.resume(attempt)
        assert await service.get_newest_run(source) == before and await service.fetch_catalogue_rows() == kept
        await create_run_handler(service.world.dependencies)(job, asyncio.Event())
        ended = await service.get_newest_run(source)
        assert (ended["status"], ended["stats"]["products_created"]) == ("succeeded", 2)
        assert await service.fetch_rows("SELECT id FROM jobs WHERE lane = %s", build_source_lane(source)) == []
