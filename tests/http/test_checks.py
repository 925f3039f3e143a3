"""Stock checks over HTTP: responses during a check, and to a repetition, a dry run and another organisation."""

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
from tests.http.client import Answer
from tests.http.sources import URL_SOURCE, Shop, shop
from tests.support import builders
from tests.support.catalogues import add_products
from tests.support.readers import create_in_process_readers

pytestmark = pytest.mark.asyncio
FACTS = {"currency": "usd", "price": 10050, "availability": "in_stock", "quantity": 7}


@dataclass
class Stand:
    """A shop with one variant that can be asked for; `work` is what a worker does."""

    shop: Shop
    source: Any
    variant: str
    offer: str

    @property
    def path(self) -> str:
        """Where it is asked for."""
        return f"/v1/variants/{self.variant}/checks"

    async def post(self, **headers: str) -> Answer:
        """Ask."""
        return await self.shop.client.post(self.path, None, **headers)

    async def work(self) -> None:
        """Carry out what waits."""
        world, connectors = self.shop.world, self.shop.services.connectors
        handler = CheckExecution(
            world.uow, connectors, world.dependencies[Vault], create_in_process_readers(connectors), FileWorkspaces()
        )
        drain = LaneProcessor(world.dependencies[JobDispatcher], {CHECK_STOCK: handler})
        await drain.process_lane(f"{self.shop.tenant.org}/{build_source_lane(self.source['id'])}")

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        """A worker that does what comes."""

        async def run() -> None:
            while True:
                await self.work()
                await asyncio.sleep(0.02)

        task = asyncio.create_task(run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest_asyncio.fixture(name="stand")
async def running_stand() -> AsyncIterator[Stand]:
    """A running application with one offer."""
    async with shop() as made:
        yield await stand_of(made)


async def stand_of(made: Shop) -> Stand:
    """A source that can be asked, with one offer."""
    source = await made.create(**{**URL_SOURCE, "connector": "shop"})
    product = builders.product(source["id"], source["catalogue"], "A", data={"title": "Chair"})
    offer = builders.offer(builders.variant(product, "A-1"), location="default", data=dict(FACTS))
    await add_products(made.world.uow, made.tenant, product)
    made.services.connectors.stock = [b"SKU,Qty\nA-1,3\n"]
    return Stand(made, source, offer.variant, offer.id)


async def test_what_the_source_answers_in_time_is_answered(stand: Stand) -> None:
    async with stand.worker():
        answer = await stand.post(idempotency_key="once")
    found = answer.json()
    assert (answer.status, found["object"], found["status"], found["variant"]) == (
        200, "stock_check", "succeeded", stand.variant,
    )  # fmt: skip
    [result] = found["results"]
    assert result.pop("checked_at").endswith("Z")
    assert result == {
        "source": stand.source["id"], "offer": stand.offer, "availability": "low_stock", "quantity": 3,
    }  # fmt: skip
    again = await stand.post(idempotency_key="once")
    assert (again.status, again.headers["idempotent-replayed"], again.body) == (200, "true", answer.body)
    assert len(stand.shop.services.connectors.checked) == 1
    run = (await stand.shop.client.get(f"/v1/sources/{stand.source['id']}/runs")).json()["data"][0]
    assert (run["trigger"], run["stream"], run["status"]) == ("stock_check", "stock", "succeeded")
    assert [entry.change.action for entry in (await stand.shop.audited(found["id"]))] == ["create"]
    assert [entry.change.action for entry in (await stand.shop.audited(run["id"]))] == ["create"]


async def test_what_takes_longer_is_queued_with_what_is_known(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    service = stand.shop.world.app.asgi_app._pipeline.services
    monkeypatch.setitem(service, "checks", replace(service["checks"], pauses=(0.01, 0.01)))
    answer = await stand.post(idempotency_key="once")
    found = answer.json()
    assert (answer.status, found["status"]) == (200, "queued")
    assert found["results"] == [
        {"source": stand.source["id"], "offer": stand.offer, "availability": "in_stock", "quantity": 7},
    ]  # fmt: skip
    await stand.work()
    assert (await stand.post(idempotency_key="once")).body == answer.body, "a repetition answers what was answered"
    later = await stand.post()
    assert later.json()["results"][0]["quantity"] == 3


async def test_a_repetition_while_it_waits_answers_the_same_check(stand: Stand) -> None:
    first = asyncio.create_task(stand.post(idempotency_key="once"))
    while not stand.shop.jobs():
        await asyncio.sleep(0.01)
    meanwhile = await stand.post(idempotency_key="once")
    assert (meanwhile.json()["status"], meanwhile.headers["idempotent-replayed"]) == ("queued", "true")
    await stand.work()
    answer = await first
    assert (answer.json()["id"], answer.json()["status"]) == (meanwhile.json()["id"], "succeeded")
    assert (await stand.post(idempotency_key="once")).body == answer.body


async def test_no_transaction_is_open_while_it_waits(stand: Stand) -> None:
    first = asyncio.create_task(stand.post())
    while not stand.shop.jobs():
        await asyncio.sleep(0.01)
    async with asyncio.timeout(2):
        assert (await stand.shop.create(name="Another"))["name"] == "Another"
    assert not first.done()
    await stand.work()
    assert (await first).json()["status"] == "succeeded"


async def test_a_dry_run_sends_no_request(stand: Stand) -> None:
    for mode in ("true", "explain"):
        answer = await stand.post(service_dry_run=mode)
        assert answer.status == 200
    assert answer.json()["jobs"] == [{"kind": "runs.check", "subject": stand.source["id"]}]
    assert [one["object"] for one in answer.json()["changes"]] == ["run", "stock_check"]
    assert stand.shop.jobs() == [] and stand.shop.services.connectors.checked == []


async def test_others_variants_are_unknown(stand: Stand) -> None:
    for client in (await stand.shop.world.client("Oak"), await stand.shop.world.client(livemode=False)):
        answer = await client.post(stand.path, None)
        unknown = await client.post(f"/v1/variants/{new_id('var')}/checks", None)
        assert (answer.status, answer.code) == (404, "not_found")
        assert answer.json()["detail"] == unknown.json()["detail"]
    assert (await stand.shop.client.post("/v1/variants/var_1/checks", None)).status == 404


async def test_a_source_that_cannot_be_checked(stand: Stand) -> None:
    await stand.shop.change(stand.source["id"], connector="csv")
    found = (await stand.post()).json()
    assert (found["status"], found["results"][0]["failure"]["code"]) == ("failed", "not_checkable")
    assert stand.shop.jobs() == []


async def test_the_operation_waits_for_some_seconds_at_most() -> None:
    assert sum(PAUSES) <= 5 and checks.AREA.operations[0].rate == "expensive"
    assert timedelta(seconds=sum(PAUSES)) >= timedelta(seconds=3)
