"""Proposal of a column mapping from the headers and the first rows of a table.

Each header has possible meanings (fields with scores, `vocabulary/header_meanings.py`). The values of the column (`evidence.py`) and the
other columns (`neighbours.py`) change these scores. Then each column gets the best meaning that no other column has.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Any

from domain.ingestion.mapping.columns import (
    CERTAIN_CONFIDENCE,
    add_inferred_settings,
    add_second_field,
    allows_several_columns,
    find_missing_data,
    join_target_settings,
)
from domain.ingestion.mapping.evidence import CONTRADICTED, estimate_confidence, filter_meanings, find_differing_field
from domain.ingestion.mapping.neighbours import (
    MappingDraft,
    correct_by_neighbours,
    find_meanings_of_headers,
    map_tables_of_known_kinds,
    map_warehouses,
)
from domain.ingestion.mapping.options import map_options
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, UnmappedColumn, UnmappedReason
from domain.ingestion.values.text import clean_line, convert_to_text
from domain.ingestion.vocabulary.fields import COMBINED_FIELDS, IGNORE, KEYS, MONEY, is_field, parse_declared_field
from domain.ingestion.vocabulary.header_meanings import (
    PROMOTED_SCORE,
    HeaderMeaning,
    correct_by_classification,
    normalise_words,
)

_MAX_WEAK_SCORE = 50
_MIN_SECOND_SCORE = 50
_MIN_ALTERNATIVE_SCORE = 60
_PRICE_CODE_BONUS = 1_000
_CURRENCY_BONUS = 5
_BLANK_PENALTY = 30
_MIN_BLANKS = 3
_MAX_LONG_PROPORTION = 0.3
_MIN_TITLE_SCORE = 45
_NOT_SKU_FIELDS = ("product_key", "title", "tags", "variant_key", "mpn")
_ALTERNATIVE_FIELDS = MONEY.union(
    KEYS,
    "title variant_title description brand availability collection quantity lead_time_days".split(),
    "category_path category_path.0 category_path.1".split(),
)
"""Fields for which a second column is listed but not read, such as another price level."""


def _reduce_scores_of_blank_columns(draft: MappingDraft) -> None:
    """Reduce the scores of columns without values in the samples if a column with values has the same field."""
    stated = {draft.find_best_meaning(position).field for position, traits in enumerate(draft.statistics) if traits}
    for position, values in enumerate(draft.samples):
        blank = len(values) >= _MIN_BLANKS and draft.statistics[position] is None
        if blank and draft.find_best_meaning(position).field in stated:
            draft.meanings[position] = tuple(
                replace(s, score=s.score - _BLANK_PENALTY) for s in draft.meanings[position]
            )


def _prefer_price_code(draft: MappingDraft) -> None:
    """Give the highest score to the price column whose header contains the `price_code` of the source."""
    code = normalise_words(draft.settings.price_code or "")
    for position, meanings in enumerate(draft.meanings):
        if code and code in draft.plain_headers[position]:
            draft.meanings[position] = tuple(
                replace(s, score=s.score + _PRICE_CODE_BONUS, settings=(*s.settings, ("price_code", code)))
                if s.field in MONEY
                else s
                for s in meanings
            )


def _prefer_source_currency(draft: MappingDraft) -> None:
    """Prefer prices in the currency of the source to prices of the same field in other currencies."""
    for position, meanings in enumerate(draft.meanings):
        if meanings and draft.settings.currency and ("currency", draft.settings.currency) in meanings[0].settings:
            draft.change_best_meaning(position, score=meanings[0].score + _CURRENCY_BONUS)


def _ensure_field(draft: MappingDraft, field: str, excluded_fields: Sequence[str]) -> None:
    """Ensure that a field is the best meaning of some column, if it is a possible meaning of any.

    If the field is the best meaning of no column, the field becomes the best meaning of the column in which its score
    is highest.

    Args:
        draft: The draft of the mapping, which is changed.
        field: The field, which every product should have.
        excluded_fields: The fields of columns that are not changed.
    """
    weak = [
        (sense.score, -position)
        for position, meanings in enumerate(draft.meanings)
        for sense in meanings
        if sense.field == field and meanings[0].field not in excluded_fields
    ]
    if weak and not draft.find_positions(field):
        best = -max(weak)[1]
        raised = [replace(s, score=PROMOTED_SCORE) if s.field == field else s for s in draft.meanings[best]]
        draft.meanings[best] = tuple(sorted(raised, key=lambda sense: -sense.score))


def _ensure_title(draft: MappingDraft) -> None:
    """Use a description column as title if it is the only one and its values are short; remove other weak meanings as title."""
    texts = draft.find_positions("description")
    for position in texts if len(texts) < 2 else ():
        traits = draft.statistics[position]
        short = traits is not None and traits["long"] < _MAX_LONG_PROPORTION
        draft.meanings[position] = tuple(
            sense
            for sense in draft.meanings[position]
            if sense.field != "title" or (short and sense.score >= _MIN_TITLE_SCORE)
        )
    _ensure_field(draft, "title", KEYS)
    for position, meanings in enumerate(draft.meanings):
        draft.meanings[position] = meanings[:1] + tuple(
            s for s in meanings[1:] if s.field != "title" or s.score > _MAX_WEAK_SCORE
        )


def _choose_meanings(draft: MappingDraft) -> dict[int, HeaderMeaning | None]:
    """Choose the meaning of each column, by position; None for a column without a field.

    Columns with a higher score have the first choice; if scores are equal, the first column has.
    """
    counts, used_headers, meaning_by_position = (
        Counter[tuple[str, str]](),
        set[tuple[str, str]](),
        dict[int, HeaderMeaning | None](),
    )

    def find_target(meaning: HeaderMeaning) -> tuple[str, str]:
        return meaning.field, join_target_settings(dict(meaning.settings))

    def find_available(meanings: Sequence[HeaderMeaning], header: str) -> HeaderMeaning | None:
        """Return the best meaning that is still available for a column, or None."""
        for index, meaning in enumerate(meanings):
            if meaning.field == CONTRADICTED or (index and meaning.score < _MIN_SECOND_SCORE):
                return None
            is_repeatable = meaning.is_numbered or meaning.field in COMBINED_FIELDS
            is_header_unused = is_repeatable or (meaning.field, header) not in used_headers
            if meaning.field == IGNORE or (
                is_header_unused and (not counts[find_target(meaning)] or allows_several_columns(meaning.field))
            ):
                return meaning
        return None

    queue = [(-meanings[0].score, position) for position, meanings in enumerate(draft.meanings) if meanings]
    heapify(queue)
    while queue:
        score, position = heappop(queue)
        header, best_meaning = draft.plain_headers[position], draft.meanings[position][0]
        meaning = find_available(draft.meanings[position], header)
        if meaning and -meaning.score > score:
            # Another column has the strongest sense, so this column is queued again with its next sense.
            heappush(queue, (-meaning.score, position))
        elif meaning:
            count = counts[find_target(meaning)]
            # A second column of a field is a fallback for blank cells in the first; its rank is a setting.
            fallback = (("fallback", str(count)),) if count and meaning.field not in (*COMBINED_FIELDS, IGNORE) else ()
            meaning_by_position[position] = replace(meaning, settings=(*meaning.settings, *fallback))
            counts[find_target(meaning)] += 1
            used_headers.add((meaning.field, header))
        elif (
            best_meaning.score >= _MIN_ALTERNATIVE_SCORE
            and best_meaning.field in _ALTERNATIVE_FIELDS
            and (best_meaning.field, header) not in used_headers
        ):
            # Other columns have all its fields, so the column is listed but not read.
            meaning_by_position[position] = replace(
                best_meaning, settings=(*best_meaning.settings, ("alternative", "yes"))
            )
        else:
            meaning_by_position[position] = None
    return meaning_by_position


def propose_column_mapping(
    headers: Sequence[str],
    samples: Sequence[Sequence[Any]],
    settings: FeedSettings,
    sheet: str | None = None,
    notes: str = "",
) -> HeaderMapping:
    """Propose the column mapping of a table. The same input always gives the same result.

    Args:
        headers: The headers.
        samples: The cells of the first rows.
        settings: The settings of the source.
        sheet: The name of the sheet, or None.
        notes: The text above the table.
    """
    rows = [[convert_to_text(cell) for cell in row] for row in samples]
    columns = [[row[position] for row in rows if position < len(row)] for position in range(len(headers))]
    draft = MappingDraft(headers, columns, settings, find_meanings_of_headers(headers), f"{sheet or ''}\n{notes}")
    for position, header in enumerate(headers):
        draft.meanings[position] = correct_by_classification(header, draft.meanings[position])
    map_tables_of_known_kinds(draft)
    for position, traits in enumerate(draft.statistics):
        draft.meanings[position] = filter_meanings(draft.meanings[position], traits)
    _reduce_scores_of_blank_columns(draft)
    correct_by_neighbours(draft)
    map_warehouses(draft)
    map_options(draft)
    _prefer_source_currency(draft)
    _prefer_price_code(draft)
    _ensure_field(draft, "sku", _NOT_SKU_FIELDS)
    _ensure_title(draft)
    return _build_mapping(draft, _choose_meanings(draft))


def _build_mapping(draft: MappingDraft, meaning_by_position: dict[int, HeaderMeaning | None]) -> HeaderMapping:
    """Build the mapping from the chosen meanings of the columns."""
    mapped: list[Column] = []
    unmapped: list[UnmappedColumn] = []
    for position, header in enumerate(draft.headers):
        meaning, meanings = meaning_by_position.get(position), draft.meanings[position]
        if meaning and meaning.field != IGNORE:
            confidence = estimate_confidence(header, meaning, meanings, draft.statistics[position])
            tier = MappingTier.FUZZY if meaning.is_guess else MappingTier.BUILT_IN
            column = Column(
                position, header, meaning.field, dict(meaning.settings), tier, meaning.is_numbered, confidence
            )
            other = find_differing_field(header, meaning.field, draft.statistics[position])
            is_disputed = other is not None and confidence < CERTAIN_CONFIDENCE and not column.is_alternative
            mapped.append(add_second_field(column, str(other)) if is_disputed else column)
        elif clean_line(header) in (
            "",
            f"Column {position + 1}",
        ):  # readers of tables name a column without a header by its number
            unmapped.append(UnmappedColumn(position, header, UnmappedReason.EMPTY))
        elif meaning or not meanings:
            unmapped.append(
                UnmappedColumn(position, header, UnmappedReason.IGNORED if meaning else UnmappedReason.UNKNOWN)
            )
        else:
            unmapped.append(UnmappedColumn(position, header, UnmappedReason.AMBIGUOUS))
    completed_columns = add_inferred_settings(mapped, draft.samples, draft.settings)
    return HeaderMapping(
        tuple(draft.headers),
        tuple(completed_columns),
        tuple(unmapped),
        find_missing_data(completed_columns, draft.settings.stream),
    )


def map_declared_fields(headers: Sequence[str], fields: Sequence[str | None]) -> HeaderMapping:
    """Build the mapping of a table from the fields that the connector declares.

    Args:
        headers: The headers.
        fields: The field of each header with settings (`weight@unit=g`), or None for a column without a field.
    """
    mapped: list[Column] = []
    unmapped: list[UnmappedColumn] = []
    for position, header in enumerate(headers):
        text = fields[position] if position < len(fields) else None
        name, settings = parse_declared_field(text or "")
        if is_field(name) and name != IGNORE:
            prefix = name in COMBINED_FIELDS and any(map(str.isdecimal, header))
            mapped.append(Column(position, header, name, settings, prefix=prefix))
        else:
            known = not text or name == IGNORE
            unmapped.append(
                UnmappedColumn(position, header, UnmappedReason.IGNORED if known else UnmappedReason.UNKNOWN)
            )
    return HeaderMapping(
        tuple(headers), tuple(mapped), tuple(unmapped), find_missing_data(mapped, FeedSettings().stream)
    )
