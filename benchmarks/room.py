"""What rows take on disk: table, indexes and what lies beside it, by what a first load wrote."""

from pathlib import Path

from adapters.postgres.nodes.pool import Pool
from benchmarks.stack import Stack
from benchmarks.start import line

ALONE = ("products", "product_documents", "product_terms", "variants", "offers", "row_fingerprints", "events")
SIZES = """
SELECT sum(pg_relation_size(part)), sum(pg_indexes_size(part)), sum(pg_total_relation_size(part))
FROM (SELECT relid AS part FROM pg_partition_tree(%s::regclass) UNION SELECT %s::regclass) AS parts
"""


async def room_figures(parts: Stack) -> None:
    """Bytes a row of each table that holds a catalogue, and of all of them together for each offer."""
    total = without = 0.0
    async with parts.container[Pool].owner() as link:
        await link.connection.execute("VACUUM ANALYZE")
        offers = 0
        for table in ALONE:
            cursor = await link.connection.execute(f"SELECT count(*) FROM {table}".encode())
            counted = await cursor.fetchone()
            assert counted is not None
            rows = int(counted[0])
            cursor = await link.connection.execute(SIZES, (table, table))
            sizes = await cursor.fetchone()
            assert sizes is not None
            own, indexes, whole = (float(size or 0) for size in sizes)
            offers = rows if table == "offers" else offers
            total, without = total + whole, without + (0 if table == "events" else whole)
            line(
                f"room: {table}, {rows:,} rows",
                f"{whole / max(rows, 1):8,.0f} bytes a row   table {own / max(rows, 1):,.0f}   indexes {indexes / max(rows, 1):,.0f}",
            )
    objects = sum(
        path.stat().st_size for path in (Path(parts.env["BENCH_HOME"]) / "objects").rglob("*") if path.is_file()
    )
    line("room: the object store, an offer", f"{objects / offers:8,.0f} bytes")
    line(
        "room: of all these tables, an offer", f"{total / offers:8,.0f} bytes   without events {without / offers:,.0f}"
    )
