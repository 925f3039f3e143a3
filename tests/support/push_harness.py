"""Push source on any backend with a worker, from records to the stored catalogue."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from adapters.files.workspaces import FileWorkspaces
from domain.catalogue.ports import CatalogueStore
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgStore
from domain.runs.model import Run
from domain.runs.ports import RunStore
from domain.runs.run_queue import EXECUTE_RUN, build_source_lane
from domain.runs.usecases.execution import RunExecution
from domain.runs.usecases.service import PushRequest, RunService
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from tests.support import builders
from tests.support.backend import Backend
from tests.support.connectors import FakeConnectors
from tests.support.memory.objects import MemoryObjects
from tests.support.readers import create_in_process_readers

LEASE = timedelta(seconds=1)
"""Short, so that a crashed attempt is soon repeated."""


@dataclass
class PushHarness:
    """One push source of one tenant."""

    backend: Backend
    tenant: Tenant
    source: Source
    objects: MemoryObjects

    def create_handler(self) -> RunExecution:
        """Return the handler of runs, as created by a worker."""
        connectors = FakeConnectors()
        return RunExecution(
            self.backend.uow,
            connectors,
            self.objects,
            None,
            create_in_process_readers(connectors),
            FileWorkspaces(),
            lease=LEASE,  # type: ignore[arg-type]
        )

    async def queue_push(self, records: Sequence[Any], **options: Any) -> Run:
        """Queue a push, like one call of the API."""
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            push = PushRequest(json.dumps(records).encode(), len(records), **options)
            return await RunService(FakeConnectors()).push(tx, self.source.id, push)

    async def process_jobs(self) -> None:
        """Process the waiting jobs."""
        await LaneProcessor(self.backend.dispatch, {EXECUTE_RUN: self.create_handler()}, lease=LEASE).process_lane(
            build_source_lane(self.source.id)
        )

    async def push(self, records: Sequence[Any], **options: Any) -> Run:
        """Push records, process them, and return the finished run."""
        run = await self.queue_push(records, **options)
        await self.process_jobs()
        return await self.get_run(run.id)

    async def get_run(self, id: str) -> Run:
        """Return the current run."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            run = await tx[RunStore].get(id)
        assert run is not None
        return run

    async def get_products(self, *keys: str) -> Mapping[str, Any]:
        """Return the stored products as `{product: {data, gone, variants: {variant: {data, offers: {location: data}}}}}`."""
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            products = await tx[CatalogueStore].load_products(self.source.id, keys)
        return {
            key: {
                "data": dict(product.data),
                "gone": product.status == "discontinued",
                "variants": {
                    variant.key: {
                        "data": dict(variant.data),
                        "offers": {
                            offer.location: {**offer.data, **({"withdrawn": True} if offer.withdrawn_at else {})}
                            for offer in variant.offers
                        },
                    }
                    for variant in product.variants
                },
            }
            for key, product in products.items()
        }


async def create_push_harness(backend: Backend, tenant: Tenant) -> PushHarness:
    """Create a source and return its harness."""
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        org = await tx[OrgStore].get_organisation()
        source = builders.source(
            catalogue=org.get_catalogue_id(tenant.livemode), kind="push", connector="push", config={"currency": "usd"}
        )
        await tx[SourceStore].add(source)
    return PushHarness(backend, tenant, source, MemoryObjects())
