"""Layout of the files of an export of products: format, columns, rows, units and locale (docs/exports.md)."""

from collections.abc import Iterator
from dataclasses import dataclass

from domain.catalogue.model import ProductSort
from domain.kernel.enums import StoredEnum


class ExportFormat(StoredEnum):
    """Formats of a file of products."""

    JSONL = "jsonl"
    CSV = "csv"
    XLSX = "xlsx"
    SHOPIFY_CSV = "shopify_csv"
    GOOGLE_MERCHANT_XML = "google_merchant_xml"


class RowLevel(StoredEnum):
    """Objects that a table has one row for."""

    PRODUCT = "product"
    VARIANT = "variant"
    OFFER = "offer"


class UnitSystem(StoredEnum):
    """Units of sizes and weights: centimetres and kilograms, or inches and pounds."""

    METRIC = "metric"
    IMPERIAL = "imperial"


class ExportLocale(StoredEnum):
    """Languages of headings, and formats of numbers and dates for people."""

    ENGLISH = "en"
    GERMAN = "de"


TABLE_FORMATS = frozenset({ExportFormat.CSV, ExportFormat.XLSX})
"""Formats with a choice of columns."""
TEMPLATE_FORMATS = frozenset({ExportFormat.SHOPIFY_CSV, ExportFormat.GOOGLE_MERCHANT_XML})
"""Formats of other systems, which omit items that lack a value they require."""
FILE_EXTENSIONS = {
    ExportFormat.JSONL: "jsonl.gz",
    ExportFormat.CSV: "csv",
    ExportFormat.XLSX: "xlsx",
    ExportFormat.SHOPIFY_CSV: "csv",
    ExportFormat.GOOGLE_MERCHANT_XML: "xml",
}


@dataclass(frozen=True, slots=True)
class ExportLayout:
    """Layout of a file of products.

    Attributes:
        columns: Names of the columns in their order; empty for the default columns.
        locale: Language and number format; None for names of columns and numbers as programs read them.
        sort: Order of the products.
        link_template: Address of an item's page in the shop, with placeholders (`LINK_PLACEHOLDERS`).
    """

    format: ExportFormat = ExportFormat.JSONL
    columns: tuple[str, ...] = ()
    locale: ExportLocale | None = None
    row_by: RowLevel = RowLevel.VARIANT
    units: UnitSystem = UnitSystem.METRIC
    sort: ProductSort = ProductSort.NEWEST
    link_template: str | None = None

    @property
    def is_table(self) -> bool:
        """True if the file has columns that can be chosen."""
        return self.format in TABLE_FORMATS

    @property
    def is_template(self) -> bool:
        """True if the file has the format of another system."""
        return self.format in TEMPLATE_FORMATS


@dataclass(frozen=True, slots=True)
class OmittedItem:
    """Item that a file lacks, because the target's format requires a value that the item does not have."""

    product: str
    variant: str | None
    sku: str | None
    title: str | None
    reason: str

    def __iter__(self) -> Iterator[str]:
        """Yield the values in the order of OMITTED_ITEM_COLUMNS."""
        return iter((self.product, self.variant or "", self.sku or "", self.title or "", self.reason))


OMITTED_ITEM_COLUMNS = ("product_id", "variant_id", "sku", "title", "problem")
