"""What matching after a run costs: one source against another, both invented, and one changed item (`make bench-match-stage`)."""

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

from benchmarks.habits import Thing, metric, retold, things
from benchmarks.ingest import line, seconds
from benchmarks.stack import Stack, stack
from benchmarks.watching import Watched
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source

HEADERS = (
    "Handle", "Title", "Brand", "SKU", "UPC", "MPN", "Color", "Width", "Depth", "Height", "Dimension Unit", "Price", "Qty",
)  # fmt: skip
_FIELDS = ("brand", "gtin", "mpn", "colour", "width", "depth", "height", "dim_unit", "price")


def item_row(at: int, thing: Thing, told: dict[str, str], prefix: str) -> list[str]:
    """A line of a vendor's file; its SKU is `<prefix>-<at>`."""
    brand, gtin, mpn, colour, width, depth, height, unit, price = (told.get(field, "") for field in _FIELDS)
    sku = f"{prefix}-{at:07d}"
    sides = [f"{side} {unit}" if side else "" for side in (width, depth, height)]
    return [
        f"{prefix}-{thing.name}-{thing.kind}",
        told["title"],
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


def write(path: Path, rows: Iterator[list[str]]) -> None:
    """A vendor's file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADERS)
        writer.writerows(rows)


def feeds(folder: Path, count: int) -> tuple[Path, Path, list[Thing]]:
    """The files of a maker and of a vendor that retells them, with so many items each."""
    random = Random(1)
    made = things(random, count)
    maker, vendor = folder / "maker.csv", folder / "vendor.csv"
    write(maker, (item_row(at, thing, metric(thing), "A") for at, thing in enumerate(made)))
    write(vendor, (item_row(at, thing, retold(random, thing), "B") for at, thing in enumerate(made)))
    return maker, vendor, made


async def value(parts: Stack, sql: str) -> int:
    """One number, as the tables' owner."""
    async with await psycopg.AsyncConnection.connect(parts.env["JOINERY_DATABASE_URL"]) as owner:
        row = await (await owner.execute(sql.encode())).fetchone()
    return int(row[0]) if row else 0


async def idle(parts: Stack) -> None:
    """Wait until nothing is to be matched."""
    while await value(parts, "SELECT count(*) FROM (SELECT 1 FROM match_queue LIMIT 1) q"):
        await asyncio.sleep(0.05)
    while await value(parts, "SELECT count(*) FROM jobs WHERE kind = 'matching.match'"):
        await asyncio.sleep(0.05)


async def loaded(parts: Stack, tenant: Tenant, source: Source, path: Path, name: str, process: int) -> None:
    """Load a file and match it; tells what both take."""
    with Watched(process) as watched, Watched(parts.postgres) as database:
        begun = watched.seconds, database.seconds
        run = await parts.ingest(tenant, source, path)
        middle = watched.seconds, database.seconds
        started = time.perf_counter()
        await idle(parts)
        took = time.perf_counter() - started
        await asyncio.sleep(0.5)
        ended = watched.seconds, database.seconds
    line(f"{name}: loading, s", f"{seconds(run):.1f}")
    line(f"{name}: matching after it, s", f"{took:.1f}")
    line(
        f"{name}: CPU-s of loading, worker and PostgreSQL",
        f"{middle[0] - begun[0]:.1f} {middle[1] - begun[1]:.1f}",
    )
    line(f"{name}: CPU-s of matching, worker and PostgreSQL", f"{ended[0] - middle[0]:.1f} {ended[1] - middle[1]:.1f}")
    line(f"{name}: peak memory of worker and PostgreSQL, MiB", f"{watched.peak:.0f} {database.peak:.0f}")


async def quality(parts: Stack) -> None:
    """How much of what is offered is right, by the vendors' own numbers."""
    told = await value(parts, "SELECT count(*) FROM match_pairs")
    right = await value(
        parts,
        "SELECT count(*) FROM match_pairs p JOIN variants l ON l.id = p.left_variant JOIN variants r ON r.id = p.right_variant "
        "WHERE substr(l.sku_code, 2) = substr(r.sku_code, 2)",
    )
    sure = await value(
        parts,
        "SELECT count(*) FROM match_pairs p JOIN variants l ON l.id = p.left_variant JOIN variants r ON r.id = p.right_variant "
        "WHERE substr(l.sku_code, 2) <> substr(r.sku_code, 2) AND p.probability >= 0.995 AND p.conflicts = '{}'",
    )
    line("pairs offered, of them right, wrong ones of 0.995", f"{told} {right} {sure}")


async def one_by_one(
    parts: Stack, tenant: Tenant, source: Source, folder: Path, made: Sequence[Thing], times: int
) -> None:
    """From a file in which one item is new to its pair, and of that the matching."""
    random, whole, alone = Random(2), [], []
    for at in random.sample(range(len(made)), times):
        path = folder / "one.csv"
        row = item_row(at, made[at], retold(random, made[at]), f"C{at}")
        write(path, iter([row]))
        started = time.perf_counter()
        run = await parts.ingest(tenant, source, path)
        stored = time.perf_counter()
        await idle(parts)
        if run.status != "succeeded":
            sys.exit(f"the run {run.status}: {run.error}")
        whole.append(time.perf_counter() - started)
        alone.append(time.perf_counter() - stored)
    for name, took in (("from a file handed in to its pair", whole), ("from the run's end to its pair", alone)):
        took.sort()
        line(
            f"one new item, {name}: p50, p95 ms",
            f"{1000 * took[len(took) // 2]:.0f} {1000 * took[int(len(took) * 0.95)]:.0f}",
        )


async def main(count: int, times: int) -> None:
    """Every figure of the command."""
    with tempfile.TemporaryDirectory(prefix="jm") as name:
        folder = Path(name)
        maker, vendor, made = feeds(folder, count)
        async with stack() as parts:
            process = parts.process("worker")
            try:
                organisation = await parts.organisation()
                tenant = Tenant(organisation.id, True)
                sources = [await parts.source(organisation) for _ in range(3)]
                await loaded(parts, tenant, sources[0], maker, "first source", process.pid)
                await loaded(parts, tenant, sources[1], vendor, "second source", process.pid)
                await quality(parts)
                await one_by_one(parts, tenant, sources[2], folder, made, times)
            finally:
                process.terminate()
                process.wait(20)
                if os.environ.get("BENCH_LOG"):
                    print((Path(parts.env["BENCH_HOME"]) / "worker.log").read_text()[-6000:])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--items", type=int, default=100_000, help="of each source (default: 100,000)")
    options.add_argument("--times", type=int, default=20, help="single items (default: 20)")
    given = options.parse_args()
    asyncio.run(main(given.items, given.times))
