"""Category rules of a source, which assign a category to all products at and below a category path."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

from domain.audit.model import Change
from domain.catalogue.data import ProductData

MOST_RULES = 5_000
"""Maximum number of rules of one source."""
MOST_LEVELS = 20
"""Maximum number of levels of the path of a product or a rule; vendors use about six."""
MOST_PATHS = 5_000
"""Maximum number of category paths listed for one source: those with the most products."""
PATHS_CHARS = 1 << 20
"""Maximum total characters of the paths of a source's rules, and of the other paths that are listed."""

CategoryPath: TypeAlias = tuple[str, ...]
"""A source's own category names, from the top down."""


@dataclass(frozen=True, slots=True)
class CategoryRule:
    """The category of products at and below a path, unless a rule with a longer path applies."""

    path: CategoryPath
    category: str


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A rule to set; a category of None removes the path's rule."""

    path: CategoryPath
    category: str | None


@dataclass(frozen=True, slots=True)
class CategoryRules:
    """All rules of one source; `id` is that of the source."""

    id: str
    created_at: datetime
    updated_at: datetime
    rules: tuple[CategoryRule, ...] = ()
    version: int = 1

    def changed(self, now: datetime, changes: Iterable[RuleChange]) -> "CategoryRules":
        """Return the rules with the changes applied, ordered by path."""
        by_path: dict[CategoryPath, str | None] = {rule.path: rule.category for rule in self.rules}
        by_path |= {change.path: change.category for change in changes}
        rules = tuple(CategoryRule(path, category) for path, category in sorted(by_path.items()) if category)
        return replace(self, rules=rules, version=self.version + 1, updated_at=now)


def audited(before: CategoryRules, after: CategoryRules) -> Change:
    """Return the audited change of two sets of rules, limited to the rules that differ."""
    old, new = set(before.rules), set(after.rules)
    return Change("category_rules", after.id, "update", _describe_rules(old - new), _describe_rules(new - old))


def _describe_rules(rules: Iterable[CategoryRule]) -> Mapping[str, object]:
    ordered = sorted(rules, key=lambda rule: rule.path)
    return {"rules": [{"path": list(rule.path), "category": rule.category} for rule in ordered]} if ordered else {}


class Filing:
    """Assignment of products to categories by a source's rules, which take precedence over the category that the source states."""

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
        """Return the category of the nearest rule for the path; without a rule, the category that the source states, or None."""
        return self._nearest(tuple(path), min(len(path), self._deepest)) or stated

    def file(self, data: ProductData) -> str | None:
        """Set the category in a product's data by the rules. Return the category that the source states, or None."""
        stated = data.get("category")
        category = self.category(data.get("category_path", ()), stated)
        if category is not None:
            data["category"] = category
        return stated

    def refiled(self, data: Mapping[str, Any], stated: str | None) -> dict[str, Any]:
        """Return the data of a stored product with its category recomputed; `stated` is the category that the source states."""
        refiled = {name: value for name, value in data.items() if name != "category"}
        category = self.category(refiled.get("category_path", ()), stated)
        return refiled | ({"category": category} if category else {})

    def _nearest(self, path: CategoryPath, longest: int) -> str | None:
        lengths = range(longest, 0, -1)
        return next((category for length in lengths if (category := self._categories.get(path[:length]))), None)


class Filed(NamedTuple):
    """The filing of a stored product: `category` is the one in effect, `stated` the one that its source states."""

    id: str
    key: str
    path: CategoryPath
    category: str | None
    stated: str | None


@dataclass(frozen=True, slots=True)
class CategoryPaths:
    """The category paths of a source's products with their numbers of products; `left_out` counts paths beyond the limit."""

    products: Mapping[CategoryPath, int]
    left_out: int


@dataclass(frozen=True, slots=True)
class SourceCategory:
    """A source's category path with its products, including those below it, its rule, the inherited rule and a suggested rule."""

    path: CategoryPath
    products: int
    rule: str | None
    inherited: str | None
    suggestion: str | None = None


def listed(paths: CategoryPaths, filing: Filing, rules: CategoryRules | None) -> tuple[list[SourceCategory], int]:
    """List every path of the products, its ancestors and the paths of rules, in path order.

    Returns the paths and the number of paths that were left out. In addition to the paths of rules, at most MOST_PATHS
    paths of PATHS_CHARS characters in total are listed. A path of more than MOST_LEVELS levels is left out; its first
    levels are listed.
    """
    product_counts: dict[CategoryPath, int] = {rule.path: 0 for rule in rules.rules} if rules else {}
    max_paths, chars, left_out = len(product_counts) + MOST_PATHS, PATHS_CHARS, paths.left_out
    for path, products in paths.products.items():
        left_out += len(path) > MOST_LEVELS
        for length in range(min(len(path), MOST_LEVELS), 0, -1):
            prefix = path[:length]
            if prefix in product_counts:
                product_counts[prefix] += products
            elif len(product_counts) < max_paths and (size := characters(prefix)) <= chars:
                product_counts[prefix] = products
                chars -= size
            else:
                left_out += 1
    ordered = sorted(product_counts.items())
    return [SourceCategory(path, n, filing.own(path), filing.inherited(path)) for path, n in ordered], left_out


def characters(path: Sequence[str]) -> int:
    """Return the total number of characters of a path's levels."""
    return sum(map(len, path))
