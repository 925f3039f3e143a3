"""Application of confirmed mappings to the proposed mapping of a table."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

from domain.ingestion.mapping.columns import (
    Slot,
    by_position,
    may_repeat,
    missing,
    parted,
    slot_of,
    with_proven_settings,
)
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, Unmapped, UnmappedReason
from domain.ingestion.values.text import clean
from domain.ingestion.vocabulary.senses import plain_words
from domain.kernel.plain import storable

KNOWN_COLUMNS = 20_000
"""Maximum number of columns of all confirmed mappings that are passed to a reader."""
_VOUCHED = frozenset({MappingTier.PERSON, MappingTier.LEARNED})
"""Tiers of columns that a person decided; built-in ones are proposed again in any case."""
_OWN_ALONE = frozenset({"currency", "decimal"})
"""Settings that apply only to the source for which they were confirmed."""


@dataclass(frozen=True, slots=True)
class KnownMapping:
    """Confirmed mapping of this source (`own`) or of another source of the organisation in the same mode."""

    digest: str
    own: bool
    headers: tuple[str, ...]
    columns: tuple[Column, ...]
    unmapped: tuple[Unmapped, ...] = ()


@dataclass(frozen=True, slots=True)
class _Decision:
    """Decision of a person on a column; a `field` of None excludes the column."""

    field: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    prefix: bool = False


def _decision(column: Column) -> _Decision:
    """Return the part of a column that applies to other sources: without settings proved by values or by the market."""
    dropped = _OWN_ALONE | ({"unit", "unit_by"} if "unit_by" in column.settings else frozenset())
    kept = sorted((name, str(value)) for name, value in column.settings.items() if name not in dropped)
    return _Decision(column.field, tuple(kept), column.prefix)


def digest_of(headers: Sequence[str]) -> str:
    """Return the digest of a header set: of its exact headers in order, without the name of the sheet."""
    digest = blake2b(digest_size=16)
    for header in headers:
        text = storable(header).encode()
        digest.update(len(text).to_bytes(8) + text)
    return digest.hexdigest()


def bounded(known: Iterable[KnownMapping], most: int = KNOWN_COLUMNS) -> tuple[KnownMapping, ...]:
    """Return the first mappings that have at most `most` columns together."""
    kept = []
    for mapping in known:
        most -= len(mapping.headers)
        if most < 0:
            break
        kept.append(mapping)
    return tuple(kept)


def _words(headers: Sequence[str]) -> list[str]:
    return [plain_words(header) or clean(header).lower() for header in headers]


def _neighbours(words: Sequence[str], position: int) -> tuple[str, str]:
    padded = ("", *words, "")
    return padded[position], padded[position + 2]


class Knowledge:
    """Confirmed mappings, from which columns are learned unless people disagree."""

    def __init__(self, known: Sequence[KnownMapping] = ()) -> None:
        self.known = known

    @cached_property
    def _decisions(self) -> Mapping[str, list[tuple[bool, tuple[str, str], _Decision]]]:
        """Decisions on each header: whether the source's own people made them, the neighbouring headers, and the decision."""
        found = defaultdict(list)
        for mapping in self.known:
            words = _words(mapping.headers)
            decided = {column.position: _decision(column) for column in mapping.columns if column.tier in _VOUCHED}
            if mapping.own:
                left_out = [u.position for u in mapping.unmapped if u.reason == UnmappedReason.IGNORED]
                decided |= dict.fromkeys(left_out, _Decision())
            for position, decision in decided.items():
                if position < len(words) and words[position]:
                    found[words[position]].append((mapping.own, _neighbours(words, position), decision))
        return found

    def laid_over(
        self, proposed: HeaderMapping, samples: Sequence[Sequence[str]], settings: FeedSettings
    ) -> HeaderMapping:
        """Return the mapping by which to read a table: `proposed`, with the columns that a person decided.

        A header set of the source itself is read as confirmed, except that the formats of prices and dates are detected for each
        file unless a person set them. For the same header set of other sources, those columns are used on which all who confirmed
        it agree. Otherwise single headers are used; those of other sources only beside a header with which they occurred before.
        Both are `learned`. `samples` are the table's first rows as texts.
        """
        if not self.known:
            return proposed
        digest, width = digest_of(proposed.headers), len(proposed.headers)
        same = [one for one in self.known if one.digest == digest and len(one.headers) == width]
        for own in same:
            if own.own:
                return _with_columns(proposed, own.columns, own.unmapped, samples, settings)
        decided = _agreed(same) if same else self._decided(proposed.headers)
        if not decided:
            return proposed
        columns, unmapped = _merged(proposed, decided, firm=bool(same))
        return _with_columns(proposed, columns, unmapped, samples, settings)

    def _decided(self, headers: Sequence[str]) -> dict[int, _Decision]:
        """Return the decision on each header, where all decisions agree.

        Decisions of the source's own people take precedence and apply at any position, others only beside the same neighbour.
        """
        words = _words(headers)
        decided: dict[int, _Decision] = {}
        for position, word in enumerate(words):
            left, right = _neighbours(words, position)
            decisions = self._decisions.get(word, ())
            adjacent = [one for one in decisions if "" != one[1][0] == left or "" != one[1][1] == right]
            candidates = (
                {decision for own, _, decision in adjacent if own}
                or {decision for own, _, decision in decisions if own}
                or {decision for _, _, decision in adjacent}
            )
            if len(candidates) == 1:
                decided[position] = candidates.pop()
        return decided


def _agreed(same: Sequence[KnownMapping]) -> dict[int, _Decision]:
    """Return the decision on each column on which all who confirmed a header set agree."""
    decisions_by_position = defaultdict[int, set[_Decision]](set)
    for mapping in same:
        for column in mapping.columns:
            decisions_by_position[column.position].add(_decision(column))
        for excluded in mapping.unmapped:
            decisions_by_position[excluded.position].add(_Decision())
    return {position: decisions.pop() for position, decisions in decisions_by_position.items() if len(decisions) == 1}


def _merged(
    proposed: HeaderMapping, decided: Mapping[int, _Decision], *, firm: bool
) -> tuple[Sequence[Column], Sequence[Unmapped]]:
    """Return the columns and the unmapped columns with the decisions applied.

    Decisions that are `firm` take a field from the column for which it was proposed; others leave it there.
    """
    entries = by_position(proposed.columns, proposed.unmapped)
    undecided = {slot_of(column) for column in proposed.columns if column.position not in decided}
    for position, decision in sorted(decided.items()):
        header, settings = proposed.headers[position], dict(decision.settings)
        if decision.field is None:
            if isinstance(entries[position], Column) or not firm:
                entries[position] = Unmapped(position, header, UnmappedReason.IGNORED)
            continue
        learned = Column(position, header, decision.field, settings, MappingTier.LEARNED, decision.prefix)
        if firm or may_repeat(learned.field) or slot_of(learned) not in undecided:
            entries[position] = learned
    taken = set[Slot]()
    for column in sorted(parted(entries)[0], key=lambda column: column.position not in decided):
        slot, position = slot_of(column), column.position
        if slot in taken and not may_repeat(column.field):
            entries[position] = Unmapped(position, column.column, UnmappedReason.AMBIGUOUS)
        elif position in decided:
            taken.add(slot)
    return parted(entries)


def _with_columns(
    proposed: HeaderMapping,
    columns: Sequence[Column],
    unmapped: Sequence[Unmapped],
    samples: Sequence[Sequence[str]],
    settings: FeedSettings,
) -> HeaderMapping:
    """Return the mapping with the columns and the settings that this file's values prove; a person's settings take precedence."""
    texts = [[row[place] if place < len(row) else "" for row in samples] for place in range(len(proposed.headers))]
    proven = [
        replace(after, settings={**after.settings, **before.settings}) if before.tier == MappingTier.PERSON else after
        for before, after in zip(columns, with_proven_settings(columns, texts, settings), strict=True)
    ]
    return replace(proposed, columns=tuple(proven), unmapped=tuple(unmapped), missing=missing(proven, settings.stream))
