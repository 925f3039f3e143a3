"""Extraction of cells from the segments of one X12 item: codes, texts, measures, prices and stock by location."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ..tables import Cell, Report
from .x12 import Segment

_CODE_QUALIFIERS = {
    "SKU": ("VN", "VP", "VC", "SK", "VA"),
    "GTIN": ("UK", "EN", "UP", "EO", "UI"),
    "Manufacturer number": ("MG", "MF", "MN", "MP"),
}
"""Qualifiers of item codes in LIN (element 235) by column, the most reliable first, without those of buyers' codes."""
_TEXT_COLUMNS = {"73": "Colour", "75": "Colour", "35": "Colour", "74": "Size", "91": "Size"}
_NAME_CODE = "08"
_PRICE_CODES = {
    "Cost": ("UCP", "NET", "CON", "WHL", "DIS"),
    "List price": ("MSR", "RTL", "LPR", "SLP"),
    "Price": ("RES",),
    "Minimum advertised price": ("MAP",),
}
"""Price identifiers (element 236) by column; of several prices of an item, the first in this order is used."""
_PRICE_COLUMNS = {code: (column, rank) for column, codes in _PRICE_CODES.items() for rank, code in enumerate(codes)}
_SIDE_COLUMNS = {"LN": "Length", "WD": "Width", "DP": "Depth", "HT": "Height"}
_WEIGHT_COLUMNS = {"WT": "Weight", "N": "Weight", "G": "Package weight"}
_UNITS = {
    "LB": "lb", "01": "lb", "KG": "kg", "50": "kg", "OZ": "oz", "GR": "g",
    "IN": "in", "FT": "ft", "CM": "cm", "MM": "mm", "MR": "m",
}  # fmt: skip
"""Units by code of the unit of measure (element 355)."""
_PIECE_UNITS = frozenset({"", "EA", "PC", "PCE", "UN", "ST", "SET", "PR"})
_AVAILABLE_QUALIFIERS = ("33", "QA", "17", "1")
"""Qualifiers of available quantities (element 673), the most reliable first: available, current, on hand, discrete."""
_ARRIVAL_QUALIFIERS = frozenset({"018", "010", "017", "067", "371", "405"})
_LOCATION_QUALIFIERS = frozenset({"WH", "SF", "DC"})
_ZERO_OR_ONE = re.compile(r"0*[01](?:\.0*)?")


class OnceReporter:
    """Reporter that passes each different message on once, with the line at which it first occurs."""

    def __init__(self, report: Callable[[Report], None]) -> None:
        self._report = report
        self._details: set[str] = set()

    def report_once(self, detail: str, line: int | None = None) -> None:
        """Report a message unless the same message was already reported; after a thousand messages, report none."""
        if detail not in self._details and len(self._details) < 1_000:
            self._details.add(detail)
            self._report(Report(detail, line))


class TransactionHeader:
    """Data before the first item of a transaction that applies to all items: location of the stock, and currency."""

    def __init__(self) -> None:
        self.location: str | None = None
        self.currency: str | None = None

    def read_segment(self, segment: Segment) -> None:
        """Set the location or the currency from a segment; ignore other segments."""
        if segment.name == "N1" and segment.get_element(1) in _LOCATION_QUALIFIERS:
            self.location = segment.get_element(4) or segment.get_element(2) or None
        elif segment.name == "CUR" and segment.get_element(2):
            self.currency = segment.get_element(2).lower()


@dataclass(slots=True)
class StockLocation:
    """Stock of an item at one location.

    `quantities` are the quantities in the file by X12 qualifier, `arrivals` are pairs of an expected quantity and its date.
    """

    name: str | None
    quantities: dict[str, str] = field(default_factory=dict)
    arrivals: list[tuple[str | None, str | None]] = field(default_factory=list)

    def find_available_quantity(self) -> str | None:
        """Return the most reliable available quantity as text, or None."""
        return next((self.quantities[code] for code in _AVAILABLE_QUALIFIERS if code in self.quantities), None)

    def is_empty(self) -> bool:
        """Return whether the location has neither quantities nor arrivals."""
        return not self.quantities and not self.arrivals


class X12ItemCells:
    """Collector of the cells of one item, by column, from the item's segments."""

    def __init__(self, header: TransactionHeader, once: OnceReporter) -> None:
        self.cells: dict[str, Cell] = {"Currency": header.currency}
        self._price_ranks: dict[str, int] = {}
        self._once = once
        self._texts: list[str] = []
        self._locations = [StockLocation(header.location)]
        self._readers: dict[str, Callable[[Segment], None]] = {
            "LIN": self._read_codes, "PID": self._read_text, "MEA": self._read_measure, "CTP": self._read_price, "CUR": self._read_currency,
            "PO4": self._read_package, "QTY": self._read_quantity, "SCH": self._read_schedule, "DTM": self._read_date, "N1": self._read_location,
            "SDQ": self._read_quantities_by_location,
        }  # fmt: skip

    def read_segment(self, segment: Segment) -> None:
        """Add the data of a segment to the cells; segments with an unknown name are ignored."""
        reader = self._readers.get(segment.name)
        if reader is not None:
            reader(segment)

    def list_locations(self) -> list[StockLocation]:
        """Return the locations with stock data; without stock data, only the first location."""
        if len(self._locations) == 2 and self._locations[1].is_empty():
            self._locations[0].name = self._locations[1].name
        return [location for location in self._locations if not location.is_empty()] or self._locations[:1]

    def _read_codes(self, segment: Segment) -> None:
        code_by_qualifier: dict[str, str] = {}
        for position in range(2, len(segment.elements), 2):
            code_by_qualifier.setdefault(segment.get_element(position), segment.get_element(position + 1))
        for column, qualifiers in _CODE_QUALIFIERS.items():
            codes = (code_by_qualifier.get(qualifier) for qualifier in qualifiers)
            self.cells[column] = next(filter(None, codes), None)

    def _read_text(self, segment: Segment) -> None:
        text, column = segment.get_element(5), _TEXT_COLUMNS.get(segment.get_element(2))
        if not text:
            return
        if column:
            self.cells.setdefault(column, text)
            return
        if segment.get_element(2) == _NAME_CODE:
            self.cells.setdefault("Name", text)
        self._texts.append(text)
        if len(self._texts) > 1 or "Name" not in self.cells:
            self.cells["Description"] = "\n".join(self._texts)

    def _read_measure(self, segment: Segment) -> None:
        qualifier, value, unit = (
            segment.get_element(2),
            segment.get_element(3),
            _UNITS.get(segment.get_first_component(4)),
        )
        packed = segment.get_element(1) in {"PK", "SD"}
        column = _WEIGHT_COLUMNS.get(qualifier) or _SIDE_COLUMNS.get(qualifier)
        if column is None or not value:
            return
        if packed and not column.startswith("Package"):
            column = f"Package {column.lower()}"
        self._set_measure(column, value, unit, segment)

    def _set_measure(self, column: str, value: str, unit: str | None, segment: Segment) -> None:
        if unit is None:
            self._once.report_once(f"measures ({column.lower()}) without a known unit are not used", segment.number)
        elif column != "Package depth":
            self.cells.setdefault(column, f"{value} {unit}")

    def _read_package(self, segment: Segment) -> None:
        """Read the segment PO4: gross weight and dimensions of a package; report a package of several items."""
        if segment.get_element(1) not in {"", "1"}:
            self._once.report_once("measures of packs with several items are not used", segment.number)
            return
        for column, value, unit in (("weight", 6, 7), ("length", 10, 13), ("width", 11, 13), ("height", 12, 13)):
            if segment.get_element(value):
                self._set_measure(
                    f"Package {column}",
                    segment.get_element(value),
                    _UNITS.get(segment.get_first_component(unit)),
                    segment,
                )

    def _read_price(self, segment: Segment) -> None:
        code, price, min_quantity = segment.get_element(2), segment.get_element(3), segment.get_element(4)
        if not price:
            return
        if code not in _PRICE_COLUMNS:
            self._once.report_once(f"prices with the price identifier code {code[:10]} are not used", segment.number)
        elif min_quantity and not _ZERO_OR_ONE.fullmatch(min_quantity):
            self._once.report_once("prices for larger quantities are not used", segment.number)
        elif segment.get_element(6) or segment.get_first_component(5) not in _PIECE_UNITS:
            self._once.report_once(
                "prices with a multiplier, or for a unit other than the piece, are not used", segment.number
            )
        else:
            column, rank = _PRICE_COLUMNS[code]
            if self.cells.get(column, price) != price:
                detail = f"an item has several prices for the column {column}; the first of {', '.join(_PRICE_CODES[column])} is used"
                self._once.report_once(detail, segment.number)
            if rank < self._price_ranks.get(column, len(_PRICE_COLUMNS)):
                self.cells[column], self._price_ranks[column] = price, rank

    def _read_currency(self, segment: Segment) -> None:
        if segment.get_element(2):
            self.cells["Currency"] = segment.get_element(2).lower()

    def _read_quantity(self, segment: Segment) -> None:
        code, quantity = segment.get_element(1), segment.get_element(2)
        if code not in _AVAILABLE_QUALIFIERS or not quantity:
            self._once.report_once(f"quantities with the qualifier {code[:10]} are not used", segment.number)
        elif self._is_in_pieces(segment.get_first_component(3), segment):
            self._locations[-1].quantities.setdefault(code, quantity)

    def _is_in_pieces(self, unit: str, segment: Segment) -> bool:
        if unit in _PIECE_UNITS:
            return True
        self._once.report_once(
            f"quantities in the unit {unit[:10]} are not used, because it may contain several items", segment.number
        )
        return False

    def _read_schedule(self, segment: Segment) -> None:
        """Read the segment SCH: an expected quantity and its date."""
        if self._is_in_pieces(segment.get_first_component(2), segment):
            date = segment.get_element(6) if segment.get_element(5) in _ARRIVAL_QUALIFIERS else None
            self._locations[-1].arrivals.append((segment.get_element(1) or None, date))

    def _read_date(self, segment: Segment) -> None:
        """Read the segment DTM: the date of the next availability, unless a segment SCH has stated an arrival."""
        if segment.get_element(1) in {"018", "405"} and segment.get_element(2) and not self._locations[-1].arrivals:
            self._locations[-1].arrivals.append((None, segment.get_element(2)))

    def _read_location(self, segment: Segment) -> None:
        """Read the segment N1 of an item: the name of the location to which the following stock segments belong."""
        if segment.get_element(1) not in _LOCATION_QUALIFIERS:
            return
        name = segment.get_element(4) or segment.get_element(2) or None
        if self._locations[-1].is_empty():
            self._locations[-1].name = name
        else:
            self._locations.append(StockLocation(name))

    def _read_quantities_by_location(self, segment: Segment) -> None:
        """Read the segment SDQ: pairs of a location and the quantity there."""
        if not self._is_in_pieces(segment.get_first_component(1), segment):
            return
        for position in range(3, len(segment.elements), 2):
            if segment.get_element(position) and segment.get_element(position + 1):
                self._locations.append(
                    StockLocation(segment.get_element(position), {"33": segment.get_element(position + 1)})
                )
