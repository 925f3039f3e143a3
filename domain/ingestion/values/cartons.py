"""Boxes listed in one cell, in IKEA's form or in free text; other figures than sizes, weights and counts are reported.

    cell    := article* | [heading] box ((";" | "," | "|" | "+" | newline) box)*
    article := name "Article no:" sku (label ":" figure unit)* ["Package(s):" number]
    box     := [mark [":" | "-"]] [name [":"]] fact*
    mark    := boxword number ["of" number] | count ["x"] boxword      Box 1, Ctn 1 of 2, Karton 2/3, 2 cartons
    fact    := size | weight | count | volume | pieces                 volumes and pieces per box are reported, not stored
    size    := see `dimensions`; three figures without letters are L x W x H
    weight  := [label] amount unit [each]                              gross before net; a weight of all boxes is reported
    count   := number "x" size | size "x" number | "qty" number | number "pcs"

A cell without marks contains as many boxes as sizes, except sizes that repeat the previous one in another unit.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from domain.catalogue.data import Carton
from domain.ingestion.data import expressions, pattern
from domain.ingestion.values.dimensions import WORDS, parse_dimensions, scanned
from domain.ingestion.values.labels import label_of, name_role, side_of
from domain.ingestion.values.quantities import folded, parse_length, parse_weight, unit_named
from domain.ingestion.values.text import (
    Fault,
    Parsed,
    cell_parser,
    clean,
    conflict,
    overlong,
    plain,
    quoted,
    unreadable,
)
from domain.kernel.problems import ProblemKind

_BOX = pattern("boxes", "boxes")
_PIECE = pattern("boxes", "pieces")
_UNIT = pattern("boxes", "weight_units")
_EACH_WORD = pattern("boxes", "each")
_BOX_SIDES = ("width", "depth", "height")
_LONGEST = 4000
_MOST = 60
"""Maximum number of boxes of an item; a longer list is truncated and reported."""
_AMOUNT = r"\d(?:[\d.,]{0,12}\d)?(?:\s\d{1,2}/\d{1,2})?"
_SIDE = (
    r"(?:[a-z]{1,2}[.:]?\s?)?\d[\d.,]{0,9}(?:[ -]\d{1,2}/\d{1,2})?\s?(?:[\"']|(?:cm|mm|in(?:ch(?:es)?)?|m)(?![a-wyz]))?\.?\s?"
    r"(?:[wdhlbtp](?![a-wyz]))?"
)
_SIZE = rf"{_SIDE}\s?[x*]\s?{_SIDE}\s?[x*]\s?{_SIDE}"
_LETTERED = r"[lwhbdt][:=]?\s{0,2}\d[\d.,]{0,10}"
_MARK = re.compile(
    rf"(?i)(?<![^\W_])(?:(?<![.,])(?P<count>\d{{1,3}}) ?(?:x ?)?)?(?<![^\W\d_])(?P<word>{_BOX})(?![^\W\d_])\.?"
    r"(?:\s{0,2}(?:\#|n[ro]?[.°º]{1,2}|no|nr)?\s{0,2}(?P<number>\d{1,3}(?![\d.,]*\d|[\"'%]|\s?(?:x|in|cm|mm|m|kg|lbs?)(?![^\W\d_])|/\d{1,2}\s?[\"x]))"
    r"(?:\s?(?:of|von|de|di|van|sur|su|/)\s?(?P<of>\d{1,3}(?!\d)))?)?(?P<stop>\s{0,2}[:=])?"
)
(_ONLY_OF, _WEIGHT_WORDS) = (expressions("boxes")[name] for name in "only_of weight_words".split())
_SIZES = (
    re.compile(rf"(?i)(?<![\w.,]){_SIZE}"),
    re.compile(rf"(?i)(?<![\w.,]){_LETTERED}[\s,x]{{1,3}}{_LETTERED}[\s,x]{{1,3}}{_LETTERED}"),
)
_AGAIN = re.compile(r"[(/=~]\s{0,2}$")
_WEIGHT = re.compile(
    r"(?i)(?P<net>\bnet(?:to|t)?\.?(?![^\W\d_])|\bn\.?\s?w\.?(?![^\W\d_]))?(?P<label>[^\W\d_]{1,14}(?:[ .][^\W\d_]{1,8})?)?[\s.:=(]{0,4}"
    rf"(?P<text>(?<![\w.,]){_AMOUNT}(?:\s?-\s?{_AMOUNT})?\s?(?:{_UNIT})(?![^\W_])\.?(?:\s{{0,2}}\d{{1,3}}\s?(?:oz|ounces?|gr?)(?![^\W_]))?)"
)
_UNIT_AHEAD = re.compile(rf"(?i)(?<![\w.,])(?P<unit>kgs?|lbs?)[.:)]{{0,2}}[\s:=]{{1,3}}(?P<text>{_AMOUNT})(?![\w\"'])")
_BARE_WEIGHT = re.compile(
    rf"(?i)(?<![^\W\d_])(?:weight|wt|gewicht|poids|peso|вес)[.:=\s]{{1,4}}(?P<text>{_AMOUNT})(?![\w\"'])"
)
_NET = re.compile(r"(?i)(?<![^\W\d_])(?:net(?:to|t)?|n\.?\s?w)(?![^\W\d_])")
_UNTAKEN = {
    "pieces to a box": re.compile(
        rf"(?i)\(?(?P<text>(?<![\w.,])\d{{1,4}}\s?(?:{_PIECE})?\.?\s?(?:/|per|pro|par|por|je)\s?(?:{_BOX}))(?![^\W\d_])\.?\)?"
    ),
    "its volume": re.compile(
        r"(?i)(?P<text>(?<![\w.,])\d[\d.,]{0,12}\s?(?:cbm|m3|m³|cu\.?\s?(?:ft|m|in)|cuft|cf|ft3|ft³|lit(?:er|re)s?|l)(?![^\W_])\.?)"
    ),
}
"""Facts about a box that are not stored."""
_EACH = re.compile(rf"(?i)(?<![^\W\d_])(?:{_EACH_WORD}|(?:per|pro|par|por|je|a)\s(?:{_BOX}))(?![^\W\d_])\.?")
_ALL = re.compile(rf"(?i)(?<![^\W\d_])(?:{pattern('boxes', 'all')})(?![^\W\d_])")
_COUNTS = (
    re.compile(
        rf"(?i)(?P<cut>(?<![^\W\d_])(?:{_PIECE}|{pattern('boxes', 'counts')})\b[.:= ]{{1,3}}(?P<count>\d{{1,3}})(?![\w.,]*\d))"
    ),
    re.compile(rf"(?i)(?P<cut>[(,]?\s?(?<![\w.,])(?P<count>\d{{1,3}})\s?x?\s?(?:{_PIECE}|{_BOX})(?![^\W\d_])\.?\)?)"),
    re.compile(r"(?i)(?P<cut>\(\s?x?\s?(?P<count>\d{1,3})\s?x?\s?\))"),
    re.compile(rf"(?i){_SIZE}(?P<cut>(?<![\d\s])\s{{0,2}}x\s?(?P<count>\d{{1,3}}))\s{{0,2}}(?:$|[,;-])"),
    re.compile(rf"(?i)(?P<cut>(?<![\w.,])(?P<count>\d{{1,2}})\s?x\s?)\(?\s?{_SIZE}"),
)
_ENUMERATED = re.compile(r"(?:^|(?<=[\s;,|]))\(?(\d{1,2})[.)](?=\s)")
_POUNDS = re.compile(r"(?<=\d)\s?#(?!\d)")
_COUNT_BEHIND = re.compile(
    rf"(?i)(?:(?:number|no\.?|anzahl|nombre|numero|número|aantal)\s(?:of|der|de|di)?\s?)?(?<![^\W\d_])(?P<word>{_BOX})\s?:\s?"
    r"(?P<count>\d{1,3})\s{0,2}(?=[;,(\n]|$)[;,]?"
)
"""Form of a count (`Number of packages: 2; …`) that is equivalent to `2 packages: …`."""
_LENGTH_UNIT = re.compile(r"(?i)\d\s?(cm|mm|in|inch|inches|\")(?![a-wyz])")
_PACKING = re.compile(rf"(?i)(?<![^\W\d_])(?:{_BOX}|{pattern('boxes', 'packing')})(?![^\W\d_])\.?")
_HEAD = re.compile(r"^(?:\(([^()\d]{2,60})\)|([^\d:]{2,60}):)")
_WORD = re.compile(r"[^\W\d_]{3,}")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Package:
    """One kind of box of an item: the name of its content, its article number, and the box."""

    name: str
    sku: str
    carton: Carton


@dataclass(slots=True)
class _Box:
    """One kind of box while it is read: the rest of its text, its facts and its faults."""

    text: str
    rest: str
    name: str = ""
    count: int = 1
    counted: bool = False
    carton: Carton = field(default_factory=Carton)
    faults: list[Fault] = field(default_factory=list)

    def add_problem(self, problem: ProblemKind, what: str) -> None:
        """Add a fault about this box."""
        self.faults.append(Fault(problem, f"{quoted(self.text)} {what}."))

    def read(self, unit: str | None, weight_unit: str | None, decimal: str) -> "_Box":
        """Extract the facts from the text; first those that could be mistaken for parts of others."""
        for what, untaken in _UNTAKEN.items():
            for found in list(untaken.finditer(self.rest))[:3]:
                self.add_problem(
                    ProblemKind.UNREADABLE, f'states {what}, "{found["text"].strip()}", which is not stored'
                )
            self.rest = untaken.sub(" ", self.rest)
        self._count()
        self._weigh(weight_unit, decimal)
        self._take_name()
        self._size(unit, decimal)
        if self.carton:
            self.carton["count"] = self.count
        elif not self.faults:
            self.add_problem(ProblemKind.UNREADABLE, "states neither a size nor a weight of a box")
        return self

    def _count(self) -> None:
        """Extract counts from the text; report two different counts."""
        for counted in _COUNTS:
            found = counted.search(self.rest)
            if found is None:
                continue
            count = int(found["count"])
            if self.counted and count != self.count:
                self.add_problem(ProblemKind.CONFLICT, f"states both {self.count} and {count} boxes")
            elif count:
                self.count, self.counted = count, True
            self.rest = f"{self.rest[: found.start('cut')]} {self.rest[found.end('cut') :]}"

    def _weigh(self, unit: str | None, decimal: str) -> None:
        """Extract the weights from the text: gross or unspecified weights are those of the box, net weights are reported."""
        gross: list[str] = []

        def take(found: re.Match[str]) -> str:
            before = found.string[found.start() : found.start("text")]
            text = f"{found['text']} {found['unit']}" if found.re is _UNIT_AHEAD else found["text"]
            if _NET.search(before):
                self.add_problem(
                    ProblemKind.CONFLICT, f"states {text.strip()} as net weight, which is not the weight of the box"
                )
            else:
                gross.append(text)
            return f" {_WEIGHT_WORDS.sub(' ', before)} " if found.re is _WEIGHT else "  "

        for weight in (_WEIGHT, _UNIT_AHEAD, _BARE_WEIGHT):
            self.rest = weight.sub(take, self.rest)
        self.rest = _WEIGHT_WORDS.sub(" ", self.rest)
        if not gross:
            return
        parsed = parse_weight(" / ".join(gross), unit, decimal)
        self.faults.extend(parsed.faults)
        if self.count > 1 and _ALL.search(self.text):
            self.add_problem(ProblemKind.CONFLICT, "states the weight of all boxes together")
        elif parsed.value:
            self.carton["weight"] = parsed.value

    def _take_name(self) -> None:
        """Extract the name of the content from the text: `Headboard: 30x20x10`."""
        lead = self.rest.lstrip(" -.,;:")
        head = _HEAD.match(lead)
        words = _PACKING.sub(" ", head[1] or head[2]).strip(" -.,;()#") if head else ""
        if head and _WORD.search(words) and not re.search(r"[x*/]", words) and not label_of(words).role:
            self.name, self.rest = words, lead[head.end() :]

    def _size(self, unit: str | None, decimal: str) -> None:
        """Set the sides of the box from the rest of the text; report every other figure."""
        text = _PACKING.sub(" ", _EACH.sub(" ", _ALL.sub(" ", self.rest))).strip(" -.,;:/|+&@")
        if not _DIGIT.search(text):
            return
        parsed = parse_dimensions(text, unit, "", "lwh", decimal)
        self.faults.extend(parsed.faults)
        scan = scanned(text)
        for token in scan.tokens:
            if token.kind == WORDS and scan.text[token.start].isdigit() and not parsed.faults:
                # A count of things, valid in sizes of furniture, is an unrelated figure here.
                self.add_problem(
                    ProblemKind.UNREADABLE,
                    f'contains "{scan.text_between(token, token)}", which does not describe a box',
                )
        if parsed.value is None:
            return
        sides, components = dict[str, Any](parsed.value.dimensions), parsed.value.components
        if not sides and len(components) == 1:
            sides = dict(components[0]["dimensions"])
        elif components:
            self.add_problem(ProblemKind.CONFLICT, "states several sizes for one box")
        for extra in parsed.value.extras:
            self.add_problem(ProblemKind.UNREADABLE, f'contains "{extra}", which does not describe a box')
        _roll(sides)
        for side in sides:
            if side not in _BOX_SIDES:
                self.add_problem(ProblemKind.UNREADABLE, f"states a {side.replace('_', ' ')}, which boxes do not have")
        self.carton.update({side: sides[side] for side in _BOX_SIDES if side in sides})  # type: ignore[typeddict-item]


def _roll(sides: dict[str, Any]) -> None:
    """Replace a diameter by equal sides of the box, in place.

    With a height (a drum) the sides are width and depth, otherwise (a roll) width and height.
    """
    if diameter := sides.pop("diameter", None):
        for side in ("width", "depth") if "height" in sides else ("width", "height"):
            sides.setdefault(side, diameter)


def _starts(marks: list[re.Match[str]], flat: str) -> list[int]:
    """Return where each mark begins, and the end of the text.

    A figure before a numbered mark (`25 kg x 3 Box 2`) is not its count.
    """
    return [*(mark.start("word") if mark["number"] else mark.start() for mark in marks), len(flat)]


def _parts(flat: str) -> Iterator[tuple[re.Match[str] | None, str]]:
    """Yield each mark with its text; the text before the first mark has no mark.

    A box word is a mark if it has a number, a count before it, or a colon after it.
    """
    marks = [
        mark
        for mark in _MARK.finditer(flat)
        if any(mark[name] for name in ("number", "count", "stop"))
        and not _ONLY_OF.search(flat[max(0, mark.start() - 6) : mark.start()])
    ]
    # In `30x20x10 in, 2 boxes` a count without a following figure belongs to the text before it.
    marks = [
        mark
        for mark, end in zip(marks, _starts(marks, flat)[1:], strict=True)
        if not mark["count"] or mark["number"] or _DIGIT.search(flat[mark.end() : end])
    ]
    starts = _starts(marks, flat)
    if _DIGIT.search(flat[: starts[0]]):
        yield None, flat[: starts[0]]
    for mark, end in zip(marks, starts[1:], strict=True):
        yield mark, flat[mark.end() : end]


def _cut(text: str) -> list[str]:
    """Split a text into one part for each size, each from the separator before the size."""
    starts: list[int] = []
    last = 0
    for size in sorted((found for sizes in _SIZES for found in sizes.finditer(text)), key=re.Match.start):
        if size.start() < last or (starts and _AGAIN.search(text, max(0, size.start() - 4), size.start())):
            continue
        back = max(text.rfind(sign, last, size.start()) for sign in ",;|\n+&")
        starts.append(size.start() if back < 0 else back + 1)
        last = size.end()
    return [text[start:end] for start, end in pairwise([0, *starts[1:], len(text)])]


def _boxes(text: str, unit: str | None, weight_unit: str | None, decimal: str) -> tuple[list[_Box], list[Fault]]:
    """Return the boxes of a free text and the faults of the list as a whole."""
    if len(text) > _LONGEST:
        return [], list(overlong(text, _LONGEST).faults)
    flat = _POUNDS.sub(" lb ", _COUNT_BEHIND.sub(r"\g<count> \g<word>: ", folded(text)))
    numbers = [int(number) for number in _ENUMERATED.findall(flat)]
    if len(numbers) > 1 and numbers == list(range(1, len(numbers) + 1)):
        flat = _ENUMERATED.sub(r"Box \1: ", flat)  # `1) … 2) …`
    units = {unit_named(word) for word in _LENGTH_UNIT.findall(flat)}
    # The only unit in a list applies to all its boxes.
    unit = units.pop() if len(units) == 1 else unit
    boxes: list[_Box] = []
    announced: list[int] = []
    faults: list[Fault] = []
    for mark, part in _parts(flat):
        pieces = _cut(part)
        if mark and mark["of"]:
            announced.append(int(mark["of"]))
        count = int(mark["count"]) if mark and mark["count"] and not mark["number"] else None
        if count is not None and len(pieces) > 1:
            announced.append(count)
            count = None
        for piece in pieces:
            box = _Box(piece.strip(" ,;|"), piece, count=count or 1, counted=count is not None)
            if len(boxes) < _MOST:
                boxes.append(box.read(unit, weight_unit, decimal))
            else:
                faults = [Fault(ProblemKind.TOO_LONG, f"{quoted(text)} lists more than {_MOST} boxes.")]
    listed = sum(box.count for box in boxes)
    if announced and max(announced) != listed:
        faults.append(conflict(text, f"announces {max(announced)} boxes and lists {listed}"))
    return boxes, faults


_ARTICLE = re.compile(r"(?i)Article (?:no|number)\.?:?\s*(?P<sku>\d[\d.]{2,20})")
_COUNT = re.compile(r"(?i)Package\(s\):\s*(?P<count>\d{1,4})")
_FACT = re.compile(r"([^\W\d_]{1,60})\s*+:\s*+([\d.,]++\s*+[^\W\d_]+)")
_PIECES = re.compile(
    r"(?i)\((\d{1,4})\s*+(?:pcs?\.?\s*+)?/\s*+(?:ctn|carton|box)\)|(?<![\w])-?(\d{1,3})PK\b"
    r"|(?<![\w.,])(\d{1,4})\s?(?:pcs?|pieces?|st(?:k|ück)|pi[eè]ces?|stuks?|piezas?|pz|pezzi)\.?\s?(?:/|per|pro|par|por|je)\s?"
    rf"(?:{_BOX})(?![^\W\d_])"
)


def pieces_per_carton(text: str) -> int | None:
    """Return how many pieces a box holds according to a title or size (`(2PC/CTN)`, `4 Stück je Karton`), or None."""
    match = _PIECES.search(text)
    return int(match[1] or match[2] or match[3]) if match else None


def _articles(text: str) -> Parsed[tuple[Package, ...]]:
    """Parse the boxes of a cell in IKEA's form: name, article number, labelled facts, count."""
    flat = clean(text)
    found = list(_ARTICLE.finditer(flat))
    packages: list[Package] = []
    faults: list[Fault] = []
    start = 0
    for article, following in zip(found, [*found[1:], None], strict=True):
        until = following.start() if following else len(flat)
        count = _COUNT.search(flat, article.end(), until)
        carton: dict[str, Any] = {}
        end = article.end()
        for fact in _FACT.finditer(flat, end, count.start() if count else until):
            parsed: Parsed[Any]
            side, end = side_of(fact[1]), fact.end()
            if fact[1].lower() in ("weight", "gewicht", "peso", "poids", "vikt"):
                side, parsed = "weight", parse_weight(fact[2])
            elif side not in (*_BOX_SIDES, "length", "diameter"):
                side, parsed = None, unreadable(fact[0], "is not a known property of a box")
            else:
                side, parsed = "depth" if side == "length" else side, parse_length(fact[2])
            faults.extend(parsed.faults)
            if side and parsed.value:
                carton[side] = parsed.value
        _roll(carton)
        if count and int(count["count"]):
            carton["count"] = int(count["count"])
        packages.append(Package(flat[start : article.start()].strip(" ,;|"), article["sku"], carton))  # type: ignore[arg-type]
        start = count.end() if count else end
    if rest := flat[start:].strip(" ,;|"):
        faults.extend(unreadable(rest, "follows the last box and could not be read").faults)
    return Parsed(tuple(packages), tuple(faults))


@cell_parser(longest=20000, kept=8192)
def parse_packages(
    text: str, given: str, unit: str | None = None, weight_unit: str | None = None, decimal: str = "auto"
) -> Parsed[tuple[Package, ...]]:
    """Parse the boxes of a cell, in IKEA's form (name, article number, facts, count) or in free text.

    `unit` and `weight_unit` are the column's, for figures without one; `decimal` is the source's mark. Problems: unreadable (also
    for facts that are not stored), conflict, and those of the measures.
    """
    if _ARTICLE.search(text):
        return _articles(text)
    boxes, faults = _boxes(plain(text), unit, weight_unit, decimal) if _DIGIT.search(text) else ([], [])
    faults = [*(fault for box in boxes for fault in box.faults), *faults]
    packages = []
    for box in boxes:
        # Words for boxes or orders are not names of the content.
        idle = name_role(box.name) == "inner" or box.name.strip().upper() in ("MOQ", "FOB")
        if box.carton:
            packages.append(Package("" if idle else box.name, "", box.carton))
    if not packages and not faults:
        return unreadable(text, "lists no boxes")
    return Parsed(tuple(packages) or None, tuple(dict.fromkeys(faults)))
