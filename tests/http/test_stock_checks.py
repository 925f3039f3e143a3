"""Stock checks over HTTP: responses during a check, to a repetition, a dry run and another organisation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from adapters.files.workspaces import FileWorkspaces
from domain.checks.model import PAUSES
from domain.checks.usecases.execution import CheckExecution
from domain.jobs.ports import JobDispatcher
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.ids import new_id
from domain.runs.run_queue import CHECK_STOCK, build_source_lane
from domain.secrets.ports import Vault
from entrypoints.areas import checks
from tests.http.client import Response
from tests.http.sources import URL_SOURCE, SourceHarness, open_source_harness
from tests.support import builders
from tests.support.catalogues import add_products
from tests.support.readers import create_in_process_readers

pytestmark = pytest.mark.asyncio
FACTS = {"currency": "usd", "price": 10050, "availability": "in_stock", "quantity": 7}


@dataclass
class StockCheckHarness:
    """Source with one variant whose stock can be checked."""

    sources: SourceHarness
    source: Any
    variant: str
    offer: str

    @property
    def path(self) -> str:
        """Path of the stock checks of the variant."""
        return f"/v1/variants/{self.variant}/checks"

    async def request_check(self, **headers: str) -> Response:
        """Request a stock check."""
        return await self.sources.client.post(self.path, None, **headers)

    async def process_jobs(self) -> None:
        """Process the queued jobs."""
        application, connectors = self.sources.application, self.sources.services.connectors
        handler = CheckExecution(
            application.uow,
            connectors,
            application.dependencies[Vault],
            create_in_process_readers(connectors),
            FileWorkspaces(),
        )
        drain = LaneProcessor(application.dependencies[JobDispatcher], {CHECK_STOCK: handler})
        await drain.process_lane(f"{self.sources.tenant.org}/{build_source_lane(self.source['id'])}")

    @asynccontextmanager
    async def run_worker(self) -> AsyncIterator[None]:
        """Process queued jobs in the background until the context ends."""

        async def run() -> None:
            while True:
                await self.process_jobs()
                await asyncio.sleep(0.02)

        task = asyncio.create_task(run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest_asyncio.fixture(name="harness")
async def open_harness() -> AsyncIterator[StockCheckHarness]:
    """Run the application with one offer."""
    async with open_source_harness() as harness:
        yield await create_harness(harness)


async def create_harness(made: SourceHarness) -> StockCheckHarness:
    """Create a source that supports stock checks, with one offer."""
    source = await made.create_source(**{**URL_SOURCE, "connector": "shop"})
    product = builders.product(source["id"], source["catalogue"], "A", data={"title": "Chair"})
    offer = builders.offer(builders.variant(product, "A-1"), location="default", data=dict(FACTS))
    await add_products(made.application.uow, made.tenant, product)
    made.services.connectors.stock = [b"SKU,Qty\nA-1,3\n"]
    return StockCheckHarness(made, source, offer.variant, offer.id)


async def test_a_timely_result_is_in_the_response(harness: StockCheckHarness) -> None:
    async with harness.run_worker():
        response = await harness.request_check(idempotency_key="once")
    found = response.json()
    assert (response.status, found["object"], found["status"], found["variant"]) == (
        200, "stock_check", "succeeded", harness.variant,
    )  # fmt: skip
    [result] = found["results"]
    assert result.pop("checked_at").endswith("Z")
    assert result == {
        "source": harness.source["id"], "offer": harness.offer, "availability": "low_stock", "quantity": 3,
    }  # fmt: skip
    again = await harness.request_check(idempotency_key="once")
    assert (again.status, again.headers["idempotent-replayed"], again.body) == (200, "true", response.body)
    assert len(harness.sources.services.connectors.checked) == 1
    run = (await harness.sources.client.get(f"/v1/sources/{harness.source['id']}/runs")).json()["data"][0]
    assert (run["trigger"], run["stream"], run["status"]) == ("stock_check", "stock", "succeeded")
    assert [entry.change.action for entry in (await harness.sources.list_audit_entries(found["id"]))] == ["create"]
    assert [entry.change.action for entry in (await harness.sources.list_audit_entries(run["id"]))] == ["create"]


async def test_a_slow_check_is_queued_with_the_known_stock(
    harness: StockCheckHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = harness.sources.application.app.asgi_app._pipeline.services
    monkeypatch.setitem(service, "checks", replace(service["checks"], pauses=(0.01, 0.01)))
    response = await harness.request_check(idempotency_key="once")
    found = response.json()
    assert (response.status, found["status"]) == (200, "queued")
    assert found["results"] == [
        {"source": harness.source["id"], "offer": harness.offer, "availability": "in_stock", "quantity": 7},
    ]  # fmt: skip
    await harness.process_jobs()
    assert (await harness.request_check(idempotency_key="once")).body == response.body, (
        "a repetition answers what was answered"
    )
    later = await harness.request_check()
    assert later.json()["results"][0]["quantity"] == 3


async def test_a_concurrent_repetition_returns_the_same_check(harness: StockCheckHarness) -> None:
    first = asyncio.create_task(harness.request_check(idempotency_key="once"))
    while not harness.sources.list_jobs():
        await asyncio.sleep(0.01)
    meanwhile = await harness.request_check(idempotency_key="once")
    assert (meanwhile.json()["status"], meanwhile.headers["idempotent-replayed"]) == ("queued", "true")
    await harness.process_jobs()
    response = await first
    assert (response.json()["id"], response.json()["status"]) == (meanwhile.json()["id"], "succeeded")
    assert (await harness.request_check(idempotency_key="once")).body == response.body


async def test_no_transaction_is_open_during_a_check(harness: StockCheckHarness) -> None:
    first = asyncio.create_task(harness.request_check())
    while not harness.sources.list_jobs():
        await asyncio.sleep(0.01)
    async with asyncio.timeout(2):
        assert (await harness.sources.create_source(name="Another"))["name"] == "Another"
    assert not first.done()
    await harness.process_jobs()
    assert (await first).json()["status"] == "succeeded"


async def test_a_dry_run_sends_no_request(harness: StockCheckHarness) -> None:
    for mode in ("true", "explain"):
        response = await harness.request_check(service_dry_run=mode)
        assert response.status == 200
    assert response.json()["jobs"] == [{"kind": "runs.check", "subject": harness.source["id"]}]
    assert [one["object"] for one in response.json()["changes"]] == ["run", "stock_check"]
    assert harness.sources.list_jobs() == [] and harness.sources.services.connectors.checked == []


async def test_variants_of_other_tenants_are_unknown(harness: StockCheckHarness) -> None:
    for client in (
        await harness.sources.application.create_client("Oak"),
        await harness.sources.application.create_client(livemode=False),
    ):
        response = await client.post(harness.path, None)
        unknown = await client.post(f"/v1/variants/{new_id('var')}/checks", None)
        assert (response.status, response.code) == (404, "not_found")
        assert response.json()["detail"] == unknown.json()["detail"]
    assert (await harness.sources.client.post("/v1/variants/var_1/checks", None)).status == 404


async def test_a_source_that_cannot_be_checked(harness: StockCheckHarness) -> None:
    await harness.sources.change_source(harness.source["id"], connector="csv")
    found = (await harness.request_check()).json()
    assert (found["status"], found["results"][0]["failure"]["code"]) == ("failed", "not_checkable")
    assert harness.sources.list_jobs() == []


async def test_the_operation_waits_for_a_few_seconds_at_most() -> None:
    assert sum(PAUSES) <= 5 and checks.AREA.operations[0].rate == "expensive"
    assert timedelta(seconds=sum(PAUSES)) >= timedelta(seconds=3)
