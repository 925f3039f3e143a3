"""How a source has fared day by day, as a strip of days shows it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date
from typing import Final

from domain.runs.model import BESIDE, Run, RunStatus

MOST_RUNS: Final = 20_000
"""The newest runs that are looked at."""


@dataclass(frozen=True, slots=True)
class RunDay:
    """One source's runs of one day (UTC), by when they were queued: how many went well and how many failed."""

    source: str
    day: date
    succeeded: int
    failed: int


def days_of(runs: Iterable[Run]) -> list[RunDay]:
    """The days of these runs that ended, those that read no feed apart; by source and day."""
    good: Counter[tuple[str, date]] = Counter()
    bad: Counter[tuple[str, date]] = Counter()
    for run in runs:
        if run.trigger not in BESIDE:
            counter = {RunStatus.SUCCEEDED: good, RunStatus.FAILED: bad}.get(run.status)
            if counter is not None:
                counter[run.source, run.created_at.astimezone(UTC).date()] += 1
    keys = sorted({*good, *bad})
    return [RunDay(source, day, good[source, day], bad[source, day]) for source, day in keys]
