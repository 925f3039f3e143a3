"""Rate budgets and their headers (docs/conventions.md#rate-limits)."""

from datetime import timedelta

import pytest

from entrypoints.http.steps.rate_limit import TIERS, charge_of
from tests.http.client import Client
from tests.http.fakes import World

pytestmark = pytest.mark.asyncio


async def test_headers(client: Client) -> None:
    answer = await client.get("/v1/things")
    assert answer.headers["ratelimit-policy"] == '"standard.read";q=200;w=2'
    assert answer.headers["ratelimit"] == '"standard.read";r=199;t=1'
    assert "retry-after" not in answer.headers


async def test_refusal(world: World, client: Client) -> None:
    for _ in range(5):
        assert (await client.post("/v1/heavy")).status == 200
    refused = await client.post("/v1/heavy")
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["ratelimit-policy"] == '"standard.expensive";q=5;w=3'
    assert refused.headers["ratelimit"] == '"standard.expensive";r=0;t=3'
    assert refused.json()["violated-policies"] == ["standard.expensive"]
    assert (await client.get("/v1/things")).status == 200, "other classes have their own budget"
    assert (await (await world.client()).post("/v1/heavy")).status == 429, "all keys share it"
    assert (await (await world.client(livemode=False)).post("/v1/heavy")).status == 200, "test is counted apart"
    assert (await (await world.client("Oak")).post("/v1/heavy")).status == 200
    world.clock.advance(timedelta(seconds=1))
    assert (await client.post("/v1/heavy")).status == 200


async def test_retry_after_of_slow_budgets(world: World) -> None:
    client = await world.client("Elm")
    for _ in range(10):
        assert (await client.post("/v1/bulk")).status == 200
    assert (await client.post("/v1/bulk")).headers["retry-after"] == "10"


async def test_refusals_carry_the_headers_too(client: Client) -> None:
    for answer in (await client.get("/v1/nothing"), await client.get("/v1/things?x=1"), await client.post("/v1/owner")):
        assert answer.headers["ratelimit"]
        assert answer.headers["ratelimit-policy"]


async def test_tiers_follow_the_plan(world: World) -> None:
    answer = await (await world.client("Elm")).get("/v1/things")
    assert answer.headers["ratelimit-policy"] == '"high.read";q=1000;w=2'


@pytest.mark.parametrize(
    ("tier", "windows"),
    [
        ("standard", {"read": 2, "write": 2, "expensive": 3, "export": 120, "stream": 5}),
        ("high", {"read": 2, "write": 2, "expensive": 2, "export": 100, "stream": 4}),
        ("max", {"read": 2, "write": 2, "expensive": 2, "export": 120, "stream": 3}),
    ],
)
async def test_windows(tier: str, windows: dict[str, int]) -> None:
    told = {rate: int(charge_of("o", True, tier, rate).policy.rpartition(b"=")[2]) for rate in TIERS[tier]}
    assert told == windows
