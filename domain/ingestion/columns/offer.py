"""How columns about prices, stock and delivery are read."""

from typing import Any, Final

from domain.ingestion.columns.product import Factory, Reader
from domain.ingestion.drafts.draft import NO_PLACE, RowDraft, settings_of
from domain.ingestion.model import Column, Context
from domain.ingestion.values.dates import parse_date, parse_lead_time
from domain.ingestion.values.money import parse_money
from domain.ingestion.values.parsed import Reading, refused
from domain.ingestion.values.stock import parse_availability, parse_stock
from domain.ingestion.values.text import line_of_text, stated
from domain.ingestion.vocabulary.fields import MONEY
from domain.kernel.money import EXPONENTS

_FLAGS: Final = {"1": "in_stock", "0": "out_of_stock", "true": "in_stock", "false": "out_of_stock"}


def _money_text(cell: dict[str, Any]) -> str:
    """A JSON price (`{"amount": "12.00", "currency": "USD"}`) as text."""
    amount = next((cell[key] for key in ("amount", "value", "price") if cell.get(key) is not None), "")
    code = next((cell[key] for key in ("currency", "currencyCode", "currency_code") if cell.get(key)), "")
    return f"{amount} {code}".strip()


def _money(column: Column, context: Context) -> Reader:
    name, header = column.field, column.column
    location = settings_of(column.settings, "location") or NO_PLACE
    stated_currency = settings_of(column.settings, "currency")
    currency = stated_currency.lower() if stated_currency else context.currency
    decimal = settings_of(column.settings, "decimal") or context.decimal

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if cell.__class__ is dict:
            text = _money_text(cell)
        # A number from a spreadsheet or JSON has its decimal point whatever the source's text columns write.
        mark = decimal if cell.__class__ is str else "dot"
        price = row.taken(name, header, parse_money(text, row.currency or currency, mark))
        if price is None:
            return
        offer = row.offer(location)
        if offer.setdefault("currency", price.currency) != price.currency:
            other = refused(
                "conflict", text, f"is in {price.currency}, other prices of the offer in {offer['currency']}"
            )
            row.taken(name, header, other)
            return
        offer.setdefault(name, price.minor)  # type: ignore[misc]

    return read


def _currency(column: Column, context: Context) -> Reader:
    header = column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        code = (stated(text) or "").lower()
        if code in EXPONENTS:
            row.currency = code
        elif code:
            row.taken("currency", header, refused("unknown_currency", text, "is no currency code"))

    return read


def _location(column: Column, context: Context) -> Reader:
    header = column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        row.location = row.taken("location", header, line_of_text(text))

    return read


def _stock(column: Column, context: Context) -> Reader:
    name, header = column.field, column.column
    location = settings_of(column.settings, "location") or NO_PLACE
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


def _lead_time(column: Column, context: Context) -> Reader:
    header, unit = column.column, settings_of(column.settings, "unit") or "days"
    location = settings_of(column.settings, "location") or NO_PLACE

    def read(row: RowDraft, text: str, cell: Any) -> None:
        days = row.taken("lead_time_days", header, parse_lead_time(text, unit))
        if days is not None:
            row.offer(location).setdefault("lead_time_days", days)

    return read


def _ordered(text: str) -> Reading[int]:
    reading = parse_stock(text)
    return Reading(reading.value.quantity if reading.value else None, reading.faults)


def _incoming(column: Column, context: Context) -> Reader:
    _, number, name = column.field.split(".")
    place, header, field = int(number), column.column, column.field
    location = settings_of(column.settings, "location") or NO_PLACE
    order = settings_of(column.settings, "order")

    def read(row: RowDraft, text: str, cell: Any) -> None:
        value: Any = row.taken(field, header, parse_date(text, order) if name == "eta" else _ordered(text))
        if not value:
            return
        incoming = row.offer(location).setdefault("incoming", [])
        while len(incoming) <= place:
            incoming.append({})
        incoming[place].setdefault(name, value)  # type: ignore[misc]

    return read


FACTORIES: Final[dict[str, Factory]] = {
    **dict.fromkeys(MONEY, _money),
    "currency": _currency,
    "location": _location,
    "quantity": _stock,
    "availability": _stock,
    "lead_time_days": _lead_time,
    "incoming": _incoming,
}
