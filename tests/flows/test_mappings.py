"""A file with meaningless headers, from the stopped run to the files that need no confirmation."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from domain.kernel.tenancy import Tenant
from tests.flows.in_process_service import InProcessService, open_service
from tests.http.client import Response

pytestmark = pytest.mark.asyncio
HEAD = "Zorb,Quix,Flim,Drub,Grum\n"
FIRST = (HEAD + "fjell,ashen,19.50,31,x\nskog,birchen,20,32,y\n").encode()
SECOND = (HEAD + "fjell,ashen,21.50,31,x\nskog,birchen,20,32,y\nelv,oaken,9,33,z\n").encode()
EDITS: list[dict[str, Any]] = [
    {"column": "Zorb", "field": "sku"},
    {"position": 1, "field": "title"},
    {"column": "Flim", "field": "cost", "settings": {"currency": "EUR"}},
    {"column": "Drub", "field": "dimensions.width", "settings": {"unit": "inches"}},
    {"position": 4, "column": "Grum", "field": None},
]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[InProcessService]:
    """Run the service in this process."""
    async with open_service(tmp_path) as in_process_service:
        yield in_process_service


async def _confirm_mapping(service: InProcessService, id: str, *edits: dict[str, Any], **headers: str) -> Response:
    body = {"columns": list(edits)} if edits else None
    return await service.client.post(f"/v1/mappings/{id}/confirm", body, **headers)


async def _get_mapping(service: InProcessService, id: str) -> Any:
    answer = await service.client.get(f"/v1/mappings/{id}")
    assert answer.status == 200, answer.body
    return answer.json()


async def _create_source_with_mapping(service: InProcessService, content: bytes = FIRST) -> tuple[str, str]:
    """Create a source whose file needs a mapping; return both."""
    run = await service.import_file(content)
    assert run["status"] == "needs_mapping"
    return run["source"], run["mappings"][0]


async def _get_tiers(service: InProcessService, source: str) -> dict[str, tuple[str, str]]:
    [mapping] = (await service.client.get(f"/v1/sources/{source}/mappings")).json()["data"]
    return {column["column"]: (column["field"], column["tier"]) for column in mapping["columns"]}


async def _list_runs(service: InProcessService, source: str) -> list[tuple[str, str]]:
    runs = (await service.client.get(f"/v1/sources/{source}/runs")).json()["data"]
    return [(run["trigger"], run["status"]) for run in runs]


async def test_meaningless_headers_are_mapped_to_products(service: InProcessService) -> None:
    run = await service.import_file(FIRST)
    assert (run["status"], run["error"]["code"]) == ("needs_mapping", "mapping_required")
    [id] = run["mappings"]
    assert "Zorb, Quix, Flim" in run["error"]["message"] and id in run["error"]["message"]
    assert [(column["header"], column["position"], column.get("sheet")) for column in run["columns"]][:2] == [
        ("Zorb", 0, None), ("Quix", 1, None),
    ]  # fmt: skip
    assert run["columns"][0]["reason"] == "unknown" and "field" not in run["columns"][0]
    assert run["stats"]["columns"] == 5 and 1 < run["stats"]["columns_unmapped"] <= 5

    mapping = await _get_mapping(service, id)
    assert (mapping["status"], mapping["source"], "confirmed_at" in mapping) == ("proposed", run["source"], False)
    assert mapping["headers"] == ["Zorb", "Quix", "Flim", "Drub", "Grum"]
    assert mapping["samples"] == [["fjell", "ashen", "19.50", "31", "x"], ["skog", "birchen", "20", "32", "y"]]
    assert {"column": "Zorb", "position": 0, "reason": "unknown"} in mapping["unmapped"]

    confirmed = await _confirm_mapping(service, id, *EDITS)
    assert confirmed.status == 200, confirmed.body
    mapping_confirmed = confirmed.json()
    assert (
        mapping_confirmed["status"] == "confirmed"
        and mapping_confirmed["confirmed_at"] == mapping_confirmed["updated_at"]
    )
    assert [(c["column"], c["field"], c["settings"], c["tier"]) for c in mapping_confirmed["columns"]] == [
        ("Zorb", "sku", {}, "person"),
        ("Quix", "title", {}, "person"),
        ("Flim", "cost", {"currency": "eur"}, "person"),
        ("Drub", "dimensions.width", {"unit": "in"}, "person"),
    ]
    assert mapping_confirmed["unmapped"] == [{"column": "Grum", "position": 4, "reason": "ignored"}]

    assert (await service.get_newest_run(run["source"]))["trigger"] == "mapping"
    await service.process_lane(run["source"])
    replay = await service.get_newest_run(run["source"])
    assert (replay["status"], replay["mappings"]) == ("succeeded", [id])
    assert [(column.get("field"), column.get("reason")) for column in replay["columns"]] == [
        ("sku", None), ("title", None), ("cost", None), ("dimensions.width", None), (None, "ignored"),
    ]  # fmt: skip
    assert replay["stats"]["products_created"] == 2 and replay["stats"]["columns_unmapped"] == 1
    assert [data["title"] for data in await service.list_product_data()] == ["ashen", "birchen"]
    [product] = (await service.client.get("/v1/products?limit=1")).json()["data"]
    [variant] = product["variants"]
    assert variant["offers"][0]["currency"] == "eur" and variant["data"]["dimensions"]["width"]["given"]["unit"] == "in"


async def test_the_next_file_with_these_headers_needs_no_confirmation(service: InProcessService) -> None:
    source, id = await _create_source_with_mapping(service)
    await _confirm_mapping(service, id, *EDITS)
    await service.process_lane(source)
    run = await service.import_file(SECOND, source)
    assert (run["status"], run["trigger"], run["mappings"]) == ("succeeded", "upload", [id])
    assert run["stats"]["products_created"] == 1 and run["stats"]["unchanged"] == 1
    assert await _get_mapping(service, id) == (await _confirm_mapping(service, id)).json(), (
        "confirmed fields are unchanged"
    )
    assert await _list_runs(service, source) == [
        ("upload", "succeeded"),
        ("mapping", "succeeded"),
        ("upload", "needs_mapping"),
    ]


async def test_other_sources_of_the_organisation_use_learned_columns(service: InProcessService) -> None:
    source, id = await _create_source_with_mapping(service)
    await _confirm_mapping(service, id, *EDITS)
    await service.process_lane(source)
    other = await service.import_file(SECOND)
    assert other["status"] == "succeeded" and other["source"] != source
    assert await _get_tiers(service, other["source"]) == {
        "Zorb": ("sku", "learned"), "Quix": ("title", "learned"), "Flim": ("cost", "learned"),
        "Drub": ("dimensions.width", "learned"),
    }  # fmt: skip
    [product] = (await service.client.get(f"/v1/products?source={other['source']}&limit=1")).json()["data"]
    assert product["variants"][0]["offers"][0]["currency"] == "usd", "a currency is the source's own"


async def test_an_additional_column_needs_no_new_confirmation(service: InProcessService) -> None:
    source, id = await _create_source_with_mapping(service)
    await _confirm_mapping(service, id, *EDITS)
    await service.process_lane(source)
    wider = b"New,Zorb,Quix,Flim,Drub,Grum\n1st,elv,oaken,9,33,z\n2nd,hav,elmen,9,33,z\n"
    run = await service.import_file(wider, source)
    assert run["status"] == "succeeded" and run["mappings"] != [id]
    assert {c["header"]: c.get("field") for c in run["columns"]} | {"New": None} == {
        "New": None, "Zorb": "sku", "Quix": "title", "Flim": "cost", "Drub": "dimensions.width", "Grum": None,
    }  # fmt: skip


async def test_another_organisation_and_mode_see_and_learn_nothing(service: InProcessService) -> None:
    source, id = await _create_source_with_mapping(service)
    await _confirm_mapping(service, id, *EDITS)
    await service.process_lane(source)
    organisation = (await service.world.create_organisation()).id
    for tenant in (Tenant(organisation, True), Tenant(service.tenant.org, False)):
        outsider = InProcessService(service.world, await service.world.create_client(tenant), tenant)
        assert (await outsider.client.get(f"/v1/mappings/{id}")).status == 404
        assert (await outsider.client.get(f"/v1/sources/{source}/mappings")).status == 404
        assert (await _confirm_mapping(outsider, id)).status == 404
        assert (await outsider.import_file(FIRST))["status"] == "needs_mapping"
    assert (await _get_mapping(service, id))["status"] == "confirmed"


async def test_confirming_twice_starts_one_run(service: InProcessService) -> None:
    source, id = await _create_source_with_mapping(service)
    first = await _confirm_mapping(service, id, *EDITS, idempotency_key="once")
    again = await _confirm_mapping(service, id, *EDITS, idempotency_key="once")
    assert again.headers["idempotent-replayed"] == "true" and again.body == first.body
    assert (await _confirm_mapping(service, id)).json() == first.json(), "unchanged confirmation: no run"
    blocked = await _confirm_mapping(service, id, {"position": 4, "field": "tags"})
    assert (blocked.status, blocked.code) == (409, "conflict"), "the run of the first is open"
    await service.process_lane(source)
    assert (await _confirm_mapping(service, id, *EDITS)).json() == first.json()
    assert await _list_runs(service, source) == [("mapping", "succeeded"), ("upload", "needs_mapping")]
    corrected = await _confirm_mapping(service, id, {"position": 4, "field": "tags"})
    assert corrected.status == 200 and corrected.json()["columns"][4]["field"] == "tags"
    await service.process_lane(source)
    assert (await _list_runs(service, source))[0] == ("mapping", "succeeded")
    assert [data["tags"] for data in await service.list_product_data()] == [["x"], ["y"]]


async def test_a_dry_run_confirms_nothing(service: InProcessService) -> None:
    source, id = await _create_source_with_mapping(service)
    before = await _get_mapping(service, id)
    would = await _confirm_mapping(service, id, *EDITS, service_dry_run="true")
    assert would.status == 200 and would.json()["status"] == "confirmed"
    preview = (await _confirm_mapping(service, id, *EDITS, service_dry_run="explain")).json()
    assert [(change["object"], change["action"]) for change in preview["changes"]] == [
        ("mapping", "update"), ("run", "create"),
    ]  # fmt: skip
    assert [job["kind"] for job in preview["jobs"]] == ["runs.execute"]
    assert await _get_mapping(service, id) == before
    assert await _list_runs(service, source) == [("upload", "needs_mapping")]


async def test_confirmed_and_queued_are_one_transaction(service: InProcessService) -> None:
    """A crash after the response loses nothing, and a refused request confirms nothing."""
    source, id = await _create_source_with_mapping(service)
    assert (await _confirm_mapping(service, id, *EDITS)).status == 200
    stored = await service.fetch_rows(
        "SELECT m.xmin::text = r.xmin::text AND r.xmin::text = j.xmin::text FROM mappings m "
        "JOIN runs r ON r.org = m.org AND r.source = m.source AND r.trigger = 'mapping' "
        "JOIN jobs j ON j.org = r.org AND j.key = r.id WHERE m.org = %s AND m.id = %s", service.tenant.org, id
    )  # fmt: skip
    assert stored == [(True,)]
    await service.process_lane(source)
    audited = await service.fetch_rows("SELECT count(*) FROM audit_entries WHERE target_id = %s", id)
    assert audited == [(1,)]
    refused, other = await _create_source_with_mapping(service, b"Wibble,Wobble\nfjell,ashen\nskog,birchen\n")
    await service.execute("UPDATE sources SET status = 'paused' WHERE id = %s", refused)
    assert (await _confirm_mapping(service, other, {"position": 0, "field": "sku"})).status == 409
    assert (await _get_mapping(service, other))["status"] == "proposed"


async def test_invalid_confirmations_are_refused_with_reasons(service: InProcessService) -> None:
    _, id = await _create_source_with_mapping(service, b"Zorb,Quix,Zorb\nfjell,ashen,11\nskog,birchen,12\n")
    unknown = await _confirm_mapping(
        service, id, {"position": 0, "field": "skuu"}, {"column": "Quixx", "field": "title"}
    )
    assert (unknown.status, unknown.faults) == (400, {("columns.1.column", "invalid_value")})
    assert "`Quix`" in unknown.json()["errors"][0]["detail"]
    field = await _confirm_mapping(service, id, {"position": 0, "field": "skuu"})
    assert (field.status, field.faults) == (400, {("columns.0.field", "invalid_value")})
    assert "`sku`" in field.json()["errors"][0]["detail"]
    twice = await _confirm_mapping(service, id, {"column": "Zorb", "field": "sku"})
    assert (twice.status, twice.faults) == (400, {("columns.0.position", "required")})
    setting = await _confirm_mapping(
        service, id, {"position": 0, "field": "weight", "settings": {"unit": "stone", "x": "y"}}
    )
    assert setting.faults == {
        ("columns.0.settings.unit", "invalid_value"), ("columns.0.settings.x", "unknown_field"),
    }  # fmt: skip
    repeated = await _confirm_mapping(service, id, {"position": 0, "field": "sku"}, {"position": 2, "field": "sku"})
    assert repeated.status == 422 and "sku: `Zorb` (position 0), `Zorb` (position 2)" in repeated.json()["detail"]
    keyless = await _confirm_mapping(service, id, {"position": 0, "field": "brand"})
    assert keyless.status == 422 and "sku" in keyless.json()["detail"]
    beyond = await _confirm_mapping(service, id, {"position": 3, "field": "sku"})
    assert beyond.faults == {("columns.0.position", "too_large")}
    closed = await _confirm_mapping(service, id, {"position": 0, "field": "sku", "unit": "in"})
    assert closed.faults == {("columns.0.unit", "unknown_field")}
    assert (await _get_mapping(service, id))["status"] == "proposed"


async def test_a_replay_reads_the_stored_file(service: InProcessService) -> None:
    source, id = await _create_source_with_mapping(service)
    run = await service.client.post(f"/v1/sources/{source}/replay")
    assert (run.status, run.json()["trigger"], run.json()["status"]) == (202, "replay", "queued")
    assert (await service.client.post(f"/v1/sources/{source}/replay")).status == 409, "a run is open"
    await service.process_lane(source)
    assert (await service.get_newest_run(source))["status"] == "needs_mapping"
    await _confirm_mapping(service, id, *EDITS)
    await service.process_lane(source)
    before = await service.fetch_catalogue_rows()
    await service.client.post(f"/v1/sources/{source}/replay")
    await service.process_lane(source)
    assert (await service.get_newest_run(source))["stats"][
        "unchanged"
    ] == 2 and await service.fetch_catalogue_rows() == before
    empty = await service.create_source("file")
    nothing = await service.client.post(f"/v1/sources/{empty}/replay")
    assert (nothing.status, nothing.code) == (409, "conflict")


async def test_pushed_records_are_replayed_as_records(service: InProcessService) -> None:
    source = await service.create_source("push")
    record = {"product": {"external_id": "A1", "title": "Chair"}, "variants": [{"external_id": "A1-1"}]}
    await service.client.post(f"/v1/sources/{source}/records", {"records": [record], "complete": True})
    await service.process_lane(source)
    before = await service.fetch_catalogue_rows()
    assert (await service.client.post(f"/v1/sources/{source}/replay")).status == 202
    await service.process_lane(source)
    assert (await _list_runs(service, source))[0] == (
        "replay",
        "succeeded",
    ) and await service.fetch_catalogue_rows() == before
    assert (await service.get_newest_run(source))["columns"] == []


async def test_a_stock_sheet_that_needed_a_mapping_is_imported_as_stock(service: InProcessService) -> None:
    source = await service.create_source("file", config={"currency": "usd"})
    assert (await service.import_file(b"SKU,Title,Price\nfjell,Ash chair,10\n", source))["status"] == "succeeded"
    sheet = await service.import_file(b"Zorb,Quix\nfjell,7\nskog,8\n", source)
    assert sheet["status"] == "needs_mapping"
    edits = [{"position": 0, "field": "sku"}, {"position": 1, "field": "quantity", "settings": {"location": "NJ"}}]
    assert (await _confirm_mapping(service, sheet["mappings"][0], *edits)).status == 200
    await service.process_lane(source)
    run = await service.get_newest_run(source)
    assert (run["status"], run["stream"], run["stats"]["offers_created"]) == ("succeeded", "stock", 1)
    assert len(await service.list_product_data()) == 1, "the catalogue is not replaced by a stock sheet"


async def test_a_confirmation_is_undone_and_repeated(service: InProcessService) -> None:
    """The mapping is as before, and the file is read accordingly, without fields for its columns."""
    source, id = await _create_source_with_mapping(service)
    before = await _get_mapping(service, id)
    confirmed = (await _confirm_mapping(service, id, *EDITS)).json()
    await service.process_lane(source)
    assert len(await service.list_product_data()) == 2

    async def undo(action: str) -> Any:
        entries = (await service.client.get(f"/v1/audit-events?action={action}&undoable=true")).json()["data"]
        entry = next(one for one in entries if one["target"]["object"] == "mapping")
        answer = await service.client.post(f"/v1/audit-events/{entry['id']}/undo")
        assert answer.status == 200, answer.body
        await service.process_lane(source)
        mapping = await _get_mapping(service, id)
        return {name: value for name, value in mapping.items() if name not in ("updated_at", "confirmed_at")}

    assert await undo("mappings.confirm") == {name: value for name, value in before.items() if name != "updated_at"}
    assert (await _list_runs(service, source))[0] == ("mapping", "needs_mapping")
    expected = {name: value for name, value in confirmed.items() if name not in ("updated_at", "confirmed_at")}
    assert await undo("audit.undo") == expected
    assert (await _list_runs(service, source))[0] == ("mapping", "succeeded")
