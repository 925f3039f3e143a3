"""The limit on the number of sources by the plan (docs/conventions.md#quotas)."""

from domain.orgs.model import Organisation
from domain.orgs.quota import build_quota_error
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx

METER = "sources"


async def refuse_further_source(tx: Tx, organisation: Organisation) -> None:
    """Raise QuotaExceeded if the tenant has as many sources as the plan includes."""
    included = organisation.find_quota(METER, livemode=tx.tenant.livemode)
    if included is not None and await tx[SourceStore].count(lock=True) >= included:
        detail = (
            f"The plan {organisation.plan.name} includes {included} sources in each mode, and all are used. Change an existing "
            f"source (PATCH), or ask the operator to change the plan (joinery org plan)."
        )
        raise build_quota_error(METER, detail, tx.now)
