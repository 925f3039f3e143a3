"""Readers of cells: for each kind of field, a function that parses a cell and adds the value to the draft of the row."""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeAlias

from domain.catalogue.categories import find_id_by_google_id
from domain.catalogue.data import BundleComponent
from domain.ingestion.data import load_patterns, load_toml
from domain.ingestion.drafts import UNSTATED_LOCATION, RowDraft
from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.pieces import (
    build_item_title,
    find_sized_piece,
    move_size_to_component,
    names_regulation,
    names_several_pieces,
)
from domain.ingestion.values.cartons import parse_boxes
from domain.ingestion.values.dates import parse_date, parse_lead_time
from domain.ingestion.values.dimensions import ParsedSize, parse_dimensions
from domain.ingestion.values.labels import RUG
from domain.ingestion.values.media import convert_json_to_url_text, parse_image_urls
from domain.ingestion.values.money import parse_money
from domain.ingestion.values.quantities import (
    METRIC_LENGTH_UNITS,
    parse_length,
    parse_length_unit,
    parse_weight,
    parse_weight_unit,
)
from domain.ingestion.values.rugs import (
    RugSize,
    is_same_rug,
    is_sample_or_custom,
    parse_construction,
    parse_indoor_outdoor,
    parse_rug_size,
    parse_shape,
)
from domain.ingestion.values.stock import parse_availability, parse_stock, parse_stock_word, split_stock_word
from domain.ingestion.values.text import (
    NO_VALUE,
    ParseResult,
    build_fault_result,
    build_too_long_result,
    build_unreadable_result,
    clean_code,
    clean_line,
    clean_value,
    convert_to_text,
    parse_line,
    parse_multiline_text,
    quote_text,
)
from domain.ingestion.values.words import (
    parse_assembly_required,
    parse_boolean,
    parse_components,
    parse_count,
    parse_country,
    parse_discontinued_status,
    parse_features,
    parse_freight_class,
    parse_gpc_brick,
    parse_gtin,
    parse_materials,
    parse_number,
    parse_prop65_warning,
    parse_sturdy_compliance,
    parse_tags,
    parse_tsca_compliance,
    split_category_path,
)
from domain.ingestion.vocabulary.fields import MONEY
from domain.ingestion.vocabulary.header_meanings import find_header_meanings
from domain.kernel.money import EXPONENTS
from domain.kernel.problems import ProblemKind

CellReader: TypeAlias = Callable[[RowDraft, str, Any], None]
"""Function that parses a cell into the draft of a row. Arguments: the draft, the text of the cell (never blank), and the cell."""
MAX_CODE = 200
_DEFAULT_TITLE = "Default Title"
_QUANTITY_AFTER_CODE = re.compile(r"(?<=\S)[*×](\d{1,3})(?=\s*+(?:[,;|\n]|$))")
"""Quantity directly after a code, without a space (`AB-2*2`)."""
_OTHER_STATE = load_patterns("contradictions")["other_state"]
_ROUNDING_TOLERANCE = 60
"""Difference up to which two measures are equal, in hundredths of an inch or pound; or 1/50 of the measure."""
_MAX_EXTRA_MEASURES = 12
_MAX_EXTRA_CHARS = 120
_WHOLE_NUMBER = re.compile(r"\d{1,15}")
_UNITLESS_NUMBER = re.compile(r"\s*+[\d.,]++\s*+")
_FLAGS = {"1": "in_stock", "0": "out_of_stock", "true": "in_stock", "false": "out_of_stock"}
_DIMENSIONS = "width depth height length diameter seat_height seat_depth arm_height clearance".split()


class ColumnReader:
    """Field, header and settings of a column, with methods that parse its cells and report problems.

    Attributes:
        field: The path of the field (`cartons.1.width`).
        header: The header of the column.
        first_path_part: The first part of the path (`cartons`).
        number: The number in the path (1), or -1 if the path has no number.
        last_path_part: The last part of the path (`width`).
        media_base_url: The URL to which the names of image files are appended, or None.
        unit: The unit of numbers without one, or None.
        order: The order of dimensions (`wdh`) or of day and month (`mdy`), or an empty string.
        location: The location of offers in the column.
        currency: The currency of the column or the source, or None.
        decimal: The decimal mark of the column or the source: `dot`, `comma` or `auto`.
        applies_to: Header of the only column whose unit the cells are, or an empty string.
        is_presumed_unit: Whether the unit was presumed from the currency of the source (setting `unit_by: market`).
        is_flag: Whether 1 and 0 mean available and not available instead of quantities.
        is_fallback: Whether another column of the same field takes precedence.
        is_compared: Whether a value of a fallback column that differs from the used value is a contradiction.
    """

    def __init__(self, column: Column, settings: FeedSettings) -> None:
        self.field, self.header = column.field, column.column
        self.first_path_part, *parts = self.field.split(".")
        self.number = next((int(part) for part in parts if part.isdecimal()), -1)
        self.last_path_part = (self.field.partition(".")[2] if self.number < 0 else parts[-1]) or self.field
        self.media_base_url = settings.media_base_url
        self.unit = column.find_setting("unit")
        self.order = column.find_setting("order") or ""
        self.location = column.find_setting("location") or UNSTATED_LOCATION
        self.currency = (column.find_setting("currency") or "").lower() or settings.currency
        self.decimal = column.find_setting("decimal") or settings.decimal
        self.applies_to = column.find_setting("applies_to") or ""
        self.is_presumed_unit = column.find_setting("unit_by") == "market"
        self.is_flag, self.is_fallback = "flag" in column.settings, "fallback" in column.settings
        self.is_compared = self.is_fallback and not _OTHER_STATE.search(self.header[:MAX_CODE])

    def decimal_mark(self, cell: Any) -> str:
        """Return the decimal mark for parsing a cell: the configured mark for a text, and `dot` for a number of a spreadsheet."""
        return self.decimal if cell.__class__ is str else "dot"

    def find_length_unit(self, row: RowDraft) -> str | None:
        """Return the unit of lengths without one: the unit of the column, of its own column of units, or of the row."""
        return self.unit or row.unit_by_header.get(self.header) or row.dimension_unit

    def find_weight_unit(self, row: RowDraft) -> str | None:
        """Return the unit of weights without one, as `find_length_unit`."""
        return self.unit or row.unit_by_header.get(self.header) or row.weight_unit

    def unwrap(self, row: RowDraft, parsed: ParseResult[Any], problem_field: str = "") -> Any:
        """Return the value of a parse result (None if it has no value), and report the faults of the result as problems.

        Args:
            row: The draft of the row.
            parsed: The parse result.
            problem_field: The field for the problems, or an empty string for the field of the column.
        """
        if parsed.faults:
            row.report_faults(problem_field or self.field, self.header, parsed.faults)
        return parsed.value

    def read_line(self, row: RowDraft, text: str, problem_field: str = "") -> Any:
        """Parse a text of one line, report faults, and return the text or None."""
        return self.unwrap(row, parse_line(text), problem_field)

    def parse_length(self, row: RowDraft, text: str, cell: Any) -> ParseResult[Any]:
        """Parse a length. Numbers without a unit have the unit of the column or row."""
        return parse_length(text, self.find_length_unit(row), self.decimal_mark(cell))

    def parse_weight(self, row: RowDraft, text: str, cell: Any) -> ParseResult[Any]:
        """Parse a weight. Numbers without a unit have the unit of the column or row."""
        return parse_weight(text, self.find_weight_unit(row), self.decimal_mark(cell))

    def unwrap_if_unused(self, row: RowDraft, parsed: ParseResult[Any], used: Any) -> Any:
        """Return the value of a parse result and report its faults; None if another column with the same field has a value.

        A measure or GTIN that differs from the value of the other column, apart from rounding, is reported.

        Args:
            row: The draft of the row.
            parsed: The parse result.
            used: The value of the other column, or None.
        """
        if used is None:
            return self.unwrap(row, parsed)
        value = parsed.value
        if not self.is_compared or value is None or parsed.faults or value == used:
            return None
        if isinstance(value, dict):
            name = "hundredths_in" if "hundredths_in" in value else "hundredths_lb"
            if abs(value[name] - used[name]) > max(_ROUNDING_TOLERANCE, used[name] // 50):
                self.report_unused(row, *(f"{one['given']['value']} {one['given']['unit']}" for one in (value, used)))
        elif self.field == "gtin":
            self.report_unused(row, value, used)
        return None

    def report_unused(self, row: RowDraft, value: str, used: str) -> None:
        """Report a value that contradicts the used value of another column with the same field."""
        detail = f"This column states {value}, but another column with the same meaning states {used}, which is used. Correct one."
        row.product.add_problem(self.field, ProblemKind.CONFLICT, detail, row.line, self.header)

    def find_or_create_offer(self, row: RowDraft) -> Any:
        """Return the offer of the row at the location of the column, and create it if the row has none."""
        return row.offers.setdefault(self.location, {})


def parse_code(text: str) -> ParseResult[str]:
    """Parse an item code. The fault of the result is `too_long` if the code is too long."""
    found = clean_code(text)
    return build_too_long_result(found, MAX_CODE) if found and len(found) > MAX_CODE else ParseResult(found)


Parser: TypeAlias = Callable[[str], ParseResult[Any]]
_PRODUCT_FIELDS: Final[dict[str, Parser]] = {
    **dict.fromkeys(("title", "brand", "collection"), parse_line),
    "description": parse_multiline_text,
    "gpc_brick": parse_gpc_brick,
}
_COMPLIANCE: Final[dict[str, Parser]] = {
    "tsca_title_vi": parse_tsca_compliance,
    "sturdy_act": parse_sturdy_compliance,
    "stability_rating": parse_number,
    "ca_tb117_2013": parse_boolean,
    "prop65_warning": parse_prop65_warning,
    "prop65_chemicals": parse_tags,
    "country_of_origin": parse_country,
}
_VARIANT: Final[dict[str, Parser]] = {
    **dict.fromkeys(("sku", "mpn", "replacement_sku"), parse_code),
    "gtin": parse_gtin,
    "finish": parse_line,
    "assembly_required": parse_assembly_required,
    "white_glove": parse_boolean,
    "freight_class": parse_freight_class,
    "discontinued": parse_boolean,
}
_RUG: Final[dict[str, Parser]] = {
    "shape": parse_shape,
    "construction": parse_construction,
    "indoor_outdoor": parse_indoor_outdoor,
    "nominal": parse_line,
}


# The product.


def _read_product_field(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read a text of the product; a different text in a later row is reported."""
    product, name, parse = row.product, column.field, _PRODUCT_FIELDS[column.field]
    known = product.data.get(name)
    if known is None:
        if (value := column.unwrap(row, parse(text))) is not None:
            product.data[name] = value  # type: ignore[literal-required]
            product.line_by_field[name] = row.line
        return
    if column.is_fallback or product.line_by_field.get(name) == row.line:
        return
    if (other := parse(text).value) not in (None, known):
        if name == "title" and product.is_grouped:
            row.variant["title"] = other
        else:
            product.report_difference(name, row.line, column.header)


def _read_category(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read a category path, or one level of a path from a numbered column."""
    product = row.product
    levels = (
        tuple(clean_line(convert_to_text(level)) for level in cell)
        if isinstance(cell, list)
        else split_category_path(text)
    )
    named = tuple(level for level in levels if not level.isdecimal())
    known = product.category_levels.get(column.number) if column.number >= 0 else product.path_column_category
    if not named:
        if levels:
            column.unwrap(
                row, build_unreadable_result(text, "is a number, not the name of a category"), "category_path"
            )
    elif known:
        if named != known:
            # A second path, from another row, becomes a tag.
            product.tags[" > ".join(named)] = None
    elif column.number >= 0:
        product.category_levels[column.number] = named
    else:
        product.path_column_category = named


def _read_google_category(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    # A bare number is Google's id of a category, not a path.
    number = text.strip()
    if number.isdecimal():
        if len(number) < 9 and (category := find_id_by_google_id(int(number))):
            row.product.data.setdefault("category", category)
    elif not row.product.google_category:
        row.product.google_category = split_category_path(text)


def _read_tags_or_features(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    tags = column.field == "tags"
    values: Sequence[str]
    if isinstance(cell, list):
        values = [found for item in cell if (found := clean_value(convert_to_text(item)))]
    else:
        values = column.unwrap(row, parse_tags(text) if tags else parse_features(text)) or ()
    (row.product.tags if tags else row.product.features).update(dict.fromkeys(values))


def _read_compliance(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    known, name = row.product.compliance, column.last_path_part
    if name not in known and (value := column.unwrap(row, _COMPLIANCE[name](text))) is not None:
        known[name] = list(value) if isinstance(value, tuple) else value


def _read_media(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read the URLs of images, and their alternative texts from a JSON list."""
    base = column.media_base_url
    found = parse_image_urls(convert_json_to_url_text(cell) if isinstance(cell, list | dict) else text, base)
    if found.faults and not any(problem.field == "media" for problem in row.product.problems):
        # One problem of a product's images is enough.
        row.report_faults("media", column.header, found.faults)
    if not (urls := found.value):
        return
    for item in cell if isinstance(cell, list) else ():
        # A JSON list may give texts for its addresses.
        if isinstance(item, dict) and isinstance(item.get("alt"), str) and (alt := clean_value(item["alt"])):
            address = convert_json_to_url_text(item)
            described = (address,) if base is None else parse_image_urls(address, base).value or ()
            row.media_alts.update(dict.fromkeys(described, alt))
    if column.field == "variant_media":
        row.variant_media += urls
        return
    row.media_urls += urls
    if column.field == "media.hero" and row.product.main_image_url is None:
        row.product.main_image_url = urls[0]


_ROW_ATTRIBUTES: Final[dict[str, tuple[Parser, str]]] = {
    "media_alt": (parse_line, "media"),
    "media_position": (parse_count, "media"),
    "carton_count": (parse_count, "cartons"),
    "location": (parse_line, "location"),
}
"""Fields that are attributes of RowDraft, each with a parser and the field that problems name."""


def _read_row_attribute(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read a cell into the attribute of the row draft with the name of the field."""
    parse, field = _ROW_ATTRIBUTES[column.field]
    setattr(row, column.field, column.unwrap(row, parse(text), field))


def _read_status(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read whether the status means discontinued."""
    if (is_discontinued := column.unwrap(row, parse_discontinued_status(text))) is not None:
        row.product.discontinued_values.add(is_discontinued)
    if is_discontinued:
        row.variant["discontinued"] = True


def _read_option_name(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    if name := clean_value(text):
        row.product.option_names.setdefault(column.number, name)


# The variant.


def _read_variant_field(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    name = column.field
    if (value := column.unwrap_if_unused(row, _VARIANT[name](text), row.variant.get(name))) is not None:
        row.variant[name] = value  # type: ignore[literal-required]


def _read_variant_title(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    if (value := column.read_line(row, text, "title")) not in (None, _DEFAULT_TITLE):
        row.variant["title"] = value


def _remove_stock_word(row: RowDraft, value: str) -> str:
    """Remove a stock word from the end of a value (`Blue [NOT AVAILABLE]`) and record the stock in the draft of the row."""
    plain, word = split_stock_word(value)
    row.stock_in_value = row.stock_in_value or word
    return plain


def _read_colour(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    if "colour" not in row.variant and (value := column.read_line(row, text)) is not None:
        row.variant["colour"] = _remove_stock_word(row, value)


def _read_axes(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    pairs = []
    if isinstance(cell, dict):
        pairs = [(key, clean_value(str(value))) for key, value in cell.items()]
    elif column.field != "axes":
        pairs = [(column.field.partition(".")[2], column.read_line(row, text))]
    for key, value in pairs:
        if value:
            row.axes[key] = _remove_stock_word(row, value)


def _read_option_value(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    if (value := column.read_line(row, text, "axes")) is not None:
        row.option_values[column.number] = _remove_stock_word(row, value)


def _read_materials(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    for value in column.unwrap(row, parse_materials(text)) or ():
        (row.product.features if names_regulation(value) else row.materials)[value] = None


def _read_weight(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    if isinstance(cell, dict):
        text = f"{cell.get('value', '')} {cell.get('unit') or cell.get('units') or ''}".strip()
    if (
        value := column.unwrap_if_unused(row, column.parse_weight(row, text, cell), row.variant.get("weight"))
    ) is not None:
        row.variant["weight"] = value


def parse_component_codes(cell: Any) -> ParseResult[tuple[BundleComponent, ...]]:
    """Parse a list of component codes with quantities (`AB-1, AB-2 (x2)`, `AB-2*2`, or a JSON list)."""
    return parse_components(_QUANTITY_AFTER_CODE.sub(r" x\1", convert_to_text(cell)))


def _read_components(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    row.components += column.unwrap(row, parse_component_codes(cell)) or ()


def _read_cartons(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read one property of a numbered carton (`Box 2 Width`), or a list of all cartons in one cell."""
    if column.number < 0:
        _read_carton_list(column, row, text, cell)
        return
    carton: Any = row.cartons.get(column.number, {})
    name = column.last_path_part
    if name == "dimensions":
        unit, order = column.find_length_unit(row), column.order or "lwh"
        size = column.unwrap(row, parse_dimensions(text, unit, "", order, column.decimal_mark(cell)))
        if size is None:
            return
        carton |= {side: size.dimensions[side] for side in ("width", "depth", "height") if side in size.dimensions}
    else:
        parse = column.parse_weight if name == "weight" else column.parse_length
        parsed = parse_count(text) if name == "count" else parse(row, text, cell)
        if (value := column.unwrap_if_unused(row, parsed, carton.get(name))) is None:
            return
        carton[name] = value
    row.cartons[column.number] = carton


def _read_carton_list(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    units = (column.find_length_unit(row), row.weight_unit)
    packages = column.unwrap(row, parse_boxes(text, *units, column.decimal_mark(cell)), "cartons") or ()
    start = len(row.cartons)
    row.cartons.update({start + index: package.carton for index, package in enumerate(packages) if package.carton})
    if len({package.sku for package in packages}) > 1:
        row.components += [
            {"name": package.name, "sku": package.sku, "quantity": package.carton.get("count", 1)}
            for package in packages
        ]


def _read_unit(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read the unit of the lengths or weights in the row, or in one of its columns."""
    unit = parse_weight_unit(text) if column.field == "weight_unit" else parse_length_unit(text)
    if unit is None and clean_value(text) is not None:
        column.unwrap(row, build_fault_result(ProblemKind.UNKNOWN_UNIT, text, "is not a known unit"))
        return
    if unit is not None:
        row.unit_by_header.setdefault(column.applies_to, unit)
    if column.field == "weight_unit":
        row.weight_unit = row.weight_unit or unit
    else:
        row.dimension_unit = row.dimension_unit or unit


# Sizes and properties of rugs.


def _read_dimensions(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read the length of one dimension, or a text or JSON object with all dimensions."""
    if column.field != "dimensions":
        _read_single_dimension(column, row, text, cell)
    elif row.parsed_size is not None:
        return
    elif isinstance(cell, dict):
        _read_json_dimensions(column, row, cell)
    elif row.determine_kind() != RUG or not _try_rug_size(column, row, text):
        row.parsed_size = _parse_all_dimensions(column, row, text, column.decimal_mark(cell))
        # Other measures in a size (`Seat W 20 in`, `EXTENDED 65 in`) become features, in the vendor's words.
        for extra in row.parsed_size.extras if row.parsed_size else ():
            if len(row.product.extra_measures) < _MAX_EXTRA_MEASURES:
                row.product.extra_measures.setdefault(" ".join(extra.split())[:_MAX_EXTRA_CHARS])


def _read_single_dimension(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    parsed, used = column.parse_length(row, text, cell), row.dimensions.get(column.last_path_part)
    if (value := column.unwrap_if_unused(row, parsed, used)) is not None:
        row.dimensions[column.last_path_part] = value  # type: ignore[literal-required]
        if column.is_presumed_unit and row.dimension_unit is None and _UNITLESS_NUMBER.fullmatch(text):
            row.presumed_unit_dimensions += (column.last_path_part,)


def _read_json_dimensions(column: ColumnReader, row: RowDraft, cell: Mapping[str, Any]) -> None:
    """Read a JSON object with lengths by dimension (`{"width": 30, "unit": "in"}`, or `{"width": {"value": 30, "unit": "in"}}`)."""
    named = cell.get("unit") or cell.get("units")
    shared = (parse_length_unit(str(named)) if named else column.unit) or column.find_length_unit(row)
    for side in _DIMENSIONS:
        side_value = cell.get(side)
        if side_value is None:
            continue
        value, own_unit = (
            (side_value.get("value"), side_value.get("unit")) if isinstance(side_value, dict) else (side_value, None)
        )
        parsed = parse_length(str(value), parse_length_unit(str(own_unit)) if own_unit else shared)
        if (found := column.unwrap(row, parsed, f"dimensions.{side}")) is not None:
            row.dimensions.setdefault(side, found)  # type: ignore[misc]


def _parse_all_dimensions(column: ColumnReader, row: RowDraft, text: str, decimal_mark: str) -> ParsedSize | None:
    """Parse a text with all dimensions.

    In a set, the dimensions are assigned to the piece to which the text belongs. If the piece is unknown, a conflict is
    reported and the dimensions remain those of the set.
    """
    title = build_item_title(row.product, row.variant)
    name, kind = find_sized_piece(title, text, row.determine_kind())
    parsed = parse_dimensions(text, column.find_length_unit(row), kind, column.order, decimal_mark)
    size: ParsedSize | None = column.unwrap(row, parsed)
    if size is None or not size.dimensions or not names_several_pieces(title):
        return size
    if name is not None:
        return move_size_to_component(size, name)
    if not size.components:
        reason = "does not state which piece of the set has this size; the size is kept for the whole set"
        column.unwrap(row, build_fault_result(ProblemKind.CONFLICT, text, reason))
    return size


def _find_rug_unit(column: ColumnReader) -> str | None:
    """Return the unit for rug sizes in a column; None if unknown.

    A presumed unit that is not metric is ignored, because rug sizes can also be in feet.
    """
    return None if column.is_presumed_unit and column.unit not in METRIC_LENGTH_UNITS else column.unit


def _try_rug_size(column: ColumnReader, row: RowDraft, text: str) -> bool:
    """Read a text as a rug size if possible, and return whether it is a rug size, a sample or made to measure."""
    parsed = parse_rug_size(text, _find_rug_unit(column))
    # A conflict means that the text is a size whose unit is uncertain.
    is_doubtful = any(fault.problem == ProblemKind.CONFLICT for fault in parsed.faults)
    if parsed.value is None and not is_sample_or_custom(text) and not is_doubtful:
        return False
    _set_rug_size(row, text, column.unwrap(row, parsed))
    return True


def _set_rug_size(row: RowDraft, text: str, size: RugSize | None) -> None:
    if size is None:
        return
    row.rug.setdefault("shape", size.shape)
    row.rug.setdefault("size_text", clean_value(text) or text)
    if size.nominal:
        row.rug.setdefault("nominal", size.nominal)
    row.parsed_size = row.parsed_size or ParsedSize(size.dimensions)


def _read_rug_field(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read the size or another property of a rug."""
    if column.last_path_part == "size_text":
        parsed = parse_rug_size(text, _find_rug_unit(column))
        if column.is_fallback and "size_text" in row.rug and row.parsed_size is not None:
            if (
                parsed.value
                and not parsed.faults
                and not is_same_rug(parsed.value.dimensions, row.parsed_size.dimensions)
            ):
                column.report_unused(row, quote_text(text), quote_text(row.rug["size_text"]))
            return
        size = column.unwrap(row, parsed)
        if size is None and parsed is not NO_VALUE:
            row.rug["size_text"] = clean_value(text) or text
        _set_rug_size(row, text, size)
        return
    parse = _RUG.get(column.last_path_part)
    value = column.unwrap(row, parse(text) if parse else column.parse_length(row, text, cell))
    if value is not None:
        row.rug.setdefault(column.last_path_part, value)  # type: ignore[misc]


# Offers.


def _read_money(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read a price into the offer at the location of the column; a price in another currency is a conflict."""
    if cell.__class__ is dict:
        # A JSON price: `{"amount": "12.00", "currency": "USD"}`.
        amount = next((cell[key] for key in ("amount", "value", "price") if cell.get(key) is not None), "")
        currency = next((cell[key] for key in ("currency", "currencyCode", "currency_code") if cell.get(key)), "")
        text = f"{amount} {currency}".strip()
    default_currency = row.currency or column.currency
    if column.unit == "cents" and default_currency:
        if not _WHOLE_NUMBER.fullmatch(text):
            column.unwrap(row, build_unreadable_result(text, "is not a whole number of cents"))
            return
        text = format(Decimal(text).scaleb(-EXPONENTS[default_currency]), "f")
    price = column.unwrap(row, parse_money(text, default_currency, "dot" if column.unit else column.decimal_mark(cell)))
    if price is None:
        return
    offer = column.find_or_create_offer(row)
    if offer.setdefault("currency", price.currency) == price.currency:
        offer.setdefault(column.field, price.minor_units)
    else:
        reason = (
            f"is in {price.currency} and was left out, because other prices of the offer are in {offer['currency']}"
        )
        column.unwrap(row, build_fault_result(ProblemKind.CONFLICT, text, reason))


def _read_currency(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    code = (clean_value(text) or "").lower()
    if code in EXPONENTS:
        row.currency = code
    elif code:
        column.unwrap(row, build_fault_result(ProblemKind.UNKNOWN_CURRENCY, text, "is not a currency code"))


def _read_stock(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read a quantity or an availability into the offer at the location of the column."""
    if column.is_flag and (flag := _FLAGS.get(text.strip().lower())):
        # A bare yes or no is used only without a quantity.
        offer = column.find_or_create_offer(row)
        if "quantity" not in offer:
            offer["availability"] = flag
        return
    parsed = parse_stock(text, column.decimal_mark(cell)) if column.field == "quantity" else parse_availability(text)
    stock = column.unwrap(row, parsed)
    for name in ("quantity", "availability") if stock else ():
        if (value := getattr(stock, name)) is not None:
            column.find_or_create_offer(row).setdefault(name, value)


def _read_lead_time(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    if (days := column.unwrap(row, parse_lead_time(text, column.unit))) is not None:
        offer = column.find_or_create_offer(row)
        offer.setdefault("lead_time_days", days)
        if not days and (stock := parse_stock_word(text)) and stock.availability:
            offer.setdefault("availability", stock.availability)


def _read_incoming(column: ColumnReader, row: RowDraft, text: str, cell: Any) -> None:
    """Read the quantity or the date of an expected arrival of stock."""
    if column.last_path_part == "eta":
        value: Any = column.unwrap(row, parse_date(text, column.order or None))
    else:
        stock = column.unwrap(row, parse_stock(text, column.decimal_mark(cell)))
        value = stock.quantity if stock else None
    if value:
        incoming = column.find_or_create_offer(row).setdefault("incoming", [])
        while len(incoming) <= column.number:
            incoming.append({})
        incoming[column.number].setdefault(column.last_path_part, value)


# Attribute lists in one cell (`color : oak | overallheight:31`), of which the attributes with a field are read.

_MAX_NAME_CHARS = 80
_MAX_READERS = 2_000
"""Maximum number of attribute names whose readers are cached for a column."""
_MIN_ATTRIBUTES = 3
_ATTRIBUTE_HEADS = frozenset(
    "dimensions compliance rug weight colour finish materials assembly_required freight_class".split()
)
_ASSIGNMENTS = re.compile(r"\w{1,80}=[^=]*,\w{1,80}=[^=]*,\w{1,80}=")
_BEFORE_ASSIGNMENT = re.compile(r",(?=\w{1,80}=)")
_ATTRIBUTES: Final[dict[str, str]] = load_toml("attributes")


def parse_attributes(text: str) -> list[tuple[str, str]]:
    """Parse a list of attributes to pairs of name and value; empty if the text is no such list.

    A list has the form `color : oak | width : 31`, or that of Magento, `color=oak,width=31`, in which names contain no blanks.
    """
    if _ASSIGNMENTS.match(text):
        pieces, separator = _BEFORE_ASSIGNMENT.split(text), "="
    else:
        pieces, separator = [piece for piece in text.split("|") if piece.strip()], ":"
    found = []
    for name, _, value in (piece.partition(separator) for piece in pieces):
        if name and value and len(name.strip()) <= _MAX_NAME_CHARS:
            found.append((name.strip().lower() or " ", value.strip() or " "))
    return found if len(pieces) >= _MIN_ATTRIBUTES and len(found) * 4 > len(pieces) * 3 else []


def _create_attribute_reader(name: str, column: Column, settings: FeedSettings) -> CellReader:
    """Return the cell reader for one attribute of a list, or a function that does nothing for an unknown attribute.

    Args:
        name: The name of the attribute.
        column: The column with the list.
        settings: The settings of the source; if the currency is `usd`, numbers without a unit are in inches or pounds.
    """
    field = _ATTRIBUTES.get(name)
    if field is None:
        sense = next(iter(find_header_meanings(name)), None)
        if sense is None or sense.score < 100 or sense.field.partition(".")[0] not in _ATTRIBUTE_HEADS:
            return lambda row, text, cell: None
        field = sense.field
    measured = settings.currency == "usd" and field.startswith(("dimensions", "weight", "rug.pile"))
    unit = {"unit": "lb" if field == "weight" else "in"} if measured else {}
    return create_cell_reader(Column(column.position, column.column, field, unit), settings)


def _add_attribute_readers(read: CellReader, column: Column, settings: FeedSettings) -> CellReader:
    """Return a cell reader that calls `read` and then reads the attributes that a cell lists (`color : oak | width : 31`)."""
    readers: dict[str, CellReader] = {}

    def read_with_attributes(row: RowDraft, text: str, cell: Any) -> None:
        read(row, text, cell)
        values: dict[str, set[str]] = {}
        for name, value in parse_attributes(text) if "|" in text or "=" in text else ():
            values.setdefault(name, set()).add(value)
        for name, distinct_values in values.items():
            # A name with two values describes several variants, so neither value can be used for this one.
            if len(distinct_values) > 1:
                continue
            reader = readers.get(name) or _create_attribute_reader(name, column, settings)
            if len(readers) < _MAX_READERS:
                readers[name] = reader
            value = distinct_values.pop()
            if clean_value(value) is not None:
                reader(row, value, value)

    return read_with_attributes


_READERS: Final[dict[str, Callable[[ColumnReader, RowDraft, str, Any], None]]] = {
    **dict.fromkeys(_PRODUCT_FIELDS, _read_product_field),
    **dict.fromkeys(_VARIANT, _read_variant_field),
    **dict.fromkeys(_ROW_ATTRIBUTES, _read_row_attribute),
    **dict.fromkeys(MONEY, _read_money),
    **dict.fromkeys(("tags", "features"), _read_tags_or_features),
    **dict.fromkeys(("media", "variant_media"), _read_media),
    **dict.fromkeys(("dimension_unit", "weight_unit"), _read_unit),
    **dict.fromkeys(("quantity", "availability"), _read_stock),
    **dict.fromkeys(("product_key", "category"), lambda column, row, text, cell: None),
    "category_path": _read_category,
    "google_category": _read_google_category,
    "compliance": _read_compliance,
    "status": _read_status,
    "option_name": _read_option_name,
    "variant_title": _read_variant_title,
    "colour": _read_colour,
    "axes": _read_axes,
    "option_value": _read_option_value,
    "materials": _read_materials,
    "weight": _read_weight,
    "components": _read_components,
    "cartons": _read_cartons,
    "dimensions": _read_dimensions,
    "rug": _read_rug_field,
    "currency": _read_currency,
    "lead_time_days": _read_lead_time,
    "incoming": _read_incoming,
}


def create_cell_reader(column: Column, settings: FeedSettings) -> CellReader:
    """Return the function that parses the cells of a column into drafts of rows."""
    column_reader = ColumnReader(column, settings)
    read: CellReader = partial(_READERS[column_reader.first_path_part], column_reader)
    return _add_attribute_readers(read, column, settings) if column.field == "features" else read
