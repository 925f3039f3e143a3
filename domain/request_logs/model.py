"""One logged request (docs/conventions.md#request-log)."""

from datetime import datetime
from typing import NamedTuple

from domain.kernel.tenancy import Actor, Tenant


class RequestLog(NamedTuple):
    """A request of an organisation (a tuple, because every request makes one); `id` is its Request-Id, `route` the operation's path template or None."""

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
