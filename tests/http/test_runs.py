"""Runs over HTTP: starting, pushing records, reading."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from domain.kernel.problems import Problem
from domain.runs.model import PushInput, RunError, RunWait
from domain.runs.ports import PushStore, RunStore
from tests.http.application import OPERATOR
from tests.http.sources import FILE_SOURCE, PUSH_SOURCE, SourceHarness, open_source_harness
from tests.support import builders

pytestmark = pytest.mark.asyncio
RECORD = {
    "product": {"external_id": "LM-1", "title": "Oak table"},
    "variants": [
        {
            "external_id": "LM-1-OAK",
            "dimensions": {"width": {"value": 80.5, "unit": "in"}},
            "offers": [{"location": "main", "price": {"amount": 499.90, "currency": "usd"}, "quantity": 3}],
        }
    ],
}


@pytest_asyncio.fixture(name="harness")
async def open_harness() -> AsyncIterator[SourceHarness]:
    """Run the application."""
    async with open_source_harness() as harness:
        yield harness


async def _finish_run(harness: SourceHarness, id: str, status: str = "succeeded") -> None:
    async with harness.application.uow.begin(harness.tenant, OPERATOR) as tx:
        run = await tx[RunStore].get(id)
        await tx[RunStore].save(run.with_end(status, tx.now))


async def _push(harness: SourceHarness, source: Any, status: int = 202, **body: Any) -> Any:
    response = await harness.client.post(f"/v1/sources/{source['id']}/records", {"records": [RECORD], **body})
    assert response.status == status, response.body
    return response.json()


async def _list_parts(harness: SourceHarness, run: Any) -> list[Any]:
    async with harness.application.uow.begin_reading(harness.tenant) as tx:
        parts = [await tx[PushStore].get_part(run["id"], sequence) for sequence in range(10)]
        return [json.loads(part) for part in parts if part is not None]


async def _read_input(harness: SourceHarness, run: Any) -> Any:
    async with harness.application.uow.begin_reading(harness.tenant) as tx:
        return (await tx[RunStore].get(run["id"])).input


async def test_start(harness: SourceHarness) -> None:
    source = await harness.create_source()
    response = await harness.client.post(f"/v1/sources/{source['id']}/runs")
    run = response.json()
    assert response.status == 202 and response.headers["location"].endswith(f"/v1/runs/{run['id']}")
    assert run == {
        "object": "run",
        "id": run["id"],
        "source": source["id"],
        "trigger": "manual",
        "stream": "catalogue",
        "status": "queued",
        "stage": "fetch",
        "served_by": None,
        "stats": {},
        "problems": [],
        "columns": [],
        "mappings": [],
        "created_at": "2026-11-20T13:08:00.000Z",
    }
    assert (await harness.client.get(f"/v1/runs/{run['id']}")).json() == run
    assert (await harness.client.get(f"/v1/sources/{source['id']}/runs")).json()["data"] == [run]
    [job] = harness.list_jobs()
    assert (job.kind, job.lane, job.key) == ("runs.execute", f"source:{source['id']}", run["id"])
    assert job.args == {"run": run["id"]} and (job.org, job.livemode) == (harness.tenant.org, True)
    [entry] = await harness.list_audit_entries(run["id"])
    assert entry.change.action == "create" and entry.change.after["source"] == source["id"]


async def test_start_of_a_stream(harness: SourceHarness) -> None:
    source = await harness.create_source()
    path = f"/v1/sources/{source['id']}/runs"
    run = (await harness.client.post(path, {"stream": "stock", "accept_shrink": True})).json()
    assert run["stream"] == "stock"
    async with harness.application.uow.begin_reading(harness.tenant) as tx:
        assert (await tx[RunStore].get(run["id"])).accept_shrink is True
    assert (await harness.client.post(path, {"stream": "stock"})).code == "conflict"
    assert (await harness.client.post(path, {"stream": "catalogue"})).status == 202
    await _finish_run(harness, run["id"])
    assert (await harness.client.post(path, {"stream": "stock"})).status == 202


@pytest.mark.parametrize("body", [{"stream": "prices"}, {"accept_shrink": "yes"}, {"full": True}])
async def test_invalid_starts_are_refused(harness: SourceHarness, body: Any) -> None:
    source = await harness.create_source()
    assert (await harness.client.post(f"/v1/sources/{source['id']}/runs", body)).code == "invalid_request"


@pytest.mark.parametrize("status", ["paused", "blocked", "disabled"])
async def test_no_run_of_a_source_that_is_not_active(harness: SourceHarness, status: str) -> None:
    source, pushed = await harness.create_source(), await harness.create_source(**PUSH_SOURCE)
    for one in (source, pushed):
        await harness.change_source(one["id"], status=status)
    assert (await harness.client.post(f"/v1/sources/{source['id']}/runs")).code == "conflict"
    assert (await _push(harness, pushed, status=409))["code"] == "conflict"
    assert harness.list_jobs() == []


async def test_a_degraded_source_still_runs(harness: SourceHarness) -> None:
    source = await harness.create_source()
    await harness.change_source(source["id"], status="degraded")
    assert (await harness.client.post(f"/v1/sources/{source['id']}/runs")).status == 202


async def test_sources_without_pulling_cannot_be_started(harness: SourceHarness) -> None:
    others: list[dict[str, Any]] = [FILE_SOURCE | {"config": {}}, PUSH_SOURCE, {"connector": "reader"}]
    for fields in others:
        source = await harness.create_source(**fields)
        assert (await harness.client.post(f"/v1/sources/{source['id']}/runs")).code == "unprocessable"
    shopify = await harness.create_source(connector="shopify")
    path = f"/v1/sources/{shopify['id']}/runs"
    assert (await harness.client.post(path, {"stream": "stock"})).code == "unprocessable"
    assert (await harness.client.post(path)).status == 202


async def test_a_source_without_a_stock_feed_has_no_stock_run(harness: SourceHarness) -> None:
    url = "https://vendor.example/feed.csv"
    without = await harness.create_source(connector="files", config={"url": url})
    refused = await harness.client.post(f"/v1/sources/{without['id']}/runs", {"stream": "stock"})
    assert (refused.status, refused.faults) == (422, {("stream", "invalid_value")})
    assert "config.stock_url" in refused.json()["detail"] and harness.list_jobs() == []
    fed = await harness.create_source(
        connector="files", config={"url": url, "stock_url": "https://vendor.example/stock.csv"}
    )
    assert (await harness.client.post(f"/v1/sources/{fed['id']}/runs", {"stream": "stock"})).status == 202


async def test_a_run_has_all_fields(harness: SourceHarness) -> None:
    moment = builders.MOMENT
    run = builders.run(
        "src_1",
        status="waiting",
        stage="parse",
        served_by="rest",
        stats={"rows": 3},
        error=RunError("fetch_failed", "It answered 503."),
        waiting=RunWait("rate_limited", moment, 2, "Retry-After: 60"),
        problems=(Problem("sku", "missing", "No key.", line=3, column="SKU"),),
        started_at=moment,
        finished_at=moment,
    )
    async with harness.application.uow.begin(harness.tenant, OPERATOR) as tx:
        await tx[RunStore].add(run)
    shown = (await harness.client.get(f"/v1/runs/{run.id}")).json()
    assert shown["waiting"] == {
        "reason": "rate_limited",
        "until": "2026-11-20T13:08:00.000Z",
        "attempt": 2,
        "detail": "Retry-After: 60",
    }
    problem = {"line": 3, "column": "SKU", "field": "sku", "problem": "missing", "detail": "No key."}
    assert shown["problems"] == [problem]
    assert shown["error"] == {"code": "fetch_failed", "message": "It answered 503."}
    assert shown["served_by"] == "rest" and shown["finished_at"] == "2026-11-20T13:08:00.000Z"
    other = await harness.application.create_client("Oak")
    assert (await other.get(f"/v1/runs/{run.id}")).code == "not_found"


async def test_list_pages_both_ways(harness: SourceHarness) -> None:
    source = await harness.create_source()
    async with harness.application.uow.begin(harness.tenant, OPERATOR) as tx:
        for _ in range(5):
            await tx[RunStore].add(builders.run(source["id"]).with_end("succeeded", tx.now))
    path = f"/v1/sources/{source['id']}/runs?limit=2"
    first = (await harness.client.get(path)).json()
    second = (await harness.client.get(f"{path}&starting_after={first['next_cursor']}")).json()
    back = (await harness.client.get(f"{path}&ending_before={second['next_cursor']}")).json()
    ids = [run["id"] for run in (*first["data"], *second["data"])]
    assert ids == sorted(ids, reverse=True) and len(set(ids)) == 4
    assert [run["id"] for run in back["data"]] == ids[1:3]
    assert (await harness.client.get("/v1/sources/src_0000000000000000000000/runs")).code == "not_found"


async def test_a_push_creates_a_run(harness: SourceHarness) -> None:
    source = await harness.create_source(**PUSH_SOURCE)
    run = await _push(harness, source)
    assert (run["trigger"], run["stream"], run["status"]) == ("push", "catalogue", "queued")
    assert await _list_parts(harness, run) == [[RECORD]]
    assert await _read_input(harness, run) == PushInput(parts=1, records=1, open=False, complete=False)
    assert [job.key for job in harness.list_jobs()] == [run["id"]]


async def test_pushes_queue_behind_each_other(harness: SourceHarness) -> None:
    source = await harness.create_source(**PUSH_SOURCE)
    runs = [await _push(harness, source) for _ in range(3)]
    assert len({run["id"] for run in runs}) == 3
    assert [job.key for job in harness.list_jobs()] == [run["id"] for run in runs]


async def test_a_batch_collects_until_its_last_part(harness: SourceHarness) -> None:
    source = await harness.create_source(**PUSH_SOURCE)
    first = await _push(harness, source, batch="monday", more=True)
    other = await _push(harness, source, batch="tuesday", more=True)
    single = await _push(harness, source)
    second = await _push(harness, source, batch="monday", more=True, complete=True)
    assert first["id"] == second["id"] != other["id"]
    assert [job.key for job in harness.list_jobs()] == [single["id"]]
    last = await _push(harness, source, batch="monday", complete=True)
    assert last["id"] == first["id"]
    assert len(await _list_parts(harness, first)) == 3
    received = await _read_input(harness, first)
    assert received == PushInput("monday", parts=3, records=3, open=False, complete=True)
    assert [job.key for job in harness.list_jobs()] == [single["id"], first["id"]]
    again = await _push(harness, source, batch="monday")
    assert again["id"] != first["id"]


async def test_records_keep_their_exact_numbers(harness: SourceHarness) -> None:
    source = await harness.create_source(**PUSH_SOURCE)
    text = json.dumps({"records": [RECORD]}).replace("499.9", "499.90000000000000001").replace("80.5", '"31 1/2"')
    response = await harness.client.send(
        "POST",
        f"/v1/sources/{source['id']}/records",
        body=text.encode(),
        headers={"content-type": "application/json", "idempotency-key": "exact"},
    )
    assert response.status == 202
    async with harness.application.uow.begin_reading(harness.tenant) as tx:
        part = await tx[PushStore].get_part(response.json()["id"], 0)
    assert b"499.90000000000000001" in part and b'"31 1/2"' in part


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"records": []}, ("records", "too_few")),
        ({"records": [RECORD] * 1001}, ("records", "too_many")),
        ({"more": True}, ("batch", "required")),
        ({"batch": ""}, ("batch", "too_short")),
        ({"records": [{"variants": []}]}, ("records.0.product", "required")),
        ({"records": [{"product": {"title": "x"}}]}, ("records.0.product.external_id", "required")),
        (
            {"records": [{"product": {"external_id": "x", "colour": "red"}}]},
            ("records.0.product.colour", "unknown_field"),
        ),
        (
            {"records": [{"product": {"external_id": "x"}, "variants": [{"external_id": "y", "weight": 3}]}]},
            ("records.0.variants.0.weight", "invalid_type"),
        ),
        ({"atomic": True}, ("atomic", "unknown_field")),
    ],
)
async def test_invalid_pushes_are_refused(harness: SourceHarness, body: Any, fault: tuple[str, str]) -> None:
    source = await harness.create_source(**PUSH_SOURCE)
    response = await harness.client.post(f"/v1/sources/{source['id']}/records", {"records": [RECORD], **body})
    assert response.status == 400 and fault in response.faults
    assert harness.list_jobs() == []


async def test_only_push_sources_take_records(harness: SourceHarness) -> None:
    assert (await _push(harness, await harness.create_source(), status=422))["code"] == "unprocessable"


async def test_a_push_may_be_large_but_not_too_large(harness: SourceHarness) -> None:
    source = await harness.create_source(**PUSH_SOURCE)
    record = replace_description(RECORD, "x" * 4000)
    assert (await _push(harness, source, records=[record] * 1000))["status"] == "queued"
    too_large = [replace_description(RECORD, "x" * 6000)] * 1000
    assert (await _push(harness, source, status=413, records=too_large))["code"] == "payload_too_large"


def replace_description(record: Any, description: str) -> Any:
    """Return the record with that description."""
    return {**record, "product": {**record["product"], "description": description}}


async def test_a_repeated_push_creates_one_run(harness: SourceHarness) -> None:
    source = await harness.create_source(**PUSH_SOURCE)
    path = f"/v1/sources/{source['id']}/records"
    responses = [await harness.client.post(path, {"records": [RECORD]}, idempotency_key="once") for _ in range(2)]
    assert responses[0].body == responses[1].body
    assert responses[1].headers["idempotent-replayed"] == "true"
    assert len(harness.list_jobs()) == 1


async def test_a_dry_start_queues_nothing(harness: SourceHarness) -> None:
    source = await harness.create_source()
    path = f"/v1/sources/{source['id']}/runs"
    explained = (await harness.client.post(path, service_dry_run="explain")).json()
    assert [job["kind"] for job in explained["jobs"]] == ["runs.execute"]
    assert (await harness.client.post(path, service_dry_run="true")).status == 202
    assert harness.list_jobs() == []
    assert (await harness.client.get(path)).json()["data"] == []


async def test_ended_runs_remain_readable(harness: SourceHarness) -> None:
    source = await harness.create_source()
    run = (await harness.client.post(f"/v1/sources/{source['id']}/runs")).json()
    async with harness.application.uow.begin(harness.tenant, OPERATOR) as tx:
        found = await tx[RunStore].get(run["id"])
        await tx[RunStore].save(replace(found.with_start(tx.now), stage="store").with_end("cancelled", tx.now))
    shown = (await harness.client.get(f"/v1/runs/{run['id']}")).json()
    assert (shown["status"], shown["stage"]) == ("cancelled", "store")


async def test_values_are_validated_by_the_run_and_null_is_a_value(harness: SourceHarness) -> None:
    source = await harness.create_source(**PUSH_SOURCE)
    offer = {"location": "main", "currency": "USD", "price": 49900, "cost": None, "quantity": ">50", "incoming": None}
    variant = {
        "external_id": "v", "colour": None, "weight": {"hundredths_lb": 100, "given": {"value": 1, "unit": "lb"}},
        "dimensions": {"width": "ca. 95 cm", "height": None}, "axes": {"Size": None}, "offers": [offer, {"price": "#N/A"}],
    }  # fmt: skip
    given = [
        {"product": {"external_id": "p", "title": None, "tags": None, "compliance": {"sturdy_act": None}}, "variants": [variant]},
        {"product": {"external_id": "q", "media": [{"url": "https://a.example/1.jpg", "alt": None}]}, "variants": None},
    ]  # fmt: skip
    run = await _push(harness, source, records=given, accept_shrink=True)
    assert await _list_parts(harness, run) == [given]
    async with harness.application.uow.begin_reading(harness.tenant) as tx:
        stored = await tx[RunStore].get(run["id"])
    assert stored is not None and stored.accept_shrink
    unnamed = await _push(harness, source, status=400, records=[{"product": {"external_id": None}}])
    assert unnamed["code"] == "invalid_request"
