"""Servers of a cluster killed: who notices, who does not, and that everything goes on when they are back."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.citus.homes import home_of
from tests.citus.servers import Server, server
from tests.flows.feeds import record
from tests.flows.stage import Stage, Tenancy, eventually
from tests.support.citus import nodes

Tenants = dict[str, list[Tenancy]]


@contextmanager
def killed(one: Server) -> Iterator[None]:
    """Killed until left."""
    one.kill()
    try:
        yield
    finally:
        one.start()


@pytest.fixture
def servers() -> list[Server]:
    """The coordinator, then the workers."""
    return [server(host, port) for host, port in asyncio.run(nodes())]


def _push(tenancy: Tenancy, source: str, name: str) -> None:
    run = tenancy.api.push(source, [record(name)])["id"]
    assert tenancy.api.ended(run, within=60)["status"] == "succeeded"


def _works(tenancy: Tenancy) -> bool:
    return bool(tenancy.api.call("GET", "/v1/products").status == 200)


def test_a_dead_worker_stops_its_own_tenants_only(stage: Stage, tenants: Tenants, servers: list[Server]) -> None:
    worker = servers[1]
    own, others = tenants[worker.name], [one for name, there in tenants.items() if name != worker.name for one in there]
    sources = {one.tenant.org: one.api.source("push", config={"currency": "usd"}) for one in (*own, *others)}
    for one in (*own, *others):
        _push(one, sources[one.tenant.org], "before")
    with killed(worker):
        for one in own:
            answer = one.api.call("GET", "/v1/products")
            assert answer.status == 503 and answer.json()["code"] == "unavailable" and answer.headers["retry-after"]
            assert one.api.call("POST", "/v1/sources", {"name": "S", "kind": "push"}).status == 503
        began = time.monotonic()
        assert own[0].api.call("GET", "/v1/products").status == 503
        assert time.monotonic() - began < 10, "nobody waits for a node that is known to be away"
        for one in others:
            assert _works(one)
            _push(one, sources[one.tenant.org], "meanwhile")
            assert len(one.api.whole("/v1/products", source=sources[one.tenant.org])) == 2
    for one in own:
        eventually(lambda one=one: _works(one), "it is back", within=60)  # type: ignore[misc]
        assert len(one.api.whole("/v1/products", source=sources[one.tenant.org])) == 1, "what was stored is there"
        _push(one, sources[one.tenant.org], "after")


def test_without_the_coordinator_tenants_go_on(stage: Stage, tenants: Tenants, servers: list[Server]) -> None:
    every = [one for there in tenants.values() for one in there]
    for one in every:
        assert _works(one) and home_of(stage, one.tenant.org) != servers[0].name
    with killed(servers[0]):
        for one in every:
            eventually(lambda one=one: _works(one), "reads go on", within=30)  # type: ignore[misc]
            made = one.api.call("POST", "/v1/sources", {"name": "S", "kind": "push", "config": {"currency": "usd"}})
            assert made.status == 201, made.body
    source = every[0].api.source("push", config={"currency": "usd"})
    eventually(lambda: every[0].api.push(source, [record("again")]), "writes go on", within=30)
    _push(every[0], source, "later")
