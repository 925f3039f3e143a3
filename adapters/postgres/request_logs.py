"""Request logs in PostgreSQL: written many at a time, read newest first."""

import re
import secrets
from collections.abc import Sequence
from itertools import count
from typing import Any

import msgspec

from adapters.postgres.listing import page_names, page_of, page_params
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.session import Fetched, Session
from adapters.postgres.sqlfile import rendered, statements
from domain.kernel.errors import Unavailable
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Actor, Tenant
from domain.request_logs.model import RequestLog

SQL = statements("request_logs")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""What PostgreSQL holds in no text: NUL, and what is no character."""
_ENCODE = msgspec.json.Encoder().encode


def _log(row: Fetched, tenant: Tenant) -> RequestLog:
    id_, method, path, route, query, status, error_code, duration_ms, actor, *rest = row[:15]
    return RequestLog(id_, tenant, method, path, route, query, status, error_code, duration_ms, Actor(**actor), *rest)


class PostgresRequestLogStore:
    """The tenant's request logs. An item's key is its position: time-ordered and unique."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self, id: str) -> RequestLog | None:
        row = await self._session.one(rendered(SQL["list"], frozenset({"id", "forwards"}), 1), id=id)
        return _log(row, self._session.tenant) if row else None

    async def page(self, page_request: PageRequest) -> Page[RequestLog]:
        statement = rendered(SQL["list"], page_names(page_request), page_request.limit + 1)
        rows = await self._session.all(statement, **page_params(page_request))
        page = page_of(rows, page_request, lambda row: str(row[15]))
        tenant = self._session.tenant
        return Page(tuple(_log(row, tenant) for row in page.items), page.has_more, page.next_key)


_PROCESS = secrets.token_hex(4)
_COUNTER = count()


def _position(log: RequestLog) -> str:
    """Ordered by time, then by the order of writing; unique over all processes."""
    milliseconds = int(log.created_at.timestamp() * 1000)
    return f"{milliseconds:013d}-{next(_COUNTER):010d}-{_PROCESS}"


def _text(given: str | None) -> str | None:
    """Text from outside, without what the database cannot hold (most is printable, and holds none)."""
    return given if given is None or given.isprintable() else _UNSTORABLE.sub("", given)


def _json(log: RequestLog) -> dict[str, Any]:
    return {
        "org": log.tenant.org,
        "livemode": log.tenant.livemode,
        "position": _position(log),
        "id": log.id,
        "method": _text(log.method),
        "path": _text(log.path),
        "route": log.route,
        "query": _text(log.query),
        "status": log.status,
        "error_code": log.error_code,
        "duration_ms": log.duration_ms,
        "actor": {"kind": log.actor.kind, "id": log.actor.id, "on_behalf_of": log.actor.on_behalf_of},
        "via": log.via,
        "api_version": log.api_version,
        "idempotency_key": _text(log.idempotency_key),
        "ip": _text(log.ip),
        "user_agent": _text(log.user_agent),
        "created_at": log.created_at,
    }


class PostgresRequestLogSink:
    """Across tenants: one statement for many finished requests of a node, the rows as one JSON parameter."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def write(self, logs: Sequence[RequestLog]) -> Sequence[RequestLog]:
        homes = await self._pool.homes({log.tenant for log in logs})
        missed: list[RequestLog] = []
        for node, tenants in homes.items():
            own = set(tenants)
            theirs = [log for log in logs if log.tenant in own]
            body = _ENCODE([_json(log) for log in theirs]).decode()
            try:
                async with self._pool.at(node) as link:
                    await link.cursor.execute(SQL["write"], {"logs": body})
            except Unavailable:
                missed += theirs
                if len(missed) == len(logs):
                    raise
        return missed
