"""What it costs to take a vendor's file in: first load, reloads, stock, and a million rows (`make bench-ingest`)."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import feeds
from benchmarks.floor import floor_rate
from benchmarks.room import room_figures
from benchmarks.stack import Stack, stack
from benchmarks.watching import Watched
from domain.kernel.tenancy import Tenant
from domain.runs.model import Run
from domain.sources.model import Source


def line(name: str, figure: str) -> None:
    """One figure."""
    print(f"{name:<46} {figure}", flush=True)


def seconds(run: Run) -> float:
    """From the worker's taking the run up to its end."""
    assert run.started_at is not None
    assert run.finished_at is not None
    if run.status != "succeeded":
        sys.exit(f"the run {run.status}: {run.error}")
    return (run.finished_at - run.started_at).total_seconds()


async def measured(parts: Stack, tenant: Tenant, source: Source, path: Path, name: str, rows: int) -> Run:
    """Take a file in and tell the rate and what was written."""
    before = await _written(parts)
    wal = await parts.value("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
    run = await parts.ingest(tenant, source, path)
    took = seconds(run)
    after = await _written(parts)
    moved = float(await parts.value("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn") - wal)
    events, written = after[0] - before[0], after[1] - before[1]
    line(
        name,
        f"{rows / took:>10,.0f} rows/s   {took:6.2f} s   {written:>8,} rows written   {events:>8,} events   {moved / 1e6:8.1f} MB WAL",
    )
    return run


async def _written(parts: Stack) -> tuple[int, int]:
    events = await parts.value("SELECT count(*) FROM events")
    names = ", ".join(f"'{name}'" for name in ("products", "variants", "offers"))
    await parts.value("SELECT pg_stat_clear_snapshot()")
    await asyncio.sleep(1.1)
    written = await parts.value(
        f"SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables WHERE relname IN ({names})"
    )
    return int(events), int(written or 0)


async def main(products: int, million: bool, room: bool) -> None:
    """Every figure of the command."""
    if room:
        async with stack() as parts:
            await _room(parts, products)
        return
    with tempfile.TemporaryDirectory(prefix="jf") as folder:
        async with stack() as parts:
            await _hundred_thousand(parts, Path(folder), products)
        if million:
            async with stack() as parts:
                await _million(parts, Path(folder), products * 10)


async def _hundred_thousand(parts: Stack, folder: Path, products: int) -> None:
    worker = parts.process("worker")
    try:
        organisation = await parts.organisation()
        tenant, source = Tenant(organisation.id, True), await parts.source(organisation)
        path = folder / "catalogue.csv"
        rows = feeds.write_catalogue(path, products)
        started = time.perf_counter()
        with Watched(worker.pid) as watched, Watched(parts.postgres) as database:
            begun = watched.seconds, database.seconds
            run = await measured(parts, tenant, source, path, f"first load, {rows:,} rows", rows)
        line("  file to readable, wall", f"{time.perf_counter() - started:10.2f} s")
        spent = watched.seconds - begun[0], database.seconds - begun[1]
        line("  processor time", f"{spent[0]:10.2f} s worker and readers, {spent[1]:.2f} s PostgreSQL")
        line("  peak memory of worker and readers", f"{watched.peak:>10,.0f} MiB")
        ours = rows / seconds(run)
        print(f"  stats {dict(run.stats)}")
        floor = await floor_rate(parts, rows)
        line(
            "  bare COPY-and-merge-with-events floor",
            f"{floor:>10,.0f} rows/s   ratio {ours / floor:.2f}",
        )
        await measured(parts, tenant, source, path, "the identical file again", rows)
        feeds.write_catalogue(path, products, crlf=True)
        await measured(parts, tenant, source, path, "nothing changed, other bytes", rows)
        changed = frozenset(range(0, products, 100))
        feeds.write_catalogue(path, products, changed=changed)
        await measured(parts, tenant, source, path, "1% of products changed", rows)
        stock = folder / "stock.csv"
        feeds.write_stock(stock, products)
        await measured(parts, tenant, source, stock, "first stock file, every offer changed", rows)
        feeds.write_stock(stock, products, shift=11)
        await measured(parts, tenant, source, stock, "stock file, every offer changed", rows)
    finally:
        worker.terminate()
        worker.wait(20)


async def _room(parts: Stack, products: int) -> None:
    worker = parts.process("worker")
    try:
        organisation = await parts.organisation()
        with tempfile.TemporaryDirectory(prefix="jf") as folder:
            path = Path(folder) / "catalogue.csv"
            rows = feeds.write_catalogue(path, products)
            run = await parts.ingest(Tenant(organisation.id, True), await parts.source(organisation), path)
        line(f"first load, {rows:,} rows", f"{rows / seconds(run):>10,.0f} rows/s")
    finally:
        worker.terminate()
        worker.wait(20)
    await room_figures(parts)


async def _million(parts: Stack, folder: Path, products: int) -> None:
    worker = parts.process("worker")
    try:
        organisation = await parts.organisation()
        tenant, source = Tenant(organisation.id, True), await parts.source(organisation)
        path = folder / "million.csv"
        rows = feeds.write_catalogue(path, products)
        with Watched(worker.pid) as watched:
            await measured(parts, tenant, source, path, f"first load, {rows:,} rows", rows)
        line("  peak memory of worker and readers", f"{watched.peak:>10,.0f} MiB")
    finally:
        worker.terminate()
        worker.wait(20)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--products", type=int, default=20_000, help="of 5 variants each (default: 20,000)")
    options.add_argument("--million", action="store_true", help="also ten times as many")
    options.add_argument("--room", action="store_true", help="only what the rows of a first load take on disk")
    told = options.parse_args()
    asyncio.run(main(told.products, told.million, told.room))
