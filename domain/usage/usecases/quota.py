"""Monthly quotas (docs/usage.md), which only live mode has."""

from domain.orgs.ports import OrgStore
from domain.orgs.quota import exceeded
from domain.usage.meters import EXPORT_ROWS, RECORDS, month_of
from domain.usage.ports import UsageMeters
from ports.unit_of_work import Tx

_NOUNS = {RECORDS: "records", EXPORT_ROWS: "rows of exports"}


async def included(tx: Tx, meter: str) -> int | None:
    """Return the monthly amount of the meter that the tenant may use; None for any amount."""
    if not tx.tenant.livemode:
        return None
    return (await tx[OrgStore].own()).plan.included(meter)


async def left(tx: Tx, meter: str) -> int | None:
    """Return what remains of the month's quota, at least 0; None for any amount."""
    most = await included(tx, meter)
    if most is None:
        return None
    return max(0, most - (await tx[UsageMeters].used(month_of(tx.now.date()))).get(meter, 0))


async def spent(tx: Tx, meter: str) -> bool:
    """Return whether nothing remains of the month's quota."""
    return await left(tx, meter) == 0


async def refuse_spent(tx: Tx, meter: str) -> None:
    """Raise QuotaExceeded if nothing remains of the month's quota."""
    if await spent(tx, meter):
        raise exceeded(meter, told(meter, await included(tx, meter) or 0), tx.now)


async def reserve(tx: Tx, meter: str, amount: int, of: str) -> bool:
    """Reserve the maximum that `of` may use; return whether it fits."""
    most = await included(tx, meter)
    return most is None or await tx[UsageMeters].reserve(meter, amount, of, most)


def told(meter: str, most: int) -> str:
    """Return the detail of the refusal."""
    return (
        f"The plan includes {most:,} {_NOUNS.get(meter, meter)} a month, and all are used or reserved. "
        "Processing continues next month (UTC), or once the operator assigns a larger plan (joinery org plan)."
    )
