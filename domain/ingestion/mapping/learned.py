"""What people have confirmed of headers, laid over what is proposed for a table."""

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
"""Columns of all confirmed header sets together that a reader is told of."""
_VOUCHED = frozenset({MappingTier.PERSON, MappingTier.LEARNED})
"""Tiers of columns that a person has thought about; what is built in is proposed anew anyway."""
_OWN_ALONE = frozenset({"currency", "decimal"})
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

    field: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    prefix: bool = False


def _decision(column: Column) -> _Decision:
    """Return what holds of the column beyond its source: no setting that its values or its source's market proved."""
    dropped = _OWN_ALONE | ({"unit", "unit_by"} if "unit_by" in column.settings else frozenset())
    kept = sorted((name, str(value)) for name, value in column.settings.items() if name not in dropped)
    return _Decision(column.field, tuple(kept), column.prefix)


def digest_of(headers: Sequence[str]) -> str:
    """Return what tells one header set from another: exact headers in their order, whatever the sheet is called."""
    digest = blake2b(digest_size=16)
    for header in headers:
        text = storable(header).encode()
        digest.update(len(text).to_bytes(8) + text)
    return digest.hexdigest()


def bounded(known: Iterable[KnownMapping], most: int = KNOWN_COLUMNS) -> tuple[KnownMapping, ...]:
    """Return the first of them that have so many columns together."""
    kept = []
    for one in known:
        most -= len(one.headers)
        if most < 0:
            break
        kept.append(one)
    return tuple(kept)


def _words(headers: Sequence[str]) -> list[str]:
    return [plain_words(header) or clean(header).lower() for header in headers]


def _neighbours(words: Sequence[str], position: int) -> tuple[str, str]:
    padded = ("", *words, "")
    return padded[position], padded[position + 2]


class Knowledge:
    """What is known of header sets. Where people disagree nothing is learned."""

    def __init__(self, known: Sequence[KnownMapping] = ()) -> None:
        self.known = known

    @cached_property
    def _decisions(self) -> Mapping[str, list[tuple[bool, tuple[str, str], _Decision]]]:
        """The decisions about every single header: whether the source's own people made them, beside which headers."""
        found = defaultdict(list)
        for one in self.known:
            words = _words(one.headers)
            decided = {column.position: _decision(column) for column in one.columns if column.tier in _VOUCHED}
            if one.own:
                left_out = [u.position for u in one.unmapped if u.reason == UnmappedReason.IGNORED]
                decided |= dict.fromkeys(left_out, _Decision())
            for position, decision in decided.items():
                if position < len(words) and words[position]:
                    found[words[position]].append((one.own, _neighbours(words, position), decision))
        return found

    def laid_over(
        self, proposed: HeaderMapping, samples: Sequence[Sequence[str]], settings: FeedSettings
    ) -> HeaderMapping:
        """Return the mapping to read a table by: `proposed`, but for the columns that a person decided on.

        The very header set of the source is read as it was confirmed; how a file writes prices and dates is proved by each
        file anew, unless a person has said it. That of another source is, column by column, what
        those who confirmed it agree on; other header sets take over single headers, those of other sources where they stand
        beside a header that they stood beside before. Both are `learned`. `samples` are the table's first rows as texts.
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
        """Return what was decided on single headers, where those who did agree: best beside a neighbour it had.

        The source's own people come first; a header of theirs means the same wherever it stands, others' does not.
        """
        words = _words(headers)
        decided: dict[int, _Decision] = {}
        for position, word in enumerate(words):
            left, right = _neighbours(words, position)
            known = self._decisions.get(word, ())
            beside = [one for one in known if "" != one[1][0] == left or "" != one[1][1] == right]
            said = (
                {decision for own, _, decision in beside if own}
                or {decision for own, _, decision in known if own}
                or {decision for _, _, decision in beside}
            )
            if len(said) == 1:
                decided[position] = said.pop()
        return decided


def _agreed(same: Sequence[KnownMapping]) -> dict[int, _Decision]:
    """Return what all who confirmed one header set say of each column."""
    said = defaultdict[int, set[_Decision]](set)
    for one in same:
        for column in one.columns:
            said[column.position].add(_decision(column))
        for left_out in one.unmapped:
            said[left_out.position].add(_Decision())
    return {position: decisions.pop() for position, decisions in said.items() if len(decisions) == 1}


def _merged(
    proposed: HeaderMapping, decided: Mapping[int, _Decision], *, firm: bool
) -> tuple[Sequence[Column], Sequence[Unmapped]]:
    """Return the columns and the unmapped ones with the decisions made.

    `firm` decisions take a field from columns it was proposed for; others leave it there, and their column as proposed.
    """
    entries = by_position(proposed.columns, proposed.unmapped)
    undecided = {slot_of(column) for column in proposed.columns if column.position not in decided}
    for position, said in sorted(decided.items()):
        header, settings = proposed.headers[position], dict(said.settings)
        if said.field is None:
            if isinstance(entries[position], Column) or not firm:
                entries[position] = Unmapped(position, header, UnmappedReason.IGNORED)
            continue
        learned = Column(position, header, said.field, settings, MappingTier.LEARNED, said.prefix)
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
    """Return the mapping with the columns, and what this file's values prove of them; a person's word on that stands."""
    texts = [[row[place] if place < len(row) else "" for row in samples] for place in range(len(proposed.headers))]
    proven = [
        replace(after, settings={**after.settings, **before.settings}) if before.tier == MappingTier.PERSON else after
        for before, after in zip(columns, with_proven_settings(columns, texts, settings), strict=True)
    ]
    return replace(proposed, columns=tuple(proven), unmapped=tuple(unmapped), missing=missing(proven, settings.stream))
