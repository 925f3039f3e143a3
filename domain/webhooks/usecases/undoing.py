"""Taking back what was done with webhook endpoints: by the same use cases, with what the audit log says was before."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from domain.audit.model import Act
from domain.webhooks.model import DisabledReason, EndpointStatus, Filters, PayloadKind
from domain.webhooks.usecases.service import WebhookService
from ports.unit_of_work import Tx

_SETTINGS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "url": str,
    "event_types": tuple,
    "filters": lambda kept: Filters(**{name: tuple(ids) for name, ids in kept.items()}),
    "payload": PayloadKind,
    "coalesce_seconds": int,
    "api_version": str,
    "description": lambda kept: kept,
    "status": EndpointStatus,
}


async def take_back(service: WebhookService, tx: Tx, act: Act) -> None:
    """An endpoint that was made goes, one that was deleted comes back, and what was changed is as it was.

    Raises what these raise.
    """
    for entry, change in act.changes("webhook_endpoint"):
        if change.action == "create":
            await service.delete(tx, change.id)
            continue
        fields = change.before.keys() | change.after.keys()
        asked: Any = {name: of(change.before.get(name)) for name, of in _SETTINGS.items() if name in fields}
        reason = change.before.get("status_reason")
        exact = {"disabled_for": DisabledReason(reason["code"])} if reason else {}
        if change.action == "delete":
            await service.bring_back(tx, change.id, asked, exact, entry)
        elif "secret_last4" in fields:
            await service.put_back_secret(tx, change.id, entry)
        else:
            await service.update(tx, change.id, asked, None, exact)
