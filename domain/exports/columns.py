"""Columns of tables of products: names, headings and values (docs/exports.md#columns).

A column reads its value from a TableRow, which represents an offer, a variant or a product with all its variants and offers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import Any, Final

from domain.catalogue.categories import category_by_id
from domain.catalogue.data import list_current_offers
from domain.catalogue.model import Availability
from domain.exports.layout import ExportLayout, ExportLocale, RowLevel, UnitSystem
from domain.kernel.json_values import format_time
from domain.kernel.money import EXPONENTS
from domain.kernel.units import INCHES_BY_UNIT, POUNDS_BY_UNIT, UNIT_SYSTEMS, convert_unit

Json = Mapping[str, Any]
Cell = str | int | Decimal | bool | datetime | None
"""Value of a cell; texts of several values are joined."""
SEPARATOR = ", "
"""Text between the values of a cell with several."""
_PLACES = {"cm": Decimal("0.01"), "in": Decimal("0.01"), "lb": Decimal("0.01"), "kg": Decimal("0.001")}
_OTHER_MEDIA = ("video", "document")


class ColumnKind(StrEnum):
    """Kinds of values, which determine format and width of a column."""

    TEXT = "text"
    LONG_TEXT = "long_text"
    INTEGER = "integer"
    MONEY = "money"
    LENGTH = "length"
    WEIGHT = "weight"
    BOOLEAN = "boolean"
    TIME = "time"
    CODE = "code"
    """A value of an enumeration, which has a label in each language (LABELS)."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """Row of a table: a product, with those of its variants and offers that the row represents.

    Attributes:
        product: The product as the API returns it.
        variants: The variants that the row represents.
        offers: The offers that the row represents; offers that were withdrawn only as the only one.
        source_names: Names of the organisation's sources by ID.
        units: Units of sizes and weights.
    """

    product: Json
    variants: Sequence[Json]
    offers: Sequence[Json]
    source_names: Mapping[str, str] = field(default_factory=dict)
    units: UnitSystem = UnitSystem.METRIC

    @property
    def currency(self) -> str | None:
        """The most frequent currency of the offers; amounts in other currencies are not comparable and do not count."""
        currencies = Counter(currency for offer in self.offers if (currency := offer.get("currency")))
        return currencies.most_common(1)[0][0] if currencies else None

    def find_lowest(self, name: str, currency: str | None = None) -> Decimal | None:
        """Return the lowest amount of the offers in a currency, in major units; None if no offer has one.

        Args:
            name: The field of the offers, such as `price`.
            currency: The currency; None for the most frequent one.
        """
        currency = currency or self.currency
        amounts = [offer[name] for offer in self.offers if offer.get("currency") == currency and name in offer]
        return convert_amount(min(amounts), currency) if amounts and currency else None


def convert_amount(amount: int, currency: str) -> Decimal:
    """Return an amount in minor units as a decimal number in major units, with all decimal places of the currency."""
    return Decimal(amount).scaleb(-EXPONENTS.get(currency, 2))


def split_rows(
    product: Json, level: RowLevel, source_names: Mapping[str, str], units: UnitSystem
) -> Iterator[TableRow]:
    """Yield the rows of a product. A product without variants, and a variant without offers, has one row."""
    variants = product["variants"]
    if level == RowLevel.PRODUCT or not variants:
        offers = [offer for variant in variants for offer in variant["offers"]]
        yield TableRow(product, variants, list_current_offers(offers), source_names, units)
        return
    for variant in variants:
        if level == RowLevel.OFFER and variant["offers"]:
            for offer in variant["offers"]:
                yield TableRow(product, (variant,), (offer,), source_names, units)
        else:
            yield TableRow(product, (variant,), list_current_offers(variant["offers"]), source_names, units)


def convert_length(length: Json, unit: str) -> Decimal:
    """Return a length in `cm` or `in`, from the value that the vendor stated."""
    return _convert(length, unit, "hundredths_in", "in")


def convert_weight(weight: Json, unit: str) -> Decimal:
    """Return a weight in `kg` or `lb`, from the value that the vendor stated."""
    return _convert(weight, unit, "hundredths_lb", "lb")


def _convert(measure: Json, unit: str, hundredths: str, unit_of_hundredths: str) -> Decimal:
    given = measure.get("given") or {}
    factors = INCHES_BY_UNIT if unit in INCHES_BY_UNIT else POUNDS_BY_UNIT
    if given.get("unit") in factors and given.get("value") is not None:
        value = convert_unit(Decimal(str(given["value"])), given["unit"], unit)
    else:
        value = convert_unit(Decimal(measure[hundredths]).scaleb(-2), unit_of_hundredths, unit)
    rounded = value.quantize(_PLACES[unit], ROUND_HALF_UP).normalize()
    return rounded if rounded.as_tuple().exponent <= 0 else rounded.quantize(Decimal(1))  # type: ignore[operator]


def list_images(row: TableRow) -> list[str]:
    """Return the addresses of the images of the variants and the product, main images first, without duplicates."""
    media = [
        medium
        for data in (*(variant["data"] for variant in row.variants), row.product["data"])
        for medium in data.get("media", ())
        if medium.get("role") not in _OTHER_MEDIA
    ]
    return list(dict.fromkeys(medium["url"] for medium in sorted(media, key=lambda one: one.get("role") != "hero")))


Reader = Callable[[TableRow], Cell]


def _join(values: Iterable[Any]) -> str | None:
    """Return the distinct values as one text, or None if there are none."""
    return SEPARATOR.join(dict.fromkeys(str(value) for value in values if value not in (None, ""))) or None


def _find_common(values: Iterable[Cell]) -> Cell:
    """Return the value if all objects of the row that have one agree; otherwise None, because none represents the row."""
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    return distinct[0] if len(distinct) == 1 else None


def _read_product(name: str) -> Reader:
    return lambda row: row.product.get(name)


def _read_product_data(name: str) -> Reader:
    def read(row: TableRow) -> Cell:
        value = row.product["data"].get(name)
        return _join(value) if isinstance(value, list) else value

    return read


def _read_compliance(name: str) -> Reader:
    return lambda row: row.product["data"].get("compliance", {}).get(name)


def _join_variants(name: str) -> Reader:
    return lambda row: _join(variant.get(name) for variant in row.variants)


def _join_variant_data(name: str) -> Reader:
    def read(row: TableRow) -> Cell:
        values = [variant["data"].get(name) for variant in row.variants]
        return _join(part for value in values for part in (value if isinstance(value, list) else [value]))

    return read


def _read_common(name: str) -> Reader:
    return lambda row: _find_common(variant["data"].get(name) for variant in row.variants)


def _read_rug(name: str) -> Reader:
    return lambda row: _join(variant["data"].get("rug", {}).get(name) for variant in row.variants)


def _read_dimension(name: str) -> Reader:
    def read(row: TableRow) -> Cell:
        unit = UNIT_SYSTEMS[row.units][0]
        lengths = (variant["data"].get("dimensions", {}).get(name) for variant in row.variants)
        return _find_common(convert_length(length, unit) for length in lengths if length)

    return read


def _read_weight(row: TableRow) -> Cell:
    unit = UNIT_SYSTEMS[row.units][1]
    weights = (variant["data"].get("weight") for variant in row.variants)
    return _find_common(convert_weight(weight, unit) for weight in weights if weight)


def _count_cartons(row: TableRow) -> Cell:
    counts = [
        sum(carton.get("count", 1) for carton in cartons)
        for variant in row.variants
        if (cartons := variant["data"].get("cartons"))
    ]
    return _find_common(counts)


def _read_category(row: TableRow) -> Cell:
    category = category_by_id().get(row.product["data"].get("category", ""))
    return " > ".join(category.path) if category else None


def _read_category_path(row: TableRow) -> Cell:
    return " > ".join(row.product["data"].get("category_path", ())) or None


def _format_options(variant: Json) -> str:
    return "; ".join(f"{name}: {value}" for name, value in variant["data"].get("axes", {}).items())


def _join_offers(name: str) -> Reader:
    return lambda row: _join(offer.get(name) for offer in row.offers)


def _read_amount(name: str) -> Reader:
    return lambda row: row.find_lowest(name)


def _read_currency(row: TableRow) -> Cell:
    return row.currency.upper() if row.currency else None


def _read_quantity(row: TableRow) -> Cell:
    quantities = [offer["quantity"] for offer in row.offers if "quantity" in offer]
    return sum(quantities) if quantities else None


_AVAILABILITY_RANKS: Final = {availability.value: rank for rank, availability in enumerate(Availability)}


def find_best_availability(offers: Iterable[Json]) -> str | None:
    """Return the best availability of offers; None without offers."""
    return max(
        (offer["availability"] for offer in offers), key=lambda one: _AVAILABILITY_RANKS.get(one, 0), default=None
    )


def _read_lead_time(row: TableRow) -> Cell:
    return min((offer["lead_time_days"] for offer in row.offers if "lead_time_days" in offer), default=None)


def _read_sources(row: TableRow) -> Cell:
    return _join(row.source_names.get(offer["source"], offer["source"]) for offer in row.offers)


def _read_time(name: str) -> Reader:
    def read(row: TableRow) -> Cell:
        text = row.product.get(name)
        return datetime.fromisoformat(text) if text else None

    return read


def _read_last_offer_time(name: str) -> Reader:
    def read(row: TableRow) -> Cell:
        last = max((offer[name] for offer in row.offers if name in offer), default=None)
        return datetime.fromisoformat(last) if last else None

    return read


@dataclass(frozen=True, slots=True)
class TableColumn:
    """TableColumn of a table of products.

    Attributes:
        name: Name in requests, and heading for programs.
        english: English heading.
        german: German heading.
        read: Function that returns the value for a row.
    """

    name: str
    english: str
    german: str
    kind: ColumnKind
    read: Reader

    def get_heading(self, locale: ExportLocale | None, units: UnitSystem) -> str:
        """Return the heading, with the unit of sizes and weights; the name of the column if `locale` is None."""
        length, weight = UNIT_SYSTEMS[units]
        unit = {ColumnKind.LENGTH: length, ColumnKind.WEIGHT: weight}.get(self.kind)
        if locale is None:
            return f"{self.name}_{unit}" if unit else self.name
        label = self.german if locale == ExportLocale.GERMAN else self.english
        return f"{label} ({unit})" if unit else label


_T, _L, _M, _C = ColumnKind.TEXT, ColumnKind.LONG_TEXT, ColumnKind.MONEY, ColumnKind.CODE
_LIST: Final = (
    TableColumn("title", "Title", "Titel", _T, _read_product_data("title")),
    TableColumn("brand", "Brand", "Marke", _T, _read_product_data("brand")),
    TableColumn("collection", "Collection", "Kollektion", _T, _read_product_data("collection")),
    TableColumn("category", "Category", "Kategorie", _T, _read_category),
    TableColumn("category_path", "Vendor category", "Kategorie des Herstellers", _T, _read_category_path),
    TableColumn("description", "Description", "Beschreibung", _L, _read_product_data("description")),
    TableColumn("features", "Features", "Eigenschaften", _L, _read_product_data("features")),
    TableColumn("tags", "Tags", "Schlagwörter", _T, _read_product_data("tags")),
    TableColumn("status", "Status", "Status", _C, _read_product("status")),
    TableColumn("visibility", "Visibility", "Sichtbarkeit", _C, _read_product("visibility")),
    TableColumn("country_of_origin", "Country of origin", "Ursprungsland", _T, _read_compliance("country_of_origin")),
    TableColumn("sku", "SKU", "SKU", _T, _join_variant_data("sku")),
    TableColumn("gtin", "GTIN", "GTIN", _T, _join_variant_data("gtin")),
    TableColumn("mpn", "MPN", "MPN", _T, _join_variant_data("mpn")),
    TableColumn("variant_title", "Variant", "Variante", _T, _join_variant_data("title")),
    TableColumn("options", "Options", "Optionen", _T, lambda row: _join(map(_format_options, row.variants))),
    TableColumn("colour", "Colour", "Farbe", _T, _join_variant_data("colour")),
    TableColumn("finish", "Finish", "Oberfläche", _T, _join_variant_data("finish")),
    TableColumn("materials", "Materials", "Materialien", _T, _join_variant_data("materials")),
    TableColumn("width", "Width", "Breite", ColumnKind.LENGTH, _read_dimension("width")),
    TableColumn("depth", "Depth", "Tiefe", ColumnKind.LENGTH, _read_dimension("depth")),
    TableColumn("height", "Height", "Höhe", ColumnKind.LENGTH, _read_dimension("height")),
    TableColumn("diameter", "Diameter", "Durchmesser", ColumnKind.LENGTH, _read_dimension("diameter")),
    TableColumn("seat_height", "Seat height", "Sitzhöhe", ColumnKind.LENGTH, _read_dimension("seat_height")),
    TableColumn("weight", "Weight", "Gewicht", ColumnKind.WEIGHT, _read_weight),
    TableColumn("cartons", "Cartons", "Kartons", ColumnKind.INTEGER, _count_cartons),
    TableColumn("rug_size", "Rug size", "Teppichgröße", _T, _read_rug("size_text")),
    TableColumn("rug_shape", "Rug shape", "Teppichform", _T, _read_rug("shape")),
    TableColumn("assembly_required", "Assembly required", "Montage nötig", ColumnKind.BOOLEAN, _read_common("assembly_required")),
    TableColumn("white_glove", "White glove delivery", "Lieferung mit Aufbau", ColumnKind.BOOLEAN, _read_common("white_glove")),
    TableColumn("freight_class", "Freight class", "Frachtklasse", _T, _join_variant_data("freight_class")),
    TableColumn("discontinued", "Discontinued", "Eingestellt", ColumnKind.BOOLEAN, _read_common("discontinued")),
    TableColumn("replacement_sku", "Replacement SKU", "Ersatz-SKU", _T, _join_variant_data("replacement_sku")),
    TableColumn("price", "Price", "Preis", _M, _read_amount("price")),
    TableColumn("compare_at", "Compare-at price", "Vergleichspreis", _M, _read_amount("compare_at")),
    TableColumn("msrp", "MSRP", "UVP", _M, _read_amount("msrp")),
    TableColumn("map", "Minimum advertised price", "Mindestpreis in Werbung", _M, _read_amount("map")),
    TableColumn("cost", "Cost", "Einkaufspreis", _M, _read_amount("cost")),
    TableColumn("currency", "Currency", "Währung", _T, _read_currency),
    TableColumn("availability", "Availability", "Verfügbarkeit", _C, lambda row: find_best_availability(row.offers)),
    TableColumn("quantity", "Quantity", "Menge", ColumnKind.INTEGER, _read_quantity),
    TableColumn("lead_time_days", "Lead time (days)", "Lieferzeit (Tage)", ColumnKind.INTEGER, _read_lead_time),
    TableColumn("source", "Source", "Quelle", _T, _read_sources),
    TableColumn("location", "Location", "Lagerort", _T, _join_offers("location")),
    TableColumn("observed_at", "Last imported", "Zuletzt importiert", ColumnKind.TIME, _read_last_offer_time("observed_at")),
    TableColumn("withdrawn_at", "Withdrawn", "Entfernt", ColumnKind.TIME, _read_last_offer_time("withdrawn_at")),
    TableColumn("image_url", "Image", "Bild", _T, lambda row: next(iter(list_images(row)), None)),
    TableColumn("image_urls", "All images", "Alle Bilder", _L, lambda row: _join(list_images(row))),
    TableColumn("product_id", "Product ID", "Produkt-ID", _T, _read_product("id")),
    TableColumn("product_external_id", "Vendor product ID", "Produkt-ID des Herstellers", _T, _read_product("external_id")),
    TableColumn("variant_id", "Variant ID", "Varianten-ID", _T, _join_variants("id")),
    TableColumn("variant_external_id", "Vendor variant ID", "Varianten-ID des Herstellers", _T, _join_variants("external_id")),
    TableColumn("offer_id", "Offer ID", "Angebots-ID", _T, _join_offers("id")),
    TableColumn("catalogue_id", "Catalogue ID", "Katalog-ID", _T, _read_product("catalogue")),
    TableColumn("created_at", "Added", "Hinzugefügt", ColumnKind.TIME, _read_time("created_at")),
    TableColumn("updated_at", "Changed", "Geändert", ColumnKind.TIME, _read_time("updated_at")),
)  # fmt: skip
COLUMNS: Final[Mapping[str, TableColumn]] = {column.name: column for column in _LIST}
"""All columns by name, in the order in which forms offer them."""
DEFAULT_COLUMNS: Final = (
    "title", "brand", "category", "variant_title", "sku", "gtin", "mpn", "options", "colour", "finish", "materials",
    "width", "depth", "height", "weight", "price", "compare_at", "msrp", "cost", "currency", "availability", "quantity",
    "lead_time_days", "source", "image_url", "status", "product_id", "variant_id",
)  # fmt: skip
"""Columns of a table for which none are chosen."""
LABELS: Final[Mapping[str, tuple[str, str]]] = {
    "in_stock": ("In stock", "Auf Lager"),
    "low_stock": ("Low stock", "Geringer Bestand"),
    "out_of_stock": ("Out of stock", "Nicht auf Lager"),
    "backorder": ("Backorder", "Nachbestellbar"),
    "preorder": ("Preorder", "Vorbestellbar"),
    "unknown": ("Unknown", "Unbekannt"),
    "active": ("Active", "Aktiv"),
    "probably_discontinued": ("Probably discontinued", "Vermutlich eingestellt"),
    "discontinued": ("Discontinued", "Eingestellt"),
    "listed": ("Listed", "Gelistet"),
    "hidden": ("Hidden", "Ausgeblendet"),
    "unlisted": ("Unlisted", "Nicht gelistet"),
}
"""Labels of the values of CODE columns in English and German."""
_YES_NO = {ExportLocale.ENGLISH: ("No", "Yes"), ExportLocale.GERMAN: ("Nein", "Ja")}


class TableBuilder:
    """Builder of the headings and rows of a table.

    Args:
        layout: The layout of the table.
        source_names: Names of the organisation's sources by ID.
    """

    def __init__(self, layout: ExportLayout, source_names: Mapping[str, str]) -> None:
        self._layout, self._source_names = layout, source_names
        self.columns: Sequence[TableColumn] = [COLUMNS[name] for name in layout.columns or DEFAULT_COLUMNS]

    @property
    def headings(self) -> list[str]:
        """The headings of the columns."""
        return [column.get_heading(self._layout.locale, self._layout.units) for column in self.columns]

    def build_rows(self, product: Json) -> Iterator[list[Cell]]:
        """Yield the rows of a product; codes and truth values are labels if the layout has a locale."""
        for row in split_rows(product, self._layout.row_by, self._source_names, self._layout.units):
            yield [self._translate(column.kind, column.read(row)) for column in self.columns]

    def _translate(self, kind: ColumnKind, value: Cell) -> Cell:
        locale = self._layout.locale
        if locale is None or value is None:
            return value
        if kind == ColumnKind.CODE and value in LABELS:
            return LABELS[str(value)][locale == ExportLocale.GERMAN]
        return _YES_NO[locale][value] if isinstance(value, bool) else value


def format_cell(value: Cell, locale: ExportLocale | None) -> str:
    """Return the value of a cell as text, with numbers and times (in UTC) in the format of the locale or of programs."""
    if isinstance(value, datetime):
        moment = value.astimezone(UTC)
        if locale is None:
            return format_time(moment)
        return moment.strftime("%d.%m.%Y %H:%M" if locale == ExportLocale.GERMAN else "%Y-%m-%d %H:%M")
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value or ""
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return text.replace(".", ",") if locale == ExportLocale.GERMAN else text
