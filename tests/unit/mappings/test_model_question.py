"""Questions to a model about a mapping, and accepted answers (domain/mappings/model_requests.py)."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.catalogue.model import Stream
from domain.ingestion.mapping.columns import SECOND_FIELD
from domain.ingestion.mapping.learned import ConfirmedMapping, LearnedMappings
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, UnmappedColumn, UnmappedReason
from domain.ingestion.snapshot_results import MappedTable
from domain.ingestion.vocabulary.fields import is_field
from domain.mappings.confirmation import ELLIPSIS, FIELD_NAMES, apply_confirmation
from domain.mappings.model import MappingStatus, SourceMapping
from domain.mappings.model_requests import (
    INSTRUCTIONS,
    MAX_REQUEST_COLUMNS,
    MAX_SUPPORTED_CONFIDENCE,
    MAX_UNSUPPORTED_CONFIDENCE,
    MIN_RELIABLE_CONFIDENCE,
    SELECTABLE_FIELDS,
    ColumnGuess,
    InvalidModelAnswer,
    apply_guesses,
    build_answer_schema,
    build_request_data,
    compute_retry_delay,
    find_request_positions,
    parse_guesses,
)
from domain.mappings.proposal_log import update_proposal
from entrypoints.operations.validation import JsonSchemaValidator
from tests.support import builders

USD = FeedSettings("usd")
LATER = builders.MOMENT + timedelta(minutes=1)
HEADERS = ("SKU", "Zorb", "Flim", "Drub")
ROWS = (("A-1", "oak", "19.50", "31 in"), ("A-2", "ash", "20", "32 in"))


def _create_mapping(*headers: str, **changes: Any) -> SourceMapping:
    return builders.mapping("src_1", *(headers or HEADERS), **({"samples": ROWS} | changes))


def _apply_guesses(mapping: SourceMapping, *guesses: ColumnGuess, settings: FeedSettings = USD) -> SourceMapping:
    return apply_guesses(mapping, find_request_positions(mapping), guesses, settings, LATER)


def _get_columns(mapping: SourceMapping) -> dict[int, tuple[str, str]]:
    return {column.position: (column.field, column.tier) for column in mapping.columns}


def test_selectable_fields_are_known() -> None:
    assert set(SELECTABLE_FIELDS) <= set(FIELD_NAMES) and all(map(is_field, SELECTABLE_FIELDS))
    assert all(f"- {field}: " in INSTRUCTIONS for field in SELECTABLE_FIELDS)


def test_questions_contain_only_uncertain_columns() -> None:
    columns = (
        Column(0, "A", "sku", {}),
        Column(1, "B", "colour", {}, MappingTier.FUZZY, confidence=MIN_RELIABLE_CONFIDENCE - 0.01),
        Column(2, "C", "finish", {}, MappingTier.FUZZY, confidence=MIN_RELIABLE_CONFIDENCE),
        Column(3, "D", "title", {}, confidence=0.89),
        Column(4, "E", "weight", {}, confidence=0.89),
    )
    reasons = list(UnmappedReason)
    unmapped = tuple(UnmappedColumn(5 + n, "F", reason) for n, reason in enumerate(reasons))
    headers = (*"ABCDE", *("F" for _ in reasons))
    cells = (*"x1!", "", "12 kg", *("x" for _ in reasons))
    mapping = _create_mapping(*headers, columns=columns, unmapped=unmapped, samples=(cells,))
    assert find_request_positions(mapping) == (1, 2, 5 + reasons.index(UnmappedReason.UNKNOWN))
    assert find_request_positions(_create_mapping(status=MappingStatus.CONFIRMED)) == ()
    assert find_request_positions(_create_mapping(question_positions=(1, 2))) == (3,)


def test_questions_contain_no_blank_columns_and_are_bounded() -> None:
    assert find_request_positions(_create_mapping(samples=(("A", "", " ", "x"),))) == (3,)
    assert find_request_positions(_create_mapping(samples=())) == ()
    headers = tuple(f"Z{n}" for n in range(MAX_REQUEST_COLUMNS * 2))
    wide = _create_mapping(*headers, samples=(tuple("x" for _ in headers),))
    first = find_request_positions(wide)
    assert first == tuple(range(1, MAX_REQUEST_COLUMNS + 1))
    assert find_request_positions(apply_guesses(wide, first, (), USD, LATER))[0] == MAX_REQUEST_COLUMNS + 1


def test_questions_contain_samples_of_only_these_columns() -> None:
    shown = build_request_data(_create_mapping("SKU", "Zorb", "F" * 999, "Drub"), (1, 3))
    assert shown["columns"][0] == {
        "position": 1, "header": "Zorb", "before": "SKU", "after": "F" * 200, "samples": ["oak", "ash"]
    }  # fmt: skip
    assert shown["columns"][1]["after"] == "" and "19.50" not in json.dumps(shown) and "A-1" not in json.dumps(shown)


def test_the_schema_has_no_other_columns_and_fields() -> None:
    def is_refused(**guess: Any) -> bool:
        whole = {"position": 1, "field": "colour", "confidence": 0.5} | guess
        return bool(
            JsonSchemaValidator().find_field_errors(build_answer_schema((1, 3)), {"columns": [whole]}, "answer")
        )

    assert not is_refused() and not is_refused(field=None)
    assert (
        is_refused(position=2)
        and is_refused(field="ignore")
        and is_refused(field="axes.Size")
        and is_refused(confidence=2)
    )
    assert is_refused(more="x")


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"columns": None},
        {"columns": ["colour"]},
        {"columns": [{"position": 0, "field": "colour", "confidence": 1}]},
        {"columns": [{"position": True, "field": "colour", "confidence": 1}]},
        {"columns": [{"position": 1.0, "field": "colour", "confidence": 1}]},
        {"columns": [{"position": [1], "field": "colour", "confidence": 1}]},
        {"columns": [{"position": 1, "field": "ignore", "confidence": 1}]},
        {"columns": [{"position": 1, "field": "DROP TABLE", "confidence": 1}]},
        {"columns": [{"position": 1, "field": ["colour"], "confidence": 1}]},
        {"columns": [{"position": 1, "field": "colour"}]},
        {"columns": [{"position": 1, "field": "colour", "confidence": True}]},
        {"columns": [{"position": 1, "field": "colour", "confidence": float("nan")}]},
        {"columns": [{"position": 1, "field": "colour", "confidence": 7}]},
        {
            "columns": [
                {"position": 1, "field": None, "confidence": 0},
                {"position": 1, "field": "colour", "confidence": 1},
            ]
        },
    ],
)
def test_answers_about_anything_else_are_invalid(answer: Any) -> None:
    good = {"position": 3, "field": "colour", "confidence": 1}
    if isinstance(answer, dict) and isinstance(answer["columns"], list):
        answer = {"columns": [*answer["columns"], good]}
    with pytest.raises(InvalidModelAnswer):
        parse_guesses(answer, (1, 3))


def test_an_answer_is_parsed_into_guesses() -> None:
    answer = [{"position": 3, "field": "colour", "confidence": 1}, {"position": 1, "field": None, "confidence": 0.2}]
    assert parse_guesses({"columns": answer}, (1, 3)) == (ColumnGuess(3, "colour", 1.0),)
    assert parse_guesses({"columns": []}, (1, 3)) == ()


def test_guesses_become_columns_that_are_never_certain() -> None:
    after = _apply_guesses(
        _create_mapping(),
        ColumnGuess(1, "materials", 1.0),
        ColumnGuess(2, "cost", 0.6),
        ColumnGuess(3, "dimensions.width", 1.0),
    )
    assert _get_columns(after) == {
        0: ("sku", "built_in"), 1: ("materials", "model"), 2: ("cost", "model"), 3: ("dimensions.width", "model")
    }  # fmt: skip
    assert [column.confidence for column in after.columns[1:]] == [
        MAX_SUPPORTED_CONFIDENCE,
        0.6,
        MAX_SUPPORTED_CONFIDENCE,
    ] and MAX_SUPPORTED_CONFIDENCE < 0.9
    assert after.columns[3].settings == {"unit": "in", "unit_by": "column"}, "as proved by the values"
    assert after.unmapped == () and after.question_positions == (1, 2, 3) and after.updated_at == LATER
    assert after.status == MappingStatus.PROPOSED and find_request_positions(after) == ()
    [tags] = _apply_guesses(_create_mapping(), ColumnGuess(1, "tags", 0.95)).columns[1:]
    assert tags.confidence == MAX_UNSUPPORTED_CONFIDENCE, "its values do not prove tags"


def test_a_different_guess_for_a_mapped_column_is_its_second_field() -> None:
    """The column keeps its field with less confidence, also after the next run; the same guess changes nothing."""
    columns = (Column(0, "SKU", "sku", {}), Column(1, "Zorb", "tags", {}, confidence=0.85))
    mapping = _create_mapping(columns=columns, unmapped=())
    assert _get_columns(_apply_guesses(mapping, ColumnGuess(1, "tags", 0.9))) == _get_columns(mapping)
    after = _apply_guesses(mapping, ColumnGuess(1, "materials", 0.9))
    assert after.columns[1] == replace(columns[1], confidence=0.79, settings={SECOND_FIELD: "materials"})
    table = MappedTable(None, HeaderMapping(mapping.headers, columns, ()), mapping.samples, True)
    assert update_proposal(after, table, Stream.CATALOGUE, LATER).columns == after.columns


def test_columns_without_a_guess_are_remembered() -> None:
    mapping = _create_mapping()
    after = _apply_guesses(mapping, ColumnGuess(1, "materials", 0.3))
    assert (after.columns, after.unmapped, after.question_positions) == (mapping.columns, mapping.unmapped, (1, 2, 3))
    assert after.updated_at == mapping.updated_at


def test_a_guess_that_the_values_contradict_is_rejected() -> None:
    assert _get_columns(
        _apply_guesses(
            _create_mapping(), ColumnGuess(1, "cost", 1.0), ColumnGuess(2, "colour", 1.0), ColumnGuess(3, "gtin", 1.0)
        )
    ) == {0: ("sku", "built_in")}
    cut = (("A-1", "x" * 99 + ELLIPSIS, "1", "2"), ("A-2", "nine", "1", "2"))
    assert _get_columns(_apply_guesses(_create_mapping(samples=cut), ColumnGuess(1, "cost", 1.0))) == {
        0: ("sku", "built_in")
    }


def test_only_additive_fields_are_assigned_twice() -> None:
    twice = _apply_guesses(
        _create_mapping(), ColumnGuess(1, "colour", 1.0), ColumnGuess(2, "sku", 1.0), ColumnGuess(3, "colour", 1.0)
    )
    assert _get_columns(twice) == {0: ("sku", "built_in")}
    added = _apply_guesses(_create_mapping(), ColumnGuess(1, "materials", 1.0), ColumnGuess(2, "materials", 1.0))
    assert set(_get_columns(added)) == {0, 1}, "numbers are not materials"
    rows = (("A-1", "oak", "19", "steel"),)
    added = _apply_guesses(
        _create_mapping(samples=rows), ColumnGuess(1, "materials", 1.0), ColumnGuess(3, "materials", 1.0)
    )
    assert set(_get_columns(added)) == {0, 1, 3}
    columns = (Column(0, "SKU", "sku", {}), Column(2, "Flim", "quantity", {"location": "NJ"}))
    unmapped = tuple(UnmappedColumn(n, HEADERS[n], UnmappedReason.UNKNOWN) for n in (1, 3))
    located = _create_mapping(columns=columns, unmapped=unmapped, samples=(("A-1", "7", "19", "8"),))
    assert set(_get_columns(_apply_guesses(located, ColumnGuess(1, "quantity", 1.0)))) == {0, 2}


def test_an_uncertain_column_gets_another_meaning_or_is_kept() -> None:
    doubtful = Column(1, "Zorb", "collection", {}, MappingTier.FUZZY, confidence=0.5)
    unmapped = tuple(UnmappedColumn(n, HEADERS[n], UnmappedReason.UNKNOWN) for n in (2, 3))
    mapping = _create_mapping(columns=(Column(0, "SKU", "sku", {}), doubtful), unmapped=unmapped)
    assert _get_columns(_apply_guesses(mapping, ColumnGuess(1, "materials", 0.9)))[1] == ("materials", "model")
    assert _apply_guesses(mapping, ColumnGuess(1, "collection", 0.9)).columns[1] == doubtful
    assert _apply_guesses(mapping).columns[1] == doubtful


def _create_table(*columns: Column, unknown: tuple[int, ...], rows: Any = ROWS) -> MappedTable:
    unmapped = tuple(UnmappedColumn(n, HEADERS[n], UnmappedReason.UNKNOWN) for n in unknown)
    return MappedTable(None, HeaderMapping(HEADERS, columns, unmapped), rows)


def test_later_runs_keep_guesses_while_they_are_valid() -> None:
    mapping = _apply_guesses(
        _create_mapping(), ColumnGuess(1, "materials", 1.0), ColumnGuess(3, "dimensions.width", 1.0)
    )
    sku = Column(0, "SKU", "sku", {})
    same = _create_table(sku, unknown=(1, 2, 3))
    assert update_proposal(mapping, same, Stream.CATALOGUE, LATER) is mapping
    learned = Column(1, "Zorb", "colour", {}, MappingTier.LEARNED)
    after = update_proposal(mapping, _create_table(sku, learned, unknown=(2, 3)), Stream.CATALOGUE, LATER)
    assert _get_columns(after) == {0: ("sku", "built_in"), 1: ("colour", "learned"), 3: ("dimensions.width", "model")}
    assert [one.position for one in after.unmapped] == [2] and after.question_positions == (1, 2, 3)
    blank = _create_table(sku, unknown=(1, 2, 3), rows=(("A-9", "", "", ""),))
    assert update_proposal(mapping, blank, Stream.CATALOGUE, LATER) is mapping, "blank values contradict nothing"
    taken = Column(2, "Flim", "dimensions.width", {})
    assert 3 not in _get_columns(
        update_proposal(mapping, _create_table(sku, taken, unknown=(1, 3)), Stream.CATALOGUE, LATER)
    )
    other = _create_table(Column(0, "SKU", "mpn", {}), unknown=(1, 2, 3), rows=(("A", "oak", "1", "by hand"),))
    assert 3 not in _get_columns(update_proposal(mapping, other, Stream.CATALOGUE, LATER)), (
        "the values contradict the guess now"
    )


def test_runs_use_confirmed_guesses_only() -> None:
    guessed = _apply_guesses(_create_mapping(), ColumnGuess(1, "materials", 1.0))
    proposed = propose_column_mapping(HEADERS, ROWS, USD)
    assert 1 not in {column.position for column in LearnedMappings().apply_to(proposed, ROWS, USD).columns}
    confirmed = apply_confirmation(guessed, (), USD, LATER)
    assert _get_columns(confirmed)[1] == ("materials", "model")

    def map_columns(own: bool, headers: tuple[str, ...]) -> dict[str, tuple[str, str]]:
        known = ConfirmedMapping(confirmed.digest, own, confirmed.headers, confirmed.columns, confirmed.unmapped)
        mapped = LearnedMappings((known,)).apply_to(propose_column_mapping(headers, ROWS, USD), ROWS, USD)
        return {column.column: (column.field, column.tier) for column in mapped.columns}

    assert map_columns(True, HEADERS)["Zorb"] == ("materials", "model")
    assert map_columns(False, HEADERS)["Zorb"] == ("materials", "learned"), "a person confirmed this header set"
    assert "Zorb" not in map_columns(True, ("SKU", "Zorb", "Flim")), "no person confirmed this column"


def test_questions_are_retried_with_growing_delays() -> None:
    waits = [compute_retry_delay(attempt) for attempt in range(1, 8)]
    assert waits[:2] == [timedelta(minutes=1), timedelta(minutes=4)] and waits[5:] == [None, None]
