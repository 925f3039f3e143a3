"""Demand (domain/demand/ports.py): counting, release of cells, and an attack on the statistics."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

import pytest

from adapters.postgres import demand
from adapters.postgres.demand import PostgresDemandUpkeep
from adapters.postgres.erasure import PostgresErasure
from domain.demand.model import NETWORK, PERIODS, DemandDay, SignalCount, SignalType, find_release_bound
from domain.demand.ports import DemandStore, VendorStatsStore
from domain.demand.statistics import VendorStats
from domain.demand.usecases.release import DemandReleaser
from domain.demand.usecases.statistics import VendorStatsService
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Organisation
from tests.support import builders
from tests.support.backend import Backend
from tests.support.disclosure_attack import Atom, LinearForm, find_disclosed

pytestmark = pytest.mark.asyncio
SERVICE = VendorStatsService()
QUERY_KINDS = {NETWORK: (SignalType.SEARCH_MISS,)}
KINDS = (SignalType.VIEW, SignalType.ORDER)
CellKey = tuple[date, SignalType, str]


class _BackendClock:
    def __init__(self, backend: Backend) -> None:
        self.now = backend.now


def create_releaser(backend: Backend, upkeep: PostgresDemandUpkeep | None = None) -> DemandReleaser:
    return DemandReleaser(backend.uow, upkeep or PostgresDemandUpkeep(backend.pool), _BackendClock(backend))


async def add_counts(backend: Backend, org: str, *counts: SignalCount, livemode: bool = True) -> None:
    async with backend.uow.begin(Tenant(org, livemode), builders.CALL) as tx:
        await tx[DemandStore].add_counts(counts)


async def read_stats(
    backend: Backend, vendor: Organisation, period: str = "7d", *, livemode: bool = True
) -> VendorStats:
    async with backend.uow.begin_reading(Tenant(vendor.id, livemode)) as tx:
        return await SERVICE.get_stats(tx, period)


def count_signals(backend: Backend, vendor: Organisation, subject: str, amount: int) -> SignalCount:
    """Return a count of views in the current hour."""
    hour = backend.now().replace(minute=0, second=0, microsecond=0)
    return SignalCount(hour, vendor.id, subject, SignalType.VIEW, amount)


async def close_day(backend: Backend) -> None:
    """Advance the time until the current day is released."""
    today = backend.now().date()
    while find_release_bound(backend.now()) <= today:
        await backend.pass_time(timedelta(hours=1))


@pytest.mark.settable_clock
async def test_ids_of_signals_are_recognised_for_a_day(backend: Backend) -> None:
    tenant = await backend.tenant()

    async def add(*ids: str, livemode: bool = True) -> set[str]:
        async with backend.uow.begin(Tenant(tenant.org, livemode), builders.CALL) as tx:
            return {*await tx[DemandStore].add_signal_ids(ids)}

    assert await add("a", "b") == {"a", "b"}
    assert await add("b", "c") == {"c"}
    assert await add("a", livemode=False) == {"a"}
    await backend.pass_time(timedelta(hours=23, minutes=59))
    assert await add("a") == set()
    await backend.pass_time(timedelta(minutes=1))
    assert await add("a") == {"a"}
    await backend.pass_time(timedelta(hours=24))
    await create_releaser(backend).delete_expired()
    assert await add("a", "b") == {"a", "b"}


@pytest.mark.settable_clock
async def test_a_cell_requires_five_other_organisations(backend: Backend) -> None:
    vendor = await backend.organisation(kind="vendor")
    shops = [(await backend.organisation()).id for _ in range(5)]
    known, rare = new_id("prod"), new_id("prod")
    for shop in shops:
        await add_counts(backend, shop, count_signals(backend, vendor, known, 2))
    for shop in (*shops[:4], vendor.id):
        await add_counts(backend, shop, count_signals(backend, vendor, rare, 3))
        await add_counts(backend, shop, count_signals(backend, vendor, known, 50), livemode=False)
    await close_day(backend)
    await create_releaser(backend).release_days()
    stats, sandbox = await read_stats(backend, vendor), await read_stats(backend, vendor, livemode=False)
    assert (stats.totals["view"], stats.organisations, stats.suppressed) == (10, 5, True)
    assert (sandbox.totals["view"], sandbox.organisations, sandbox.suppressed) == (0, 0, True)
    async with backend.uow.begin_reading(Tenant(vendor.id, True)) as tx:
        page = await SERVICE.page_products(tx, "7d", PageRequest())
    assert [(row.product, row.view) for row in page.items] == [(known, 10)]


@pytest.mark.settable_clock
async def test_products_are_paged_and_expired_cells_are_deleted(backend: Backend) -> None:
    vendor, products = await backend.organisation(kind="vendor"), sorted(new_id("prod") for _ in range(5))
    for _ in range(5):
        shop = (await backend.organisation()).id
        await add_counts(backend, shop, *(count_signals(backend, vendor, product, 1) for product in products))
    await close_day(backend)
    await create_releaser(backend).release_days()
    listed, request = [], PageRequest(2)
    async with backend.uow.begin_reading(Tenant(vendor.id, True)) as tx:
        while request.key is not None or not listed:
            page = await SERVICE.page_products(tx, "30d", request)
            listed += [row.product for row in page.items]
            request = PageRequest(2, page.next_key)
    assert listed == products[::-1]
    await backend.pass_time(timedelta(days=101))
    await create_releaser(backend).delete_expired()
    async with backend.uow.begin_reading(Tenant(vendor.id, True)) as tx:
        assert await tx[VendorStatsStore].sum_by_day(SignalType.VIEW, date(2026, 1, 1), date(2028, 1, 1)) == []


async def test_subjects_are_read_in_pages(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "_PAGE_SUBJECTS", 2)
    vendor, subjects = await backend.organisation(kind="vendor"), [new_id("prod") for _ in range(5)]
    for number in range(6):
        shop = (await backend.organisation()).id
        await add_counts(backend, shop, *(count_signals(backend, vendor, one, 1) for one in subjects[number == 5 :]))
    day = DemandDay(vendor.id, True, backend.now().date())
    found = await PostgresDemandUpkeep(backend.pool).summarise_subjects(day, SignalType.VIEW)
    assert {subject: one.organisations for subject, one in found.items()} == dict.fromkeys(subjects, 6) | {
        subjects[0]: 5
    }


class CrashingUpkeep(PostgresDemandUpkeep):
    """Upkeep that crashes after cells were stored and before signals are deleted."""

    is_crashing = True

    async def remove_signals(self, day: DemandDay) -> None:
        if self.is_crashing:
            raise ConnectionError("crashed")
        await super().remove_signals(day)


@pytest.mark.settable_clock
async def test_days_are_released_once_despite_crashes_and_late_signals(backend: Backend) -> None:
    vendor, product = await backend.organisation(kind="vendor"), new_id("prod")
    shops = [(await backend.organisation()).id for _ in range(6)]
    count = count_signals(backend, vendor, product, 2)
    for shop in shops[:5]:
        await add_counts(backend, shop, count)
    await close_day(backend)
    upkeep = CrashingUpkeep(backend.pool)
    await create_releaser(backend, upkeep).release_days()
    assert (await read_stats(backend, vendor)).totals["view"] == 10
    late = SignalCount(count.hour, vendor.id, new_id("prod"), SignalType.VIEW, 1)
    for shop in shops:
        await add_counts(backend, shop, late)
    await add_counts(backend, shops[5], count)
    upkeep.is_crashing = False
    await asyncio.gather(*(create_releaser(backend, upkeep).release_days() for _ in range(3)))
    assert (await read_stats(backend, vendor)).totals["view"] == 10
    assert await upkeep.list_days(date.max) == []


@pytest.mark.settable_clock
async def test_no_cells_are_stored_for_a_deleted_vendor(backend: Backend) -> None:
    vendor = builders.organisation(kind="vendor")
    for _ in range(5):
        await add_counts(backend, (await backend.organisation()).id, count_signals(backend, vendor, "prod_1", 1))
    await close_day(backend)
    await create_releaser(backend).release_days()
    assert (await read_stats(backend, vendor)).totals["view"] == 0


@dataclass
class DemandHistory:
    """Random signals of retailers, the cells that the rule permits, and the answers that a vendor collects.

    The cells are computed from the definition of the rule, independently of the implementation.
    """

    backend: Backend
    vendor: Organisation
    shops: Sequence[str]
    choice: random.Random
    amounts: dict[Atom, int] = field(default_factory=dict)
    cells: dict[CellKey, set[Atom]] = field(default_factory=dict)
    answers: list[tuple[str, LinearForm, int]] = field(default_factory=list)

    async def add_day(self, subjects_by_vendor: Mapping[str, Sequence[str]]) -> None:
        """Store random signals of the current day, and compute its cells."""
        today = self.backend.now().date()
        hour = datetime.combine(today, time(self.choice.randrange(24)), UTC)
        counts = defaultdict(list)
        groups: dict[tuple[SignalType, str], set[Atom]] = defaultdict(set)
        for vendor, subjects in subjects_by_vendor.items():
            for kind in QUERY_KINDS.get(vendor, KINDS):
                for subject in subjects:
                    share = self.choice.choice((0.1, 0.4, 0.6, 0.9))
                    for shop in self.shops:
                        if self.choice.random() < share:
                            amount = self.choice.choice((1, 30, 1_000)) * self.choice.randint(1_000_000, 2_000_000)
                            atom = (shop, str(today), kind, subject)
                            self.amounts[atom] = amount
                            groups[kind, subject].add(atom)
                            counts[shop].append(SignalCount(hour, vendor, subject, kind, amount))
        for shop, signals in counts.items():
            await add_counts(self.backend, shop, *signals)
        rests: dict[SignalType, set[Atom]] = defaultdict(set)
        for (kind, subject), atoms in groups.items():
            if released := self.select_permitted(atoms):
                self.cells[today, kind, subject] = released
            else:
                rests[kind] |= atoms
        for kind, atoms in rests.items():
            self.cells[today, kind, ""] = self.select_permitted(atoms)

    def select_permitted(self, atoms: set[Atom]) -> set[Atom]:
        """Return the signals of the cell that are released: all, or those of all but the largest organisation, or none.

        Five organisations or more must be in the cell, and the p% rule with p = 20 must hold. Without the largest
        organisation, the second largest of the others counts as much as the largest of them.
        """
        amount_by_shop: Counter[str] = Counter()
        for atom in atoms:
            amount_by_shop[atom[0]] += self.amounts[atom]
        shops = [shop for shop, _ in amount_by_shop.most_common()]
        first, second, *others = [*sorted(amount_by_shop.values(), reverse=True), 0, 0]
        if len(shops) >= 5 and sum(others) >= first / 5:
            return atoms
        if len(shops) >= 6 and sum(others) - second >= second / 5:
            return {atom for atom in atoms if atom[0] != shops[0]}
        return set()

    def build_form(self, since: date, until: date, kind: str, subject: str | None = None) -> LinearForm:
        """Return the sum of the cells of a period as a linear form; without a subject, of all subjects."""
        return {
            atom: 1
            for (day, cell_kind, cell_subject), atoms in self.cells.items()
            if since <= day <= until and cell_kind == kind and subject in (None, cell_subject)
            for atom in atoms
        }

    def note(self, name: str, value: int | None, form: LinearForm) -> None:
        """Add an answer, whose value must be that of the linear form."""
        assert (value or 0) == sum(self.amounts[atom] * factor for atom, factor in form.items()), name
        if value:
            self.answers.append((name, form, value))

    async def collect_answers(self) -> None:
        """Add every answer that a vendor can get today."""
        until = find_release_bound(self.backend.now()) - timedelta(days=1)
        async with self.backend.uow.begin_reading(Tenant(self.vendor.id, True)) as tx:
            for period, days in PERIODS.items():
                since = until - timedelta(days=days - 1)
                stats = await SERVICE.get_stats(tx, period)
                assert stats.organisations % 5 == 0
                for kind, value in stats.totals.items():
                    self.note(f"total {kind}", value, self.build_form(since, until, kind))
                for query in stats.top_queries:
                    form = self.build_form(since, until, SignalType.SEARCH_MISS, query.query)
                    self.note(f"query {query.query}", query.count, form)
                for row in (await SERVICE.page_products(tx, period, PageRequest(100))).items:
                    for kind in KINDS:
                        form = self.build_form(since, until, kind, row.product)
                        self.note(f"product {kind}", getattr(row, kind), form)
                for kind in SignalType:
                    for interval, length in (("day", 1), ("week", 7)):
                        series = await SERVICE.get_series(tx, kind, period, interval)
                        for point in series.points:
                            last = point.at + timedelta(days=length - 1 - (point.at.weekday() if length == 7 else 0))
                            form = self.build_form(point.at, min(last, until), kind)
                            self.note(f"series {kind}", point.value, form)


@pytest.mark.settable_clock
@pytest.mark.parametrize("seed", range(4))
async def test_no_combination_of_answers_is_about_fewer_than_five_organisations(backend: Backend, seed: int) -> None:
    vendor, choice = await backend.organisation(kind="vendor"), random.Random(seed)
    shops = [(await backend.organisation()).id for _ in range(8)]
    history = DemandHistory(backend, vendor, shops, choice)
    products = [new_id("prod") for _ in range(5)]
    releaser = create_releaser(backend)
    for _ in range(10):
        await history.add_day({vendor.id: products, NETWORK: ["oak", "sofa", "rug"]})
        await backend.pass_time(timedelta(days=1))
        await releaser.release_days()
        await history.collect_answers()
    await backend.pass_time(timedelta(days=1))
    await releaser.release_days()
    await history.collect_answers()
    forms = list({tuple(sorted(form.items())): form for _, form, _ in history.answers}.values())
    assert len(forms) > 60 and len({kind for _, kind, _ in history.cells}) == 3
    for first in forms:
        for second in forms:
            for factor in (-1, 1, 2, -3):
                combined = Counter(first)
                for atom, value in second.items():
                    combined[atom] += factor * value
                assert len({atom[0] for atom, value in combined.items() if value}) not in range(1, 5)
    assert find_disclosed(forms, shops, 4) == []


@pytest.mark.settable_clock
async def test_erasure_deletes_unreleased_signals_of_and_about_an_organisation(backend: Backend) -> None:
    vendor, other = await backend.organisation(kind="vendor"), await backend.organisation(kind="vendor")
    shops = [(await backend.organisation()).id for _ in range(5)]
    for shop in shops:
        for one in (vendor, other):
            await add_counts(backend, shop, count_signals(backend, one, new_id("prod"), 2))
    erasure = PostgresErasure(backend.pool)
    assert (await erasure.delete_data(vendor.id))["demand_hours"] == 5
    assert (await erasure.delete_data(shops[0]))["demand_hours"] == 1
    await close_day(backend)
    await create_releaser(backend).release_days()
    stats = await read_stats(backend, other)
    assert (stats.totals["view"], stats.suppressed) == (0, True), "four organisations are left"
