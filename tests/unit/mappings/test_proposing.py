"""What is kept of the tables that a run reads (domain/mappings/proposing.py)."""

from dataclasses import replace
from datetime import timedelta

from domain.catalogue.model import Stream
from domain.ingestion.mapping.proposal import propose
from domain.ingestion.model import FeedSettings, HeaderMapping
from domain.ingestion.reading import MOST_TABLES, ReadTable
from domain.mappings.confirming import CUT
from domain.mappings.model import MappingStatus
from domain.mappings.proposing import MOST_COLUMNS, TableLog, brought_up_to_date, few_rows, is_mappable, new_mapping
from domain.runs.model import KEPT_COLUMNS
from domain.runs.sheets import columns_of, unkeyed
from tests.support import builders

LATER = builders.MOMENT + timedelta(minutes=1)


def _proposed(*headers: str) -> HeaderMapping:
    return propose(headers, [], FeedSettings("usd"))


def test_each_header_set_of_a_sheet_once() -> None:
    log = TableLog()
    for _ in range(3):
        log.add("A", _proposed("SKU", "Zorb"), [["1", "2"]], given=False)
    log.add("B", _proposed("SKU", "Zorb"), [["3", "4"]], given=False)
    tables = log.tables()
    assert [(table.sheet, table.samples) for table in tables.first] == [("A", (("1", "2"),)), ("B", (("3", "4"),))]
    assert (tables.columns, tables.unmapped) == (4, 2)


def test_what_connectors_know_nobody_is_asked_about() -> None:
    log = TableLog()
    log.add(None, _proposed("SKU"), [["1"]], given=True)
    log.add(None, _proposed(*(f"Zorb {n}" for n in range(MOST_COLUMNS + 1))), [["1"]], given=False)
    first, wide = log.tables().first
    assert (first.asked, first.samples, wide.asked, wide.samples) == (False, (), False, ())
    assert len(wide.mapping.headers) == KEPT_COLUMNS and log.tables().columns == MOST_COLUMNS + 2
    assert is_mappable(["a"]) and not is_mappable([]) and not is_mappable(["x" * (1 << 18)])


def test_many_tables_are_counted_and_the_first_told() -> None:
    log = TableLog()
    for n in range(MOST_TABLES * 2):
        log.add(f"Sheet {n}", _proposed("SKU", f"Zorb {n}"), [], given=False)
    tables = log.tables()
    assert len(tables.first) == MOST_TABLES and tables.columns == MOST_TABLES * 4


def test_texts_are_made_storable() -> None:
    log = TableLog()
    log.add("A\0", _proposed("SKU\0", "\ud800"), [["x\0y", "\udfff"]], given=False)
    [table] = log.tables().first
    assert table.sheet == "A\ufffd" and table.mapping.headers == ("SKU\ufffd", "?")
    assert {*(c.column for c in table.mapping.columns), *(u.column for u in table.mapping.unmapped)} == {
        "SKU\ufffd",
        "?",
    }
    assert table.samples == (("x y", " "),)


def test_few_rows_are_small() -> None:
    rows = [["", " "], *([f"{n}" * 400, "b"] for n in range(9))]
    kept = few_rows(rows, 2)
    assert len(kept) == 5 and kept[0][0] == "0" * 99 + CUT and kept[0][1] == "b"
    wide = few_rows([["x" * 500] * MOST_COLUMNS] * 9, MOST_COLUMNS)
    assert sum(len(cell) for row in wide for cell in row) < 100_000
    assert few_rows([["a", "b", "c"], ["d"]], 2) == (("a", "b"), ("d",))


def test_a_proposal_is_brought_up_to_date_until_it_is_confirmed() -> None:
    table = ReadTable(None, _proposed("SKU", "Zorb"), (("1", "2"),))
    mapping = new_mapping("src_1", Stream.CATALOGUE, table, builders.MOMENT)
    assert mapping.id.startswith("map_") and mapping.status == "proposed" and mapping.headers == ("SKU", "Zorb")
    assert brought_up_to_date(mapping, table, Stream.CATALOGUE, LATER) is mapping
    assert brought_up_to_date(mapping, replace(table, samples=(("3", "4"),)), Stream.CATALOGUE, LATER) is mapping
    other = replace(table, mapping=replace(table.mapping, columns=()), samples=(("3", "4"),))
    changed = brought_up_to_date(mapping, other, Stream.CATALOGUE, LATER)
    assert (changed.id, changed.columns, changed.samples, changed.updated_at) == (mapping.id, (), (("3", "4"),), LATER)
    confirmed = replace(mapping, status=MappingStatus.CONFIRMED)
    assert brought_up_to_date(confirmed, other, Stream.STOCK, LATER) is confirmed


def test_a_run_tells_its_columns_in_order() -> None:
    log = TableLog()
    log.add("A", _proposed("Zorb", "SKU"), [], given=False)
    for n in range(3):
        log.add(f"B{n}", _proposed(*(f"Flim {m}" for m in range(KEPT_COLUMNS))), [], given=False)
    told = columns_of(log.tables())
    assert [(c.sheet, c.header, c.position, c.field, c.reason) for c in told[:2]] == [
        ("A", "Zorb", 0, None, "unknown"), ("A", "SKU", 1, "sku", None),
    ]  # fmt: skip
    assert len(told) == KEPT_COLUMNS and columns_of(TableLog().tables()) == ()


def test_the_sentence_names_the_headers() -> None:
    log = TableLog()
    log.add("Prices", _proposed(*(f"Zorb {n} " + "x" * 99 for n in range(20))), [], given=False)
    said = unkeyed(log.tables().first, Stream.CATALOGUE)
    assert said.startswith("No column of Prices could be read as the item's SKU, key, GTIN or MPN. Seen: Zorb 0 x")
    assert said.endswith("and 8 more.") and len(said) < 700
