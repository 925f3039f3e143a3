"""Category rules of a source: list paths, change rules, and apply them to all products."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

from domain.audit.model import Act
from domain.audit.ports import AuditLog
from domain.catalogue import categories
from domain.catalogue.batch import KeyRange
from domain.catalogue.category_rules import (
    MOST_PATHS,
    MOST_RULES,
    PATHS_CHARS,
    CategoryPath,
    CategoryPaths,
    CategoryRules,
    Filing,
    RuleChange,
    SourceCategory,
    audited,
    characters,
    listed,
)
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.suggestions import Learned, suggest, words_of
from domain.catalogue.usecases.writing import write
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.errors import DomainError, InvalidRequest, Unavailable, Unprocessable
from domain.kernel.paging import PageRequest
from domain.kernel.resource import existing
from domain.runs.model import TRIES, Run, RunError, RunErrorCode, RunStage, RunStatus, RunTrigger
from domain.runs.ports import RunStore
from domain.runs.queueing import enqueue, queued, refuse_open
from domain.sources.ports import SourceStore
from ports.parsing import ParserEnded, ParserFailed, ParserRunner
from ports.unit_of_work import Tx, UnitOfWork

R = TypeVar("R")

_OTHERS = 50
"""Maximum number of other sources whose rules are used for suggestions, the newest first."""


@dataclass(frozen=True, slots=True)
class PathsAndRules:
    """The stored categories of a source: the paths of its products, its rules, and the rules of other sources."""

    paths: CategoryPaths
    rules: CategoryRules | None
    others: Sequence[CategoryRules]


@dataclass(frozen=True, slots=True)
class SourceCategories:
    """A source's category paths, with how many were left out."""

    categories: Sequence[SourceCategory]
    left_out: int


@dataclass(frozen=True, slots=True)
class CategoryRuleService:
    """Rules of a tenant's sources; every change is audited. `run` limits the time of listing paths."""

    run: ParserRunner = asyncio.to_thread

    async def read(self, tx: Tx, source: str) -> PathsAndRules:
        """Return the paths and rules from which `render` lists. Raises NotFound."""
        existing(await tx[SourceStore].get(source))
        return await _paths_and_rules(tx, source)

    async def render(self, listing: Callable[[PathsAndRules], R], found: PathsAndRules) -> R:
        """Return the source's category paths as `listing` renders them, which takes a while. Raises Unavailable."""
        try:
            return await self.run(listing, found)
        except (ParserEnded, ParserFailed) as error:
            raise Unavailable("The categories could not be listed.", retry_after=5) from error

    async def change(self, tx: Tx, source: str, changes: Sequence[RuleChange]) -> tuple[PathsAndRules, Run]:
        """Set and remove rules, keep the others, and queue the run that applies them to all products.

        Returns the stored paths and rules, and the run.

        Raises NotFound; InvalidRequest for a duplicate path; Unprocessable for an unknown category and too many or too
        long rules; Conflict while a run of the source is open or the source is not active. Nothing is stored then.
        """
        found = existing(await tx[SourceStore].get(source, lock=True))
        _refuse(changes)
        found.refuse_unless_runnable()
        await refuse_open(tx, source)
        await _keep(tx, source, changes)
        run = await enqueue(tx, queued(source, RunTrigger.CATEGORY_RULES, tx.now))
        return await _paths_and_rules(tx, source), run

    async def undo(self, tx: Tx, act: Act) -> None:
        """Restore the previous rules and queue the run that applies them. Raises what `change` raises."""
        for _, change in act.changes("category_rules"):
            rules = dict.fromkeys(_by_path(change.after)) | _by_path(change.before)
            await self.change(tx, change.id, [RuleChange(path, category) for path, category in rules.items()])


def _by_path(recorded: Mapping[str, Any]) -> dict[CategoryPath, str | None]:
    return {tuple(rule["path"]): rule["category"] for rule in recorded.get("rules", ())}


def _refuse(changes: Sequence[RuleChange]) -> None:
    seen: set[tuple[str, ...]] = set()
    for place, change in enumerate(changes):
        if change.path in seen:
            detail = "This path occurs twice. Enter one rule per path."
            raise InvalidRequest.of(f"rules.{place}.path", "invalid_value", detail)
        seen.add(change.path)
        if change.category is not None and change.category not in categories.everything():
            detail = "This category does not exist. GET /v1/categories lists all categories."
            raise Unprocessable.of(f"rules.{place}.category", "invalid_value", detail)


async def _keep(tx: Tx, source: str, changes: Iterable[RuleChange]) -> None:
    store = tx.store(CategoryRules)
    before = await store.get(source, lock=True)
    none = CategoryRules(source, tx.now, tx.now)
    after = (before or none).changed(tx.now, changes)
    if len(after.rules) > MOST_RULES:
        detail = f"A source has at most {MOST_RULES:,} category rules; these would make {len(after.rules):,}."
        raise Unprocessable.of("rules", "too_many", detail)
    if sum(characters(rule.path) for rule in after.rules) > PATHS_CHARS:
        detail = f"The paths of a source's category rules have at most {PATHS_CHARS:,} characters together."
        raise Unprocessable.of("rules", "too_large", detail)
    if before is None:
        await store.add(after := replace(after, version=1))
    elif after.rules != before.rules:
        await store.save(after)
    if after.rules != (before or none).rules:
        await tx[AuditLog].add(audited(before or none, after))


async def _paths_and_rules(tx: Tx, source: str) -> PathsAndRules:
    rules = await tx.store(CategoryRules).get(source)
    paths = await tx[CatalogueStore].category_paths(source, MOST_PATHS, PATHS_CHARS)
    return PathsAndRules(paths, rules, await _others(tx, source))


def source_categories(found: PathsAndRules) -> SourceCategories:
    """List a source's category paths with their rules and suggestions. Thousands of paths take a while."""
    categories, left_out = listed(found.paths, Filing(found.rules.rules if found.rules else ()), found.rules)
    learned, words = Learned(found.others), cache(words_of)

    def suggestion(one: SourceCategory) -> str | None:
        """Suggest a rule for a path without one, unless the path inherits the same category."""
        if one.rule is not None:
            return None
        likely = learned.category(one.path) or suggest(one.path, words)
        return None if likely == one.inherited else likely

    return SourceCategories([replace(one, suggestion=suggestion(one)) for one in categories], left_out)


async def _others(tx: Tx, source: str) -> list[CategoryRules]:
    """Return the rules of the newest other sources, up to about MOST_RULES rules."""
    found: list[CategoryRules] = []
    key: str | None = None
    for _ in range(_OTHERS):
        page = await tx.store(CategoryRules).page(PageRequest(1, key=key))
        found += [rules for rules in page.items if rules.id != source]
        key = page.next_key
        if key is None or sum(len(rules.rules) for rules in found) >= MOST_RULES:
            break
    return found


async def filing_of(tx: Tx, source: str) -> Filing:
    """Return the current category assignment of the source."""
    rules = await tx.store(CategoryRules).get(source)
    return Filing(rules.rules) if rules else Filing()


_LOG = logging.getLogger("joinery.runs")
LOOKED_AT = 2_000
"""Number of products read in one transaction."""
WRITTEN = 250
"""Number of products written in one transaction."""


@dataclass(frozen=True, slots=True)
class Refiling:
    """The handler of `runs.refile` jobs, which apply a source's category rules to its stored products without fetching.

    Products with the correct category are skipped, so a worker that takes over the job starts from the beginning. The run
    does not affect the source's health, freshness or schedule.
    """

    uow: UnitOfWork
    lease: timedelta = timedelta(seconds=30)

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Update every product, or end the run as failed. Raises LeaseLost if another worker took over the job."""
        context = job.context()
        after: str | None = ""
        try:
            while after is not None and not lost.is_set():
                async with self.uow.begin(job.tenant, context) as tx:
                    after = await self._step(tx, job, after)
        except DomainError:
            raise
        except Exception as error:
            if job.attempt < TRIES:
                raise
            _LOG.exception("refiling given up after %d attempts", TRIES, extra={"run": job.args["run"]})
            async with self.uow.begin(job.tenant, context) as tx:
                if run := await tx[RunStore].get(str(job.args["run"])):
                    message = (
                        f"The service met an error of its own ({type(error).__name__}); set the rules again to go on."
                    )
                    failure = RunError(RunErrorCode.INTERNAL_ERROR, message)
                    await tx[RunStore].save(run.ended(RunStatus.FAILED, tx.now, failure))
                await tx[JobStore].finish(job)

    async def _step(self, tx: Tx, job: ClaimedJob, after: str) -> str | None:
        """Update a batch of products after the ID; return the last ID, or None at the end."""
        run = await tx[RunStore].get(str(job.args["run"]))
        source = await tx[SourceStore].get(run.source) if run else None
        if run is None or source is None or run.finished_at is not None:
            await tx[JobStore].finish(job)
            return None
        looked_at = await tx[CatalogueStore].filings(source.id, after, LOOKED_AT)
        filing = await filing_of(tx, source.id)
        misfiled = [one for one in looked_at if filing.category(one.path, one.stated) != one.category]
        reconciler = CatalogueReconciler(source, run.id, run.stream, tx.now, False, {}, lambda _: True, filing=filing)
        events: Sequence[Event] = ()
        if misfiled:
            await tx[CatalogueStore].take_turn()
            products = await tx[CatalogueStore].load(source.id, [one.key for one in misfiled[:WRITTEN]])
            for product in products.values():
                reconciler.refile(product)
            events = await write(tx, KeyRange(source.id, reconciler.stream, 0, 0), reconciler)
        changed = run.stats.get("products_changed", 0) + reconciler.counts.get("products_changed", 0)
        stats = {**run.stats, "products_changed": changed}
        run = replace(run.started(tx.now), stage=RunStage.STORE, stats=stats)
        at_end = len(looked_at) < LOOKED_AT and len(misfiled) <= WRITTEN
        await tx[RunStore].save(run.ended(RunStatus.SUCCEEDED, tx.now) if at_end else run)
        await tx[EventLog].append(events)
        if at_end:
            await tx[JobStore].finish(job)
            return None
        await tx[JobStore].hold(job, self.lease)
        return (misfiled[WRITTEN - 1] if len(misfiled) > WRITTEN else looked_at[-1]).id
