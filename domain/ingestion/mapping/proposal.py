"""From a feed's headers and first rows to what its columns mean."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import Any, Final

from domain.ingestion.mapping.completeness import may_repeat, missing
from domain.ingestion.mapping.confidence import confidence_of
from domain.ingestion.mapping.evidence import CONTRADICTED, Traits, by_evidence, traits_of
from domain.ingestion.mapping.namespaces import without_namespaces
from domain.ingestion.mapping.neighbours import among_neighbours, of_platforms
from domain.ingestion.mapping.samples import by_samples, with_evidence
from domain.ingestion.mapping.warehouses import located
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, Unmapped, UnmappedReason
from domain.ingestion.values.text import as_text, clean
from domain.ingestion.vocabulary.fields import FAMILIES, IGNORE, KEYS, MONEY, is_field, parse_given
from domain.ingestion.vocabulary.headings import plain_words
from domain.ingestion.vocabulary.likeness import by_likeness
from domain.ingestion.vocabulary.senses import PROMOTED, Sense, senses

_WEAK: Final = 50
_SECOND_BEST: Final = 50
_PLAIN_ENOUGH: Final = 60
_ALTERNATIVES: Final = (
    MONEY
    | set(KEYS)
    | set(
        "title variant_title description brand availability collection quantity lead_time_days category_path category_path.0 category_path.1".split()
    )
)
"""Fields of which a sheet may have several that are not the same: other price levels, other people's numbers."""
_ENOUGH: Final = 3
_SOME_LONG: Final = 0.3
_FOR_TITLE: Final = 45
_NO_SKU: Final = frozenset(("product_key", "title", "tags", "variant_key", "mpn"))


@dataclass(slots=True)
class _Taken:
    """The fields given out so far, and how often each."""

    fields: dict[tuple[str, str], int] = field(default_factory=dict)
    headers: set[tuple[str, str]] = field(default_factory=set)

    def count(self, sense: Sense) -> int:
        return self.fields.get(_slot(sense), 0)

    def take(self, sense: Sense, words: str) -> None:
        self.fields[_slot(sense)] = self.count(sense) + 1
        self.headers.add((sense.field, words))


def _slot(sense: Sense) -> tuple[str, str]:
    return sense.field, dict(sense.settings).get("location", "")


def _chosen(options: Sequence[Sense], words: str, taken: _Taken) -> Sense | None:
    """The strongest sense that is still free; None when all are taken."""
    for turn, sense in enumerate(options):
        if turn and sense.score < _SECOND_BEST:
            return None
        if sense.field == IGNORE:
            return sense
        if sense.field == CONTRADICTED:
            return None
        if (sense.field, words) in taken.headers and not sense.prefix:
            continue
        if taken.count(sense) == 0 or may_repeat(sense.field):
            return sense
    return None


def _with_price_code(options: tuple[Sense, ...], words: str, settings: FeedSettings) -> tuple[Sense, ...]:
    """The price column that the source's price code names goes before all others."""
    code = plain_words(settings.price_code or "")
    if not code or code not in words:
        return options
    return tuple(
        replace(sense, score=sense.score + 1000, settings=(*sense.settings, ("price_code", code)))
        if sense.field in MONEY
        else sense
        for sense in options
    )


def _blank_last(known: Sequence[tuple[Sense, ...]], columns: Sequence[Sequence[str]]) -> list[tuple[Sense, ...]]:
    """A column that is blank in every sample gives way to one with the same meaning that is not."""
    filled = [any(sample.strip() for sample in samples) for samples in columns]
    stated = {options[0].field for options, some in zip(known, filled, strict=True) if options and some}
    return [
        tuple(replace(sense, score=sense.score - 30) for sense in options)
        if options and not some and len(samples) >= _ENOUGH and options[0].field in stated
        else options
        for options, samples, some in zip(known, columns, filled, strict=True)
    ]


def _candidates(
    headers: Sequence[str],
    columns: Sequence[Sequence[str]],
    traits: Sequence[Traits | None],
    settings: FeedSettings,
) -> list[tuple[Sense, ...]]:
    sensed = without_namespaces(headers, [senses(header) for header in headers])
    known = [
        by_samples(header, by_likeness(header, options), samples)
        for header, options, samples in zip(headers, sensed, columns, strict=True)
    ]
    known = of_platforms(headers, _blank_last(known, columns))
    known = [by_evidence(options, shown) for options, shown in zip(known, traits, strict=True)]
    known = among_neighbours(headers, columns, known)
    known = located(headers, columns, known, settings)
    return [
        _with_price_code(options, plain_words(header), settings) for header, options in zip(headers, known, strict=True)
    ]


def _alternative(options: Sequence[Sense], words: str, taken: _Taken) -> Sense | None:
    """What a column means whose fields are all given out: told, and not read. One that is the same by name is not told."""
    best = options[0]
    if best.score < _PLAIN_ENOUGH or best.field not in _ALTERNATIVES or (best.field, words) in taken.headers:
        return None
    return replace(best, settings=(*best.settings, ("alternative", "yes")))


def _settled(headers: Sequence[str], candidates: Sequence[tuple[Sense, ...]]) -> dict[int, Sense | None]:
    """Each known column's sense: columns choose in the order of their strongest sense, then of their place."""
    taken, settled = _Taken(), dict[int, Sense | None]()
    waiting = [(-options[0].score, place) for place, options in enumerate(candidates) if options]
    heapify(waiting)
    while waiting:
        score, place = heappop(waiting)
        words = plain_words(headers[place])
        sense = _chosen(candidates[place], words, taken)
        if sense and -sense.score > score:
            # Its strongest sense went to another column: it waits for its turn with the next one.
            heappush(waiting, (-sense.score, place))
            continue
        if sense is None:
            settled[place] = _alternative(candidates[place], words, taken)
            continue
        settled[place] = _repeated(sense, taken)
        if sense.field != IGNORE:
            taken.take(sense, words)
    return settled


def _repeated(sense: Sense, taken: _Taken) -> Sense:
    """A second column of one fact stands in where the first is blank: its place in that order is a setting."""
    count = taken.count(sense)
    if not count or sense.field in FAMILIES or sense.field == IGNORE:
        return sense
    return replace(sense, settings=(*sense.settings, ("fallback", str(count))))


def _columns_of(samples: Sequence[Sequence[Any]], width: int) -> list[list[str]]:
    rows = [[as_text(cell) for cell in row] for row in samples]
    return [[row[place] for row in rows if place < len(row)] for place in range(width)]


def _reason(place: int, header: str, options: tuple[Sense, ...], sense: Sense | None) -> UnmappedReason:
    # Readers of tables name a column without a header by its number.
    if clean(header) in ("", f"Column {place + 1}"):
        return UnmappedReason.EMPTY
    if not options:
        return UnmappedReason.UNKNOWN
    return UnmappedReason.AMBIGUOUS if sense is None else UnmappedReason.IGNORED


def _promoted(candidates: list[tuple[Sense, ...]], field: str, never: frozenset[str]) -> list[tuple[Sense, ...]]:
    """Where no column plainly is a field that no product should lack, the best of the weaker ones is it.

    Columns whose plain meaning is one of `never` are left alone.
    """
    if any(options and options[0].field == field for options in candidates):
        return candidates
    weak = [
        (sense.score, -place)
        for place, options in enumerate(candidates)
        for sense in options
        if sense.field == field and options[0].field not in never
    ]
    if not weak:
        return candidates
    best = -max(weak)[1]
    raised = [replace(s, score=PROMOTED) if s.field == field else s for s in candidates[best]]
    out = list(candidates)
    out[best] = tuple(sorted(raised, key=lambda sense: -sense.score))
    return out


def _named_texts(candidates: list[tuple[Sense, ...]], traits: Sequence[Traits | None]) -> list[tuple[Sense, ...]]:
    """A description may stand for the title where its values are short, or where another column describes at length."""
    texts = sum(bool(options) and options[0].field == "description" for options in candidates)
    return [
        tuple(
            sense
            for sense in options
            if sense.field != "title" or (sense.score >= _FOR_TITLE and shown is not None and shown.long < _SOME_LONG)
        )
        if options and options[0].field == "description" and texts < 2
        else options
        for options, shown in zip(candidates, traits, strict=True)
    ]


def _without_lone_promotion(candidates: list[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """Weak senses of a title are for want of a better one only."""
    return [
        tuple(
            sense for place, sense in enumerate(options) if place == 0 or sense.field != "title" or sense.score > _WEAK
        )
        for options in candidates
    ]


def propose(headers: Sequence[str], samples: Sequence[Sequence[Any]], settings: FeedSettings) -> HeaderMapping:
    """What the columns mean, from the built-in vocabulary, the first rows (`samples`) and the source's settings.

    The same input always gives the same mapping. Columns are keyed by position: a header that comes twice is mapped
    once. `missing` holds "key" when nothing can key a row, "stock" when a stock feed states neither stock nor price.
    """
    columns = _columns_of(samples, len(headers))
    traits = [traits_of(values) for values in columns]
    candidates = _promoted(_candidates(headers, columns, traits, settings), "sku", _NO_SKU)
    candidates = _without_lone_promotion(_promoted(_named_texts(candidates, traits), "title", frozenset(KEYS)))
    settled = _settled(headers, candidates)
    mapped: list[Column] = []
    unmapped: list[Unmapped] = []
    for place, header in enumerate(headers):
        sense = settled.get(place)
        if sense is None or sense.field == IGNORE:
            unmapped.append(Unmapped(place, header, _reason(place, header, candidates[place], sense)))
            continue
        sure = confidence_of(header, sense, candidates[place], traits[place])
        tier = MappingTier.FUZZY if sense.surmised else MappingTier.BUILT_IN
        mapped.append(Column(place, header, sense.field, dict(sense.settings), tier, sense.prefix, sure))
    kept = with_evidence(mapped, columns, settings)
    return HeaderMapping(tuple(headers), tuple(kept), tuple(unmapped), missing(kept, settings.stream))


def from_given(headers: Sequence[str], given: Sequence[str | None]) -> HeaderMapping:
    """The mapping of a feed whose connector knows its columns: `given` has each header's field, or None."""
    mapped: list[Column] = []
    unmapped: list[Unmapped] = []
    for place, header in enumerate(headers):
        text = given[place] if place < len(given) else None
        name, settings = parse_given(text or "")
        if not is_field(name) or name == IGNORE:
            unknown = text and name != IGNORE
            unmapped.append(Unmapped(place, header, UnmappedReason.UNKNOWN if unknown else UnmappedReason.IGNORED))
            continue
        mapped.append(Column(place, header, name, settings, prefix=bool(re.search(r"\d", header)) and name in FAMILIES))
    return HeaderMapping(tuple(headers), tuple(mapped), tuple(unmapped), missing(mapped, FeedSettings().stream))
