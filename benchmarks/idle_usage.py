"""Load without requests: database statements and transactions a second, and CPU of each process."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.ingest import print_figure
from benchmarks.stack import Stack, read_cpu_seconds


@dataclass(frozen=True, slots=True)
class IdleUsage:
    """Average load a second.

    Attributes:
        statements: Database statements a second.
        transactions: Database transactions a second.
        cpu: CPU seconds a second, by process.
    """

    statements: float
    transactions: float
    cpu: Mapping[str, float]

    def print_report(self, name: str) -> None:
        """Print a line for the database and a line for the CPU."""
        print_figure(f"{name}: statements a second", f"{self.statements:8.2f}   transactions {self.transactions:.2f}")
        shares = "   ".join(f"{process} {100 * share:.1f}" for process, share in self.cpu.items())
        print_figure(f"{name}: % of a core", f"{100 * sum(self.cpu.values()):8.1f}   {shares}")


async def measure_idle_usage(stack: Stack, pids: Mapping[str, int], seconds: float) -> IdleUsage:
    """Measure the load of the processes for some seconds, from the statement log of PostgreSQL and from /proc."""
    owner = stack.env["JOINERY_DATABASE_URL"].replace("//joinery@", "//postgres@", 1)
    log = Path(stack.env["BENCH_HOME"]) / "log" / "postgres.log"
    async with await psycopg.AsyncConnection.connect(owner, autocommit=True) as connection:
        await connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        await connection.execute("SELECT pg_reload_conf()")
        await asyncio.sleep(1.5)
        log_size, transactions_before = log.stat().st_size, await _count_transactions(connection)
        cpu_before = {name: read_cpu_seconds(pid) for name, pid in pids.items()}
        started = time.perf_counter()
        await asyncio.sleep(seconds)
        elapsed = time.perf_counter() - started
        cpu_used = {name: (read_cpu_seconds(pid) - cpu_before[name]) / elapsed for name, pid in pids.items()}
        with log.open("rb") as file:
            file.seek(log_size)
            logged = file.read().splitlines()
        transaction_count = await _count_transactions(connection) - transactions_before
        await connection.execute("ALTER SYSTEM RESET log_statement")
        await connection.execute("SELECT pg_reload_conf()")
    service_statements = [
        entry for entry in logged if b"pg_stat_database" not in entry and b"pg_stat_clear" not in entry
    ]
    count = sum(1 for entry in service_statements if b"LOG:  statement:" in entry or b"LOG:  execute " in entry)
    return IdleUsage(count / elapsed, transaction_count / elapsed, cpu_used)


async def _count_transactions(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> int:
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    cursor = await connection.execute(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    )
    row = await cursor.fetchone()
    return int(str(row[0])) if row else 0
