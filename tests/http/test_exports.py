"""Exports over HTTP: refusals, and files that equal the lists of the API."""

import asyncio
import csv
import gzip
import hashlib
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import defusedxml.ElementTree  # type: ignore[import-untyped]
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


async def _read_items(harness: ExportHarness, path: str, query: str = "?limit=100") -> list[bytes]:
    """Read the items of a list as raw JSON."""
    response = await harness.tenancy.client.send_json("GET", f"{path}{query}", None)
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
    memory = {"content": "Prices are net.", "scope": "org"}
    shared = await harness.tenancy.owner.post("/v1/assistant/memories", memory)
    made = await harness.create_export({"kind": "organisation"})
    assert made["status"] == "succeeded", made
    found = await harness.read_lines(made)
    ids = harness.tenancy.ids
    for area in AREAS:
        for row in area.operations:
            if row.dataset is None or row.dataset in ("request_logs", "audit_events", "assistant_notes"):
                continue  # the export itself adds rows to these, or omits those of one person
            path = row.path.replace("{id}", ids.get(next(iter(row.ids.values()), ""), ""))
            if row.paging:
                expected = await _read_items(harness, path)
            else:
                expected = [(await harness.tenancy.client.send_json("GET", path, None)).body]
            if row.ids:
                assert set(expected) <= set(found[row.dataset]), row.dataset
            else:
                assert sorted(found[row.dataset]) == sorted(expected), row.dataset
    assert [json.loads(note)["id"] for note in found["assistant_notes"]] == [shared.json()["id"]]
    assert found["webhook_endpoints"] and b"whsec" not in b"".join(found["webhook_endpoints"])
    for path, dataset in (("/v1/request-logs", "request_logs"), ("/v1/audit-events", "audit_events")):
        logged = await _read_items(harness, path)
        assert set(found[dataset]) <= set(logged) and found[dataset], dataset


async def test_invalid_exports_are_refused(harness: ExportHarness) -> None:
    assert (await harness.request_export({"kind": "everything"})).status == 400
    assert (await harness.request_export({})).status == 400
    assert (await harness.request_export({"kind": "products", "filters": {"shade": "x"}})).status == 400
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


async def test_an_export_of_a_view_equals_the_filtered_list(harness: ExportHarness) -> None:
    everything = await harness.read_json("/v1/products?limit=100")
    product = everything["data"][0]
    for filters, query in (
        ({"id": [product["id"]]}, f"id={product['id']}"),
        ({"status": [product["status"]]}, f"status={product['status']}"),
        (
            {"source": [product["variants"][0]["offers"][0]["source"]]},
            f"source={product['variants'][0]['offers'][0]['source']}",
        ),
        ({"brand": "no such brand"}, "brand=no+such+brand"),
    ):
        export = await harness.create_export({"kind": "products", "filters": filters})
        found = await harness.read_lines(export)
        assert export["filters"] == filters and export["format"] == "jsonl" and "columns" not in export
        assert found["products"] == await _read_items(harness, f"/v1/products?{query}", "&limit=100")
    changed = {"kind": "products", "filters": {"updated_since": "2020-01-01T00:00:00Z", "status": [product["status"]]}}
    assert (await harness.create_export(changed))["filters"]["updated_since"] == "2020-01-01T00:00:00.000Z"


@pytest.mark.parametrize("sort", ["newest", "updated", "title", "price_low", "price_high"])
async def test_an_export_has_the_order_of_the_list(harness: ExportHarness, sort: str) -> None:
    export = await harness.create_export(
        {"kind": "products", "format": "csv", "columns": ["product_id"], "row_by": "product", "sort": sort}
    )
    data = await harness.read_file(export["files"][0]["url"])
    listed = (await harness.read_json(f"/v1/products?limit=100&sort={sort}"))["data"]
    assert data.decode().split()[1:] == [product["id"] for product in listed]
    assert export.get("sort", "newest") == sort


async def test_an_export_finds_what_a_search_finds(harness: ExportHarness) -> None:
    title = (await harness.read_json("/v1/products"))["data"][0]["data"]["title"]
    word = max(title.split(), key=len)
    for query in (word, f"{word}s", word[:-1] + "q"):
        export = await harness.create_export({"kind": "products", "filters": {"q": query}})
        found = await harness.read_lines(export)
        assert found["products"] == await _read_items(harness, f"/v1/products?q={query}", "&limit=100"), query


async def test_tables_have_the_columns_of_the_request(harness: ExportHarness) -> None:
    body = {
        "kind": "products",
        "format": "csv",
        "columns": ["product_id", "variant_id", "width"],
        "locale": "de",
        "units": "imperial",
        "row_by": "variant",
    }
    export = await harness.create_export(body)
    assert {name: export[name] for name in body} == body
    [file, manifest] = export["files"]
    data = await harness.read_file(file["url"])
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=";"))
    listed = (await harness.read_json("/v1/products?limit=100"))["data"]
    assert rows[0] == ["Produkt-ID", "Varianten-ID", "Breite (in)"]
    assert [row[:2] for row in rows[1:]] == [
        [one["id"], variant["id"]] for one in listed for variant in one["variants"]
    ]
    [entry] = [json.loads(line) for line in gzip.decompress(await harness.read_file(manifest["url"])).splitlines()]
    assert entry["sha256"] == hashlib.sha256(data).hexdigest() and entry["rows"] == export["rows"] == len(rows) - 1
    split = urlsplit(file["url"])
    answer = await Client(harness.application.app, None).send_json("GET", f"{split.path}?{split.query}", None)
    assert answer.headers["content-disposition"].endswith(".csv")
    assert answer.headers["content-type"] == "application/octet-stream"


async def test_templates_list_the_items_that_they_omit(harness: ExportHarness) -> None:
    body = {"kind": "products", "format": "google_merchant_xml", "link_template": "https://shop.example/{handle}"}
    export = await harness.create_export(body)
    datasets = [file["dataset"] for file in export["files"]]
    assert datasets == ["products", "omitted_items", "manifest"] and export["link_template"] == body["link_template"]
    xml, omitted = [await harness.read_file(file["url"]) for file in export["files"][:2]]
    assert len(defusedxml.ElementTree.fromstring(xml).findall("channel/item")) == export["rows"]
    listed = list(csv.DictReader(io.StringIO(omitted.decode(), newline="")))
    products = (await harness.read_json("/v1/products?limit=100"))["data"]
    assert len(listed) + export["rows"] == sum(max(1, len(one["variants"])) for one in products)
    assert export["files"][1]["rows"] == len(listed)


async def test_up_to_5000_products_are_selected_by_id(harness: ExportHarness) -> None:
    product = (await harness.read_json("/v1/products"))["data"][0]["id"]
    ids = [f"prod_{number:022d}" for number in range(4_999)]
    export = await harness.create_export({"kind": "products", "format": "csv", "filters": {"id": [*ids, product]}})
    assert export["status"] == "succeeded" and export["rows"] >= 1 and export["filters"]["id_count"] == 5_000
    data = await harness.read_file(export["files"][0]["url"])
    assert {row["product_id"] for row in csv.DictReader(io.StringIO(data.decode()))} == {product}
    refused = await harness.request_export({"kind": "products", "filters": {"id": [*ids, product, "prod_" + "9" * 22]}})
    assert refused.status == 400


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"format": "pdf"}, 400, "format"), ({"format": "csv", "columns": []}, 400, "columns"), ({"format": "csv", "columns": ["cost", "cost"]}, 400, "columns"),
        ({"format": "csv", "columns": ["password"]}, 400, "columns"), ({"columns": ["title"]}, 422, "columns"), ({"format": "csv", "locale": "fr"}, 400, "locale"),
        ({"format": "google_merchant_xml"}, 422, "link_template"), ({"format": "google_merchant_xml", "link_template": "ftp://x/{sku}"}, 422, "link_template"),
        ({"filters": {"q": "!!"}}, 400, "q"), ({"filters": {"id": []}}, 400, "id"), ({"filters": {"status": ["gone"]}}, 400, "status"),
        ({"filters": {"sort": "title"}}, 400, "sort"), ({"sort": "size"}, 400, "sort"), ({"filters": {"is_inexact": True}}, 400, "is_inexact"),
        ({"filters": {"min_price": 1}}, 400, "currency"), ({"kind": "organisation", "format": "csv"}, 422, "format"),
    ],
)  # fmt: skip
async def test_invalid_layouts_are_refused(
    harness: ExportHarness, body: dict[str, Any], status: int, field: str
) -> None:
    response = await harness.request_export({"kind": "products", **body})
    assert response.status == status, response.body
    assert any(field in error["field"] for error in response.json()["errors"])


async def test_rows_of_tables_count_against_the_quota(harness: ExportHarness) -> None:
    before = await harness.read_json("/v1/usage")
    export = await harness.create_export({"kind": "products", "format": "xlsx", "row_by": "offer"})
    after = await harness.read_json("/v1/usage")
    used = [
        next(meter["used"] for meter in one["meters"] if meter["meter"] == "export_rows") for one in (before, after)
    ]
    assert used[1] - used[0] == export["rows"] > 0
