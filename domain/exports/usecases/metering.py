"""Monthly quota of exported rows (docs/usage.md).

A tenant's exports end one after the other, so none uses another's quota.
"""

from domain.kernel.errors import QuotaExceeded
from domain.orgs.quota import exceeded
from domain.usage.meters import EXPORT_ROWS
from domain.usage.ports import UsageMeters
from domain.usage.usecases import quota
from ports.unit_of_work import Tx

REFUSED = (
    "The rows of exports that the plan includes for a month are used up, or would be by this export. Export fewer products (filters), "
    "read GET /v1/products, wait for the next month (UTC), or have the operator put the organisation on another plan (joinery org plan)."
)


async def charge(tx: Tx, export: str, rows: int) -> None:
    """Count the rows of an export that succeeds in this transaction. Raises QuotaExceeded if they exceed the quota."""
    room = await quota.left(tx, EXPORT_ROWS)
    if room is not None and rows > room:
        raise _refused(tx)
    await tx[UsageMeters].count(EXPORT_ROWS, rows, export)


async def refuse_spent(tx: Tx) -> None:
    """Raise QuotaExceeded if the quota has no row left."""
    if await quota.left(tx, EXPORT_ROWS) == 0:
        raise _refused(tx)


def _refused(tx: Tx) -> QuotaExceeded:
    return exceeded(EXPORT_ROWS, REFUSED, tx.now)
