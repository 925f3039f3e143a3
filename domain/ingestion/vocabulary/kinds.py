"""Kinds of furniture by name, each with its category in the taxonomy and its GPC brick (product class of GS1)."""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from domain.ingestion.data import load_csv_rows
from domain.ingestion.vocabulary.header_meanings import normalise_words

_MAX_CHARS = 300
_POWERED = re.compile(r"\b(?:power(?:ed)?|electric|massage|motion|lift|heated)\b", re.I)
_SEAT_BRICKS = frozenset(("10002193", "10002195", "10002196"))
"""Bricks of chairs, sofas and sofa beds, which do not apply to powered seats."""
_OUTDOOR = re.compile(r"\b(?:outdoor|patio|garden|poolside)s?\b", re.I)
_PLURALS_WITH_ES = ("mattresses", "benches", "couches")
_PLURALS_OF_SHELF = ("shelves", "bookshelves")
_TITLE_END = re.compile(r"\s(?:for|with|by|in|on|to|of)\s|\sw/", re.I)
_TITLE_PARTS = re.compile(r"[,;:()|/]|\s[-–—]\s")
_MAX_NAME_WORDS = 4
_ANY = range(1 << 62)


@dataclass(frozen=True, slots=True)
class FurnitureKind:
    """Kind of furniture.

    Attributes:
        slug: The slug of the category in the taxonomy.
        brick: The GPC brick code, or None if several bricks are possible.
        side: The plausible longest sides in hundredths of an inch.
        weight: The plausible weights in hundredths of a pound.
        is_rigid: Whether pieces of the kind are not folded or rolled for shipping, even if legs and arms are removed.
        is_rigid_assembled: Whether this applies to pieces that are shipped assembled.
    """

    slug: str
    brick: str | None
    side: range = _ANY
    weight: range = _ANY
    is_rigid: bool = False
    is_rigid_assembled: bool = False


def _parse_range(text: str) -> range:
    """Return the hundredths of a range such as `0.5-250`; all numbers if the text is empty."""
    least, most = (int(Decimal(bound) * 100) for bound in text.split("-")) if text else (_ANY.start, _ANY.stop)
    return range(least, most + 1)


_BY_NAME = {
    name: FurnitureKind(
        row["slug"],
        row["brick"] or None,
        _parse_range(row["side"]),
        _parse_range(row["weight"]),
        row["rigid"] == "yes",
        bool(row["rigid"]),
    )
    for row in load_csv_rows("kinds")
    for name in row["names"].split("|")
}


def _to_singular(words: str) -> str:
    head, blank, last = words.rpartition(" ")
    if last in _PLURALS_WITH_ES:
        last = last[:-2]
    elif last in _PLURALS_OF_SHELF:
        last = f"{last[:-3]}f"
    elif last.endswith("s") and not last.endswith("ss"):
        last = last[:-1]
    return head + blank + last


@lru_cache(maxsize=4096)
def find_kind_in_path(path: tuple[str, ...]) -> FurnitureKind | None:
    """Return the kind of furniture that the last level of a category path names; None if unknown or ambiguous."""
    levels = [normalise_words(level[:_MAX_CHARS]) for level in path]
    if not levels:
        return None
    *above, last = levels
    leaf = _to_singular(last)
    if any(map(_OUTDOOR.search, above)):
        return _BY_NAME.get(leaf if _OUTDOOR.search(leaf) else f"outdoor {leaf}")
    near = _BY_NAME.get(f"{_to_singular(above[-1])} {leaf}") if above else None
    return near or _BY_NAME.get(leaf)


@lru_cache(maxsize=4096)
def find_kind_in_title(title: str) -> FurnitureKind | None:
    """Return the kind of furniture with whose name a part of a title ends (`Oslo Dining Table, Oak`); None if unknown."""
    named = _TITLE_END.split(title[:_MAX_CHARS], maxsplit=1)[0]
    for part in _TITLE_PARTS.split(named):
        words = normalise_words(part).split()[-_MAX_NAME_WORDS:]
        for start in range(len(words)):
            if found := _BY_NAME.get(_to_singular(" ".join(words[start:]))):
                return found
    return None


def find_brick(kind: FurnitureKind, title: str) -> str | None:
    """Return the GPC brick of a kind of furniture; None if it is a seat and the title says that it is powered."""
    return None if kind.brick in _SEAT_BRICKS and _POWERED.search(title[:_MAX_CHARS]) else kind.brick
