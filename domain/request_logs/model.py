"""Request logs and their filter (docs/conventions.md#request-log)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from domain.kernel.tenancy import Actor, Tenant

_MIN_FAILED_STATUS = 400
"""Lowest HTTP status of a failed request."""


class RequestLog(NamedTuple):
    """Logged request.

    Attributes:
        id: The Request-Id.
        route: Path template of the operation; None for unknown paths.
        query: The query string, or None.
        via: Channel of the request, such as `api` or `console`.
    """

    id: str
    tenant: Tenant
    method: str
    path: str
    route: str | None
    query: str | None
    status: int
    error_code: str | None
    duration_ms: int
    actor: Actor
    via: str
    api_version: str
    idempotency_key: str | None
    ip: str | None
    user_agent: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RequestLogFilter:
    """Filter of a list of request logs; None means any value.

    Attributes:
        status: An HTTP status (`404`) or a class of statuses (`4xx`).
        actor: ID of the actor.
        since: Time of the earliest matching request.
        until: Time before which matching requests were made.
    """

    status: str | None = None
    method: str | None = None
    route: str | None = None
    actor: str | None = None
    error_code: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def get_exact_values(self) -> dict[str, Any]:
        """Return the values that a request must match exactly, by field name; unset fields of the filter are omitted."""
        names = ("method", "route", "actor", "error_code")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def status_range(self) -> tuple[int, int]:
        """The lowest and the highest matching HTTP status; (100, 999) without a filter by status."""
        if self.status is None:
            return 100, 999
        if self.status.endswith("xx"):
            return int(self.status[0]) * 100, int(self.status[0]) * 100 + 99
        return int(self.status), int(self.status)

    @property
    def matches_failed_only(self) -> bool:
        """True if the filter matches failed requests only."""
        return self.error_code is not None or self.status_range[0] >= _MIN_FAILED_STATUS
