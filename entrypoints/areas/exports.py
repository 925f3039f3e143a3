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
"""Maximum time that an export may wait for a worker before the component counts as degraded."""


async def list_all(call: Reading) -> Reply:
    """Return the tenant's exports."""
    return call.list(wire.EXPORT, await call.service.list_exports(call.tx, call.page_request, call.principal.scopes))


async def create(call: Writing) -> Reply:
    """Queue an export."""
    asking = Asking(call.principal.organisation.plan, call.principal.scopes)
    return call.made(wire.EXPORT, await call.service.create(call.tx, call.command, asking))


async def read(call: Reading) -> Reply:
    """Return one export."""
    return call.one(wire.EXPORT, await call.service.get(call.tx, call.ids["id"], call.principal.scopes))


def _areas() -> Sequence[Area]:
    from entrypoints.areas.registry import AREAS  # noqa: PLC0415  avoids a circular import

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
    """Return DEGRADED if an export has waited longer than LATE, else OPERATIONAL."""
    since = await upkeep.waiting_since()
    late = since is not None and now() - since > LATE
    return ComponentState.DEGRADED if late else ComponentState.OPERATIONAL


def _ticks(expiry: ExportExpiry) -> Sequence[Tick]:
    return [Tick("expired exports", 60, expiry.tick, purges=True)]


EXPORTS = Collection("exports", wire.EXPORT, "exports")

AREA = Area(
    "exports",
    "Exports",
    "Snapshots of your data as downloadable files.",
    service=_service,
    operations=(
        EXPORTS.list(
            "List exports",
            "Returns the exports in this mode, newest first.",
            handler=list_all,
            apart="Links of exports expire within an hour.",
        ),
        EXPORTS.create(
            "Start an export",
            "Queues an export of the data at one point in time as gzip JSON Lines files. `products` has one line per product, as in "
            "GET /v1/products; it requires `products:read`, and its rows count against the plan's `export_rows`. `organisation` has one "
            "file per list of the API and requires the read scope of each; it accepts no filters and is in every plan. Read the export "
            "until `status` is `succeeded` or `failed`, or wait for `export.completed`. While 3 exports wait or run: 409.",
            handler=create,
            rate="export",
            body=wire.NEW_EXPORT,
            body_feature="bulk_exports",
            status=202,
            errors=("insufficient_scope", "unprocessable", "conflict", "quota_exceeded"),
            undo="Exported data cannot be recalled; the files are deleted automatically.",
        ),
        EXPORTS.read(
            "Read an export",
            "Returns the progress and, after success, links to the files. Links are valid for an hour; read the export again for new ones.",
            handler=read,
        ),
    ),
    jobs={CARRY_OUT: _execution},
    ticks=_ticks,
)
