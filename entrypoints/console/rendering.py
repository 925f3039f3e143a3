"""Templates of the console, the filters that write values of the API for people, and the static files."""

import datetime as dt
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from babel.dates import format_date, format_skeleton, format_timedelta
from babel.lists import format_list
from babel.numbers import format_currency, format_decimal
from babel.units import format_unit
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.runtime import Macro
from markupsafe import Markup, escape

from domain.kernel.clock import CLOCK
from domain.kernel.money import EXPONENTS
from entrypoints.console.translation import current_locale, gettext, ngettext
from entrypoints.http.exchange import Response

T = TypeVar("T")
STATIC = "/console/static/"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}


@dataclass(frozen=True, slots=True)
class Portion(Generic[T]):
    """Consecutive items of a long list; `start` is the index of the first, `total` the length of the list."""

    items: Sequence[T]
    start: int
    total: int

    @classmethod
    def of(cls, items: Sequence[T], start: int | None, most: int) -> "Portion[T]":
        """Return at most `most` items from `start`, or from the first item if `start` is out of range."""
        begin = start if start is not None and start < len(items) else 0
        return cls(items[begin : begin + most], begin, len(items))

    @property
    def following(self) -> int | None:
        """Index at which the next portion begins; None after the last."""
        end = self.start + len(self.items)
        return end if end < self.total else None

    @property
    def parted(self) -> bool:
        """True if the list has other items."""
        return len(self.items) < self.total


class StaticFiles:
    """Stylesheets, scripts and pictures, served at an address that changes with their contents."""

    def __init__(self) -> None:
        folder, digest = Path(__file__).parent / "static", blake2b(digest_size=6)
        self._files: dict[str, tuple[str, bytes]] = {}
        for path in sorted(folder.rglob("*")):
            if path.suffix in _TYPES:
                name, body = path.relative_to(folder).as_posix(), path.read_bytes()
                self._files[name] = _TYPES[path.suffix], body
                digest.update(name.encode() + b"\0" + body)
        self._base = f"{STATIC}{digest.hexdigest()}/"

    def address(self, name: str) -> str:
        """Return the address of a file. Raises KeyError if it does not exist."""
        self._files[name]
        return self._base + name

    def find(self, path: str) -> Response | None:
        """Return the file at a path below STATIC; an earlier version's address returns the current file, uncached."""
        name = path.removeprefix(STATIC).partition("/")[2]
        if name not in self._files:
            return None
        kind, body = self._files[name]
        lasting = path.startswith(self._base)
        headers = [
            (b"content-type", kind.encode() + (b"; charset=utf-8" if kind.startswith("text/") else b"")),
            (b"cache-control", b"public, max-age=31536000, immutable" if lasting else b"no-cache"),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"vary", b"Accept-Encoding"),
        ]
        return Response(200, headers, body)


@cache
def static_files() -> StaticFiles:
    """Return the static files of this process."""
    return StaticFiles()


LABELS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    files(__package__).joinpath("labels.toml").read_text("utf-8")
)
_AXES = ("width", "depth", "height", "diameter")
_UNITS = {"in": "″", "ft": "′"}
_BROWSERS = {
    "Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari",
}  # fmt: skip
_SYSTEMS = {
    "Windows": "Windows", "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Mac OS X": "macOS", "Linux": "Linux",
}  # fmt: skip


def moment(value: str | datetime) -> datetime:
    """Convert a timestamp of the API to UTC."""
    return (value if isinstance(value, datetime) else datetime.fromisoformat(value)).astimezone(UTC)


def when(value: str | datetime | None) -> Markup:
    """Write a moment relative to now, with the exact time as the element's title; a dash for None."""
    if value is None:
        return Markup('<span class="soft">–</span>')
    at = moment(value)
    away = at - CLOCK.now()
    if abs(away) < timedelta(seconds=5):
        text = gettext("just now")
    elif abs(away) < timedelta(days=45):
        text = format_timedelta(away, threshold=1, add_direction=True, locale=current_locale())
    else:
        text = day(at)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        at.isoformat(timespec="milliseconds"), clock(at), text
    )


def clock(value: str | datetime | None) -> str:
    """Write the exact moment, in UTC."""
    return "–" if value is None else moment(value).strftime("%Y-%m-%d %H:%M:%S")


def day(value: str | datetime) -> str:
    """Write the date of a moment, without its time."""
    return format_date(moment(value), locale=current_locale())


def date(value: dt.date | str) -> str:
    """Write a calendar date without its year: `Nov 3`."""
    at = dt.date.fromisoformat(value) if isinstance(value, str) else value
    return format_skeleton("MMMd", at, locale=current_locale())


def number(value: float | Decimal | None) -> str:
    """Write a number; a dash for None."""
    return "–" if value is None else format_decimal(value, locale=current_locale(), decimal_quantization=False)


def money(value: Mapping[str, Any] | None) -> str:
    """Write an amount in minor units with its currency; a dash for None."""
    if not value:
        return "–"
    code = str(value["currency"])
    places = EXPONENTS.get(code.lower(), 2)  # those of ISO 4217; the locale data have fewer for some currencies
    pattern = current_locale().currency_formats["standard"].pattern.replace(".00", f".{'0' * places}" if places else "")
    amount = Decimal(value["amount"]).scaleb(-places)
    return format_currency(amount, code.upper(), pattern, current_locale(), currency_digits=False)


def size(value: int | None) -> str:
    """Write a number of bytes, to three digits."""
    if value is None:
        return "–"
    amount, units = float(value), iter(("byte", "kilobyte", "megabyte", "gigabyte", "terabyte"))
    unit = next(units)
    while amount >= 1000 and unit != "terabyte":
        amount, unit = amount / 1000, next(units)
    if unit == "byte":
        return format_unit(value, "digital-byte", "long", locale=current_locale())
    return format_unit(float(f"{amount:.3g}"), f"digital-{unit}", "short", locale=current_locale())


def span(seconds: float | None) -> str:
    """Write a length of time in its two largest units: `2 h 5 min`."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return _duration(round(seconds * 1000), "millisecond")
    rest, parts = round(seconds), list[tuple[int, str]]()
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        count, rest = divmod(rest, unit)
        if count or parts:
            parts.append((count, name))
    return " ".join(_duration(count, name) for count, name in parts[:2] if count)


def _duration(count: int, unit: str) -> str:
    return format_unit(count, f"duration-{unit}", "short", locale=current_locale())


def words(value: str | None) -> str:
    """Write a value of an enumeration as words: `out_of_stock` is `Out of stock`."""
    text = (value or "–").replace("_", " ").replace(".", " ")
    return gettext(text[:1].upper() + text[1:])


def label(value: str | None, kind: str) -> str:
    """Write a value of an enumeration by its label in labels.toml, or as words."""
    found = LABELS[kind].get(value or "")
    return gettext(found) if found else words(value)


def browser(agent: str) -> str:
    """Write a User-Agent header as `Firefox on macOS`; unchanged if the browser is not a common one."""
    name = next((name for mark, name in _BROWSERS.items() if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS.items() if mark in agent), "")
    return gettext("%(browser)s on %(system)s", browser=name, system=system) if name and system else agent


def measure(value: Mapping[str, Any]) -> str:
    """Write a length or weight in its original unit: `80 cm`."""
    given = value["given"]
    amount = f"{given['value']:g}" if isinstance(given["value"], float) else str(given["value"])
    return f"{amount}{_UNITS.get(given['unit'], ' ' + given['unit'])}"


def described(data: Mapping[str, Any]) -> dict[str, str]:
    """Write the fields of a product or variant; empty fields are omitted."""
    return {path: text for path, value in data.items() if (text := text_of(value, path))}


def text_of(value: Any, path: str = "") -> str:
    """Write a value of a field; empty if it has no text."""
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return gettext("Yes") if value else gettext("No")
        case {"given": _}:
            return measure(value)
        case Mapping() if path == "dimensions":
            main = " × ".join(
                f"{label(axis, 'axis_initials')} {measure(value[axis])}" for axis in _AXES if axis in value
            )
            others = [f"{words(name)} {measure(part)}" for name, part in value.items() if name not in _AXES]
            return ", ".join([main, *others] if main else others)
        case Mapping():
            return "; ".join(f"{words(name)}: {text}" for name, text in described(value).items())
        case Sequence():
            if path == "media":
                return ngettext("%(count)s picture", "%(count)s pictures", len(value), count=number(len(value)))
            return (" › " if path == "category_path" else ", ").join(text for one in value if (text := text_of(one)))
    return str(value)


def listing(items: Iterable[Any]) -> Markup:
    """Write a list of names: `Maple, Oak, and Pine`."""
    return Markup(format_list([str(escape(item)) for item in items], locale=current_locale()))  # noqa: S704  # escaped


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    one.__name__: one
    for one in (
        when, clock, day, date, number, money, size, span, words, label, browser, described, text_of, listing,
    )
}  # fmt: skip


class _Labels:
    """Tables of labels.toml in the current language, as attributes."""

    def __getattr__(self, kind: str) -> dict[str, str]:
        try:
            return {value: gettext(text) for value, text in LABELS[kind].items()}
        except KeyError:
            raise AttributeError(kind) from None


class _Environment(Environment):
    """Templates in which a missing property of a JSON object is None; an undefined name is an error."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        try:
            return getattr(obj, attribute)
        except AttributeError:
            return obj.get(attribute) if isinstance(obj, dict) else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return obj.get(argument) if isinstance(obj, dict) else super().getitem(obj, argument)


@cache
def environment() -> Environment:
    """Return the templates of this process, which escape every value except Markup."""
    made = _Environment(
        loader=PackageLoader("entrypoints.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
        extensions=["jinja2.ext.i18n"],
    )
    made.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]  # of the extension
    made.filters.update(FILTERS)
    made.globals |= {
        "static": static_files().address,
        "labels": _Labels(),
        "number": number,
        "size": size,
        "language": lambda: current_locale().language,
    }
    # Macros are globals because a block that is rendered alone does not run the imports of its template.
    macros = vars(made.get_template("macros.html").module)
    made.globals |= {name: value for name, value in macros.items() if isinstance(value, Macro)}
    return made


def rendered(template: str, block: str | None, values: dict[str, Any]) -> str:
    """Render a template, or only one of its blocks if it has a block of that name."""
    found = environment().get_template(template)
    part = found.blocks.get(block) if block is not None else None
    if part is None:
        return found.render(values)
    return "".join(part(found.new_context(values))).strip()
