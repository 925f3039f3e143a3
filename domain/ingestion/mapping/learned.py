"""What people have confirmed of headers, laid over what is proposed for a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final

from domain.ingestion.mapping.completeness import may_repeat, missing, slot_of
from domain.ingestion.mapping.samples import with_evidence
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, Unmapped, UnmappedReason
from domain.ingestion.values.text import clean
from domain.ingestion.vocabulary.headings import plain_words
from domain.kernel.plain import storable

KNOWN_COLUMNS: Final = 20_000
"""Columns of all confirmed header sets together that a reader is told of."""
_VOUCHED: Final = frozenset({MappingTier.PERSON, MappingTier.LEARNED})
"""Tiers of columns that a person has thought about; what is built in is proposed anew anyway."""
_OWN_ALONE: Final = frozenset({"currency", "decimal"})
"""Settings that hold for the source they were made for: another one states its own."""


@dataclass(frozen=True, slots=True)
class KnownMapping:
    """A header set that a person confirmed, of this source (`own`) or of another one of the same organisation and mode."""

    digest: str
    own: bool
    headers: tuple[str, ...]
    columns: tuple[Column, ...]
    unmapped: tuple[Unmapped, ...] = ()


@dataclass(frozen=True, slots=True)
class _Decision:
    """What a person said of a column; None for `field` says that it is not to be read."""

    field: str | None
    settings: tuple[tuple[str, str], ...] = ()
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class _Heard:
    """A decision about a header, and the headers on its left and right where it was made."""

    own: bool
    neighbours: tuple[str, str]
    decision: _Decision


def digest_of(headers: Sequence[str]) -> str:
    """Tells one header set from another: exact headers in their order, whatever the sheet is called."""
    digest = blake2b(digest_size=16)
    for header in headers:
        text = storable(header).encode()
        digest.update(len(text).to_bytes(8) + text)
    return digest.hexdigest()


def bounded(known: Iterable[KnownMapping], most: int = KNOWN_COLUMNS) -> tuple[KnownMapping, ...]:
    """The first of them that have so many columns together."""
    kept = []
    for one in known:
        most -= len(one.headers)
        if most < 0:
            break
        kept.append(one)
    return tuple(kept)


def _words(header: str) -> str:
    return plain_words(header) or clean(header).lower()


def _neighbours(words: Sequence[str], position: int) -> tuple[str, str]:
    left = words[position - 1] if position else ""
    return left, words[position + 1] if position + 1 < len(words) else ""


def _are_compatible(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether the same header stands on one side of both."""
    return any(a and a == b for a, b in zip(one, other, strict=True))


def _decision(column: Column) -> _Decision:
    """What holds of the column beyond its source: no setting that its values or its source's market proved."""
    dropped = _OWN_ALONE | ({"unit", "unit_by"} if "unit_by" in column.settings else frozenset())
    kept = sorted((name, str(value)) for name, value in column.settings.items() if name not in dropped)
    return _Decision(column.field, tuple(kept), column.prefix)


@dataclass(slots=True)
class Knowledge:
    """What is known of header sets, made ready to be asked. Where people disagree nothing is learned."""

    known: Sequence[KnownMapping] = ()
    _noted: dict[str, list[_Heard]] = field(default_factory=dict)

    def _heard(self) -> Mapping[str, list[_Heard]]:
        """Every single header that a person decided on; noted when it is first asked for, which most files never do."""
        if self._noted:
            return self._noted
        for one in self.known:
            words = [_words(header) for header in one.headers]
            decided = {c.position: _decision(c) for c in one.columns if c.tier in _VOUCHED}
            if one.own:
                ignored = (u.position for u in one.unmapped if u.reason == UnmappedReason.IGNORED)
                decided |= dict.fromkeys(ignored, _Decision(None))
            for position, decision in decided.items():
                if position < len(words) and words[position]:
                    heard = _Heard(one.own, _neighbours(words, position), decision)
                    self._noted.setdefault(words[position], []).append(heard)
        return self._noted

    def laid_over(
        self, proposed: HeaderMapping, samples: Sequence[Sequence[str]], settings: FeedSettings
    ) -> HeaderMapping:
        """The mapping to read a table by: `proposed`, but for the columns that a person decided on.

        The very header set of the source is read as it was confirmed; how a file writes prices and dates is proved by each
        file anew, unless a person has said it. That of another source is, column by column, what
        those who confirmed it agree on; other header sets take over single headers, those of other sources where they stand
        beside a header that they stood beside before. Both are `learned`. `samples` are the table's first rows as texts.
        """
        if not self.known:
            return proposed
        digest = digest_of(proposed.headers)
        same = [one for one in self.known if one.digest == digest and len(one.headers) == len(proposed.headers)]
        own = next((one for one in same if one.own), None)
        if own is not None:
            columns = tuple(_proven(own.columns, samples, len(proposed.headers), settings))
            lacking = missing(columns, settings.stream)
            return replace(proposed, columns=columns, unmapped=own.unmapped, missing=lacking)
        decided = _agreed(same) if same else self._heard_of(proposed.headers)
        return _merged(proposed, decided, samples, settings, firm=bool(same)) if decided else proposed

    def _heard_of(self, headers: Sequence[str]) -> dict[int, _Decision]:
        """What was decided on single headers, where those who did agree: best beside a neighbour it had.

        The source's own people come first; a header of theirs means the same wherever it stands, others' does not.
        """
        words = [_words(header) for header in headers]
        decided: dict[int, _Decision] = {}
        known = self._heard()
        for position, word in enumerate(words):
            around = _neighbours(words, position)
            heard = known.get(word, ())
            beside = [one for one in heard if _are_compatible(one.neighbours, around)]
            said = (
                {one.decision for one in beside if one.own}
                or {one.decision for one in heard if one.own}
                or {one.decision for one in beside}
            )
            if len(said) == 1:
                decided[position] = said.pop()
        return decided


def _agreed(same: Sequence[KnownMapping]) -> dict[int, _Decision]:
    """What all who confirmed one header set say of each column."""
    said: dict[int, set[_Decision]] = {}
    for one in same:
        for column in one.columns:
            said.setdefault(column.position, set()).add(_decision(column))
        for left_out in one.unmapped:
            said.setdefault(left_out.position, set()).add(_Decision(None))
    return {position: decisions.pop() for position, decisions in said.items() if len(decisions) == 1}


def _merged(
    proposed: HeaderMapping,
    decided: Mapping[int, _Decision],
    samples: Sequence[Sequence[str]],
    settings: FeedSettings,
    *,
    firm: bool,
) -> HeaderMapping:
    """`firm` decisions take a field from columns it was proposed for; others leave it there, and their column as proposed."""
    columns = {column.position: column for column in proposed.columns}
    reasons = {left_out.position: left_out.reason for left_out in proposed.unmapped}
    undecided = {slot_of(column) for place, column in columns.items() if place not in decided}
    for position, decision in sorted(decided.items()):
        if decision.field is None:
            if columns.pop(position, None) is not None or not firm:
                reasons[position] = UnmappedReason.IGNORED
            continue
        learned = _column(position, proposed.headers[position], decision)
        if firm or may_repeat(learned.field) or slot_of(learned) not in undecided:
            columns[position] = learned
    kept = _without_repeats(columns, reasons, decided)
    width = range(len(proposed.headers))
    mapped = _proven([kept[place] for place in sorted(kept)], samples, len(width), settings)
    unmapped = [
        Unmapped(place, proposed.headers[place], reasons.get(place, UnmappedReason.AMBIGUOUS))
        for place in width
        if place not in kept
    ]
    lacking = missing(mapped, settings.stream)
    return HeaderMapping(proposed.headers, tuple(mapped), tuple(unmapped), lacking)


def _proven(
    columns: Sequence[Column], samples: Sequence[Sequence[str]], width: int, settings: FeedSettings
) -> list[Column]:
    """The columns with what this file's values prove of how they are written; a person's word on that stands."""
    texts = [[row[place] if place < len(row) else "" for row in samples] for place in range(width)]
    proven = with_evidence(columns, texts, settings)
    return [
        replace(after, settings={**after.settings, **before.settings}) if before.tier == MappingTier.PERSON else after
        for before, after in zip(columns, proven, strict=True)
    ]


def _column(position: int, header: str, decision: _Decision) -> Column:
    assert decision.field is not None
    settings = dict(decision.settings)
    return Column(position, header, decision.field, settings, MappingTier.LEARNED, decision.prefix)


def _without_repeats(
    columns: Mapping[int, Column], reasons: dict[int, UnmappedReason], decided: Mapping[int, _Decision]
) -> dict[int, Column]:
    """The columns but for those whose field was given to another one by a decision; `reasons` tells of them."""
    kept: dict[int, Column] = {}
    taken = set()
    for position in sorted(columns, key=lambda place: (place not in decided, place)):
        column = columns[position]
        if slot_of(column) in taken and not may_repeat(column.field):
            reasons[position] = UnmappedReason.AMBIGUOUS
            continue
        if position in decided:
            taken.add(slot_of(column))
        kept[position] = column
    return kept
