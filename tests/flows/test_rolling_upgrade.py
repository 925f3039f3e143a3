"""Processes of the last release with this release's schema, and their replacement one by one under load."""

import asyncio
import http.client
import itertools
import os
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.api_client import ApiClient
from tests.flows.feeds import build_record
from tests.flows.service_processes import ROOT, ServiceProcesses, free_port, wait_until
from tests.postgres.databases import create_database
from tests.support.releases import extract_last_release

RATE = 24
"""Requests per second."""


class Release:
    """Processes of one source tree, as an operator starts them."""

    def __init__(self, tree: Path, services: ServiceProcesses) -> None:
        self._tree, self._stage = tree, services

    def command(self, *argv: str, **env: str) -> "subprocess.Popen[bytes]":
        """Start `joinery …` of this release."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("JOINERY_")}
        environment = {**kept, **self._stage.env, "PYTHONPATH": str(self._tree), **env}
        with self._stage.log_path(argv[0]).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "entrypoints.cli.main", *argv], env=environment, cwd=self._stage.home,
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self._stage.processes.append(process)
        return process

    def migrate(self) -> None:
        """Bring the database to this release's schema."""
        assert self.command("migrate").wait(60) == 0, self._stage.log_path("migrate").read_text()

    def api(self, port: int) -> "subprocess.Popen[bytes]":
        """Start an API and wait until it is ready."""
        process = self.command("api", JOINERY_PORT=str(port), JOINERY_DRAIN_SECONDS="1")
        wait_until(ApiClient(port, None).is_ready, "the API is ready", within=60)
        return process


class RequestLoad:
    """Mixed requests at a steady rate, repeated at the next API if a connection fails.

    Writes have an Idempotency-Key and are repeated like by the API clients, because a stopping server closes
    connections whose first request has not arrived.
    """

    def __init__(self, ports: list[int], secret: str, source: str) -> None:
        self._apis = [ApiClient(port, secret) for port in ports]
        self._source = source
        self.outcomes: Counter[str] = Counter()
        self.runs: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(8)]

    def __enter__(self) -> "RequestLoad":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self, number: int) -> None:
        time.sleep(number / RATE)
        for turn in itertools.count(number):
            began = time.monotonic()
            self._one(turn)
            if self._stop.wait(max(0.0, len(self._threads) / RATE - (time.monotonic() - began))):
                return

    def _one(self, turn: int) -> None:
        kind, idempotency_key = ("GET products", "push", "GET source", "PATCH")[turn % 4], str(uuid.uuid4())
        for api in (self._apis if turn % 2 else self._apis[::-1]) * 2:
            try:
                answer = self._send_request(api, kind, turn, idempotency_key)
            except ConnectionError:
                time.sleep(0.02)
                continue
            except (OSError, http.client.HTTPException) as error:
                self.outcomes[f"{kind}: {error!r}"] += 1
                return
            self.outcomes["ok" if answer < 300 else f"{kind}: {answer}"] += 1
            return
        self.outcomes[f"{kind}: nobody listens"] += 1

    def _send_request(self, api: ApiClient, kind: str, turn: int, idempotency_key: str) -> int:
        path = f"/v1/sources/{self._source}"
        if kind == "push":
            answer = api.call(
                "POST", f"{path}/records", {"records": [build_record(f"A{turn % 40}")]}, Idempotency_Key=idempotency_key
            )
            if answer.status == 202:
                self.runs.append(answer.json()["id"])
        elif kind == "PATCH":
            answer = api.call("PATCH", path, {"name": f"Source {turn}"}, If_Match="*", Idempotency_Key=idempotency_key)
        else:
            answer = api.call("GET", "/v1/products?limit=5" if kind == "GET products" else path)
        return answer.status


@pytest.fixture
def services(tmp_path: Path) -> Iterator[ServiceProcesses]:
    processes = ServiceProcesses(asyncio.run(create_database("rolling", migrated=False)), tmp_path)
    yield processes
    processes.stop()


def test_no_request_fails_while_a_release_replaces_the_last_one(
    services: ServiceProcesses, tmp_path_factory: pytest.TempPathFactory
) -> None:
    old, new = Release(extract_last_release(tmp_path_factory.mktemp("last_release")), services), Release(ROOT, services)
    old.migrate()
    ports = [services.port, free_port()]
    apis = [old.api(port) for port in ports]
    worker = old.command("worker")
    tenancy = services.create_organisation()
    source = tenancy.api.create_source("push", config={"currency": "usd"})
    with RequestLoad(ports, str(tenancy.api.secret), source) as load:
        time.sleep(1)
        new.migrate()
        seen = sum(load.outcomes.values())
        wait_until(lambda: sum(load.outcomes.values()) > seen + RATE, "the last release works on the new schema")
        services.stop(worker)
        new.command("worker")
        for place, port in enumerate(ports):
            services.stop(apis[place])
            apis[place] = new.api(port)
        seen = sum(load.outcomes.values())
        wait_until(lambda: sum(load.outcomes.values()) > seen + RATE, "the new release works")
        services.stop(apis[1])
        apis[1] = old.api(ports[1])  # rolled back: the last release reads what the new one wrote
        seen = sum(load.outcomes.values())
        wait_until(lambda: sum(load.outcomes.values()) > seen + RATE, "both releases work side by side")
    assert set(load.outcomes) == {"ok"} and load.outcomes["ok"] > 3 * RATE, load.outcomes
    assert {tenancy.api.wait_for_end(run)["status"] for run in load.runs} == {"succeeded"}
