"""Sizes of rugs: in feet and inches, as the trade writes them, and in metres and their parts.

size     := side ["w" | "l"] join side [confirm] [shape] | side shape | shape side        one side of round and square rugs
side     := feet ["-"] inches | feet "." inches | inches | metric | bare
feet     := digits ("'" | "ft" | "feet");  inches := digits [fraction] ('"' | "in")      5'3", 5'-3", 5.3', 5-3
bare     := digits                       to 15 feet (to 20 beside 4 or less, 12 or more), above 20 inches, beyond 144 perhaps centimetres: told
metric   := decimal ("cm" | "mm" | "m")  the unit may stand once, behind the last side
           | number join number | one number of a round or square rug, in a metric column; labelled sides (`dimensions`)
confirm  := the same size in another unit, in brackets, beside it or behind a slash; another size is told
amid     := digits join digits            the only one amid other words: feet, or inches where the words name a rug or a mat
shape    := a word of SHAPES in six languages; "sample", "swatch", "custom" are no size of the rug: told
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Length
from domain.ingestion.values.amounts import folded
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.lengths import METRIC, length, unit_named
from domain.ingestion.values.parsed import NOTHING, Fault, Parsed, overlong, quoted, refused, unreadable
from domain.ingestion.values.rug_sizes import RugSize, likely, one_side, sized
from domain.ingestion.values.rug_words import shape_in
from domain.ingestion.values.sides import RUG
from domain.ingestion.values.text import stated
from domain.kernel.problems import ProblemKind

_LONGEST: Final = 500
_INCH_PART: Final = r"\d{1,2}(?:\.\d{1,3})?(?:\s+\d{1,2}/\d{1,2})?"
_ESCAPED_INCHES: Final = _INCH_PART.replace("{", "{{").replace("}", "}}")
_SIDE: Final = (
    rf"(?P<ft{{n}}>\d{{{{1,2}}}})\s*(?:'|ft\.?|feet)\s*-?\s*(?P<in{{n}}>{_ESCAPED_INCHES})"
    r"\s*(?:\"|in(?:ch(?:es)?)?\b\.?|(?=\s*x)|(?=\s*$)|(?=\s+[^\W\d_]{{2}}))"
    r"|(?P<dot{n}>\d{{1,2}}\.\d{{1,2}})\s*(?:'|ft\b\.?|feet\b)"
    r"|(?P<feet{n}>\d{{1,2}})\s*(?:'|ft\b\.?|feet\b|foot\b)"
    r"|(?P<inch{n}>\d{{1,3}}(?:\.\d{{1,3}})?(?:\s+\d/\d{{1,2}})?)\s*(?:\"|in\b\.?|inch(?:es)?\b)"
    r"|(?P<metric{n}>\d{{1,4}}(?:[.,]\d{{1,2}})?)\s*(?P<unit{n}>cm|mm|m)\b"
)
_BARE: Final = r"|(?P<dash{n}>\d{{1,2}}-\d{{1,2}})(?![\d'])|(?P<bare{n}>\d{{1,3}}(?:\.\d{{0,2}})?)"
_MID: Final = r"\s*-?\s*[wl]?\s*x\s*"
_MARKED: Final = re.compile(f"(?<![\\d.])(?:{_SIDE.format(n=1)}){_MID}(?:{(_SIDE + _BARE).format(n=2)})", re.I)
_PLAIN: Final = re.compile(f"^\\W*(?:{(_SIDE + _BARE).format(n=1)}){_MID}(?:{(_SIDE + _BARE).format(n=2)})", re.I)
_PAIR: Final = re.compile(f"(?:{(_SIDE + _BARE).format(n=1)}){_MID}(?:{(_SIDE + _BARE).format(n=2)})", re.I)
_MARKED_ONE: Final = re.compile(f"(?<![\\d.x])(?:{_SIDE.format(n=1)})", re.I)
_SINGLE: Final = re.compile(f"^\\W*(?:{(_SIDE + _BARE).format(n=1)})", re.I)
_LENGTH_FIRST: Final = re.compile(r"[^x]*\d\s?['\"]?\s?-?\s?l\b[^x]*x[^x]*\d\s?['\"]?\s?-?\s?w\b", re.I)
_LETTER_ROOM: Final = 4
_CUT: Final = re.compile(r"\d['\"]?\s*\d*['\"]?\s*x\s*$", re.I)
_FEET_MOST: Final = 15
_FEET_NEVER: Final = 20
_NARROW: Final = 4
_WIDE: Final = 12
"""Sides to 20 feet are those of runners and of large rugs; in inches no rug is 3 x 18 or 12 x 16."""


def _feet_and_inches(feet: str, inches: str) -> Length | None:
    whole, _, fraction = inches.strip().partition(" ")
    value = Decimal(whole or "0")
    if fraction:
        over, under = map(int, fraction.strip().split("/"))
        if not 0 < over < under:
            return None
        value += Decimal(over) / Decimal(under)
    return length(Decimal(feet) * 12 + value, "in") if value < 12 else None


def _dotted(text: str) -> Length | None:
    """Feet and inches with a dot between: `5.3` is 5'3", `1.10` is 1'10"; beyond eleven inches it is neither."""
    feet, _, inches = text.partition(".")
    return _feet_and_inches(feet, inches or "0")


def _bare(text: str, feet: bool) -> Length | None:
    return _dotted(text) if feet else length(Decimal(text.rstrip(".")), "in")


def _side(match: re.Match[str], n: int, bare_feet: bool) -> Length | None:
    """One side of a match; bare numbers are feet or inches as `bare_feet` says. None when it cannot be."""
    part = match.groupdict()
    if part[f"ft{n}"]:
        return _feet_and_inches(part[f"ft{n}"], part[f"in{n}"])
    if part[f"dot{n}"]:
        return _dotted(part[f"dot{n}"])
    if part[f"feet{n}"]:
        return length(Decimal(part[f"feet{n}"]), "ft")
    if part[f"inch{n}"]:
        return _feet_and_inches("0", "0") if not part[f"inch{n}"] else _inches(part[f"inch{n}"])
    if part[f"metric{n}"]:
        return length(Decimal(part[f"metric{n}"].replace(",", ".")), unit_named(part[f"unit{n}"]) or "cm")
    if part.get(f"dash{n}"):
        feet, inches = part[f"dash{n}"].split("-")
        return _feet_and_inches(feet, inches)
    bare = part.get(f"bare{n}")
    return _bare(bare, bare_feet) if bare else None


def _inches(text: str) -> Length | None:
    whole, _, fraction = text.partition(" ")
    if not fraction:
        return length(Decimal(whole), "in")
    over, under = fraction.strip().split("/")
    return length(Decimal(whole) + Decimal(over) / Decimal(under), "in") if int(under) in (2, 4, 8, 16, 32) else None


def _bare_are_feet(match: re.Match[str]) -> bool | None:
    """Whether bare numbers are feet: beside marked feet yes; small ones yes, large ones no; between them None."""
    part = match.groupdict()
    bare = [Decimal(part[key].rstrip(".")) for key in ("bare1", "bare2") if part.get(key)]
    if not bare:
        return True
    if any(part.get(key) for key in ("ft1", "feet1", "dot1", "dash1", "ft2", "feet2", "dot2", "dash2")):
        return True
    if part.get("inch1") or part.get("inch2"):
        return False
    if max(bare) <= _FEET_MOST or (max(bare) <= _FEET_NEVER and not _NARROW < min(bare) < _WIDE):
        return min(bare) <= _FEET_MOST or None
    return False if max(bare) > _FEET_NEVER else None


def _two_sides(text: str, match: re.Match[str], shape: str | None) -> Parsed[RugSize]:
    feet = _bare_are_feet(match)
    if feet is None:
        return refused(ProblemKind.CONFLICT, text, "may be in feet or in inches")
    bare = [Decimal(match.groupdict()[key].rstrip(".")) for key in ("bare1", "bare2") if match.groupdict().get(key)]
    if len(bare) == 2 and max(bare) > _METRIC_LIKELY:
        return refused(ProblemKind.CONFLICT, text, "may be in inches or in centimetres")
    first, second = _side(match, 1, feet), _side(match, 2, feet)
    if not (first and second and first["hundredths_in"] and second["hundredths_in"]):
        return unreadable(text, "is no size of a rug")
    if _LENGTH_FIRST.match(match.string[match.start() : match.end() + _LETTER_ROOM]):
        first, second = second, first
    return Parsed(sized(first, second, shape))


_METRIC_PAIR: Final = re.compile(
    r"(?<![\d.,/-])(\d{1,4}(?:[.,]\d{1,2})?)\s*+(cm|mm|m)?\s*+x\s*+(\d{1,4}(?:[.,]\d{1,2})?)\s*+(cm|mm|m)\b", re.I
)
_METRIC_ONE: Final = re.compile(r"(?<![\d.,/x-])(\d{1,4}(?:[.,]\d{1,2})?)\s*+(cm|mm|m)\b", re.I)
_CENTIMETRES: Final = re.compile(r"(?<![\d.,/-])(\d{2,3})\s?x\s?(\d{2,3})(?![\d.,'\"])", re.I)
_NO_RUG: Final = re.compile(
    r"\b(?:sample|swatch|strike ?off|custom|made[ -]to[ -]measure|cut[ -]to[ -]size|bespoke|muster|maßanfertigung|wunschmaß|échantillon|sur mesure|muestra"
    r"|a medida|staal|maatwerk|campione|su misura)s?\b",
    re.I,
)
_JOINED_PAIR: Final = re.compile(r"\d\s{0,2}(?:['\"]|ft\.?|in\.?|cm|mm|m)?\s{0,2}[wl]?\s{0,2}x\s{0,2}\d", re.I)
_SAME_WITHIN: Final = 150
_METRIC_LIKELY: Final = 144
_ROUND_LIKELY: Final = 100
_ABROAD: Final = re.compile(r"[øØ]|\b(?:rund\w{0,2}|ronde?|redond[ao]|rotond[ao]|rond)\b", re.I)
"""How round rugs are called where they are measured in centimetres."""


def _metric_length(number: str, unit: str) -> Length:
    return length(Decimal(number.replace(",", ".")), unit_named(unit) or "cm")


def _metric_pair(flat: str) -> tuple[Length, Length, int, int] | None:
    match = _METRIC_PAIR.search(flat)
    if match is None:
        return None
    first, second = _metric_length(match[1], match[2] or match[4]), _metric_length(match[3], match[4])
    sound = first["hundredths_in"] and second["hundredths_in"]
    return (first, second, match.start(), match.end()) if sound else None


def _said_again(rest: str, found: list[int]) -> tuple[int, int] | None:
    """Where a size stands that is the same one in another unit; figures without one are centimetres."""
    pairs = []
    if metric := _metric_pair(rest):
        pairs.append(metric)
    if marked := _MARKED.search(rest):
        first, second = _side(marked, 1, True), _side(marked, 2, True)
        if first and second:
            pairs.append((first, second, marked.start(), marked.end()))
    if bare := _CENTIMETRES.search(rest):
        pairs.append((length(Decimal(bare[1]), "cm"), length(Decimal(bare[2]), "cm"), bare.start(), bare.end()))
    for first, second, start, end in pairs:
        said = (first["hundredths_in"], second["hundredths_in"])
        if all(abs(one - two) <= _SAME_WITHIN for one, two in zip(found, said, strict=True)):
            return start, end
    return None


def _told_rest(text: str, flat: str, read: Parsed[RugSize], start: int, end: int) -> Parsed[RugSize]:
    """A size read, and whether what stands around it states another one."""
    if read.value is None or read.faults:
        return read
    rest = f"{flat[:start]} | {flat[end:]}"
    found = [
        read.value.dimensions[side]["hundredths_in"] for side in ("width", "depth") if side in read.value.dimensions
    ]
    again = _said_again(rest, found) if len(found) == 2 else None
    if again:
        rest = rest[: again[0]] + rest[again[1] :]
    stray = not flat[:start].strip(" -(") and re.search(r"(?<![^\W_])\d[\d.,]*(?!\d|\s?(?:pcs?|pile|ply|mm\b|%))", rest)
    if _JOINED_PAIR.search(rest) or stray:
        fault = Fault(ProblemKind.CONFLICT, f"{quoted(text)} states more than one size; the first is kept.")
        return Parsed(read.value, (fault,))
    return read


def is_no_rug(text: str) -> bool:
    """Whether a text says that its size is a sample's, or made to measure."""
    return bool(_NO_RUG.search(text[:_LONGEST]))


@lru_cache(maxsize=16384)
def parse_rug_size(text: str, unit: str | None = None) -> Parsed[RugSize]:
    """A rug's size and shape from a size cell or a title; `unit` is the column's, of numbers without one.

    A dot between feet and inches is read as the trade writes it (`5.3'` is 5'3", `1.10` is 1'10"). Bare numbers to 15
    are feet, above 20 inches, between them conflict. A runner is known by its width (3'6" at most) and 2.5 times the
    length. Problems: unreadable (also for a size cut off, for samples and made to measure), conflict.
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None:
        return NOTHING
    flat = re.sub(r"^rug ?size\s*:\s*", "", re.sub(r"(\d) (?=['\"])", r"\1", folded(given)), flags=re.I).strip()
    flat = _METRES.sub(" m", _SLUG.sub(lambda match: match[1] or " ", _TWICE_JOINED.sub("x", flat)))
    if _NO_RUG.search(flat):
        return unreadable(text, "is a sample or made to measure, not the size of a rug")
    return likely(_read(text, flat, unit), text)


def _read(text: str, flat: str, unit: str | None) -> Parsed[RugSize]:
    shape = shape_in(flat)
    if (pile := _PILE.search(flat)) and _JOINED_PAIR.search(flat, 0, pile.start()):
        # How thick a rug is says nothing of the unit of its sides, but where it is bought.
        flat = flat[: pile.start()]
        bare = _BARE_PAIR.fullmatch(flat.strip())
        unit = (
            "cm" if unit is None and bare and not bare[3] and Decimal(bare[1].replace(",", ".")) > _FEET_NEVER else unit
        )
    if unit in METRIC or _METRIC_UNIT.search(flat):
        return _of_metric(text, flat, unit, shape)
    if unit == "in" and (bare := _BARE_PAIR.fullmatch(flat)) and not unit_named(bare[3] or ""):
        return _pair_in(text, bare, unit, shape)
    return _found_size(text, flat, shape)


_BARE_PAIR: Final = re.compile(r"(\d{1,4}(?:[.,]\d{1,2})?)\s*x\s*(\d{1,4}(?:[.,]\d{1,2})?)(?:\s*([^\W\d_]+)\.?)?", re.I)
_BARE_ONE: Final = re.compile(r"\D*?(\d{1,4}(?:[.,]\d{1,2})?)\s*([^\W\d_]+)?\W*", re.I)
_METRIC_UNIT: Final = re.compile(r"\d\s?(?:cm|mm|m|см|мм|м)\b", re.I)
_METRES: Final = re.compile(r"(?<=\d)\s?m(?:eter|etre|ètre|etro|etri)s?\b|(?<=\d)\s?Meter\b", re.I)
_SLUG: Final = re.compile(r"(?<=\d)-(x)-(?=\d)|(?<=\d)-(?=cm\b|ft\b|in\b)", re.I)
_SLASHED: Final = re.compile(r"(?<![\d.,/])(\d{2,3})\s?/\s?(\d{2,3})(?![\d/])")
_THICKEST: Final = 400
_LETTER_D: Final = re.compile(r"\W{0,4}d\W{0,4}\d", re.I)
_PILE: Final = re.compile(
    r"(?<=[\d'\"m])[\s,;(]{1,3}(?:h(?:öhe)?\.?\s?)?\d{1,2}(?:[.,]\d)?\s?mm\b(?:\s?[^\W\d_]{2,12}){0,2}\)?$", re.I
)


def _is_thick(size: RugSize) -> bool:
    """Whether the second of a round rug's figures is how thick it is (`Ø 200 cm x 12 mm`)."""
    sides = size.dimensions
    return (
        size.shape == "round"
        and "depth" in sides
        and 4 * sides["depth"]["hundredths_in"] < sides["width"]["hundredths_in"]
    )


def _pair_in(text: str, bare: re.Match[str], unit: str, shape: str | None) -> Parsed[RugSize]:
    """Two numbers in the unit of their column."""
    first, second = (length(Decimal(bare[place].replace(",", ".")), unit) for place in (1, 2))
    if not (first["hundredths_in"] and second["hundredths_in"]):
        return unreadable(text, "is no size of a rug")
    return Parsed(sized(first, second, shape))


def _of_metric(text: str, flat: str, unit: str | None, shape: str | None) -> Parsed[RugSize]:
    """A size where metres or their parts are in use: by the column's unit, as rugs' sizes are written, else by labels of sides."""
    if unit in METRIC:
        flat = _SLASHED.sub(r"\1x\2", flat)
        if (bare := _BARE_PAIR.fullmatch(flat)) and not unit_named(bare[3] or ""):
            return _pair_in(text, bare, str(unit), shape)
        amid = None if _METRIC_UNIT.search(flat) else _AMID_METRIC.search(flat)
        if amid and (bare := _BARE_PAIR.fullmatch(amid[0])):
            return _told_rest(text, flat, _pair_in(text, bare, str(unit), shape), amid.start(), amid.end())
        if shape in _ONE_SIDED and (one := _BARE_ONE.fullmatch(flat)) and not unit_named(one[2] or ""):
            side = length(Decimal(one[1].replace(",", ".")), str(unit))
            return Parsed(one_side(side, str(shape)))
    found = _found_size(text, flat, shape)
    if found.value is not None and not _is_thick(found.value):
        return found
    parsed = parse_dimensions(flat, unit, RUG)
    sides = parsed.value.dimensions if parsed.value else {}
    thick = "height" in sides and sides["height"]["hundredths_in"] <= _THICKEST
    faults = () if thick else parsed.faults
    across = sides.get("diameter") or (sides.get("depth") if _LETTER_D.match(flat) and len(sides) == 1 else None)
    if across and set(sides) <= {"diameter", "depth", "height"}:
        return Parsed(RugSize("round", {"diameter": across}), faults)
    if {"width", "depth"} <= set(sides) <= {"width", "depth", "height"}:
        return Parsed(sized(sides["width"], sides["depth"], shape), faults)
    return found


_TWICE_JOINED: Final = re.compile(r"\bby\b|(?<=[\d'\"])\s?\*\s?(?=\d)", re.I)


_NO_TITLE: Final = re.compile(r"\b(?:inch(?:es)?|in\.|pack|set of|pcs?|cm|mm)\b", re.I)
_AMID: Final = re.compile(
    r"(?<![\w.,/'\"-])\d{1,2}(?:\.\d{1,2})?\s?x\s?\d{1,2}(?:\.\d{1,2})?(?![\w.,/'\"-]|\s?x)(?:\s?(?:feet|foot|ft)\b)?",
    re.I,
)
_OF_RUGS: Final = re.compile(r"\b(?:rugs?|\w*mats?|carpets?|runners?)\b", re.I)
_AMID_METRIC: Final = re.compile(r"(?<![\w.,/'\"-])\d{2,3}\s?x\s?\d{2,3}(?![\w.,/'\"-]|\s?x)", re.I)


def _amid_words(flat: str) -> re.Match[str] | None:
    """The one size in feet that stands without marks in a title (`Woven Rug 5 x 8 - Acme`)."""
    found = list(_AMID.finditer(flat))
    match = _PAIR.match(flat, found[0].start()) if len(found) == 1 else None
    if match is None or _NO_TITLE.search(flat):
        return None
    feet = _bare_are_feet(match)
    return match if feet or (feet is False and _OF_RUGS.search(flat)) else None


def _found_size(text: str, flat: str, shape: str | None) -> Parsed[RugSize]:
    match = _MARKED.search(flat) or _PLAIN.match(flat) or _amid_words(flat)
    metric = _metric_pair(flat)
    if metric and (match is None or metric[2] <= match.start() or match.groupdict().get("metric2")):
        return _told_rest(text, flat, Parsed(sized(metric[0], metric[1], shape)), metric[2], metric[3])
    if match:
        return _told_rest(text, flat, _two_sides(text, match, shape), match.start(), match.end())
    if _CUT.search(flat):
        return unreadable(text, "is cut off after its first side")
    return _from_one_side(text, flat, shape)


_ONE_SIDED: Final = ("round", "square", "octagon")
_NO_SIZE: Final = "is no size of a rug"
_AHEAD: Final = re.compile(r"^\W*(?:dia(?:m|meter)?|round|rund|rond|redonda?|rotondo|square|quadrat\w*)\b[\s.:]*", re.I)


def _from_one_side(text: str, flat: str, shape: str | None) -> Parsed[RugSize]:
    """Round and square rugs have one side to state."""
    nothing: Parsed[RugSize] = Parsed(None, (Fault(ProblemKind.UNREADABLE, f"{quoted(text)} is no size of a rug."),))
    if shape not in _ONE_SIDED:
        return nothing
    if metric := _METRIC_ONE.search(flat):
        side: Length | None = _metric_length(metric[1], metric[2])
        found, end = True, metric.end()
    else:
        flat = _AHEAD.sub("", flat)
        marked = list(_MARKED_ONE.finditer(flat))
        flat = flat[marked[0].start() :] if len(marked) == 1 else flat
        single = _SINGLE.match(flat)
        bare = single.groupdict().get("bare1") if single else None
        if bare and Decimal(bare.rstrip(".")) > (_FEET_NEVER if _ABROAD.search(text) else _ROUND_LIKELY):
            return refused(ProblemKind.CONFLICT, text, "may be in inches or in centimetres")
        feet = _bare_are_feet(single) if single and bare else True
        side = _side(single, 1, bool(feet)) if single and feet is not None else None
        found, end = single is not None, single.end() if single else 0
    if not found or not side or not side["hundredths_in"]:
        return nothing
    return _told_rest(text, flat, Parsed(one_side(side, shape)), 0, end)
