"""Headers as vendors write them, brought to one form that a vocabulary can be asked by."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.ingestion.values.lengths import unit_named
from domain.ingestion.values.text import clean
from domain.ingestion.values.weights import weight_unit_named
from domain.kernel.money import EXPONENTS

_SMALL: Final = "a-zß-öø-ÿа-яё"
_LARGE: Final = "A-ZÀ-ÖØ-ÞА-ЯЁ"
_CAMEL: Final = re.compile(rf"(?<=[{_SMALL}])(?=[{_LARGE}])|(?<=[{_LARGE}])(?=[{_LARGE}][{_SMALL}])")
_HUNGARIAN: Final = re.compile(r"^[a-z](?=[A-Z][a-z])")
_BRACKET: Final = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_NOISE: Final = re.compile(r"[^\w%]+|_+")
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_LETTERS: Final = str.maketrans(
    {"ß": "ss", "ł": "l", "Ł": "l", "ø": "o", "Ø": "o", "æ": "ae", "Æ": "ae", "đ": "d", "ı": "i", "œ": "oe"}
)
_DIGITS: Final = re.compile(r"(?<![a-z])\d{1,2}(?![a-z])|(?<=[a-z])\d{1,2}\b")
_NUMBER_SIGN: Final = re.compile(r"(?<=[a-z])\s?#(?![\d\w])", re.I)
_PER: Final = re.compile(
    r"/\s{0,4}(?=(?:pkg|ctn|carton|box|pallet|container|karton|ve|colis|doos|bulto|collo|embalaje|caja|emballage|imballo|krt|kartong)\b)",
    re.I,
)
_NAMESPACE: Final = re.compile(r"^(?:g:|\{[^}]*\})")
_METAFIELD: Final = re.compile(r"\((product|variant)\.metafields\.[^)]{0,300}\)", re.I)
_OF_PACKAGE: Final = re.compile(r"ship|pack|carton|box", re.I)
"""Names in a path that change what the names below them say."""
_CURRENCY_SIGNS: Final = {"$": "usd", "€": "eur", "£": "gbp"}
_NO_CURRENCIES: Final = frozenset("all top map cup try".split())
_NO_UNITS: Final = frozenset("m g t pie pies ft".split())
_CYRILLIC_UNITS: Final = {"мм": "mm", "см": "cm", "кг": "kg", "г": "g", "гр": "g"}
_LONGEST: Final = 1_000
_MOST_PARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Heading:
    """A header's words: all of them, those outside brackets, and both with digits as `#` and units left out.

    `forms` is what to look up, best first; `index` the first number in it, `unit` and `currency` what it names. `readings`
    are what to read word by word: all of it, what stands outside brackets, and what stands between slashes.
    """

    forms: tuple[str, ...]
    index: int | None = None
    unit: str | None = None
    currency: str | None = None
    metafield: str | None = None
    readings: tuple[str, ...] = ()


def plain_words(text: str) -> str:
    """Return `text` in lower case without accents and punctuation, words parted by one blank."""
    text = _INVISIBLE.sub("", text[:_LONGEST])
    decomposed = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    return _NOISE.sub(" ", letters.lower()).strip()


def is_currency(word: str) -> bool:
    """Return whether a word is a currency's code and nothing else that headers say (`map`, `top`)."""
    return word in EXPONENTS and word not in _NO_CURRENCIES


def _unit(word: str) -> str | None:
    return unit_named(word) or weight_unit_named(word)


def _unit_in(words: Sequence[str], bracketed: Sequence[str]) -> str | None:
    """Return the unit that a header names: in Cyrillic letters, in brackets, or by its last two words."""
    cyrillic = (_CYRILLIC_UNITS[word] for word in words if word in _CYRILLIC_UNITS)
    behind = (unit for word in words[:0:-1][:2] if word not in _NO_UNITS and (unit := _unit(word)))
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
    """Return the heading of a header cell as the feed has it (BOM, line breaks, `*`, `#`, brackets and all)."""
    raw = _NAMESPACE.sub("", clean(text))
    metafield = _METAFIELD.search(raw)
    raw = _PER.sub(" per ", _METAFIELD.sub(" ", raw))
    split = _NUMBER_SIGN.sub(" number", raw)
    # Words of camelCase and snake_case; `UPC` and `SKUs` stay whole.
    split = split if " " in split.strip() else _CAMEL.sub(" ", _HUNGARIAN.sub("", split))
    unbracketed = _BRACKET.sub(" ", split)
    full = plain_words(split)
    bare = plain_words(unbracketed) or full
    bracketed = [word for part in _BRACKET.findall(raw) for word in (*plain_words(part).split(), part.strip())]
    words = full.split()
    if words and raw.rstrip().endswith('"'):
        bracketed.append('"')
    number = _DIGITS.search(full)
    # The last name of a path (`core::supplierPartNumber`), or what stands behind a label (`Parameter: Brand`).
    before, _, last = split.rpartition(":")
    behind = [name for name in (plain_words(last),) if plain_words(before) and len(name) > 2]
    path = behind if "::" in raw and not _OF_PACKAGE.search(raw) else []
    parts = [plain_words(part) for part in unbracketed.split("/")]
    slashed = [part for part in parts if len(part) > 2] if 1 < len(parts) <= _MOST_PARTS else []
    signed = (code for sign, code in _CURRENCY_SIGNS.items() if sign in raw)
    return Heading(
        tuple(dict.fromkeys((*_forms(*path), *_forms(full, bare)))),
        int(number[0]) if number else None,
        _unit_in(words, bracketed),
        next(filter(is_currency, words), None) or next(signed, None),
        metafield[1].lower() if metafield else None,
        tuple(dict.fromkeys((*path, full, bare, *slashed, *behind))),
    )
