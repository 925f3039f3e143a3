"""Parser of cells that list the boxes (cartons) of an item, in the notation of IKEA or in free text.

The parser reads sizes, weights and counts; other numbers are reported. The grammar:

    cell    := article* | [heading] box ((";" | "," | "|" | "+" | newline) box)*
    article := name "Article no:" sku (label ":" figure unit)* ["Package(s):" number]
    box     := [mark [":" | "-"]] [name [":"]] fact*
    mark    := boxword number ["of" number] | count ["x"] boxword      Box 1, Ctn 1 of 2, Karton 2/3, 2 cartons
    fact    := size | weight | count | volume | pieces                 volumes and pieces per box are reported, not stored
    size    := see `dimensions`; three figures without letters are L x W x H
    weight  := [label] amount unit [each]                              gross before net; a weight of all boxes is reported
    count   := number "x" size | size "x" number | "qty" number | number "pcs"

A cell without marks (`Box 1`) contains as many boxes as sizes, except sizes that repeat the previous one in another unit.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from domain.catalogue.data import Carton
from domain.ingestion.data import load_patterns, load_regex_alternatives
from domain.ingestion.values.dimensions import WORDS, parse_dimensions, tokenise_size
from domain.ingestion.values.labels import determine_name_role, find_dimension_of_label, parse_label
from domain.ingestion.values.quantities import normalise_typography, parse_length, parse_length_unit, parse_weight
from domain.ingestion.values.text import (
    ParseFault,
    ParseResult,
    build_conflict_fault,
    build_too_long_result,
    build_unreadable_result,
    cell_parser,
    clean_line,
    quote_text,
    strip_markup,
)
from domain.kernel.problems import ProblemKind

_BOX = load_regex_alternatives("boxes", "boxes")
_PIECE = load_regex_alternatives("boxes", "pieces")
_UNIT = load_regex_alternatives("boxes", "weight_units")
_EACH_WORD = load_regex_alternatives("boxes", "each")
_BOX_DIMENSIONS = ("width", "depth", "height")
_MAX_CHARS = 4000
_MAX_BOXES = 60
"""Maximum number of boxes that are read from a cell; further boxes are reported."""
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
(_PER_BOX, _WEIGHT_WORDS) = (load_patterns("boxes")[name] for name in "per_box_prefix weight_words".split())
_SIZES = (
    re.compile(rf"(?i)(?<![\w.,]){_SIZE}"),
    re.compile(rf"(?i)(?<![\w.,]){_LETTERED}[\s,x]{{1,3}}{_LETTERED}[\s,x]{{1,3}}{_LETTERED}"),
)
_REPEAT_SIGN = re.compile(r"[(/=~]\s{0,2}$")
_WEIGHT = re.compile(
    r"(?i)(?P<net>\bnet(?:to|t)?\.?(?![^\W\d_])|\bn\.?\s?w\.?(?![^\W\d_]))?(?P<label>[^\W\d_]{1,14}(?:[ .][^\W\d_]{1,8})?)?[\s.:=(]{0,4}"
    rf"(?P<text>(?<![\w.,]){_AMOUNT}(?:\s?-\s?{_AMOUNT})?\s?(?:{_UNIT})(?![^\W_])\.?(?:\s{{0,2}}\d{{1,3}}\s?(?:oz|ounces?|gr?)(?![^\W_]))?)"
)
_UNIT_AHEAD = re.compile(rf"(?i)(?<![\w.,])(?P<unit>kgs?|lbs?)[.:)]{{0,2}}[\s:=]{{1,3}}(?P<text>{_AMOUNT})(?![\w\"'])")
_BARE_WEIGHT = re.compile(
    rf"(?i)(?<![^\W\d_])(?:weight|wt|gewicht|poids|peso|вес)[.:=\s]{{1,4}}(?P<text>{_AMOUNT})(?![\w\"'])"
)
_NET = re.compile(r"(?i)(?<![^\W\d_])(?:net(?:to|t)?|n\.?\s?w)(?![^\W\d_])")
_UNSTORED_FACTS = {
    "the number of pieces in a box": re.compile(
        rf"(?i)\(?(?P<text>(?<![\w.,])\d{{1,4}}\s?(?:{_PIECE})?\.?\s?(?:/|per|pro|par|por|je)\s?(?:{_BOX}))(?![^\W\d_])\.?\)?"
    ),
    "the volume of a box": re.compile(
        r"(?i)(?P<text>(?<![\w.,])\d[\d.,]{0,12}\s?(?:cbm|m3|m³|cu\.?\s?(?:ft|m|in)|cuft|cf|ft3|ft³|lit(?:er|re)s?|l)(?![^\W_])\.?)"
    ),
}
"""Patterns of facts about a box that are reported and not stored, by the description of the fact."""
_EACH = re.compile(rf"(?i)(?<![^\W\d_])(?:{_EACH_WORD}|(?:per|pro|par|por|je|a)\s(?:{_BOX}))(?![^\W\d_])\.?")
_ALL = re.compile(rf"(?i)(?<![^\W\d_])(?:{load_regex_alternatives('boxes', 'all')})(?![^\W\d_])")
_COUNTS = (
    re.compile(
        rf"(?i)(?P<cut>(?<![^\W\d_])(?:{_PIECE}|{load_regex_alternatives('boxes', 'counts')})\b[.:= ]{{1,3}}(?P<count>\d{{1,3}})(?![\w.,]*\d))"
    ),
    re.compile(rf"(?i)(?P<cut>[(,]?\s?(?<![\w.,])(?P<count>\d{{1,3}})\s?x?\s?(?:{_PIECE}|{_BOX})(?![^\W\d_])\.?\)?)"),
    re.compile(r"(?i)(?P<cut>\(\s?x?\s?(?P<count>\d{1,3})\s?x?\s?\))"),
    re.compile(rf"(?i){_SIZE}(?P<cut>(?<![\d\s])\s{{0,2}}x\s?(?P<count>\d{{1,3}}))\s{{0,2}}(?:$|[,;-])"),
    re.compile(rf"(?i)(?P<cut>(?<![\w.,])(?P<count>\d{{1,2}})\s?x\s?)\(?\s?{_SIZE}"),
)
_ENUMERATED = re.compile(r"(?:^|(?<=[\s;,|]))\(?(\d{1,2})[.)](?=\s)")
_POUNDS = re.compile(r"(?<=\d)\s?#(?!\d)")
_COUNT_AFTER_LABEL = re.compile(
    rf"(?i)(?:(?:number|no\.?|anzahl|nombre|numero|número|aantal)\s(?:of|der|de|di)?\s?)?(?<![^\W\d_])(?P<word>{_BOX})\s?:\s?"
    r"(?P<count>\d{1,3})\s{0,2}(?=[;,(\n]|$)[;,]?"
)
"""Pattern of a number of boxes after its label (`Number of packages: 2; …`), which is rewritten as `2 packages: …`."""
_LENGTH_UNIT = re.compile(r"(?i)\d\s?(cm|mm|in|inch|inches|\")(?![a-wyz])")
_PACKING = re.compile(rf"(?i)(?<![^\W\d_])(?:{_BOX}|{load_regex_alternatives('boxes', 'packing')})(?![^\W\d_])\.?")
_HEAD = re.compile(r"^(?:\(([^()\d]{2,60})\)|([^\d:]{2,60}):)")
_WORD = re.compile(r"[^\W\d_]{3,}")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class ListedBox:
    """Box in a list of boxes.

    Attributes:
        name: The name of the content, or an empty string.
        sku: The article number of the content, or an empty string.
        carton: The dimensions, the weight and the number of such boxes.
    """

    name: str
    sku: str
    carton: Carton


@dataclass(slots=True)
class _BoxDraft:
    """Box in a list of boxes while its text is parsed.

    Attributes:
        text: The text about the box, for faults.
        rest: The rest of the text, which is not yet parsed.
        name: The name of the content.
        count: The number of such boxes.
        is_count_stated: Whether the text states the number of boxes.
        carton: The dimensions, weight and number parsed so far.
        faults: The faults so far.
    """

    text: str
    rest: str
    name: str = ""
    count: int = 1
    is_count_stated: bool = False
    carton: Carton = field(default_factory=Carton)
    faults: list[ParseFault] = field(default_factory=list)

    def add_fault(self, problem: ProblemKind, reason: str) -> None:
        """Add a fault; its detail is the quoted text about the box, followed by `reason`."""
        self.faults.append(ParseFault(problem, f"{quote_text(self.text)} {reason}."))

    def parse(self, unit: str | None, weight_unit: str | None, decimal: str) -> "_BoxDraft":
        """Parse the text about the box, and return the draft itself."""
        for what, untaken in _UNSTORED_FACTS.items():
            for found in list(untaken.finditer(self.rest))[:3]:
                self.add_fault(ProblemKind.UNREADABLE, f'states {what}, "{found["text"].strip()}", which is not stored')
            self.rest = untaken.sub(" ", self.rest)
        self._read_counts()
        self._read_weights(weight_unit, decimal)
        self._read_name()
        self._read_size(unit, decimal)
        if self.carton:
            self.carton["count"] = self.count
        elif not self.faults:
            self.add_fault(ProblemKind.UNREADABLE, "states neither a size nor a weight of a box")
        return self

    def _read_counts(self) -> None:
        """Parse the number of boxes and remove it from `rest`; two different numbers are a conflict."""
        for counted in _COUNTS:
            found = counted.search(self.rest)
            if found is None:
                continue
            count = int(found["count"])
            if self.is_count_stated and count != self.count:
                self.add_fault(ProblemKind.CONFLICT, f"states both {self.count} and {count} boxes")
            elif count:
                self.count, self.is_count_stated = count, True
            self.rest = f"{self.rest[: found.start('cut')]} {self.rest[found.end('cut') :]}"

    def _read_weights(self, unit: str | None, decimal: str) -> None:
        """Parse the weight of the box and remove all weights from `rest`. Net weights are reported and not used."""
        gross: list[str] = []

        def remove_weight(found: re.Match[str]) -> str:
            before = found.string[found.start() : found.start("text")]
            text = f"{found['text']} {found['unit']}" if found.re is _UNIT_AHEAD else found["text"]
            if _NET.search(before):
                self.add_fault(
                    ProblemKind.CONFLICT, f"states {text.strip()} as net weight, which is not the weight of the box"
                )
            else:
                gross.append(text)
            return f" {_WEIGHT_WORDS.sub(' ', before)} " if found.re is _WEIGHT else "  "

        for weight in (_WEIGHT, _UNIT_AHEAD, _BARE_WEIGHT):
            self.rest = weight.sub(remove_weight, self.rest)
        self.rest = _WEIGHT_WORDS.sub(" ", self.rest)
        if not gross:
            return
        parsed = parse_weight(" / ".join(gross), unit, decimal)
        self.faults.extend(parsed.faults)
        if self.count > 1 and _ALL.search(self.text):
            self.add_fault(ProblemKind.CONFLICT, "states the weight of all boxes together")
        elif parsed.value:
            self.carton["weight"] = parsed.value

    def _read_name(self) -> None:
        """Parse the name of the content (`Headboard: 30x20x10`) and remove it from `rest`."""
        lead = self.rest.lstrip(" -.,;:")
        head = _HEAD.match(lead)
        words = _PACKING.sub(" ", head[1] or head[2]).strip(" -.,;()#") if head else ""
        if head and _WORD.search(words) and not re.search(r"[x*/]", words) and not parse_label(words).role:
            self.name, self.rest = words, lead[head.end() :]

    def _read_size(self, unit: str | None, decimal: str) -> None:
        """Parse the dimensions of the box in `rest`, and report every other number."""
        text = _PACKING.sub(" ", _EACH.sub(" ", _ALL.sub(" ", self.rest))).strip(" -.,;:/|+&@")
        if not _DIGIT.search(text):
            return
        parsed = parse_dimensions(text, unit, "", "lwh", decimal)
        self.faults.extend(parsed.faults)
        scan = tokenise_size(text)
        for token in scan.tokens:
            if token.kind == WORDS and scan.text[token.start].isdigit() and not parsed.faults:
                # A count of things, valid in sizes of furniture, is an unrelated figure here.
                self.add_fault(
                    ProblemKind.UNREADABLE,
                    f'contains "{scan.text_between(token, token)}", which does not describe a box',
                )
        if parsed.value is None:
            return
        sides, components = dict[str, Any](parsed.value.dimensions), parsed.value.components
        if not sides and len(components) == 1:
            sides = dict(components[0]["dimensions"])
        elif components:
            self.add_fault(ProblemKind.CONFLICT, "states several sizes for one box")
        for extra in parsed.value.extras:
            self.add_fault(ProblemKind.UNREADABLE, f'contains "{extra}", which does not describe a box')
        _replace_diameter(sides)
        for side in sides:
            if side not in _BOX_DIMENSIONS:
                self.add_fault(ProblemKind.UNREADABLE, f"states a {side.replace('_', ' ')}, which boxes do not have")
        self.carton.update({side: sides[side] for side in _BOX_DIMENSIONS if side in sides})  # type: ignore[typeddict-item]


def _replace_diameter(measure_by_field: dict[str, Any]) -> None:
    """Replace a diameter by two equal dimensions, in place.

    They are width and depth if there is a height (a drum), else width and height (a roll).
    """
    if diameter := measure_by_field.pop("diameter", None):
        for dimension in ("width", "depth") if "height" in measure_by_field else ("width", "height"):
            measure_by_field.setdefault(dimension, diameter)


def _find_boundaries(marks: list[re.Match[str]], normalised: str) -> list[int]:
    """Return the position where each mark of a box (`Box 2`, `2 cartons`) begins, and last the length of the text.

    A number before a numbered mark (`25 kg x 3 Box 2`) is not a part of the mark.

    Args:
        marks: The matches of the marks.
        normalised: The normalised text.
    """
    return [*(mark.start("word") if mark["number"] else mark.start() for mark in marks), len(normalised)]


def _split_by_marks(normalised: str) -> Iterator[tuple[re.Match[str] | None, str]]:
    """Split a list of boxes at marks such as `Box 2` or `2 cartons`, and yield each mark with the text after it.

    For text before the first mark, the mark is None. A word for a box is a mark if a number, a count or a colon is next to it.
    """
    marks = [
        mark
        for mark in _MARK.finditer(normalised)
        if any(mark[name] for name in ("number", "count", "stop"))
        and not _PER_BOX.search(normalised[max(0, mark.start() - 6) : mark.start()])
    ]
    # In `30x20x10 in, 2 boxes` a count without a following figure belongs to the text before it.
    marks = [
        mark
        for mark, end in zip(marks, _find_boundaries(marks, normalised)[1:], strict=True)
        if not mark["count"] or mark["number"] or _DIGIT.search(normalised[mark.end() : end])
    ]
    starts = _find_boundaries(marks, normalised)
    if _DIGIT.search(normalised[: starts[0]]):
        yield None, normalised[: starts[0]]
    for mark, end in zip(marks, starts[1:], strict=True):
        yield mark, normalised[mark.end() : end]


def _split_by_sizes(text: str) -> list[str]:
    """Split a text at the separators before sizes, so that each part contains one size."""
    starts: list[int] = []
    last = 0
    for size in sorted((found for sizes in _SIZES for found in sizes.finditer(text)), key=re.Match.start):
        if size.start() < last or (starts and _REPEAT_SIGN.search(text, max(0, size.start() - 4), size.start())):
            continue
        back = max(text.rfind(sign, last, size.start()) for sign in ",;|\n+&")
        starts.append(size.start() if back < 0 else back + 1)
        last = size.end()
    return [text[start:end] for start, end in pairwise([0, *starts[1:], len(text)])]


def _parse_free_text_boxes(
    text: str, unit: str | None, weight_unit: str | None, decimal: str
) -> tuple[list[_BoxDraft], list[ParseFault]]:
    """Parse a list of boxes in free text, and return the boxes and the faults of the list."""
    if len(text) > _MAX_CHARS:
        return [], list(build_too_long_result(text, _MAX_CHARS).faults)
    normalised = _POUNDS.sub(" lb ", _COUNT_AFTER_LABEL.sub(r"\g<count> \g<word>: ", normalise_typography(text)))
    numbers = [int(number) for number in _ENUMERATED.findall(normalised)]
    if len(numbers) > 1 and numbers == list(range(1, len(numbers) + 1)):
        normalised = _ENUMERATED.sub(r"Box \1: ", normalised)  # `1) … 2) …`
    units = {parse_length_unit(word) for word in _LENGTH_UNIT.findall(normalised)}
    # The only unit in a list applies to all its boxes.
    unit = units.pop() if len(units) == 1 else unit
    boxes: list[_BoxDraft] = []
    stated_counts: list[int] = []
    faults: list[ParseFault] = []
    for mark, part in _split_by_marks(normalised):
        pieces = _split_by_sizes(part)
        if mark and mark["of"]:
            stated_counts.append(int(mark["of"]))
        count = int(mark["count"]) if mark and mark["count"] and not mark["number"] else None
        if count is not None and len(pieces) > 1:
            stated_counts.append(count)
            count = None
        for piece in pieces:
            box = _BoxDraft(piece.strip(" ,;|"), piece, count=count or 1, is_count_stated=count is not None)
            if len(boxes) < _MAX_BOXES:
                boxes.append(box.parse(unit, weight_unit, decimal))
            else:
                faults = [ParseFault(ProblemKind.TOO_LONG, f"{quote_text(text)} lists more than {_MAX_BOXES} boxes.")]
    listed_count = sum(box.count for box in boxes)
    if stated_counts and max(stated_counts) != listed_count:
        faults.append(build_conflict_fault(text, f"states {max(stated_counts)} boxes but lists {listed_count}"))
    return boxes, faults


_IKEA_ARTICLE = re.compile(r"(?i)Article (?:no|number)\.?:?\s*(?P<sku>\d[\d.]{2,20})")
_IKEA_COUNT = re.compile(r"(?i)Package\(s\):\s*(?P<count>\d{1,4})")
_IKEA_PROPERTY = re.compile(r"([^\W\d_]{1,60})\s*+:\s*+([\d.,]++\s*+[^\W\d_]+)")
_PIECES = re.compile(
    r"(?i)\((\d{1,4})\s*+(?:pcs?\.?\s*+)?/\s*+(?:ctn|carton|box)\)|(?<![\w])-?(\d{1,3})PK\b"
    r"|(?<![\w.,])(\d{1,4})\s?(?:pcs?|pieces?|st(?:k|ück)|pi[eè]ces?|stuks?|piezas?|pz|pezzi)\.?\s?(?:/|per|pro|par|por|je)\s?"
    rf"(?:{_BOX})(?![^\W\d_])"
)


def parse_pieces_per_carton(text: str) -> int | None:
    """Parse the number of pieces in a box from a title or size (`(2PC/CTN)`, `4 Stück je Karton`); None if not stated."""
    match = _PIECES.search(text)
    return int(match[1] or match[2] or match[3]) if match else None


def _parse_ikea_boxes(text: str) -> ParseResult[tuple[ListedBox, ...]]:
    """Parse a list of boxes in the notation of IKEA: name, `Article no:`, labelled lengths and weights, and `Package(s):`."""
    normalised = clean_line(text)
    found = list(_IKEA_ARTICLE.finditer(normalised))
    packages: list[ListedBox] = []
    faults: list[ParseFault] = []
    start = 0
    for article, following in zip(found, [*found[1:], None], strict=True):
        until = following.start() if following else len(normalised)
        count = _IKEA_COUNT.search(normalised, article.end(), until)
        carton: dict[str, Any] = {}
        end = article.end()
        for fact in _IKEA_PROPERTY.finditer(normalised, end, count.start() if count else until):
            parsed: ParseResult[Any]
            side, end = find_dimension_of_label(fact[1]), fact.end()
            if fact[1].lower() in ("weight", "gewicht", "peso", "poids", "vikt"):
                side, parsed = "weight", parse_weight(fact[2])
            elif side not in (*_BOX_DIMENSIONS, "length", "diameter"):
                side, parsed = None, build_unreadable_result(fact[0], "is not a known property of a box")
            else:
                side, parsed = "depth" if side == "length" else side, parse_length(fact[2])
            faults.extend(parsed.faults)
            if side and parsed.value:
                carton[side] = parsed.value
        _replace_diameter(carton)
        if count and int(count["count"]):
            carton["count"] = int(count["count"])
        packages.append(ListedBox(normalised[start : article.start()].strip(" ,;|"), article["sku"], carton))  # type: ignore[arg-type]
        start = count.end() if count else end
    if rest := normalised[start:].strip(" ,;|"):
        faults.extend(build_unreadable_result(rest, "follows the last box and could not be read").faults)
    return ParseResult(tuple(packages), tuple(faults))


@cell_parser(max_chars=20000, cache_size=8192)
def parse_boxes(
    text: str, cleaned: str, unit: str | None = None, weight_unit: str | None = None, decimal: str = "auto"
) -> ParseResult[tuple[ListedBox, ...]]:
    """Parse a list of boxes, in the notation of IKEA or in free text.

    The result can have the faults unreadable (also for data that is not stored), conflict, too_long, and those of lengths and weights.

    Args:
        text: The cell.
        cleaned: The cleaned text, which `cell_parser` passes.
        unit: The unit of lengths without one, or None.
        weight_unit: The unit of weights without one, or None.
        decimal: The decimal mark of the source: `dot`, `comma` or `auto`.
    """
    if _IKEA_ARTICLE.search(text):
        return _parse_ikea_boxes(text)
    boxes, faults = (
        _parse_free_text_boxes(strip_markup(text), unit, weight_unit, decimal) if _DIGIT.search(text) else ([], [])
    )
    faults = [*(fault for box in boxes for fault in box.faults), *faults]
    packages = []
    for box in boxes:
        # Words for boxes or orders are not names of the content.
        idle = determine_name_role(box.name) == "interior_or_package" or box.name.strip().upper() in ("MOQ", "FOB")
        if box.carton:
            packages.append(ListedBox("" if idle else box.name, "", box.carton))
    if not packages and not faults:
        return build_unreadable_result(text, "lists no boxes")
    return ParseResult(tuple(packages) or None, tuple(dict.fromkeys(faults)))
