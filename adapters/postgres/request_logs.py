"""Request logs in PostgreSQL, written in batches and listed newest first."""

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
"""Code points that PostgreSQL cannot store in text: NUL and surrogates."""
_EXTERNAL = ("method", "path", "query", "idempotency_key", "ip", "user_agent")
_ENCODE = msgspec.json.Encoder().encode


class PostgresRequestLogStore(TenantStore, RequestLogStore):
    """Request logs of the tenant. A row's key is its position, which is unique and ordered by time.

    Partitions are daily, so a page reads the nearest days first, and further ones only until it is full.
    """

    _sql = SQL

    async def get(self, id: str) -> RequestLog | None:
        return await self._first(self._log, "by_id", id=id)

    async def page(self, page_request: PageRequest, wanted: RequestLogFilter) -> Page[RequestLog]:
        names, values = _conditions(wanted)
        rows: list[Fetched] = []
        end, scanned = None, 0
        for low, high in _spans(page_request, wanted):
            result = await self._listed("list", page_request, names, **values, low=low, high=high)
            number, first, last = result[0][:3]
            matches = [row[3:] for row in result if row[3] is not None]
            rows += sorted(matches, key=_position_of, reverse=not page_request.backwards)
            scanned += number
            if len(rows) > page_request.limit:
                break
            if "cut" in names and scanned >= LOOKED:
                end = last if page_request.backwards else first
                break
        page = page_of(rows, page_request, _position_of, end)
        return Page(tuple(self._log(*row) for row in page.items), page.has_more, page.next_key)

    def _log(self, *row: Any) -> RequestLog:
        id_, method, path, route, query, status, error_code, duration_ms, actor, *rest = row[:15]
        request = (method, path, route, query, status, error_code, duration_ms, Actor(**actor))
        return RequestLog(id_, self._session.tenant, *request, *rest)


def _position_of(row: Fetched) -> str:
    return str(row[15])


_SPANS = (timedelta(days=1), timedelta(days=4))
"""Time spans from the page's start that are read first and second; the third read has no limit."""


def _conditions(wanted: RequestLogFilter) -> tuple[frozenset[str], dict[str, Any]]:
    """Return the optional lines of the list's statement for a filter, and their parameters."""
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
    """Iterate over the time spans that a page reads, in its direction."""
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
"""Digits of the milliseconds at the start of a position."""


def _position(log: RequestLog, process: str) -> str:
    """Return a position that is ordered by time, then by order of writing, and unique over all processes."""
    milliseconds = int(log.created_at.timestamp() * 1000)
    return f"{milliseconds:0{_DIGITS}d}-{next(_COUNTER):010d}-{process}"


def _text(text: str | None) -> str | None:
    """Remove characters that the database cannot store from external text; printable text contains none."""
    return text if text is None or text.isprintable() else _UNSTORABLE.sub("", text)


def _json(log: RequestLog, process: str) -> dict[str, Any]:
    external = {name: _text(getattr(log, name)) for name in _EXTERNAL}
    values = log._asdict() | external | tenant_values(log.tenant) | {"position": _position(log, process)}
    del values["tenant"]
    return values


_PRECISION = timedelta(minutes=1)
"""Precision of the recorded time of a key's last use."""
_MAX_RECORDED = 10_000
"""Maximum number of keys whose recorded uses are cached; then the cache is cleared."""


class PostgresRequestLogSink:
    """Writer of request logs across tenants: one statement per node, with the rows as one JSON parameter.

    It also records the last use of API keys, at most once a minute per key.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._process = secrets.token_hex(4)
        self._recorded: dict[str, datetime] = {}

    async def write(self, logs: Sequence[RequestLog]) -> Sequence[RequestLog]:
        homes = await self._pool.homes({log.tenant for log in logs})

        async def write(link: PooledConnection) -> Sequence[Tenant]:
            own = [log for log in logs if log.tenant in homes[link.node]]
            if uses := self._uses(own):  # before the rows, because a retry after them would write the rows twice
                await link.run(SQL["note_uses"], {"uses": _ENCODE(uses).decode()})
                self._recorded |= {use["key"]: use["used_at"] for use in uses}
            await link.run(SQL["write"], {"logs": _ENCODE([_json(log, self._process) for log in own]).decode()})
            return homes[link.node]

        written = {tenant for part in await self._pool.scatter_best_effort(write, homes) for tenant in part}
        return [log for log in logs if log.tenant not in written]

    def _uses(self, logs: Sequence[RequestLog]) -> list[dict[str, Any]]:
        """Return the last use of each key that was not recorded within the last minute."""
        if len(self._recorded) > _MAX_RECORDED:
            self._recorded.clear()
        last = {log.actor.id: log for log in logs if log.actor.kind == "api_key"}
        return [
            tenant_values(log.tenant) | {"key": key, "used_at": log.created_at}
            for key, log in last.items()
            if log.created_at >= self._recorded.get(key, EVER[0]) + _PRECISION
        ]
