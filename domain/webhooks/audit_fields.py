"""What the audit log tells of a webhook endpoint: the fields that people set or that changed, in wire shape."""

from typing import Any

from domain.audit.model import Change
from domain.webhooks.model import Endpoint, Filters


def filters_told(filters: Filters) -> dict[str, list[str]]:
    """The filters as they were given: those that narrow anything."""
    named = (("sources", filters.sources), ("categories", filters.categories), ("catalogues", filters.catalogues))
    return {name: list(ids) for name, ids in named if ids}


def audit_fields(endpoint: Endpoint) -> dict[str, Any]:
    """The audited fields; of the secret only its last characters."""
    told: dict[str, Any] = {
        "url": endpoint.url,
        "event_types": list(endpoint.event_types),
        "filters": filters_told(endpoint.filters),
        "payload": endpoint.payload,
        "coalesce_seconds": endpoint.coalesce_seconds,
        "api_version": endpoint.api_version,
        "status": endpoint.status,
        "secret_last4": endpoint.secret_last4,
    }
    if endpoint.description is not None:
        told["description"] = endpoint.description
    if endpoint.disabled_for is not None:
        told["status_reason"] = {"code": endpoint.disabled_for}
    return told


def created(endpoint: Endpoint) -> Change:
    """The audit entry of a new endpoint."""
    return Change("webhook_endpoint", endpoint.id, "create", {}, audit_fields(endpoint))


def updated(before: Endpoint, after: Endpoint) -> Change:
    """The audit entry of a changed endpoint: only the fields that differ."""
    old, new = audit_fields(before), audit_fields(after)
    differing = [name for name in old.keys() | new.keys() if old.get(name) != new.get(name)]
    return Change(
        "webhook_endpoint",
        after.id,
        "update",
        {name: old[name] for name in differing if name in old},
        {name: new[name] for name in differing if name in new},
    )


def deleted(endpoint: Endpoint) -> Change:
    """The audit entry of a deleted endpoint."""
    return Change("webhook_endpoint", endpoint.id, "delete", audit_fields(endpoint), {})
