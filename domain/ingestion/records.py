"""Statements from pushed records: `{product, variants}` in the shape of catalogue data.

Values are typed, so they are checked, not parsed. A schema has a check for each member: a function, a nested schema for
an object, or a list of one schema for a list of objects.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, Final

from domain.catalogue import categories
from domain.catalogue.differences import PRICES
from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement
from domain.catalogue.trimming import trim_product, trim_variant
from domain.ingestion.drafts import LeftOut
from domain.ingestion.model import FeedSettings
from domain.ingestion.values.dates import parse_date
from domain.ingestion.values.media import ROLES, addresses, role_of
from domain.ingestion.values.quantities import (
    INCHES,
    MAX_HUNDREDTHS,
    MAX_WEIGHT,
    POUNDS,
    hundredths,
    measured,
    unit_named,
    weight_unit_named,
)
from domain.ingestion.values.rugs import CONSTRUCTIONS, SHAPES
from domain.ingestion.values.stock import word_meaning
from domain.ingestion.values.text import (
    MAX_TEXT,
    MAX_TITLE,
    NOTHING,
    Fault,
    Parsed,
    code,
    overlong,
    plain,
    refused,
    stated,
    unreadable,
)
from domain.ingestion.values.words import parse_country, parse_freight_class, parse_gtin
from domain.ingestion.vocabulary.fields import CARTON_PARTS, COMPLIANCE, DIMENSION_PARTS
from domain.kernel.bounds import ITEM_CHARS, ITEMS, OFFERS, VARIANTS
from domain.kernel.money import EXPONENTS, minor_units
from domain.kernel.problems import Problem, ProblemKind

Check = Callable[[Any], Parsed[Any]]
Schema = Mapping[str, "Check | Mapping[str, Any] | list[Any]"]
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,18})?")
_MOST = 2_000_000_000
_MOST_MINOR = 10**17
_MONEY = 'an exact number with its currency, such as {"amount": 49.5, "currency": "usd"}'


def _line(value: Any) -> Parsed[str]:
    """Check a one-line text."""
    if not isinstance(value, str):
        return unreadable(str(value), "is not a text")
    found = stated(value)
    return overlong(found, MAX_TITLE) if found is not None and len(found) > MAX_TITLE else Parsed(found)


def _body(value: Any) -> Parsed[str]:
    """Check a text of several lines."""
    if not isinstance(value, str):
        return unreadable(str(value), "is not a text")
    found = plain(value)
    return overlong(found, MAX_TEXT) if len(found) > MAX_TEXT else Parsed(found or None)


def _code(value: Any) -> Parsed[str]:
    """Check a code: a text or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > MAX_TITLE:
        return unreadable(str(value), "is not a code")
    return Parsed(code(value))


def _lines(value: Any) -> Parsed[list[str]]:
    """Check a list of one-line texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return unreadable(str(value), "is not a list of texts")
    if len(value) > ITEMS:
        return refused(ProblemKind.TOO_LONG, str(value), f"has more than {ITEMS} entries")
    found = [kept for item in value if (kept := stated(item))]
    fitting = [item for item in found if len(item) <= ITEM_CHARS]
    detail = f"{len(found) - len(fitting)} of the texts are longer than {ITEM_CHARS} characters."
    return Parsed(fitting or None, (Fault(ProblemKind.TOO_LONG, detail),) if len(fitting) < len(found) else ())


def _category(value: Any) -> Parsed[str]:
    """Check the ID of a category of the taxonomy."""
    known = isinstance(value, str) and value in categories.everything()
    return Parsed(value) if known else unreadable(str(value), "is not a category of the taxonomy")


def _flag(value: Any) -> Parsed[bool]:
    return Parsed(value) if isinstance(value, bool) else unreadable(str(value), "is neither true nor false")


def _number(value: Any) -> Decimal | None:
    """Return the exact value of a JSON number or a numeric text, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    text = repr(value) if isinstance(value, float) else str(value).strip()
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _plain_number(value: Any) -> Parsed[Decimal]:
    found = _number(value)
    return unreadable(str(value), "is not a number") if found is None else Parsed(found)


def _member(value: Any, name: str) -> str:
    """Return the text to quote in a problem: the member if there is one, else the whole value."""
    return str(value[name] if isinstance(value, Mapping) and name in value else value)


def _measure(value: Any, *, weighs: bool) -> Parsed[Any]:
    """Check a length or weight `{value, unit}`, or one in the API's own form. Problems: unreadable, unknown_unit, out_of_range."""
    answered = isinstance(value, Mapping) and value.get("given") is not None
    given = value["given"] if answered else value
    if not isinstance(given, Mapping) or (amount := _number(given.get("value"))) is None:
        example = '{"value": 12.5, "unit": "kg"}' if weighs else '{"value": 95, "unit": "cm"}'
        return unreadable(_member(given, "value"), f"is not a measure; send a number with its unit, such as {example}")
    named = str(given.get("unit", ""))
    unit = weight_unit_named(named) if weighs else unit_named(named)
    if unit is None:
        known = ", ".join(POUNDS if weighs else INCHES)
        return refused(ProblemKind.UNKNOWN_UNIT, named, f"is not a known unit ({known})")
    if amount <= 0:
        return refused(ProblemKind.OUT_OF_RANGE, str(amount), "is below zero") if amount else NOTHING
    if 0 < hundredths(amount, unit) <= (MAX_WEIGHT if weighs else MAX_HUNDREDTHS):
        return Parsed(measured(amount, unit))
    return refused(ProblemKind.OUT_OF_RANGE, str(amount), "is implausibly small or large")


_length = partial(_measure, weighs=False)
_weight = partial(_measure, weighs=True)


def _currency(value: Any) -> Parsed[str]:
    """Check a currency code in any case; null is nothing."""
    if value is None:
        return NOTHING
    found = value.strip().lower() if isinstance(value, str) else ""
    if found in EXPONENTS:
        return Parsed(found)
    return refused(ProblemKind.UNKNOWN_CURRENCY, str(value), "is not an ISO 4217 currency code")


def _money(value: Any, *, default_currency: str | None) -> Parsed[tuple[int, str]]:
    """Check money: `{amount, currency}`, or a whole number of minor units if the offer has a currency.

    The value is minor units and currency. Problems: unreadable, unknown_currency, out_of_range.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if default_currency is None:
            detail = f"is in minor units without a currency; send {_MONEY}"
            return refused(ProblemKind.UNKNOWN_CURRENCY, str(value), detail)
        if not 0 <= value <= _MOST_MINOR:
            return refused(ProblemKind.OUT_OF_RANGE, str(value), "is below zero or implausibly large")
        return Parsed((value, default_currency)) if value else NOTHING
    if not isinstance(value, Mapping) or (amount := _number(value.get("amount"))) is None:
        return unreadable(_member(value, "amount"), f"is not an amount of money; send {_MONEY}")
    found = _currency(value.get("currency", ""))
    if found.value is None:
        return Parsed(None, found.faults or unreadable(str(value), f"is not an amount of money; send {_MONEY}").faults)
    if amount < 0:
        return refused(ProblemKind.OUT_OF_RANGE, str(amount), "is below zero")
    return Parsed((minor_units(amount, found.value), found.value)) if amount else NOTHING


def _count(value: Any, *, least: int) -> Parsed[int]:
    """Check a whole number of at least `least`."""
    found = _number(value)
    if found is None or found != found.to_integral_value():
        return unreadable(str(value), "is not a whole number; send a number such as 12")
    if not least <= found <= _MOST:
        return refused(ProblemKind.OUT_OF_RANGE, str(value), f"is not between {least} and {_MOST:,}")
    return Parsed(int(found))


_from_0 = partial(_count, least=0)
_from_1 = partial(_count, least=1)


def _one_of(*values: str) -> Check:
    """Return a check of an enumerated value."""

    def check(value: Any) -> Parsed[str]:
        found = str(value).strip().lower().replace(" ", "_").replace("-", "_")
        return Parsed(found) if found in values else unreadable(str(value), "is not a value of this field")

    return check


def _availability(value: Any) -> Parsed[str]:
    """Check an availability by its name or a vendor's word."""
    meaning = word_meaning(str(value)) if isinstance(value, str) else None
    return Parsed(meaning.availability) if meaning else unreadable(str(value), "is not a known availability")


def _eta(value: Any) -> Parsed[str]:
    return parse_date(value) if isinstance(value, str) else unreadable(str(value), "is not a date")


def _gtin(value: Any) -> Parsed[str]:
    """Check a GTIN as text or as a whole number."""
    is_one = isinstance(value, str | int) and not isinstance(value, bool)
    return parse_gtin(str(value)) if is_one else unreadable(str(value), "is not a GTIN")


def _axes(value: Any) -> Parsed[dict[str, str | None]]:
    """Check an object of axes and values; a value of None removes the axis."""
    is_map = isinstance(value, Mapping)
    texts: list[Any] = [text for pair in value.items() for text in pair if text is not None] if is_map else []
    if not is_map or not all(isinstance(text, str) for text in texts):
        return unreadable(str(value), "is not an object of texts")
    if len(value) > ITEMS or any(len(text) > MAX_TITLE for text in texts):
        detail = f"The map has more than {ITEMS} entries, or a text longer than {MAX_TITLE} characters."
        return Parsed(None, (Fault(ProblemKind.TOO_LONG, detail),))
    return Parsed({name: stated(item or "") for name, item in value.items() if name.strip()})


def _media(value: Any, base: str | None = None) -> Parsed[list[dict[str, Any]]]:
    """Check pictures: addresses, file names below `base`, or objects with url, role, alt and position.

    Faults state what is left out.
    """
    if not isinstance(value, list):
        return unreadable(str(value), "is not a list of media")
    out: list[dict[str, Any]] = []
    faults: list[Fault] = []
    if len(value) > ITEMS:
        faults.append(Fault(ProblemKind.TOO_LONG, f"The list has {len(value)} media; the first {ITEMS} are kept."))
    for place, item in enumerate(value[:ITEMS], start=1):
        entry = item if isinstance(item, Mapping) else {"url": item}
        found = addresses(str(entry.get("url", "")), base)
        faults.extend(found.faults)
        if not found.value:
            continue
        url, role = found.value[0], entry.get("role")
        position = _from_1(entry.get("position", place)).value or place
        picture = {"url": url, "role": role if role in ROLES else role_of(url, not out), "position": position}
        alt = stated(entry["alt"]) if isinstance(entry.get("alt"), str) else None
        if alt and len(alt) <= ITEM_CHARS:
            picture["alt"] = alt
        elif alt:
            faults.append(Fault(ProblemKind.TOO_LONG, f"A picture's alt is longer than {ITEM_CHARS} characters."))
        out.append(picture)
    return Parsed(out or None, tuple(faults))


_PRODUCT: Final[Schema] = {
    **dict.fromkeys(("title", "brand", "collection", "gpc_brick"), _line),
    **dict.fromkeys(("category_path", "tags", "features"), _lines),
    "description": _body,
    "category": _category,
    "compliance": {
        **dict.fromkeys(COMPLIANCE, _flag),
        "stability_rating": _plain_number,
        "prop65_chemicals": _lines,
        "country_of_origin": lambda value: parse_country(str(value)),
    },
    "media": _media,
}
_DIMENSIONS: Final[Schema] = dict.fromkeys(DIMENSION_PARTS - {"length"}, _length)
_VARIANT: Final[Schema] = {
    **dict.fromkeys(("sku", "mpn", "replacement_sku"), _code),
    **dict.fromkeys(("title", "colour", "finish"), _line),
    **dict.fromkeys(("assembly_required", "white_glove", "discontinued"), _flag),
    "gtin": _gtin,
    "axes": _axes,
    "materials": _lines,
    "dimensions": _DIMENSIONS,
    "weight": _weight,
    "components": [{"name": _line, "sku": _code, "quantity": _from_1, "dimensions": _DIMENSIONS, "weight": _weight}],
    "cartons": [{**dict.fromkeys(CARTON_PARTS - {"dimensions"}, _length), "weight": _weight, "count": _from_1}],
    "freight_class": lambda value: parse_freight_class(str(value)),
    "rug": {
        "shape": _one_of(*SHAPES),
        "construction": _one_of(*CONSTRUCTIONS),
        "indoor_outdoor": _one_of("indoor", "outdoor", "indoor_outdoor"),
        "size_text": _line,
        "nominal": _line,
        "pile_height": _length,
    },
    "media": _media,
}


def _without_gaps(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of a list without null members, since a list is replaced as a whole."""
    whole = {name: _without_gaps(value) if isinstance(value, dict) else value for name, value in entry.items()}
    return {name: value for name, value in whole.items() if value is not None and value != {}}


class _Reader:
    """Reads one record and collects its problems."""

    def __init__(self, line: int | None, settings: FeedSettings) -> None:
        self.line = line
        self.settings = settings
        self.key: str | None = None
        self.problems: list[Problem] = []

    def report(self, field: str, problem: ProblemKind, detail: str) -> None:
        """Note a problem of the record."""
        self.problems.append(Problem(field, problem, detail, self.line, external_id=self.key))

    def _take(self, field: str, parsed: Parsed[Any]) -> Any:
        """Return the checked value and report its faults."""
        for fault in parsed.faults:
            self.report(field, fault.problem, fault.detail)
        return parsed.value

    def members(self, value: Mapping[str, Any], schema: Schema, path: str, *known: str) -> dict[str, Any]:
        """Return the members of an object that pass their checks; report the others and unknown members."""
        out: dict[str, Any] = {}
        for name, item in value.items():
            field, problem_count = f"{path}.{name}", len(self.problems)
            if name in known:
                continue
            if name not in schema:
                self.report(field, ProblemKind.UNREADABLE, f"{name} is not a field of a record at this place.")
                continue
            found = None if item is None else self._checked(item, schema[name], field)
            if found is not None or len(self.problems) == problem_count:
                out[name] = found  # an empty value counts as null
        return out

    def _checked(self, value: Any, check: Any, field: str) -> Any:
        """Return the value if it passes a check, the schema of an object or that of a list of objects."""
        if isinstance(check, dict):
            if not isinstance(value, Mapping):
                return self._take(field, unreadable(str(value), "is not an object"))
            found = self.members(value, check, field)
            return found if found or not value else None
        if not isinstance(check, list):
            return self._take(field, _media(value, self.settings.media_base_url) if check is _media else check(value))
        if not isinstance(value, list):
            return self._take(field, unreadable(str(value), "is not a list"))
        if len(value) > ITEMS:
            return self._take(field, refused(ProblemKind.TOO_LONG, str(value), f"has more than {ITEMS} entries"))
        objects = self._objects(value, field, "entry")
        return [entry for path, item in objects if (entry := _without_gaps(self.members(item, check[0], path)))] or None

    def _objects(self, given: Sequence[Any], path: str, noun: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the objects of a list, each with its path; report its other entries."""
        for place, item in enumerate(given):
            if isinstance(item, Mapping):
                yield f"{path}.{place}", item
            else:
                self.report(f"{path}.{place}", ProblemKind.UNREADABLE, f"This {noun} is not an object.")

    def _offer(self, given: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return an offer's facts, with prices in minor units of its one currency and None for removed facts."""
        currency_code = self._take(f"{path}.currency", _currency(given.get("currency")))
        schema: Schema = {
            **dict.fromkeys(PRICES, partial(_money, default_currency=currency_code)),
            "quantity": _from_0,
            "availability": _availability,
            "lead_time_days": _from_0,
            "incoming": [{"quantity": _from_1, "eta": _eta}],
        }
        found = self.members(given, schema, path, "external_id", "location", "currency")
        for name in PRICES:
            if found.get(name) is None:
                continue
            minor, currency = found[name]
            if found.setdefault("currency", currency) == currency:
                found[name] = minor
            else:
                del found[name]
                detail = f"Prices of an offer must share one currency; {currency} is not {found['currency']}."
                self.report(f"{path}.{name}", ProblemKind.CONFLICT, detail)
        return found

    def _offers(self, given: Any, path: str) -> list[OfferStatement]:
        if given is None:
            return []
        if not isinstance(given, list):
            self.report(path, ProblemKind.UNREADABLE, "Offers must be a list of objects.")
            return []
        if len(given) > OFFERS:
            reason = f"{len(given) - OFFERS:,} offers were left out; a variant has at most {OFFERS}."
            self.report(path, ProblemKind.TOO_LONG, f"Too much for one product: {reason}")
        out: dict[str, OfferStatement] = {}
        for field, item in self._objects(given[:OFFERS], path, "offer"):
            location = _line(item.get("location", "")).value or self.settings.warehouse or "default"
            data: Any = self._offer(item, field)
            if location in out:
                self.report(
                    field, ProblemKind.DUPLICATE, f"The variant has two offers at {location}; the first is kept."
                )
            elif data:
                out[location] = OfferStatement(location, data)
        return list(out.values())

    def variants(self, given: Any) -> list[VariantStatement]:
        """Return the variants of a record, each key once."""
        if given is None:
            return []
        if not isinstance(given, list):
            self.report("variants", ProblemKind.UNREADABLE, "Variants must be a list of objects.")
            return []
        found: dict[str, VariantStatement] = {}
        for path, item in self._objects(given, "variants", "variant"):
            key = _code(item.get("external_id", item.get("sku", ""))).value
            if key is None:
                self.report(f"{path}.external_id", ProblemKind.MISSING, "A variant needs an external_id.")
            elif key in found:
                detail = f"The record has two variants {key}; the first is kept."
                self.report(f"{path}.external_id", ProblemKind.DUPLICATE, detail)
            else:
                data: Any = self.members(item, _VARIANT, path, "external_id", "offers")
                offers = self._offers(item.get("offers"), f"{path}.offers")
                emptied = "offers" in item and item["offers"] is None
                found[key] = VariantStatement(key, data, offers, restated=emptied)
        return list(found.values())

    def discontinued(self, product: Mapping[str, Any]) -> bool | None:
        """Return whether the product states that it is discontinued; None without a statement, False for null."""
        if product.get("discontinued") is not None:
            is_discontinued: bool | None = self._take("product.discontinued", _flag(product["discontinued"]))
            return is_discontinued
        if product.get("status") is not None:
            return str(product["status"]).lower() == "discontinued"
        return False if "discontinued" in product or "status" in product else None

    def trim(self, data: dict[str, Any], variants: list[VariantStatement]) -> None:
        """Remove values beyond a product's limits (domain/kernel/bounds.py), with one problem for each field."""
        left_out = LeftOut()
        left_out.add_all(trim_product(data), "product.", self.line)
        if len(variants) > VARIANTS:
            left_out.add("variants", len(variants) - VARIANTS, self.line)
            del variants[VARIANTS:]
        for variant in variants:
            left_out.add_all(trim_variant(variant.data), "variants.", self.line)  # type: ignore[arg-type]
        self.problems += [replace(problem, external_id=self.key) for problem in left_out.problems()]


def from_record(
    record: Mapping[str, Any], settings: FeedSettings, line: int | None = None
) -> tuple[ProductStatement | None, list[Problem]]:
    """Return the statement of one pushed record, to be merged (domain/ingestion/merging.py), and its problems.

    Measures are `{value, unit}`, money `{amount, currency}` in major units; both can also have the form of the API. An invalid
    value is left out and the stored value stays.

    Args:
        record: The record.
        settings: The settings of the source.
        line: The record's place in its batch, from 1.

    Returns:
        The statement, or None if the record has no usable product, and the problems.

    """
    reader = _Reader(line, settings)
    product = record.get("product") if isinstance(record, Mapping) else None
    if not isinstance(product, Mapping):
        reader.report("product", ProblemKind.MISSING, "A record needs a product.")
        return None, reader.problems
    key = reader.key = _code(product.get("external_id", "")).value
    if key is None:
        reader.report("product.external_id", ProblemKind.MISSING, "A product needs an external_id.")
        return None, reader.problems
    for name in record:
        if name not in ("product", "variants"):
            reader.report(str(name), ProblemKind.UNREADABLE, f"{name} is not a member of a record.")
    data: Any = reader.members(product, _PRODUCT, "product", "external_id", "discontinued", "status")
    given = record.get("variants", [])
    variants = reader.variants(given)
    is_discontinued = reader.discontinued(product)
    reader.trim(data, variants)
    # The record states only offers and nothing else about the product.
    parts = [item for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []
    alone = len(product) == 1 and all(item.keys() <= {"external_id", "offers"} for item in parts)
    return ProductStatement(key, data, variants, is_discontinued, given is None, alone), reader.problems
