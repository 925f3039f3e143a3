"""Dry run of a run: its outcome, computed in a transaction that is rolled back (docs/push.md)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from domain.audit.model import Change
from domain.catalogue.model import Stream
from domain.events.model import Event
from domain.ingestion.ports import FeedReaders, ParseFailed, ReaderDied
from domain.ingestion.reading import NeedsMapping, StockSheet
from domain.kernel.plain import plain
from domain.kernel.problems import Problem
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs.model import PushInput, Run
from domain.runs.usecases.chunking import Feed, Portion, Reconciliation
from domain.runs.usecases.execution import known_to, order_of, unheard
from domain.runs.usecases.guarding import ShrinkRefused, refuse_shrink
from domain.runs.usecases.spooling import ProblemLog
from domain.sources.model import Source
from ports.unit_of_work import Tx
from ports.workspaces import Workspaces

ROWS = 1_000
"""Maximum number of rows of a file that are read."""
RECORDS = 5_000
"""Maximum number of records of a batch that are read, including its earlier parts."""
BYTES = 64 << 20
"""Maximum size of a file, in bytes, because it must be downloaded from the object store first."""
SECONDS = 20.0
TOLD = 100
"""Maximum number of changes, events and problems listed; all are counted."""


class _Released(Exception):
    """Context that releases the locks on loaded objects, so that writers do not wait for a dry run."""


@dataclass(frozen=True, slots=True)
class _Within:
    """A UnitOfWork that stays in the open transaction."""

    tx: Tx

    def begin(self, _tenant: Tenant, _context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        return nullcontext(self.tx)

    scratch = begin

    def read(self, _tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        return nullcontext(self.tx)

    snapshot = read


@dataclass(slots=True)
class _Outcome:
    """Events, counts, problems and warnings so far."""

    events: list[Event] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    problems: ProblemLog = field(default_factory=ProblemLog)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Dry run that reads submitted data as a run would and compares it with the catalogue; nothing is stored."""

    readers: FeedReaders
    workspaces: Workspaces

    async def push(self, tx: Tx, source: Source, run: Run, parts: AsyncIterator[bytes], left_out: int) -> Run:
        """Return the run as it would end with these parts; `left_out` counts earlier records that are not read."""
        outcome = _Outcome()
        if isinstance(run.input, PushInput) and run.input.open:
            outcome.warnings.append("The batch stays open. The preview assumes that this is its last part.")
        if left_out:
            outcome.warnings.append(
                f"{left_out:,} records of the batch that came before are not read in a dry run, so what the batch would "
                "withdraw is not told."
            )
        return await self._rehearse(tx, source, run, parts, outcome, whole=not left_out)

    async def file(self, tx: Tx, source: Source, run: Run, chunks: AsyncIterator[bytes], size: int) -> Run:
        """Return the run as it would end with a file of this size."""
        outcome = _Outcome()
        if size > BYTES:
            outcome.warnings.append(f"A dry run does not read files of more than {BYTES >> 20} MiB.")
            return _report(tx, run, outcome)
        return await self._rehearse(tx, source, run, chunks, outcome, limit=ROWS)

    async def _rehearse(
        self,
        tx: Tx,
        source: Source,
        run: Run,
        content: AsyncIterator[bytes],
        outcome: _Outcome,
        *,
        whole: bool = True,
        limit: int | None = None,
    ) -> Run:
        """Process the content; `whole`: the content is complete."""
        with self.workspaces.folder() as folder:
            path = folder / "snapshot"
            with path.open("wb") as file:
                async for chunk in content:
                    file.write(chunk)
            try:
                async with asyncio.timeout(SECONDS):
                    for attempt in (run, replace(run, stream=Stream.STOCK)):
                        order = order_of(attempt, source, path, await known_to(tx, attempt), limit)
                        with suppress(StockSheet):
                            async with self.readers.open(order) as reader:
                                spooled = await reader.spool(unheard)
                                feed = Feed(_Within(tx), tx.tenant, tx.context, source, attempt.stream, reader, spooled)
                                await _carry_out(tx, feed, attempt, outcome, whole=whole, limit=limit)
                            break
            except (ParseFailed, ReaderDied) as failure:
                outcome.warnings.append(f"The run would fail with parse_failed: {failure}")
            except NeedsMapping as failure:
                outcome.warnings.append(f"The run would stop with mapping_required: {failure}")
            except ShrinkRefused as refusal:
                outcome.warnings.append(f"The run would fail with shrink_refused: {refusal}")
            except TimeoutError:
                outcome.warnings.append(f"A dry run takes {SECONDS:.0f} seconds at most; what is told is incomplete.")
        return _report(tx, run, outcome)


async def _carry_out(tx: Tx, feed: Feed, run: Run, outcome: _Outcome, *, whole: bool, limit: int | None) -> None:
    rows, outcome.problems = feed.spooled.rows, feed.problems
    outcome.counts["rows"] = rows
    cut = limit is not None and rows >= limit
    if cut:
        outcome.warnings.append(
            f"Only the first {rows:,} rows were read; what the whole file would withdraw is not told."
        )
    complete = run.complete and whole and not cut
    if complete:
        await refuse_shrink(feed, run)
    for number in range(len(feed.chunks)):
        chunk = await feed.compare(number)
        diff = chunk.diff
        absent = sorted(diff.absent)[:RECORDS] if complete else []
        if complete and len(diff.absent) > len(absent):
            outcome.warnings.append(f"{len(diff.absent) - len(absent):,} further items would be withdrawn.")
        changed = diff.changed | diff.returned
        stated = await feed.states(chunk, changed | frozenset(diff.troubled))
        statements = [one for one in stated.statements if one.key not in diff.troubled]
        portion = Portion(chunk, changed, absent, number + 1, True, statements, stated.problems)
        with suppress(_Released):
            async with tx.savepoint():
                reconciliation = await Reconciliation.begin(tx, feed, run, portion, complete=complete)
                raise _Released
        await asyncio.to_thread(reconciliation.apply)
        reconciler = reconciliation.reconciler
        for problem in (*stated.problems, *reconciler.problems):
            feed.problems.add(problem)
        outcome.events += reconciler.events
        outcome.counts.update(reconciler.counts)
        outcome.counts["unchanged"] += diff.unchanged


def _report(tx: Tx, run: Run, outcome: _Outcome) -> Run:
    """Set the dry run's report and return the run with its counts and problems."""
    recorded, problems = tx.recorded, outcome.problems
    recorded.changes += map(_change, outcome.events[:TOLD])
    recorded.events += outcome.events[:TOLD]
    recorded.warnings += [*outcome.warnings, *map(_sentence, problems.kept[:TOLD])]
    if problems.total > TOLD:
        recorded.warnings.append(f"{problems.total - TOLD:,} further problems are not told one by one.")
    stats = {name: number for name, number in {**outcome.counts, "problems": problems.total}.items() if number}
    recorded.forecasts["outcome"] = {
        "stats": stats,
        "changes": len(outcome.events),
        "told": min(TOLD, len(outcome.events)),
    }
    return replace(run, stats={**run.stats, **stats}, problems=tuple(problems.kept))


def _change(event: Event) -> Change:
    """Return the change that the event describes."""
    noun, _, what = event.type.partition(".")
    old: dict[str, Any] = {path: plain(before) for path, before, _ in event.fields if before is not None}
    new: dict[str, Any] = {path: plain(after) for path, _, after in event.fields if after is not None}
    return Change(noun, event.subject, "create" if what == "created" else "update", old, new)


def _sentence(problem: Problem) -> str:
    place = [problem.sheet, f"line {problem.line}" if problem.line else None, problem.external_id]
    where = ", ".join(part for part in place if part)
    return f"{where}: {problem.field}: {problem.detail}" if where else f"{problem.field}: {problem.detail}"
