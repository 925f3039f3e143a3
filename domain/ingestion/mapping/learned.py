"""Use of mappings that people confirmed earlier to correct the mapping that is proposed for a table."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

from domain.ingestion.mapping.columns import (
    SECOND_FIELD,
    ColumnTarget,
    add_inferred_settings,
    allows_several_columns,
    combine_entries,
    find_column_target,
    find_missing_data,
    split_entries,
)
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, UnmappedColumn, UnmappedReason
from domain.ingestion.values.text import clean_line
from domain.ingestion.vocabulary.header_meanings import normalise_words
from domain.kernel.json_values import replace_unstorable
from domain.kernel.problems import ProblemKind

MAX_CONFIRMED_COLUMNS = 20_000
"""Maximum total number of columns in the confirmed mappings of one ReadRequest."""
_DECIDED_TIERS = frozenset({MappingTier.PERSON, MappingTier.LEARNED})
"""Tiers of columns whose field a person decided; fields of other columns are proposed again for each file."""
_SOURCE_SETTINGS = frozenset({"currency", "decimal", SECOND_FIELD})
"""Settings that apply only to the source for which they were confirmed, or explain its proposal."""


@dataclass(frozen=True, slots=True)
class ConfirmedMapping:
    """Column mapping that a person confirmed earlier.

    Attributes:
        digest: The digest of the headers (`compute_header_digest`).
        is_own: Whether the mapping belongs to the source that is read; otherwise to another source of the organisation.
    """

    digest: str
    is_own: bool
    headers: tuple[str, ...]
    columns: tuple[Column, ...]
    unmapped: tuple[UnmappedColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class _Decision:
    """Decision of a person about a column: the field with settings, or None if the person excluded the column."""

    field: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    is_in_numbered_series: bool = False
    values: tuple[tuple[str, str], ...] = ()
    ignored_problems: tuple[ProblemKind, ...] = ()


def _make_decision(column: Column, *, is_own: bool = False) -> _Decision:
    """Convert a column of a confirmed mapping to a decision that can apply to other header sets.

    Settings that apply only to one source, and units that were inferred, are omitted. Replacements of values and ignored
    problems apply only to header sets of the same source (`is_own`).
    """
    excluded_settings = _SOURCE_SETTINGS | ({"unit", "unit_by"} if "unit_by" in column.settings else frozenset())
    kept = sorted((name, str(value)) for name, value in column.settings.items() if name not in excluded_settings)
    own = (tuple(sorted(column.values.items())), column.ignored_problems) if is_own else ()
    return _Decision(column.field, tuple(kept), column.prefix, *own)


def compute_header_digest(headers: Sequence[str]) -> str:
    """Compute the digest of the exact headers of a table in their order; the name of the sheet is not included."""
    digest = blake2b(digest_size=16)
    for header in headers:
        text = replace_unstorable(header).encode()
        digest.update(len(text).to_bytes(8) + text)
    return digest.hexdigest()


def limit_mappings(
    mappings: Iterable[ConfirmedMapping], max_columns: int = MAX_CONFIRMED_COLUMNS
) -> tuple[ConfirmedMapping, ...]:
    """Return the first mappings that have at most `max_columns` columns together.

    The mapping that exceeds the limit and all later mappings are omitted.
    """
    selected = []
    for mapping in mappings:
        max_columns -= len(mapping.headers)
        if max_columns < 0:
            break
        selected.append(mapping)
    return tuple(selected)


def _normalise_headers(headers: Sequence[str]) -> list[str]:
    """Return the headers in lower case without punctuation, for comparisons."""
    return [normalise_words(header) or clean_line(header).lower() for header in headers]


def _find_adjacent_headers(headers: Sequence[str], position: int) -> tuple[str, str]:
    """Return the headers to the left and to the right of a position; an empty string where there is no header."""
    padded = ("", *headers, "")
    return padded[position], padded[position + 2]


class LearnedMappings:
    """Confirmed mappings of several sources, whose decisions about columns are applied to new tables unless they differ.

    Attributes:
        mappings: The confirmed mappings.
    """

    def __init__(self, mappings: Sequence[ConfirmedMapping] = ()) -> None:
        self.mappings = mappings

    @cached_property
    def _decisions(self) -> Mapping[str, list[tuple[bool, tuple[str, str], _Decision]]]:
        """All decisions by normalised header, each with `is_own` of its mapping and the headers to the left and right."""
        found = defaultdict(list)
        for mapping in self.mappings:
            words = _normalise_headers(mapping.headers)
            decided = {
                column.position: _make_decision(column, is_own=mapping.is_own)
                for column in mapping.columns
                if column.tier in _DECIDED_TIERS
            }
            if mapping.is_own:
                left_out = [u.position for u in mapping.unmapped if u.reason == UnmappedReason.IGNORED]
                decided |= dict.fromkeys(left_out, _Decision())
            for position, decision in decided.items():
                if position < len(words) and words[position]:
                    found[words[position]].append((mapping.is_own, _find_adjacent_headers(words, position), decision))
        return found

    def apply_to(
        self, proposed: HeaderMapping, samples: Sequence[Sequence[str]], settings: FeedSettings
    ) -> HeaderMapping:
        """Apply the decisions of people to a proposed mapping, and return the resulting mapping.

        A confirmed mapping of the same source with the same headers replaces the proposal; only the formats of prices and dates are
        detected again, unless a person set them. If other sources have mappings with the same headers, the columns on which these mappings
        agree are used. Otherwise decisions about single headers are used; decisions of other sources apply only if an adjacent header
        is also the same. In the last two cases, the columns have the tier `learned`.

        Args:
            proposed: The proposed mapping.
            samples: The first rows of the table as texts.
            settings: The settings of the source.
        """
        if not self.mappings:
            return proposed
        digest, width = compute_header_digest(proposed.headers), len(proposed.headers)
        same = [one for one in self.mappings if one.digest == digest and len(one.headers) == width]
        for own in same:
            if own.is_own:
                return _replace_columns(proposed, own.columns, own.unmapped, samples, settings)
        decided = _agree_on_columns(same) if same else self._find_agreed_decisions(proposed.headers)
        if not decided:
            return proposed
        columns, unmapped = _apply_decisions(proposed, decided, overrides_proposals=bool(same))
        return _replace_columns(proposed, columns, unmapped, samples, settings)

    def _find_agreed_decisions(self, headers: Sequence[str]) -> dict[int, _Decision]:
        """Return the decision about each header for which all earlier decisions are equal, by position.

        Decisions for the same source take precedence. Decisions for other sources apply only if an adjacent header is the same.
        """
        words = _normalise_headers(headers)
        decided: dict[int, _Decision] = {}
        for position, word in enumerate(words):
            left, right = _find_adjacent_headers(words, position)
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


def _agree_on_columns(mappings: Sequence[ConfirmedMapping]) -> dict[int, _Decision]:
    """Return, by column position, the decisions on which all of these mappings, which have the same headers, agree."""
    decisions_by_position = defaultdict[int, set[_Decision]](set)
    for mapping in mappings:
        for column in mapping.columns:
            decisions_by_position[column.position].add(_make_decision(column))
        for excluded in mapping.unmapped:
            decisions_by_position[excluded.position].add(_Decision())
    return {position: decisions.pop() for position, decisions in decisions_by_position.items() if len(decisions) == 1}


def _apply_decisions(
    proposed: HeaderMapping, decision_by_position: Mapping[int, _Decision], *, overrides_proposals: bool
) -> tuple[Sequence[Column], Sequence[UnmappedColumn]]:
    """Apply decisions to a proposed mapping, and return the columns with and without a field.

    Args:
        proposed: The proposed mapping.
        decision_by_position: The decisions by position.
        overrides_proposals: Whether a decided field is used even if the field is proposed for another column. The other
            column then has no field.
    """
    entries = combine_entries(proposed.columns, proposed.unmapped)
    undecided = {
        find_column_target(column) for column in proposed.columns if column.position not in decision_by_position
    }
    for position, decision in sorted(decision_by_position.items()):
        header, settings = proposed.headers[position], dict(decision.settings)
        if decision.field is None:
            if isinstance(entries[position], Column) or not overrides_proposals:
                entries[position] = UnmappedColumn(position, header, UnmappedReason.IGNORED)
            continue
        learned = Column(
            position, header, decision.field, settings, MappingTier.LEARNED, decision.is_in_numbered_series,
            values=dict(decision.values), ignored_problems=decision.ignored_problems,
        )  # fmt: skip
        if overrides_proposals or allows_several_columns(learned.field) or find_column_target(learned) not in undecided:
            entries[position] = learned
    taken = set[ColumnTarget]()
    for column in sorted(split_entries(entries)[0], key=lambda column: column.position not in decision_by_position):
        slot, position = find_column_target(column), column.position
        if slot in taken and not allows_several_columns(column.field):
            entries[position] = UnmappedColumn(position, column.column, UnmappedReason.AMBIGUOUS)
        elif position in decision_by_position:
            taken.add(slot)
    return split_entries(entries)


def _replace_columns(
    mapping: HeaderMapping,
    columns: Sequence[Column],
    unmapped: Sequence[UnmappedColumn],
    samples: Sequence[Sequence[str]],
    settings: FeedSettings,
) -> HeaderMapping:
    """Return a mapping with other columns, whose settings are completed from the first rows of the table.

    Settings that a person made take precedence.
    """
    texts = [
        [row[position] if position < len(row) else "" for row in samples] for position in range(len(mapping.headers))
    ]
    completed = [
        replace(inferred, settings={**inferred.settings, **column.settings})
        if column.tier == MappingTier.PERSON
        else inferred
        for column, inferred in zip(columns, add_inferred_settings(columns, texts, settings), strict=True)
    ]
    return replace(
        mapping,
        columns=tuple(completed),
        unmapped=tuple(unmapped),
        missing=find_missing_data(completed, settings.stream),
    )
