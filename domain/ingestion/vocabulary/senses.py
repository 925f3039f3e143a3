"""What headers mean: from a heading to the fields it may stand for, best first.

A header that stands in `data/phrases.toml` as a whole means what is said there; else its words are read (`concepts`); else a
vendor's name may stand before a phrase; else the words are read although some of them are unknown.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.ingestion.data import load, phrases
from domain.ingestion.values.lengths import INCHES
from domain.ingestion.values.text import clean
from domain.ingestion.values.weights import POUNDS
from domain.ingestion.vocabulary.concepts import read_heading
from domain.ingestion.vocabulary.fields import IGNORE, MONEY, parse_given
from domain.ingestion.vocabulary.headings import heading

_LISTS: Final = {name: frozenset(phrases(text)) for name, text in load("words").items()}
NOT_DROPPED: Final = _LISTS["not_dropped"]
"""Words that change what stands behind them."""
_SAFE: Final = frozenset("sku gtin mpn cost msrp map price compare_at sale_price".split())
_PREFIXED: Final = frozenset(
    "features media tags materials category_path cartons incoming option_name option_value colour".split()
)
_NOT_IN_METAFIELDS: Final = frozenset("colour title materials media tags features finish".split())
_PATH_TAILS: Final = frozenset("value amount text name current".split())
_ZERO_BASED: Final = re.compile(r"\.\d+(?:\.|$)|\[\d+\]")
_LATER_VARIANT: Final = re.compile(r"^(?:product\.)?variants?[.\[](?!0\b)\d+")
_ORDER: Final = re.compile(r"(?<![a-z])([wdhlbt])\s*[x*/,]\s*([wdhlbt])(?:\s*[x*/,]\s*([wdhlbt]))?(?![a-z])", re.I)
_GRAMS: Final = re.compile(r"\bgrams\b", re.I)
_SPELLS: Final = {
    "weeks": re.compile(
        r"\b(?:weeks?|wks?|wochen?|semaines?|weken|semanas?|settiman[ae]|veckor|uger|uker|viikkoa|tygodni\w*|недел\w*)\b",
        re.I,
    ),
    "hours": re.compile(r"\b(?:hours?|hrs|stunden|heures|uren|horas|ore|timmar|timer|tuntia|godzin\w*|час\w*)\b", re.I),
}
_MOST_PLACES: Final = 20
_LONGEST: Final = 300
_MOST_CHARS: Final = 120
"""A cell of more is no header."""
_VENDOR_COSTS: Final = 15
_UNIT_PROVES: Final = 45
PROMOTED: Final = 150
"""The score of a sense that was not the strongest, and is taken for want of a better column."""
Hits = Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Sense:
    """One thing a header may mean: the field, its settings, how strongly (100 is plain), whether it is of a family.

    `listed`: the header as a whole is in a list. `surmised`: not every word of it was understood as it is written.
    """

    field: str
    score: int
    settings: tuple[tuple[str, str], ...] = ()
    prefix: bool = False
    surmised: bool = False
    listed: bool = False


def _read_phrases() -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for row in load("phrases")["phrases"]:
        for phrase in phrases(row["headers"]):
            found.setdefault(phrase, []).append((row["field"], row["score"]))
    return found


PHRASES: Final[Mapping[str, Hits]] = _read_phrases()
"""Headings in plain form, `#` for a number, with the fields they may mean and how strongly."""


def settings_of(field: str, header: str) -> tuple[tuple[str, str], ...]:
    """Return what a header says of how a field's values are read: their unit, the order of sides, the currency."""
    found, raw = heading(header), clean(header)
    settings: dict[str, str] = {}
    head, _, tail = field.rpartition(".")
    if tail == "weight":
        if found.unit in POUNDS:
            settings["unit"] = str(found.unit)
        if _GRAMS.search(raw):
            settings["unit"] = "g"
    elif found.unit in INCHES and (
        field in ("dimensions", "rug.pile_height")
        or head == "dimensions"
        or (head.startswith("cartons") and tail != "count")
    ):
        settings["unit"] = str(found.unit)
    if tail == "dimensions" and (order := _ORDER.search(raw)):
        settings["order"] = "".join(filter(None, order.groups())).lower()
    if field in MONEY and found.currency:
        settings["currency"] = found.currency
    if field == "lead_time_days" and (spell := next((n for n, words in _SPELLS.items() if words.search(raw)), None)):
        settings["unit"] = spell
    return tuple(settings.items())


def _sense(field: str, score: int, form: str, header: str, *, surmised: bool, listed: bool = False) -> Sense:
    name, given = parse_given(field)
    number = heading(header).index
    numbered = "#" in form.split()
    if numbered and number is not None:
        name = "category_path.0" if name == "category_path" else name
        place = number if _ZERO_BASED.search(clean(header)) else number - 1
        name = name.replace(".0", f".{place}", 1) if 0 <= place < _MOST_PLACES else name
    settings = (*given.items(), *settings_of(name, header))
    if name == "dimensions" and dict(settings).keys() & {"unit", "order"}:
        score += _UNIT_PROVES
    return Sense(name, score, settings, numbered and name.partition(".")[0] in _PREFIXED, surmised, listed)


def _hits(form: str) -> tuple[str, Hits] | None:
    """Return the phrase that a form is, else what is left of it without the names of a JSON path."""
    parts = form.split()
    while form not in PHRASES and len(parts) > 1 and (parts[0] in _LISTS["path_words"] or parts[0] == "#"):
        parts = parts[1:]
        form = " ".join(parts)
    if form not in PHRASES and len(parts) > 1 and parts[-1] in _PATH_TAILS:
        form = " ".join(parts[:-1])
    return (form, PHRASES[form]) if form in PHRASES else None


def _hits_after_vendor(form: str) -> tuple[str, Hits] | None:
    """Return the key or price that stands behind a vendor's name (`Acme UPC Code`); measures behind a part's name are none."""
    parts = form.split()
    for start in range(1, min(3, len(parts))):
        if parts[start - 1] in NOT_DROPPED or parts[start - 1] == "#":
            return None
        rest = " ".join(parts[start:])
        safe = [hit for hit in PHRASES.get(rest, ()) if hit[0] in _SAFE]
        if safe and len(rest) > 2 and rest not in _LISTS["too_common"]:
            return rest, safe
    return None


def _listed(header: str, look: Callable[[str], tuple[str, Hits] | None], costs: int = 0) -> tuple[Sense, ...]:
    found = heading(header)
    hit = next(filter(None, map(look, found.forms)), None)
    if hit is None:
        return ()
    form, options = hit
    surmised = costs > 0
    out = [_sense(field, score - costs, form, header, surmised=surmised, listed=not costs) for field, score in options]
    if found.metafield == "product":
        out = [sense for sense in out if not sense.field.startswith("axes") and sense.field not in _NOT_IN_METAFIELDS]
    return tuple(sorted(out, key=lambda sense: -sense.score))


def _read_senses(header: str, words: str) -> tuple[Sense, ...]:
    reading = read_heading(words)
    if not reading.fields:
        return (Sense(IGNORE, 90),)
    found = heading(header)
    form = words if found.index is None else f"{words} #"
    surmised = not (reading.spelt and reading.understood)
    return tuple(
        _sense(field, score, form, header, surmised=surmised)
        for field, score in reading.fields
        if not (found.unit and field.endswith("_unit"))
    )


@lru_cache(maxsize=8192)
def senses(header: str) -> tuple[Sense, ...]:
    """Return what a header may mean, strongest first; nothing when it is not known."""
    if len(header) > _LONGEST:
        return ()
    if _LATER_VARIANT.match(clean(header)):
        return (Sense(IGNORE, 100),)
    readings = heading(header).readings
    plain = (
        _read_senses(header, words)
        for words in readings
        if read_heading(words).understood and read_heading(words).spelt
    )
    guesses = (_read_senses(header, words) for words in readings if read_heading(words).fields)
    return (
        _listed(header, _hits)
        or next(plain, ())
        or _listed(header, _hits_after_vendor, _VENDOR_COSTS)
        or max(filter(None, guesses), key=lambda senses: senses[0].score, default=())
    )


def score_header(cells: Sequence[str]) -> int:
    """Return how many of a row's cells are words that headers use: the header row is the one where most are."""
    return sum(1 for cell in cells if cell and isinstance(cell, str) and len(cell) <= _MOST_CHARS and senses(cell))
