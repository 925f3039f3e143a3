"""Effect of a publication and of its withdrawal on the response times of other organisations (`make bench-publishing`)."""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from adapters.postgres.nodes.pool import Pool
from benchmarks import vendor_files
from benchmarks.generated_rows import create_past_partitions, insert_rows
from benchmarks.ingest import print_figure
from benchmarks.read import wait_for_port
from benchmarks.stack import AUDIT_CONTEXT, Stack, running_stack
from domain.access.usecases import AccessService, KeyRequest
from domain.jobs.ports import JobStore
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.publishing.model import PublicationKind, PublicationRun, PublicationStatus, create_publication_job
from domain.publishing.ports import PublicationStore
from domain.publishing.usecases.licences import LicenceService
from ports.unit_of_work import UnitOfWork

PORT = 18_993
_PATHS = ("/v1/products", "/v1/products?q=halden%20walnut", "/v1/products?availability=low_stock", "/v1/offers")
_READER_OFFERS = 20_000
_PAUSE = 0.02
"""Seconds between two requests."""


async def _prepare(stack: Stack, products: int) -> tuple[Tenant, tuple[str, ...], str]:
    """Create a vendor with unlisted products and a reader with other ones; return the vendor, its products and the reader's API key."""
    today = datetime.now(UTC).date()
    vendor, reader = await stack.create_organisation("Vendor"), await stack.create_organisation("Reader")
    source = await stack.create_source(vendor)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalogue.csv"
        vendor_files.write_catalogue(path, products, variants=2)
        worker = stack.start_process("worker")
        run = await stack.import_file(Tenant(vendor.id, True), source, path)
        worker.terminate()
        worker.wait(20)
        assert run.status == "succeeded", run.error
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        connection = pooled.driver_connection
        await create_past_partitions(connection, today)
        await insert_rows(connection, reader.id, reader.get_catalogue_id(True), _READER_OFFERS, today)
        # the reader's audit log begins after the inserted entries, which have no hashes
        await connection.execute(f"DELETE FROM audit_entries WHERE org = '{reader.id}'".encode())
        await connection.execute("VACUUM ANALYZE")
        cursor = await connection.execute(f"SELECT id FROM products WHERE org = '{vendor.id}' ORDER BY id")
        ids = tuple(id for (id,) in await cursor.fetchall())
    async with stack.dependencies[UnitOfWork].begin(Tenant(reader.id, True), AUDIT_CONTEXT) as tx:
        _, secret = await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench"))
    return Tenant(vendor.id, True), ids, secret


async def _execute_run(
    stack: Stack, tenant: Tenant, kind: PublicationKind, products: tuple[str, ...]
) -> PublicationRun:
    """Execute a publication run of the products by the worker; return the run when it has ended."""
    uow = stack.dependencies[UnitOfWork]
    async with uow.begin(tenant, AUDIT_CONTEXT) as tx:
        if kind is PublicationKind.PUBLISH:
            await LicenceService().grant_to_everyone(tx)
        run = PublicationRun(
            id=new_id("pub"),
            kind=kind,
            status=PublicationStatus.QUEUED,
            products=products,
            total=len(products),
            created_at=tx.now,
            updated_at=tx.now,
        )
        await tx[PublicationStore].add(run)
        await tx[JobStore].add(create_publication_job(run, tenant))
    while run.is_open:
        await asyncio.sleep(0.5)
        async with uow.begin_reading(tenant) as tx:
            found = await tx[PublicationStore].get(run.id)
            assert found is not None
            run = found
    return run


async def _measure_until(
    secret: str, work: Coroutine[Any, Any, PublicationRun | None]
) -> tuple[dict[str, list[float]], Any]:
    """Request the lists one after the other until the work is done; return the milliseconds by path and the work's result."""
    task = asyncio.ensure_future(work)
    times: dict[str, list[float]] = {path: [] for path in _PATHS}
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {secret}"}) as session:
        while not task.done():
            for path in _PATHS:
                started = time.perf_counter()
                async with session.get(f"http://127.0.0.1:{PORT}{path}") as response:
                    await response.read()
                    assert response.status == 200, path
                times[path].append((time.perf_counter() - started) * 1000)
                await asyncio.sleep(_PAUSE)
    return times, await task


def _print_times(name: str, times: dict[str, list[float]]) -> None:
    for path, values in times.items():
        quantiles = statistics.quantiles(values, n=20)
        print_figure(
            f"{name}: {path}", f"median {quantiles[9]:6.2f} ms   p95 {quantiles[18]:6.2f} ms   {len(values)} requests"
        )


async def main(products: int, idle_seconds: float) -> None:
    """Measure a reader's lists while half of a vendor's catalogue is published and withdrawn; the other half remains published."""
    async with running_stack(port=PORT) as stack:
        vendor, ids, secret = await _prepare(stack, products)
        published, remaining = ids[: len(ids) // 2], ids[len(ids) // 2 :]
        processes = [stack.start_process("api"), stack.start_process("worker")]
        try:
            await wait_for_port(PORT)
            await _execute_run(stack, vendor, PublicationKind.PUBLISH, published)
            async with stack.dependencies[Pool].connect_as_owner() as pooled:
                await pooled.driver_connection.execute("VACUUM ANALYZE")
            await _measure_until(secret, asyncio.sleep(5))
            _print_times("idle", (await _measure_until(secret, asyncio.sleep(idle_seconds)))[0])
            for kind in (PublicationKind.PUBLISH, PublicationKind.WITHDRAW):
                started = time.perf_counter()
                times, run = await _measure_until(secret, _execute_run(stack, vendor, kind, remaining))
                seconds = time.perf_counter() - started
                print_figure(
                    f"{kind} of {run.total:,} products", f"{run.status}   {run.total / seconds:,.0f} products/s"
                )
                _print_times(kind, times)
                _print_times(f"idle after {kind}", (await _measure_until(secret, asyncio.sleep(idle_seconds)))[0])
        finally:
            for process in processes:
                process.terminate()
                process.wait(20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--products", type=int, default=20_000, help="products of the vendor (default: 20,000)")
    parser.add_argument(
        "--idle-seconds", type=float, default=20, help="duration of measurements without a run (default: 20)"
    )
    asyncio.run(main(**vars(parser.parse_args())))
