"""Runs of pushes: offers only, moves, repeated problems, and interrupted attempts (docs/push.md)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from domain.catalogue.model import Stream
from domain.kernel.tenancy import Tenant
from domain.runs import chunks
from domain.runs.run_queue import build_source_lane
from domain.runs.usecases import chunk_writer
from tests.support.backend import Backend
from tests.support.push_harness import LEASE, PushHarness, create_push_harness

pytestmark = pytest.mark.asyncio
PRICE = {"amount": 499, "currency": "usd"}


def _build_chair(key: str = "A", **data: Any) -> dict[str, Any]:
    offer = {"location": "main", "price": PRICE, "quantity": 12}
    variant = {"external_id": f"{key}-1", "sku": f"{key}-1", "colour": "oak", "offers": [offer]}
    return {"product": {"external_id": key, "title": "Chair", **data}, "variants": [variant]}


def _build_stock(key: str = "A", quantity: Any = 2, **offer: Any) -> dict[str, Any]:
    offers = [{"location": "main", "quantity": quantity, **offer}]
    return {"product": {"external_id": key}, "variants": [{"external_id": f"{key}-1", "offers": offers}]}


def _list_problems(run: Any) -> set[tuple[str, str, str | None, int | None]]:
    return {(one.field, one.problem, one.external_id, one.line) for one in run.problems}


async def test_a_push_of_stock_changes_nothing_else(backend: Backend, tenant: Tenant) -> None:
    desk = await create_push_harness(backend, tenant)
    await desk.push([_build_chair()])
    run = await desk.push([_build_stock(quantity=2)])
    assert (run.stats["offers_changed"], run.problems) == (1, ())
    held = (await desk.get_products("A"))["A"]
    assert (held["data"], held["variants"]["A-1"]["data"]) == ({"title": "Chair"}, {"sku": "A-1", "colour": "oak"})
    offer = {"price": 49900, "currency": "usd", "quantity": 2, "availability": "low_stock"}
    assert held["variants"]["A-1"]["offers"] == {"main": offer}
    again = await desk.push([_build_stock(quantity=2)])
    assert again.stats["unchanged"] == 1 and "offers_changed" not in again.stats


async def test_stock_of_unknown_items_is_reported_each_time_and_creates_nothing(
    backend: Backend, tenant: Tenant
) -> None:
    desk = await create_push_harness(backend, tenant)
    await desk.push([_build_chair()])
    unknown = {"product": {"external_id": "A"}, "variants": [{"external_id": "A-9", "offers": [{"quantity": 1}]}]}
    for _ in range(2):
        run = await desk.push([_build_stock("B"), unknown])
        assert _list_problems(run) == {
            ("product.external_id", "missing", "B", 1),
            ("variants.external_id", "missing", "A", 2),
        }
        assert run.stats["problems"] == 2
    assert set((await desk.get_products("A", "B"))["A"]["variants"]) == {"A-1"}
    assert "B" not in await desk.get_products("A", "B")


async def test_the_same_records_have_another_effect_in_a_complete_batch(backend: Backend, tenant: Tenant) -> None:
    desk = await create_push_harness(backend, tenant)
    await desk.push([_build_chair(brand="Lindgren", tags=["oak"])])
    await desk.push([_build_chair()])
    assert (await desk.get_products("A"))["A"]["data"] == {"title": "Chair", "brand": "Lindgren", "tags": ["oak"]}
    await desk.push([_build_chair()], is_complete=True)
    assert (await desk.get_products("A"))["A"]["data"] == {"title": "Chair"}
    kept = await desk.push([_build_stock()], is_complete=True)
    assert "withdrawn" not in kept.stats and (await desk.get_products("A"))["A"]["data"] == {"title": "Chair"}


async def test_a_moved_item_returns_by_the_same_record(backend: Backend, tenant: Tenant) -> None:
    desk = await create_push_harness(backend, tenant)
    taking = {"product": {"external_id": "B", "title": "Set"}, "variants": [{"external_id": "A-1", "finish": "oiled"}]}
    await desk.push([_build_chair()])
    await desk.push([taking])
    held = await desk.get_products("A", "B")
    assert held["A"]["variants"] == {}
    assert held["B"]["variants"]["A-1"]["data"] == {"sku": "A-1", "colour": "oak", "finish": "oiled"}
    await desk.push([_build_chair()])
    held = await desk.get_products("A", "B")
    assert (set(held["A"]["variants"]), held["B"]["variants"]) == ({"A-1"}, {})


async def test_problems_of_a_record_are_reported_with_every_push(backend: Backend, tenant: Tenant) -> None:
    desk = await create_push_harness(backend, tenant)
    bad = [
        _build_chair("A", title=["no text"]),
        _build_stock("A", "#N/A"),
        _build_chair("B"),
        _build_stock("B", -3, price={"amount": ">50", "currency": "usd"}),
    ]
    for place, record in enumerate(bad):
        record["variants"][0]["offers"][0]["location"] = f"place {place}"
    expected = {
        ("product.title", "unreadable", "A", 1), ("variants.0.offers.0.quantity", "unreadable", "A", 2),
        ("variants.0.offers.0.quantity", "out_of_range", "B", 4), ("variants.0.offers.0.price", "unreadable", "B", 4),
    }  # fmt: skip
    for number in range(3):
        run = await desk.push([*bad, _build_chair("C", title=str(number))])
        assert (_list_problems(run), run.stats["problems"]) == (expected, 4)
    assert run.stats["unchanged"] == 2
    other = await desk.push([_build_chair("D")])
    assert other.problems == ()
    back = await desk.push(bad)
    assert _list_problems(back) == expected
    corrected = await desk.push([_build_chair("A"), *bad[2:]])
    assert {key for _, _, key, _ in _list_problems(corrected)} == {"B"}


async def test_problems_beyond_the_stored_ones_are_counted(
    backend: Backend, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from domain.runs.usecases import spool

    monkeypatch.setattr(spool, "MAX_STORED_PROBLEMS", 3)
    desk = await create_push_harness(backend, tenant)
    records = [_build_chair(f"K{number}", title=7) for number in range(8)]
    for quantity in (1, 2):
        run = await desk.push([*records, _build_chair("GOOD", title=str(quantity))])
        assert (len(run.problems), run.stats["problems"]) == (3, 8)


async def test_an_unchanged_push_repeats_its_problems(backend: Backend, tenant: Tenant) -> None:
    desk = await create_push_harness(backend, tenant)
    runs = [await desk.push([_build_chair(title=3)], is_complete=True) for _ in range(2)]
    assert runs[1].stats["unchanged_feed"] == 1
    assert _list_problems(runs[1]) == _list_problems(runs[0]) != set() and runs[1].stats["problems"] == 1


async def test_currencies_are_case_insensitive_and_replace_other_prices(backend: Backend, tenant: Tenant) -> None:
    desk = await create_push_harness(backend, tenant)
    await desk.push([_build_chair()])
    run = await desk.push([_build_stock("A", 5, cost={"amount": "9.50", "currency": "EUR"})])
    assert _list_problems(run) == {("variants.offers", "conflict", "A", 1)}
    offer = (await desk.get_products("A"))["A"]["variants"]["A-1"]["offers"]["main"]
    assert offer == {"cost": 950, "currency": "eur", "quantity": 5, "availability": "low_stock"}


async def test_stored_records_can_be_pushed_back(backend: Backend, tenant: Tenant) -> None:
    desk = await create_push_harness(backend, tenant)
    record = _build_chair(
        compliance={"stability_rating": 1.5, "country_of_origin": "SE"}, media=[{"url": "https://a.example/1.jpg"}]
    )
    record["variants"][0] |= {
        "dimensions": {"width": {"value": 80.5, "unit": "CM"}}, "weight": {"value": 7, "unit": "kg"},
        "cartons": [{"width": {"value": 90, "unit": "cm"}, "count": 2}], "axes": {"Size": "L"},
    }  # fmt: skip
    run = await desk.push([record])
    assert run.problems == ()
    held = (await desk.get_products("A"))["A"]
    variant = held["variants"]["A-1"]
    back = {
        "product": {"external_id": "A", **held["data"]},
        "variants": [
            {
                "external_id": "A-1",
                **variant["data"],
                "offers": [{"location": k, **v} for k, v in variant["offers"].items()],
            }
        ],
    }
    run = await desk.push([_simplify(back)], is_complete=True)
    assert (run.problems, run.stats.get("products_changed"), run.stats.get("offers_changed")) == ((), None, None)
    assert (await desk.get_products("A"))["A"] == held


def _simplify(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _simplify(item) for key, item in value.items()}
    return (
        [_simplify(item) for item in value]
        if isinstance(value, list)
        else value
        if isinstance(value, str | int)
        else float(value)
    )


async def _run_attempt(desk: PushHarness) -> None:
    [job, *_] = await desk.backend.dispatch.claim(build_source_lane(desk.source.id), 1, timedelta(milliseconds=1))
    await desk.create_handler()(job, asyncio.Event())


async def test_an_attempt_that_ends_between_chunks_is_taken_over(
    backend: Backend, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The merge uses stored data, so records that were merged before the interruption are not merged differently."""
    monkeypatch.setattr(chunks, "BUCKET_BYTES", 64)
    monkeypatch.setattr(chunks, "CHUNK_ROWS", {Stream.CATALOGUE: 1, Stream.STOCK: 1})
    desk = await create_push_harness(backend, tenant)
    keys = [f"K{number}" for number in range(6)]
    await desk.push([_build_chair(key, tags=["old"]) for key in keys])
    run = await desk.queue_push([_build_chair(key, tags=None, brand="B") for key in keys], batch="b", has_more=True)
    await desk.queue_push(
        [_build_stock(key, 1) for key in keys] + [_build_stock(key, 3, price=None) for key in keys], batch="b"
    )
    written, left = chunk_writer.ChunkWriter._write_once, [2]

    async def dying(self: Any, prepared: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        await written(self, prepared)

    monkeypatch.setattr(chunk_writer.ChunkWriter, "_write_once", dying)
    with pytest.raises(KeyboardInterrupt):
        await _run_attempt(desk)
    monkeypatch.setattr(chunk_writer.ChunkWriter, "_write_once", written)
    await backend.pass_time(2 * LEASE)
    await desk.process_jobs()
    ended = await desk.get_run(run.id)
    assert (ended.status, ended.stats["products_changed"], ended.stats["offers_changed"]) == ("succeeded", 6, 6)
    held = await desk.get_products(*keys)
    for key in keys:
        assert held[key]["data"] == {"title": "Chair", "brand": "B"}
        assert held[key]["variants"][f"{key}-1"]["offers"]["main"] == {"quantity": 3, "availability": "low_stock"}


async def test_concurrent_pushes_of_one_product_are_both_applied(backend: Backend, tenant: Tenant) -> None:
    desk = await create_push_harness(backend, tenant)
    await desk.push([_build_chair()])
    await asyncio.gather(
        desk.queue_push([_build_stock(quantity=1)]),
        desk.queue_push([_build_chair(brand="Lindgren")]),
        desk.queue_push([_build_chair(tags=["a"])]),
    )
    await asyncio.gather(desk.process_jobs(), desk.process_jobs())
    held = (await desk.get_products("A"))["A"]
    assert held["data"] == {"title": "Chair", "brand": "Lindgren", "tags": ["a"]}


async def test_a_complete_batch_can_be_allowed_to_withdraw_everything(backend: Backend, tenant: Tenant) -> None:
    desk = await create_push_harness(backend, tenant)
    await desk.push([_build_chair(f"K{number}") for number in range(60)], is_complete=True)
    refused = await desk.push([_build_chair("K0")], is_complete=True)
    assert refused.error is not None and refused.error.code == "shrink_refused"
    await desk.push([_build_chair("K1")])
    assert (await desk.push([_build_chair("K0", brand="B")], is_complete=True, accept_shrink=True)).stats[
        "withdrawn"
    ] == 59


async def test_another_tenants_source_is_merged_by_itself(backend: Backend, tenant: Tenant) -> None:
    desk, other = await create_push_harness(backend, tenant), await create_push_harness(backend, await backend.tenant())
    await desk.push([_build_chair(brand="Lindgren")])
    await other.push([_build_chair()])
    run = await other.push([_build_stock("A", 1)])
    assert run.problems == ()
    assert (await other.get_products("A"))["A"]["data"] == {"title": "Chair"}
    assert (await desk.get_products("A"))["A"]["variants"]["A-1"]["offers"]["main"]["quantity"] == 12
