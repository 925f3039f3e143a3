"""The jobs table in memory: queued in a transaction, claimed lane by lane under leases."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Final

from adapters.memory.table import MemoryDatabase, Table, Transaction
from domain.jobs.model import LANES_OF_ONE, Backlog, ClaimedJob, NewJob, bounded_run_at, kind_of, lane_of, parted
from domain.kernel.errors import LeaseLost
from domain.kernel.ids import new_id
from ports.clock import Clock
from ports.signals import Channel


@dataclass(frozen=True, slots=True)
class JobRow:
    """An open job; a finished one is forgotten. `lease_until` is None unless a worker holds it."""

    id: str
    number: int
    job: NewJob
    run_at: datetime
    attempt: int = 0
    dispatched: bool = False
    lease_until: datetime | None = None
    trace: str | None = None

    def held(self, now: datetime) -> bool:
        """Whether a worker's lease is in force."""
        return self.lease_until is not None and self.lease_until > now

    def claimable(self, now: datetime) -> bool:
        """Whether a worker may take it."""
        return self.run_at <= now and not self.held(now)

    def lapsed(self, now: datetime) -> bool:
        """Whether a worker held it and let the lease run out."""
        return self.lease_until is not None and self.lease_until <= now

    def again(self, run_at: datetime) -> "JobRow":
        """Waiting until that time, held by nobody."""
        return replace(self, run_at=run_at, lease_until=None, dispatched=False)


def _number(row: JobRow) -> int:
    return row.number


JOBS: Final = Table[JobRow]("jobs", lambda row: row.id, order=lambda row: f"{row.number:015d}", descending=False)


class MemoryJobs:
    """JobStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = transaction.rows(JOBS)

    async def add(self, job: NewJob) -> str:
        await self._transaction.lock()
        same = self._rows.where(lambda row: job.key is not None and (row.job.kind, row.job.key) == (job.kind, job.key))
        if same:
            return same[0].id
        number, run_at = (
            self._transaction.store.next_number(),
            bounded_run_at(job.run_at or self._transaction.now, self._transaction.now),
        )
        row = JobRow(new_id("job"), number, job, run_at, trace=self._transaction.trace)
        await self._rows.add(row)
        self._transaction.recorded.jobs.append(job)
        self._transaction.channels.add((Channel.JOBS, ""))
        return row.id

    async def hold(self, job: ClaimedJob, lease: timedelta) -> None:
        row = await self._own(job)
        await self._rows.put(replace(row, lease_until=self._transaction.now + lease))

    async def finish(self, job: ClaimedJob) -> None:
        await self._own(job)
        await self._rows.remove(job.id)

    async def put_off(self, job: ClaimedJob, run_at: datetime) -> None:
        row = await self._own(job)
        await self._rows.put(row.again(bounded_run_at(run_at, self._transaction.now)))
        self._transaction.channels.add((Channel.JOBS, ""))

    async def _own(self, job: ClaimedJob) -> JobRow:
        await self._transaction.lock()
        row = self._rows.get(job.id)
        if row is None or row.attempt != job.attempt:
            raise LeaseLost
        return row


class MemoryDispatch:
    """Dispatch."""

    def __init__(self, store: MemoryDatabase, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def _open(self) -> list[JobRow]:
        """Open jobs that no transaction is changing, oldest due first."""
        rows = [row for tenant, row in self._store.everyone(JOBS) if not self._store.locked(JOBS, tenant, row.id)]
        return sorted(rows, key=lambda row: (row.run_at, row.number))

    def _write(self, row: JobRow) -> None:
        self._store.write(JOBS, row.job.tenant, row)

    async def lanes_due(self, limit: int) -> Sequence[str]:
        now = self._clock.now()
        under_way: dict[str, set[str]] = defaultdict(set)
        due: dict[str, dict[str, list[JobRow]]] = defaultdict(lambda: defaultdict(list))
        for row in self._open():
            org, lane = row.job.tenant.org, row.job.lane
            if row.claimable(now) and (not row.dispatched or row.lapsed(now)):
                due[org][lane].append(row)
            elif row.dispatched and (row.held(now) or row.claimable(now)):
                under_way[org].add(lane)
        turns = [
            (turn, rows[0].run_at, lane, rows)
            for org, lanes in due.items()
            for turn, (lane, rows) in enumerate(list(lanes.items())[: max(0, LANES_OF_ONE - len(under_way[org]))])
        ]
        chosen = sorted(turns, key=lambda entry: entry[:2])[:limit]
        for *_, rows in chosen:
            for row in rows:
                self._write(replace(row, dispatched=True))
        return [lane_of(rows[0].job.tenant.org, lane) for _, _, lane, rows in chosen]

    async def next_due(self) -> datetime | None:
        waiting = [row.run_at for row in self._open() if not row.dispatched and row.lease_until is None]
        leases = [row.lease_until for row in self._open() if row.lease_until is not None]
        return min([*waiting, *leases], default=None)

    async def claim(self, lane: str, limit: int, lease: timedelta) -> Sequence[ClaimedJob]:
        now, (org, name) = self._clock.now(), parted(lane)

        def of_lane(row: JobRow) -> bool:
            return row.job.lane == name and org in (None, row.job.tenant.org)

        if any(of_lane(row) and row.held(now) for _, row in self._store.everyone(JOBS)):
            return []
        rows = sorted((row for row in self._open() if of_lane(row) and row.claimable(now)), key=_number)
        return [self._take(row, now + lease) for row in rows[:limit]]

    def _take(self, row: JobRow, until: datetime) -> ClaimedJob:
        self._write(replace(row, attempt=row.attempt + 1, lease_until=until, dispatched=True))
        job, lapsed = row.job, row.lease_until is not None
        return ClaimedJob(row.id, job.kind, job.lane, job.tenant, job.args, row.attempt + 1, lapsed, row.trace)

    def _held(self, job: ClaimedJob) -> JobRow | None:
        row = self._store.committed(JOBS, job.tenant).get(job.id)
        return row if row and row.attempt == job.attempt else None

    async def renew(self, job: ClaimedJob, lease: timedelta) -> bool:
        row = self._held(job)
        if row is None:
            return False
        self._write(replace(row, lease_until=self._clock.now() + lease))
        return True

    async def release(self, job: ClaimedJob, run_at: datetime) -> None:
        row = self._held(job)
        if row is not None:
            self._write(row.again(bounded_run_at(run_at, self._clock.now())))
            self._store.notify(Channel.JOBS, "")

    async def backlog(self, most: int | None = None) -> Sequence[Backlog]:
        now, found = self._clock.now(), defaultdict[str, list[Backlog]](list)
        for row in self._open():
            lanes = kind_of(row.job.lane)
            if row.held(now):
                found[lanes].append(Backlog(lanes, 0, 1, None))
            elif row.run_at <= now:
                found[lanes].append(Backlog(lanes, 1, 0, row.run_at))
        parts = islice((one for parts in found.values() for one in parts), most)
        kept = groupby(sorted(parts, key=lambda one: one.lanes), key=lambda one: one.lanes)
        return [Backlog.of(list(same)) for _, same in kept]

    async def reset_dispatched(self) -> None:
        for row in self._open():
            if row.dispatched and row.lease_until is None:
                self._write(replace(row, dispatched=False))
