"""Attribute lists inside one cell (`color : oak | overallheight:31`): the facts among them that have a field."""

from collections.abc import Callable
from typing import Any, Final

from domain.ingestion.columns.readers import CellReader, ReaderFactory
from domain.ingestion.drafts.draft import RowDraft
from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.values.text import stated
from domain.ingestion.vocabulary.senses import senses

_LONGEST_NAME: Final = 80
_MOST_READERS: Final = 2_000
"""How many names of attributes one column remembers the readers of."""
_FEWEST: Final = 3
_HEADS: Final = frozenset(
    "dimensions compliance rug weight colour finish materials assembly_required freight_class".split()
)
_GLUED: Final[dict[str, str]] = {
    "overallwidth-sidetoside": "dimensions.width",
    "overalldepth-fronttoback": "dimensions.depth",
    "overallheight-toptobottom": "dimensions.height",
    "overalllength-headtotoe": "dimensions.depth",
    "overalllength-endtoend": "dimensions.length",
    "seatheight-floortoseat": "dimensions.seat_height",
    "seatdepth-fronttoback": "dimensions.seat_depth",
    "armheight-floortoarm": "dimensions.arm_height",
    "clearancefromfloortoundersideofbed": "dimensions.clearance",
    "overallproductweight": "weight",
    "maincolor": "colour",
    "countryoforigin": "compliance.country_of_origin",
    "tscatitlevicompliantformaldehydeemissions": "compliance.tsca_title_vi",
    "caltb117-2013compliant": "compliance.ca_tb117_2013",
    "californiaproposition65warningrequired": "compliance.prop65_warning",
    "adultassemblyrequired": "assembly_required",
    "rugsize": "rug.size_text",
    "pileheight": "rug.pile_height",
}


def _none(row: RowDraft, text: str, cell: Any) -> None:
    """Reads an attribute that has no field: nothing."""


def pairs(text: str) -> list[tuple[str, str]]:
    """Names and values of an attribute list; empty when the cell is no such list."""
    pieces = [piece for piece in text.split("|") if piece.strip()]
    if len(pieces) < _FEWEST:
        return []
    found = list(filter(None, map(_pair, pieces)))
    return found if len(found) * 4 > len(pieces) * 3 else []


def _pair(piece: str) -> tuple[str, str] | None:
    name, colon, value = piece.partition(":")
    if not colon or not name or not value or len(name := name.strip()) > _LONGEST_NAME:
        return None
    return name.lower() or " ", value.strip() or " "


def _field(name: str) -> str | None:
    if name in _GLUED:
        return _GLUED[name]
    sense = next(iter(senses(name)), None)
    return sense.field if sense and sense.score >= 100 and sense.field.partition(".")[0] in _HEADS else None


def _agreed(found: list[tuple[str, str]]) -> dict[str, str]:
    """Attributes with one value; a name that has two belongs to several variants and says nothing of this one."""
    values: dict[str, set[str]] = {}
    for name, value in found:
        values.setdefault(name, set()).add(value)
    return {name: next(iter(given)) for name, given in values.items() if len(given) == 1}


def with_attributes(
    read: CellReader, column: Column, settings: FeedSettings, factory_of: Callable[[str], ReaderFactory]
) -> CellReader:
    """`read`, and beside it the readers of the fields that an attribute list in the cell names.

    Lengths and weights without unit are in the unit of the source's market, as in columns of their own.
    """
    readers: dict[str, CellReader] = {}
    customary = settings.currency == "usd"

    def reader_of(name: str) -> CellReader:
        field = _field(name)
        if field is None:
            return _none
        measured = field.startswith(("dimensions", "weight", "rug.pile"))
        unit = {"unit": "lb" if field == "weight" else "in"} if customary and measured else {}
        return factory_of(field)(Column(column.position, column.column, field, unit), settings)

    def both(row: RowDraft, text: str, cell: Any) -> None:
        read(row, text, cell)
        if "|" not in text or ":" not in text:
            return
        for name, value in _agreed(pairs(text)).items():
            reader = readers.get(name) or reader_of(name)
            if len(readers) < _MOST_READERS:
                readers[name] = reader
            if stated(value) is not None:
                reader(row, value, value)

    return both
