"""Organisations, plans and status over HTTP; responses match their schemas."""

from datetime import timedelta
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.platform.model import ComponentState
from domain.platform.ports import ComponentCheck
from domain.platform.usecases import PlatformService
from tests.http.application import OPERATOR, ApplicationHarness
from tests.http.client import Client, Response
from tests.support.operation_table import load_operation_table

pytestmark = pytest.mark.asyncio


def _validate_response(response: Response, id_: str) -> Any:
    row = next(row for row in load_operation_table() if row.id == id_)
    assert response.status == row.status
    Draft202012Validator(dict(row.reply or {})).validate(response.json())
    return response.json()


async def test_organisation(application: ApplicationHarness, client: Client) -> None:
    org = application.orgs["Fjord"]
    own = _validate_response(await client.get("/v1/org"), "orgs.read")
    assert (own["id"], own["name"], own["plan"], own["livemode"]) == (org.id, "Fjord", "standard", True)
    assert own["catalogue"] == org.catalogues[0]
    assert own["api_version"] == "2026-10-04"
    sandbox = await (await application.create_client(livemode=False)).get("/v1/org")
    assert sandbox.json()["catalogue"] == org.catalogues[1]


async def test_my_organisations_for_a_key(application: ApplicationHarness, client: Client) -> None:
    mine = _validate_response(await client.get("/v1/me/orgs"), "orgs.list_mine")
    assert [org["name"] for org in mine["data"]] == ["Fjord"]
    assert mine["has_more"] is False


async def test_my_organisations_for_a_person(application: ApplicationHarness) -> None:
    user = new_id("usr")
    for name in ("Fjord", "Oak", "Elm"):
        org = application.orgs[name]
        tenant = (await application.create_key(org))[0].tenant
        async with application.uow.begin(tenant, OPERATOR) as tx:
            await tx[OrgStore].add_member(Member(user, org.id, f"{name}@example.org", "owner", application.clock.now()))
    key, secret = await application.create_key(application.orgs["Oak"])
    application.credentials.changed[key.id] = {"is_personal_token": True, "actor": Actor("user", user)}
    client = Client(application.app, secret)
    page = (await client.get("/v1/me/orgs?limit=2")).json()
    rest = (await client.get(f"/v1/me/orgs?starting_after={page['next_cursor']}")).json()
    names = [org["name"] for org in (*page["data"], *rest["data"])]
    assert names == sorted(("Fjord", "Oak", "Elm"), key=lambda name: application.orgs[name].id)
    back = (await client.get(f"/v1/me/orgs?limit=1&ending_before={page['next_cursor']}")).json()
    assert [org["name"] for org in back["data"]] == names[:1]


async def test_plans(client: Client) -> None:
    plans = _validate_response(await client.get("/v1/plans"), "orgs.list_plans")
    meters = {plan["code"]: plan["meters"] for plan in plans["data"]}
    assert meters.keys() >= {"free", "standard", "high", "max"}
    assert meters["standard"] == {"sources": {"included": 10, "per": 1, "amount": 500}}


async def test_status(application: ApplicationHarness, client: Client) -> None:
    nothing = _validate_response(await client.get("/v1/status"), "platform.status")
    assert (nothing["state"], nothing["components"]) == ("degraded", []), "nobody has looked yet"
    states = {"api": "operational", "ingestion": "operational", "feed": "operational"}

    def probe(name: str) -> Any:
        async def look() -> str:
            if states[name] == "raises":
                raise ConnectionError
            return states[name]

        return look

    service = PlatformService(
        application.checks, application.incidents, application.clock, {name: probe(name) for name in states}
    )
    for day, state in enumerate(("operational", "raises", "operational", "down")):
        states["feed"] = state
        application.clock.advance(timedelta(hours=12) if day else timedelta())
        await service.check_components()
    status = _validate_response(await client.get("/v1/status"), "platform.status")
    assert status["state"] == "down"
    feed = next(component for component in status["components"] if component["name"] == "feed")
    assert feed["state"] == "down"
    assert feed["days"] == [
        {"day": "2026-11-20", "uptime": 1.0},
        {"day": "2026-11-21", "uptime": 0.5},
        {"day": "2026-11-22", "uptime": 0.0},
    ]
    states["feed"] = "degraded"
    await service.check_components()
    assert (await client.get("/v1/status")).json()["state"] == "degraded"
    states["feed"] = "operational"
    application.clock.advance(timedelta(minutes=1))
    await service.check_components()
    assert (await client.get("/v1/status")).json()["state"] == "operational"
    application.clock.advance(timedelta(minutes=6))
    assert (await client.get("/v1/status")).json()["state"] == "degraded", "stale checks claim nothing"
    application.clock.advance(timedelta(days=200))
    assert await service.purge_old_checks() == len(states) * len(feed["days"])
    await application.checks.record([ComponentCheck("api", application.clock.now(), ComponentState.OPERATIONAL)])
    assert (await (await application.create_client()).get("/v1/status")).json()["state"] == "operational"
