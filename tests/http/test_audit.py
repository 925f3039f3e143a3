"""Audit log over HTTP: entries and undo."""

from datetime import timedelta
from typing import Any

import pytest

from domain.access.model import ROLES, SCOPES
from domain.kernel.ids import new_id
from domain.secrets.ports import Vault
from domain.sources.ports import SourceStore
from tests.http.client import Client, Response
from tests.http.sources import SourceHarness, open_source_harness
from tests.http.webhooks import ENDPOINT

pytestmark = pytest.mark.asyncio
EVENTS = "/v1/audit-events"
API = {"kind": "api", "config": {"url": "https://vendor.example/api"}}


async def list_entries(client: Client, query: str = "") -> list[Any]:
    """List the entries, newest first."""
    response = await client.get(f"{EVENTS}?{query}")
    assert response.status == 200, response.body
    data: list[Any] = response.json()["data"]
    return data


async def read_newest(client: Client, query: str = "") -> Any:
    return (await list_entries(client, query))[0]


async def undo_entry(client: Client, id: str, **headers: str) -> Response:
    """Undo an entry; return the response."""
    return await client.post(f"{EVENTS}/{id}/undo", **headers)


def remove_versions(resource: Any) -> Any:
    """Return a resource without version and times."""
    return {name: value for name, value in resource.items() if name not in ("version", "updated_at", "created_at")}


async def test_an_entry_states_actor_and_action() -> None:
    async with open_source_harness() as harness:
        source = await harness.create_source()
        response = await harness.update_source(source, name="Renamed")
        entry, made = await list_entries(harness.client)
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
            "request_id": response.headers["request-id"],
            "livemode": True,
            "created_at": entry["created_at"],
            "undo": {"available": True},
            "sequence": 2,
            "hash": entry["hash"],
        }
        assert (made["action"], made["change"], made["before"]) == ("sources.create", "create", {})
        assert made["undo"]["available"] is False and "paused" in made["undo"]["reason"]


async def test_undoing_is_an_entry_and_can_be_undone() -> None:
    async with open_source_harness() as harness:
        source = await harness.create_source()
        await harness.update_source(source, name="Renamed", schedule={"interval_minutes": 60})
        changed, place = await harness.client.get(f"/v1/sources/{source['id']}"), await read_newest(harness.client)
        explained = await undo_entry(harness.client, place["id"], service_dry_run="explain")
        [preview] = explained.json()["changes"]
        assert {one["path"]: one["new"] for one in preview["fields"]}["name"] == "Lindgren"
        response = await undo_entry(harness.client, place["id"])
        assert response.status == 200, response.body
        undoing = await read_newest(harness.client)
        assert (response.json()["undone_by"], undoing["undoes"]) == (undoing["id"], place["id"])
        assert (undoing["action"], undoing["before"], undoing["after"]) == (
            "audit.undo",
            place["after"],
            place["before"],
        )
        assert remove_versions((await harness.client.get(f"/v1/sources/{source['id']}")).json()) == remove_versions(
            source
        )
        again = await undo_entry(harness.client, place["id"])
        assert (again.status, again.code) == (409, "conflict")
        assert undoing["id"] in again.json()["detail"]
        assert (await undo_entry(harness.client, undoing["id"])).status == 200
        assert remove_versions((await harness.client.get(f"/v1/sources/{source['id']}")).json()) == remove_versions(
            changed.json()
        )
        assert [one["undo"]["available"] for one in await list_entries(harness.client)] == [True, False, False, False]


async def test_a_change_with_later_changes_cannot_be_undone() -> None:
    async with open_source_harness() as harness:
        source = await harness.create_source()
        await harness.update_source(source, name="B")
        first = await read_newest(harness.client)
        await harness.update_source(source | {"version": 2}, licence_basis="own_data")
        await harness.update_source(source | {"version": 3}, name="C")
        later = await read_newest(harness.client)
        refused = await undo_entry(harness.client, first["id"])
        assert (refused.status, refused.code) == (422, "undo_unavailable")
        assert later["id"] in refused.json()["detail"]
        assert [one["id"] for one in await list_entries(harness.client, "undoable=true")] == [
            one["id"] for one in await list_entries(harness.client) if one["undo"]["available"]
        ]
        assert len(await list_entries(harness.client, "undoable=false")) == 2
        await undo_entry(harness.client, later["id"])
        assert (await undo_entry(harness.client, first["id"])).status == 200
        found = (await harness.client.get(f"/v1/sources/{source['id']}")).json()
        assert (found["name"], found["licence_basis"]) == ("Lindgren", "own_data")


async def test_a_refused_undo_states_the_reason() -> None:
    async with open_source_harness() as harness:
        await harness.create_source()
        refused = await undo_entry(harness.client, (await read_newest(harness.client))["id"])
        assert (refused.status, refused.code) == (422, "undo_unavailable")
        assert "paused" in refused.json()["detail"]
        assert (await undo_entry(harness.client, new_id("aud"))).status == 404
        assert (await undo_entry(harness.client, "aud_x")).status == 404
        for query, code in (
            ("since=yesterday", "invalid_format"),
            ("undoable=maybe", "invalid_type"),
            ("actor=", "too_short"),
            ("who=me", "unknown_field"),
        ):
            assert (await harness.client.get(f"{EVENTS}?{query}")).faults == {(f"query.{query.split('=')[0]}", code)}


async def test_undo_restores_credentials_without_showing_them() -> None:
    async with open_source_harness() as harness:
        source = await harness.create_source(**API)
        place = f"/v1/sources/{source['id']}/credentials"
        for token in ("the-first-token", "the-second-token"):
            stored = await harness.client.send_json("PUT", place, {"credentials": {"token": token}})
            assert stored.status == 200, stored.body
        second, first, _ = await list_entries(harness.client)
        sealed = await read_credentials(harness, source["id"])
        assert sealed == {"token": "the-second-token"}
        assert (await undo_entry(harness.client, second["id"])).status == 200
        assert await read_credentials(harness, source["id"]) == {"token": "the-first-token"}
        assert (await undo_entry(harness.client, first["id"])).status == 200
        assert (
            await read_credentials(harness, source["id"]),
            (await harness.load_source(source["id"])).has_credentials,
        ) == (None, False)
        undoings = await list_entries(harness.client, "action=audit.undo")
        assert (await undo_entry(harness.client, undoings[0]["id"])).status == 200
        assert await read_credentials(harness, source["id"]) == {"token": "the-first-token"}
        log = (await harness.client.get(EVENTS)).body
        assert b"token" not in log


async def read_credentials(here: SourceHarness, source: str) -> Any:
    """Return the credentials as a run reads them."""
    async with here.application.uow.begin_reading(here.tenant) as tx:
        sealed, found = await tx[SourceStore].load_encrypted_credentials(source), await tx[SourceStore].get(source)
    info = here.services.connectors.find_connector(found.connector)
    return (
        here.application.dependencies[Vault].decrypt(sealed, source, info.describe_credential_destination(found.config))
        if sealed
        else None
    )


async def test_undoing_a_new_address_restores_the_credentials() -> None:
    async with open_source_harness() as harness:
        source = await harness.create_source(**API)
        await harness.client.send_json(
            "PUT", f"/v1/sources/{source['id']}/credentials", {"credentials": {"token": "t-o-k-e-n"}}
        )
        moved = await harness.update_source(source | {"version": 2}, config={"url": "https://elsewhere.example/api"})
        assert moved.json()["has_credentials"] is False
        assert (await undo_entry(harness.client, (await read_newest(harness.client))["id"])).status == 200
        found = (await harness.client.get(f"/v1/sources/{source['id']}")).json()
        assert (found["config"], found["has_credentials"]) == (source["config"], True)
        assert await read_credentials(harness, source["id"]) == {"token": "t-o-k-e-n"}


async def test_encrypted_values_are_stored_for_thirty_days() -> None:
    async with open_source_harness() as harness:
        source = await harness.create_source(**API)
        place = f"/v1/sources/{source['id']}/credentials"
        await harness.client.send_json("PUT", place, {"credentials": {"token": "t-o-k-e-n"}})
        await harness.client.send("DELETE", place)
        entry = await read_newest(harness.client)
        harness.application.clock.advance(timedelta(days=31))
        late = await read_newest(harness.client)
        assert entry["undo"]["available"] is True and "30 days" in late["undo"]["reason"]
        assert (await undo_entry(harness.client, entry["id"])).status == 422


async def test_a_restored_endpoint_has_its_former_id() -> None:
    async with open_source_harness() as harness:
        made = (await harness.client.post("/v1/webhook-endpoints", {**ENDPOINT, "description": "Ours"})).json()
        place = f"/v1/webhook-endpoints/{made['id']}"
        endpoint = (await harness.client.get(place)).json()
        rotated = await harness.client.post(f"{place}/rotate-secret", {"overlap_hours": 24})
        both = (await harness.client.get(place)).json()
        assert (await harness.client.send("DELETE", place)).status == 204
        deletion, rotation, creation = await list_entries(harness.client)
        for entry, expected in ((deletion, both), (rotation, endpoint)):
            assert (await undo_entry(harness.client, entry["id"])).status == 200
            assert remove_versions((await harness.client.get(place)).json()) == remove_versions(expected)
        log = (await harness.client.get(EVENTS)).body
        assert made["secret"].encode() not in log and rotated.json()["secret"].encode() not in log
        assert (await undo_entry(harness.client, creation["id"])).status == 200
        assert (await harness.client.get(place)).status == 404
        assert (await undo_entry(harness.client, (await read_newest(harness.client))["id"])).status == 200
        assert remove_versions((await harness.client.get(place)).json()) == remove_versions(endpoint)


async def test_undo_restores_an_inbound_address() -> None:
    async with open_source_harness() as harness:
        source = await harness.create_source(kind="mail", config={"inbound": {"senders": ["a@b.example"]}})
        await harness.client.post(f"/v1/sources/{source['id']}/inbound-address/rotate")
        assert (await undo_entry(harness.client, (await read_newest(harness.client))["id"])).status == 200
        assert remove_versions((await harness.client.get(f"/v1/sources/{source['id']}")).json()) == remove_versions(
            source
        )


async def test_undo_requires_the_permission_of_the_undone_operation() -> None:
    async with open_source_harness() as harness:
        await harness.update_source(await harness.create_source(), name="Renamed")
        entry = await read_newest(harness.client)
        auditor = await harness.application.create_client(scopes=frozenset({"audit:read", "audit:write"}))
        refused = await undo_entry(auditor, entry["id"])
        assert (refused.status, refused.code) == (403, "permission_denied")
        assert "sources:write" in refused.json()["detail"]
        writer = await harness.application.create_client(scopes=SCOPES - {"audit:write"})
        assert (await undo_entry(writer, entry["id"])).status == 403
        assert "audit:read" not in ROLES["viewer"]
        viewer = await harness.application.create_client(role="viewer", scopes=SCOPES)
        assert (await viewer.get(EVENTS)).status == 403
        outsider = await harness.application.create_client("Oak")
        assert (await undo_entry(outsider, entry["id"])).status == 404
        assert (await outsider.get(EVENTS)).json()["data"] == []
        assert (await undo_entry(harness.client, entry["id"])).status == 200


async def test_the_list_of_undoable_entries_is_paged() -> None:
    async with open_source_harness() as harness:
        sources = [await harness.create_source() for _ in range(9)]
        for number in range(40):
            changes = {"licence_basis": "own_data"} if number in (5, 15) else {"name": f"N{number}"}
            response = await harness.update_source(sources[number % 9], **changes)
            sources[number % 9] = response.json()
        wanted = [one["id"] for one in await list_entries(harness.client, "limit=100") if one["undo"]["available"]]
        found: list[str] = []
        cursor = ""
        while True:
            page = (await harness.client.get(f"{EVENTS}?undoable=true&limit=7{cursor}")).json()
            found += [one["id"] for one in page["data"]]
            if not page["has_more"]:
                break
            cursor = f"&starting_after={page['next_cursor']}"
        assert found == wanted and len(found) == 11
        back = cursor.replace("starting_after", "ending_before")
        page = (await harness.client.get(f"{EVENTS}?undoable=true&limit=3{back}")).json()
        assert [one["id"] for one in page["data"]] == wanted[3:6]
