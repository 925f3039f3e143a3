"""One product of very many rows: they are counted where they crowd, left out, and told once."""

from typing import Any

from adapters.files.spool import FileSpools
from adapters.wire.codec import JsonCodec
from domain.ingestion.model import FeedSettings, FeedTable
from domain.kernel.bounds import ROWS, SHEET_ROW_BYTES, VARIANTS
from domain.runs.usecases.chunking import ChunkBuilder
from domain.runs.usecases.spooling import RowSpooler, SpooledFeed

HEADERS = ("Group", "SKU", "Name", "Price")
GIVEN = ("product_key", "sku", "title", "price")
SETTINGS = FeedSettings(currency="usd")


def _gathered(rows: list[list[Any]]) -> tuple[Any, int]:
    """The one chunk of those rows, read twice over, and how many rows were put aside."""
    feed, codec = SpooledFeed(1), JsonCodec()
    with FileSpools().open(1) as spool:
        table = FeedTable("Sheet1", HEADERS, iter(enumerate(rows, start=2)), GIVEN)
        RowSpooler(codec, spool, SETTINGS, feed).tables(iter([table]))
        builder = ChunkBuilder(codec, spool, feed, SETTINGS)
        builder.gather(range(1))
        chunk = builder.gather(range(1))
        return (chunk, *builder.statements(chunk, chunk.lines)), len(spool.lines(0))


def test_rows_of_one_product_are_read_up_to_the_most() -> None:
    rows = [["other", "o-1", "Chair", "1.00"]]
    rows += [["one", f"v-{number}", "Sofa", "2.00"] for number in range(4 * ROWS)]
    rows += [["last", "l-1", "Table", "3.00"]]
    (chunk, statements, problems), spooled = _gathered(rows)
    assert spooled <= 2 * ROWS + 2
    assert {key: len(lines) for key, lines in chunk.lines.items()} == {"other": 1, "one": ROWS, "last": 1}
    assert {statement.key: len(statement.variants) for statement in statements}["one"] == VARIANTS
    (told,) = [problem for problem in problems if problem.field == "rows"]
    assert (told.line, told.sheet) == (ROWS + 3, "Sheet1")
    assert f"{3 * ROWS:,} rows of one" in told.detail
    assert len(problems) == 2


def test_long_rows_count_as_several() -> None:
    rows = [["one", f"v-{number}", "x" * 20 * SHEET_ROW_BYTES, "2.00"] for number in range(ROWS // 10)]
    (chunk, _, problems), spooled = _gathered(rows)
    assert spooled < ROWS // 10
    assert sum(len(cells) for _, _, cells in chunk.lines["one"]) <= (ROWS + 1) * SHEET_ROW_BYTES
    assert [problem.field for problem in problems].count("rows") == 1


def test_many_products_are_not_counted() -> None:
    rows = [[f"p-{number}", f"v-{number}", "Sofa", "2.00"] for number in range(3 * ROWS)]
    (chunk, _, problems), spooled = _gathered(rows)
    assert spooled == len(chunk.lines) == 3 * ROWS
    assert problems == []
