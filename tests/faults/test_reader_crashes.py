"""Feeds that crash their reader: the run fails after three attempts, and other runs continue."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.api_json.codec import JsonCodec
from adapters.postgres.nodes.pool import Pool
from adapters.processes.feed_readers import ProcessFeedReaders, ReaderLimits
from domain.ingestion.ports import FeedReaderFactory
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobDispatcher
from domain.kernel.concurrency import ConcurrencyLimit
from domain.runs.run_queue import build_source_lane
from ports.clock import Clock
from tests.flows.feeds import build_catalogue
from tests.flows.in_process_service import InProcessService, open_service
from tests.flows.service_processes import ROOT
from tests.support.services import create_run_handler

pytestmark = pytest.mark.asyncio
COMMAND = [sys.executable, "-m", "tests.support.hostile_reader"]


def _simulate_crashes(service: InProcessService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    container = service.world.dependencies
    limits = ReaderLimits(memory_mib=256, cpu_seconds=1, call_seconds=5.0)
    container[FeedReaderFactory] = ProcessFeedReaders(COMMAND, JsonCodec(), max_readers=2, limits=limits)


async def _make_due(service: InProcessService, source: str) -> None:
    """Make the job due without its worker."""
    async with service.world.dependencies[Pool].connect_to_coordinator() as link:
        await link.driver_connection.execute(
            "UPDATE jobs SET run_at = now() - interval '1 s', "
            "lease_until = CASE WHEN lease_until IS NOT NULL THEN now() - interval '1 s' END WHERE lane = %s",
            (build_source_lane(source),),
        )


async def _run_attempts(service: InProcessService, content: bytes) -> tuple[Any, int]:
    """Repeat the run over a file until it ends; return it and the number of attempts."""
    run, attempts = await service.import_file(content), 1
    while run["status"] == "running":
        await _make_due(service, run["source"])
        await service.process_lane(run["source"])
        run, attempts = await service.get_newest_run(run["source"]), attempts + 1
    return run, attempts


@pytest.mark.parametrize(
    ("deed", "attempts"),
    [("abort", 3), ("die", 3), pytest.param("sleep", 3, marks=pytest.mark.soak), ("eat", 1), ("spin", 1)],
)
async def test_a_run_fails_after_repeated_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str, attempts: int
) -> None:
    async with open_service(tmp_path) as service:
        good = await service.import_file(build_catalogue(3))
        _simulate_crashes(service, monkeypatch)
        run, taken = await _run_attempts(service, deed.encode())
        assert (run["status"], run["error"]["code"], taken) == ("failed", "parse_failed", attempts)
        assert run["error"]["message"]
        assert not await service.fetch_rows("SELECT 1 FROM jobs WHERE lane = %s", build_source_lane(run["source"]))
        source = (await service.client.get(f"/v1/sources/{run['source']}")).json()
        assert source["status"] == "active" and good["status"] == "succeeded"


async def _start_attempt(service: InProcessService, source: str) -> ClaimedJob:
    """Start an attempt that never reports."""
    dispatch = service.world.dependencies[JobDispatcher]
    (job,) = await dispatch.claim(build_source_lane(source), 1, timedelta(seconds=30))
    attempt = asyncio.create_task(create_run_handler(service.world.dependencies)(job, asyncio.Event()))
    await asyncio.sleep(0.5)
    attempt.cancel()
    await asyncio.gather(attempt, return_exceptions=True)
    return job


async def test_attempts_that_crash_the_worker_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_service(tmp_path) as service:
        _simulate_crashes(service, monkeypatch)
        source = await service.create_source("push", config={"currency": "usd"})
        record = {"product": {"external_id": "P", "title": "T"}, "variants": [{"external_id": "V"}]}
        assert (await service.client.post(f"/v1/sources/{source}/records", {"records": [record]})).status == 202
        for number in range(3):
            job = await _start_attempt(service, source)
            assert (job.attempt, job.has_expired_lease) == (number + 1, number > 0)
            await _make_due(service, source)
        await service.process_lane(source)
        run = await service.get_newest_run(source)
        assert (run["status"], run["error"]["code"]) == ("failed", "parse_failed")
        assert "3 times" in run["error"]["message"]


async def test_attempts_that_crash_before_reading_do_not_count(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        source = await service.create_source("push", config={"currency": "usd"})
        record = {"product": {"external_id": "P", "title": "T"}, "variants": [{"external_id": "V"}]}
        assert (await service.client.post(f"/v1/sources/{source}/records", {"records": [record]})).status == 202
        container, taken = service.world.dependencies, asyncio.Event()

        class Slow(ConcurrencyLimit):
            """Slots of which none is ever free."""

            def slot(self, org: str) -> Any:
                taken.set()
                return super().slot(org)

        for _ in range(4):
            (job,) = await container[JobDispatcher].claim(build_source_lane(source), 1, timedelta(seconds=30))
            execution: Any = create_run_handler(container)
            execution._processing_limit = Slow(0)
            attempt = asyncio.create_task(execution(job, asyncio.Event()))
            async with asyncio.timeout(10):
                await taken.wait()
            attempt.cancel()
            await asyncio.gather(attempt, return_exceptions=True)
            await _make_due(service, source)
        await service.process_lane(source)
        assert (await service.get_newest_run(source))["status"] == "succeeded"


async def test_released_attempts_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_service(tmp_path) as service:
        source = await service.create_source("push", config={"currency": "usd"})
        record = {"product": {"external_id": "P", "title": "T"}, "variants": [{"external_id": "V"}]}
        assert (await service.client.post(f"/v1/sources/{source}/records", {"records": [record]})).status == 202
        with monkeypatch.context() as hostile:
            _simulate_crashes(service, hostile)
            for _ in range(5):
                job = await _start_attempt(service, source)
                await service.world.dependencies[JobDispatcher].release(job, service.world.dependencies[Clock].now())
        service.world.dependencies[FeedReaderFactory] = service.world.dependencies[ProcessFeedReaders]
        await service.process_lane(source)
        assert (await service.get_newest_run(source))["status"] == "succeeded"
