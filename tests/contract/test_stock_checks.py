"""Stock checks: their changes, the data that they keep, and the effect of the next run."""

import asyncio
import contextlib
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.catalogue.model import Stream
from domain.catalogue.ports import CatalogueStore
from domain.checks.model import MAX_OPEN_CHECKS, CheckFailure, CheckStatus
from domain.ingestion.ports import FetchFailed, ParseFailed, StockRequest
from domain.jobs.model import ClaimedJob
from domain.kernel.errors import LeaseLost, NotFound
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.runs.model import RunStatus, RunTrigger
from domain.runs.ports import RunStore
from domain.runs.run_queue import build_source_lane
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from tests.support import builders
from tests.support.backend import Backend
from tests.support.check_harness import CheckHarness, create_check_harness

pytestmark = pytest.mark.asyncio
FEED = b"SKU,Title,Price,Cost,Qty\nA-1,Oak chair,100.50,50,7\nA-2,Ash chair,90,45,8\n"
PLACE = "default"
PRICES = {"currency": "usd", "price": 10050, "cost": 5000}


async def _create_desk(backend: Backend, tenant: Tenant) -> tuple[CheckHarness, str]:
    """Return a desk with two chairs and the ID of the first one's variant."""
    desk = await create_check_harness(backend, tenant)
    assert (await desk.pull(FEED)).status == RunStatus.SUCCEEDED
    return desk, (await desk.get_variant_ids("A-1"))["A-1"]


async def _load_source(desk: CheckHarness) -> Source:
    async with desk.backend.uow.begin_reading(desk.tenant) as tx:
        found = await tx[SourceStore].get(desk.source.id)
    assert found is not None
    return found


async def test_a_check_updates_the_answered_stock_only(backend: Backend, tenant: Tenant) -> None:
    desk, variant = await _create_desk(backend, tenant)
    before = await _load_source(desk)
    check = await desk.run_check(variant, b"SKU,Qty,Price\nA-1,3,1.00\nA-2,0,1.00\n")
    assert (check.status, check.variant, check.id[:4]) == (CheckStatus.SUCCEEDED, variant, "chk_")
    [result] = check.results
    assert (result.source, result.availability, result.quantity) == (desk.source.id, "low_stock", 3)
    assert result.failure is None and result.checked_at is not None
    assert await desk.get_offers(variant) == {PLACE: PRICES | {"quantity": 3, "availability": "low_stock"}}
    other = (await desk.get_variant_ids("A-2"))["A-2"]
    assert (await desk.get_offers(other))[PLACE]["quantity"] == 8, "rows of other items are skipped"
    assert (
        desk.connectors.checked == [StockRequest("A-1", "A-1", "A-1")] and desk.connectors.tasks[-1].stream == "stock"
    )
    run = await desk.get_run(check.runs[0])
    assert (run.trigger, run.stream, run.status) == (RunTrigger.STOCK_CHECK, Stream.STOCK, RunStatus.SUCCEEDED)
    assert (run.is_complete, run.snapshot, run.stats["offers_changed"]) == (False, None, 1)
    [event] = await desk.list_events("offer.changed")
    assert (event["data"]["facets"], event["correlation_id"]) == (["stock", "availability"], run.id)
    assert [one["path"] for one in event["data"]["fields"]] == ["availability", "quantity"]
    after = await _load_source(desk)
    assert after.checked_at is not None
    assert replace(after, checked_at=None) == before, "health, freshness and schedule are unchanged"


async def test_the_next_run_replaces_the_stock_of_a_check(backend: Backend, tenant: Tenant) -> None:
    desk, variant = await _create_desk(backend, tenant)
    assert (await desk.pull(FEED)).stats["unchanged_feed"] == 1
    await desk.run_check(variant, b"SKU,Qty\nA-1,3\n")
    run = await desk.pull(FEED)
    assert "unchanged_feed" not in run.stats, "the same feed as in the last run is read again"
    assert (run.stats["offers_changed"], run.stats["unchanged"]) == (1, 1)
    assert await desk.get_offers(variant) == {PLACE: PRICES | {"quantity": 7, "availability": "in_stock"}}
    assert (await desk.pull(FEED)).stats["unchanged_feed"] == 1
    gone = await desk.pull(FEED.replace(b"A-1,Oak chair,100.50,50,7\n", b""))
    assert gone.stats["withdrawn"] == 1, "a complete run withdraws what no stream states"
    check = await desk.run_check(variant, b"SKU,Qty\nA-1,3\n")
    assert (check.results, check.status) == ([], CheckStatus.FAILED), "a withdrawn offer is not returned"


async def test_a_feed_without_stock_keeps_the_checked_stock(backend: Backend, tenant: Tenant) -> None:
    desk = await create_check_harness(backend, tenant)
    feed = b"SKU,Title,Price\nA-1,Oak chair,100\n"
    await desk.pull(feed)
    variant = (await desk.get_variant_ids("A-1"))["A-1"]
    await desk.run_check(variant, b"SKU,Availability\nA-1,in stock\n")
    assert (await desk.get_offers(variant))[PLACE] == {"currency": "usd", "price": 10000, "availability": "in_stock"}
    await desk.pull(feed)
    assert (await desk.get_offers(variant))[PLACE]["availability"] == "in_stock", "the feed states no stock"


async def test_a_stock_stream_replaces_the_checked_stock(backend: Backend, tenant: Tenant) -> None:
    desk, variant = await _create_desk(backend, tenant)
    stock = b"SKU,Qty\nA-1,5\nA-2,6\n"
    await desk.pull(stock, Stream.STOCK)
    await desk.run_check(variant, b"SKU,Qty\nA-1,2\n")
    assert (await desk.get_offers(variant))[PLACE] == PRICES | {"quantity": 2, "availability": "low_stock"}
    run = await desk.pull(stock, Stream.STOCK)
    assert (run.stats["offers_changed"], run.stats["unchanged"]) == (1, 1)
    assert (await desk.get_offers(variant))[PLACE]["quantity"] == 5


async def test_an_answer_without_changes_has_no_effect(backend: Backend, tenant: Tenant) -> None:
    desk, variant = await _create_desk(backend, tenant)
    check = await desk.run_check(variant, b"SKU,Qty\nA-1,7\n")
    assert check.status == CheckStatus.SUCCEEDED and await desk.list_events("offer.changed") == []
    assert (await _load_source(desk)).checked_at is None
    assert (await desk.pull(FEED)).stats["unchanged_feed"] == 1


async def test_locations_are_checked_separately(backend: Backend, tenant: Tenant) -> None:
    desk = await create_check_harness(backend, tenant)
    await desk.pull(b"SKU,Title,Price,Qty,Warehouse\nA-1,Oak chair,100,7,East\nA-1,Oak chair,100,9,West\n")
    variant = (await desk.get_variant_ids("A-1"))["A-1"]
    assert set(await desk.get_offers(variant)) == {"East", "West"}
    check = await desk.run_check(variant, b"SKU,Qty,Warehouse\nA-1,0,East\nA-1,4,North\n")
    stored = await desk.get_offers(variant)
    assert {place: offer["quantity"] for place, offer in stored.items()} == {"East": 0, "West": 9}, (
        "no offer is created"
    )
    assert check.status == CheckStatus.SUCCEEDED
    results = sorted((one.quantity, one.failure.code if one.failure else None) for one in check.results)
    assert results == [(0, None), (9, "not_stated")]
    [problem] = (await desk.get_run(check.runs[0])).problems
    assert "West" in problem.detail


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (FetchFailed("fetch_failed", "It answered 503.", wait_reason="upstream_busy"), "fetch_failed"),
        (FetchFailed("credentials_refused", "It answered 401."), "credentials_refused"),
        (ParseFailed("This is no shop."), "parse_failed"),
        (b"SKU,Qty\nB-9,4\n", "parse_failed"),
        (b"SKU,Qty\n?\n", "parse_failed"),
        (b"Wibble,Wobble\na,b\n", "parse_failed"),
        (b"", "parse_failed"),
    ],
)
async def test_errors_are_reported_and_change_nothing(
    backend: Backend, tenant: Tenant, answer: bytes | Exception, code: str
) -> None:
    desk, variant = await _create_desk(backend, tenant)
    before = await _load_source(desk)
    check = await desk.run_check(variant, answer)
    [result] = check.results
    assert check.status == CheckStatus.FAILED and isinstance(result.failure, CheckFailure)
    assert (result.failure.code, result.quantity, result.checked_at) == (code, 7, None)
    assert await _load_source(desk) == before, "a failure of one item does not affect its source"
    assert (await desk.get_run(check.runs[0])).error is not None


async def test_unsupported_sources_are_not_checked(backend: Backend, tenant: Tenant) -> None:
    desk, variant = await _create_desk(backend, tenant)
    for changes, code in (({"connector": "csv"}, "not_checkable"), ({"status": "paused"}, "source_not_active")):
        async with backend.uow.begin(tenant, builders.CALL) as tx:
            await tx[SourceStore].save(replace(desk.source, **changes))
        check = await desk.start_check(variant)
        assert (check.status, check.runs) == (CheckStatus.FAILED, [])
        assert check.results[0].failure is not None and check.results[0].failure.code == code
        assert check.results[0].quantity == 7
    for unknown in (new_id("var"), "var_x"):
        with pytest.raises(NotFound):
            await desk.start_check(unknown)
    for outsider in (Tenant(tenant.org, not tenant.livemode), await backend.tenant()):
        with pytest.raises(NotFound):
            async with backend.uow.begin(outsider, builders.CALL) as tx:
                await desk.service.start_check(tx, variant)


async def test_undecryptable_credentials_fail_the_check(backend: Backend, tenant: Tenant) -> None:
    desk, variant = await _create_desk(backend, tenant)
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[SourceStore].save_encrypted_credentials(desk.source.id, b"sealed")
    check = await desk.run_check(variant, b"SKU,Qty\nA-1,3\n")
    assert check.results[0].failure is not None and check.results[0].failure.code == "credentials_refused"
    assert desk.connectors.checked == []


async def test_one_waiting_check_serves_all_and_the_number_of_waiting_checks_is_limited(
    backend: Backend, tenant: Tenant
) -> None:
    desk, variant = await _create_desk(backend, tenant)
    first, second = await desk.start_check(variant), await desk.start_check(variant)
    assert first.id != second.id and first.runs == second.runs
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        assert await tx[RunStore].find_open(desk.source.id) is None, "it does not block a pull"
        for _number in range(MAX_OPEN_CHECKS - 1):
            await tx[RunStore].add(builders.run(desk.source.id, trigger="stock_check", stream="stock"))
    other = await desk.start_check((await desk.get_variant_ids("A-2"))["A-2"])
    assert other.results[0].failure is not None and other.results[0].failure.code == "too_many_checks"
    assert (await desk.start_check(variant)).runs == first.runs


async def test_a_check_waits_for_an_open_run_and_returns_known_stock(backend: Backend, tenant: Tenant) -> None:
    desk, variant = await _create_desk(backend, tenant)
    desk.connectors.stock = [b"SKU,Qty\nA-1,3\n"]
    idle = replace(desk.service, pauses=(0.0,), sleep=asyncio.sleep)
    check = await idle.wait_for_results(tenant, await desk.start_check(variant))
    assert (check.status, check.results[0].quantity, check.results[0].checked_at) == (CheckStatus.QUEUED, 7, None)
    await desk.process_jobs()
    again = await idle.wait_for_results(tenant, check)
    assert (again.id, again.status, again.results[0].quantity) == (check.id, CheckStatus.SUCCEEDED, 3)


async def test_a_worker_that_lost_its_lease_writes_nothing(backend: Backend, tenant: Tenant) -> None:
    desk, variant = await _create_desk(backend, tenant)
    desk.connectors.stock = [b"SKU,Qty\nA-1,3\n"]
    check = await desk.start_check(variant)
    job = await _claim_job(desk)
    with pytest.raises(LeaseLost):
        await desk.create_handler()(replace(job, attempt=job.attempt - 1), asyncio.Event())
    assert (await desk.get_offers(variant))[PLACE]["quantity"] == 7
    await desk.create_handler()(job, asyncio.Event())
    assert (await desk.get_run(check.runs[0])).status == RunStatus.SUCCEEDED


async def test_internal_errors_are_retried_and_then_reported(backend: Backend, tenant: Tenant) -> None:
    desk, variant = await _create_desk(backend, tenant)
    desk.connectors.stock = KeyError("a bug")
    check = await desk.start_check(variant)
    job = await _claim_job(desk)
    with pytest.raises(KeyError):
        await desk.create_handler()(job, asyncio.Event())
    for _ in range(2):
        await backend.dispatch.release(job, backend.now())
        job = await _claim_job(desk)
        with contextlib.suppress(KeyError):
            await desk.create_handler()(job, asyncio.Event())
    run = await desk.get_run(check.runs[0])
    assert run.error is not None and run.error.code == "internal_error"


async def _claim_job(desk: CheckHarness) -> ClaimedJob:
    where = f"{desk.tenant.org}/{build_source_lane(desk.source.id)}"
    [job] = await desk.backend.dispatch.claim(where, 1, timedelta(seconds=30))
    return job


async def test_files_change_only_the_fields_that_they_have_columns_for(backend: Backend, tenant: Tenant) -> None:
    desk = await create_check_harness(backend, tenant)
    await desk.pull(b"SKU,Title,Price,Cost,Qty,Lead time (days),Carton width (in)\nA-1,Oak chair,100,60,4,21,30\n")
    await desk.pull(b"SKU,Qty\nA-1,7\n", Stream.STOCK)
    variant = (await desk.get_variant_ids("A-1"))["A-1"]
    every = {"currency": "usd", "price": 10000, "cost": 6000, "lead_time_days": 21}
    assert (await desk.get_offers(variant))[PLACE] == every | {"quantity": 7, "availability": "in_stock"}
    await desk.pull(b"SKU,Title,Price\nA-1,Oak chair,90\n")
    await desk.pull(b"SKU,Lead time (days)\nA-1,14\n", Stream.STOCK)
    changed = {"price": 9000, "lead_time_days": 14, "quantity": 7, "availability": "in_stock"}
    assert (await desk.get_offers(variant))[PLACE] == every | changed


async def test_a_blank_cell_of_a_catalogue_removes_the_value_of_its_column(backend: Backend, tenant: Tenant) -> None:
    desk = await create_check_harness(backend, tenant)
    header = b"SKU,Title,Price,Sale price,Colour,Carton width (in)\n"
    await desk.pull(header + b"A-1,Oak chair,100,80,Red,30\nA-2,Oak table,200,150,Blue,40\n")
    variant = (await desk.get_variant_ids("A-1"))["A-1"]
    sold = {"currency": "usd", "price": 8000, "compare_at": 10000, "availability": "unknown"}
    assert (await desk.get_offers(variant))[PLACE] == sold
    await desk.pull(header + b"A-1,Oak chair,100,,,\nA-2,Oak table,200,150,Blue,40\n")
    assert (await desk.get_offers(variant))[PLACE] == {"currency": "usd", "price": 10000, "availability": "unknown"}
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        [chair] = (await tx[CatalogueStore].load_products(desk.source.id, ["A-1"]))["A-1"].variants
    assert not chair.data.keys() & {"colour", "cartons"}


async def test_a_price_removes_a_compare_at_price_that_is_not_higher(backend: Backend, tenant: Tenant) -> None:
    desk = await create_check_harness(backend, tenant)
    await desk.pull(b"SKU,Title,Price,Compare at\nA-1,Oak chair,80,100\n")
    variant = (await desk.get_variant_ids("A-1"))["A-1"]
    await desk.pull(b"SKU,Title,Price\nA-1,Oak chair,100\n")
    assert (await desk.get_offers(variant))[PLACE] == {"currency": "usd", "price": 10000, "availability": "unknown"}


async def test_a_blank_price_keeps_the_price_of_the_stock_feed(backend: Backend, tenant: Tenant) -> None:
    desk = await create_check_harness(backend, tenant)
    await desk.pull(b"SKU,Title,Price,Cost\nA-1,Oak chair,,\n")
    await desk.pull(b"SKU,Price,Qty\nA-1,100,4\n", Stream.STOCK)
    variant = (await desk.get_variant_ids("A-1"))["A-1"]
    stated = (await desk.get_offers(variant))[PLACE]
    assert stated["price"] == 10000
    for cost in (b"", b"60"):
        await desk.pull(b"SKU,Title,Price,Cost\nA-1,Oak armchair " + cost + b",," + cost + b"\n")
        assert (await desk.get_offers(variant))[PLACE].items() >= stated.items()
