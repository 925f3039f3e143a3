"""How values of the API are written for people: moments, amounts, sizes, words of enumerations."""

import datetime as dt
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from markupsafe import Markup

from domain.kernel.clock import CLOCK
from domain.kernel.money import EXPONENTS

_SPANS: Final = ((60, 1, "second"), (3600, 60, "minute"), (86400, 3600, "hour"), (86400 * 45, 86400, "day"))
_BYTES: Final = ("bytes", "KB", "MB", "GB", "TB")
_SIGNS: Final = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}


def moment(value: str | datetime) -> datetime:
    """A timestamp of the API as a moment."""
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def when(value: str | datetime | None, now: datetime | None = None) -> Markup:
    """A moment as people say it, with the exact one in the element; a dash for none."""
    if value is None:
        return Markup('<span class="soft">–</span>')
    at = moment(value).astimezone(UTC)
    exact = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(timespec="milliseconds"), exact, _said(at, now or CLOCK.now())
    )


def _said(at: datetime, now: datetime) -> str:
    seconds = int((now - at).total_seconds())
    ahead, seconds = seconds < 0, abs(seconds)
    if seconds < 5:
        return "just now"
    for below, unit, name in _SPANS:
        if seconds < below:
            count = seconds // unit
            words = f"{count} {name}{'' if count == 1 else 's'}"
            return f"in {words}" if ahead else f"{words} ago"
    return at.strftime("%-d %b %Y")


def clock(value: str | datetime | None) -> str:
    """The exact moment, in UTC."""
    return "–" if value is None else moment(value).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def day(value: str | datetime) -> str:
    """The date alone."""
    return moment(value).astimezone(UTC).strftime("%-d %b %Y")


def date(value: dt.date | str) -> str:
    """A calendar date: `3 Nov`."""
    found = dt.date.fromisoformat(value) if isinstance(value, str) else value
    return found.strftime("%-d %b")


def number(value: float | Decimal | None) -> str:
    """A number with thin gaps between thousands; a dash for none."""
    if value is None:
        return "–"
    whole = int(value) if value == int(value) else value
    return f"{whole:,}".replace(",", "\u202f")


def minor_places(currency: str) -> int:
    """How many decimals a currency's amounts have (ISO 4217)."""
    return EXPONENTS.get(currency.lower(), 2)


def money(value: Mapping[str, Any] | None) -> str:
    """An amount in minor units with its currency; a dash for none."""
    if not value:
        return "–"
    code = str(value["currency"]).upper()
    places = minor_places(code)
    amount = Decimal(value["amount"]).scaleb(-places)
    text = f"{amount:,.{places}f}".replace(",", "\u202f")
    return f"{_SIGNS[code]}{text}" if code in _SIGNS else f"{text} {code}"


def size(value: int | None) -> str:
    """A number of bytes."""
    if value is None:
        return "–"
    amount, step = float(value), 0
    while amount >= 1000 and step < len(_BYTES) - 1:
        amount, step = amount / 1000, step + 1
    return f"{int(amount)} bytes" if step == 0 else f"{amount:.3g} {_BYTES[step]}"


def span(seconds: float | None) -> str:
    """A length of time in its two largest units: `2 h 5 min`."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    whole = round(seconds)
    units = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    parts: list[str] = []
    for unit, name in units:
        count, whole = divmod(whole, unit)
        if count or parts:
            parts.append(f"{count} {name}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part)


def words(value: str | None) -> str:
    """A value of an enumeration as words: `out_of_stock` is `Out of stock`."""
    text = (value or "–").replace("_", " ").replace(".", " ")
    return text[:1].upper() + text[1:]


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 offer`, `2 offers`."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


_BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("Windows", "Windows"), ("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Mac OS X", "macOS"), ("Linux", "Linux"),
)  # fmt: skip


def browser(agent: str) -> str:
    """What a browser calls itself, as people know it: `Firefox on macOS`; as it came when it is none of the common ones."""
    name = next((name for mark, name in _BROWSERS if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    return f"{name} on {system}" if name and system else agent


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "when": when,
    "clock": clock,
    "day": day,
    "date": date,
    "number": number,
    "money": money,
    "size": size,
    "span": span,
    "words": words,
    "plural": plural,
    "browser": browser,
}
