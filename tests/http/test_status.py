"""GET /v1/status/history and the public page /status, also without a database."""

from datetime import timedelta
from typing import Any

import pytest

from domain.platform.incidents import OpenedBy, create_incident
from domain.platform.model import ComponentState
from domain.platform.usecases import PlatformService
from entrypoints.api import pages as status_page
from tests.http.application import ApplicationHarness, run_application
from tests.http.client import Client

pytestmark = pytest.mark.asyncio


async def _return_state(state: ComponentState) -> ComponentState:
    return state


async def read_status_page(application: ApplicationHarness) -> str:
    response = await Client(application.app, None).send("GET", "/status")
    assert response.status == 200 and response.headers["cache-control"] == "public, max-age=10"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    return str(response.body.decode())


@pytest.fixture(autouse=True)
def _disable_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_page, "STATUS_CACHE_SECONDS", 0.0)


async def test_incidents_are_listed_and_shown() -> None:
    async with run_application() as application:
        client = await application.create_client()
        assert (await client.get("/v1/status/history")).json()["data"] == []
        assert "No checks yet" in await read_status_page(application)
        service = PlatformService(
            application.checks,
            application.incidents,
            application.clock,
            {"feed": lambda: _return_state(ComponentState.DOWN)},
        )
        for _ in range(4):
            application.clock.advance(timedelta(minutes=1))
            await service.check_components()
        [incident] = (await client.get("/v1/status/history")).json()["data"]
        assert (incident["component"], incident["state"], incident["opened_by"]) == ("feed", "down", "measurement")
        assert "closed_at" not in incident
        status = (await client.get("/v1/status")).json()
        assert [one["id"] for one in status["incidents"]] == [incident["id"]]
        announced = create_incident(
            "feed", ComponentState.DEGRADED, "<script>alert(1)</script>", "We look.", OpenedBy.OPERATOR, application.clock.now(), application.clock.now()
        )  # fmt: skip
        await application.incidents.save(announced)
        shown = await read_status_page(application)
        assert "Service disruption" in shown and "feed is down" in shown and "open for 3 min" in shown
        assert "&lt;script&gt;" in shown and "<script>" not in shown
        first = (await client.get("/v1/status/history?limit=1")).json()
        assert first["has_more"] and [one["id"] for one in first["data"]] == [announced.id]
        rest = (await client.get(f"/v1/status/history?limit=1&starting_after={first['next_cursor']}")).json()
        assert [one["id"] for one in rest["data"]] == [incident["id"]]


async def test_failed_checks_degrade_the_status_without_changing_incidents() -> None:
    states: list[ComponentState | None] = []

    async def probe() -> ComponentState | None:
        return states.pop(0)

    async with run_application() as application:
        service = PlatformService(application.checks, application.incidents, application.clock, {"api": probe})

        async def ticked(*found: ComponentState | None) -> tuple[ComponentState, int]:
            states.extend(found)
            while states:
                application.clock.advance(timedelta(minutes=1))
                await service.check_components()
            return (await service.get_status()).state, len(await application.incidents.list_open())

        assert await ticked(None, None, None, None) == (ComponentState.DEGRADED, 0)
        assert await ticked(ComponentState.DOWN, ComponentState.DOWN, None, ComponentState.DOWN) == ("down", 0)
        assert await ticked(ComponentState.DOWN, ComponentState.DOWN) == (ComponentState.DOWN, 1)
        assert await ticked(None, None, None) == (ComponentState.DEGRADED, 1)
        assert await ticked(*[ComponentState.OPERATIONAL] * 3) == (ComponentState.OPERATIONAL, 0)


async def test_the_page_requires_no_database() -> None:
    async def never() -> Any:
        raise ConnectionError

    async def broken() -> bool:
        return False

    async with run_application(readiness={"database": broken}) as application:
        shown = await read_status_page(application)
        assert "Currently unavailable: <strong>database</strong>" in shown
        application.checks.list_latest = never
        shown = await read_status_page(application)
        assert "Service disruption" in shown and "The state below is as of" in shown
    async with run_application() as application:
        application.checks.list_latest = never
        assert "<strong>database</strong>" in await read_status_page(application)
