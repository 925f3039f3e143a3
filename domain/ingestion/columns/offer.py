"""How columns about prices, stock and delivery are read."""

from typing import Any, Final

from domain.ingestion.columns.readers import CellReader, ReaderFactory, decimal_mark
from domain.ingestion.drafts.draft import NO_PLACE, RowDraft
from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.values.dates import parse_date, parse_lead_time
from domain.ingestion.values.money import parse_money
from domain.ingestion.values.parsed import Parsed, refused
from domain.ingestion.values.stock import parse_availability, parse_stock
from domain.ingestion.values.text import line_of_text, stated
from domain.ingestion.vocabulary.fields import MONEY
from domain.kernel.money import EXPONENTS
from domain.kernel.problems import ProblemKind

_FLAGS: Final = {"1": "in_stock", "0": "out_of_stock", "true": "in_stock", "false": "out_of_stock"}


def _money_text(cell: dict[str, Any]) -> str:
    """A JSON price (`{"amount": "12.00", "currency": "USD"}`) as text."""
    amount = next((cell[key] for key in ("amount", "value", "price") if cell.get(key) is not None), "")
    code = next((cell[key] for key in ("currency", "currencyCode", "currency_code") if cell.get(key)), "")
    return f"{amount} {code}".strip()


def _money(column: Column, settings: FeedSettings) -> CellReader:
    name, header = column.field, column.column
    location = column.setting("location") or NO_PLACE
    stated_currency = column.setting("currency")
    currency = stated_currency.lower() if stated_currency else settings.currency
    mark_of = decimal_mark(column, settings)

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if cell.__class__ is dict:
            text = _money_text(cell)
        price = row.taken(name, header, parse_money(text, row.currency or currency, mark_of(cell)))
        if price is None:
            return
        offer = row.offer(location)
        if offer.setdefault("currency", price.currency) != price.currency:
            other = refused(
                ProblemKind.CONFLICT, text, f"is in {price.currency}, other prices of the offer in {offer['currency']}"
            )
            row.taken(name, header, other)
            return
        offer.setdefault(name, price.minor)  # type: ignore[misc]

    return read


def _currency(column: Column, settings: FeedSettings) -> CellReader:
    header = column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        code = (stated(text) or "").lower()
        if code in EXPONENTS:
            row.currency = code
        elif code:
            row.taken("currency", header, refused(ProblemKind.UNKNOWN_CURRENCY, text, "is no currency code"))

    return read


def _location(column: Column, settings: FeedSettings) -> CellReader:
    header = column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        row.location = row.taken("location", header, line_of_text(text))

    return read


def _stock(column: Column, settings: FeedSettings) -> CellReader:
    name, header = column.field, column.column
    location = column.setting("location") or NO_PLACE
    parse = parse_stock if name == "quantity" else parse_availability
    flag = "flag" in column.settings

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if flag and text.strip().lower() in _FLAGS:
            # A bare yes adds nothing to a quantity; without one it is all that is known.
            if "quantity" not in row.offer(location):
                row.offer(location)["availability"] = _FLAGS[text.strip().lower()]
            return
        stock = row.taken(name, header, parse(text))
        if stock is None:
            return
        offer = row.offer(location)
        if stock.quantity is not None:
            offer.setdefault("quantity", stock.quantity)
        if stock.availability is not None:
            offer.setdefault("availability", stock.availability)

    return read


def _lead_time(column: Column, settings: FeedSettings) -> CellReader:
    header, unit = column.column, column.setting("unit") or "days"
    location = column.setting("location") or NO_PLACE

    def read(row: RowDraft, text: str, cell: Any) -> None:
        days = row.taken("lead_time_days", header, parse_lead_time(text, unit))
        if days is not None:
            row.offer(location).setdefault("lead_time_days", days)

    return read


def _ordered(text: str) -> Parsed[int]:
    parsed = parse_stock(text)
    return Parsed(parsed.value.quantity if parsed.value else None, parsed.faults)


def _incoming(column: Column, settings: FeedSettings) -> CellReader:
    _, number, name = column.field.split(".")
    place, header, field = int(number), column.column, column.field
    location = column.setting("location") or NO_PLACE
    order = column.setting("order")

    def read(row: RowDraft, text: str, cell: Any) -> None:
        value: Any = row.taken(field, header, parse_date(text, order) if name == "eta" else _ordered(text))
        if not value:
            return
        incoming = row.offer(location).setdefault("incoming", [])
        while len(incoming) <= place:
            incoming.append({})
        incoming[place].setdefault(name, value)  # type: ignore[misc]

    return read


FACTORIES: Final[dict[str, ReaderFactory]] = {
    **dict.fromkeys(MONEY, _money),
    "currency": _currency,
    "location": _location,
    "quantity": _stock,
    "availability": _stock,
    "lead_time_days": _lead_time,
    "incoming": _incoming,
}
