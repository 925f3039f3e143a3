"""What headers mean: from a heading to the fields it may stand for, best first."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from domain.ingestion.values.lengths import INCHES
from domain.ingestion.values.text import clean
from domain.ingestion.values.weights import POUNDS
from domain.ingestion.vocabulary import codes, declarations, measures, offers, texts
from domain.ingestion.vocabulary.fields import IGNORE, MONEY, parse_given
from domain.ingestion.vocabulary.grammar import Reading, read
from domain.ingestion.vocabulary.headings import Heading, heading

_SAFE: Final = frozenset("sku gtin mpn cost msrp map price compare_at sale_price".split())
NOT_DROPPED: Final = frozenset(
    "carton case inner box shipping ship freight min max minimum maximum moq order pack swatch sample accessory "
    "parent old "
    "previous deposit tax per sold committed reserved backordered mattress frame seat shade replacement related "
    "component "
    "parts part set total avg average last first discount percent delivery sub from to before after competitor lowest "
    "google seo meta custom without not no number of option".split()
)
"""Words that change what stands behind them."""
_PATH_WORDS: Final = frozenset(
    "variants variant products product items item data attributes node edges offers offer fields record records specs "
    "specifications details info general prices pricing identifiers attribute spec stock inventory availability".split()
)
_PATH_TAILS: Final = frozenset(("value", "amount", "text", "name", "current"))
_ZERO_BASED: Final = re.compile(r"\.\d+(?:\.|$)|\[\d+\]")
_LATER_VARIANT: Final = re.compile(r"^(?:product\.)?variants?[.\[](?!0\b)\d+")
_ORDER: Final = re.compile(r"(?<![a-z])([wdhlbt])\s*[x*/,]\s*([wdhlbt])(?:\s*[x*/,]\s*([wdhlbt]))?(?![a-z])", re.I)
_LENGTHS: Final = frozenset(("dimensions", "rug.pile_height"))
_NOT_IN_METAFIELDS: Final = frozenset(("colour", "title", "materials", "media", "tags", "features", "finish"))
_MAX_INDEX: Final = 20
_SPELLS: Final = (
    (
        "weeks",
        re.compile(
            r"\b(?:weeks?|wks?|wochen?|semaines?|weken|semanas?|settiman[ae]|veckor|uger|uker|viikkoa|tygodni\w*|недел\w*)\b",
            re.I,
        ),
    ),
    (
        "hours",
        re.compile(r"\b(?:hours?|hrs|stunden|heures|uren|horas|ore|timmar|timer|tuntia|godzin\w*|час\w*)\b", re.I),
    ),
)
_LONGEST: Final = 300
PROMOTED: Final = 150
"""The rank of a sense that was not the strongest, and is taken for want of a better column."""


@dataclass(frozen=True, slots=True)
class Sense:
    """One thing a header may mean: the field, its settings, how strongly (100 is plain), whether it is of a family.

    `listed`: the header as a whole is in a list. `surmised`: not every word of it was understood as it is written.
    """

    field: str
    rank: int
    settings: tuple[tuple[str, str], ...] = ()
    prefix: bool = False
    surmised: bool = False
    listed: bool = False


def _index() -> dict[str, list[tuple[str, int]]]:
    table: dict[str, list[tuple[str, int]]] = {}
    for entries in (
        codes.ENTRIES,
        texts.ENTRIES,
        declarations.ENTRIES,
        measures.ENTRIES,
        offers.ENTRIES,
    ):
        for field, rank, synonyms in entries:
            for synonym in synonyms.split("|"):
                table.setdefault(synonym.strip(), []).append((field, rank))
    return table


_TABLE: Final = _index()


def is_listed(words: str) -> bool:
    """Whether a heading in plain form stands in the lists as it is."""
    return words in _TABLE


def known_headings() -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
    """Every heading of the lists with the fields it may mean, and how strongly."""
    for form, options in _TABLE.items():
        yield form, tuple(options)


def _numbered_field(field: str, number: int | None, zero_based: bool) -> str:
    """A field of a numbered family with its place: `cartons.0.width` and box 2 is `cartons.1.width`."""
    if field == "category_path" and number is not None:
        field = "category_path.0"
    if ".0" not in field or number is None:
        return field
    place = number if zero_based else number - 1
    return field.replace(".0", f".{place}", 1) if 0 <= place < _MAX_INDEX else field


def _takes_lengths(field: str) -> bool:
    head, _, tail = field.partition(".")
    return (
        field in _LENGTHS
        or head == "dimensions"
        or (head == "cartons" and not field.endswith(("weight", "count")) and bool(tail))
    )


def _settings(field: str, found: Heading, raw: str) -> tuple[tuple[str, str], ...]:
    settings: dict[str, str] = {}
    weighs = field == "weight" or field.endswith(".weight")
    if weighs and found.unit in POUNDS:
        settings["unit"] = str(found.unit)
    if weighs and re.search(r"\bgrams\b", raw, re.I):
        settings["unit"] = "g"
    if _takes_lengths(field) and found.unit in INCHES:
        settings["unit"] = str(found.unit)
    if field == "dimensions" or field.endswith(".dimensions"):
        order = _ORDER.search(raw)
        if order:
            settings["order"] = "".join(filter(None, order.groups())).lower()
    if field in MONEY and found.currency:
        settings["currency"] = found.currency
    if field == "lead_time_days" and (spell := next((unit for unit, words in _SPELLS if words.search(raw)), None)):
        settings["unit"] = spell
    return tuple(settings.items())


def settings_of(field: str, header: str) -> tuple[tuple[str, str], ...]:
    """What a header itself says of how a field's values are read: their unit, the order of sides, the currency."""
    return _settings(field, heading(header), clean(header))


def _sense(field: str, rank: int, form: str, found: Heading, raw: str) -> Sense:
    name, given = parse_given(field)
    numbered = "#" in form.split()
    name = _numbered_field(name, found.index if numbered else None, bool(_ZERO_BASED.search(raw)))
    settings = (*given.items(), *_settings(name, found, raw))
    if name == "dimensions" and dict(settings).keys() & {"unit", "order"}:
        rank += 45
    return Sense(name, rank, settings, numbered and name.partition(".")[0] in _PREFIXED)


_PREFIXED: Final = frozenset(
    "features media tags materials category_path cartons incoming option_name option_value colour".split()
)


def _hits(form: str) -> tuple[str, list[tuple[str, int]]] | None:
    """The entries of a form; else of what is left without the leading words of a JSON path or a vendor's name."""
    if form in _TABLE:
        return form, _TABLE[form]
    words = form.split()
    while len(words) > 1 and (words[0] in _PATH_WORDS or words[0] == "#"):
        words = words[1:]
        if " ".join(words) in _TABLE:
            return " ".join(words), _TABLE[" ".join(words)]
    if len(words) > 1 and words[-1] in _PATH_TAILS and " ".join(words[:-1]) in _TABLE:
        return " ".join(words[:-1]), _TABLE[" ".join(words[:-1])]
    return None


def _after_vendor_name(form: str) -> tuple[str, list[tuple[str, int]]] | None:
    """Keys and prices keep their meaning behind a vendor's name (`Acme UPC Code`); measures behind a part's do not."""
    words = form.split()
    for start in range(1, min(3, len(words))):
        if words[start - 1] in NOT_DROPPED or words[start - 1] == "#":
            return None
        rest = " ".join(words[start:])
        safe = [(field, rank) for field, rank in _TABLE.get(rest, ()) if field in _SAFE and len(rest) > 2]
        if safe and rest not in (
            "number",
            "code",
            "item",
            "product",
            "model",
            "list",
            "id",
            "article",
            "style",
            "type",
            "name",
        ):
            return rest, safe
    return None


@lru_cache(maxsize=8192)
def senses(header: str) -> tuple[Sense, ...]:
    """What a header may mean, strongest first; empty when it is not known.

    As a whole it may be in a list; else its words are read; else a vendor's name may stand before words that are known.
    """
    if len(header) > _LONGEST:
        return ()
    raw = clean(header)
    if _LATER_VARIANT.match(raw):
        return (Sense(IGNORE, 100),)
    found = heading(header)
    return (
        _listed(_hits, 0, found, raw)
        or _understood(found, raw)
        or _listed(_after_vendor_name, 15, found, raw)
        or _guessed(found, raw)
    )


def _listed(
    look: Callable[[str], tuple[str, list[tuple[str, int]]] | None], weaker: int, found: Heading, raw: str
) -> tuple[Sense, ...]:
    for form in found.forms:
        hit = look(form)
        if hit is None:
            continue
        out = [
            replace(_sense(field, rank - weaker, hit[0], found, raw), listed=not weaker, surmised=bool(weaker))
            for field, rank in hit[1]
        ]
        if found.metafield == "product":
            out = [s for s in out if s.field not in _NOT_IN_METAFIELDS and not s.field.startswith("axes")]
        return tuple(sorted(out, key=lambda sense: -sense.rank))
    return ()


def _understood(found: Heading, raw: str) -> tuple[Sense, ...]:
    """The senses of a heading of whose words, or those outside brackets, none is left over."""
    for words in found.readings:
        reading = read(words)
        if reading.understood and reading.spelt:
            return _read_senses(reading, words, found, raw)
    return ()


def _guessed(found: Heading, raw: str) -> tuple[Sense, ...]:
    """The same where words are left over, or had to be put right."""
    options = [_read_senses(reading, words, found, raw) for words in found.readings if (reading := read(words)).fields]
    return max(filter(None, options), key=lambda senses: senses[0].rank, default=())


def _read_senses(reading: Reading, words: str, found: Heading, raw: str) -> tuple[Sense, ...]:
    if not reading.fields:
        return (Sense(IGNORE, 90),)
    form = words if found.index is None else f"{words} #"
    fields = [(field, rank) for field, rank in reading.fields if not (found.unit and field.endswith("_unit"))]
    surmised = not (reading.spelt and reading.understood)
    return tuple(replace(_sense(field, rank, form, found, raw), surmised=surmised) for field, rank in fields)


def score_header(cells: Sequence[str]) -> int:
    """How many of a row's cells are words that headers use: the header row is the one where most are."""
    return sum(1 for cell in cells if cell and isinstance(cell, str) and len(cell) <= 120 and senses(cell))
