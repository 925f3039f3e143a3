"""Disk usage of the rows that a first load wrote: tables, indexes and out-of-line values."""

from pathlib import Path

from adapters.postgres.nodes.pool import Pool
from benchmarks.stack import Stack
from benchmarks.start import print_figure

TABLES = (
    "products",
    "product_documents",
    "product_terms",
    "product_facets",
    "variants",
    "offers",
    "row_fingerprints",
    "events",
)
SIZES_SQL = """
SELECT sum(pg_relation_size(part)), sum(pg_indexes_size(part)), sum(pg_total_relation_size(part))
FROM (SELECT relid AS part FROM pg_partition_tree(%s::regclass) UNION SELECT %s::regclass) AS parts
"""


async def measure_disk_usage(stack: Stack) -> None:
    """Print the bytes per row of each catalogue table, and the bytes of all tables per offer."""
    total_bytes = bytes_without_events = 0.0
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute("VACUUM ANALYZE")
        offers = 0
        for table in TABLES:
            cursor = await pooled.driver_connection.execute(f"SELECT count(*) FROM {table}".encode())
            count_row = await cursor.fetchone()
            assert count_row is not None
            rows = int(count_row[0])
            cursor = await pooled.driver_connection.execute(SIZES_SQL, (table, table))
            sizes = await cursor.fetchone()
            assert sizes is not None
            table_bytes, index_bytes, all_bytes = (float(size or 0) for size in sizes)
            offers = rows if table == "offers" else offers
            total_bytes, bytes_without_events = (
                total_bytes + all_bytes,
                bytes_without_events + (0 if table == "events" else all_bytes),
            )
            print_figure(
                f"disk: {table}, {rows:,} rows",
                f"{all_bytes / max(rows, 1):8,.0f} bytes per row   table {table_bytes / max(rows, 1):,.0f}   indexes {index_bytes / max(rows, 1):,.0f}",
            )
    object_bytes = sum(
        path.stat().st_size for path in (Path(stack.env["BENCH_HOME"]) / "objects").rglob("*") if path.is_file()
    )
    print_figure("disk: object store, per offer", f"{object_bytes / offers:8,.0f} bytes")
    print_figure(
        "disk: all tables, per offer",
        f"{total_bytes / offers:8,.0f} bytes   without events {bytes_without_events / offers:,.0f}",
    )
