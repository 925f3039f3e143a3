"""Preview of a run: its outcome is computed in a transaction that is rolled back (docs/push.md)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from domain.audit.model import Change
from domain.catalogue.model import Stream
from domain.events.model import Event
from domain.ingestion.mapping.learned import ConfirmedMapping
from domain.ingestion.ports import FeedReaderFactory, FeedReaderFailed, ParseFailed
from domain.ingestion.snapshot_results import MappingRequired, StockOnlySnapshot
from domain.kernel.json_values import to_json_value
from domain.kernel.problems import Problem
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs.model import PushInput, Run
from domain.runs.replay import ReplayResult
from domain.runs.usecases.chunk_changes import ChunkPortion, FeedComparison, StatementApplier
from domain.runs.usecases.execution import create_run_read_request, ignore_progress, load_confirmed_mappings
from domain.runs.usecases.removal_limit import RemovalLimitExceeded, check_removal_limit
from domain.runs.usecases.spool import ProblemLog
from domain.sources.model import Source
from ports.unit_of_work import Tx
from ports.workspaces import Workspaces

MAX_FILE_ROWS = 1_000
"""Maximum number of rows of a file that are read."""
MAX_REPLAYED_ROWS = 5_000
"""Maximum number of rows of a stored file that are read to test a change."""
MAX_BATCH_RECORDS = 5_000
"""Maximum number of records of a batch that are read, including the records of earlier parts."""
MAX_FILE_BYTES = 64 << 20
"""Maximum size in bytes of a previewed file, because it is downloaded first; a larger file results in a warning."""
TIMEOUT_SECONDS = 20.0
"""Time limit of a preview."""
MAX_LISTED_ENTRIES = 100
"""Maximum number of changes, of events and of problems that are listed; further ones are only counted."""


class _Rollback(Exception):
    """Raised to roll back to a savepoint, which releases the locks on loaded objects."""


@dataclass(frozen=True, slots=True)
class _OpenTransaction:
    """UnitOfWork that returns one open transaction instead of beginning others."""

    tx: Tx

    def begin(self, _tenant: Tenant, _context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        return nullcontext(self.tx)

    begin_scratch = begin

    def begin_reading(self, _tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        return nullcontext(self.tx)

    begin_snapshot = begin_reading


@dataclass(slots=True)
class _Outcome:
    """Events, counts, problems and warnings of a preview; `error` is the reason why it is incomplete, or None."""

    events: list[Event] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    problems: ProblemLog = field(default_factory=ProblemLog)
    warnings: list[str] = field(default_factory=list)
    error: Exception | None = None

    def fail(self, error: Exception, warning: str) -> None:
        """Record the error that ends the preview, and a warning about it."""
        self.error = error
        self.warnings.append(warning)


@dataclass(frozen=True, slots=True)
class DryRun:
    """Previews runs of submitted data: reads the data and compares it with the catalogue, but stores nothing."""

    readers: FeedReaderFactory
    workspaces: Workspaces

    async def preview_push(
        self, tx: Tx, source: Source, run: Run, parts: AsyncIterator[bytes], omitted_records: int
    ) -> Run:
        """Return the run with the outcome that it would have with these parts of a batch.

        Args:
            tx: The transaction of the dry run.
            source: The source.
            run: The run that collects the batch.
            parts: The batch's parts that are read: the last ones.
            omitted_records: Number of records in earlier parts, which are not read.
        """
        outcome = _Outcome()
        if isinstance(run.input, PushInput) and run.input.open:
            outcome.warnings.append("The batch stays open. The preview assumes that no further part follows.")
        if omitted_records:
            outcome.warnings.append(
                f"{omitted_records:,} earlier records of the batch are not read in a dry run, so withdrawals are not included."
            )
        await self._process(tx, source, run, parts, outcome, is_complete=not omitted_records)
        return _report_outcome(tx, run, outcome)

    async def preview_file(self, tx: Tx, source: Source, run: Run, chunks: AsyncIterator[bytes], size: int) -> Run:
        """Return the run with the outcome that it would have with this file of `size` bytes."""
        outcome = _Outcome()
        if size > MAX_FILE_BYTES:
            outcome.warnings.append(f"The file exceeds {MAX_FILE_BYTES >> 20} MiB, so the dry run did not read it.")
        else:
            await self._process(tx, source, run, chunks, outcome, max_rows=MAX_FILE_ROWS)
        return _report_outcome(tx, run, outcome)

    async def replay_file(
        self,
        tx: Tx,
        source: Source,
        run: Run,
        chunks: AsyncIterator[bytes],
        confirmed_mappings: tuple[ConfirmedMapping, ...],
    ) -> ReplayResult:
        """Return what the run would do with this file and these confirmed mappings in place of the stored ones.

        At most MAX_REPLAYED_ROWS rows are read; without the whole file, nothing counts as withdrawn.
        """
        outcome = _Outcome()
        await self._process(
            tx, source, run, chunks, outcome, max_rows=MAX_REPLAYED_ROWS, confirmed_mappings=confirmed_mappings
        )
        counts = outcome.counts
        return ReplayResult(
            counts["rows"], counts["items"], outcome.problems.total, outcome.events, counts["withdrawn"], outcome.error
        )

    async def _process(
        self,
        tx: Tx,
        source: Source,
        run: Run,
        content: AsyncIterator[bytes],
        outcome: _Outcome,
        *,
        is_complete: bool = True,
        max_rows: int | None = None,
        confirmed_mappings: tuple[ConfirmedMapping, ...] | None = None,
    ) -> None:
        """Add to the outcome what the run would do with the content.

        Args:
            tx: The transaction of the dry run.
            source: The source.
            run: The run.
            content: The file or the pushed records.
            outcome: The outcome with the warnings so far.
            is_complete: Whether the content includes all parts of a batch.
            max_rows: Maximum number of rows to read; None for all.
            confirmed_mappings: The confirmed mappings; None for the stored ones.
        """
        with self.workspaces.create_folder() as folder:
            path = folder / "snapshot"
            with path.open("wb") as file:
                async for chunk in content:
                    file.write(chunk)
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    for candidate in (run, replace(run, stream=Stream.STOCK)):
                        mappings = confirmed_mappings
                        if mappings is None:
                            mappings = await load_confirmed_mappings(tx, candidate)
                        request = create_run_read_request(candidate, source, path, mappings, max_rows)
                        with suppress(StockOnlySnapshot):
                            async with self.readers.open(request) as reader:
                                spooled = await reader.spool(ignore_progress)
                                feed = FeedComparison(
                                    _OpenTransaction(tx),
                                    tx.tenant,
                                    tx.context,
                                    source,
                                    candidate.stream,
                                    reader,
                                    spooled,
                                )
                                await _compare_chunks(
                                    tx, feed, candidate, outcome, is_complete=is_complete, max_rows=max_rows
                                )
                            break
            except (ParseFailed, FeedReaderFailed) as failure:
                outcome.fail(failure, f"The run would fail with parse_failed: {failure}")
            except MappingRequired as failure:
                outcome.fail(failure, f"The run would stop with mapping_required: {failure}")
            except RemovalLimitExceeded as refusal:
                outcome.fail(refusal, f"The run would fail with shrink_refused: {refusal}")
            except TimeoutError as error:
                outcome.fail(
                    error,
                    f"The dry run reached its limit of {TIMEOUT_SECONDS:.0f} seconds. This report is incomplete.",
                )


async def _compare_chunks(
    tx: Tx, feed: FeedComparison, run: Run, outcome: _Outcome, *, is_complete: bool, max_rows: int | None
) -> None:
    rows, outcome.problems = feed.spooled.row_count, feed.problems
    outcome.counts["rows"] = rows
    is_truncated = max_rows is not None and rows >= max_rows
    if is_truncated:
        outcome.warnings.append(f"Only the first {rows:,} rows were read, so withdrawals are not included.")
    complete = run.is_complete and is_complete and not is_truncated
    if complete:
        await check_removal_limit(feed, run)
    for number in range(len(feed.chunks)):
        chunk = await feed.compare_chunk(number)
        diff = chunk.diff
        outcome.counts["items"] += len(chunk.fingerprints)
        absent = sorted(diff.absent)[:MAX_BATCH_RECORDS] if complete else []
        if complete and len(diff.absent) > len(absent):
            outcome.warnings.append(f"{len(diff.absent) - len(absent):,} further items would be withdrawn.")
        changed = diff.changed | diff.returned
        stated = await feed.read_statements(chunk, changed | frozenset(diff.problem_count_by_key))
        statements = [one for one in stated.statements if one.key not in diff.problem_count_by_key]
        portion = ChunkPortion(chunk, changed, absent, number + 1, True, statements, stated.problems)
        with suppress(_Rollback):
            async with tx.savepoint():
                reconciliation = await StatementApplier.load(tx, feed, run, portion, is_complete=complete)
                raise _Rollback
        await asyncio.to_thread(reconciliation.apply)
        reconciler = reconciliation.reconciler
        for problem in (*stated.problems, *reconciler.problems):
            feed.problems.add(problem)
        outcome.events += reconciler.events
        outcome.counts.update(reconciler.counts)
        outcome.counts["unchanged"] += diff.unchanged_count


def _report_outcome(tx: Tx, run: Run, outcome: _Outcome) -> Run:
    """Add the outcome to the results of the dry run; return the run with the outcome's counts and problems."""
    recorded, problems = tx.recorded, outcome.problems
    recorded.changes += map(_to_change, outcome.events[:MAX_LISTED_ENTRIES])
    recorded.events += outcome.events[:MAX_LISTED_ENTRIES]
    recorded.warnings += [*outcome.warnings, *map(_describe_problem, problems.stored[:MAX_LISTED_ENTRIES])]
    if problems.total > MAX_LISTED_ENTRIES:
        recorded.warnings.append(f"{problems.total - MAX_LISTED_ENTRIES:,} further problems are not listed.")
    counts = {**outcome.counts, "problems": problems.total}
    stats = {name: number for name, number in counts.items() if number and name != "items"}
    recorded.extra_previews["outcome"] = {
        "stats": stats,
        "changes": len(outcome.events),
        "told": min(MAX_LISTED_ENTRIES, len(outcome.events)),
    }
    return replace(run, stats={**run.stats, **stats}, problems=tuple(problems.stored))


def _to_change(event: Event) -> Change:
    """Return the change that an event describes, in the form of audit entries."""
    noun, _, what = event.type.partition(".")
    old: dict[str, Any] = {path: to_json_value(before) for path, before, _ in event.fields if before is not None}
    new: dict[str, Any] = {path: to_json_value(after) for path, _, after in event.fields if after is not None}
    return Change(noun, event.subject, "create" if what == "created" else "update", old, new)


def _describe_problem(problem: Problem) -> str:
    location = [problem.sheet, f"line {problem.line}" if problem.line else None, problem.external_id]
    prefix = ", ".join(part for part in location if part)
    return f"{prefix}: {problem.field}: {problem.detail}" if prefix else f"{problem.field}: {problem.detail}"
