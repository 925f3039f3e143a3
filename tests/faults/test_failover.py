"""All processes follow a streaming standby that is promoted after the loss of the primary."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest

from adapters.postgres.schema_migrations import migrate
from entrypoints.up.servers import Postgres, PostgresCluster, build_postgres_environment
from tests.flows.api_client import ApiClient
from tests.flows.feeds import build_record
from tests.flows.service_processes import ServiceProcesses, wait_until

_LEADS = "leadership acquired"


def _build_socket_options(server: Postgres) -> str:
    return parse_qs(urlsplit(server.build_url()).query)["host"][0]


def _create_standby(primary: Postgres, home: Path) -> None:
    """Create a standby from a base backup of the primary."""
    cluster = PostgresCluster(home / "postgres")
    command = [
        cluster.get_program_path("pg_basebackup"),
        "-h",
        _build_socket_options(primary),
        "-U",
        "postgres",
        "-D",
        str(cluster.path),
        "-R",
    ]
    subprocess.run(
        [*command, "-c", "fast"], check=True, env=build_postgres_environment(), capture_output=True, timeout=60
    )
    if os.geteuid() == 0:
        for path in (cluster.path, *cluster.path.rglob("*")):
            os.chown(path, 65534, 65534, follow_symlinks=False)


@pytest.fixture
def directories() -> Iterator[tuple[Path, Path, Path]]:
    """Create folders with short paths for sockets: of primary, standby and service processes."""
    folders = [Path(tempfile.mkdtemp(prefix="jr", dir="/tmp")) for _ in range(3)]
    for path in folders:
        path.chmod(0o755)
    yield folders[0], folders[1], folders[2]
    for path in folders:
        shutil.rmtree(path, ignore_errors=True)


def _has_caught_up(primary: Postgres) -> bool:
    with psycopg.connect(primary.build_url("joinery", "postgres"), autocommit=True) as connection:
        row = connection.execute("SELECT pg_current_wal_lsn() = replay_lsn FROM pg_stat_replication").fetchone()
        return bool(row and row[0])


def _assert_new_epoch(api: ApiClient, page: Any) -> None:
    """Check that readers must restart and then read all events, since a standby may lack events."""
    cursor = page["next_cursor"]
    paged = api.call("GET", f"/v1/changes?cursor={cursor}")
    streamed = api.call("GET", "/v1/stream", Last_Event_ID=cursor)
    assert [(one.status, one.code) for one in (paged, streamed)] == [(410, "cursor_expired")] * 2
    restarted = api.get("/v1/changes")
    known = len(page["data"])
    assert restarted["data"][:known] == page["data"] and restarted["caught_up"]
    assert {event["type"] for event in restarted["data"][known:]} >= {"offer.changed", "product.created"}
    assert api.get("/v1/changes", cursor=restarted["next_cursor"])["data"] == []


@pytest.mark.soak
def test_processes_follow_a_promoted_standby(directories: tuple[Path, Path, Path]) -> None:
    primary = Postgres(directories[0], {"shared_buffers": "64MB"})
    process = asyncio.run(primary.start())
    asyncio.run(migrate(primary.build_url()))
    _create_standby(primary, directories[1])
    standby = Postgres(directories[1], {"shared_buffers": "64MB"})
    asyncio.run(standby.start())
    hosts = quote(f"{_build_socket_options(primary)},{_build_socket_options(standby)}", safe=",")
    services = ServiceProcesses(
        f"postgresql://joinery@/joinery?host={hosts}&target_session_attrs=read-write", directories[2]
    )
    try:
        services.start("worker")
        services.start("scheduler")
        services.start_api()
        tenancy = services.create_organisation()
        source = tenancy.api.create_source("push", config={"currency": "usd"})
        assert (
            tenancy.api.wait_for_end(tenancy.api.push(source, [build_record("A", quantity=1)])["id"])["status"]
            == "succeeded"
        )
        page = tenancy.api.get("/v1/changes")
        wait_until(lambda: _LEADS in services.log_path("scheduler").read_text(), "the scheduler leads")
        wait_until(lambda: _has_caught_up(primary), "the standby has everything")
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not tenancy.api.is_ready(), "the database has ended")
        with psycopg.connect(standby.build_url("joinery", "postgres"), autocommit=True) as connection:
            assert connection.execute("SELECT pg_promote(true, 30)").fetchone() == (True,)
        wait_until(tenancy.api.is_ready, "the API follows", within=30)
        wait_until(lambda: tenancy.api.call("GET", "/v1/products").status == 200, "the API reads", within=30)
        assert len(tenancy.api.list_all("/v1/offers")) == 1, "acknowledged changes are present"
        run = tenancy.api.push(source, [build_record("A", quantity=2), build_record("B", quantity=1)])["id"]
        assert tenancy.api.wait_for_end(run, 60)["status"] == "succeeded"
        _assert_new_epoch(tenancy.api, page)
        wait_until(
            lambda: services.log_path("scheduler").read_text().count(_LEADS) == 2,
            "the scheduler leads there",
            within=30,
        )
    finally:
        services.stop(number=signal.SIGKILL)
        asyncio.run(standby.stop())
        asyncio.run(primary.stop())
