"""Arrival dates in the formats of stock sheets, and lead times in days.

    date     := [words] [weekday] calendar [time] ["est."]
    calendar := year month day | day month year | month day year | serial of a spreadsheet
    month    := number | name or abbreviation in English, German, French, Spanish, Dutch, Italian
    span     := [words] number [("-" | "to" | "/" …) number] unit          the longer one
    unit     := [working] (hours | days | weeks)                           24 hours are a day, a part of a day counts as a day

Ambiguous order of day and month, a missing or ambiguous year, calendar weeks and quarters, and months as a unit are
reported, never guessed.
"""

import re
from contextlib import suppress
from datetime import date, timedelta
from decimal import ROUND_CEILING, Decimal

from domain.ingestion.data import load, meanings, pattern, words
from domain.ingestion.values.text import NOTHING, Parsed, cell_parser, conflict, refused, unreadable
from domain.kernel.problems import ProblemKind

_OF = r"(?:\s+(?:de|of|di|del))?"
_FULL = tuple(
    re.compile(form)
    for form in (
        r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?:[T ][\d:.]+\s*(?:Z|[+-]\d{2}:?\d{2})?)?",
        r"(?P<y>20\d{2})(?P<m>\d{2})(?P<d>\d{2})",
        r"(?P<y>\d{4})[/.](?P<m>\d{1,2})[/.](?P<d>\d{1,2})",
        rf"(?i)(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|º|\.|e)?{_OF}[\s\-/.]+(?P<m>[^\W\d_]{{3,}})\.?{_OF}[\s\-/,.']+(?P<y>\d{{4}}|\d{{2}})",
        r"(?i)(?P<m>[^\W\d_]{3,})\.?[\s\-/]+(?P<d>\d{1,2})(?:st|nd|rd|th|er|\.)?[\s\-/,.']+(?P<y>\d{4}|\d{2})",
        r"(?P<y>\d{4})[\s\-/]+(?P<m>[^\W\d_]{3,})\.?[\s\-/]+(?P<d>\d{1,2})",
    )
)
"""Dates with an unambiguous order: the year first, or a named month."""
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?:,?\s+\d{1,2}:\d{2}(?::\d{2})?(?:\s*[AaPp][Mm])?)?")
_SERIAL = re.compile(r"(\d{5})(?:\.\d+)?")
_SHORT = re.compile(r"\d{1,2}[/.-]\d{1,2}\.?")
_SHORT_NAMED = re.compile(
    rf"(?i)\d{{1,2}}(?:st|nd|rd|th|er|\.)?{_OF}[\s\-/]*([^\W\d_]{{3,}})\.?|([^\W\d_]{{3,}})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?"
)
_AHEAD = re.compile(rf"(?i)^(?:(?:{pattern('dates', 'ahead')})(?![^\W\d_])[:,.]?\s*+){{1,4}}")
_BEHIND = re.compile(r"(?i)\s*\(?(?:est\.?|estimated|eta|approx\.?)\)?$")
_MONTHS = {name: int(number) for name, number in meanings(load("dates")["months"]).items()}
_EPOCH = date(1899, 12, 30)
_SERIALS = range(30000, 80000)
_TERM = re.compile(
    r"(?i)(?:(?P<low>\d{1,4}(?:[.,]\d{1,2})?)\s*+(?P<first>[^\W\d_]{0,12})\s*+(?:-|–|—|/|to\b|bis\b|à|a\b|al?\b|tot\b|and\b|or\b|oder\b|ou\b|o\b|y\b)\s*+)?"
    r"(?P<high>\d{1,4}(?:[.,]\d{1,2})?)\s*+(?P<more>\+?)\s*+-?(?P<words>(?:[^\W\d_]+[.]?(?:[\s-]+|$)|\([^()\d]{1,30}\)){0,4})\.?"
)
_UNITS = meanings(load("units")["time"])
_IDLE, _NEXT_DAY, _IMMEDIATE = (words("dates", name) for name in ("idle", "next_day", "immediate"))
_TERM_AHEAD = re.compile(rf"(?i)^(?:(?:{pattern('dates', 'term_ahead')})(?![^\W\d_])[:,.=]?\s*+){{1,6}}")
_MOST = 1000


def _read(text: str, year: int, month: int, day: int) -> Parsed[str]:
    with suppress(ValueError):
        found = date(year if year > 99 else 2000 + year, month, day)
        if found.year >= 1990:
            return Parsed(found.isoformat())
    return unreadable(text, "is not a date of the calendar")


def _numeric(text: str, match: re.Match[str], order: str | None) -> Parsed[str]:
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    if order is None:
        if match[2] == "-" and len(match[4]) == 2 and first > 12 and year <= 31:
            return unreadable(text, "could begin with the day or the year; write the year with four digits")
        if match[2] != "." and first <= 12 and second <= 12 and first != second:
            return unreadable(text, "can be read as two dates; write the year first")
        order = "dmy" if match[2] == "." or first > 12 else "mdy"
    month, day = (second, first) if order == "dmy" else (first, second)
    return _read(text, year, month, day)


@cell_parser(longest=100)
def parse_date(text: str, given: str, order: str | None = None) -> Parsed[str]:
    """Parse a calendar date from ISO, numeric, named-month and Excel serial forms to `YYYY-MM-DD`.

    `order` is `mdy` or `dmy` if the column's values prove it. Problem: unreadable, also without a year and for an ambiguous
    order of day and month.
    """
    if given == "0":
        return NOTHING
    given = _BEHIND.sub("", _AHEAD.sub("", given)).strip() or given
    for form in _FULL:
        match = form.fullmatch(given)
        month = (
            (_MONTHS.get(match["m"].lower()) or (int(match["m"]) if match["m"].isdecimal() else None))
            if match
            else None
        )
        if match and month is not None:
            return _read(text, int(match["y"]), month, int(match["d"]))
    if match := _NUMERIC.fullmatch(given):
        return _numeric(text, match, order)
    if (match := _SERIAL.fullmatch(given)) and int(match[1]) in _SERIALS:
        return Parsed((_EPOCH + timedelta(days=int(match[1]))).isoformat())
    named = _SHORT_NAMED.fullmatch(given)
    lacks_year = (named[1] or named[2]).lower() in _MONTHS if named else _SHORT.fullmatch(given)
    return unreadable(text, "is a date without a year" if lacks_year else "is not a date")


def order_shown(samples: list[str]) -> str | None:
    """Return the order of day and month that sample dates of one column prove, `mdy` or `dmy`, or None."""
    shown = set()
    for sample in samples:
        match = _NUMERIC.fullmatch(sample.strip())
        if match and int(match[1]) > 12:
            shown.add("dmy")
        elif match and int(match[3]) > 12:
            shown.add("mdy")
    return shown.pop() if len(shown) == 1 else None


def _unit_in(text: str) -> str | None:
    """Return the unit that words name: blank without words, None for unknown words or several units."""
    found = [word for word in re.findall(r"[^\W\d_]+", text.lower()) if word not in _IDLE or word in _UNITS]
    units = {_UNITS.get(word) for word in found}
    return units.pop() if len(units) == 1 else None if units else ""


@cell_parser(longest=200)
def parse_lead_time(text: str, given: str, unit: str = "days") -> Parsed[int]:
    """Parse a lead time in days; `unit` is the column's: days, weeks or hours (24 hours are one day).

    The longer end of a span (`3-5 working days`) is used; parts of a day are rounded up. Problems: unreadable (words, months,
    dates, calendar weeks), out_of_range, conflict (`4+ weeks` states only a minimum).
    """
    low = given.lower().strip(" .!")
    if low in _IMMEDIATE or low in _NEXT_DAY:
        return Parsed(1 if low in _NEXT_DAY else 0)
    if low.startswith(("-", "−")) and low[1:2].isdigit():
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    match = _TERM.fullmatch(_TERM_AHEAD.sub("", low))
    named = _unit_in(match["words"]) if match else None
    first = _unit_in(match["first"] or "") if match else None
    if match is None or named is None or first is None:
        return unreadable(text, "is not a lead time")
    days = []
    for key, its_unit in (("low", first or named or unit), ("high", named or unit)):
        amount = Decimal((match[key] or "0").replace(",", "."))
        if its_unit == "months":
            return unreadable(text, "is in months, which differ in length; use weeks or days")
        amount = amount / 24 if its_unit == "hours" else amount * 7 if its_unit == "weeks" else amount
        days.append(int(amount.to_integral_value(ROUND_CEILING)))
    if max(days) > _MOST:
        return refused(ProblemKind.OUT_OF_RANGE, text, f"is longer than {_MOST:,} days")
    return Parsed(max(days), (conflict(text, "states only a minimum time"),) if match["more"] else ())
