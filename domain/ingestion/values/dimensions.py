"""Whole dimension strings: sides of a piece, seat measures, and the pieces of a set.

    string   := scope*
    scope    := [name [":"]] clause (stop clause)*
    clause   := sequence | label [":" | "="] measure | measure label
    sequence := sided (join sided)+                     `80 W x 60 D x 40 H`, `W 80 x D 60`, `30" x 20" x 40"`
    sided    := axis measure | measure [axis]           axes precede or follow their figures, the same way in a scope
    name     := words that are not a label              `Table:`, `OVERALL`, `Reclined:`; without a colon only between sizes

`scanned` finds the tokens. The tokens between two figures are divided into words of the first, the join, and name and label
of the second; then each figure gets its side. No figure is dropped without a trace: it is a side, a seat measure, part of a
component, in `extras`, or in a fault.

Tokens of a dimension string are measures, words, signs between two sides and stops; every figure is part of a token.

    token   := measure | words | join | stop | order | figure
    measure := see `quantities`
    join    := "x" | "*" | "×" | "by" | "mal" | "per" …      glued to its neighbours or not: `30WX`, `24inx36in`
    stop    := "," | ";" | "|" | newline | "(" | ")" | ":" | "=" | "/" | "-"
    order   := axis sign axis [sign axis] | axis axis axis ")"    `W x D x H:`, `(ШхГхВ)`, `Breite x Tiefe x Höhe`
    axis    := a letter or a word of a side, each once
    figure  := number (unit of another kind | counted noun)   `100 kg`, `3 drawers`, `2-seat`, `(2PC/CTN)`, `E27`

Brackets without a size of their own (a unit, an order of sides, a count, a leaf, a pose) are removed beforehand.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from domain.catalogue.data import Component, Dimensions, Length
from domain.ingestion.data import expressions, pattern
from domain.ingestion.values.labels import (
    ARM,
    GENERAL_ENDS,
    LETTERS,
    NEUTRAL,
    NO_LABEL,
    SEAT,
    Label,
    Sided,
    bound_of,
    kind_of_part,
    label_of,
    name_role,
    of_a_part,
    only_parts,
    piece_name,
    place,
    plain_word,
    seat_or_arm,
    side_word,
    words_in,
)
from domain.ingestion.values.quantities import (
    METRIC,
    Measure,
    checked,
    folded,
    measure_at,
    measured,
    same_length,
    unit_named,
)
from domain.ingestion.values.text import Fault, Parsed, cell_parser, not_said, plain, quoted, unreadable
from domain.kernel.problems import ProblemKind

# Tokens of a dimension string.


MEASURE = "m"
WORDS = "w"
JOIN = "x"
OTHER = "o"
UNREAD = "?"
COUNT = "\x01"
ORDER = "\x02"
STOPS = frozenset(",;|\n():=/-")

_WORD = re.compile(r"[^\W\d_]+(?:['&/._-]+[^\W\d_]+)*+")
_RUN = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d|\.\d")
_DIGITS = re.compile(r"[\d.,/]+")
_MEASURED_CODE = re.compile(r"(?i)\d(?:[\"']|cm|mm|in|ft)$")
_ALNUM = re.compile(r"[\w-]*+")
_AXES = r"dia|diam|[wdhlbtpшгвд]"
_AXIS_JOIN = re.compile(rf"(?i)({_AXES})x")
_JOIN_AXIS = re.compile(rf"(?i)x({_AXES})")
_JOIN_WORDS = frozenset("by mal par por per auf op na".split())
_AFTER_JOIN = re.compile(rf"(?i)\s*+(?:\.?\d|(?:{_AXES})\W{{0,3}}\d)")
_NEAR_NUMBER = re.compile(r"[\s.:=]{0,4}\.?\d")
_FOREIGN = re.compile(rf"(?i)\s?(?:{pattern('sizes', 'foreign')})(?![^\W\d_])|\s?[²³%°$€£]")
_HYPHENATED = re.compile(r"(?i)-(?!in\b|inch|ft\b|feet|foot|cm\b|mm\b)[^\W\d_]{2,}")
_NOUN = re.compile(r"\s{0,2}([^\W\d_]{3,})")
_COUNTED = re.compile(rf"(?i)\s{{0,2}}(?:{pattern('sizes', 'counted')}|x(?=\s+(?P<thing>[^\W\d_]{{3,}})))(?![^\W\d_])")
_TIMES = re.compile(r"(?i)\s?x(?=\s+[^\W\d_]{3})")
_THINGS = re.compile(pattern("sizes", "things"))
(_COUNT_AHEAD, _ALL_COUNTS, _LEAF, _TRAILING_LEAF, _UNIT_AHEAD) = (
    expressions("sizes")[name] for name in "count_ahead all_counts leaf trailing_leaf unit_ahead".split()
)
_TOLERANCE = re.compile(r"(?:\+\s?/\s?-|\+-|±)\s?$")
_LABEL_WORDS = 5
_HEAD = re.compile(r"(?i)([wdhl])(?=[^\W\d_]{3})")
_MADE_OF = re.compile(r"(?i)[1-9][dps](?![\w\"'])(?!\s{0,2}[x*\"'])")
"""A digit and a letter outside a sequence, which describe a thing (`4D` armrests, a `3P` sofa) and not a size."""
_BRACKET = re.compile(r"\(([^()]*)\)")
_UNIT_LEAD = re.compile(r"(?i)^(?:in|all in|alle in|maße in|en)\s+(?=\w)")
_BARE_COUNT = re.compile(r"(?i)\s*(?:x\s*)?(\d{1,3})\s*(?:x|pcs?\.?|pieces?|stk|stück)?\s*|\s*set of (\d{1,3})\s*")
_CORNER = re.compile(r"(?i)(?<=[^\W\d_])\s+(?:en|em)\s+[LU](?=\s+\d)|\b[LU][ -]?(?:shaped?|förmig\w{0,2}|form)\b")
"""The shape of a corner piece, which is not an axis."""
_WITH = re.compile(r"(?i)(?<![^\W_])w/(?=\s|[^\W\d_]{3})")
_SLASH = re.compile(r"(?<=[a-zA-Z\"'])\s{0,3}/\s{0,3}(?=[\dWDHLBTwdhlbt])")
_JOINS = re.compile(r"(?<=[\d\"'\sa-zA-Z])[xX*](?=[\s\dWDHLBTwdhlbt])")
_SLASHES = 8
"""Maximum number of slashes that are examined, since each is compared with the whole text."""
_REPEATED = frozenset((WORDS, "(", "/", "="))

_AXIS_WORD = r"[wdhlbtpшгвд]|br|dia|[^\W\d_]{4,12}"
_ORDERS = (
    re.compile(
        rf"(?i)(?<![^\W_])({_AXIS_WORD})\s{{0,2}}[x*/-]\s{{0,2}}({_AXIS_WORD})(?:\s{{0,2}}[x*/-]\s{{0,2}}({_AXIS_WORD}))?(?![^\W_])"
    ),
    re.compile(r"(?i)(?<![^\W_])([wdhlbtpшгвд])x?([wdhlbtpшгвд])x?([wdhlbtpшгвд])(?=\s{0,2}[):])"),
)
_SEAT_BEHIND = re.compile(r"(?i)(?<![^\W_])(h|[wbtdlp]\s?x\s?[wbtdlp]\s?x\s?h)\s?/\s?sh\b")
_SEAT_FIGURE = re.compile(r"(\d)\s?/\s?(\d{2,3}(?:[.,]\d)?)(?![\d/])")
_ABBREVIATED = re.compile(r"(?i)(?<=[^\W\d_])\.(?=\d{2,4}(?!\d|\s?(?:\"|in)))")
"""Dot at the end of a word; before inches it could also begin a figure (`D.75"`)."""
_DASHED = re.compile(r"(?<![^\W_])([^\W\d_]{1,20})\s?-\s(?=\.?\d)")


def _after_figure(text: str, position: int) -> bool:
    """Return whether a figure, or its mark, precedes `position`."""
    before = text[max(0, position - 4) : position].rstrip()[-1:]
    return before.isdecimal() or before in ('"', "'")


def _initial(word: str) -> str | None:
    """Return the letter of the side that a word or letter of an order names; `o` is the sign of a diameter."""
    low = plain_word(word)
    side = LETTERS.get(low) or side_word(low)
    return "o" if side == "diameter" else side and side[0]


def _with_orders(text: str) -> str:
    """Return `text` with each order of sides as its letters between marks.

    An order can begin inside a text that only resembles one (`size - W x D x H`).
    """
    for order in _ORDERS:
        out: list[str] = []
        at = kept = 0
        while match := order.search(text, at):
            letters = [_initial(word) for word in match.groups() if word]
            if None in letters or len(set(letters)) != len(letters) or _after_figure(text, match.start()):
                at = match.end(1)
                continue
            out += [text[kept : match.start()], f" {ORDER}{''.join(filter(None, letters))}{ORDER} "]
            at = kept = match.end()
        text = "".join((*out, text[kept:]))
    return text


def _labelled(text: str) -> str:
    """Return `text` with labels separated from figures.

    A seat height after the height of the piece gets its name (`BxTxH/SH 60x65x110/45`), a dash after the name of a side
    (`Width - 80 cm`) becomes a colon, and the dot of `h.75 cm` a blank.
    """
    if "/" in text:
        text = _WITH.sub("with ", text)
        if _SEAT_BEHIND.search(text):
            text = _SEAT_FIGURE.sub(r"\1, seat height \2", _SEAT_BEHIND.sub(r"\1", text), count=1)

    def colon(match: re.Match[str]) -> str:
        is_label = label_of(match[1]).role == "side" and not _after_figure(match.string, match.start())
        return f"{match[1]}: " if is_label else match[0]

    return _DASHED.sub(colon, _ABBREVIATED.sub(" ", text))


class Token(NamedTuple):
    """Token: its kind (a constant above, or the stop itself), its position, and its measure, if any."""

    kind: str
    start: int
    end: int
    measure: Measure | None = None


@dataclass(slots=True)
class Scan:
    """Folded text with its tokens.

    Attributes:
        unit: The unit of the column, or of the text as a whole.
        asides: Texts of brackets and figures other than sizes.
        unread: Texts that could not be read.
    """

    text: str
    unit: str | None = None
    slashes: bool = True
    """Whether a slash separates figures of one side, not sides."""
    tokens: list[Token] = field(default_factory=list)
    asides: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def text_between(self, first: Token, last: Token) -> str:
        """Return the text from one token to another."""
        return self.text[first.start : last.end]

    def _add(self, kind: str, start: int, end: int, measure: Measure | None = None) -> int:
        self.tokens.append(Token(kind, start, end, measure))
        return end

    def _follows(self, kind: str) -> bool:
        return bool(self.tokens) and self.tokens[-1].kind == kind

    def _counts(self, start: int, measure: Measure) -> bool:
        """Return whether a bare number counts things: `3 drawers`, `2-seat`, `set of 4`, `4 x chair`."""
        text, end = self.text, measure.end
        if measure.value != measure.value.to_integral_value() or measure.value > 999 or measure.upper is not None:
            return False
        counted = _COUNTED.match(text, end)
        if _HYPHENATED.match(text, end) or (counted and side_word(plain_word(counted["thing"] or "")) is None):
            return True
        if _COUNT_AHEAD.search(text, max(0, start - 12), start) and not self._follows(JOIN):
            return True
        if self._follows(WORDS):
            before = self.text_between(self.tokens[-1], self.tokens[-1])
            # `Depth 12 nch` has a misspelt unit; the letter in `w 2 drawers` is a word.
            if len(before) > 1 and label_of(before).role == "side":
                return False
        noun = _NOUN.match(text, end)
        if noun is None or self._follows(JOIN) or self._follows(":"):
            return False
        word = plain_word(noun[1])
        measures = side_word(word) or word in NEUTRAL or bound_of(word) or unit_named(word)
        if measures or label_of(word).role in ("side", "noun"):
            return False
        if not _THINGS.match(word):
            # A number of unknown things, perhaps with a misspelt unit.
            self.unread.append(f"{measure.value} {noun[1]}")
        return True

    def _labelled_from(self, start: int) -> int:
        """Return where the label of a figure of another kind begins: `Max. load: 100 kg`."""
        colon = self._follows(":") or self._follows("=")
        at = words = len(self.tokens) - colon
        while at and self.tokens[at - 1].kind == WORDS and words - at < _LABEL_WORDS:
            at -= 1
        if at == words:
            return start
        label_text = self.text_between(self.tokens[at], self.tokens[words - 1])
        return self.tokens[at].start if colon or label_of(label_text).role == "other" else start

    def _number(self, start: int) -> int:
        """Read the number at `start` as a measure or a figure of another kind; return its end."""
        text = self.text
        if (kind := _MADE_OF.match(text, start)) and not self._follows(JOIN):
            self.asides.append(kind[0])
            return kind.end()
        measure = measure_at(text, start, self.unit, self.slashes)
        if measure is None:
            digits = _DIGITS.match(text, start)
            end = digits.end() if digits else start + 1
            self.unread.append(text[start:end])
            return self._add(UNREAD, start, end)
        foreign = _FOREIGN.match(text, measure.end) if measure.unit is None else None
        if foreign and foreign[0].strip().lower() != "f":
            self.asides.append(text[self._labelled_from(start) : foreign.end()].strip())
            return self._add(OTHER, start, foreign.end())
        if _TOLERANCE.search(text, max(0, start - 6), start):
            return measure.end
        if measure.unit is None and self._counts(start, measure):
            noun = _HYPHENATED.match(text, measure.end) or _TIMES.match(text, measure.end)
            return self._add(WORDS, start, noun.end() if noun else measure.end)
        return self._add(MEASURE, start, measure.end, measure)

    def _glued(self, run: str, start: int, end: int) -> bool:
        """Read letters joined with measures: `30WX20`, `24x`, `xW60`, `71"HSTOOL`; return False for other words."""
        text, follows = self.text, self._follows(MEASURE)
        both = _AXIS_JOIN.fullmatch(run)
        if run in ("x", "X"):
            self._add(JOIN, start, end)
        elif both and (_AFTER_JOIN.match(text, end) or follows):
            self._add(WORDS, start, end - 1)
            self._add(JOIN, end - 1, end)
        elif (_JOIN_AXIS.fullmatch(run) and _NEAR_NUMBER.match(text, end)) or (
            run[:1] in "xX" and not text[end : end + 1].isdigit() and follows and label_of(run[1:]).role
        ):
            self._add(JOIN, start, start + 1)
            self._add(WORDS, start + 1, end)
        elif follows and self.tokens[-1].end == start and _HEAD.match(run) and not label_of(run).role:
            self._add(WORDS, start, start + 1)
            self._add(",", start + 1, start + 1)
            self._add(WORDS, start + 1, end)
        else:
            return False
        return True

    def _letters(self, start: int) -> int:
        """Read the word at `start` and split what is joined with it; return its end."""
        text = self.text
        found = _RUN.match(text, start)
        assert found is not None
        run, end = found[0], found.end()
        if self._glued(run, start, end):
            return end
        before_digit, low = text[end : end + 1].isdigit(), plain_word(run)
        if before_digit and not (low in LETTERS or low == "x" or label_of(low).role == "side"):
            code = _ALNUM.match(text, end)
            whole = text[start : code.end()] if code else run
            is_like_word = (len(run) > 3 and not run.isupper()) or (
                self._follows(MEASURE) and self.tokens[-1].end == start
            )
            if is_like_word or _MEASURED_CODE.search(text[start : start + len(whole) + 1]):
                # `e12"` and `Depht2` are measures with misspelt words, not article codes.
                self.unread.append(whole)
            if not re.search(r"(?i)\dx\d", whole):
                return self._add(WORDS, start, start + len(whole))
        if run.lower() in _JOIN_WORDS and self.tokens and _AFTER_JOIN.match(text, end):
            return self._add(JOIN, start, end)
        word = None if before_digit else _WORD.match(text, start)
        if word and not text[word.end() : word.end() + 1].isdigit():
            end = word.end()
        return self._add(WORDS, start, end)

    def _mark(self, at: int) -> None:
        """Use a mark of inches or feet after an axis (`57H"`) as the unit of the previous measure, if it has none."""
        for index in range(len(self.tokens) - 1, max(-1, len(self.tokens) - 4), -1):
            token = self.tokens[index]
            if token.measure is not None and token.measure.unit is None:
                measure = token.measure._replace(unit=unit_named(self.text[at]))
                self.tokens[index] = token._replace(measure=measure)
            if token.kind != WORDS:
                return

    def tokenise(self) -> None:
        """Fill `tokens` from the text, in linear time."""
        text, position, size = self.text, 0, len(self.text)
        while position < size:
            char = text[position]
            if char.isspace() and char != "\n":
                position += 1
            elif _NUMBER.match(text, position):
                position = self._number(position)
            elif char.isalpha():
                position = self._letters(position)
            elif char == COUNT:
                position = text.find(COUNT, position + 1) + 1 or size
            elif char == ORDER:
                position = self._add(ORDER, position, text.find(ORDER, position + 1) + 1 or size)
            elif char == "*":
                position = self._add(JOIN, position, position + 1)
            else:
                if char in STOPS:
                    self._add(char, position, position + 1)
                elif char in "\"'":
                    self._mark(position)
                position += 1

    def read_bracket(self, match: re.Match[str]) -> str:
        """Return the replacement of a bracket: a count, nothing, its words, or the bracket itself."""
        inside = match[1].strip(" .:")
        if ORDER in inside:
            return f" {inside} "
        if unit := unit_named(_UNIT_LEAD.sub("", inside)):
            self.unit = unit
            return " "
        if count := _BARE_COUNT.fullmatch(match[1]):
            is_behind = _after_figure(match.string, match.start())
            return match[0] if is_behind else f" {COUNT}{count[1] or count[2]}{COUNT} "
        if not re.search(r"\d", inside):
            return f" {inside} " if label_of(inside).role == "side" else " "
        is_pose = ":" not in inside and (name_role(inside) == "pose" or "up" in words_in(inside))
        if _ALL_COUNTS.fullmatch(match[1]) or _LEAF.search(inside) or is_pose:
            self.asides.append(inside)
            return " "
        return match[0]

    def without_repeats(self) -> list[Token]:
        """Return the tokens without measures that repeat the previous one, and without the brackets around them.

        `30"W (76 cm)` and `80 cm / 31.5"` are repeats; a measure that begins a sequence is not.
        """
        kept: list[Token] = []
        last = -1
        for at, token in enumerate(self.tokens):
            if token.measure is not None:
                between = kept[last + 1 :]
                before = kept[last].measure if last >= 0 else None
                if (
                    before is not None
                    and 0 < len(between) <= 3
                    and all(one.kind in _REPEATED for one in between)
                    and token.measure.unit is not None
                    and same_length(before, token.measure, self.unit)
                ):
                    following = (one.kind for one in self.tokens[at + 1 : at + 4] if one.kind != WORDS)
                    if next(following, "") != JOIN:
                        continue
                last = len(kept)
            kept.append(token)
        return kept


def scanned(flat: str, unit: str | None = None) -> Scan:
    """Return the scan of a folded text; `unit` is the column's."""
    text = _with_orders(_labelled(_CORNER.sub(" ", flat)))
    scan = Scan(text, unit)
    if ahead := _UNIT_AHEAD.match(text):
        scan.unit = unit_named(ahead["unit"])
        text = f"{ahead['head']} {text[ahead.end() :]}"
    text = _BRACKET.sub(scan.read_bracket, text)
    scan.asides.extend(match[0] for match in _TRAILING_LEAF.finditer(text))
    text = _TRAILING_LEAF.sub(" ", text)
    # A slash can separate two statements of one size: `80 x 40 x 75 cm / 31 x 16 x 30 in`.
    for slash in islice(_SLASH.finditer(text), _SLASHES):
        before, behind = text[: slash.start()], text[slash.end() :]
        if 0 < len(_JOINS.findall(before)) == len(_JOINS.findall(behind)):
            text = f"{before} | {behind}"
            break
    scan.text = text
    slashed = re.search(r"\d[^\w/]*/\s*\d[^/x]*/\s*\d", text)
    scan.slashes = not slashed or re.search(r"(?i)\d\W{0,3}[x*]\W{0,3}\d", text) is not None
    scan.tokenise()
    return scan


_HARD = frozenset(";|\n()")
_APART = frozenset(";|\n")
_COLONS = (":", "=")
_AND = frozenset("et und and y og och ja oraz и".split())
"""Words before the label of the next figure: `49 x 43 cm et hauteur 75 cm`."""
_FIRST = re.compile(r"[^\W\d_]+")
_LAST = re.compile(r"[^\W\d_]+$")
_OTHER = Label("other")


@dataclass(frozen=True, slots=True)
class Spread:
    """Content of a dimension string: the sides of the piece, and pieces with their own sizes.

    `extras` are other figures in the vendor's words: `Seat width: 20"`, `EXTENDED: 65"W`, `100 kg`.
    """

    dimensions: Dimensions
    components: tuple[Component, ...] = ()
    extras: tuple[str, ...] = ()


@dataclass(slots=True)
class _Item:
    """One measure with the words beside it and their meaning."""

    measure: Measure
    label_text: str
    label: Label
    joined: bool
    """Whether it continues the sequence of the previous measure."""
    at: int
    """Its index among the figures of the text."""
    blank: bool
    """Whether only a blank separates it from the previous figure."""
    bound: str
    """`largest` after `max` or `up to`, `least` after `min` or `from`, else blank."""

    @property
    def side(self) -> str | None:
        return self.label.side


@dataclass(slots=True)
class _Scope:
    """The figures under one name: sequences of sides, seat measures, maxima, and figures of other things."""

    name: str = ""
    role: str = "whole"
    order: str = ""
    start: int = 0
    sequences: list[list[_Item]] = field(default_factory=list)
    extras: list[_Item] = field(default_factory=list)
    largest: list[_Item] = field(default_factory=list)
    nouns: list[_Item] = field(default_factory=list)
    seen: list[str | None] = field(default_factory=list)
    """The sides before its figures so far; None for a figure without one."""

    def placed(self) -> list[_Item]:
        """Return the figures of all sequences."""
        return [item for items in self.sequences for item in items]

    def items(self) -> list[_Item]:
        """Return all figures."""
        return self.placed() + self.extras + self.largest + self.nouns

    def put(self, item: _Item) -> None:
        """Add a measure to the list that its label determines."""
        role, side = item.label.role, item.side or ""
        if role in ("other", "largest", "noun") or "_" in side or side == "clearance":
            {"largest": self.largest, "noun": self.nouns}.get(role, self.extras).append(item)
            return
        target = self.sequences[-1] if item.joined and self.sequences else None
        if target is None and side:
            free = (items for items in self.sequences if all(one.side not in (None, side) for one in items))
            target = next(free, None)
        if target is None:
            self.sequences.append([item])
        else:
            target.append(item)


@dataclass(slots=True)
class _Segment:
    """Words between two stops; `closed` is the stop after them, blank at the end of the gap."""

    text: str
    start: int
    closed: str = ""


@dataclass(slots=True)
class _Gap:
    """Text between two measures: words of the first, words of the second, and the name of the second's thing."""

    left: str = ""
    right: str = ""
    name: str = ""
    colon: bool = False
    joined: bool = False
    missing: bool = False
    start: int = 0


def _segments(scan: Scan, gap: list[Token]) -> list[_Segment]:
    found: list[_Segment] = []
    for at, token in enumerate(gap):
        if token.kind != WORDS:
            if found and not found[-1].closed:
                found[-1].closed = token.kind
        elif found and gap[at - 1].kind == WORDS:
            found[-1].text = scan.text[found[-1].start : token.end]
        else:
            found.append(_Segment(scan.text_between(token, token), token.start))
    return found


def _parted(text: str, behind: bool) -> tuple[str, str]:
    """Divide words between two figures into those of the first and those of the second; `behind`: axes follow figures."""
    head = _FIRST.match(text)
    rest = text[head.end() :].strip() if head else ""
    if head and rest and head[0].lower() in _AND:
        return "", rest
    label, rest = label_of(text), rest.strip(" .-_")
    if not behind:
        return "", text
    if head and rest and len(head[0]) <= 3 and label_of(head[0]).role == "side" and label.role != "side":
        return head[0], rest
    return (text, "") if label.role else ("", text)


def _gap_of(scan: Scan, gap: list[Token], previous: _Item | None, last: bool, behind: bool) -> _Gap:
    """Divide the tokens between two measures; `behind`: the axes of the scope follow their figures."""
    if joins := [at for at, token in enumerate(gap) if token.kind == JOIN]:
        # Axes can be on either side of the sign. In `80 x x 40`, `x 40` and `80 x` a figure is missing.
        first = previous is None
        before, after = _segments(scan, gap[: joins[0]]), _segments(scan, gap[joins[-1] + 1 :])
        left = before[0].text if before and not first else ""
        right = after[-1].text if after and not last else ""
        right = right if label_of(right).role else ""
        return _Gap(left, right, joined=not first, missing=len(joins) > 1 or first or last)
    figure = max((at for at, token in enumerate(gap) if token.kind in (OTHER, UNREAD)), default=-1)
    if figure >= 0:
        # Words before a weight or a power belong to it.
        left = ""
        if previous is not None and gap[0].kind == WORDS and (before := _segments(scan, gap[:figure])):
            left = before[0].text
            left = _parted(left, behind)[0] if before[0].closed in _COLONS else left
        return replace(_gap_of(scan, gap[figure + 1 :], None, last, behind), joined=False, left=left)
    segments, kinds = _segments(scan, gap), {token.kind for token in gap}
    if not segments:
        return _Gap(joined=previous is not None and kinds.isdisjoint((*_HARD, *_COLONS)))
    return _worded(gap, segments, kinds, previous, behind)


def _worded(gap: list[Token], segments: list[_Segment], kinds: set[str], previous: _Item | None, behind: bool) -> _Gap:
    """Divide the words between two measures that no sign joins."""
    colon, words = gap[-1].kind in _COLONS, segments[-1].text
    out = _Gap(start=gap[-1].start, colon=colon)
    touching = colon or not segments[-1].closed
    adjacent = previous is not None and gap[0].kind == WORDS
    side = label_of(segments[0].text).side
    # `88 x 84 x 74 cm. Seat height 41`: words after a sequence without axes can belong to the next figure.
    next_one = previous is not None and previous.joined and len(segments) == 1 and side is not None and "_" in side
    open_side = behind and previous is not None and not previous.label.role and not next_one
    if adjacent and len(segments) == 1 and touching:
        out.left, out.right = ("", words) if colon and not open_side else _parted(words, open_side)
        if colon and not out.right:
            out.left, out.right = "", words
    else:
        out.left = segments[0].text if adjacent else ""
        out.right = words if touching else ""
    out.joined = not out.right and previous is not None and kinds.isdisjoint(_HARD)
    before = segments[-2] if len(segments) > 1 and touching else None
    _name(out, segments, before, labelled=not open_side)
    return out


def _name(out: _Gap, segments: list[_Segment], before: _Segment | None, *, labelled: bool) -> None:
    """Divide the words before a figure into its label and the name of its thing.

    `labelled` states that the previous figure has its label, so that all words belong to this figure.
    """
    label, both = label_of(out.right), label_of(f"{before.text} {out.right}") if before else NO_LABEL
    if not label.role:
        if out.right and before and labelled and out.colon and before.closed == "," and both.role:
            out.right, out.left = f"{before.text} {out.right}", ""  # `Seat depth, chaise longue:`
        elif out.right:
            out.name, out.right, out.start = out.right, "", segments[-1].start
        return
    if before is not None and not label_of(before.text).role:
        listed = before.closed == "," and out.colon and both.role == "other" and only_parts(before.text)
        of_seat = before.closed in (":", ",") and both.role == "side" and both.side != label.side
        if listed or of_seat:
            out.right = f"{before.text} {out.right}"
            out.left = "" if before is segments[0] else out.left
            return
        if before.closed == ":":
            out.name, out.start, out.colon = before.text, before.start, True
            out.left = "" if before is segments[0] and not label_of(out.left).role else out.left
            return
    # `TV bench W`: the letter is the axis, the words before it a name.
    last = _LAST.search(out.right)
    if last is not None and len(last[0]) == 1 and last.start():
        head = out.right[: last.start()].rstrip(" -.,")
        words = words_in(head)
        if words and words[-1] not in SEAT | ARM | GENERAL_ENDS:
            out.name, out.right, out.start = head, last[0], segments[-1].start


def _end(item: _Item, text: str) -> None:
    """Apply the words after a measure: its axis, a unit after the axis, or the thing it belongs to."""
    words = words_in(text)
    if item.measure.unit is None and (unit := next(filter(None, map(unit_named, words)), None)):
        item.measure = item.measure._replace(unit=unit)
    if item.label.role or not text:
        return
    label = label_of(text)
    if label.role == "noun":
        head = _FIRST.match(text)
        first = label_of(head[0]) if head else NO_LABEL
        label = first if first.role == "side" else label
    elif not label.role and name_role(text) in ("part", "inner", "pose"):
        label = _OTHER
    elif not label.role and words and words[0] in ("round", "rond", "rund", "redondo"):
        label = Label("side", "diameter")
    if label.role:
        item.label, item.label_text = label, f"{item.label_text} {text}"


@dataclass(slots=True)
class _Clauses:
    """Scopes of a string; `missing` states whether a figure is missing."""

    scopes: list[_Scope] = field(default_factory=lambda: [_Scope()])
    missing: bool = False
    description: str = ""
    order: str = ""

    def enter(self, gap: _Gap, fresh: bool, apart: bool) -> _Scope:
        """Return the scope of a measure, a new one if a name begins it; `apart`: a stop separates it from the previous measure."""
        scope, role = self.scopes[-1], name_role(gap.name)
        if not gap.name:
            side = label_of(gap.right).side
            complete = bool({side, None} & set(scope.seen)) if side else len(scope.seen) > 2
            if apart and complete and scope.role in ("pose", "inner") and not gap.joined:
                self.scopes.append(_Scope())
        elif fresh and not gap.colon and role in ("whole", "piece", "part"):
            self.description = self.description or gap.name
        elif not (fresh and role == "whole"):
            self.scopes.append(_Scope(gap.name, role, start=gap.start))
        return self.scopes[-1]


def _order_in(scan: Scan, tokens: list[Token], last: bool) -> tuple[str, bool, bool]:
    """Return an order of sides between two figures, whether it belongs to the second, and whether it applies in general."""
    for at, token in enumerate(tokens):
        if token.kind == ORDER:
            ahead = not last and all(behind.kind in ("(", ")", *_COLONS) for behind in tokens[at + 1 :])
            words = [before for before in tokens[:at] if before.kind == WORDS]
            general = not words or name_role(scan.text_between(words[0], words[-1])) == "whole"
            return scan.text_between(token, token).strip(ORDER), ahead, general
    return "", False, False


def _clauses(scan: Scan) -> _Clauses:
    """Return the scopes of a scanned string."""
    found, tokens = _Clauses(), scan.without_repeats()
    items: list[_Item] = []
    scoped: list[tuple[_Scope, _Item]] = []
    behind, begin = True, 0
    for index, token in [*((at, token) for at, token in enumerate(tokens) if token.measure), (len(tokens), None)]:
        between, last = tokens[begin:index], token is None
        order, ahead, general = _order_in(scan, between, last)
        between = [one for one in between if one.kind != ORDER]
        begin = index + 1
        gap = _gap_of(scan, between, items[-1] if items else None, last, behind)
        if gap.missing:
            found.missing = True
        if items:
            _end(items[-1], gap.left or (gap.right if last and not gap.colon else ""))
        if order and not ahead and scoped:
            scoped[-1][0].order = scoped[-1][0].order or order
        kinds = [one.kind for one in between]
        if token is None or token.measure is None:
            # A string can end in a label without a figure (`… Height:`).
            dangling = bool(kinds) and kinds[-1] in _COLONS and OTHER not in kinds and UNREAD not in kinds
            found.missing = found.missing or dangling
            break
        bound = "" if gap.colon else bound_of(gap.name)
        label_text = gap.right or gap.name
        gap.name = "" if bound else gap.name
        item = _Item(token.measure, label_text, label_of(gap.right), gap.joined, len(items), not between, bound)
        scope = found.enter(gap, not items, not _APART.isdisjoint(kinds))
        if order and (ahead or not items):
            # An order before any name applies to all scopes.
            scope.order = order
            found.order = order if not items and general else found.order
        behind = behind if gap.joined else not item.label.role
        items.append(item)
        scope.seen.append(item.side)
        scoped.append((scope, item))
    _distribute(scoped)
    if found.description and any(scope.role == "piece" for scope in found.scopes[1:]):
        # If other things have sizes, the words before the first size name the first thing.
        found.scopes[0].name, found.scopes[0].role = found.description, name_role(found.description)
    return found


def _distribute(scoped: list[tuple[_Scope, _Item]]) -> None:
    """Add every measure to its scope, after the words behind it are known.

    Seat measures after a pose belong to the piece; in `min. 65 max. 85 cm height` both figures have the side.
    """
    previous = owner = None
    for at, (scope, item) in enumerate(scoped):
        item.joined = item.joined and scope is previous
        if item.bound == "largest" and item.label.role == "side":
            item.label = replace(item.label, role="largest")
        beyond, following = scoped[at + 1] if at + 1 < len(scoped) else (None, None)
        if following is not None:
            if item.bound == "least" and not item.label.role and following.bound == "largest":
                item.label = replace(following.label, role="side" if following.label.role else "")
            if item.label.role == "noun" and following.joined and beyond is scope:
                # `Table width 30 x depth 20`: the noun before a sequence only names the thing.
                item.label = Label("side", item.side)
        owner = scope if scope.role not in ("pose", "inner") else owner
        seat = item.label.role == "side" and item.side in ("seat_height", "seat_depth", "arm_height")
        (owner if seat and owner is not None else scope).put(item)
        previous = scope


def _units_of(items: Sequence[_Item], shared: str | None) -> list[str | None]:
    """Return the unit of each measure: its own, else that of the next, else of the last, else the shared one."""
    last = next((item.measure.unit for item in reversed(items) if item.measure.unit), shared)
    units: list[str | None] = []
    for item in reversed(items):
        last = item.measure.unit or last
        units.append(last)
    return units[::-1]


def _confirms(first: Sequence[_Item], second: Sequence[_Item], unit: str | None, other: str | None) -> bool:
    """Return whether a sequence repeats the first one, in another unit or in the same words.

    `unit` applies to figures of the first without one, `other` to those of the second.
    """
    if len(first) != len(second):
        return False
    for a, b, unit_a, unit_b in zip(first, second, _units_of(first, unit), _units_of(second, other), strict=True):
        if b.side not in (None, a.side) or unit_a is None or unit_b is None:
            return False
        one, two = a.measure._replace(unit=unit_a), b.measure._replace(unit=unit_b)
        if not (one.value == two.value if unit_a == unit_b else same_length(one, two, None)):
            return False
    return True


def _shared_unit(clauses: _Clauses, column: str | None) -> str | None:
    """Return the unit of figures without one: the only one stated, unless it belongs to a second statement of the size."""
    sequences = [items for scope in clauses.scopes for items in scope.sequences]
    if len(sequences) == 2 and not any(item.measure.unit for item in sequences[0]):
        first, second = sequences
        for unit in (column, "cm", "mm", "in"):
            if unit and _confirms(first, second, unit, column):
                return unit
    named = {item.measure.unit for scope in clauses.scopes for item in scope.items() if item.measure.unit}
    return named.pop() if len(named) == 1 else None


_COUNT_IN_NAME = re.compile(r"(?i)(?:(\d{1,3})\s*x?\s+(.+)|(.+?)\s*x\s?(\d{1,3}))")
_COUNT_NEAR = re.compile(rf"{COUNT}(\d{{1,3}}){COUNT}")
_ROUNDED = 60
"""Maximum difference of two statements of one side, in hundredths of an inch."""
_METRES = 12


@dataclass(slots=True)
class _Reading:
    """State of reading one string; `text` is the cell, for problems, `column` the column's unit."""

    text: str
    scan: Scan
    unit: str | None
    kind: str
    order: str
    decimal: str
    column: str | None
    faults: list[Fault] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)

    def add_problem(self, problem: ProblemKind, what: str) -> None:
        """Add a fault of the whole text."""
        self.faults.append(Fault(problem, f"{quoted(self.text)} {what}."))

    def _several(self) -> None:
        self.add_problem(ProblemKind.CONFLICT, "states more than one size; the first is kept")

    def set_aside(self, items: Sequence[_Item]) -> None:
        """Add figures of other things to the extras, in the vendor's words."""
        for item in items:
            upper = "" if item.measure.upper is None else f"-{item.measure.upper}"
            unit = item.measure.unit or self.unit or ""
            self.extras.append(f"{item.label_text} {item.measure.value}{upper} {unit}".strip())

    def _length(self, item: _Item, unit: str | None) -> Length | None:
        """Return one figure as a length, or None; report a missing unit and implausible values."""
        if unit == "m" and item.measure.unit is None and item.measure.value > _METRES:
            # `183 x 0.91 m`: the metre applies only to the other figure.
            unit = self.column if self.column in METRIC else "cm"
        if unit is None and item.measure.value:
            fault = Fault(ProblemKind.UNKNOWN_UNIT, f"{quoted(self.text)} does not state a unit of length.")
            self.faults.extend([] if fault in self.faults else [fault])
            return None
        parsed = checked(item.measure, unit or "in", self.text, self.decimal)
        self.faults.extend(parsed.faults)
        if item.measure.upper is not None:
            # The upper bound of a range becomes an extra.
            self.set_aside([item])
        return parsed.value

    def _placed(self, items: list[_Item], kind: str, order: str) -> dict[str, Length]:
        """Return the sides of a sequence."""
        own = {item.measure.unit for item in items if item.measure.unit}
        if own & set(METRIC) and not own <= set(METRIC):
            self.add_problem(ProblemKind.CONFLICT, "mixes metric and imperial units")
        if own == {"ft"} and any(item.measure.unit is None and item.measure.value for item in items):
            self.add_problem(
                ProblemKind.CONFLICT, "has figures without a unit beside feet, which could be feet or inches"
            )
        if any(item.blank and item.side is None for item in items[1:]):
            self.add_problem(ProblemKind.CONFLICT, "separates its figures only by blanks")
        units = _units_of(items, self.unit)
        lengths = [self._length(item, unit) for item, unit in zip(items, units, strict=True)]
        if None in lengths and all(item.side is None for item in items):
            # Without letters the position determines the side, so one missing figure makes all sides unknown.
            if not self.faults:
                self.add_problem(ProblemKind.UNREADABLE, "lacks a figure")
            return {}
        found: list[Sided] = [
            (length, item.side) for length, item in zip(lengths, items, strict=True) if length is not None
        ]
        if not found:
            return {}
        *others, final = (item.measure.unit for item in items)
        is_usual = final is not None and not any(others) and self.scan.slashes
        sides: Parsed[Any] = place(found, self.text, kind, order or self.order, is_usual)
        self.faults.extend(sides.faults)
        return sides.value or {}

    def of_scope(self, scope: _Scope) -> dict[str, Length]:
        """Return the sides of a scope: those of its sequences, its seat measures and its maxima."""
        target: dict[str, Length] = {}
        self._extras(scope, target)
        self._sequences(scope, target)
        for item in scope.largest:
            # `Max. height` is used as the height only if no other is stated, and this is reported.
            side = "width" if item.side == "length" else item.side or ""
            if side in target:
                self.set_aside([item])
            elif (length := self._length(item, item.measure.unit or self.unit)) is not None:
                self.add_problem(ProblemKind.CONFLICT, f"states only a maximum {side}")
                target[side] = length
        if "width" not in target and any(_is_one_end(item) for item in scope.extras):
            self.add_problem(ProblemKind.CONFLICT, "states its width for left and right separately")
        return target

    def _sequences(self, scope: _Scope, target: dict[str, Length]) -> None:
        """Add the sides of the first sequence; a later one confirms it, fills free sides or conflicts with it."""
        kind = kind_of_part(scope.name, self.kind) if scope.role in ("piece", "part") else self.kind
        of_part, sequences = of_a_part(scope.name), scope.sequences
        if of_part and len(sequences) == 1 and len(sequences[0]) == 1:
            self.set_aside(sequences.pop())
        lone = [items for items in sequences if len(items) == 1 and items[0].side is None]
        for items in lone if len(lone) < len(sequences) else ():
            sequences.remove(items)
            if of_part:
                self.set_aside(items)
            else:
                self.add_problem(ProblemKind.UNREADABLE, f"does not state what {items[0].measure.value} measures")
        for at, items in enumerate(sequences):
            if at == 0:
                target.update(self._placed(items, kind, scope.order))
            elif _confirms(sequences[0], items, self.unit, self.unit):
                self.set_aside([item for item in items if item.measure.upper is not None])
            elif all(item.side is None for item in items):
                self._several()
            else:
                self._add(target, self._placed(items, kind, scope.order))

    def _extras(self, scope: _Scope, target: dict[str, Length]) -> None:
        """Add seat measures and clearances of a scope; set other figures aside."""
        unit = next((item.measure.unit for item in scope.placed() if item.measure.unit), self.unit)
        for item in scope.extras:
            if item.label.role != "side" or item.side is None:
                self.set_aside([item])
                continue
            length = self._length(item, item.measure.unit or unit)
            if length is not None and target.setdefault(item.side, length) != length:
                side = item.side.replace("_", " ")
                self.add_problem(ProblemKind.CONFLICT, f"states more than one {side}; the first is kept")

    def _add(self, target: dict[str, Length], found: dict[str, Length]) -> None:
        """Fill free sides from a later sequence; another value for a side is a conflict."""
        apart = any(
            abs(target[side]["hundredths_in"] - value["hundredths_in"]) > _ROUNDED
            for side, value in found.items()
            if side in target
        )
        named = target.keys() | found.keys()
        if apart or ("diameter" in named and named & {"width", "depth"}):
            self._several()
        else:
            for side, value in found.items():
                target.setdefault(side, value)

    def _component(self, scope: _Scope, dimensions: Any) -> Component:
        """Return a named piece with the count beside its name (`CHAIR (4)`, `4 x CHAIR`, `(2) chairs`)."""
        near = _COUNT_NEAR.search(self.scan.text, max(0, scope.start - 8), scope.start + len(scope.name) + 8)
        name = piece_name(_COUNT_NEAR.sub("", scope.name).strip(" .,:-"), self.text)
        in_name = _COUNT_IN_NAME.fullmatch(name)
        if in_name:
            name = (in_name[2] or in_name[3]).strip()
        count = near[1] if near else (in_name[1] or in_name[4]) if in_name else "1"
        return {"name": " ".join(name.split()), "quantity": int(count) or 1, "dimensions": dimensions}

    def spread(self, clauses: _Clauses) -> Spread:
        """Return the spread; determine which scopes are the piece itself and which are pieces of a set."""
        for scope in clauses.scopes:
            if kind := seat_or_arm(scope.name):
                # After `Seat:` or `Arm:` the sides are those of the seat or the arm.
                for item in scope.placed():
                    side = f"{kind}_{item.side}"
                    item.label = Label("side", side) if side in ("seat_height", "seat_depth", "arm_height") else _OTHER
                    scope.extras.append(item)
                scope.sequences.clear()
                scope.role = "whole"
        whole, pieces, aside = _ranked(_by_noun(clauses.scopes))
        dimensions: dict[str, Length] = {}
        for scope in whole:
            found = self.of_scope(scope)
            if any(dimensions.get(side, value) != value for side, value in found.items()):
                self._several()
            for side, value in found.items():
                dimensions.setdefault(side, value)
        components = [self._component(scope, found) for scope in pieces if (found := self.of_scope(scope))]
        for scope in aside:
            self.set_aside(scope.items())
        if aside and not dimensions and not components and not self.faults:
            self.add_problem(ProblemKind.UNREADABLE, "does not state a size of the piece itself")
        sides: Any = dimensions
        return Spread(sides, tuple(components), (*self.scan.asides, *self.extras))


def _is_one_end(item: _Item) -> bool:
    words = set(words_in(item.label_text))
    return bool(words & {"left", "right", "links", "rechts"}) and bool(words & {"width", "breite"}) and not words & SEAT


def _by_noun(scopes: list[_Scope]) -> list[_Scope]:
    """Return the scopes with sides labelled by a noun (`Table width`): of the piece if only one thing is named, else of pieces."""
    out: list[_Scope] = []
    for scope in scopes:
        out.append(scope)
        things: dict[str, list[_Item]] = {}
        for item in scope.nouns:
            things.setdefault(item.label.noun, []).append(item)
            item.label = Label("side", item.side)
        placed = scope.placed()
        leads = placed and scope.nouns and max(item.at for item in scope.nouns) < min(item.at for item in placed)
        if len(things) == 1 and leads and not {item.side for item in scope.nouns} & {item.side for item in placed}:
            # `Sofa width: 84, depth: 38`: the noun applies to all figures.
            scope.sequences[0][:0] = scope.nouns
        elif scope.sequences:
            for item in scope.nouns:
                item.label = _OTHER  # figures of another thing
            scope.extras.extend(scope.nouns)
        elif len(things) == 1:
            scope.sequences.extend(things.values())
        else:
            out.extend(_Scope(noun, "piece", sequences=[items]) for noun, items in things.items())
        scope.nouns = []
    return out


def _ranked(scopes: list[_Scope]) -> tuple[list[_Scope], list[_Scope], list[_Scope]]:
    """Return the scopes of the piece itself, those of its pieces, and those set aside."""
    whole, rest, pieces, parts, poses, inner = (
        [scope for scope in scopes if scope.role == role and (scope.sequences or scope.extras or scope.largest)]
        for role in ("whole", "rest", "piece", "part", "pose", "inner")
    )
    aside = poses + inner
    sized = [scope for scope in whole if scope.sequences]
    if rest and (not sized or scopes.index(rest[0]) < scopes.index(sized[0])):
        return rest[:1] + whole, pieces, parts + rest[1:] + aside
    if not sized and len(pieces) == 1:
        return whole + pieces, [], parts + aside
    if not sized and not pieces and parts:
        return (whole + parts, [], aside) if len(parts) == 1 else (whole, parts, aside)
    leaves = [scope for scope in poses if {"leaf", "leaves"} & set(words_in(scope.name)) and scope.sequences]
    if not sized and not pieces and leaves:
        return whole + leaves[:1], [], [scope for scope in aside if scope is not leaves[0]]
    return whole, pieces, parts + rest + aside


_FIGURE = r'([1-9]\d{0,3}(?:\.\d{1,2})?)(?: ([1-9]\d?)/(2|4|8|16))? ?("|in|cm|mm)? ?([WDHL])'
_PLAIN = re.compile(rf'{_FIGURE} ?[xX] ?{_FIGURE}(?: ?[xX] ?{_FIGURE})?(?: ("|in|cm|mm))?')
_LONGEST_PLAIN = 60


def plain_size(text: str, kind: str) -> Dimensions | None:
    """Return the sides of a size in the most common form, or None for all other forms.

        size := number unit axis join number unit axis [join number unit axis]     30 1/2"W X 20"D X 40"H, 80W x 60D x 40H cm

    Axes are W, D, H and L, each once; the unit is on each figure or once at the end. The grammar gives the same result.
    """
    found = _PLAIN.fullmatch(text) if len(text) <= _LONGEST_PLAIN else None
    if found is None:
        return None
    *groups, last = found.groups()
    figures = [groups[at : at + 5] for at in (0, 5, 10) if groups[at + 4]]
    units = {figure[3] for figure in figures}
    if len({figure[4] for figure in figures}) < len(figures) or len(units) > 1 or (None in units) != bool(last):
        return None
    items: list[Sided] = []
    for whole, over, under, mark, axis in figures:
        value = Decimal(whole)
        if over:
            if "." in whole or int(over) >= int(under):
                return None  # `17.5 1/2`, `5 9/8`
            value += Decimal(over) / Decimal(under)
        items.append((measured(value, unit_named(mark or last) or "in"), LETTERS[axis.lower()]))
    sides = place(items, text, kind)
    return None if sides.faults else sides.value


_BLANKS = re.compile(r"[ \t\r\f\v]+")
_HYPHENED = re.compile(r"(?<![\d.,/-])\d{1,4}(?:[.,]\d{1,2})?\s?-\s?\d{1,4}(?:[.,]\d{1,2})?\s?-\s?\d{1,4}(?![\d/-])")
_NEGATIVE = re.compile(r"(?i)(?:^|[\s:=x(,;])-\d")


@lru_cache(maxsize=32768)
def parse_dimensions(
    text: str, unit: str | None = None, kind: str = "", order: str = "", decimal: str = "auto"
) -> Parsed[Spread]:
    """Parse the sides, seat measures and pieces of a dimension string.

    W, D and H take precedence; L beside W without D is the width (on beds the depth); a range gives its first bound; poses,
    shades and leaves never replace the piece. Problems: unreadable, unknown_unit, conflict (sides that are repeated or not
    named, mixed units), out_of_range.

    Args:
        text: The cell.
        unit: The column's unit.
        kind: The kind of the piece (`labels.kind_of`).
        order: The letters in a header (`BHT`), or `TRADE` if the order of the trade can be assumed.
        decimal: The source's decimal mark.
    """
    plain_one = plain_size(text, kind)
    return Parsed(Spread(plain_one)) if plain_one is not None else read_grammar(text, unit, kind, order, decimal)


@cell_parser(longest=2000, kept=0, blank=not_said)
def read_grammar(
    text: str, given: str, unit: str | None = None, kind: str = "", order: str = "", decimal: str = "auto"
) -> Parsed[Spread]:
    """Parse a dimension string by the complete grammar."""
    scan = scanned(_BLANKS.sub(" ", folded(plain(text) if "<" in text else text)), unit)
    reading = _Reading(text, scan, scan.unit, kind, order.lower(), decimal, unit)
    if _HYPHENED.search(scan.text):
        reading.add_problem(ProblemKind.CONFLICT, "joins three figures by hyphens, which could be sides or a range")
    if _NEGATIVE.search(scan.text):
        reading.add_problem(ProblemKind.OUT_OF_RANGE, "contains a negative figure")
    clauses = _clauses(scan)
    reading.order = clauses.order or reading.order
    if scan.unit == unit:
        reading.unit = _shared_unit(clauses, unit) or unit
    spread = reading.spread(clauses)
    if clauses.missing:
        reading.add_problem(ProblemKind.UNREADABLE, "lacks a figure")
    if scan.unread:
        reading.add_problem(ProblemKind.UNREADABLE, f"contains {', '.join(scan.unread[:3])}, which is not a measure")
    faults = tuple(reading.faults)
    if not spread.dimensions and not spread.components:
        return Parsed(None, faults) if faults else unreadable(text, "does not contain a size")
    return Parsed(spread, tuple(dict.fromkeys(faults)))
