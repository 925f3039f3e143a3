"""GET /v1/status/history and the public page /status: also when the database does not answer."""

from datetime import timedelta
from typing import Any

import pytest

from domain.platform.incidents import OpenedBy, create_incident
from domain.platform.model import ComponentState
from domain.platform.usecases import PlatformService
from entrypoints.api import pages as status_page
from tests.http.client import Client
from tests.http.fakes import World, running

pytestmark = pytest.mark.asyncio


async def _look(state: ComponentState) -> ComponentState:
    return state


async def page(world: World) -> str:
    answer = await Client(world.app, None).send("GET", "/status")
    assert answer.status == 200 and answer.headers["cache-control"] == "public, max-age=10"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    return str(answer.body.decode())


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_page, "STATUS_CACHE_SECONDS", 0.0)


async def test_incidents_are_listed_and_shown() -> None:
    async with running() as world:
        client = await world.client()
        assert (await client.get("/v1/status/history")).json()["data"] == []
        assert "No checks yet" in await page(world)
        service = PlatformService(
            world.checks, world.incidents, world.clock, {"feed": lambda: _look(ComponentState.DOWN)}
        )
        for _ in range(4):
            world.clock.advance(timedelta(minutes=1))
            await service.check_components()
        [incident] = (await client.get("/v1/status/history")).json()["data"]
        assert (incident["component"], incident["state"], incident["opened_by"]) == ("feed", "down", "measurement")
        assert "closed_at" not in incident
        status = (await client.get("/v1/status")).json()
        assert [one["id"] for one in status["incidents"]] == [incident["id"]]
        announced = create_incident(
            "feed", ComponentState.DEGRADED, "<script>alert(1)</script>", "We look.", OpenedBy.OPERATOR, world.clock.now(), world.clock.now()
        )  # fmt: skip
        await world.incidents.save(announced)
        shown = await page(world)
        assert "Service disruption" in shown and "feed is down" in shown and "open for 3 min" in shown
        assert "&lt;script&gt;" in shown and "<script>" not in shown
        first = (await client.get("/v1/status/history?limit=1")).json()
        assert first["has_more"] and [one["id"] for one in first["data"]] == [announced.id]
        rest = (await client.get(f"/v1/status/history?limit=1&starting_after={first['next_cursor']}")).json()
        assert [one["id"] for one in rest["data"]] == [incident["id"]]


async def test_looks_that_show_nothing_degrade_and_neither_open_nor_close_incidents() -> None:
    states: list[ComponentState | None] = []

    async def probe() -> ComponentState | None:
        return states.pop(0)

    async with running() as world:
        service = PlatformService(world.checks, world.incidents, world.clock, {"api": probe})

        async def ticked(*found: ComponentState | None) -> tuple[ComponentState, int]:
            states.extend(found)
            while states:
                world.clock.advance(timedelta(minutes=1))
                await service.check_components()
            return (await service.get_status()).state, len(await world.incidents.list_open())

        assert await ticked(None, None, None, None) == (ComponentState.DEGRADED, 0)
        assert await ticked(ComponentState.DOWN, ComponentState.DOWN, None, ComponentState.DOWN) == ("down", 0)
        assert await ticked(ComponentState.DOWN, ComponentState.DOWN) == (ComponentState.DOWN, 1)
        assert await ticked(None, None, None) == (ComponentState.DEGRADED, 1)
        assert await ticked(*[ComponentState.OPERATIONAL] * 3) == (ComponentState.OPERATIONAL, 0)


async def test_the_page_needs_no_database() -> None:
    async def never() -> Any:
        raise ConnectionError

    async def broken() -> bool:
        return False

    async with running(readiness={"database": broken}) as world:
        shown = await page(world)
        assert "Currently unavailable: <strong>database</strong>" in shown
        world.checks.list_latest = never
        shown = await page(world)
        assert "Service disruption" in shown and "The state below is as of" in shown
    async with running() as world:
        world.checks.list_latest = never
        assert "<strong>database</strong>" in await page(world)
