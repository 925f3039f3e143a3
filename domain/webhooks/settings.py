"""What people ask of an endpoint: what is filled in, what really changes, and what can be refused without looking around."""

from collections.abc import Mapping
from typing import Any, Final

from domain.kernel.addresses import PORTS, refusal
from domain.kernel.errors import FieldError, InvalidRequest, Unprocessable
from domain.webhooks.model import EVERY_TYPE, Endpoint, Filters

_PLAIN: Final = ("url", "payload", "coalesce_seconds", "api_version", "description")


def filters_of(given: Mapping[str, Any]) -> Filters:
    """The filters of a body's `filters`; each id once, in the order given."""
    return Filters(*(tuple(dict.fromkeys(given.get(name, ()))) for name in ("sources", "categories", "catalogues")))


def types_of(given: list[str]) -> tuple[str, ...]:
    """The event types asked for. Raises InvalidRequest for `*` beside others: it means all of them already."""
    if EVERY_TYPE in given and len(given) > 1:
        fault = FieldError("event_types", "invalid_value", "`*` stands alone: it means every type.")
        raise InvalidRequest(fault.detail, fields=(fault,))
    return tuple(given)


def refuse_url(url: str, allowed: frozenset[str], *, livemode: bool) -> None:
    """Raises Unprocessable for a URL that is never POSTed to; test mode takes plain HTTP and any port."""
    if livemode and not url.lower().startswith("https://"):
        raise Unprocessable("url: In live mode events are POSTed over HTTPS only.")
    if reason := refusal(url, allowed, PORTS if livemode else None):
        raise Unprocessable(f"url: {reason}")


def changes(before: Endpoint, given: Mapping[str, Any]) -> dict[str, Any]:
    """What really changes, as fields of an Endpoint; `filters` and `event_types` are replaced as wholes."""
    asked: dict[str, Any] = {name: given[name] for name in _PLAIN if name in given}
    if "event_types" in given:
        asked["event_types"] = types_of(given["event_types"])
    if "filters" in given:
        asked["filters"] = filters_of(given["filters"])
    if given.get("status", before.status) != before.status:
        asked |= {"status": given["status"], "disabled_for": None, "failing_since": None}
    return {name: value for name, value in asked.items() if getattr(before, name) != value}
