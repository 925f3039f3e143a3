"""Pages of a log: what narrows them, how far they come, and bodies read at once where they are ordinary, else weighed."""

from datetime import datetime
from typing import Any, Final, LiteralString

from adapters.postgres.events import SQL
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.session import Fetched
from domain.changes.model import OPEN_END, EventFilter
from domain.events.model import OFF_THE_FEED, LoggedEvent, LogPosition
from domain.kernel.tenancy import Tenant

ORDINARY: Final = 4 << 10
"""Bytes up to which an event is read whatever its share: nearly all are smaller."""
FORWARDS: Final = frozenset({"forwards", "after"})
BACKWARDS: Final = frozenset({"backwards", "up_to"})
WHATEVER: Final = 1 << 30
"""The share of a body that is read however large it is."""


def narrowed(wanted: EventFilter, after: LogPosition) -> tuple[frozenset[str], dict[str, Any]]:
    """The optional lines of a statement that a filter and a position need, and their parameters."""
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
    """How large a body may be to be read at once; where any is larger, all are weighed."""
    return max(most_bytes // max(limit, 1), ORDINARY)


def furthest(position: LogPosition, end: LogPosition, *, whole: bool) -> LogPosition:
    """How far a page has come: to the end that was known before, or beyond."""
    return end if whole and position.position <= end.position < OPEN_END else position


async def fetched(link: PooledConnection, log: Tenant, sql: LiteralString, values: dict[str, Any]) -> list[Fetched]:
    """What a statement about a log answers; nothing for one that answers nothing."""
    cursor = await link.cursor.execute(sql, {"org": log.org, "livemode": log.livemode, **values})
    return await cursor.fetchall() if cursor.description else []


async def stands(link: PooledConnection, log: Tenant, position: int, time: datetime | None) -> bool:
    """Whether the event at that position is the one of that time, if one is known."""
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
    """The rows of a page up to the one that reaches the weight."""
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
    """The events of a page, at most so many and so heavy."""
    given = values | {"share": share_of(limit, most_bytes)}
    rows = await fetched(link, log, SQL["plain"].replace("{chosen}", chosen), given)
    if any(row[-1] is None for row in rows):
        rows = await weighed(link, log, chosen, given, most_bytes, direction)
    return [LoggedEvent(*row[1:]) for row in rows]
