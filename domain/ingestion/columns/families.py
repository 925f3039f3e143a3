"""Families: groups of rows that become variants of one product although no column contains a product key.

Rows form a family if their titles differ only in size or colour and their codes have the same stem.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from zlib import crc32

from domain.ingestion.data import invert_table, load_regex_alternatives, load_toml, load_word_set
from domain.ingestion.drafts import ProductDraft, RowDraft
from domain.ingestion.pieces import append_short_description
from domain.ingestion.values.text import clean_value, convert_to_text
from domain.ingestion.vocabulary.header_meanings import normalise_words

_LONGEST = 300
_SIZE_WORD = (
    r"(?:(?:cal(?:ifornia)?|e(?:astern)?)[. ]{0,2}king|twin xl|full xl|twin|full|queen|king|single|double|small|medium|large"
    r"|x-?large|runner|round|square|rectangular|oval)"
)
_LENGTH = r"\d{1,4}(?:[.,/]\d{1,3})?\s?(?:\"|''|in\b|inch(?:es)?\b|cm\b|mm\b|ft\b|')"
_SIZES = re.compile(
    rf"(?i)\b{_SIZE_WORD}(?:\s?/\s?{_SIZE_WORD}){{0,3}}\b|(?<![\w.]){_LENGTH}(?:\s?x\s?{_LENGTH}){{0,2}}"
)
_COLOURS = "|".join((*invert_table(load_toml("colours")["titles"]), *load_word_set("colours", "alone")))
_SHADED = rf"(?:(?:{load_regex_alternatives('colours', 'shades')})[ -]){{0,2}}(?:{_COLOURS})"
_COLOUR = re.compile(rf"(?i)\b{_SHADED}(?:(?:\s?[/&]\s?|\s){_SHADED})*+\b")
_STEM = re.compile(r"((?:[A-Z]{1,6}-)?[A-Z]{0,6}\d{2,10})([A-Z]{0,4})((?:[-_./ ][A-Z0-9]{1,10}){0,6})")
_PARTS = re.compile(r"[-_./ ]")
_WORD = re.compile(r"[^\W\d_]{3}")
_GAPS = re.compile(r" ?,(?: ?,)*+ ?")
_CODES = load_word_set("colours", "codes")


@dataclass(frozen=True, slots=True)
class FamilyMember:
    """Row of a family, with the key of the family and the sizes and colour that distinguish the row.

    Attributes:
        family_key: The stem of the code and the title without sizes and colour.
        sizes: The sizes in the title.
        colour: The colour in the colour column or the title, or an empty string.
    """

    family_key: str
    sizes: tuple[str, ...]
    colour: str

    @property
    def distinguishing_hash(self) -> int:
        """The hash of sizes and colour, which distinguishes the members of a family."""
        text = f"{normalise_words(' '.join(self.sizes))}|{normalise_words(self.colour)}"
        return int.from_bytes(blake2b(text.encode(), digest_size=7).digest())


FamilyReader = Callable[[Sequence[Any]], "FamilyMember | None"]


def create_family_reader(
    codes: Sequence[int], titles: Sequence[int], colours: Sequence[int], subtitles: Sequence[int] = ()
) -> FamilyReader | None:
    """Return a function that reads the family of a row; None if the table has no column of codes or no column of titles.

    Args:
        codes: The positions of columns with codes; only the first column is used.
        titles: The positions of columns with titles.
        colours: The positions of columns with colours.
        subtitles: The positions of columns with short descriptions.
    """
    if not codes or not titles:
        return None

    def read_family(cells: Sequence[Any]) -> FamilyMember | None:
        def read_first_text(positions: Sequence[int]) -> str | None:
            texts = (clean_value(convert_to_text(cells[at])[:_LONGEST]) for at in positions if at < len(cells))
            return next(filter(None, texts), None)

        title, sku = read_first_text(titles), read_first_text(codes[:1])
        stem = extract_code_stem(sku) if title and sku else None
        if title is None or stem is None:
            return None
        core, sizes, colour = split_title(
            append_short_description(title, read_first_text(subtitles)), read_first_text(colours)
        )
        name = normalise_words(core)
        return FamilyMember(f"{stem} / {name}", sizes, colour) if _WORD.search(name) and (sizes or colour) else None

    return read_family


def create_stem_hash_reader(codes: Sequence[int], titles: Sequence[int]) -> Callable[[Sequence[Any]], int] | None:
    """Return a fast function that hashes the stem of a row's code; None if the table has no column of codes or no column of titles.

    The hash is 0 if the code has no stem. All rows of a family have the same hash, and few other rows have this hash.

    Args:
        codes: The positions of columns with codes; only the first column is used.
        titles: The positions of columns with titles.
    """
    if not codes or not titles:
        return None
    first = codes[0]

    def read_stem_hash(cells: Sequence[Any]) -> int:
        cell = cells[first] if first < len(cells) else None
        stem = extract_code_stem(cell) if isinstance(cell, str) else None
        return crc32(stem.encode()) if stem else 0

    return read_stem_hash


def remove_distinguishing_texts(title: str, distinguishing_texts: Sequence[str]) -> str:
    """Remove the texts that distinguish a member of a family from its title, and return the rest.

    Args:
        title: The title of the member.
        distinguishing_texts: The sizes and colours to remove.
    """
    for text in distinguishing_texts:
        title = title.replace(text, " ", 1)
    return _GAPS.sub(", ", " ".join(title.split())).strip(" ,-/")


def remove_shared_sizes(sizes_by_member: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the sizes of each member of a family without the sizes that all members have.

    If the members have different numbers of sizes, nothing is removed.
    """
    shared = (
        set(sizes_by_member[0]).intersection(*sizes_by_member[1:])
        if len({len(sizes) for sizes in sizes_by_member}) == 1
        else set[str]()
    )
    return [tuple(size for size in sizes if size not in shared) for sizes in sizes_by_member]


def extract_code_stem(code: str) -> str | None:
    """Return the stem of a code, without suffixes for size and colour; None if the code has no such pattern.

    The stem of `AB7864CK-BED` and `AB7864Q-BED` is `AB7864-BED`.
    """
    found = _STEM.fullmatch(code) or _STEM.fullmatch(code[:60].strip(" '").upper())
    if found is None or len(found[1]) < 4:
        return None
    return "-".join([found[1], *(part for part in _PARTS.split(found[3]) if part and part not in _CODES)])


@lru_cache(maxsize=4096)
def split_title(title: str, colour: str | None = None) -> tuple[str, tuple[str, ...], str]:
    """Split a title into the rest without sizes and colour, the sizes, and the colour.

    Args:
        title: The title.
        colour: The value of the colour column; if it is None, the colour is searched in the title.
    """
    title_start = title[:_LONGEST]
    sizes = tuple(match[0] for match in _SIZES.finditer(title_start))
    rest = _SIZES.sub(" ", title_start)
    if colour:
        rest = re.sub(rf"(?i){re.escape(colour)}", " ", rest)
    return _COLOUR.sub(" ", rest), sizes, colour or " ".join(match[0] for match in _COLOUR.finditer(rest))


def add_family_member(row: RowDraft, key: str, member: FamilyMember | None) -> None:
    """Add the sizes and colour of a row to the draft of the product, and set the row's title as the title of the variant.

    Args:
        row: The draft of the row.
        key: The key of the variant.
        member: The row as a member of a family; None changes nothing.
    """
    title = row.variant.get("title") or row.product.data.get("title")
    if member is not None and title is not None:
        row.variant["title"] = title
        row.product.family_words[key] = member.sizes, member.colour


def complete_family(product: ProductDraft) -> None:
    """Complete a product whose variants are a family, in place.

    The variants get axes for the size and colour in which their titles differ, and the product gets the title without these.
    """
    if len(product.family_words) < 2:
        return
    sizes = remove_shared_sizes([sizes for sizes, _ in product.family_words.values()])
    colours = [colour for _, colour in product.family_words.values()]
    distinguishing: list[str] = []
    for axis, other_name, values, own_texts in (
        ("Size", "", [" ".join(each) for each in sizes], sizes[0]),
        ("Color", "colour", colours, colours[:1]),
    ):
        if len({value.lower() for value in values}) < 2:
            continue
        distinguishing += own_texts
        for key, value in zip(product.family_words, values, strict=True):
            variant = product.variants.get(key)
            axes = variant.data.get("axes", {}) if variant else {}
            if variant and value and {axis.lower(), other_name}.isdisjoint(name.lower() for name in axes):
                variant.data["axes"] = {**axes, axis: value}
    title = product.data.get("title", "")
    product.data["title"] = remove_distinguishing_texts(title, distinguishing) or title
