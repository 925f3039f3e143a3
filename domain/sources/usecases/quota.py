"""The number of sources that a plan includes (docs/conventions.md#quotas)."""

from domain.orgs.model import Plan
from domain.orgs.quota import exceeded
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx

METER = "sources"


async def refuse_more(tx: Tx, plan: Plan) -> None:
    """Raise QuotaExceeded if the tenant has reached its plan's number of sources, also for concurrent requests."""
    included = plan.included(METER)
    if included is not None and await tx[SourceStore].count(lock=True) >= included:
        detail = (
            f"The plan {plan.name} includes {included} sources in each mode, and there are as many already. Use one of them "
            "(PATCH changes its name and settings), or have the operator put the organisation on another plan (joinery org plan)."
        )
        raise exceeded(METER, detail, tx.now)
