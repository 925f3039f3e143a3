"""Cost of importing a vendor's file: first load, repeated loads, stock, and a million rows (`make bench-ingest`)."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import vendor_files
from benchmarks.copy_baseline import measure_copy_rate
from benchmarks.disk_usage import measure_disk_usage
from benchmarks.process_monitor import ProcessMonitor
from benchmarks.stack import Stack, running_stack
from domain.kernel.tenancy import Tenant
from domain.runs.model import Run
from domain.sources.model import Source


def print_figure(name: str, figure: str) -> None:
    """Print one measurement."""
    print(f"{name:<46} {figure}", flush=True)


def measure_run_seconds(run: Run) -> float:
    """Return the seconds from the start of a run to its end; exit with the error if the run failed."""
    assert run.started_at is not None
    assert run.finished_at is not None
    if run.status != "succeeded":
        sys.exit(f"the run did not succeed ({run.status}): {run.error}")
    return (run.finished_at - run.started_at).total_seconds()


async def import_and_print(stack: Stack, tenant: Tenant, source: Source, path: Path, name: str, rows: int) -> Run:
    """Import a file; print the rate, and the rows, events and write-ahead log that were written."""
    counts_before = await _count_written_rows(stack)
    wal_before = await stack.query_value("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
    run = await stack.import_file(tenant, source, path)
    run_seconds = measure_run_seconds(run)
    counts_after = await _count_written_rows(stack)
    wal_bytes = float(await stack.query_value("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn") - wal_before)
    event_count, row_count = counts_after[0] - counts_before[0], counts_after[1] - counts_before[1]
    print_figure(
        name,
        f"{rows / run_seconds:>10,.0f} rows/s   {run_seconds:6.2f} s   {row_count:>8,} rows written   {event_count:>8,} events   {wal_bytes / 1e6:8.1f} MB WAL",
    )
    return run


async def _count_written_rows(stack: Stack) -> tuple[int, int]:
    events = await stack.query_value("SELECT count(*) FROM events")
    names = ", ".join(f"'{name}'" for name in ("products", "variants", "offers"))
    await stack.query_value("SELECT pg_stat_clear_snapshot()")
    await asyncio.sleep(1.1)
    written = await stack.query_value(
        f"SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables WHERE relname IN ({names})"
    )
    return int(events), int(written or 0)


async def main(products: int, with_million: bool, disk_usage_only: bool) -> None:
    """Run the measurements, or only the one of disk usage."""
    if disk_usage_only:
        async with running_stack() as stack:
            await _measure_disk_usage(stack, products)
        return
    with tempfile.TemporaryDirectory(prefix="jf") as folder:
        async with running_stack() as stack:
            await _measure_standard_catalogue(stack, Path(folder), products)
        if with_million:
            async with running_stack() as stack:
                await _measure_large_catalogue(stack, Path(folder), products * 10)


async def _measure_standard_catalogue(stack: Stack, folder: Path, products: int) -> None:
    worker = stack.start_process("worker")
    try:
        organisation = await stack.create_organisation()
        tenant, source = Tenant(organisation.id, True), await stack.create_source(organisation)
        path = folder / "catalogue.csv"
        rows = vendor_files.write_catalogue(path, products)
        started = time.perf_counter()
        with ProcessMonitor(worker.pid) as worker_monitor, ProcessMonitor(stack.postgres_pid) as database_monitor:
            cpu_before = worker_monitor.cpu_seconds, database_monitor.cpu_seconds
            run = await import_and_print(stack, tenant, source, path, f"first load, {rows:,} rows", rows)
        print_figure("  from file to readable catalogue", f"{time.perf_counter() - started:10.2f} s")
        cpu_used = worker_monitor.cpu_seconds - cpu_before[0], database_monitor.cpu_seconds - cpu_before[1]
        print_figure("  CPU time", f"{cpu_used[0]:10.2f} s worker and parser processes, {cpu_used[1]:.2f} s PostgreSQL")
        print_figure("  peak memory of worker and parser processes", f"{worker_monitor.peak_memory:>10,.0f} MiB")
        import_rate = rows / measure_run_seconds(run)
        print(f"  statistics of the run {dict(run.stats)}")
        copy_rate = await measure_copy_rate(stack, rows)
        print_figure(
            "  lower limit: COPY and INSERT of the same rows",
            f"{copy_rate:>10,.0f} rows/s   ratio {import_rate / copy_rate:.2f}",
        )
        await import_and_print(stack, tenant, source, path, "identical file again", rows)
        vendor_files.write_catalogue(path, products, crlf=True)
        await import_and_print(stack, tenant, source, path, "same rows, other line endings", rows)
        changed = frozenset(range(0, products, 100))
        vendor_files.write_catalogue(path, products, changed=changed)
        await import_and_print(stack, tenant, source, path, "1% of products changed", rows)
        stock = folder / "stock.csv"
        vendor_files.write_stock(stock, products)
        await import_and_print(stack, tenant, source, stock, "first stock file, all offers changed", rows)
        vendor_files.write_stock(stock, products, shift=11)
        await import_and_print(stack, tenant, source, stock, "second stock file, all offers changed", rows)
    finally:
        worker.terminate()
        worker.wait(20)


async def _measure_disk_usage(stack: Stack, products: int) -> None:
    worker = stack.start_process("worker")
    try:
        organisation = await stack.create_organisation()
        with tempfile.TemporaryDirectory(prefix="jf") as folder:
            path = Path(folder) / "catalogue.csv"
            rows = vendor_files.write_catalogue(path, products)
            run = await stack.import_file(Tenant(organisation.id, True), await stack.create_source(organisation), path)
        print_figure(f"first load, {rows:,} rows", f"{rows / measure_run_seconds(run):>10,.0f} rows/s")
    finally:
        worker.terminate()
        worker.wait(20)
    await measure_disk_usage(stack)


async def _measure_large_catalogue(stack: Stack, folder: Path, products: int) -> None:
    worker = stack.start_process("worker")
    try:
        organisation = await stack.create_organisation()
        tenant, source = Tenant(organisation.id, True), await stack.create_source(organisation)
        path = folder / "million.csv"
        rows = vendor_files.write_catalogue(path, products)
        with ProcessMonitor(worker.pid) as worker_monitor:
            await import_and_print(stack, tenant, source, path, f"first load, {rows:,} rows", rows)
        print_figure("  peak memory of worker and parser processes", f"{worker_monitor.peak_memory:>10,.0f} MiB")
    finally:
        worker.terminate()
        worker.wait(20)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--products", type=int, default=20_000, help="products with 5 variants each (default: 20,000)")
    options.add_argument("--million", action="store_true", help="measure ten times as many products as well")
    options.add_argument("--room", action="store_true", help="measure only the disk usage after a first load")
    arguments = options.parse_args()
    asyncio.run(main(arguments.products, arguments.million, arguments.room))
