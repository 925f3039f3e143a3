"""Record merges: any sequence of pushes has the result of the reference model (docs/push.md)."""

import random
from typing import Any

import pytest

from domain.kernel.tenancy import Tenant
from tests.contract.push_model import PushModel
from tests.support.backend import Backend
from tests.support.push_harness import create_push_harness

pytestmark = pytest.mark.asyncio


def _choose_fields(dice: random.Random, **choices: Any) -> dict[str, Any]:
    """Choose some of the fields with one of their values."""
    return {name: dice.choice(values) for name, values in choices.items() if dice.random() < 0.4}


def _build_offer(dice: random.Random) -> dict[str, Any]:
    money = [{"amount": amount, "currency": currency} for amount in (1, 9.5) for currency in ("usd", "EUR")]
    words = ["in_stock", "preorder", "discontinued", "out_of_stock", None]
    offer = _choose_fields(
        dice, quantity=[0, 3, 40, None], availability=words, cost=[*money[::2], None], lead_time_days=[7, None],
        incoming=[[{"quantity": 5}], [], None],
    )  # fmt: skip
    offer |= _choose_fields(
        dice,
        price=[one for one in money if one["currency"] == offer.get("cost", one)["currency"]]
        if offer.get("cost")
        else [*money, None],
    )
    return offer | _choose_fields(dice, location=["east"])


def _build_variant(dice: random.Random, key: str, number: int, stock: bool, only: bool) -> dict[str, Any]:
    fields = {} if stock else _choose_fields(
        dice, sku=["S1", "S2", None], colour=["oak", "ash", None], materials=[["oak"], ["ash", "elm"], [], None],
        axes=[{"Size": "L"}, {"Size": None, "Seat": "2"}, {}, None], rug=[{"shape": "round"}, {"nominal": "5x8", "shape": None}],
        discontinued=[True, False, None],
    )  # fmt: skip
    offers: dict[str, dict[str, Any]] = {}
    for _ in range(dice.choice((0, 1, 1, 2))):
        offer = _build_offer(dice)
        offers[offer.get("location", "default")] = offer
    given: dict[str, Any] = {"offers": None} if only and dice.random() < 0.2 else {"offers": list(offers.values())}
    return {"external_id": f"{key}-{number}", **fields, **given}


def _build_record(dice: random.Random, only: bool) -> dict[str, Any]:
    key, stock = dice.choice("ABC"), dice.random() < 0.3
    fields = {} if stock else _choose_fields(
        dice, title=["Chair", "Table", None], tags=[["a"], ["b", "c"], [], None],
        compliance=[{"sturdy_act": True}, {"sturdy_act": None, "country_of_origin": "SE"}, None],
        discontinued=[True, False, None],
    )  # fmt: skip
    numbers = dice.sample((1, 2, 3), dice.choice((0, 1, 1, 2)))
    variants = (
        None
        if only and dice.random() < 0.15
        else [_build_variant(dice, key, number, stock, only) for number in numbers]
    )
    return {"product": {"external_id": key, **fields}, "variants": variants}


@pytest.mark.parametrize("seed", range(3))
async def test_any_sequence_of_pushes_has_the_result_of_the_model(backend: Backend, tenant: Tenant, seed: int) -> None:
    dice, model, desk = random.Random(seed), PushModel(), await create_push_harness(backend, tenant)
    for number in range(14):
        sizes = dice.choice(((1,), (1,), (2,), (4,), (2, 2), (1, 3)))
        parts = [[_build_record(dice, sizes == (1,)) for _ in range(size)] for size in sizes]
        complete = dice.random() < 0.25
        for part in parts[:-1]:
            await desk.queue_push(part, batch=str(number), has_more=True)
        run = await desk.push(parts[-1], batch=str(number), is_complete=complete)
        assert run.status == "succeeded", run
        records = [record for part in parts for record in part]
        model.push(records, complete)
        held, expected = await desk.get_products("A", "B", "C"), model.build_contents()
        for key in expected.keys() | held.keys():
            assert held.get(key) == expected.get(key), (number, complete, key, records)
