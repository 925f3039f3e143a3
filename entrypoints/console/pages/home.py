"""The first page: what changed today, what needs a person, how fresh each source is, and what of the quota is used."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from domain.changes.usecases.service import EventCounts
from entrypoints.console.charts import Day, strip
from entrypoints.console.formatting import number, size
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.visit import Visit

Json = Mapping[str, Any]
_DAYS: Final = 14
_PAIRS: Final = 10
"""Open pairs that are counted."""
_SOURCES: Final = 100
_SHOWN: Final = 10
"""Tasks of one kind, and sources, that are shown at once; the lists behind the links have all of them."""
_FAILING: Final = ("degraded", "blocked", "disabled")
_TOLD: Final = (
    ("product.created", "New products"),
    ("product.updated", "Products changed"),
    ("offer.created", "New offers"),
    ("offer.changed", "Offers changed"),
    ("variant.created", "New variants"),
    ("variant.updated", "Variants changed"),
    ("product.merged", "Products merged"),
    ("product.discontinued", "Products discontinued"),
)
_METERS: Final = {
    "records": "Records",
    "deliveries": "Webhook deliveries",
    "export_rows": "Rows exported",
    "ai_tokens": "Model tokens",
    "sources": "Sources",
    "stored_bytes": "Storage",
}


@dataclass(frozen=True, slots=True)
class Task:
    """Something that needs a person: where it is done, and how much of it there is as words."""

    title: str
    text: str
    place: str
    tone: str


@dataclass(frozen=True, slots=True)
class Tasks:
    """Those of one kind that are shown, how many there are further, as words, and where all of them are."""

    shown: Sequence[Task]
    further: int
    words: str
    place: str


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A source with its days; `state` is the worst freshness of its streams."""

    source: Json
    days: Sequence[Day]
    state: str | None
    observed_at: str | None


@dataclass(frozen=True, slots=True)
class MeterLine:
    """A meter: what is used, and which share of what is included (None: any amount)."""

    title: str
    used: str
    included: str | None
    share: float | None


async def home(visit: Visit) -> Answer:
    """The first page; an organisation without a source is led to its first."""
    sources = (await visit.api.get("/v1/sources", limit=_SOURCES))["data"] if visit.may("sources:read") else []
    if not sources and visit.may("sources:read"):
        return visit.render("home/empty.html")
    now = visit.dependencies.clock.now()
    counts, tasks, lines, meters = await asyncio.gather(
        _today(visit, now),
        _tasks(visit, sources),
        _lines(visit, _first(sources), now.astimezone(UTC).date()),
        _meters(visit),
    )
    return visit.render(
        "home/home.html",
        changes=_changes(counts) if counts else [],
        whole=counts is None or counts.whole,
        tasks=[kind for kind in tasks if kind.shown],
        lines=lines,
        source_count=len(sources),
        meters=meters,
        days=_DAYS,
    )


def _first(sources: Sequence[Json]) -> Sequence[Json]:
    """Those that are shown: the ones in trouble before the others."""
    return sorted(sources, key=lambda source: source["status"] not in _FAILING)[:_SHOWN]


async def _today(visit: Visit, now: datetime) -> EventCounts | None:
    if not visit.may("products:read"):
        return None
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    found: EventCounts = await visit.service("changes").changes.counts(visit.principal.tenant, midnight)
    return found


def _changes(counts: EventCounts) -> list[tuple[str, str, int]]:
    return [(name, title, counts.by_type[name]) for name, title in _TOLD if counts.by_type.get(name)]


async def _tasks(visit: Visit, sources: Sequence[Json]) -> list[Tasks]:
    found = [task for source in sources if (task := _task_of(source)) is not None]
    pairs, endpoints = await asyncio.gather(_pairs(visit), _endpoints(visit))
    return [
        _kind(pairs, "pair", "/console/matching"),
        _kind(found, "source that needs you", "/console/sources"),
        _kind(endpoints, "failing endpoint", "/console/developers/webhooks"),
    ]


def _kind(tasks: Sequence[Task], words: str, place: str) -> Tasks:
    return Tasks(tasks[:_SHOWN], max(0, len(tasks) - _SHOWN), words, place)


def _task_of(source: Json) -> Task | None:
    reason = source.get("status_reason", {})
    place = f"/console/sources/{source['id']}"
    if reason.get("code") == "mapping_required":
        return Task(
            f"{source['name']}: what do its columns mean?",
            "A mapping waits for your word.",
            place,
            "warn",
        )
    if source["status"] in _FAILING:
        text = reason.get("message") or "Its runs have been failing."
        return Task(
            f"{source['name']} is {source['status']}", text, place, "bad" if source["status"] != "degraded" else "warn"
        )
    return None


async def _pairs(visit: Visit) -> list[Task]:
    if not visit.may("products:read"):
        return []
    found = await visit.api.get("/v1/match-pairs", status="open", limit=_PAIRS)
    count = len(found["data"])
    if not count:
        return []
    told = f"{count}{'+' if found['has_more'] else ''} {'pair' if count == 1 else 'pairs'} may be the same item"
    return [Task(told, "Say of each whether it is.", "/console/matching", "info")]


async def _endpoints(visit: Visit) -> list[Task]:
    if not visit.may("webhooks:read"):
        return []
    found = (await visit.api.get("/v1/webhook-endpoints", limit=20))["data"]
    tasks = []
    for endpoint in found:
        place = f"/console/developers/webhooks/{endpoint['id']}"
        if endpoint["status"] == "disabled":
            tasks.append(Task(f"{endpoint['url']} is disabled", "Nothing is delivered to it.", place, "bad"))
        elif endpoint.get("failing_since"):
            tasks.append(Task(f"{endpoint['url']} fails", "Its deliveries have not succeeded lately.", place, "warn"))
    return tasks


async def _lines(visit: Visit, sources: Sequence[Json], today: date) -> list[SourceLine]:
    if not sources:
        return []
    since = datetime.combine(today - timedelta(days=_DAYS - 1), datetime.min.time(), UTC)
    async with visit.reading() as tx:
        found = await visit.service("runs").days(tx, since)
    by_source: dict[str, dict[date, tuple[int, int]]] = {}
    for one in found:
        by_source.setdefault(one.source, {})[one.day] = (one.succeeded, one.failed)
    return [_line(source, strip(today, _DAYS, by_source.get(source["id"], {}))) for source in sources]


_WORST: Final = ("stale", "late", "fresh")


def _line(source: Json, days: Sequence[Day]) -> SourceLine:
    streams = [stream for stream in source["freshness"].values() if stream]
    states = [stream["state"] for stream in streams]
    state = next((one for one in _WORST if one in states), None)
    return SourceLine(source, days, state, min((stream["observed_at"] for stream in streams), default=None))


async def _meters(visit: Visit) -> list[MeterLine]:
    if not visit.may("usage:read"):
        return []
    usage = await visit.api.get("/v1/usage")
    return [_meter(one) for one in usage["meters"] if one["used"] or one.get("included")]


def _meter(one: Json) -> MeterLine:
    name: str = one["meter"]
    write: Callable[[int], str] = size if name == "stored_bytes" else number
    included: int | None = one.get("included")
    share = None if included is None else one["used"] / included if included else 1.0
    told = None if included is None else write(included)
    return MeterLine(_METERS.get(name, name), write(one["used"]), told, share)


PAGES: Final = (Page("/console", home, menu=Entry("Home", "Home")),)
