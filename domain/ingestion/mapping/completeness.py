"""What a mapping lacks for a run to go by it, and which facts it may state by one column alone."""

from collections.abc import Iterable
from typing import Final

from domain.ingestion.model import Column
from domain.ingestion.vocabulary.fields import FAMILIES, KEYS, MONEY

_STOCK_FACTS: Final = MONEY | {"quantity", "availability", "lead_time_days", "discontinued"}
_STANDING_IN: Final = frozenset(
    "weight colour finish dimensions gtin description brand google_category availability".split()
)
_STANDING_IN_HEADS: Final = ("dimensions.", "rug.", "compliance.", "cartons.")

Slot = tuple[str, str]
"""A field, and the location that it is stated for (blank for none)."""


def slot_of(column: Column) -> Slot:
    """What a column fills. One that is another level of what is read (`alternative`) fills nothing but its own place."""
    if column.is_alternative:
        return column.field, f"column {column.position}"
    return column.field, column.setting("location") or ""


def may_repeat(field: str) -> bool:
    """Whether several columns may mean the field: they add to each other, or stand in where the first is blank."""
    return field in FAMILIES or field in _STANDING_IN or field.startswith(_STANDING_IN_HEADS)


def missing(columns: Iterable[Column], stream: str) -> tuple[str, ...]:
    """What a run of that stream cannot do without: "key" when nothing names a row, "stock" when nothing states any."""
    fields = {column.field for column in columns if not column.is_alternative}
    lacking = []
    if not fields & {*KEYS, "title"}:
        lacking.append("key")
    if stream == "stock" and not fields & _STOCK_FACTS:
        lacking.append("stock")
    return tuple(lacking)


def repeated(columns: Iterable[Column]) -> list[Column]:
    """The columns that state once more what an earlier one states and only one may."""
    taken: set[Slot] = set()
    again = []
    for column in columns:
        if slot_of(column) in taken and not may_repeat(column.field):
            again.append(column)
        taken.add(slot_of(column))
    return again
