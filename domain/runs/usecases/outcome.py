"""How a run ends, and what that means for its source: health, schedule, events."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from random import uniform
from typing import Final

from domain.jobs.model import ClaimedJob
from domain.runs.model import Run, RunError, Waiting
from domain.sources.health import outcome_events
from domain.sources.model import Ladder, Source, StatusReason
from ports.unit_of_work import Tx

WAITS: Final = 10
"""How often a run waits for a busy source before it fails."""
_NO_FAILURE: Final = frozenset({"shrink_refused", "mapping_required", "storage_full", "internal_error"})


def scheduled(source: Source, stream: str, now: datetime, *, changed: bool) -> Source:
    """The source with the stream's next pull: one interval on, ±10%; adaptive ones stretch while nothing changes."""
    minutes = source.interval(stream)
    if minutes is None or not source.runnable:
        return source.next_due(stream, None)
    factor = 1.0
    if source.schedule.adaptive:
        before = source.interval_factor.get(stream, 1.0)
        factor = max(0.5, before / 2) if changed else min(4.0, before * 2)
        source = replace(source, interval_factor={**source.interval_factor, stream: factor})
    wait = timedelta(minutes=max(5.0, minutes * factor) * uniform(0.9, 1.1))  # noqa: S311  jitter, no secret
    return source.next_due(stream, now + wait)


async def succeed(tx: Tx, job: ClaimedJob, run: Run, *, changed: bool) -> None:
    """The run ended well."""
    source = await tx.sources.get(run.source, lock=True)
    await tx.runs.save(run.ended("succeeded", tx.now))
    if source is not None:
        after = scheduled(source.after_success(run.stream, tx.now), run.stream, tx.now, changed=changed)
        await tx.sources.save(after)
        await tx.events.append(outcome_events(source, after, run.id))
    await _close(tx, job, run)


async def fail(tx: Tx, job: ClaimedJob, run: Run, error: RunError, ladder: Ladder) -> None:
    """The run failed; refusing to shrink, or a full disk of ours, says nothing against the source."""
    source = await tx.sources.get(run.source, lock=True)
    await tx.runs.save(run.ended("failed", tx.now, error))
    if source is not None:
        after = source
        if error.code not in _NO_FAILURE:
            after = source.after_failure(StatusReason(error.code, error.message), tx.now, ladder)
        after = scheduled(after, run.stream, tx.now, changed=True)
        await tx.sources.save(after)
        await tx.events.append(outcome_events(source, after, run.id))
    await _close(tx, job, run)


async def ask_for_mapping(tx: Tx, job: ClaimedJob, run: Run, message: str) -> None:
    """The run stops until a person maps the columns; that is no failure."""
    source = await tx.sources.get(run.source, lock=True)
    await tx.runs.save(run.ended("needs_mapping", tx.now, RunError("mapping_required", message)))
    if source is not None:
        await tx.sources.save(scheduled(source, run.stream, tx.now, changed=False))
    await _close(tx, job, run)


async def cancel(tx: Tx, job: ClaimedJob, run: Run, message: str) -> None:
    """The source may not run any more."""
    await tx.runs.save(run.ended("cancelled", tx.now, RunError("source_not_active", message)))
    await _close(tx, job, run)


async def wait(tx: Tx, job: ClaimedJob, run: Run, reason: str, until: datetime, detail: str) -> None:
    """The source asked to come back later."""
    attempt = int(run.input.get("waits", 0)) + 1
    waiting = Waiting(reason, until, attempt, detail)
    await tx.runs.save(replace(run, status="waiting", waiting=waiting, input={**run.input, "waits": attempt}))
    await tx.jobs.put_off(job, until)


def waited_out(run: Run) -> bool:
    """Whether the run has waited often enough."""
    return int(run.input.get("waits", 0)) >= WAITS


async def _close(tx: Tx, job: ClaimedJob, run: Run) -> None:
    if run.input.get("push"):
        await tx.pushes.forget(run.id)
    await tx.jobs.finish(job)


def told(stats: Mapping[str, int]) -> bool:
    """Whether the counts tell of any change."""
    return any(stats.get(name) for name in stats if name.endswith(("_created", "_changed")) or name == "withdrawn")
