"""What is known so far of one product while its rows are read."""

from itertools import chain
from typing import Any, Final

from domain.catalogue.data import Carton, Dimensions, OfferData, ProductData, Rug, VariantData
from domain.catalogue.statements import VariantStatement
from domain.ingestion.drafts.left_out import LeftOut
from domain.ingestion.values.dimensions import Spread
from domain.ingestion.values.parsed import Fault, Parsed
from domain.ingestion.values.sides import kind_of
from domain.kernel.problems import Problem, ProblemKind

_TOLD: Final = -1
NO_PLACE: Final = ""
"""The location of offer facts whose column and row name none."""


class ProductDraft:
    """A product's facts from the rows read so far. Texts keep what was stated first; lists grow, each item once."""

    __slots__ = (
        "compliance",
        "data",
        "discontinued",
        "extras",
        "family",
        "features",
        "given_by",
        "google_category",
        "grouped",
        "hero",
        "kind",
        "left_out",
        "levels",
        "media",
        "option_names",
        "path",
        "problems",
        "sheet",
        "tags",
        "variants",
    )

    def __init__(self, sheet: str | None, *, grouped: bool = True) -> None:
        self.data: ProductData = {}
        self.sheet = sheet
        self.grouped = grouped
        self.given_by: dict[str, int] = {}
        self.family: dict[str, tuple[tuple[str, ...], str]] = {}
        self.problems: list[Problem] = []
        self.tags: dict[str, None] = {}
        self.features: dict[str, None] = {}
        self.extras: dict[str, None] = {}
        self.compliance: dict[str, Any] = {}
        self.levels: dict[int, tuple[str, ...]] = {}
        self.path: tuple[str, ...] = ()
        self.google_category: tuple[str, ...] = ()
        self.media: dict[str, dict[str, Any]] = {}
        self.hero: str | None = None
        self.kind: str | None = None
        self.option_names: dict[int, str] = {}
        self.discontinued: set[bool] = set()
        self.variants: dict[str, VariantStatement] = {}
        self.left_out: LeftOut | None = None

    def leave_out(self, field: str, count: int, line: int, column: str | None, key: str | None = None) -> None:
        """So many entries of a field are too much for one product; one with a key is counted once."""
        if self.left_out is None:
            self.left_out = LeftOut()
        self.left_out.add(field, count, line, column, key)

    def tell(self, field: str, kind: ProblemKind, detail: str, line: int, column: str | None = None) -> None:
        """Note a problem of the product's rows."""
        self.problems.append(Problem(field, kind, detail, line, column, self.sheet))

    def differs(self, field: str, line: int, column: str | None) -> None:
        """Rows of the product say different things under a field that has room for one; told once for each field.

        A second column of the row that gave the value stands in for the first and is no difference.
        """
        if self.given_by.get(field, 0) in (line, _TOLD):
            return
        self.given_by[field] = _TOLD
        detail = f"Rows of one item differ in {field.replace('_', ' ')}; what the first says is kept."
        self.tell(field, ProblemKind.CONFLICT, detail, line, column)

    def category_path(self) -> tuple[str, ...]:
        """The vendor's own path: of a path column, else of the columns for each level, else Google's."""
        return self.categories()[0]

    def categories(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The vendor's own path, and further paths that stand beside it: a second shelf, a platform's category."""
        if not self.levels and not (self.path and self.google_category):
            return self.path or self.google_category, []
        stated = [self.levels[place] for place in sorted(self.levels)]
        if not self.path and not self.google_category and all(len(levels) == 1 for levels in stated):
            return tuple(dict.fromkeys(chain.from_iterable(stated))), []
        if len(stated) == 1 and not self.path and not self.google_category:
            return tuple(dict.fromkeys(stated[0])), []
        if len(stated) > 1 and any(len(levels) > 1 for levels in stated):
            # Columns that hold whole paths are shelves side by side, not levels of one.
            path, further = stated[0], [*stated[1:], self.path]
        else:
            path, further = self._chained(stated), []
        known, *others = [path or self.google_category, *further, self.google_category if path else ()]
        kept: list[tuple[str, ...]] = []
        for other in others:
            if other[: len(known)] == known:
                known = other
            elif other and other != known[: len(other)] and other[-1] not in known:
                kept.append(other)
        return known, kept

    def _chained(self, stated: list[tuple[str, ...]]) -> tuple[str, ...]:
        if not stated:
            return self.path
        levels = dict.fromkeys(level for found in stated for level in found)
        if self.path and self.path[-1] not in levels:
            levels.update(dict.fromkeys(self.path))
        return tuple(levels)


class RowDraft:
    """One row's facts about its variant and its offers."""

    __slots__ = (
        "axes",
        "blank",
        "carton_count",
        "cartons",
        "components",
        "covers",
        "currency",
        "dimension_unit",
        "dimensions",
        "line",
        "location",
        "materials",
        "media_alt",
        "media_alts",
        "media_position",
        "media_urls",
        "offers",
        "option_values",
        "presumed",
        "product",
        "rug",
        "spread",
        "states_status",
        "stock_word",
        "untracked",
        "variant",
        "variant_media",
        "weight_unit",
    )

    def __init__(self, product: ProductDraft, line: int) -> None:
        self.product = product
        self.line = line
        self.variant: VariantData = {}
        self.dimensions: Dimensions = {}
        self.presumed: tuple[str, ...] = ()
        self.offers: dict[str, OfferData] = {}
        self.axes: dict[str, str] | None = None
        self.option_values: dict[int, str] | None = None
        self.materials: dict[str, None] | None = None
        self.components: list[Any] | None = None
        self.cartons: dict[int, Carton] | None = None
        self.carton_count: int | None = None
        self.rug: Rug | None = None
        self.spread: Spread | None = None
        self.stock_word: Any = None
        self.untracked = False
        self.blank: frozenset[str] = frozenset()
        self.covers = True
        self.states_status = True
        self.variant_media: tuple[str, ...] = ()
        self.media_urls: tuple[str, ...] = ()
        self.media_alt: str | None = None
        self.media_alts: dict[str, str] | None = None
        self.media_position: int | None = None
        self.location: str | None = None
        self.currency: str | None = None
        self.dimension_unit: str | None = None
        self.weight_unit: str | None = None

    def report(self, field: str, column: str | None, faults: tuple[Fault, ...]) -> None:
        """Keep what was wrong with a value, with the place it stands in."""
        product = self.product
        for fault in faults:
            product.problems.append(Problem(field, fault.problem, fault.detail, self.line, column, product.sheet))

    def taken(self, field: str, column: str, parsed: Parsed[Any]) -> Any:
        """The value of what was parsed, its faults reported."""
        if parsed.faults:
            self.report(field, column, parsed.faults)
        return parsed.value

    def offer(self, location: str = NO_PLACE) -> OfferData:
        """The offer facts at a location, new when there are none yet."""
        found = self.offers.get(location)
        if found is None:
            found = self.offers[location] = {}
        return found


def kind_of_product(row: RowDraft) -> str:
    """The kind (`sides.kind_of`) of the product a row belongs to, by its category and title."""
    product = row.product
    if product.kind is None:
        product.kind = kind_of(" > ".join(product.category_path()), product.data.get("title", ""))
    return product.kind
