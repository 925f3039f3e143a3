"""Request logs in PostgreSQL, written in batches and listed newest first."""

import re
import secrets
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec

from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.stores import (
    SCAN_LIMIT,
    TIME_BOUNDS,
    TenantStore,
    build_page,
    build_tenant_params,
    load_statements,
)
from domain.kernel.clock import now
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Actor, Tenant
from domain.request_logs.model import RequestLog, RequestLogFilter
from domain.request_logs.ports import RequestLogStore

SQL = load_statements("request_logs", scan_limit=str(SCAN_LIMIT))
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""Code points that PostgreSQL cannot store in text: NUL and surrogates."""
_EXTERNAL_FIELDS = ("method", "path", "query", "idempotency_key", "ip", "user_agent")
_ENCODE = msgspec.json.Encoder().encode


class PostgresRequestLogStore(TenantStore, RequestLogStore):
    """Request logs of the tenant. The key of a row is its position, which is unique and ordered by time.

    Partitions are daily, so a page reads the last days first, and earlier days only while the page is not full.
    """

    _sql = SQL

    async def get(self, id: str) -> RequestLog | None:
        return await self._fetch_first(self._build_log, "get_log", id=id)

    async def page(self, page_request: PageRequest, log_filter: RequestLogFilter) -> Page[RequestLog]:
        names, values = _build_conditions(log_filter)
        rows: list[DatabaseRow] = []
        end, scanned = None, 0
        for low, high in _iterate_spans(page_request, log_filter):
            result = await self._fetch_page_rows("list_logs", page_request, names, **values, low=low, high=high)
            number, first, last = result[0][:3]
            matches = [row[3:] for row in result if row[3] is not None]
            rows += sorted(matches, key=_get_position, reverse=not page_request.backwards)
            scanned += number
            if len(rows) > page_request.limit:
                break
            if "scan_limit" in names and scanned >= SCAN_LIMIT:
                end = last if page_request.backwards else first
                break
        page = build_page(rows, page_request, _get_position, end)
        return Page(tuple(self._build_log(*row) for row in page.items), page.has_more, page.next_key)

    def _build_log(self, *row: Any) -> RequestLog:
        id_, method, path, route, query, status, error_code, duration_ms, actor, *rest = row[:15]
        request = (method, path, route, query, status, error_code, duration_ms, Actor(**actor))
        return RequestLog(id_, self._session.tenant, *request, *rest)


def _get_position(row: DatabaseRow) -> str:
    return str(row[15])


_SPAN_LENGTHS = (timedelta(days=1), timedelta(days=4))
"""Lengths of the first and the second time span that a page reads; the third span has no limit."""


def _build_conditions(log_filter: RequestLogFilter) -> tuple[frozenset[str], dict[str, Any]]:
    """Return the names of the optional lines that the list's statement needs for a filter, and the lines' parameters.

    `render_statement` selects the lines by these names.
    """
    values = log_filter.get_exact_values()
    names = frozenset(values)
    if log_filter.status:
        names |= {"status"}
        values["min_status"], values["max_status"] = log_filter.status_range
    names |= {"scan_limit"} if values else {"page_limit"}
    if log_filter.matches_failed_only:
        names |= {"failed"}
    return names, values


def _iterate_spans(page_request: PageRequest, log_filter: RequestLogFilter) -> Iterator[tuple[datetime, datetime]]:
    """Yield the time spans that a page reads one after the other, in the direction of the page."""
    low, high = (
        max(log_filter.since or TIME_BOUNDS[0], TIME_BOUNDS[0]),
        min(log_filter.until or TIME_BOUNDS[1], TIME_BOUNDS[1]),
    )
    if low >= TIME_BOUNDS[1] or high <= TIME_BOUNDS[0]:
        return
    key_time = None
    if page_request.key is not None:
        key_time = datetime.fromtimestamp(int(page_request.key[:_TIME_DIGITS]) / 1000, UTC)
    if page_request.backwards:
        low = max(low, key_time) if key_time else low
    else:
        high = min(high, key_time + timedelta(milliseconds=1)) if key_time else high
    span_start = low if page_request.backwards else high
    span_start = now() if span_start in TIME_BOUNDS else span_start
    for span in _SPAN_LENGTHS:
        if page_request.backwards and low < span_start + span < high:
            yield low, span_start + span
            low = span_start + span
        elif not page_request.backwards and low < span_start - span < high:
            yield span_start - span, high
            high = span_start - span
    if low < high:
        yield low, high


_COUNTER = count()
_TIME_DIGITS = 13
"""Number of digits of the time at the start of a position, in milliseconds since 1970."""


def _create_position(log: RequestLog, process: str) -> str:
    """Return a position that is unique over all processes, ordered by the log's time and then by the order of creation."""
    milliseconds = int(log.created_at.timestamp() * 1000)
    return f"{milliseconds:0{_TIME_DIGITS}d}-{next(_COUNTER):010d}-{process}"


def _remove_unstorable(text: str | None) -> str | None:
    """Remove the characters that PostgreSQL cannot store from a text; printable text contains none."""
    return text if text is None or text.isprintable() else _UNSTORABLE.sub("", text)


def _build_row(log: RequestLog, process: str) -> dict[str, Any]:
    external = {name: _remove_unstorable(getattr(log, name)) for name in _EXTERNAL_FIELDS}
    values = log._asdict() | external | build_tenant_params(log.tenant) | {"position": _create_position(log, process)}
    del values["tenant"]
    return values


_LAST_USE_INTERVAL = timedelta(minutes=1)
"""Minimum time between two recorded uses of an API key."""
_MAX_CACHED_KEYS = 10_000
"""Maximum number of API keys whose last recorded use is cached; beyond it, the cache is cleared."""


class PostgresRequestLogSink:
    """Writer of the request logs of all tenants: one statement per node, with all rows as one JSON parameter.

    The writer also records when each API key was last used, at most once a minute per key.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._process = secrets.token_hex(4)
        self._last_use_by_key: dict[str, datetime] = {}

    async def write(self, logs: Sequence[RequestLog]) -> Sequence[RequestLog]:
        tenants_by_node = await self._pool.group_by_node({log.tenant for log in logs})

        async def write(connection: PooledConnection) -> Sequence[Tenant]:
            node_logs = [log for log in logs if log.tenant in tenants_by_node[connection.node]]
            if uses := self._list_new_uses(
                node_logs
            ):  # before the rows, because a retry after them would write the rows twice
                await connection.run(SQL["record_key_uses"], {"uses": _ENCODE(uses).decode()})
                self._last_use_by_key |= {use["key"]: use["used_at"] for use in uses}
            await connection.run(
                SQL["insert_logs"], {"logs": _ENCODE([_build_row(log, self._process) for log in node_logs]).decode()}
            )
            return tenants_by_node[connection.node]

        written = {
            tenant for tenants in await self._pool.scatter_best_effort(write, tenants_by_node) for tenant in tenants
        }
        return [log for log in logs if log.tenant not in written]

    def _list_new_uses(self, logs: Sequence[RequestLog]) -> list[dict[str, Any]]:
        """Return the last use of each API key, without keys for which a use was recorded within the last minute."""
        if len(self._last_use_by_key) > _MAX_CACHED_KEYS:
            self._last_use_by_key.clear()
        last = {log.actor.id: log for log in logs if log.actor.kind == "api_key"}
        return [
            build_tenant_params(log.tenant) | {"key": key, "used_at": log.created_at}
            for key, log in last.items()
            if log.created_at >= self._last_use_by_key.get(key, TIME_BOUNDS[0]) + _LAST_USE_INTERVAL
        ]
