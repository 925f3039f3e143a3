"""Which words of a dimension string belong to which figure, and which figures belong together.

    string   := scope*
    scope    := [name [":"]] clause (stop clause)*
    clause   := sequence | label [":" | "="] measure | measure label
    sequence := sided (join sided)+                     `80 W x 60 D x 40 H`, `W 80 x D 60`, `30" x 20" x 40"`
    sided    := axis measure | measure [axis]           axes stand before their figures or behind them, one way a scope
    name     := words that are no label                 `Table:`, `OVERALL`, `Reclined:`; without a colon only between sizes

What stands between two figures is parted once: what ends the first, what joins them, what names or labels the second.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Final

from domain.ingestion.values.labels import (
    ARM,
    GENERAL_ENDS,
    NO_LABEL,
    SEAT,
    Label,
    bound_of,
    label_of,
    name_role,
    only_parts,
    words_in,
)
from domain.ingestion.values.lengths import Measure, unit_named
from domain.ingestion.values.orders import ORDER
from domain.ingestion.values.scan import JOIN, MEASURE, OTHER, UNREAD, WORDS, Scan, Token, without_repeats

_HARD: Final = frozenset(";|\n()")
_APART: Final = frozenset(";|\n")
_COLONS: Final = (":", "=")
_AND: Final = frozenset("et und and y og och ja oraz и".split())
"""Words before a label of the next figure: `49 x 43 cm et hauteur 75 cm`."""
_FIRST: Final = re.compile(r"[^\W\d_]+")
_LAST: Final = re.compile(r"[^\W\d_]+$")


@dataclass(slots=True)
class Item:
    """One measure with what its words say of it; `joined` that it goes on the sequence of the one before it."""

    measure: Measure
    said: str
    label: Label = NO_LABEL
    joined: bool = False
    at: int = 0
    """Its place among the figures of the text."""
    blank: bool = False
    """Whether nothing but a blank parts it from the figure before."""
    bound: str = ""
    """`largest` behind `max` or `up to`, `least` behind `min` or `from`."""


@dataclass(slots=True)
class Scope:
    """The figures below one name: sequences of sides, seat measures, largest figures, and what is of something else."""

    name: str = ""
    role: str = "whole"
    order: str = ""
    start: int = 0
    sequences: list[list[Item]] = field(default_factory=list)
    extras: list[Item] = field(default_factory=list)
    largest: list[Item] = field(default_factory=list)
    nouns: list[Item] = field(default_factory=list)
    seen: list[str | None] = field(default_factory=list)
    """The sides that stood before its figures so far, None for those behind them."""


@dataclass(slots=True)
class _Segment:
    """Words between two stops; `closed` is the stop behind them, blank at the end of the gap."""

    text: str
    start: int
    opened: str = ""
    closed: str = ""


@dataclass(slots=True)
class _Gap:
    """What stands between two measures."""

    left: str = ""
    right: str = ""
    name: str = ""
    colon: bool = False
    joined: bool = False
    missing: bool = False
    start: int = 0


def _segments(scan: Scan, gap: list[Token]) -> list[_Segment]:
    found: list[_Segment] = []
    stop = ""
    for at, token in enumerate(gap):
        if token.kind != WORDS:
            stop = token.kind
            if found and not found[-1].closed:
                found[-1].closed = stop
            continue
        if found and at and gap[at - 1].kind == WORDS:
            found[-1].text = scan.text[found[-1].start : token.end]
        else:
            found.append(_Segment(scan.said(token, token), token.start, stop))
    return found


def _with_join(scan: Scan, gap: list[Token], first: bool, last: bool) -> _Gap:
    """A gap with the sign between two sides: axes stand on either side of it."""
    joins = [at for at, token in enumerate(gap) if token.kind == JOIN]
    left = _segments(scan, gap[: joins[0]])
    right = _segments(scan, gap[joins[-1] + 1 :])
    # `80 x x 40`, `x 40` and `80 x`: a figure is missing.
    missing = len(joins) > 1 or first or last
    left_text = left[0].text if left and not first else ""
    out = _Gap(left_text, right[-1].text if right and not last else "", joined=not first, missing=missing)
    if out.right and not label_of(out.right).role:
        out.right = ""
    return out


def _parted(text: str, behind: bool) -> tuple[str, str]:
    """Words that stand between two figures, as what belongs to the first and what to the second; `behind`: axes follow."""
    label = label_of(text)
    head = _FIRST.match(text)
    if head and head[0].lower() in _AND and len(text) > len(head[0]):
        return "", text[head.end() :].strip()
    rest = text[head.end() :].strip(" .-_") if head else ""
    if behind and head and rest and len(head[0]) <= 3 and label_of(head[0]).role == "side" and label.role != "side":
        return head[0], rest
    if behind and label.role:
        return text, ""
    return "", text


def _without_join(scan: Scan, gap: list[Token], previous: Item | None, behind: bool) -> _Gap:
    figure = max((at for at, token in enumerate(gap) if token.kind in (OTHER, UNREAD)), default=-1)
    if figure >= 0:
        # What stands before a weight or a power belongs to it.
        before = _segments(scan, gap[:figure])[:1] if previous is not None and gap[0].kind == WORDS else []
        left = before[0].text if before and before[0].closed not in _COLONS else ""
        left = left or (_parted(before[0].text, behind)[0] if before else "")
        return replace(_without_join(scan, gap[figure + 1 :], None, behind), joined=False, left=left)
    segments = _segments(scan, gap)
    out = _Gap(start=gap[-1].start if gap else 0)
    out.joined = previous is not None and not segments and not any(t.kind in _HARD or t.kind in _COLONS for t in gap)
    if not segments:
        return out
    out.colon = gap[-1].kind in _COLONS
    touching = not segments[-1].closed or out.colon
    adjacent = previous is not None and gap[0].kind == WORDS
    open_side = behind and previous is not None and not previous.label.role and not _of_the_next(segments, previous)
    if adjacent and len(segments) == 1 and touching:
        out.left, out.right = (
            _parted(segments[0].text, open_side) if not out.colon or open_side else ("", segments[0].text)
        )
        if out.colon and not out.right:
            out.left, out.right = "", segments[0].text
    else:
        out.left = segments[0].text if adjacent else ""
        out.right = segments[-1].text if touching else ""
    out.joined = not out.right and previous is not None and not any(t.kind in _HARD for t in gap)
    _named(out, segments, not open_side, touching)
    return out


def _of_the_next(segments: list[_Segment], previous: Item) -> bool:
    """Whether words behind a sequence without axes speak of the figure that follows: `88 x 84 x 74 cm. Seat height 41`."""
    side = label_of(segments[0].text).side if previous.joined and len(segments) == 1 else None
    return side is not None and "_" in side


def _named(out: _Gap, segments: list[_Segment], labelled: bool, touching: bool) -> None:
    """Sort what stands before a figure into its label and the name of the thing it belongs to.

    `labelled`: the figure before has its label, so that all the words are the next one's.
    """
    before = segments[-2] if len(segments) > 1 and touching else None
    label = label_of(out.right)
    if out.right and not label.role:
        # `Seat depth, chaise longue:`
        whole = (
            label_of(f"{before.text} {out.right}")
            if before and labelled and out.colon and before.closed == ","
            else NO_LABEL
        )
        if whole.role and before is not None:
            out.right, out.left = f"{before.text} {out.right}", ""
            return
        out.name, out.right, out.start = out.right, "", segments[-1].start
        return
    if before is not None and label.role:
        both = label_of(f"{before.text} {out.right}")
        listed = before.closed == "," and out.colon and both.role == "other" and only_parts(before.text)
        of_seat = before.closed in (":", ",") and both.role == "side" and both.side != label.side
        if (listed or of_seat) and not label_of(before.text).role:
            out.right = f"{before.text} {out.right}"
            out.left = "" if before is segments[0] else out.left
            return
        if before.closed == ":" and not label_of(before.text).role:
            out.name, out.start, out.colon = before.text, before.start, True
            out.left = "" if before is segments[0] and not label_of(out.left).role else out.left
            return
    _detached(out, segments[-1])


def _detached(out: _Gap, segment: _Segment) -> None:
    """`TV bench W`: the letter is the axis, the words before it a name."""
    last = _LAST.search(out.right)
    if last is None or len(last[0]) > 1 or last.start() == 0:
        return
    head = out.right[: last.start()].rstrip(" -.,")
    words = words_in(head)
    if words and words[-1] not in SEAT and words[-1] not in ARM and words[-1] not in GENERAL_ENDS:
        out.name, out.right, out.start = head, last[0], segment.start


def _ended(item: Item, left: str) -> None:
    """Give a measure the words behind it: its axis, a unit that stands behind the axis, or whose measure it is."""
    if not left:
        return
    if item.measure.unit is None and (unit := next(filter(None, map(unit_named, words_in(left))), None)):
        item.measure = replace(item.measure, unit=unit)
    if item.label.role:
        return
    label = label_of(left)
    if label.role == "noun":
        head = _FIRST.match(left)
        first = label_of(head[0]) if head else NO_LABEL
        label = first if first.role == "side" else label
    elif not label.role and name_role(left) in ("part", "inner", "pose"):
        label = Label("other")
    elif not label.role and words_in(left)[:1] in (["round"], ["rond"], ["rund"], ["redondo"]):
        label = Label("side", "diameter")
    if label.role:
        item.label, item.said = label, f"{item.said} {left}"


@dataclass(slots=True)
class Clauses:
    """All scopes of a string, and what of it nobody can understand."""

    scopes: list[Scope] = field(default_factory=lambda: [Scope()])
    unread: list[str] = field(default_factory=list)
    missing: bool = False
    description: str = ""
    order: str = ""


def _entered(found: Clauses, gap: _Gap, fresh: bool, apart: bool) -> Scope:
    """The scope that a measure stands in, a new one when a name begins it; `apart`: a stop parts it from what was before."""
    scope = found.scopes[-1]
    if not gap.name:
        side = label_of(gap.right).side
        complete = bool({side, None} & set(scope.seen)) if side else len(scope.seen) > 2
        if apart and complete and scope.role in ("pose", "inner") and not gap.joined:
            found.scopes.append(Scope())
        return found.scopes[-1]
    role = name_role(gap.name)
    if fresh and not gap.colon and role in ("whole", "piece", "part"):
        found.description = found.description or gap.name
        return scope
    if role == "whole" and fresh:
        return scope
    found.scopes.append(Scope(gap.name, role, start=gap.start))
    return found.scopes[-1]


def _put(scope: Scope, item: Item) -> None:
    """Put a measure where its label says it belongs."""
    label = item.label
    if label.role in ("other", "largest", "noun") or (label.side or "").partition("_")[2] or label.side == "clearance":
        {"largest": scope.largest, "noun": scope.nouns}.get(label.role, scope.extras).append(item)
        return
    target = scope.sequences[-1] if item.joined and scope.sequences else None
    if target is None and label.side is not None:
        target = next((items for items in scope.sequences if _lacks(items, label.side)), None)
    if target is None:
        scope.sequences.append([item])
    else:
        target.append(item)


def _lacks(items: list[Item], side: str) -> bool:
    """Whether a sequence of labelled figures has room for this side."""
    return all(item.label.side not in (None, side) for item in items)


def _gap_of(scan: Scan, gap: list[Token], items: list[Item], last: bool, behind: bool) -> _Gap:
    if any(token.kind == JOIN for token in gap):
        return _with_join(scan, gap, not items, last)
    return _without_join(scan, gap, items[-1] if items else None, behind)


def _item(measure: Measure, gap: _Gap, at: int, blank: bool) -> Item:
    """A measure with what stands before it; a word that only bounds it is taken out of the gap's name."""
    bound = "" if gap.colon else bound_of(gap.name)
    item = Item(
        measure, gap.right or gap.name, label_of(gap.right) if gap.right else NO_LABEL, gap.joined, at, blank, bound
    )
    gap.name = "" if bound else gap.name
    return item


def _ordered(found: Clauses, scope: Scope, order: tuple[str, bool], first: bool) -> None:
    """Give a scope the order of sides stated before its figures; one stated before any name holds for all."""
    if order[0]:
        scope.order = order[0]
        found.order = order[0] if first and order[1] else found.order


def _walked(scan: Scan, found: Clauses) -> list[tuple[Scope, Item]]:
    """Every measure with the scope it stands in, what its words say put beside it."""
    places = [at for at, token in enumerate(scan.tokens) if token.kind == MEASURE]
    items: list[Item] = []
    scoped: list[tuple[Scope, Item]] = []
    behind, begin = True, 0
    for place in [*places, len(scan.tokens)]:
        between, last = scan.tokens[begin:place], place == len(scan.tokens)
        tokens = [token for token in between if token.kind != ORDER]
        order, ahead, general = _order_in(scan, between, last)
        gap = _gap_of(scan, tokens, items, last, behind)
        begin = place + 1
        found.missing = found.missing or gap.missing or (last and _dangling(tokens, items, gap))
        if items:
            _ended(items[-1], gap.left or (gap.right if last and not gap.colon else ""))
        if order and not ahead and scoped:
            scoped[-1][0].order = scoped[-1][0].order or order
        if last:
            break
        measure = scan.tokens[place].measure
        assert measure is not None
        item = _item(measure, gap, len(items), not tokens)
        scope = _entered(found, gap, not items, any(token.kind in _APART for token in tokens))
        _ordered(found, scope, (order if ahead or not items else "", general), not items)
        behind = behind if gap.joined else not item.label.role
        items.append(item)
        scope.seen.append(item.label.side)
        scoped.append((scope, item))
    return scoped


def parted(scan: Scan) -> Clauses:
    """The scopes of a scanned string."""
    found = Clauses(unread=list(scan.unread))
    scan.tokens = without_repeats(scan)
    _distribute(_walked(scan, found))
    if found.description and any(scope.role == "piece" for scope in found.scopes[1:]):
        # Beside other things with their sizes, the words before the first size name the first thing.
        found.scopes[0].name, found.scopes[0].role = found.description, name_role(found.description)
    return found


def _distribute(scoped: list[tuple[Scope, Item]]) -> None:
    """Put every measure into its scope, once the words behind it are known.

    Seat measures behind a pose are of the piece; `min. 65 max. 85 cm height` says its side once.
    """
    previous = owner = None
    for at, (scope, item) in enumerate(scoped):
        if scope is not previous:
            item.joined = False
        if item.bound == "largest" and item.label.role == "side":
            item.label = replace(item.label, role="largest")
        following = scoped[at + 1][1] if at + 1 < len(scoped) else None
        if item.bound == "least" and not item.label.role and following is not None and following.bound == "largest":
            item.label = replace(following.label, role="side" if following.label.role else "")
        if item.label.role == "noun" and following is not None and following.joined and scoped[at + 1][0] is scope:
            # `Table width 30 x depth 20`: the words before a sequence only say what it is of.
            item.label = Label("side", item.label.side)
        owner = scope if scope.role not in ("pose", "inner") else owner
        seat = item.label.role == "side" and (item.label.side or "").endswith(("t_height", "t_depth", "m_height"))
        _put(owner if seat and owner is not None else scope, item)
        previous = scope


def _order_in(scan: Scan, tokens: list[Token], last: bool) -> tuple[str, bool, bool]:
    """An order of sides between two figures, whether it is the second's, and whether no name stands before it."""
    for at, token in enumerate(tokens):
        if token.kind == ORDER:
            ahead = not last and all(behind.kind in ("(", ")", *_COLONS) for behind in tokens[at + 1 :])
            words = [before for before in tokens[:at] if before.kind == WORDS]
            general = not words or name_role(scan.said(words[0], words[-1])) == "whole"
            return scan.said(token, token).strip(ORDER), ahead, general
    return "", False, False


def _dangling(tokens: list[Token], items: list[Item], gap: _Gap) -> bool:
    """Whether a string ends in a label whose figure is missing (`… Height:`)."""
    kinds = [token.kind for token in tokens]
    return bool(kinds) and kinds[-1] in _COLONS and OTHER not in kinds and UNREAD not in kinds
