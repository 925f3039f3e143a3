"""Audit log and undo: GET /v1/audit-events and POST /v1/audit-events/{id}/undo."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from adapters.api_json import audit as wire
from domain.access.model import Principal
from domain.audit.model import AuditAct, AuditFilter
from domain.audit.usecases import AuditService
from domain.jobs.usecases.ticks import Tick
from domain.kernel.schema import Schema, boolean, text, timestamp
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import (
    Area,
    Operation,
    ReadContext,
    Reply,
    UndoSupport,
    WriteContext,
    check_caller,
)
from ports.maintenance import Maintenance
from ports.unit_of_work import Tx

SERVICE_CHANGE_REASON = "The service or its operator made this change. Make the opposite change yourself."


@dataclass(frozen=True, slots=True)
class AuditServices:
    """Use cases of the audit log, and the operations and services that undo changes.

    Attributes:
        audit: Use cases of the audit log.
        operations: Operations of all areas by ID.
        services: Use cases of the other areas by name of the area.
    """

    audit: AuditService
    operations: Mapping[str, Operation]
    services: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallerReversals:
    """Undo of changes on behalf of one caller. Implements Reversals (domain/audit/usecases.py)."""

    services: AuditServices
    caller: Principal

    def find_irreversibility_reason(self, action: str) -> str | None:
        """Return the reason why changes by the operation `action` can never be undone; None if they can be undone."""
        row = self.services.operations.get(action)
        undo_support = row.undo if row is not None else None
        return None if isinstance(undo_support, UndoSupport) else undo_support or SERVICE_CHANGE_REASON

    def check_permission(self, act: AuditAct) -> None:
        """Check that the caller may perform the operations that made the change, as undoing it requires.

        Raises PermissionDenied or FeatureUnavailable.
        """
        row = self.services.operations.get(act.original_entry.context.operation)
        if row is None or not isinstance(row.undo, UndoSupport):
            return
        check_caller(row, self.caller)
        if row.undo.find_executed_operation is not None:
            check_caller(self.services.operations[row.undo.find_executed_operation(act)], self.caller)

    async def undo(self, tx: Tx, act: AuditAct) -> None:
        """Undo a recorded change with the function that the operation declares for this purpose."""
        row = self.services.operations[act.original_entry.context.operation]
        assert isinstance(row.undo, UndoSupport), "the operation does not support undo"
        await row.undo.restore(self.services.services[row.area], tx, act)


AuditReadContext: TypeAlias = ReadContext[AuditServices]
AuditWriteContext: TypeAlias = WriteContext[AuditServices]


async def list_audit_entries(context: AuditReadContext) -> Reply:
    """Return a page of the audit entries that match the filters."""
    filters = dict(context.query)
    undoable = filters.pop("undoable", None)
    reversals = CallerReversals(context.service, context.principal)
    filter = AuditFilter(**filters)
    page = await context.service.audit.list_entries(context.tx, filter, undoable, context.page_request, reversals)
    return context.build_list_reply(wire.AUDIT_EVENT, page)


async def undo_change(context: AuditWriteContext) -> Reply:
    """Undo the change that an audit entry records."""
    reversals = CallerReversals(context.service, context.principal)
    return context.build_resource_reply(
        wire.AUDIT_EVENT, await context.service.audit.undo(context.tx, context.ids["id"], reversals)
    )


async def _reject_undo(service: Any, tx: Tx, act: AuditAct) -> None:
    """Raise AssertionError. The operation `audit.undo` declares this function so that it counts as reversible.

    The function is never called: `CallerReversals.undo` undoes an undo with the function of the original operation.
    """
    raise AssertionError(act.id)


_FILTERS: Final[Mapping[str, Schema]] = {
    "actor": text("key_01J8ZQ5T3V7XK2M9RB4CDW", max_length=100, description="Only changes by the actor with this ID."),
    "action": text("sources.update", max_length=100, description="Only changes by the operation with this ID."),
    "target": text(
        "src_01J8ZQ5T3V7XK2M9RB4CDW", max_length=100, description="Only changes of the resource with this ID."
    ),
    "object": text("source", max_length=100, description="Only changes of resources of this type."),
    "since": timestamp("Only changes at or after this time."),
    "until": timestamp("Only changes before this time."),
    "undoable": boolean(description="Only changes that can (true) or cannot (false) be undone now."),
}

EVENTS = Collection("audit", wire.AUDIT_EVENT, "audit", "/v1/audit-events")


def _create_services(services: Mapping[str, Any], operations: Sequence[Operation]) -> AuditServices:
    return AuditServices(AuditService(), {row.id: row for row in operations}, services)


def _create_ticks(maintenance: Maintenance) -> Sequence[Tick]:
    return [Tick("old audit entries", 3600, maintenance.purge_audit_entries, is_purge=True)]


AREA = Area(
    "audit",
    "Audit",
    "Records of every change, and undo.",
    create_service=AuditService,
    create_service_across_areas=_create_services,
    operations=(
        EVENTS.list(
            "List audit entries",
            "Returns every change by anyone in this mode, newest first: who made it by which operation, the resource, and the changed "
            "fields before and after. Entries form a hash chain, which makes changes and removals detectable, and are kept for two "
            "years. `undo` states whether the change can be undone now, or why not.",
            handler=list_audit_entries,
            query=_FILTERS,
            dataset="audit_events",
        ),
        EVENTS.write(
            "undo",
            "Undo an audit entry",
            "Restores the previous state of everything that the operation changed. The caller also needs the permission "
            "for the operation that is undone (403). Returns 409 if the change is already undone; to redo it, undo the "
            "audit entry of the undo. Returns 422 if the change cannot be undone, or if a later change depends on it; the "
            "detail names that change. `Service-Dry-Run: explain` returns a preview.",
            handler=undo_change,
            errors=("conflict", "undo_unavailable", "feature_unavailable", "quota_exceeded"),
            undo=UndoSupport("The undone change is made again.", _reject_undo),
        ),
    ),
    create_ticks=_create_ticks,
)
