"""What the values below a header prove: which of its meanings it has, and how to read them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.values.amounts import amount_at
from domain.ingestion.values.dates import order_shown
from domain.ingestion.values.lengths import unit_named
from domain.ingestion.values.money import decimal_shown
from domain.ingestion.values.weights import weight_unit_named
from domain.ingestion.vocabulary.fields import IGNORE, MONEY
from domain.ingestion.vocabulary.senses import Sense

_NUMBER: Final = re.compile(r"[$€£]?\s*-?\d[\d,.]*\s*\+?")
_LONG_NUMBER: Final = re.compile(r"\d{10,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I)
_SIZED: Final = re.compile(r"\d[\d.\s/]{0,40}+(?:\"|''|cm|mm|in\b)?+\s*+[wdhlb]?+\s*+[x×*]\s*+\d", re.I)
_FEET: Final = re.compile(r"\d\s*['’′]|\d\s*ft\b|\b(?:round|runner|rnd|oval)\b", re.I)
_STATUS_STOCK: Final = re.compile(r"in.?stock|out.?of.?stock|back.?order|available|sold ?out|pre.?order", re.I)
_CODE: Final = re.compile(r"[A-Z0-9](?=[A-Z/+_.\-]*+\d)[A-Z0-9/+_.\-]*+", re.I)
_ADDRESS: Final = re.compile(r"https?://|\.(?:jpe?g|png|webp|gif)\b", re.I)
_PLATFORM_KINDS: Final = (
    "main semplice variabile variante einfach variabel konfigurierbar virtuale raggruppato agrupado simple variable variation variant variant_child variant_parent parent child configurable grouped virtual downloadable "
    "physical digital product sku".split()
)
_RECORD_KINDS: Final = frozenset(
    ("single item", "single", "set", "part", "parts", "group", "item", "component", "kit", "bundle", *_PLATFORM_KINDS)
)
_CODES: Final = frozenset(("sku", "mpn", "product_key", "variant_key"))
_LENGTHS: Final = ("dimensions", "cartons.")
_BESIDE: Final = re.compile(r"\d\s*([^\W\d_]+\b|\"|\u201d|\u2033)")
_LARGEST_CM: Final = Decimal(400)
_LARGEST_INCHES: Final = Decimal(200)
_MOST_CELLS: Final = 0.5


def _share(pattern: re.Pattern[str], given: Sequence[str], whole: bool = False) -> float:
    hits = [sample for sample in given if (pattern.fullmatch(sample) if whole else pattern.search(sample))]
    return len(hits) / len(given) if given else 0.0


def _moved(options: Sequence[Sense], changes: dict[str, int]) -> tuple[Sense, ...]:
    """The senses with the ranks of some fields changed; a score of 0 takes a sense away."""
    moved = [replace(s, score=changes.get(s.field, s.score)) for s in options]
    return tuple(sorted((sense for sense in moved if sense.score > 0), key=lambda sense: -sense.score))


def _titled(given: Sequence[str]) -> bool:
    """Whether values read as titles: several words in most of them."""
    return sum(len(sample.split()) >= 2 for sample in given) * 2 > len(given)


def _codes(options: Sequence[Sense], fields: set[str], given: Sequence[str]) -> tuple[Sense, ...]:
    if "title" in fields and _titled(given) and not _share(_CODE, given, whole=True):
        return _moved(options, {"sku": 0, "mpn": 0, "title": 95})
    if "product_key" in fields and _share(_LONG_NUMBER, given, whole=True) > 0.5:
        return _moved(options, {"product_key": 90})
    if "tags" in fields and _share(_CODE, given, whole=True) < 0.5:
        return _moved(options, {"sku": 0, "mpn": 0})
    return tuple(options)


def _sizes(options: Sequence[Sense], given: Sequence[str]) -> tuple[Sense, ...]:
    if _share(_FEET, given) > 0.5:
        return (Sense("rug.size_text", 100), *options)
    if _share(_SIZED, given) > 0.5:
        return _moved(options, {"dimensions": 110})
    return tuple(options)


def by_samples(header: str, options: tuple[Sense, ...], samples: Sequence[str]) -> tuple[Sense, ...]:
    """The senses of a header in the order that its sample values make likely. Without samples nothing changes."""
    given = [sample.strip() for sample in samples if sample.strip()]
    if not given or not options:
        return _moved(options, {"collection": 0}) if len(options) > 1 and options[0].field == "title" else options
    fields = {sense.field for sense in options}
    if fields & _CODES and ("title" in fields or "product_key" in fields or "tags" in fields):
        options = _codes(options, fields, given)
    if "collection" in fields and "title" in fields and not _titled(given):
        options = _moved(options, {"title": 55})
    if {sample.lower() for sample in given} <= _RECORD_KINDS:
        return (Sense(IGNORE, 100),)
    if "axes.Size" in fields:
        options = _sizes(options, given)
    if "status" in fields and _share(_STATUS_STOCK, given) > 0.5:
        options = _moved(options, {"availability": 110})
    if "quantity" in fields and "availability" in fields and _share(_NUMBER, given, whole=True) < 0.5:
        options = _moved(options, {"availability": 105})
    if "location" in fields and _share(_NUMBER, given, whole=True) > 0.9:
        options = _moved(options, {"location": 40})
    if "media" in fields and not _share(_ADDRESS, given) and _share(_NUMBER, given, whole=True) > 0.5:
        return ()
    return options


def _is_weight(name: str) -> bool:
    return name == "weight" or name.endswith(".weight")


def _is_length(name: str) -> bool:
    return name == "rug.pile_height" or (name.startswith(_LENGTHS) and not name.endswith((".weight", ".count")))


def _unit_by_market(column: Column, samples: Sequence[str], settings: FeedSettings) -> str | None:
    """The unit that a market's trade writes when it writes none; None where even that leaves two open."""
    if settings.currency is None:
        return None
    customary = settings.currency == "usd"
    if column.field == "rug.pile_height" and not customary:
        return None
    if _is_weight(column.field):
        return "lb" if customary else "kg"
    values = [found.value for sample in samples if (found := amount_at(sample.strip(), 0))]
    if customary:
        return "in" if not values or max(values) <= _LARGEST_INCHES else None
    # Metric sheets are in cm or in mm; furniture beyond four metres means that this one is not in cm.
    return "cm" if values and max(values) <= _LARGEST_CM else None


def _units_stated(samples: Sequence[str], weighs: bool) -> tuple[set[str], float]:
    """The units that stand beside the numbers of a column's samples, and the share of the cells that have one.

    A few cells with a unit of their own say nothing of the others.
    """
    named = weight_unit_named if weighs else unit_named
    cells = [
        {unit for match in _BESIDE.finditer(sample) if (unit := named(match[1]))}
        for sample in samples
        if sample.strip()
    ]
    return set().union(*cells), sum(map(bool, cells)) / len(cells) if cells else 0.0


def _with_unit(column: Column, samples: Sequence[str], settings: FeedSettings, stated: set[str]) -> Column:
    if "unit" in column.settings or ("weight_unit" if _is_weight(column.field) else "dimension_unit") in stated:
        return column
    beside, share = _units_stated(samples, _is_weight(column.field))
    if beside and share >= _MOST_CELLS:
        # Where some cells of a column name their unit, and all the same one, the bare numbers among them are in it too.
        return (
            replace(column, settings={**column.settings, "unit": beside.pop(), "unit_by": "column"})
            if len(beside) == 1
            else column
        )
    unit = _unit_by_market(column, samples, settings)
    return replace(column, settings={**column.settings, "unit": unit, "unit_by": "market"}) if unit else column


def _is_metric(columns: Sequence[Column], samples: Sequence[Sequence[str]]) -> bool:
    """Whether some columns are in centimetres, millimetres or kilograms and none in inches or pounds."""
    units = {str(column.settings.get("unit")) for column in columns if "unit_by" not in column.settings}
    for column in columns:
        if _is_weight(column.field) or _is_length(column.field):
            beside, share = _units_stated(samples[column.position], _is_weight(column.field))
            units |= beside if share >= _MOST_CELLS else set()
    return bool(units & {"cm", "mm", "kg"}) and not units & {"in", "ft", "lb"}


def with_evidence(columns: Sequence[Column], samples: Sequence[Sequence[str]], settings: FeedSettings) -> list[Column]:
    """`columns` with settings that their samples prove.

    A measure without any unit gets the one its market writes (`unit_by: market`, from the source's currency), there for
    a person to confirm or change with the mapping; without a currency it stays without unit.
    """
    stated = {column.field for column in columns}
    if settings.currency == "usd" and _is_metric(columns, samples):
        # Dollars are charged for metric goods, too: what has no unit of its own is told, not read as inches.
        settings = replace(settings, currency=None)
    out: list[Column] = []
    for column in columns:
        values = samples[column.position]
        if column.field in MONEY and (mark := decimal_shown(list(values))) and mark != settings.decimal:
            column = replace(column, settings={**column.settings, "decimal": mark})
        elif column.field.endswith(".eta") and (order := order_shown(list(values))):
            column = replace(column, settings={**column.settings, "order": order})
        elif _is_weight(column.field) or _is_length(column.field):
            column = _with_unit(column, values, settings, stated)
        out.append(column)
    return out
