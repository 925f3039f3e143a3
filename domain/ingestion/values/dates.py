"""When goods come: arrival dates in the shapes stock sheets use, and lead times in days."""

import re
from datetime import date, timedelta
from functools import lru_cache
from typing import Final

from domain.ingestion.values.parsed import NOTHING, Parsed, overlong, refused, unreadable
from domain.ingestion.values.text import stated
from domain.kernel.problems import ProblemKind

_LONGEST: Final = 100
_ISO: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ][\d:.]+\s*(?:Z|[+-]\d{2}:?\d{2})?)?")
_COMPACT: Final = re.compile(r"(20\d{2})(\d{2})(\d{2})")
_YEAR_FIRST: Final = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})")
_NUMERIC: Final = re.compile(
    r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?:\s+\d{1,2}:\d{2}(?::\d{2})?(?:\s*[AaPp][Mm])?)?"
)
_DAY_MONTH: Final = re.compile(r"(\d{1,2})(?:st|nd|rd|th|\.)?[\s\-/]+([^\W\d_]{3,})\.?[\s\-/,]+(\d{4}|\d{2})")
_MONTH_DAY: Final = re.compile(r"([^\W\d_]{3,})\.?[\s\-/]+(\d{1,2})(?:st|nd|rd|th)?[\s\-/,]+(\d{4}|\d{2})")
_SERIAL: Final = re.compile(r"(\d{5})(?:\.\d+)?")
_SHORT: Final = re.compile(r"\d{1,2}[/.-]\d{1,2}")
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar enero ene jän jänner",
            "feb february februar febrero",
            "mar march märz mrz marzo",
            "apr april abril abr",
            "may mai mayo",
            "jun june juni junio",
            "jul july juli julio",
            "aug august agosto ago",
            "sep sept september septiembre",
            "oct october okt oktober octubre",
            "nov november noviembre",
            "dec december dez dezember diciembre dic",
        ),
        start=1,
    )
    for name in names.split()
}
_EPOCH: Final = date(1899, 12, 30)
_SERIALS: Final = range(30000, 80000)
_LONGEST_LEAD_TIME: Final = 200
_TERM: Final = re.compile(
    r"(?:(\d{1,4})(?:\.0+)?\s*(?:-|–|to|bis|a)\s*)?(\d{1,4})(?:\.0+)?\s*\+?\s*((?:business|working|calendar|werk|arbeits)?[\s-]*"
    r"(?:hours?|hrs?|h|days?|d|weeks?|wks?|w|months?|tage?n?|wochen?|días?|dias?|semanas?|stunden)?)\.?",
    re.I,
)
_IMMEDIATE: Final = frozenset(("immediate", "same day", "in stock", "sofort", "stock", "inmediato"))
_MOST: Final = 1000


def _iso(year: int, month: int, day: int) -> str | None:
    try:
        found = date(year if year > 99 else 2000 + year, month, day)
    except ValueError:
        return None
    return found.isoformat() if found.year >= 1990 else None


def _read(text: str, found: str | None) -> Parsed[str]:
    return Parsed(found) if found else unreadable(text, "is no date of the calendar")


def _numeric(text: str, match: re.Match[str], order: str | None) -> Parsed[str]:
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    if order is None:
        if match[2] == "." or first > 12:
            order = "dmy"
        elif second > 12 or first == second:
            order = "mdy"
        else:
            return unreadable(text, "can be read as two dates; write the year first")
    day, month = (first, second) if order == "dmy" else (second, first)
    return _read(text, _iso(year, month, day))


def _named(text: str, given: str) -> Parsed[str] | None:
    match = _DAY_MONTH.fullmatch(given)
    if match and match[2].lower() in _MONTHS:
        return _read(text, _iso(int(match[3]), _MONTHS[match[2].lower()], int(match[1])))
    match = _MONTH_DAY.fullmatch(given)
    if match and match[1].lower() in _MONTHS:
        return _read(text, _iso(int(match[3]), _MONTHS[match[1].lower()], int(match[2])))
    return None


@lru_cache(maxsize=8192)
def parse_date(text: str, order: str | None = None) -> Parsed[str]:
    """A calendar date `YYYY-MM-DD` from ISO, numeric, named-month and Excel serial forms.

    `order` is `mdy` or `dmy` when the column's values prove it. Problem: unreadable, for dates without a year and for
    those that day and month leave open.
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None or given == "0":
        return NOTHING
    given = re.sub(r"^(?:eta|est\.?|due|mon|tue|wed|thu|fri|sat|sun)[a-z]*[:,.]?\s+", "", given, flags=re.I)
    for pattern in (_ISO, _COMPACT, _YEAR_FIRST):
        if match := pattern.fullmatch(given):
            return _read(text, _iso(int(match[1]), int(match[2]), int(match[3])))
    if match := _NUMERIC.fullmatch(given):
        return _numeric(text, match, order)
    if (match := _SERIAL.fullmatch(given)) and int(match[1]) in _SERIALS:
        return Parsed((_EPOCH + timedelta(days=int(match[1]))).isoformat())
    if _SHORT.fullmatch(given):
        return unreadable(text, "is a date without a year")
    return _named(text, given) or unreadable(text, "is no date")


def order_shown(samples: list[str]) -> str | None:
    """The order of day and month that sample dates of one column prove, `mdy` or `dmy`, or None."""
    shown = set()
    for sample in samples:
        match = _NUMERIC.fullmatch(sample.strip())
        if match and int(match[1]) > 12:
            shown.add("dmy")
        elif match and int(match[3]) > 12:
            shown.add("mdy")
    return shown.pop() if len(shown) == 1 else None


def _days(count: int, unit: str) -> int | None:
    word = re.sub(r"^(?:business|working|calendar|werk|arbeits)[\s-]*", "", unit.strip().lower())
    if word.startswith(("h", "st")):
        return -(-count // 24)
    if word.startswith(("w", "semana")):
        return count * 7
    if word.startswith("m"):
        return None
    return count


@lru_cache(maxsize=4096)
def parse_lead_time(text: str, unit: str = "days") -> Parsed[int]:
    """A lead time in days; `unit` is the column's: days, weeks or hours (24 business-day hours are one day).

    Of a span (`3-5 working days`) it is the longer end, which a buyer can rely on. Problems: unreadable, out_of_range.
    """
    if too_long := overlong(text, _LONGEST_LEAD_TIME):
        return too_long
    given = stated(text)
    if given is None:
        return NOTHING
    if given.lower() in _IMMEDIATE:
        return Parsed(0)
    match = _TERM.fullmatch(re.sub(r"^(?:ships? in|approx\.?|ca\.?|about|within)\s+", "", given, flags=re.I))
    if match is None:
        return unreadable(text, "is no lead time")
    days = _days(max(int(match[1] or 0), int(match[2])), match[3] or unit)
    if days is None:
        return unreadable(text, "counts months, whose days differ")
    return (
        Parsed(days) if days <= _MOST else refused(ProblemKind.OUT_OF_RANGE, text, "is longer than any order is kept")
    )
