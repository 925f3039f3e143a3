"""Families: items without a common product key whose rows become variants of one product.

Items form a family if their titles differ only in size or colour and their codes have the same stem.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from zlib import crc32

from domain.ingestion.data import load, meanings, pattern, words
from domain.ingestion.drafts import ProductDraft, RowDraft
from domain.ingestion.pieces import with_subtitle
from domain.ingestion.values.text import as_text, stated
from domain.ingestion.vocabulary.senses import plain_words

_LONGEST = 300
_SIZE_WORD = (
    r"(?:(?:cal(?:ifornia)?|e(?:astern)?)[. ]{0,2}king|twin xl|full xl|twin|full|queen|king|single|double|small|medium|large"
    r"|x-?large|runner|round|square|rectangular|oval)"
)
_LENGTH = r"\d{1,4}(?:[.,/]\d{1,3})?\s?(?:\"|''|in\b|inch(?:es)?\b|cm\b|mm\b|ft\b|')"
_SIZES = re.compile(
    rf"(?i)\b{_SIZE_WORD}(?:\s?/\s?{_SIZE_WORD}){{0,3}}\b|(?<![\w.]){_LENGTH}(?:\s?x\s?{_LENGTH}){{0,2}}"
)
_COLOURS = "|".join((*meanings(load("colours")["titles"]), *words("colours", "alone")))
_SHADED = rf"(?:(?:{pattern('colours', 'shades')})[ -]){{0,2}}(?:{_COLOURS})"
_COLOUR = re.compile(rf"(?i)\b{_SHADED}(?:(?:\s?[/&]\s?|\s){_SHADED})*+\b")
_STEM = re.compile(r"((?:[A-Z]{1,6}-)?[A-Z]{0,6}\d{2,10})([A-Z]{0,4})((?:[-_./ ][A-Z0-9]{1,10}){0,6})")
_PARTS = re.compile(r"[-_./ ]")
_WORD = re.compile(r"[^\W\d_]{3}")
_GAPS = re.compile(r" ?,(?: ?,)*+ ?")
_CODES = words("colours", "codes")


@dataclass(frozen=True, slots=True)
class Member:
    """A row's membership of a family: the key of the family, and the sizes and the colour in the row's title."""

    family: str
    sizes: tuple[str, ...]
    colour: str

    @property
    def apart(self) -> int:
        """Hash of size and colour, which differs between the members of a family."""
        text = f"{plain_words(' '.join(self.sizes))}|{plain_words(self.colour)}"
        return int.from_bytes(blake2b(text.encode(), digest_size=7).digest())


FamilyOf = Callable[[Sequence[Any]], "Member | None"]


def family_of(
    codes: Sequence[int], titles: Sequence[int], colours: Sequence[int], subtitles: Sequence[int] = ()
) -> FamilyOf | None:
    """Return a reader of a row's family, or None if there are no columns of codes or of titles.

    Args:
        codes: Positions of the columns of codes; only the first is used.
        titles: Positions of the columns of titles.
        colours: Positions of the columns of colours.
        subtitles: Positions of the columns of short descriptions.
    """
    if not codes or not titles:
        return None

    def read(cells: Sequence[Any]) -> Member | None:
        def first(positions: Sequence[int]) -> str | None:
            texts = (stated(as_text(cells[at])[:_LONGEST]) for at in positions if at < len(cells))
            return next(filter(None, texts), None)

        title, sku = first(titles), first(codes[:1])
        stem = stem_of(sku) if title and sku else None
        if title is None or stem is None:
            return None
        core, sizes, colour = parted(with_subtitle(title, first(subtitles)), first(colours))
        name = plain_words(core)
        return Member(f"{stem} / {name}", sizes, colour) if _WORD.search(name) and (sizes or colour) else None

    return read


def stems_of(codes: Sequence[int], titles: Sequence[int]) -> Callable[[Sequence[Any]], int] | None:
    """Return a reader of a hash of a row's code stem (0 without a stem), or None without columns of codes or titles.

    All rows of a family have the same hash, and few others have it. The reader is called for every row, so it is cheap.
    """
    if not codes or not titles:
        return None
    first = codes[0]

    def read(cells: Sequence[Any]) -> int:
        cell = cells[first] if first < len(cells) else None
        stem = stem_of(cell) if isinstance(cell, str) else None
        return crc32(stem.encode()) if stem else 0

    return read


def shared_title(title: str, apart: Sequence[str]) -> str:
    """Return a title without the texts in `apart`, which distinguish its item from the others of the family."""
    for text in apart:
        title = title.replace(text, " ", 1)
    return _GAPS.sub(", ", " ".join(title.split())).strip(" ,-/")


def own_sizes(members: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return each member's sizes without those that all members share; all sizes if their number differs."""
    shared = set(members[0]).intersection(*members[1:]) if len({len(sizes) for sizes in members}) == 1 else set[str]()
    return [tuple(size for size in sizes if size not in shared) for sizes in members]


def stem_of(sku: str) -> str | None:
    """Return the part of a code that the sizes and colours of an item share, or None.

    The stem of `AB7864CK-BED` and `AB7864Q-BED` is `AB7864-BED`.
    """
    found = _STEM.fullmatch(sku) or _STEM.fullmatch(sku[:60].strip(" '").upper())
    if found is None or len(found[1]) < 4:
        return None
    return "-".join([found[1], *(part for part in _PARTS.split(found[3]) if part and part not in _CODES)])


@lru_cache(maxsize=4096)
def parted(title: str, colour: str | None = None) -> tuple[str, tuple[str, ...], str]:
    """Return a title without sizes and colour, its sizes, and the colour: that of the colour column or else the title's."""
    shown = title[:_LONGEST]
    sizes = tuple(match[0] for match in _SIZES.finditer(shown))
    rest = _SIZES.sub(" ", shown)
    if colour:
        rest = re.sub(rf"(?i){re.escape(colour)}", " ", rest)
    return _COLOUR.sub(" ", rest), sizes, colour or " ".join(match[0] for match in _COLOUR.finditer(rest))


def join(row: RowDraft, key: str, member: Member | None) -> None:
    """Record the sizes and colour of a family's row in its product, and its title as the title of its variant."""
    title = row.variant.get("title") or row.product.data.get("title")
    if member is not None and title is not None:
        row.variant["title"] = title
        row.product.family[key] = member.sizes, member.colour


def settle_family(product: ProductDraft) -> None:
    """Set the axes in which the titles of a family differ, and the shared part of the titles as product title, in place."""
    if len(product.family) < 2:
        return
    sizes = own_sizes([sizes for sizes, _ in product.family.values()])
    colours = [colour for _, colour in product.family.values()]
    apart: list[str] = []
    for axis, other_name, values, own_texts in (
        ("Size", "", [" ".join(each) for each in sizes], sizes[0]),
        ("Color", "colour", colours, colours[:1]),
    ):
        if len({value.lower() for value in values}) < 2:
            continue
        apart += own_texts
        for key, value in zip(product.family, values, strict=True):
            variant = product.variants.get(key)
            axes = variant.data.get("axes", {}) if variant else {}
            if variant and value and {axis.lower(), other_name}.isdisjoint(name.lower() for name in axes):
                variant.data["axes"] = {**axes, axis: value}
    title = product.data.get("title", "")
    product.data["title"] = shared_title(title, apart) or title
