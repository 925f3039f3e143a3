"""What people ask of an endpoint: what really changes, and what can be refused without looking around."""

from typing import Any

from domain.kernel.addresses import PORTS, refusal
from domain.kernel.errors import FieldError, InvalidRequest, Unprocessable
from domain.webhooks.model import EVERY_TYPE, Endpoint, EndpointSettings


def refuse_types(types: tuple[str, ...]) -> None:
    """Raises InvalidRequest for `*` beside others: it means all of them already."""
    if EVERY_TYPE in types and len(types) > 1:
        fault = FieldError("event_types", "invalid_value", "`*` stands alone: it means every type.")
        raise InvalidRequest(fault.detail, fields=(fault,))


def refuse_url(url: str, allowed: frozenset[str], *, livemode: bool) -> None:
    """Raises Unprocessable for a URL that is never POSTed to; test mode takes plain HTTP and any port."""
    if livemode and not url.lower().startswith("https://"):
        raise Unprocessable("url: In live mode events are POSTed over HTTPS only.")
    if reason := refusal(url, allowed, PORTS if livemode else None):
        raise Unprocessable(f"url: {reason}")


def differing(before: Endpoint, asked: EndpointSettings) -> dict[str, Any]:
    """What really changes, as fields of an Endpoint; changing the status clears why the service set it."""
    changes = {name: value for name, value in asked.items() if getattr(before, name) != value}
    if "status" in changes:
        changes |= {"disabled_for": None, "failing_since": None}
    return changes
