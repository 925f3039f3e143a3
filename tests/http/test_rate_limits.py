"""Rate limits and their headers (docs/conventions.md#rate-limits)."""

from datetime import timedelta

import pytest

from entrypoints.http.checks import TIERS, build_named_rate_limit
from tests.http.application import ApplicationHarness
from tests.http.client import Client

pytestmark = pytest.mark.asyncio


async def test_headers(client: Client) -> None:
    response = await client.get("/v1/things")
    assert response.headers["ratelimit-policy"] == '"standard.read";q=200;w=2'
    assert response.headers["ratelimit"] == '"standard.read";r=199;t=1'
    assert "retry-after" not in response.headers


async def test_refusal(application: ApplicationHarness, client: Client) -> None:
    for _ in range(5):
        assert (await client.post("/v1/heavy")).status == 200
    refused = await client.post("/v1/heavy")
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["ratelimit-policy"] == '"standard.expensive";q=5;w=3'
    assert refused.headers["ratelimit"] == '"standard.expensive";r=0;t=3'
    assert refused.json()["violated-policies"] == ["standard.expensive"]
    assert (await client.get("/v1/things")).status == 200, "other classes have their own budget"
    assert (await (await application.create_client()).post("/v1/heavy")).status == 429, "all keys share it"
    assert (await (await application.create_client(livemode=False)).post("/v1/heavy")).status == 200, (
        "test is counted apart"
    )
    assert (await (await application.create_client("Oak")).post("/v1/heavy")).status == 200
    application.clock.advance(timedelta(seconds=1))
    assert (await client.post("/v1/heavy")).status == 200


async def test_retry_after_of_slow_budgets(application: ApplicationHarness) -> None:
    client = await application.create_client("Elm")
    for _ in range(10):
        assert (await client.post("/v1/bulk")).status == 200
    assert (await client.post("/v1/bulk")).headers["retry-after"] == "10"


async def test_refusals_have_the_rate_limit_headers(client: Client) -> None:
    for response in (
        await client.get("/v1/nothing"),
        await client.get("/v1/things?x=1"),
        await client.post("/v1/owner"),
    ):
        assert response.headers["ratelimit"]
        assert response.headers["ratelimit-policy"]


async def test_tiers_follow_the_plan(application: ApplicationHarness) -> None:
    response = await (await application.create_client("Elm")).get("/v1/things")
    assert response.headers["ratelimit-policy"] == '"high.read";q=1000;w=2'


@pytest.mark.parametrize(
    ("tier", "windows"),
    [
        ("standard", {"read": 2, "write": 2, "expensive": 3, "export": 120, "stream": 5}),
        ("high", {"read": 2, "write": 2, "expensive": 2, "export": 100, "stream": 4}),
        ("max", {"read": 2, "write": 2, "expensive": 2, "export": 120, "stream": 3}),
    ],
)
async def test_windows(tier: str, windows: dict[str, int]) -> None:
    window_by_rate = {
        rate: int(build_named_rate_limit("o", True, tier, rate).policy.rpartition(b"=")[2]) for rate in TIERS[tier]
    }
    assert window_by_rate == windows


async def test_people_and_programs_have_separate_limits(application: ApplicationHarness) -> None:
    """Pages of a person do not consume the limits of keys and colleagues, and programs do not consume those of people."""
    busy, colleague, program = (
        await application.open_browser(),
        await application.open_browser(),
        await application.create_client(),
    )
    pages = [(await busy.get("/console/catalogue")).status for _ in range(1_000)]
    assert pages.count(200) > 50 and set(pages) == {200, 429}, "their own budget is spent"
    assert (await program.get("/v1/sources")).headers["ratelimit"] == '"standard.read";r=199;t=1'
    assert (await colleague.get("/console/catalogue")).status == 200
    for _ in range(200):
        spent = await program.get("/v1/sources")
    assert spent.status == 429 and (await colleague.get("/console/catalogue")).status == 200
    writes = [await program.send_json("POST", "/v1/sources", {}, idempotency_key=f"k{number}") for number in range(41)]
    assert writes[-1].status == 429
    form = await colleague.get("/console/sources/new/push")
    assert (await colleague.submit(form, "/console/sources/new/push", name="Ash")).status == 303


async def test_expensive_operations_share_a_limit() -> None:
    for tier, rates in TIERS.items():
        for rate in rates:
            own = build_named_rate_limit("o", True, tier, rate, "usr_1").bucket.key
            shared = rate in ("expensive", "export")
            assert (own == build_named_rate_limit("o", True, tier, rate).bucket.key) is shared, rate
