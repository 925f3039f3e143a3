"""What was used, in memory."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Final

from adapters.memory.orgs import ORGS, PLANS
from adapters.memory.table import EVERYWHERE, MemoryDatabase, Table, Transaction
from domain.kernel.tenancy import Tenant
from domain.usage.meters import MONTHLY, DayUsage, Threshold, month_of
from ports.clock import Clock

FORGOTTEN: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Entry:
    """What one subject used of a meter on a day, and the most that it may come to."""

    meter: str
    subject: str
    day: date
    amount: int = 0
    reserved: int = 0

    @property
    def key(self) -> str:
        """Of the row."""
        return f"{self.meter}/{self.day}/{self.subject}"

    def ended(self, today: date) -> bool:
        """Whether it may be folded."""
        return not self.reserved or self.day < today - FORGOTTEN


@dataclass(frozen=True, slots=True)
class Reached:
    """A threshold, and whether something is held back by it."""

    threshold: Threshold
    held_back: bool

    @property
    def key(self) -> str:
        """Of the row."""
        return f"{self.threshold.meter}/{self.threshold.month}/{self.threshold.percent:03d}"


ENTRIES: Final = Table[Entry]("usage_entries", lambda entry: entry.key, descending=False)
DAYS: Final = Table[DayUsage]("usage_days", lambda usage: f"{usage.day}/{usage.meter}", descending=False)
REACHED: Final = Table[Reached]("usage_thresholds", lambda reached: reached.key, descending=False)


class MemoryUsageMeters:
    """UsageMeters."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._entries = transaction.rows(ENTRIES)
        self._days = transaction.rows(DAYS)
        self._reached = transaction.rows(REACHED)

    @property
    def _today(self) -> date:
        return self._transaction.now.date()

    async def count(self, meter: str, amount: int, of: str) -> None:
        await self._transaction.lock()
        held = self._entries.where(lambda one: (one.meter, one.subject) == (meter, of) and one.reserved > 0)
        entry = Entry(meter, of, max((one.day for one in held), default=self._today))
        entry = self._entries.get(entry.key) or entry
        await self._entries.put(replace(entry, amount=entry.amount + amount))

    async def reserve(self, meter: str, amount: int, of: str, included: int) -> bool:
        await self._transaction.lock()
        month = month_of(self._today)
        taken = sum(day.amount for day in self._days.where() if day.meter == meter and month_of(day.day) == month)
        taken += sum(
            max(entry.amount, entry.reserved)
            for entry in self._entries.where()
            if entry.meter == meter and entry.subject != of and month_of(entry.day) == month
        )
        if taken + amount > included:
            return False
        entry = Entry(meter, of, self._today)
        await self._entries.put(replace(self._entries.get(entry.key) or entry, reserved=amount))
        return True

    async def release(self, meter: str, of: str) -> None:
        for entry in self._entries.where(lambda entry: (entry.meter, entry.subject) == (meter, of)):
            await self._entries.put(replace(entry, reserved=0))

    async def used(self, month: date) -> Mapping[str, int]:
        used: defaultdict[str, int] = defaultdict(int)
        for one in self._counted():
            if month_of(one.day) == month and one.meter in MONTHLY:
                used[one.meter] += one.amount
        return used

    async def days(self, meters: Sequence[str], since: date, until: date) -> Sequence[DayUsage]:
        sums: defaultdict[tuple[date, str], int] = defaultdict(int)
        for one in self._counted():
            if one.meter in meters and since <= one.day <= until:
                sums[one.day, one.meter] += one.amount
        return [DayUsage(meter, day, amount) for (day, meter), amount in sorted(sums.items())]

    def _counted(self) -> list[DayUsage]:
        """Days, and what is not folded into them yet."""
        return [*self._days.where(), *(DayUsage(one.meter, one.day, one.amount) for one in self._entries.where())]

    async def level(self, meter: str, before: date) -> DayUsage | None:
        noted = [usage for usage in self._days.sorted() if usage.meter == meter and usage.day < before]
        return noted[-1] if noted else None

    async def fold(self) -> None:
        await self._transaction.lock()
        for entry in self._entries.where(lambda entry: entry.ended(self._today)):
            await self._entries.remove(entry.key)
            if entry.amount:
                held = self._days.get(f"{entry.day}/{entry.meter}") or DayUsage(entry.meter, entry.day, 0)
                await self._days.put(replace(held, amount=held.amount + entry.amount))

    async def note(self, meter: str, amount: int) -> None:
        await self._days.put(DayUsage(meter, self._today, amount))

    async def thresholds(self, month: date) -> Sequence[Threshold]:
        return [reached.threshold for reached in self._reached.sorted() if reached.threshold.month == month]

    async def reach(self, threshold: Threshold, *, hold_back: bool) -> bool:
        await self._transaction.lock()
        reached = Reached(threshold, hold_back)
        before = self._reached.get(reached.key)
        if before is None:
            await self._reached.put(reached)
        elif hold_back:
            kept = replace(before.threshold, included=threshold.included)
            await self._reached.put(Reached(kept, held_back=True))
        return before is None

    async def resume(self) -> None:
        for reached in self._reached.where(lambda reached: reached.held_back):
            await self._reached.put(replace(reached, held_back=False))


def count(store: MemoryDatabase, tenant: Tenant, meter: str, day: date) -> None:
    """One more, committed at once: for what is written down outside of units of work."""
    entry = Entry(meter, "deliverer", day)
    entry = store.committed(ENTRIES, tenant).get(entry.key) or entry
    store.write(ENTRIES, tenant, replace(entry, amount=entry.amount + 1))


class MemoryUsageUpkeep:
    """UsageUpkeep."""

    def __init__(self, store: MemoryDatabase, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def unfolded(self, limit: int) -> Sequence[Tenant]:
        today = self._clock.now().date()
        found = {tenant for tenant, entry in self._store.everyone(ENTRIES) if entry.ended(today)}
        return sorted(found, key=lambda tenant: (tenant.org, tenant.livemode))[:limit]

    async def to_resume(self, month: date) -> Sequence[Tenant]:
        found = {
            tenant
            for tenant, reached in self._store.everyone(REACHED)
            if reached.held_back and (reached.threshold.month < month or self._more(tenant, reached.threshold))
        }
        return sorted(found, key=lambda tenant: (tenant.org, tenant.livemode))

    def _more(self, tenant: Tenant, threshold: Threshold) -> bool:
        """Whether the plan includes more than when it was reached."""
        org = self._store.committed(ORGS, EVERYWHERE)[tenant.org]
        plan = self._store.committed(PLANS, EVERYWHERE).get(org.plan.code) or org.plan
        included = plan.included(threshold.meter)
        return included is None or included > threshold.included
