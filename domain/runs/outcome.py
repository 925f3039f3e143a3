"""How a run ends, and what that means for its source: health, schedule, events."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import uniform
from typing import Any, Final

from domain.jobs.model import ClaimedJob
from domain.runs.model import Run, RunError, Waiting
from domain.sources.health import outcome_events
from domain.sources.model import Ladder, Source, StatusReason
from ports.unit_of_work import Tx

WAITS: Final = 10
"""How often a run waits for a busy source before it fails."""
_NO_FAILURE: Final = frozenset({"shrink_refused", "mapping_required"})


@dataclass(frozen=True, slots=True)
class Ending:
    """What a run came to. `changed` tells an adaptive schedule whether there was anything new."""

    run: Run
    changed: bool = False


def scheduled(source: Source, stream: str, now: datetime, changed: bool) -> dict[str, Any]:
    """When the schedule wants the stream's next run: one interval on, ±10%; adaptive ones stretch while nothing changes."""
    stock = stream == "stock"
    minutes = source.schedule.stock_interval_minutes if stock else source.schedule.interval_minutes
    field = "next_stock_pull" if stock else "next_pull"
    if minutes is None or not source.runnable:
        return {field: None}
    factor = 1.0
    factors = dict(source.interval_factor)
    if source.schedule.adaptive:
        before = factors.get(stream, 1.0)
        factor = factors[stream] = max(0.5, before / 2) if changed else min(4.0, before * 2)
    wait = timedelta(minutes=max(5.0, minutes * factor) * uniform(0.9, 1.1))  # noqa: S311  jitter, no secret
    return {field: now + wait, "interval_factor": factors}


async def succeed(tx: Tx, job: ClaimedJob, run: Run, changed: bool) -> None:
    """The run ended well."""
    source = await tx.sources.get(run.source, lock=True)
    await tx.runs.save(run.ended("succeeded", tx.now))
    if source is not None:
        after = source.after_success(run.stream, tx.now)
        after = replace(after, **scheduled(after, run.stream, tx.now, changed))
        await tx.sources.save(after)
        await tx.events.append(outcome_events(source, after, run))
    await _close(tx, job, run)


async def fail(tx: Tx, job: ClaimedJob, run: Run, error: RunError, ladder: Ladder) -> None:
    """The run failed; refusing to shrink says nothing against the source."""
    source = await tx.sources.get(run.source, lock=True)
    await tx.runs.save(run.ended("failed", tx.now, error))
    if source is not None:
        after = source
        if error.code not in _NO_FAILURE:
            after = source.after_failure(StatusReason(error.code, error.message), tx.now, ladder)
        after = replace(after, **scheduled(after, run.stream, tx.now, changed=True))
        await tx.sources.save(after)
        await tx.events.append(outcome_events(source, after, run))
    await _close(tx, job, run)


async def ask_for_mapping(tx: Tx, job: ClaimedJob, run: Run, message: str) -> None:
    """The run stops until a person maps the columns; that is no failure."""
    source = await tx.sources.get(run.source, lock=True)
    await tx.runs.save(run.ended("needs_mapping", tx.now, RunError("mapping_required", message)))
    if source is not None:
        await tx.sources.save(replace(source, **scheduled(source, run.stream, tx.now, changed=False)))
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
