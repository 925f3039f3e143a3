"""Expensive operations: one request of an organisation is computed at a time, without a database connection."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.kernel.tenancy import Tenant
from ports.parsing import ParserFailed, ParserTerminated
from ports.unit_of_work import Tx
from tests.http.sources import FILE_SOURCE, open_source_harness

pytestmark = pytest.mark.asyncio


class _BlockingParsers:
    """Parser that blocks calls until `released` is set; `running` and `max_running` count concurrent calls."""

    def __init__(self) -> None:
        self.released, self.running, self.max_running = asyncio.Event(), 0, 0

    async def __call__(self, function: Callable[..., Any], /, *args: Any) -> Any:
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        await self.released.wait()
        self.running -= 1
        return function(*args)


async def test_categories_are_listed_one_at_a_time_without_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    parsers, reading, open_ = _BlockingParsers(), PostgresUnitOfWork.begin_reading, 0

    @asynccontextmanager
    async def counted(self: PostgresUnitOfWork, tenant: Tenant) -> AsyncIterator[Tx]:
        nonlocal open_
        open_ += 1
        async with reading(self, tenant) as tx:
            yield tx
        open_ -= 1

    async with open_source_harness(parsers=parsers) as harness:
        path = f"/v1/sources/{(await harness.create_source(**FILE_SOURCE))['id']}"
        monkeypatch.setattr(PostgresUnitOfWork, "begin_reading", counted)
        listings = [asyncio.create_task(harness.client.get(f"{path}/categories")) for _ in range(4)]
        async with asyncio.timeout(10):
            while not parsers.running:
                await asyncio.sleep(0)
        assert (await harness.client.get(path)).status == 200  # other requests do not wait
        assert open_ == 0
        parsers.released.set()
        assert [one.status for one in await asyncio.gather(*listings)] == [200] * 4
    assert parsers.max_running == 1


@pytest.mark.parametrize("error", [ParserTerminated("it takes too long"), ParserFailed("the fork server is gone")])
async def test_a_terminated_listing_can_be_repeated(error: Exception) -> None:
    async def ending(function: Callable[..., Any], /, *args: Any) -> Any:
        raise error

    async with open_source_harness(parsers=ending) as harness:
        source = await harness.create_source(**FILE_SOURCE)
        response = await harness.client.get(f"/v1/sources/{source['id']}/categories")
    assert (response.status, response.code, response.headers["retry-after"]) == (503, "unavailable", "5")
