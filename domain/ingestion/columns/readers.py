"""Readers of cells: one function for each kind of field adds a cell to the draft of its row."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from domain.catalogue.categories import by_google
from domain.catalogue.data import Component
from domain.ingestion.data import load
from domain.ingestion.drafts import NO_PLACE, RowDraft
from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.pieces import is_rule, named_piece, of_several, sized_piece, title_of
from domain.ingestion.values.cartons import parse_packages
from domain.ingestion.values.dates import parse_date, parse_lead_time
from domain.ingestion.values.dimensions import Spread, parse_dimensions
from domain.ingestion.values.labels import RUG
from domain.ingestion.values.media import addresses, list_text
from domain.ingestion.values.money import parse_money
from domain.ingestion.values.quantities import METRIC, parse_length, parse_weight, unit_named, weight_unit_named
from domain.ingestion.values.rugs import (
    RugSize,
    is_no_rug,
    parse_construction,
    parse_indoor_outdoor,
    parse_rug_size,
    parse_shape,
)
from domain.ingestion.values.stock import parse_availability, parse_stock, stock_in_value
from domain.ingestion.values.text import (
    NOTHING,
    Parsed,
    as_text,
    body_of_text,
    clean,
    code,
    line_of_text,
    overlong,
    refused,
    stated,
    unreadable,
)
from domain.ingestion.values.words import (
    category_levels,
    parse_assembly,
    parse_boolean,
    parse_brick,
    parse_components,
    parse_count,
    parse_country,
    parse_features,
    parse_freight_class,
    parse_gtin,
    parse_materials,
    parse_number,
    parse_status,
    parse_sturdy,
    parse_tags,
    parse_tsca,
    parse_warning,
)
from domain.ingestion.vocabulary.fields import MONEY
from domain.ingestion.vocabulary.senses import senses
from domain.kernel.money import EXPONENTS
from domain.kernel.problems import ProblemKind

CellReader: TypeAlias = Callable[[RowDraft, str, Any], None]
"""Function that reads one cell into a row's draft, from the draft, the cell's text (never blank) and the cell itself."""
MAX_CODE = 200
_DEFAULT_TITLE = "Default Title"
_STARRED = re.compile(r"(?<=\S)[*×](\d{1,3})(?=\s*+(?:[,;|\n]|$))")
"""Quantity directly after a code, without a blank."""
_MOST_EXTRAS = 12
_LONGEST_EXTRA = 120
_BARE = re.compile(r"\s*+[\d.,]++\s*+")
_FLAGS = {"1": "in_stock", "0": "out_of_stock", "true": "in_stock", "false": "out_of_stock"}
_SIDES = "width depth height length diameter seat_height seat_depth arm_height clearance".split()


class ReadColumn:
    """Column prepared for reading its cells.

    Attributes:
        field: The path of the field (`cartons.1.width`).
        head, place, name: Its first part, its number (-1 without one), and the rest.
        unit, order, location, currency, decimal: Settings of the column, or else of its source.
        market_unit: Whether the unit is only presumed from the source's market.
        flag: Whether a 1 or 0 is a yes or no, not a quantity.
        stands_in: Whether the column is a fallback for another column of its field.
    """

    def __init__(self, column: Column, settings: FeedSettings) -> None:
        self.field, self.header = column.field, column.column
        self.head, *parts = self.field.split(".")
        self.place = next((int(part) for part in parts if part.isdecimal()), -1)
        self.name = (self.field.partition(".")[2] if self.place < 0 else parts[-1]) or self.field
        self.media_base_url = settings.media_base_url
        self.unit = column.setting("unit")
        self.order = column.setting("order") or ""
        self.location = column.setting("location") or NO_PLACE
        self.currency = (column.setting("currency") or "").lower() or settings.currency
        self.decimal = column.setting("decimal") or settings.decimal
        self.market_unit = column.setting("unit_by") == "market"
        self.flag, self.stands_in = "flag" in column.settings, "fallback" in column.settings

    def mark(self, cell: Any) -> str:
        """Return the decimal mark for a cell: that of the column or source for texts, a dot for numbers."""
        return self.decimal if cell.__class__ is str else "dot"

    def take(self, row: RowDraft, parsed: Parsed[Any], field: str = "") -> Any:
        """Return the parsed value, or None, and report its faults."""
        if parsed.faults:
            row.report(field or self.field, self.header, parsed.faults)
        return parsed.value

    def line(self, row: RowDraft, text: str, field: str = "") -> Any:
        """Return the cell as a one-line text, or None."""
        return self.take(row, line_of_text(text), field)

    def length(self, row: RowDraft, text: str, cell: Any) -> Any:
        """Return a length, read in the unit of the column or of the row, or None."""
        return self.take(row, parse_length(text, self.unit or row.dimension_unit, self.mark(cell)))

    def weight(self, row: RowDraft, text: str, cell: Any) -> Any:
        """Return a weight, read in the unit of the column or of the row, or None."""
        return self.take(row, parse_weight(text, self.unit or row.weight_unit, self.mark(cell)))

    def offer(self, row: RowDraft) -> Any:
        """Return the row's offer at the column's location, created if necessary."""
        return row.offers.setdefault(self.location, {})


def code_of(text: str) -> Parsed[str]:
    """Parse a vendor's code. Problem: too_long."""
    found = code(text)
    return overlong(found, MAX_CODE) if found and len(found) > MAX_CODE else Parsed(found)


Parser: TypeAlias = Callable[[str], Parsed[Any]]
_PRODUCT_TEXTS: Final[dict[str, Parser]] = {
    **dict.fromkeys(("title", "brand", "collection"), line_of_text),
    "description": body_of_text,
    "gpc_brick": parse_brick,
}
_COMPLIANCE: Final[dict[str, Parser]] = {
    "tsca_title_vi": parse_tsca,
    "sturdy_act": parse_sturdy,
    "stability_rating": parse_number,
    "ca_tb117_2013": parse_boolean,
    "prop65_warning": parse_warning,
    "prop65_chemicals": parse_tags,
    "country_of_origin": parse_country,
}
_VARIANT: Final[dict[str, Parser]] = {
    **dict.fromkeys(("sku", "mpn", "replacement_sku"), code_of),
    "gtin": parse_gtin,
    "finish": line_of_text,
    "assembly_required": parse_assembly,
    "white_glove": parse_boolean,
    "freight_class": parse_freight_class,
    "discontinued": parse_boolean,
}
_RUG: Final[dict[str, Parser]] = {
    "shape": parse_shape,
    "construction": parse_construction,
    "indoor_outdoor": parse_indoor_outdoor,
    "nominal": line_of_text,
}


# The product.


def _product_text(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    product, name, parse = row.product, column.field, _PRODUCT_TEXTS[column.field]
    known = product.data.get(name)
    if known is None:
        if (value := column.take(row, parse(text))) is not None:
            product.data[name] = value  # type: ignore[literal-required]
            product.given_by[name] = row.line
        return
    if column.stands_in or product.given_by.get(name) == row.line:
        return
    if (other := parse(text).value) not in (None, known):
        if name == "title" and product.grouped:
            row.variant["title"] = other
        else:
            product.differs(name, row.line, column.header)


def _category(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    product = row.product
    levels = tuple(clean(as_text(level)) for level in cell) if isinstance(cell, list) else category_levels(text)
    named = tuple(level for level in levels if not level.isdecimal())
    known = product.levels.get(column.place) if column.place >= 0 else product.path
    if not named:
        if levels:
            column.take(row, unreadable(text, "is a number, not the name of a category"), "category_path")
    elif known:
        if named != known:
            # A second path, from another row, becomes a tag.
            product.tags[" > ".join(named)] = None
    elif column.place >= 0:
        product.levels[column.place] = named
    else:
        product.path = named


def _google_category(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    # A bare number is Google's id of a category, not a path.
    number = text.strip()
    if number.isdecimal():
        if len(number) < 9 and (category := by_google(int(number))):
            row.product.data.setdefault("category", category)
    elif not row.product.google_category:
        row.product.google_category = category_levels(text)


def _texts(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    tags = column.field == "tags"
    values: Sequence[str]
    if isinstance(cell, list):
        values = [found for item in cell if (found := stated(as_text(item)))]
    else:
        values = column.take(row, parse_tags(text) if tags else parse_features(text)) or ()
    (row.product.tags if tags else row.product.features).update(dict.fromkeys(values))


def _compliance(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    known, name = row.product.compliance, column.name
    if name not in known and (value := column.take(row, _COMPLIANCE[name](text))) is not None:
        known[name] = list(value) if isinstance(value, tuple) else value


def _media(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    base = column.media_base_url
    found = addresses(list_text(cell) if isinstance(cell, list | dict) else text, base)
    if found.faults and not any(problem.field == "media" for problem in row.product.problems):
        # One problem of a product's pictures is enough.
        row.report("media", column.header, found.faults)
    if not (urls := found.value):
        return
    for item in cell if isinstance(cell, list) else ():
        # A JSON list may give texts for its addresses.
        if isinstance(item, dict) and isinstance(item.get("alt"), str) and (alt := stated(item["alt"])):
            address = list_text(item)
            described = (address,) if base is None else addresses(address, base).value or ()
            row.media_alts.update(dict.fromkeys(described, alt))
    if column.field == "variant_media":
        row.variant_media += urls
        return
    row.media_urls += urls
    if column.field == "media.hero" and row.product.hero is None:
        row.product.hero = urls[0]


_ROW_FACTS: Final[dict[str, tuple[Parser, str]]] = {
    "media_alt": (line_of_text, "media"),
    "media_position": (parse_count, "media"),
    "carton_count": (parse_count, "cartons"),
    "location": (line_of_text, "location"),
}
"""Facts stored in the row draft under the name of their field, each with its parser and the field of its problems."""


def _row_fact(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    parse, field = _ROW_FACTS[column.field]
    setattr(row, column.field, column.take(row, parse(text), field))


def _status(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if (is_discontinued := column.take(row, parse_status(text))) is not None:
        row.product.discontinued.add(is_discontinued)
    if is_discontinued:
        row.variant["discontinued"] = True


def _option_name(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if name := stated(text):
        row.product.option_names.setdefault(column.place, name)


# The variant.


def _variant_fact(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    name = column.field
    if name not in row.variant and (value := column.take(row, _VARIANT[name](text))) is not None:
        row.variant[name] = value  # type: ignore[literal-required]


def _variant_title(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if (value := column.line(row, text, "title")) not in (None, _DEFAULT_TITLE):
        row.variant["title"] = value


def _without_stock(row: RowDraft, value: str) -> str:
    """Return a value without the stock word at its end, and keep the word for the row's offers."""
    plain, word = stock_in_value(value)
    row.stock_word = row.stock_word or word
    return plain


def _colour(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if "colour" not in row.variant and (value := column.line(row, text)) is not None:
        row.variant["colour"] = _without_stock(row, value)


def _axis(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    pairs = []
    if isinstance(cell, dict):
        pairs = [(key, stated(str(value))) for key, value in cell.items()]
    elif column.field != "axes":
        pairs = [(column.field.partition(".")[2], column.line(row, text))]
    for key, value in pairs:
        if value:
            row.axes[key] = _without_stock(row, value)


def _option_value(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if (value := column.line(row, text, "axes")) is not None:
        row.option_values[column.place] = _without_stock(row, value)


def _materials(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    for value in column.take(row, parse_materials(text)) or ():
        (row.product.features if is_rule(value) else row.materials)[value] = None


def _weight(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if "weight" in row.variant:
        return
    if isinstance(cell, dict):
        text = f"{cell.get('value', '')} {cell.get('unit') or cell.get('units') or ''}".strip()
    if (value := column.weight(row, text, cell)) is not None:
        row.variant["weight"] = value


def components_of(cell: Any) -> Parsed[tuple[Component, ...]]:
    """Parse the parts that a cell lists by their codes (`AB-1, AB-2 (x2)`, `AB-2*2`, a JSON list)."""
    return parse_components(_STARRED.sub(r" x\1", as_text(cell)))


def _components(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    row.components += column.take(row, components_of(cell)) or ()


def _cartons(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    """Read a part of a numbered carton, or a list of cartons."""
    if column.place < 0:
        _packages(column, row, text, cell)
        return
    carton: Any = row.cartons.get(column.place, {})
    if column.name == "dimensions":
        unit, order = column.unit or row.dimension_unit, column.order or "lwh"
        spread = column.take(row, parse_dimensions(text, unit, "", order, column.mark(cell)))
        if spread is None:
            return
        carton |= {side: spread.dimensions[side] for side in ("width", "depth", "height") if side in spread.dimensions}
    elif column.name not in carton:
        if column.name == "count":
            value = column.take(row, parse_count(text))
        else:
            value = (column.weight if column.name == "weight" else column.length)(row, text, cell)
        if value is None:
            return
        carton[column.name] = value
    row.cartons[column.place] = carton


def _packages(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    units = (column.unit or row.dimension_unit, row.weight_unit)
    packages = column.take(row, parse_packages(text, *units, column.mark(cell)), "cartons") or ()
    start = len(row.cartons)
    row.cartons.update({start + place: package.carton for place, package in enumerate(packages) if package.carton})
    if len({package.sku for package in packages}) > 1:
        row.components += [
            {"name": package.name, "sku": package.sku, "quantity": package.carton.get("count", 1)}
            for package in packages
        ]


def _unit(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    unit = weight_unit_named(text) if column.field == "weight_unit" else unit_named(text)
    if unit is None and stated(text) is not None:
        column.take(row, refused(ProblemKind.UNKNOWN_UNIT, text, "is not a known unit"))
    elif column.field == "weight_unit":
        row.weight_unit = row.weight_unit or unit
    else:
        row.dimension_unit = row.dimension_unit or unit


# Sizes, and the facts of rugs.


def _dimensions(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    """Read one side, or a whole size."""
    if column.field != "dimensions":
        _side(column, row, text, cell)
    elif row.spread is not None:
        return
    elif isinstance(cell, dict):
        _sides_of_object(column, row, cell)
    elif row.kind() != RUG or not _is_of_a_rug(column, row, text):
        row.spread = _sized(column, row, text, column.mark(cell))
        # Other measures in a size (`Seat W 20 in`, `EXTENDED 65 in`) become features, in the vendor's words.
        for extra in row.spread.extras if row.spread else ():
            if len(row.product.extras) < _MOST_EXTRAS:
                row.product.extras.setdefault(" ".join(extra.split())[:_LONGEST_EXTRA])


def _side(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if column.name in row.dimensions:
        return
    if (value := column.length(row, text, cell)) is not None:
        row.dimensions[column.name] = value  # type: ignore[literal-required]
        if column.market_unit and row.dimension_unit is None and _BARE.fullmatch(text):
            row.presumed += (column.name,)


def _sides_of_object(column: ReadColumn, row: RowDraft, cell: Mapping[str, Any]) -> None:
    """Read a JSON object of sides (`{"width": 30, "unit": "in"}`, or `{"width": {"value": 30, "unit": "in"}}`)."""
    named = cell.get("unit") or cell.get("units")
    shared = (unit_named(str(named)) if named else column.unit) or row.dimension_unit
    for side in _SIDES:
        given = cell.get(side)
        if given is None:
            continue
        value, own_unit = (given.get("value"), given.get("unit")) if isinstance(given, dict) else (given, None)
        parsed = parse_length(str(value), unit_named(str(own_unit)) if own_unit else shared)
        if (found := column.take(row, parsed, f"dimensions.{side}")) is not None:
            row.dimensions.setdefault(side, found)  # type: ignore[misc]


def _sized(column: ReadColumn, row: RowDraft, text: str, mark: str) -> Spread | None:
    """Parse a size; in a set of several pieces assign it to the piece that it names, or report a conflict."""
    title = title_of(row.product, row.variant)
    name, kind = sized_piece(title, text, row.kind())
    parsed = parse_dimensions(text, column.unit or row.dimension_unit, kind, column.order, mark)
    spread: Spread | None = column.take(row, parsed)
    if spread is None or not spread.dimensions or not of_several(title):
        return spread
    if name is not None:
        return named_piece(spread, name)
    if not spread.components:
        reason = "is a size in a set of several pieces and does not name its piece; it is kept as the size of the set"
        column.take(row, refused(ProblemKind.CONFLICT, text, reason))
    return spread


def _rug_unit(column: ReadColumn) -> str | None:
    """Return the unit for sizes in a column of rug sizes.

    A unit of inches that is only presumed is dropped, since the trade also writes feet.
    """
    return None if column.market_unit and column.unit not in METRIC else column.unit


def _is_of_a_rug(column: ReadColumn, row: RowDraft, text: str) -> bool:
    """Read a text as a rug size and return True, or return False if it is better read as another size."""
    parsed = parse_rug_size(text, _rug_unit(column))
    # A conflict means that the text is a size whose unit is uncertain.
    is_doubtful = any(fault.problem == ProblemKind.CONFLICT for fault in parsed.faults)
    if parsed.value is None and not is_no_rug(text) and not is_doubtful:
        return False
    _take_rug_size(row, text, column.take(row, parsed))
    return True


def _take_rug_size(row: RowDraft, text: str, size: RugSize | None) -> None:
    if size is None:
        return
    row.rug.setdefault("shape", size.shape)
    row.rug.setdefault("size_text", stated(text) or text)
    if size.nominal:
        row.rug.setdefault("nominal", size.nominal)
    row.spread = row.spread or Spread(size.dimensions)


def _rug(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if column.name == "size_text":
        parsed = parse_rug_size(text, _rug_unit(column))
        size = column.take(row, parsed)
        if size is None and parsed is not NOTHING:
            row.rug["size_text"] = stated(text) or text
        _take_rug_size(row, text, size)
        return
    parse = _RUG.get(column.name)
    value = column.take(row, parse(text)) if parse else column.length(row, text, cell)
    if value is not None:
        row.rug.setdefault(column.name, value)  # type: ignore[misc]


# Offers.


def _money(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if cell.__class__ is dict:
        # A JSON price: `{"amount": "12.00", "currency": "USD"}`.
        amount = next((cell[key] for key in ("amount", "value", "price") if cell.get(key) is not None), "")
        currency = next((cell[key] for key in ("currency", "currencyCode", "currency_code") if cell.get(key)), "")
        text = f"{amount} {currency}".strip()
    price = column.take(row, parse_money(text, row.currency or column.currency, column.mark(cell)))
    if price is None:
        return
    offer = column.offer(row)
    if offer.setdefault("currency", price.currency) == price.currency:
        offer.setdefault(column.field, price.minor)
    else:
        reason = f"is in {price.currency}; other prices of the offer are in {offer['currency']}"
        column.take(row, refused(ProblemKind.CONFLICT, text, reason))


def _currency(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    given = (stated(text) or "").lower()
    if given in EXPONENTS:
        row.currency = given
    elif given:
        column.take(row, refused(ProblemKind.UNKNOWN_CURRENCY, text, "is not a currency code"))


def _stock(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if column.flag and (flag := _FLAGS.get(text.strip().lower())):
        # A bare yes or no is used only without a quantity.
        offer = column.offer(row)
        if "quantity" not in offer:
            offer["availability"] = flag
        return
    stock = column.take(row, (parse_stock if column.field == "quantity" else parse_availability)(text))
    for name in ("quantity", "availability") if stock else ():
        if (value := getattr(stock, name)) is not None:
            column.offer(row).setdefault(name, value)


def _lead_time(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if (days := column.take(row, parse_lead_time(text, column.unit or "days"))) is not None:
        column.offer(row).setdefault("lead_time_days", days)


def _incoming(column: ReadColumn, row: RowDraft, text: str, cell: Any) -> None:
    if column.name == "eta":
        value: Any = column.take(row, parse_date(text, column.order or None))
    else:
        stock = column.take(row, parse_stock(text))
        value = stock.quantity if stock else None
    if value:
        incoming = column.offer(row).setdefault("incoming", [])
        while len(incoming) <= column.place:
            incoming.append({})
        incoming[column.place].setdefault(column.name, value)


# Attribute lists in one cell (`color : oak | overallheight:31`), of which the attributes with a field are read.

_LONGEST_NAME = 80
_MOST_READERS = 2_000
"""Maximum number of attribute names whose readers are cached for a column."""
_FEWEST = 3
_HEADS = frozenset("dimensions compliance rug weight colour finish materials assembly_required freight_class".split())
_ATTRIBUTES: Final[dict[str, str]] = load("attributes")


def pairs(text: str) -> list[tuple[str, str]]:
    """Return names and values of an attribute list; empty if the cell is not such a list."""
    pieces = [piece for piece in text.split("|") if piece.strip()]
    found = []
    for name, _, value in (piece.partition(":") for piece in pieces):
        if name and value and len(name.strip()) <= _LONGEST_NAME:
            found.append((name.strip().lower() or " ", value.strip() or " "))
    return found if len(pieces) >= _FEWEST and len(found) * 4 > len(pieces) * 3 else []


def _attribute_reader(name: str, column: Column, settings: FeedSettings) -> CellReader:
    """Return the reader of an attribute.

    Lengths and weights without a unit are read in that of the source's market, as in columns of their own.
    """
    field = _ATTRIBUTES.get(name)
    if field is None:
        sense = next(iter(senses(name)), None)
        if sense is None or sense.score < 100 or sense.field.partition(".")[0] not in _HEADS:
            return lambda row, text, cell: None
        field = sense.field
    measured = settings.currency == "usd" and field.startswith(("dimensions", "weight", "rug.pile"))
    unit = {"unit": "lb" if field == "weight" else "in"} if measured else {}
    return reader_of(Column(column.position, column.column, field, unit), settings)


def _with_attributes(read: CellReader, column: Column, settings: FeedSettings) -> CellReader:
    """Return a reader that calls `read` and then the readers of the attributes in the cell."""
    readers: dict[str, CellReader] = {}

    def both(row: RowDraft, text: str, cell: Any) -> None:
        read(row, text, cell)
        values: dict[str, set[str]] = {}
        for name, value in pairs(text) if "|" in text and ":" in text else ():
            values.setdefault(name, set()).add(value)
        for name, given in values.items():
            # A name with two values describes several variants, so neither value can be used for this one.
            if len(given) > 1:
                continue
            reader = readers.get(name) or _attribute_reader(name, column, settings)
            if len(readers) < _MOST_READERS:
                readers[name] = reader
            value = given.pop()
            if stated(value) is not None:
                reader(row, value, value)

    return both


_READERS: Final[dict[str, Callable[[ReadColumn, RowDraft, str, Any], None]]] = {
    **dict.fromkeys(_PRODUCT_TEXTS, _product_text),
    **dict.fromkeys(_VARIANT, _variant_fact),
    **dict.fromkeys(_ROW_FACTS, _row_fact),
    **dict.fromkeys(MONEY, _money),
    **dict.fromkeys(("tags", "features"), _texts),
    **dict.fromkeys(("media", "variant_media"), _media),
    **dict.fromkeys(("dimension_unit", "weight_unit"), _unit),
    **dict.fromkeys(("quantity", "availability"), _stock),
    **dict.fromkeys(("product_key", "category"), lambda column, row, text, cell: None),
    "category_path": _category,
    "google_category": _google_category,
    "compliance": _compliance,
    "status": _status,
    "option_name": _option_name,
    "variant_title": _variant_title,
    "colour": _colour,
    "axes": _axis,
    "option_value": _option_value,
    "materials": _materials,
    "weight": _weight,
    "components": _components,
    "cartons": _cartons,
    "dimensions": _dimensions,
    "rug": _rug,
    "currency": _currency,
    "lead_time_days": _lead_time,
    "incoming": _incoming,
}


def reader_of(column: Column, settings: FeedSettings) -> CellReader:
    """Return the reader of a column's cells."""
    ready = ReadColumn(column, settings)
    read: CellReader = partial(_READERS[ready.head], ready)
    return _with_attributes(read, column, settings) if column.field == "features" else read
