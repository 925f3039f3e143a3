"""When goods come: arrival dates in the shapes stock sheets use, and lead times in days.

    date     := [words] [weekday] calendar [time] ["est."]
    calendar := year month day | day month year | month day year | serial of a spreadsheet
    month    := number | name or abbreviation in English, German, French, Spanish, Dutch, Italian
    span     := [words] number [("-" | "to" | "/" …) number] unit          the longer end, which a buyer can rely on
    unit     := [working] (hours | days | weeks)                           24 hours are a day, a part of one counts whole

Day and month that could change places, a year that is missing or could be the day, weeks and quarters of the calendar and
months as a unit are told, never guessed; a year is filled in only when the day of the run is handed in.
"""

import re
from datetime import date, timedelta
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final

from domain.ingestion.values.parsed import NOTHING, Fault, Parsed, overlong, quoted, refused, unreadable
from domain.ingestion.values.text import stated
from domain.kernel.problems import ProblemKind

_LONGEST: Final = 100
_ISO: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ][\d:.]+\s*(?:Z|[+-]\d{2}:?\d{2})?)?")
_COMPACT: Final = re.compile(r"(20\d{2})(\d{2})(\d{2})")
_YEAR_FIRST: Final = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})")
_NUMERIC: Final = re.compile(
    r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?:,?\s+\d{1,2}:\d{2}(?::\d{2})?(?:\s*[AaPp][Mm])?)?"
)
_OF: Final = r"(?:\s+(?:de|of|di|del))?"
_DAY_MONTH: Final = re.compile(
    rf"(\d{{1,2}})(?:st|nd|rd|th|er|º|\.|e)?{_OF}[\s\-/.]+([^\W\d_]{{3,}})\.?{_OF}[\s\-/,.']+(\d{{4}}|\d{{2}})", re.I
)
_MONTH_DAY: Final = re.compile(
    r"([^\W\d_]{3,})\.?[\s\-/]+(\d{1,2})(?:st|nd|rd|th|er|\.)?[\s\-/,.']+(\d{4}|\d{2})", re.I
)
_YEAR_MONTH_DAY: Final = re.compile(r"(\d{4})[\s\-/]+([^\W\d_]{3,})\.?[\s\-/]+(\d{1,2})", re.I)
_SERIAL: Final = re.compile(r"(\d{5})(?:\.\d+)?")
_SHORT: Final = re.compile(r"(\d{1,2})[/.-](\d{1,2})\.?")
_SHORT_NAMED: Final = re.compile(
    rf"(\d{{1,2}})(?:st|nd|rd|th|er|\.)?{_OF}[\s\-/]*([^\W\d_]{{3,}})\.?|([^\W\d_]{{3,}})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?",
    re.I,
)
_AHEAD: Final = re.compile(
    r"^(?:(?:eta|etd|est\.?|estimated|due|expected|exp|arriv\w*|arrives?|avail\w*|verfügbar|lieferbar|erwartet|ab|am|le|el|il|op|on|by|from|date|"
    r"datum|ship\w*|back in stock|in stock|until|disponible|disponibile|beschikbaar|vanaf|dal|dès|d[eè]s le|mon|tues?|wed|thurs?|fri|sat|sun|monday|tuesday|"
    r"wednesday|thursday|friday|saturday|sunday|mo|di|mi|do|fr|sa|so|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|lundi|mardi|mercredi|"
    r"jeudi|vendredi|samedi|dimanche|lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado|domingo|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|"
    r"zondag|luned[iì]|marted[iì]|mercoled[iì]|gioved[iì]|venerd[iì]|sabato|domenica)(?![^\W\d_])[:,.]?\s*+){1,4}",
    re.I,
)
_BEHIND: Final = re.compile(r"\s*\(?(?:est\.?|estimated|eta|approx\.?)\)?$", re.I)
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar enero ene jän jänner janvier janv januari gennaio gen",
            "feb february februar febrero février fevrier févr fev fév februari febbraio",
            "mar march märz mrz marzo mars maart mrt maerz",
            "apr april abril abr avril avr aprile",
            "may mai mayo mei maggio mag",
            "jun june juni junio juin giugno giu",
            "jul july juli julio juillet juil luglio lug",
            "aug august agosto ago août aout augustus",
            "sep sept september septiembre septembre settembre set",
            "oct october okt oktober octubre octobre ottobre ott",
            "nov november noviembre novembre",
            "dec december dez dezember diciembre dic décembre decembre déc dicembre",
        ),
        start=1,
    )
    for name in names.split()
}
_EPOCH: Final = date(1899, 12, 30)
_SERIALS: Final = range(30000, 80000)
_LONGEST_LEAD_TIME: Final = 200
_TERM: Final = re.compile(
    r"(?:(?P<low>\d{1,4}(?:[.,]\d{1,2})?)\s*+(?P<first>[^\W\d_]{0,12})\s*+(?:-|–|—|/|to\b|bis\b|à|a\b|al?\b|tot\b|and\b|or\b|oder\b|ou\b|o\b|y\b)\s*+)?"
    r"(?P<high>\d{1,4}(?:[.,]\d{1,2})?)\s*+(?P<more>\+?)\s*+-?(?P<words>(?:[^\W\d_]+[.]?(?:[\s-]+|$)|\([^()\d]{1,30}\)){0,4})\.?",
    re.I,
)
_UNITS: Final = {
    **dict.fromkeys(
        (
            "h",
            "hr",
            "hrs",
            "hour",
            "hours",
            "std",
            "stunde",
            "stunden",
            "heure",
            "heures",
            "hora",
            "horas",
            "uur",
            "uren",
            "ora",
            "ore",
        ),
        "hours",
    ),
    **dict.fromkeys(
        (
            "d",
            "day",
            "days",
            "tag",
            "tage",
            "tagen",
            "t",
            "jour",
            "jours",
            "j",
            "día",
            "días",
            "dia",
            "dias",
            "dag",
            "dagen",
            "giorno",
        ),
        "days",
    ),
    **dict.fromkeys(
        (
            "giorni",
            "gg",
            "werktag",
            "werktage",
            "werktagen",
            "arbeitstag",
            "arbeitstage",
            "arbeitstagen",
            "werkdag",
            "werkdagen",
        ),
        "days",
    ),
    **dict.fromkeys(("bd", "wd", "dagar", "dage", "dager", "dni", "dzień", "kalendertage", "kalendertagen"), "days"),
    **dict.fromkeys(
        (
            "w",
            "wk",
            "wks",
            "week",
            "weeks",
            "woche",
            "wochen",
            "semaine",
            "semaines",
            "sem",
            "semana",
            "semanas",
            "weken",
        ),
        "weeks",
    ),
    **dict.fromkeys(
        ("settimana", "settimane", "sett", "veckor", "uger", "uker", "tygodnie", "tygodni", "kw0"), "weeks"
    ),
    **dict.fromkeys(
        (
            "m",
            "mo",
            "mos",
            "month",
            "months",
            "monat",
            "monate",
            "monaten",
            "mois",
            "mes",
            "meses",
            "maand",
            "maanden",
            "mese",
            "mesi",
        ),
        "months",
    ),
}
_IDLE: Final = frozenset(
    "business working work calendar werk arbeits ouvrés ouvrables ouvré hábiles habiles laborables lavorativi lavorativo bus from order after "
    "receipt of approx ca lead time delivery lieferzeit arbeitstage biz open production ship ships shipping in stock within".split()
)
_TERM_AHEAD: Final = re.compile(
    r"^(?:(?:usually|ships?|shipped|dispatched|dispatch|leaves|delivery|delivered|lead ?time|lieferzeit|lieferung|lieferbar|versand|versandfertig|livraison|"
    r"expédié|expédition|délai|entrega|envío|enviado|plazo|levertijd|levering|verzonden|spedito|consegna|spedizione|tempi|in stock|est\.?|estimated|approx\.?|ca\.?|"
    r"circa|about|ungefähr|etwa|env\.?|environ|aprox\.?|within|in|innerhalb von|innerhalb|binnen|sous|en|dans|entro|within|ready|time|de|von|van|di|about|"
    r"production|processing|handling|up to|max\.?|bis zu|jusqu'à|hasta|from|now)(?![^\W\d_])[:,.=]?\s*+){1,6}",
    re.I,
)
_NEXT_DAY: Final = frozenset(("next day", "overnight", "1 day", "24h", "am nächsten tag", "morgen"))
_IMMEDIATE: Final = frozenset(
    (
        "immediate", "immediately", "same day", "in stock", "sofort", "stock", "inmediato", "immédiat", "inmediata", "direct", "ab lager", "sofort lieferbar",
        "from stock", "immediato", "immediata", "pronta consegna", "ready to ship", "en stock", "op voorraad", "auf lager", "now", "today", "quick ship0",
    )
)  # fmt: skip
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
    proven = order is not None
    if order is None:
        if match[2] == "." or first > 12:
            order = "dmy"
        elif second > 12 or first == second:
            order = "mdy"
        else:
            return unreadable(text, "can be read as two dates; write the year first")
    if match[2] == "-" and len(match[4]) == 2 and first > 12 and int(match[4]) <= 31 and not proven:
        return unreadable(text, "may begin with its day or its year; write the year with four digits")
    day, month = (first, second) if order == "dmy" else (second, first)
    return _read(text, _iso(year, month, day))


def _named(text: str, given: str) -> Parsed[str] | None:
    for pattern, day, month, year in ((_DAY_MONTH, 1, 2, 3), (_MONTH_DAY, 2, 1, 3), (_YEAR_MONTH_DAY, 3, 2, 1)):
        match = pattern.fullmatch(given)
        if match and (number := _MONTHS.get(match[month].lower())):
            return _read(text, _iso(int(match[year]), number, int(match[day])))
    return None


def _next(month: int, day: int, today: date) -> str | None:
    """The next day of that name from `today` on."""
    return next(
        (
            found
            for year in (today.year, today.year + 1)
            if (found := _iso(year, month, day)) and found >= today.isoformat()
        ),
        None,
    )


def _without_year(text: str, given: str, order: str | None, today: date | None) -> Parsed[str] | None:
    """A day and a month: the next such day when the day of the run is known, else told."""
    month = day = None
    if match := _SHORT.fullmatch(given):
        first, second = int(match[1]), int(match[2])
        chosen = order or ("dmy" if first > 12 else "mdy" if second > 12 else None)
        if chosen:
            day, month = (first, second) if chosen == "dmy" else (second, first)
    elif match := _SHORT_NAMED.fullmatch(given):
        month = _MONTHS.get((match[2] or match[3]).lower())
        day = int(match[1] or match[4])
    if not match or (month is None and _SHORT.fullmatch(given) is None):
        return None
    if today is None or month is None or day is None:
        return unreadable(text, "is a date without a year")
    return _read(text, _next(month, day, today))


@lru_cache(maxsize=8192)
def parse_date(text: str, order: str | None = None, today: date | None = None) -> Parsed[str]:
    """A calendar date `YYYY-MM-DD` from ISO, numeric, named-month and Excel serial forms.

    `order` is `mdy` or `dmy` when the column's values prove it; `today` the day of the run, from which a date without a year
    is the next such day. Problem: unreadable, for dates without a year and for those that day and month leave open.
    """
    if len(text) > _LONGEST:
        return overlong(text, _LONGEST)
    given = stated(text)
    if given is None or given == "0":
        return NOTHING
    given = _BEHIND.sub("", _AHEAD.sub("", given)).strip() or given
    for pattern in (_ISO, _COMPACT, _YEAR_FIRST):
        if match := pattern.fullmatch(given):
            return _read(text, _iso(int(match[1]), int(match[2]), int(match[3])))
    if match := _NUMERIC.fullmatch(given):
        return _numeric(text, match, order)
    if (match := _SERIAL.fullmatch(given)) and int(match[1]) in _SERIALS:
        return Parsed((_EPOCH + timedelta(days=int(match[1]))).isoformat())
    return _named(text, given) or _without_year(text, given, order, today) or unreadable(text, "is no date")


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


def _unit_in(words: str) -> str | None:
    """The unit that words name; None for words that are no unit and none of those that stand beside one; blank for none."""
    unit = ""
    for word in re.findall(r"[^\W\d_]+", words.lower()):
        named = _UNITS.get(word)
        if named is None and word not in _IDLE:
            return None
        if named and unit and named != unit:
            return None
        unit = named or unit
    return unit


def _days(amount: Decimal, unit: str) -> int | None:
    """An amount in whole days; a part of a day counts whole."""
    if unit == "months":
        return None
    days = amount / 24 if unit == "hours" else amount * 7 if unit == "weeks" else amount
    return int(days.to_integral_value(ROUND_CEILING))


@lru_cache(maxsize=4096)
def parse_lead_time(text: str, unit: str = "days") -> Parsed[int]:
    """A lead time in days; `unit` is the column's: days, weeks or hours (24 business-day hours are one day).

    Of a span (`3-5 working days`) it is the longer end, which a buyer can rely on. Problems: unreadable (words, months, dates,
    weeks of the calendar), out_of_range, conflict (`4+ weeks` names only the least).
    """
    if len(text) > _LONGEST_LEAD_TIME:
        return overlong(text, _LONGEST_LEAD_TIME)
    given = stated(text)
    if given is None:
        return NOTHING
    low = given.lower().strip(" .!")
    if low in _IMMEDIATE or low in _NEXT_DAY:
        return Parsed(1 if low in _NEXT_DAY else 0)
    if low.startswith(("-", "−")) and low[1:2].isdigit():
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero")
    match = _TERM.fullmatch(_TERM_AHEAD.sub("", low))
    named = _unit_in(match["words"]) if match else None
    first = _unit_in(match["first"] or "") if match else None
    if match is None or named is None or first is None:
        return unreadable(text, "is no lead time")
    return _term(text, match, (first or named or unit, named or unit))


def _term(text: str, match: re.Match[str], units: tuple[str, str]) -> Parsed[int]:
    low, high = (Decimal((match[key] or "0").replace(",", ".")) for key in ("low", "high"))
    days = [_days(low, units[0]), _days(high, units[1])]
    if days[1] is None or days[0] is None:
        return unreadable(text, "counts months, whose days differ")
    if max(days[0], days[1]) > _MOST:
        return refused(ProblemKind.OUT_OF_RANGE, text, "is longer than any order is kept")
    faults = (Fault(ProblemKind.CONFLICT, f"{quoted(text)} names only the least time."),) if match["more"] else ()
    return Parsed(max(days[0], days[1]), faults)
