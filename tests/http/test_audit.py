"""The audit log over HTTP: who did what, and undoing it."""

from datetime import timedelta
from typing import Any

import pytest

from domain.access.model import ROLES, SCOPES
from domain.kernel.ids import new_id
from domain.secrets.ports import Vault
from domain.sources.ports import SourceStore
from tests.http.client import Answer, Client
from tests.http.sources import Shop, shop
from tests.http.webhooks import ENDPOINT

pytestmark = pytest.mark.asyncio
EVENTS = "/v1/audit-events"
API = {"kind": "api", "config": {"url": "https://vendor.example/api"}}


async def listed(client: Client, query: str = "") -> list[Any]:
    """The entries that a list shows, newest first."""
    answer = await client.get(f"{EVENTS}?{query}")
    assert answer.status == 200, answer.body
    data: list[Any] = answer.json()["data"]
    return data


async def newest(client: Client, query: str = "") -> Any:
    return (await listed(client, query))[0]


async def undone(client: Client, id: str, **headers: str) -> Answer:
    """The answer to undoing an entry."""
    return await client.post(f"{EVENTS}/{id}/undo", **headers)


def seen(resource: Any) -> Any:
    """A resource but for its version and its times."""
    return {name: value for name, value in resource.items() if name not in ("version", "updated_at", "created_at")}


async def test_an_entry_states_actor_and_action() -> None:
    async with shop() as here:
        source = await here.create()
        answer = await here.patch(source, name="Renamed")
        entry, made = await listed(here.client)
        assert entry == {
            "object": "audit_event",
            "id": entry["id"],
            "actor": {"kind": "api_key", "id": entry["actor"]["id"], "on_behalf_of": None},
            "action": "sources.update",
            "target": {"object": "source", "id": source["id"]},
            "change": "update",
            "before": {"name": "Lindgren"},
            "after": {"name": "Renamed"},
            "act": entry["id"],
            "request_id": answer.headers["request-id"],
            "livemode": True,
            "created_at": entry["created_at"],
            "undo": {"available": True},
            "sequence": 2,
            "hash": entry["hash"],
        }
        assert (made["action"], made["change"], made["before"]) == ("sources.create", "create", {})
        assert made["undo"]["available"] is False and "paused" in made["undo"]["reason"]


async def test_undoing_is_an_entry_and_can_be_undone() -> None:
    async with shop() as here:
        source = await here.create()
        await here.patch(source, name="Renamed", schedule={"interval_minutes": 60})
        changed, place = await here.client.get(f"/v1/sources/{source['id']}"), await newest(here.client)
        explained = await undone(here.client, place["id"], service_dry_run="explain")
        [preview] = explained.json()["changes"]
        assert {one["path"]: one["new"] for one in preview["fields"]}["name"] == "Lindgren"
        answer = await undone(here.client, place["id"])
        assert answer.status == 200, answer.body
        undoing = await newest(here.client)
        assert (answer.json()["undone_by"], undoing["undoes"]) == (undoing["id"], place["id"])
        assert (undoing["action"], undoing["before"], undoing["after"]) == (
            "audit.undo",
            place["after"],
            place["before"],
        )
        assert seen((await here.client.get(f"/v1/sources/{source['id']}")).json()) == seen(source)
        again = await undone(here.client, place["id"])
        assert (again.status, again.code) == (409, "conflict")
        assert undoing["id"] in again.json()["detail"]
        assert (await undone(here.client, undoing["id"])).status == 200
        assert seen((await here.client.get(f"/v1/sources/{source['id']}")).json()) == seen(changed.json())
        assert [one["undo"]["available"] for one in await listed(here.client)] == [True, False, False, False]


async def test_what_a_later_change_depends_on_stays() -> None:
    async with shop() as here:
        source = await here.create()
        await here.patch(source, name="B")
        first = await newest(here.client)
        await here.patch(source | {"version": 2}, licence_basis="own_data")
        await here.patch(source | {"version": 3}, name="C")
        later = await newest(here.client)
        refused = await undone(here.client, first["id"])
        assert (refused.status, refused.code) == (422, "undo_unavailable")
        assert later["id"] in refused.json()["detail"]
        assert [one["id"] for one in await listed(here.client, "undoable=true")] == [
            one["id"] for one in await listed(here.client) if one["undo"]["available"]
        ]
        assert len(await listed(here.client, "undoable=false")) == 2
        await undone(here.client, later["id"])
        assert (await undone(here.client, first["id"])).status == 200
        found = (await here.client.get(f"/v1/sources/{source['id']}")).json()
        assert (found["name"], found["licence_basis"]) == ("Lindgren", "own_data")


async def test_what_cannot_be_undone_states_the_reason() -> None:
    async with shop() as here:
        await here.create()
        refused = await undone(here.client, (await newest(here.client))["id"])
        assert (refused.status, refused.code) == (422, "undo_unavailable")
        assert "paused" in refused.json()["detail"]
        assert (await undone(here.client, new_id("aud"))).status == 404
        assert (await undone(here.client, "aud_x")).status == 404
        for query, code in (
            ("since=yesterday", "invalid_format"),
            ("undoable=maybe", "invalid_type"),
            ("actor=", "too_short"),
            ("who=me", "unknown_field"),
        ):
            assert (await here.client.get(f"{EVENTS}?{query}")).faults == {(f"query.{query.split('=')[0]}", code)}


async def test_credentials_come_back_and_are_never_shown() -> None:
    async with shop() as here:
        source = await here.create(**API)
        place = f"/v1/sources/{source['id']}/credentials"
        for token in ("the-first-token", "the-second-token"):
            stored = await here.client.send_json("PUT", place, {"credentials": {"token": token}})
            assert stored.status == 200, stored.body
        second, first, _ = await listed(here.client)
        sealed = await opened(here, source["id"])
        assert sealed == {"token": "the-second-token"}
        assert (await undone(here.client, second["id"])).status == 200
        assert await opened(here, source["id"]) == {"token": "the-first-token"}
        assert (await undone(here.client, first["id"])).status == 200
        assert (await opened(here, source["id"]), (await here.stored(source["id"])).has_credentials) == (None, False)
        undoings = await listed(here.client, "action=audit.undo")
        assert (await undone(here.client, undoings[0]["id"])).status == 200
        assert await opened(here, source["id"]) == {"token": "the-first-token"}
        log = (await here.client.get(EVENTS)).body
        assert b"token" not in log


async def opened(here: Shop, source: str) -> Any:
    """The credentials as a run would get them."""
    async with here.world.uow.begin_reading(here.tenant) as tx:
        sealed, found = await tx[SourceStore].load_encrypted_credentials(source), await tx[SourceStore].get(source)
    info = here.services.connectors.find_connector(found.connector)
    return (
        here.world.dependencies[Vault].decrypt(sealed, source, info.describe_credential_destination(found.config))
        if sealed
        else None
    )


async def test_credentials_that_a_new_address_forgot_come_back_with_the_old_one() -> None:
    async with shop() as here:
        source = await here.create(**API)
        await here.client.send_json(
            "PUT", f"/v1/sources/{source['id']}/credentials", {"credentials": {"token": "t-o-k-e-n"}}
        )
        moved = await here.patch(source | {"version": 2}, config={"url": "https://elsewhere.example/api"})
        assert moved.json()["has_credentials"] is False
        assert (await undone(here.client, (await newest(here.client))["id"])).status == 200
        found = (await here.client.get(f"/v1/sources/{source['id']}")).json()
        assert (found["config"], found["has_credentials"]) == (source["config"], True)
        assert await opened(here, source["id"]) == {"token": "t-o-k-e-n"}


async def test_what_was_kept_sealed_is_kept_thirty_days() -> None:
    async with shop() as here:
        source = await here.create(**API)
        place = f"/v1/sources/{source['id']}/credentials"
        await here.client.send_json("PUT", place, {"credentials": {"token": "t-o-k-e-n"}})
        await here.client.send("DELETE", place)
        entry = await newest(here.client)
        here.world.clock.advance(timedelta(days=31))
        late = await newest(here.client)
        assert entry["undo"]["available"] is True and "30 days" in late["undo"]["reason"]
        assert (await undone(here.client, entry["id"])).status == 422


async def test_an_endpoint_comes_back_under_its_id() -> None:
    async with shop() as here:
        made = (await here.client.post("/v1/webhook-endpoints", {**ENDPOINT, "description": "Ours"})).json()
        place = f"/v1/webhook-endpoints/{made['id']}"
        endpoint = (await here.client.get(place)).json()
        rotated = await here.client.post(f"{place}/rotate-secret", {"overlap_hours": 24})
        both = (await here.client.get(place)).json()
        assert (await here.client.send("DELETE", place)).status == 204
        deletion, rotation, creation = await listed(here.client)
        for entry, expected in ((deletion, both), (rotation, endpoint)):
            assert (await undone(here.client, entry["id"])).status == 200
            assert seen((await here.client.get(place)).json()) == seen(expected)
        log = (await here.client.get(EVENTS)).body
        assert made["secret"].encode() not in log and rotated.json()["secret"].encode() not in log
        assert (await undone(here.client, creation["id"])).status == 200
        assert (await here.client.get(place)).status == 404
        assert (await undone(here.client, (await newest(here.client))["id"])).status == 200
        assert seen((await here.client.get(place)).json()) == seen(endpoint)


async def test_an_address_comes_back() -> None:
    async with shop() as here:
        source = await here.create(kind="mail", config={"inbound": {"senders": ["a@b.example"]}})
        await here.client.post(f"/v1/sources/{source['id']}/inbound-address/rotate")
        assert (await undone(here.client, (await newest(here.client))["id"])).status == 200
        assert seen((await here.client.get(f"/v1/sources/{source['id']}")).json()) == seen(source)


async def test_undoing_takes_the_permission_of_what_is_undone() -> None:
    async with shop() as here:
        await here.patch(await here.create(), name="Renamed")
        entry = await newest(here.client)
        auditor = await here.world.client(scopes=frozenset({"audit:read", "audit:write"}))
        refused = await undone(auditor, entry["id"])
        assert (refused.status, refused.code) == (403, "permission_denied")
        assert "sources:write" in refused.json()["detail"]
        writer = await here.world.client(scopes=SCOPES - {"audit:write"})
        assert (await undone(writer, entry["id"])).status == 403
        assert "audit:read" not in ROLES["viewer"]
        viewer = await here.world.client(role="viewer", scopes=SCOPES)
        assert (await viewer.get(EVENTS)).status == 403
        outsider = await here.world.client("Oak")
        assert (await undone(outsider, entry["id"])).status == 404
        assert (await outsider.get(EVENTS)).json()["data"] == []
        assert (await undone(here.client, entry["id"])).status == 200


async def test_a_page_of_what_can_be_undone_goes_on() -> None:
    async with shop() as here:
        sources = [await here.create() for _ in range(9)]
        for number in range(40):
            changes = {"licence_basis": "own_data"} if number in (5, 15) else {"name": f"N{number}"}
            answer = await here.patch(sources[number % 9], **changes)
            sources[number % 9] = answer.json()
        wanted = [one["id"] for one in await listed(here.client, "limit=100") if one["undo"]["available"]]
        found: list[str] = []
        cursor = ""
        while True:
            page = (await here.client.get(f"{EVENTS}?undoable=true&limit=7{cursor}")).json()
            found += [one["id"] for one in page["data"]]
            if not page["has_more"]:
                break
            cursor = f"&starting_after={page['next_cursor']}"
        assert found == wanted and len(found) == 11
        back = cursor.replace("starting_after", "ending_before")
        page = (await here.client.get(f"{EVENTS}?undoable=true&limit=3{back}")).json()
        assert [one["id"] for one in page["data"]] == wanted[3:6]
