"""Stock checks: POST /v1/variants/{id}/checks."""

from typing import TypeAlias

from adapters.api_json import checks as wire
from domain.checks.model import StockCheck
from domain.checks.usecases.execution import CheckExecution
from domain.checks.usecases.service import CheckService
from domain.runs.run_queue import CHECK_STOCK
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import AgentToolSettings, Area, Reply, WriteContext

CheckWriteContext: TypeAlias = WriteContext[CheckService]


async def start_stock_check(context: CheckWriteContext) -> Reply:
    """Start a stock check of one variant. The reply is delayed by up to four seconds for the results."""
    service, tenant = context.service, context.principal.tenant
    check: StockCheck = await service.start_check(context.tx, context.ids["id"])
    reply = context.build_resource_reply(wire.STOCK_CHECK, check)

    async def wait_for_results() -> Reply:
        return context.build_resource_reply(wire.STOCK_CHECK, await service.wait_for_results(tenant, check))

    reply.complete_later = wait_for_results
    return reply


CHECKS = Collection("checks", wire.STOCK_CHECK, "sources")

AREA = Area(
    "checks",
    "Stock checks",
    "Current stock of a variant, queried from its sources.",
    create_service=CheckService,
    operations=(
        CHECKS.write(
            "create",
            "Check a variant's stock now",
            "Queries the variant's sources for its current stock, if their connectors support stock checks. Each query is "
            "a run with the trigger `stock_check`, which starts after the source's earlier runs. The results update quantity, "
            "incoming stock and availability of the offers, but no prices or other fields. The response is delayed by up to four seconds; if "
            "there are no results by then, `status` is `queued`, the response contains the known offers, and results "
            "arrive later as `offer.changed` events. If no source returned a result, `status` is `failed` and each entry "
            "states why. A repeated request with the same `Idempotency-Key` returns the same check.",
            path="/v1/variants/{id}/checks",
            handler=start_stock_check,
            rate="expensive",
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo="Stock levels that the check returned remain in the catalogue until the source's next run.",
        ),
    ),
    handler_factories={CHECK_STOCK: CheckExecution},
)
