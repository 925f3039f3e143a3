"""What a column's values say for or against what its header may mean."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from domain.ingestion.values.gtin import parse_gtin
from domain.ingestion.values.lengths import unit_named
from domain.ingestion.values.text import PLACEHOLDERS
from domain.ingestion.vocabulary.concepts import words_of
from domain.ingestion.vocabulary.fields import IGNORE, MONEY
from domain.ingestion.vocabulary.headings import plain_words
from domain.ingestion.vocabulary.senses import Sense

_DIGIT: Final = re.compile(r"\d|[½¼¾⅛⅜⅝⅞]")
_LETTERS: Final = re.compile(r"[^\W\d_]{2}")
_ADDRESS: Final = re.compile(r"https?://|www\.|^/[\w/]+\.\w{3,4}\b", re.I)
_PICTURE: Final = re.compile(r"https?://|www\.|\.(?:jpe?g|png|webp|gif|tiff?|avif|bmp|svg)\b", re.I)
_DATE: Final = re.compile(
    r"\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{2,4})?|\d{5}(?:\.0)?|[^\W\d_]{3,9}\.?\s+\d|\d{1,2}\.?\s*[^\W\d_]{3,9}|\bkw\s?\d|tb[adc]|week|[^\W\d_]{3,}",
    re.I,
)
_PRICE: Final = re.compile(r"[^\d]{0,12}-?\d[\d.,'\s]*[^\d]{0,24}")
_OUTDOORS: Final = re.compile(
    r"(?:in|out)door|inside|outside|interior|exterior|innen|aussen|außen|ext[ée]rieur|buiten", re.I
)
_ANSWERS: Final = frozenset(
    "yes no y n true false ja nein nej nee oui non si no tak nie да нет kylla ei sim nao".split()
)
_DAY: Final = re.compile(r"\d{1,4}[-/.] ?\d{1,2}[-/.] ?\d{2,4}|\b(?:kw|uge|week|vecka|uke|tydz)\s?\d", re.I)
_GTIN_LENGTH: Final = re.compile(r"'?\d(?:[\d \-]{6,15})\d(?:\.0)?|\d(?:[.,]\d+)?[eE]\+?\d+")
_PERCENT: Final = re.compile(r"[^\w%]{0,3}\d[\d.,]{0,9}\s?%\W{0,3}")
_TWO_NUMBERS: Final = re.compile(r"\d[^\d]+\d")
_CONDITIONS: Final = frozenset(
    "new used refurbished neu gebraucht neuf occasion nieuw gebruikt nuevo usado nuovo usato nowy nowe uzywany ny begagnad brugt brukt uusi новыи б у".split()
)
_PLAIN_CATEGORY: Final = 60
_A_CATEGORY: Final = 90
_ENOUGH: Final = 2
"""How many values it takes to contradict a price."""
_LONG_TEXT: Final = 160
_MOST_SEEN: Final = 60


@dataclass(frozen=True, slots=True)
class Traits:
    """Shares, from 0 to 1, of a column's values that are of a kind; `count` of them are not blank."""

    count: int
    digits: float
    letters: float
    addresses: float
    pictures: float
    prices: float
    dates: float
    gtins: float
    long: float
    spaced: float
    bare: float
    gtin_lengths: float
    several: float
    conditions: float
    single: float
    units: float
    answers: float
    days: float
    furnished: float
    percents: float
    outdoors: float
    flags: float


def _share(test: Callable[[str], object], values: Sequence[str]) -> float:
    return sum(bool(test(value)) for value in values) / len(values)


def traits_of(samples: Sequence[str]) -> Traits | None:
    """The traits of a column's first values; None when all are blank."""
    values = [
        value
        for sample in samples[:_MOST_SEEN]
        if (value := sample.strip()[:400]) and value.lower() not in PLACEHOLDERS
    ]
    if not values:
        return None
    return Traits(
        count=len(values),
        digits=_share(_DIGIT.search, values),
        letters=_share(_LETTERS.search, values),
        addresses=_share(_ADDRESS.search, values),
        pictures=_share(_PICTURE.search, values),
        prices=_share(_PRICE.fullmatch, values),
        dates=_share(_DATE.search, values),
        gtins=_share(lambda value: parse_gtin(value).value, values),
        long=_share(lambda value: len(value) > _LONG_TEXT, values),
        spaced=_share(lambda value: value.count(" ") >= 3, values),
        bare=_share(lambda value: value.replace(".", "").replace(",", "").isdecimal(), values),
        gtin_lengths=_share(_GTIN_LENGTH.fullmatch, values),
        several=_share(_TWO_NUMBERS.search, values),
        conditions=_share(lambda value: plain_words(value) in _CONDITIONS, values),
        flags=_share(lambda value: value in ("0", "1"), values),
        outdoors=_share(_OUTDOORS.search, values),
        percents=_share(_PERCENT.fullmatch, values),
        furnished=_share(_names_furniture, values),
        answers=_share(lambda value: plain_words(value) in _ANSWERS, values),
        days=_share(_DAY.search, values),
        units=_share(unit_named, values),
        single=_share(lambda value: len(value) < 2, values),
    )


def _names_furniture(value: str) -> bool:
    return any("furniture" in word.concepts or "rug" in word.concepts for word in words_of(plain_words(value[:80])))


def is_a_type(options: tuple[Sense, ...]) -> bool:
    """Whether a header says no more than `type`, which may be a category or anything else."""
    return options[0].field == "category_path" and options[0].score < _PLAIN_CATEGORY


def _measured(traits: Traits) -> bool:
    return traits.digits >= 0.4 and traits.addresses < 0.5 and traits.long < 0.5


def _short_words(traits: Traits) -> bool:
    return traits.letters >= 0.5 and traits.addresses < 0.5 and traits.long < 0.5


def _coded(traits: Traits) -> bool:
    return traits.spaced < 0.6 and traits.addresses < 0.5 and traits.long < 0.3


_MUST: Final[dict[str, Callable[[Traits], bool]]] = {
    "lead_time_days": _measured,
    **dict.fromkeys(MONEY, lambda traits: traits.prices >= 0.4),
    **dict.fromkeys(("sku", "mpn", "product_key", "variant_key", "replacement_sku"), _coded),
    **dict.fromkeys(
        ("title", "brand", "collection", "features"),
        lambda traits: traits.addresses < 0.5 and traits.letters >= 0.3 and traits.answers < 0.6,
    ),
    **dict.fromkeys(("colour", "finish", "materials"), lambda traits: _short_words(traits) and traits.answers < 0.6),
    "description": lambda traits: traits.addresses < 0.5 and traits.percents < 0.4,
    **dict.fromkeys(
        ("media", "media.hero", "variant_media"),
        lambda traits: traits.pictures >= 0.3 or (_coded(traits) and traits.bare < 0.5 and traits.single < 0.5),
    ),
    "gtin": lambda traits: traits.gtin_lengths >= 0.4,
    "quantity": lambda traits: traits.addresses < 0.5 and traits.spaced < 0.6 and traits.conditions < 0.5,
    "compliance.country_of_origin": lambda traits: _short_words(traits) and traits.digits < 0.5,
    "weight": _measured,
    "rug.indoor_outdoor": lambda traits: traits.outdoors > 0,
    "rug.pile_height": _measured,
    "carton_count": _measured,
    "dimensions": lambda traits: _measured(traits) and traits.several >= 0.4,
    **dict.fromkeys(("dimension_unit", "weight_unit"), lambda traits: traits.digits < 0.5 and traits.long < 0.5),
    **dict.fromkeys(("status", "availability"), lambda traits: traits.conditions < 0.5 and traits.long < 0.5),
    **dict.fromkeys(
        ("category_path", "category_path.0"), lambda traits: traits.single < 0.5 and traits.addresses < 0.5
    ),
    "discontinued": lambda traits: traits.long < 0.5 and (traits.bare < 0.9 or traits.flags > 0.5),
    "assembly_required": lambda traits: traits.long < 0.5 and traits.addresses < 0.5,
}


def contradicted(field: str, traits: Traits) -> bool:
    """Whether a column's values cannot be what its header says."""
    test = _test_of(field)
    return test is not None and not test(traits)


def _test_of(field: str) -> Callable[[Traits], bool] | None:
    if field in _MUST:
        return _MUST[field]
    if field.endswith(".dimensions"):
        return _MUST["dimensions"]
    if field.endswith(".eta"):
        return lambda traits: traits.dates >= 0.3
    return _measured if field.startswith(("dimensions.", "cartons.")) else None


def _refuted(field: str, traits: Traits) -> bool:
    """As `contradicted`; a single figure that is none may be what the vendor got wrong."""
    return contradicted(field, traits) and (traits.count >= _ENOUGH or field not in MONEY)


def supported(field: str, traits: Traits) -> bool:
    """Whether a column's values are what its header says, where that can be told from them."""
    return _test_of(field) is not None and not contradicted(field, traits)


def by_evidence(options: tuple[Sense, ...], traits: Traits | None) -> tuple[Sense, ...]:
    """The senses that a column's values allow; of one whose header says nothing, what its values prove."""
    if traits is None:
        return () if options and is_a_type(options) else options
    if not options:
        return _proven(traits)
    if options[0].field == IGNORE and traits.units > 0.9:
        return (replace(options[0], field="dimension_unit", score=70),)
    options = _number_of_ids(_stock_in_words(options, traits), traits)
    if is_a_type(options):
        if not traits.furnished:
            return (replace(options[0], score=1, field=CONTRADICTED),)
        options = (replace(options[0], score=_A_CATEGORY), *options[1:])
    left = tuple(sense for sense in options if sense.field == IGNORE or not _refuted(sense.field, traits))
    return left or (replace(options[0], score=1, field=CONTRADICTED),)


def _number_of_ids(options: tuple[Sense, ...], traits: Traits) -> tuple[Sense, ...]:
    """An id of items whose values are all GTINs is one."""
    first = options[0]
    if (
        first.field in ("sku", "product_key")
        and first.score <= _PLAIN_CATEGORY
        and traits.gtins > 0.9
        and traits.count >= _ENOUGH
    ):
        return (replace(first, field="gtin"), *options)
    return options


def _stock_in_words(options: tuple[Sense, ...], traits: Traits) -> tuple[Sense, ...]:
    """A quantity without digits is said in words; an availability of bare numbers is a quantity."""
    first = options[0]
    if (
        first.field == "quantity"
        and traits.digits < 0.3
        and not any(sense.field == "availability" for sense in options)
    ):
        return (replace(first, field="availability"), *options[1:])
    if first.field == "availability" and traits.bare > 0.9 and traits.flags < 0.9 and first.score < 100:
        return (replace(first, field="quantity"), *options[1:])
    if first.field == "incoming.0.quantity" and traits.days >= 0.5:
        return (replace(first, field="incoming.0.eta"), *options[1:])
    if first.field == "quantity" and traits.flags > 0.9 and traits.count > 1:
        stated = [sense for sense in options if sense.field == "availability"]
        return (*stated, *(sense for sense in options if sense.field != "availability"))
    return options


CONTRADICTED: Final = "contradicted"
"""Stands for the field of a column whose values are none of what its header may mean."""


def _proven(traits: Traits) -> tuple[Sense, ...]:
    if traits.count >= 3 and traits.gtins > 0.9:
        return (Sense("gtin", 62, surmised=True),)
    return ()
