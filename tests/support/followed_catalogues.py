"""Sources that follow catalogues on the network, from a vendor's published products to the copies of a reader."""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from adapters.api_json.codec import JsonCodec
from adapters.files.workspaces import FileWorkspaces
from domain.catalogue.model import ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.jobs.model import build_lane_name
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgStore
from domain.runs.model import Run
from domain.runs.ports import RunStore
from domain.runs.run_queue import EXECUTE_RUN, build_source_lane
from domain.runs.usecases.execution import RunExecution
from domain.runs.usecases.scheduling import RunScheduler
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.sources.usecases.network_connector import CombinedConnectors
from tests.support import builders
from tests.support.backend import Backend
from tests.support.connectors import FakeConnectors
from tests.support.memory.clock import SettableClock, SystemClock
from tests.support.memory.objects import MemoryObjects
from tests.support.push_harness import LEASE
from tests.support.readers import create_in_process_readers


@dataclass
class FollowerHarness:
    """Source of a tenant that follows another organisation's catalogue."""

    backend: Backend
    tenant: Tenant
    source: Source
    objects: MemoryObjects

    @property
    def connectors(self) -> CombinedConnectors:
        """The connectors of a worker."""
        return CombinedConnectors(FakeConnectors(), self.backend.uow, self.backend.network, JsonCodec())

    def create_scheduler(self) -> RunScheduler:
        """Return the part of the scheduler that queues runs, at a time when no run has ended recently."""
        clock = SettableClock(SystemClock().now() + timedelta(minutes=1))
        return RunScheduler(self.backend.uow, self.backend.schedule, clock, self.backend.network)

    async def process_jobs(self) -> None:
        """Execute the queued runs of the source."""
        readers = create_in_process_readers(self.connectors)
        handler = RunExecution(
            self.backend.uow, self.connectors, self.objects, None, readers, FileWorkspaces(), lease=LEASE  # type: ignore[arg-type]
        )  # fmt: skip
        lane = build_lane_name(self.tenant.org, build_source_lane(self.source.id))
        await LaneProcessor(self.backend.dispatch, {EXECUTE_RUN: handler}, lease=LEASE).process_lane(lane)

    async def follow(self, *publishers: Tenant) -> Run:
        """Relay the events of the publishers, queue due runs like the scheduler, and execute them; return the newest run."""
        await self.backend.relay(*publishers)
        await self.create_scheduler().queue_runs_of_followers()
        await self.process_jobs()
        return (await self.list_runs())[0]

    async def list_runs(self) -> list[Run]:
        """Return the source's runs, newest first."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            page = await tx[RunStore].page(PageRequest(100))
        return [run for run in page.items if run.source == self.source.id]

    async def read_copies(self) -> dict[str, dict[str, Any]]:
        """Return the documents of the copied products by the ID of the original."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            page = await tx[CatalogueStore].list_products(ProductFilter(source=[self.source.id]), PageRequest(100))
        documents = [json.loads(document.body) for document in page.items]
        return {document["external_id"]: document for document in documents}


async def create_follower(backend: Backend, tenant: Tenant, catalogue: str, **changes: Any) -> FollowerHarness:
    """Create a source of the tenant that follows the catalogue."""
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        org = await tx[OrgStore].get_organisation()
        fields = {"kind": "api", "connector": "network", "config": {"catalogue": catalogue}, **changes}
        source = builders.source(catalogue=org.get_catalogue_id(tenant.livemode), **fields)
        await tx[SourceStore].add(source)
    return FollowerHarness(backend, tenant, source, MemoryObjects())
