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
    """Ask for one variant's stock, and wait a little for the answers."""
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
    "Asking sources for one variant's stock now.",
    service=CheckService,
    operations=(
        CHECKS.write(
            "create",
            "Check a variant's stock now",
            "Asks the sources of the variant's offers whose connector can, for this one item's stock, each by a run "
            "(`stock_check`) behind those of the source. Quantity, incoming and availability of the offers become what is "
            "answered; prices and everything else stay. Up to four seconds are waited for the answers; then `status` is `queued`, "
            "with the offers as they were known, and what comes later is heard as `offer.changed`. `failed`: no source had an "
            "answer; each result says why. A repetition under the same key answers the same check.",
            path="/v1/variants/{id}/checks",
            handler=create,
            rate="expensive",
            agent=Tool(approval=True, outside=True),
            undo="What a source answered of its stock stays until it says otherwise.",
        ),
    ),
    jobs={CHECK: CheckExecution},
)
