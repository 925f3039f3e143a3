"""Schedules of sources by clock time: what the API accepts and answers, and when the scheduler queues runs."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.changes.ports import NetworkLog
from domain.runs.model import RunStatus
from domain.runs.ports import RunStore
from domain.runs.usecases.scheduling import RunScheduler
from domain.sources.ports import SourceSchedule
from tests.http.application import OPERATOR
from tests.http.sources import SourceHarness, open_source_harness

pytestmark = pytest.mark.asyncio
DAILY = {"at": ["06:30"], "time_zone": "Europe/Berlin"}
CLOCK_IS_AT = datetime(2026, 11, 20, 13, 8, tzinfo=UTC)
"""Friday, 14:08 in Berlin."""


@pytest_asyncio.fixture(name="harness")
async def open_harness() -> AsyncIterator[SourceHarness]:
    """Run the application."""
    async with open_source_harness() as harness:
        yield harness


async def _create_imported_source(harness: SourceHarness, schedule: Any) -> Any:
    """Create a source whose catalogue has just been read, and return its JSON with the schedule."""
    source = await harness.create_source()
    await harness.change_source(source["id"], catalogue_at=harness.application.clock.now())
    source = (await harness.client.get(f"/v1/sources/{source['id']}")).json()
    response = await harness.update_source(source, schedule=schedule)
    assert response.status == 200, response.body
    return response.json()


async def test_clock_times_are_stored_and_the_next_run_is_shown(harness: SourceHarness) -> None:
    source = await _create_imported_source(harness, DAILY)
    assert source["schedule"] == {"adaptive": False, **DAILY}
    assert source["next_run_at"] == "2026-11-21T05:30:00.000Z" and "next_stock_run_at" not in source
    weekly = DAILY | {"weekdays": ["mon", "tue"]}
    source = (await harness.update_source(source, schedule=weekly)).json()
    assert source["schedule"] == {"adaptive": False, **weekly} and source["next_run_at"] == "2026-11-23T05:30:00.000Z"
    entry = (await harness.list_audit_entries(source["id"]))[-1]
    assert entry.change.after["schedule"]["weekdays"] == ["mon", "tue"]
    undone = await harness.client.post(f"/v1/audit-events/{entry.id}/undo", {})
    assert undone.status == 200, undone.body
    source = (await harness.client.get(f"/v1/sources/{source['id']}")).json()
    assert source["schedule"] == {"adaptive": False, **DAILY} and source["next_run_at"] == "2026-11-21T05:30:00.000Z"
    paused = (await harness.update_source(source, status="paused")).json()
    assert "next_run_at" not in paused
    resumed = (await harness.update_source(paused, status="active")).json()
    assert resumed["next_run_at"] == "2026-11-21T05:30:00.000Z"


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        ({"at": ["06:30"], "interval_minutes": 60}, ("schedule.at", "invalid_value")),
        ({"at": []}, ("schedule.at", "too_few")),
        ({"at": ["6:30"]}, ("schedule.at.0", "invalid_format")),
        ({"at": ["24:00"]}, ("schedule.at.0", "invalid_format")),
        ({"at": ["06:30"], "weekdays": ["monday"]}, ("schedule.weekdays.0", "invalid_value")),
        ({"at": ["06:30"], "time_zone": "Mars/Olympus"}, ("schedule.time_zone", "invalid_value")),
        ({"time_zone": "Europe/Berlin"}, ("schedule.time_zone", "invalid_value")),
        ({"weekdays": ["mon"]}, ("schedule.weekdays", "invalid_value")),
    ],
)
async def test_invalid_clock_times_are_refused(harness: SourceHarness, schedule: Any, fault: tuple[str, str]) -> None:
    response = await harness.client.post(
        "/v1/sources",
        {"name": "x", "kind": "url", "config": {"url": "https://vendor.example/a.csv"}, "schedule": schedule},
    )
    assert response.status == 400 and fault in response.faults, response.body
    assert (await harness.client.post("/v1/sources", {"name": "x", "kind": "file", "schedule": DAILY})).status == 422


async def test_a_source_runs_once_at_each_clock_time(harness: SourceHarness) -> None:
    source, clock = await _create_imported_source(harness, DAILY), harness.application.clock
    assert clock.now() == CLOCK_IS_AT
    dependencies = harness.application.dependencies
    scheduler = RunScheduler(harness.application.uow, dependencies[SourceSchedule], clock, dependencies[NetworkLog])

    async def list_runs() -> list[Any]:
        return (await harness.client.get(f"/v1/sources/{source['id']}/runs")).json()["data"]

    async def end_open_runs() -> None:
        async with harness.application.uow.begin(harness.tenant, OPERATOR) as tx:
            if (run := await tx[RunStore].find_open(source["id"])) is not None:
                await tx[RunStore].save(run.with_end(RunStatus.SUCCEEDED, tx.now))

    due = datetime(2026, 11, 21, 5, 30, tzinfo=UTC)
    clock.advance(due - clock.now() - timedelta(seconds=1))
    assert await scheduler.queue_due_runs() == due and await list_runs() == [], "a second too early"
    clock.advance(timedelta(seconds=1))
    for _ in range(3):
        assert await scheduler.queue_due_runs() == due + timedelta(days=1)
    assert [run["trigger"] for run in await list_runs()] == ["schedule"]
    # the next time occurs while the run is still open: it is tried again later, and then waits for the next day
    clock.advance(timedelta(days=1))
    retried = await scheduler.queue_due_runs()
    assert retried == due + timedelta(days=1, minutes=5) and len(await list_runs()) == 1
    await end_open_runs()
    clock.advance(timedelta(minutes=5))
    assert await scheduler.queue_due_runs() == due + timedelta(days=2) and len(await list_runs()) == 2
