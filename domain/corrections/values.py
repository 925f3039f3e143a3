"""Values of corrections: the kinds of fields, and the conversion and validation of what a person enters.

Values are checked like those of pushed records (domain/ingestion/records.py).
"""

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, TypedDict

from domain.catalogue.corrections import FIELDS_BY_LEVEL, get_field, is_correctable
from domain.catalogue.differences import PRICES
from domain.catalogue.model import Availability
from domain.ingestion.model import FeedSettings
from domain.ingestion.records import MAX_MINOR_UNITS, parse_record
from domain.ingestion.values.rugs import CONSTRUCTIONS, SHAPES
from domain.kernel.enums import StoredEnum
from domain.kernel.errors import Unprocessable
from domain.kernel.money import EXPONENTS, to_minor_units

_KEY = "1"
_MEASURE = re.compile(r"(\S+?)\s*([^\W\d_.,][^\d]*|\")", re.DOTALL)
_THOUSANDS = re.compile(r"\d{1,3}([.,])\d{3}")
MAX_PERCENT = Decimal(1000)
_MAX_NUMBER_CHARS = 100
"""Maximum number of characters of a number with its unit; longer texts are refused before they are parsed."""


class FieldKind(StoredEnum):
    """Kinds of values, which determine how a person enters them."""

    TEXT = "text"
    LONG_TEXT = "long_text"
    LIST = "list"
    FLAG = "flag"
    NUMBER = "number"
    COUNT = "count"
    LENGTH = "length"
    WEIGHT = "weight"
    MONEY = "money"
    CATEGORY = "category"
    CHOICE = "choice"


_KINDS: Final[Mapping[str, FieldKind]] = {
    "description": FieldKind.LONG_TEXT,
    **dict.fromkeys(("tags", "features", "materials", "compliance.prop65_chemicals"), FieldKind.LIST),
    **dict.fromkeys(
        ("assembly_required", "white_glove", *(f"compliance.{name}" for name in ("tsca_title_vi", "sturdy_act",
         "ca_tb117_2013", "prop65_warning"))), FieldKind.FLAG,
    ),
    "compliance.stability_rating": FieldKind.NUMBER,
    **dict.fromkeys(("quantity", "lead_time_days"), FieldKind.COUNT),
    **{name: FieldKind.LENGTH for name in FIELDS_BY_LEVEL["variant"] if name.startswith("dimensions.")},
    "rug.pile_height": FieldKind.LENGTH,
    "weight": FieldKind.WEIGHT,
    **dict.fromkeys(PRICES, FieldKind.MONEY),
    "category": FieldKind.CATEGORY,
    **dict.fromkeys(("availability", "rug.shape", "rug.construction", "rug.indoor_outdoor"), FieldKind.CHOICE),
}  # fmt: skip
_NUMBERS = {FieldKind.NUMBER, FieldKind.COUNT, FieldKind.LENGTH, FieldKind.WEIGHT, FieldKind.MONEY}
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "availability": tuple(reversed(Availability)),
    "rug.shape": tuple(sorted(SHAPES)),
    "rug.construction": tuple(sorted(CONSTRUCTIONS)),
    "rug.indoor_outdoor": ("indoor", "outdoor", "indoor_outdoor"),
}
"""The values of the fields of the kind CHOICE."""


class Rounding(StoredEnum):
    """Rounding of computed prices, half up: to the smallest unit of the currency, or to whole units."""

    MINOR = "minor"
    WHOLE = "whole"


class PriceAdjustment(TypedDict, total=False):
    """Change of prices: by `percent`, or by `amount` in minor units of `currency`; both can be negative."""

    percent: str
    amount: int
    currency: str
    rounding: str


def find_kind(field: str) -> FieldKind:
    """Return the kind of a field that can be corrected."""
    return _KINDS.get(field, FieldKind.TEXT)


def require_correctable(level: str, field: str) -> None:
    """Raise Unprocessable if the field of the level cannot be corrected."""
    if not is_correctable(level, field):
        raise Unprocessable.for_field(
            "field", "invalid_value", f"The field {field} cannot be corrected. Select another field."
        )


def read_text(field: str, text: str, currency: str = "") -> Any:
    """Convert what a person has entered for a field to a value for `check_value`.

    Amounts and measures accept a comma or a dot as the decimal mark. Raises Unprocessable for an ambiguous number.

    Args:
        field: The field.
        text: The text.
        currency: The currency of a price.
    """
    text, kind = text.strip(), find_kind(field)
    if kind in _NUMBERS and len(text) > _MAX_NUMBER_CHARS:
        raise Unprocessable.for_field("value", "too_long", f"Use at most {_MAX_NUMBER_CHARS} characters.")
    match kind:
        case FieldKind.LIST:
            return [line for line in (line.strip() for line in text.splitlines()) if line]
        case FieldKind.FLAG:
            return {"true": True, "false": False}.get(text, text)
        case FieldKind.NUMBER | FieldKind.COUNT:
            return _read_number(text)
        case FieldKind.LENGTH | FieldKind.WEIGHT:
            found = _MEASURE.fullmatch(text)
            return (
                {"value": _read_number(found[1]), "unit": found[2]}
                if found
                else {"value": _read_number(text), "unit": ""}
            )
        case FieldKind.MONEY:
            return {"amount": _read_number(text), "currency": currency.strip()}
        case _:
            return text


def _read_number(text: str) -> str:
    """Return a number with a dot as its decimal mark. Raises Unprocessable if a mark can separate decimals or thousands."""
    number = re.sub(r"[\s\u00a0\u202f'’]", "", text)
    if _THOUSANDS.fullmatch(number.lstrip("-")):
        detail = f'"{text[:100]}" is ambiguous. Enter the number without a thousands separator.'
        raise Unprocessable.for_field("value", "invalid_value", detail)
    if "," in number and "." in number:
        decimal = max(",.", key=number.rfind)
        number = number.replace("." if decimal == "," else ",", "")
    return number.replace(",", ".")


def check_value(level: str, field: str, value: Any) -> Any:
    """Return a value as it is stored in the object's data. A price is `{amount, currency}`, in minor units.

    Args:
        level: `product`, `variant` or `offer`.
        field: The field.
        value: The value as in a pushed record, or as in an audit entry.

    Raises:
        Unprocessable: The field cannot be corrected, or the value is invalid or empty.
    """
    require_correctable(level, field)
    data, problems = _parse(level, field, value)
    if problems:
        raise Unprocessable.for_field("value", "invalid_value", problems[0])
    checked = get_field(data, field)
    if checked is None:
        raise Unprocessable.for_field("value", "required", "The value is empty. To remove the value, select Clear.")
    return checked


def _parse(level: str, field: str, value: Any) -> tuple[Mapping[str, Any], list[str]]:
    """Return the data that a pushed record with only this value states, and the details of the record's problems."""
    name, _, part = field.partition(".")
    stated = {name: {part: value} if part else value}
    product: dict[str, Any] = {"external_id": _KEY}
    variant: dict[str, Any] = {"external_id": _KEY}
    if level == "product":
        product |= stated
    elif level == "variant":
        variant |= stated
    else:
        variant["offers"] = [stated]
    statement, problems = parse_record({"product": product, "variants": [variant]}, FeedSettings())
    assert statement is not None, "the record has a key"
    data: Any = statement.data
    if level != "product":
        data = statement.variants[0].data
    if level == "offer":
        data = statement.variants[0].offers[0].data if statement.variants[0].offers else {}
    return data, [problem.detail for problem in problems]


def to_plain_value(value: Any) -> Any:
    """Return a stored value with exact numbers as strings, as in audit entries; `restore_value` reverses this."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {name: to_plain_value(part) for name, part in value.items()}
    return value


def restore_value(level: str, field: str, value: Any) -> Any:
    """Return the stored value that an audit entry records. Raises Unprocessable if it is no longer valid."""
    if find_kind(field) == FieldKind.MONEY and isinstance(value, Mapping):
        exponent = EXPONENTS.get(value["currency"], 0)
        value = {"amount": str(Decimal(value["amount"]).scaleb(-exponent)), "currency": value["currency"]}
    return check_value(level, field, value)


def read_price_change(kind: str, text: str, currency: str, rounding: str) -> PriceAdjustment:
    """Return the change of prices that a person has entered.

    Args:
        kind: `percent` or `amount`.
        text: The percentage or the amount, which can be negative.
        currency: The currency of an amount.
        rounding: A Rounding.

    Raises:
        Unprocessable: The number or the currency is invalid.
    """
    number = _read_number(text.strip().removesuffix("%").removeprefix("+"))
    if not re.fullmatch(r"-?\d{1,12}(\.\d{1,6})?", number) or not Decimal(number):
        detail = "Enter a number other than 0, such as -10 or 2.5."
        raise Unprocessable.for_field("value", "invalid_value", detail)
    common: PriceAdjustment = {"rounding": Rounding.WHOLE if rounding == Rounding.WHOLE else Rounding.MINOR}
    if kind == "percent":
        if not -100 < Decimal(number) <= MAX_PERCENT:
            detail = f"Enter a percentage above -100 and up to {MAX_PERCENT}."
            raise Unprocessable.for_field("value", "out_of_range", detail)
        return {"percent": number, **common}
    if currency not in EXPONENTS:
        raise Unprocessable.for_field("currency", "invalid_value", "Enter an ISO 4217 currency code, such as EUR.")
    return {"amount": to_minor_units(Decimal(number), currency), "currency": currency, **common}


def compute_price(price: Mapping[str, Any], change: PriceAdjustment) -> dict[str, Any]:
    """Return a changed price. Raises Unprocessable if the currencies differ, or the price would be zero, negative or too high.

    Args:
        price: The price, `{amount, currency}` in minor units.
        change: The change.
    """
    currency = price["currency"]
    if "percent" in change:
        exact = Decimal(price["amount"]) * (100 + Decimal(change["percent"])) / 100
    elif change["currency"] != currency:
        detail = f"The price is in {currency.upper()}, and the change in {change['currency'].upper()}."
        raise Unprocessable.for_field("currency", "invalid_value", detail)
    else:
        exact = Decimal(price["amount"] + change["amount"])
    unit = Decimal(1).scaleb(EXPONENTS[currency]) if change["rounding"] == Rounding.WHOLE else Decimal(1)
    amount = int((exact / unit).quantize(Decimal(1), rounding=ROUND_HALF_UP) * unit)
    if amount <= 0:
        raise Unprocessable.for_field("value", "out_of_range", "The price would not be above zero.")
    if amount > MAX_MINOR_UNITS:
        raise Unprocessable.for_field("value", "out_of_range", "The price would be too high.")
    return {"amount": amount, "currency": currency}
