"""Suggestions of the category for a source's category path; no suggestion is preferred to a wrong one."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from domain.catalogue import categories
from domain.catalogue.categories import Category
from domain.catalogue.category_rules import CategoryPath, CategoryRules
from domain.catalogue.category_words import NAMES, NEUTRAL
from domain.catalogue.search import fold, split

_MAX_CHARS = 300
"""Maximum number of characters of a path that is considered; a longer one is not a name."""
_MAX_WORDS = 16
"""Maximum number of words and levels of such a path."""
_PLACES = ("outdoor", "kids", "bathroom")
"""Places that make a different category of a piece of furniture: the suggested category must belong to the place."""
_ANYWHERE = ("rugs", "lighting", "decor")
"""Top categories that a place does not change."""
_JOINING = frozenset("and und et y e".split())
_SIGNS = re.compile(r"[&+,/|;]")

Phrase: TypeAlias = tuple[str, ...]


class Learned:
    """The categories that rules of other sources assign to the same path, ignoring case and accents."""

    def __init__(self, others: Iterable[CategoryRules]) -> None:
        self._fold = cache(fold)  # paths share most of their levels
        self._found: dict[CategoryPath, Counter[str]] = {}
        for rules in others:
            for rule in rules.rules:
                self._found.setdefault(self._key(rule.path), Counter())[rule.category] += 1

    def category(self, path: CategoryPath) -> str | None:
        """Return the category that most sources assign to the path, or None for a tie."""
        if not self._found:
            return None
        found = self._found.get(self._key(path), Counter()).most_common(2)
        return found[0][0] if found and (len(found) == 1 or found[0][1] > found[1][1]) else None

    def _key(self, path: CategoryPath) -> CategoryPath:
        return tuple(map(self._fold, path))


def suggest(path: Sequence[str], words: Callable[[str], Phrase] | None = None) -> str | None:
    """Return the category that a path's last level names in the context of the levels above, or None.

    Every word of the path must be known, and each of the last level explained by a name found in it. Where it names
    several things, it is the nearest category above them all. `words` is `words_of`, or what remembers its results
    where many paths share their levels.
    """
    if not path or len(path) > _MAX_WORDS or sum(map(len, path)) > _MAX_CHARS:
        return None
    *higher, level = map(words or words_of, path)
    above = [word for words_above in higher for word in words_above]
    if len(above) + len(level) > _MAX_WORDS or not _vocabulary().words.issuperset((*above, *level)):
        return None
    whole = _vocabulary().whole.get(level)
    found = [whole] if whole else _categories_of_parts(above, level)
    common = _common(found) if found else None
    return common.id if common and _in_place(common, {*above, *level}) else None


def words_of(text: str) -> Phrase:
    """Return the folded words of a name in order, in one form for singular and plural."""
    words = split(_SIGNS.sub(" and ", text))
    return tuple(_singular(word) for word in words if not word.isdecimal())


def _singular(word: str) -> str:
    if word == "patio":
        return "outdoor"
    if len(word) < 4 or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word.removesuffix("s")


def _categories_of_parts(above: Sequence[str], level: Phrase) -> list[Category]:
    """Return the categories of the parts of a level, such as `Accent & Arm Chairs`; empty if a part is unknown."""
    parts: list[list[str]] = [[]]
    for word in level:
        parts.append([]) if word in _JOINING else parts[-1].append(word)
    found: list[Category] = []
    for part in filter(None, parts):
        meant = _categories_of_part(above, part) or (
            _categories_of_part(above, [*part, level[-1]]) if part[-1] != level[-1] else []
        )
        if not meant:
            return []
        found += meant
    return found


def _categories_of_part(above: Sequence[str], part: Sequence[str]) -> list[Category]:
    """Return the categories whose names consist of the part's words, possibly preceded by words of the levels above."""
    known, words = _vocabulary(), (*above, *part)
    possible = {
        phrase for word in part for phrase in known.by_last.get(word, ()) if _ends_in(phrase, words, len(above))
    }
    names = {phrase for phrase in possible if not known.place_words.issuperset(phrase)} or possible
    longest = [one for one in names if not any(set(one) < set(other) for other in names)]
    explained = {word for phrase in longest for word in phrase} | known.place_words
    significant = set(part) - NEUTRAL or set(part)
    return [known.phrases[one] for one in longest] if significant <= explained else []


def _ends_in(phrase: Phrase, words: Phrase, start: int) -> bool:
    """Return whether the phrase's words occur in order among the words, the last one at or after `start`."""
    place = len(words)
    for number, word in enumerate(reversed(phrase)):
        place = next((at for at in range(place - 1, -1, -1) if words[at] == word), -1)
        if place < (start if number == 0 else 0):
            return False
    return True


def _common(found: Iterable[Category]) -> Category | None:
    """Return the nearest common ancestor of the categories, which may be one of them, or None."""
    lines = [(*category.ancestors, category.id) for category in found]
    shared = [ids[0] for ids in zip(*lines, strict=False) if len(set(ids)) == 1]
    return categories.everything()[shared[-1]] if shared else None


def _in_place(category: Category, words: set[str]) -> bool:
    top = categories.everything()[(*category.ancestors, category.id)[0]].slug
    named = {place for place in _PLACES if words & _vocabulary().places[place]}
    return top in _ANYWHERE or named <= {top}


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The names of categories by their words.

    Attributes:
        whole: Names of several things, which are known as a whole level alone.
        phrases: Names that may stand among other words.
        by_last: The phrases by their last word.
        words: Every word that is part of a name, or beside one.
        places: The words that name a place or a room alone, by its slug; they may stand beside what is there.
        place_words: All of these words.
    """

    whole: Mapping[Phrase, Category]
    phrases: Mapping[Phrase, Category]
    by_last: Mapping[str, Sequence[Phrase]]
    words: frozenset[str]
    places: Mapping[str, frozenset[str]]
    place_words: frozenset[str]


@cache
def _vocabulary() -> _Vocabulary:
    by_slug = {category.slug: category for category in categories.everything().values()}
    slugs: dict[Phrase, set[str]] = defaultdict(set)
    for line in NAMES.splitlines():
        slug, names = line.split(" | ")
        for name in names.split(", "):
            slugs[words_of(name)].add(slug)
    # a name that two categories have means neither
    named = {phrase: by_slug[slug] for phrase, (slug, *others) in slugs.items() if not others}
    phrases = {phrase: category for phrase, category in named.items() if _JOINING.isdisjoint(phrase)}
    by_last: dict[str, list[Phrase]] = defaultdict(list)
    for phrase in phrases:
        by_last[phrase[-1]].append(phrase)
    places = {
        place: frozenset(word for phrase, found in phrases.items() if found.slug == place for word in phrase) - NEUTRAL
        for place in (*_PLACES, "bedroom", "office")
    }
    return _Vocabulary(
        whole={phrase: category for phrase, category in named.items() if phrase not in phrases},
        phrases=phrases,
        by_last=by_last,
        words=NEUTRAL.union(*named),
        places=places,
        place_words=frozenset[str]().union(*places.values()),
    )
