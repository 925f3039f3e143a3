"""Which settings a column may have, by its field: what the readers of columns understand, and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from domain.ingestion.values.quantities import unit_named, weight_unit_named
from domain.ingestion.vocabulary.fields import MONEY
from domain.kernel.money import EXPONENTS

LONGEST = 200
"""Characters of a setting's value."""
_SIDES = frozenset("whdlbt")
_ORDER = range(2, 4)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: `read` answers its value as readers take it, None for a bad one; `allowed` says what is good."""

    read: Callable[[str], str | None]
    allowed: str


@dataclass(frozen=True, slots=True)
class SettingFault:
    """A bad setting: its name, the code of an error's field, and a sentence."""

    name: str
    code: str
    detail: str


def _one_of(*words: str) -> Callable[[str], str | None]:
    return lambda text: text.lower() if text.lower() in words else None


def _sides(text: str) -> str | None:
    """Two or three sides by their letters, each once."""
    letters = text.lower()
    fits = len(letters) in _ORDER and len(set(letters)) == len(letters) and _SIDES.issuperset(letters)
    return letters if fits else None


_MARK: Final[Mapping[str, Setting]] = {"decimal": Setting(_one_of("dot", "comma", "auto"), "dot, comma or auto")}
_LENGTH: Final[Mapping[str, Setting]] = {"unit": Setting(unit_named, "in, ft, mm, cm or m"), **_MARK}
_WEIGHT: Final[Mapping[str, Setting]] = {"unit": Setting(weight_unit_named, "lb, oz, g or kg"), **_MARK}
_SIZE: Final[Mapping[str, Setting]] = {
    **_LENGTH,
    "order": Setting(_sides, "the letters of two or three sides in their order, of W, D, H, L, B and T: wdh"),
}
_PLACE: Final[Mapping[str, Setting]] = {
    "location": Setting(lambda text: text.strip() or None, "the name of a warehouse or of another place")
}
_MONEY: Final[Mapping[str, Setting]] = {
    **_PLACE,
    "currency": Setting(_one_of(*EXPONENTS), "a currency's ISO 4217 code: usd"),
    **_MARK,
    "price_code": Setting(lambda text: text.strip() or None, "the name of a price level"),
}
_LEAD: Final[Mapping[str, Setting]] = {
    **_PLACE,
    "unit": Setting(_one_of("days", "weeks", "hours"), "days, weeks or hours"),
}
_ARRIVAL: Final[Mapping[str, Setting]] = {
    **_PLACE,
    "order": Setting(_one_of("mdy", "dmy"), "mdy or dmy, by where the day stands in 3/4/2026"),
}
_TURN: Final[Mapping[str, Setting]] = {
    "fallback": Setting(
        lambda text: text if text.isascii() and text.isdecimal() and len(text) < 4 else None,
        "a whole number: 1 for the column that stands in first where another one of its field is blank",
    ),
}


def _own(field: str) -> Mapping[str, Setting]:
    if field in MONEY:
        return _MONEY
    if field in ("quantity", "availability"):
        return _PLACE
    if field == "lead_time_days":
        return _LEAD
    if field.startswith("incoming."):
        return _ARRIVAL if field.endswith(".eta") else _PLACE
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
    """The settings that columns of the field may have, by name."""
    return {**_own(field), **_TURN}


def read_settings(
    field: str, given: Mapping[str, str], before: Mapping[str, str]
) -> tuple[dict[str, str], list[SettingFault]]:
    """Settings as the readers of the field take them, and what is wrong with others.

    What the column has already (`before`) may be given back as it is, whatever it rests on.
    """
    known = understood(field)
    settings: dict[str, str] = {}
    faults = []
    for name, value in given.items():
        if before.get(name) == value:
            settings[name] = value
        elif name not in known:
            detail = f"A column of {field} has no setting {name[:LONGEST]}; it may have: {', '.join(known)}."
            faults.append(SettingFault(name, "unknown_field", detail))
        elif len(value) > LONGEST or (read := known[name].read(value)) is None:
            faults.append(SettingFault(name, "invalid_value", f"The setting {name} is {known[name].allowed}."))
        else:
            settings[name] = read
    return settings, faults
