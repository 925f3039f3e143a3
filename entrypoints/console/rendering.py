"""Rendering of console pages: templates, filters that format values of the API, and static files."""

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
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_skeleton, format_time, format_timedelta
from babel.lists import format_list
from babel.numbers import format_currency, format_decimal, format_percent
from babel.units import format_unit
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.runtime import Macro
from markupsafe import Markup, escape

from domain.catalogue.categories import category_by_id
from domain.ingestion.vocabulary.fields import split_field
from domain.kernel.clock import CLOCK
from domain.kernel.money import EXPONENTS
from domain.kernel.units import POUNDS_BY_UNIT, convert_unit
from entrypoints.console.translation import get_current_locale, gettext, ngettext
from entrypoints.http.exchange import Response

T = TypeVar("T")
STATIC_PATH = "/console/static/"
CATEGORY_SEPARATOR = " › "
"""Text between the names in the path of a category."""
"""Path below which the static files are served."""
_MEDIA_TYPES = {
    ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain", ".woff2": "font/woff2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ListPortion(Generic[T]):
    """Part of a long list that a page shows. `start` is the index of its first item, `total` the length of the list."""

    items: Sequence[T]
    start: int
    total: int

    @classmethod
    def from_items(cls, items: Sequence[T], start: int | None, max_items: int) -> "ListPortion[T]":
        """Return at most `max_items` items from the index `start`; from the first item if `start` is None or out of range."""
        first = start if start is not None and start < len(items) else 0
        return cls(items[first : first + max_items], first, len(items))

    @property
    def next_start(self) -> int | None:
        """Index at which the next portion of the list begins; None if this is the last portion."""
        end = self.start + len(self.items)
        return end if end < self.total else None

    @property
    def is_partial(self) -> bool:
        """True if the portion omits items of the list."""
        return len(self.items) < self.total


class StaticFiles:
    """Stylesheets, scripts and pictures, in paths that contain a digest of all files and so change with their contents."""

    def __init__(self) -> None:
        folder, digest = Path(__file__).parent / "static", blake2b(digest_size=6)
        self._files: dict[str, tuple[str, bytes]] = {}
        for path in sorted(folder.rglob("*")):
            if path.suffix in _MEDIA_TYPES:
                name, body = path.relative_to(folder).as_posix(), path.read_bytes()
                self._files[name] = _MEDIA_TYPES[path.suffix], body
                digest.update(name.encode() + b"\0" + body)
        self._base = f"{STATIC_PATH}{digest.hexdigest()}/"

    def build_path(self, name: str) -> str:
        """Return the path under which the file `name` is served. Raises KeyError if the file does not exist."""
        self._files[name]
        return self._base + name

    def read(self, name: str) -> bytes:
        """Return the contents of the file `name`. Raises KeyError if the file does not exist."""
        return self._files[name][1]

    def find(self, path: str) -> Response | None:
        """Return a response with the file at a path below STATIC_PATH, or None if there is no such file.

        A path with an outdated digest returns the current file, with headers that forbid caching.
        """
        name = path.removeprefix(STATIC_PATH).partition("/")[2]
        if name not in self._files:
            return None
        kind, body = self._files[name]
        is_current = path.startswith(self._base)
        headers = [
            (b"content-type", kind.encode() + (b"; charset=utf-8" if kind.startswith("text/") else b"")),
            (b"cache-control", b"public, max-age=31536000, immutable" if is_current else b"no-cache"),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"vary", b"Accept-Encoding"),
        ]
        return Response(200, headers, body)


@cache
def get_static_files() -> StaticFiles:
    """Return the static files of this process."""
    return StaticFiles()


LABELS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    files(__package__).joinpath("labels.toml").read_text("utf-8")
)
"""English labels of the values of enumerations, by table name and value."""
_AXES = ("width", "depth", "height", "diameter")
_UNITS = {"in": "″", "ft": "′"}
_BROWSERS = {
    "Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari",
}  # fmt: skip
_SYSTEMS = {
    "Windows": "Windows", "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Mac OS X": "macOS", "Linux": "Linux",
}  # fmt: skip


def to_utc_datetime(value: str | datetime) -> datetime:
    """Convert a timestamp of the API to a datetime in UTC."""
    return (value if isinstance(value, datetime) else datetime.fromisoformat(value)).astimezone(UTC)


def format_relative_time(value: str | datetime | None) -> Markup:
    """Format a time relative to now, such as `5 minutes ago`, as an HTML element with the exact time; a dash for None."""
    if value is None:
        return Markup('<span class="soft">–</span>')
    at = to_utc_datetime(value)
    difference = at - CLOCK.now()
    if abs(difference) < timedelta(seconds=5):
        text = gettext("just now")
    elif abs(difference) < timedelta(days=45):
        text = format_timedelta(difference, threshold=1, add_direction=True, locale=get_current_locale())
    else:
        text = format_day(at)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        at.isoformat(timespec="milliseconds"), format_exact_time(at), text
    )


def format_exact_time(value: str | datetime | None) -> str:
    """Format date and time in UTC, as in `2026-11-03 13:08:00`; a dash for None."""
    return "–" if value is None else to_utc_datetime(value).strftime("%Y-%m-%d %H:%M:%S")


def format_day(value: str | datetime) -> str:
    """Format the date of a timestamp, with its year and without its time: `Nov 3, 2026`."""
    return format_date(to_utc_datetime(value), locale=get_current_locale())


def format_short_date(value: dt.date | str) -> str:
    """Format a calendar date without its year: `Nov 3`."""
    at = dt.date.fromisoformat(value) if isinstance(value, str) else value
    return format_skeleton("MMMd", at, locale=get_current_locale())


def format_day_name(day: dt.date, today: dt.date) -> str:
    """Format a calendar date relative to today: `today`, `tomorrow`, the weekday within six days, otherwise `Nov 3`."""
    distance = (day - today).days
    if distance in (0, 1):
        return gettext("tomorrow") if distance else gettext("today")
    if abs(distance) < 7:
        return format_date(day, "EEEE", locale=get_current_locale())
    return format_short_date(day)


def format_next_run(source: Mapping[str, Any], stream: str = "catalogue") -> Markup:
    """Format the time of a source's next run: at a clock time in its zone, otherwise relative to now; empty without a run."""
    value = source.get("next_stock_run_at" if stream == "stock" else "next_run_at")
    if value is None:
        return Markup("")
    at, now, schedule = to_utc_datetime(value), CLOCK.now(), source["schedule"]
    if stream == "stock" or "at" not in schedule or at <= now:
        return escape(gettext("now")) if at <= now else format_relative_time(at)
    zone = schedule.get("time_zone", "UTC")
    local = at.astimezone(ZoneInfo(zone))
    text = gettext(
        "%(day)s %(time)s (%(zone)s)",
        day=format_day_name(local.date(), now.astimezone(ZoneInfo(zone)).date()),
        time=format_time(local.time(), "HH:mm", locale=get_current_locale()),
        zone=zone,
    )
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        at.isoformat(timespec="milliseconds"), format_exact_time(at), text
    )


def format_schedule(schedule: Mapping[str, Any], stream: str = "catalogue") -> str:
    """Format when a stream of a source is imported: `Monday to Friday at 06:30 (Europe/Berlin)`."""
    minutes = schedule.get("stock_interval_minutes" if stream == "stock" else "interval_minutes")
    if minutes is not None:
        return gettext("Every %(interval)s", interval=format_duration(minutes * 60))
    if stream == "stock" or "at" not in schedule:
        return gettext("Only on request")
    days = schedule.get("weekdays")
    if not days or len(set(days)) == 7:
        name = gettext("Every day")
    elif set(days) == {"mon", "tue", "wed", "thu", "fri"}:
        name = gettext("Monday to Friday")
    else:
        name = str(format_names(find_label(day, "weekdays") for day in LABELS["weekdays"] if day in days))
    return gettext(
        "%(days)s at %(times)s (%(zone)s)",
        days=name,
        times=str(format_names(sorted(set(schedule["at"])))),
        zone=schedule.get("time_zone", "UTC"),
    )


def format_number(value: float | Decimal | None) -> str:
    """Format a number; a dash for None."""
    return "–" if value is None else format_decimal(value, locale=get_current_locale(), decimal_quantization=False)


def format_share(percent: int) -> str:
    """Format a whole number of percent: `98%`."""
    return format_percent(percent / 100, locale=get_current_locale())


def format_money(value: Mapping[str, Any] | None) -> str:
    """Format an amount in minor units with its currency; a dash for None."""
    if not value:
        return "–"
    code = str(value["currency"])
    places = EXPONENTS.get(code.lower(), 2)  # those of ISO 4217; the locale data have fewer for some currencies
    pattern = (
        get_current_locale().currency_formats["standard"].pattern.replace(".00", f".{'0' * places}" if places else "")
    )
    amount = Decimal(value["amount"]).scaleb(-places)
    return format_currency(amount, code.upper(), pattern, get_current_locale(), currency_digits=False)


def format_micros(value: int | None) -> str:
    """Format an amount in millionths of a US dollar, with two to six decimal places; a dash for None."""
    if value is None:
        return "–"
    pattern = get_current_locale().currency_formats["standard"].pattern.replace(".00", ".00####")
    return format_currency(Decimal(value).scaleb(-6), "USD", pattern, get_current_locale(), currency_digits=False)


def format_balance(value: int) -> str:
    """Format an amount in millionths of a US dollar, rounded down to cents; less than a cent with all decimal places."""
    return format_micros(value if abs(value) < 10_000 else value // 10_000 * 10_000)


def format_dollars(micros: int | None) -> str:
    """Format millionths of a US dollar as the value of a form field: `5.00`; empty for None."""
    return "" if micros is None else f"{Decimal(micros).scaleb(-6):.2f}"


def format_byte_count(value: int | None) -> str:
    """Format a number of bytes with a unit and at most three significant digits: `1.25 MB`; a dash for None."""
    if value is None:
        return "–"
    amount, units = float(value), iter(("byte", "kilobyte", "megabyte", "gigabyte", "terabyte"))
    unit = next(units)
    while amount >= 1000 and unit != "terabyte":
        amount, unit = amount / 1000, next(units)
    if unit == "byte":
        return format_unit(value, "digital-byte", "long", locale=get_current_locale())
    return format_unit(float(f"{amount:.3g}"), f"digital-{unit}", "short", locale=get_current_locale())


def format_duration(seconds: float | None) -> str:
    """Format a duration with its two largest units: `2 h 5 min`; a dash for None."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return format_time_unit(round(seconds * 1000), "millisecond")
    remaining, parts = round(seconds), list[tuple[int, str]]()
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        count, remaining = divmod(remaining, unit)
        if count or parts:
            parts.append((count, name))
    return " ".join(format_time_unit(count, name) for count, name in parts[:2] if count)


def format_time_unit(count: float, unit: str) -> str:
    """Format a number of one unit of time: `5 min`."""
    return format_unit(count, f"duration-{unit}", "short", locale=get_current_locale())


def format_words(value: str | None) -> str:
    """Format a value of an enumeration as translated words: `Out of stock` for `out_of_stock`; a dash for None."""
    text = (value or "–").replace("_", " ").replace(".", " ")
    return gettext(text[:1].upper() + text[1:])


def find_label(value: str | None, table_name: str) -> str:
    """Return the label of an enumeration's value in the table `table_name` of labels.toml; without a label, format it as words."""
    found = LABELS[table_name].get(value or "")
    return gettext(found) if found else format_words(value)


def list_field_labels() -> dict[str, str]:
    """Return the labels of fields in the current language by template (`cartons.*.width`)."""
    return {template: gettext(label) for template, label in LABELS["mapping_fields"].items()}


def format_field_name(field: str) -> str:
    """Return the label of a field, with its number or name if it has one: `Carton width 2`."""
    template, part = split_field(field)
    label = list_field_labels().get(template, field)
    return f"{label} {format_field_part(part)}" if part else label


def format_field_part(part: str) -> str:
    """Return the variable part of a field as people see it: numbers begin with 1."""
    return str(int(part) + 1) if part.isdecimal() else part


def format_category(id: str) -> str:
    """Format a category of the taxonomy as its path: `Furniture › Tables`; an unknown ID is returned unchanged."""
    category = category_by_id().get(id)
    return CATEGORY_SEPARATOR.join(category.path) if category else id


def format_user_agent(user_agent: str) -> str:
    """Format a User-Agent header as `Firefox on macOS`; the header of an unknown browser is returned unchanged."""
    name = next((name for mark, name in _BROWSERS.items() if mark in user_agent), "")
    system = next((name for mark, name in _SYSTEMS.items() if mark in user_agent), "")
    return gettext("%(browser)s on %(system)s", browser=name, system=system) if name and system else user_agent


def format_measure(value: Mapping[str, Any]) -> str:
    """Format a length or weight in the unit of the language, with the stated value if its unit differs: `31.5″ (80 cm)`."""
    shown, stated = format_amount(convert_to_local_unit(value)), format_amount(value["given"])
    return shown if shown == stated else f"{shown} ({stated})"


def convert_to_local_unit(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a length or weight of the API in the unit of the language, in the form of its stated value."""
    amount, unit = Decimal(str(value["given"]["value"])), value["given"]["unit"]
    local = ("kg", "lb")[get_current_locale().language == "en"] if unit in POUNDS_BY_UNIT else _find_length_unit()
    converted = amount if unit == local else convert_unit(amount, unit, local).quantize(Decimal("0.01"))
    return {"value": converted.normalize(), "unit": local}


def _find_length_unit() -> str:
    """Return the unit of lengths in the current language."""
    return "in" if get_current_locale().language == "en" else "cm"


def format_amount(amount: Mapping[str, Any]) -> str:
    """Format a value with its unit, as the vendor stated it or as converted: `80 cm`, `31.5″`."""
    unit = amount["unit"]
    return format_number(Decimal(str(amount["value"]))) + _UNITS.get(unit, f" {unit}")


def format_fields(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the formatted fields of a product or variant by name, without empty ones."""
    return {path: text for path, value in data.items() if (text := format_field(value, path))}


def format_field(value: Any, path: str = "") -> str:
    """Format the value of a product's or variant's field; return an empty text for an empty value.

    Args:
        value: The value, as in the API.
        path: The field's name; `dimensions`, `media` and `category_path` have formats of their own.
    """
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return gettext("Yes") if value else gettext("No")
        case {"given": _}:
            return format_measure(value)
        case Mapping() if path == "dimensions":
            axes = {axis: value[axis] for axis in _AXES if axis in value}
            sides = {axis: format_amount(convert_to_local_unit(side)) for axis, side in axes.items()}
            stated = [format_amount(side["given"]) for side in axes.values()]
            main = " × ".join(f"{find_label(axis, 'axis_initials')} {text}" for axis, text in sides.items())
            main += f" ({' × '.join(stated)})" if stated != [*sides.values()] else ""
            others = [
                f"{format_words(name)} {format_measure(part)}" for name, part in value.items() if name not in _AXES
            ]
            return ", ".join([main, *others] if main else others)
        case Mapping():
            return "; ".join(f"{format_words(name)}: {text}" for name, text in format_fields(value).items())
        case Sequence():
            if path == "media":
                return ngettext("%(count)s image", "%(count)s images", len(value), count=format_number(len(value)))
            return (CATEGORY_SEPARATOR if path == "category_path" else ", ").join(
                text for one in value if (text := format_field(one))
            )
    return str(value)


def format_names(items: Iterable[Any]) -> Markup:
    """Join names in the current language, such as `Maple, Oak, and Pine`; names that are not Markup are escaped."""
    return Markup(format_list([str(escape(item)) for item in items], locale=get_current_locale()))  # noqa: S704  # escaped


def format_alternatives(items: Iterable[str]) -> str:
    """Join texts in the current language, such as `Maple, Oak, or Pine`."""
    return format_list([*items], "or", get_current_locale())


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "relative_time": format_relative_time,
    "exact_time": format_exact_time,
    "date": format_day,
    "short_date": format_short_date,
    "next_run": format_next_run,
    "schedule": format_schedule,
    "number": format_number,
    "share": format_share,
    "money": format_money,
    "micros": format_micros,
    "balance": format_balance,
    "size": format_byte_count,
    "duration": format_duration,
    "words": format_words,
    "label": find_label,
    "field_label": format_field_name,
    "browser": format_user_agent,
    "format_fields": format_fields,
    "format_field": format_field,
    "join_names": format_names,
}
"""Filters of the templates by name."""


class _Labels:
    """Tables of labels.toml in the current language; each table is an attribute with its name."""

    def __getattr__(self, kind: str) -> dict[str, str]:
        try:
            return {value: gettext(text) for value, text in LABELS[kind].items()}
        except KeyError:
            raise AttributeError(kind) from None


class _Environment(Environment):
    """Jinja environment in which a missing property of a JSON object is None, while an undefined name is an error."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        try:
            return getattr(obj, attribute)
        except AttributeError:
            return obj.get(attribute) if isinstance(obj, dict) else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return obj.get(argument) if isinstance(obj, dict) else super().getitem(obj, argument)


@cache
def get_environment() -> Environment:
    """Return the Jinja environment of this process, whose templates escape every value except Markup."""
    environment = _Environment(
        loader=PackageLoader("entrypoints.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
        extensions=["jinja2.ext.i18n"],
    )
    environment.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]  # of the extension
    environment.filters.update(FILTERS)
    environment.globals |= {
        "static": get_static_files().build_path,
        "labels": _Labels(),
        "number": format_number,
        "size": format_byte_count,
        "language": lambda: get_current_locale().language,
    }
    # Macros are globals because a block that is rendered alone does not run the imports of its template.
    macros = vars(environment.get_template("macros.html").module)
    environment.globals |= {name: value for name, value in macros.items() if isinstance(value, Macro)}
    return environment


def render_template(template: str, block: str | None, values: dict[str, Any]) -> str:
    """Render the block `block` of a template, or the whole template if `block` is None or not in the template."""
    loaded_template = get_environment().get_template(template)
    block_function = loaded_template.blocks.get(block) if block is not None else None
    if block_function is None:
        return loaded_template.render(values)
    return "".join(block_function(loaded_template.new_context(values))).strip()
