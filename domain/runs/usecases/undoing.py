"""Taking back what was set of a source's category rules: by the same use case, which files the products anew."""

from typing import Any

from domain.audit.model import Act
from domain.catalogue.category_rules import CategoryPath, RuleChange
from domain.runs.usecases.service import RunService
from ports.unit_of_work import Tx


async def take_back(service: RunService, tx: Tx, act: Act) -> None:
    """The rules as they were. Raises what setting them raises."""
    for _, change in act.changes("category_rules"):
        rules = dict.fromkeys(_by_path(change.after.get("rules", ()))) | _by_path(change.before.get("rules", ()))
        asked = [RuleChange(path, category) for path, category in rules.items()]
        await service.category_rules.change(tx, change.id, asked)


def _by_path(rules: Any) -> dict[CategoryPath, str | None]:
    return {tuple(rule["path"]): rule["category"] for rule in rules}
