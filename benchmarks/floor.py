"""The floor of storing: PostgreSQL alone takes the very rows that a run stored, by COPY, merge and events."""

import time

from adapters.postgres.nodes.pool import Pool
from benchmarks.stack import Stack

TABLES = ("products", "variants", "offers", "product_documents", "product_terms", "row_fingerprints", "events")
CHUNKS = 10


async def floor_rate(parts: Stack, rows: int) -> float:
    """Feed rows a second when nothing but COPY into staging and one merge a table is done, in ten transactions."""
    async with parts.container[Pool].owner() as link:
        run = link.connection.execute
        await run("DROP SCHEMA IF EXISTS bare CASCADE; CREATE SCHEMA bare")
        dumps: dict[str, list[bytes]] = {}
        for table in TABLES:
            await run(f"CREATE TABLE bare.{table} (LIKE public.{table} INCLUDING ALL)".encode())
            await run(f"CREATE TEMPORARY TABLE stage_{table} (LIKE public.{table})".encode())
            dumps[table] = [await _dump(link, table, part) for part in range(CHUNKS)]
        started = time.perf_counter()
        for part in range(CHUNKS):
            async with link.connection.transaction():
                for table in TABLES:
                    await _merge(link, table, dumps[table][part])
        took = time.perf_counter() - started
        await run("DROP SCHEMA bare CASCADE")
    return rows / took


async def _dump(link, table: str, part: int) -> bytes:  # type: ignore[no-untyped-def]
    key = (
        "product" if table in ("product_documents", "product_terms", "row_fingerprints", "variants", "offers") else "id"
    )
    key = "subject" if table == "events" else key
    sql = (
        f"COPY (SELECT * FROM public.{table} WHERE abs(hashtext({key})) % {CHUNKS} = {part}) TO STDOUT (FORMAT binary)"
    )
    content = bytearray()
    async with link.cursor.copy(sql.encode()) as copy:
        async for block in copy:
            content += block
    return bytes(content)


async def _merge(link, table: str, content: bytes) -> None:  # type: ignore[no-untyped-def]
    await link.connection.execute(f"TRUNCATE stage_{table}".encode())
    async with link.cursor.copy(f"COPY stage_{table} FROM STDIN (FORMAT binary)".encode()) as copy:
        await copy.write(content)
    conflict = "" if table == "events" else " ON CONFLICT DO NOTHING"
    await link.connection.execute(f"INSERT INTO bare.{table} SELECT * FROM stage_{table}{conflict}".encode())
