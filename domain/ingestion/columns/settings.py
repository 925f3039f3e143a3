"""Settings that a column can have, by its field."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from domain.ingestion.values.quantities import unit_named, weight_unit_named
from domain.ingestion.vocabulary.fields import MONEY
from domain.kernel.money import EXPONENTS

LONGEST = 200
"""Maximum number of characters of a setting's value."""
_SIDES = frozenset("whdlbt")
_ORDER = range(2, 4)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: `read` returns the normalised value or None if it is invalid; `allowed` describes valid values."""

    read: Callable[[str], str | None]
    allowed: str


@dataclass(frozen=True, slots=True)
class SettingFault:
    """Invalid setting: its name, the error code and the detail."""

    name: str
    code: str
    detail: str


def _one_of(*words: str) -> Callable[[str], str | None]:
    return lambda text: text.lower() if text.lower() in words else None


def _sides(text: str) -> str | None:
    """Return the letters of two or three different sides in lower case, or None."""
    letters = text.lower()
    fits = len(letters) in _ORDER and len(set(letters)) == len(letters) and _SIDES.issuperset(letters)
    return letters if fits else None


_MARK: Final[Mapping[str, Setting]] = {"decimal": Setting(_one_of("dot", "comma", "auto"), "dot, comma or auto")}
_LENGTH: Final[Mapping[str, Setting]] = {"unit": Setting(unit_named, "in, ft, mm, cm or m"), **_MARK}
_WEIGHT: Final[Mapping[str, Setting]] = {"unit": Setting(weight_unit_named, "lb, oz, g or kg"), **_MARK}
_SIZE: Final[Mapping[str, Setting]] = {
    **_LENGTH,
    "order": Setting(_sides, "two or three of the letters W, D, H, L, B and T in the order of the sides, such as wdh"),
}
_LOCATION: Final[Mapping[str, Setting]] = {
    "location": Setting(lambda text: text.strip() or None, "the name of a warehouse or another location")
}
_MONEY: Final[Mapping[str, Setting]] = {
    **_LOCATION,
    "currency": Setting(_one_of(*EXPONENTS), "an ISO 4217 currency code, such as usd"),
    **_MARK,
    "price_code": Setting(lambda text: text.strip() or None, "the name of a price level"),
}
_LEAD: Final[Mapping[str, Setting]] = {
    **_LOCATION,
    "unit": Setting(_one_of("days", "weeks", "hours"), "days, weeks or hours"),
}
_ARRIVAL: Final[Mapping[str, Setting]] = {
    **_LOCATION,
    "order": Setting(_one_of("mdy", "dmy"), "mdy or dmy, the order of day and month in 3/4/2026"),
}
_FALLBACK: Final[Mapping[str, Setting]] = {
    "fallback": Setting(
        lambda text: text if text.isascii() and text.isdecimal() and len(text) < 4 else None,
        "a whole number: 1 for the column that is read first where another column of its field is blank",
    ),
}


def _settings_of(field: str) -> Mapping[str, Setting]:
    if field in MONEY:
        return _MONEY
    if field in ("quantity", "availability"):
        return _LOCATION
    if field == "lead_time_days":
        return _LEAD
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


def understood(field: str) -> Mapping[str, Setting]:
    """Return the settings that a column of the field can have, by name."""
    return {**_settings_of(field), **_FALLBACK}


def read_settings(
    field: str, given: Mapping[str, str], before: Mapping[str, str]
) -> tuple[dict[str, str], list[SettingFault]]:
    """Return the normalised settings and the faults of invalid ones.

    A setting that the column already has (`before`) is accepted unchanged.
    """
    known = understood(field)
    settings: dict[str, str] = {}
    faults = []
    for name, value in given.items():
        if before.get(name) == value:
            settings[name] = value
        elif name not in known:
            detail = f"A column of {field} has no setting {name[:LONGEST]}. Valid settings: {', '.join(known)}."
            faults.append(SettingFault(name, "unknown_field", detail))
        elif len(value) > LONGEST or (read := known[name].read(value)) is None:
            faults.append(SettingFault(name, "invalid_value", f"The setting {name} must be {known[name].allowed}."))
        else:
            settings[name] = read
    return settings, faults
