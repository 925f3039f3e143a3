"""Service-Dry-Run: the would-be answer, the explanation, and that nothing at all is done (docs/conventions.md#dry-run-and-explain)."""

import pytest

from domain.kernel.errors import Conflict
from tests.http import toys
from tests.http.client import Client
from tests.http.fakes import World

pytestmark = pytest.mark.asyncio


def _stored(world: World) -> object:
    return {
        table: rows
        for table, rows in world.database.fetch_contents().items()
        if table not in ("request_logs", "key_uses", "organisations", "platform_instances")
    }


async def test_true(world: World, client: Client) -> None:
    before = _stored(world)
    answer = await client.post("/v1/things", {"name": "oak"}, service_dry_run="true", idempotency_key="k")
    assert answer.status == 201
    assert answer.headers["service-dry-run"] == "true"
    assert answer.json()["name"] == "oak"
    assert _stored(world) == before
    real = await client.post("/v1/things", {"name": "elm"}, idempotency_key="k")
    assert real.status == 201
    assert "idempotent-replayed" not in real.headers, "a dry run uses no key up"


async def test_explain(world: World, client: Client) -> None:
    before = _stored(world)
    answer = await client.post("/v1/things", {"name": "oak"}, service_dry_run="explain")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/vnd.furniops.preview+json"
    assert answer.headers["service-dry-run"] == "explain"
    preview = answer.json()
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
    assert _stored(world) == before


@pytest.mark.parametrize("kind", ["true", "explain"])
async def test_errors_answer_as_they_would(world: World, client: Client, kind: str) -> None:
    toys.DOINGS["then"] = Conflict("Busy.")
    assert (await client.post("/v1/things", {"name": "oak"}, service_dry_run=kind)).status == 409
    toys.DOINGS.clear()
    assert (await client.post("/v1/things", {}, service_dry_run=kind)).status == 400
    assert (await client.send_json("POST", "/v1/things", {"name": "a"}, service_dry_run=kind)).faults == {
        ("header.Idempotency-Key", "required")
    }


@pytest.mark.parametrize("kind", ["true", "explain"])
async def test_if_match_holds(world: World, client: Client, kind: str) -> None:
    thing = toys.keep(world.orgs["Fjord"].id)
    path = f"/v1/things/{thing.id}"
    assert (await client.send_json("PATCH", path, {"name": "elm"}, service_dry_run=kind)).status == 428
    assert (
        await client.send_json("PATCH", path, {"name": "elm"}, service_dry_run=kind, if_match='"7-x"')
    ).status == 412
    assert (
        await client.send_json("PATCH", path, {"name": "elm"}, service_dry_run=kind, if_match='"1-x"')
    ).status == 200
    assert (thing.name, thing.version) == ("oak", 1)


async def test_other_words_are_refused(client: Client) -> None:
    for word in ("false", "True", "", "1"):
        answer = await client.post("/v1/things", {"name": "oak"}, service_dry_run=word)
        assert answer.faults == {("header.Service-Dry-Run", "invalid_value")}


async def test_reads_do_not_mind(client: Client) -> None:
    answer = await client.get("/v1/things", service_dry_run="true")
    assert answer.status == 200
    assert "service-dry-run" not in answer.headers


async def test_deletes(world: World, client: Client) -> None:
    thing = toys.keep(world.orgs["Fjord"].id)
    answer = await client.send("DELETE", f"/v1/things/{thing.id}", headers={"service-dry-run": "true"})
    assert (answer.status, answer.headers["service-dry-run"]) == (204, "true")
    assert thing.id in toys.KEPT
