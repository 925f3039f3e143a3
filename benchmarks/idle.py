"""What the parts do in some seconds: statements and transactions of the database, CPU of each process."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.ingest import line
from benchmarks.stack import Stack, cpu_seconds


@dataclass(frozen=True, slots=True)
class Share:
    """A second's part of what was done."""

    statements: float
    transactions: float
    cpu: Mapping[str, float]
    """Seconds of CPU by process."""

    def tell(self, name: str) -> None:
        """One line each."""
        line(f"{name}: statements a second", f"{self.statements:8.2f}   transactions {self.transactions:.2f}")
        parts = "   ".join(f"{part} {100 * spent:.1f}" for part, spent in self.cpu.items())
        line(f"{name}: % of a core", f"{100 * sum(self.cpu.values()):8.1f}   {parts}")


async def watched(parts: Stack, pids: Mapping[str, int], seconds: float) -> Share:
    """What is done while nobody but those who are there asks for anything."""
    owner = parts.env["JOINERY_DATABASE_URL"].replace("//joinery@", "//postgres@", 1)
    log = Path(parts.env["BENCH_HOME"]) / "log" / "postgres.log"
    async with await psycopg.AsyncConnection.connect(owner, autocommit=True) as connection:
        await connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        await connection.execute("SELECT pg_reload_conf()")
        await asyncio.sleep(1.5)
        size, transactions = log.stat().st_size, await _transactions(connection)
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        started = time.perf_counter()
        await asyncio.sleep(seconds)
        took = time.perf_counter() - started
        spent = {name: (cpu_seconds(pid) - before[name]) / took for name, pid in pids.items()}
        with log.open("rb") as file:
            file.seek(size)
            logged = file.read().splitlines()
        done = await _transactions(connection) - transactions
        await connection.execute("ALTER SYSTEM RESET log_statement")
        await connection.execute("SELECT pg_reload_conf()")
    ours = [entry for entry in logged if b"pg_stat_database" not in entry and b"pg_stat_clear" not in entry]
    count = sum(1 for entry in ours if b"LOG:  statement:" in entry or b"LOG:  execute " in entry)
    return Share(count / took, done / took, spent)


async def _transactions(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> int:
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    cursor = await connection.execute(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    )
    row = await cursor.fetchone()
    return int(str(row[0])) if row else 0
