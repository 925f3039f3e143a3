"""Boxes listed in one cell, in whatever words: their sizes, weights and counts; a figure that is none of these is told.

    cell   := [heading] box ((";" | "," | "|" | "+" | newline) box)*
    box    := [mark [":" | "-"]] [name [":"]] fact*
    mark   := boxword number ["of" number] | count ["x"] boxword      Box 1, Ctn 1 of 2, Karton 2/3, 2 cartons
    fact   := size | weight | count | volume | pieces                 volumes and pieces to a box are told, not kept
    size   := see `dimensions`; three figures without letters are L x W x H
    weight := [label] amount unit [each]                              gross before net; a weight of all boxes is told
    count  := number "x" size | size "x" number | "qty" number | number "pcs"

A cell without marks holds as many boxes as sizes; a size that only repeats the one before it in another unit is none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from domain.catalogue.data import Carton
from domain.ingestion.values.amounts import folded
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.labels import label_of
from domain.ingestion.values.lengths import unit_named
from domain.ingestion.values.parsed import Fault, overlong, quoted
from domain.ingestion.values.scan import WORDS, scanned
from domain.ingestion.values.weights import parse_weight
from domain.kernel.problems import ProblemKind

_LONGEST: Final = 4000
_MOST: Final = 60
"""Boxes of one item; a longer list is cut and told."""
BOX_WORDS: Final = (
    r"box(?:es)?|cartons?|ctns?|packages?|pkgs?|parcels?|kartons?|pakete?|packst[uü]cke?|schachteln?|colis|paquets?|caisses?"
    r"|doos|dozen|pak(?:ket(?:ten)?)?|coll[io]|cajas?|bultos?|paquetes?|scatol[ae]|pacc(?:o|hi)|imballi?o?|cases?"
)
_PIECE: Final = r"pcs?|pieces?|units?|st(?:k|[uü]ck)|pi[eè]ces?|stuks?|piezas?|unidades|pz|pezzi|pezzo|qty|ea"
_UNIT: Final = (
    r"kgs?|kilos?|kilogram(?:m?e?s?|o?s?)|lbs?|pounds?|pfund|libras?|libbre|livres|oz|ounces?|gr?|grams?|gramm|кг|г"
)
_AMOUNT: Final = r"\d(?:[\d.,]{0,12}\d)?(?:\s\d{1,2}/\d{1,2})?"
_SIDE: Final = (
    r"(?:[a-z]{1,2}[.:]?\s?)?\d[\d.,]{0,9}(?:[ -]\d{1,2}/\d{1,2})?\s?(?:[\"']|(?:cm|mm|in(?:ch(?:es)?)?|m)(?![a-wyz]))?\.?\s?"
    r"(?:[wdhlbtp](?![a-wyz]))?"
)
_JOIN: Final = r"\s?[x*]\s?"
_MARK: Final = re.compile(
    rf"(?<![^\W_])(?:(?<![.,])(?P<count>\d{{1,3}}) ?(?:x ?)?)?(?<![^\W\d_])(?P<word>{BOX_WORDS})(?![^\W\d_])\.?"
    r"(?:\s{0,2}(?:\#|n[ro]?[.°º]{1,2}|no|nr)?\s{0,2}(?P<number>\d{1,3}(?![\d.,]*\d|[\"'%]|\s?(?:x|in|cm|mm|m|kg|lbs?)(?![^\W\d_])|/\d{1,2}\s?[\"x]))"
    r"(?:\s?(?:of|von|de|di|van|sur|su|/)\s?(?P<of>\d{1,3}(?!\d)))?)?(?P<stop>\s{0,2}[:=])?",
    re.I,
)
_TRIPLE: Final = re.compile(rf"(?<![\w.,]){_SIDE}{_JOIN}{_SIDE}{_JOIN}{_SIDE}", re.I)
_LETTERED: Final = re.compile(
    r"(?<![\w.,])[lwhbdt][:=]?\s{0,2}\d[\d.,]{0,10}[\s,x]{1,3}[lwhbdt][:=]?\s{0,2}\d[\d.,]{0,10}[\s,x]{1,3}[lwhbdt][:=]?\s{0,2}\d[\d.,]{0,10}",
    re.I,
)
_AGAIN: Final = re.compile(r"[(/=~]\s{0,2}$")
_WEIGHT: Final = re.compile(
    r"(?P<net>\bnet(?:to|t)?\.?(?![^\W\d_])|\bn\.?\s?w\.?(?![^\W\d_]))?(?P<label>[^\W\d_]{1,14}(?:[ .][^\W\d_]{1,8})?)?[\s.:=(]{0,4}"
    rf"(?P<text>(?<![\w.,]){_AMOUNT}(?:\s?-\s?{_AMOUNT})?\s?(?:{_UNIT})(?![^\W_])\.?(?:\s{{0,2}}\d{{1,3}}\s?(?:oz|ounces?|gr?)(?![^\W_]))?)",
    re.I,
)
_UNIT_AHEAD: Final = re.compile(
    rf"(?<![\w.,])(?P<unit>kgs?|lbs?)[.:)]{{0,2}}[\s:=]{{1,3}}(?P<text>{_AMOUNT})(?![\w\"'])", re.I
)
_BARE_WEIGHT: Final = re.compile(
    rf"(?<![^\W\d_])(?:weight|wt|gewicht|poids|peso|вес)[.:=\s]{{1,4}}(?P<text>{_AMOUNT})(?![\w\"'])", re.I
)
_NET: Final = re.compile(r"(?<![^\W\d_])(?:net(?:to|t)?|n\.?\s?w)(?![^\W\d_])", re.I)
_WEIGHT_WORDS: Final = re.compile(
    r"(?<![^\W\d_])(?:(?:gross|net|brutto|netto|bruttogewicht|nettogewicht|shipping|ship|g\.\s?w\.?|n\.\s?w\.?|gw|nw|gr)\s{0,2})?"
    r"(?:g\.\s?w|n\.\s?w|weights?|wt|gewicht|poids|peso|gewichten|вес|brut|net|gross|brutto|netto|gw|nw)(?![^\W\d_])\.?(?:\s?\((?:kgs?|lbs?)\))?[:=]?",
    re.I,
)
_VOLUME: Final = re.compile(
    r"(?P<text>(?<![\w.,])\d[\d.,]{0,12}\s?(?:cbm|m3|m³|cu\.?\s?(?:ft|m|in)|cuft|cf|ft3|ft³|lit(?:er|re)s?|l)(?![^\W_])\.?)",
    re.I,
)
_EACH: Final = re.compile(
    rf"(?<![^\W\d_])(?:each|apiece|je|jeweils|chacun|chacune|cadauno|ciascun[oae]?|cad|cada\s(?:una?|caja|bulto)|elk|per\s?st(?:uk|ück)|a\spiece"
    rf"|(?:per|pro|par|por|je|a)\s(?:{BOX_WORDS}))(?![^\W\d_])\.?",
    re.I,
)
_ALL: Final = re.compile(
    r"(?<![^\W\d_])(?:total|totale|totaal|gesamt|insgesamt|gesamtgewicht|altogether|in all|combined|en tout|tot)(?![^\W\d_])",
    re.I,
)
_PIECES: Final = re.compile(
    rf"\(?(?P<text>(?<![\w.,])\d{{1,4}}\s?(?:{_PIECE})?\.?\s?(?:/|per|pro|par|por|je)\s?(?:{BOX_WORDS}))(?![^\W\d_])\.?\)?",
    re.I,
)
_COUNTS: Final = (
    re.compile(
        rf"(?P<cut>(?<![^\W\d_])(?:{_PIECE}|quantity|menge|anzahl|quantit[eéà]|cantidad|aantal|q\.?t[aà])\b[.:= ]{{1,3}}"
        r"(?P<count>\d{1,3})(?![\w.,]*\d))",
        re.I,
    ),
    re.compile(
        rf"(?P<cut>[(,]?\s?(?<![\w.,])(?P<count>\d{{1,3}})\s?x?\s?(?:{_PIECE}|{BOX_WORDS})(?![^\W\d_])\.?\)?)", re.I
    ),
    re.compile(r"(?P<cut>\(\s?x?\s?(?P<count>\d{1,3})\s?x?\s?\))", re.I),
    re.compile(
        rf"{_SIDE}{_JOIN}{_SIDE}{_JOIN}{_SIDE}(?P<cut>(?<![\d\s])\s{{0,2}}x\s?(?P<count>\d{{1,3}}))\s{{0,2}}(?:$|[,;-])",
        re.I,
    ),
    re.compile(rf"(?P<cut>(?<![\w.,])(?P<count>\d{{1,2}})\s?x\s?)\(?\s?{_SIDE}{_JOIN}{_SIDE}{_JOIN}{_SIDE}", re.I),
)
_ENUMERATED: Final = re.compile(r"(?:^|(?<=[\s;,|]))\(?(\d{1,2})[.)](?=\s)")
_POUNDS: Final = re.compile(r"(?<=\d)\s?#(?!\d)")
_COUNT_BEHIND: Final = re.compile(
    rf"(?:(?:number|no\.?|anzahl|nombre|numero|número|aantal)\s(?:of|der|de|di)?\s?)?(?<![^\W\d_])(?P<word>{BOX_WORDS})\s?:\s?"
    r"(?P<count>\d{1,3})\s{0,2}(?=[;,(\n]|$)[;,]?",
    re.I,
)
"""`Number of packages: 2; …` says what `2 packages: …` says."""
_LENGTH_UNIT: Final = re.compile(r"\d\s?(cm|mm|in|inch|inches|\")(?![a-wyz])", re.I)
_PACKING: Final = re.compile(
    rf"(?<![^\W\d_])(?:{BOX_WORDS}|shipping|shipped|ship|packed|packing|packaging|packag|verpackungs?(?:ma(?:ß|ss)e)?|versand(?:ma(?:ß|ss)e)?|paketma(?:ß|ss)e"
    r"|kartonma(?:ß|ss)e|emballage|embalaje|envío|verpakking|spedizione|expédition|outer|master|dims?|dimensions?|size|measurements?|per|no|contains"
    r"|ma(?:ß|ss)e|medidas|mesures|maten|misure)(?![^\W\d_])\.?",
    re.I,
)
_HEAD: Final = re.compile(r"^(?:\(([^()\d]{2,60})\)|([^\d:]{2,60}):)")
_WORD: Final = re.compile(r"[^\W\d_]{3,}")


@dataclass(slots=True)
class Box:
    """One kind of box while it is read: what the list says of it, its facts and what was wrong."""

    text: str
    rest: str = ""
    name: str = ""
    count: int = 1
    counted: bool = False
    carton: Carton = field(default_factory=Carton)
    faults: list[Fault] = field(default_factory=list)

    def tell(self, problem: ProblemKind, what: str) -> None:
        """Add a fault about this box."""
        self.faults.append(Fault(problem, f"{quoted(self.text)} {what}."))


def _begins(match: re.Match[str]) -> bool:
    """Whether a box word begins a box: it has a number, a count before it, or a colon behind it."""
    return any(match[name] for name in ("number", "count", "stop"))


def _parts(flat: str) -> Iterator[tuple[re.Match[str] | None, str]]:
    """The text of each mark, with the mark; what stands before the first mark comes without one."""
    marks = [match for match in _MARK.finditer(flat) if _begins(match) and not _is_pieces(flat, match)]
    # `30x20x10 in, 2 boxes`: a count with no figure behind it belongs to what stands before it.
    kept = [
        match
        for match, end in _until_next(marks, flat)
        if not match["count"] or match["number"] or re.search(r"\d", flat[match.end() : end])
    ]
    first = _start(kept[0]) if kept else len(flat)
    if re.search(r"\d", flat[:first]):
        yield None, flat[:first]
    for match, end in _until_next(kept, flat):
        yield match, flat[match.end() : end]


def _start(match: re.Match[str]) -> int:
    """Where a mark begins: a figure before a numbered one (`25 kg x 3 Box 2`) is none of its own."""
    return match.start("word") if match["number"] else match.start()


def _until_next(marks: list[re.Match[str]], flat: str) -> Iterator[tuple[re.Match[str], int]]:
    """Each mark with where the next one begins."""
    yield from zip(marks, [*(_start(match) for match in marks[1:]), len(flat)][: len(marks)], strict=True)


def _is_pieces(flat: str, match: re.Match[str]) -> bool:
    """Whether a box word only says of what something is: `2 pcs/ctn`, `12 kg per box`."""
    return bool(
        re.search(
            r"(?:/|\b(?:per|pro|par|por|je|each|cada))\s?$", flat[max(0, match.start() - 6) : match.start()], re.I
        )
    )


def _cut(text: str) -> list[str]:
    """A text at the sizes in it, each with what stands before it back to a separator."""
    starts: list[int] = []
    last = 0
    sizes = sorted((*_TRIPLE.finditer(text), *_LETTERED.finditer(text)), key=re.Match.start)
    for match in sizes:
        if match.start() < last:
            continue
        if starts and _AGAIN.search(text, max(0, match.start() - 4), match.start()):
            continue
        back = max(text.rfind(sign, last, match.start()) for sign in ",;|\n+&")
        starts.append(match.start() if back < 0 else back + 1)
        last = match.end()
    if len(starts) < 2:
        return [text]
    return [text[start:end] for start, end in zip([0, *starts[1:]], [*starts[1:], len(text)], strict=True)]


def _weights(box: Box, unit: str | None, decimal: str) -> None:
    """Take the weights out of the text: of the box where it is gross or not said, confirmed by a second one or told."""
    gross: list[str] = []
    net: list[str] = []

    def take(match: re.Match[str]) -> str:
        before = match.string[match.start() : match.start("text")]
        text = f"{match['text']} {match['unit']}" if match.re is _UNIT_AHEAD else match["text"]
        (net if _NET.search(before) else gross).append(text)
        kept = "" if match.re is not _WEIGHT else _WEIGHT_WORDS.sub(" ", before)
        return f" {kept} "

    for pattern in (_WEIGHT, _UNIT_AHEAD, _BARE_WEIGHT):
        box.rest = pattern.sub(take, box.rest)
    box.rest = _WEIGHT_WORDS.sub(" ", box.rest)
    for text in net:
        box.tell(ProblemKind.CONFLICT, f"gives {text.strip()} as net weight, which is not the box's")
    if not gross:
        return
    parsed = parse_weight(" / ".join(gross), unit, decimal)
    box.faults.extend(parsed.faults)
    if box.count > 1 and _ALL.search(box.text):
        box.tell(ProblemKind.CONFLICT, "gives the weight of all boxes together")
    elif parsed.value:
        box.carton["weight"] = parsed.value


def _counted(box: Box) -> None:
    """Take counts out of the text; two that differ are told."""
    for pattern in _COUNTS:
        match = pattern.search(box.rest)
        if match is None:
            continue
        count = int(match["count"])
        if box.counted and count != box.count:
            box.tell(ProblemKind.CONFLICT, f"counts {box.count} boxes and {count}")
        elif count:
            box.count, box.counted = count, True
        box.rest = f"{box.rest[: match.start('cut')]} {box.rest[match.end('cut') :]}"


def _untaken(box: Box) -> None:
    """Take out and tell what a box has no place for: volumes, and pieces to a box."""
    for pattern, what in ((_PIECES, "pieces to a box"), (_VOLUME, "its volume")):
        for match in list(pattern.finditer(box.rest))[:3]:
            box.tell(ProblemKind.UNREADABLE, f'gives {what}, "{match["text"].strip()}", which is not kept')
        box.rest = pattern.sub(" ", box.rest)


def _named(box: Box) -> None:
    """Take the name of what is in the box off the text: `Headboard: 30x20x10`."""
    lead = box.rest.lstrip(" -.,;:")
    head = _HEAD.match(lead)
    if head is None:
        return
    words = _PACKING.sub(" ", head[1] or head[2]).strip(" -.,;()#")
    if label_of(words).role:
        return
    box.name = words if _WORD.search(words) and not re.search(r"[x*/]", words) else ""
    if box.name:
        box.rest = lead[head.end() :]


def _sized(box: Box, unit: str | None, decimal: str) -> None:
    """The sides of a box from what is left of its text; every figure that is no side is told."""
    text = _PACKING.sub(" ", _EACH.sub(" ", _ALL.sub(" ", box.rest))).strip(" -.,;:/|+&@")
    if not re.search(r"\d", text):
        return
    parsed = parse_dimensions(text, unit, "", "lwh", decimal)
    box.faults.extend(parsed.faults)
    scan = scanned(text)
    for token in scan.tokens:
        if token.kind == WORDS and scan.text[token.start].isdigit() and not parsed.faults:
            # What counts things beside a piece of furniture is a stray figure beside a box.
            box.tell(ProblemKind.UNREADABLE, f'says "{scan.said(token, token)}", which is no fact of a box')
    if parsed.value is None:
        return
    sides = dict(parsed.value.dimensions)
    if not sides and len(parsed.value.components) == 1:
        sides = dict(parsed.value.components[0]["dimensions"])
    elif parsed.value.components:
        box.tell(ProblemKind.CONFLICT, "names several sizes for one box")
    for extra in parsed.value.extras:
        box.tell(ProblemKind.UNREADABLE, f'says "{extra}", which is no fact of a box')
    rolled(sides)
    for side in sides.keys() - {"width", "depth", "height"}:
        box.tell(ProblemKind.UNREADABLE, f"gives a {side.replace('_', ' ')}, which a box does not have")
    box.carton.update({side: sides[side] for side in ("width", "depth", "height") if side in sides})  # type: ignore[typeddict-item]


def rolled(sides: dict[str, object]) -> None:
    """The box of a round thing, in place: as wide as it is round, along the sides that are not stated."""
    diameter = sides.pop("diameter", None)
    if diameter is None:
        return
    # A roll has a length, a drum a height; what the round runs across is its diameter.
    across = ("width", "depth") if "height" in sides else ("width", "height")
    for side in across:
        sides.setdefault(side, diameter)


def _read(box: Box, units: tuple[str | None, str | None], decimal: str) -> Box:
    _untaken(box)
    _counted(box)
    _weights(box, units[1], decimal)
    _named(box)
    _sized(box, units[0], decimal)
    if box.carton:
        box.carton["count"] = box.count
    elif not box.faults:
        box.tell(ProblemKind.UNREADABLE, "states neither size nor weight of a box")
    return box


def _numbered(flat: str) -> str:
    """`1) … 2) …` with the numbers as marks of boxes, where they count up from one."""
    numbers = [int(number) for number in _ENUMERATED.findall(flat)]
    if len(numbers) < 2 or numbers != list(range(1, len(numbers) + 1)):
        return flat
    return _ENUMERATED.sub(r"Box \1: ", flat)


def listed(
    text: str, unit: str | None = None, weight_unit: str | None = None, decimal: str = "auto"
) -> tuple[list[Box], list[Fault]]:
    """The boxes of a text in any order of facts, and what is wrong with the list as a whole."""
    if too_long := overlong(text, _LONGEST):
        return [], list(too_long.faults)
    flat = _numbered(_POUNDS.sub(" lb ", _COUNT_BEHIND.sub(r"\g<count> \g<word>: ", folded(text))))
    units = {unit_named(word) for word in _LENGTH_UNIT.findall(flat)}
    # A unit that the list names alone is that of all its boxes.
    unit = units.pop() if len(units) == 1 else unit
    boxes: list[Box] = []
    announced: list[int] = []
    faults: list[Fault] = []
    for mark, part in _parts(flat):
        if mark and mark["of"]:
            announced.append(int(mark["of"]))
        pieces = _cut(part)
        for piece in pieces:
            box = Box(piece.strip(" ,;|"), piece)
            if mark and mark["count"] and not mark["number"] and len(pieces) == 1:
                box.count, box.counted = int(mark["count"]) or 1, True
            elif mark and mark["count"] and not mark["number"]:
                announced.append(int(mark["count"]))
            if len(boxes) < _MOST:
                boxes.append(_read(box, (unit, weight_unit), decimal))
            else:
                faults = [Fault(ProblemKind.TOO_LONG, f"{quoted(text)} lists more than {_MOST} boxes.")]
    found = sum(box.count for box in boxes)
    if announced and max(announced) != found:
        faults.append(
            Fault(ProblemKind.CONFLICT, f"{quoted(text)} speaks of {max(announced)} boxes and lists {found}.")
        )
    return boxes, faults
