"""Use cases of a source's category rules: list category paths, change rules, and apply rules to all products."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

from domain.audit.model import AuditAct
from domain.audit.ports import AuditLog
from domain.catalogue import categories
from domain.catalogue.batch import SlotRange
from domain.catalogue.category_rules import (
    MAX_LISTED_PATHS,
    MAX_PATHS_CHARS,
    MAX_RULES,
    CategoryAssigner,
    CategoryPath,
    CategoryPaths,
    CategoryRules,
    RuleChange,
    SourceCategory,
    count_characters,
    describe_change,
    list_source_categories,
)
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.suggestions import LearnedCategories, split_category_name, suggest_category
from domain.catalogue.usecases.writer import write_reconciled
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.errors import DomainError, InvalidRequest, Unavailable, Unprocessable
from domain.kernel.paging import PageRequest
from domain.kernel.resource import require_found
from domain.proposals.model import ProposalKind
from domain.proposals.staleness import mark_stale
from domain.runs.model import MAX_ATTEMPTS, Run, RunError, RunErrorCode, RunStage, RunStatus, RunTrigger
from domain.runs.ports import RunStore
from domain.runs.run_queue import enqueue_run, new_run, require_no_open_run
from domain.sources.ports import SourceStore
from ports.parsing import ParserFailed, ParserRunner, ParserTerminated
from ports.unit_of_work import Tx, UnitOfWork

R = TypeVar("R")

_MAX_OTHER_SOURCES = 50
"""Maximum number of other sources whose rules are used for suggestions."""


@dataclass(frozen=True, slots=True)
class StoredCategories:
    """Stored category data of a source: category paths of its products, its rules, and rules of other sources."""

    paths: CategoryPaths
    rules: CategoryRules | None
    other_rules: Sequence[CategoryRules]


@dataclass(frozen=True, slots=True)
class SourceCategories:
    """Category paths of a source with rules and suggestions, and the number of omitted paths."""

    categories: Sequence[SourceCategory]
    omitted_count: int


@dataclass(frozen=True, slots=True)
class CategoryRuleService:
    """Use cases of category rules; every change is audited.

    Attributes:
        run_limited: Runs a slow function within limits of time and memory; the default has no limits.
    """

    run_limited: ParserRunner = asyncio.to_thread

    async def load(self, tx: Tx, source: str) -> StoredCategories:
        """Return the stored category paths and rules of the source. Raises NotFound."""
        require_found(await tx[SourceStore].get(source))
        return await load_stored_categories(tx, source)

    async def list_categories(self, build_list: Callable[[StoredCategories], R], stored: StoredCategories) -> R:
        """Return the result of `build_list(stored)`, computed by `run_limited`. Raises Unavailable if this fails."""
        try:
            return await self.run_limited(build_list, stored)
        except (ParserTerminated, ParserFailed) as error:
            raise Unavailable("The categories could not be listed. Try again later.", retry_after=5) from error

    async def change_rules(self, tx: Tx, source: str, changes: Sequence[RuleChange]) -> tuple[StoredCategories, Run]:
        """Set and remove rules, and queue a run that applies all rules to all products; other rules remain unchanged.

        Returns the stored paths and rules, and the run. If an error is raised, nothing is stored.

        Raises:
            NotFound: The source does not exist.
            InvalidRequest: A path occurs twice.
            Unprocessable: A category is unknown, or the rules are too many or too long.
            Conflict: A run of the source is open, or the source is not active.
        """
        found = require_found(await tx[SourceStore].get(source, lock=True))
        _refuse_invalid(changes)
        found.refuse_unless_runnable()
        await require_no_open_run(tx, source)
        await _store_rules(tx, source, changes)
        await mark_stale(tx, source, "The category rules have been changed.", [ProposalKind.CATEGORY_RULES])
        run = await enqueue_run(tx, new_run(source, RunTrigger.CATEGORY_RULES, tx.now))
        return await load_stored_categories(tx, source), run

    async def undo(self, tx: Tx, act: AuditAct) -> None:
        """Restore the rules before the act, and queue a run that applies them. Raises the same errors as `change_rules`."""
        for _, change in act.list_changes("category_rules"):
            rules = dict.fromkeys(_category_by_path(change.after)) | _category_by_path(change.before)
            await self.change_rules(tx, change.id, [RuleChange(path, category) for path, category in rules.items()])


def _category_by_path(recorded_values: Mapping[str, Any]) -> dict[CategoryPath, str | None]:
    return {tuple(rule["path"]): rule["category"] for rule in recorded_values.get("rules", ())}


def _refuse_invalid(changes: Sequence[RuleChange]) -> None:
    seen: set[tuple[str, ...]] = set()
    for index, change in enumerate(changes):
        if change.path in seen:
            detail = "This path occurs twice. Enter one rule per path."
            raise InvalidRequest.for_field(f"rules.{index}.path", "invalid_value", detail)
        seen.add(change.path)
        if change.category is not None and change.category not in categories.category_by_id():
            detail = "This category does not exist. GET /v1/categories lists all categories."
            raise Unprocessable.for_field(f"rules.{index}.category", "invalid_value", detail)


async def _store_rules(tx: Tx, source: str, changes: Iterable[RuleChange]) -> None:
    store = tx.store(CategoryRules)
    before = await store.get(source, lock=True)
    no_rules = CategoryRules(source, tx.now, tx.now)
    after = (before or no_rules).with_changes(tx.now, changes)
    if len(after.rules) > MAX_RULES:
        detail = (
            f"A source has at most {MAX_RULES:,} category rules; this change would result in "
            f"{len(after.rules):,}. Remove some rules."
        )
        raise Unprocessable.for_field("rules", "too_many", detail)
    if sum(count_characters(rule.path) for rule in after.rules) > MAX_PATHS_CHARS:
        detail = (
            f"The paths of a source's category rules may have at most {MAX_PATHS_CHARS:,} characters in "
            f"total. Remove some rules."
        )
        raise Unprocessable.for_field("rules", "too_large", detail)
    if before is None:
        await store.add(after := replace(after, version=1))
    elif after.rules != before.rules:
        await store.save(after)
    if after.rules != (before or no_rules).rules:
        await tx[AuditLog].add(describe_change(before or no_rules, after))


async def load_stored_categories(tx: Tx, source: str) -> StoredCategories:
    """Return the stored category paths and rules of a source, and rules of other sources."""
    rules = await tx.store(CategoryRules).get(source)
    paths = await tx[CatalogueStore].list_category_paths(source, MAX_LISTED_PATHS, MAX_PATHS_CHARS)
    return StoredCategories(paths, rules, await _load_other_rules(tx, source))


def list_source_paths(stored: StoredCategories) -> SourceCategories:
    """Return a source's category paths with rules and suggestions. This is slow for thousands of paths."""
    categories, left_out = list_source_categories(
        stored.paths, CategoryAssigner(stored.rules.rules if stored.rules else ()), stored.rules
    )
    learned, split_name = LearnedCategories(stored.other_rules), cache(split_category_name)

    def suggestion(one: SourceCategory) -> str | None:
        """Return a category to suggest for a path without a rule; None if the path inherits the same category."""
        if one.rule is not None:
            return None
        category = learned.find_category(one.path) or suggest_category(one.path, split_name)
        return None if category == one.inherited else category

    return SourceCategories([replace(one, suggestion=suggestion(one)) for one in categories], left_out)


async def _load_other_rules(tx: Tx, source: str) -> list[CategoryRules]:
    """Return the rules of at most _MAX_OTHER_SOURCES other sources; stop reading once there are MAX_RULES rules."""
    found: list[CategoryRules] = []
    key: str | None = None
    for _ in range(_MAX_OTHER_SOURCES):
        page = await tx.store(CategoryRules).page(PageRequest(1, key=key))
        found += [rules for rules in page.items if rules.id != source]
        key = page.next_key
        if key is None or sum(len(rules.rules) for rules in found) >= MAX_RULES:
            break
    return found


async def load_category_assigner(tx: Tx, source: str) -> CategoryAssigner:
    """Return an assigner of categories with the source's current rules."""
    rules = await tx.store(CategoryRules).get(source)
    return CategoryAssigner(rules.rules) if rules else CategoryAssigner()


_LOG = logging.getLogger("joinery.runs")
READ_BATCH = 2_000
"""Number of products read in one transaction."""
WRITE_BATCH = 250
"""Number of products written in one transaction."""


@dataclass(frozen=True, slots=True)
class CategoryReassignment:
    """Handler of `runs.refile` jobs, which apply a source's category rules to its stored products without fetching.

    Such a run does not affect the source's health, freshness or schedule. Another worker can repeat it from the
    beginning.
    """

    uow: UnitOfWork
    lease: timedelta = timedelta(seconds=30)

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Assign categories to all products of the run's source. Raises LeaseLost if another worker has the job.

        Args:
            job: The job of the run.
            lost: Set when the job's lease is lost; no further batch is then started.
        """
        context = job.create_context()
        after: str | None = ""
        try:
            while after is not None and not lost.is_set():
                async with self.uow.begin(job.tenant, context) as tx:
                    after = await self._update_batch(tx, job, after)
        except DomainError:
            raise
        except Exception as error:
            if job.attempt < MAX_ATTEMPTS:
                raise
            _LOG.exception("category rules not applied after %d attempts", MAX_ATTEMPTS, extra={"run": job.args["run"]})
            async with self.uow.begin(job.tenant, context) as tx:
                if run := await tx[RunStore].get(str(job.args["run"])):
                    message = (
                        f"An internal error occurred ({type(error).__name__}). Set a rule again to apply all rules."
                    )
                    failure = RunError(RunErrorCode.INTERNAL_ERROR, message)
                    await tx[RunStore].save(run.with_end(RunStatus.FAILED, tx.now, failure))
                await tx[JobStore].finish(job)

    async def _update_batch(self, tx: Tx, job: ClaimedJob, after: str) -> str | None:
        """Assign categories to the next products, whose IDs follow `after`; return the last ID, or None at the end."""
        run = await tx[RunStore].get(str(job.args["run"]))
        source = await tx[SourceStore].get(run.source) if run else None
        if run is None or source is None or run.finished_at is not None:
            await tx[JobStore].finish(job)
            return None
        examined = await tx[CatalogueStore].list_product_categories(source.id, after, READ_BATCH)
        assigner = await load_category_assigner(tx, source.id)
        outdated = [one for one in examined if assigner.resolve_category(one.path, one.stated_category) != one.category]
        reconciler = CatalogueReconciler(
            source, run.id, run.stream, tx.now, False, {}, lambda _: True, category_assigner=assigner
        )
        events: Sequence[Event] = ()
        if outdated:
            await tx[CatalogueStore].lock_for_writing()
            products = await tx[CatalogueStore].load_products(source.id, [one.key for one in outdated[:WRITE_BATCH]])
            for product in products.values():
                reconciler.reassign_category(product)
            events = await write_reconciled(tx, SlotRange(source.id, reconciler.stream, 0, 0), reconciler)
        changed = run.stats.get("products_changed", 0) + reconciler.counts.get("products_changed", 0)
        stats = {**run.stats, "products_changed": changed}
        run = replace(run.with_start(tx.now), stage=RunStage.STORE, stats=stats)
        at_end = len(examined) < READ_BATCH and len(outdated) <= WRITE_BATCH
        await tx[RunStore].save(run.with_end(RunStatus.SUCCEEDED, tx.now) if at_end else run)
        await tx[EventLog].append(events)
        if at_end:
            await tx[JobStore].finish(job)
            return None
        await tx[JobStore].renew_lease(job, self.lease)
        return (outdated[WRITE_BATCH - 1] if len(outdated) > WRITE_BATCH else examined[-1]).id
