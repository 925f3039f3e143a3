"""Columns that no field stands for and that still tell what a row means: its kind, its volume, whether its stock is counted."""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from domain.ingestion.model import HeaderMapping
from domain.ingestion.values.parsed import Fault, quoted
from domain.ingestion.values.text import as_text, stated
from domain.ingestion.values.words import parse_number
from domain.ingestion.vocabulary.headings import plain_words
from domain.kernel.problems import ProblemKind

_KIND: Final = frozenset(
    "single item set or part|record kind|record type|item type|row type|item kind|product kind|kind of item".split("|")
)
_PART: Final = frozenset("part|parts|component|components|set part|set component|part of set|kit part".split("|"))
_VOLUME: Final = frozenset(
    "volume|volume cuft|volume cu ft|cuft|cube|cubic feet|cu ft|cft|cbm|volume cbm|shipping volume|carton volume".split(
        "|"
    )
)
_ERRORS: Final = frozenset(
    "#N/A #REF! #VALUE! #NAME? #DIV/0! #NULL! #NUM! #SPILL! #CALC! #GETTING_DATA #FIELD!".split()
)
_FORMULA: Final = re.compile(
    r"=\s?(?:[A-Z][A-Z.]{1,20}\(|[$']?[A-Z]{1,3}\$?\d{1,7}\b\s?[-+*/&!:)]|[\w' ]{1,40}!\$?[A-Z])"
)
_LONGEST_SUM: Final = 60
_TRACKER: Final = frozenset(
    "variant inventory tracker|inventory tracker|inventory management|variants inventory management".split("|")
)

_SUM: Final = re.compile(
    r"(?:sub|grand|sheet|page)?[ -]?totals?(?: (?:items?|qty|quantity|price|amount|pcs|pieces|rows?))?|sum|gesamt(?:summe)?"
    r"|zwischensumme|summe|suma|total general|subtotal[ :-]{1,3}[^\d]{1,40}",
    re.I,
)

RowTest = Callable[[Sequence[Any]], bool]
VolumeOf = Callable[[Sequence[Any]], "Decimal | None"]


def broken(cell: str) -> Fault | None:
    """The fault of a cell that holds a spreadsheet's error (`#N/A`) or a formula that was never worked out."""
    text = cell.strip()
    if text.upper() in _ERRORS:
        return Fault(ProblemKind.UNREADABLE, f"{quoted(text)} is a spreadsheet's error, not a value.")
    if _FORMULA.match(text):
        return Fault(ProblemKind.UNREADABLE, f"{quoted(text)} is a formula without its result.")
    return None


def is_sum(key: str) -> bool:
    """Whether what should name an item says that the row adds up others (`Subtotal`, `Grand Total:`)."""
    # Keys of items have digits, as a rule at their end.
    return not key[-1:].isdecimal() and len(key) <= _LONGEST_SUM and _SUM.fullmatch(key.strip(" :*=-")) is not None


def part_test(mapping: HeaderMapping) -> RowTest | None:
    """Tells rows that call themselves parts of others; None where no column says what rows are."""
    at = _place(mapping, _KIND)
    if at is None:
        return None
    return lambda cells: at < len(cells) and plain_words(as_text(cells[at])[:100]) in _PART


def untracked_test(mapping: HeaderMapping) -> RowTest | None:
    """Tells rows whose stock nobody counts: platforms leave the tracker blank and state a quantity of 0."""
    at = _place(mapping, _TRACKER)
    if at is None:
        return None
    return lambda cells: at >= len(cells) or stated(as_text(cells[at])[:100]) is None


def volume_of(mapping: HeaderMapping) -> VolumeOf | None:
    """Reads a row's volume, in the unit that all rows of the table use; None where no column has it."""
    at = _place(mapping, _VOLUME)
    if at is None:
        return None

    def read(cells: Sequence[Any]) -> Decimal | None:
        text = as_text(cells[at]) if at < len(cells) else ""
        return (parse_number(text).value or None) if stated(text[:100]) else None

    return read


def _place(mapping: HeaderMapping, words: frozenset[str]) -> int | None:
    return next((column.position for column in mapping.unmapped if plain_words(column.column) in words), None)
