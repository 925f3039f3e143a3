"""GET, POST /v1/exports; GET /v1/exports/{id}."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeAlias

from adapters.files.packing import GzipPacker
from adapters.wire import exports as wire
from adapters.wire.cursors import FeedCursors
from domain.changes.usecases.service import ChangesService
from domain.exports.model import CARRY_OUT
from domain.exports.ports import ExportUpkeep
from domain.exports.usecases.execution import ExportExecution
from domain.exports.usecases.expiry import ExportExpiry
from domain.exports.usecases.service import Asking, ExportService
from domain.jobs.usecases.draining import Handler
from domain.jobs.usecases.ticks import Tick
from domain.kernel.clock import now
from domain.platform.model import ComponentState
from entrypoints.datasets import ListDatasets
from entrypoints.dependencies import Dependencies
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, ReadContext, Reply, WriteContext
from ports.codec import Codec
from ports.objects import Objects
from ports.unit_of_work import UnitOfWork

Reading: TypeAlias = ReadContext[ExportService]
Writing: TypeAlias = WriteContext[ExportService]
LATE = timedelta(minutes=5)
"""How long an export may wait for a worker before the component counts as degraded."""


async def list_all(call: Reading) -> Reply:
    """The tenant's exports."""
    return call.list(wire.EXPORT, await call.service.list_exports(call.tx, call.page_request, call.principal.scopes))


async def create(call: Writing) -> Reply:
    """Queue an export."""
    asking = Asking(call.principal.organisation.plan, call.principal.scopes)
    return call.made(wire.EXPORT, await call.service.create(call.tx, call.command, asking))


async def read(call: Reading) -> Reply:
    """One export."""
    return call.one(wire.EXPORT, await call.service.get(call.tx, call.ids["id"], call.principal.scopes))


def _areas() -> Sequence[Area]:
    from entrypoints.areas.registry import AREAS  # noqa: PLC0415  the registry imports this module, too

    return AREAS


def _service(objects: Objects, dependencies: Dependencies) -> ExportService:
    return ExportService(objects, ListDatasets(_areas, dependencies))


def _execution(
    uow: UnitOfWork,
    objects: Objects,
    codec: Codec,
    cursors: FeedCursors,
    changes: ChangesService,
    dependencies: Dependencies,
) -> Handler:
    return ExportExecution(
        uow=uow,
        objects=objects,
        packing=GzipPacker,
        datasets=ListDatasets(_areas, dependencies),
        codec=codec,
        cursors=cursors,
        now=changes.now,
        describe=wire.described,
    )


async def keeps_up(upkeep: ExportUpkeep) -> ComponentState:
    """Whether exports are taken up soon after they were asked for."""
    since = await upkeep.waiting_since()
    late = since is not None and now() - since > LATE
    return ComponentState.DEGRADED if late else ComponentState.OPERATIONAL


def _ticks(expiry: ExportExpiry) -> Sequence[Tick]:
    return [Tick("expired exports", 60, expiry.tick, purges=True)]


EXPORTS = Collection("exports", wire.EXPORT, "exports")

AREA = Area(
    "exports",
    "Exports",
    "Everything there is at one moment, as files to download.",
    service=_service,
    operations=(
        EXPORTS.list(
            "List exports",
            "The exports that were asked for in this mode, newest first.",
            handler=list_all,
            apart="Its links end within the hour.",
        ),
        EXPORTS.create(
            "Start an export",
            "Queues an export: gzip JSON Lines of one moment, to download. `products` has a line for each product, as "
            "GET /v1/products answers it; it needs `products:read`, and its rows count against the plan's `export_rows`. `organisation` has a file "
            "for each list of the API and needs the read scope of each; it takes no filters and is in every plan. Read it until `status` is "
            "`succeeded` or `failed`, or wait for `export.completed`. While 3 exports wait or run: 409.",
            handler=create,
            rate="export",
            body=wire.NEW_EXPORT,
            body_feature="bulk_exports",
            status=202,
            errors=("insufficient_scope", "unprocessable", "conflict", "quota_exceeded"),
            undo="What was let out is out; its files go by themselves.",
        ),
        EXPORTS.read(
            "Read an export",
            "How far it is, and once it succeeded links to its files; they work for an hour, and reading it again gives new ones.",
            handler=read,
        ),
    ),
    jobs={CARRY_OUT: _execution},
    ticks=_ticks,
)
