"""How long a vendor takes to send an item, in days."""

import re
from functools import lru_cache
from typing import Final

from domain.ingestion.values.parsed import NOTHING, Reading, overlong, refused
from domain.ingestion.values.text import stated

_LONGEST: Final = 200
_TERM: Final = re.compile(
    r"(?:(\d{1,4})(?:\.0+)?\s*(?:-|–|to|bis|a)\s*)?(\d{1,4})(?:\.0+)?\s*\+?\s*((?:business|working|calendar|werk|arbeits)?[\s-]*"
    r"(?:hours?|hrs?|h|days?|d|weeks?|wks?|w|months?|tage?n?|wochen?|días?|dias?|semanas?|stunden)?)\.?",
    re.I,
)
_IMMEDIATE: Final = frozenset(("immediate", "same day", "in stock", "sofort", "stock", "inmediato"))
_MOST: Final = 1000


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
def parse_lead_time(text: str, unit: str = "days") -> Reading[int]:
    """A lead time in days; `unit` is the column's: days, weeks or hours (24 business-day hours are one day).

    Of a span (`3-5 working days`) it is the longer end, which a buyer can rely on. Problems: unreadable, out_of_range.
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None:
        return NOTHING
    if given.lower() in _IMMEDIATE:
        return Reading(0)
    match = _TERM.fullmatch(re.sub(r"^(?:ships? in|approx\.?|ca\.?|about|within)\s+", "", given, flags=re.I))
    if match is None:
        return refused("unreadable", text, "is no lead time")
    days = _days(max(int(match[1] or 0), int(match[2])), match[3] or unit)
    if days is None:
        return refused("unreadable", text, "counts months, whose days differ")
    return Reading(days) if days <= _MOST else refused("out_of_range", text, "is longer than any order is kept")
