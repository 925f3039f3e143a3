"""Working a source's kept snapshot through once more: on request, and after a mapping was confirmed. Nothing is fetched."""

from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.ingestion.model import FeedSettings
from domain.jobs.ports import JobStore
from domain.kernel.errors import Conflict
from domain.mappings.model import SourceMapping
from domain.runs.model import PushInput, Run, RunTrigger
from domain.runs.ports import RunStore
from domain.runs.queueing import execution, queued, started
from domain.runs.sheets import context_of
from domain.sources.model import HANDED_IN_KINDS, Source
from domain.storage.ports import StorageLedger
from ports.unit_of_work import Tx


class Replayer:
    """domain.mappings.usecases.Replaying, and what stands behind a replay that was asked for."""

    def settings(self, source: Source, stream: Stream) -> FeedSettings:
        """How the source's values are read."""
        return context_of(source, stream)

    async def after_mapping(self, tx: Tx, source: Source, mapping: SourceMapping) -> None:
        """Queue a run over the snapshot that the mapping is about, or else the newest; none where nothing is kept.

        Raises Conflict while a run is open.
        """
        kept = await tx[RunStore].replayable(source.id, mapping.stream)
        chosen = next((run for run in kept if mapping.id in run.mappings), kept[0] if kept else None)
        if chosen is None:
            await _refuse_open(tx, source, mapping.stream)
            return
        await self._queue(tx, source, chosen, RunTrigger.MAPPING)

    async def replay(self, tx: Tx, source: Source, *, stream: Stream, accept_shrink: bool) -> Run:
        """Queue a run over the newest snapshot of the stream; with `accept_shrink`, over the one that was refused for shrinking.

        The source is locked. Raises Conflict while a run is open, or where nothing is kept.
        """
        refused = await tx[RunStore].refused(source.id, stream) if accept_shrink else None
        if refused is not None and await tx[StorageLedger].holds(refused.snapshot or ""):
            return await self._queue(tx, source, refused, RunTrigger.REPLAY, accept_shrink=True)
        kept = await tx[RunStore].replayable(source.id, stream)
        if not kept:
            raise Conflict(
                f"Nothing of the source's {stream} is kept that could be read again; pull it, or hand its data in."
            )
        return await self._queue(tx, source, kept[0], RunTrigger.REPLAY, accept_shrink=accept_shrink)

    async def _queue(
        self, tx: Tx, source: Source, read: Run, trigger: RunTrigger, *, accept_shrink: bool = False
    ) -> Run:
        stream = Stream.CATALOGUE if source.kind in HANDED_IN_KINDS else read.stream
        await _refuse_open(tx, source, stream)
        run = queued(source.id, trigger, tx.now, stream=stream, input=_input(read), accept_shrink=accept_shrink)
        run = run.over(read)
        await tx[RunStore].add(run)
        await tx[JobStore].add(execution(run, tx.tenant))
        await tx[AuditLog].add(started(run))
        return run


def _input(read: Run) -> PushInput | None:
    """Of pushed records, that they are records, and whether all are there; their batch is over."""
    pushed = read.input
    if not isinstance(pushed, PushInput):
        return None
    return PushInput(None, pushed.parts, pushed.records, open=False, complete=pushed.complete)


async def _refuse_open(tx: Tx, source: Source, stream: Stream) -> None:
    if open_run := await tx[RunStore].open(source.id, stream):
        raise Conflict(f"The run {open_run.id} of this source is {open_run.status}; wait until it has ended.")
