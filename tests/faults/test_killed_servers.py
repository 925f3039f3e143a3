"""The database, the queue or the API is killed during work: acknowledged changes remain, others are rolled back."""

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from adapters.postgres.schema_migrations import migrate
from entrypoints.up.servers import Postgres, Valkey
from tests.faults.conftest import CRASH_POINTS, FaultServices
from tests.faults.states import load_state
from tests.flows.feeds import build_catalogue, build_record
from tests.flows.service_processes import ServiceProcesses, free_port, is_stopped, wait_until
from tests.postgres.databases import create_database

FEED = build_catalogue(500)


@pytest.fixture
def home() -> Iterator[Path]:
    """Create a folder with a short path, for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="jf", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.soak
def test_postgresql_is_killed_in_the_middle_of_a_run(home: Path) -> None:
    server = Postgres(home, {"fsync": "off", "shared_buffers": "64MB"})
    process = asyncio.run(server.start())
    services = ServiceProcesses(server.build_url("joinery", "postgres"), home)
    try:
        asyncio.run(migrate(services.database_url))
        services.start("worker", (*CRASH_POINTS, "worker"))
        services.start_api()
        tenancy = services.create_organisation()
        calm, shaken = (tenancy.api.create_source("file", config={"currency": "usd"}) for _ in range(2))
        assert tenancy.api.import_file(calm, FEED)["status"] == "succeeded"
        run = tenancy.api.upload_file(shaken, FEED)
        wait_until(
            lambda: services.fetch_value("SELECT stage FROM runs WHERE id = %(id)s", id=run) == "store",
            "storing",
            every=0.005,
        )
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not tenancy.api.is_ready(), "its children have followed it")
        assert tenancy.api.call("GET", "/v1/products").status == 503
        assert not tenancy.api.is_ready()
        asyncio.run(server.start())
        wait_until(tenancy.api.is_ready, "the API is ready again")
        _wait_until_available(tenancy.api)
        ended = tenancy.api.wait_for_end(run, 60)
        assert ended["status"] == "succeeded" and ended["stats"]["products_created"] == 500
        assert load_state(services, shaken) == load_state(services, calm)
    finally:
        services.stop(number=signal.SIGKILL)
        asyncio.run(server.stop())


def _wait_until_available(api: Any) -> None:
    """Wait until requests succeed; connections from before the crash get one 503 with Retry-After."""
    for _ in range(20):
        answer = api.call("GET", "/v1/products")
        if answer.status == 200:
            return
        assert answer.status == 503 and answer.code == "unavailable" and int(answer.headers["retry-after"]) > 0
    raise AssertionError("the API does not come back")


@pytest.mark.soak
def test_valkey_is_flushed_and_killed_during_a_run(home: Path) -> None:
    """The queue only wakes workers; jobs are stored in the database."""
    server = Valkey(home)
    process = asyncio.run(server.start())
    services = ServiceProcesses(asyncio.run(create_database("valkey")), home, {"JOINERY_REDIS_URL": server.build_url()})
    try:
        services.start("scheduler")
        services.start("worker", (*CRASH_POINTS, "worker"))
        services.start_api()
        tenancy = services.create_organisation()
        sources = [tenancy.api.create_source("push", config={"currency": "usd"}) for _ in range(4)]

        def push(round_: int) -> list[str]:
            return [tenancy.api.push(source, [build_record("A", quantity=round_)])["id"] for source in sources]

        runs = push(1)
        runs += _push_during_fault(push, 2, lambda: redis.Redis(unix_socket_path=server.build_url()[7:]).flushall())
        runs += _push_during_fault(push, 3, lambda: os.kill(process.pid, signal.SIGKILL))
        runs += push(4)
        assert tenancy.api.call("GET", "/v1/products").status == 200, "budgets do without it"
        asyncio.run(server.start())
        runs += push(5)
        assert {tenancy.api.wait_for_end(run)["status"] for run in runs} == {"succeeded"}
        offers = tenancy.api.list_all("/v1/offers")
        assert [(offer["quantity"], offer["version"]) for offer in offers] == [(5, 5)] * 4
        assert (
            services.fetch_value(
                "SELECT count(*) FROM jobs WHERE kind NOT LIKE 'media.%%' AND kind NOT LIKE 'matching.%%'"
            )
            == 0
        )
    finally:
        services.stop(number=signal.SIGKILL)
        asyncio.run(server.stop())


def _push_during_fault(push: Any, number: int, disturb: Any) -> list[str]:
    runs: list[str] = push(number)
    disturb()
    return runs


@pytest.mark.parametrize("place", ["write", "written"])
def test_the_api_is_killed_around_the_commit_of_a_post(fault_services: FaultServices, place: str) -> None:
    """Before the commit nothing has changed, after it everything: the retry has one effect."""
    services = ServiceProcesses(fault_services.services.database_url, fault_services.services.home, port=free_port())
    tenancy = services.create_organisation()
    body = {"name": "Once", "kind": "push"}
    trapped = services.start_api((*CRASH_POINTS, "api", place))
    try:
        with pytest.raises(OSError):
            tenancy.api.call("POST", "/v1/sources", body, Idempotency_Key="once")
        assert trapped.wait(20) == -signal.SIGKILL
        services.processes.remove(trapped)
        kept = services.fetch_value("SELECT count(*) FROM sources WHERE org = %(org)s", org=tenancy.tenant.org)
        assert kept == (1 if place == "written" else 0)
        services.start_api()
        answers = [tenancy.api.call("POST", "/v1/sources", body, Idempotency_Key="once") for _ in range(3)]
        assert [answer.status for answer in answers] == [201] * 3
        assert len({answer.body for answer in answers}) == 1
        replayed = [answer.headers.get("idempotent-replayed") for answer in answers]
        assert replayed == ["true" if place == "written" else None, "true", "true"]
        assert len(tenancy.api.list_all("/v1/sources")) == 1
        audited = "SELECT count(*) FROM audit_entries WHERE org = %(org)s AND target = 'source'"
        assert services.fetch_value(audited, org=tenancy.tenant.org) == 1
    finally:
        services.stop()


def test_a_retry_during_the_first_request(fault_services: FaultServices) -> None:
    """The API is stopped in the middle of the transaction; another process receives the same request."""
    services = ServiceProcesses(fault_services.services.database_url, fault_services.services.home, port=free_port())
    tenancy = services.create_organisation()
    trapped = services.start_api((*CRASH_POINTS, "api", "write", "SIGSTOP"))
    try:
        import threading

        first: list[Any] = []
        body = {"name": "Once", "kind": "push"}
        requesting = threading.Thread(
            target=lambda: first.append(tenancy.api.call("POST", "/v1/sources", body, Idempotency_Key="k")), daemon=True
        )
        requesting.start()
        wait_until(partial(is_stopped, trapped), "the process is stopped", within=90)
        other = type(tenancy.api)(fault_services.services.port, tenancy.api.secret)
        answer = other.call("POST", "/v1/sources", body, Idempotency_Key="k")
        assert (answer.status, answer.code) == (409, "idempotency_request_in_progress")
        assert answer.headers["retry-after"] == "1"
        trapped.send_signal(signal.SIGCONT)
        requesting.join(20)
        assert first[0].status == 201
        time.sleep(0)
        again = other.call("POST", "/v1/sources", body, Idempotency_Key="k")
        assert (again.status, again.body) == (201, first[0].body)
    finally:
        services.stop()
