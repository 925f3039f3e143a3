"""Health of sources: outcomes of their last imports, tasks, the history of a source, and the scorecard of vendors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec

from domain.kernel.paging import PageRequest
from domain.kernel.resource import require_found
from domain.publishing.completeness import compute_score, list_missing_of_product
from domain.runs.model import RunDay, RunStatus, RunSummary, SourceRuns
from domain.runs.ports import RunStore
from domain.sources.health import compute_on_time_share
from domain.sources.model import Source, SourceContents
from domain.sources.ports import SourceStore
from entrypoints.console.charts import DaySummary, build_chart, summarise_day
from entrypoints.console.context import PageContext
from entrypoints.console.rendering import find_label, format_day_name, format_duration, format_number, format_words
from entrypoints.console.translation import gettext, ngettext
from ports.clock import Clock

HISTORY_DAYS = 30
"""Number of days of a source's history, and of the imports in the scorecard."""
PRICE_DAYS = 7
"""Number of days in which the scorecard counts changed prices."""
MAX_SOURCES = 100
"""Maximum number of sources on the pages that show all of them: the newest ones."""
SCORED_FIELDS = ("price", "media", "dimensions", "weight", "gtin", "category", "description")
"""Fields whose completeness the scorecard shows, of those in domain/publishing/completeness.py."""
_UNHEALTHY_STATUSES = ("degraded", "blocked", "disabled")
"""Statuses of sources that need attention."""
_MAX_COUNTED_PRODUCTS = 10_000
_MAX_SAMPLED_ROWS = 500
_MAX_SAMPLED_DOCUMENTS = 100
_MAX_TOTAL_PRODUCTS, _MAX_TOTAL_ROWS, _MAX_TOTAL_DOCUMENTS = 100_000, 5_000, 1_000
"""Limits of one page of the scorecard for all sources together; each source gets an equal part, up to the limits above."""


class SourceTask(NamedTuple):
    """Reason why a source needs attention: tone (warn or bad), URL of the page to open, title and text."""

    tone: str
    url: str
    title: str
    text: str


class SourceState(NamedTuple):
    """Source with the outcomes of its imports.

    Attributes:
        source: The source as in the API.
        newest: The newest import; None before the first.
        ended: The newest import that succeeded, failed or needs a mapping.
    """

    source: Mapping[str, Any]
    newest: RunSummary | None
    ended: RunSummary | None

    @property
    def has_failed(self) -> bool:
        """True if the last import failed and no import has succeeded since then."""
        return self.ended is not None and self.ended.has_failed

    @property
    def group(self) -> str:
        """Group by which the list is filtered: `attention`, or a status of the source."""
        return "attention" if self.find_task() else str(self.source["status"])

    def find_task(self) -> SourceTask | None:
        """Return the most important reason why the source needs attention, or None."""
        source, url = self.source, f"/console/sources/{self.source['id']}"
        name, reason = source["name"], source.get("status_reason", {})
        is_waiting = self.ended is not None and self.ended.status == RunStatus.NEEDS_MAPPING
        if is_waiting or reason.get("code") == "mapping_required":
            title = gettext("%(name)s: column mapping to confirm", name=name)
            return SourceTask("warn", url, title, gettext("Confirm the columns to continue the import."))
        if source["status"] in _UNHEALTHY_STATUSES:
            title = gettext("%(name)s: %(status)s", name=name, status=format_words(source["status"]))
            tone = "warn" if source["status"] == "degraded" else "bad"
            fault = find_label(reason["code"], "source_faults") if reason else ""
            return SourceTask(
                tone, url, title, f"{fault}: {reason['message']}" if reason else gettext("Recent runs failed.")
            )
        if source["status"] != "paused" and self.has_failed and self.ended is not None:
            title = gettext("%(name)s: last run failed", name=name)
            return SourceTask("bad", f"/console/runs/{self.ended.id}", title, self.ended.error or "")
        if source["status"] == "active" and source["kind"] in ("url", "api"):
            for stream, freshness in source["freshness"].items():
                if freshness and freshness["state"] != "fresh":
                    label = find_label(f"{stream}_{freshness['state']}", "overdue")
                    return SourceTask("warn", url, gettext("%(name)s: data overdue", name=name), label)
        return None

    @property
    def rank(self) -> tuple[int, str]:
        """Position in lists: sources that need attention first, the worst first, then by name."""
        task = self.find_task()
        tones = ("bad", "warn")
        return tones.index(task.tone) if task else len(tones), self.source["name"].casefold()


async def load_source_states(page: PageContext, sources: Sequence[Mapping[str, Any]]) -> list[SourceState]:
    """Return the sources with the outcomes of their imports, in the same order."""
    ids = [source["id"] for source in sources]
    async with page.open_read_transaction() as tx:
        newest = {run.source: run for run in await tx[RunStore].list_newest(ids)} if ids else {}
        ended = {run.source: run for run in await tx[RunStore].list_newest(ids, ended=True)} if ids else {}
    return [SourceState(source, newest.get(source["id"]), ended.get(source["id"])) for source in sources]


def list_source_tasks(states: Sequence[SourceState]) -> list[SourceTask]:
    """Return what needs attention at the sources, the worst first."""
    return [task for state in sorted(states, key=lambda state: state.rank) if (task := state.find_task())]


@dataclass(frozen=True, slots=True)
class SourceHistory:
    """History of a source as template variables.

    Attributes:
        sentence: What happened last, as a sentence.
        has_failed: Whether the last import failed.
        bars: Outcomes of each day, oldest first.
        charts: Titles of the charts by day with the values of each day, and the format of a value.
        age_chart: Chart of the age of the data, with the `unit` of its values (minute, hour or day); None without imports.
        days: Date, outcome and values of each day with any values, newest first, for the table.
    """

    sentence: str
    has_failed: bool
    bars: Sequence[DaySummary]
    charts: Sequence[tuple[str, Sequence[tuple[date, float]], Callable[[float], str]]]
    age_chart: Mapping[str, Any] | None
    days: Sequence[tuple[date, str, Sequence[float]]]


async def load_history(page: PageContext, id: str) -> SourceHistory:
    """Return the history of a source in the last 30 days. Raises NotFound."""
    now = page.dependencies[Clock].now().astimezone(UTC)
    start = datetime.combine(now.date() - timedelta(days=HISTORY_DAYS - 1), time(), UTC)
    async with page.open_read_transaction() as tx:
        source = require_found(await tx[SourceStore].get(id))
        runs = await tx[RunStore].list_summaries(id, start)
    return build_history(source, runs, start, now)


def build_history(source: Source, runs: Sequence[RunSummary], start: datetime, now: datetime) -> SourceHistory:
    """Build the history of a source from its imports since `start`, newest first."""
    dates = [(start + timedelta(days=number)).date() for number in range(HISTORY_DAYS)]
    runs_by_day: dict[date, list[RunSummary]] = {day: [] for day in dates}
    for run in reversed(runs):
        runs_by_day.setdefault(run.created_at.astimezone(UTC).date(), []).append(run)
    days, bars, rows = [], [], 0
    for day in dates:
        ended = [run for run in runs_by_day[day] if run.finished_at]
        succeeded = [run for run in ended if run.status == RunStatus.SUCCEEDED]
        for run in succeeded:  # an unchanged feed is not read again
            rows = run.stats.get("rows", rows)
        failed = sum(run.has_failed for run in ended)
        bar = summarise_day(day, RunDay(source.id, day, len(succeeded), failed) if succeeded or failed else None)
        bars.append(bar)
        values = (
            float(rows if succeeded else 0),
            float(sum(run.changed_count for run in ended)),
            float(ended[-1].stats.get("problems", 0) if ended else 0),
            max((run.duration.total_seconds() for run in ended if run.duration), default=0.0),
        )
        days.append((day, bar.title, values))
    formats: Mapping[str, Callable[[float], str]] = {
        gettext("Rows"): format_number,
        gettext("Changes"): format_number,
        gettext("Problems"): format_number,
        gettext("Duration"): format_duration,
    }
    charts = [
        (title, [(day, values[number]) for day, _, values in days], format_value)
        for number, (title, format_value) in enumerate(formats.items())
        if any(values[number] for _, _, values in days)
    ]
    ended = [run for run in runs if run.status in (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.NEEDS_MAPPING)]
    return SourceHistory(
        _describe_outcome(ended, now),
        bool(ended) and ended[0].has_failed,
        bars,
        charts,
        _build_age_chart(source, runs, start, now),
        [(day, title, values) for day, title, values in days[::-1] if any(values)],
    )


def _describe_outcome(ended: Sequence[RunSummary], now: datetime) -> str:
    """Return a sentence about the last imports, newest first: how often the last ones failed, and why."""
    if not ended:
        return gettext("No runs in the last %(days)s days.", days=HISTORY_DAYS)
    failures = list(takewhile(lambda run: run.has_failed, ended))
    if failures:
        since = format_day_name(failures[-1].created_at.astimezone(UTC).date(), now.date())
        reason = failures[0].error or gettext("unknown error")
        if len(failures) == 1:
            return gettext("The last run failed (%(day)s): %(reason)s", day=since, reason=reason)
        return gettext(
            "Failed %(count)s times since %(day)s: %(reason)s",
            count=format_number(len(failures)),
            day=since,
            reason=reason,
        )
    if ended[0].status == RunStatus.NEEDS_MAPPING:
        return gettext("The last run waits until you confirm its columns.")
    failed = sum(run.has_failed for run in ended)
    count = ngettext("%(count)s run", "%(count)s runs", len(ended), count=format_number(len(ended)))
    if not failed:
        return gettext("%(runs)s in the last %(days)s days, none failed.", runs=count, days=HISTORY_DAYS)
    return gettext(
        "%(runs)s in the last %(days)s days, %(failed)s failed. The last one succeeded.",
        runs=count,
        days=HISTORY_DAYS,
        failed=format_number(failed),
    )


def _build_age_chart(
    source: Source, runs: Sequence[RunSummary], start: datetime, now: datetime
) -> Mapping[str, Any] | None:
    """Return the chart of the maximum age of the catalogue's data on each day, and of the age until which it is fresh.

    Its `unit` is that of the values: `minute`, `hour` or `day`.
    """
    read_at = sorted(
        run.read_at
        for run in runs
        if run.status == RunStatus.SUCCEEDED and run.stream == "catalogue" and run.read_at is not None
    )
    if not read_at:
        return None
    ages: list[tuple[datetime, timedelta | None]] = []
    for number in range(HISTORY_DAYS):
        begin, end = start + timedelta(days=number), min(now, start + timedelta(days=number + 1))
        ends = [*(at for at in read_at if begin <= at < end), end]
        known = [end - max(at for at in read_at if at < end) for end in ends if read_at[0] < end]
        ages.append((begin, max(known, default=None)))
    series = {gettext("Age of the data"): ages}
    if source.schedule.at or source.schedule.interval_minutes:
        fresh_until, _ = source.find_freshness_limits("catalogue", read_at[-1])
        series[gettext("On time up to")] = [(start, fresh_until - read_at[-1])]
    highest = max(age for points in series.values() for _, age in points if age)
    unit = "day" if highest > timedelta(days=2) else "hour" if highest > timedelta(hours=2) else "minute"
    chart = build_chart(
        {
            name: [(at, None if age is None else age / timedelta(**{f"{unit}s": 1})) for at, age in points]
            for name, points in series.items()
        },
        start,
        now,
        includes_zero=True,
    )
    return chart and {**chart, "unit": unit}


@dataclass(frozen=True, slots=True)
class VendorScore:
    """Figures of a source in the scorecard. Shares are between 0 and 1, and None if nothing was examined.

    Attributes:
        source: The source as in the API.
        has_failed: Whether the last import failed.
        last_run: ID of the last import that ended; None without one.
        products: Number of products, up to `product_limit`.
        product_limit: Number up to which products are counted.
        completeness: Average score of the sampled products.
        field_shares: Shares of the sampled products with each field of SCORED_FIELDS.
        problem_rate: Problems per 1,000 rows.
        failed: Number of failed imports.
        succeeded: Number of successful imports.
        on_time: Share of the time with fresh data.
        price_changes: Number of changed prices.
        out_of_stock: Share of the sampled offers.
        matched: Share of the sampled products.
    """

    source: Mapping[str, Any]
    has_failed: bool
    last_run: str | None
    products: int
    product_limit: int
    completeness: float | None
    field_shares: Mapping[str, float]
    problem_rate: float | None
    failed: int
    succeeded: int
    on_time: float | None
    price_changes: int
    out_of_stock: float | None
    matched: float | None


async def load_scorecard(page: PageContext, states: Sequence[SourceState]) -> tuple[list[VendorScore], bool]:
    """Return the figures of the sources, and whether all changes of prices were counted.

    The number of rows that the statements read is limited, whatever the number of products (docs/console-sources.md).
    """
    ids, now = [state.source["id"] for state in states], page.dependencies[Clock].now()
    if not ids:
        return [], True
    start = now - timedelta(days=HISTORY_DAYS)
    max_products = min(_MAX_COUNTED_PRODUCTS, _MAX_TOTAL_PRODUCTS // len(ids))
    max_rows = min(_MAX_SAMPLED_ROWS, _MAX_TOTAL_ROWS // len(ids))
    async with page.open_read_transaction() as tx:
        contents = {
            found.source: found for found in await tx[SourceStore].summarise_contents(ids, max_products, max_rows)
        }
        documents = await tx[SourceStore].sample_documents(
            ids, min(_MAX_SAMPLED_DOCUMENTS, _MAX_TOTAL_DOCUMENTS // len(ids))
        )
        imports = {found.source: found for found in await tx[RunStore].summarise_by_source(start)}
        stored = await tx[SourceStore].page(PageRequest(limit=MAX_SOURCES))
    prices = await page.get_service("changes").changes.count_price_changes(
        page.principal.tenant, now - timedelta(days=PRICE_DAYS)
    )
    sources = {source.id: source for source in stored.items}
    missing_by_source: dict[str, list[list[str]]] = {}
    for id, body in documents:
        missing_by_source.setdefault(id, []).append(list_missing_of_product(msgspec.json.decode(body)))
    scores = []
    for state in states:
        if (id := state.source["id"]) not in sources or id not in contents:
            continue
        scores.append(
            _build_score(
                state,
                contents[id],
                imports.get(id) or SourceRuns(id, 0, 0, 0, 0, ()),
                missing_by_source.get(id, []),
                on_time=compute_on_time_share(sources[id], imports[id].read_at if id in imports else (), start, now),
                price_changes=prices.by_source.get(id, 0),
                product_limit=max_products,
            )
        )
    return scores, prices.is_complete


def _build_score(
    state: SourceState,
    contents: SourceContents,
    imports: SourceRuns,
    missing: Sequence[list[str]],
    *,
    on_time: float | None,
    price_changes: int,
    product_limit: int,
) -> VendorScore:
    shares = {name: sum(name not in product for product in missing) / len(missing) for name in SCORED_FIELDS if missing}
    return VendorScore(
        state.source,
        state.has_failed,
        state.ended.id if state.ended else None,
        contents.products,
        product_limit,
        sum(map(compute_score, missing)) / len(missing) / 100 if missing else None,
        shares,
        imports.problems * 1000 / imports.rows if imports.rows else None,
        imports.failed,
        imports.succeeded,
        on_time,
        price_changes,
        contents.out_of_stock_offers / contents.sampled_offers if contents.sampled_offers else None,
        contents.matched_products / contents.sampled_products if contents.sampled_products else None,
    )
