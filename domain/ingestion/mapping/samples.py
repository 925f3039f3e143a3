"""Headers with several meanings, told apart by the values below them."""

import re
from collections.abc import Sequence
from typing import Final

from domain.ingestion.vocabulary.fields import IGNORE
from domain.ingestion.vocabulary.senses import Sense

_NUMBER: Final = re.compile(r"[$€£]?\s*-?\d[\d,.]*\s*\+?")
_LONG_NUMBER: Final = re.compile(r"\d{10,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I)
_SIZED: Final = re.compile(r"\d[\d.\s/]*(?:\"|''|cm|mm|in\b)?\s*[wdhlb]?\s*[x×*]\s*\d", re.I)
_FEET: Final = re.compile(r"\d\s*['’′]|\d\s*ft\b|\b(?:round|runner|rnd|oval)\b", re.I)
_STATUS_STOCK: Final = re.compile(r"in.?stock|out.?of.?stock|back.?order|available|sold ?out|pre.?order", re.I)
_CODE: Final = re.compile(r"[A-Z0-9][A-Z0-9/+_.\-]*\d[A-Z0-9/+_.\-]*", re.I)
_ADDRESS: Final = re.compile(r"https?://|\.(?:jpe?g|png|webp|gif)\b", re.I)
_PLATFORM_KINDS: Final = (
    "simple variable variation configurable grouped virtual downloadable physical digital product sku".split()
)
_RECORD_KINDS: Final = frozenset(
    ("single item", "single", "set", "part", "parts", "group", "item", "component", "kit", "bundle", *_PLATFORM_KINDS)
)
_CODES: Final = frozenset(("sku", "mpn", "product_key", "variant_key"))


def _share(pattern: re.Pattern[str], given: Sequence[str], whole: bool = False) -> float:
    hits = [sample for sample in given if (pattern.fullmatch(sample) if whole else pattern.search(sample))]
    return len(hits) / len(given) if given else 0.0


def _moved(options: Sequence[Sense], changes: dict[str, int]) -> tuple[Sense, ...]:
    """The senses with the ranks of some fields changed; a rank of 0 takes a sense away."""
    moved = [Sense(s.field, changes.get(s.field, s.rank), s.settings, s.prefix) for s in options]
    return tuple(sorted((sense for sense in moved if sense.rank > 0), key=lambda sense: -sense.rank))


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
        return options
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
