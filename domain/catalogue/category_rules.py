"""Rules by which a source's products are filed: a category path of the source, and the category of all at it and below it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

from domain.audit.model import Change
from domain.catalogue.data import ProductData

MOST_RULES = 5_000
"""Rules of one source."""
MOST_LEVELS = 20
"""Levels of the path of a product or a rule; vendors have some six."""
MOST_PATHS = 5_000
"""Category paths of one source that are listed: those of most products."""
PATHS_CHARS = 1 << 20
"""Characters of the paths of a source's rules, and of the further paths that are listed."""

CategoryPath: TypeAlias = tuple[str, ...]
"""A source's own names from the top down, as its products have them."""


@dataclass(frozen=True, slots=True)
class CategoryRule:
    """Products at the path and below it belong to the category, until a rule with a longer path says otherwise."""

    path: CategoryPath
    category: str


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A rule to set; without a category the path's rule is removed."""

    path: CategoryPath
    category: str | None


@dataclass(frozen=True, slots=True)
class CategoryRules:
    """All rules of one source, whose id they are kept under."""

    id: str
    created_at: datetime
    updated_at: datetime
    rules: tuple[CategoryRule, ...] = ()
    version: int = 1

    def changed(self, now: datetime, changes: Iterable[RuleChange]) -> "CategoryRules":
        """With some rules set and removed, in the order of their paths."""
        by_path: dict[CategoryPath, str | None] = {rule.path: rule.category for rule in self.rules}
        by_path |= {change.path: change.category for change in changes}
        rules = tuple(CategoryRule(path, category) for path, category in sorted(by_path.items()) if category)
        return replace(self, rules=rules, version=self.version + 1, updated_at=now)


def audited(before: CategoryRules, after: CategoryRules) -> Change:
    """Return the audited change of two sets of rules, limited to the rules that differ."""
    old, new = set(before.rules), set(after.rules)
    return Change("category_rules", after.id, "update", _told(old - new), _told(new - old))


def _told(rules: Iterable[CategoryRule]) -> Mapping[str, object]:
    ordered = sorted(rules, key=lambda rule: rule.path)
    return {"rules": [{"path": list(rule.path), "category": rule.category} for rule in ordered]} if ordered else {}


class Filing:
    """Files products by a source's rules. A rule wins over the category that the source itself states of a product."""

    def __init__(self, rules: Iterable[CategoryRule] = ()) -> None:
        self._categories: Final = {rule.path: rule.category for rule in rules}
        self._deepest: Final = max(map(len, self._categories), default=0)

    def own(self, path: CategoryPath) -> str | None:
        """Return the category of the rule for exactly this path, or None."""
        return self._categories.get(path)

    def inherited(self, path: CategoryPath) -> str | None:
        """Return the category of the nearest rule for a shorter path, or None."""
        return self._nearest(path, min(len(path) - 1, self._deepest))

    def category(self, path: Sequence[str], stated: str | None) -> str | None:
        """Where a product at the path belongs: by the nearest rule, else where the source says, which may be nowhere."""
        return self._nearest(tuple(path), min(len(path), self._deepest)) or stated

    def file(self, data: ProductData) -> str | None:
        """Put a product's data, as its source states it, where it belongs; answers the category that the source states."""
        stated = data.get("category")
        category = self.category(data.get("category_path", ()), stated)
        if category is not None:
            data["category"] = category
        return stated

    def refiled(self, data: Mapping[str, Any], stated: str | None) -> dict[str, Any]:
        """Return the data of a stored product with its category recomputed; `stated` is the category that the source states."""
        found = {name: value for name, value in data.items() if name != "category"}
        category = self.category(found.get("category_path", ()), stated)
        return found | ({"category": category} if category else {})

    def _nearest(self, path: CategoryPath, longest: int) -> str | None:
        lengths = range(longest, 0, -1)
        return next((found for length in lengths if (found := self._categories.get(path[:length]))), None)


class Filed(NamedTuple):
    """A stored product's key, its category path, where it is filed, and the category that its source states."""

    id: str
    key: str
    path: CategoryPath
    category: str | None
    stated: str | None


@dataclass(frozen=True, slots=True)
class CategoryPaths:
    """The paths that a source's products have, each with how many have it; `left_out` counts further paths."""

    products: Mapping[CategoryPath, int]
    left_out: int


@dataclass(frozen=True, slots=True)
class SourceCategory:
    """A source's category path: products at it or below it, its rule, the nearest rule above, and what might be its rule."""

    path: CategoryPath
    products: int
    rule: str | None
    inherited: str | None
    suggestion: str | None = None


def listed(paths: CategoryPaths, filing: Filing, rules: CategoryRules | None) -> tuple[list[SourceCategory], int]:
    """List every path of the products and every path above, in path order; paths of rules too, though no product has them.

    Returns the paths, and how many were left out: beside those of rules there are at most MOST_PATHS, of PATHS_CHARS
    together. A path of more than MOST_LEVELS levels is left out itself; its first levels are listed.
    """
    counted: dict[CategoryPath, int] = {rule.path: 0 for rule in rules.rules} if rules else {}
    room, chars, left_out = len(counted) + MOST_PATHS, PATHS_CHARS, paths.left_out
    for path, products in paths.products.items():
        left_out += len(path) > MOST_LEVELS
        for length in range(min(len(path), MOST_LEVELS), 0, -1):
            above = path[:length]
            if above in counted:
                counted[above] += products
            elif len(counted) < room and (size := characters(above)) <= chars:
                counted[above] = products
                chars -= size
            else:
                left_out += 1
    ordered = sorted(counted.items())
    return [SourceCategory(path, n, filing.own(path), filing.inherited(path)) for path, n in ordered], left_out


def characters(path: Sequence[str]) -> int:
    """Return how many characters the levels of a path have together."""
    return sum(map(len, path))
