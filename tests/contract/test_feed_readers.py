"""Reading feeds (domain/ingestion/ports.py), in the process itself and in processes of their own."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from adapters.pluggy.host import connect
from adapters.wire.codec import JsonCodec
from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import KnownMapping, digest_of
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, Unmapped, UnmappedReason
from domain.ingestion.ports import FeedReader, FeedReaders, ParseFailed, ReadingOrder
from domain.ingestion.reading import NeedsMapping, ReadTable, StockSheet
from domain.runs.chunks import slot_of
from entrypoints.factories import feed_readers_of
from entrypoints.reader import NoNetwork
from entrypoints.settings import from_environment
from tests.flows.stage import ROOT
from tests.support.readers import in_process

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
async def readers(request: pytest.FixtureRequest) -> AsyncIterator[FeedReaders]:
    """Readers of either kind."""
    connectors = connect(ROOT / "plugins.toml", NoNetwork(), product_version="0.1.0")
    made: Any = (
        in_process(connectors) if request.param == "memory" else feed_readers_of(from_environment(ENV), JsonCodec())
    )
    yield made
    await made.close()


@asynccontextmanager
async def _reading(readers: FeedReaders, folder: Path, content: bytes, **changes: Any) -> AsyncIterator[FeedReader]:
    path = folder / "snapshot"
    path.write_bytes(content)
    given = {"connector": "csv", "config": {"currency": "usd"}, "stream": "catalogue", "settings": FeedSettings("usd")}
    async with readers.open(ReadingOrder(str(path), str(folder), **given | {"buckets": 4} | changes)) as reader:
        yield reader


async def _nobody(_: int) -> None:
    """Hear how far it is."""


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _numbers(inner)
    elif not isinstance(value, str):
        yield value


async def test_a_feed_from_its_bytes_to_its_statements(readers: FeedReaders, tmp_path: Path) -> None:
    async with _reading(readers, tmp_path, CSV) as reader:
        spooled = await reader.spool(_nobody)
        assert (spooled.rows, sum(spooled.held), spooled.places) == (3, 3, frozenset({"default", "NJ"}))
        assert list(spooled.slots) == sorted({slot_of(key, Stream.CATALOGUE) for key in ("A-1", "A-2", "B-1")})
        gathered = await reader.gather(range(4))
        keys = {one.key: line for one, line in zip(gathered.fingerprints, gathered.lines, strict=True)}
        assert keys == {"A-1": 2, "A-2": 3, "B-1": 5}
        stated = await reader.states(range(4), ["A-1", "A-2"])
        assert sorted(statement.key for statement in stated.statements) == ["A-1", "A-2"]
        first = next(statement for statement in stated.statements if statement.key == "A-1")
        width = first.variants[0].data["dimensions"]["width"]
        assert width == {"hundredths_in": 8050, "given": {"value": Decimal("80.5"), "unit": "in"}}
        assert {offer.location: offer.data for offer in first.variants[0].offers}["NJ"]["quantity"] == 3
        assert [(problem.line, problem.field) for problem in stated.problems] == [(3, "price")]
        assert not any(isinstance(number, float) for number in _numbers(width))


async def test_fingerprints_are_the_same_whoever_reads(readers: FeedReaders, tmp_path: Path) -> None:
    async with _reading(readers, tmp_path, CSV) as reader:
        await reader.spool(_nobody)
        found = {one.key: one.fingerprint.hex() for one in (await reader.gather(range(4))).fingerprints}
    assert found["A-1"] == "672ff7f519c61fb284af92edc7c83b98"


async def test_the_first_records(readers: FeedReaders, tmp_path: Path) -> None:
    async with _reading(readers, tmp_path, CSV) as reader:
        sample = await reader.sample(2)
    assert [record["SKU"] for record in sample.records] == ["A-1", "A-2"] and sample.failure is None


@pytest.mark.parametrize(
    ("content", "changes", "error"),
    [
        (b"Remarks,Notes\nx,y\n", {}, NeedsMapping),
        (b"PK\x03\x04nothing", {}, ParseFailed),
        (b"SKU,Qty\nA-1,3\n", {"may_be_stock": True}, StockSheet),
        (b"SKU,Qty\nA-1,3\n", {"connector": "none"}, ParseFailed),
        (b"SKU,Title,Price" + b",Extra" * 1_500 + b"\n" + b"A-1,Sofa,1\n" * 300, {"room": 1 << 20}, ParseFailed),
    ],
)
async def test_what_cannot_be_read_is_told(
    readers: FeedReaders, tmp_path: Path, content: bytes, changes: dict[str, Any], error: type[Exception]
) -> None:
    async with _reading(readers, tmp_path, content, **changes) as reader:
        with pytest.raises(error):
            await reader.spool(_nobody)


async def test_rows_are_found_by_what_stands_in_them(readers: FeedReaders, tmp_path: Path) -> None:
    async with _reading(readers, tmp_path, CSV) as reader:
        found = await reader.find(["A-2", "nothing"], 5)
        [row] = found.rows
        assert (row.sheet, row.line, found.whole) == (None, 3, True)
        assert dict(row.cells)["Price"] == "abc" and dict(row.cells)["Title"] == "Oak sofa"
        both = await reader.find(["sofa"], 1)
        assert len(both.rows) == 1 and not both.whole
    async with _reading(readers, tmp_path, CSV, limit=1) as reader:
        assert (await reader.find(["A-2"], 5)).looked == 1
    pushed = b'[{"product": {"external_id": "P-1"}, "variants": [{"external_id": "V-1", "sku": "S-1"}]}]\n[{"product": {"external_id": "P-2"}}]\n'
    async with _reading(readers, tmp_path, pushed, pushed=True) as reader:
        [record] = (await reader.find(["S-1"], 5)).rows
        assert ("variants.0.sku", "S-1") in record.cells


async def test_pushed_records(readers: FeedReaders, tmp_path: Path) -> None:
    record = b'[{"product":{"external_id":"P","title":"T"},"variants":[{"external_id":"V","weight":{"value":1.10,"unit":"lb"}}]}]\n'
    async with _reading(readers, tmp_path, record * 2, pushed=True, buckets=1) as reader:
        assert (await reader.spool(_nobody)).rows == 2
        statement, again = (await reader.states(range(1), ["P"])).statements
        assert again == statement and not statement.alone
    assert statement.variants[0].data["weight"]["given"] == {"value": Decimal("1.10"), "unit": "lb"}


async def test_many_feeds_one_after_the_other(readers: FeedReaders, tmp_path: Path) -> None:
    for number in range(5):
        async with _reading(readers, tmp_path, CSV.replace(b"A-1", b"N-%d" % number)) as reader:
            await reader.spool(_nobody)
            assert f"N-{number}" in {one.key for one in (await reader.gather(range(4))).fingerprints}


async def test_what_people_confirmed_is_read_by_and_every_table_is_told(readers: FeedReaders, tmp_path: Path) -> None:
    headers = ("Zorb", "Quix", "Flim")
    columns = (
        Column(0, "Zorb", "sku", {}, MappingTier.PERSON),
        Column(2, "Flim", "cost", {"location": "NJ"}, MappingTier.PERSON),
    )
    left_out = (Unmapped(1, "Quix", UnmappedReason.IGNORED),)
    known = KnownMapping(digest_of(headers), True, headers, columns, left_out)
    content = b"Zorb,Quix,Flim\nfjell,x,9.50\nskog,y,8\n"
    async with _reading(readers, tmp_path, content, known=(known,)) as reader:
        spooled = await reader.spool(_nobody)
        assert (spooled.rows, spooled.places, spooled.tables.columns, spooled.tables.unmapped) == (
            2, frozenset({"default", "NJ"}), 3, 1,
        )  # fmt: skip
        [table] = spooled.tables.first
        proven = columns[0], replace(columns[1], settings={"location": "NJ", "decimal": "dot"})
        assert table == ReadTable(
            None, HeaderMapping(headers, proven, left_out), (("fjell", "x", "9.50"), ("skog", "y", "8"))
        )
        [statement] = (await reader.states(range(4), ["skog"])).statements
        assert statement.variants[0].offers[0].data == {"cost": 800, "currency": "usd"}


async def test_a_table_that_cannot_be_keyed_is_told_with_its_headers(readers: FeedReaders, tmp_path: Path) -> None:
    async with _reading(readers, tmp_path, b"Zorb,Quix\nfjell,1\nskog,2\n") as reader:
        with pytest.raises(NeedsMapping, match="Seen: Zorb, Quix") as stopped:
            await reader.spool(_nobody)
    [table] = stopped.value.tables.first
    assert table.mapping.headers == ("Zorb", "Quix") and table.mapping.missing == ("key",) and table.asked
    assert table.samples == (("fjell", "1"), ("skog", "2"))


async def test_lines_as_the_feed_has_them(readers: FeedReaders, tmp_path: Path) -> None:
    async with _reading(readers, tmp_path, CSV) as reader:
        [found] = await reader.excerpt([(None, 3), (None, 99), ("Prices", 2)], 1)
    assert found.headers[:3] == ("SKU", "Product", "Title") and found.sheet is None
    assert [(line, cells[0], cells[3]) for line, cells in found.rows] == [
        (2, "A-1", "499.90"), (3, "A-2", "abc"),
    ]  # fmt: skip
