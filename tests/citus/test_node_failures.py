"""Failure of nodes of a cluster: affected and unaffected tenants, and recovery."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.citus.placements import find_node
from tests.citus.servers import ClusterServer, find_server
from tests.flows.feeds import build_record
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until
from tests.support.citus import list_nodes

Tenants = dict[str, list[Tenancy]]


@contextmanager
def kill_server(one: ClusterServer) -> Iterator[None]:
    """Kill the server; restart it when the context ends."""
    one.kill()
    try:
        yield
    finally:
        one.start()


@pytest.fixture
def servers() -> list[ClusterServer]:
    """Return the coordinator, then the workers."""
    return [find_server(host, port) for host, port in asyncio.run(list_nodes())]


def _push_record(tenancy: Tenancy, source: str, name: str) -> None:
    run = tenancy.api.push(source, [build_record(name)])["id"]
    assert tenancy.api.wait_for_end(run, within=60)["status"] == "succeeded"


def _create_tenancy_elsewhere(services: ServiceProcesses, worker: ClusterServer) -> Tenancy:
    """Create an organisation on another node."""
    while True:
        made = services.create_organisation(livemode=False)
        if find_node(services, made.tenant.org) != worker.name:
            return made


def _wait_for_push(tenancy: Tenancy, source: str) -> str | None:
    answer = tenancy.api.call("POST", f"/v1/sources/{source}/records", {"records": [build_record("meanwhile")]})
    return str(answer.json()["id"]) if answer.status == 202 else None


def _is_working(tenancy: Tenancy) -> bool:
    return bool(tenancy.api.call("GET", "/v1/products").status == 200)


def test_a_failed_worker_affects_its_own_tenants_only(
    services: ServiceProcesses, tenants: Tenants, servers: list[ClusterServer]
) -> None:
    every = [one for there in tenants.values() for one in there]
    node_by_org = {one.tenant.org: find_node(services, one.tenant.org) for one in every}
    worker = next(one for one in servers if one.name == node_by_org[every[0].tenant.org])
    own = [one for one in every if node_by_org[one.tenant.org] == worker.name]
    others = [one for one in every if one not in own] or [_create_tenancy_elsewhere(services, worker)]
    sources = {one.tenant.org: one.api.create_source("push", config={"currency": "usd"}) for one in (*own, *others)}
    for one in (*own, *others):
        _push_record(one, sources[one.tenant.org], "before")
    with kill_server(worker):
        for one in own:
            answer = one.api.call("GET", "/v1/products")
            assert answer.status == 503 and answer.json()["code"] == "unavailable" and answer.headers["retry-after"]
            assert one.api.call("POST", "/v1/sources", {"name": "S", "kind": "push"}).status == 503
        began = time.monotonic()
        assert own[0].api.call("GET", "/v1/products").status == 503
        assert time.monotonic() - began < 10, "nobody waits for a node that is known to be away"
        for one in others:
            assert _is_working(one)
            _push_record(one, sources[one.tenant.org], "meanwhile")
            assert len(one.api.list_all("/v1/products", source=sources[one.tenant.org])) == 2
    for one in own:
        wait_until(lambda one=one: _is_working(one), "it is back", within=60)  # type: ignore[misc]
        assert len(one.api.list_all("/v1/products", source=sources[one.tenant.org])) == 1, "what was stored is there"
        _push_record(one, sources[one.tenant.org], "after")


def test_tenants_work_without_the_coordinator(
    services: ServiceProcesses, tenants: Tenants, servers: list[ClusterServer]
) -> None:
    every = [one for there in tenants.values() for one in there]
    for one in every:
        assert _is_working(one) and find_node(services, one.tenant.org) != servers[0].name
    with kill_server(servers[0]):
        for one in every:
            wait_until(lambda one=one: _is_working(one), "reads go on", within=30)  # type: ignore[misc]
            made = one.api.call("POST", "/v1/sources", {"name": "S", "kind": "push", "config": {"currency": "usd"}})
            assert made.status == 201, made.body
        fed = made.json()["id"]
        run = wait_until(lambda: _wait_for_push(every[-1], fed), "pushes are taken", within=30)
        assert every[-1].api.wait_for_end(run, within=60)["status"] == "succeeded", "feeds go on"
    source = every[0].api.create_source("push", config={"currency": "usd"})
    wait_until(lambda: every[0].api.push(source, [build_record("again")]), "writes go on", within=30)
    _push_record(every[0], source, "later")
