"""Demand: POST /v1/demand, and the tick that releases statistics for vendors."""

from collections.abc import Sequence
from typing import Any, Final

from adapters.api_json import demand as wire
from domain.demand.model import DemandSignal, SignalRejection
from domain.demand.ports import DemandUpkeep
from domain.demand.usecases.release import DemandReleaser
from domain.demand.usecases.signals import DemandService
from domain.jobs.usecases.ticks import Tick
from entrypoints.operations.operation import Area, Reply, Write, WriteContext
from entrypoints.operations.validation import Validator
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

_VALIDATOR: Final = Validator(wire.SIGNAL)


def validate_signals(values: Sequence[Any]) -> tuple[list[DemandSignal], list[SignalRejection]]:
    """Return the well-formed signals, and a rejection with the first error of each other one."""
    signals, rejected = [], []
    for index, value in enumerate(values):
        if (error := _VALIDATOR.find_first_error(value)) is None:
            signals.append(wire.build_signal(index, value))
        else:
            rejected.append(SignalRejection(index, error.code, f"{error.field}: {error.detail}"))
    return signals, rejected


async def record_signals(context: WriteContext[DemandService]) -> Reply:
    """Count signals, and return the receipt."""
    is_vendor = context.principal.organisation.is_vendor
    receipt = await context.service.record(context.tx, *validate_signals(context.command), is_vendor=is_vendor)
    return context.build_resource_reply(wire.RECEIPT, receipt)


def _create_ticks(uow: UnitOfWork, upkeep: DemandUpkeep, clock: Clock) -> Sequence[Tick]:
    releaser = DemandReleaser(uow, upkeep, clock)
    return [
        Tick("demand", 600, releaser.release_days),
        Tick("old demand", 3600, releaser.delete_expired, is_purge=True),
    ]


AREA = Area(
    "demand",
    "Demand",
    "Signals of demand from your shop, which vendors see only as sums over at least five organisations.",
    create_service=DemandService,
    operations=(
        Write(
            id="demand.create",
            path="/v1/demand",
            method="POST",
            summary="Send signals of demand",
            description="Counts what customers of your shop do: 1 to 1,000 signals. An invalid signal is in `rejected` with its position, "
            "and the others are counted. Vendors see sums over at least five organisations only.",
            handler=record_signals,
            scope="demand:write",
            body=wire.SIGNALS_BODY,
            reply=wire.RECEIPT.schema,
            status=202,
            undo="Signals are counted and not stored, so single ones cannot be removed.",
        ),
    ),
    create_ticks=_create_ticks,
)
