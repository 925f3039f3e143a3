"""Refusing what a month's quota has no room for (docs/usage.md). Only live mode has monthly quotas."""

from domain.orgs.ports import OrgStore
from domain.orgs.quota import exceeded
from domain.usage.meters import EXPORT_ROWS, RECORDS, month_of
from domain.usage.ports import UsageMeters
from ports.unit_of_work import Tx

_WHAT = {RECORDS: "records", EXPORT_ROWS: "rows of exports"}


async def included(tx: Tx, meter: str) -> int | None:
    """How much of the meter the tenant may use a month; None: any amount."""
    if not tx.tenant.livemode:
        return None
    return (await tx[OrgStore].own()).plan.included(meter)


async def left(tx: Tx, meter: str) -> int | None:
    """How much of the month's quota is left, never below 0; None: any amount."""
    most = await included(tx, meter)
    if most is None:
        return None
    return max(0, most - (await tx[UsageMeters].used(month_of(tx.now.date()))).get(meter, 0))


async def spent(tx: Tx, meter: str) -> bool:
    """Whether nothing of the month's quota is left."""
    return await left(tx, meter) == 0


async def refuse_spent(tx: Tx, meter: str) -> None:
    """Raise QuotaExceeded if the month's quota is used up."""
    if await spent(tx, meter):
        raise exceeded(meter, told(meter, await included(tx, meter) or 0), tx.now)


async def reserve(tx: Tx, meter: str, amount: int, of: str) -> bool:
    """Keep room for all that `of` may come to; answers whether there is so much."""
    most = await included(tx, meter)
    return most is None or await tx[UsageMeters].reserve(meter, amount, of, most)


def told(meter: str, most: int) -> str:
    """Return the error message with its remedies."""
    return (
        f"The plan includes {most:,} {_WHAT.get(meter, meter)} a month, and there is no room for more. "
        "It goes on with the next month (UTC), or once the operator has put the organisation on another plan (joinery org plan)."
    )
