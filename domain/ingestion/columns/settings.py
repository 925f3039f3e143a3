"""Settings of columns, such as the unit of a length, and validation of their values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from domain.ingestion.values.quantities import parse_length_unit, parse_weight_unit
from domain.ingestion.vocabulary.fields import MONEY
from domain.kernel.money import EXPONENTS

MAX_SETTING_CHARS = 200
"""Maximum number of characters of a setting's value."""
_DIMENSION_LETTERS = frozenset("whdlbt")
_ORDER = range(2, 4)
_USUAL_ORDERS = "wdh whd dwh dhw hwd hdw lwh lhw wlh bth bht lbh wd dw lw wh".split()
LENGTH_UNITS = ("cm", "mm", "m", "in", "ft")
"""Units of lengths, as forms offer them."""
WEIGHT_UNITS = ("kg", "g", "lb", "oz")
"""Units of weights, as forms offer them."""


@dataclass(frozen=True, slots=True)
class ColumnSetting:
    """Validation of one setting of a column.

    Attributes:
        parse: Returns the normalised value of a setting, or None if the value is invalid.
        valid_values: The valid values in words, for messages.
        choices: The values to offer in a form; empty for free text. `parse` can accept further values.
    """

    parse: Callable[[str], str | None]
    valid_values: str
    choices: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ColumnSettingError:
    """Error in a setting of a column.

    Attributes:
        name: The name of the setting.
        code: The error code of the API.
        detail: The sentence for people.
    """

    name: str
    code: str
    detail: str


def _create_choice(valid_values: str, *words: str) -> ColumnSetting:
    return ColumnSetting(lambda text: text.lower() if text.lower() in words else None, valid_values, words)


def _parse_dimension_order(text: str) -> str | None:
    """Parse an order of dimensions, two or three different letters such as `WDH`, to lower case. Return None for other texts."""
    letters = text.lower()
    fits = len(letters) in _ORDER and len(set(letters)) == len(letters) and _DIMENSION_LETTERS.issuperset(letters)
    return letters if fits else None


_DECIMAL: Final[Mapping[str, ColumnSetting]] = {"decimal": _create_choice("dot, comma or auto", "dot", "comma", "auto")}
_LENGTH: Final[Mapping[str, ColumnSetting]] = {
    "unit": ColumnSetting(parse_length_unit, "in, ft, mm, cm or m", LENGTH_UNITS),
    **_DECIMAL,
}
_WEIGHT: Final[Mapping[str, ColumnSetting]] = {
    "unit": ColumnSetting(parse_weight_unit, "lb, oz, g or kg", WEIGHT_UNITS),
    **_DECIMAL,
}
_SIZE: Final[Mapping[str, ColumnSetting]] = {
    **_LENGTH,
    "order": ColumnSetting(
        _parse_dimension_order,
        "two or three of the letters W, D, H, L, B and T in the order of the dimensions, such as wdh",
        _USUAL_ORDERS,
    ),
}
_LOCATION: Final[Mapping[str, ColumnSetting]] = {
    "location": ColumnSetting(lambda text: text.strip() or None, "the name of a warehouse or another location"),
    "option": ColumnSetting(lambda text: text.strip() or None, "the option of the variants that the column describes"),
    "axis": ColumnSetting(lambda text: text.strip() or None, "the name of the axis to which the option belongs"),
}
_MONEY: Final[Mapping[str, ColumnSetting]] = {
    **_LOCATION,
    "currency": _create_choice("an ISO 4217 currency code, such as usd", *sorted(EXPONENTS)),
    **_DECIMAL,
    "unit": _create_choice("cents, for prices in minor units such as cents or pence", "cents"),
    "price_code": ColumnSetting(lambda text: text.strip() or None, "the name of a price level"),
}
_LEAD_TIME: Final[Mapping[str, ColumnSetting]] = {
    **_LOCATION,
    "unit": _create_choice("days, weeks or hours", "days", "weeks", "hours"),
}
_QUANTITY: Final[Mapping[str, ColumnSetting]] = {**_LOCATION, **_DECIMAL}
_UNIT: Final[Mapping[str, ColumnSetting]] = {
    "applies_to": ColumnSetting(
        lambda text: text.strip() or None, "the header of the only column with values in this unit"
    ),
}
_ARRIVAL: Final[Mapping[str, ColumnSetting]] = {
    **_LOCATION,
    "order": _create_choice("mdy or dmy, the order of day and month in 3/4/2026", "mdy", "dmy"),
}
_FALLBACK: Final[Mapping[str, ColumnSetting]] = {
    "fallback": ColumnSetting(
        lambda text: text if text.isascii() and text.isdecimal() and len(text) < 4 else None,
        "a whole number from 0 to 999; fallback columns are read in this order if the main column of the field is blank",
    ),
}


def _find_settings(field: str) -> Mapping[str, ColumnSetting]:
    if field in MONEY:
        return _MONEY
    if field in ("quantity", "availability"):
        return _QUANTITY
    if field in ("dimension_unit", "weight_unit"):
        return _UNIT
    if field == "lead_time_days":
        return _LEAD_TIME
    if field.startswith("incoming."):
        return _ARRIVAL if field.endswith(".eta") else _LOCATION
    if field == "weight" or field.endswith(".weight"):
        return _WEIGHT
    if field == "dimensions" or (field.startswith("cartons.") and field.endswith(".dimensions")):
        return _SIZE
    if field in ("cartons", "rug.pile_height", "rug.size_text") or (
        field.startswith(("dimensions.", "cartons.")) and not field.endswith(".count")
    ):
        return _LENGTH
    return {}


def find_settings_for_field(field: str) -> Mapping[str, ColumnSetting]:
    """Return the settings that a column with this field can have, by the name of the setting."""
    return {**_find_settings(field), **_FALLBACK}


def validate_settings(
    field: str, requested: Mapping[str, str], current: Mapping[str, str]
) -> tuple[dict[str, str], list[ColumnSettingError]]:
    """Validate the settings of a column, and return the normalised valid settings and the errors in the others.

    Args:
        field: The field of the column.
        requested: The settings to validate.
        current: The current settings of the column; an unchanged value is always valid.
    """
    known = find_settings_for_field(field)
    settings: dict[str, str] = {}
    faults = []
    for name, value in requested.items():
        if current.get(name) == value:
            settings[name] = value
        elif name not in known:
            detail = f"A column of {field} does not accept the setting {name[:MAX_SETTING_CHARS]}. Valid settings: {', '.join(known)}."
            faults.append(ColumnSettingError(name, "unknown_field", detail))
        elif len(value) > MAX_SETTING_CHARS or (read := known[name].parse(value)) is None:
            faults.append(
                ColumnSettingError(name, "invalid_value", f"The setting {name} must be {known[name].valid_values}.")
            )
        else:
            settings[name] = read
    return settings, faults
