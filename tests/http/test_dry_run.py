"""Service-Dry-Run: the response, the preview and the absence of effects (docs/conventions.md#dry-run-and-explain)."""

import pytest

from domain.kernel.errors import Conflict
from tests.http import example_area
from tests.http.application import ApplicationHarness
from tests.http.client import Client

pytestmark = pytest.mark.asyncio


def _read_state(application: ApplicationHarness) -> object:
    return {
        table: rows
        for table, rows in application.database.fetch_contents().items()
        if table not in ("request_logs", "key_uses", "organisations", "platform_instances")
    }


async def test_a_dry_run_returns_the_response_without_effects(application: ApplicationHarness, client: Client) -> None:
    before = _read_state(application)
    response = await client.post("/v1/things", {"name": "oak"}, service_dry_run="true", idempotency_key="k")
    assert response.status == 201
    assert response.headers["service-dry-run"] == "true"
    assert response.json()["name"] == "oak"
    assert _read_state(application) == before
    real = await client.post("/v1/things", {"name": "elm"}, idempotency_key="k")
    assert real.status == 201
    assert "idempotent-replayed" not in real.headers, "a dry run uses no key up"


async def test_explain_returns_a_preview_without_effects(application: ApplicationHarness, client: Client) -> None:
    before = _read_state(application)
    response = await client.post("/v1/things", {"name": "oak"}, service_dry_run="explain")
    assert response.status == 200
    assert response.headers["content-type"] == "application/vnd.furniops.preview+json"
    assert response.headers["service-dry-run"] == "explain"
    preview = response.json()
    change = preview["changes"][0]
    assert preview == {
        "object": "preview",
        "operation": "things.create",
        "allowed": True,
        "changes": [
            {
                "object": "thing",
                "id": change["id"],
                "action": "create",
                "fields": [{"path": "name", "old": None, "new": "oak"}],
            }
        ],
        "events": [],
        "jobs": [{"kind": "things.check", "subject": change["id"]}],
        "warnings": [],
    }
    assert _read_state(application) == before


@pytest.mark.parametrize("kind", ["true", "explain"])
async def test_errors_are_the_same_in_a_dry_run(application: ApplicationHarness, client: Client, kind: str) -> None:
    example_area.BEHAVIOUR["then"] = Conflict("Busy.")
    assert (await client.post("/v1/things", {"name": "oak"}, service_dry_run=kind)).status == 409
    example_area.BEHAVIOUR.clear()
    assert (await client.post("/v1/things", {}, service_dry_run=kind)).status == 400
    assert (await client.send_json("POST", "/v1/things", {"name": "a"}, service_dry_run=kind)).faults == {
        ("header.Idempotency-Key", "required")
    }


@pytest.mark.parametrize("kind", ["true", "explain"])
async def test_if_match_applies_in_a_dry_run(application: ApplicationHarness, client: Client, kind: str) -> None:
    thing = example_area.add_thing(application.orgs["Fjord"].id)
    path = f"/v1/things/{thing.id}"
    assert (await client.send_json("PATCH", path, {"name": "elm"}, service_dry_run=kind)).status == 428
    assert (
        await client.send_json("PATCH", path, {"name": "elm"}, service_dry_run=kind, if_match='"7-x"')
    ).status == 412
    assert (
        await client.send_json("PATCH", path, {"name": "elm"}, service_dry_run=kind, if_match='"1-x"')
    ).status == 200
    assert (thing.name, thing.version) == ("oak", 1)


async def test_unknown_values_are_refused(client: Client) -> None:
    for word in ("false", "True", "", "1"):
        response = await client.post("/v1/things", {"name": "oak"}, service_dry_run=word)
        assert response.faults == {("header.Service-Dry-Run", "invalid_value")}


async def test_reads_ignore_the_header(client: Client) -> None:
    response = await client.get("/v1/things", service_dry_run="true")
    assert response.status == 200
    assert "service-dry-run" not in response.headers


async def test_a_dry_run_deletes_nothing(application: ApplicationHarness, client: Client) -> None:
    thing = example_area.add_thing(application.orgs["Fjord"].id)
    response = await client.send("DELETE", f"/v1/things/{thing.id}", headers={"service-dry-run": "true"})
    assert (response.status, response.headers["service-dry-run"]) == (204, "true")
    assert thing.id in example_area.THINGS
