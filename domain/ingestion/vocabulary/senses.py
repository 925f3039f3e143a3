"""Senses of headers: the fields that a header can mean, best first.

A header is looked up in `data/phrases.toml` as a whole and after a vendor's name, and its words are read one by one. Each
reading has a score, which is lower if words are ignored; the best reading is used.

To read words, each one is looked up (`data/lexicon.toml`), split if it is a compound, or corrected if it is misspelt. The
first rule of `data/rules.csv` that fits all concepts determines the field.

Headers that no rule fits are classified by multinomial logistic regression over the 3- to 5-grams of their words, whole
words and concepts. `python -m benchmarks.header_weights` computes the weights (`data/weights.json`) from the vocabulary and
headers labelled by hand.
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final

from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from domain.ingestion.data import load, phrases, read, rows
from domain.ingestion.values.quantities import INCHES, POUNDS, unit_named, weight_unit_named
from domain.ingestion.values.text import clean
from domain.ingestion.vocabulary.fields import IGNORE, KEYS, MONEY, parse_given
from domain.kernel.money import EXPONENTS

# Normalisation of headers for look-ups.


_LISTS = {name: frozenset(phrases(text)) for name, text in load("words").items()}
_SMALL = "a-zß-öø-ÿа-яё"
_LARGE = "A-ZÀ-ÖØ-ÞА-ЯЁ"
_CAMEL = re.compile(rf"(?<=[{_SMALL}])(?=[{_LARGE}])|(?<=[{_LARGE}])(?=[{_LARGE}][{_SMALL}])")
_HUNGARIAN = re.compile(r"^[a-z](?=[A-Z][a-z])")
_BRACKET = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_NOISE = re.compile(r"[^\w%]+|_+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_LETTERS = str.maketrans(
    {"ß": "ss", "ł": "l", "Ł": "l", "ø": "o", "Ø": "o", "æ": "ae", "Æ": "ae", "đ": "d", "ı": "i", "œ": "oe"}
)
_DIGITS = re.compile(r"(?<![a-z])\d{1,2}(?![a-z])|(?<=[a-z])\d{1,2}\b")
_NUMBER_SIGN = re.compile(r"(?<=[a-z])\s?#(?![\d\w])", re.I)
_PER = re.compile(
    r"/\s{0,4}(?=(?:pkg|ctn|carton|box|pallet|container|karton|ve|colis|doos|bulto|collo|embalaje|caja|emballage|imballo|krt|kartong)\b)",
    re.I,
)
_NAMESPACE = re.compile(r"^(?:g:|\{[^}]*\})")
_METAFIELD = re.compile(r"\((product|variant)\.metafields\.[^)]{0,300}\)", re.I)
_OF_PACKAGE = re.compile(r"ship|pack|carton|box", re.I)
"""Names in a path that change the meaning of names below."""
_CURRENCY_SIGNS = {"$": "usd", "€": "eur", "£": "gbp"}
_CYRILLIC_UNITS = {"мм": "mm", "см": "cm", "кг": "kg", "г": "g", "гр": "g"}
_LONGEST_PLAIN = 1_000
_MOST_SLASHED = 3


@dataclass(frozen=True, slots=True)
class Heading:
    """Normalised header.

    Attributes:
        forms: The forms to look up, best first, also without units and with `#` for digits.
        index: The first number in the header.
        unit: The unit that it names.
        currency: The currency that it names.
        metafield: The owner of a Shopify metafield, product or variant.
        readings: The texts to read word by word: all words, those outside brackets, and those between slashes.

    """

    forms: tuple[str, ...]
    index: int | None = None
    unit: str | None = None
    currency: str | None = None
    metafield: str | None = None
    readings: tuple[str, ...] = ()


def plain_words(text: str) -> str:
    """Return `text` in lower case without accents and punctuation, with words separated by one blank."""
    text = _INVISIBLE.sub("", text[:_LONGEST_PLAIN])
    decomposed = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    return _NOISE.sub(" ", letters.lower()).strip()


def is_currency(word: str) -> bool:
    """Return whether a word is a currency code without another meaning in headers (`map`, `top`)."""
    return word in EXPONENTS and word not in _LISTS["no_currencies"]


def _unit(word: str) -> str | None:
    return unit_named(word) or weight_unit_named(word)


def _unit_in(words: Sequence[str], bracketed: Sequence[str]) -> str | None:
    """Return the unit that a header names: in Cyrillic letters, in brackets, or by its last two words."""
    cyrillic = (_CYRILLIC_UNITS[word] for word in words if word in _CYRILLIC_UNITS)
    behind = (unit for word in words[:0:-1][:2] if word not in _LISTS["no_units"] and (unit := _unit(word)))
    named = next(cyrillic, None) or next(filter(None, map(_unit, bracketed)), None) or next(behind, None)
    return named or ("g" if len(words) > 1 and words[-1] == "g" else None)


def _forms(*texts: str) -> tuple[str, ...]:
    """Return the texts, without units, without currencies and without both; each also with `#` for its numbers."""
    forms: dict[str, None] = {}
    for text in texts:
        words = text.split()
        bare = [word for word in words if not _unit(word) or word == "pounds off"] or words
        without = ([word for word in kept if not is_currency(word)] or kept for kept in (words, bare))
        for form in map(" ".join, (words, bare, *without)):
            forms |= dict.fromkeys((form, " ".join(_DIGITS.sub(" # ", form).split())))
    return tuple(filter(None, forms))


@lru_cache(maxsize=8192)
def heading(text: str) -> Heading:
    """Return the normalised form of a header cell as it is in the feed (with BOM, line breaks, `*`, `#` and brackets)."""
    raw = _NAMESPACE.sub("", clean(text))
    metafield = _METAFIELD.search(raw)
    raw = _PER.sub(" per ", _METAFIELD.sub(" ", raw))
    split = _NUMBER_SIGN.sub(" number", raw)
    # Split camelCase and snake_case; `UPC` and `SKUs` stay whole.
    split = split if " " in split.strip() else _CAMEL.sub(" ", _HUNGARIAN.sub("", split))
    unbracketed = _BRACKET.sub(" ", split)
    full = plain_words(split)
    bare = plain_words(unbracketed) or full
    bracketed = [word for part in _BRACKET.findall(raw) for word in (*plain_words(part).split(), part.strip())]
    words = full.split()
    if words and raw.rstrip().endswith('"'):
        bracketed.append('"')
    number = _DIGITS.search(full)
    # The last name of a path (`core::supplierPartNumber`), or the text after a label (`Parameter: Brand`).
    before, _, last = split.rpartition(":")
    behind = [name for name in (plain_words(last),) if plain_words(before) and len(name) > 2]
    path = behind if "::" in raw and not _OF_PACKAGE.search(raw) else []
    parts = [plain_words(part) for part in unbracketed.split("/")]
    slashed = [part for part in parts if len(part) > 2] if 1 < len(parts) <= _MOST_SLASHED else []
    signed = (code for sign, code in _CURRENCY_SIGNS.items() if sign in raw)
    return Heading(
        tuple(dict.fromkeys((*_forms(*path), *_forms(full, bare)))),
        int(number[0]) if number else None,
        _unit_in(words, bracketed),
        next(filter(is_currency, words), None) or next(signed, None),
        metafield[1].lower() if metafield else None,
        tuple(dict.fromkeys((*path, full, bare, *slashed, *behind))),
    )


# Concepts of words, and rules from concepts to fields.


Concepts = frozenset[str]
_NONE: Final[Concepts] = frozenset()
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_LINKS = ("", "s", "n", "e", "es", "en", "er")
"""Linking letters between the parts of German, Dutch and Nordic compounds."""
_SHORTEST_PART = 3
_PART_ENDING = 3
_MOST_PARTS = 4
_COMPOUND = range(6, 41)
_SHORTEST_MISSPELT = 5
_ENDING = 8
_LONGEST_PHRASE = 3
_ENDINGS = (
    ("as os es is a o e i".split(), ("", "o", "a", "e")),
    ("erna arna orna ene eren en et er ar na ne ta es em e s n r t".split(), ("", "e", "a")),
)
"""Endings of inflected words and their replacements: Romance, then Germanic."""
_SHORTEST_BASE = 4
_FIGURES = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_SIDE_LETTERS = {"w": "width", "b": "width", "d": "depth", "t": "depth", "h": "height", "l": "length"}
_HAVING_SIDES = frozenset("package dims size overall item gross".split())
_BORNE = frozenset("seat arm package".split())
_NEUTRAL = frozenset("item overall lang furniture variant rug within".split())
"""Concepts that do not change the meaning."""
_UNKNOWN_COSTS = 18
_MISSPELT_COSTS = 12
_TRANSLATED_COSTS = 9
_MOST_UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Word:
    """Word of a header with its possible concepts; `sure` unless its spelling was corrected."""

    text: str
    concepts: Concepts
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """Result of reading a header's words: fields with scores, best first; `understood` if no word is unknown.

    An understood header without fields is outside the catalogue. `spelt` is false if a spelling was corrected.
    """

    fields: tuple[tuple[str, int], ...] = ()
    understood: bool = False
    spelt: bool = True


@dataclass(frozen=True, slots=True)
class _Rule:
    """One row of rules.csv; `anything` permits other concepts, `loose` unknown words."""

    senses: tuple[tuple[str, int], ...]
    needs: tuple[Concepts, ...]
    allows: Concepts
    loose: bool
    anything: bool

    def passes_over(self, words: Sequence[Word], found: Concepts) -> int | None:
        """Return the number of unknown words that the rule ignores, or None if the rule does not fit."""
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


_RULES = tuple(map(_rule, rows("rules")))


def _lexicon() -> tuple[dict[str, Concepts], dict[str, Concepts]]:
    """Return the concepts of words and of stems, without accents and also with umlauts transcribed."""
    whole, stems = dict[str, Concepts](), dict[str, Concepts]()
    for concept, text in load("lexicon").items():
        for word in phrases(text):
            entries = stems if word.endswith("*") else whole
            for spelling in map(plain_words, {word, word.translate(_UMLAUTS)}):
                entries[spelling] = entries.get(spelling, _NONE) | {concept}
    return whole, stems


_WORDS, _STEMS = _lexicon()
_SHORTEST_STEM = min(map(len, _STEMS))
_LONGEST_PART = max(map(len, _WORDS))
_BY_LETTER: Final[Mapping[str, list[str]]] = {
    letter: [word for word in group if len(word) >= _SHORTEST_MISSPELT - 1 and " " not in word]
    for letter, group in groupby(sorted(_WORDS), key=itemgetter(0))
}


@lru_cache(maxsize=16384)
def known(word: str) -> Concepts:
    """Return the concepts of a word (or of words separated by one blank) as written; empty if unknown."""
    found = _WORDS.get(word, _NONE)
    for end in range(max(_SHORTEST_STEM, len(word) - _ENDING), len(word) + 1):
        ending = word[end:]
        if " " not in ending and (len(ending) < _SHORTEST_PART or ending not in _WORDS):
            found |= _STEMS.get(word[:end], _NONE)
    return found


def is_filler(word: str) -> bool:
    """Return whether a word has no meaning by itself (`of`, `für`)."""
    return word in _LISTS["fillers"]


def _is_part(word: str) -> bool:
    """Return whether a word can be part of a compound: a known word, or a stem with a short ending."""
    stemmed = any(word[: len(word) - end] in _STEMS for end in range(_PART_ENDING + 1))
    return word not in _LISTS["no_parts"] and (word in _WORDS or stemmed)


def _parts(word: str) -> tuple[str, ...]:
    """Return the known words of a compound, as few as possible; empty if it is not a compound or has too many parts.

    The search runs from the end: `after` maps each possible end of a part to the parts that follow. Most words have no such
    position except the end, so the cost is close to linear in length.
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
    """Return the concepts of known words with one letter missing, added or swapped, if all agree; empty otherwise.

    The first letter must match, and no letter is replaced, since that often gives another word (`swatch`, `switch`).
    """
    if not word.isalpha() or not _SHORTEST_MISSPELT <= len(word) < _COMPOUND.stop:
        return _NONE
    close = extract(word, _BY_LETTER.get(word[0], ()), scorer=OSA.distance, score_cutoff=1, limit=None)
    found = {
        _WORDS[candidate]
        for candidate, _, _ in close
        if len(candidate) != len(word) or sorted(candidate) == sorted(word)
    }
    return found.pop() if len(found) == 1 else _NONE


def _inflected(word: str) -> Concepts:
    """Return the concepts of a known word with another ending (`previsto`, `prevista`; `Lager`, `Lagers`)."""
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
    """Return the words of a heading in plain form, with compounds split and without fillers."""
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
    """Return whether a word is a unit or a currency."""
    return word in _LISTS["local_units"] or is_currency(word) or (bool(_unit(word)) and not known(word))


def words_in(text: str) -> list[Word]:
    """Return the words of a heading in plain form, with figures split off and without units and currencies."""
    apart = " ".join(word if known(word) else _FIGURES.sub(" ", word) for word in text.split())
    words = [word for word in words_of(apart) if not _is_noise(word.text)]
    last = apart.rpartition(" ")[2]
    if (side := _SIDE_LETTERS.get(last)) and _HAVING_SIDES & concepts_in(words):
        words = [*(word for word in words if word.text != last), Word(last, frozenset((side,)))]
    if len(words) == 2 and (side := _SIDE_LETTERS.get(words[0].text)) and words[1].concepts & _BORNE:
        words[0] = Word(words[0].text, frozenset((side,)))
    return words


@lru_cache(maxsize=16384)
def read_heading(text: str) -> Reading:
    """Return the reading of a heading in plain form (`plain_words`)."""
    words = words_in(text)
    found = concepts_in(words)
    if not found or sum(not word.concepts for word in words) > _MOST_UNKNOWN:
        return Reading()
    spelt = all(word.sure for word in words if word.concepts)
    # `name` takes precedence over `name_en`.
    translated = len(words) > 1 and any(word.concepts == {"lang"} for word in words)
    costs = (0 if spelt else _MISSPELT_COSTS) + (_TRANSLATED_COSTS if translated else 0)
    for rule in _RULES:
        unknown = rule.passes_over(words, found)
        if unknown is not None:
            loss = costs + unknown * _UNKNOWN_COSTS
            fields = tuple((field, score - loss) for field, score in rule.senses if score > loss)
            return Reading(fields, not unknown or (rule.anything and not rule.senses), spelt)
    return Reading()


NOT_DROPPED = _LISTS["not_dropped"]
"""Words that change the meaning of the words after them."""
_SAFE = frozenset("sku gtin mpn cost msrp map price compare_at sale_price".split())
_PREFIXED = frozenset(
    "features media tags materials category_path cartons incoming option_name option_value colour".split()
)
_NOT_IN_METAFIELDS = frozenset("colour title materials media tags features finish".split())
_ZERO_BASED = re.compile(r"\.\d+(?:\.|$)|\[\d+\]")
_LATER_VARIANT = re.compile(r"^(?:product\.)?variants?[.\[](?!0\b)\d+")
_ORDER = re.compile(r"(?<![a-z])([wdhlbt])\s*[x*/,]\s*([wdhlbt])(?:\s*[x*/,]\s*([wdhlbt]))?(?![a-z])", re.I)
_GRAMS = re.compile(r"\bgrams\b", re.I)
_SPELLS = {
    "weeks": re.compile(
        r"\b(?:weeks?|wks?|wochen?|semaines?|weken|semanas?|settiman[ae]|veckor|uger|uker|viikkoa|tygodni\w*|недел\w*)\b",
        re.I,
    ),
    "hours": re.compile(r"\b(?:hours?|hrs|stunden|heures|uren|horas|ore|timmar|timer|tuntia|godzin\w*|час\w*)\b", re.I),
}
_MOST_PLACES = 20
_LONGEST = 300
_MOST_CHARS = 120
"""Maximum number of characters of a header."""
_SURE = 75
"""Score from which a phrase that is the whole header is used without other readings."""
_EXACT = 25
"""Bonus of a phrase that is the whole header, over other readings."""
_VENDOR_COSTS = 15
_UNIT_PROVES = 45
PROMOTED = 150
"""Score of a weaker sense that is used because no better column exists."""
Hits = Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Sense:
    """Possible meaning of a header: a field with settings and a score (100 is clear).

    Attributes:
        prefix: Whether the field belongs to a numbered family.
        surmised: Whether a word was unknown or its spelling corrected.
        listed: Whether the whole header is a listed phrase.

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
"""Headings in plain form, with `#` for a number, and their possible fields and scores."""


def settings_of(field: str, header: str) -> tuple[tuple[str, str], ...]:
    """Return the settings that a header states for a field: unit, order of sides, currency."""
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
    """Return the phrase equal to a form, also without the names of a JSON path, with its fields; or None."""
    parts = form.split()
    while form not in PHRASES and len(parts) > 1 and (parts[0] in _LISTS["path_words"] or parts[0] == "#"):
        parts = parts[1:]
        form = " ".join(parts)
    if form not in PHRASES and len(parts) > 1 and parts[-1] in _LISTS["path_tails"]:
        form = " ".join(parts[:-1])
    return (form, PHRASES[form]) if form in PHRASES else None


def _hits_after_vendor(form: str) -> tuple[str, Hits] | None:
    """Return the key or price phrase after a vendor's name (`Acme UPC Code`), or None."""
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
        return (Sense(IGNORE, 90),) if reading.understood and reading.spelt else ()
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
    """Return the possible senses of a header, strongest first; empty if it is unknown.

    The header is read as a phrase, as a phrase after a vendor's name, and word by word; the best reading is used.
    """
    if len(header) > _LONGEST:
        return ()
    if _LATER_VARIANT.match(clean(header)):
        return (Sense(IGNORE, 100),)
    whole = _listed(header, _hits)
    if whole and whole[0].score >= _SURE:
        return whole
    named = _listed(header, _hits_after_vendor, _VENDOR_COSTS)
    worded = (_read_senses(header, words) for words in heading(header).readings)
    found = filter(None, (whole, named, *worded))
    return max(found, key=lambda senses: senses[0].score + _EXACT * senses[0].listed, default=())


def score_header(cells: Sequence[str]) -> int:
    """Return how many cells of a row are known headers; the row with the most is the header row."""
    return sum(1 for cell in cells if cell and isinstance(cell, str) and len(cell) <= _MOST_CHARS and senses(cell))


# Classification of headers without a rule by a linear model.


OUTSIDE = "outside"
"""Class of headers for which the catalogue has no field."""
_GRAM_SIZES = (3, 4, 5)
_LONGEST_LIKENED = 80
_LIKE_ENOUGH = 0.75
_UNLIKE = 0.5
_SCORE = 52
_BORNE_OUT = 10
_PLACE = re.compile(r"\.\d+")
_CLASSES = {"media.hero": "media", "category_path.0": "category_path", IGNORE: OUTSIDE}
_NEVER = MONEY | {*KEYS, OUTSIDE, "axes", "components", "cartons"}
"""Fields that are never assigned by likeness, since keys and prices must be stated."""


def features(text: str) -> tuple[str, ...]:
    """Return the features of a heading in plain form, each once."""
    return tuple(dict.fromkeys(_features(text[:_LONGEST_LIKENED])))


def _features(text: str) -> Iterator[str]:
    yield "*"
    words = text.split()
    for word in words:
        edged = f"^{word}$"
        yield from (edged[at : at + size] for size in _GRAM_SIZES for at in range(len(edged) - size + 1))
        yield f"w={word}"
    for part in words_in(text):
        yield from (f"c={concept}" for concept in sorted(part.concepts) or ("",))
    if words:
        yield f"last={words[-1]}"


@cache
def _weights() -> tuple[tuple[str, ...], Mapping[str, Mapping[str, int]], float]:
    """Return the classes, each feature's weights by class number, and the scale of the weights."""
    data = json.loads(read("weights.json"))
    return tuple(data["classes"]), data["weights"], data["scale"]


@lru_cache(maxsize=8192)
def likeliest(header: str) -> tuple[str, float]:
    """Return the most probable class of a header (a field, or OUTSIDE) and its probability."""
    classes, weights, scale = _weights()
    scores = [0.0] * len(classes)
    for feature in features(heading(header).readings[0]):
        for number, weight in weights.get(feature, {}).items():
            scores[int(number)] += weight
    best = max(range(len(classes)), key=scores.__getitem__)
    total = sum(math.exp((score - scores[best]) * scale) for score in scores)
    return classes[best], 1 / total


def class_of(field: str) -> str:
    """Return the class of a field: one for all numbers of a numbered family."""
    name = _PLACE.sub(".0", field)
    return _CLASSES.get(name, name)


def likeness(header: str, field: str) -> float:
    """Return how similar a header is to those of a field, from -1 (certainly another field) to 1 (certainly this field)."""
    label, chance = likeliest(header)
    return chance if label == class_of(field) else -chance


def by_likeness(header: str, options: tuple[Sense, ...]) -> tuple[Sense, ...]:
    """Return the senses of a header, corrected by likeness if words are unknown."""
    if options and not options[0].surmised:
        return options
    label, chance = likeliest(header)
    if not options:
        known = label not in _NEVER and chance >= _LIKE_ENOUGH
        surmised = Sense(label, _SCORE + round(10 * chance), settings_of(label, header), surmised=True)
        return (surmised,) if known else ()
    if label == class_of(options[0].field):
        return tuple(replace(sense, score=sense.score + _BORNE_OUT) for sense in options)
    return () if chance >= _UNLIKE else options
