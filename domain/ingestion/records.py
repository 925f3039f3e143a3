"""Validation of pushed records (`{product, variants}`) and their conversion to ProductStatements.

The values in records are typed, so they are checked and not parsed. A schema assigns a check to each field of an object: a function, a
schema for a nested object, or a list that contains one schema for a list of objects.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, Final

from domain.catalogue import categories
from domain.catalogue.data_limits import trim_product, trim_variant
from domain.catalogue.differences import PRICES
from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement
from domain.ingestion.drafts import Truncation
from domain.ingestion.model import FeedSettings
from domain.ingestion.values.dates import parse_date
from domain.ingestion.values.media import ROLES, determine_media_role, parse_image_urls
from domain.ingestion.values.quantities import (
    MAX_HUNDREDTHS,
    MAX_WEIGHT,
    build_measure,
    parse_length_unit,
    parse_weight_unit,
    round_to_hundredths,
)
from domain.ingestion.values.rugs import CONSTRUCTIONS, SHAPES
from domain.ingestion.values.stock import parse_stock_word
from domain.ingestion.values.text import (
    MAX_TEXT,
    MAX_TITLE,
    NO_VALUE,
    ParseFault,
    ParseResult,
    build_fault_result,
    build_too_long_result,
    build_unreadable_result,
    clean_code,
    clean_value,
    strip_markup,
)
from domain.ingestion.values.words import parse_country, parse_freight_class, parse_gtin
from domain.ingestion.vocabulary.fields import CARTON_PARTS, COMPLIANCE, DIMENSION_PARTS
from domain.kernel.bounds import MAX_ENTRY_CHARS, MAX_IMPORTED_VARIANTS, MAX_LIST_ENTRIES, MAX_OFFERS
from domain.kernel.money import EXPONENTS, to_minor_units
from domain.kernel.problems import Problem, ProblemKind
from domain.kernel.units import INCHES_BY_UNIT, POUNDS_BY_UNIT

Check = Callable[[Any], ParseResult[Any]]
Schema = Mapping[str, "Check | Mapping[str, Any] | list[Any]"]
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,18})?")
_MAX_COUNT = 2_000_000_000
MAX_MINOR_UNITS = 10**17
_MONEY_FORMAT = 'an amount in major units with its currency, such as {"amount": 49.5, "currency": "usd"}'


def _check_line_text(value: Any) -> ParseResult[str]:
    """Check a single-line text. Line breaks become spaces, and a placeholder such as `n/a` becomes None."""
    if not isinstance(value, str):
        return build_unreadable_result(str(value), "is not a string")
    found = clean_value(value)
    return (
        build_too_long_result(found, MAX_TITLE) if found is not None and len(found) > MAX_TITLE else ParseResult(found)
    )


def _check_multiline_text(value: Any) -> ParseResult[str]:
    """Check a text that can have several lines, and remove markup."""
    if not isinstance(value, str):
        return build_unreadable_result(str(value), "is not a string")
    found = strip_markup(value)
    return build_too_long_result(found, MAX_TEXT) if len(found) > MAX_TEXT else ParseResult(found or None)


def _check_code(value: Any) -> ParseResult[str]:
    """Check a vendor's code such as a SKU, which can be a string or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > MAX_TITLE:
        return build_unreadable_result(
            str(value), f"is not a code such as a SKU; send a string of at most {MAX_TITLE:,} characters"
        )
    return ParseResult(clean_code(value))


def _check_text_list(value: Any) -> ParseResult[list[str]]:
    """Check a list of single-line texts. Texts that are too long are omitted and reported."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return build_unreadable_result(str(value), "is not a list of strings")
    if len(value) > MAX_LIST_ENTRIES:
        return build_fault_result(ProblemKind.TOO_LONG, str(value), f"has more than {MAX_LIST_ENTRIES} entries")
    texts = [cleaned for item in value if (cleaned := clean_value(item))]
    short_enough = [item for item in texts if len(item) <= MAX_ENTRY_CHARS]
    detail = f"Texts of more than {MAX_ENTRY_CHARS:,} characters were left out: {len(texts) - len(short_enough)}."
    return ParseResult(
        short_enough or None, (ParseFault(ProblemKind.TOO_LONG, detail),) if len(short_enough) < len(texts) else ()
    )


def _check_category(value: Any) -> ParseResult[str]:
    """Check the ID of a category in the taxonomy."""
    is_known = isinstance(value, str) and value in categories.category_by_id()
    return ParseResult(value) if is_known else build_unreadable_result(str(value), "is not a category of the taxonomy")


def _check_flag(value: Any) -> ParseResult[bool]:
    return (
        ParseResult(value)
        if isinstance(value, bool)
        else build_unreadable_result(str(value), "is neither true nor false")
    )


def _parse_number(value: Any) -> Decimal | None:
    """Return the exact value of a JSON number or a numeric string, or None for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    text = repr(value) if isinstance(value, float) else str(value).strip()
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _check_number(value: Any) -> ParseResult[Decimal]:
    found = _parse_number(value)
    return build_unreadable_result(str(value), "is not a number") if found is None else ParseResult(found)


def _select_quoted_value(value: Any, field_name: str) -> str:
    """Return the text to quote in a problem: the field `field_name` of an object with this field, or all of `value`."""
    return str(value[field_name] if isinstance(value, Mapping) and field_name in value else value)


def _check_measure(value: Any, *, is_weight: bool) -> ParseResult[Any]:
    """Check a length or weight: `{value, unit}`, or an object of an API response with `{value, unit}` in `given`.

    The result can have the faults unreadable, unknown_unit and out_of_range.

    Args:
        value: The value.
        is_weight: True for a weight, False for a length.
    """
    has_api_form = isinstance(value, Mapping) and value.get("given") is not None
    measure = value["given"] if has_api_form else value
    if not isinstance(measure, Mapping) or (amount := _parse_number(measure.get("value"))) is None:
        example = '{"value": 12.5, "unit": "kg"}' if is_weight else '{"value": 95, "unit": "cm"}'
        return build_unreadable_result(
            _select_quoted_value(measure, "value"), f"is not a measure; send a number with its unit, such as {example}"
        )
    unit_text = str(measure.get("unit", ""))
    unit = parse_weight_unit(unit_text) if is_weight else parse_length_unit(unit_text)
    if unit is None:
        known = ", ".join(POUNDS_BY_UNIT if is_weight else INCHES_BY_UNIT)
        return build_fault_result(ProblemKind.UNKNOWN_UNIT, unit_text, f"is not a known unit ({known})")
    if amount <= 0:
        return build_fault_result(ProblemKind.OUT_OF_RANGE, str(amount), "is below zero") if amount else NO_VALUE
    if 0 < round_to_hundredths(amount, unit) <= (MAX_WEIGHT if is_weight else MAX_HUNDREDTHS):
        return ParseResult(build_measure(amount, unit))
    return build_fault_result(ProblemKind.OUT_OF_RANGE, str(amount), "is implausibly small or large")


_check_length = partial(_check_measure, is_weight=False)
_check_weight = partial(_check_measure, is_weight=True)


def _check_currency(value: Any) -> ParseResult[str]:
    """Check an ISO 4217 currency code in upper or lower case; null gives None without a fault."""
    if value is None:
        return NO_VALUE
    found = value.strip().lower() if isinstance(value, str) else ""
    if found in EXPONENTS:
        return ParseResult(found)
    return build_fault_result(ProblemKind.UNKNOWN_CURRENCY, str(value), "is not an ISO 4217 currency code")


def _check_money(value: Any, *, default_currency: str | None) -> ParseResult[tuple[int, str]]:
    """Check an amount of money and return the number of minor units and the currency.

    The amount is `{amount, currency}`, or a whole number of minor units in the default currency. The result can have the faults
    unreadable, unknown_currency and out_of_range.

    Args:
        value: The value.
        default_currency: The currency in the offer, or None.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if default_currency is None:
            detail = f"is in minor units without a currency; send {_MONEY_FORMAT}"
            return build_fault_result(ProblemKind.UNKNOWN_CURRENCY, str(value), detail)
        if not 0 <= value <= MAX_MINOR_UNITS:
            return build_fault_result(ProblemKind.OUT_OF_RANGE, str(value), "is below zero or implausibly large")
        return ParseResult((value, default_currency)) if value else NO_VALUE
    if not isinstance(value, Mapping) or (amount := _parse_number(value.get("amount"))) is None:
        return build_unreadable_result(
            _select_quoted_value(value, "amount"), f"is not an amount of money; send {_MONEY_FORMAT}"
        )
    found = _check_currency(value.get("currency", ""))
    if found.value is None:
        return ParseResult(
            None,
            found.faults
            or build_unreadable_result(str(value), f"is not an amount of money; send {_MONEY_FORMAT}").faults,
        )
    if amount < 0:
        return build_fault_result(ProblemKind.OUT_OF_RANGE, str(amount), "is below zero")
    return ParseResult((to_minor_units(amount, found.value), found.value)) if amount else NO_VALUE


def _check_count(value: Any, *, minimum: int) -> ParseResult[int]:
    """Check a whole number that is at least `minimum`."""
    found = _parse_number(value)
    if found is None or found != found.to_integral_value():
        return build_unreadable_result(str(value), "is not a whole number; send a number such as 12")
    if not minimum <= found <= _MAX_COUNT:
        return build_fault_result(ProblemKind.OUT_OF_RANGE, str(value), f"is not between {minimum} and {_MAX_COUNT:,}")
    return ParseResult(int(found))


_check_count_from_0 = partial(_check_count, minimum=0)
_check_count_from_1 = partial(_check_count, minimum=1)


def _create_enum_check(*allowed: str) -> Check:
    """Return a check that accepts only the given values, also in upper case and with spaces or hyphens instead of underscores."""

    def check(value: Any) -> ParseResult[str]:
        found = str(value).strip().lower().replace(" ", "_").replace("-", "_")
        return (
            ParseResult(found)
            if found in allowed
            else build_unreadable_result(str(value), f"is not one of the values {', '.join(allowed)}")
        )

    return check


def _check_availability(value: Any) -> ParseResult[str]:
    """Check an availability: a value of the API such as `in_stock`, or a vendor's words such as `Sold out`."""
    meaning = parse_stock_word(str(value)) if isinstance(value, str) else None
    return (
        ParseResult(meaning.availability)
        if meaning
        else build_unreadable_result(str(value), 'is not a known availability; send a value such as "in_stock"')
    )


def _check_eta(value: Any) -> ParseResult[str]:
    return (
        parse_date(value)
        if isinstance(value, str)
        else build_unreadable_result(str(value), "is not a date; send a date such as 2026-12-04")
    )


def _check_gtin(value: Any) -> ParseResult[str]:
    """Check a GTIN, which can be a string or a whole number."""
    is_text_or_number = isinstance(value, str | int) and not isinstance(value, bool)
    return parse_gtin(str(value)) if is_text_or_number else build_unreadable_result(str(value), "is not a GTIN")


def _check_axes(value: Any) -> ParseResult[dict[str, str | None]]:
    """Check the axes of a variant (properties in which variants differ): an object such as `{"Colour": "Oak"}`.

    The value null removes an axis.
    """
    is_map = isinstance(value, Mapping)
    texts: list[Any] = [text for pair in value.items() for text in pair if text is not None] if is_map else []
    if not is_map or not all(isinstance(text, str) for text in texts):
        return build_unreadable_result(str(value), "is not an object whose values are strings")
    if len(value) > MAX_LIST_ENTRIES or any(len(text) > MAX_TITLE for text in texts):
        detail = (
            f"The object was left out, because it has more than {MAX_LIST_ENTRIES} entries, "
            f"or a name or value of more than {MAX_TITLE:,} characters."
        )
        return ParseResult(None, (ParseFault(ProblemKind.TOO_LONG, detail),))
    return ParseResult({name: clean_value(item or "") for name, item in value.items() if name.strip()})


def _check_media(value: Any, base_url: str | None = None) -> ParseResult[list[dict[str, Any]]]:
    """Check a list of images. Invalid entries are omitted and reported.

    An entry is a URL, a file name, or an object with `url`, `role`, `alt` and `position`.

    Args:
        value: The list.
        base_url: The URL to which file names are appended, or None.
    """
    if not isinstance(value, list):
        return build_unreadable_result(
            str(value), 'is not a list of media; send a list such as ["https://vendor.example/1.jpg"]'
        )
    out: list[dict[str, Any]] = []
    faults: list[ParseFault] = []
    if len(value) > MAX_LIST_ENTRIES:
        faults.append(
            ParseFault(ProblemKind.TOO_LONG, f"The list has {len(value)} media; the first {MAX_LIST_ENTRIES} are kept.")
        )
    for number, item in enumerate(value[:MAX_LIST_ENTRIES], start=1):
        entry = item if isinstance(item, Mapping) else {"url": item}
        found = parse_image_urls(str(entry.get("url", "")), base_url)
        faults.extend(found.faults)
        if not found.value:
            continue
        url, role = found.value[0], entry.get("role")
        position = _check_count_from_1(entry.get("position", number)).value or number
        image = {
            "url": url,
            "role": role if role in ROLES else determine_media_role(url, not out),
            "position": position,
        }
        alt = clean_value(entry["alt"]) if isinstance(entry.get("alt"), str) else None
        if alt and len(alt) <= MAX_ENTRY_CHARS:
            image["alt"] = alt
        elif alt:
            detail = f"The alt text of an image is longer than {MAX_ENTRY_CHARS} characters and was left out."
            faults.append(ParseFault(ProblemKind.TOO_LONG, detail))
        out.append(image)
    return ParseResult(out or None, tuple(faults))


_PRODUCT: Final[Schema] = {
    **dict.fromkeys(("title", "brand", "collection", "gpc_brick"), _check_line_text),
    **dict.fromkeys(("category_path", "tags", "features"), _check_text_list),
    "description": _check_multiline_text,
    "category": _check_category,
    "compliance": {
        **dict.fromkeys(COMPLIANCE, _check_flag),
        "stability_rating": _check_number,
        "prop65_chemicals": _check_text_list,
        "country_of_origin": lambda value: parse_country(str(value)),
    },
    "media": _check_media,
}
_DIMENSIONS: Final[Schema] = dict.fromkeys(DIMENSION_PARTS - {"length"}, _check_length)
_VARIANT: Final[Schema] = {
    **dict.fromkeys(("sku", "mpn", "replacement_sku"), _check_code),
    **dict.fromkeys(("title", "colour", "finish"), _check_line_text),
    **dict.fromkeys(("assembly_required", "white_glove", "discontinued"), _check_flag),
    "gtin": _check_gtin,
    "axes": _check_axes,
    "materials": _check_text_list,
    "dimensions": _DIMENSIONS,
    "weight": _check_weight,
    "components": [
        {
            "name": _check_line_text,
            "sku": _check_code,
            "quantity": _check_count_from_1,
            "dimensions": _DIMENSIONS,
            "weight": _check_weight,
        }
    ],
    "cartons": [
        {
            **dict.fromkeys(CARTON_PARTS - {"dimensions"}, _check_length),
            "weight": _check_weight,
            "count": _check_count_from_1,
        }
    ],
    "freight_class": lambda value: parse_freight_class(str(value)),
    "rug": {
        "shape": _create_enum_check(*SHAPES),
        "construction": _create_enum_check(*CONSTRUCTIONS),
        "indoor_outdoor": _create_enum_check("indoor", "outdoor", "indoor_outdoor"),
        "size_text": _check_line_text,
        "nominal": _check_line_text,
        "pile_height": _check_length,
    },
    "media": _check_media,
}


def _remove_null_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an object without the fields that are null or an empty object, also in nested objects.

    The object is an entry of a list. A list replaces the whole stored list, so null in an entry removes nothing stored.
    """
    whole = {name: _remove_null_fields(value) if isinstance(value, dict) else value for name, value in entry.items()}
    return {name: value for name, value in whole.items() if value is not None and value != {}}


class _RecordReader:
    """Reader of one pushed record that collects the problems of the record.

    Attributes:
        line: The number of the record in its batch, or None.
        settings: The settings of the source.
        key: The key of the product; None before it is read.
        problems: The problems found so far.
    """

    def __init__(self, line: int | None, settings: FeedSettings) -> None:
        self.line = line
        self.settings = settings
        self.key: str | None = None
        self.problems: list[Problem] = []

    def report(self, field: str, problem: ProblemKind, detail: str) -> None:
        """Add a problem of the record."""
        self.problems.append(Problem(field, problem, detail, self.line, external_id=self.key))

    def _unwrap(self, field: str, parsed: ParseResult[Any]) -> Any:
        """Return the value of a check's result, and report the faults of the result as problems of the field."""
        for fault in parsed.faults:
            self.report(field, fault.problem, fault.detail)
        return parsed.value

    def check_fields(self, value: Mapping[str, Any], schema: Schema, path: str, *known_fields: str) -> dict[str, Any]:
        """Return the fields of an object that pass the checks of a schema. Report invalid values and unknown fields.

        Args:
            value: The object.
            schema: The check of each field.
            path: The path of the object, for problems.
            known_fields: The names of further fields, which the caller reads.
        """
        out: dict[str, Any] = {}
        for name, item in value.items():
            field, problem_count = f"{path}.{name}", len(self.problems)
            if name in known_fields:
                continue
            if name not in schema:
                detail = f"Unknown field {name}. Check its name and its place in the record."
                self.report(field, ProblemKind.UNREADABLE, detail)
                continue
            found = None if item is None else self._apply_check(item, schema[name], field)
            if found is not None or len(self.problems) == problem_count:
                out[name] = found  # an empty value counts as null
        return out

    def _apply_check(self, value: Any, check: Any, field: str) -> Any:
        """Return the checked value, or None if the value is invalid, and report the faults.

        Args:
            value: The value.
            check: A function, a schema for an object, or a list that contains one schema for a list of objects.
            field: The path of the value, for problems.
        """
        if isinstance(check, dict):
            if not isinstance(value, Mapping):
                return self._unwrap(field, build_unreadable_result(str(value), "is not an object"))
            found = self.check_fields(value, check, field)
            return found if found or not value else None
        if not isinstance(check, list):
            return self._unwrap(
                field, _check_media(value, self.settings.media_base_url) if check is _check_media else check(value)
            )
        if not isinstance(value, list):
            return self._unwrap(field, build_unreadable_result(str(value), "is not a list"))
        if len(value) > MAX_LIST_ENTRIES:
            return self._unwrap(
                field, build_fault_result(ProblemKind.TOO_LONG, str(value), f"has more than {MAX_LIST_ENTRIES} entries")
            )
        objects = self._iter_objects(value, field, "entry")
        return [
            entry for path, item in objects if (entry := _remove_null_fields(self.check_fields(item, check[0], path)))
        ] or None

    def _iter_objects(self, entries: Sequence[Any], path: str, noun: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the path and the object for each object in a list. Report entries that are not objects."""
        for index, item in enumerate(entries):
            if isinstance(item, Mapping):
                yield f"{path}.{index}", item
            else:
                self.report(f"{path}.{index}", ProblemKind.UNREADABLE, f"This {noun} is not an object.")

    def _read_offer(self, offer: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return the data of an offer, with all prices in minor units of one currency. The value None removes a stored value."""
        currency_code = self._unwrap(f"{path}.currency", _check_currency(offer.get("currency")))
        schema: Schema = {
            **dict.fromkeys(PRICES, partial(_check_money, default_currency=currency_code)),
            "quantity": _check_count_from_0,
            "availability": _check_availability,
            "lead_time_days": _check_count_from_0,
            "incoming": [{"quantity": _check_count_from_1, "eta": _check_eta}],
        }
        found = self.check_fields(offer, schema, path, "external_id", "location", "currency")
        for name in PRICES:
            if found.get(name) is None:
                continue
            minor, currency = found[name]
            if found.setdefault("currency", currency) == currency:
                found[name] = minor
            else:
                del found[name]
                detail = (
                    f"The price is in {currency} and was left out, because other prices of the offer are in "
                    f"{found['currency']}. Use one currency for all prices of an offer."
                )
                self.report(f"{path}.{name}", ProblemKind.CONFLICT, detail)
        return found

    def _read_offers(self, value: Any, path: str) -> list[OfferStatement]:
        """Return the offers in a list of a record. If several have the same location, only the first is returned."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.report(path, ProblemKind.UNREADABLE, "Offers must be a list of objects.")
            return []
        if len(value) > MAX_OFFERS:
            detail = f"Offers left out: {len(value) - MAX_OFFERS:,}. A variant has at most {MAX_OFFERS} offers."
            self.report(path, ProblemKind.TOO_LONG, detail)
        out: dict[str, OfferStatement] = {}
        for field, item in self._iter_objects(value[:MAX_OFFERS], path, "offer"):
            location = _check_line_text(item.get("location", "")).value or self.settings.warehouse or "default"
            data: Any = self._read_offer(item, field)
            if location in out:
                self.report(
                    field, ProblemKind.DUPLICATE, f"The variant has two offers at {location}; the first is kept."
                )
            elif data:
                out[location] = OfferStatement(location, data)
        return list(out.values())

    def read_variants(self, value: Any) -> list[VariantStatement]:
        """Return the variants in a list of a record. If several have the same key, only the first is returned."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.report("variants", ProblemKind.UNREADABLE, "Variants must be a list of objects.")
            return []
        found: dict[str, VariantStatement] = {}
        for path, item in self._iter_objects(value, "variants", "variant"):
            key = _check_code(item.get("external_id", item.get("sku", ""))).value
            if key is None:
                self.report(f"{path}.external_id", ProblemKind.MISSING, "A variant needs an external_id.")
            elif key in found:
                detail = f"The record has two variants {key}; the first is kept."
                self.report(f"{path}.external_id", ProblemKind.DUPLICATE, detail)
            else:
                data: Any = self.check_fields(item, _VARIANT, path, "external_id", "offers")
                offers = self._read_offers(item.get("offers"), f"{path}.offers")
                emptied = "offers" in item and item["offers"] is None
                found[key] = VariantStatement(key, data, offers, is_complete=emptied)
        return list(found.values())

    def read_discontinued(self, product: Mapping[str, Any]) -> bool | None:
        """Return whether a product of a record is discontinued, by the field `discontinued`, or else by `status`.

        The result is None if the record has neither field, or if `discontinued` is invalid. If the record has only null
        in these fields, the result is False.
        """
        if product.get("discontinued") is not None:
            is_discontinued: bool | None = self._unwrap("product.discontinued", _check_flag(product["discontinued"]))
            return is_discontinued
        if product.get("status") is not None:
            return str(product["status"]).lower() == "discontinued"
        return False if "discontinued" in product or "status" in product else None

    def remove_excess_entries(self, data: dict[str, Any], variants: list[VariantStatement]) -> None:
        """Remove entries that exceed the limits in domain/kernel/bounds.py, in place, and report one problem for each field."""
        truncation = Truncation()
        truncation.add_trimmed(trim_product(data), "product.", self.line)
        if len(variants) > MAX_IMPORTED_VARIANTS:
            truncation.add_omitted("variants", len(variants) - MAX_IMPORTED_VARIANTS, self.line)
            del variants[MAX_IMPORTED_VARIANTS:]
        for variant in variants:
            truncation.add_trimmed(trim_variant(variant.data), "variants.", self.line)  # type: ignore[arg-type]
        self.problems += [replace(problem, external_id=self.key) for problem in truncation.build_problems()]


def parse_record(
    record: Mapping[str, Any], settings: FeedSettings, line: int | None = None
) -> tuple[ProductStatement | None, list[Problem]]:
    """Check one pushed record and convert it to a ProductStatement, which must then be merged with stored data (RecordMerger).

    Measures are `{value, unit}` and money is `{amount, currency}` in major units; both can also have the format of API responses. An
    invalid value is omitted, so that the stored value stays.

    Args:
        record: The record.
        settings: The settings of the source.
        line: The number of the record in its batch, from 1.

    Returns:
        The statement, or None if the record has no product with a key; and the problems.
    """
    reader = _RecordReader(line, settings)
    product = record.get("product") if isinstance(record, Mapping) else None
    if not isinstance(product, Mapping):
        reader.report(
            "product", ProblemKind.MISSING, "The record has no product. Add the object product with an external_id."
        )
        return None, reader.problems
    key = reader.key = _check_code(product.get("external_id", "")).value
    if key is None:
        reader.report("product.external_id", ProblemKind.MISSING, "A product needs an external_id.")
        return None, reader.problems
    for name in record:
        if name not in ("product", "variants"):
            detail = f"Unknown field {name}. A record has only the fields product and variants."
            reader.report(str(name), ProblemKind.UNREADABLE, detail)
    data: Any = reader.check_fields(product, _PRODUCT, "product", "external_id", "discontinued", "status")
    stated_variants = record.get("variants", [])
    variants = reader.read_variants(stated_variants)
    is_discontinued = reader.read_discontinued(product)
    reader.remove_excess_entries(data, variants)
    # The record states only offers and nothing else about the product.
    parts = [item for item in stated_variants if isinstance(item, Mapping)] if isinstance(stated_variants, list) else []
    has_offers_only = len(product) == 1 and all(item.keys() <= {"external_id", "offers"} for item in parts)
    return ProductStatement(
        key, data, variants, is_discontinued, stated_variants is None, has_offers_only
    ), reader.problems
