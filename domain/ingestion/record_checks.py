"""Values of pushed records: already typed, so checked rather than parsed."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from domain.catalogue import categories
from domain.ingestion.values import quantities
from domain.ingestion.values.countries import parse_country
from domain.ingestion.values.dates import parse_date
from domain.ingestion.values.gtin import parse_gtin
from domain.ingestion.values.media import ROLES, addresses, role_of
from domain.ingestion.values.parsed import NOTHING, Fault, Parsed, refused, unreadable
from domain.ingestion.values.stock import word_meaning
from domain.ingestion.values.text import MAX_TEXT, MAX_TITLE, code, plain, stated
from domain.ingestion.values.words import parse_freight_class
from domain.ingestion.vocabulary.fields import COMPLIANCE
from domain.kernel.bounds import ITEM_CHARS, ITEMS
from domain.kernel.money import EXPONENTS, minor_units
from domain.kernel.problems import ProblemKind

Check = Callable[[Any], Parsed[Any]]
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,18})?")
_MOST: Final = 2_000_000_000
_MOST_MINOR: Final = 10**17
_MONEY: Final = 'an exact number with its currency, such as {"amount": 49.5, "currency": "usd"}'
_NO_CURRENCY: Final = "is no currency code of ISO 4217"


def line(value: Any) -> Parsed[str]:
    """A one-line text."""
    if not isinstance(value, str):
        return unreadable(str(value), "is no text")
    found = stated(value)
    if found is not None and len(found) > MAX_TITLE:
        return refused(ProblemKind.TOO_LONG, found, f"is longer than {MAX_TITLE} characters")
    return Parsed(found)


def body(value: Any) -> Parsed[str]:
    """A text of several lines."""
    if not isinstance(value, str):
        return unreadable(str(value), "is no text")
    found = plain(value)
    return (
        Parsed(found or None)
        if len(found) <= MAX_TEXT
        else refused(ProblemKind.TOO_LONG, found, f"is longer than {MAX_TEXT} characters")
    )


def code_text(value: Any) -> Parsed[str]:
    """A code: a text, or a whole number standing for one."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return (
        Parsed(code(value))
        if isinstance(value, str) and len(value) <= MAX_TITLE
        else unreadable(str(value), "is no code")
    )


def lines(value: Any) -> Parsed[list[str]]:
    """A list of one-line texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return unreadable(str(value), "is no list of texts")
    if len(value) > ITEMS:
        return refused(ProblemKind.TOO_LONG, str(value), f"has more than {ITEMS} entries")
    found = [kept for item in value if (kept := stated(item))]
    fitting = [item for item in found if len(item) <= ITEM_CHARS]
    if len(fitting) < len(found):
        detail = f"{len(found) - len(fitting)} of the texts are longer than {ITEM_CHARS} characters."
        return Parsed(fitting or None, (Fault(ProblemKind.TOO_LONG, detail),))
    return Parsed(found or None)


def category(value: Any) -> Parsed[str]:
    """The id of a category of the taxonomy."""
    known = isinstance(value, str) and value in categories.everything()
    return Parsed(value) if known else unreadable(str(value), "is no category of the taxonomy")


def flag(value: Any) -> Parsed[bool]:
    """True or false."""
    return Parsed(value) if isinstance(value, bool) else unreadable(str(value), "is neither true nor false")


def number(value: Any) -> Decimal | None:
    """An exact number from a JSON number or its text, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    text = repr(value) if isinstance(value, float) else str(value).strip()
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def length(value: Any) -> Parsed[Any]:
    """A length `{value, unit}`, or as it is answered. Problems: unreadable, unknown_unit, out_of_range."""
    return _measured(value, quantities.unit_named, quantities.length, quantities.MAX_HUNDREDTHS, "hundredths_in")


def weight(value: Any) -> Parsed[Any]:
    """A weight `{value, unit}`, or as it is answered. Problems: unreadable, unknown_unit, out_of_range."""
    return _measured(value, quantities.weight_unit_named, quantities.weight, quantities.MAX_WEIGHT, "hundredths_lb")


def _measured(
    value: Any, named: Callable[[str], str | None], made: Callable[[Decimal, str], Any], most: int, key: str
) -> Parsed[Any]:
    answered = isinstance(value, Mapping) and value.get("given") is not None
    given = value["given"] if answered else value
    if not isinstance(given, Mapping) or (amount := number(given.get("value"))) is None:
        example = '{"value": 95, "unit": "cm"}' if key == "hundredths_in" else '{"value": 12.5, "unit": "kg"}'
        return unreadable(_shown(given, "value"), f"is no measure; send a number with its unit, such as {example}")
    unit = named(str(given.get("unit", "")))
    if unit is None:
        known = "in, ft, mm, cm, m" if key == "hundredths_in" else "lb, oz, g, kg"
        return refused(ProblemKind.UNKNOWN_UNIT, str(given.get("unit", "")), f"is no unit that is known ({known})")
    if amount < 0:
        return refused(ProblemKind.OUT_OF_RANGE, str(amount), "is below zero")
    if amount == 0:
        return NOTHING
    found = made(amount, unit)
    return (
        Parsed(found)
        if 0 < found[key] <= most
        else refused(ProblemKind.OUT_OF_RANGE, str(amount), "is out of all proportion")
    )


def _shown(value: Any, name: str) -> str:
    """What a sentence quotes: the member that is no number, or the whole."""
    return str(value[name] if isinstance(value, Mapping) and name in value else value)


def currency(value: Any) -> Parsed[str]:
    """A currency's code, in whatever case; nothing for null."""
    if value is None:
        return NOTHING
    found = value.strip().lower() if isinstance(value, str) else ""
    return Parsed(found) if found in EXPONENTS else refused(ProblemKind.UNKNOWN_CURRENCY, str(value), _NO_CURRENCY)


def money(beside: str | None) -> Check:
    """A check for money: `{amount, currency}`, or minor units as a whole number where a currency stands beside it.

    It gives minor units and currency. Problems: unreadable, unknown_currency, out_of_range.
    """

    def check(value: Any) -> Parsed[tuple[int, str]]:
        if isinstance(value, int) and not isinstance(value, bool):
            return _in_minor_units(value, beside)
        if not isinstance(value, Mapping) or (amount := number(value.get("amount"))) is None:
            return unreadable(_shown(value, "amount"), f"is no money; send {_MONEY}")
        found = currency(value.get("currency", ""))
        if found.value is None:
            return Parsed(None, found.faults) if found.faults else unreadable(str(value), f"is no money; send {_MONEY}")
        if amount < 0:
            return refused(ProblemKind.OUT_OF_RANGE, str(amount), "is below zero")
        return Parsed((minor_units(amount, found.value), found.value)) if amount else NOTHING

    return check


def _in_minor_units(value: int, beside: str | None) -> Parsed[tuple[int, str]]:
    if beside is None:
        detail = f"has no currency beside it, as minor units must; send {_MONEY}"
        return refused(ProblemKind.UNKNOWN_CURRENCY, str(value), detail)
    if not 0 <= value <= _MOST_MINOR:
        return refused(ProblemKind.OUT_OF_RANGE, str(value), "is below zero or out of all proportion")
    return Parsed((value, beside)) if value else NOTHING


def count(least: int) -> Check:
    """A check for whole numbers from `least`."""

    def check(value: Any) -> Parsed[int]:
        found = number(value)
        if found is None or found != found.to_integral_value():
            return unreadable(str(value), "is no whole number; send one such as 12")
        if not least <= found <= _MOST:
            return refused(ProblemKind.OUT_OF_RANGE, str(value), f"is not between {least} and {_MOST:,}")
        return Parsed(int(found))

    return check


def one_of(values: frozenset[str]) -> Check:
    """A check for enumerated values."""

    def check(value: Any) -> Parsed[str]:
        found = str(value).strip().lower().replace(" ", "_").replace("-", "_")
        return Parsed(found) if found in values else unreadable(str(value), "is none of the values this field has")

    return check


def availability(value: Any) -> Parsed[str]:
    """An availability by its own name or in a vendor's word."""
    meaning = word_meaning(str(value)) if isinstance(value, str) else None
    return Parsed(meaning.availability) if meaning else unreadable(str(value), "is no availability that is known")


def eta(value: Any) -> Parsed[str]:
    """A calendar date."""
    return parse_date(value) if isinstance(value, str) else unreadable(str(value), "is no date")


def gtin(value: Any) -> Parsed[str]:
    """A GTIN as text or as a whole number."""
    return (
        parse_gtin(str(value))
        if isinstance(value, str | int) and not isinstance(value, bool)
        else unreadable(str(value), "is no GTIN")
    )


def freight_class(value: Any) -> Parsed[str]:
    """A freight class as text or number."""
    return parse_freight_class(str(value))


def axes(value: Any) -> Parsed[dict[str, str | None]]:
    """A map of axis to value, None for one that is to be removed."""
    if not isinstance(value, Mapping):
        return unreadable(str(value), "is no map of texts")
    texts: list[Any] = [text for pair in value.items() for text in pair if text is not None]
    if not all(isinstance(text, str) for text in texts):
        return unreadable(str(value), "is no map of texts")
    if len(value) > ITEMS or any(len(text) > MAX_TITLE for text in texts):
        detail = f"The map has more than {ITEMS} entries, or a text longer than {MAX_TITLE} characters."
        return Parsed(None, (Fault(ProblemKind.TOO_LONG, detail),))
    return Parsed({name: stated(item or "") for name, item in value.items() if name.strip()})


def media(value: Any, base: str | None = None) -> Parsed[list[dict[str, Any]]]:
    """Pictures: addresses, or names of files below `base`, or objects with url, role, alt and position.

    Faults name what is left out.
    """
    if not isinstance(value, list):
        return unreadable(str(value), "is no list of media")
    out: list[dict[str, Any]] = []
    faults: list[Any] = []
    if len(value) > ITEMS:
        faults.append(Fault(ProblemKind.TOO_LONG, f"Of {len(value)} media the first {ITEMS} are kept."))
    for place, item in enumerate(value[:ITEMS], start=1):
        entry = item if isinstance(item, Mapping) else {"url": item}
        found = addresses(str(entry.get("url", "")), base)
        faults.extend(found.faults)
        if not found.urls:
            continue
        role = entry.get("role")
        position = count(1)(entry.get("position", place)).value
        picture: dict[str, Any] = {
            "url": found.urls[0],
            "role": role if role in ROLES else role_of(found.urls[0], not out),
            "position": position or place,
        }
        if isinstance(entry.get("alt"), str) and (alt := stated(entry["alt"])):
            if len(alt) <= ITEM_CHARS:
                picture["alt"] = alt
            else:
                faults.append(Fault(ProblemKind.TOO_LONG, f"A picture's alt is longer than {ITEM_CHARS} characters."))
        out.append(picture)
    return Parsed(out or None, tuple(faults))


def compliance_checks() -> dict[str, Check]:
    """The checks of the members of `compliance`."""
    checks: dict[str, Check] = dict.fromkeys(COMPLIANCE, flag)
    checks["stability_rating"] = lambda value: (
        Parsed(found) if (found := number(value)) is not None else unreadable(str(value), "is no number")
    )
    checks["prop65_chemicals"] = lines
    checks["country_of_origin"] = lambda value: parse_country(str(value))
    return checks
