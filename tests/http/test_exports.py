"""Exports over HTTP: refusals, and files that equal the lists of the API."""

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
from tests.http.client import Client, Response
from tests.support import builders
from tests.tenancy.application import ServedApplication, Tenancy, serve_application

pytestmark = pytest.mark.asyncio


@dataclass
class ExportHarness:
    """Organisation with one resource of each type."""

    application: ServedApplication
    tenancy: Tenancy

    @property
    def tenant(self) -> Tenant:
        return self.tenancy.tenant

    async def request_export(self, body: Any, client: Client | None = None, **headers: str) -> Response:
        given = {"idempotency_key": new_id("req"), **headers}
        return await (client or self.tenancy.client).send_json("POST", "/v1/exports", body, **given)

    async def read_json(self, path: str) -> Any:
        response = await self.tenancy.client.send_json("GET", path, None)
        assert response.status == 200, response.body
        return response.json()

    async def create_export(self, body: Any) -> Any:
        """Create and execute an export; return it."""
        created = (await self.request_export(body)).json()
        dependencies = self.application.dependencies
        lane = build_lane_name(self.tenant.org, "exports:live")
        for job in await dependencies[JobDispatcher].claim(lane, 5, exports.MAX_EXPORT_WAIT):
            await create_handlers([exports.AREA], dependencies)[EXECUTE_EXPORT](job, asyncio.Event())
        return await self.read_json(f"/v1/exports/{created['id']}")

    async def read_file(self, url: str) -> bytes:
        split = urlsplit(url)
        response = await Client(self.application.app, None).send_json("GET", f"{split.path}?{split.query}", None)
        assert response.status == 200, response.body
        return response.body

    async def read_lines(self, export: Any) -> dict[str, list[Any]]:
        """Read the lines of each file by dataset and compare them with the manifest."""
        files = {file["dataset"]: await self.read_file(file["url"]) for file in export["files"]}
        manifest = [json.loads(line) for line in gzip.decompress(files["manifest"]).splitlines()]
        assert [entry["dataset"] for entry in manifest] == [file["dataset"] for file in export["files"][:-1]]
        for entry, file in zip(manifest, export["files"], strict=False):
            data = files[entry["dataset"]]
            assert (entry["bytes"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
            assert entry["rows"] == file["rows"] == len(gzip.decompress(data).splitlines())
        return {name: gzip.decompress(data).splitlines() for name, data in files.items()}


@pytest_asyncio.fixture
async def harness(tmp_path: Path) -> AsyncIterator[ExportHarness]:
    async with serve_application(tmp_path) as application:
        yield ExportHarness(
            application, await application.create_tenancy(await application.create_organisation(), livemode=True)
        )


class RawPage(msgspec.Struct):
    """List response with its items as raw JSON."""

    data: list[msgspec.Raw]


async def _read_items(harness: ExportHarness, path: str) -> list[bytes]:
    """Read the items of a list as raw JSON."""
    response = await harness.tenancy.client.send_json("GET", f"{path}?limit=100", None)
    assert response.status == 200 and not response.json()["has_more"]
    return [bytes(item) for item in msgspec.json.decode(response.body, type=RawPage).data]


async def test_a_products_export_equals_the_list(harness: ExportHarness) -> None:
    response = await harness.request_export({"kind": "products"})
    created = response.json()
    assert response.status == 202 and response.headers["location"].endswith(f"/v1/exports/{created['id']}")
    assert (
        created["status"] == "pending" and created["files"] == [] and created["filters"] == {} and created["rows"] == 0
    )
    made = await harness.create_export({"kind": "products", "filters": {"updated_since": "2020-01-01T00:00:00+02:00"}})
    assert made["filters"] == {"updated_since": "2019-12-31T22:00:00.000Z"}
    first = await harness.read_json(f"/v1/exports/{created['id']}")
    for export in (made, first):
        assert export["status"] == "succeeded" and export["livemode"] is True and export["expires_at"]
        found = await harness.read_lines(export)
        assert sorted(found["products"]) == sorted(await _read_items(harness, "/v1/products"))
        assert export["rows"] == len(found["products"]) > 0
    changes = await harness.read_json(f"/v1/changes?cursor={made['changes_cursor']}")
    assert changes["caught_up"] and changes["data"] == []
    listed = await harness.read_json("/v1/exports")
    assert [one["id"] for one in listed["data"][:2]] == [made["id"], first["id"]]


async def test_an_organisations_export_equals_every_list(harness: ExportHarness) -> None:
    made = await harness.create_export({"kind": "organisation"})
    assert made["status"] == "succeeded", made
    found = await harness.read_lines(made)
    ids = harness.tenancy.ids
    for area in AREAS:
        for row in area.operations:
            if row.dataset is None or row.dataset in ("request_logs", "audit_events"):
                continue  # the export itself adds rows to these
            path = row.path.replace("{id}", ids.get(next(iter(row.ids.values()), ""), ""))
            if row.paging:
                expected = await _read_items(harness, path)
            else:
                expected = [(await harness.tenancy.client.send_json("GET", path, None)).body]
            if row.ids:
                assert set(expected) <= set(found[row.dataset]), row.dataset
            else:
                assert sorted(found[row.dataset]) == sorted(expected), row.dataset
    assert found["webhook_endpoints"] and b"whsec" not in b"".join(found["webhook_endpoints"])
    for path, dataset in (("/v1/request-logs", "request_logs"), ("/v1/audit-events", "audit_events")):
        logged = await _read_items(harness, path)
        assert set(found[dataset]) <= set(logged) and found[dataset], dataset


async def test_invalid_exports_are_refused(harness: ExportHarness) -> None:
    assert (await harness.request_export({"kind": "everything"})).status == 400
    assert (await harness.request_export({})).status == 400
    assert (await harness.request_export({"kind": "products", "filters": {"brand": "x"}})).status == 400
    assert (await harness.request_export({"kind": "products", "filters": {"updated_since": "yesterday"}})).status == 400
    filtered = await harness.request_export(
        {"kind": "organisation", "filters": {"updated_since": "2026-01-01T00:00:00Z"}}
    )
    assert (filtered.status, filtered.json()["code"]) == (422, "unprocessable")
    assert filtered.json()["errors"][0]["field"] == "filters"

    some = await harness.application.create_client(
        harness.tenant, restricted=True, scopes=frozenset({"exports:write", "sources:read"})
    )
    missing = await harness.request_export({"kind": "products"}, some)
    assert (missing.status, missing.json()["code"]) == (403, "permission_denied")
    lacking = await harness.request_export({"kind": "organisation"}, some)
    assert (lacking.status, lacking.json()["code"]) == (403, "insufficient_scope")
    assert "webhooks:read" in lacking.json()["detail"] and "sources:read" not in lacking.json()["detail"]
    reader = await harness.application.create_client(
        harness.tenant, restricted=True, scopes=frozenset({"exports:read"})
    )
    assert (await harness.request_export({"kind": "products"}, reader)).json()["code"] == "permission_denied"

    unknown = await harness.tenancy.client.send_json("GET", f"/v1/exports/{new_id('exp')}", None)
    assert unknown.status == 404


async def test_a_fourth_open_export_in_a_mode_is_refused(harness: ExportHarness) -> None:
    for _ in range(3):
        assert (await harness.request_export({"kind": "organisation"})).status == 202
    fourth = await harness.request_export({"kind": "products"})
    assert (fourth.status, fourth.json()["code"]) == (409, "conflict")
    test = await harness.application.create_client(Tenant(harness.tenant.org, False))
    assert (await harness.request_export({"kind": "products"}, test)).status == 202


async def test_a_plan_without_bulk_exports(harness: ExportHarness) -> None:
    organisation: Organisation = await harness.application.create_organisation("free")
    client = await harness.application.create_client(Tenant(organisation.id, True))
    refused = await harness.request_export({"kind": "products"}, client)
    assert (refused.status, refused.json()["code"]) == (403, "feature_unavailable")
    assert (await harness.request_export({"kind": "organisation"}, client)).status == 202


async def test_dry_runs_and_repetitions_create_no_export(harness: ExportHarness) -> None:
    tried = await harness.request_export({"kind": "products"}, service_dry_run="explain")
    preview = tried.json()
    assert tried.status == 200 and [job["kind"] for job in preview["jobs"]] == ["exports.carry_out"]
    assert preview["changes"][0]["object"] == "export"
    dry = await harness.request_export({"kind": "products"}, service_dry_run="true")
    assert dry.status == 202 and (await harness.read_json("/v1/exports"))["data"][0]["id"] != dry.json()["id"]
    first = await harness.request_export({"kind": "products"}, idempotency_key="once")
    again = await harness.request_export({"kind": "products"}, idempotency_key="once")
    assert again.json() == first.json() and again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]


async def test_expired_files_are_gone(harness: ExportHarness) -> None:
    made = await harness.create_export({"kind": "products"})
    dependencies = harness.application.dependencies
    async with dependencies[UnitOfWork].begin(harness.tenant, builders.CALL) as tx:
        stored = await tx[ExportStore].get(made["id"])
        assert stored is not None
        await tx[ExportStore].save(replace(stored, expires_at=tx.now))
    [expired] = [
        tick for area in AREAS for tick in dependencies.call(area.create_ticks) if tick.name == "expired exports"
    ]
    [freed] = [tick for area in AREAS for tick in dependencies.call(area.create_ticks) if tick.name == "free storage"]
    await expired.run()
    await freed.run()
    gone = await harness.read_json(f"/v1/exports/{made['id']}")
    assert gone["status"] == "expired" and gone["files"] == []
    split = urlsplit(made["files"][0]["url"])
    response = await Client(harness.application.app, None).send_json("GET", f"{split.path}?{split.query}", None)
    assert response.status == 404


async def test_links_require_the_scopes_of_their_content(harness: ExportHarness) -> None:
    everything, products = (
        await harness.create_export({"kind": "organisation"}),
        await harness.create_export({"kind": "products"}),
    )
    assert all(file["url"] for export in (everything, products) for file in export["files"])
    for scopes, linked in (
        ({"exports:read"}, ()),
        ({"exports:read", "products:read"}, ("products",)),
        ({"exports:read", "audit:read"}, ()),
    ):
        client = await harness.application.create_client(harness.tenant, scopes=frozenset(scopes))
        for export in (everything, products):
            for shown in (
                (await client.get(f"/v1/exports/{export['id']}")).json(),
                next(one for one in (await client.get("/v1/exports")).json()["data"] if one["id"] == export["id"]),
            ):
                assert [file["dataset"] for file in shown["files"]] == [file["dataset"] for file in export["files"]]
                assert all(("url" in file) is (export["kind"] in linked) for file in shown["files"]), scopes


@pytest.mark.parametrize("path", ["/v1/audit-events", "/v1/request-logs"])
async def test_extreme_timestamps_are_accepted(harness: ExportHarness, path: str) -> None:
    first, last = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"
    whole = (await harness.read_json(f"{path}?since={first}&until={last}"))["data"]
    assert whole
    for nothing in (f"until={first}", f"since={last}", f"since={last}&until={first}"):
        assert (await harness.read_json(f"{path}?{nothing}"))["data"] == []
    page = await harness.read_json(f"{path}?limit=1&since={first}")
    back = (
        await harness.read_json(f"{path}?limit=1&since={first}&ending_before={page['next_cursor']}")
        if page["has_more"]
        else page
    )
    assert isinstance(back["data"], list)
