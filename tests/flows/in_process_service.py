"""The application and a worker's handlers in the test's process, on one database, with low limits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from adapters.http.body import MinimumResponseRate
from adapters.http.client import GuardedClient, HttpBounds
from adapters.pluggy.host import load_connectors
from connectors.sdk.context import MIB, Limits
from domain.ingestion.ports import Connectors, FeedReaderFactory
from domain.jobs.model import build_lane_name
from domain.jobs.ports import JobDispatcher, JobStore
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.tenancy import Tenant
from domain.mappings.model_requests import MODEL_REQUEST_JOB
from domain.orgs.ports import OrgStore
from domain.proposals.model import create_proposing_job
from domain.runs.run_queue import EXECUTE_RUN, REASSIGN_CATEGORIES, build_source_lane
from domain.runs.usecases.category_rules import CategoryReassignment
from entrypoints.areas import agents, mappings
from entrypoints.dependencies import Dependencies
from entrypoints.factories import create_feed_readers
from entrypoints.operations.operation import create_handlers
from entrypoints.settings import Settings
from ports.codec import Codec
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork
from tests.flows.service_processes import FEEDS, ROOT
from tests.http.client import Client
from tests.support import builders
from tests.support.postgres import database
from tests.support.services import create_run_handler
from tests.tenancy.application import ServedApplication, serve_application

BOUNDS = HttpBounds(
    total_seconds=5, connect_seconds=2, response_seconds=1, idle_seconds=1, max_received_bytes=MIB, max_body_bytes=2 * MIB,
    minimum_rate=MinimumResponseRate(bytes_per_second=2000, grace_seconds=0.5),
)  # fmt: skip
LIMITS = Limits(snapshot_bytes=2 * MIB, unpacked_bytes=8 * MIB, columns=150, fetch_seconds=4, parse_seconds=10)


@dataclass
class InProcessService:
    """Client of one organisation, and a worker that processes jobs on request."""

    world: ServedApplication
    client: Client
    tenant: Tenant

    async def create_source(self, kind: str = "url", **fields: Any) -> str:
        """Create a source and return its ID."""
        answer = await self.client.post("/v1/sources", {"name": "Feed", "kind": kind, **fields})
        assert answer.status == 201, answer.body
        return str(answer.json()["id"])

    async def process_lane(self, source: str) -> None:
        """Process the jobs of the source's lane, like a worker."""
        container = self.world.dependencies
        handlers = {
            EXECUTE_RUN: create_run_handler(container),
            REASSIGN_CATEGORIES: CategoryReassignment(container[UnitOfWork]),
        }
        drain = LaneProcessor(container[JobDispatcher], handlers, lease=timedelta(seconds=10))
        await asyncio.wait_for(drain.process_lane(build_source_lane(source)), 30)

    async def process_model_requests(self) -> None:
        """Query the configured model about mappings, like a worker."""
        container = self.world.dependencies
        handlers = create_handlers([mappings.AREA], container)
        drain = LaneProcessor(container[JobDispatcher], handlers, lease=timedelta(seconds=10))
        await asyncio.wait_for(drain.process_lane(build_lane_name(self.tenant.org, MODEL_REQUEST_JOB)), 30)

    async def process_agents(self) -> None:
        """Let the agents of live mode examine what has happened, like a worker."""
        container = self.world.dependencies
        drain = LaneProcessor(
            container[JobDispatcher], create_handlers([agents.AREA], container), lease=timedelta(seconds=10)
        )
        await asyncio.wait_for(drain.process_lane(build_lane_name(self.tenant.org, "agents:live")), 60)

    async def queue_agents(self, **subject: str) -> None:
        """Queue a job of the agents about an object."""
        async with self.world.dependencies[UnitOfWork].begin(self.tenant, builders.CALL) as tx:
            await tx[JobStore].add(create_proposing_job(self.tenant, **subject))

    async def create_owner(self) -> Client:
        """Return a client with the token of an owner."""
        async with self.world.dependencies[UnitOfWork].begin_reading(self.tenant) as tx:
            organisation = await tx[OrgStore].get_organisation()
        return await self.world.create_owner(organisation, self.tenant.livemode)

    async def get_newest_run(self, source: str) -> Any:
        """Return the source's newest run."""
        return (await self.client.get(f"/v1/sources/{source}/runs?limit=1")).json()["data"][0]

    async def pull(self, url: str, **config: Any) -> Any:
        """Pull from a new source at the address; return the finished run."""
        source = await self.create_source(config={"url": url, "currency": "usd", **config})
        answer = await self.client.post(f"/v1/sources/{source}/runs")
        assert answer.status == 202, answer.body
        await self.process_lane(source)
        return await self.get_newest_run(source)

    async def import_file(
        self, content: bytes, source: str | None = None, filename: str = "feed.csv", **config: Any
    ) -> Any:
        """Import a file; return the finished run."""
        source = source or await self.create_source("file", config={"currency": "usd", **config})
        announcement = {"filename": filename, "content_type": "text/csv", "bytes": max(1, len(content))}
        upload = (await self.client.post(f"/v1/sources/{source}/uploads", announcement)).json()
        row = await self.fetch_rows("SELECT key FROM uploads WHERE id = %s", upload["id"])
        path = Path(self.world.dependencies[Settings].objects_url.removeprefix("file://")).parent / "handed-in"
        path.write_bytes(content or b" ")
        await self.world.dependencies[ObjectStore].put_file(row[0][0], path)
        completed = await self.client.post(f"/v1/uploads/{upload['id']}/complete")
        assert completed.status == 200, completed.body
        await self.process_lane(source)
        return await self.get_newest_run(source)

    async def fetch_rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return rows of the database, read as superuser."""
        async with await psycopg.AsyncConnection.connect(await database()) as owner:
            return await (await owner.execute(statement.encode(), values)).fetchall()

    async def execute(self, statement: str, *values: Any) -> None:
        """Execute a statement directly in the database."""
        async with await psycopg.AsyncConnection.connect(await database(), autocommit=True) as owner:
            await owner.execute(statement.encode(), values)

    async def fetch_catalogue_rows(self) -> list[tuple[Any, ...]]:
        """Return the rows of catalogue and events, which refused input must not change."""
        parts = [f"SELECT t::text FROM {table} t WHERE org = %(org)s" for table in _CATALOGUE]
        async with await psycopg.AsyncConnection.connect(await database()) as owner:
            cursor = await owner.execute(" UNION ALL ".join(parts).encode() + b" ORDER BY 1", {"org": self.tenant.org})
            return await cursor.fetchall()

    async def list_product_data(self) -> list[Any]:
        """Return the data of all products, by title."""
        products = (await self.client.get("/v1/products?limit=100")).json()["data"]
        return sorted((product["data"] for product in products), key=lambda data: str(data.get("title")))


_CATALOGUE = ("products", "variants", "offers", "product_documents", "product_terms", "row_fingerprints", "events")


@asynccontextmanager
async def open_service(folder: Path, **env: str) -> AsyncIterator[InProcessService]:
    """Run the service for a new organisation; `env` are further settings."""
    http = GuardedClient(allowed_hosts=frozenset({FEEDS}), version="0", bounds=BOUNDS)

    def low(container: Dependencies) -> None:
        container[GuardedClient] = http
        connectors = load_connectors(ROOT / "plugins.toml", http, release_version="0.1.0", limits=LIMITS)
        container[Connectors] = connectors
        readers = create_feed_readers(container[Settings], container[Codec], LIMITS)
        container[FeedReaderFactory] = readers

    async with http, serve_application(folder, low, JOINERY_ALLOW_PRIVATE_HOSTS=FEEDS, **env) as world:
        tenant = Tenant((await world.create_organisation()).id, True)
        yield InProcessService(world, await world.create_client(tenant), tenant)
