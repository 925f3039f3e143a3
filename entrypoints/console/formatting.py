"""How values of the API are written for people: moments, amounts, sizes, words of enumerations."""

import datetime as dt
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files
from typing import Any, Final

from markupsafe import Markup

from domain.kernel.clock import CLOCK
from domain.kernel.money import EXPONENTS

LABELS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    files(__package__).joinpath("labels.toml").read_text("utf-8")
)
_SPANS: Final = ((60, 1, "second"), (3600, 60, "minute"), (86400, 3600, "hour"), (86400 * 45, 86400, "day"))
_SIGNS: Final = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}
_AXES: Final = ("width", "depth", "height", "diameter")
_UNITS: Final = {"in": "″", "ft": "′"}
_BROWSERS: Final = {
    "Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari",
}  # fmt: skip
_SYSTEMS: Final = {
    "Windows": "Windows", "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Mac OS X": "macOS", "Linux": "Linux",
}  # fmt: skip


def moment(value: str | datetime) -> datetime:
    """Return a timestamp of the API as a moment in UTC."""
    return (value if isinstance(value, datetime) else datetime.fromisoformat(value)).astimezone(UTC)


def when(value: str | datetime | None, now: datetime | None = None) -> Markup:
    """Write a moment as people say it, with the exact one in the element; a dash for none."""
    if value is None:
        return Markup('<span class="soft">–</span>')
    at = moment(value)
    seconds = int(((now or CLOCK.now()) - at).total_seconds())
    text = "just now" if abs(seconds) < 5 else at.strftime("%-d %b %Y")
    for below, unit, name in _SPANS:
        if 5 <= abs(seconds) < below:
            words = plural(abs(seconds) // unit, name)
            text = f"in {words}" if seconds < 0 else f"{words} ago"
            break
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        at.isoformat(timespec="milliseconds"), clock(at), text
    )


def clock(value: str | datetime | None) -> str:
    """Write the exact moment, in UTC."""
    return "–" if value is None else moment(value).strftime("%Y-%m-%d %H:%M:%S")


def day(value: str | datetime) -> str:
    """Write the date alone."""
    return moment(value).strftime("%-d %b %Y")


def date(value: dt.date | str) -> str:
    """Write a calendar date: `3 Nov`."""
    return (dt.date.fromisoformat(value) if isinstance(value, str) else value).strftime("%-d %b")


def number(value: float | Decimal | None) -> str:
    """Write a number with thin gaps between thousands; a dash for none."""
    if value is None:
        return "–"
    return f"{int(value) if value == int(value) else value:,}".replace(",", "\u202f")


def minor_places(currency: str) -> int:
    """Return how many decimals a currency's amounts have (ISO 4217)."""
    return EXPONENTS.get(currency.lower(), 2)


def money(value: Mapping[str, Any] | None) -> str:
    """Write an amount in minor units with its currency; a dash for none."""
    if not value:
        return "–"
    code = str(value["currency"]).upper()
    places = minor_places(code)
    text = f"{Decimal(value['amount']).scaleb(-places):,.{places}f}".replace(",", "\u202f")
    return f"{_SIGNS[code]}{text}" if code in _SIGNS else f"{text} {code}"


def size(value: int | None) -> str:
    """Write a number of bytes."""
    if value is None:
        return "–"
    amount, units = float(value), iter(("bytes", "KB", "MB", "GB", "TB"))
    unit = next(units)
    while amount >= 1000 and unit != "TB":
        amount, unit = amount / 1000, next(units)
    return f"{value} bytes" if unit == "bytes" else f"{amount:.3g} {unit}"


def span(seconds: float | None) -> str:
    """Write a length of time in its two largest units: `2 h 5 min`."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    rest, parts = round(seconds), list[tuple[int, str]]()
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, rest = divmod(rest, unit)
        if count or parts:
            parts.append((count, name))
    return " ".join(f"{count} {name}" for count, name in parts[:2] if count)


def words(value: str | None) -> str:
    """Write a value of an enumeration as words: `out_of_stock` is `Out of stock`."""
    text = (value or "–").replace("_", " ").replace(".", " ")
    return text[:1].upper() + text[1:]


def label(value: str | None, kind: str) -> str:
    """Write a value of an enumeration as labels.toml has it, else as words."""
    return LABELS[kind].get(value or "") or words(value)


def plural(count: int, one: str, many: str | None = None) -> str:
    """Write `1 offer`, `2 offers`."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def browser(agent: str) -> str:
    """Write what a browser calls itself, as people know it: `Firefox on macOS`; as it came when it is none of the common ones."""
    name = next((name for mark, name in _BROWSERS.items() if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS.items() if mark in agent), "")
    return f"{name} on {system}" if name and system else agent


def measure(value: Mapping[str, Any]) -> str:
    """Write a length or weight as it was given: `80 cm`."""
    given = value["given"]
    amount = f"{given['value']:g}" if isinstance(given["value"], float) else str(given["value"])
    return f"{amount}{_UNITS.get(given['unit'], ' ' + given['unit'])}"


def described(data: Mapping[str, Any]) -> dict[str, str]:
    """Write the fields of a product or variant; those that have nothing to say are left out."""
    return {path: text for path, value in data.items() if (text := text_of(value, path))}


def text_of(value: Any, path: str = "") -> str:
    """Write a value of a field; empty for what words cannot say."""
    if path == "media":
        return plural(len(value), "picture")
    if path == "category_path":
        return " › ".join(value)
    if path == "dimensions":
        main = " × ".join(f"{axis[0].upper()} {measure(value[axis])}" for axis in _AXES if axis in value)
        others = [f"{words(name).lower()} {measure(part)}" for name, part in value.items() if name not in _AXES]
        return ", ".join([main, *others] if main else others)
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, Mapping):
        parts = {name: text_of(part) for name, part in value.items()}
        return (
            measure(value)
            if "given" in value
            else "; ".join(f"{words(n)}: {text}" for n, text in parts.items() if text)
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(text for one in value if (text := text_of(one)))
    return "" if value is None else str(value)


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    one.__name__: one
    for one in (when, clock, day, date, number, money, size, span, words, label, plural, browser, described, text_of)
}
