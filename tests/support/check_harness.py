"""Source with stock checks on any backend, with a worker that executes them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from adapters.files.workspaces import FileWorkspaces
from domain.catalogue.model import Stream
from domain.catalogue.ports import CatalogueStore
from domain.changes.model import ALL, BEGINNING, OPEN_END, LogView
from domain.checks.model import StockCheck
from domain.checks.usecases.execution import CheckExecution
from domain.checks.usecases.service import CheckService
from domain.events.model import LogPosition
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgStore
from domain.runs.model import Run, StartRun
from domain.runs.ports import RunStore
from domain.runs.run_queue import CHECK_STOCK, EXECUTE_RUN, build_source_lane
from domain.runs.usecases.execution import RunExecution
from domain.runs.usecases.service import RunService
from domain.secrets.ports import Vault
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from tests.support import builders
from tests.support.backend import Backend
from tests.support.connectors import FakeConnectors
from tests.support.memory.objects import MemoryObjects
from tests.support.readers import create_in_process_readers

LEASE = timedelta(seconds=1)


class NoVault:
    """Vault for sources without credentials; it cannot decrypt anything."""

    def decrypt(self, sealed: bytes, *context: str) -> Mapping[str, Any]:
        """Raise ValueError."""
        raise ValueError


@dataclass
class CheckHarness:
    """One source of one tenant. `service` is used like by the API; `process_jobs` acts as a worker."""

    backend: Backend
    tenant: Tenant
    source: Source
    connectors: FakeConnectors = field(default_factory=FakeConnectors)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
    vault: Vault = field(default_factory=NoVault)  # type: ignore[assignment]

    @property
    def service(self) -> CheckService:
        """The use cases; waiting for a result runs the worker."""

        async def worked(_: float) -> None:
            await self.process_jobs()

        return CheckService(self.backend.uow, self.connectors, (0.0, 0.0), worked)

    def create_handler(self) -> CheckExecution:
        """Return the handler of checks, as created by a worker."""
        readers = create_in_process_readers(self.connectors)
        return CheckExecution(self.backend.uow, self.connectors, self.vault, readers, FileWorkspaces(), lease=LEASE)

    async def process_jobs(self) -> None:
        """Process the waiting jobs."""
        readers = create_in_process_readers(self.connectors)
        runs = RunExecution(
            self.backend.uow, self.connectors, self.objects, self.vault, readers, FileWorkspaces(), lease=LEASE
        )
        handlers = {EXECUTE_RUN: runs, CHECK_STOCK: self.create_handler()}
        await LaneProcessor(self.backend.dispatch, handlers, lease=LEASE).process_lane(
            f"{self.tenant.org}/{build_source_lane(self.source.id)}"
        )

    async def pull(self, feed: bytes, stream: Stream = Stream.CATALOGUE) -> Run:
        """Run an import of the feed, and return the finished run."""
        self.connectors.feed = [feed]
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            run = await RunService(self.connectors).queue_pull(tx, self.source.id, StartRun(stream))
        await self.process_jobs()
        ended = await self.get_run(run.id)
        await self.backend.pass_time(timedelta(milliseconds=5))
        return ended

    async def start_check(self, variant: str) -> StockCheck:
        """Start a stock check."""
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            return await self.service.start_check(tx, variant)

    async def run_check(self, variant: str, stock: bytes | Exception) -> StockCheck:
        """Start a stock check, run the worker, and return the finished check."""
        self.connectors.stock = stock if isinstance(stock, Exception) else [stock]
        settled = await self.service.wait_for_results(self.tenant, await self.start_check(variant))
        await self.backend.pass_time(timedelta(milliseconds=5))
        return settled

    async def get_run(self, id: str) -> Run:
        """Return the current run."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            run = await tx[RunStore].get(id)
        assert run is not None
        return run

    async def get_variant_ids(self, *products: str) -> Mapping[str, str]:
        """Return the IDs of the products' variants by key."""
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            found = await tx[CatalogueStore].load_products(self.source.id, products)
        return {variant.key: variant.id for product in found.values() for variant in product.variants}

    async def get_offers(self, variant: str) -> Mapping[str, Any]:
        """Return the stored data of a variant's offers, by location."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            item = await tx[CatalogueStore].get_source_item(variant)
        return {offer.location: dict(offer.data) for offer in item.offers} if item else {}

    async def list_events(self, kind: str) -> Sequence[Any]:
        """Return the events of the type, oldest first."""
        page = await self.backend.events.read_page(
            LogView.own(self.tenant), BEGINNING, LogPosition(position=OPEN_END), 10_000, ALL
        )
        return [json.loads(event.body) for event in page.events if event.type == kind]


async def create_check_harness(backend: Backend, tenant: Tenant, **fields: Any) -> CheckHarness:
    """Create a source and return its harness."""
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        org = await tx[OrgStore].get_organisation()
        given = {"connector": "shop", "config": {"currency": "usd"}, **fields}
        source = builders.source(catalogue=org.get_catalogue_id(tenant.livemode), **given)
        await tx[SourceStore].add(source)
    return CheckHarness(backend, tenant, source)
