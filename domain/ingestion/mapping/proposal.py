"""Proposal of a mapping from a feed's headers and first rows.

Each header has senses with scores (`vocabulary/senses.py`); its values (`evidence.py`) and neighbours (`neighbours.py`)
raise, lower and replace them. Then each column gets the best free sense.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Any

from domain.ingestion.mapping.columns import may_repeat, missing, with_proven_settings
from domain.ingestion.mapping.evidence import CONTRADICTED, by_evidence, confidence_of
from domain.ingestion.mapping.neighbours import Sheet, read_neighbours, read_platform, read_warehouses, without_prefixes
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, Unmapped, UnmappedReason
from domain.ingestion.values.text import as_text, clean
from domain.ingestion.vocabulary.fields import FAMILIES, IGNORE, KEYS, MONEY, is_field, parse_given
from domain.ingestion.vocabulary.senses import PROMOTED, Sense, by_likeness, plain_words

_WEAK = 50
_SECOND_BEST = 50
_PLAIN_ENOUGH = 60
_PRICE_CODE = 1_000
_BLANK_COSTS = 30
_ENOUGH_BLANKS = 3
_SOME_LONG = 0.3
_FOR_TITLE = 45
_NO_SKU = ("product_key", "title", "tags", "variant_key", "mpn")
_ALTERNATIVES = MONEY.union(
    KEYS,
    "title variant_title description brand availability collection quantity lead_time_days".split(),
    "category_path category_path.0 category_path.1".split(),
)
"""Fields of which a sheet can have several different ones: other price levels, numbers of other parties."""


def _lower_blank(sheet: Sheet) -> None:
    """Lower a column that is blank in all samples below filled columns with the same sense."""
    stated = {sheet.strongest(place).field for place, traits in enumerate(sheet.traits) if traits}
    for place, values in enumerate(sheet.samples):
        blank = len(values) >= _ENOUGH_BLANKS and sheet.traits[place] is None
        if blank and sheet.strongest(place).field in stated:
            sheet.options[place] = tuple(replace(s, score=s.score - _BLANK_COSTS) for s in sheet.options[place])


def _raise_price_code(sheet: Sheet) -> None:
    """Raise the price column with the source's price code above all others."""
    code = plain_words(sheet.settings.price_code or "")
    for place, options in enumerate(sheet.options):
        if code and code in sheet.words[place]:
            sheet.options[place] = tuple(
                replace(s, score=s.score + _PRICE_CODE, settings=(*s.settings, ("price_code", code)))
                if s.field in MONEY
                else s
                for s in options
            )


def _promote(sheet: Sheet, field: str, never: Sequence[str]) -> None:
    """Raise the best weak sense of a field that every product should have, if no column clearly has it.

    Columns whose strongest sense is one of `never` are skipped.
    """
    weak = [
        (sense.score, -place)
        for place, options in enumerate(sheet.options)
        for sense in options
        if sense.field == field and options[0].field not in never
    ]
    if weak and not sheet.places_of(field):
        best = -max(weak)[1]
        raised = [replace(s, score=PROMOTED) if s.field == field else s for s in sheet.options[best]]
        sheet.options[best] = tuple(sorted(raised, key=lambda sense: -sense.score))


def _promote_title(sheet: Sheet) -> None:
    """Let a description serve as title if its values are short or another column is the description.

    Otherwise weak senses of a title are removed.
    """
    texts = sheet.places_of("description")
    for place in texts if len(texts) < 2 else ():
        traits = sheet.traits[place]
        short = traits is not None and traits["long"] < _SOME_LONG
        sheet.options[place] = tuple(
            sense for sense in sheet.options[place] if sense.field != "title" or (short and sense.score >= _FOR_TITLE)
        )
    _promote(sheet, "title", KEYS)
    for place, options in enumerate(sheet.options):
        sheet.options[place] = options[:1] + tuple(s for s in options[1:] if s.field != "title" or s.score > _WEAK)


def _settled(sheet: Sheet) -> dict[int, Sense | None]:
    """Return each column's sense; columns choose in the order of their strongest sense, then of position."""
    counts, taken, settled = Counter[tuple[str, str]](), set[tuple[str, str]](), dict[int, Sense | None]()

    def slot(sense: Sense) -> tuple[str, str]:
        return sense.field, dict(sense.settings).get("location", "")

    def chosen(options: Sequence[Sense], words: str) -> Sense | None:
        """Return the strongest sense that is still free."""
        for turn, sense in enumerate(options):
            if sense.field == CONTRADICTED or (turn and sense.score < _SECOND_BEST):
                return None
            free = sense.prefix or (sense.field, words) not in taken
            if sense.field == IGNORE or (free and (not counts[slot(sense)] or may_repeat(sense.field))):
                return sense
        return None

    waiting = [(-options[0].score, place) for place, options in enumerate(sheet.options) if options]
    heapify(waiting)
    while waiting:
        score, place = heappop(waiting)
        words, best = sheet.words[place], sheet.options[place][0]
        sense = chosen(sheet.options[place], words)
        if sense and -sense.score > score:
            # Its strongest sense is taken by another column: it is queued again with the next one.
            heappush(waiting, (-sense.score, place))
        elif sense:
            count = counts[slot(sense)]
            # A second column of a fact is a fallback for blanks in the first; its rank is a setting.
            fallback = (("fallback", str(count)),) if count and sense.field not in (*FAMILIES, IGNORE) else ()
            settled[place] = replace(sense, settings=(*sense.settings, *fallback))
            counts[slot(sense)] += 1
            taken.add((sense.field, words))
        elif best.score >= _PLAIN_ENOUGH and best.field in _ALTERNATIVES and (best.field, words) not in taken:
            # All its fields are taken: it is listed but not read.
            settled[place] = replace(best, settings=(*best.settings, ("alternative", "yes")))
        else:
            settled[place] = None
    return settled


def propose(headers: Sequence[str], samples: Sequence[Sequence[Any]], settings: FeedSettings) -> HeaderMapping:
    """Return the mapping proposed from the built-in vocabulary, the first rows (`samples`) and the source's settings.

    The result is deterministic. Columns are keyed by position. `missing` has "key" if no column can identify a row, and
    "stock" if a stock feed states neither stock nor price.
    """
    rows = [[as_text(cell) for cell in row] for row in samples]
    columns = [[row[place] for row in rows if place < len(row)] for place in range(len(headers))]
    sheet = Sheet(headers, columns, settings, without_prefixes(headers))
    for place, header in enumerate(headers):
        sheet.options[place] = by_likeness(header, sheet.options[place])
    read_platform(sheet)
    for place, traits in enumerate(sheet.traits):
        sheet.options[place] = by_evidence(sheet.options[place], traits)
    _lower_blank(sheet)
    read_neighbours(sheet)
    read_warehouses(sheet)
    _raise_price_code(sheet)
    _promote(sheet, "sku", _NO_SKU)
    _promote_title(sheet)
    return _mapping(sheet, _settled(sheet))


def _mapping(sheet: Sheet, settled: dict[int, Sense | None]) -> HeaderMapping:
    mapped: list[Column] = []
    unmapped: list[Unmapped] = []
    for place, header in enumerate(sheet.headers):
        sense, options = settled.get(place), sheet.options[place]
        if sense and sense.field != IGNORE:
            sure = confidence_of(header, sense, options, sheet.traits[place])
            tier = MappingTier.FUZZY if sense.surmised else MappingTier.BUILT_IN
            mapped.append(Column(place, header, sense.field, dict(sense.settings), tier, sense.prefix, sure))
        elif clean(header) in (
            "",
            f"Column {place + 1}",
        ):  # readers of tables name a column without a header by its number
            unmapped.append(Unmapped(place, header, UnmappedReason.EMPTY))
        elif sense or not options:
            unmapped.append(Unmapped(place, header, UnmappedReason.IGNORED if sense else UnmappedReason.UNKNOWN))
        else:
            unmapped.append(Unmapped(place, header, UnmappedReason.AMBIGUOUS))
    kept = with_proven_settings(mapped, sheet.samples, sheet.settings)
    return HeaderMapping(tuple(sheet.headers), tuple(kept), tuple(unmapped), missing(kept, sheet.settings.stream))


def from_given(headers: Sequence[str], given: Sequence[str | None]) -> HeaderMapping:
    """Return the mapping of a feed whose connector defines the columns: `given` has each header's field, or None."""
    mapped: list[Column] = []
    unmapped: list[Unmapped] = []
    for place, header in enumerate(headers):
        text = given[place] if place < len(given) else None
        name, settings = parse_given(text or "")
        if is_field(name) and name != IGNORE:
            prefix = name in FAMILIES and any(map(str.isdecimal, header))
            mapped.append(Column(place, header, name, settings, prefix=prefix))
        else:
            known = not text or name == IGNORE
            unmapped.append(Unmapped(place, header, UnmappedReason.IGNORED if known else UnmappedReason.UNKNOWN))
    return HeaderMapping(tuple(headers), tuple(mapped), tuple(unmapped), missing(mapped, FeedSettings().stream))
