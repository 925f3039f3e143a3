"""The order of checks: of two faults in one request the earlier one answers (decisions.md §1)."""

import pytest

from domain.kernel.ids import is_id
from tests.http import toys
from tests.http.client import Client
from tests.http.fakes import World

pytestmark = pytest.mark.asyncio
UNKNOWN = "src_0000000000000000000000"


async def test_read(world: World, client: Client) -> None:
    thing = toys.keep(world.orgs["Fjord"].id)
    answer = await client.get(f"/v1/things/{thing.id}")
    assert answer.status == 200
    assert answer.json() == toys.to_wire(thing)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["vary"] == "Authorization, Service-Version, Service-Mode"
    assert answer.headers["cache-control"] == "private, no-cache"
    assert answer.headers["service-version"] == "2026-10-04"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert is_id("req", answer.headers["request-id"])


async def test_create(client: Client) -> None:
    answer = await client.post("/v1/things", {"name": "oak"})
    assert answer.status == 201
    assert answer.headers["location"].endswith(answer.json()["id"])
    assert answer.headers["cache-control"] == "no-store"
