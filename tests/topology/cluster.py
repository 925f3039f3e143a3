"""Application on two servers, with the work of workers in the same process."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from adapters.postgres.nodes.pool import Pool
from domain.changes.usecases.log_tailer import LogTailer
from domain.jobs.ports import JobDispatcher
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgRegistry
from domain.webhooks.ports import DeliveryDatabases, PostResult, Sender
from domain.webhooks.usecases.deliverer import DeliveryCoordinator
from entrypoints.dependencies import Dependencies
from entrypoints.worker.service import create_deliverer
from ports.unit_of_work import UnitOfWork
from tests.http.client import Client
from tests.support.services import create_run_handler
from tests.tenancy.application import ServedApplication, serve_application
from tests.topology.backend import ReplicatedRegistry, create_replicated_uow
from tests.topology.servers import Servers


@dataclass
class ClusterTenant:
    """Tenant with a client and a push source."""

    tenant: Tenant
    client: Client
    source: str

    async def push(self, key: str, product: str = "P1") -> Any:
        """Push a record of the product and return the response."""
        record = {"product": {"external_id": product, "title": "Chair"}, "variants": [{"external_id": f"{product}-1"}]}
        return await self.client.post(f"/v1/sources/{self.source}/records", {"records": [record]}, idempotency_key=key)

    async def list_products(self) -> list[Any]:
        """Return the products of the catalogue."""
        answer = await self.client.get("/v1/products")
        assert answer.status == 200, answer.body
        listed: list[Any] = answer.json()["data"]
        return listed


class RecordingSender:
    """Sender that records event IDs by organisation."""

    def __init__(self) -> None:
        self.events: dict[str, set[str]] = {}
        self._came = asyncio.Event()

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, livemode: bool, seconds: float
    ) -> PostResult:
        self.events.setdefault(url.rpartition("/")[2], set()).add(json.loads(body)["id"])
        self._came.set()
        return PostResult(None, 200)

    async def wait_for_events(self, org: str, wanted: set[str]) -> None:
        """Wait until these events have arrived."""
        async with asyncio.timeout(60):
            while wanted - self.events.get(org, set()):
                self._came.clear()
                await self._came.wait()


@dataclass
class Cluster:
    """Application on two servers."""

    servers: Servers
    application: ServedApplication

    async def create_tenant(self, number: int) -> ClusterTenant:
        """Create an organisation with a source on that node."""
        organisation = await self.application.create_organisation()
        self.servers.place_organisation(organisation.id, number)
        tenant = Tenant(organisation.id, True)
        client = await self.application.create_client(tenant)
        made = await client.post("/v1/sources", {"name": "Pushed", "kind": "push"}, idempotency_key=f"source-{number}")
        assert made.status == 201, made.body
        return ClusterTenant(tenant, client, made.json()["id"])

    async def run_due_jobs(self) -> int:
        """Execute the due runs as workers do and return the number of lanes with runs."""
        container = self.application.dependencies
        handlers = {"runs.execute": create_run_handler(container)}
        drain = LaneProcessor(container[JobDispatcher], handlers, lease=timedelta(seconds=10))
        due = await container[JobDispatcher].dispatch_due_lanes(100)
        lanes = [lane for lane in due if "/source:" in lane]
        async with asyncio.timeout(60):
            await asyncio.gather(*(drain.process_lane(lane) for lane in lanes))
        return len(lanes)

    @asynccontextmanager
    async def deliver_events(self) -> AsyncIterator[RecordingSender]:
        """Deliver from every node as a worker does."""
        container, receiver, stop = self.application.dependencies, RecordingSender(), asyncio.Event()
        container[Sender] = receiver
        tailing = asyncio.create_task(container[LogTailer].run())
        serving_all = DeliveryCoordinator(container[DeliveryDatabases], partial(create_deliverer, container))
        task = asyncio.create_task(serving_all.run(stop))
        try:
            yield receiver
        finally:
            stop.set()
            await task
            tailing.cancel()
            await asyncio.gather(tailing, return_exceptions=True)


@asynccontextmanager
async def serve_cluster(servers: Servers, folder: Path, **env: str) -> AsyncIterator[Cluster]:
    """Serve the application as the API process does, with a pool of both servers."""
    pool = Pool(servers.nodes[0].conninfo, size=4, placement=servers)

    def prepare(container: Dependencies) -> None:
        container[Pool] = pool
        container[UnitOfWork] = create_replicated_uow(container[UnitOfWork], servers)
        container[OrgRegistry] = ReplicatedRegistry(pool, servers)

    try:
        async with serve_application(
            folder, prepare, JOINERY_DATABASE_URL=servers.nodes[0].conninfo, **env
        ) as application:
            yield Cluster(servers, application)
    finally:
        await pool.close()
