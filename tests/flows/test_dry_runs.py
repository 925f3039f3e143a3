"""Dry runs of pushes and uploads, and source tests of such sources, read the data and store nothing."""

from pathlib import Path
from typing import Any

import pytest

from domain.catalogue import categories
from entrypoints.settings import Settings
from ports.objects import ObjectStore
from tests.flows.feeds import build_catalogue, build_csv, build_record, build_stock_sheet
from tests.flows.in_process_service import InProcessService, open_service

pytestmark = pytest.mark.asyncio


async def _preview(service: InProcessService, path: str, body: Any) -> Any:
    answer = await service.client.post(path, body, service_dry_run="explain")
    assert answer.status == 200, answer.body
    return answer.json()


async def _create_upload(service: InProcessService, source: str, content: bytes) -> str:
    announcement = {"filename": "feed.csv", "content_type": "text/csv", "bytes": len(content)}
    upload = (await service.client.post(f"/v1/sources/{source}/uploads", announcement)).json()
    row = await service.fetch_rows("SELECT key FROM uploads WHERE id = %s", upload["id"])
    path = Path(service.world.dependencies[Settings].objects_url.removeprefix("file://")).parent / "handed-in"
    path.write_bytes(content)
    await service.world.dependencies[ObjectStore].put_file(row[0][0], path)
    return f"/v1/uploads/{upload['id']}/complete"


async def test_pushes(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        source = await service.create_source("push", config={"currency": "usd"})
        path = f"/v1/sources/{source}/records"
        pushed = await service.client.post(path, {"records": [build_record("A"), build_record("B")]})
        assert pushed.status == 202
        await service.process_lane(source)
        before = await service.fetch_catalogue_rows()
        changing = {"records": [build_record("A", quantity=9), build_record("C", price="#N/A")]}
        preview = await _preview(service, path, changing)
        assert preview["outcome"]["stats"] == {
            "rows": 2, "products_created": 1, "variants_created": 1, "offers_created": 1, "offers_changed": 1, "problems": 1,
        }  # fmt: skip
        assert sorted(event["type"] for event in preview["events"]) == [
            "offer.changed", "offer.created", "product.created", "variant.created",
        ]  # fmt: skip
        changes = {change["object"]: change for change in preview["changes"] if change["action"] == "update"}
        assert {"path": "quantity", "old": 4, "new": 9} in changes["offer"]["fields"]
        assert [warning for warning in preview["warnings"] if "line 2, C" in warning and "#N/A" in warning]
        complete = await _preview(service, path, {"records": [build_record("A")], "complete": True})
        assert complete["outcome"]["stats"]["withdrawn"] == 1
        dry = await service.client.post(path, changing, service_dry_run="true")
        assert (dry.status, len(dry.json()["problems"])) == (202, 1)
        first = await service.client.post(path, {"records": [build_record("X")], "batch": "b", "more": True})
        assert first.status == 202
        both = await _preview(service, path, {"records": [build_record("Y")], "batch": "b"})
        assert both["outcome"]["stats"]["products_created"] == 2
        more = await _preview(service, path, {"records": [build_record("Y")], "batch": "b", "more": True})
        assert more["outcome"] == both["outcome"] and any("stays open" in warning for warning in more["warnings"])
        assert await service.fetch_catalogue_rows() == before
        assert len((await service.client.get(f"/v1/sources/{source}/runs")).json()["data"]) == 2


async def test_uploads(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        run = await service.import_file(build_catalogue(60))
        source, before = run["source"], await service.fetch_catalogue_rows()
        same = await _preview(service, await _create_upload(service, source, build_catalogue(60)), None)
        assert same["outcome"]["stats"] == {"rows": 120, "unchanged": 60}
        sheet = await _preview(service, await _create_upload(service, source, build_stock_sheet(60, quantity=1)), None)
        assert sheet["outcome"]["stats"]["offers_changed"] == 120
        assert (sheet["outcome"]["changes"], sheet["outcome"]["told"], len(sheet["changes"])) == (120, 100, 102)
        shrunk = await _preview(service, await _create_upload(service, source, build_catalogue(2)), None)
        assert any("shrink_refused" in warning for warning in shrunk["warnings"])
        allowed = await _create_upload(service, source, build_catalogue(2))
        assert (await _preview(service, allowed, {"accept_shrink": True}))["outcome"]["stats"]["withdrawn"] == 116
        large = await _preview(service, await _create_upload(service, source, build_catalogue(800)), None)
        assert large["outcome"]["stats"]["rows"] == 1000
        assert any("first 1,000 rows" in warning for warning in large["warnings"])
        nothing = await _preview(
            service, await _create_upload(service, source, build_csv(("Colour",), [("oak",)])), None
        )
        assert any("mapping_required" in warning for warning in nothing["warnings"])
        assert await service.fetch_catalogue_rows() == before
        done = await service.client.post(allowed, {"accept_shrink": True})
        assert done.status == 200
        await service.process_lane(source)
        ended = await service.get_newest_run(source)
        assert (ended["status"], ended["stats"]["withdrawn"]) == ("succeeded", 116)


async def test_the_preview_applies_category_rules(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        chairs = next(one.id for one in categories.category_by_id().values() if one.slug == "chairs")
        source = await service.create_source("push", config={"currency": "usd"})
        path = f"/v1/sources/{source}/records"
        item = build_record("A")
        item["product"]["category_path"] = ["Living Room", "Chairs"]
        assert (await service.client.post(path, {"records": [item]})).status == 202
        await service.process_lane(source)
        rule = {"rules": [{"path": ["Living Room"], "category": chairs}]}
        assert (await service.client.post(f"/v1/sources/{source}/categories", rule)).status == 200
        await service.process_lane(source)
        item["variants"][0]["offers"][0]["quantity"] = 9
        preview = await _preview(service, path, {"records": [item]})
        assert preview["outcome"]["stats"] == {"rows": 1, "offers_changed": 1}, preview["changes"]


async def test_source_tests_read_uploaded_and_pushed_data(tmp_path: Path) -> None:
    async with open_service(tmp_path) as service:
        files = await service.create_source("file", config={"currency": "usd"})
        nothing = await service.client.post(f"/v1/sources/{files}/test")
        assert (nothing.status, nothing.code) == (422, "unprocessable")
        rows = [("T-1", "Table", "12", "ca. 95 cm", "x"), ("T-2", "Chair", "about ten", "40 cm", "y")]
        await service.import_file(build_csv(("SKU", "Title", "Price", "Width", "Zorbs"), list(rows)), files)
        before = await service.fetch_catalogue_rows()
        report = (await service.client.post(f"/v1/sources/{files}/test")).json()
        assert (report["ok"], len(report["sample"])) == (True, 2)
        assert {"column": "Zorbs", "reason": "unknown"} in report["mapping"]["unmapped"]
        assert {"sku", "title", "price"} <= {column["field"] for column in report["mapping"]["columns"]}
        assert [(problem["external_id"], problem["line"]) for problem in report["problems"]] == [("T-2", 3)]
        pushes = await service.create_source("push", config={"currency": "usd"})
        await service.client.post(
            f"/v1/sources/{pushes}/records", {"records": [build_record("A", price="many"), build_record("B")]}
        )
        for _ in range(2):
            report = (await service.client.post(f"/v1/sources/{pushes}/test")).json()
            assert (report["ok"], [one["product"]["external_id"] for one in report["sample"]]) == (True, ["A", "B"])
            assert [(problem["external_id"], problem["problem"]) for problem in report["problems"]] == [
                ("A", "unreadable")
            ]
            await service.process_lane(pushes)
        assert "mapping" not in report
        assert [row for row in before if row not in await service.fetch_catalogue_rows()] == []
