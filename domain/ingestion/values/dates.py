"""Parsers of cells with arrival dates and lead times, as in stock lists.

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

from domain.ingestion.data import invert_table, load_regex_alternatives, load_toml, load_word_set
from domain.ingestion.values.text import (
    NO_VALUE,
    ParseResult,
    build_conflict_fault,
    build_fault_result,
    build_unreadable_result,
    cell_parser,
)
from domain.kernel.problems import ProblemKind

_OF = r"(?:\s+(?:de|of|di|del))?"
_UNAMBIGUOUS_DATES = tuple(
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
"""Patterns of dates with an unambiguous order: the year comes first, or the month is named."""
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?:,?\s+\d{1,2}:\d{2}(?::\d{2})?(?:\s*[AaPp][Mm])?)?")
_SERIAL = re.compile(r"(\d{5})(?:\.\d+)?")
_SHORT = re.compile(r"\d{1,2}[/.-]\d{1,2}\.?")
_SHORT_NAMED = re.compile(
    rf"(?i)\d{{1,2}}(?:st|nd|rd|th|er|\.)?{_OF}[\s\-/]*([^\W\d_]{{3,}})\.?|([^\W\d_]{{3,}})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?"
)
_WORDS_BEFORE_DATE = re.compile(
    rf"(?i)^(?:(?:{load_regex_alternatives('dates', 'date_prefixes')})(?![^\W\d_])[:,.]?\s*+){{1,4}}"
)
_WORDS_AFTER_DATE = re.compile(r"(?i)\s*\(?(?:est\.?|estimated|eta|approx\.?)\)?$")
_MONTHS = {name: int(number) for name, number in invert_table(load_toml("dates")["months"]).items()}
_EPOCH = date(1899, 12, 30)
_SERIALS = range(30000, 80000)
_TERM = re.compile(
    r"(?i)(?:(?P<low>\d{1,4}(?:[.,]\d{1,2})?)\s*+(?P<first>[^\W\d_]{0,12})\s*+(?:-|–|—|/|to\b|bis\b|à|a\b|al?\b|tot\b|and\b|or\b|oder\b|ou\b|o\b|y\b)\s*+)?"
    r"(?P<high>\d{1,4}(?:[.,]\d{1,2})?)\s*+(?P<more>\+?)\s*+-?(?P<words>(?:[^\W\d_]+[.]?(?:[\s-]+|$)|\([^()\d]{1,30}\)){0,4})\.?"
)
_UNITS = invert_table(load_toml("units")["time"])
_IGNORED, _NEXT_DAY, _IMMEDIATE = (load_word_set("dates", name) for name in ("ignored", "next_day", "immediate"))
_WORDS_BEFORE_TERM = re.compile(
    rf"(?i)^(?:(?:{load_regex_alternatives('dates', 'lead_time_prefixes')})(?![^\W\d_])[:,.=]?\s*+){{1,6}}"
)
_MAX_DAYS = 1000


def _build_date(text: str, year: int, month: int, day: int) -> ParseResult[str]:
    with suppress(ValueError):
        found = date(year if year > 99 else 2000 + year, month, day)
        if found.year >= 1990:
            return ParseResult(found.isoformat())
    return build_unreadable_result(text, "is not a valid date from 1990 or later")


def _parse_numeric_date(text: str, match: re.Match[str], order: str | None) -> ParseResult[str]:
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    if order is None:
        if match[2] == "-" and len(match[4]) == 2 and first > 12 and year <= 31:
            return build_unreadable_result(
                text, "could begin with the day or the year; write the year with four digits"
            )
        if match[2] != "." and first <= 12 and second <= 12 and first != second:
            return build_unreadable_result(text, "can be read as two dates; write the year first")
        order = "dmy" if match[2] == "." or first > 12 else "mdy"
    month, day = (second, first) if order == "dmy" else (first, second)
    return _build_date(text, year, month, day)


@cell_parser(max_chars=100)
def parse_date(text: str, cleaned: str, order: str | None = None) -> ParseResult[str]:
    """Parse a date and return it as `YYYY-MM-DD`. The date can be in ISO format, numeric, with a named month, or a spreadsheet serial.

    The result can have the fault unreadable, also for a date without a year and for an ambiguous order of day and month.

    Args:
        text: The cell.
        cleaned: The cleaned text, which `cell_parser` passes.
        order: The order of day and month in the column, `mdy` or `dmy`, or None if unknown.
    """
    if cleaned == "0":
        return NO_VALUE
    cleaned = _WORDS_AFTER_DATE.sub("", _WORDS_BEFORE_DATE.sub("", cleaned)).strip() or cleaned
    for form in _UNAMBIGUOUS_DATES:
        match = form.fullmatch(cleaned)
        month = (
            (_MONTHS.get(match["m"].lower()) or (int(match["m"]) if match["m"].isdecimal() else None))
            if match
            else None
        )
        if match and month is not None:
            return _build_date(text, int(match["y"]), month, int(match["d"]))
    if match := _NUMERIC.fullmatch(cleaned):
        return _parse_numeric_date(text, match, order)
    if (match := _SERIAL.fullmatch(cleaned)) and int(match[1]) in _SERIALS:
        return ParseResult((_EPOCH + timedelta(days=int(match[1]))).isoformat())
    named = _SHORT_NAMED.fullmatch(cleaned)
    lacks_year = (named[1] or named[2]).lower() in _MONTHS if named else _SHORT.fullmatch(cleaned)
    return build_unreadable_result(text, "is a date without a year" if lacks_year else "is not a date")


def detect_date_order(samples: list[str]) -> str | None:
    """Detect the order of day and month, `mdy` or `dmy`, in sample dates of one column; None if unknown or contradictory."""
    orders = set()
    for sample in samples:
        match = _NUMERIC.fullmatch(sample.strip())
        if match and int(match[1]) > 12:
            orders.add("dmy")
        elif match and int(match[3]) > 12:
            orders.add("mdy")
    return orders.pop() if len(orders) == 1 else None


def _parse_time_unit(text: str) -> str | None:
    """Return the unit of time that words name, such as `weeks`.

    The result is an empty string if there are no words except fillers, and None for unknown words or several units.
    """
    found = [word for word in re.findall(r"[^\W\d_]+", text.lower()) if word not in _IGNORED or word in _UNITS]
    units = {_UNITS.get(word) for word in found}
    return units.pop() if len(units) == 1 else None if units else ""


@cell_parser(max_chars=200)
def parse_lead_time(text: str, cleaned: str, unit: str | None = None) -> ParseResult[int]:
    """Parse a lead time, and return it in days, rounded up. Of a range (`3-5 working days`), the greater number is used.

    The result can have the faults unreadable (words, months, dates, calendar weeks), unknown_unit, out_of_range and conflict (`4+ weeks`
    states only a minimum).

    Args:
        text: The cell.
        cleaned: The cleaned text, which `cell_parser` passes.
        unit: The unit of numbers without one: `days`, `weeks` or `hours`, or None if unknown.
    """
    low = cleaned.lower().strip(" .!")
    if low in _IMMEDIATE or low in _NEXT_DAY:
        return ParseResult(1 if low in _NEXT_DAY else 0)
    if low.startswith(("-", "−")) and low[1:2].isdigit():
        return build_fault_result(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    match = _TERM.fullmatch(_WORDS_BEFORE_TERM.sub("", low))
    high_unit = _parse_time_unit(match["words"]) if match else None
    low_unit = _parse_time_unit(match["first"] or "") if match else None
    if match is None or high_unit is None or low_unit is None:
        return build_unreadable_result(text, "is not a lead time")
    if not (high_unit or unit or Decimal(match["high"].replace(",", ".")) == 0):
        return build_fault_result(ProblemKind.UNKNOWN_UNIT, text, "has no unit, and the column has none either")
    days = []
    for key, amount_unit in (("low", low_unit or high_unit or unit), ("high", high_unit or unit)):
        amount = Decimal((match[key] or "0").replace(",", "."))
        if amount_unit == "months":
            return build_unreadable_result(text, "is in months, which differ in length; use weeks or days")
        amount = amount / 24 if amount_unit == "hours" else amount * 7 if amount_unit == "weeks" else amount
        days.append(int(amount.to_integral_value(ROUND_CEILING)))
    if max(days) > _MAX_DAYS:
        return build_fault_result(ProblemKind.OUT_OF_RANGE, text, f"is longer than {_MAX_DAYS:,} days")
    return ParseResult(max(days), (build_conflict_fault(text, "states only a minimum time"),) if match["more"] else ())
