"""What a model is asked of a mapping, and what of its answer stands (domain/mappings/asking.py)."""

import json
from datetime import timedelta
from typing import Any

import pytest

from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import Knowledge, KnownMapping
from domain.ingestion.mapping.proposal import propose
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, Unmapped, UnmappedReason
from domain.ingestion.reading import ReadTable
from domain.ingestion.vocabulary.fields import is_field
from domain.mappings.asking import (
    BORNE_OUT,
    DOUBTFUL,
    INSTRUCTIONS,
    MOST_ASKED,
    OFFERED,
    ON_ITS_WORD,
    BadGuess,
    Guess,
    answered,
    askable,
    data_of,
    delay,
    guesses_of,
    schema_of,
)
from domain.mappings.confirming import CUT, FIELDS, confirm
from domain.mappings.model import MappingStatus, SourceMapping
from domain.mappings.proposing import brought_up_to_date
from entrypoints.operations.validation import SchemaFaults
from tests.support import builders

USD = FeedSettings("usd")
LATER = builders.MOMENT + timedelta(minutes=1)
HEADERS = ("SKU", "Zorb", "Flim", "Drub")
ROWS = (("A-1", "oak", "19.50", "31 in"), ("A-2", "ash", "20", "32 in"))


def _mapping(*headers: str, **changes: Any) -> SourceMapping:
    return builders.mapping("src_1", *(headers or HEADERS), **({"samples": ROWS} | changes))


def _after(mapping: SourceMapping, *guesses: Guess, settings: FeedSettings = USD) -> SourceMapping:
    return answered(mapping, askable(mapping), guesses, settings, LATER)


def _read(mapping: SourceMapping) -> dict[int, tuple[str, str]]:
    return {column.position: (column.field, column.tier) for column in mapping.columns}


def test_what_is_offered_are_fields() -> None:
    assert set(OFFERED) <= set(FIELDS) and all(map(is_field, OFFERED))
    assert all(f"- {field}: " in INSTRUCTIONS for field in OFFERED)


def test_only_what_nothing_understood_is_asked_about() -> None:
    columns = (
        Column(0, "A", "sku", {}),
        Column(1, "B", "colour", {}, MappingTier.FUZZY, confidence=DOUBTFUL - 0.01),
        Column(2, "C", "finish", {}, MappingTier.FUZZY, confidence=DOUBTFUL),
    )
    reasons = list(UnmappedReason)
    unmapped = tuple(Unmapped(3 + n, "D", reason) for n, reason in enumerate(reasons))
    headers = (*"ABC", *("D" for _ in reasons))
    mapping = _mapping(*headers, columns=columns, unmapped=unmapped, samples=(tuple("x" for _ in headers),))
    assert askable(mapping) == (1, 3 + reasons.index(UnmappedReason.UNKNOWN))
    assert askable(_mapping(status=MappingStatus.CONFIRMED)) == ()
    assert askable(_mapping(asked=(1, 2))) == (3,)


def test_blank_columns_are_not_asked_about_and_never_more_than_a_few() -> None:
    assert askable(_mapping(samples=(("A", "", " ", "x"),))) == (3,)
    assert askable(_mapping(samples=())) == ()
    headers = tuple(f"Z{n}" for n in range(MOST_ASKED * 2))
    wide = _mapping(*headers, samples=(tuple("x" for _ in headers),))
    first = askable(wide)
    assert first == tuple(range(1, MOST_ASKED + 1))
    assert askable(answered(wide, first, (), USD, LATER))[0] == MOST_ASKED + 1


def test_what_is_shown_is_of_those_columns_alone() -> None:
    shown = data_of(_mapping("SKU", "Zorb", "F" * 999, "Drub"), (1, 3))
    assert shown["columns"][0] == {
        "position": 1, "header": "Zorb", "before": "SKU", "after": "F" * 200, "samples": ["oak", "ash"]
    }  # fmt: skip
    assert shown["columns"][1]["after"] == "" and "19.50" not in json.dumps(shown) and "A-1" not in json.dumps(shown)


def test_the_schema_has_no_other_columns_and_fields() -> None:
    def faults(**guess: Any) -> bool:
        whole = {"position": 1, "field": "colour", "confidence": 0.5} | guess
        return bool(SchemaFaults().faults(schema_of((1, 3)), {"columns": [whole]}, "answer"))

    assert not faults() and not faults(field=None)
    assert faults(position=2) and faults(field="ignore") and faults(field="axes.Size") and faults(confidence=2)
    assert faults(more="x")


@pytest.mark.parametrize(
    "said",
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
def test_an_answer_about_anything_else_is_void(said: Any) -> None:
    good = {"position": 3, "field": "colour", "confidence": 1}
    if isinstance(said, dict) and isinstance(said["columns"], list):
        said = {"columns": [*said["columns"], good]}
    with pytest.raises(BadGuess):
        guesses_of(said, (1, 3))


def test_what_an_answer_says() -> None:
    said = [{"position": 3, "field": "colour", "confidence": 1}, {"position": 1, "field": None, "confidence": 0.2}]
    assert guesses_of({"columns": said}, (1, 3)) == (Guess(3, "colour", 1.0),)
    assert guesses_of({"columns": []}, (1, 3)) == ()


def test_guesses_become_columns_that_are_never_sure() -> None:
    after = _after(_mapping(), Guess(1, "materials", 1.0), Guess(2, "cost", 0.6), Guess(3, "dimensions.width", 1.0))
    assert _read(after) == {
        0: ("sku", "built_in"), 1: ("materials", "model"), 2: ("cost", "model"), 3: ("dimensions.width", "model")
    }  # fmt: skip
    assert [column.confidence for column in after.columns[1:]] == [BORNE_OUT, 0.6, BORNE_OUT] and BORNE_OUT < 0.9
    assert after.columns[3].settings == {"unit": "in", "unit_by": "column"}, "as its values prove"
    assert after.unmapped == () and after.asked == (1, 2, 3) and after.updated_at == LATER
    assert after.status == MappingStatus.PROPOSED and askable(after) == ()
    [tags] = _after(_mapping(), Guess(1, "tags", 0.95)).columns[1:]
    assert tags.confidence == ON_ITS_WORD, "its values prove nothing of tags"


def test_nothing_said_is_remembered_as_asked() -> None:
    mapping = _mapping()
    after = _after(mapping, Guess(1, "materials", 0.3))
    assert (after.columns, after.unmapped, after.asked) == (mapping.columns, mapping.unmapped, (1, 2, 3))
    assert after.updated_at == mapping.updated_at


def test_what_the_values_speak_against_does_not_stand() -> None:
    assert _read(_after(_mapping(), Guess(1, "cost", 1.0), Guess(2, "colour", 1.0), Guess(3, "gtin", 1.0))) == {
        0: ("sku", "built_in")
    }
    cut = (("A-1", "x" * 99 + CUT, "1", "2"), ("A-2", "nine", "1", "2"))
    assert _read(_after(_mapping(samples=cut), Guess(1, "cost", 1.0))) == {0: ("sku", "built_in")}


def test_no_field_is_given_twice_unless_columns_of_it_add_up() -> None:
    twice = _after(_mapping(), Guess(1, "colour", 1.0), Guess(2, "sku", 1.0), Guess(3, "colour", 1.0))
    assert _read(twice) == {0: ("sku", "built_in")}
    added = _after(_mapping(), Guess(1, "materials", 1.0), Guess(2, "materials", 1.0))
    assert set(_read(added)) == {0, 1}, "figures are no materials"
    rows = (("A-1", "oak", "19", "steel"),)
    added = _after(_mapping(samples=rows), Guess(1, "materials", 1.0), Guess(3, "materials", 1.0))
    assert set(_read(added)) == {0, 1, 3}
    columns = (Column(0, "SKU", "sku", {}), Column(2, "Flim", "quantity", {"location": "NJ"}))
    unmapped = tuple(Unmapped(n, HEADERS[n], UnmappedReason.UNKNOWN) for n in (1, 3))
    located = _mapping(columns=columns, unmapped=unmapped, samples=(("A-1", "7", "19", "8"),))
    assert set(_read(_after(located, Guess(1, "quantity", 1.0)))) == {0, 2}


def test_a_doubtful_column_gets_another_meaning_or_stays() -> None:
    doubtful = Column(1, "Zorb", "collection", {}, MappingTier.FUZZY, confidence=0.5)
    unmapped = tuple(Unmapped(n, HEADERS[n], UnmappedReason.UNKNOWN) for n in (2, 3))
    mapping = _mapping(columns=(Column(0, "SKU", "sku", {}), doubtful), unmapped=unmapped)
    assert _read(_after(mapping, Guess(1, "materials", 0.9)))[1] == ("materials", "model")
    assert _after(mapping, Guess(1, "collection", 0.9)).columns[1] == doubtful
    assert _after(mapping).columns[1] == doubtful


def _table(*columns: Column, unknown: tuple[int, ...], rows: Any = ROWS) -> ReadTable:
    unmapped = tuple(Unmapped(n, HEADERS[n], UnmappedReason.UNKNOWN) for n in unknown)
    return ReadTable(None, HeaderMapping(HEADERS, columns, unmapped), rows)


def test_later_runs_keep_what_was_guessed_as_long_as_it_stands() -> None:
    mapping = _after(_mapping(), Guess(1, "materials", 1.0), Guess(3, "dimensions.width", 1.0))
    sku = Column(0, "SKU", "sku", {})
    same = _table(sku, unknown=(1, 2, 3))
    assert brought_up_to_date(mapping, same, Stream.CATALOGUE, LATER) is mapping
    learned = Column(1, "Zorb", "colour", {}, MappingTier.LEARNED)
    after = brought_up_to_date(mapping, _table(sku, learned, unknown=(2, 3)), Stream.CATALOGUE, LATER)
    assert _read(after) == {0: ("sku", "built_in"), 1: ("colour", "learned"), 3: ("dimensions.width", "model")}
    assert [one.position for one in after.unmapped] == [2] and after.asked == (1, 2, 3)
    blank = _table(sku, unknown=(1, 2, 3), rows=(("A-9", "", "", ""),))
    assert brought_up_to_date(mapping, blank, Stream.CATALOGUE, LATER) is mapping, "blank values speak against nothing"
    taken = Column(2, "Flim", "dimensions.width", {})
    assert 3 not in _read(brought_up_to_date(mapping, _table(sku, taken, unknown=(1, 3)), Stream.CATALOGUE, LATER))
    other = _table(Column(0, "SKU", "mpn", {}), unknown=(1, 2, 3), rows=(("A", "oak", "1", "by hand"),))
    assert 3 not in _read(brought_up_to_date(mapping, other, Stream.CATALOGUE, LATER)), (
        "the values speak against it now"
    )


def test_runs_read_by_what_a_person_confirmed_and_by_no_proposal() -> None:
    guessed = _after(_mapping(), Guess(1, "materials", 1.0))
    proposed = propose(HEADERS, ROWS, USD)
    assert 1 not in {column.position for column in Knowledge().laid_over(proposed, ROWS, USD).columns}
    confirmed = confirm(guessed, (), USD, LATER)
    assert _read(confirmed)[1] == ("materials", "model")

    def read(own: bool, headers: tuple[str, ...]) -> dict[str, tuple[str, str]]:
        known = KnownMapping(confirmed.digest, own, confirmed.headers, confirmed.columns, confirmed.unmapped)
        mapped = Knowledge((known,)).laid_over(propose(headers, ROWS, USD), ROWS, USD)
        return {column.column: (column.field, column.tier) for column in mapped.columns}

    assert read(True, HEADERS)["Zorb"] == ("materials", "model")
    assert read(False, HEADERS)["Zorb"] == ("materials", "learned"), "a person confirmed this very header set"
    assert "Zorb" not in read(True, ("SKU", "Zorb", "Flim")), "nobody spoke of this very column"


def test_how_long_a_question_waits() -> None:
    waits = [delay(attempt) for attempt in range(1, 8)]
    assert waits[:2] == [timedelta(minutes=1), timedelta(minutes=4)] and waits[5:] == [None, None]
