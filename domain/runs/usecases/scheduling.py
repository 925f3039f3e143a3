"""Scheduled tasks of runs: due pulls, changes of followed catalogues, and expiry of batches that receive no further parts."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.catalogue.model import Stream
from domain.changes.ports import NetworkLog
from domain.jobs.ports import JobStore
from domain.kernel import retention
from domain.kernel.errors import Conflict
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.runs.model import OPEN_STATUSES, PushInput, Run, RunError, RunErrorCode, RunStatus, RunTrigger
from domain.runs.ports import PushStore, RunStore
from domain.runs.run_queue import new_execution_job, new_run
from domain.sources.model import Follower
from domain.sources.ports import SourceSchedule, SourceStore
from domain.storage.model import StoredKind
from domain.storage.ports import StorageLedger, StorageUpkeep
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.runs")
_BATCH_SIZE = 100
_RETRY_DELAY = timedelta(minutes=5)
"""Delay before another attempt to queue a run of a source whose previous run is still open."""


def _create_context(action: str) -> AuditContext:
    return AuditContext(Actor("service", "scheduler"), action)


@dataclass(frozen=True, slots=True)
class RunScheduler:
    """Queues runs for sources whose next pull is due, and for sources whose catalogue on the network has changed."""

    uow: UnitOfWork
    schedule: SourceSchedule
    clock: Clock
    network: NetworkLog

    async def queue_runs_of_followers(self) -> None:
        """Queue a run for every source that follows a catalogue which has changed since the source's newest run began.

        A change during a run is noticed when the run has ended. The state is stored with the run, so a killed process loses no
        change.
        """
        followers = await self.schedule.list_followers(self.clock.now())
        positions = {
            livemode: await self.network.load_checkpoints(livemode)
            for livemode in {follower.tenant.livemode for follower in followers}
        }
        for follower in followers:
            tenant, readable = follower.tenant, follower.catalogue
            position = positions[tenant.livemode].get(Tenant(readable.publisher or "", tenant.livemode))
            if follower.state != readable.describe_state(position):
                try:
                    await self._queue_run_of_follower(follower)
                except Exception:
                    _LOG.exception("the run of a followed catalogue could not be queued", extra={"org": tenant.org})

    async def _queue_run_of_follower(self, follower: Follower) -> None:
        async with self.uow.begin(follower.tenant, _create_context("runs.follow")) as tx:
            source = await tx[SourceStore].get(follower.source, lock=True)
            if source is not None and source.is_runnable:
                await self._queue_run_unless_open(tx, source.id, Stream.CATALOGUE)

    async def queue_due_runs(self) -> datetime | None:
        """Queue a run for every due source and stream; return when the next one is due, or None."""
        while due := await self.schedule.list_due(self.clock.now(), _BATCH_SIZE):
            for tenant, source, stream in due:
                await self._queue_due_run(tenant, source, Stream(stream))
        return await self.schedule.find_next_due()

    async def _queue_due_run(self, tenant: Tenant, id: str, stream: Stream) -> None:
        """Queue a run if one is still due, and set the time of the next pull, in one transaction."""
        async with self.uow.begin(tenant, _create_context("runs.schedule")) as tx:
            source = await tx[SourceStore].get(id, lock=True)
            if source is None:
                return
            due, minutes = source.get_next_pull(stream), source.get_interval_minutes(stream)
            following = source.schedule.find_next_clock_time(stream, tx.now)
            if minutes is not None:
                following = tx.now + timedelta(minutes=minutes)
            if following is None or not source.is_runnable:
                await tx[SourceStore].save(source.schedule_next_pull(stream, None))
            elif due is not None and due <= tx.now:
                is_queued = await self._queue_run_unless_open(tx, id, stream)
                at = following if is_queued else tx.now + _RETRY_DELAY
                await tx[SourceStore].save(source.schedule_next_pull(stream, at))

    async def _queue_run_unless_open(self, tx: Tx, id: str, stream: Stream) -> bool:
        """Queue a run of the stream unless another run of the stream is open; return whether a run was queued."""
        if await tx[RunStore].find_open(id, stream):
            return False
        run = new_run(id, RunTrigger.SCHEDULE, tx.now, stream=stream)
        try:
            async with tx.savepoint():
                await tx[RunStore].add(run)
        except Conflict:
            return False
        await tx[JobStore].add(new_execution_job(run, tx.tenant))
        return True


@dataclass(frozen=True, slots=True)
class BatchExpiry:
    """Expires batches that have waited too long for further parts (docs/conventions.md#pushed-records)."""

    uow: UnitOfWork
    upkeep: StorageUpkeep
    clock: Clock

    async def expire_batches(self) -> int:
        """Cancel the runs of open batches whose last part is too old, and delete the parts.

        Returns the number of cancelled runs.
        """
        expired = 0
        while due := await self.upkeep.list_due({StoredKind.PUSH}, self.clock.now(), _BATCH_SIZE):
            for tenant, key in due:
                expired += await self._expire_batch(tenant, key)
        return expired

    async def _expire_batch(self, tenant: Tenant, key: str) -> bool:
        """Expire a batch unless another part has arrived or its run is being executed; return whether it has expired.

        Args:
            tenant: The tenant of the batch.
            key: Key of the batch's entry in the storage ledger; its last component is the ID of the run.
        """
        async with self.uow.begin(tenant, _create_context("runs.expire")) as tx:
            id = key.rpartition("/")[2]
            run = await tx[RunStore].get(id)
            if run is not None:
                await tx[SourceStore].get(run.source, lock=True)  # so that no part can arrive meanwhile
                run = await tx[RunStore].get(id)
            entry = await tx[StorageLedger].get(key)
            if entry is None or entry.free_after > tx.now:
                return False
            is_waiting = run and run.status == RunStatus.QUEUED and isinstance(run.input, PushInput) and run.input.open
            if run is not None and run.status in OPEN_STATUSES and not is_waiting:
                await tx[StorageLedger].free_due([key], tx.now + retention.OPEN_BATCHES)
                return False
            if run is not None and is_waiting:
                error = RunError(RunErrorCode.BATCH_EXPIRED, _EXPIRED)
                await tx[RunStore].save(run.with_end(RunStatus.CANCELLED, tx.now, error))
            await tx[PushStore].delete_parts(id)
            return bool(is_waiting)


_EXPIRED = (
    f"The batch received no further part for {retention.OPEN_BATCHES // timedelta(hours=1)} hours and expired. Nothing "
    f"was stored. Send all parts again under another name."
)


def refuse_expired_batch(newest_run: Run | None, now: datetime) -> None:
    """Raise Conflict if a batch with the same name has expired recently; a late part must not start a new batch.

    Args:
        newest_run: The newest run with the batch's name, or None.
        now: The current time.
    """
    if newest_run is None or newest_run.error is None or newest_run.error.code != RunErrorCode.BATCH_EXPIRED:
        return
    if newest_run.finished_at is not None and now < newest_run.finished_at + retention.EXPIRED_BATCHES:
        raise Conflict(f"The batch has expired (run {newest_run.id}). Send all parts again under another name.")
