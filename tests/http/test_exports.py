"""Exports over HTTP, through the whole application: what is refused, and files that equal the API's lists."""

import asyncio
import gzip
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import pytest_asyncio

from domain.exports.model import EXECUTE_EXPORT
from domain.exports.ports import ExportStore
from domain.jobs.model import build_lane_name
from domain.jobs.ports import JobDispatcher
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Organisation
from entrypoints.areas import exports
from entrypoints.areas.registry import AREAS
from entrypoints.operations.operation import create_handlers
from ports.unit_of_work import UnitOfWork
from tests.http.client import Answer, Client
from tests.support import builders
from tests.tenancy.application import ServedApplication, Tenancy, serve_application

pytestmark = pytest.mark.asyncio


@dataclass
class Desk:
    """An organisation that has one of everything."""

    world: ServedApplication
    furnished: Tenancy

    @property
    def tenant(self) -> Tenant:
        return self.furnished.tenant

    async def request_export(self, body: Any, client: Client | None = None, **headers: str) -> Answer:
        given = {"idempotency_key": new_id("req"), **headers}
        return await (client or self.furnished.client).send_json("POST", "/v1/exports", body, **given)

    async def get(self, path: str) -> Any:
        answer = await self.furnished.client.send_json("GET", path, None)
        assert answer.status == 200, answer.body
        return answer.json()

    async def made(self, body: Any) -> Any:
        """The export, carried out."""
        created = (await self.request_export(body)).json()
        dependencies = self.world.dependencies
        lane = build_lane_name(self.tenant.org, "exports:live")
        for job in await dependencies[JobDispatcher].claim(lane, 5, exports.MAX_EXPORT_WAIT):
            await create_handlers([exports.AREA], dependencies)[EXECUTE_EXPORT](job, asyncio.Event())
        return await self.get(f"/v1/exports/{created['id']}")

    async def file(self, url: str) -> bytes:
        split = urlsplit(url)
        answer = await Client(self.world.app, None).send_json("GET", f"{split.path}?{split.query}", None)
        assert answer.status == 200, answer.body
        return answer.body

    async def lines(self, export: Any) -> dict[str, list[Any]]:
        """Every file's lines by dataset, held against the manifest."""
        files = {file["dataset"]: await self.file(file["url"]) for file in export["files"]}
        manifest = [json.loads(line) for line in gzip.decompress(files["manifest"]).splitlines()]
        assert [entry["dataset"] for entry in manifest] == [file["dataset"] for file in export["files"][:-1]]
        for entry, file in zip(manifest, export["files"], strict=False):
            data = files[entry["dataset"]]
            assert (entry["bytes"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
            assert entry["rows"] == file["rows"] == len(gzip.decompress(data).splitlines())
        return {name: gzip.decompress(data).splitlines() for name, data in files.items()}


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with serve_application(tmp_path) as world:
        yield Desk(world, await world.create_tenancy(await world.create_organisation(), livemode=True))


class Page(msgspec.Struct):
    """A list, whose items stay as they are."""

    data: list[msgspec.Raw]


async def _items(desk: Desk, path: str) -> list[bytes]:
    """Each item of a list, as its bytes stand in the answer."""
    answer = await desk.furnished.client.send_json("GET", f"{path}?limit=100", None)
    assert answer.status == 200 and not answer.json()["has_more"]
    return [bytes(item) for item in msgspec.json.decode(answer.body, type=Page).data]


async def test_a_products_export_equals_the_list(desk: Desk) -> None:
    answer = await desk.request_export({"kind": "products"})
    created = answer.json()
    assert answer.status == 202 and answer.headers["location"].endswith(f"/v1/exports/{created['id']}")
    assert (
        created["status"] == "pending" and created["files"] == [] and created["filters"] == {} and created["rows"] == 0
    )
    made = await desk.made({"kind": "products", "filters": {"updated_since": "2020-01-01T00:00:00+02:00"}})
    assert made["filters"] == {"updated_since": "2019-12-31T22:00:00.000Z"}
    first = await desk.get(f"/v1/exports/{created['id']}")
    for export in (made, first):
        assert export["status"] == "succeeded" and export["livemode"] is True and export["expires_at"]
        found = await desk.lines(export)
        assert sorted(found["products"]) == sorted(await _items(desk, "/v1/products"))
        assert export["rows"] == len(found["products"]) > 0
    changes = await desk.get(f"/v1/changes?cursor={made['changes_cursor']}")
    assert changes["caught_up"] and changes["data"] == []
    listed = await desk.get("/v1/exports")
    assert [one["id"] for one in listed["data"][:2]] == [made["id"], first["id"]]


async def test_an_organisation_s_export_equals_every_list(desk: Desk) -> None:
    made = await desk.made({"kind": "organisation"})
    assert made["status"] == "succeeded", made
    found = await desk.lines(made)
    ids = desk.furnished.ids
    for area in AREAS:
        for row in area.operations:
            if row.dataset is None or row.dataset in ("request_logs", "audit_events"):
                continue  # these grow by the export itself
            path = row.path.replace("{id}", ids.get(next(iter(row.ids.values()), ""), ""))
            if row.paging:
                expected = await _items(desk, path)
            else:
                expected = [(await desk.furnished.client.send_json("GET", path, None)).body]
            if row.ids:
                assert set(expected) <= set(found[row.dataset]), row.dataset
            else:
                assert sorted(found[row.dataset]) == sorted(expected), row.dataset
    assert found["webhook_endpoints"] and b"whsec" not in b"".join(found["webhook_endpoints"])
    for path, dataset in (("/v1/request-logs", "request_logs"), ("/v1/audit-events", "audit_events")):
        logged = await _items(desk, path)
        assert set(found[dataset]) <= set(logged) and found[dataset], dataset


async def test_what_is_refused(desk: Desk) -> None:
    assert (await desk.request_export({"kind": "everything"})).status == 400
    assert (await desk.request_export({})).status == 400
    assert (await desk.request_export({"kind": "products", "filters": {"brand": "x"}})).status == 400
    assert (await desk.request_export({"kind": "products", "filters": {"updated_since": "yesterday"}})).status == 400
    filtered = await desk.request_export({"kind": "organisation", "filters": {"updated_since": "2026-01-01T00:00:00Z"}})
    assert (filtered.status, filtered.json()["code"]) == (422, "unprocessable")
    assert filtered.json()["errors"][0]["field"] == "filters"

    some = await desk.world.create_client(
        desk.tenant, restricted=True, scopes=frozenset({"exports:write", "sources:read"})
    )
    missing = await desk.request_export({"kind": "products"}, some)
    assert (missing.status, missing.json()["code"]) == (403, "permission_denied")
    lacking = await desk.request_export({"kind": "organisation"}, some)
    assert (lacking.status, lacking.json()["code"]) == (403, "insufficient_scope")
    assert "webhooks:read" in lacking.json()["detail"] and "sources:read" not in lacking.json()["detail"]
    reader = await desk.world.create_client(desk.tenant, restricted=True, scopes=frozenset({"exports:read"}))
    assert (await desk.request_export({"kind": "products"}, reader)).json()["code"] == "permission_denied"

    unknown = await desk.furnished.client.send_json("GET", f"/v1/exports/{new_id('exp')}", None)
    assert unknown.status == 404


async def test_a_fourth_open_one_is_refused_and_modes_are_counted_apart(desk: Desk) -> None:
    for _ in range(3):
        assert (await desk.request_export({"kind": "organisation"})).status == 202
    fourth = await desk.request_export({"kind": "products"})
    assert (fourth.status, fourth.json()["code"]) == (409, "conflict")
    test = await desk.world.create_client(Tenant(desk.tenant.org, False))
    assert (await desk.request_export({"kind": "products"}, test)).status == 202


async def test_a_plan_without_bulk_exports(desk: Desk) -> None:
    organisation: Organisation = await desk.world.create_organisation("free")
    client = await desk.world.create_client(Tenant(organisation.id, True))
    refused = await desk.request_export({"kind": "products"}, client)
    assert (refused.status, refused.json()["code"]) == (403, "feature_unavailable")
    assert (await desk.request_export({"kind": "organisation"}, client)).status == 202


async def test_trying_and_repeating(desk: Desk) -> None:
    tried = await desk.request_export({"kind": "products"}, service_dry_run="explain")
    preview = tried.json()
    assert tried.status == 200 and [job["kind"] for job in preview["jobs"]] == ["exports.carry_out"]
    assert preview["changes"][0]["object"] == "export"
    dry = await desk.request_export({"kind": "products"}, service_dry_run="true")
    assert dry.status == 202 and (await desk.get("/v1/exports"))["data"][0]["id"] != dry.json()["id"]
    first = await desk.request_export({"kind": "products"}, idempotency_key="once")
    again = await desk.request_export({"kind": "products"}, idempotency_key="once")
    assert again.json() == first.json() and again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]


async def test_expired_files_are_gone(desk: Desk) -> None:
    made = await desk.made({"kind": "products"})
    dependencies = desk.world.dependencies
    async with dependencies[UnitOfWork].begin(desk.tenant, builders.CALL) as tx:
        stored = await tx[ExportStore].get(made["id"])
        assert stored is not None
        await tx[ExportStore].save(replace(stored, expires_at=tx.now))
    [expired] = [
        tick for area in AREAS for tick in dependencies.call(area.create_ticks) if tick.name == "expired exports"
    ]
    [freed] = [tick for area in AREAS for tick in dependencies.call(area.create_ticks) if tick.name == "free storage"]
    await expired.run()
    await freed.run()
    gone = await desk.get(f"/v1/exports/{made['id']}")
    assert gone["status"] == "expired" and gone["files"] == []
    split = urlsplit(made["files"][0]["url"])
    answer = await Client(desk.world.app, None).send_json("GET", f"{split.path}?{split.query}", None)
    assert answer.status == 404


async def test_links_are_for_whoever_may_read_what_they_lead_to(desk: Desk) -> None:
    everything, products = await desk.made({"kind": "organisation"}), await desk.made({"kind": "products"})
    assert all(file["url"] for export in (everything, products) for file in export["files"])
    for scopes, linked in (
        ({"exports:read"}, ()),
        ({"exports:read", "products:read"}, ("products",)),
        ({"exports:read", "audit:read"}, ()),
    ):
        client = await desk.world.create_client(desk.tenant, scopes=frozenset(scopes))
        for export in (everything, products):
            for shown in (
                (await client.get(f"/v1/exports/{export['id']}")).json(),
                next(one for one in (await client.get("/v1/exports")).json()["data"] if one["id"] == export["id"]),
            ):
                assert [file["dataset"] for file in shown["files"]] == [file["dataset"] for file in export["files"]]
                assert all(("url" in file) is (export["kind"] in linked) for file in shown["files"]), scopes


@pytest.mark.parametrize("path", ["/v1/audit-events", "/v1/request-logs"])
async def test_moments_at_the_ends_of_time_are_moments(desk: Desk, path: str) -> None:
    first, last = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"
    whole = (await desk.get(f"{path}?since={first}&until={last}"))["data"]
    assert whole
    for nothing in (f"until={first}", f"since={last}", f"since={last}&until={first}"):
        assert (await desk.get(f"{path}?{nothing}"))["data"] == []
    page = await desk.get(f"{path}?limit=1&since={first}")
    back = (
        await desk.get(f"{path}?limit=1&since={first}&ending_before={page['next_cursor']}")
        if page["has_more"]
        else page
    )
    assert isinstance(back["data"], list)
