"""Simulation of two queues: transactions that wait for the row of their event log, and events that wait for the relay."""

import heapq
import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from domain.changes.usecases.network import MAX_BATCH_EVENTS, PAUSE_SECONDS, SWEEP_INTERVAL_SECONDS


@dataclass(frozen=True, slots=True)
class RowHoldTime:
    """Seconds for which a transaction locks the row of its event log.

    Attributes:
        transaction: Seconds per transaction.
        event: Additional seconds per event.
    """

    transaction: float
    event: float

    def compute_seconds(self, events: int) -> float:
        """Return the seconds for a transaction with the given number of events."""
        return self.transaction + self.event * events


@dataclass(frozen=True, slots=True)
class TransactionArrivals:
    """Transactions of all tenants at random times (Poisson process).

    Attributes:
        rate: Transactions a second.
        shares: Share of the transactions, by tenant.
        bulk: Share of the transactions that are chunks of runs; the others have one event.
        chunk: Events of a chunk.
    """

    rate: float
    shares: Sequence[float]
    bulk: float = 0.0
    chunk: int = 1

    def draw(self, count: int, random_source: random.Random) -> Iterator[tuple[float, int, int]]:
        """Draw transactions; yield the time, the tenant and the number of events of each, in chronological order."""
        now, cumulative_shares = 0.0, list(accumulate(self.shares))
        tenants = random_source.choices(range(len(self.shares)), cum_weights=cumulative_shares, k=count)
        for tenant in tenants:
            now += random_source.expovariate(self.rate)
            yield now, tenant, self.chunk if self.bulk and random_source.random() < self.bulk else 1


def simulate_row_waits(arrivals: Iterator[tuple[float, int, int]], hold: RowHoldTime) -> dict[int, list[float]]:
    """Return the seconds for which each transaction waits for its row, by tenant; the queue is first in, first out."""
    free_at: dict[int, float] = {}
    waits: dict[int, list[float]] = {}
    for now, tenant, events in arrivals:
        start = max(now, free_at.get(tenant, 0.0))
        free_at[tenant] = start + hold.compute_seconds(events)
        waits.setdefault(tenant, []).append(start - now)
    return waits


@dataclass(frozen=True, slots=True)
class RelayCosts:
    """Seconds for the steps of the relay.

    Attributes:
        transaction: Query for new events, and commit.
        owner: Reading the log of one publisher.
        event: Copying an event.
        notification_delay: From a publisher's commit until an idle relay is notified.
        sweep_per_publisher: Additional time of a sweep for each publisher.
    """

    transaction: float
    owner: float
    event: float
    notification_delay: float = 0.001
    sweep_per_publisher: float = 0.0


@dataclass
class RelayResult:
    """Result of a simulation of the relay.

    Attributes:
        lags: Seconds of each event from the commit to the network log.
        order: Publisher and number of each event, in the order of the network log.
        busy: Seconds in which the relay works.
        ended: Time at which the simulation ends.
        max_waiting: Largest number of waiting events.
    """

    lags: list[float] = field(default_factory=list)
    order: list[tuple[int, int]] = field(default_factory=list)
    busy: float = 0.0
    ended: float = 0.0
    max_waiting: int = 0

    @property
    def utilisation(self) -> float:
        """Share of the time in which the relay works."""
        return self.busy / self.ended if self.ended else 0.0


class SimulatedRelay:
    """Simulation of one relay.

    It repeatedly copies all events of the publishers of which it was notified, and pauses. At intervals it queries
    all publishers.
    """

    def __init__(self, costs: RelayCosts, publishers: int = 0) -> None:
        self._costs, self._sweep = costs, costs.sweep_per_publisher * publishers
        self._waiting: dict[int, deque[tuple[float, int]]] = {}
        """Time and number of each event that is not copied yet, by publisher."""
        self._count = 0
        self._numbers: dict[int, int] = {}

    def run(self, arrivals: Iterator[tuple[float, int, int]]) -> RelayResult:
        """Simulate until all events are copied."""
        result, now, last_sweep, next_arrival = RelayResult(), 0.0, 0.0, next(arrivals, None)
        while next_arrival is not None or self._count:
            if not self._count:
                assert next_arrival is not None
                now = max(now, next_arrival[0] + self._costs.notification_delay)
            while next_arrival is not None and next_arrival[0] <= now:
                self._enqueue(*next_arrival)
                next_arrival = next(arrivals, None)
            result.max_waiting = max(result.max_waiting, self._count)
            started = now
            if now - last_sweep >= SWEEP_INTERVAL_SECONDS:
                last_sweep, now = now, now + self._sweep
            now = self._copy_waiting_events(now, result)
            result.busy += now - started
            now += PAUSE_SECONDS
        result.ended = now
        return result

    def _enqueue(self, moment: float, owner: int, events: int) -> None:
        queue = self._waiting.setdefault(owner, deque())
        first = self._numbers.get(owner, 0)
        queue.extend((moment, number) for number in range(first, first + events))
        self._numbers[owner] = first + events
        self._count += events

    def _copy_waiting_events(self, now: float, result: RelayResult) -> float:
        """Copy all waiting events, at most MAX_BATCH_EVENTS per transaction; return the time of the last commit."""
        costs = self._costs
        while self._waiting:
            capacity, copied, owner_count = MAX_BATCH_EVENTS, list[tuple[float, int, int]](), 0
            for owner in list(self._waiting):
                queue = self._waiting[owner]
                owner_count += 1
                while queue and capacity:
                    moment, number = queue.popleft()
                    copied.append((moment, owner, number))
                    capacity -= 1
                if not queue:
                    del self._waiting[owner]
                if not capacity:
                    break
            now += costs.transaction + owner_count * costs.owner + len(copied) * costs.event
            result.lags.extend(now - moment for moment, _, _ in copied)
            result.order.extend((owner, number) for _, owner, number in copied)
            self._count -= len(copied)
        return now


def merge_arrivals(*arrivals: Iterator[tuple[float, int, int]]) -> Iterator[tuple[float, int, int]]:
    """Merge several sequences of transactions in chronological order."""
    return heapq.merge(*arrivals)


def compute_quantiles(values: Sequence[float], *shares: float) -> list[float]:
    """Return the quantiles of unsorted values; all are nan if there are no values."""
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan") for share in shares]
