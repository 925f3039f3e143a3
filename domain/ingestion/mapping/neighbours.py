"""What a column's neighbours tell of it: sides among a package's columns are the package's, shapes among a rug's a rug's."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from domain.ingestion.mapping.evidence import CONTRADICTED
from domain.ingestion.values.amounts import amount_at
from domain.ingestion.vocabulary.concepts import words_of
from domain.ingestion.vocabulary.headings import heading, plain_words
from domain.ingestion.vocabulary.senses import Sense

_SIDES: Final = {
    "dimensions.width": "width",
    "dimensions.depth": "depth",
    "dimensions.length": "depth",
    "dimensions.height": "height",
    "dimensions": "dimensions",
    "weight": "weight",
}
_PRESENT: Final = 60
_SHOPIFY: Final = frozenset(("handle", "title", "option1 value", "variant price"))
_SHOPIFY_TYPE: Final = (Sense("category_path", 90, listed=True),)
_RUG_SIZE: Final = re.compile(
    r"^\s*\d[\d.\x27\" -]{0,12}(?:ft\.?\s*)?[x×]\s*\d|^\s*\d[\d.\x27\"]{0,6}\s*(?:r|rd|rnd|round|sq)\b", re.I
)
_PLAIN: Final = 100
_LETTER_SETS: Final = {
    "lph": {"l": "dimensions.width", "p": "dimensions.depth", "h": "dimensions.height"},
    "svh": {"s": "dimensions.width", "v": "dimensions.height", "h": "dimensions.depth"},
    "bth": {"b": "dimensions.width", "t": "dimensions.depth", "h": "dimensions.height"},
}
_BEARERS: Final = frozenset("item overall furniture rug variant".split())
_RUG_WORDS: Final = frozenset("rug rugs teppich teppiche tapis vloerkleed alfombra tappeto matta tæppe dywan".split())


def among_neighbours(
    headers: Sequence[str], columns: Sequence[Sequence[str]], known: Sequence[tuple[Sense, ...]]
) -> list[tuple[Sense, ...]]:
    """`known` with the senses that only the columns around can tell."""
    return _shapes(headers, columns, _packages(headers, _letters(headers, _feet_and_inches(headers, columns, known))))


def of_platforms(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """`known` where the header set is a platform's own: there a plain word means what the platform says."""
    words = [plain_words(header) for header in headers]
    if not set(words) >= _SHOPIFY:
        return list(known)
    return [_SHOPIFY_TYPE if word == "type" else options for word, options in zip(words, known, strict=True)]


def _best(options: tuple[Sense, ...]) -> str:
    return options[0].field if options and options[0].rank >= _PRESENT else ""


def _feet_and_inches(
    headers: Sequence[str], columns: Sequence[Sequence[str]], known: Sequence[tuple[Sense, ...]]
) -> list[tuple[Sense, ...]]:
    """A side whose feet and inches stand in columns of their own is in neither of them."""
    units: dict[str, set[str]] = {}
    for header, samples, options in zip(headers, columns, known, strict=True):
        unit = heading(header).unit
        if _best(options) in _SIDES and (unit == "ft" or (unit == "in" and _below_a_foot(samples))):
            units.setdefault(_best(options), set()).add(unit)
    apart = {field for field, named in units.items() if {"ft", "in"} <= named}
    return [
        (replace(options[0], field=CONTRADICTED, rank=1),)
        if _best(options) in apart and heading(header).unit in ("ft", "in")
        else options
        for header, options in zip(headers, known, strict=True)
    ]


def _letters(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """Single letters as headers mean what the set of them means: `L P H` is French or Italian, `Š V H` Czech."""
    letters = {
        place: words
        for place, header in enumerate(headers)
        if (forms := heading(header).forms) and len(words := forms[-1]) == 1
    }
    present = set(letters.values())
    meant = next((sides for named, sides in _LETTER_SETS.items() if set(named) <= present), None)
    if meant is None:
        return list(known)
    return [
        (Sense(meant[letters[place]], _PLAIN, known[place][0].settings if known[place] else ()),)
        if letters.get(place) in meant
        else known[place]
        for place in range(len(headers))
    ]


def _below_a_foot(samples: Sequence[str]) -> bool:
    given = [found.value for sample in samples if (found := amount_at(sample.strip(), 0))]
    return bool(given) and max(given) < 12


def _shapes(
    headers: Sequence[str], columns: Sequence[Sequence[str]], known: Sequence[tuple[Sense, ...]]
) -> list[tuple[Sense, ...]]:
    """A shape is a rug's where other columns speak of rugs; a table's lies outside the catalogue."""
    fields = {_best(options) for options in known}
    rugs = any(field.startswith("rug.") and field not in ("rug.shape", "rug.indoor_outdoor") for field in fields)
    if rugs or any(_RUG_WORDS & set(plain_words(header).split()) for header in headers):
        return [_rug_size(*column) for column in zip(headers, columns, known, strict=True)]
    return [() if _best(options) == "rug.shape" else options for options in known]


def _rug_size(header: str, samples: Sequence[str], options: tuple[Sense, ...]) -> tuple[Sense, ...]:
    """The size of a rug is read as rugs' sizes are written (`5.3 X 7.7` in feet and inches)."""
    sized = _best(options) in ("axes.Size", "dimensions") and "size" in plain_words(header).split()
    given = [sample for sample in samples if sample.strip()]
    rugs = sum(bool(_RUG_SIZE.search(sample)) for sample in given) * 2 > len(given)
    if not sized or not rugs or heading(header).unit:
        return options
    return (replace(options[0], field="rug.size_text", settings=()), *options)


def _packages(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """A run of plain sides right behind or between a package's columns is the package's.

    Right behind counts only where the same sides stand elsewhere, too; without them they may be the piece's own.
    """
    out = list(known)
    at = 0
    while at < len(out):
        end = at
        while end < len(out) and _best(out[end]) in _SIDES and _is_bare(headers[end]):
            end += 1
        if end == at:
            at += 1
            continue
        box = _box(out[at - 1]) if at else None
        sides = {_best(options) for options in out[at:end]}
        elsewhere = {_best(options) for place, options in enumerate(out) if not at <= place < end}
        between = end < len(out) and _box(out[end]) is not None
        if box is not None and (between or len(sides & elsewhere) * 2 > len(sides)):
            out[at:end] = [_of_package(options, box) for options in out[at:end]]
        at = end
    return out


def _box(options: tuple[Sense, ...]) -> str | None:
    """The number of the box that a column is about, or None when it is about none."""
    field = _best(options)
    if field in ("carton_count", "cartons"):
        return "0"
    return field.split(".")[1] if field.startswith("cartons.") and field.count(".") == 2 else None


def _is_bare(header: str) -> bool:
    """Whether a header names a side and nothing that has it."""
    return all(not word.concepts & _BEARERS for word in words_of(heading(header).readings[0]))


def _of_package(options: tuple[Sense, ...], box: str) -> tuple[Sense, ...]:
    first = options[0]
    return (replace(first, field=f"cartons.{box}.{_SIDES[first.field]}"),)
