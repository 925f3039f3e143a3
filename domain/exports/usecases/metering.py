"""How many rows a plan lets out in a month (docs/conventions.md#quotas)."""

from datetime import datetime

from domain.exports.model import METER
from domain.kernel.errors import QuotaExceeded
from domain.orgs.quota import exceeded
from ports.unit_of_work import Tx


async def left(tx: Tx) -> int | None:
    """How many rows more fit into the month; None for any number: no plan bounds test data. Never below 0."""
    if not tx.tenant.livemode:
        return None
    included = (await tx.orgs.own()).plan.included(METER)
    if included is None:
        return None
    return max(0, included - await tx.exports.spent(month_of(tx.now)))


async def charge(tx: Tx, rows: int) -> None:
    """Have the rows of an export that succeeds in this transaction count. Raises QuotaExceeded when they do not fit.

    They count by being kept as that export's, so once and no more.
    """
    room = await left(tx)
    if room is not None and rows > room:
        raise refused(tx.now)


async def refuse_spent(tx: Tx) -> None:
    """Raises QuotaExceeded when not one row more fits."""
    if await left(tx) == 0:
        raise refused(tx.now)


def refused(now: datetime) -> QuotaExceeded:
    """The refusal."""
    detail = (
        "The rows that the plan lets out in a month are used up, or would be by this export. Export fewer products (filters), "
        "read GET /v1/products, wait for the next month, or have the operator put the organisation on another plan."
    )
    return exceeded(METER, detail, now)


def month_of(now: datetime) -> datetime:
    """When the month (UTC) began."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
