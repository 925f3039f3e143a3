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

BY_NOBODY = "The service did it by itself, or its operator did; make the opposite change yourself."


@dataclass(frozen=True, slots=True)
class AuditServices:
    """The area's use cases; and the operations by id and services of all areas, by which changes are taken back."""

    audit: AuditService
    operations: Mapping[str, Operation]
    services: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallersReversals:
    """domain.audit.usecases.Reversals, as one caller may carry them out."""

    known: AuditServices
    caller: Principal

    def refusal(self, action: str) -> str | None:
        """Return why what such an operation did is never undone."""
        row = self.known.operations.get(action)
        undoing = row.undo if row is not None else None
        return None if isinstance(undoing, Undoing) else undoing or BY_NOBODY

    def permit(self, action: str) -> None:
        """Require what the operation itself takes. Raises PermissionDenied, FeatureUnavailable."""
        if self.refusal(action) is None:
            permit(self.known.operations[action], self.caller)

    async def take_back(self, tx: Tx, act: Act) -> None:
        """Have the act's area take it back."""
        row = self.known.operations[act.first.context.operation]
        assert isinstance(row.undo, Undoing), "it was not refused"
        await row.undo.back(self.known.services[row.area], tx, act)


Reading: TypeAlias = ReadContext[AuditServices]
Writing: TypeAlias = WriteContext[AuditServices]


async def list_all(call: Reading) -> Reply:
    """The entries that pass the filters."""
    given = dict(call.query)
    undoable = given.pop("undoable", None)
    reversals = CallersReversals(call.service, call.principal)
    filter = AuditFilter(**given)
    page = await call.service.audit.list_entries(call.tx, filter, undoable, call.page_request, reversals)
    return call.list(wire.AUDIT_EVENT, page)


async def undo(call: Writing) -> Reply:
    """Take back what an entry tells of."""
    reversals = CallersReversals(call.service, call.principal)
    return call.one(wire.AUDIT_EVENT, await call.service.audit.undo(call.tx, call.ids["id"], reversals))


async def _never_asked(service: Any, tx: Tx, act: Act) -> None:
    """What an undoing took back is taken back by the operation that did it first."""
    raise AssertionError(act.id)


_FILTERS: Final[Mapping[str, Schema]] = {
    "actor": text("key_01J8ZQ5T3V7XK2M9RB4CDW", longest=100, description="Only what this user, key or app did."),
    "action": text("sources.update", longest=100, description="Only what this operation did."),
    "target": text("src_01J8ZQ5T3V7XK2M9RB4CDW", longest=100, description="Only changes of the thing with this id."),
    "object": text("source", longest=100, description="Only changes of things of this kind."),
    "since": timestamp("Only what was done at or after this moment."),
    "until": timestamp("Only what was done before this moment."),
    "undoable": boolean(description="Only what can be undone now (true), or cannot (false)."),
}

EVENTS = Collection("audit", wire.AUDIT_EVENT, "audit", "/v1/audit-events")


def _across(services: Mapping[str, Any], operations: Sequence[Operation]) -> AuditServices:
    return AuditServices(AuditService(), {row.id: row for row in operations}, services)


def _ticks(maintenance: Maintenance) -> Sequence[Tick]:
    return [Tick("old audit entries", 3600, maintenance.purge_audit, purges=True)]


AREA = Area(
    "audit",
    "Audit",
    "Every change by anyone, and how to undo it.",
    service=AuditService,
    across=_across,
    operations=(
        EVENTS.list(
            "List audit events",
            "Every change by anyone in this mode, newest first: who did it by which operation, of what, and the fields that "
            "changed, before and after. Entries are chained by hashes, so that none can be changed or taken out unseen, and kept for "
            "two years. `undo` tells whether it can be undone now, or why not.",
            handler=list_all,
            query=_FILTERS,
            dataset="audit_events",
        ),
        EVENTS.write(
            "undo",
            "Undo an audit event",
            "Brings everything that the operation changed to what it was before, by the operation's own rules; "
            "`Service-Dry-Run: explain` shows it first. It also takes the permission for the operation itself (403). One that is undone "
            "already: 409; to have it done again, undo the entry that undid it. What cannot be undone, or what a later change stands on, "
            "which is named: 422.",
            handler=undo,
            errors=("conflict", "undo_unavailable", "feature_unavailable", "quota_exceeded"),
            undo=Undoing("What it undid is done again.", _never_asked),
        ),
    ),
    ticks=_ticks,
)
