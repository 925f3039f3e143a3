"""Monthly quota of exported rows (docs/usage.md).

The exports of a tenant are written one after the other, so that none uses the quota of another.
"""

from domain.kernel.errors import QuotaExceeded
from domain.orgs.quota import build_quota_error
from domain.usage.meters import EXPORT_ROWS
from domain.usage.ports import UsageMeters
from domain.usage.usecases import quota
from ports.unit_of_work import Tx

REFUSED = (
    "This export would exceed the exported rows that the plan includes per month. Filter the products, read GET "
    "/v1/products, wait for the next month (UTC), or ask the operator to change the plan (joinery org plan)."
)


async def count_exported_rows(tx: Tx, export: str, rows: int) -> None:
    """Count the rows of an export that ends successfully in this transaction. Raises QuotaExceeded."""
    room = await quota.get_remaining(tx, EXPORT_ROWS)
    if room is not None and rows > room:
        raise _create_refusal(tx)
    await tx[UsageMeters].add_usage(EXPORT_ROWS, rows, export)


async def require_remaining_quota(tx: Tx) -> None:
    """Raise QuotaExceeded if the quota is used up."""
    if await quota.get_remaining(tx, EXPORT_ROWS) == 0:
        raise _create_refusal(tx)


def _create_refusal(tx: Tx) -> QuotaExceeded:
    return build_quota_error(EXPORT_ROWS, REFUSED, tx.now)
