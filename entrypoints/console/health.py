"""How a source has been: a strip of days with the worst that happened on each, and what is wrong in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from domain.runs.days import RunDay
from domain.runs.ports import RunStore
from entrypoints.console.visit import Visit

DAYS: Final = 14
_FAULTS: Final = {
    "fetch_failed": "It could not be fetched",
    "fetch_refused": "The address refuses us",
    "credentials_refused": "The sign-in was refused",
    "parse_failed": "What it sends could not be read",
    "mapping_required": "No column names the items",
    "shrink_refused": "It would have withdrawn far too much",
}


@dataclass(frozen=True, slots=True)
class Day:
    """One day of the strip: its tone and what it says."""

    day: date
    tone: str
    title: str


@dataclass(frozen=True, slots=True)
class Health:
    """The strip, and the newest run in it."""

    days: tuple[Day, ...]
    last_run: str | None = None
    last_status: str | None = None


async def health_of(visit: Visit, sources: Sequence[Mapping[str, Any]]) -> dict[str, Health]:
    """Each source's health, by id: two questions to the store for all."""
    now = visit.dependencies.clock.now()
    since = datetime.combine(now.astimezone(UTC).date() - timedelta(days=DAYS - 1), datetime.min.time(), UTC)
    ids = [source["id"] for source in sources]
    async with visit.reading() as tx:
        found = await tx[RunStore].days(since) if ids else []
        newest = {one.source: one for one in (await tx[RunStore].newest(ids, since) if ids else [])}
    by_day = {(one.source, one.day): one for one in found}
    dates = [since.date() + timedelta(days=number) for number in range(DAYS)]
    made = {}
    for id in ids:
        days = tuple(_day(day, by_day.get((id, day))) for day in dates)
        last = newest.get(id)
        made[id] = Health(days, last.id if last else None, str(last.status) if last else None)
    return made


def _day(day: date, runs: RunDay | None) -> Day:
    shown = day.strftime("%-d %b")
    if runs is None:
        return Day(day, "", f"{shown}: no run")
    tone = "good" if not runs.failed else "warn" if runs.succeeded else "bad"
    counts = ((runs.succeeded, "succeeded"), (runs.failed, "failed"))
    return Day(day, tone, f"{shown}: {', '.join(f'{count} {word}' for count, word in counts if count)}")


def wrong_of(source: Mapping[str, Any]) -> str:
    """What is wrong with a source in a sentence; empty when nothing is."""
    reason = source.get("status_reason")
    if reason:
        said = _FAULTS.get(reason["code"], reason["code"].replace("_", " ").capitalize())
        return f"{said}: {reason['message']}"
    if source["status"] == "paused":
        return "Somebody paused it: nothing is read."
    for stream in ("catalogue", "stock"):
        fresh = source["freshness"][stream]
        if fresh and fresh["state"] != "fresh" and source["kind"] in ("url", "api"):
            return f"Its {stream} is {fresh['state']}: it should have been read again by now."
    return ""
