"""Cells of one X12 item: codes, texts, measures, prices, and stock by place."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ..tables import Cell, Report
from .x12 import Segment

_CODES = {
    "SKU": ("VN", "VP", "VC", "SK", "VA"),
    "GTIN": ("UK", "EN", "UP", "EO", "UI"),
    "Manufacturer number": ("MG", "MF", "MN", "MP"),
}
"""Qualifiers of LIN (element 235) by what they name, the surest first. Codes of the buyer's are not the vendor's."""
_TEXTS = {"73": "Colour", "75": "Colour", "35": "Colour", "74": "Size", "91": "Size"}
_NAME = "08"
_PRICES = {
    **dict.fromkeys(("UCP", "NET", "CON", "WHL", "DIS"), "Cost"),
    **dict.fromkeys(("MSR", "RTL", "RES", "LPR", "SLP"), "List price"),
    "MAP": "Minimum advertised price",
}
"""Price identifiers (element 236) by the price they are."""
_SIDES = {"LN": "Length", "WD": "Width", "DP": "Depth", "HT": "Height"}
_WEIGHTS = {"WT": "Weight", "N": "Weight", "G": "Package weight"}
_UNITS = {
    "LB": "lb", "01": "lb", "KG": "kg", "50": "kg", "OZ": "oz", "GR": "g",
    "IN": "in", "FT": "ft", "CM": "cm", "MM": "mm", "MR": "m",
}  # fmt: skip
"""Units of measure (element 355)."""
_PIECES = frozenset({"", "EA", "PC", "PCE", "UN", "ST", "SET", "PR"})
_AVAILABLE = ("33", "QA", "17", "1")
"""Quantities (element 673) that say what can be had, the surest first: available, current, on hand, plain."""
_ARRIVING = frozenset({"018", "010", "017", "067", "371", "405"})
_PLACES = frozenset({"WH", "SF", "DC"})
_ONE = re.compile(r"0*[01](?:\.0*)?")


class Once:
    """Reporter that reports each message once, at its first line."""

    def __init__(self, report: Callable[[Report], None]) -> None:
        self._report = report
        self._details: set[str] = set()

    def tell(self, detail: str, line: int | None = None) -> None:
        """Report a message that is new; at most a thousand different ones."""
        if detail not in self._details and len(self._details) < 1_000:
            self._details.add(detail)
            self._report(Report(detail, line))


class Header:
    """Data before the items: the place of all stock, the currency of all prices."""

    def __init__(self) -> None:
        self.place: str | None = None
        self.currency: str | None = None

    def take(self, segment: Segment) -> None:
        """Read the place or the currency from a segment."""
        if segment.name == "N1" and segment.at(1) in _PLACES:
            self.place = segment.at(4) or segment.at(2) or None
        elif segment.name == "CUR" and segment.at(2):
            self.currency = segment.at(2).lower()


@dataclass(slots=True)
class Place:
    """Stock of an item at one place: quantities by their qualifier, arrivals as quantity and date."""

    name: str | None
    quantities: dict[str, str] = field(default_factory=dict)
    arrivals: list[tuple[str | None, str | None]] = field(default_factory=list)

    def available(self) -> str | None:
        """Return the available quantity as text, or None."""
        return next((self.quantities[code] for code in _AVAILABLE if code in self.quantities), None)

    def is_blank(self) -> bool:
        """Return whether the place has neither quantities nor arrivals."""
        return not self.quantities and not self.arrivals


class Facts:
    """Cells of one item by column, collected segment by segment."""

    def __init__(self, header: Header, once: Once) -> None:
        self.cells: dict[str, Cell] = {"Currency": header.currency}
        self._once = once
        self._texts: list[str] = []
        self._places = [Place(header.place)]
        self._readers: dict[str, Callable[[Segment], None]] = {
            "LIN": self._codes, "PID": self._text, "MEA": self._measure, "CTP": self._price, "CUR": self._currency,
            "PO4": self._package, "QTY": self._quantity, "SCH": self._schedule, "DTM": self._date, "N1": self._place,
            "SDQ": self._by_place,
        }  # fmt: skip

    def take(self, segment: Segment) -> None:
        """Read a segment; unknown ones are ignored."""
        reader = self._readers.get(segment.name)
        if reader is not None:
            reader(segment)

    def places(self) -> list[Place]:
        """Return the places with stock data, or the first place if none has any."""
        if len(self._places) == 2 and self._places[1].is_blank():
            self._places[0].name = self._places[1].name
        return [place for place in self._places if not place.is_blank()] or self._places[:1]

    def _codes(self, segment: Segment) -> None:
        given: dict[str, str] = {}
        for place in range(2, len(segment.elements), 2):
            given.setdefault(segment.at(place), segment.at(place + 1))
        for column, qualifiers in _CODES.items():
            self.cells[column] = next((given[code] for code in qualifiers if given.get(code)), None)

    def _text(self, segment: Segment) -> None:
        text, column = segment.at(5), _TEXTS.get(segment.at(2))
        if not text:
            return
        if column:
            self.cells.setdefault(column, text)
            return
        if segment.at(2) == _NAME:
            self.cells.setdefault("Name", text)
        self._texts.append(text)
        if len(self._texts) > 1 or "Name" not in self.cells:
            self.cells["Description"] = "\n".join(self._texts)

    def _measure(self, segment: Segment) -> None:
        qualifier, value, unit = segment.at(2), segment.at(3), _UNITS.get(segment.first(4))
        packed = segment.at(1) in {"PK", "SD"}
        column = _WEIGHTS.get(qualifier) or _SIDES.get(qualifier)
        if column is None or not value:
            return
        if packed and not column.startswith("Package"):
            column = f"Package {column.lower()}"
        self._measured(column, value, unit, segment)

    def _measured(self, column: str, value: str, unit: str | None, segment: Segment) -> None:
        if unit is None:
            self._once.tell(f"measures ({column.lower()}) without a unit that is known are not used", segment.number)
        elif column != "Package depth":
            self.cells.setdefault(column, f"{value} {unit}")

    def _package(self, segment: Segment) -> None:
        """Read PO4: gross weight and sides of a pack; ignored if the pack holds several items."""
        if segment.at(1) not in {"", "1"}:
            self._once.tell("measures of packs that hold more than one item are not used", segment.number)
            return
        for column, value, unit in (("weight", 6, 7), ("length", 10, 13), ("width", 11, 13), ("height", 12, 13)):
            if segment.at(value):
                self._measured(f"Package {column}", segment.at(value), _UNITS.get(segment.first(unit)), segment)

    def _price(self, segment: Segment) -> None:
        code, price, least = segment.at(2), segment.at(3), segment.at(4)
        column = _PRICES.get(code)
        if not price:
            return
        if column is None:
            self._once.tell(f"prices of the kind {code[:10]} are not read", segment.number)
        elif least and not _ONE.fullmatch(least):
            self._once.tell("prices for larger quantities are not read", segment.number)
        elif segment.at(6) or segment.first(5) not in _PIECES:
            self._once.tell("prices with a multiplier, or by a unit that is no piece, are not read", segment.number)
        else:
            self.cells.setdefault(column, price)

    def _currency(self, segment: Segment) -> None:
        if segment.at(2):
            self.cells["Currency"] = segment.at(2).lower()

    def _quantity(self, segment: Segment) -> None:
        code, quantity = segment.at(1), segment.at(2)
        if code not in _AVAILABLE or not quantity:
            self._once.tell(f"quantities of the kind {code[:10]} are not used", segment.number)
        elif self._in_pieces(segment.first(3), segment):
            self._places[-1].quantities.setdefault(code, quantity)

    def _in_pieces(self, unit: str, segment: Segment) -> bool:
        if unit in _PIECES:
            return True
        self._once.tell(f"quantities in {unit[:10]}, which may hold several items, are not used", segment.number)
        return False

    def _schedule(self, segment: Segment) -> None:
        """Read SCH: an arriving quantity and its date."""
        if self._in_pieces(segment.first(2), segment):
            date = segment.at(6) if segment.at(5) in _ARRIVING else None
            self._places[-1].arrivals.append((segment.at(1) or None, date))

    def _date(self, segment: Segment) -> None:
        """Read DTM: the date of availability, unless a schedule has set one."""
        if segment.at(1) in {"018", "405"} and segment.at(2) and not self._places[-1].arrivals:
            self._places[-1].arrivals.append((None, segment.at(2)))

    def _place(self, segment: Segment) -> None:
        """Read N1 inside an item: the place of the stock that follows, or of the stock before if none follows."""
        if segment.at(1) not in _PLACES:
            return
        name = segment.at(4) or segment.at(2) or None
        if self._places[-1].is_blank():
            self._places[-1].name = name
        else:
            self._places.append(Place(name))

    def _by_place(self, segment: Segment) -> None:
        """Read SDQ: pairs of place and quantity."""
        if not self._in_pieces(segment.first(1), segment):
            return
        for place in range(3, len(segment.elements), 2):
            if segment.at(place) and segment.at(place + 1):
                self._places.append(Place(segment.at(place), {"33": segment.at(place + 1)}))
