"""Prices as vendors write them, read exactly to minor units of the right currency.

    price    := [words] [minus] [currency] number [cents] [minus] [currency] [tax] [per]
    number   := digits | groups of three parted by one mark or blank, then a decimal mark | Indian groups
    cents    := ".-" | ",--" | "€50"                          12.-, 12,--, 12€50
    words    := "price" | "RRP" | "UVP" | "only" | label ":" …    "from" is read and told
    tax      := "incl. VAT" | "zzgl. MwSt." | "TTC" | "HT" …      a price without tax is read and told
    per      := ("/" | "per" | "je" | "la" …) [count] ("pack" | "piece" | "pair" | …)
              | … ("m²" | "metre" | "month" …)                      no price of the item: told

Nothing else may stand in the cell: a second number, a range, words that are not known are told. A minus before the number, behind
it or brackets around it are a price below zero, which is told.
"""

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Final

from domain.ingestion.values.parsed import NOTHING, Fault, Parsed, overlong, quoted, refused, unreadable
from domain.ingestion.values.text import stated
from domain.kernel.money import EXPONENTS, minor_units
from domain.kernel.problems import ProblemKind

_LONGEST: Final = 200
_SIGNS: Final[dict[str, tuple[str, ...]]] = {
    "us$": ("usd",),
    "ca$": ("cad",),
    "c$": ("cad",),
    "cad$": ("cad",),
    "a$": ("aud",),
    "au$": ("aud",),
    "nz$": ("nzd",),
    "hk$": ("hkd",),
    "s$": ("sgd",),
    "mx$": ("mxn",),
    "r$": ("brl",),
    "$": ("usd", "cad", "aud", "nzd", "hkd", "sgd", "mxn", "cop", "ars", "clp", "twd", "uyu"),
    "€": ("eur",),
    "euro": ("eur",),
    "euros": ("eur",),
    "£": ("gbp",),
    "¥": ("jpy", "cny"),
    "₹": ("inr",),
    "₺": ("try",),
    "tl": ("try",),
    "₫": ("vnd",),
    "₩": ("krw",),
    "₪": ("ils",),
    "zł": ("pln",),
    "zl": ("pln",),
    "kč": ("czk",),
    "ft": ("huf",),
    "fr.": ("chf",),
    "sfr": ("chf",),
    "dhs": ("aed",),
    "dhs.": ("aed",),
    "dh": ("aed", "mad"),
    "sr": ("sar",),
    "qr": ("qar",),
    "kd": ("kwd",),
    "bd": ("bhd",),
    "r": ("zar",),
    "rm": ("myr",),
    "rs": ("inr", "pkr", "lkr"),
    "rs.": ("inr", "pkr", "lkr"),
    "kr": ("sek", "nok", "dkk"),
    "kr.": ("dkk", "sek", "nok"),
    **dict.fromkeys(("dollar", "dollars", "dólares", "dolares"), ("usd", "cad", "aud", "nzd", "hkd", "sgd")),
    **dict.fromkeys(("usd$", "u$s", "us dollars", "us dollar"), ("usd",)),
    **dict.fromkeys(("aud$", "nzd$"), ("aud", "nzd")),
    **dict.fromkeys(("pound", "pounds", "quid", "pfund"), ("gbp",)),
    **dict.fromkeys(("chf.", "fr", "franken", "sfr."), ("chf",)),
    **dict.fromkeys(("lei", "ron."), ("ron",)),
    **dict.fromkeys(("zloty", "złotych", "zlotych", "złoty"), ("pln",)),
    **dict.fromkeys(("kronen", "kronor", "kroner", ",-kr"), ("sek", "nok", "dkk")),
    **dict.fromkeys(("руб", "руб.", "₽", "р."), ("rub",)),
    **dict.fromkeys(("₴", "грн"), ("uah",)),
    **dict.fromkeys(("rmb", "元", "cn¥"), ("cny",)),
    **dict.fromkeys(("yen", "円", "jp¥"), ("jpy",)),
    "aed.": ("aed",),
    "rp": ("idr",),
    "rp.": ("idr",),
    "₱": ("php",),
    "฿": ("thb",),
    "﷼": ("sar", "irr", "qar", "omr", "yer"),
    "pesos": ("mxn", "cop", "ars", "clp", "uyu", "php"),
}
_CERTAIN: Final = frozenset(("$", "dollar", "dollars"))
"""Signs that many currencies share but that mean the first of them where the source says nothing else."""
_PACK: Final = re.compile(
    r"\s*+(?:/|\b(?:per|pro|je|por|par|la|le|al|a|voor|für|for|x)\b)\s*+(?P<count>\d{1,5})?[\s-]*+(?:er[\s-]*)?"
    r"(?P<kind>packs?|pk|pcs?|pieces?|pi[eè]ces?|pezz[oi]|sets?|each|ea|units?|unidad(?:es)?|uds?|unit[àé]s?|item|st[uü]cks?|stk|st|stuks?|pairs?|paar|paire"
    r"|par(?:es)?|ctn|carton|box)\.?\s*+$"
    r"|\s+(?:each|ea\.?|apiece|stuksprijs|p/?st)\s*+$",
    re.I,
)
_BOXES: Final = frozenset(("ctn", "carton", "box", "pack", "packs", "pk"))
_PAIRS: Final = frozenset(("pair", "pairs", "paar", "paire", "par", "pares"))
_MEASURED: Final = re.compile(
    r"(?:/|\b(?:per|pro|je|por|par|al|le|der|den)\b)\s{0,3}(?:\d{1,4}\s?)?(?:m[²2³3]?|qm|lfm|lfd|cm|mm|ft|foot|feet|sq\b|sqm|sqft|sq\.?\s?(?:ft|m)|yards?|yd"
    r"|met(?:er|re)s?|m[eè]tres?|metros?|metri|kg|lbs?|g|l|ml|month|mo|monat|mes|mois|week|year|jahr|night|day|tag|inch)\b",
    re.I,
)
_TAX: Final = re.compile(
    r"[(,;]?\s{0,3}(?P<without>zzgl\.?|exkl\.?|excl?\.?|excluding|ex\.?|plus|\+|ohne|netto|hors|sin|m[aá]s|excluido|escl\.?|esclusa)?"
    r"(?P<with>inkl\.?|inc(?:l|luding)?\.?|incl?\.?|including|mit|brutto|con|iva incl\w*)?\s{0,3}"
    r"(?:\d{1,2}\s?%\s?)?\b(?:vat|mwst\.?|ust\.?|gst|hst|tax|taxes|btw|iva|tva|moms|ttc|ht|tvac|htva|pdv|alv|mva)(?![^\W\d_])\.?"
    r"(?P<after>\s{0,2}(?:inclu\w*|incl\.?|inbegriffen|compris\w*|excl\w*\.?|esclus\w*|aparte))?[)]?",
    re.I,
)
_LEAST: Final = re.compile(
    r"^\W*(?:from|ab|desde|starting (?:at|from)|as low as|à partir de|a partir de|vanaf|von|da|od|fra|från|от|dès|a partire da)\b\.?\s*+",
    re.I,
)
_LABEL: Final = re.compile(r"^[+]?\s*[^\W\d_][^\W\d_ .()/-]{0,60}(?: [^\W\d_]{1,20}){0,5}\s?[:=]\s*+", re.I)
_WORDS: Final = frozenset(
    "only nur now jetzt price preis prix precio prezzo prijs pris cena цена rrp msrp srp map imap uvp vk ek pvp pvr sale our net netto "
    "cost retail list wholesale trade your unit was0 regular special offer just solo seulement slechts soltanto approx ca sale: price: "
    "preis: brutto gross inkl incl total vhb vb fp festpreis fixpreis obo ono firm".split()
)
_NUMBER: Final = re.compile(
    r"\d{1,3}(?:[ '\u00a0\u202f\u2009’.,]\d{3})+(?!\d)(?:[.,]\d{1,4}(?!\d))?|\d[\d.,]*\d|\d|(?<![\d.,])[.,]\d{1,4}"
)
_CENTS: Final = re.compile(r"(\d)\s?(€|\$|£|eur|fr)\s?(\d{2})(?=\s*$)", re.I)
_ROUND: Final = re.compile(r"^\s?(?:[.,]\s?[-–—=]{1,2}|[-–—]{2})(?!\d)")
_MINUS: Final = "-−–"
_GROUPED: Final = {"comma": re.compile(r"\d{1,3}(?:\.\d{3})+"), "dot": re.compile(r"\d{1,3}(?:,\d{3})+")}
_LAKH: Final = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_DOT_MARKETS: Final = frozenset(
    "usd gbp cad aud nzd hkd sgd sar aed mxn zar inr cny jpy thb php myr ils kwd bhd omr jod qar".split()
)
_ZERO: Final = re.compile(r"0+(?:[.,]0+)?")
_MAX_DIGITS: Final = 15


@dataclass(frozen=True, slots=True)
class Price:
    """An amount in minor units of `currency`; `pack` is the number of pieces it is for, when the text says so."""

    minor: int
    currency: str
    pack: int | None = None


def _by_sign(word: str, currency: str | None) -> tuple[str | None, bool]:
    """The currency that a sign or code means, and whether it was understood; the source's own settles shared signs."""
    low = word.strip().lower()
    if not low:
        return currency, True
    if low in EXPONENTS:
        return low, True
    choices = _SIGNS.get(low) or _SIGNS.get(low.rstrip("."))
    if choices is None:
        return None, False
    if currency in choices:
        return currency, True
    return (choices[0], True) if len(choices) == 1 or low in _CERTAIN else (None, True)


def _one_mark(number: str, mark: str, decimal: str, currency: str) -> str | None:
    """A number with a single kind of mark as plain digits with a dot; None where both readings are open."""
    other = "dot" if mark == "," else "comma"
    groups = _GROUPED[other].fullmatch(number)
    digits = len(number) - number.rindex(mark) - 1
    if number.count(mark) > 1:
        indian = mark == "," and _LAKH.fullmatch(number)
        return number.replace(mark, "") if groups or indian else None
    as_decimal, as_groups = number.replace(mark, "."), number.replace(mark, "")
    if not groups or number.startswith("0"):
        return as_decimal
    if decimal == other:
        return as_groups
    # A setting says that this mark is the decimal one, yet three digits after it are no price in most currencies.
    if EXPONENTS[currency] == digits:
        return as_decimal
    if mark == ",":
        return as_groups
    return as_decimal if decimal == "dot" or currency in _DOT_MARKETS else None


def plain_number(number: str, decimal: str, currency: str) -> Decimal | None:
    """The digits of a price as an exact number; None when its marks can be read in two ways."""
    bare = re.sub(r"[\s'’\u00a0\u202f]", "", number)
    if len(re.sub(r"\D", "", bare.split(".")[0] if decimal != "comma" else bare)) > _MAX_DIGITS:
        return None
    dot, comma = bare.rfind("."), bare.rfind(",")
    if dot >= 0 and comma >= 0:
        mark, group = (".", ",") if dot > comma else (",", ".")
        whole = bare[: max(dot, comma)]
        sound = _GROUPED["dot" if mark == "." else "comma"].fullmatch(whole) or (
            group == "," and _LAKH.fullmatch(whole)
        )
        return Decimal(whole.replace(group, "") + "." + bare[max(dot, comma) + 1 :]) if sound else None
    if dot < 0 and comma < 0:
        return Decimal(bare)
    found = _one_mark(bare, "." if dot >= 0 else ",", decimal, currency)
    return None if found is None else Decimal(found)


def _signs(words: str) -> list[str]:
    """The currency words beside a number, known words that say nothing left out."""
    parts = [part for part in re.split(r"[\s()*~]+", words.strip().lower()) if part.strip(".:,;-")]
    return [part for part in parts if part.strip(".:,;") not in _WORDS]


def _currency_of(before: str, after: str, currency: str | None) -> tuple[str | None, bool]:
    """The currency that the words around a number mean, and whether all were understood and agree."""
    if not before and not after:
        return currency, True
    chosen: str | None = None
    said = [*_signs(before), *_signs(after)]
    joined = "".join(said) if len(said) == 2 else ""
    if joined in _SIGNS:
        said = [joined]
    exact = [word.rstrip(".") for word in said if word.rstrip(".") in EXPONENTS]
    for word in said:
        found, known = _by_sign(word, exact[0] if exact else currency)
        if not known or (chosen and found and found != chosen):
            return None, False
        chosen = chosen or found
    return (chosen, True) if said else (currency, True)


def _priced(text: str, found: re.Match[str], bare: str, currency: str | None, decimal: str) -> Parsed[Price]:
    before, after = bare[: found.start()], bare[found.end() :]
    rounded = _ROUND.match(after)
    after = after[rounded.end() :] if rounded else after
    chosen, known = _currency_of(before.strip(_MINUS + "+ ("), after.strip(_MINUS + " )"), currency)
    if not known:
        words = max((*_signs(before), *_signs(after), ""), key=len)
        problem = ProblemKind.UNREADABLE if len(words) > 4 else ProblemKind.UNKNOWN_CURRENCY
        return refused(problem, text, "has no known currency")
    if chosen is None or chosen not in EXPONENTS:
        return refused(ProblemKind.UNKNOWN_CURRENCY, text, "names no currency, and neither does the source")
    if rounded and decimal == "auto" and (mark := rounded[0].strip()[:1]) in (",", "."):
        decimal = "comma" if mark == "," else "dot"
    number = plain_number(found[0], decimal, chosen)
    if number is None:
        return unreadable(text, "can be read as two amounts; set the source's decimal mark")
    bracketed = before.strip().startswith("(") and after.strip().endswith(")")
    if (
        bracketed
        or before.strip().endswith(tuple(_MINUS))
        or before.strip().startswith(tuple(_MINUS))
        or after.strip()[:1] in (*_MINUS,)
    ):
        return refused(ProblemKind.OUT_OF_RANGE, text, "is below zero") if number else NOTHING
    minor = minor_units(number, chosen)
    return Parsed(Price(minor, chosen)) if minor else NOTHING


def _pack(bare: str, notes: list[str]) -> tuple[str, int | None]:
    """A price without what it is for, and the number of pieces that is, where it is said; a box of nobody knows how many is told."""
    match = _PACK.search(bare)
    if match is None:
        return bare, None
    kind = (match["kind"] or "").lower()
    if kind in _BOXES and not match["count"]:
        notes.append("is the price of a whole box")
    count = int(match["count"]) if match["count"] else 2 if kind in _PAIRS else None
    return bare[: match.start()], count or None


def _told(parsed: Parsed[Price], pack: int | None, notes: list[str], text: str) -> Parsed[Price]:
    """A price with its pack, and what of the cell it does not say."""
    if parsed.value is None:
        return parsed
    faults = tuple(Fault(ProblemKind.CONFLICT, f"{quoted(text)} {note}.") for note in notes)
    return Parsed(replace(parsed.value, pack=pack), faults)


def _not_one(text: str, numbers: list[re.Match[str]]) -> Parsed[Price]:
    return unreadable(text, "is no price" if not numbers else "holds more than one amount")


_WORDY: Final = re.compile(r"[^\W\d_]|[/+]|[.,]\s?-|[€$£]\s?\d\d\s*$")
"""Whether a cell is more than a number with a sign: only then its words are looked at."""


@lru_cache(maxsize=65536)
def parse_money(text: str, currency: str | None = None, decimal: str = "auto") -> Parsed[Price]:
    """A price from a cell.

    `currency` is the source's, lower-case ISO 4217, used when the cell names none; `decimal` is `dot`, `comma` or
    `auto`. Zero, blanks and placeholders state no price. Problems: unreadable (words, ranges, prices by measure, marks that can
    be read in two ways), unknown_currency, out_of_range (negative), conflict (a least price, one without tax: read all the same).
    """
    if len(text) > _LONGEST:
        return overlong(text, _LONGEST)
    given = stated(text)
    if given is None or _ZERO.fullmatch(given):
        return NOTHING
    if not _WORDY.search(given):
        numbers = list(_NUMBER.finditer(given))
        return _priced(text, numbers[0], given, currency, decimal) if len(numbers) == 1 else _not_one(text, numbers)
    if _MEASURED.search(given):
        return unreadable(text, "is a price by measure or by time, not one of the item")
    notes: list[str] = []
    bare, pack = _pack(given, notes)
    for tax in _TAX.finditer(bare):
        if (
            tax["without"]
            or (tax["after"] or "").strip().lower().startswith(("ex", "es", "ap"))
            or re.search(r"\bht", tax[0], re.I)
        ):
            notes.append("is a price without tax")
        bare = f"{bare[: tax.start()]} {bare[tax.end() :]}"
        break
    bare, second = _pack(bare, notes) if pack is None else (bare, pack)
    bare = _LABEL.sub("", bare)
    if least := _LEAST.match(bare):
        notes.append("states only the least price")
        bare = bare[least.end() :]
    bare = _CENTS.sub(r"\1.\3 \2", bare)
    numbers = list(_NUMBER.finditer(bare))
    if len(numbers) != 1:
        return _not_one(text, numbers)
    return _told(_priced(text, numbers[0], bare, currency, decimal), pack or second, notes, text)


def decimal_shown(samples: list[str]) -> str | None:
    """The decimal mark that sample prices of one column prove, `dot` or `comma`, or None."""
    shown = set()
    for sample in samples:
        number = re.search(r"\d[\d.,]*\d", sample)
        if number is None:
            continue
        if re.search(r",\d{1,2}$", number[0]):
            shown.add("comma")
        elif re.search(r"\.\d{1,2}$", number[0]) or re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", number[0]):
            shown.add("dot")
    return shown.pop() if len(shown) == 1 else None
