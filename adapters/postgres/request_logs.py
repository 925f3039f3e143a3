"""Request logs in PostgreSQL: written many at a time, read newest first."""

import re
import secrets
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec

from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.stores import (
    EVER,
    LOOKED,
    TenantStore,
    page_of,
    statements,
    tenant_values,
)
from domain.kernel.clock import now
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Actor, Tenant
from domain.request_logs.model import RequestLog, RequestLogFilter
from domain.request_logs.ports import RequestLogStore

SQL = statements("request_logs", looked=str(LOOKED))
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""What PostgreSQL holds in no text: NUL, and what is no character."""
_FROM_OUTSIDE = ("method", "path", "query", "idempotency_key", "ip", "user_agent")
_ENCODE = msgspec.json.Encoder().encode


class PostgresRequestLogStore(TenantStore, RequestLogStore):
    """The tenant's request logs. An item's key is its position: time-ordered and unique.

    A day is a partition, so a page looks at the days next to it first, and at further ones only while it is not full.
    """

    _sql = SQL

    async def get(self, id: str) -> RequestLog | None:
        return await self._first(self._log, "by_id", id=id)

    async def page(self, page_request: PageRequest, wanted: RequestLogFilter) -> Page[RequestLog]:
        names, values = _asked(wanted)
        rows: list[Fetched] = []
        end, looked = None, 0
        for low, high in _spans(page_request, wanted):
            found = await self._listed("list", page_request, names, **values, low=low, high=high)
            number, first, last = found[0][:3]
            passed = [row[3:] for row in found if row[3] is not None]
            rows += sorted(passed, key=_place, reverse=not page_request.backwards)
            looked += number
            if len(rows) > page_request.limit:
                break
            if "cut" in names and looked >= LOOKED:
                end = last if page_request.backwards else first
                break
        page = page_of(rows, page_request, _place, end)
        return Page(tuple(self._log(*row) for row in page.items), page.has_more, page.next_key)

    def _log(self, *row: Any) -> RequestLog:
        id_, method, path, route, query, status, error_code, duration_ms, actor, *rest = row[:15]
        logged = (method, path, route, query, status, error_code, duration_ms, Actor(**actor))
        return RequestLog(id_, self._session.tenant, *logged, *rest)


def _place(row: Fetched) -> str:
    return str(row[15])


_SPANS = (timedelta(days=1), timedelta(days=4))
"""How far beyond a page's beginning is looked first, and next; then at everything."""


def _asked(wanted: RequestLogFilter) -> tuple[frozenset[str], dict[str, Any]]:
    """The lines of the list's statement that are needed, and their parameters."""
    values = wanted.equal()
    names = frozenset(values)
    if wanted.status:
        names |= {"status"}
        values["least"], values["most"] = wanted.statuses
    names |= {"cut"} if values else {"whole"}
    if wanted.failed:
        names |= {"failed"}
    return names, values


def _spans(page_request: PageRequest, wanted: RequestLogFilter) -> Iterator[tuple[datetime, datetime]]:
    """The spans of time that a page goes through, in its direction."""
    low, high = max(wanted.since or EVER[0], EVER[0]), min(wanted.until or EVER[1], EVER[1])
    if low >= EVER[1] or high <= EVER[0]:
        return
    at = None
    if page_request.key is not None:
        at = datetime.fromtimestamp(int(page_request.key[:_DIGITS]) / 1000, UTC)
    if page_request.backwards:
        low = max(low, at) if at else low
    else:
        high = min(high, at + timedelta(milliseconds=1)) if at else high
    near = low if page_request.backwards else high
    near = now() if near in EVER else near
    for span in _SPANS:
        if page_request.backwards and low < near + span < high:
            yield low, near + span
            low = near + span
        elif not page_request.backwards and low < near - span < high:
            yield near - span, high
            high = near - span
    if low < high:
        yield low, high


_COUNTER = count()
_DIGITS = 13
"""Of the milliseconds that a position begins with."""


def _position(log: RequestLog, process: str) -> str:
    """Ordered by time, then by the order of writing; unique over all processes."""
    milliseconds = int(log.created_at.timestamp() * 1000)
    return f"{milliseconds:0{_DIGITS}d}-{next(_COUNTER):010d}-{process}"


def _text(given: str | None) -> str | None:
    """Text from outside, without what the database cannot hold (most is printable, and holds none)."""
    return given if given is None or given.isprintable() else _UNSTORABLE.sub("", given)


def _json(log: RequestLog, process: str) -> dict[str, Any]:
    outside = {name: _text(getattr(log, name)) for name in _FROM_OUTSIDE}
    values = log._asdict() | outside | tenant_values(log.tenant) | {"position": _position(log, process)}
    del values["tenant"]
    return values


_USED_EVERY = timedelta(minutes=1)
"""How exactly it is known when a key was last used."""
_KNOWN = 10_000
"""Keys of which is remembered what was written; beyond that it is written once more."""


class PostgresRequestLogSink:
    """Across tenants: one statement for many finished requests of a node, the rows as one JSON parameter.

    That a key was used is written beside them, once a minute at most.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._process = secrets.token_hex(4)
        self._noted: dict[str, datetime] = {}

    async def write(self, logs: Sequence[RequestLog]) -> Sequence[RequestLog]:
        homes = await self._pool.homes({log.tenant for log in logs})

        async def write(link: PooledConnection) -> Sequence[Tenant]:
            own = [log for log in logs if log.tenant in homes[link.node]]
            if uses := self._uses(own):  # ahead of the rows, which a second attempt would write twice
                await link.run(SQL["note_uses"], {"uses": _ENCODE(uses).decode()})
                self._noted |= {use["key"]: use["used_at"] for use in uses}
            await link.run(SQL["write"], {"logs": _ENCODE([_json(log, self._process) for log in own]).decode()})
            return homes[link.node]

        written = {tenant for part in await self._pool.scatter_best_effort(write, homes) for tenant in part}
        return [log for log in logs if log.tenant not in written]

    def _uses(self, logs: Sequence[RequestLog]) -> list[dict[str, Any]]:
        """Return the last use of each key that was not recorded within the last minute."""
        if len(self._noted) > _KNOWN:
            self._noted.clear()
        last = {log.actor.id: log for log in logs if log.actor.kind == "api_key"}
        return [
            tenant_values(log.tenant) | {"key": key, "used_at": log.created_at}
            for key, log in last.items()
            if log.created_at >= self._noted.get(key, EVER[0]) + _USED_EVERY
        ]
