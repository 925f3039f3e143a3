"""Cost of matching after a run: two generated sources, and single new items (`make bench-match-stage`)."""

import argparse
import asyncio
import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import psycopg

from benchmarks.generated_furniture import FurnitureItem, generate_items, render_for_maker, render_for_vendor
from benchmarks.ingest import measure_run_seconds, print_figure
from benchmarks.process_monitor import ProcessMonitor
from benchmarks.stack import Stack, running_stack
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source

HEADERS = (
    "Handle", "Title", "Brand", "SKU", "UPC", "MPN", "Color", "Width", "Depth", "Height", "Dimension Unit", "Price", "Qty",
)  # fmt: skip
_FIELDS = ("brand", "gtin", "mpn", "colour", "width", "depth", "height", "dim_unit", "price")


def build_item_row(number: int, item: FurnitureItem, texts: dict[str, str], prefix: str) -> list[str]:
    """Return the row of an item in a vendor's file; the SKU is `<prefix>-<number>`."""
    brand, gtin, mpn, colour, width, depth, height, unit, price = (texts.get(field, "") for field in _FIELDS)
    sku = f"{prefix}-{number:07d}"
    sides = [f"{side} {unit}" if side else "" for side in (width, depth, height)]
    return [
        f"{prefix}-{item.name}-{item.kind}",
        texts["title"],
        brand,
        sku,
        gtin,
        mpn,
        colour,
        *sides,
        unit,
        price,
        "4",
    ]


def write_file(path: Path, rows: Iterator[list[str]]) -> None:
    """Write the rows to a CSV file with HEADERS."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADERS)
        writer.writerows(rows)


def write_feeds(folder: Path, count: int) -> tuple[Path, Path, list[FurnitureItem]]:
    """Write the files of a maker and of another vendor that lists the same items; return both paths and the items."""
    random = Random(1)
    items = generate_items(random, count)
    maker, vendor = folder / "maker.csv", folder / "vendor.csv"
    write_file(maker, (build_item_row(number, item, render_for_maker(item), "A") for number, item in enumerate(items)))
    write_file(
        vendor,
        (build_item_row(number, item, render_for_vendor(random, item), "B") for number, item in enumerate(items)),
    )
    return maker, vendor, items


async def query_number(stack: Stack, sql: str) -> int:
    """Return the number that a query selects, as the owner of the tables."""
    async with await psycopg.AsyncConnection.connect(stack.env["JOINERY_DATABASE_URL"]) as owner:
        row = await (await owner.execute(sql.encode())).fetchone()
    return int(row[0]) if row else 0


async def wait_until_matched(stack: Stack) -> None:
    """Wait until the match queue is empty and no job of matching exists."""
    sql = b"SELECT EXISTS (SELECT FROM match_queue) OR EXISTS (SELECT FROM jobs WHERE kind = 'matching.match')"
    async with await psycopg.AsyncConnection.connect(stack.env["JOINERY_DATABASE_URL"], autocommit=True) as owner:
        while await (await owner.execute(sql)).fetchone() == (True,):
            await asyncio.sleep(0.005)


async def import_and_match(
    stack: Stack, tenant: Tenant, source: Source, path: Path, name: str, worker_pid: int
) -> None:
    """Import a file, wait for the matching, and print the costs of both."""
    with ProcessMonitor(worker_pid) as worker_monitor, ProcessMonitor(stack.postgres_pid) as database_monitor:
        before_import = worker_monitor.cpu_seconds, database_monitor.cpu_seconds
        run = await stack.import_file(tenant, source, path)
        after_import = worker_monitor.cpu_seconds, database_monitor.cpu_seconds
        started = time.perf_counter()
        await wait_until_matched(stack)
        matching_seconds = time.perf_counter() - started
        await asyncio.sleep(0.5)
        after_matching = worker_monitor.cpu_seconds, database_monitor.cpu_seconds
    print_figure(f"{name}: import, s", f"{measure_run_seconds(run):.1f}")
    print_figure(f"{name}: matching after the import, s", f"{matching_seconds:.1f}")
    print_figure(
        f"{name}: CPU s of the import, worker and PostgreSQL",
        f"{after_import[0] - before_import[0]:.1f} {after_import[1] - before_import[1]:.1f}",
    )
    print_figure(
        f"{name}: CPU s of matching, worker and PostgreSQL",
        f"{after_matching[0] - after_import[0]:.1f} {after_matching[1] - after_import[1]:.1f}",
    )
    print_figure(
        f"{name}: peak memory of worker and PostgreSQL, MiB",
        f"{worker_monitor.peak_memory:.0f} {database_monitor.peak_memory:.0f}",
    )


async def print_quality(stack: Stack) -> None:
    """Print how many matches are correct, according to the numbers in the SKUs."""
    match_count = await query_number(stack, "SELECT count(*) FROM match_pairs")
    correct_count = await query_number(
        stack,
        "SELECT count(*) FROM match_pairs p JOIN variants l ON l.id = p.left_variant JOIN variants r ON r.id = p.right_variant "
        "WHERE substr(l.sku_code, 2) = substr(r.sku_code, 2)",
    )
    certain_error_count = await query_number(
        stack,
        "SELECT count(*) FROM match_pairs p JOIN variants l ON l.id = p.left_variant JOIN variants r ON r.id = p.right_variant "
        "WHERE substr(l.sku_code, 2) <> substr(r.sku_code, 2) AND p.probability >= 0.995 AND p.conflicts = '{}'",
    )
    print_figure(
        "matches, correct ones, wrong ones with a score of at least 0.995",
        f"{match_count} {correct_count} {certain_error_count}",
    )


async def measure_single_items(
    stack: Stack, tenant: Tenant, source: Source, folder: Path, items: Sequence[FurnitureItem], item_count: int
) -> None:
    """Import single new items; print the times from the upload, and from the end of the run, to the match."""
    random, times_from_upload, times_from_run_end = Random(2), [], []
    for number in random.sample(range(len(items)), item_count):
        path = folder / "one.csv"
        row = build_item_row(number, items[number], render_for_vendor(random, items[number]), f"C{number}")
        write_file(path, iter([row]))
        started = time.perf_counter()
        run = await stack.import_file(tenant, source, path)
        run_ended = time.perf_counter()
        await wait_until_matched(stack)
        if run.status != "succeeded":
            sys.exit(f"the run did not succeed ({run.status}): {run.error}")
        times_from_upload.append(time.perf_counter() - started)
        times_from_run_end.append(time.perf_counter() - run_ended)
    for name, durations in (
        ("from the upload to the match", times_from_upload),
        ("from the end of the run to the match", times_from_run_end),
    ):
        durations.sort()
        print_figure(
            f"one new item, {name}: p50, p95 ms",
            f"{1000 * durations[len(durations) // 2]:.0f} {1000 * durations[int(len(durations) * 0.95)]:.0f}",
        )


async def main(count: int, single_items: int) -> None:
    """Run all measurements."""
    with tempfile.TemporaryDirectory(prefix="jm") as name:
        folder = Path(name)
        maker, vendor, items = write_feeds(folder, count)
        async with running_stack() as stack:
            worker = stack.start_process("worker")
            try:
                organisation = await stack.create_organisation()
                tenant = Tenant(organisation.id, True)
                sources = [await stack.create_source(organisation) for _ in range(3)]
                await import_and_match(stack, tenant, sources[0], maker, "first source", worker.pid)
                await import_and_match(stack, tenant, sources[1], vendor, "second source", worker.pid)
                await print_quality(stack)
                await measure_single_items(stack, tenant, sources[2], folder, items, single_items)
            finally:
                worker.terminate()
                worker.wait(20)
                if os.environ.get("BENCH_LOG"):
                    print((Path(stack.env["BENCH_HOME"]) / "worker.log").read_text()[-6000:])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--items", type=int, default=100_000, help="items of each source (default: 100,000)")
    options.add_argument("--times", type=int, default=20, help="number of single new items (default: 20)")
    given = options.parse_args()
    asyncio.run(main(given.items, given.times))
