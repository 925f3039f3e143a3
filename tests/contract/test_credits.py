"""Credit (domain/credits): reservations, settlement, refunds, expiry and events, against a simple model."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from adapters.api_json.credits import render_balance, render_lot
from adapters.api_json.event_schemas import EVENT_SCHEMAS
from adapters.postgres.credits import PostgresCreditRateRegistry, PostgresCreditUpkeep
from domain.credits.model import CREDIT_SETTINGS_ID, CreditEntry, CreditRate
from domain.credits.ports import CreditStore
from domain.credits.usecases.ledger import (
    RESERVATION_TIMEOUT,
    CreditExpirer,
    CreditLedger,
    CreditSettingsService,
)
from domain.kernel import retention
from domain.kernel.errors import PreconditionFailed
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from entrypoints.operations.validation import Validator
from ports.language_models import ModelUsage
from ports.unit_of_work import Tx, UnitOfWork
from tests.contract.test_usage import advance_transaction as advance_session
from tests.support import builders
from tests.support.backend import Backend
from tests.support.closed_schemas import close_schema

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
LEDGER = CreditLedger(render_balance, render_lot)
YEAR = timedelta(days=365)


class _BackendClock:
    def __init__(self, backend: Backend) -> None:
        self.now = backend.now


def advance_transaction(tx: Tx, by: timedelta) -> None:
    advance_session(tx, by)
    tx.now += by


async def change_settings(uow: UnitOfWork, tenant: Tenant, **changes: object) -> None:
    async with uow.begin(tenant, CALL) as tx:
        await CreditSettingsService().update(tx, CREDIT_SETTINGS_ID, {"auto_spend": True, **changes})


async def add(
    uow: UnitOfWork, tenant: Tenant, micros: int, after: timedelta = YEAR, reference: str | None = None
) -> str:
    reference = reference or new_id("crp")
    async with uow.begin(tenant, CALL) as tx:
        await LEDGER.add_lot(tx, "purchase", micros, reference, tx.now + after)
    return reference


async def list_entries(tx: Tx) -> Sequence[CreditEntry]:
    """Return all entries, oldest first, page by page."""
    entries: list[CreditEntry] = []
    key = None
    while True:
        page = await tx[CreditStore].page_entries(PageRequest(7, key))
        entries += page.items
        if not page.has_more:
            return entries[::-1]
        key = page.next_key


async def check_sums(uow: UnitOfWork, tenant: Tenant) -> tuple[int, int]:
    """Check that entries, lots and balance agree; return the available and reserved credit."""
    async with uow.begin(tenant, CALL) as tx:
        entries, balance = await list_entries(tx), await LEDGER.get_balance(tx)
    total, by_lot = 0, Counter[str]()
    for number, entry in enumerate(entries, start=1):
        total += entry.amount_micros
        by_lot[entry.lot] += entry.amount_micros
        assert (entry.number, entry.balance_micros) == (number, total) and min(total, by_lot[entry.lot]) >= 0
    assert len({entry.id for entry in entries}) == len(entries)
    assert total == balance.available_micros
    assert {lot: amount for lot, amount in by_lot.items() if amount} == {
        lot.id: lot.remaining_micros for lot in balance.lots
    }
    return balance.available_micros, balance.reserved_micros


async def test_unused_credit_is_released_and_calls_can_be_repeated(uow: UnitOfWork, tenant: Tenant) -> None:
    await change_settings(uow, tenant)
    late, early = await add(uow, tenant, 100, 2 * YEAR), await add(uow, tenant, 30)
    await add(uow, tenant, 999, reference=late)
    assert await check_sums(uow, tenant) == (130, 0)
    for _ in range(2):
        async with uow.begin(tenant, CALL) as tx:
            assert await LEDGER.reserve(tx, "use_1", 50)
        assert await check_sums(uow, tenant) == (80, 50)
    for _ in range(2):
        async with uow.begin(tenant, CALL) as tx:
            assert await LEDGER.settle(tx, "use_1", 40) == 40
            await LEDGER.release(tx, "use_1")
            assert await LEDGER.reserve(tx, "use_1", 50)
        assert await check_sums(uow, tenant) == (90, 0)
    async with uow.begin(tenant, CALL) as tx:
        kinds = [(entry.kind, entry.amount_micros, entry.reference) for entry in await list_entries(tx)]
        assert await LEDGER.settle(tx, "use_unknown", 5) == 0
    assert kinds[:2] == [("purchase", 100, late), ("purchase", 30, early)]
    assert kinds[2:] == [("spend", -30, "use_1"), ("spend", -20, "use_1"), ("release", 10, "use_1")]


async def test_days_have_their_last_balance_and_what_was_spent(uow: UnitOfWork, tenant: Tenant) -> None:
    await change_settings(uow, tenant)
    async with uow.begin(tenant, CALL) as tx:
        first = tx.now
        await LEDGER.add_lot(tx, "purchase", 100, "crp_1", first + YEAR)
        advance_transaction(tx, timedelta(days=2))
        await LEDGER.reserve(tx, "use_1", 50)
        await LEDGER.settle(tx, "use_1", 20)
        await LEDGER.add_lot(tx, "purchase", 5, "crp_2", first + YEAR)
        days = await tx[CreditStore].list_days(first)
        assert [(day.balance_micros, day.change_micros, day.spent_micros) for day in days] == [
            (100, 100, 0),
            (85, -15, 20),
        ]
        assert [day.day for day in days] == [first.date(), tx.now.date()]
        assert await tx[CreditStore].list_days(first + timedelta(days=1)) == [*days[1:]]


async def test_a_released_reservation_spends_nothing(uow: UnitOfWork, tenant: Tenant) -> None:
    await change_settings(uow, tenant)
    await add(uow, tenant, 100)
    async with uow.begin(tenant, CALL) as tx:
        assert await LEDGER.reserve(tx, "use_1", 100)
        await LEDGER.release(tx, "use_1")
        assert await LEDGER.settle(tx, "use_1", 100) == 0
        assert not await LEDGER.reserve(tx, "use_1", 100)
    assert await check_sums(uow, tenant) == (100, 0)


async def test_settings_and_missing_credit_refuse_reservations(uow: UnitOfWork, tenant: Tenant) -> None:
    await add(uow, tenant, 100)
    async with uow.begin(tenant, CALL) as tx:
        assert not await LEDGER.reserve(tx, "use_1", 1), "credit is not spent without consent"
    await change_settings(uow, tenant, monthly_budget_micros=60)
    async with uow.begin(tenant, CALL) as tx:
        assert await LEDGER.reserve_all(tx, [("use_1", 61), ("use_2", 50), ("use_3", 11)]) == [False, True, False]
        assert await LEDGER.settle(tx, "use_2", 20) == 20
        assert await LEDGER.reserve(tx, "use_3", 40)
        assert not await LEDGER.reserve(tx, "use_4", 1)
    await change_settings(uow, tenant, monthly_budget_micros=None)
    async with uow.begin(tenant, CALL) as tx:
        assert not await LEDGER.reserve(tx, "use_4", 41)
        assert await LEDGER.reserve(tx, "use_4", 40)
    async with uow.begin(tenant, CALL) as tx:
        assert not await LEDGER.reserve(tx, "use_5", 1)
        assert await LEDGER.settle_all(tx, [("use_3", 90), ("use_4", 10)]) == [40, 10]
    assert await check_sums(uow, tenant) == (30, 0)


async def test_the_budget_starts_again_each_month(uow: UnitOfWork, tenant: Tenant) -> None:
    await change_settings(uow, tenant, monthly_budget_micros=60)
    await add(uow, tenant, 1_000)
    async with uow.begin(tenant, CALL) as tx:
        assert await LEDGER.reserve(tx, "use_1", 60)
    async with uow.begin(tenant, CALL) as tx:
        advance_transaction(tx, timedelta(days=32))
        assert await LEDGER.reserve(tx, "use_2", 60) and not await LEDGER.reserve(tx, "use_3", 1)


async def test_refunds_do_not_depend_on_their_order(uow: UnitOfWork, tenant: Tenant) -> None:
    await change_settings(uow, tenant)
    for totals in ((30, 80), (80, 30)):
        reference = await add(uow, tenant, 100)
        for total in (*totals, *totals):
            async with uow.begin(tenant, CALL) as tx:
                removed = await LEDGER.set_refunded(tx, reference, total)
        assert removed == 80
    assert await check_sums(uow, tenant) == (40, 0)
    early = new_id("crp")
    async with uow.begin(tenant, CALL) as tx:
        assert await LEDGER.set_refunded(tx, early, 25) == 0
    await add(uow, tenant, 100, reference=early)
    assert await check_sums(uow, tenant) == (115, 0)
    async with uow.begin(tenant, CALL) as tx:
        assert await LEDGER.reserve(tx, "use_1", 100)
        assert await LEDGER.set_refunded(tx, early, 100) == 40, "spent and reserved credit remains"
        await LEDGER.release(tx, "use_1")
        assert await LEDGER.set_refunded(tx, early, 100) == 40
    assert await check_sums(uow, tenant) == (100, 0)


async def test_a_late_settlement_spends_what_is_available(backend: Backend, uow: UnitOfWork, tenant: Tenant) -> None:
    await change_settings(uow, tenant)
    await add(uow, tenant, 100)
    async with uow.begin(tenant, CALL) as tx:
        assert await LEDGER.reserve(tx, "use_1", 60) and await LEDGER.reserve(tx, "use_2", 40)
        now = tx.now
    async with uow.begin(tenant, CALL) as tx:
        advance_transaction(tx, RESERVATION_TIMEOUT)
        assert tenant in await PostgresCreditUpkeep(backend.pool).list_due(tx.now, now, 1_000_000)
        await LEDGER.process_expiry(tx)
        assert (await LEDGER.get_balance(tx)).available_micros == 100
    assert tenant not in await PostgresCreditUpkeep(backend.pool).list_due(now + RESERVATION_TIMEOUT, now, 1_000_000)
    async with uow.begin(tenant, CALL) as tx:
        advance_transaction(tx, RESERVATION_TIMEOUT)
        assert await LEDGER.settle_all(tx, [("use_1", 70), ("use_2", 40), ("use_1", 70)]) == [70, 30, 70]
    assert await check_sums(uow, tenant) == (0, 0)
    await PostgresCreditUpkeep(backend.pool).delete_reservations(now + retention.CREDIT_RESERVATIONS + YEAR)
    async with uow.begin(tenant, CALL) as tx:
        assert await LEDGER.settle(tx, "use_1", 70) == 0


async def test_an_aborted_transaction_changes_nothing(uow: UnitOfWork, tenant: Tenant) -> None:
    await change_settings(uow, tenant)
    await add(uow, tenant, 100)
    with pytest.raises(ZeroDivisionError):
        async with uow.begin(tenant, CALL) as tx:
            assert await LEDGER.reserve(tx, "use_1", 100)
            raise ZeroDivisionError
    async with uow.begin(tenant, CALL) as tx:
        assert await LEDGER.reserve(tx, "use_1", 100)
    assert await check_sums(uow, tenant) == (0, 100)


async def test_concurrent_reservations_do_not_exceed_the_credit(uow: UnitOfWork, tenant: Tenant) -> None:
    await change_settings(uow, tenant)
    await add(uow, tenant, 305, YEAR)
    await add(uow, tenant, 200, 2 * YEAR)

    async def spend(number: int) -> int:
        async with uow.begin(tenant, CALL) as tx:
            if not await LEDGER.reserve(tx, f"use_{number}", 10):
                return 0
        await asyncio.sleep(random.random() / 100)
        async with uow.begin(tenant, CALL) as tx:
            return await LEDGER.settle(tx, f"use_{number}", 5 + number % 10)

    repeated = [number for number in range(100) for _ in range(2)]
    random.shuffle(repeated)
    await asyncio.gather(*map(spend, repeated))
    available, reserved = await check_sums(uow, tenant)
    async with uow.begin(tenant, CALL) as tx:
        spent = Counter[str]()
        for entry in await list_entries(tx):
            if entry.kind in ("spend", "release"):
                spent[entry.reference] -= entry.amount_micros
    assert reserved == 0 and available == 505 - spent.total()
    assert all(amount <= 5 + int(id.removeprefix("use_")) % 10 for id, amount in spent.items())
    assert len(spent) >= 50


async def test_events_are_sent_once(backend: Backend, uow: UnitOfWork, tenant: Tenant) -> None:
    await change_settings(uow, tenant, low_balance_micros=50)
    await add(uow, tenant, 100, timedelta(days=20))
    types: list[str] = []

    async def spend(reference: str, reserved: int, cost: int) -> None:
        for _ in range(2):
            async with uow.begin(tenant, CALL) as tx:
                await LEDGER.reserve(tx, reference, reserved)
                types.extend(event.type for event in tx.recorded.events)
        for _ in range(2):
            async with uow.begin(tenant, CALL) as tx:
                await LEDGER.settle(tx, reference, cost)
                types.extend(event.type for event in tx.recorded.events)

    await spend("use_1", 90, 50)
    assert types == [], "what is reserved is not used up"
    expirer = CreditExpirer(uow, PostgresCreditUpkeep(backend.pool), _BackendClock(backend), LEDGER)
    for _ in range(2):
        await expirer.process_expiry()
    await spend("use_2", 50, 10)
    await spend("use_3", 40, 40)
    assert types == ["credits.low", "credits.exhausted"]
    await add(uow, tenant, 60)
    await spend("use_4", 60, 60)
    assert types == ["credits.low", "credits.exhausted", "credits.low", "credits.exhausted"]
    async with backend.pool.connect_as_owner() as connection:
        rows = await connection.fetch_rows("SELECT type, body FROM events WHERE org = %(org)s", {"org": tenant.org})
    assert Counter(type for type, _ in rows) == {"credits.expiring": 1, "credits.low": 2, "credits.exhausted": 2}
    for type, body in rows:
        schema = Validator(close_schema(dict(EVENT_SCHEMAS[type])))
        assert list(schema.find_field_errors(json.loads(bytes(body)))) == []


async def test_expired_credit_cannot_be_spent(uow: UnitOfWork, tenant: Tenant) -> None:
    await change_settings(uow, tenant)
    await add(uow, tenant, 100, timedelta(days=1))
    await add(uow, tenant, 10)
    async with uow.begin(tenant, CALL) as tx:
        assert await LEDGER.reserve(tx, "use_1", 60)
    async with uow.begin(tenant, CALL) as tx:
        advance_transaction(tx, timedelta(days=1))
        assert not await LEDGER.reserve(tx, "use_2", 11)
        await LEDGER.process_expiry(tx)
        assert [lot.remaining_micros for lot in (await LEDGER.get_balance(tx)).lots] == [10]
    assert await check_sums(uow, tenant) == (10, 0)


async def test_settings_have_versions_and_are_audited(uow: UnitOfWork, tenant: Tenant) -> None:
    service = CreditSettingsService()
    async with uow.begin(tenant, CALL) as tx:
        first = await service.update(tx, CREDIT_SETTINGS_ID, {"top_up_credits": 500}, 1)
        assert [change.after for change in tx.recorded.changes] == [{"top_up_credits": 500}]
    async with uow.begin(tenant, CALL) as tx:
        with pytest.raises(PreconditionFailed):
            await service.update(tx, CREDIT_SETTINGS_ID, {"top_up_credits": 600}, 1)
        assert await service.update(tx, CREDIT_SETTINGS_ID, {"top_up_credits": 600}, first.version)
        assert (await LEDGER.get_balance(tx)).settings.top_up_credits == 600


@dataclass
class _Model:
    """Credit as lots [remaining, expiry], and open reservations [(lot, amount)] by reference."""

    lots: dict[str, list[int]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    parts: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    due: dict[str, int] = field(default_factory=dict)
    refunds: dict[str, list[int]] = field(default_factory=dict)

    def expire(self, now: int) -> None:
        for reference, state in self.states.items():
            if state == "open" and self.due[reference] <= now:
                self.finish(reference, 0, "expired")
        for lot in self.lots.values():
            if lot[1] <= now:
                lot[0] = 0

    def available(self) -> int:
        return sum(remaining for remaining, _ in self.lots.values())

    def take(self, rest: int) -> list[tuple[str, int]]:
        parts = []
        for name, lot in sorted(self.lots.items(), key=lambda item: item[1][1]):
            part = min(rest, lot[0])
            if part:
                lot[0] -= part
                rest -= part
                parts.append((name, part))
        return parts

    def reserve(self, reference: str, micros: int, now: int) -> bool:
        state = self.states.get(reference)
        if state in (None, "expired"):
            if micros > self.available():
                return False
            self.parts[reference], self.states[reference] = self.take(micros), "open"
            self.due[reference] = now + 15
        return self.states[reference] != "released"

    def finish(self, reference: str, cost: int, state: str) -> int:
        before = self.states.get(reference)
        if before == "open" or (before == "expired" and state == "settled"):
            kept = []
            for name, amount in self.parts[reference]:
                part = min(amount, cost)
                self.lots[name][0] += amount - part
                cost -= part
                kept.append((name, part))
            self.parts[reference], self.states[reference] = kept + self.take(cost), state
        return sum(part for _, part in self.parts.get(reference, ()))

    def refund(self, reference: str, total: int) -> int:
        claimed, removed = self.refunds.setdefault(reference, [0, 0])
        part = min(max(total - claimed, 0), self.lots[reference][0])
        self.lots[reference][0] -= part
        self.refunds[reference] = [max(claimed, total), removed + part]
        return removed + part


@pytest.mark.parametrize("seed", range(12))
async def test_random_histories_agree_with_the_model(uow: UnitOfWork, tenant: Tenant, seed: int) -> None:
    chance, model, minute = random.Random(seed), _Model(), 0
    await change_settings(uow, tenant)
    base: datetime | None = None
    for step in range(150):
        minute += chance.choice((0, 0, 1, 5))
        async with uow.begin(tenant, CALL) as tx:
            base = base or tx.now
            advance_transaction(tx, base + timedelta(minutes=minute) - tx.now)
            reference, amount = f"use_{chance.randrange(step // 3 + 1)}", chance.randrange(1, 60)
            model.expire(minute)
            match chance.randrange(7):
                case 0:
                    purchase, life = f"crp_{step}", chance.randrange(5, 200) * 10 + len(model.lots) % 10
                    await LEDGER.add_lot(
                        tx, "purchase", amount * 3, purchase, base + timedelta(minutes=minute + life, milliseconds=step)
                    )
                    model.lots[purchase] = [amount * 3, minute + life + step / 1e6]  # type: ignore[list-item]
                case 1 if model.lots:
                    purchase = chance.choice(sorted(model.lots))
                    assert await LEDGER.set_refunded(tx, purchase, amount) == model.refund(purchase, amount)
                case 2 | 3:
                    assert await LEDGER.reserve(tx, reference, amount) == model.reserve(reference, amount, minute)
                case 4 | 5:
                    assert await LEDGER.settle(tx, reference, amount) == model.finish(reference, amount, "settled")
                case _:
                    await LEDGER.release(tx, reference)
                    model.finish(reference, 0, "released")
            await LEDGER.process_expiry(tx)
            model.expire(minute)
            balance = await LEDGER.get_balance(tx)
            assert balance.available_micros == model.available(), step
    await check_sums(uow, tenant)


async def test_a_stored_rate_determines_the_charge(backend: Backend, uow: UnitOfWork, tenant: Tenant) -> None:
    model = f"model-{new_id('use')}"
    usage = ModelUsage(model, 1_001, 10, 77)
    registry = PostgresCreditRateRegistry(backend.pool)
    async with uow.begin(tenant, CALL) as tx:
        assert await LEDGER.compute_charge(tx, usage) == 77
        await registry.add_rate(CreditRate(model, 300, 2_400, tx.now + timedelta(days=31)))
        assert await LEDGER.compute_charge(tx, usage) == 77
        await registry.add_rate(CreditRate(model, 200, 1_000, tx.now - timedelta(days=1)))
        assert await LEDGER.compute_charge(tx, usage) == 211
