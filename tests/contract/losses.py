"""What a log loses: its newest events, with a server that goes back in time, and its oldest by age."""

from typing import Any

from adapters.memory.events import EVENTS, MemoryEventReader
from domain.kernel.tenancy import Tenant
from tests.support.backend import Backend

_FORGET = """
WITH gone AS (DELETE FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position >= %(first)s)
UPDATE event_logs AS l SET last = %(first)s - 1, time = (
    SELECT e.time FROM events AS e
    WHERE e.org = l.org AND e.livemode = l.livemode AND e.position = %(first)s - 1
) WHERE l.org = %(org)s AND l.livemode = %(livemode)s
"""
_AGED = """
WITH gone AS (DELETE FROM events WHERE org = %(org)s AND livemode = %(livemode)s AND position <= %(low)s)
UPDATE event_logs SET low = %(low)s WHERE org = %(org)s AND livemode = %(livemode)s
"""


async def forget(backend: Backend, log: Tenant, first: int) -> None:
    """Lose the events from there on, as if they had never been; the epoch stays: nobody has noticed."""
    reader = backend.events
    if isinstance(reader, MemoryEventReader):
        _erase(reader, log, lambda position: position >= first)
        return
    await _run(reader, _FORGET, {"org": log.org, "livemode": log.livemode, "first": first})


async def raise_low_watermark(backend: Backend, log: Tenant, low: int) -> None:
    """Drop the events up to there by age."""
    reader = backend.events
    if isinstance(reader, MemoryEventReader):
        reader._store.low_watermarks[log] = low
        _erase(reader, log, lambda position: position <= low)
        return
    await _run(reader, _AGED, {"org": log.org, "livemode": log.livemode, "low": low})


def _erase(reader: MemoryEventReader, log: Tenant, lost: Any) -> None:
    kept = reader._store.committed(EVENTS, log)
    for key in [key for key in kept if lost(int(key))]:
        del kept[key]


async def _run(reader: Any, statement: str, values: dict[str, Any]) -> None:
    async with reader._pool.owner() as link:
        await link.cursor.execute(statement, values)
