"""Cost of reading, compared with a minimal application on the same server software (`make bench-read`)."""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp

from adapters.postgres.nodes.pool import Pool
from benchmarks import list_pages, vendor_files
from benchmarks.copy_baseline import list_written_columns
from benchmarks.http_load import LoadResult, run_load
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack, running_stack
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

SERVICE_PORT, MINIMAL_APP_PORT = 18_991, 18_992
CLONED = ("products", "product_terms", "product_facets", "product_documents", "variants", "offers")


async def prepare(stack: Stack, products: int) -> tuple[Tenant, str]:
    """Create five organisations with the same number of products; return the tenant of the first and its API key."""
    organisation = await stack.create_organisation()
    tenant, source = Tenant(organisation.id, True), await stack.create_source(organisation)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalogue.csv"
        vendor_files.write_catalogue(path, products, variants=2)
        worker = stack.start_process("worker")
        run = await stack.import_file(tenant, source, path)
        worker.terminate()
        worker.wait(20)
        assert run.status == "succeeded", run.error
    for number in range(4):
        other = await stack.create_organisation(f"Other {number}")
        async with stack.dependencies[Pool].connect_as_owner() as pooled:
            for table in CLONED:
                columns = await list_written_columns(pooled, table, "org")
                sql = f"INSERT INTO {table} (org, {columns}) SELECT '{other.id}', {columns} FROM {table} WHERE org = '{tenant.org}'"
                await pooled.driver_connection.execute(sql.encode())
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute("VACUUM ANALYZE")
    async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
        _, secret = await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench"))
    return tenant, secret


def build_request(path: str, secret: str) -> bytes:
    """Return the bytes of a GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n".encode()


def print_load_result(name: str, result: LoadResult, baseline: LoadResult | None = None) -> None:
    """Print throughput, latency and CPU; with a baseline, also the ratio of the CPU."""
    shares = "  ".join(f"{process} {microseconds:6.0f}" for process, microseconds in result.cpu_by_process.items())
    ratio = f"  ratio {result.total_cpu / baseline.total_cpu:.2f}" if baseline else ""
    print_figure(
        name,
        f"{result.requests / result.seconds:7,.0f}/s  p50 {result.p50:5.1f} ms  p99 {result.p99:5.1f} ms  CPU µs: {shares}  total {result.total_cpu:6.0f}{ratio}",
    )


def find_cheapest_round(results: Sequence[LoadResult]) -> LoadResult:
    """Return the result with the least CPU per request."""
    return min(results, key=lambda result: result.total_cpu)


class ComparisonBench:
    """Benchmark that measures two paths or servers in alternating rounds, so that both run under the same conditions."""

    def __init__(
        self, secret: str, pids: dict[str, int], minimal_app_pids: dict[str, int], seconds: float, rounds: int
    ) -> None:
        self._secret, self._pids, self._minimal_app_pids = secret, pids, minimal_app_pids
        self._seconds, self._rounds = seconds, rounds

    async def compare_with_minimal_app(self, name: str, path: str) -> None:
        """Measure a path of the service and of the minimal application; print both and the ratio."""
        service_results, minimal_app_results, ratios = [], [], []
        for _ in range(self._rounds):
            minimal_app_results.append(await self.measure(MINIMAL_APP_PORT, [path], self._minimal_app_pids))
            service_results.append(await self.measure(SERVICE_PORT, [path], self._pids))
            ratios.append(service_results[-1].total_cpu / minimal_app_results[-1].total_cpu)
        print_load_result(f"{name}, minimal application", find_cheapest_round(minimal_app_results))
        print_load_result(
            f"{name}, service", find_cheapest_round(service_results), find_cheapest_round(minimal_app_results)
        )
        print_figure("  ratio, median of rounds", f"{statistics.median(ratios):.2f}")

    async def compare_pages(self, name: str, paths: Sequence[str], first_path: str) -> None:
        """Measure paths of the service and the first page; print the result and the ratio."""
        results, first_page_results = [], []
        for _ in range(self._rounds):
            first_page_results.append(await self.measure(SERVICE_PORT, [first_path], self._pids))
            results.append(await self.measure(SERVICE_PORT, paths, self._pids))
        ratio = statistics.median(
            result.total_cpu / first_page_result.total_cpu
            for result, first_page_result in zip(results, first_page_results, strict=True)
        )
        print_load_result(name, find_cheapest_round(results))
        print_figure("  ratio to the first page", f"{ratio:.2f}")

    async def measure(self, port: int, paths: Sequence[str], pids: dict[str, int]) -> LoadResult:
        """Run one round."""
        requests = [build_request(path, self._secret) for path in paths]
        await run_load(port, requests, connections=8, seconds=0.4, pids=pids)
        return await run_load(port, requests, connections=8, seconds=self._seconds, pids=pids)


async def find_deep_page(secret: str, pages: int) -> tuple[str, list[dict[str, Any]]]:
    """Follow the cursors of the list.

    Returns:
        The path of the page with the number `pages`, and the products of the first page.
    """
    headers = {"Authorization": f"Bearer {secret}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        path = "/v1/products"
        first_products: list[dict[str, Any]] = []
        for _ in range(pages - 1):
            while True:
                async with session.get(f"http://127.0.0.1:{SERVICE_PORT}{path}") as response:
                    page = await response.json()
                if response.status == 200:
                    break
                await asyncio.sleep(0.1)
            first_products = first_products or page["data"]
            if not page["next_cursor"]:
                break
            path = f"/v1/products?starting_after={page['next_cursor']}"
    return path, first_products


async def wait_for_port(port: int) -> None:
    """Wait up to ten seconds until the port accepts connections; exit with an error otherwise."""
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    sys.exit(f"no process listens on port {port}")


async def measure_long_lists(rows: int) -> None:
    """Print the response times of lists of an organisation with `rows` rows of each kind."""
    async with running_stack(port=SERVICE_PORT) as stack:
        large = await list_pages.prepare(stack, rows)
        api = stack.start_process("api")
        try:
            await wait_for_port(SERVICE_PORT)
            await list_pages.measure_lists(stack, f"http://127.0.0.1:{SERVICE_PORT}", large)
        finally:
            api.terminate()
            api.wait(20)


async def main(products: int, seconds: float, rounds: int, deep_page_number: int) -> None:
    """Measure reads of the catalogue, compared with the minimal application."""
    async with running_stack(port=SERVICE_PORT) as stack:
        started = time.perf_counter()
        tenant, secret = await prepare(stack, products)
        print_figure(f"created 5 x {products:,} products", f"{time.perf_counter() - started:.1f} s")
        env = {
            "JOINERY_DATABASE_URL_SUPER": stack.env["JOINERY_DATABASE_URL"].replace("//joinery@", "//postgres@"),
            "PATH": "/usr/bin:/bin",
        }
        api = stack.start_process("api")
        minimal_app = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.minimal_app", tenant.org, str(MINIMAL_APP_PORT)], env=env
        )
        try:
            await wait_for_port(SERVICE_PORT)
            await wait_for_port(MINIMAL_APP_PORT)
            bench = ComparisonBench(
                secret,
                {"app": api.pid, "pg": stack.postgres_pid},
                {"app": minimal_app.pid, "pg": stack.postgres_pid},
                seconds,
                rounds,
            )
            await measure_reads(bench, secret, deep_page_number)
        finally:
            for process in (api, minimal_app):
                process.terminate()
                process.wait(20)


async def measure_reads(bench: ComparisonBench, secret: str, deep_page_number: int) -> None:
    """Print the costs of a page, a product, a deep page, filters and searches."""
    deep_path, first_products = await find_deep_page(secret, deep_page_number)
    product = first_products[0]
    await bench.compare_with_minimal_app("page of 20 products", "/v1/products")
    await bench.compare_with_minimal_app("one product", f"/v1/products/{product['id']}")
    await bench.compare_pages(f"page {deep_page_number:,} of the list", [deep_path], "/v1/products")
    source = product["variants"][0]["offers"][0]["source"]
    filters = {
        "status": "active", "brand": product["data"]["brand"], "availability": "low_stock", "source": source,
        "catalogue": product["catalogue"], "updated_since": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    for name, value in filters.items():
        await bench.compare_pages(f"filter {name}", ["/v1/products?" + urlencode({name: value})], "/v1/products")
    names = list(filters)
    for filter_names in zip(names, names[1:] + names[:1], names[2:] + names[:2], strict=True):
        selected_filters = {name: filters[name] for name in filter_names}
        await bench.compare_pages(
            f"filters {', '.join(filter_names)}", ["/v1/products?" + urlencode(selected_filters)], "/v1/products"
        )
    sku = product["variants"][0]["data"]["sku"]
    for q in ("walnut sofa", "oak", "halden walnut dining table", sku):
        await bench.compare_pages(f"q={q}", ["/v1/products?" + urlencode({"q": q})], "/v1/products")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--products", type=int, default=20_000, help="products of each of five organisations (default: 20,000)"
    )
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--deep", type=int, default=900, help="number of the deep page (default: 900)")
    options.add_argument("--rows", type=int, default=100_000, help="rows of the long lists (default: 100,000)")
    options.add_argument("--only", nargs="+", default=["catalogue", "lists"], choices=("catalogue", "lists"))
    arguments = options.parse_args()
    if "catalogue" in arguments.only:
        asyncio.run(main(arguments.products, arguments.seconds, arguments.rounds, arguments.deep))
    if "lists" in arguments.only:
        asyncio.run(measure_long_lists(arguments.rows))
