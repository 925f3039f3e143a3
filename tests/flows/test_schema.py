"""Processes with an empty, older or newer schema, and processes that stop."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from adapters.postgres.schema_migrations import load_migrations, migrate
from tests.flows.api_client import ApiClient
from tests.flows.feeds import build_record
from tests.flows.service_processes import ROOT, ServiceProcesses, wait_until
from tests.postgres.databases import create_database


@pytest.fixture
def services_on_empty_schema(tmp_path: Path) -> Iterator[ServiceProcesses]:
    services = ServiceProcesses(asyncio.run(create_database("schema_empty", migrated=False)), tmp_path)
    yield services
    services.stop()


@pytest.fixture
def migrated_services(tmp_path: Path) -> Iterator[ServiceProcesses]:
    services = ServiceProcesses(asyncio.run(create_database("schema_newer")), tmp_path)
    yield services
    services.stop()


def _set_schema_version(services: ServiceProcesses, oldest: int) -> None:
    services.fetch_rows("DELETE FROM schema_migrations WHERE name = '9001_later'")
    services.fetch_rows(
        "INSERT INTO schema_migrations (name, oldest_compatible) VALUES ('9001_later', %(oldest)s)", oldest=oldest
    )


def _run_doctor(services: ServiceProcesses) -> dict[str, str]:
    env = {"PYTHONPATH": str(ROOT), **services.env}
    command = [sys.executable, "-P", "-m", "entrypoints.cli.main", "doctor", "--json"]
    done = subprocess.run(command, env=env, cwd=services.home, capture_output=True, text=True, check=False)
    return {one["name"]: f"{one['state']}: {one['detail']}" for one in json.loads(done.stdout)["findings"]}


def _get_readiness(api: ApiClient) -> tuple[int, dict[str, str]]:
    answer = api.send("GET", "/readyz")
    return answer.status, answer.json()["checks"]


def test_an_empty_database_makes_no_process_ready(services_on_empty_schema: ServiceProcesses) -> None:
    services_on_empty_schema.start("api")
    api = ApiClient(services_on_empty_schema.port, None)

    def status() -> int | None:
        try:
            return api.send("GET", "/healthz").status
        except OSError:
            return None

    wait_until(status, "the API listens", within=40)
    assert _get_readiness(api) == (503, {"database": "up", "schema": "down", "keys": "down", "accepting": "up"})
    response = ApiClient(services_on_empty_schema.port, "svc_live_0123456789abcdefghijABCDEFGHIJ01234567").call(
        "GET", "/v1/products"
    )
    assert (response.status, response.code) == (503, "unavailable") and response.headers["retry-after"]
    worker = services_on_empty_schema.start("worker")
    wait_until(
        lambda: "joinery migrate" in services_on_empty_schema.log_path("worker").read_text(),
        "the worker says what it waits for",
    )
    assert worker.poll() is None
    assert "wrong" in _run_doctor(services_on_empty_schema)["database"]
    asyncio.run(migrate(services_on_empty_schema.database_url))
    wait_until(api.is_ready, "the API is ready once migrated")
    source = (tenancy := services_on_empty_schema.create_organisation()).api.create_source(
        "push", config={"currency": "usd"}
    )
    run = tenancy.api.push(source, [build_record("A1")])["id"]
    assert tenancy.api.wait_for_end(run)["status"] == "succeeded"


def test_a_contracted_schema_returns_503_and_never_401(migrated_services: ServiceProcesses) -> None:
    migrated_services.start_api()
    tenancy = migrated_services.create_organisation()
    assert tenancy.api.call("GET", "/v1/products").status == 200
    _set_schema_version(migrated_services, 9001)
    migrated_services.fetch_rows("UPDATE api_keys SET digest = '\\x00'")  # as changed by the later release
    wait_until(lambda: not tenancy.api.is_ready(), "the API is not ready")
    answers = {tenancy.api.call("GET", path).status for path in ("/v1/products", "/v1/sources", "/console", "/mcp")}
    assert answers == {503}
    assert tenancy.api.send("GET", "/healthz").status == 200
    assert "9001" in _run_doctor(migrated_services)["database"]


def test_an_incompatible_schema_is_never_served(migrated_services: ServiceProcesses) -> None:
    tenancy = migrated_services.create_organisation()
    _set_schema_version(migrated_services, 9001)
    migrated_services.start("api")

    def first() -> int | None:
        try:
            return tenancy.api.call("GET", "/v1/products").status
        except OSError:
            return None

    assert wait_until(first, "the API listens", within=40) == 503


def test_a_credential_hidden_by_a_later_schema_is_not_refused_as_unknown(migrated_services: ServiceProcesses) -> None:
    """The first refusal checks the schema itself, before any request of /readyz."""
    migrated_services.start_api()
    tenancy = migrated_services.create_organisation()
    migrated_services.fetch_rows("UPDATE api_keys SET digest = '\\x00'")
    assert tenancy.api.call("GET", "/v1/products").status == 401
    _set_schema_version(migrated_services, 9001)
    seen = wait_until(
        lambda: (answer := tenancy.api.call("GET", "/v1/products")).status != 401 and answer, "no 401", within=5
    )
    assert (seen.status, seen.code) == (503, "unavailable")


def test_processes_work_on_an_expanded_schema(migrated_services: ServiceProcesses) -> None:
    _set_schema_version(migrated_services, 40)
    migrated_services.start_api()
    migrated_services.start("worker")
    tenancy = migrated_services.create_organisation()
    source = tenancy.api.create_source("push", config={"currency": "usd"})
    run = tenancy.api.push(source, [build_record("A1")])["id"]
    assert tenancy.api.wait_for_end(run)["status"] == "succeeded"
    assert "later, compatible release (9001_later)" in _run_doctor(migrated_services)["database"]


def test_a_worker_stops_its_work_on_a_contracted_schema(migrated_services: ServiceProcesses) -> None:
    _set_schema_version(migrated_services, 9001)
    worker = migrated_services.start("worker")
    wait_until(
        lambda: "newer release" in migrated_services.log_path("worker").read_text(), "the worker says why it waits"
    )
    assert worker.poll() is None
    _set_schema_version(migrated_services, 40)
    wait_until(
        lambda: "compatible with this release" in migrated_services.log_path("worker").read_text(),
        "the process continues",
    )
    assert worker.poll() is None


def test_readiness_fails_before_requests_are_refused(migrated_services: ServiceProcesses) -> None:
    migrated_services.env["JOINERY_DRAIN_SECONDS"] = "3"
    process = migrated_services.start_api()
    tenancy = migrated_services.create_organisation()
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: tenancy.api.send("GET", "/readyz").status == 503, "not ready", every=0.01)
    assert _get_readiness(tenancy.api)[1] == {"database": "up", "schema": "up", "keys": "up", "accepting": "down"}
    assert tenancy.api.call("GET", "/v1/products").status == 200
    assert process.wait(20) == 0


def test_a_migration_gives_up_waiting_for_locks(
    services_on_empty_schema: ServiceProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that locks a table delays the migration, but other readers of the table do not wait."""
    asyncio.run(migrate(services_on_empty_schema.database_url))
    later = [*load_migrations(), ("9001_next", "ALTER TABLE schema_migrations ADD COLUMN next text")]
    monkeypatch.setattr("adapters.postgres.schema_migrations.load_migrations", lambda: later)
    with psycopg.connect(services_on_empty_schema.database_url) as holder:
        holder.execute("SELECT count(*) FROM schema_migrations")

        async def both() -> list[str]:
            migrating = asyncio.create_task(migrate(services_on_empty_schema.database_url))
            await asyncio.sleep(0.5)
            async with await psycopg.AsyncConnection.connect(
                services_on_empty_schema.database_url, autocommit=True
            ) as reader:
                await reader.execute("SET statement_timeout = '10s'")
                await reader.execute("SELECT count(*) FROM schema_migrations")
            assert not migrating.done()
            holder.rollback()
            return await migrating

        assert asyncio.run(both()) == ["9001_next"]
