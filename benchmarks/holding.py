"""For how long a transaction holds its log's row: from the moment before the row is raised until the commit has ended."""

import statistics
import time
from collections.abc import Sequence
from typing import Any

from adapters.postgres.events import PostgresEventLog
from benchmarks.ingest import line
from benchmarks.publishing import Publisher
from benchmarks.stack import CALL, Stack
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

SIZES = (1, 10, 100, 1000)
TURNS = 40


class TimedLog(PostgresEventLog):
    """Knows when everything slow was done, and when the commit was."""

    began: float
    ended: float

    def _columns(self, events: Sequence[Event]) -> dict[str, Any]:
        rows = super()._columns(events)
        self.began = time.perf_counter()
        return rows

    async def _stage(self, events: Sequence[Event]) -> None:
        await super()._stage(events)
        self.began = time.perf_counter()

    async def notify(self) -> None:
        """Called once committed."""
        self.ended = time.perf_counter()
        await super().notify()


async def hold_figures(parts: Stack) -> None:
    """Milliseconds by events in the transaction, one writer, and what they come to."""
    organisation = await parts.organisation("Held")
    publisher = Publisher(Tenant(organisation.id, True), organisation.catalogue(True))
    least: dict[int, float] = {}
    for events in SIZES:
        found = sorted([await _held(parts, publisher, events) for _ in range(TURNS)][5:])
        least[events] = found[0]
        line(
            f"row held, {events:,} events",
            f"{found[0] * 1000:8.2f} ms   median {statistics.median(found) * 1000:.2f}   p95 {found[-2] * 1000:.2f}",
        )
    event = (least[SIZES[-1]] - least[1]) / (SIZES[-1] - 1)
    line("  a transaction, an event in it", f"{(least[1] - event) * 1000:8.2f} ms  {event * 1e6:.1f} µs")


async def _held(parts: Stack, publisher: Publisher, count: int) -> float:
    async with parts.container[UnitOfWork].begin(publisher.tenant, CALL) as tx:
        log = tx[EventLog]
        assert isinstance(log, PostgresEventLog)
        log.__class__ = TimedLog
        await log.append(publisher.next(count))
    assert isinstance(log, TimedLog)
    return log.ended - log.began
