"""Processes on machines with wrong clocks store, serve and delete by the database's clock."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from domain.kernel.clock import MAX_OFFSET
from tests.flows.api_client import ApiClient
from tests.flows.feeds import FeedServer, build_catalogue, serve_feeds
from tests.flows.service_processes import ROOT, ServiceProcesses, free_port, wait_until
from tests.postgres.databases import create_database
from tests.support.webhook_endpoints import create_endpoint, run_receiver

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
pytestmark = pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed")


def build_clock_environment(offset: str, *, monotonic: bool = False) -> dict[str, str]:
    """Return the environment of a process with a shifted clock, with `monotonic` also the monotonic clock."""
    return {"LD_PRELOAD": str(FAKETIME), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": str(int(not monotonic))}


def start_with_clock(
    services: ServiceProcesses, name: str, env: dict[str, str], *argv: str
) -> "subprocess.Popen[bytes]":
    """Start `joinery <name>` as a new process, not a fork, because a library must be preloaded."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("JOINERY_")}
    with services.log_path(name + "-".join(argv)).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "entrypoints.cli.main", name, *argv],
            env={**kept, "PYTHONPATH": str(ROOT), **services.env, **env}, cwd=services.home,
            stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    services.processes.append(process)
    return process


@contextmanager
def create_services(home: Path) -> Iterator[ServiceProcesses]:
    """Create a database with the purge time of a service that ran until now."""
    services = ServiceProcesses(asyncio.run(create_database("wrong_clocks")), home)
    try:
        yield services
    finally:
        services.stop()


@pytest.fixture
def feeds() -> Iterator[FeedServer]:
    """Run a feed server."""
    with serve_feeds() as served:
        yield served


@pytest.mark.parametrize(
    ("offset", "monotonic"),
    [("+40d", False), ("-40d", False), ("+1h", True)],
    ids=["+40d", "-40d", "+1h, monotonic too"],
)
def test_every_process_uses_the_clock_of_the_database(
    tmp_path: Path, feeds: FeedServer, offset: str, monotonic: bool
) -> None:
    wrong = build_clock_environment(offset, monotonic=monotonic)
    with create_services(tmp_path) as services:
        tenancy = services.create_organisation(livemode=False)
        begun = services.fetch_value("SELECT now()")
        services.fetch_rows("UPDATE purges SET last_at = now() - interval '1 hour'")
        start_with_clock(services, "api", wrong)
        honest = ApiClient(free_port(), tenancy.api.secret)
        start_with_clock(services, "api", {"JOINERY_PORT": str(honest.port)})
        for name, more in (("worker", {}), ("scheduler", {}), ("mail", {"JOINERY_MAIL_PORT": str(free_port())})):
            start_with_clock(services, name, wrong | more)
        api = tenancy.api
        wait_until(api.is_ready, "the API by a wrong clock is ready", within=60)
        wait_until(honest.is_ready, "the API by the right clock is ready", within=60)
        with run_receiver(services) as receiving:
            endpoint = create_endpoint(api, receiving)
            source = api.create_source(
                "url",
                config={"url": feeds.serve("/feed.csv", build_catalogue(3)), "currency": "usd"},
                schedule={"interval_minutes": 60},
            )
            run = api.post(f"/v1/sources/{source}/runs")["id"]
            wait_until(lambda: api.get(f"/v1/runs/{run}")["status"] == "succeeded", "the run has succeeded", within=60)
            stamps = [int((one.headers or {})["webhook-timestamp"]) for one in endpoint.wait_for_received(3, within=60)]
            ended = services.fetch_value("SELECT now()")
            assert all(begun.timestamp() - MAX_OFFSET <= stamp <= ended.timestamp() + MAX_OFFSET for stamp in stamps)
        _assert_links_work(api, honest)
        _assert_links_work(honest, api)
        wait_until(
            lambda: services.fetch_value("SELECT last_at > now() - interval '5 minutes' FROM purges"),
            "a purge was allowed",
            within=60,
        )
        _assert_no_purge_and_no_freeze(services, source, begun)
        assert "clock" in api.get("/readyz") and "clock" not in honest.get("/readyz")
        shown = [
            line
            for line in api.send("GET", "/metrics").body.decode().splitlines()
            if line.startswith("joinery_clock_offset")
        ]
        assert abs(float(shown[0].rpartition(" ")[2])) > 3000
        _assert_doctor_repairs(services, wrong, source)


def _assert_links_work(maker: ApiClient, server: ApiClient) -> None:
    """Check that a link of one API is valid at the other."""
    content = b"SKU,Title,Price\nA-1,Chair,1\n"
    source = maker.create_source("file", config={"currency": "usd"})
    announcement = {"filename": "feed.csv", "content_type": "text/csv", "bytes": len(content)}
    target = maker.post(f"/v1/sources/{source}/uploads", announcement)["target"]
    path = "/" + target["url"].split("/", 3)[3]
    assert ApiClient(server.port, None).send("PUT", path, content, Content_Type="text/csv").status == 200


def _assert_no_purge_and_no_freeze(services: ServiceProcesses, source: str, begun: datetime) -> None:
    assert services.fetch_value("SELECT count(*) FROM idempotency_keys") >= 4
    assert services.fetch_value("SELECT count(*) FROM stored_objects WHERE NOT freed AND kind = 'snapshot'") == 1
    assert (
        services.fetch_value("SELECT count(*) FROM jobs WHERE run_at > now() + interval '1 minute' AND attempt = 0")
        == 0
    )
    [(due, pulled, created)] = services.fetch_rows(
        "SELECT s.next_pull, r.finished_at, r.created_at FROM sources s JOIN runs r ON r.source = s.id WHERE s.id = %(id)s",
        id=source,
    )
    ended = services.fetch_value("SELECT now()")
    assert begun <= created <= pulled <= ended
    assert timedelta(minutes=50) < due - pulled < timedelta(minutes=70)
    for table in ("events", "webhook_deliveries"):
        days = services.fetch_rows(f"SELECT DISTINCT tableoid::regclass::text FROM {table}")
        assert {name for (name,) in days} <= {f"{table}_{day:%Y%m%d}" for day in (begun, ended)}


def _assert_doctor_repairs(services: ServiceProcesses, wrong: dict[str, str], source: str) -> None:
    """Check that the doctor, with a wrong clock, repairs the results of a database's wrong clock."""
    services.fetch_rows("UPDATE sources SET next_pull = now() + interval '40 days' WHERE id = %(id)s", id=source)
    services.fetch_rows("UPDATE purges SET last_at = now() - interval '2 days'")
    before = start_with_clock(services, "doctor", wrong)
    assert before.wait(60) == 1
    output = services.log_path("doctor").read_text()
    assert (
        "1 sources' pulls" in output
        and "Purges are refused: the last purge was at" in output
        and "This machine's clock differs" in output
    )
    assert start_with_clock(services, "doctor", wrong, "--repair-schedule").wait(60) == 0
    assert services.fetch_value(
        "SELECT next_pull <= now() + interval '2 hours' FROM sources WHERE id = %(id)s", id=source
    )
    assert services.fetch_value("SELECT last_at > now() - interval '5 minutes' FROM purges")
