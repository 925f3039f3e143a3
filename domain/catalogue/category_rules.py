"""Category rules of a source: each assigns a category to all products at and below a category path."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

from domain.audit.model import Change
from domain.catalogue.data import ProductData

MAX_RULES = 5_000
"""Maximum number of rules of one source."""
MAX_PATH_LEVELS = 20
"""Maximum number of levels of the path of a product or a rule; vendors use about six."""
MAX_LISTED_PATHS = 5_000
"""Maximum number of category paths listed for one source: those with the most products."""
MAX_PATHS_CHARS = 1 << 20
"""Maximum total characters of the paths of all rules of a source; a change beyond it is rejected.

The same limit applies to the listed paths without rules; further paths are omitted.
"""

CategoryPath: TypeAlias = tuple[str, ...]
"""A source's own category names, from the top down."""


@dataclass(frozen=True, slots=True)
class CategoryRule:
    """Category of all products at and below a path, unless a longer path has a rule that applies to the product."""

    path: CategoryPath
    category: str


@dataclass(frozen=True, slots=True)
class RuleChange:
    """Change of the rule for a path: the category to set, or None to remove the rule."""

    path: CategoryPath
    category: str | None


@dataclass(frozen=True, slots=True)
class CategoryRules:
    """All rules of one source; `id` is the source's ID."""

    id: str
    created_at: datetime
    updated_at: datetime
    rules: tuple[CategoryRule, ...] = ()
    version: int = 1

    def with_changes(self, now: datetime, changes: Iterable[RuleChange]) -> "CategoryRules":
        """Return the rules with the changes applied, ordered by path."""
        by_path: dict[CategoryPath, str | None] = {rule.path: rule.category for rule in self.rules}
        by_path |= {change.path: change.category for change in changes}
        rules = tuple(CategoryRule(path, category) for path, category in sorted(by_path.items()) if category)
        return replace(self, rules=rules, version=self.version + 1, updated_at=now)


def describe_change(before: CategoryRules, after: CategoryRules) -> Change:
    """Return the audited change between two states of a source's rules, with only the rules that differ."""
    old, new = set(before.rules), set(after.rules)
    return Change("category_rules", after.id, "update", _describe_rules(old - new), _describe_rules(new - old))


def _describe_rules(rules: Iterable[CategoryRule]) -> Mapping[str, object]:
    ordered = sorted(rules, key=lambda rule: rule.path)
    return {"rules": [{"path": list(rule.path), "category": rule.category} for rule in ordered]} if ordered else {}


class CategoryAssigner:
    """Assigns categories to products by a source's rules.

    A rule takes precedence over the category in the source's feed.
    """

    def __init__(self, rules: Iterable[CategoryRule] = ()) -> None:
        self._categories: Final = {rule.path: rule.category for rule in rules}
        self._deepest: Final = max(map(len, self._categories), default=0)

    def find_exact_category(self, path: CategoryPath) -> str | None:
        """Return the category of the rule for exactly this path, or None."""
        return self._categories.get(path)

    def find_inherited_category(self, path: CategoryPath) -> str | None:
        """Return the category of the rule for the nearest path above this one, or None."""
        return self._find_nearest(path, min(len(path) - 1, self._deepest))

    def resolve_category(self, path: Sequence[str], stated_category: str | None) -> str | None:
        """Return the category of the nearest rule at or above the path, else the category in the source's feed (`stated_category`)."""
        return self._find_nearest(tuple(path), min(len(path), self._deepest)) or stated_category

    def assign_category(self, data: ProductData) -> str | None:
        """Set the category in a product's data by the rules; return the category that the data had before (the source's), or None."""
        stated = data.get("category")
        category = self.resolve_category(data.get("category_path", ()), stated)
        if category is not None:
            data["category"] = category
        return stated

    def with_reassigned_category(self, data: Mapping[str, Any], stated_category: str | None) -> dict[str, Any]:
        """Return a stored product's data with the category by the current rules; `stated_category` is the category in the feed."""
        refiled = {name: value for name, value in data.items() if name != "category"}
        category = self.resolve_category(refiled.get("category_path", ()), stated_category)
        return refiled | ({"category": category} if category else {})

    def _find_nearest(self, path: CategoryPath, max_length: int) -> str | None:
        lengths = range(max_length, 0, -1)
        return next((category for length in lengths if (category := self._categories.get(path[:length]))), None)


class ProductCategory(NamedTuple):
    """Category of a stored product: `category` is the assigned one, `stated_category` the one in the source's feed."""

    id: str
    key: str
    path: CategoryPath
    category: str | None
    stated_category: str | None


@dataclass(frozen=True, slots=True)
class CategoryPaths:
    """Category paths of a source with the number of products of each path.

    `omitted_count` is the number of paths beyond the limits in `CatalogueStore.list_category_paths`.
    """

    product_count_by_path: Mapping[CategoryPath, int]
    omitted_count: int


@dataclass(frozen=True, slots=True)
class SourceCategory:
    """Category path of a source.

    Attributes:
        products: Number of products at and below the path.
        rule: ID of the category in the path's own rule; None without a rule.
        inherited: ID of the category in the nearest rule above the path; None without such a rule.
        suggestion: ID of the category to suggest for a rule; None for no suggestion.
    """

    path: CategoryPath
    products: int
    rule: str | None
    inherited: str | None
    suggestion: str | None = None


def list_source_categories(
    paths: CategoryPaths, assigner: CategoryAssigner, rules: CategoryRules | None
) -> tuple[list[SourceCategory], int]:
    """List the category paths of the products, the paths above them, and the paths of rules, ordered by path.

    All paths of rules are listed. Other paths are omitted if they have more than MAX_PATH_LEVELS levels, or exceed
    MAX_LISTED_PATHS paths or MAX_PATHS_CHARS characters in total.

    Returns:
        The category paths, and the number of omitted paths.
    """
    product_counts: dict[CategoryPath, int] = {rule.path: 0 for rule in rules.rules} if rules else {}
    max_paths, chars, left_out = len(product_counts) + MAX_LISTED_PATHS, MAX_PATHS_CHARS, paths.omitted_count
    for path, products in paths.product_count_by_path.items():
        left_out += len(path) > MAX_PATH_LEVELS
        for length in range(min(len(path), MAX_PATH_LEVELS), 0, -1):
            prefix = path[:length]
            if prefix in product_counts:
                product_counts[prefix] += products
            elif len(product_counts) < max_paths and (size := count_characters(prefix)) <= chars:
                product_counts[prefix] = products
                chars -= size
            else:
                left_out += 1
    ordered = sorted(product_counts.items())
    return [
        SourceCategory(path, n, assigner.find_exact_category(path), assigner.find_inherited_category(path))
        for path, n in ordered
    ], left_out


def count_characters(path: Sequence[str]) -> int:
    """Return the total number of characters of a path's levels."""
    return sum(map(len, path))
