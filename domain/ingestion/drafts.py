"""Incomplete data of products and rows while a table is read, and counts of entries omitted because of limits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from domain.catalogue.category_rules import MAX_PATH_LEVELS
from domain.catalogue.data import Carton, Dimensions, OfferData, ProductData, Rug, VariantData
from domain.catalogue.data_limits import TrimmedEntries
from domain.catalogue.statements import VariantStatement
from domain.ingestion.model import Row
from domain.ingestion.values.dimensions import ParsedSize
from domain.ingestion.values.labels import determine_size_kind
from domain.ingestion.values.text import ParseFault
from domain.kernel.bounds import (
    KIB,
    MAX_AXES,
    MAX_ENTRY_CHARS,
    MAX_IMPORTED_VARIANTS,
    MAX_LIST_ENTRIES,
    MAX_OFFERS,
    PRODUCT_LIST_BYTES,
    VARIANT_LIST_BYTES,
)
from domain.kernel.problems import Problem, ProblemKind

_REPORTED = -1
UNSTATED_LOCATION = ""
"""Location of offers for which neither the column nor the row names a location."""
_LIMIT_BY_FIELD = {
    "variants": f"A product has at most {MAX_IMPORTED_VARIANTS:,} variants",
    "axes": f"A variant has at most {MAX_AXES} axes",
    "offers": f"A variant has at most {MAX_OFFERS} offers",
    "category path": f"A category path has at most {MAX_PATH_LEVELS} levels, with at most {MAX_ENTRY_CHARS:,} characters each",
}
_LIST_LIMIT = (
    f"A list has at most {MAX_LIST_ENTRIES} entries, with at most {MAX_ENTRY_CHARS:,} characters each, and in total at most "
    f"{PRODUCT_LIST_BYTES // KIB} KiB in a product or {VARIANT_LIST_BYTES // KIB} KiB in a variant"
)


class Truncation:
    """Numbers of entries of one product that were omitted because they exceed the limits in domain/kernel/bounds.py.

    For each field, the number of omitted entries and the line and column of the first are stored. Entries of all variants are
    counted together.
    """

    __slots__ = ("_fields", "_keys")

    def __init__(self) -> None:
        self._fields: dict[str, tuple[int, int | None, str | None]] = {}
        self._keys: set[tuple[str, str]] = set()

    def add_omitted(
        self, field_path: str, count: int, line: int | None = None, column: str | None = None, key: str | None = None
    ) -> None:
        """Add omitted entries to the count of a field. The line and column of the first call for a field are kept.

        Args:
            field_path: The path of the field.
            count: The number of omitted entries.
            line: The line of the entries.
            column: The header of the column with the entries.
            key: If set, only the first call with the same field and key counts, such as for several rows of one variant.
        """
        if key is None or (field_path, key) not in self._keys:
            self._keys.add((field_path, key or ""))
            before, at, header = self._fields.get(field_path, (0, line, column))
            self._fields[field_path] = (before + count, at, header)

    def add_trimmed(self, trimmed_entries: Iterable[TrimmedEntries], prefix: str, line: int | None) -> None:
        """Add the omitted entries of one record.

        Args:
            trimmed_entries: The omitted entries, by field.
            prefix: The text to put before the name of each field, such as `variants.`.
            line: The line of the record.
        """
        for entry in trimmed_entries:
            self.add_omitted(f"{prefix}{entry.field}", entry.count, line)

    def build_problems(self, sheet: str | None = None) -> list[Problem]:
        """Return one problem for each field with omitted entries."""
        found = []
        for name, (count, line, column) in self._fields.items():
            noun = name.rpartition(".")[2].replace("_", " ")
            entries = "entry in {} exceeds a limit and was" if count == 1 else "entries in {} exceed a limit and were"
            limit = _LIMIT_BY_FIELD.get(noun, _LIST_LIMIT)
            detail = f"{count:,} {entries.format(noun)} left out. {limit}."
            found.append(Problem(name, ProblemKind.TOO_LONG, detail, line, column, sheet))
        return found


@dataclass(slots=True)
class ProductDraft:
    """Data of one product while the rows of the product in one table are read.

    If rows differ, the first value is kept; in lists, the entries of all rows are combined without repetitions.

    Attributes:
        key: The key of the product.
        rows: The rows of the product.
        is_family: Whether the key was derived from similar titles and codes of several rows instead of a column.
        is_grouped: Whether the product can have several variants.
        line_by_field: The line from which the value of each field was read.
        family_words: The sizes and the colour of each variant (see FamilyMember), by variant key; empty without
            `is_family`.
        tags: The tags, as the keys of a dictionary to keep their order.
        features: The features, as keys like `tags`.
        extra_measures: Measures without a field, such as "Seat W 20 in", which are added to the features; keys like
            `tags`.
        category_levels: The category names in numbered columns (`Category 1`), by number.
        path_column_category: The category path in a single column.
        google_category: The category path in Google's taxonomy.
        media: The images by URL.
        main_image_url: The URL of the main image.
        kind: The kind of furniture (`labels.determine_size_kind`); None until it is determined.
        option_names: The names of options, such as "Colour", by number.
        discontinued_values: The distinct values of the status in the rows: True for discontinued.
        line_by_variant: The line of the first row of each variant, by variant key.
    """

    key: str = ""
    rows: Sequence[Row] = ()
    sheet: str | None = None
    is_family: bool = False
    is_grouped: bool = True
    data: ProductData = field(default_factory=ProductData)
    line_by_field: dict[str, int] = field(default_factory=dict)
    family_words: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    tags: dict[str, None] = field(default_factory=dict)
    features: dict[str, None] = field(default_factory=dict)
    extra_measures: dict[str, None] = field(default_factory=dict)
    compliance: dict[str, Any] = field(default_factory=dict)
    category_levels: dict[int, tuple[str, ...]] = field(default_factory=dict)
    path_column_category: tuple[str, ...] = ()
    google_category: tuple[str, ...] = ()
    media: dict[str, dict[str, Any]] = field(default_factory=dict)
    main_image_url: str | None = None
    kind: str | None = None
    option_names: dict[int, str] = field(default_factory=dict)
    discontinued_values: set[bool] = field(default_factory=set)
    variants: dict[str, VariantStatement] = field(default_factory=dict)
    line_by_variant: dict[str, int] = field(default_factory=dict)
    truncation: Truncation = field(default_factory=Truncation)

    def add_problem(
        self, field_path: str, kind: ProblemKind, detail: str, line: int, column: str | None = None
    ) -> None:
        """Add a problem in a row of the product."""
        self.problems.append(Problem(field_path, kind, detail, line, column, self.sheet))

    def report_difference(self, field_name: str, line: int, column: str | None) -> None:
        """Report that rows of the product have different values in a field; each field is reported only once.

        A different value in the row from which the first value was read is not reported, because a second column of a field
        is only a fallback.
        """
        if self.line_by_field.get(field_name, 0) not in (line, _REPORTED):
            self.line_by_field[field_name] = _REPORTED
            detail = f"Rows of one item differ in {field_name.replace('_', ' ')}; the first value is kept."
            self.add_problem(field_name, ProblemKind.CONFLICT, detail, line, column)

    def find_category_path(self) -> tuple[str, ...]:
        """Return the main category path: from the vendor's columns, or else in Google's taxonomy."""
        return self.find_category_paths()[0]

    def find_category_paths(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the main category path, and other category paths of the product, such as the one in Google's taxonomy."""
        column_paths = [self.category_levels[number] for number in sorted(self.category_levels)]
        has_other_path = bool(self.path_column_category or self.google_category)
        if not column_paths and not (self.path_column_category and self.google_category):
            return self.path_column_category or self.google_category, []
        if not has_other_path and (len(column_paths) == 1 or all(len(levels) == 1 for levels in column_paths)):
            return tuple(dict.fromkeys(chain.from_iterable(column_paths))), []
        further_paths: list[tuple[str, ...]] = []
        if len(column_paths) > 1 and any(len(levels) > 1 for levels in column_paths):
            # Columns with whole paths are alternative categories, not levels of one path.
            path, further_paths = column_paths[0], [*column_paths[1:], self.path_column_category]
        elif column_paths:
            levels = dict.fromkeys(chain.from_iterable(column_paths))
            if self.path_column_category and self.path_column_category[-1] not in levels:
                levels.update(dict.fromkeys(self.path_column_category))
            path = tuple(levels)
        else:
            path = self.path_column_category
        main_path, *candidates = [path or self.google_category, *further_paths, self.google_category if path else ()]
        other_paths: list[tuple[str, ...]] = []
        for other in candidates:
            if other[: len(main_path)] == main_path:
                main_path = other
            elif other and other != main_path[: len(other)] and other[-1] not in main_path:
                other_paths.append(other)
        return main_path, other_paths


@dataclass(slots=True)
class RowDraft:
    """Data of one row while its cells are read: values of the variant and its offers.

    Attributes:
        line: The line of the row.
        dimensions: The lengths from columns for one dimension each, such as a column for the width.
        presumed_unit_dimensions: The dimensions without a unit in the feed, whose unit was presumed from the currency of the source.
        offers: The offers by location.
        option_values: The values of options, such as "Oak", by number.
        cartons: The cartons by number.
        parsed_size: The parsed text of a column that contains all dimensions together, or None.
        stock_in_value: The stock according to a word at the end of another value (`Blue [NOT AVAILABLE]`), or None.
        is_untracked: Whether the row states that its stock is not tracked.
        blank_fields: The paths of the fields for which the row has only blank cells.
        covers_locations: Whether the row has cells for the stock at every location of the table.
        states_status: Whether the row has a cell for the status or the availability.
    """

    product: ProductDraft
    line: int
    variant: VariantData = field(default_factory=VariantData)
    dimensions: Dimensions = field(default_factory=Dimensions)
    presumed_unit_dimensions: tuple[str, ...] = ()
    offers: dict[str, OfferData] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    option_values: dict[int, str] = field(default_factory=dict)
    materials: dict[str, None] = field(default_factory=dict)
    components: list[Any] = field(default_factory=list)
    cartons: dict[int, Carton] = field(default_factory=dict)
    carton_count: int | None = None
    rug: Rug = field(default_factory=Rug)
    parsed_size: ParsedSize | None = None
    stock_in_value: Any = None
    is_untracked: bool = False
    blank_fields: frozenset[str] = frozenset()
    covers_locations: bool = True
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
    unit_by_header: dict[str, str] = field(default_factory=dict)

    def report_faults(self, field_path: str, column: str | None, faults: tuple[ParseFault, ...]) -> None:
        """Add the faults of a parsed value as problems of the row."""
        for fault in faults:
            self.product.add_problem(field_path, fault.problem, fault.detail, self.line, column)

    def report_conflict(self, field_path: str, detail: str) -> None:
        """Report that a value of the row contradicts another value, as the detail describes."""
        self.product.add_problem(field_path, ProblemKind.CONFLICT, detail, self.line)

    def determine_kind(self) -> str:
        """Return the kind of furniture (`labels.determine_size_kind`), determined from category and title at the first call and then kept."""
        product = self.product
        if product.kind is None:
            product.kind = determine_size_kind(" > ".join(product.find_category_path()), product.data.get("title", ""))
        return product.kind
