"""Taking back what was done with a source: by the same use cases, with what the audit log says was before."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from domain.audit.model import Act, Change
from domain.catalogue.model import LicenceBasis
from domain.sources.model import Schedule, SourceChanges, SourceStatus, StatusReason
from domain.sources.usecases.service import SourceService
from ports.unit_of_work import Tx

_SET_BY_HAND: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": str,
    "connector": str,
    "config": dict,
    "schedule": lambda kept: Schedule(**kept),
    "licence_basis": LicenceBasis,
    "status": SourceStatus,
}
_FOLLOWING: Final[Mapping[str, Callable[[Any], Any]]] = {
    "inbound_address": lambda kept: kept,
    "status_reason": lambda kept: StatusReason(**kept) if kept else None,
}


async def take_back(service: SourceService, tx: Tx, act: Act) -> None:
    """Settings, status and inbound address as they were; credentials as they were kept. Raises what setting them raises."""
    for entry, change in act.changes("source"):
        fields = change.before.keys() | change.after.keys()
        if fields - {"has_credentials"}:
            asked = _settings(change)
            exact = {name: of(change.before.get(name)) for name, of in _FOLLOWING.items() if name in fields}
            await service.update(tx, change.id, asked, None, exact)
        if "has_credentials" in fields and change.before.get("has_credentials"):
            await service.put_back_credentials(tx, change.id, entry)
        elif "has_credentials" in fields:
            await service.delete_credentials(tx, change.id)


def _settings(change: Change) -> SourceChanges:
    asked: Any = {name: of(change.before[name]) for name, of in _SET_BY_HAND.items() if name in change.before}
    settings: SourceChanges = asked
    return settings
