"""Two queues of the event logs as discrete events: commits that wait for their log's row, and events that wait for the relay."""

import heapq
import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from domain.changes.usecases.network import AT_ONCE, PAUSE, SWEEP


@dataclass(frozen=True, slots=True)
class Hold:
    """Seconds for which a transaction holds its log's row: so many in any case, and for each of its events."""

    transaction: float
    event: float

    def of(self, events: int) -> float:
        """A transaction with so many events."""
        return self.transaction + self.event * events


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Transactions of all tenants, at random moments (Poisson): `rate` a second, each by a tenant according to its share.

    A part of them, `bulk`, are chunks of runs, of `chunk` events; the others have one event.
    """

    rate: float
    shares: Sequence[float]
    bulk: float = 0.0
    chunk: int = 1

    def draw(self, count: int, dice: random.Random) -> Iterator[tuple[float, int, int]]:
        """The moment, the tenant and the events of each, in the order of time."""
        now, steps = 0.0, list(accumulate(self.shares))
        tenants = dice.choices(range(len(self.shares)), cum_weights=steps, k=count)
        for tenant in tenants:
            now += dice.expovariate(self.rate)
            yield now, tenant, self.chunk if self.bulk and dice.random() < self.bulk else 1


def waits_for_rows(arrivals: Iterator[tuple[float, int, int]], hold: Hold) -> dict[int, list[float]]:
    """Seconds for which each transaction waited until it had its log's row, by tenant: first come, first served."""
    free: dict[int, float] = {}
    waits: dict[int, list[float]] = {}
    for now, tenant, events in arrivals:
        begins = max(now, free.get(tenant, 0.0))
        free[tenant] = begins + hold.of(events)
        waits.setdefault(tenant, []).append(begins - now)
    return waits


@dataclass(frozen=True, slots=True)
class RelayCosts:
    """Seconds: of the question how far the logs go together with a commit, of reading one owner's log, of copying an event.

    `heard`: from an owner's commit until the relay, if it waits, has heard of it. `known`: of asking one publisher more in
    a sweep.
    """

    transaction: float
    owner: float
    event: float
    heard: float = 0.001
    known: float = 0.0


@dataclass
class Relayed:
    """What came of it: seconds from commit to the network's log, the relay's busy share, and what was left over."""

    lags: list[float] = field(default_factory=list)
    order: list[tuple[int, int]] = field(default_factory=list)
    """Owner and number of each event, as the network's log has them."""
    busy: float = 0.0
    ended: float = 0.0
    most_waiting: int = 0

    @property
    def utilisation(self) -> float:
        """Of the time up to the last event's copy."""
        return self.busy / self.ended if self.ended else 0.0


class Relay:
    """One relay and its owners' logs. It looks at the owners that it has heard of, copies all that they had then, and pauses.

    Now and then it asks all `publishers` how far they go.
    """

    def __init__(self, costs: RelayCosts, publishers: int = 0) -> None:
        self._costs, self._sweep = costs, costs.known * publishers
        self._waiting: dict[int, deque[tuple[float, int]]] = {}
        """Of each owner that has any: the moments of its events that are not copied, with their numbers."""
        self._count = 0
        self._numbers: dict[int, int] = {}

    def run(self, arrivals: Iterator[tuple[float, int, int]]) -> Relayed:
        """Until everything is copied."""
        told, now, swept, coming = Relayed(), 0.0, 0.0, next(arrivals, None)
        while coming is not None or self._count:
            if not self._count:
                assert coming is not None
                now = max(now, coming[0] + self._costs.heard)
            while coming is not None and coming[0] <= now:
                self._take(*coming)
                coming = next(arrivals, None)
            told.most_waiting = max(told.most_waiting, self._count)
            began = now
            if now - swept >= SWEEP:
                swept, now = now, now + self._sweep
            now = self._look(now, told)
            told.busy += now - began
            now += PAUSE
        told.ended = now
        return told

    def _take(self, moment: float, owner: int, events: int) -> None:
        queue = self._waiting.setdefault(owner, deque())
        first = self._numbers.get(owner, 0)
        queue.extend((moment, number) for number in range(first, first + events))
        self._numbers[owner] = first + events
        self._count += events

    def _look(self, now: float, told: Relayed) -> float:
        """As many transactions as it takes; answers when the last of them is committed."""
        costs = self._costs
        while self._waiting:
            room, taken, owners = AT_ONCE, list[tuple[float, int, int]](), 0
            for owner in list(self._waiting):
                queue = self._waiting[owner]
                owners += 1
                while queue and room:
                    moment, number = queue.popleft()
                    taken.append((moment, owner, number))
                    room -= 1
                if not queue:
                    del self._waiting[owner]
                if not room:
                    break
            now += costs.transaction + owners * costs.owner + len(taken) * costs.event
            told.lags.extend(now - moment for moment, _, _ in taken)
            told.order.extend((owner, number) for _, owner, number in taken)
            self._count -= len(taken)
        return now


def together(*arrivals: Iterator[tuple[float, int, int]]) -> Iterator[tuple[float, int, int]]:
    """Several processes of arrivals as one, in the order of time."""
    return heapq.merge(*arrivals)


def quantiles(values: Sequence[float], *shares: float) -> list[float]:
    """Of unsorted values; nothing has none (nan)."""
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan") for share in shares]
