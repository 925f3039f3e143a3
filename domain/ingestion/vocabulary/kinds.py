"""Kinds of furniture by their names: category of the taxonomy and GPC brick."""

import re
from dataclasses import dataclass
from functools import lru_cache

from domain.ingestion.data import rows
from domain.ingestion.vocabulary.senses import plain_words

_LONGEST = 300
_POWERED = re.compile(r"\b(?:power(?:ed)?|electric|massage|motion|lift|heated)\b", re.I)
_SEATS = frozenset(("10002193", "10002195", "10002196"))
"""Bricks of chairs, sofas and sofa beds, which do not apply to powered ones."""
_OPEN_AIR = re.compile(r"\b(?:outdoor|patio|garden|poolside)s?\b", re.I)
_ES = ("mattresses", "benches", "couches")
_ELF = ("shelves", "bookshelves")


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of furniture: slug in the taxonomy, and the GPC brick if it is certain."""

    slug: str
    brick: str | None


_BY_NAME = {name: Kind(row["slug"], row["brick"] or None) for row in rows("kinds") for name in row["names"].split("|")}


def _singular(words: str) -> str:
    head, blank, last = words.rpartition(" ")
    if last in _ES:
        last = last[:-2]
    elif last in _ELF:
        last = f"{last[:-3]}f"
    elif last.endswith("s") and not last.endswith("ss"):
        last = last[:-1]
    return head + blank + last


@lru_cache(maxsize=4096)
def kind_in_path(path: tuple[str, ...]) -> Kind | None:
    """Return the kind that the last level of a category path names; None if it is ambiguous or unknown."""
    levels = [plain_words(level[:_LONGEST]) for level in path]
    if not levels:
        return None
    *above, last = levels
    leaf = _singular(last)
    if any(map(_OPEN_AIR.search, above)):
        return _BY_NAME.get(leaf if _OPEN_AIR.search(leaf) else f"outdoor {leaf}")
    near = _BY_NAME.get(f"{_singular(above[-1])} {leaf}") if above else None
    return near or _BY_NAME.get(leaf)


def brick_of(kind: Kind, title: str) -> str | None:
    """Return the kind's brick, or None for a seat whose title says that it is powered."""
    return None if kind.brick in _SEATS and _POWERED.search(title[:_LONGEST]) else kind.brick
