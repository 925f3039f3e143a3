"""The tokens of a dimension string: measures, words, the sign between two sides, stops; each figure ends in one of them.

    token   := measure | words | join | stop | order | figure
    measure := see `quantities`
    join    := "x" | "*" | "×" | "by" | "mal" | "per" …      glued to its neighbours or not: `30WX`, `24inx36in`
    stop    := "," | ";" | "|" | newline | "(" | ")" | ":" | "=" | "/" | "-"
    order   := axis sign axis [sign axis] | axis axis axis ")"    `W x D x H:`, `(ШхГхВ)`, `Breite x Tiefe x Höhe`
    axis    := a letter or a word of a side, each once
    figure  := number (unit of another kind | counted noun)   `100 kg`, `3 drawers`, `2-seat`, `(2PC/CTN)`, `E27`

Brackets that hold no size of their own (a unit, an order of sides, a count, a leaf, a pose) are taken out beforehand.
"""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from domain.ingestion.data import pattern
from domain.ingestion.values.labels import (
    LETTERS,
    NEUTRAL,
    bound_of,
    label_of,
    name_role,
    plain_word,
    side_word,
    words_in,
)
from domain.ingestion.values.quantities import Measure, measure_at, same_length, unit_named

MEASURE: Final = "m"
WORDS: Final = "w"
JOIN: Final = "x"
OTHER: Final = "o"
UNREAD: Final = "?"
COUNT: Final = "\x01"
ORDER: Final = "\x02"
STOPS: Final = frozenset(",;|\n():=/-")

_WORD: Final = re.compile(r"[^\W\d_]+(?:['&/._-]+[^\W\d_]+)*+")
_RUN: Final = re.compile(r"[^\W\d_]+")
_NUMBER: Final = re.compile(r"\d|\.\d")
_DIGITS: Final = re.compile(r"[\d.,/]+")
_MEASURED_CODE: Final = re.compile(r"(?i)\d(?:[\"']|cm|mm|in|ft)$")
_ALNUM: Final = re.compile(r"[\w-]*+")
_AXES: Final = r"dia|diam|[wdhlbtpшгвд]"
_AXIS_JOIN: Final = re.compile(rf"(?i)({_AXES})x")
_JOIN_AXIS: Final = re.compile(rf"(?i)x({_AXES})")
_JOIN_WORDS: Final = frozenset("by mal par por per auf op na".split())
_AFTER_JOIN: Final = re.compile(rf"(?i)\s*+(?:\.?\d|(?:{_AXES})\W{{0,3}}\d)")
_NEAR_NUMBER: Final = re.compile(r"[\s.:=]{0,4}\.?\d")
_FOREIGN: Final = re.compile(rf"(?i)\s?(?:{pattern('sizes', 'foreign')})(?![^\W\d_])|\s?[²³%°$€£]")
_HYPHENATED: Final = re.compile(r"(?i)-(?!in\b|inch|ft\b|feet|foot|cm\b|mm\b)[^\W\d_]{2,}")
_NOUN: Final = re.compile(r"\s{0,2}([^\W\d_]{3,})")
_COUNTED: Final = re.compile(
    rf"(?i)\s{{0,2}}(?:{pattern('sizes', 'counted')}|x(?=\s+(?P<thing>[^\W\d_]{{3,}})))(?![^\W\d_])"
)
_TIMES: Final = re.compile(r"(?i)\s?x(?=\s+[^\W\d_]{3})")
_THINGS: Final = re.compile(pattern("sizes", "things"))
_COUNT_AHEAD: Final = re.compile(
    r"(?i)(?:\b(?:of|nr|no|model|style|item|sku|art|qty|quantity|count|pack|von|de|van|x|version|ref)[.:]?\s?|#)$"
)
_TOLERANCE: Final = re.compile(r"(?:\+\s?/\s?-|\+-|±)\s?$")
_LABEL_WORDS: Final = 5
_HEAD: Final = re.compile(r"(?i)([wdhl])(?=[^\W\d_]{3})")
_MADE_OF: Final = re.compile(r"(?i)[1-9][dps](?![\w\"'])(?!\s{0,2}[x*\"'])")
"""`4D` armrests, a `3P` sofa: a digit and a letter outside any sequence are a kind of thing, no size."""
_BRACKET: Final = re.compile(r"\(([^()]*)\)")
_UNIT_LEAD: Final = re.compile(r"(?i)^(?:in|all in|alle in|maße in|en)\s+(?=\w)")
_BARE_COUNT: Final = re.compile(
    r"(?i)\s*(?:x\s*)?(\d{1,3})\s*(?:x|pcs?\.?|pieces?|stk|stück)?\s*|\s*set of (\d{1,3})\s*"
)
_ALL_COUNTS: Final = re.compile(r"(?i)[\s\d]*\d\s*(?:pcs?|pk|sets?|pieces?)?\s*/\s*(?:ctn|carton|box|pack)\.?\s*")
_LEAF: Final = re.compile(r"(?i)leaf|leaves|\d\s*\+|\+\s*\d|auszug|rallonge|extension")
_TRAILING_LEAF: Final = re.compile(
    r"(?i)(?:\+|\bwith|\bw/|\band|\bplus)\s{0,2}(?:\(?\d\)?\s{0,2}x?\s{0,2})?\d[\d ./-]{0,9}\s{0,2}(?:\"|in\.?|inch|cm|mm)?\s{0,2}-?(?:leaf|leaves)\b"
)
_CORNER: Final = re.compile(
    r"(?i)(?<=[^\W\d_])\s+(?:en|em)\s+[LU](?=\s+\d)|\b[LU][ -]?(?:shaped?|förmig\w{0,2}|form)\b"
)
"""The shape of a corner piece, which is no axis."""
_WITH: Final = re.compile(r"(?i)(?<![^\W_])w/(?=\s|[^\W\d_]{3})")
_SLASH: Final = re.compile(r"(?<=[a-zA-Z\"'])\s{0,3}/\s{0,3}(?=[\dWDHLBTwdhlbt])")
_JOINS: Final = re.compile(r"(?<=[\d\"'\sa-zA-Z])[xX*](?=[\s\dWDHLBTwdhlbt])")
_SLASHES: Final = 8
"""How many slashes are looked at: each is weighed against the whole text."""
_UNIT_AHEAD: Final = re.compile(
    r"(?i)(?P<head>[^\d\"']{0,120}?)(?<![^\W_])(?:in\s|en\s|в\s)?(?P<unit>cm|mm|[cz]enti?met(?:er|re)s?|millimet(?:er|re)s?|inch(?:es)?|zoll|см|мм|in(?=\s?:))\.?(?![^\W_])(?=[^\d]{0,40}\d)"
)
"""A unit before the first figure: `Maße in cm: 80x60x40`, `cm 80 x 60`."""
_REPEATED: Final = frozenset((WORDS, "(", "/", "="))

_AXIS_WORD: Final = r"[wdhlbtpшгвд]|br|dia|[^\W\d_]{4,12}"
_ORDERS: Final = (
    re.compile(
        rf"(?i)(?<![^\W_])({_AXIS_WORD})\s{{0,2}}[x*/-]\s{{0,2}}({_AXIS_WORD})(?:\s{{0,2}}[x*/-]\s{{0,2}}({_AXIS_WORD}))?(?![^\W_])"
    ),
    re.compile(r"(?i)(?<![^\W_])([wdhlbtpшгвд])x?([wdhlbtpшгвд])x?([wdhlbtpшгвд])(?=\s{0,2}[):])"),
)
_SEAT_BEHIND: Final = re.compile(r"(?i)(?<![^\W_])(h|[wbtdlp]\s?x\s?[wbtdlp]\s?x\s?h)\s?/\s?sh\b")
_SEAT_FIGURE: Final = re.compile(r"(\d)\s?/\s?(\d{2,3}(?:[.,]\d)?)(?![\d/])")
_ABBREVIATED: Final = re.compile(r"(?i)(?<=[^\W\d_])\.(?=\d{2,4}(?!\d|\s?(?:\"|in)))")
"""A dot that ends a word; before inches it may as well begin a figure (`D.75"`)."""
_DASHED: Final = re.compile(r"(?<![^\W_])([^\W\d_]{1,20})\s?-\s(?=\.?\d)")


def _after_figure(text: str, position: int) -> bool:
    """Whether a figure or its mark stands before `position`."""
    before = text[max(0, position - 4) : position].rstrip()[-1:]
    return before.isdecimal() or before in ('"', "'")


def _initial(word: str) -> str | None:
    """The letter of the side that a word or letter of an order names; `o` is the sign of a diameter."""
    low = plain_word(word)
    side = LETTERS.get(low) or side_word(low)
    return "o" if side == "diameter" else side and side[0]


def _with_orders(text: str) -> str:
    """`text` with each order of sides as its letters between marks.

    What only looks like an order may have another begin inside it (`size - W x D x H`).
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
    """`text` with its labels told from its figures.

    The height of the seat gets its name where it stands behind that of the piece (`BxTxH/SH 60x65x110/45`), the dash behind
    the name of a side (`Width - 80 cm`) becomes a colon, and the dot of `h.75 cm` a blank.
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
    """One token: its kind (a constant above, or the stop itself), where it stands, and the measure if it is one."""

    kind: str
    start: int
    end: int
    measure: Measure | None = None


@dataclass(slots=True)
class Scan:
    """A folded text with its tokens, and what brackets and other figures said beside the sizes; `unit` is the column's."""

    text: str
    unit: str | None = None
    slashes: bool = True
    """Whether a slash parts figures of one side, not sides."""
    tokens: list[Token] = field(default_factory=list)
    asides: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def said(self, first: Token, last: Token) -> str:
        """The text from one token to another."""
        return self.text[first.start : last.end]

    def _add(self, kind: str, start: int, end: int, measure: Measure | None = None) -> int:
        self.tokens.append(Token(kind, start, end, measure))
        return end

    def _follows(self, kind: str) -> bool:
        return bool(self.tokens) and self.tokens[-1].kind == kind

    def _counts(self, start: int, measure: Measure) -> bool:
        """Whether a bare number counts things: `3 drawers`, `2-seat`, `set of 4`, `4 x chair`."""
        text, end = self.text, measure.end
        if measure.value != measure.value.to_integral_value() or measure.value > 999 or measure.upper is not None:
            return False
        counted = _COUNTED.match(text, end)
        if _HYPHENATED.match(text, end) or (counted and side_word(plain_word(counted["thing"] or "")) is None):
            return True
        if _COUNT_AHEAD.search(text, max(0, start - 12), start) and not self._follows(JOIN):
            return True
        if self._follows(WORDS):
            before = self.said(self.tokens[-1], self.tokens[-1])
            # `Depth 12 nch` has a unit misspelt; the letter of `w 2 drawers` is a word.
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
            # A number of what nobody knows: perhaps a unit misspelt.
            self.unread.append(f"{measure.value} {noun[1]}")
        return True

    def _labelled_from(self, start: int) -> int:
        """Where the words begin that label a figure of another kind: `Max. load: 100 kg`."""
        colon = self._follows(":") or self._follows("=")
        at = words = len(self.tokens) - colon
        while at and self.tokens[at - 1].kind == WORDS and words - at < _LABEL_WORDS:
            at -= 1
        if at == words:
            return start
        said = self.said(self.tokens[at], self.tokens[words - 1])
        return self.tokens[at].start if colon or label_of(said).role == "other" else start

    def _number(self, start: int) -> int:
        """Take the number at `start`: a measure, or a figure of another kind."""
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
        """Take letters that belong to the measures beside them: `30WX20`, `24x`, `xW60`, `71"HSTOOL`; False for other words."""
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
        """Take the word at `start`, with what runs together with it taken apart."""
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
            said_like_a_word = (len(run) > 3 and not run.isupper()) or (
                self._follows(MEASURE) and self.tokens[-1].end == start
            )
            if said_like_a_word or _MEASURED_CODE.search(text[start : start + len(whole) + 1]):
                # `e12"` and `Depht2` are measures whose words went wrong, no codes of articles.
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
        """A mark of inches or feet that stands behind its axis (`57H"`): the unit of the measure before, if it has none."""
        for place in range(len(self.tokens) - 1, max(-1, len(self.tokens) - 4), -1):
            token = self.tokens[place]
            if token.measure is not None and token.measure.unit is None:
                measure = token.measure._replace(unit=unit_named(self.text[at]))
                self.tokens[place] = token._replace(measure=measure)
            if token.kind != WORDS:
                return

    def tokenise(self) -> None:
        """Fill `tokens` from the text, in time by its length."""
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
        """What to read in place of a bracket: a count, nothing, its words, or the bracket as it is."""
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
        """The tokens without measures that only repeat the one before them, and without the brackets around those.

        `30"W (76 cm)` and `80 cm / 31.5"` repeat; what begins a sequence does not.
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
    """The tokens of a folded text; `unit` is the column's."""
    text = _with_orders(_labelled(_CORNER.sub(" ", flat)))
    scan = Scan(text, unit)
    if ahead := _UNIT_AHEAD.match(text):
        scan.unit = unit_named(ahead["unit"])
        text = f"{ahead['head']} {text[ahead.end() :]}"
    text = _BRACKET.sub(scan.read_bracket, text)
    scan.asides.extend(match[0] for match in _TRAILING_LEAF.finditer(text))
    text = _TRAILING_LEAF.sub(" ", text)
    # A slash may part two statements of one size: `80 x 40 x 75 cm / 31 x 16 x 30 in`.
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
