"""Nobody who holds a connection asks for another: with all of them taken, everybody would wait for themselves."""

import asyncio
from pathlib import Path

import pytest

from domain.kernel.tenancy import Tenant
from tests.tenancy.world import serving

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("path", ["/v1/changes?cursor=now", "/v1/changes", "/v1/changes/recent", "/v1/stream"])
async def test_many_readers_of_the_log_share_few_connections(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path, JOINERY_POOL_SIZE="2") as world:
        organisation = await world.organisation()
        client = await world.client(Tenant(organisation.id, True))
        async with asyncio.timeout(20):
            answers = await asyncio.gather(*(client.get(path) for _ in range(30)))
        assert {answer.status for answer in answers} == {200}
