"""Reading event logs: how far they go, and pages of a tenant's own log and of the network's.

Bodies are read at once where they are ordinary, else weighed first. The bounds of logs are read on each node for those that it holds.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString

from adapters.postgres.events import BLOCK, SQL
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, reached, reading, settled
from adapters.postgres.nodes.router import Node
from adapters.postgres.session import Fetched
from adapters.postgres.sqlfile import rendered
from domain.changes.model import NETWORK, NETWORK_GROUPS, OPEN_END, EventBatch, EventFilter, LogBounds, View
from domain.changes.ports import Grant, Recent
from domain.events.model import OFF_THE_FEED, LoggedEvent, LogPosition, weight_of, within
from domain.kernel.bounds import CHANGES_BYTES, PROCESS_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant

ORDINARY: Final = 4 << 10
"""Bytes up to which an event is read whatever its share: nearly all are smaller."""
FORWARDS: Final = frozenset({"forwards", "after"})
BACKWARDS: Final = frozenset({"backwards", "up_to"})
WHATEVER: Final = 1 << 30
"""A share that every body fits into."""


def narrowed(wanted: EventFilter, after: LogPosition) -> tuple[frozenset[str], dict[str, Any]]:
    """Return the optional lines of a statement that a filter and a position need, and their parameters."""
    given: dict[str, Any] = {}
    if wanted.types is not None:
        given["types"] = sorted(wanted.types)
    if not wanted.everything:
        given["hidden"] = list(OFF_THE_FEED)
    if wanted.catalogues is not None:
        given["catalogues"] = sorted(wanted.catalogues)
    if after.since is not None:
        given["since"] = after.since
    return frozenset(given), given


def share_of(limit: int, most_bytes: int) -> int:
    """Return how large a body may be to be read at once; where any is larger, all are weighed."""
    return max(most_bytes // max(limit, 1), ORDINARY)


def furthest(position: LogPosition, end: LogPosition, *, whole: bool) -> LogPosition:
    """Return how far a page has come: to the end that was known before, or beyond."""
    return end if whole and position.position <= end.position < OPEN_END else position


async def fetched(link: PooledConnection, log: Tenant, sql: LiteralString, values: dict[str, Any]) -> list[Fetched]:
    """Return the rows of a statement about a log, none for one that returns no rows."""
    cursor = await link.cursor.execute(sql, {"org": log.org, "livemode": log.livemode, **values})
    return await cursor.fetchall() if cursor.description else []


async def stands(link: PooledConnection, log: Tenant, position: int, time: datetime | None) -> bool:
    """Return whether the event at that position is the one of that time, if one is known."""
    if time is None:
        return True
    [(same,)] = await fetched(link, log, SQL["same"], {"after": position, "at": time})
    return bool(same)


async def weighed(
    link: PooledConnection,
    log: Tenant,
    chosen: LiteralString,
    values: dict[str, Any],
    most_bytes: int,
    direction: int = 1,
) -> list[Fetched]:
    """Return the rows of a page up to the one that reaches the weight."""
    sql = SQL["weighed"].replace("{chosen}", chosen)
    given = values | {"share": WHATEVER, "most_bytes": most_bytes, "direction": direction}
    return await fetched(link, log, sql, given)


async def page_of_log(
    link: PooledConnection,
    log: Tenant,
    chosen: LiteralString,
    values: dict[str, Any],
    limit: int,
    most_bytes: int,
    direction: int = 1,
) -> list[LoggedEvent]:
    """Return the events of a page, at most so many and so heavy."""
    given = values | {"share": share_of(limit, most_bytes)}
    rows = await fetched(link, log, SQL["plain"].replace("{chosen}", chosen), given)
    if any(row[-1] is None for row in rows):
        rows = await weighed(link, log, chosen, given, most_bytes, direction)
    return [LoggedEvent(*row[1:]) for row in rows]


async def bounds_of(
    pool: Pool, logs: Collection[Tenant], statement: LiteralString, missing: LogBounds | None
) -> Mapping[Tenant, LogBounds]:
    """Return the bounds that the statement finds, and `missing` for the others, unless that is None.

    Logs on a node out of reach are left out. Raises Unavailable when all are.
    """
    homes = await pool.homes(logs)
    found: dict[Tenant, LogBounds] = {}
    for bounds in reached(
        await settled(_ask(pool, node, tenants, statement, missing) for node, tenants in homes.items())
    ):
        found |= bounds
    return found


async def confirmed(pool: Pool, log: Tenant) -> LogBounds:
    """Return the bounds of one log, read as its tenant: on a node that no longer holds it that fails, and is repeated elsewhere."""
    rows = await pool.rows(log, SQL["confirmed"], {"org": log.org, "livemode": log.livemode})
    return LogBounds(*rows[0]) if rows else LogBounds()


async def _ask(
    pool: Pool, node: Node, logs: Sequence[Tenant], statement: LiteralString, missing: LogBounds | None
) -> dict[Tenant, LogBounds]:
    """Ask one node. Of several, one that finds nothing of a log may no longer hold it."""
    ask = reading(statement, orgs=[log.org for log in logs], livemodes=[log.livemode for log in logs])
    found = {Tenant(org, livemode): LogBounds(*numbers) for org, livemode, *numbers in await pool.on(node, ask)}
    if missing is not None:
        alone = len(await pool.holding()) == 1
        for log in [log for log in logs if log not in found]:
            found[log] = missing if alone else await confirmed(pool, log)
    return found


_TIME: Final = 8
_LOOKS: Final = (2, 8, 32)
"""Blocks that are read one step after the other until there are enough events: rare events have a block to themselves."""


class FilteredReading:
    """Pages of a tenant's own log of what a filter selects: at most some forty blocks are read that may have such events."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def page(
        self, log: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter, most_bytes: int
    ) -> tuple[bool, EventBatch]:
        """Read EventReader.page; also return whether the event behind which it begins is still there."""
        names, values = narrowed(wanted, after)
        found: list[LoggedEvent] = []
        reached, looked = after.position, 0
        async with self._pool.tenant(log) as link:
            same, last = await stands(link, log, after.position, after.time), end.position
            if last >= OPEN_END:
                last = (await fetched(link, log, SQL["high_watermark"], {}) or [(0,)])[0][0]
            values |= {"after": after.position, "up_to": last}
            for most_blocks in _LOOKS:
                most = _enough(most_blocks, looked, len(found), limit)
                blocks = await self._blocks(link, log, wanted, reached // BLOCK, most, "forwards")
                values["after"] = reached
                left = limit - len(found), most_bytes - weight_of(found)
                found += await self._look(link, log, blocks, names | FORWARDS | {"up_to"}, values, left)
                whole = len(blocks) < most
                if len(found) >= limit or weight_of(found) >= most_bytes or whole:
                    break
                reached, looked = (blocks[-1] + 1) * BLOCK, looked + len(blocks)
        full = len(found) >= limit or weight_of(found) >= most_bytes
        position = after.behind(found[-1]) if found else after
        if full:
            return same, EventBatch(found, position, caught_up=False)
        if whole or reached >= last:
            return same, EventBatch(found, furthest(position, end, whole=True), caught_up=True)
        return same, EventBatch(found, await self._behind(log, after, reached), caught_up=False)

    async def recent(self, log: Tenant, before: int, limit: int, wanted: EventFilter) -> Recent:
        """Read EventReader.recent."""
        names, values = narrowed(wanted, LogPosition())
        found: list[LoggedEvent] = []
        async with self._pool.tenant(log) as link:
            for most in _LOOKS:
                blocks = await self._blocks(link, log, wanted, (before - 2) // BLOCK, most, "backwards")
                values["up_to"] = before - 1
                left = limit - len(found), CHANGES_BYTES - weight_of(found)
                found += await self._look(link, log, blocks, names | BACKWARDS, values, left)
                if len(found) >= limit or weight_of(found) >= CHANGES_BYTES:
                    return Recent(found, found[-1].position)
                if len(blocks) < most or blocks[-1] == 0:
                    return Recent(found, 1)
                before = blocks[-1] * BLOCK + 1
        return Recent(found, before)

    async def _behind(self, log: Tenant, after: LogPosition, position: int) -> LogPosition:
        """Return the position behind the event there, which the filter need not select."""
        names, values = narrowed(EventFilter(everything=True), after)
        chosen = rendered(SQL["own"], names | {"positions", "forwards"}, 1)
        async with self._pool.tenant(log) as link:
            rows = await fetched(link, log, chosen, values | {"positions": [position], "share": 0})
        return LogPosition(after.epoch, position, rows[0][_TIME] if rows else None)

    @staticmethod
    async def _blocks(
        link: PooledConnection, log: Tenant, wanted: EventFilter, block: int, most: int, direction: str
    ) -> Sequence[int]:
        terms = wanted.types if wanted.types is not None else wanted.catalogues
        values = {"terms": sorted(terms or ()), "block": block}
        rows = await fetched(link, log, rendered(SQL["blocks"], frozenset({direction}), most), values)
        return [block for (block,) in rows]

    @staticmethod
    async def _look(
        link: PooledConnection,
        log: Tenant,
        blocks: Sequence[int],
        names: frozenset[str],
        values: dict[str, Any],
        left: tuple[int, int],
    ) -> list[LoggedEvent]:
        if not blocks:
            return []
        limit, most_bytes = left
        chosen = rendered(SQL["own_in_blocks"], names, limit)
        given = values | {"blocks": list(blocks)}
        return await page_of_log(link, log, chosen, given, limit, most_bytes, 1 if "forwards" in names else -1)


def _enough(most: int, looked: int, found: int, limit: int) -> int:
    """Estimate how many blocks hold what is still wanted, if it is as dense as until now: all that is read is sorted."""
    return min(most, -(-(limit - found) * looked // found) + 1) if found else most


WINDOW: Final = 2_000
"""Events of the log that are read at once, whoever may see them."""
_BODY: Final = 9


class NetworkReading:
    """Pages of the network's logs, as much as the reader's licences show; the cost does not depend on how many licences there are."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def page(
        self, view: View, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter, most_bytes: int
    ) -> EventBatch:
        """Read EventReader.page."""
        names, values = narrowed(wanted, after)
        values |= {"after": after.position, "at": after.time}
        async with self._pool.home(NETWORK) as link:
            rows = await self._look(link, view, names | FORWARDS, values, limit, most_bytes)
            same, reached, dated, scanned, *_ = rows[0]
            if not same and after.time is not None:
                low = await fetched(link, view.log, SQL["low_watermark"], {}) or [(0,)]
                if low[0][0] != after.position:
                    raise CursorExpired
            events = await self._events(link, view, rows, limit, most_bytes)
        if len(events) == limit or weight_of(events) >= most_bytes:
            return EventBatch(events, after.behind(events[-1]), caught_up=False)
        whole = scanned < max(WINDOW, limit)
        position = LogPosition(after.epoch, reached, dated) if reached else after
        return EventBatch(events, furthest(position, end, whole=whole), caught_up=whole)

    async def recent(self, view: View, before: int, limit: int, wanted: EventFilter) -> Recent:
        """Read EventReader.recent."""
        names, values = narrowed(wanted, LogPosition())
        values["up_to"] = before - 1
        async with self._pool.home(NETWORK) as link:
            rows = await self._look(link, view, names | BACKWARDS, values, limit, CHANGES_BYTES)
            events = await self._events(link, view, rows, limit, CHANGES_BYTES)
        if len(events) == limit or weight_of(events) >= CHANGES_BYTES:
            return Recent(events, events[-1].position)
        _, reached, _, scanned, *_ = rows[0]
        return Recent(events, 1 if scanned < max(WINDOW, limit) else reached)

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """Read EventReader.at."""
        if not positions:
            return []
        values = {"after": min(positions) - 1, "up_to": max(positions), "positions": list(positions), "at": None}
        names = FORWARDS | {"positions", "up_to"}
        async with self._pool.home(NETWORK) as link:
            rows = await self._look(link, view, names, values, len(positions), PROCESS_BYTES)
            return await self._events(link, view, rows, len(positions), PROCESS_BYTES)

    async def grants(self, log: Tenant, after: int, up_to: int, tenants: Collection[Tenant]) -> Sequence[Grant]:
        """Read EventReader.grants."""
        holders = [*sorted({tenant.org for tenant in tenants}), "*"]
        values = {"after": after, "up_to": up_to, "holders": holders}
        async with self._pool.home(NETWORK) as link:
            rows = await fetched(link, log, SQL["grants"], values)
        return [Grant(position, owner, holder, frozenset(groups)) for position, owner, holder, groups in rows]

    @staticmethod
    async def _look(
        link: PooledConnection, view: View, names: frozenset[str], values: dict[str, Any], limit: int, most_bytes: int
    ) -> list[Fetched]:
        sql = rendered(SQL["network"], names, limit).replace("{window}", str(max(WINDOW, limit)))
        reader = {"holder": view.tenant.org, "holders": [view.tenant.org, "*"]}
        return await fetched(link, view.log, sql, values | reader | {"share": share_of(limit, most_bytes)})

    async def _events(
        self, link: PooledConnection, view: View, rows: list[Fetched], limit: int, most_bytes: int
    ) -> Sequence[LoggedEvent]:
        """Return the events of a look, and read the bodies that it left out as far as there is room for them."""
        events, weight = [], 0
        for row in [row[4:] for row in rows if row[4] is not None]:
            body = row[_BODY]
            if body is None:
                left = await fetched(link, view.log, SQL["network_body"], {"position": row[0]})
                body = left[0][0] if left else b""
            events.append(LoggedEvent(*(*row[:_BODY], body, NETWORK_GROUPS.union(row[-1]))))
            weight += len(body)
            if weight >= most_bytes:
                break
        return within(events, limit, most_bytes)
