"""Proposals that are stored for the tables of a run (domain/mappings/proposal_log.py)."""

from dataclasses import replace
from datetime import timedelta

from domain.catalogue.model import Stream
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import FeedSettings, HeaderMapping
from domain.ingestion.snapshot_results import MAX_LISTED_TABLES, MappedTable
from domain.mappings.confirmation import ELLIPSIS
from domain.mappings.model import MappingStatus
from domain.mappings.proposal_log import (
    MAX_COLUMNS,
    TableLog,
    is_mappable,
    propose_mapping,
    select_samples,
    update_proposal,
)
from domain.runs.model import MAX_LISTED_COLUMNS
from domain.runs.sheets import describe_columns, describe_unkeyed_tables
from tests.support import builders

LATER = builders.MOMENT + timedelta(minutes=1)


def _propose_mapping(*headers: str) -> HeaderMapping:
    return propose_column_mapping(headers, [], FeedSettings("usd"))


def test_each_header_set_of_a_sheet_is_listed_once() -> None:
    log = TableLog()
    for _ in range(3):
        log.add_table("A", _propose_mapping("SKU", "Zorb"), [["1", "2"]], is_predefined=False)
    log.add_table("B", _propose_mapping("SKU", "Zorb"), [["3", "4"]], is_predefined=False)
    tables = log.build_summary()
    assert [(table.sheet, table.samples) for table in tables.listed_tables] == [
        ("A", (("1", "2"),)),
        ("B", (("3", "4"),)),
    ]
    assert (tables.columns, tables.unmapped) == (4, 2)


def test_columns_known_to_connectors_raise_no_question() -> None:
    log = TableLog()
    log.add_table(None, _propose_mapping("SKU"), [["1"]], is_predefined=True)
    log.add_table(None, _propose_mapping(*(f"Zorb {n}" for n in range(MAX_COLUMNS + 1))), [["1"]], is_predefined=False)
    first, wide = log.build_summary().listed_tables
    assert (first.is_confirmable, first.samples, wide.is_confirmable, wide.samples) == (False, (), False, ())
    assert len(wide.mapping.headers) == MAX_LISTED_COLUMNS and log.build_summary().columns == MAX_COLUMNS + 2
    assert is_mappable(["a"]) and not is_mappable([]) and not is_mappable(["x" * (1 << 18)])


def test_all_tables_are_counted_and_the_first_are_listed() -> None:
    log = TableLog()
    for n in range(MAX_LISTED_TABLES * 2):
        log.add_table(f"Sheet {n}", _propose_mapping("SKU", f"Zorb {n}"), [], is_predefined=False)
    tables = log.build_summary()
    assert len(tables.listed_tables) == MAX_LISTED_TABLES and tables.columns == MAX_LISTED_TABLES * 4


def test_unstorable_characters_are_replaced() -> None:
    log = TableLog()
    log.add_table("A\0", _propose_mapping("SKU\0", "\ud800"), [["x\0y", "\udfff"]], is_predefined=False)
    [table] = log.build_summary().listed_tables
    assert table.sheet == "A\ufffd" and table.mapping.headers == ("SKU\ufffd", "?")
    assert {*(c.column for c in table.mapping.columns), *(u.column for u in table.mapping.unmapped)} == {
        "SKU\ufffd",
        "?",
    }
    assert table.samples == (("x y", " "),)


def test_sample_rows_are_bounded() -> None:
    rows = [["", " "], *([f"{n}" * 400, "b"] for n in range(9))]
    samples = select_samples(rows, 2)
    assert len(samples) == 5 and samples[0][0] == "0" * 99 + ELLIPSIS and samples[0][1] == "b"
    wide = select_samples([["x" * 500] * MAX_COLUMNS] * 9, MAX_COLUMNS)
    assert sum(len(cell) for row in wide for cell in row) < 100_000
    assert select_samples([["a", "b", "c"], ["d"]], 2) == (("a", "b"), ("d",))


def test_a_proposal_is_updated_until_it_is_confirmed() -> None:
    table = MappedTable(None, _propose_mapping("SKU", "Zorb"), (("1", "2"),))
    mapping = propose_mapping("src_1", Stream.CATALOGUE, table, builders.MOMENT)
    assert mapping.id.startswith("map_") and mapping.status == "proposed" and mapping.headers == ("SKU", "Zorb")
    assert update_proposal(mapping, table, Stream.CATALOGUE, LATER) is mapping
    assert update_proposal(mapping, replace(table, samples=(("3", "4"),)), Stream.CATALOGUE, LATER) is mapping
    other = replace(table, mapping=replace(table.mapping, columns=()), samples=(("3", "4"),))
    changed = update_proposal(mapping, other, Stream.CATALOGUE, LATER)
    assert (changed.id, changed.columns, changed.samples, changed.updated_at) == (mapping.id, (), (("3", "4"),), LATER)
    confirmed = replace(mapping, status=MappingStatus.CONFIRMED)
    assert update_proposal(confirmed, other, Stream.STOCK, LATER) is confirmed


def test_a_run_lists_its_columns_in_order() -> None:
    log = TableLog()
    log.add_table("A", _propose_mapping("Zorb", "SKU"), [], is_predefined=False)
    for n in range(3):
        log.add_table(
            f"B{n}", _propose_mapping(*(f"Flim {m}" for m in range(MAX_LISTED_COLUMNS))), [], is_predefined=False
        )
    described = describe_columns(log.build_summary())
    assert [(c.sheet, c.header, c.position, c.field, c.reason) for c in described[:2]] == [
        ("A", "Zorb", 0, None, "unknown"), ("A", "SKU", 1, "sku", None),
    ]  # fmt: skip
    assert len(described) == MAX_LISTED_COLUMNS and describe_columns(TableLog().build_summary()) == ()


def test_the_sentence_names_the_headers() -> None:
    log = TableLog()
    log.add_table("Prices", _propose_mapping(*(f"Zorb {n} " + "x" * 99 for n in range(20))), [], is_predefined=False)
    sentence = describe_unkeyed_tables(log.build_summary().listed_tables, Stream.CATALOGUE)
    assert sentence.startswith(
        "No column of Prices was recognised as the item's SKU, key, GTIN or MPN. Headers: Zorb 0 x"
    )
    assert sentence.endswith("and 8 more.") and len(sentence) < 700
