"""Whole dimension strings: sides of a piece, seat measures, and the pieces of a set.

`scan` finds the tokens, `clauses` says which words belong to which figure, and here each figure gets its side. No figure is
left out in silence: it is a side, a seat measure, part of a component, in `extras` as of something else, or in a fault.
"""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Component, Dimensions, Length
from domain.ingestion.values.amounts import folded
from domain.ingestion.values.clauses import Clauses, Item, Scope, parted
from domain.ingestion.values.labels import SEAT, Label, of_a_part, piece_name, seat_or_arm, words_in
from domain.ingestion.values.lengths import METRIC, checked
from domain.ingestion.values.parsed import Fault, Parsed, not_said, overlong, quoted, unreadable
from domain.ingestion.values.plain_sizes import plain_size
from domain.ingestion.values.scan import COUNT, Scan, scanned
from domain.ingestion.values.shared_units import all_items, confirms, shared_unit, units_of
from domain.ingestion.values.sides import Sided, kind_of_part, place
from domain.ingestion.values.text import plain, stated
from domain.kernel.problems import ProblemKind

_LONGEST: Final = 2000
_BLANKS: Final = re.compile(r"[ \t\r\f\v]+")
_COUNT_IN_NAME: Final = re.compile(r"(?:(\d{1,3})\s*x?\s+(.+)|(.+?)\s*x\s?(\d{1,3}))", re.I)
_COUNT_NEAR: Final = re.compile(rf"{COUNT}(\d{{1,3}}){COUNT}")
_ROUNDED: Final = 60
"""Hundredths of an inch by which two statements of one side may differ."""
_LEAF: Final = re.compile(r"leaf|leaves", re.I)


@dataclass(frozen=True, slots=True)
class Spread:
    """What a dimension string states: the sides of the piece, and its pieces when it names several.

    `extras` are the figures that are neither, in the vendor's words: `Seat width: 20"`, `EXTENDED: 65"W`, `100 kg`.
    """

    dimensions: Dimensions
    components: tuple[Component, ...] = ()
    extras: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reading:
    """One string while it is read. `text` is what was given, for the sentences."""

    text: str
    scan: Scan
    unit: str | None
    kind: str
    order: str
    decimal: str
    column: str | None = None
    faults: list[Fault] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)

    def tell(self, problem: ProblemKind, what: str) -> None:
        """Add a fault about the whole text."""
        self.faults.append(Fault(problem, f"{quoted(self.text)} {what}."))

    def set_aside(self, items: list[Item]) -> None:
        """Keep figures that are of something else as the vendor wrote them."""
        for item in items:
            upper = "" if item.measure.upper is None else f"-{item.measure.upper}"
            self.extras.append(
                f"{item.said} {item.measure.value}{upper} {item.measure.unit or self.unit or ''}".strip()
            )


def _length(reading: _Reading, item: Item, unit: str | None) -> Length | None:
    """One figure as a length; a missing unit and what is beyond reason are told."""
    if unit == "m" and item.measure.unit is None and item.measure.value > _METRES:
        # `183 x 0.91 m`: the metre is the other figure's alone.
        unit = reading.column if reading.column in METRIC else "cm"
    if unit is None and item.measure.value:
        fault = Fault(ProblemKind.UNKNOWN_UNIT, f"{quoted(reading.text)} names no unit of length.")
        reading.faults.extend([] if fault in reading.faults else [fault])
        return None
    parsed = checked(item.measure, unit or "in", reading.text, reading.decimal)
    reading.faults.extend(parsed.faults)
    if item.measure.upper is not None:
        # The further end of a range is no side, yet it is said.
        reading.set_aside([item])
    return parsed.value


def _sided(reading: _Reading, items: list[Item]) -> list[Sided]:
    """The lengths of a sequence, with the axes written beside them."""
    units = units_of(items, reading.unit)
    own = {item.measure.unit for item in items if item.measure.unit}
    if own & set(METRIC) and not own <= set(METRIC):
        reading.tell(ProblemKind.CONFLICT, "mixes metric and imperial units")
    if own == {"ft"} and any(item.measure.unit is None and item.measure.value for item in items):
        reading.tell(ProblemKind.CONFLICT, "has figures beside feet that may be feet or inches")
    if any(item.blank and item.label.side is None for item in items[1:]):
        reading.tell(ProblemKind.CONFLICT, "parts its figures by blanks alone")
    lengths = [_length(reading, item, unit) for item, unit in zip(items, units, strict=True)]
    if None in lengths and all(item.label.side is None for item in items):
        # Without letters the place says the side, and one place is empty.
        if not reading.faults:
            reading.tell(ProblemKind.UNREADABLE, "lacks a figure")
        return []
    return [Sided(length, item.label.side) for length, item in zip(lengths, items, strict=True) if length is not None]


def _in_trade_order(items: list[Item]) -> bool:
    """Whether figures without letters are written the trade's way: one unit, after the last."""
    units = [item.measure.unit for item in items]
    return units[-1] is not None and not any(units[:-1])


def _placed(reading: _Reading, items: list[Item], kind: str, order: str) -> Dimensions:
    lengths = _sided(reading, items)
    if not lengths:
        return {}
    usual = _in_trade_order(items) and reading.scan.slashes
    sides = place(lengths, reading.text, kind, order or reading.order, usual)
    reading.faults.extend(sides.faults)
    return sides.dimensions


def _seat_or_arm(scope: Scope) -> None:
    """Below `Seat:` or `Arm:` the sides are those of the seat or the arm."""
    kind = seat_or_arm(scope.name)
    if not kind:
        return
    for item in [item for items in scope.sequences for item in items]:
        side = f"{kind}_{item.label.side}"
        known = side in ("seat_height", "seat_depth", "arm_height")
        item.label = Label("side", side) if known else Label("other")
        scope.extras.append(item)
    scope.sequences.clear()
    scope.role = "whole"


def _extras(reading: _Reading, scope: Scope, target: Dimensions) -> None:
    """Seat measures and clearances of a scope; what is of something else is set aside."""
    unit = next((i.measure.unit for items in scope.sequences for i in items if i.measure.unit), reading.unit)
    for item in scope.extras:
        if item.label.role != "side":
            reading.set_aside([item])
            continue
        length = _length(reading, item, item.measure.unit or unit)
        side = item.label.side or ""
        if length is None:
            continue
        if target.get(side, length) != length:
            reading.tell(ProblemKind.CONFLICT, f"states more than one {side.replace('_', ' ')}; the first is kept")
        target.setdefault(side, length)  # type: ignore[misc]


def _largest(reading: _Reading, scope: Scope, target: Dimensions) -> None:
    """`Max. height` stands for the height only where nothing else does, and that is told."""
    for item in scope.largest:
        side = "width" if item.label.side == "length" else item.label.side
        if side in target or (item.label.side == "length" and "width" in target):
            reading.set_aside([item])
        elif (length := _length(reading, item, item.measure.unit or reading.unit)) is not None:
            reading.tell(ProblemKind.CONFLICT, f"states only the largest {side}")
            target.setdefault(side or "", length)  # type: ignore[misc]


def _of_scope(reading: _Reading, scope: Scope, kind: str) -> Dimensions:
    """All sides of one scope: its first sequence, what later ones add, its seat measures and largest figures."""
    target: Dimensions = {}
    _extras(reading, scope, target)
    if scope.name and of_a_part(scope.name) and len(scope.sequences) == 1 and len(scope.sequences[0]) == 1:
        reading.set_aside(scope.sequences.pop())
    lone = [items for items in scope.sequences if len(items) == 1 and items[0].label.side is None]
    sequences = scope.sequences if len(lone) == len(scope.sequences) else [s for s in scope.sequences if s not in lone]
    for items in scope.sequences:
        if items not in sequences:
            reading.set_aside(items) if of_a_part(scope.name) else _unread(reading, items)
    if sequences:
        target.update(_placed(reading, sequences[0], kind, scope.order))
    for items in sequences[1:]:
        _further(reading, sequences[0], items, target, (kind, scope.order))
    _largest(reading, scope, target)
    if "width" not in target and any(_of_one_end(item) for item in scope.extras):
        reading.tell(ProblemKind.CONFLICT, "states its width left and right apart")
    return target


def _of_one_end(item: Item) -> bool:
    words = set(words_in(item.said))
    return bool(words & {"left", "right", "links", "rechts"}) and bool(words & {"width", "breite"}) and not words & SEAT


def _unread(reading: _Reading, items: list[Item]) -> None:
    figures = ", ".join(str(item.measure.value) for item in items)
    reading.tell(ProblemKind.UNREADABLE, f"does not say what {figures} measures")


def _further(reading: _Reading, first: list[Item], items: list[Item], target: Dimensions, how: tuple[str, str]) -> None:
    """A later sequence confirms the first or fills sides still free; another figure for one side is a conflict."""
    if confirms(first, items, reading.unit):
        reading.set_aside([item for item in items if item.measure.upper is not None])
        return
    if all(item.label.side is None for item in items):
        reading.tell(ProblemKind.CONFLICT, "states more than one size; the first is kept")
        return
    found = _placed(reading, items, *how)
    before: dict[str, Length] = dict(target)  # type: ignore[arg-type]
    later: dict[str, Length] = dict(found)  # type: ignore[arg-type]
    apart = any(
        abs(before[s]["hundredths_in"] - v["hundredths_in"]) > _ROUNDED for s, v in later.items() if s in before
    )
    named = before.keys() | later.keys()
    if apart or ("diameter" in named and named & {"width", "depth"}):
        reading.tell(ProblemKind.CONFLICT, "states more than one size; the first is kept")
        return
    for side, value in found.items():
        target.setdefault(side, value)  # type: ignore[misc]


def _component(reading: _Reading, scope: Scope, dimensions: Dimensions) -> Component:
    """A named piece, with the count beside its name (`CHAIR (4)`, `4 x CHAIR`, `(2) chairs`)."""
    text = reading.scan.text
    near = _COUNT_NEAR.search(text, max(0, scope.start - 8), scope.start + len(scope.name) + 8)
    name = piece_name(_COUNT_NEAR.sub("", scope.name).strip(" .,:-"), reading.text)
    in_name = _COUNT_IN_NAME.fullmatch(name)
    if in_name:
        name = (in_name[2] or in_name[3]).strip()
    count = near[1] if near else (in_name[1] or in_name[4]) if in_name else "1"
    return {"name": " ".join(name.split()), "quantity": int(count) or 1, "dimensions": dimensions}


def _by_noun(scopes: list[Scope]) -> list[Scope]:
    """Sides labelled with the thing they are of (`Table width`): the piece's where one thing is named, else pieces."""
    out: list[Scope] = []
    for scope in scopes:
        out.append(scope)
        nouns = list(dict.fromkeys(item.label.noun for item in scope.nouns))
        if len(nouns) == 1 and scope.sequences and _lead(scope):
            # `Sofa width: 84, depth: 38`: the thing is named once.
            scope.sequences[0][:0] = [replace(item, label=Label("side", item.label.side)) for item in scope.nouns]
            continue
        if not nouns or scope.sequences:
            scope.extras.extend(_no_side(item) for item in scope.nouns)
            continue
        for noun in nouns:
            items = [item for item in scope.nouns if item.label.noun == noun]
            for item in items:
                item.label = Label("side", item.label.side)
            if len(nouns) == 1:
                scope.sequences.append(items)
            else:
                out.append(Scope(noun, "piece", sequences=[items]))
    return out


def _lead(scope: Scope) -> bool:
    """Whether the labels that name a thing stand before all plain ones and say other sides."""
    plain = [item for items in scope.sequences for item in items]
    sides = {item.label.side for item in scope.nouns}
    return max(i.at for i in scope.nouns) < min(i.at for i in plain) and not sides & {i.label.side for i in plain}


def _no_side(item: Item) -> Item:
    """An item that is of something else after all."""
    item.label = Label("other")
    return item


def _ranked(scopes: list[Scope]) -> tuple[list[Scope], list[Scope], list[Scope]]:
    """The scopes of the piece itself, those of its pieces, and those set aside."""
    by_role = {
        role: [s for s in scopes if s.role == role and (s.sequences or s.extras or s.largest)]
        for role in ("whole", "rest", "piece", "part", "pose", "inner")
    }
    whole, rest, pieces, parts = by_role["whole"], by_role["rest"], by_role["piece"], by_role["part"]
    aside = by_role["pose"] + by_role["inner"]
    sized = [scope for scope in whole if scope.sequences]
    if rest and (not sized or scopes.index(rest[0]) < scopes.index(sized[0])):
        return rest[:1] + whole, pieces, parts + rest[1:] + aside
    if not sized and len(pieces) == 1:
        return whole + pieces, [], parts + aside
    if not sized and not pieces and len(parts) == 1:
        return whole + parts, [], aside
    if not sized and not pieces and parts:
        return whole, parts, aside
    leaves = [scope for scope in by_role["pose"] if _LEAF.search(scope.name) and scope.sequences]
    if not sized and not pieces and leaves:
        return whole + leaves[:1], [], [scope for scope in parts + aside if scope is not leaves[0]]
    return whole, pieces, parts + rest + aside


def _kind_of_piece(reading: _Reading, scope: Scope) -> str:
    return kind_of_part(scope.name, reading.kind) if scope.role in ("piece", "part") else reading.kind


def _settled(reading: _Reading, clauses: Clauses) -> Spread:
    """Which scope is the piece itself, and which are pieces of a set."""
    for scope in clauses.scopes:
        _seat_or_arm(scope)
    whole, pieces, aside = _ranked(_by_noun(clauses.scopes))
    dimensions: Dimensions = {}
    for scope in whole:
        _joined(reading, dimensions, _of_scope(reading, scope, _kind_of_piece(reading, scope)))
    components = []
    for scope in pieces:
        found = _of_scope(reading, scope, _kind_of_piece(reading, scope))
        if found:
            components.append(_component(reading, scope, found))
    for scope in aside:
        reading.set_aside(all_items(scope))
    if aside and not dimensions and not components and not reading.faults:
        reading.tell(ProblemKind.UNREADABLE, "states no size of the piece itself")
    return Spread(dimensions, tuple(components), (*reading.scan.asides, *reading.extras))


def _joined(reading: _Reading, target: Dimensions, found: Dimensions) -> None:
    """Add what a further scope of the piece says; another figure for one side is a conflict."""
    clash = [side for side, value in found.items() if side in target and target[side] != value]  # type: ignore[literal-required]
    if clash:
        reading.tell(ProblemKind.CONFLICT, "states more than one size; the first is kept")
    for side, value in found.items():
        target.setdefault(side, value)  # type: ignore[misc]


@lru_cache(maxsize=32768)
def parse_dimensions(
    text: str, unit: str | None = None, kind: str = "", order: str = "", decimal: str = "auto"
) -> Parsed[Spread]:
    """The sides, seat measures and pieces of a dimension string.

    `unit` is the column's, `kind` that of `sides.kind_of`, `order` the letters a header names (`BHT`) or `TRADE` where the
    trade's order may be taken for granted, `decimal` the source's mark. W, D and H win; L beside W without D is the width (on beds the depth); a range gives its first bound; poses, shades
    and leaves never overwrite the piece. Problems: unreadable, unknown_unit, conflict (sides that are named twice or not at
    all, units that are mixed), out_of_range.
    """
    if (plain := plain_size(text, kind)) is not None:
        return Parsed(Spread(plain))
    return _by_grammar(text, unit, kind, order, decimal)


def _by_grammar(text: str, unit: str | None, kind: str, order: str, decimal: str) -> Parsed[Spread]:
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None:
        return not_said(text)
    scan = scanned(_BLANKS.sub(" ", folded(plain(text) if "<" in text else text)), unit)
    reading = _Reading(text, scan, scan.unit, kind, order.lower(), decimal, unit)
    if _HYPHENED.search(scan.text):
        reading.tell(ProblemKind.CONFLICT, "joins three figures by hyphens, which may be sides or a range")
    if _NEGATIVE.search(scan.text):
        reading.tell(ProblemKind.OUT_OF_RANGE, "has a figure below zero")
    clauses = parted(scan)
    reading.order = clauses.order or reading.order
    reading.unit = shared_unit(clauses, unit) or reading.unit if scan.unit == unit else scan.unit
    spread = _settled(reading, clauses)
    if clauses.missing:
        reading.tell(ProblemKind.UNREADABLE, "lacks a figure")
    if clauses.unread:
        reading.tell(ProblemKind.UNREADABLE, f"holds {', '.join(clauses.unread[:3])}, which is no measure")
    if not spread.dimensions and not spread.components:
        return Parsed(None, tuple(reading.faults)) if reading.faults else unreadable(text, "holds no size")
    return Parsed(spread, tuple(dict.fromkeys(reading.faults)))


_METRES: Final = 12
_HYPHENED: Final = re.compile(
    r"(?<![\d.,/-])\d{1,4}(?:[.,]\d{1,2})?\s?-\s?\d{1,4}(?:[.,]\d{1,2})?\s?-\s?\d{1,4}(?![\d/-])"
)
_NEGATIVE: Final = re.compile(r"(?:^|[\s:=x(,;])-\d", re.I)
