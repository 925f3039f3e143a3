"""Whole dimension strings: sides of a piece, seat measures, and the pieces of a set."""

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Component, Dimensions
from domain.ingestion.values.amounts import folded
from domain.ingestion.values.lengths import Measure, checked, measure_at, unit_named
from domain.ingestion.values.parsed import Fault, Parsed, not_said, overlong, quoted, unreadable
from domain.ingestion.values.sides import EXTRA, LETTERS, WORDS, Sided, place, side_of, words_of
from domain.ingestion.values.text import stated
from domain.kernel.problems import ProblemKind

_LETTER: Final = r"dia(?:m(?:eter)?)?|[wdhlbt]"
_WORD: Final = "|".join(sorted(map(re.escape, WORDS), key=len, reverse=True))
_AFTER: Final = re.compile(
    rf"[\s.]*+(?P<axis>(?:{_WORD})(?![^\W\d_])|(?:{_LETTER})(?=x\s*[\d.]|x\s+\d|[^a-zA-Z]|$)|(?:{_LETTER})(?=x\s))(?!\s*[:=])",
    re.I,
)
_BEFORE: Final = re.compile(
    rf"^(?P<join>[\s.,;]*+x?)[\s,;.]*+(?P<axis>(?:{_WORD})|(?:{_LETTER}))\s*+[.:=]?\s*+(?P<lone>)$",
    re.I,
)
_JOIN: Final = re.compile(r"^[\s.]*[x*][\s.]*$", re.I)
_BLANK: Final = re.compile(r"^[\s,.]*$")
_START: Final = re.compile(r"(?<![\d.])\.?\d")
_FOREIGN: Final = re.compile(r"\s?(?:kg|lbs?|pcs?|pack|person|seater|drawer|door|%|w\b(?=att)|piece|cu)", re.I)
_FOREIGN_MASS: Final = re.compile(r"\s?(?:kg|lbs?|%)", re.I)
_LONGEST: Final = 2000
_BLANKS: Final = re.compile(r"[ \t]+")
_BRACKET: Final = re.compile(r"\(([^()]*)\)")
_ORDER: Final = re.compile(r"(?<![a-z])([wdhlbt])\s*[x*/]\s*([wdhlbt])(?:\s*[x*/]\s*([wdhlbt]))?(?![a-z])", re.I)
_POSE: Final = re.compile(
    r"reclin|extend|up to|open|folded|fully|w/ ?leaf|with leaf|shade|mattress|frame|interior|inside|inner|drawer|shelf"
    r"|cushion|opening|back ?rest|carton|package|shipping|canopy|pole|max|leaf|flat|lying|expanded|legs?\b|base\b",
    re.I,
)
_POSE_BEFORE: Final = re.compile(
    r"(?:reclined|extended|opened|open|expanded|up to|w/ ?leaf|with leaf|shade(?: size)?|folded)\W*$", re.I
)
_GENERAL: Final = re.compile(
    r"^(?:(?:product|overall|item|assembled|total|outer|exterior|external|approx\w*|unit|the)?\s*"
    r"(?:dimensions?|dims?|size|measurements?|measures|overall|total|maße|masse|abmessungen|medidas|dimensiones)"
    r"(?:\s*(?:in|cm|mm|inches|approx\w*))?|overall|assembled|product|total|gesamt|gesamtmaße)$",
    re.I,
)
_COUNT: Final = re.compile(r"^(?:(\d{1,3})\s*x\s+(.+)|(.+?)\s*x\s?(\d{1,3}))$", re.I)
_COUNT_BEFORE: Final = re.compile(r"\(\s*x?\s*(\d{1,3})\s*x?\s*\)\s*:\s*$", re.I)
_COUNT_NEAR: Final = 60
"""Within how many characters before a piece its count in brackets ends and begins."""
_SEAT: Final = frozenset(EXTRA.values())


@dataclass(frozen=True, slots=True)
class Token:
    """One measure. `side` is its axis (`length` for L), `joined` that it goes on the sequence of the one before it."""

    measure: Measure
    start: int
    side: str | None
    lead: str
    joined: bool
    foreign: bool = False


def axis_side(word: str) -> str | None:
    """The side of an axis letter or word, or None."""
    lowered = word.lower()
    return LETTERS.get(lowered) or WORDS.get(lowered) or ("diameter" if lowered.startswith("dia") else None)


def _led(lead: str, token: Token, previous: Token | None) -> Token:
    """`token` with what the text before it says: a prefixed axis, an `x`, or words."""
    if _JOIN.match(lead) and previous is not None:
        return replace(token, joined=True)
    prefix = _BEFORE.match(lead)
    if prefix and token.side is None:
        joined = previous is not None and ("x" in prefix["join"].lower() or ":" not in lead)
        return replace(token, side=axis_side(prefix["axis"]), joined=joined, lead="" if joined else lead)
    if _BLANK.match(lead) and previous is not None and previous.side and token.side:
        return replace(token, joined=True)
    return token


def _prefixed(text: str) -> bool:
    """Whether axes stand before their measures (`W 80 x D 60`): then nothing after a measure is its axis."""
    start = _START.search(text)
    if start is None or not _BEFORE.match(text[: start.start()]):
        return False
    first = measure_at(text, start.start())
    return first is not None and len(re.findall(rf"(?:^|[^\w])(?:{_LETTER}|{_WORD})\s*+[.:=]?\s*+\d", text, re.I)) > 1


def tokens(text: str) -> list[Token]:
    """The measures of a folded text, brackets blanked out, in order."""
    found: list[Token] = []
    prefixed = _prefixed(text)
    position = lead_from = 0
    while start := _START.search(text, position):
        measure = measure_at(text, start.start())
        if measure is None:
            position = start.end()
            continue
        after = None if prefixed else _AFTER.match(text, measure.end)
        end = after.end() if after else measure.end
        foreign = measure.unit is None and after is None and bool(_FOREIGN.match(text, measure.end))
        if foreign and not _FOREIGN_MASS.match(text, measure.end):
            # A count (`2-SEATER`, `3 drawers`) is part of the words around it.
            position = end
            continue
        side = axis_side(after["axis"]) if after else None
        lead = text[lead_from : start.start()]
        token = Token(measure, start.start(), side, lead, False, foreign)
        found.append(_led(lead, token, found[-1] if found else None))
        position = lead_from = end
    return found


@dataclass(frozen=True, slots=True)
class Spread:
    """What a dimension string states: the sides of the piece, and its pieces when it names several."""

    dimensions: Dimensions
    components: tuple[Component, ...] = ()


@dataclass(slots=True)
class _Piece:
    """One sequence of measures with the name before it."""

    name: str
    start: int
    tokens: list[Token]
    extras: Dimensions
    dimensions: Dimensions


class _DimensionParser:
    """One walk over one string. `text` is what was given, for the sentences."""

    def __init__(self, text: str, unit: str | None, kind: str, order: str) -> None:
        self.text, self.unit, self.kind, self.order = text, unit, kind, order
        self.flat = ""
        self.faults: list[Fault] = []
        self.labelled: Dimensions = {}

    def units_of(self, group: list[Token]) -> list[str | None]:
        """The unit of each measure: its own, else the next one's, else that of the last before, else the one given."""
        last = next((token.measure.unit for token in reversed(group) if token.measure.unit), self.unit)
        units: list[str | None] = []
        for token in reversed(group):
            last = token.measure.unit or last
            units.append(last)
        return units[::-1]

    def sided(self, group: list[Token]) -> list[Sided]:
        """The lengths of a sequence; those without unit, or beyond reason, are reported and left out."""
        out: list[Sided] = []
        for token, unit in zip(group, self.units_of(group), strict=True):
            if unit is None and token.measure.value:
                self.faults.append(Fault(ProblemKind.UNKNOWN_UNIT, f"{quoted(self.text)} names no unit of length."))
                return []
            parsed = checked(token.measure, unit or "in", self.text)
            self.faults.extend(parsed.faults)
            if parsed.value is not None:
                out.append(Sided(parsed.value, token.side))
        return out

    def label(self, token: Token, target: Dimensions, unit: str | None) -> bool:
        """Take a single measure after a label (`Seat height: 18"`). False when the label names no side."""
        side = side_of(token.lead.split("\n")[-1].strip(" ,;.:=-|"))
        if side is None:
            return False
        chosen = token.measure.unit or unit or self.unit
        if chosen is None:
            self.faults.append(Fault(ProblemKind.UNKNOWN_UNIT, f"{quoted(self.text)} names no unit of length."))
            return True
        parsed = checked(token.measure, chosen, self.text)
        self.faults.extend(parsed.faults)
        if parsed.value is not None:
            target.setdefault(side, parsed.value)  # type: ignore[misc]
        return True


def _name_in(lead: str) -> str:
    """The name a piece's lead gives it: what stands before the colon, after the last separator."""
    if ":" not in lead:
        return ""
    return re.split(r"[,;|\n)]", lead.rsplit(":", 1)[0])[-1].strip(" .-")


def _pieces(parser: _DimensionParser, found: list[Token]) -> list[_Piece]:
    """Sequences with their names; single measures after a side's label go to the piece before them, or to all."""
    pieces: list[_Piece] = []
    for index, token in enumerate(found):
        if token.foreign:
            continue
        if token.joined and pieces and pieces[-1].tokens[-1] is found[index - 1]:
            pieces[-1].tokens.append(token)
            continue
        alone = index + 1 == len(found) or not found[index + 1].joined
        if alone and (token.side is None or ":" in token.lead) and (":" in token.lead or "=" in token.lead):
            target = pieces[-1].extras if pieces else parser.labelled
            if parser.label(token, target, None) or token.side is None:
                continue
        pieces.append(_Piece(_name_in(token.lead) or _pose_in(token.lead), token.start, [token], {}, {}))
    return pieces


def _pose_in(lead: str) -> str:
    return lead.strip(" ,;.") if _POSE_BEFORE.search(lead) else ""


def _in_trade_order(piece: _Piece, text: str) -> bool:
    """Whether figures without letters are written the trade's way: one unit, after the last."""
    units = [token.measure.unit for token in piece.tokens]
    return units[-1] is not None and not any(units[:-1])


def _place(parser: _DimensionParser, piece: _Piece) -> None:
    lengths = parser.sided(piece.tokens)
    if not lengths:
        piece.dimensions = piece.extras
        return
    sides = place(lengths, parser.text, parser.kind, parser.order, _in_trade_order(piece, parser.text))
    parser.faults.extend(sides.faults)
    piece.dimensions = {**piece.extras, **sides.dimensions}


def _bracketed(parser: _DimensionParser, folded_text: str, pieces: list[_Piece]) -> None:
    """Seat and arm measures in brackets go to the piece before the bracket; poses and counts in brackets to none."""
    owners = [piece for piece in pieces if not _POSE.search(piece.name)]
    starts = [piece.start for piece in owners]
    for bracket in _BRACKET.finditer(folded_text):
        before = bisect_left(starts, bracket.start())
        owner = owners[before - 1] if before else None
        target: Dimensions = {}
        for token in tokens(bracket[1]):
            label = token.lead.strip(" ,;.:=-")
            if side_of(label) in _SEAT:
                units = [t.measure.unit for t in owner.tokens if t.measure.unit] if owner else []
                parser.label(token, target, units[-1] if units else None)
        for side, found in target.items():
            (owner.extras if owner else parser.labelled).setdefault(side, found)  # type: ignore[misc]


def _component(parser: _DimensionParser, piece: _Piece) -> Component:
    """A named piece, with the count its name carries (`CHAIR (4)`, `4 x CHAIR`)."""
    in_bracket = _COUNT_BEFORE.search(parser.flat, max(0, piece.start - _COUNT_NEAR), piece.start)
    in_name = _COUNT.match(piece.name)
    name = (in_name[2] or in_name[3]).strip() if in_name else piece.name
    count = in_bracket[1] if in_bracket else (in_name[1] or in_name[4]) if in_name else "1"
    return {"name": name, "quantity": int(count) or 1, "dimensions": piece.dimensions}


def _settled(parser: _DimensionParser, pieces: list[_Piece]) -> Spread:
    """Which sequence is the piece itself, and which are pieces of a set."""
    whole = [piece for piece in pieces if not piece.name or _GENERAL.match(words_of(piece.name))]
    general = set(map(id, whole))
    named = [piece for piece in pieces if id(piece) not in general and not _POSE.search(piece.name)]
    lone = [piece for piece in whole if len(piece.tokens) == 1 and piece.tokens[0].side is None]
    if len(whole) > len(lone) or (named and lone):
        alone = set(map(id, lone))
        whole = [piece for piece in whole if id(piece) not in alone]
    if not whole and len(named) == 1:
        whole, named = named, []
    for piece in whole + named:
        _place(parser, piece)
    dimensions: Dimensions = {**parser.labelled, **(whole[0].dimensions if whole else {})}
    if len(whole) > 1:
        _further(parser, whole, dimensions)
    if "length" in dimensions:
        dimensions = place([Sided(v, k) for k, v in dimensions.items()], parser.text, parser.kind).dimensions  # type: ignore[arg-type]
    return Spread(dimensions, tuple(_component(parser, piece) for piece in named if piece.dimensions))


def _further(parser: _DimensionParser, whole: list[_Piece], dimensions: Dimensions) -> None:
    """Later sequences of the same piece fill sides that are still free; two figures for one side are a conflict."""
    for piece in whole[1:]:
        if any(side in dimensions and dimensions[side] != found for side, found in piece.dimensions.items()):  # type: ignore[literal-required]
            parser.faults.append(
                Fault(ProblemKind.CONFLICT, f"{quoted(parser.text)} states more than one size; the first is kept.")
            )
            return
        dimensions.update(piece.dimensions)


def _stated_unit(flat: str) -> str | None:
    """A unit that stands alone in brackets or after `in`: `(cm)`, `in inches`."""
    match = re.search(r"\(\s*(?:in\s+)?([a-z]+)\.?\s*\)|\bin\s+(inches|cm|mm)\b", flat, re.I)
    return unit_named(match[1] or match[2]) if match else None


@lru_cache(maxsize=32768)
def parse_dimensions(text: str, unit: str | None = None, kind: str = "", order: str = "") -> Parsed[Spread]:
    """The sides, seat measures and pieces of a dimension string.

    `unit` is the column's, `kind` that of `sides.kind_of`, `order` the letters a header names (`BHT`). W, D and H win;
    L beside W without D is the width (on beds the depth); a range gives its first bound; poses, shades and leaves never
    overwrite the piece. Problems: unreadable, unknown_unit, conflict (sides that are named twice or not at all).
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None:
        return not_said(text)
    flat = _BLANKS.sub(" ", folded(text))
    stated_order = _ORDER.search(flat)
    if stated_order:
        order = "".join(filter(None, stated_order.groups())).lower()
        flat = flat[: stated_order.start()] + " " * len(stated_order[0]) + flat[stated_order.end() :]
    parser = _DimensionParser(text, _stated_unit(flat) or unit, kind, order.lower())
    parser.flat = flat
    masked = _BRACKET.sub(lambda match: " " * len(match[0]), flat)
    pieces = _pieces(parser, tokens(masked))
    _bracketed(parser, flat, pieces)
    spread = _settled(parser, pieces)
    if not spread.dimensions and not spread.components:
        return Parsed(None, tuple(parser.faults)) if parser.faults else unreadable(text, "holds no size")
    return Parsed(spread, tuple(dict.fromkeys(parser.faults)))
