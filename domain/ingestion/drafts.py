"""Drafts of products while their rows are read, and records of the values that exceed their limits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from domain.catalogue.category_rules import MOST_LEVELS
from domain.catalogue.data import Carton, Dimensions, OfferData, ProductData, Rug, VariantData
from domain.catalogue.statements import VariantStatement
from domain.catalogue.trimming import Excess
from domain.ingestion.model import Row
from domain.ingestion.values.dimensions import Spread
from domain.ingestion.values.labels import kind_of
from domain.ingestion.values.text import Fault
from domain.kernel.bounds import AXES, ITEM_CHARS, ITEMS, OFFERS, VARIANTS
from domain.kernel.problems import Problem, ProblemKind

_REPORTED = -1
NO_PLACE = ""
"""Location of offer facts whose column and row state none."""
_MOST = {
    "variants": f"a product has at most {VARIANTS:,}",
    "axes": f"a variant has at most {AXES}",
    "offers": f"a variant has at most {OFFERS}",
    "category path": f"it has at most {MOST_LEVELS} levels, of {ITEM_CHARS:,} characters each",
}
_LIST = f"at most {ITEMS} are kept, of {ITEM_CHARS:,} characters each and some KiB in all"


class LeftOut:
    """Record of the entries of one product beyond its limits (domain/kernel/bounds.py).

    It has the number of entries of each field and the place of the first. Fields of all variants are counted together.
    """

    __slots__ = ("_fields", "_keys")

    def __init__(self) -> None:
        self._fields: dict[str, tuple[int, int | None, str | None]] = {}
        self._keys: set[tuple[str, str]] = set()

    def add(
        self, name: str, count: int, line: int | None = None, column: str | None = None, key: str | None = None
    ) -> None:
        """Count `count` more entries of a field; the place of its first entry is kept.

        With a key, entries are counted once for each field and key.
        """
        if key is None or (name, key) not in self._keys:
            self._keys.add((name, key or ""))
            before, at, header = self._fields.get(name, (0, line, column))
            self._fields[name] = (before + count, at, header)

    def add_all(self, excess: Iterable[Excess], prefix: str, line: int | None) -> None:
        """Count the entries that were trimmed off one record, with `prefix` before the names of their fields."""
        for entry in excess:
            self.add(f"{prefix}{entry.field}", entry.count, line)

    def problems(self, sheet: str | None = None) -> list[Problem]:
        """Return one problem for each field."""
        found = []
        for name, (count, line, column) in self._fields.items():
            noun = name.rpartition(".")[2].replace("_", " ")
            were = "was" if count == 1 else "were"
            detail = f"Too much for one product: {count:,} of its {noun} {were} left out; {_MOST.get(noun, _LIST)}."
            found.append(Problem(name, ProblemKind.TOO_LONG, detail, line, column, sheet))
        return found


@dataclass(slots=True)
class ProductDraft:
    """Draft of a product: its key, its rows in one table and the facts from the rows read so far.

    Texts keep the first value; lists grow, each item once. If `is_family`, the key is that of a family, not a column's.
    """

    key: str = ""
    rows: Sequence[Row] = ()
    sheet: str | None = None
    is_family: bool = False
    grouped: bool = True
    data: ProductData = field(default_factory=ProductData)
    given_by: dict[str, int] = field(default_factory=dict)
    family: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    tags: dict[str, None] = field(default_factory=dict)
    features: dict[str, None] = field(default_factory=dict)
    extras: dict[str, None] = field(default_factory=dict)
    compliance: dict[str, Any] = field(default_factory=dict)
    levels: dict[int, tuple[str, ...]] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    google_category: tuple[str, ...] = ()
    media: dict[str, dict[str, Any]] = field(default_factory=dict)
    hero: str | None = None
    kind: str | None = None
    option_names: dict[int, str] = field(default_factory=dict)
    discontinued: set[bool] = field(default_factory=set)
    variants: dict[str, VariantStatement] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)

    def add_problem(self, name: str, kind: ProblemKind, detail: str, line: int, column: str | None = None) -> None:
        """Add a problem of the product's rows."""
        self.problems.append(Problem(name, kind, detail, line, column, self.sheet))

    def differs(self, name: str, line: int, column: str | None) -> None:
        """Report once for each field that rows of the product state different values for it.

        A second column of the row that stated the value is a fallback and not reported.
        """
        if self.given_by.get(name, 0) not in (line, _REPORTED):
            self.given_by[name] = _REPORTED
            detail = f"Rows of one item differ in {name.replace('_', ' ')}; the first value is kept."
            self.add_problem(name, ProblemKind.CONFLICT, detail, line, column)

    def category_path(self) -> tuple[str, ...]:
        """Return the vendor's category path: that of a path column, else of columns for levels, else Google's."""
        return self.categories()[0]

    def categories(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the vendor's category path and further paths, such as a second category or that of a platform."""
        stated = [self.levels[place] for place in sorted(self.levels)]
        others = bool(self.path or self.google_category)
        if not stated and not (self.path and self.google_category):
            return self.path or self.google_category, []
        if not others and (len(stated) == 1 or all(len(levels) == 1 for levels in stated)):
            return tuple(dict.fromkeys(chain.from_iterable(stated))), []
        further: list[tuple[str, ...]] = []
        if len(stated) > 1 and any(len(levels) > 1 for levels in stated):
            # Columns with whole paths are alternative categories, not levels of one path.
            path, further = stated[0], [*stated[1:], self.path]
        elif stated:
            levels = dict.fromkeys(chain.from_iterable(stated))
            if self.path and self.path[-1] not in levels:
                levels.update(dict.fromkeys(self.path))
            path = tuple(levels)
        else:
            path = self.path
        known, *rest = [path or self.google_category, *further, self.google_category if path else ()]
        kept: list[tuple[str, ...]] = []
        for other in rest:
            if other[: len(known)] == known:
                known = other
            elif other and other != known[: len(other)] and other[-1] not in known:
                kept.append(other)
        return known, kept


@dataclass(slots=True)
class RowDraft:
    """Draft of one row: facts about its variant and its offers."""

    product: ProductDraft
    line: int
    variant: VariantData = field(default_factory=VariantData)
    dimensions: Dimensions = field(default_factory=Dimensions)
    presumed: tuple[str, ...] = ()
    offers: dict[str, OfferData] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    option_values: dict[int, str] = field(default_factory=dict)
    materials: dict[str, None] = field(default_factory=dict)
    components: list[Any] = field(default_factory=list)
    cartons: dict[int, Carton] = field(default_factory=dict)
    carton_count: int | None = None
    rug: Rug = field(default_factory=Rug)
    spread: Spread | None = None
    stock_word: Any = None
    untracked: bool = False
    blank: frozenset[str] = frozenset()
    covers: bool = True
    states_status: bool = True
    variant_media: tuple[str, ...] = ()
    media_urls: tuple[str, ...] = ()
    media_alt: str | None = None
    media_alts: dict[str, str] = field(default_factory=dict)
    media_position: int | None = None
    location: str | None = None
    currency: str | None = None
    dimension_unit: str | None = None
    weight_unit: str | None = None

    def report(self, name: str, column: str | None, faults: tuple[Fault, ...]) -> None:
        """Add the faults of a value as problems, with its line and column."""
        for fault in faults:
            self.product.add_problem(name, fault.problem, fault.detail, self.line, column)

    def conflict(self, name: str, detail: str) -> None:
        """Report that the row's value of a field contradicts another value."""
        self.product.add_problem(name, ProblemKind.CONFLICT, detail, self.line)

    def kind(self) -> str:
        """Return the kind of the product (`labels.kind_of`), determined once from its category and title."""
        product = self.product
        if product.kind is None:
            product.kind = kind_of(" > ".join(product.category_path()), product.data.get("title", ""))
        return product.kind
