"""What people do with the rules that file a source's products: look at its paths, and set rules, which files everything anew."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, TypeVar

from domain.audit.ports import AuditLog
from domain.catalogue import categories
from domain.catalogue.category_rules import (
    MOST_PATHS,
    MOST_RULES,
    PATHS_CHARS,
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
from domain.catalogue.suggestions import Learned, suggest, words_of
from domain.jobs.ports import JobStore
from domain.kernel.errors import Conflict, InvalidRequest, Unavailable, Unprocessable
from domain.kernel.paging import PageRequest
from domain.kernel.resource import existing
from domain.runs.model import Run, RunTrigger
from domain.runs.ports import RunStore
from domain.runs.queueing import execution, queued, started
from domain.sources.ports import SourceStore
from ports.parsing import ParserEnded, ParserFailed, ParserRunner
from ports.unit_of_work import Tx

R = TypeVar("R")

_OTHERS: Final = 50
"""How many sources' rules are learned from: those of the newest."""


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
    """Rules of one tenant's sources; every change is audited. `run` bounds and ends what lists paths."""

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
        """Set and remove rules, others stay; and queue the run that files all products by them.

        Returns what the source's category paths are listed from, and the run.

        Raises NotFound; InvalidRequest for a path that is named twice; Unprocessable for an unknown category and too many
        or too long rules; Conflict while a run of the source is open or the source is not active. Then nothing is kept.
        """
        found = existing(await tx[SourceStore].get(source, lock=True))
        _refuse(changes)
        found.refuse_unless_runnable()
        if open_run := await tx[RunStore].open(source):
            raise Conflict(f"The run {open_run.id} of this source is {open_run.status}; wait until it has ended.")
        await _keep(tx, source, changes)
        run = queued(source, RunTrigger.CATEGORY_RULES, tx.now)
        await tx[RunStore].add(run)
        await tx[JobStore].add(execution(run, tx.tenant))
        await tx[AuditLog].add(started(run))
        return await _paths_and_rules(tx, source), run


def _refuse(changes: Sequence[RuleChange]) -> None:
    seen: set[tuple[str, ...]] = set()
    for place, change in enumerate(changes):
        if change.path in seen:
            detail = "This path is named twice; give each path one rule."
            raise InvalidRequest.of(f"rules.{place}.path", "invalid_value", detail)
        seen.add(change.path)
        if change.category is not None and change.category not in categories.everything():
            detail = "There is no such category; GET /v1/categories has them all."
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
    """The rules of the newest sources, one source after the other until there are MOST_RULES rules."""
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
    """What files the source's products now."""
    rules = await tx.store(CategoryRules).get(source)
    return Filing(rules.rules) if rules else Filing()
