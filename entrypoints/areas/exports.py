"""Exports: GET, POST /v1/exports; GET /v1/exports/{id}."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeAlias

from adapters.api_json import exports as wire
from adapters.api_json.cursors import FeedCursorSigner
from adapters.files.compression import Copier, GzipCompressor
from adapters.files.product_files import create_product_file
from domain.changes.usecases.service import ChangesService
from domain.exports.model import EXECUTE_EXPORT
from domain.exports.ports import ExportUpkeep, FileTargets
from domain.exports.schedules import DELIVER_EXPORT
from domain.exports.usecases.delivery import ExportDelivery
from domain.exports.usecases.execution import ExportExecution
from domain.exports.usecases.expiry import ExportExpiry
from domain.exports.usecases.schedules import ExportScheduler
from domain.exports.usecases.service import ExportRequester, ExportService
from domain.jobs.usecases.lane_processor import Handler
from domain.jobs.usecases.ticks import Tick
from domain.kernel.clock import now
from domain.outbox.usecases import OutgoingMail
from domain.people.ports import People
from domain.platform.model import ComponentState
from domain.secrets.ports import Vault
from entrypoints.areas import catalogue
from entrypoints.datasets import OperationDatasets
from entrypoints.dependencies import Dependencies
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, ReadContext, Reply, WriteContext
from entrypoints.settings import Settings
from ports.codec import Codec
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork
from ports.workspaces import Workspaces

ExportReadContext: TypeAlias = ReadContext[ExportService]
ExportWriteContext: TypeAlias = WriteContext[ExportService]
MAX_EXPORT_WAIT = timedelta(minutes=5)
"""Maximum time that an export may wait for a worker before the component counts as degraded."""


async def list_exports(context: ExportReadContext) -> Reply:
    """Return a page of the tenant's exports."""
    return context.build_list_reply(
        wire.EXPORT, await context.service.list_exports(context.tx, context.page_request, context.principal.scopes)
    )


async def create_export(context: ExportWriteContext) -> Reply:
    """Create an export, and queue the job that executes the export."""
    requester = ExportRequester(context.principal.organisation.plan, context.principal.scopes)
    return context.build_created_reply(
        wire.EXPORT, await context.service.create(context.tx, context.command, requester)
    )


async def read_export(context: ExportReadContext) -> Reply:
    """Return one export."""
    return context.build_resource_reply(
        wire.EXPORT, await context.service.get(context.tx, context.ids["id"], context.principal.scopes)
    )


def _load_areas() -> Sequence[Area]:
    from entrypoints.areas.registry import AREAS  # noqa: PLC0415  avoids a circular import

    return AREAS


def _create_service(objects: ObjectStore, dependencies: Dependencies) -> ExportService:
    return ExportService(objects, OperationDatasets(_load_areas, dependencies))


def _create_execution(
    uow: UnitOfWork,
    objects: ObjectStore,
    workspaces: Workspaces,
    codec: Codec,
    cursors: FeedCursorSigner,
    changes: ChangesService,
    dependencies: Dependencies,
) -> Handler:
    return ExportExecution(
        uow=uow,
        objects=objects,
        workspaces=workspaces,
        compressor_factory=GzipCompressor,
        copier_factory=Copier,
        product_file_factory=create_product_file,
        datasets=OperationDatasets(_load_areas, dependencies),
        codec=codec,
        cursors=cursors,
        find_feed_end=changes.find_end,
        render_export=wire.render_export,
    )


async def measure_export_state(upkeep: ExportUpkeep) -> ComponentState:
    """Return the state of the exports component: DEGRADED if an export has waited longer than MAX_EXPORT_WAIT, else OPERATIONAL."""
    since = await upkeep.find_oldest_waiting()
    is_late = since is not None and now() - since > MAX_EXPORT_WAIT
    return ComponentState.DEGRADED if is_late else ComponentState.OPERATIONAL


def _create_delivery(
    uow: UnitOfWork,
    objects: ObjectStore,
    targets: FileTargets,
    people: People,
    mail: OutgoingMail,
    vault: Vault,
    settings: Settings,
) -> Handler:
    return ExportDelivery(uow, objects, targets, people, mail, vault, settings.base_url)


def _create_ticks(expiry: ExportExpiry, scheduler: ExportScheduler) -> Sequence[Tick]:
    return [
        Tick("expired exports", 60, expiry.expire_due, is_purge=True),
        Tick("scheduled exports", 15, scheduler.create_due_exports),
    ]


PRODUCT_LIST = next(row for row in catalogue.AREA.operations if row.id == "catalogue.list_products")
"""The list whose filters an export of products accepts."""
EXPORTS = Collection("exports", wire.EXPORT, "exports")

AREA = Area(
    "exports",
    "Exports",
    "Snapshots of your data as downloadable files.",
    create_service=_create_service,
    operations=(
        EXPORTS.list(
            "List exports",
            "Returns the exports in this mode, newest first.",
            handler=list_exports,
            no_dataset_reason="Links of exports expire within an hour.",
        ),
        EXPORTS.create(
            "Start an export",
            "Queues an export of the data at one point in time as gzip JSON Lines files. `products` has one line per "
            "product, as in GET /v1/products, and accepts its filters; it requires `products:read`, and its rows count "
            "against the plan's `export_rows`. With `format` it is a table (`csv`, `xlsx`) or a file for another system "
            "instead. `organisation` has one file per list of the API and requires the read scope of each; it "
            "accepts no filters and is in every plan. Read the export until `status` is `succeeded` or `failed`, or wait "
            "for `export.completed`. Returns 409 while 3 exports wait or run.",
            handler=create_export,
            rate="export",
            body=wire.build_new_export_body(PRODUCT_LIST.query),
            body_feature="bulk_exports",
            status=202,
            errors=("insufficient_scope", "unprocessable", "conflict", "quota_exceeded"),
            undo="Exported data cannot be recalled; the files are deleted automatically.",
        ),
        EXPORTS.read(
            "Read an export",
            "Returns the progress and, after success, links to the files. Links are valid for an hour; read the export again for new ones.",
            handler=read_export,
        ),
    ),
    handler_factories={EXECUTE_EXPORT: _create_execution, DELIVER_EXPORT: _create_delivery},
    create_ticks=_create_ticks,
)
