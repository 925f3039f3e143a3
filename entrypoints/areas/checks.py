"""POST /v1/variants/{id}/checks."""

from typing import TypeAlias

from adapters.wire import checks as wire
from domain.checks.model import StockCheck
from domain.checks.usecases.execution import CheckExecution
from domain.checks.usecases.service import CheckService
from domain.runs.queueing import CHECK
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, Reply, Tool, WriteContext

Writing: TypeAlias = WriteContext[CheckService]


async def create(call: Writing) -> Reply:
    """Start a stock check of one variant, and wait briefly for the results."""
    service, tenant = call.service, call.principal.tenant
    check: StockCheck = await service.begin(call.tx, call.ids["id"])
    reply = call.one(wire.STOCK_CHECK, check)

    async def later() -> Reply:
        return call.one(wire.STOCK_CHECK, await service.settled(tenant, check))

    reply.later = later
    return reply


CHECKS = Collection("checks", wire.STOCK_CHECK, "sources")

AREA = Area(
    "checks",
    "Stock checks",
    "Current stock of a variant, queried from its sources.",
    service=CheckService,
    operations=(
        CHECKS.write(
            "create",
            "Check a variant's stock now",
            "Queries the variant's sources for its current stock, if their connectors support it, each by a run (`stock_check`) after "
            "the source's other runs. The results update quantity, incoming stock and availability of the offers, but no prices or "
            "other fields. The response waits up to four seconds; after that, `status` is `queued`, with the offers as known, and later "
            "results arrive as `offer.changed` events. `failed`: no source returned a result; each entry states why. A repeated "
            "request with the same key returns the same check.",
            path="/v1/variants/{id}/checks",
            handler=create,
            rate="expensive",
            agent=Tool(approval=True, outside=True),
            undo="The stock that a source returned stays until its next run.",
        ),
    ),
    jobs={CHECK: CheckExecution},
)
