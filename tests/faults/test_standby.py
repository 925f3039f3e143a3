"""All processes idle with a standby scheduler: none delays vacuum, and the standby takes over."""

import asyncio
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.flows.service_processes import ServiceProcesses, wait_until
from tests.postgres.databases import create_database
from tests.postgres.vacuum_horizon import count_unremovable_rows

_LEADS = "leadership acquired"
_OURS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'joinery%%'"


@pytest.fixture
def services(tmp_path: Path) -> Iterator[ServiceProcesses]:
    """Run all processes and a standby scheduler."""
    processes = ServiceProcesses(asyncio.run(create_database("standby")), tmp_path)
    try:
        processes.start("worker")
        processes.start("webhooks", ("-m", "entrypoints.cli.main", "worker", "--for", "webhooks"))
        processes.start_api()
        yield processes
    finally:
        processes.stop(number=signal.SIGKILL)


def _is_leader(services: ServiceProcesses, name: str) -> bool:
    return _LEADS in services.log_path(name).read_text()


def _start_scheduler(services: ServiceProcesses, name: str) -> "subprocess.Popen[bytes]":
    return services.start(name, ("-m", "entrypoints.cli.main", "scheduler"))


@pytest.mark.soak
def test_idle_processes_hold_no_snapshot_and_the_standby_takes_over(services: ServiceProcesses) -> None:
    first = _start_scheduler(services, "first")
    wait_until(lambda: _is_leader(services, "first"), "the first one leads")
    second = _start_scheduler(services, "second")
    wait_until(
        lambda: services.fetch_value(f"SELECT count(*) {_OURS} AND application_name LIKE '%%leadership'") == 2,
        "it waits",
    )
    tenancy = services.create_organisation()
    tenancy.api.get("/v1/products")
    time.sleep(6)  # every tick has run once
    wait_until(lambda: _holds_no_snapshot(services), "no statement or transaction is open", within=30)
    assert asyncio.run(_count_dead_rows(services.database_url)) == 0
    assert not _is_leader(services, "second")
    first.send_signal(signal.SIGKILL)
    wait_until(lambda: _is_leader(services, "second"), "the second one leads", within=15)
    _start_scheduler(services, "third")
    wait_until(
        lambda: services.fetch_value(f"SELECT count(*) {_OURS} AND application_name LIKE '%%leadership'") == 2,
        "it waits",
    )
    second.send_signal(signal.SIGTERM)
    wait_until(lambda: _is_leader(services, "third"), "the third one leads", within=15)


def _holds_no_snapshot(services: ServiceProcesses) -> bool:
    """Return whether no connection of the service, idle or not, holds a snapshot."""
    rows = services.fetch_rows(f"SELECT application_name, state, backend_xmin IS NULL AND backend_xid IS NULL {_OURS}")
    assert {name for name, _, _ in rows} >= {"joinery", "joinery leadership", "joinery signals"}
    return all(state == "idle" and free for _, state, free in rows)


async def _count_dead_rows(address: str) -> int:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        return await count_unremovable_rows(owner)
