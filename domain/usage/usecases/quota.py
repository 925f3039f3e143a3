"""Monthly quotas (docs/usage.md). Only live mode has quotas."""

from domain.orgs.ports import OrgStore
from domain.orgs.quota import build_quota_error
from domain.usage.meters import EXPORT_ROWS, RECORDS, find_month_start
from domain.usage.ports import UsageMeters
from ports.unit_of_work import Tx

_NOUNS = {RECORDS: "records", EXPORT_ROWS: "rows of exports"}


async def get_monthly_quota(tx: Tx, meter: str) -> int | None:
    """Return the tenant's monthly quota of the meter; None if the meter is not limited."""
    if not tx.tenant.livemode:
        return None
    return (await tx[OrgStore].get_organisation()).find_quota(meter, livemode=True)


async def get_remaining(tx: Tx, meter: str) -> int | None:
    """Return the unused amount of this month's quota, at least 0; None if the meter is not limited."""
    included = await get_monthly_quota(tx, meter)
    if included is None:
        return None
    return max(0, included - (await tx[UsageMeters].get_month_usage(find_month_start(tx.now.date()))).get(meter, 0))


async def is_spent(tx: Tx, meter: str) -> bool:
    """Return whether this month's quota of the meter is used up."""
    return await get_remaining(tx, meter) == 0


async def refuse_if_spent(tx: Tx, meter: str) -> None:
    """Raise QuotaExceeded if this month's quota of the meter is used up."""
    if await is_spent(tx, meter):
        raise build_quota_error(meter, describe_spent_quota(meter, await get_monthly_quota(tx, meter) or 0), tx.now)


async def reserve_quota(tx: Tx, meter: str, amount: int, cause: str) -> bool:
    """Reserve quota for the cause `cause` (ID of a run or export); return False if the quota does not suffice."""
    included = await get_monthly_quota(tx, meter)
    return included is None or await tx[UsageMeters].reserve(meter, amount, cause, included)


def describe_spent_quota(meter: str, included: int) -> str:
    """Return the error detail for a meter whose quota `included` is used up."""
    return (
        f"The plan includes {included:,} {_NOUNS.get(meter, meter)} a month, and all are used or reserved. "
        "Wait for the next month (UTC), or ask the operator to change the plan (joinery org plan)."
    )
