"""What an export costs beside moving the same bytes with nothing else (`make bench-exports`)."""

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

from adapters.files.packing import LEVEL
from adapters.postgres.nodes.pool import Pool
from benchmarks.ingest import line
from benchmarks.stack import CALL, Stack, cpu_seconds, stack
from domain.access.usecases import AccessService, KeyRequest
from domain.catalogue.batch import SLOTS, Batch, KeyRange
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
from domain.exports.model import CARRY_OUT, ExportKind
from domain.exports.ports import ExportStore
from domain.exports.usecases.service import Asking
from domain.jobs.model import lane_of
from domain.jobs.ports import Dispatch
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgStore
from domain.sources.model import Source
from entrypoints.areas import exports
from entrypoints.container import opened
from entrypoints.operations.operation import handlers_of
from entrypoints.settings import from_environment
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

MADE = 2_000
"""Products that are rendered; all others are copies of them under ids of their own, further apart than gzip looks back."""
WORDS = (
    "solid oak walnut frame upholstered in woven linen seat cushion foam kiln dried hardwood legs brushed brass finish hand tufted "
    "wool rug table dining extendable leaf drawer soft close assembly required ships two boxes indoor use wipe clean damp cloth"
).split()
PORTION = 1 << 20
_COPY = "COPY (SELECT body FROM product_documents WHERE org = '{org}' AND livemode AND view = 'own') TO STDOUT (FORMAT binary)"


def product(source: Source, number: int, now: datetime, dice: random.Random) -> Product:
    """A product of two variants with two offers each, in words of which few repeat soon."""
    said = [" ".join(dice.choices(WORDS, k=length)) for length in (5, 60, 8, 8)]
    data: dict[str, Any] = {"title": said[0].title(), "brand": said[0].split()[0].title(), "description": said[1]}
    data |= {"features": said[2:], "dimensions": {"width": {"hundredths_in": dice.randrange(9_000)}}}
    made = Product(
        new_id("prod"), source.catalogue, source.id, f"k{number}", ProductStatus.ACTIVE, 1, Visibility.UNLISTED, data, now, now
    )  # fmt: skip
    for place in range(2):
        facts = {
            "sku": f"S{dice.randrange(1 << 40):x}",
            "gtin": f"{dice.randrange(10**13):013d}",
            "colour": dice.choice(WORDS),
        }
        variant = Variant(new_id("var"), made.id, source.id, f"k{number}-{place}", ProductStatus.ACTIVE, 1, facts, now)
        for location in ("main", "east"):
            offer = {
                "currency": "usd",
                "price": dice.randrange(900_000),
                "availability": "in_stock",
                "quantity": dice.randrange(90),
            }
            variant.offers.append(
                Offer(new_id("ofr"), variant.id, made.id, source.id, location, offer, 1, CATALOGUE_STREAM, now, now)
            )
        made.variants.append(variant)
    return made


async def fill(parts: Stack, products: int) -> Tenant:
    """An organisation whose list has so many documents."""
    organisation = await parts.organisation("Exports")
    tenant, source, now = Tenant(organisation.id, True), await parts.source(organisation), parts.container[Clock].now()
    dice = random.Random(7)
    made = [product(source, number, now, dice) for number in range(min(MADE, products))]
    async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
        batch = Batch(new_products=made, touched={one.id: one for one in made})
        batch.new_variants = [one for each in made for one in each.variants]
        batch.new_offers = [one for variant in batch.new_variants for one in variant.offers]
        await tx[CatalogueStore].save(KeyRange(source.id, Stream.CATALOGUE, 0, SLOTS), batch, now)
    async with parts.container[Pool].owner() as link:
        await link.connection.execute(
            b"INSERT INTO product_documents (org, livemode, product, view, body, etag) SELECT org, livemode, 'prod_' || "
            b"substr(md5(product || n), 1, 22), view, body, etag FROM generate_series(1, %b - 1) n, product_documents"
            % str(-(-products // MADE)).encode()
        )
        await link.connection.execute(b"VACUUM ANALYZE product_documents")
        found = await link.connection.execute(b"SELECT count(*), avg(octet_length(body))::int FROM product_documents")
        for name, number in zip(("documents", "bytes a document"), await found.fetchone() or (), strict=True):
            line(name, f"{number:,}")
    return tenant


def postgres_seconds(pid: int) -> float:
    """CPU seconds of the server, backends that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    return cpu_seconds(pid) + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def told(began: float, cpu: float, **more: Any) -> None:
    """What a part of the measuring, in a process of its own, took."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu, "peak": peak}
    print(json.dumps(seconds | more))


async def exported(org: str) -> None:
    """The export, as a worker carries it out."""
    async with opened(from_environment(os.environ)) as container:
        dependencies, tenant = container, Tenant(org, True)
        async with dependencies[UnitOfWork].begin(tenant, CALL) as tx:
            plan = (await tx[OrgStore].own()).plan
            service = dependencies.call(exports.AREA.service)
            asked = await service.create(tx, {"kind": ExportKind.PRODUCTS}, Asking(plan, frozenset({"products:read"})))
        [job] = await dependencies[Dispatch].claim(lane_of(org, "exports:live"), 1, timedelta(seconds=30))
        gc.freeze()  # as workers do
        gc.set_threshold(100_000, 20, 100)
        handler, lag = handlers_of([exports.AREA], dependencies)[CARRY_OUT], asyncio.create_task(_lag())
        began, cpu = time.perf_counter(), time.process_time()
        await handler(job, asyncio.Event())
        lag.cancel()
        async with dependencies[UnitOfWork].read(tenant) as tx:
            made = await tx[ExportStore].get(asked.id)
        assert made is not None, asked.id
        assert made.status == "succeeded", made.error
        told(began, cpu, rows=made.rows, bytes=made.files[0].bytes, lag=_LAG[0])


_LAG = [0.0]


async def _lag() -> None:
    """The longest that the event loop was held, in seconds."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(0.005)
        _LAG[0] = max(_LAG[0], time.perf_counter() - before - 0.005)


def bare(org: str, pack: Callable[[], Any], to: Path) -> None:
    """COPY through the same driver and a packer into a file: nothing is looked at."""
    began, cpu, packer, rows, size = time.perf_counter(), time.process_time(), pack(), 0, 0
    url = os.environ["JOINERY_DATABASE_URL"]
    with psycopg.connect(url) as connection, connection.cursor() as cursor, to.open("wb") as file:
        held: list[bytes] = []
        weight = 0
        with cursor.copy(_COPY.format(org=org).encode()) as copy:
            for row in copy:
                held.append(bytes(row))
                weight += len(row)
                if weight >= PORTION:
                    size += file.write(packer.compress(b"".join(held)))
                    rows, held, weight = rows + len(held), [], 0
        size += file.write(packer.compress(b"".join(held)) + packer.flush())
        os.fsync(file.fileno())
    told(began, cpu, rows=rows + len(held) - 1, bytes=size)


class Plain:
    """Packs nothing."""

    def compress(self, data: bytes) -> bytes:
        """The same."""
        return data

    def flush(self) -> bytes:
        """Nothing is left."""
        return b""


PACKERS: dict[str, Callable[[], Any]] = {
    "nothing": Plain,
    **{f"isal {n}": lambda n=n: isal_zlib.compressobj(n, isal_zlib.DEFLATED, 31) for n in (0, 1, 2, 3)},  # type: ignore[misc]
    **{f"zlib {n}": lambda n=n: zlib.compressobj(n, zlib.DEFLATED, 31) for n in (1, 6)},  # type: ignore[misc]
}


def part(parts: Stack, tenant: Tenant, name: str) -> dict[str, float]:
    """Measure one part in a process of its own, with the server's share."""
    before = postgres_seconds(parts.postgres)
    env = {**os.environ, **parts.env}
    argv = [sys.executable, "-m", "benchmarks.exports", "--part", name, "--org", tenant.org]
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=True)
    time.sleep(0.3)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer | {"server": postgres_seconds(parts.postgres) - before}


def shown(name: str, found: dict[str, float]) -> float:
    """A line; answers the CPU seconds in all."""
    cpu = found["cpu"] + found["server"]
    line(
        name,
        f"{found['rows'] / found['wall']:>10,.0f} rows/s  {cpu:7.2f} CPU s ({found['server']:.2f} the server's)"
        f"  {found['bytes'] / 1e6:9.1f} MB  {found['peak']:5.0f} MiB at most",
    )
    return cpu


async def measure(products: int, rounds: int, packers: list[str]) -> None:
    """Every figure, a line each."""
    async with stack() as parts:
        tenant = await fill(parts, products)
        part(parts, tenant, "nothing")
        for _ in range(rounds):
            floor = shown(f"bare: COPY and isal {LEVEL}", part(parts, tenant, f"isal {LEVEL}"))
            found = part(parts, tenant, "export")
            cpu = shown("export", found)
            line("export beside bare, CPU", f"x {cpu / floor:.2f}")
            line("event loop held at most", f"{found['lag'] * 1e3:.0f} ms")
        for name in packers:
            shown(f"bare: {name}", part(parts, tenant, name))


def reads(port: int, secret: str, until: Callable[[], bool]) -> list[float]:
    """Seconds of each GET of a page, one after the other on one connection, until then."""
    took, connection = [], http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while not until():
        began = time.perf_counter()
        connection.request("GET", "/v1/products?limit=20", headers={"Authorization": f"Bearer {secret}"})
        answer = connection.getresponse()
        answer.read()
        if answer.status == 200:
            took.append(time.perf_counter() - began)
        else:  # its budget is spent for the moment
            time.sleep(0.05)
    connection.close()
    return took


def _in(seconds: float) -> Callable[[], bool]:
    """Whether so much time has passed from now on."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


async def beside(products: int, rounds: int) -> None:
    """What readers notice of an export that a worker writes beside them."""
    async with stack() as parts:
        tenant, port = await fill(parts, products), int(parts.env["JOINERY_PORT"])
        async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
            _, secret = await parts.container[AccessService].issue_key(tx, KeyRequest("bench"))
        api = parts.process("api")
        try:
            await asyncio.sleep(4)
            for _ in range(rounds):
                alone = await asyncio.to_thread(reads, port, secret, _in(6.0))
                export = asyncio.create_task(asyncio.to_thread(part, parts, tenant, "export"))
                with_export = await asyncio.to_thread(reads, port, secret, export.done)
                await export
                medians = [statistics.median(some) * 1e3 for some in (alone, with_export)]
                line(
                    "a page of 20, alone and beside an export",
                    f"{medians[0]:.2f} and {medians[1]:.2f} ms, x {medians[1] / medians[0]:.2f}",
                )
        finally:
            api.terminate()
            await asyncio.to_thread(api.wait)


def main() -> None:
    """Measure, or be one part of it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--products", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--beside", action="store_true", help="what readers notice of an export, and nothing else")
    options.add_argument("--packers", action="store_true", help="also what other ways of packing cost")
    options.add_argument("--part", help=argparse.SUPPRESS)
    options.add_argument("--org", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.part == "export":
        asyncio.run(exported(given.org))
    elif given.part:
        bare(given.org, PACKERS[given.part], Path(os.environ["BENCH_HOME"]) / "bare.gz")
    elif given.beside:
        asyncio.run(beside(given.products, given.rounds))
    else:
        asyncio.run(measure(given.products, given.rounds, list(PACKERS) if given.packers else []))


if __name__ == "__main__":
    main()
