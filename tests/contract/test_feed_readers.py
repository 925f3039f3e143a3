"""Feed readers (domain/ingestion/ports.py), in the same process and in separate processes."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from adapters.api_json.codec import JsonCodec
from adapters.pluggy.host import load_connectors
from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import ConfirmedMapping, compute_header_digest
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, UnmappedColumn, UnmappedReason
from domain.ingestion.ports import FeedReader, FeedReaderFactory, ParseFailed, ReadRequest
from domain.ingestion.snapshot_results import MappedTable, MappingRequired, StockOnlySnapshot
from domain.runs.chunks import compute_slot
from entrypoints.factories import create_feed_readers
from entrypoints.reader import RejectingHttpClient
from entrypoints.settings import read_settings
from tests.flows.service_processes import ROOT
from tests.support.readers import create_in_process_readers

pytestmark = pytest.mark.asyncio
ENV = {
    "JOINERY_DATABASE_URL": "postgresql:///none",
    "JOINERY_SECRET": "s" * 32,
    "JOINERY_PLUGINS": str(ROOT / "plugins.toml"),
}
CSV = b"""SKU,Product,Title,Price,Width (in),Qty NJ,Image 1
A-1,sofa,Oak sofa,499.90,80 1/2,3,https://v.example/a.jpg
A-2,sofa,Oak sofa,abc,80 1/2,4,https://v.example/b.jpg
,,,,,,
B-1,chair,Oak chair,99.95,31.5,0,
"""


@pytest_asyncio.fixture(params=["memory", "processes"])
async def readers(request: pytest.FixtureRequest) -> AsyncIterator[FeedReaderFactory]:
    connectors = load_connectors(ROOT / "plugins.toml", RejectingHttpClient(), release_version="0.1.0")
    made: Any = (
        create_in_process_readers(connectors)
        if request.param == "memory"
        else create_feed_readers(read_settings(ENV), JsonCodec())
    )
    yield made
    await made.close()


@asynccontextmanager
async def _open_reader(
    readers: FeedReaderFactory, folder: Path, content: bytes, **changes: Any
) -> AsyncIterator[FeedReader]:
    path = folder / "snapshot"
    path.write_bytes(content)
    given = {"connector": "csv", "config": {"currency": "usd"}, "stream": "catalogue", "settings": FeedSettings("usd")}
    async with readers.open(ReadRequest(str(path), str(folder), **given | {"buckets": 4} | changes)) as reader:
        yield reader


async def _ignore_progress(_: int) -> None:
    """Ignore the progress."""


def _list_numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _list_numbers(inner)
    elif not isinstance(value, str):
        yield value


async def test_a_feed_is_parsed_to_statements(readers: FeedReaderFactory, tmp_path: Path) -> None:
    async with _open_reader(readers, tmp_path, CSV) as reader:
        spooled = await reader.spool(_ignore_progress)
        assert (spooled.row_count, sum(spooled.bucket_sizes), spooled.locations) == (3, 3, frozenset({"default", "NJ"}))
        assert list(spooled.slots) == sorted({compute_slot(key, Stream.CATALOGUE) for key in ("A-1", "A-2", "B-1")})
        gathered = await reader.load_keys(range(4))
        keys = {one.key: line for one, line in zip(gathered.fingerprints, gathered.lines, strict=True)}
        assert keys == {"A-1": 2, "A-2": 3, "B-1": 5}
        stated = await reader.load_statements(range(4), ["A-1", "A-2"])
        assert sorted(statement.key for statement in stated.statements) == ["A-1", "A-2"]
        first = next(statement for statement in stated.statements if statement.key == "A-1")
        width = first.variants[0].data["dimensions"]["width"]
        assert width == {"hundredths_in": 8050, "given": {"value": Decimal("80.5"), "unit": "in"}}
        assert {offer.location: offer.data for offer in first.variants[0].offers}["NJ"]["quantity"] == 3
        assert [(problem.line, problem.field) for problem in stated.problems] == [(3, "price")]
        assert not any(isinstance(number, float) for number in _list_numbers(width))


async def test_fingerprints_are_the_same_in_all_readers(readers: FeedReaderFactory, tmp_path: Path) -> None:
    async with _open_reader(readers, tmp_path, CSV) as reader:
        await reader.spool(_ignore_progress)
        found = {one.key: one.fingerprint.hex() for one in (await reader.load_keys(range(4))).fingerprints}
    assert found["A-1"] == "2fa9841f29df98623b3f2f943d4868d0"


async def test_the_first_records_are_read(readers: FeedReaderFactory, tmp_path: Path) -> None:
    async with _open_reader(readers, tmp_path, CSV) as reader:
        sample = await reader.read_sample(2)
    assert [record["SKU"] for record in sample.records] == ["A-1", "A-2"] and sample.failure is None


@pytest.mark.parametrize(
    ("content", "changes", "error"),
    [
        (b"Remarks,Notes\nx,y\n", {}, MappingRequired),
        (b"PK\x03\x04nothing", {}, ParseFailed),
        (b"SKU,Qty\nA-1,3\n", {"may_be_stock": True}, StockOnlySnapshot),
        (b"SKU,Qty\nA-1,3\n", {"connector": "none"}, ParseFailed),
        (b"SKU,Title,Price" + b",Extra" * 1_500 + b"\n" + b"A-1,Sofa,1\n" * 300, {"max_bytes": 1 << 20}, ParseFailed),
    ],
)
async def test_unreadable_content_is_reported(
    readers: FeedReaderFactory, tmp_path: Path, content: bytes, changes: dict[str, Any], error: type[Exception]
) -> None:
    async with _open_reader(readers, tmp_path, content, **changes) as reader:
        with pytest.raises(error):
            await reader.spool(_ignore_progress)


async def test_rows_are_found_by_their_content(readers: FeedReaderFactory, tmp_path: Path) -> None:
    async with _open_reader(readers, tmp_path, CSV) as reader:
        found = await reader.find_rows(["A-2", "nothing"], 5)
        [row] = found.rows
        assert (row.sheet, row.line, found.is_complete) == (None, 3, True)
        assert dict(row.cells)["Price"] == "abc" and dict(row.cells)["Title"] == "Oak sofa"
        both = await reader.find_rows(["sofa"], 1)
        assert len(both.rows) == 1 and not both.is_complete
    async with _open_reader(readers, tmp_path, CSV, max_rows=1) as reader:
        assert (await reader.find_rows(["A-2"], 5)).searched_rows == 1
    pushed = b'[{"product": {"external_id": "P-1"}, "variants": [{"external_id": "V-1", "sku": "S-1"}]}]\n[{"product": {"external_id": "P-2"}}]\n'
    async with _open_reader(readers, tmp_path, pushed, has_records=True) as reader:
        [record] = (await reader.find_rows(["S-1"], 5)).rows
        assert ("variants.0.sku", "S-1") in record.cells


async def test_pushed_records_are_read(readers: FeedReaderFactory, tmp_path: Path) -> None:
    record = b'[{"product":{"external_id":"P","title":"T"},"variants":[{"external_id":"V","weight":{"value":1.10,"unit":"lb"}}]}]\n'
    async with _open_reader(readers, tmp_path, record * 2, has_records=True, buckets=1) as reader:
        assert (await reader.spool(_ignore_progress)).row_count == 2
        statement, again = (await reader.load_statements(range(1), ["P"])).statements
        assert again == statement and not statement.has_offers_only
    assert statement.variants[0].data["weight"]["given"] == {"value": Decimal("1.10"), "unit": "lb"}


async def test_many_feeds_are_read_in_sequence(readers: FeedReaderFactory, tmp_path: Path) -> None:
    for number in range(5):
        async with _open_reader(readers, tmp_path, CSV.replace(b"A-1", b"N-%d" % number)) as reader:
            await reader.spool(_ignore_progress)
            assert f"N-{number}" in {one.key for one in (await reader.load_keys(range(4))).fingerprints}


async def test_confirmed_mappings_are_used_and_every_table_is_reported(
    readers: FeedReaderFactory, tmp_path: Path
) -> None:
    headers = ("Zorb", "Quix", "Flim")
    columns = (
        Column(0, "Zorb", "sku", {}, MappingTier.PERSON),
        Column(2, "Flim", "cost", {"location": "NJ"}, MappingTier.PERSON),
    )
    left_out = (UnmappedColumn(1, "Quix", UnmappedReason.IGNORED),)
    known = ConfirmedMapping(compute_header_digest(headers), True, headers, columns, left_out)
    content = b"Zorb,Quix,Flim\nfjell,x,9.50\nskog,y,8\n"
    async with _open_reader(readers, tmp_path, content, confirmed_mappings=(known,)) as reader:
        spooled = await reader.spool(_ignore_progress)
        assert (spooled.row_count, spooled.locations, spooled.tables.columns, spooled.tables.unmapped) == (
            2, frozenset({"default", "NJ"}), 3, 1,
        )  # fmt: skip
        [table] = spooled.tables.listed_tables
        proven = columns[0], replace(columns[1], settings={"location": "NJ", "decimal": "dot"})
        assert table == MappedTable(
            None, HeaderMapping(headers, proven, left_out), (("fjell", "x", "9.50"), ("skog", "y", "8"))
        )
        [statement] = (await reader.load_statements(range(4), ["skog"])).statements
        assert statement.variants[0].offers[0].data == {"cost": 800, "currency": "usd"}


async def test_a_table_without_a_key_is_reported_with_its_headers(readers: FeedReaderFactory, tmp_path: Path) -> None:
    async with _open_reader(readers, tmp_path, b"Zorb,Quix\nfjell,1\nskog,2\n") as reader:
        with pytest.raises(MappingRequired, match="Headers: Zorb, Quix") as stopped:
            await reader.spool(_ignore_progress)
    [table] = stopped.value.tables.listed_tables
    assert table.mapping.headers == ("Zorb", "Quix") and table.mapping.missing == ("key",) and table.is_confirmable
    assert table.samples == (("fjell", "1"), ("skog", "2"))


async def test_excerpts_have_the_lines_of_the_feed(readers: FeedReaderFactory, tmp_path: Path) -> None:
    async with _open_reader(readers, tmp_path, CSV) as reader:
        [found] = await reader.read_excerpts([(None, 3), (None, 99), ("Prices", 2)], 1)
    assert found.headers[:3] == ("SKU", "Product", "Title") and found.sheet is None
    assert [(line, cells[0], cells[3]) for line, cells in found.rows] == [
        (2, "A-1", "499.90"), (3, "A-2", "abc"),
    ]  # fmt: skip
