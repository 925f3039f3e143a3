"""The concepts that the words of a header stand for, and the fields that those concepts together mean.

A word is looked up (`data/lexicon.toml`), taken apart when it is a compound, or put right when it is misspelt; then the
first rule of `data/rules.csv` that fits all concepts says the field.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final

from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from domain.ingestion.data import load, phrases, rows
from domain.ingestion.values.lengths import unit_named
from domain.ingestion.values.weights import weight_unit_named
from domain.ingestion.vocabulary.headings import is_currency, plain_words

Concepts = frozenset[str]
_NONE: Final[Concepts] = frozenset()
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_LINKS: Final = ("", "s", "n", "e", "es", "en", "er")
"""What German, Dutch and the Nordic languages put between the parts of a compound."""
_SHORTEST_PART: Final = 3
_PART_ENDING: Final = 3
_MOST_PARTS: Final = 4
_COMPOUND: Final = range(6, 41)
_SHORTEST_MISSPELT: Final = 5
_ENDING: Final = 8
_LONGEST_PHRASE: Final = 3
_ENDINGS: Final = (
    ("as os es is a o e i".split(), ("", "o", "a", "e")),
    ("erna arna orna ene eren en et er ar na ne ta es em e s n r t".split(), ("", "e", "a")),
)
"""How words are inflected: Romance endings and what may stand for them, then Germanic ones."""
_SHORTEST_BASE: Final = 4
_WORDS_OF_HEADERS: Final = load("words")
_NO_PARTS: Final = frozenset(phrases(_WORDS_OF_HEADERS["no_parts"]))
_FILLERS: Final = frozenset(phrases(_WORDS_OF_HEADERS["fillers"]))
_LOCAL_UNITS: Final = frozenset(phrases(_WORDS_OF_HEADERS["local_units"]))
_FIGURES: Final = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_LETTERS: Final = {"w": "width", "b": "width", "d": "depth", "t": "depth", "h": "height", "l": "length"}
_HAVING_SIDES: Final = frozenset("package dims size overall item gross".split())
_BORNE: Final = frozenset("seat arm package".split())
_NEUTRAL: Final = frozenset("item overall lang furniture variant rug within".split())
"""Concepts that change nothing."""
_UNKNOWN_COSTS: Final = 18
_MISSPELT_COSTS: Final = 12
_TRANSLATED_COSTS: Final = 9
_MOST_UNKNOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a header with the concepts it may stand for; `sure` unless it had to be spelt anew."""

    text: str
    concepts: Concepts
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """What the words of a header come to: fields with scores, best first; `understood` when nothing was left over.

    An understood header without fields lies outside the catalogue. `spelt` is false when a word had to be put right.
    """

    fields: tuple[tuple[str, int], ...] = ()
    understood: bool = False
    spelt: bool = True


@dataclass(frozen=True, slots=True)
class _Rule:
    """One row of rules.csv; `anything` and `loose`: other concepts, and unknown words, may be there, too."""

    senses: tuple[tuple[str, int], ...]
    needs: tuple[Concepts, ...]
    allows: Concepts
    loose: bool
    anything: bool

    def passes_over(self, words: Sequence[Word], found: Concepts) -> int | None:
        """Return how many unknown words the rule passes over; None when it does not fit."""
        if not all(group & found for group in self.needs):
            return None
        unknown = sum(not word.concepts for word in words)
        if unknown and not self.loose:
            return None
        fits = self.anything or all(not word.concepts or word.concepts & self.allows for word in words)
        return unknown if fits else None


def _rule(row: Mapping[str, str]) -> _Rule:
    pairs = (sense.rpartition(":") for sense in row["means"].split())
    needs = tuple(frozenset(group.split("|")) for group in row["needs"].split("+"))
    return _Rule(
        tuple((field, int(score)) for field, _, score in pairs),
        needs,
        _NEUTRAL.union(row["allows"].split(), *needs),
        bool(row["loose"]),
        row["allows"] == "*",
    )


_RULES: Final = tuple(map(_rule, rows("rules")))


def _lexicon() -> tuple[dict[str, Concepts], dict[str, Concepts]]:
    """Return the concepts of words, without accents and with umlauts written out, and those of stems."""
    whole, stems = dict[str, Concepts](), dict[str, Concepts]()
    for concept, text in load("lexicon").items():
        for word in phrases(text):
            entries = stems if word.endswith("*") else whole
            for spelling in map(plain_words, {word, word.translate(_UMLAUTS)}):
                entries[spelling] = entries.get(spelling, _NONE) | {concept}
    return whole, stems


_WORDS, _STEMS = _lexicon()
_SHORTEST_STEM: Final = min(map(len, _STEMS))
_LONGEST_PART: Final = max(map(len, _WORDS))
_BY_LETTER: Final[Mapping[str, list[str]]] = {
    letter: [word for word in group if len(word) >= _SHORTEST_MISSPELT - 1 and " " not in word]
    for letter, group in groupby(sorted(_WORDS), key=itemgetter(0))
}


@lru_cache(maxsize=16384)
def known(word: str) -> Concepts:
    """Return the concepts of a word (or words, parted by one blank) as it is written; empty when it is not known."""
    found = _WORDS.get(word, _NONE)
    for end in range(max(_SHORTEST_STEM, len(word) - _ENDING), len(word) + 1):
        ending = word[end:]
        if " " not in ending and (len(ending) < _SHORTEST_PART or ending not in _WORDS):
            found |= _STEMS.get(word[:end], _NONE)
    return found


def is_filler(word: str) -> bool:
    """Return whether a word says nothing by itself (`of`, `für`)."""
    return word in _FILLERS


def _is_part(word: str) -> bool:
    """Return whether a compound may have this part: a known word, or a stem with an ending that is short."""
    stemmed = any(word[: len(word) - end] in _STEMS for end in range(_PART_ENDING + 1))
    return word not in _NO_PARTS and (word in _WORDS or stemmed)


def _parts(word: str) -> tuple[str, ...]:
    """Return the known words that a compound consists of, as few as possible; none when it is none, or has too many.

    From the end on: `after` has, for each place where a part may end, the parts that follow it. Of most words there is no
    such place but the end, so a word costs little more than its length.
    """
    after: dict[int, tuple[str, ...]] = {len(word): ()}
    whole: tuple[str, ...] = ()
    for start in range(len(word) - _SHORTEST_PART, -1, -1):
        best: tuple[str, ...] = ()
        for end, rest in after.items():
            fewer = _SHORTEST_PART <= end - start <= _LONGEST_PART and (not best or len(rest) < len(best))
            if fewer and _is_part(word[start:end]):
                best = (word[start:end], *rest)
        if best and start == 0:
            whole = best
        for link in _LINKS if best else ():
            end = start - len(link)
            if end > 0 and word.startswith(link, end) and len(best) < len(after.get(end, best + best)):
                after[end] = best
    return whole if 1 < len(whole) <= _MOST_PARTS else ()


def _respelt(word: str) -> Concepts:
    """Return the concepts of the known words that differ by a letter left out, put in or swapped, where they agree.

    The first letter is right, and a letter that is another one makes another word too often (`swatch`, `switch`).
    """
    if not word.isalpha() or not _SHORTEST_MISSPELT <= len(word) < _COMPOUND.stop:
        return _NONE
    close = extract(word, _BY_LETTER.get(word[0], ()), scorer=OSA.distance, score_cutoff=1, limit=None)
    found = {_WORDS[one] for one, _, _ in close if len(one) != len(word) or sorted(one) == sorted(word)}
    return found.pop() if len(found) == 1 else _NONE


def _inflected(word: str) -> Concepts:
    """Return the concepts of the known word that differs by its ending alone (`previsto`, `prevista`; `Lager`, `Lagers`)."""
    for endings, others in _ENDINGS:
        for ending in endings:
            stem = word.removesuffix(ending)
            if stem != word and len(stem) >= _SHORTEST_BASE:
                for other in others:
                    if other != ending and (found := _WORDS.get(stem + other)):
                        return found
    return _NONE


@lru_cache(maxsize=16384)
def words_of(text: str) -> tuple[Word, ...]:
    """Return the words of a heading in plain form; compounds come as their parts, fillers not at all."""
    given = text.split()
    out: list[Word] = []
    at = 0
    while at < len(given):
        for size in range(min(_LONGEST_PHRASE, len(given) - at), 1, -1):
            phrase = " ".join(given[at : at + size])
            if found := known(phrase):
                out.append(Word(phrase, found))
                at += size
                break
        else:
            out.extend(_read_word(given[at]))
            at += 1
    return tuple(out)


def _read_word(word: str) -> Iterator[Word]:
    if found := known(word):
        yield Word(word, found)
    elif is_filler(word) or word.isdecimal():
        return
    elif word.isalpha() and (found := _inflected(word)):
        yield Word(word, found)
    elif len(word) in _COMPOUND and (parts := _parts(word)):
        yield from (Word(part, known(part)) for part in parts)
    else:
        respelt = _respelt(word)
        yield Word(word, respelt, sure=not respelt)


def concepts_in(words: Sequence[Word]) -> Concepts:
    """Return the concepts of all the words."""
    return _NONE.union(*(word.concepts for word in words))


def _is_noise(word: str) -> bool:
    """Return whether a word is a unit or a currency beside the others."""
    if word in _LOCAL_UNITS or is_currency(word):
        return True
    return bool(unit_named(word) or weight_unit_named(word)) and not known(word)


def words_in(text: str) -> list[Word]:
    """Return the words of a heading in plain form; figures stand apart, units and currencies are left out."""
    apart = " ".join(word if known(word) else _FIGURES.sub(" ", word) for word in text.split())
    words = [word for word in words_of(apart) if not _is_noise(word.text)]
    last = apart.rpartition(" ")[2]
    if (side := _LETTERS.get(last)) and _HAVING_SIDES & concepts_in(words):
        words = [*(word for word in words if word.text != last), Word(last, frozenset((side,)))]
    if len(words) == 2 and (side := _LETTERS.get(words[0].text)) and words[1].concepts & _BORNE:
        words[0] = Word(words[0].text, frozenset((side,)))
    return words


@lru_cache(maxsize=16384)
def read_heading(text: str) -> Reading:
    """Return what a heading in plain form (`headings.plain_words`) says."""
    words = words_in(text)
    found = concepts_in(words)
    if not found or sum(not word.concepts for word in words) > _MOST_UNKNOWN:
        return Reading()
    spelt = all(word.sure for word in words if word.concepts)
    # Of `name` and `name_en` the plain one goes first.
    translated = len(words) > 1 and any(word.concepts == {"lang"} for word in words)
    costs = (0 if spelt else _MISSPELT_COSTS) + (_TRANSLATED_COSTS if translated else 0)
    for rule in _RULES:
        unknown = rule.passes_over(words, found)
        if unknown is not None:
            loss = costs + unknown * _UNKNOWN_COSTS
            fields = tuple((field, score - loss) for field, score in rule.senses if score > loss)
            return Reading(fields, not unknown or (rule.anything and not rule.senses), spelt)
    return Reading()
