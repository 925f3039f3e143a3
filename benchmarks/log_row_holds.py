"""Time for which a transaction locks the row of its event log: from the update of the row to the end of the commit."""

import statistics
import time
from collections.abc import Sequence
from typing import Any

from adapters.postgres.event_log import PostgresEventLog
from benchmarks.event_publisher import Publisher
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

SIZES = (1, 10, 100, 1000)
REPETITIONS = 40


class TimedLog(PostgresEventLog):
    """Event log that records when its row is about to be locked, and when the transaction is committed.

    Attributes:
        locked_at: Time after all preparation, immediately before the row is locked.
        committed_at: Time after the commit.
    """

    locked_at: float
    committed_at: float

    def _build_insert_params(self, events: Sequence[Event]) -> dict[str, Any]:
        rows = super()._build_insert_params(events)
        self.locked_at = time.perf_counter()
        return rows

    async def _stage_events(self, events: Sequence[Event]) -> None:
        await super()._stage_events(events)
        self.locked_at = time.perf_counter()

    async def notify(self) -> None:
        """Record the time of the commit, then notify readers."""
        self.committed_at = time.perf_counter()
        await super().notify()


async def measure_row_holds(stack: Stack) -> None:
    """Print the milliseconds for which one writer locks the row, by number of events, and the cost per event."""
    organisation = await stack.create_organisation("Row holds")
    publisher = Publisher(Tenant(organisation.id, True), organisation.get_catalogue_id(True))
    shortest_times: dict[int, float] = {}
    for events in SIZES:
        times = sorted([await _measure_hold(stack, publisher, events) for _ in range(REPETITIONS)][5:])
        shortest_times[events] = times[0]
        print_figure(
            f"row lock held, {events:,} events",
            f"{times[0] * 1000:8.2f} ms   median {statistics.median(times) * 1000:.2f}   p95 {times[-2] * 1000:.2f}",
        )
    seconds_per_event = (shortest_times[SIZES[-1]] - shortest_times[1]) / (SIZES[-1] - 1)
    print_figure(
        "  per transaction, and per event",
        f"{(shortest_times[1] - seconds_per_event) * 1000:8.2f} ms  {seconds_per_event * 1e6:.1f} µs",
    )


async def _measure_hold(stack: Stack, publisher: Publisher, count: int) -> float:
    async with stack.dependencies[UnitOfWork].begin(publisher.tenant, AUDIT_CONTEXT) as tx:
        log = tx[EventLog]
        assert isinstance(log, PostgresEventLog)
        log.__class__ = TimedLog
        await log.append(publisher.generate_events(count))
    assert isinstance(log, TimedLog)
    return log.committed_at - log.locked_at
