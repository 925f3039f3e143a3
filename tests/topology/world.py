"""The real application on two servers, and what its workers do, without processes of their own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from dependency_injector import providers

from adapters.postgres.pool import Pool
from domain.jobs.usecases.draining import Drain
from domain.kernel.tenancy import Tenant
from entrypoints.container import Container
from tests.http.client import Client
from tests.support.services import execution_of
from tests.tenancy.world import World, serving
from tests.topology.backend import ReplicatedRegistry, replicated
from tests.topology.two_servers import Servers

RECORD = {"product": {"external_id": "P1", "title": "Oak chair"}, "variants": [{"external_id": "P1-1"}]}


@dataclass
class Shop:
    """A tenant with a key and a source that records are pushed to."""

    tenant: Tenant
    client: Client
    source: str

    async def push(self, key: str) -> Any:
        """Push a record; the answer."""
        return await self.client.post(f"/v1/sources/{self.source}/records", {"records": [RECORD]}, idempotency_key=key)

    async def products(self) -> list[Any]:
        """What the catalogue holds."""
        answer = await self.client.get("/v1/products")
        assert answer.status == 200, answer.body
        listed: list[Any] = answer.json()["data"]
        return listed


@dataclass
class Cluster:
    """The application on two servers."""

    servers: Servers
    world: World

    async def shop(self, number: int) -> Shop:
        """A new organisation on that node, with a source."""
        organisation = await self.world.organisation()
        self.servers.place(organisation.id, number)
        tenant = Tenant(organisation.id, True)
        client = await self.world.client(tenant)
        made = await client.post("/v1/sources", {"name": "Pushed", "kind": "push"}, idempotency_key=f"source-{number}")
        assert made.status == 201, made.body
        return Shop(tenant, client, made.json()["id"])

    async def work(self) -> int:
        """Do what is due, as workers do; answers how many lanes there were."""
        container = self.world.container
        handlers = {"runs.execute": execution_of(container)}
        drain = Drain(container.dispatch(), handlers, lease=timedelta(seconds=10))
        lanes = await container.dispatch().lanes_due(100)
        async with asyncio.timeout(60):
            await asyncio.gather(*(drain.drain(lane) for lane in lanes))
        return len(lanes)


@asynccontextmanager
async def serving_on(servers: Servers, folder: Path, **env: str) -> AsyncIterator[Cluster]:
    """The application as the API process makes it; its pool knows both servers."""
    pool = Pool(servers.all[0].conninfo, size=4, placement=servers)

    def prepare(container: Container) -> None:
        container.pool.override(providers.Object(pool))
        container.uow.override(providers.Object(replicated(container.uow(), servers)))
        container.registry.override(providers.Object(ReplicatedRegistry(pool, servers)))

    try:
        async with serving(folder, prepare, JOINERY_DATABASE_URL=servers.all[0].conninfo, **env) as world:
            yield Cluster(servers, world)
    finally:
        await pool.close()
