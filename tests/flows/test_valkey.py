"""Flows with all processes of a deployment: API, worker, scheduler and Valkey."""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from entrypoints.up.servers import Valkey
from tests.flows.feeds import FeedServer, build_catalogue, build_record
from tests.flows.service_processes import ServiceProcesses, wait_until
from tests.postgres.databases import create_database


@pytest.fixture(scope="module")
def complete_services() -> Iterator[ServiceProcesses]:
    """Run all processes of a deployment."""
    home = Path(tempfile.mkdtemp(prefix="jv", dir="/tmp"))
    server = Valkey(home)
    asyncio.run(server.start())
    services = ServiceProcesses(asyncio.run(create_database("whole")), home, {"JOINERY_REDIS_URL": server.build_url()})
    try:
        for name in ("scheduler", "worker"):
            services.start(name)
        services.start_api()
        yield services
    finally:
        services.stop()
        asyncio.run(server.stop())
        shutil.rmtree(home, ignore_errors=True)


def test_uploads_and_pushes(complete_services: ServiceProcesses) -> None:
    api = complete_services.create_organisation().api
    source = api.create_source("file", config={"currency": "usd"})
    assert api.import_file(source, build_catalogue(20))["stats"]["products_created"] == 20
    pushed = api.create_source("push", config={"currency": "usd"})
    runs = [api.push(pushed, [build_record(f"A{number}")])["id"] for number in range(10)]
    assert {api.wait_for_end(run)["status"] for run in runs} == {"succeeded"}
    assert len(api.list_all("/v1/products")) == 30


def test_a_schedule_starts_runs(complete_services: ServiceProcesses, feeds: FeedServer) -> None:
    api = complete_services.create_organisation().api
    url = feeds.serve("/scheduled.csv", build_catalogue(3))
    source = api.create_source("url", config={"url": url, "currency": "usd"}, schedule={"interval_minutes": 5})
    complete_services.fetch_rows(
        "UPDATE sources SET next_pull = now() - interval '1 minute' WHERE id = %(id)s", id=source
    )
    run = wait_until(lambda: api.list_all(f"/v1/sources/{source}/runs"), "a run of the schedule", within=25)[0]
    assert run["trigger"] == "schedule" and api.wait_for_end(run["id"])["stats"]["products_created"] == 3
    planned = (
        "SELECT next_pull - now() BETWEEN interval '4 minutes' AND interval '6 minutes' FROM sources WHERE id = %(id)s"
    )
    assert complete_services.fetch_value(planned, id=source) is True


def test_budgets_are_shared_between_processes(complete_services: ServiceProcesses) -> None:
    api = complete_services.create_organisation(plan="standard").api
    answers = [api.call("POST", f"/v1/uploads/upl_{'0' * 22}/complete") for _ in range(9)]
    refused = [answer for answer in answers if answer.status == 429]
    assert refused and refused[0].code == "rate_limited" and int(refused[0].headers["retry-after"]) >= 1
    assert answers[0].headers["ratelimit-policy"] == '"standard.expensive";q=5;w=3'


def test_slow_servers_of_one_organisation_do_not_delay_others(
    complete_services: ServiceProcesses, feeds: FeedServer
) -> None:
    """More sources than a worker has lanes, of several organisations, all with unresponsive servers."""
    over = threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> None:
        over.wait(60)
        handler.send_error(500)

    feeds.raw["/slow.csv"] = hang
    others = complete_services.create_organisation().api
    source = others.create_source("file", config={"currency": "usd"})
    try:
        for _ in range(2):
            greedy = complete_services.create_organisation().api
            for _ in range(24):
                config = {"url": feeds.url("/slow.csv"), "currency": "usd"}
                greedy.create_source("url", config=config, schedule={"interval_minutes": 5})
        waiting = "SELECT count(*) FROM runs WHERE status = 'running' AND stage = 'fetch'"
        wait_until(lambda: complete_services.fetch_value(waiting) == 32, "the remaining runs wait", within=40)
        assert others.import_file(source, build_catalogue(5))["status"] == "succeeded"
        same_host = others.create_source(
            "url", config={"url": feeds.serve("/quick.csv", build_catalogue(5)), "currency": "usd"}
        )
        assert others.pull(same_host)["status"] == "succeeded"
        assert complete_services.fetch_value(waiting) == 32
    finally:
        over.set()
