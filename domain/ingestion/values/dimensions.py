"""Parser of size texts: the dimensions of an item such as `80 W x 60 D x 40 H`, seat measures, and the sizes of pieces of a set.

    string   := scope*
    scope    := [name [":"]] clause (delimiter clause)*
    clause   := sequence | label [":" | "="] measure | measure label
    sequence := labelled (join labelled)+               `80 W x 60 D x 40 H`, `W 80 x D 60`, `30" x 20" x 40"`
    labelled := letter measure | measure [letter]       letters precede or follow their numbers, the same way in a scope
    name     := words that are not a label              `Table:`, `OVERALL`, `Reclined:`; without a colon only between sizes

`tokenise_size` splits a text into tokens. The tokens between two numbers are divided into the words of the first number, the sign between them,
and the name and the label of the second number. Then each number gets its dimension. No number is lost: it becomes a dimension, a seat measure,
part of a component, an entry of `extras`, or a part of a fault.

The tokens are measures, words, signs between two dimensions, and delimiters such as commas. Every number is part of a token.

    token   := measure | words | join | delimiter | order | figure
    measure := see `quantities`
    join    := "x" | "*" | "×" | "by" | "mal" | "per" …      glued to its neighbours or not: `30WX`, `24inx36in`
    delimiter := "," | ";" | "|" | newline | "(" | ")" | ":" | "=" | "/" | "-"
    order   := letter sign letter [sign letter] | letter letter letter ")"    `W x D x H:`, `(ШхГхВ)`, `Breite x Tiefe x Höhe`
    letter  := a letter or a word for a dimension, each once
    figure  := number (unit of another kind | counted noun)   `100 kg`, `3 drawers`, `2-seat`, `(2PC/CTN)`, `E27`

Brackets that contain no size but a unit, an order of dimensions, a count, a table leaf or another state of the item
(`reclined`) are removed first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from domain.catalogue.data import BundleComponent, Dimensions, Length
from domain.ingestion.data import load_patterns, load_regex_alternatives
from domain.ingestion.values.labels import (
    ARM_WORDS,
    DIMENSION_BY_LETTER,
    EMPTY_LABEL,
    LABEL_WORDS_BEFORE_LETTER,
    NEUTRAL_WORDS,
    SEAT_WORDS,
    LabelledLength,
    NumberLabel,
    assign_dimensions,
    clean_piece_name,
    consists_of_part_words,
    contains_part_word,
    detect_bound,
    determine_name_role,
    determine_piece_kind,
    find_dimension_of_word,
    find_seat_or_arm,
    normalise_word,
    parse_label,
    split_into_plain_words,
)
from domain.ingestion.values.quantities import (
    METRIC_LENGTH_UNITS,
    ParsedMeasure,
    build_measure,
    convert_measure,
    is_same_length,
    normalise_typography,
    parse_length_unit,
    parse_measure_at,
)
from domain.ingestion.values.text import (
    ParseFault,
    ParseResult,
    build_placeholder_result,
    build_unreadable_result,
    cell_parser,
    quote_text,
    strip_markup,
)
from domain.kernel.problems import ProblemKind

# Tokens of a size text.


MEASURE = "m"
WORDS = "w"
JOIN = "x"
OTHER_NUMBER = "o"
UNREADABLE_NUMBER = "?"
COUNT = "\x01"
ORDER = "\x02"
DELIMITERS = frozenset(",;|\n():=/-")

_WORD = re.compile(r"[^\W\d_]+(?:['&/._-]+[^\W\d_]+)*+")
_LETTER_RUN = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d|\.\d")
_DIGITS = re.compile(r"[\d.,/]+")
_MEASURED_CODE = re.compile(r"(?i)\d(?:[\"']|cm|mm|in|ft)$")
_ALNUM = re.compile(r"[\w-]*+")
_DIMENSION_ABBREVIATIONS = r"dia|diam|[wdhlbtpшгвд]"
_ABBREVIATION_AND_JOIN = re.compile(rf"(?i)({_DIMENSION_ABBREVIATIONS})x")
_JOIN_AND_ABBREVIATION = re.compile(rf"(?i)x({_DIMENSION_ABBREVIATIONS})")
_JOIN_WORDS = frozenset("by mal par por per auf op na".split())
_AFTER_JOIN = re.compile(rf"(?i)\s*+(?:\.?\d|(?:{_DIMENSION_ABBREVIATIONS})\W{{0,3}}\d)")
_NEAR_NUMBER = re.compile(r"[\s.:=]{0,4}\.?\d")
_OTHER_UNIT = re.compile(rf"(?i)\s?(?:{load_regex_alternatives('sizes', 'other_units')})(?![^\W\d_])|\s?[²³%°$€£]")
_HYPHENATED = re.compile(r"(?i)-(?!in\b|inch|ft\b|feet|foot|cm\b|mm\b)[^\W\d_]{2,}")
_NOUN = re.compile(r"\s{0,2}([^\W\d_]{3,})")
_COUNTED = re.compile(
    rf"(?i)\s{{0,2}}(?:{load_regex_alternatives('sizes', 'count_words')}|x(?=\s+(?P<thing>[^\W\d_]{{3,}})))(?![^\W\d_])"
)
_TIMES = re.compile(r"(?i)\s?x(?=\s+[^\W\d_]{3})")
_COUNTED_THINGS = re.compile(load_regex_alternatives("sizes", "counted_things"))
(_COUNT_PREFIX, _ALL_COUNTS, _LEAF, _TRAILING_LEAF, _UNIT_PREFIX) = (
    load_patterns("sizes")[name] for name in "count_prefix all_counts leaf trailing_leaf unit_prefix".split()
)
_TOLERANCE = re.compile(r"(?:\+\s?/\s?-|\+-|±)\s?$")
_LABEL_WORDS = 5
_JOINED_DIMENSION_LETTER = re.compile(r"(?i)([wdhl])(?=[^\W\d_]{3})")
_PRODUCT_CODE = re.compile(r"(?i)[1-9][dps](?![\w\"'])(?!\s{0,2}[x*\"'])")
"""Pattern of a digit and a letter outside a sequence, which describe a product (`4D` armrests, a `3P` sofa) and not a size."""
_BRACKET = re.compile(r"\(([^()]*)\)")
_UNIT_LEAD = re.compile(r"(?i)^(?:in|all in|alle in|maße in|en)\s+(?=\w)")
_BARE_COUNT = re.compile(r"(?i)\s*(?:x\s*)?(\d{1,3})\s*(?:x|pcs?\.?|pieces?|stk|stück)?\s*|\s*set of (\d{1,3})\s*")
_CORNER_SHAPE = re.compile(r"(?i)(?<=[^\W\d_])\s+(?:en|em)\s+[LU](?=\s+\d)|\b[LU][ -]?(?:shaped?|förmig\w{0,2}|form)\b")
"""Pattern of the shape of a corner sofa (`L-shaped`), which is not the letter of a dimension."""
_WITH = re.compile(r"(?i)(?<![^\W_])w/(?=\s|[^\W\d_]{3})")
_SLASH = re.compile(r"(?<=[a-zA-Z\"'])\s{0,3}/\s{0,3}(?=[\dWDHLBTwdhlbt])")
_JOINS = re.compile(r"(?<=[\d\"'\sa-zA-Z])[xX*](?=[\s\dWDHLBTwdhlbt])")
_MAX_SLASHES = 8
"""Maximum number of slashes that are examined as separators of two notations; further slashes are not.

Each examination takes time in proportion to the length of the text.
"""
_REPEATED = frozenset((WORDS, "(", "/", "="))

_DIMENSION_WORD = r"[wdhlbtpшгвд]|br|dia|[^\W\d_]{4,12}"
_ORDERS = (
    re.compile(
        rf"(?i)(?<![^\W_])({_DIMENSION_WORD})\s{{0,2}}[x*/-]\s{{0,2}}({_DIMENSION_WORD})(?:\s{{0,2}}[x*/-]\s{{0,2}}({_DIMENSION_WORD}))?(?![^\W_])"
    ),
    re.compile(r"(?i)(?<![^\W_])([wdhlbtpшгвд])x?([wdhlbtpшгвд])x?([wdhlbtpшгвд])(?=\s{0,2}[):])"),
)
_SEAT_HEIGHT_AFTER_ORDER = re.compile(r"(?i)(?<![^\W_])(h|[wbtdlp]\s?x\s?[wbtdlp]\s?x\s?h)\s?/\s?sh\b")
_SEAT_HEIGHT_AFTER_SIZE = re.compile(r"(\d)\s?/\s?(\d{2,3}(?:[.,]\d)?)(?![\d/])")
_ABBREVIATION_DOT = re.compile(r"(?i)(?<=[^\W\d_])\.(?=\d{2,4}(?!\d|\s?(?:\"|in)))")
"""Pattern of the dot of an abbreviation directly before a number (`h.75`).

Before inches, a dot is not matched, because the dot can begin the number (`D.75"`).
"""
_DASHED = re.compile(r"(?<![^\W_])([^\W\d_]{1,20})\s?-\s(?=\.?\d)")


def _follows_number(text: str, position: int) -> bool:
    """Return whether a number, possibly with a mark of feet or inches, ends directly before a position."""
    before = text[max(0, position - 4) : position].rstrip()[-1:]
    return before.isdecimal() or before in ('"', "'")


def _find_dimension_letter(word: str) -> str | None:
    """Return the letter (`w`, `d`, `h`, `l`, or `o` for the diameter) of the dimension that a word names, or None."""
    low = normalise_word(word)
    side = DIMENSION_BY_LETTER.get(low) or find_dimension_of_word(low)
    return "o" if side == "diameter" else side and side[0]


def _mark_dimension_orders(text: str) -> str:
    """Replace each order of dimensions (`W x D x H`) in a text by its letters between two ORDER characters."""
    for order in _ORDERS:
        # An order can begin inside a text that only resembles one (`size - W x D x H`).
        out: list[str] = []
        at = kept = 0
        while match := order.search(text, at):
            letters = [_find_dimension_letter(word) for word in match.groups() if word]
            if None in letters or len(set(letters)) != len(letters) or _follows_number(text, match.start()):
                at = match.end(1)
                continue
            out += [text[kept : match.start()], f" {ORDER}{''.join(filter(None, letters))}{ORDER} "]
            at = kept = match.end()
        text = "".join((*out, text[kept:]))
    return text


def _separate_labels(text: str) -> str:
    """Separate labels from numbers in a text.

    A seat height after the height of the item gets a label (`BxTxH/SH 60x65x110/45`). A dash after the name of a dimension (`Width - 80 cm`)
    becomes a colon, and the dot in `h.75 cm` becomes a space.
    """
    if "/" in text:
        text = _WITH.sub("with ", text)
        if _SEAT_HEIGHT_AFTER_ORDER.search(text):
            text = _SEAT_HEIGHT_AFTER_SIZE.sub(
                r"\1, seat height \2", _SEAT_HEIGHT_AFTER_ORDER.sub(r"\1", text), count=1
            )

    def replace_dash(match: re.Match[str]) -> str:
        is_label = parse_label(match[1]).role == "dimension" and not _follows_number(match.string, match.start())
        return f"{match[1]}: " if is_label else match[0]

    return _DASHED.sub(replace_dash, _ABBREVIATION_DOT.sub(" ", text))


class SizeToken(NamedTuple):
    """Token of a size text.

    Attributes:
        kind: A constant such as MEASURE or WORDS, or the character of a delimiter.
        start: The position where the token starts.
        end: The position where the token ends.
        measure: The measure, or None for other tokens.
    """

    kind: str
    start: int
    end: int
    measure: ParsedMeasure | None = None


@dataclass(slots=True)
class TokenisedText:
    """Size text with its tokens.

    Attributes:
        text: The text after `normalise_typography`.
        default_unit: The unit of the column or of the complete text, or None.
        slash_separates_alternatives: Whether a slash separates numbers for the same dimension; if not, it separates different dimensions.
        tokens: The tokens, filled by `tokenise`.
        other_texts: Texts that are not sizes: some texts in brackets, and numbers with other units.
        unread_texts: Texts that could not be parsed.
    """

    text: str
    default_unit: str | None = None
    slash_separates_alternatives: bool = True
    tokens: list[SizeToken] = field(default_factory=list)
    other_texts: list[str] = field(default_factory=list)
    unread_texts: list[str] = field(default_factory=list)

    def text_between(self, first: SizeToken, last: SizeToken) -> str:
        """Return the part of the text from the start of one token to the end of another."""
        return self.text[first.start : last.end]

    def _add_token(self, kind: str, start: int, end: int, measure: ParsedMeasure | None = None) -> int:
        """Add a token and return the position where it ends."""
        self.tokens.append(SizeToken(kind, start, end, measure))
        return end

    def _last_token_is(self, kind: str) -> bool:
        """Return whether the last token added so far is of a kind."""
        return bool(self.tokens) and self.tokens[-1].kind == kind

    def _is_count(self, start: int, measure: ParsedMeasure) -> bool:
        """Return whether a number without a unit is a count: `3 drawers`, `2-seat`, `set of 4`, `4 x chair`."""
        text, end = self.text, measure.end
        if measure.value != measure.value.to_integral_value() or measure.value > 999 or measure.upper_bound is not None:
            return False
        counted = _COUNTED.match(text, end)
        if _HYPHENATED.match(text, end) or (
            counted and find_dimension_of_word(normalise_word(counted["thing"] or "")) is None
        ):
            return True
        if _COUNT_PREFIX.search(text, max(0, start - 12), start) and not self._last_token_is(JOIN):
            return True
        if self._last_token_is(WORDS):
            before = self.text_between(self.tokens[-1], self.tokens[-1])
            # `Depth 12 nch` has a misspelt unit; the letter in `w 2 drawers` is a word.
            if len(before) > 1 and parse_label(before).role == "dimension":
                return False
        noun = _NOUN.match(text, end)
        if noun is None or self._last_token_is(JOIN) or self._last_token_is(":"):
            return False
        word = normalise_word(noun[1])
        measures = (
            find_dimension_of_word(word) or word in NEUTRAL_WORDS or detect_bound(word) or parse_length_unit(word)
        )
        if measures or parse_label(word).role in ("dimension", "noun"):
            return False
        if not _COUNTED_THINGS.match(word):
            # A number of unknown things, perhaps with a misspelt unit.
            self.unread_texts.append(f"{measure.value} {noun[1]}")
        return True

    def _find_label_start(self, start: int) -> int:
        """Return the position where the label of a number that is not a size begins (`Max. load: 100 kg`).

        Args:
            start: The position of the number, which is returned if there is no such label.
        """
        colon = self._last_token_is(":") or self._last_token_is("=")
        at = words = len(self.tokens) - colon
        while at and self.tokens[at - 1].kind == WORDS and words - at < _LABEL_WORDS:
            at -= 1
        if at == words:
            return start
        label_text = self.text_between(self.tokens[at], self.tokens[words - 1])
        return self.tokens[at].start if colon or parse_label(label_text).role == "other" else start

    def _read_number(self, start: int) -> int:
        """Read the number at a position, add its token, and return the position after it."""
        text = self.text
        if (kind := _PRODUCT_CODE.match(text, start)) and not self._last_token_is(JOIN):
            self.other_texts.append(kind[0])
            return kind.end()
        measure = parse_measure_at(text, start, self.default_unit, self.slash_separates_alternatives)
        if measure is None:
            digits = _DIGITS.match(text, start)
            end = digits.end() if digits else start + 1
            self.unread_texts.append(text[start:end])
            return self._add_token(UNREADABLE_NUMBER, start, end)
        foreign = _OTHER_UNIT.match(text, measure.end) if measure.unit is None else None
        if foreign and foreign[0].strip().lower() != "f":
            self.other_texts.append(text[self._find_label_start(start) : foreign.end()].strip())
            return self._add_token(OTHER_NUMBER, start, foreign.end())
        if _TOLERANCE.search(text, max(0, start - 6), start):
            return measure.end
        if measure.unit is None and self._is_count(start, measure):
            noun = _HYPHENATED.match(text, measure.end) or _TIMES.match(text, measure.end)
            return self._add_token(WORDS, start, noun.end() if noun else measure.end)
        return self._add_token(MEASURE, start, measure.end, measure)

    def _read_joined_letters(self, letters: str, start: int, end: int) -> bool:
        """Add the tokens of letters that are joined with numbers (`30WX20`, `24x`, `xW60`); return False for other words."""
        text, follows_measure = self.text, self._last_token_is(MEASURE)
        abbreviation_and_join = _ABBREVIATION_AND_JOIN.fullmatch(letters)
        if letters in ("x", "X"):
            self._add_token(JOIN, start, end)
        elif abbreviation_and_join and (_AFTER_JOIN.match(text, end) or follows_measure):
            self._add_token(WORDS, start, end - 1)
            self._add_token(JOIN, end - 1, end)
        elif (_JOIN_AND_ABBREVIATION.fullmatch(letters) and _NEAR_NUMBER.match(text, end)) or (
            letters[:1] in "xX"
            and not text[end : end + 1].isdigit()
            and follows_measure
            and parse_label(letters[1:]).role
        ):
            self._add_token(JOIN, start, start + 1)
            self._add_token(WORDS, start + 1, end)
        elif (
            follows_measure
            and self.tokens[-1].end == start
            and _JOINED_DIMENSION_LETTER.match(letters)
            and not parse_label(letters).role
        ):
            self._add_token(WORDS, start, start + 1)
            self._add_token(",", start + 1, start + 1)
            self._add_token(WORDS, start + 1, end)
        else:
            return False
        return True

    def _read_word(self, start: int) -> int:
        """Read the word at a position, add its tokens, and return the position after it."""
        text = self.text
        found = _LETTER_RUN.match(text, start)
        assert found is not None
        letters, end = found[0], found.end()
        if self._read_joined_letters(letters, start, end):
            return end
        before_digit, low = text[end : end + 1].isdigit(), normalise_word(letters)
        if before_digit and not (low in DIMENSION_BY_LETTER or low == "x" or parse_label(low).role == "dimension"):
            code = _ALNUM.match(text, end)
            whole = text[start : code.end()] if code else letters
            is_like_word = (len(letters) > 3 and not letters.isupper()) or (
                self._last_token_is(MEASURE) and self.tokens[-1].end == start
            )
            if is_like_word or _MEASURED_CODE.search(text[start : start + len(whole) + 1]):
                # `e12"` and `Depht2` are measures with misspelt words, not article codes.
                self.unread_texts.append(whole)
            if not re.search(r"(?i)\dx\d", whole):
                return self._add_token(WORDS, start, start + len(whole))
        if letters.lower() in _JOIN_WORDS and self.tokens and _AFTER_JOIN.match(text, end):
            return self._add_token(JOIN, start, end)
        word = None if before_digit else _WORD.match(text, start)
        if word and not text[word.end() : word.end() + 1].isdigit():
            end = word.end()
        return self._add_token(WORDS, start, end)

    def _apply_unit_mark(self, position: int) -> None:
        """Set the unit of the previous number from a mark of inches or feet after its letter (`57H"`)."""
        for index in range(len(self.tokens) - 1, max(-1, len(self.tokens) - 4), -1):
            token = self.tokens[index]
            if token.measure is not None and token.measure.unit is None:
                measure = token.measure._replace(unit=parse_length_unit(self.text[position]))
                self.tokens[index] = token._replace(measure=measure)
            if token.kind != WORDS:
                return

    def tokenise(self) -> None:
        """Split the text into `tokens`."""
        # The time is linear in the length of the text.
        text, position, size = self.text, 0, len(self.text)
        while position < size:
            char = text[position]
            if char.isspace() and char != "\n":
                position += 1
            elif _NUMBER.match(text, position):
                position = self._read_number(position)
            elif char.isalpha():
                position = self._read_word(position)
            elif char == COUNT:
                position = text.find(COUNT, position + 1) + 1 or size
            elif char == ORDER:
                position = self._add_token(ORDER, position, text.find(ORDER, position + 1) + 1 or size)
            elif char == "*":
                position = self._add_token(JOIN, position, position + 1)
            else:
                if char in DELIMITERS:
                    self._add_token(char, position, position + 1)
                elif char in "\"'":
                    self._apply_unit_mark(position)
                position += 1

    def replace_bracket(self, match: re.Match[str]) -> str:
        """Interpret a text in brackets, and return the replacement.

        An order of dimensions and the name of a dimension lose the brackets. A bare count (`4 pcs`, `set of 4`) is put
        between two COUNT characters, except directly after a number. A unit becomes `default_unit` and is removed;
        other texts without a number are removed as well. Counts of pieces per box, table leaves and other states of the
        item move to `other_texts`. Everything else, such as a size, stays unchanged.
        """
        inside = match[1].strip(" .:")
        if ORDER in inside:
            return f" {inside} "
        if unit := parse_length_unit(_UNIT_LEAD.sub("", inside)):
            self.default_unit = unit
            return " "
        if count := _BARE_COUNT.fullmatch(match[1]):
            is_behind = _follows_number(match.string, match.start())
            return match[0] if is_behind else f" {COUNT}{count[1] or count[2]}{COUNT} "
        if not re.search(r"\d", inside):
            return f" {inside} " if parse_label(inside).role == "dimension" else " "
        is_other_state = ":" not in inside and (
            determine_name_role(inside) == "other_state" or "up" in split_into_plain_words(inside)
        )
        if _ALL_COUNTS.fullmatch(match[1]) or _LEAF.search(inside) or is_other_state:
            self.other_texts.append(inside)
            return " "
        return match[0]

    def remove_repetitions(self) -> list[SizeToken]:
        """Return the tokens, except measures that repeat the previous measure in another unit (`30"W (76 cm)`).

        A measure that begins a sequence of dimensions is not a repetition.
        """
        kept: list[SizeToken] = []
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
                    and is_same_length(before, token.measure, self.default_unit)
                ):
                    following = (one.kind for one in self.tokens[at + 1 : at + 4] if one.kind != WORDS)
                    if next(following, "") != JOIN:
                        continue
                last = len(kept)
            kept.append(token)
        return kept


def tokenise_size(normalised: str, unit: str | None = None) -> TokenisedText:
    """Split a size text into tokens."""
    text = _mark_dimension_orders(_separate_labels(_CORNER_SHAPE.sub(" ", normalised)))
    tokenised = TokenisedText(text, unit)
    if ahead := _UNIT_PREFIX.match(text):
        tokenised.default_unit = parse_length_unit(ahead["unit"])
        text = f"{ahead['head']} {text[ahead.end() :]}"
    text = _BRACKET.sub(tokenised.replace_bracket, text)
    tokenised.other_texts.extend(match[0] for match in _TRAILING_LEAF.finditer(text))
    text = _TRAILING_LEAF.sub(" ", text)
    # A slash can separate two notations of one size: `80 x 40 x 75 cm / 31 x 16 x 30 in`.
    for slash in islice(_SLASH.finditer(text), _MAX_SLASHES):
        before, behind = text[: slash.start()], text[slash.end() :]
        if 0 < len(_JOINS.findall(before)) == len(_JOINS.findall(behind)):
            text = f"{before} | {behind}"
            break
    tokenised.text = text
    slashed = re.search(r"\d[^\w/]*/\s*\d[^/x]*/\s*\d", text)
    tokenised.slash_separates_alternatives = not slashed or re.search(r"(?i)\d\W{0,3}[x*]\W{0,3}\d", text) is not None
    tokenised.tokenise()
    return tokenised


_SEQUENCE_DELIMITERS = frozenset(";|\n()")
_CLAUSE_DELIMITERS = frozenset(";|\n")
_COLONS = (":", "=")
_CONJUNCTIONS = frozenset("et und and y og och ja oraz и".split())
"""Words for "and" before the label of the next number: `49 x 43 cm et hauteur 75 cm`."""
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_OTHER = NumberLabel("other")


@dataclass(frozen=True, slots=True)
class ParsedSize:
    """Parsed content of a size text.

    Attributes:
        dimensions: The dimensions of the item.
        components: The pieces of a set that the text names, with their dimensions.
        extras: Measures without a field, in the vendor's words: `Seat width: 20"`, `EXTENDED: 65"W`, `100 kg`.
    """

    dimensions: Dimensions
    components: tuple[BundleComponent, ...] = ()
    extras: tuple[str, ...] = ()


@dataclass(slots=True)
class _LabelledMeasure:
    """Number in a size text with the words next to it.

    Attributes:
        measure: The number with its unit.
        label_text: The words next to the number.
        label: The meaning of these words.
        continues_sequence: Whether the number continues the sequence of the previous number (`80 x 60`).
        index: The index of the number among all numbers of the text, from 0.
        follows_space: Whether only a space separates the number from the previous one.
        bound: `max` after words for a maximum (`up to`), `min` after words for a minimum (`from`), else an empty string.
    """

    measure: ParsedMeasure
    label_text: str
    label: NumberLabel
    continues_sequence: bool
    index: int
    follows_space: bool
    bound: str

    @property
    def dimension(self) -> str | None:
        """The dimension that the label names, or None."""
        return self.label.dimension


@dataclass(slots=True)
class _NamedMeasures:
    """Measures after one name in a size text, such as `Table: 80 x 60`.

    Attributes:
        name: The name, or an empty string.
        role: The role of the name (`labels.determine_name_role`).
        order: The order of dimensions in the text for this name, as letters such as `wdh`.
        start: The position of the name in the text.
        sequences: Sequences of dimensions (`80 x 60 x 40`).
        extras: Measures of the seat and arms, clearances, and measures that are not dimensions of the item.
        maxima: Maxima (`Max. height`).
        measures_with_nouns: Dimensions whose label contains a noun (`Table width`).
        dimensions_so_far: The dimension of each measure so far; None for a measure without a dimension.
    """

    name: str = ""
    role: str = "whole"
    order: str = ""
    start: int = 0
    sequences: list[list[_LabelledMeasure]] = field(default_factory=list)
    extras: list[_LabelledMeasure] = field(default_factory=list)
    maxima: list[_LabelledMeasure] = field(default_factory=list)
    measures_with_nouns: list[_LabelledMeasure] = field(default_factory=list)
    dimensions_so_far: list[str | None] = field(default_factory=list)

    def list_sequence_measures(self) -> list[_LabelledMeasure]:
        """Return the measures of all sequences of numbers, such as `80 x 60`."""
        return [item for items in self.sequences for item in items]

    def list_measures(self) -> list[_LabelledMeasure]:
        """Return all measures: of sequences, extras, maxima and measures with nouns."""
        return self.list_sequence_measures() + self.extras + self.maxima + self.measures_with_nouns

    def add_measure(self, labelled: _LabelledMeasure) -> None:
        """Add a measure to the list that its label determines."""
        role, side = labelled.label.role, labelled.dimension or ""
        if role in ("other", "max", "noun") or "_" in side or side == "clearance":
            {"max": self.maxima, "noun": self.measures_with_nouns}.get(role, self.extras).append(labelled)
            return
        target = self.sequences[-1] if labelled.continues_sequence and self.sequences else None
        if target is None and side:
            free = (items for items in self.sequences if all(one.dimension not in (None, side) for one in items))
            target = next(free, None)
        if target is None:
            self.sequences.append([labelled])
        else:
            target.append(labelled)


@dataclass(slots=True)
class _WordGroup:
    """Words between two delimiters such as commas.

    Attributes:
        text: The words.
        start: The position of the words in the text.
        following_delimiter: The delimiter after the words, or an empty string if none follows.
    """

    text: str
    start: int
    following_delimiter: str = ""


@dataclass(slots=True)
class _Gap:
    """Text between two measures, divided into the words for each of them.

    Attributes:
        words_of_first: The words that belong to the first measure.
        label_of_second: The words that are the label of the second measure.
        name: The name before the second measure, such as `Table:`.
        ends_with_colon: Whether a colon precedes the second measure.
        is_within_sequence: Whether both measures belong to one sequence.
        lacks_number: Whether a number is missing, as in `80 x x 40`.
        name_start: The position of the name.
    """

    words_of_first: str = ""
    label_of_second: str = ""
    name: str = ""
    ends_with_colon: bool = False
    is_within_sequence: bool = False
    lacks_number: bool = False
    name_start: int = 0


def _split_at_delimiters(tokenised: TokenisedText, tokens: list[SizeToken]) -> list[_WordGroup]:
    """Return the groups of words in the tokens, which delimiters such as commas separate."""
    found: list[_WordGroup] = []
    for at, token in enumerate(tokens):
        if token.kind != WORDS:
            if found and not found[-1].following_delimiter:
                found[-1].following_delimiter = token.kind
        elif found and tokens[at - 1].kind == WORDS:
            found[-1].text = tokenised.text[found[-1].start : token.end]
        else:
            found.append(_WordGroup(tokenised.text_between(token, token), token.start))
    return found


def _divide_words(words: str, letters_follow_numbers: bool) -> tuple[str, str]:
    """Divide the words between two measures into words of the first measure and words of the second.

    Args:
        words: The words.
        letters_follow_numbers: Whether the letters of dimensions follow the numbers (`80 W`).
    """
    head = _FIRST_WORD.match(words)
    rest = words[head.end() :].strip() if head else ""
    if head and rest and head[0].lower() in _CONJUNCTIONS:
        return "", rest
    label, rest = parse_label(words), rest.strip(" .-_")
    if not letters_follow_numbers:
        return "", words
    if head and rest and len(head[0]) <= 3 and parse_label(head[0]).role == "dimension" and label.role != "dimension":
        return head[0], rest
    return (words, "") if label.role else ("", words)


def _divide_tokens(
    tokenised: TokenisedText,
    tokens: list[SizeToken],
    previous: _LabelledMeasure | None,
    is_at_end: bool,
    letters_follow_numbers: bool,
) -> _Gap:
    """Divide the tokens between two measures into the words for each of them.

    Args:
        tokenised: The size text with its tokens.
        tokens: The tokens between the measures.
        previous: The first measure, or None at the start of the text.
        is_at_end: Whether the tokens are at the end of the text, so that there is no second measure.
        letters_follow_numbers: Whether the letters of dimensions follow the numbers (`80 W`).
    """
    if joins := [at for at, token in enumerate(tokens) if token.kind == JOIN]:
        # Letters of dimensions can be on either side of the sign. In `80 x x 40`, `x 40` and `80 x` a number is missing.
        first = previous is None
        before, after = (
            _split_at_delimiters(tokenised, tokens[: joins[0]]),
            _split_at_delimiters(tokenised, tokens[joins[-1] + 1 :]),
        )
        left = before[0].text if before and not first else ""
        right = after[-1].text if after and not is_at_end else ""
        right = right if parse_label(right).role else ""
        return _Gap(left, right, is_within_sequence=not first, lacks_number=len(joins) > 1 or first or is_at_end)
    other_number = max(
        (at for at, token in enumerate(tokens) if token.kind in (OTHER_NUMBER, UNREADABLE_NUMBER)), default=-1
    )
    if other_number >= 0:
        # Words before a weight or a power belong to it.
        left = ""
        if (
            previous is not None
            and tokens[0].kind == WORDS
            and (before := _split_at_delimiters(tokenised, tokens[:other_number]))
        ):
            left = before[0].text
            left = _divide_words(left, letters_follow_numbers)[0] if before[0].following_delimiter in _COLONS else left
        return replace(
            _divide_tokens(tokenised, tokens[other_number + 1 :], None, is_at_end, letters_follow_numbers),
            is_within_sequence=False,
            words_of_first=left,
        )
    word_groups, kinds = _split_at_delimiters(tokenised, tokens), {token.kind for token in tokens}
    if not word_groups:
        return _Gap(is_within_sequence=previous is not None and kinds.isdisjoint((*_SEQUENCE_DELIMITERS, *_COLONS)))
    return _divide_words_without_join(tokens, word_groups, kinds, previous, letters_follow_numbers)


def _divide_words_without_join(
    tokens: list[SizeToken],
    word_groups: list[_WordGroup],
    kinds: set[str],
    previous: _LabelledMeasure | None,
    letters_follow_numbers: bool,
) -> _Gap:
    """Divide the words between two measures without a multiplication sign between them.

    Args:
        tokens: The tokens between the measures.
        word_groups: The words of these tokens, separated by delimiters.
        kinds: The kinds of these tokens.
        previous: The first measure, or None at the start of the text.
        letters_follow_numbers: Whether the letters of dimensions follow the numbers (`80 W`).
    """
    colon, words = tokens[-1].kind in _COLONS, word_groups[-1].text
    gap = _Gap(name_start=tokens[-1].start, ends_with_colon=colon)
    reaches_measure = colon or not word_groups[-1].following_delimiter
    adjacent = previous is not None and tokens[0].kind == WORDS
    side = parse_label(word_groups[0].text).dimension
    # `88 x 84 x 74 cm. Seat height 41`: words after a sequence without letters can belong to the next number.
    belongs_to_next = (
        previous is not None
        and previous.continues_sequence
        and len(word_groups) == 1
        and side is not None
        and "_" in side
    )
    lacks_side = letters_follow_numbers and previous is not None and not previous.label.role and not belongs_to_next
    if adjacent and len(word_groups) == 1 and reaches_measure:
        gap.words_of_first, gap.label_of_second = (
            ("", words) if colon and not lacks_side else _divide_words(words, lacks_side)
        )
        if colon and not gap.label_of_second:
            gap.words_of_first, gap.label_of_second = "", words
    else:
        gap.words_of_first = word_groups[0].text if adjacent else ""
        gap.label_of_second = words if reaches_measure else ""
    gap.is_within_sequence = not gap.label_of_second and previous is not None and kinds.isdisjoint(_SEQUENCE_DELIMITERS)
    before = word_groups[-2] if len(word_groups) > 1 and reaches_measure else None
    _divide_label_and_name(gap, word_groups, before, previous_has_label=not lacks_side)
    return gap


def _divide_label_and_name(
    gap: _Gap, word_groups: list[_WordGroup], preceding: _WordGroup | None, *, previous_has_label: bool
) -> None:
    """Divide the words before a measure into a name and the label of the measure.

    Args:
        gap: The gap, which is changed.
        word_groups: The words of the gap, separated by delimiters.
        preceding: The words before the last delimiter, or None.
        previous_has_label: Whether the previous measure already has a label, so that all words belong to this measure.
    """
    label, both = (
        parse_label(gap.label_of_second),
        parse_label(f"{preceding.text} {gap.label_of_second}") if preceding else EMPTY_LABEL,
    )
    if not label.role:
        if (
            gap.label_of_second
            and preceding
            and previous_has_label
            and gap.ends_with_colon
            and preceding.following_delimiter == ","
            and both.role
        ):
            gap.label_of_second, gap.words_of_first = (
                f"{preceding.text} {gap.label_of_second}",
                "",
            )  # `Seat depth, chaise longue:`
        elif gap.label_of_second:
            gap.name, gap.label_of_second, gap.name_start = gap.label_of_second, "", word_groups[-1].start
        return
    if preceding is not None and not parse_label(preceding.text).role:
        listed = (
            preceding.following_delimiter == ","
            and gap.ends_with_colon
            and both.role == "other"
            and consists_of_part_words(preceding.text)
        )
        of_seat = (
            preceding.following_delimiter in (":", ",")
            and both.role == "dimension"
            and both.dimension != label.dimension
        )
        if listed or of_seat:
            gap.label_of_second = f"{preceding.text} {gap.label_of_second}"
            gap.words_of_first = "" if preceding is word_groups[0] else gap.words_of_first
            return
        if preceding.following_delimiter == ":":
            gap.name, gap.name_start, gap.ends_with_colon = preceding.text, preceding.start, True
            gap.words_of_first = (
                "" if preceding is word_groups[0] and not parse_label(gap.words_of_first).role else gap.words_of_first
            )
            return
    # `TV bench W`: the letter names the dimension, the words before the letter are a name.
    last = _LAST_WORD.search(gap.label_of_second)
    if last is not None and len(last[0]) == 1 and last.start():
        head = gap.label_of_second[: last.start()].rstrip(" -.,")
        words = split_into_plain_words(head)
        if words and words[-1] not in SEAT_WORDS | ARM_WORDS | LABEL_WORDS_BEFORE_LETTER:
            gap.name, gap.label_of_second, gap.name_start = head, last[0], word_groups[-1].start


def _apply_words_after(labelled: _LabelledMeasure, text: str) -> None:
    """Set the unit and the label of a measure from the words after the measure, unless it already has them."""
    words = split_into_plain_words(text)
    if labelled.measure.unit is None and (unit := next(filter(None, map(parse_length_unit, words)), None)):
        labelled.measure = labelled.measure._replace(unit=unit)
    if labelled.label.role or not text:
        return
    label = parse_label(text)
    if label.role == "noun":
        head = _FIRST_WORD.match(text)
        first = parse_label(head[0]) if head else EMPTY_LABEL
        label = first if first.role == "dimension" else label
    elif not label.role and determine_name_role(text) in ("part", "interior_or_package", "other_state"):
        label = _OTHER
    elif not label.role and words and words[0] in ("round", "rond", "rund", "redondo"):
        label = NumberLabel("dimension", "diameter")
    if label.role:
        labelled.label, labelled.label_text = label, f"{labelled.label_text} {text}"


@dataclass(slots=True)
class _MeasureGroups:
    """Measures of a size text, grouped by the names before them.

    Attributes:
        groups: The measures after each name, in order.
        lacks_number: Whether a number is missing.
        description: The words before the first measure.
        order: The order of dimensions that applies to all names, as letters.
    """

    groups: list[_NamedMeasures] = field(default_factory=lambda: [_NamedMeasures()])
    lacks_number: bool = False
    description: str = ""
    order: str = ""

    def select_group(self, gap: _Gap, is_first_measure: bool, follows_delimiter: bool) -> _NamedMeasures:
        """Return the group to which the next measure belongs; a name before the measure begins a new group.

        Args:
            gap: The text before the measure.
            is_first_measure: Whether the measure is the first of the text.
            follows_delimiter: Whether a delimiter separates the measure from the previous one.
        """
        scope, role = self.groups[-1], determine_name_role(gap.name)
        if not gap.name:
            side = parse_label(gap.label_of_second).dimension
            complete = bool({side, None} & set(scope.dimensions_so_far)) if side else len(scope.dimensions_so_far) > 2
            if (
                follows_delimiter
                and complete
                and scope.role in ("other_state", "interior_or_package")
                and not gap.is_within_sequence
            ):
                self.groups.append(_NamedMeasures())
        elif is_first_measure and not gap.ends_with_colon and role in ("whole", "piece", "part"):
            self.description = self.description or gap.name
        elif not (is_first_measure and role == "whole"):
            self.groups.append(_NamedMeasures(gap.name, role, start=gap.name_start))
        return self.groups[-1]


def _find_order(tokenised: TokenisedText, tokens: list[SizeToken], is_at_end: bool) -> tuple[str, bool, bool]:
    """Find an order of dimensions between two measures.

    Args:
        tokenised: The size text with its tokens.
        tokens: The tokens between the measures.
        is_at_end: Whether the tokens are at the end of the text.

    Returns:
        The order as letters or an empty string, whether it belongs to the second measure, and whether it applies to all names.
    """
    for at, token in enumerate(tokens):
        if token.kind == ORDER:
            belongs_to_second = not is_at_end and all(
                behind.kind in ("(", ")", *_COLONS) for behind in tokens[at + 1 :]
            )
            words = [before for before in tokens[:at] if before.kind == WORDS]
            applies_to_all = not words or determine_name_role(tokenised.text_between(words[0], words[-1])) == "whole"
            return tokenised.text_between(token, token).strip(ORDER), belongs_to_second, applies_to_all
    return "", False, False


def _group_measures(tokenised: TokenisedText) -> _MeasureGroups:
    """Group the measures of a size text by the names before them."""
    groups, tokens = _MeasureGroups(), tokenised.remove_repetitions()
    items: list[_LabelledMeasure] = []
    measures_with_groups: list[tuple[_NamedMeasures, _LabelledMeasure]] = []
    letters_follow_numbers, begin = True, 0
    for index, token in [*((at, token) for at, token in enumerate(tokens) if token.measure), (len(tokens), None)]:
        between, is_at_end = tokens[begin:index], token is None
        order, ahead, general = _find_order(tokenised, between, is_at_end)
        between = [one for one in between if one.kind != ORDER]
        begin = index + 1
        gap = _divide_tokens(tokenised, between, items[-1] if items else None, is_at_end, letters_follow_numbers)
        if gap.lacks_number:
            groups.lacks_number = True
        if items:
            _apply_words_after(
                items[-1], gap.words_of_first or (gap.label_of_second if is_at_end and not gap.ends_with_colon else "")
            )
        if order and not ahead and measures_with_groups:
            measures_with_groups[-1][0].order = measures_with_groups[-1][0].order or order
        kinds = [one.kind for one in between]
        if token is None or token.measure is None:
            # A string can end in a label without a figure (`… Height:`).
            dangling = (
                bool(kinds) and kinds[-1] in _COLONS and OTHER_NUMBER not in kinds and UNREADABLE_NUMBER not in kinds
            )
            groups.lacks_number = groups.lacks_number or dangling
            break
        bound = "" if gap.ends_with_colon else detect_bound(gap.name)
        label_text = gap.label_of_second or gap.name
        gap.name = "" if bound else gap.name
        item = _LabelledMeasure(
            token.measure,
            label_text,
            parse_label(gap.label_of_second),
            gap.is_within_sequence,
            len(items),
            not between,
            bound,
        )
        group = groups.select_group(gap, not items, not _CLAUSE_DELIMITERS.isdisjoint(kinds))
        if order and (ahead or not items):
            # An order before any name applies to all scopes.
            group.order = order
            groups.order = order if not items and general else groups.order
        letters_follow_numbers = letters_follow_numbers if gap.is_within_sequence else not item.label.role
        items.append(item)
        group.dimensions_so_far.append(item.dimension)
        measures_with_groups.append((group, item))
    _add_measures_to_groups(measures_with_groups)
    if groups.description and any(group.role == "piece" for group in groups.groups[1:]):
        # If other things have sizes, the words before the first size name the first thing.
        groups.groups[0].name, groups.groups[0].role = groups.description, determine_name_role(groups.description)
    return groups


def _add_measures_to_groups(measures: list[tuple[_NamedMeasures, _LabelledMeasure]]) -> None:
    """Append each measure to one of the lists of its group: a sequence, the extras, the maxima or measures with nouns.

    Call `_apply_words_after` for all measures first. Measures of the seat after the name of a state (`Reclined:`) belong to the item. In
    `min. 65 max. 85 cm height`, both numbers are heights.

    Args:
        measures: Each measure with its group.
    """
    previous_group = item_group = None
    for at, (group, labelled) in enumerate(measures):
        labelled.continues_sequence = labelled.continues_sequence and group is previous_group
        if labelled.bound == "max" and labelled.label.role == "dimension":
            labelled.label = replace(labelled.label, role="max")
        next_group, next_measure = measures[at + 1] if at + 1 < len(measures) else (None, None)
        if next_measure is not None:
            if labelled.bound == "min" and not labelled.label.role and next_measure.bound == "max":
                labelled.label = replace(next_measure.label, role="dimension" if next_measure.label.role else "")
            if labelled.label.role == "noun" and next_measure.continues_sequence and next_group is group:
                # `Table width 30 x depth 20`: the noun before a sequence only names the thing.
                labelled.label = NumberLabel("dimension", labelled.dimension)
        item_group = group if group.role not in ("other_state", "interior_or_package") else item_group
        is_seat_measure = labelled.label.role == "dimension" and labelled.dimension in (
            "seat_height",
            "seat_depth",
            "arm_height",
        )
        (item_group if is_seat_measure and item_group is not None else group).add_measure(labelled)
        previous_group = group


def _determine_units(items: Sequence[_LabelledMeasure], default_unit: str | None) -> list[str | None]:
    """Return the unit of each measure; a measure without one has the unit of the next measure that has one.

    Args:
        items: The measures of one sequence.
        default_unit: The unit if no measure has one, or None.
    """
    last = next((item.measure.unit for item in reversed(items) if item.measure.unit), default_unit)
    units: list[str | None] = []
    for item in reversed(items):
        last = item.measure.unit or last
        units.append(last)
    return units[::-1]


def _are_same_size(
    first: Sequence[_LabelledMeasure],
    second: Sequence[_LabelledMeasure],
    first_unit: str | None,
    second_unit: str | None,
) -> bool:
    """Return whether two sequences state the same size, in different units or the same.

    Args:
        first: The first sequence.
        second: The second sequence.
        first_unit: The unit of numbers without one in the first sequence, or None.
        second_unit: The unit of numbers without one in the second sequence, or None.
    """
    if len(first) != len(second):
        return False
    for a, b, unit_a, unit_b in zip(
        first, second, _determine_units(first, first_unit), _determine_units(second, second_unit), strict=True
    ):
        if b.dimension not in (None, a.dimension) or unit_a is None or unit_b is None:
            return False
        one, two = a.measure._replace(unit=unit_a), b.measure._replace(unit=unit_b)
        if not (one.value == two.value if unit_a == unit_b else is_same_length(one, two, None)):
            return False
    return True


def _find_shared_unit(groups: _MeasureGroups, column_unit: str | None) -> str | None:
    """Return the unit for numbers without one, or None if the text does not determine the unit.

    If the text has two sequences, the first without units, and a unit makes both the same size, this unit is returned.
    Otherwise the only unit in the text is returned.
    """
    sequences = [items for group in groups.groups for items in group.sequences]
    if len(sequences) == 2 and not any(item.measure.unit for item in sequences[0]):
        first, second = sequences
        for unit in (column_unit, "cm", "mm", "in"):
            if unit and _are_same_size(first, second, unit, column_unit):
                return unit
    named = {item.measure.unit for group in groups.groups for item in group.list_measures() if item.measure.unit}
    return named.pop() if len(named) == 1 else None


_COUNT_IN_NAME = re.compile(r"(?i)(?:(\d{1,3})\s*x?\s+(.+)|(.+?)\s*x\s?(\d{1,3}))")
_COUNT_NEAR = re.compile(rf"{COUNT}(\d{{1,3}}){COUNT}")
_ROUNDING_TOLERANCE = 60
"""Maximum difference, in hundredths of an inch, at which two lengths are equal apart from rounding."""
_MAX_METRES = 12


@dataclass(slots=True)
class _SizeBuilder:
    """Builder of the ParsedSize of one size text, which collects faults and extras.

    Attributes:
        text: The cell, for faults.
        tokenised: The size text with its tokens.
        default_unit: The unit of numbers without one, or None.
        kind: The kind of the item (`labels.determine_size_kind`).
        order: The order of dimensions as letters, `TRADE_ORDER`, or an empty string.
        decimal: The decimal mark of the source.
        column_unit: The unit of the column, or None.
        faults: The faults found so far.
        extras: The measures without a field so far, in the vendor's words.
    """

    text: str
    tokenised: TokenisedText
    default_unit: str | None
    kind: str
    order: str
    decimal: str
    column_unit: str | None
    faults: list[ParseFault] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)

    def add_fault(self, problem: ProblemKind, reason: str) -> None:
        """Add a fault; its detail is the quoted cell, followed by `reason`."""
        self.faults.append(ParseFault(problem, f"{quote_text(self.text)} {reason}."))

    def _report_several_sizes(self) -> None:
        """Add the fault that the text contains more than one size."""
        self.add_fault(ProblemKind.CONFLICT, "states more than one size; the first is kept")

    def add_extras(self, items: Sequence[_LabelledMeasure]) -> None:
        """Add measures that are not dimensions of the item to `extras`, in the vendor's words."""
        for item in items:
            upper = "" if item.measure.upper_bound is None else f"-{item.measure.upper_bound}"
            unit = item.measure.unit or self.default_unit or ""
            self.extras.append(f"{item.label_text} {item.measure.value}{upper} {unit}".strip())

    def _convert_to_length(self, labelled: _LabelledMeasure, unit: str | None) -> Length | None:
        """Convert one measure to a length, or return None; report a missing unit and implausible values."""
        if unit == "m" and labelled.measure.unit is None and labelled.measure.value > _MAX_METRES:
            # `183 x 0.91 m`: the metre applies only to the other figure.
            unit = self.column_unit if self.column_unit in METRIC_LENGTH_UNITS else "cm"
        if unit is None and labelled.measure.value:
            fault = ParseFault(ProblemKind.UNKNOWN_UNIT, f"{quote_text(self.text)} does not state a unit of length.")
            self.faults.extend([] if fault in self.faults else [fault])
            return None
        parsed = convert_measure(labelled.measure, unit or "in", self.text, self.decimal)
        self.faults.extend(parsed.faults)
        if labelled.measure.upper_bound is not None:
            # The upper bound of a range becomes an extra.
            self.add_extras([labelled])
        return parsed.value

    def _assign_sequence(self, items: list[_LabelledMeasure], kind: str, order: str) -> dict[str, Length]:
        """Assign the measures of a sequence to dimensions, and return the lengths by dimension.

        Args:
            items: The measures.
            kind: The kind of the item (`labels.determine_size_kind`) or of the piece (`labels.determine_piece_kind`).
            order: The order of dimensions that the text states, as letters, or an empty string.
        """
        own = {item.measure.unit for item in items if item.measure.unit}
        if own & set(METRIC_LENGTH_UNITS) and not own <= set(METRIC_LENGTH_UNITS):
            self.add_fault(ProblemKind.CONFLICT, "mixes metric and imperial units")
        if own == {"ft"} and any(item.measure.unit is None and item.measure.value for item in items):
            self.add_fault(
                ProblemKind.CONFLICT, "has numbers without a unit next to numbers in feet; they could be feet or inches"
            )
        if any(item.follows_space and item.dimension is None for item in items[1:]):
            self.add_fault(ProblemKind.CONFLICT, "separates numbers only by spaces")
        units = _determine_units(items, self.default_unit)
        lengths = [self._convert_to_length(item, unit) for item, unit in zip(items, units, strict=True)]
        if None in lengths and all(item.dimension is None for item in items):
            # Without letters the position determines the dimension, so one missing figure makes all dimensions unknown.
            if not self.faults:
                self.add_fault(ProblemKind.UNREADABLE, "lacks a number")
            return {}
        found: list[LabelledLength] = [
            (length, item.dimension) for length, item in zip(lengths, items, strict=True) if length is not None
        ]
        if not found:
            return {}
        *others, final = (item.measure.unit for item in items)
        is_usual = final is not None and not any(others) and self.tokenised.slash_separates_alternatives
        sides: ParseResult[Any] = assign_dimensions(found, self.text, kind, order or self.order, is_usual)
        self.faults.extend(sides.faults)
        return sides.value or {}

    def collect_dimensions(self, group: _NamedMeasures) -> dict[str, Length]:
        """Return the lengths after one name by dimension, from sequences, seat measures and maxima."""
        target: dict[str, Length] = {}
        self._add_extras(group, target)
        self._add_sequences(group, target)
        for item in group.maxima:
            # `Max. height` is used as the height only if no other is stated, and this is reported.
            side = "width" if item.dimension == "length" else item.dimension or ""
            if side in target:
                self.add_extras([item])
            elif (length := self._convert_to_length(item, item.measure.unit or self.default_unit)) is not None:
                self.add_fault(ProblemKind.CONFLICT, f"states only a maximum {side}")
                target[side] = length
        if "width" not in target and any(_is_width_of_one_end(item) for item in group.extras):
            self.add_fault(ProblemKind.CONFLICT, "states the width separately for left and right")
        return target

    def _add_sequences(self, group: _NamedMeasures, length_by_dimension: dict[str, Length]) -> None:
        """Add the dimensions of the sequences after one name. A later sequence can repeat the first, add dimensions or be a conflict."""
        kind = determine_piece_kind(group.name, self.kind) if group.role in ("piece", "part") else self.kind
        of_part, sequences = contains_part_word(group.name), group.sequences
        if of_part and len(sequences) == 1 and len(sequences[0]) == 1:
            self.add_extras(sequences.pop())
        lone = [items for items in sequences if len(items) == 1 and items[0].dimension is None]
        for items in lone if len(lone) < len(sequences) else ():
            sequences.remove(items)
            if of_part:
                self.add_extras(items)
            else:
                self.add_fault(ProblemKind.UNREADABLE, f"does not state which dimension {items[0].measure.value} is")
        for at, items in enumerate(sequences):
            if at == 0:
                length_by_dimension.update(self._assign_sequence(items, kind, group.order))
            elif _are_same_size(sequences[0], items, self.default_unit, self.default_unit):
                self.add_extras([item for item in items if item.measure.upper_bound is not None])
            elif all(item.dimension is None for item in items):
                self._report_several_sizes()
            else:
                self._add_dimensions(length_by_dimension, self._assign_sequence(items, kind, group.order))

    def _add_extras(self, group: _NamedMeasures, length_by_dimension: dict[str, Length]) -> None:
        """Add seat measures and clearances after one name to the dimensions, and other measures to `extras`."""
        unit = next(
            (item.measure.unit for item in group.list_sequence_measures() if item.measure.unit), self.default_unit
        )
        for item in group.extras:
            if item.label.role != "dimension" or item.dimension is None:
                self.add_extras([item])
                continue
            length = self._convert_to_length(item, item.measure.unit or unit)
            if length is not None and length_by_dimension.setdefault(item.dimension, length) != length:
                side = item.dimension.replace("_", " ")
                self.add_fault(ProblemKind.CONFLICT, f"states more than one {side}; the first is kept")

    def _add_dimensions(self, length_by_dimension: dict[str, Length], further_lengths: dict[str, Length]) -> None:
        """Add the dimensions of a further sequence; a different length for the same dimension is a conflict."""
        apart = any(
            abs(length_by_dimension[side]["hundredths_in"] - value["hundredths_in"]) > _ROUNDING_TOLERANCE
            for side, value in further_lengths.items()
            if side in length_by_dimension
        )
        named = length_by_dimension.keys() | further_lengths.keys()
        if apart or ("diameter" in named and named & {"width", "depth"}):
            self._report_several_sizes()
        else:
            for side, value in further_lengths.items():
                length_by_dimension.setdefault(side, value)

    def _build_component(self, group: _NamedMeasures, dimensions: Any) -> BundleComponent:
        """Build the component for a named piece of a set, with the count next to the name (`CHAIR (4)`, `4 x CHAIR`)."""
        near = _COUNT_NEAR.search(self.tokenised.text, max(0, group.start - 8), group.start + len(group.name) + 8)
        name = clean_piece_name(_COUNT_NEAR.sub("", group.name).strip(" .,:-"), self.text)
        in_name = _COUNT_IN_NAME.fullmatch(name)
        if in_name:
            name = (in_name[2] or in_name[3]).strip()
        count = near[1] if near else (in_name[1] or in_name[4]) if in_name else "1"
        return {"name": " ".join(name.split()), "quantity": int(count) or 1, "dimensions": dimensions}

    def build(self, groups: _MeasureGroups) -> ParsedSize:
        """Build the parsed size from the measures of the text.

        The name before a measure determines whether it belongs to the item or to a piece of a set.
        """
        for scope in groups.groups:
            if kind := find_seat_or_arm(scope.name):
                # After `Seat:` or `Arm:` the dimensions are those of the seat or the arm.
                for item in scope.list_sequence_measures():
                    side = f"{kind}_{item.dimension}"
                    item.label = (
                        NumberLabel("dimension", side)
                        if side in ("seat_height", "seat_depth", "arm_height")
                        else _OTHER
                    )
                    scope.extras.append(item)
                scope.sequences.clear()
                scope.role = "whole"
        whole, pieces, aside = _divide_by_role(_assign_dimensions_with_nouns(groups.groups))
        dimensions: dict[str, Length] = {}
        for scope in whole:
            found = self.collect_dimensions(scope)
            if any(dimensions.get(side, value) != value for side, value in found.items()):
                self._report_several_sizes()
            for side, value in found.items():
                dimensions.setdefault(side, value)
        components = [
            self._build_component(scope, found) for scope in pieces if (found := self.collect_dimensions(scope))
        ]
        for scope in aside:
            self.add_extras(scope.list_measures())
        if aside and not dimensions and not components and not self.faults:
            self.add_fault(
                ProblemKind.UNREADABLE,
                "does not contain the size of the item, only of parts or in other positions (such as extended)",
            )
        sides: Any = dimensions
        return ParsedSize(sides, tuple(components), (*self.tokenised.other_texts, *self.extras))


def _is_width_of_one_end(labelled: _LabelledMeasure) -> bool:
    """Return whether a measure is the width of only the left or the right end."""
    words = set(split_into_plain_words(labelled.label_text))
    return (
        bool(words & {"left", "right", "links", "rechts"})
        and bool(words & {"width", "breite"})
        and not words & SEAT_WORDS
    )


def _assign_dimensions_with_nouns(groups: list[_NamedMeasures]) -> list[_NamedMeasures]:
    """Assign dimensions whose label contains a noun (`Table width`) to the item or to named pieces of a set.

    If the group also has dimensions without nouns, those with nouns are extra measures of other things, except for
    one leading noun that applies to all (`Sofa width: 84, depth: 38`). Otherwise, a single noun means the item, and each
    of several nouns becomes a piece.

    Returns:
        The measures by name, including the new pieces.
    """
    out: list[_NamedMeasures] = []
    for group in groups:
        out.append(group)
        things: dict[str, list[_LabelledMeasure]] = {}
        for item in group.measures_with_nouns:
            things.setdefault(item.label.noun, []).append(item)
            item.label = NumberLabel("dimension", item.dimension)
        placed = group.list_sequence_measures()
        leads = (
            placed
            and group.measures_with_nouns
            and max(item.index for item in group.measures_with_nouns) < min(item.index for item in placed)
        )
        if (
            len(things) == 1
            and leads
            and not {item.dimension for item in group.measures_with_nouns} & {item.dimension for item in placed}
        ):
            # `Sofa width: 84, depth: 38`: the noun applies to all figures.
            group.sequences[0][:0] = group.measures_with_nouns
        elif group.sequences:
            for item in group.measures_with_nouns:
                item.label = _OTHER  # figures of another thing
            group.extras.extend(group.measures_with_nouns)
        elif len(things) == 1:
            group.sequences.extend(things.values())
        else:
            out.extend(_NamedMeasures(noun, "piece", sequences=[items]) for noun, items in things.items())
        group.measures_with_nouns = []
    return out


def _divide_by_role(
    groups: list[_NamedMeasures],
) -> tuple[list[_NamedMeasures], list[_NamedMeasures], list[_NamedMeasures]]:
    """Divide the measures by name into measures of the item, measures of pieces of a set, and extras."""
    whole, normal_states, pieces, parts, other_states, interiors = (
        [group for group in groups if group.role == role and (group.sequences or group.extras or group.maxima)]
        for role in ("whole", "normal_state", "piece", "part", "other_state", "interior_or_package")
    )
    aside = other_states + interiors
    sized = [group for group in whole if group.sequences]
    if normal_states and (not sized or groups.index(normal_states[0]) < groups.index(sized[0])):
        return normal_states[:1] + whole, pieces, parts + normal_states[1:] + aside
    if not sized and len(pieces) == 1:
        return whole + pieces, [], parts + aside
    if not sized and not pieces and parts:
        return (whole + parts, [], aside) if len(parts) == 1 else (whole, parts, aside)
    leaves = [
        group
        for group in other_states
        if {"leaf", "leaves"} & set(split_into_plain_words(group.name)) and group.sequences
    ]
    if not sized and not pieces and leaves:
        return whole + leaves[:1], [], [group for group in aside if group is not leaves[0]]
    return whole, pieces, parts + normal_states + aside


_FIGURE = r'([1-9]\d{0,3}(?:\.\d{1,2})?)(?: ([1-9]\d?)/(2|4|8|16))? ?("|in|cm|mm)? ?([WDHL])'
_COMMON_SIZE = re.compile(rf'{_FIGURE} ?[xX] ?{_FIGURE}(?: ?[xX] ?{_FIGURE})?(?: ("|in|cm|mm))?')
_MAX_COMMON_SIZE_CHARS = 60


def parse_common_size(text: str, kind: str) -> Dimensions | None:
    """Parse a size in the most common notation fast, or return None for all other notations.

        size := number unit letter join number unit letter [join number unit letter]     30 1/2"W X 20"D X 40"H, 80W x 60D x 40H cm

    The letters are W, D, H and L, each at most once. The unit is stated at each number or once at the end.
    """
    found = _COMMON_SIZE.fullmatch(text) if len(text) <= _MAX_COMMON_SIZE_CHARS else None
    if found is None:
        return None
    *groups, last = found.groups()
    figures = [groups[at : at + 5] for at in (0, 5, 10) if groups[at + 4]]
    units = {figure[3] for figure in figures}
    if len({figure[4] for figure in figures}) < len(figures) or len(units) > 1 or (None in units) != bool(last):
        return None
    items: list[LabelledLength] = []
    for whole, over, under, mark, letter in figures:
        value = Decimal(whole)
        if over:
            if "." in whole or int(over) >= int(under):
                return None  # `17.5 1/2`, `5 9/8`
            value += Decimal(over) / Decimal(under)
        items.append(
            (build_measure(value, parse_length_unit(mark or last) or "in"), DIMENSION_BY_LETTER[letter.lower()])
        )
    sides = assign_dimensions(items, text, kind)
    return None if sides.faults else sides.value


_BLANKS = re.compile(r"[ \t\r\f\v]+")
_HYPHENED = re.compile(r"(?<![\d.,/-])\d{1,4}(?:[.,]\d{1,2})?\s?-\s?\d{1,4}(?:[.,]\d{1,2})?\s?-\s?\d{1,4}(?![\d/-])")
_NEGATIVE = re.compile(r"(?i)(?:^|[\s:=x(,;])-\d")


@lru_cache(maxsize=32768)
def parse_dimensions(
    text: str, unit: str | None = None, kind: str = "", order: str = "", decimal: str = "auto"
) -> ParseResult[ParsedSize]:
    """Parse the dimensions, seat measures and pieces of a set in a size text.

    W, D and H take precedence; L next to W without D is the width (the depth on beds). Of a range, the first length is used. Sizes of other
    states of the item, lampshades and table leaves are never its dimensions. The result can have the faults unreadable, unknown_unit,
    conflict (repeated or unnamed dimensions, mixed units) and out_of_range.

    Args:
        text: The cell.
        unit: The unit of the column, or None.
        kind: The kind of the item (`labels.determine_size_kind`).
        order: The order of dimensions in the header as letters (`BHT`), or `TRADE_ORDER` if the usual order of the trade can be presumed.
        decimal: The decimal mark of the source: `dot`, `comma` or `auto`.
    """
    common_size = parse_common_size(text, kind)
    return (
        ParseResult(ParsedSize(common_size))
        if common_size is not None
        else parse_by_grammar(text, unit, kind, order, decimal)
    )


@cell_parser(max_chars=2000, cache_size=0, parse_blank=build_placeholder_result)
def parse_by_grammar(
    text: str, cleaned: str, unit: str | None = None, kind: str = "", order: str = "", decimal: str = "auto"
) -> ParseResult[ParsedSize]:
    """Parse a size text by the complete grammar; for the arguments see `parse_dimensions`."""
    tokenised = tokenise_size(_BLANKS.sub(" ", normalise_typography(strip_markup(text) if "<" in text else text)), unit)
    builder = _SizeBuilder(text, tokenised, tokenised.default_unit, kind, order.lower(), decimal, unit)
    if _HYPHENED.search(tokenised.text):
        builder.add_fault(ProblemKind.CONFLICT, "joins three numbers by hyphens, which could be dimensions or a range")
    if _NEGATIVE.search(tokenised.text):
        builder.add_fault(ProblemKind.OUT_OF_RANGE, "contains a negative number")
    groups = _group_measures(tokenised)
    builder.order = groups.order or builder.order
    if tokenised.default_unit == unit:
        builder.default_unit = _find_shared_unit(groups, unit) or unit
    size = builder.build(groups)
    if groups.lacks_number:
        builder.add_fault(ProblemKind.UNREADABLE, "lacks a number")
    if tokenised.unread_texts:
        builder.add_fault(
            ProblemKind.UNREADABLE, f"contains text that is not a measure: {', '.join(tokenised.unread_texts[:3])}"
        )
    faults = tuple(builder.faults)
    if not size.dimensions and not size.components:
        return ParseResult(None, faults) if faults else build_unreadable_result(text, "does not contain a size")
    return ParseResult(size, tuple(dict.fromkeys(faults)))
