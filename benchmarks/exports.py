"""Cost of an export compared with copying the same bytes to a compressed file (`make bench-exports`)."""

import argparse
import asyncio
import gc
import http.client
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from isal import isal_zlib

from adapters.files.compression import DEFAULT_LEVEL
from adapters.postgres.nodes.pool import Pool
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack, read_cpu_seconds, running_stack
from domain.access.usecases import AccessService, KeyRequest
from domain.catalogue.batch import SLOT_COUNT, Batch, SlotRange
from domain.catalogue.model import (
    CATALOGUE_STREAM,
    Offer,
    Product,
    ProductStatus,
    Stream,
    Variant,
    Visibility,
)
from domain.catalogue.ports import CatalogueStore
from domain.exports.model import EXECUTE_EXPORT, ExportKind
from domain.exports.ports import ExportStore
from domain.exports.usecases.service import ExportRequester
from domain.jobs.model import build_lane_name
from domain.jobs.ports import JobDispatcher
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgStore
from domain.sources.model import Source
from entrypoints.areas import exports
from entrypoints.container import open_dependencies
from entrypoints.operations.operation import create_handlers
from entrypoints.settings import read_settings
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

RENDERED_PRODUCTS = 2_000
"""Number of products that are really rendered.

All others are copies with other IDs. The distance between copies exceeds gzip's window, so copies do not compress better.
"""
WORDS = (
    "solid oak walnut frame upholstered in woven linen seat cushion foam kiln dried hardwood legs brushed brass finish hand tufted "
    "wool rug table dining extendable leaf drawer soft close assembly required ships two boxes indoor use wipe clean damp cloth"
).split()
WRITE_BYTES = 1 << 20
_COPY_SQL = "COPY (SELECT body FROM product_documents WHERE org = '{org}' AND livemode AND view = 'own') TO STDOUT (FORMAT binary)"


def build_product(source: Source, number: int, now: datetime, random_source: random.Random) -> Product:
    """Build a product with random texts, two variants, and two offers per variant."""
    texts = [" ".join(random_source.choices(WORDS, k=length)) for length in (5, 60, 8, 8)]
    data: dict[str, Any] = {"title": texts[0].title(), "brand": texts[0].split()[0].title(), "description": texts[1]}
    data |= {"features": texts[2:], "dimensions": {"width": {"hundredths_in": random_source.randrange(9_000)}}}
    built_product = Product(
        new_id("prod"), source.catalogue, source.id, f"k{number}", ProductStatus.ACTIVE, 1, Visibility.UNLISTED, data, now, now
    )  # fmt: skip
    for position in range(2):
        fields = {
            "sku": f"S{random_source.randrange(1 << 40):x}",
            "gtin": f"{random_source.randrange(10**13):013d}",
            "colour": random_source.choice(WORDS),
        }
        variant = Variant(
            new_id("var"), built_product.id, source.id, f"k{number}-{position}", ProductStatus.ACTIVE, 1, fields, now
        )
        for location in ("main", "east"):
            offer = {
                "currency": "usd",
                "price": random_source.randrange(900_000),
                "availability": "in_stock",
                "quantity": random_source.randrange(90),
            }
            variant.offers.append(
                Offer(
                    new_id("ofr"),
                    variant.id,
                    built_product.id,
                    source.id,
                    location,
                    offer,
                    1,
                    CATALOGUE_STREAM,
                    now,
                    now,
                )
            )
        built_product.variants.append(variant)
    return built_product


async def create_catalogue(stack: Stack, products: int) -> Tenant:
    """Create an organisation with the given number of product documents; print their number and mean size."""
    organisation = await stack.create_organisation("Exports")
    tenant, source, now = (
        Tenant(organisation.id, True),
        await stack.create_source(organisation),
        stack.dependencies[Clock].now(),
    )
    random_source = random.Random(7)
    products_to_save = [
        build_product(source, number, now, random_source) for number in range(min(RENDERED_PRODUCTS, products))
    ]
    async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
        batch = Batch(new_products=products_to_save, touched={item.id: item for item in products_to_save})
        batch.new_variants = [item for parent in products_to_save for item in parent.variants]
        batch.new_offers = [item for variant in batch.new_variants for item in variant.offers]
        await tx[CatalogueStore].save_batch(SlotRange(source.id, Stream.CATALOGUE, 0, SLOT_COUNT), batch, now)
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute(
            b"INSERT INTO product_documents (org, livemode, product, view, body, etag) SELECT org, livemode, 'prod_' || "
            b"substr(md5(product || n), 1, 22), view, body, etag FROM generate_series(1, %b - 1) n, product_documents"
            % str(-(-products // RENDERED_PRODUCTS)).encode()
        )
        await pooled.driver_connection.execute(b"VACUUM ANALYZE product_documents")
        cursor = await pooled.driver_connection.execute(
            b"SELECT count(*), avg(octet_length(body))::int FROM product_documents"
        )
        for label, number in zip(("documents", "bytes per document"), await cursor.fetchone() or (), strict=True):
            print_figure(label, f"{number:,}")
    return tenant


def read_postgres_cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of the database server, including backends that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    return read_cpu_seconds(pid) + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def print_result(started: float, cpu_before: float, **fields: Any) -> None:
    """Print the costs of this process as a line of JSON for the parent process.

    Args:
        started: `time.perf_counter()` at the start.
        cpu_before: `time.process_time()` at the start.
        fields: Further fields.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu_before, "peak": peak}
    print(json.dumps(result | fields))


async def run_export(org: str) -> None:
    """Create an export of the organisation's products and execute its job in this process, as a worker does."""
    async with open_dependencies(read_settings(os.environ)) as dependencies:
        tenant = Tenant(org, True)
        async with dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            plan = (await tx[OrgStore].get_organisation()).plan
            service = dependencies.call(exports.AREA.create_service)
            created = await service.create(
                tx, {"kind": ExportKind.PRODUCTS}, ExportRequester(plan, frozenset({"products:read"}))
            )
        [job] = await dependencies[JobDispatcher].claim(build_lane_name(org, "exports:live"), 1, timedelta(seconds=30))
        gc.freeze()  # same settings as in workers
        gc.set_threshold(100_000, 20, 100)
        handler, lag_task = (
            create_handlers([exports.AREA], dependencies)[EXECUTE_EXPORT],
            asyncio.create_task(_measure_loop_lag()),
        )
        started, cpu_before = time.perf_counter(), time.process_time()
        await handler(job, asyncio.Event())
        lag_task.cancel()
        async with dependencies[UnitOfWork].begin_reading(tenant) as tx:
            export = await tx[ExportStore].get(created.id)
        assert export is not None, created.id
        assert export.status == "succeeded", export.error
        print_result(started, cpu_before, rows=export.rows, bytes=export.files[0].bytes, lag=_MAX_LAG[0])


_MAX_LAG = [0.0]


async def _measure_loop_lag() -> None:
    """Record the longest time in seconds for which the event loop was blocked, until cancelled."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(0.005)
        _MAX_LAG[0] = max(_MAX_LAG[0], time.perf_counter() - before - 0.005)


def run_plain_copy(org: str, create_compressor: Callable[[], Any], path: Path) -> None:
    """Copy the documents by COPY with the same driver through a compressor to a file, without any processing."""
    started, cpu_before, compressor, rows, size = time.perf_counter(), time.process_time(), create_compressor(), 0, 0
    url = os.environ["JOINERY_DATABASE_URL"]
    with psycopg.connect(url) as connection, connection.cursor() as cursor, path.open("wb") as file:
        buffered_rows: list[bytes] = []
        buffered_bytes = 0
        with cursor.copy(_COPY_SQL.format(org=org).encode()) as copy:
            for row in copy:
                buffered_rows.append(bytes(row))
                buffered_bytes += len(row)
                if buffered_bytes >= WRITE_BYTES:
                    size += file.write(compressor.compress(b"".join(buffered_rows)))
                    rows, buffered_rows, buffered_bytes = rows + len(buffered_rows), [], 0
        size += file.write(compressor.compress(b"".join(buffered_rows)) + compressor.flush())
        os.fsync(file.fileno())
    print_result(started, cpu_before, rows=rows + len(buffered_rows) - 1, bytes=size)


class NoCompression:
    """Compressor that returns its input."""

    def compress(self, data: bytes) -> bytes:
        """Return the data unchanged."""
        return data

    def flush(self) -> bytes:
        """Return no bytes."""
        return b""


COMPRESSORS: dict[str, Callable[[], Any]] = {
    "nothing": NoCompression,
    **{f"isal {n}": lambda n=n: isal_zlib.compressobj(n, isal_zlib.DEFLATED, 31) for n in (0, 1, 2, 3)},  # type: ignore[misc]
    **{f"zlib {n}": lambda n=n: zlib.compressobj(n, zlib.DEFLATED, 31) for n in (1, 6)},  # type: ignore[misc]
}


def run_part(stack: Stack, tenant: Tenant, part: str) -> dict[str, float]:
    """Run one part of the benchmark in a new process; return its result, with the CPU seconds of PostgreSQL as `server`."""
    before = read_postgres_cpu_seconds(stack.postgres_pid)
    env = {**os.environ, **stack.env}
    argv = [sys.executable, "-m", "benchmarks.exports", "--part", part, "--org", tenant.org]
    finished = subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=True)
    time.sleep(0.3)
    result: dict[str, float] = json.loads(finished.stdout.splitlines()[-1])
    return result | {"server": read_postgres_cpu_seconds(stack.postgres_pid) - before}


def print_part(name: str, result: dict[str, float]) -> float:
    """Print the result of a part; return its CPU seconds including the database server."""
    cpu = result["cpu"] + result["server"]
    print_figure(
        name,
        f"{result['rows'] / result['wall']:>10,.0f} rows/s  {cpu:7.2f} CPU s ({result['server']:.2f} PostgreSQL)"
        f"  {result['bytes'] / 1e6:9.1f} MB  {result['peak']:5.0f} MiB peak memory",
    )
    return cpu


async def measure(products: int, rounds: int, compressors: list[str]) -> None:
    """Print the costs of exports and of plain copies in alternating rounds, then of plain copies with other compressors."""
    async with running_stack() as stack:
        tenant = await create_catalogue(stack, products)
        run_part(stack, tenant, "nothing")
        for _ in range(rounds):
            plain_cpu = print_part(
                f"plain copy: COPY and isal {DEFAULT_LEVEL}", run_part(stack, tenant, f"isal {DEFAULT_LEVEL}")
            )
            result = run_part(stack, tenant, "export")
            cpu = print_part("export", result)
            print_figure("export to plain copy, CPU", f"x {cpu / plain_cpu:.2f}")
            print_figure("longest blocking of the event loop", f"{result['lag'] * 1e3:.0f} ms")
        for name in compressors:
            print_part(f"plain copy: {name}", run_part(stack, tenant, name))


def measure_read_times(port: int, secret: str, is_finished: Callable[[], bool]) -> list[float]:
    """Request pages on one connection until `is_finished` returns True; return the seconds of each request."""
    times, connection = [], http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while not is_finished():
        started = time.perf_counter()
        connection.request("GET", "/v1/products?limit=20", headers={"Authorization": f"Bearer {secret}"})
        response = connection.getresponse()
        response.read()
        if response.status == 200:
            times.append(time.perf_counter() - started)
        else:  # the rate limit is exceeded; wait for new tokens
            time.sleep(0.05)
    connection.close()
    return times


def _create_timer(seconds: float) -> Callable[[], bool]:
    """Return a function that returns whether the given seconds have passed since this call."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


async def measure_during_export(products: int, rounds: int) -> None:
    """Print the median time of a page without and during an export in another process."""
    async with running_stack() as stack:
        tenant, port = await create_catalogue(stack, products), int(stack.env["JOINERY_PORT"])
        async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            _, secret = await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench"))
        api = stack.start_process("api")
        try:
            await asyncio.sleep(4)
            for _ in range(rounds):
                times_without_export = await asyncio.to_thread(measure_read_times, port, secret, _create_timer(6.0))
                export = asyncio.create_task(asyncio.to_thread(run_part, stack, tenant, "export"))
                times_during_export = await asyncio.to_thread(measure_read_times, port, secret, export.done)
                await export
                medians = [statistics.median(times) * 1e3 for times in (times_without_export, times_during_export)]
                print_figure(
                    "page of 20, without and during an export",
                    f"{medians[0]:.2f} and {medians[1]:.2f} ms, x {medians[1] / medians[0]:.2f}",
                )
        finally:
            api.terminate()
            await asyncio.to_thread(api.wait)


def main() -> None:
    """Run the measurements, or one part of them in a child process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--products", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--during", action="store_true", help="measure only the delay of reads during an export")
    parser.add_argument("--packers", action="store_true", help="measure other compressors as well")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--org", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "export":
        asyncio.run(run_export(options.org))
    elif options.part:
        run_plain_copy(options.org, COMPRESSORS[options.part], Path(os.environ["BENCH_HOME"]) / "plain-copy.gz")
    elif options.during:
        asyncio.run(measure_during_export(options.products, options.rounds))
    else:
        asyncio.run(measure(options.products, options.rounds, list(COMPRESSORS) if options.packers else []))


if __name__ == "__main__":
    main()
