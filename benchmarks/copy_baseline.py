"""Lower limit for storing a catalogue: PostgreSQL alone stores the rows of a run again by COPY and INSERT."""

import time

from adapters.postgres.nodes.pool import Pool
from benchmarks.stack import Stack

TABLES = (
    "products",
    "variants",
    "offers",
    "product_documents",
    "product_terms",
    "product_facets",
    "row_fingerprints",
    "events",
)
CHUNKS = 10


async def measure_copy_rate(stack: Stack, rows: int) -> float:
    """Return the feed rows a second if all rows are only copied to staging tables and inserted, in CHUNKS transactions."""
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        execute = pooled.driver_connection.execute
        await execute("DROP SCHEMA IF EXISTS bare CASCADE; CREATE SCHEMA bare")
        dumps: dict[str, list[bytes]] = {}
        columns_by_table: dict[str, str] = {}
        for table in TABLES:
            await execute(f"CREATE TABLE bare.{table} (LIKE public.{table} INCLUDING ALL)".encode())
            columns = columns_by_table[table] = await list_written_columns(pooled, table)
            await execute(
                f"CREATE TEMPORARY TABLE stage_{table} AS SELECT {columns} FROM public.{table} LIMIT 0".encode()
            )
            dumps[table] = [await _read_chunk(pooled, table, columns, chunk) for chunk in range(CHUNKS)]
        started = time.perf_counter()
        for chunk in range(CHUNKS):
            async with pooled.driver_connection.transaction():
                for table in TABLES:
                    await _insert_chunk(pooled, table, columns_by_table[table], dumps[table][chunk])
        elapsed = time.perf_counter() - started
        await execute("DROP SCHEMA bare CASCADE")
    return rows / elapsed


async def list_written_columns(pooled, table: str, omitted: str = "") -> str:  # type: ignore[no-untyped-def]
    """Return the names of the columns that are not generated, except `omitted`, separated by commas."""
    cursor = await pooled.driver_connection.execute(
        "SELECT string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = %s AND is_generated = 'NEVER' AND column_name <> %s",
        (table, omitted),
    )
    [names] = await cursor.fetchone()
    return str(names)


async def _read_chunk(pooled, table: str, columns: str, chunk: int) -> bytes:  # type: ignore[no-untyped-def]
    key = (
        "product"
        if table in ("product_documents", "product_terms", "product_facets", "row_fingerprints", "variants", "offers")
        else "id"
    )
    key = "subject" if table == "events" else key
    sql = f"COPY (SELECT {columns} FROM public.{table} WHERE abs(hashtext({key})) % {CHUNKS} = {chunk}) TO STDOUT (FORMAT binary)"
    content = bytearray()
    async with pooled.cursor.copy(sql.encode()) as copy:
        async for block in copy:
            content += block
    return bytes(content)


async def _insert_chunk(pooled, table: str, columns: str, content: bytes) -> None:  # type: ignore[no-untyped-def]
    await pooled.driver_connection.execute(f"TRUNCATE stage_{table}".encode())
    async with pooled.cursor.copy(f"COPY stage_{table} FROM STDIN (FORMAT binary)".encode()) as copy:
        await copy.write(content)
    conflict = "" if table == "events" else " ON CONFLICT DO NOTHING"
    await pooled.driver_connection.execute(
        f"INSERT INTO bare.{table} ({columns}) SELECT * FROM stage_{table}{conflict}".encode()
    )
