"""What people do with the rules that file a source's products: look at its paths, and set rules, which files everything anew."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from domain.catalogue import categories
from domain.catalogue.category_rules import (
    MOST_PATHS,
    MOST_RULES,
    CategoryRules,
    Filing,
    RuleChange,
    SourceCategory,
    audited,
    listed,
)
from domain.catalogue.suggestions import Learned, suggest
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, Unprocessable
from domain.kernel.paging import PageRequest
from domain.runs.model import Run, RunTrigger
from domain.runs.queueing import execution, queued, started
from ports.unit_of_work import Tx

_OTHERS: Final = 50
"""How many sources' rules are learned from: those of the newest."""


@dataclass(frozen=True, slots=True)
class SourceCategories:
    """A source's category paths, with how many were left out, and the run that files its products by the rules just set."""

    categories: Sequence[SourceCategory]
    left_out: int
    run: Run | None = None


class CategoryRuleService:
    """Rules of one tenant's sources; every change is audited."""

    async def read(self, tx: Tx, source: str) -> SourceCategories:
        """The source's category paths with their rules and suggestions. Raises NotFound."""
        if await tx.sources.get(source) is None:
            raise NotFound
        return await _told(tx, source, None)

    async def change(self, tx: Tx, source: str, changes: Sequence[RuleChange]) -> SourceCategories:
        """Set and remove rules, others stay; and queue the run that files all products by them.

        Raises NotFound; InvalidRequest for a path that is named twice; Unprocessable for an unknown category and too many
        rules; Conflict while a run of the source is open or the source is not active. Then nothing is kept.
        """
        found = await tx.sources.get(source, lock=True)
        if found is None:
            raise NotFound
        _refuse(changes)
        found.refuse_unless_runnable()
        if open_run := await tx.runs.open(source):
            raise Conflict(f"The run {open_run.id} of this source is {open_run.status}; wait until it has ended.")
        await _keep(tx, source, changes)
        run = queued(source, RunTrigger.CATEGORY_RULES, tx.now)
        await tx.runs.add(run)
        await tx.jobs.add(execution(run, tx.tenant))
        await tx.audit.add(started(run))
        return await _told(tx, source, run)


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
    if before is None:
        await store.add(after := replace(after, version=1))
    elif after.rules != before.rules:
        await store.save(after)
    if after.rules != (before or none).rules:
        await tx.audit.add(audited(before or none, after))


async def _told(tx: Tx, source: str, run: Run | None) -> SourceCategories:
    rules = await tx.store(CategoryRules).get(source)
    filing = Filing(rules.rules if rules else ())
    paths, others = await tx.catalogue.category_paths(source, MOST_PATHS), await _others(tx, source)

    def tell() -> SourceCategories:
        found, left_out = listed(paths, filing, rules)
        learned = Learned(others)
        return SourceCategories([replace(one, suggestion=_suggestion(one, learned)) for one in found], left_out, run)

    return await asyncio.to_thread(tell)  # thousands of paths take a while


def _suggestion(one: SourceCategory, learned: Learned) -> str | None:
    """What might be the rule of a path that has none; nothing that it inherits anyway."""
    if one.rule is not None:
        return None
    found = learned.category(one.path) or suggest(one.path)
    return None if found == one.inherited else found


async def _others(tx: Tx, source: str) -> list[CategoryRules]:
    page = await tx.store(CategoryRules).page(PageRequest(_OTHERS))
    return [rules for rules in page.items if rules.id != source]


async def filing_of(tx: Tx, source: str) -> Filing:
    """What files the source's products now."""
    rules = await tx.store(CategoryRules).get(source)
    return Filing(rules.rules) if rules else Filing()
