"""GET /v1/audit-events and POST /v1/audit-events/{id}/undo."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from adapters.wire import audit as wire
from domain.access.model import Principal
from domain.audit.model import Act, AuditFilter
from domain.audit.usecases import AuditService
from domain.jobs.usecases.ticks import Tick
from domain.kernel.schema import Schema, boolean, text, timestamp
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, Operation, ReadContext, Reply, Undoing, WriteContext, permit
from ports.maintenance import Maintenance
from ports.unit_of_work import Tx

BY_NOBODY = "The service or its operator made this change. Make the opposite change yourself."


@dataclass(frozen=True, slots=True)
class AuditServices:
    """The audit use cases, and the operations by ID and services of all areas, which undo changes."""

    audit: AuditService
    operations: Mapping[str, Operation]
    services: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallersReversals:
    """Implementation of domain.audit.usecases.Reversals for one caller."""

    known: AuditServices
    caller: Principal

    def refusal(self, action: str) -> str | None:
        """Return why changes by the operation can never be undone, or None."""
        row = self.known.operations.get(action)
        undoing = row.undo if row is not None else None
        return None if isinstance(undoing, Undoing) else undoing or BY_NOBODY

    def permit(self, action: str) -> None:
        """Check the permission for the operation itself. Raises PermissionDenied or FeatureUnavailable."""
        if self.refusal(action) is None:
            permit(self.known.operations[action], self.caller)

    async def take_back(self, tx: Tx, act: Act) -> None:
        """Undo the act through its area."""
        row = self.known.operations[act.first.context.operation]
        assert isinstance(row.undo, Undoing), "the act is reversible"
        await row.undo.back(self.known.services[row.area], tx, act)


Reading: TypeAlias = ReadContext[AuditServices]
Writing: TypeAlias = WriteContext[AuditServices]


async def list_all(call: Reading) -> Reply:
    """Return a page of entries that match the filters."""
    filters = dict(call.query)
    undoable = filters.pop("undoable", None)
    reversals = CallersReversals(call.service, call.principal)
    filter = AuditFilter(**filters)
    page = await call.service.audit.list_entries(call.tx, filter, undoable, call.page_request, reversals)
    return call.list(wire.AUDIT_EVENT, page)


async def undo(call: Writing) -> Reply:
    """Undo the change of an audit entry."""
    reversals = CallersReversals(call.service, call.principal)
    return call.one(wire.AUDIT_EVENT, await call.service.audit.undo(call.tx, call.ids["id"], reversals))


async def _undo_of_undo(service: Any, tx: Tx, act: Act) -> None:
    """Never called: an undo is undone through the operation that was undone."""
    raise AssertionError(act.id)


_FILTERS: Final[Mapping[str, Schema]] = {
    "actor": text("key_01J8ZQ5T3V7XK2M9RB4CDW", longest=100, description="Only changes by this user, key or app."),
    "action": text("sources.update", longest=100, description="Only changes by this operation."),
    "target": text("src_01J8ZQ5T3V7XK2M9RB4CDW", longest=100, description="Only changes of the resource with this ID."),
    "object": text("source", longest=100, description="Only changes of resources of this type."),
    "since": timestamp("Only changes at or after this time."),
    "until": timestamp("Only changes before this time."),
    "undoable": boolean(description="Only changes that can (true) or cannot (false) be undone now."),
}

EVENTS = Collection("audit", wire.AUDIT_EVENT, "audit", "/v1/audit-events")


def _across(services: Mapping[str, Any], operations: Sequence[Operation]) -> AuditServices:
    return AuditServices(AuditService(), {row.id: row for row in operations}, services)


def _ticks(maintenance: Maintenance) -> Sequence[Tick]:
    return [Tick("old audit entries", 3600, maintenance.purge_audit, purges=True)]


AREA = Area(
    "audit",
    "Audit",
    "Records of every change, and undo.",
    service=AuditService,
    across=_across,
    operations=(
        EVENTS.list(
            "List audit events",
            "Returns every change by anyone in this mode, newest first: who made it by which operation, the resource, and the changed "
            "fields before and after. Entries form a hash chain, which makes changes and removals detectable, and are kept for two "
            "years. `undo` states whether the change can be undone now, or why not.",
            handler=list_all,
            query=_FILTERS,
            dataset="audit_events",
        ),
        EVENTS.write(
            "undo",
            "Undo an audit event",
            "Restores everything that the operation changed to its previous state, by the operation's own rules; "
            "`Service-Dry-Run: explain` returns a preview. The permission for the operation itself is also required (403). A change "
            "that is already undone: 409; to redo it, undo the entry of the undo. A change that cannot be undone, or on which a later "
            "change depends, which is named: 422.",
            handler=undo,
            errors=("conflict", "undo_unavailable", "feature_unavailable", "quota_exceeded"),
            undo=Undoing("The undone change is made again.", _undo_of_undo),
        ),
    ),
    ticks=_ticks,
)
