"""What the audit log tells of a source: the fields that people set or that their doing changed, in wire shape."""

from typing import Any

from domain.audit.model import Change
from domain.sources.model import Source
from domain.sources.schedules import as_given


def audit_fields(source: Source) -> dict[str, Any]:
    """The audited fields; sealed credentials only as whether there are any."""
    told: dict[str, Any] = {
        "name": source.name,
        "kind": source.kind,
        "connector": source.connector,
        "config": dict(source.config),
        "schedule": as_given(source.schedule),
        "status": source.status,
        "licence_basis": source.licence_basis,
        "first_party": source.first_party,
        "has_credentials": source.has_credentials,
    }
    if source.inbound_address:
        told["inbound_address"] = source.inbound_address
    if source.status_reason:
        told["status_reason"] = {"code": source.status_reason.code, "message": source.status_reason.message}
    return told


def created(source: Source) -> Change:
    """The audit entry of a new source."""
    return Change("source", source.id, "create", {}, audit_fields(source))


def updated(before: Source, after: Source) -> Change:
    """The audit entry of a changed source: only the fields that differ."""
    old, new = audit_fields(before), audit_fields(after)
    differing = [name for name in old.keys() | new.keys() if old.get(name) != new.get(name)]
    return Change(
        "source",
        after.id,
        "update",
        {name: old[name] for name in differing if name in old},
        {name: new[name] for name in differing if name in new},
    )
