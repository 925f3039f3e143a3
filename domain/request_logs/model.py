"""Logged requests (docs/conventions.md#request-log)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from domain.kernel.tenancy import Actor, Tenant

_FAILED = 400


class RequestLog(NamedTuple):
    """A logged request.

    A tuple is cheap to create for every request. `id` is its Request-Id, `route` the operation's path template or None.
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
    """Filter of a list of requests; None means any.

    `status` is one (`404`) or a class (`4xx`), `actor` the id of the credential's owner, `until` excluded.
    """

    status: str | None = None
    method: str | None = None
    route: str | None = None
    actor: str | None = None
    error_code: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def equal(self) -> dict[str, Any]:
        """Return the fields that must be equal."""
        names = ("method", "route", "actor", "error_code")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def statuses(self) -> tuple[int, int]:
        """The lowest and the highest matching status."""
        if self.status is None:
            return 100, 999
        if self.status.endswith("xx"):
            return int(self.status[0]) * 100, int(self.status[0]) * 100 + 99
        return int(self.status), int(self.status)

    @property
    def failed(self) -> bool:
        """True if only failed requests match."""
        return self.error_code is not None or self.statuses[0] >= _FAILED
