"""Cost of the console's pages: CPU time, size, search while typing, and first paint (`make bench-console`)."""

import argparse
import asyncio
import gzip
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from adapters.postgres.nodes.pool import Pool
from benchmarks import vendor_files
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack, read_cpu_seconds, running_stack
from domain.catalogue.model import ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.people.model import AuthMethod, User
from domain.people.ports import People
from domain.people.usecases.sessions import ClientInfo, SessionService
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

PORT = 18_971
ADDRESS = f"http://127.0.0.1:{PORT}"
_SEARCH_TEXTS = ("oak dining table", "halden sofa", "walnut", "lm-10", "bench zzz", "grey armchair")
_FIRST_PAINT_SCRIPT = "() => (performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime"


@dataclass(frozen=True)
class ConsoleRequests:
    """Client that requests console pages as a browser does, and measures the API process.

    Attributes:
        session: HTTP session with the cookie of a signed-in member.
        pid: Process ID of the API.
    """

    session: aiohttp.ClientSession
    pid: int

    async def measure_page(
        self, path: str, requests: int, headers: Mapping[str, str] | None = None
    ) -> tuple[float, float, bytes]:
        """Request a page repeatedly.

        Returns:
            CPU milliseconds per request, the median of the elapsed milliseconds, and the body as sent (gzip if
            requested).
        """
        for _ in range(10):
            await self._get(path, headers)
        cpu_before, times = read_cpu_seconds(self.pid), []
        for _ in range(requests):
            started = time.perf_counter()
            body = await self._get(path, headers)
            times.append(time.perf_counter() - started)
        return (read_cpu_seconds(self.pid) - cpu_before) / requests * 1000, statistics.median(times) * 1000, body

    async def _get(self, path: str, headers: Mapping[str, str] | None) -> bytes:
        while True:
            async with self.session.get(ADDRESS + path, headers=headers, auto_decompress=False) as response:
                body = await response.read()
                if response.status != 429:
                    assert response.status == 200, (path, response.status)
                    return body
            await asyncio.sleep(0.2)


async def prepare(stack: Stack, products: int) -> tuple[str, str]:
    """Create an organisation and import `products` products from a file.

    Returns:
        The session cookie of a member, and the ID of a product.
    """
    organisation = await stack.create_organisation()
    tenant, source = Tenant(organisation.id, True), await stack.create_source(organisation)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalogue.csv"
        vendor_files.write_catalogue(path, products, variants=2)
        worker = stack.start_process("worker")
        run = await stack.import_file(tenant, source, path)
        worker.terminate()
        worker.wait(20)
        assert run.status == "succeeded", run.error
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute("VACUUM ANALYZE")
    print_figure(f"prepared {products:,} products", f"{time.perf_counter() - started:.1f} s")
    dependencies, current_time = stack.dependencies, stack.dependencies[Clock].now()
    user = await stack.dependencies[People].add(
        User(new_id("usr"), "bench@joinery.test", "Bench", current_time, current_time)
    )
    async with dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
        await tx[OrgStore].add_member(Member(user.id, organisation.id, user.email, "owner", current_time))
    _, cookie = await dependencies[SessionService].start(user, [AuthMethod.PASSWORD], ClientInfo("127.0.0.1"))
    async with dependencies[UnitOfWork].begin_reading(tenant) as tx:
        page = await tx[CatalogueStore].list_products(ProductFilter(), PageRequest(limit=1))
    return cookie, page.items[0].id


async def measure_pages(requests: ConsoleRequests, product: str, requests_per_page: int) -> None:
    """Print CPU time, median time and size of each full page."""
    for name, path in (
        ("first page", "/console"),
        ("list of products", "/console/catalogue"),
        ("list of products with a search", "/console/catalogue?q=oak"),
        ("product", f"/console/catalogue/{product}"),
        ("product with its history", f"/console/catalogue/{product}?part=history"),
    ):
        cpu, median, body = await requests.measure_page(path, requests_per_page, {"accept-encoding": "gzip"})
        content = gzip.decompress(body)
        print_figure(
            name,
            f"CPU {cpu:5.1f} ms  median {median:5.1f} ms  {len(content) / 1000:5.1f} KB, {len(body) / 1000:.1f} KB in gzip",
        )


async def measure_typing(requests: ConsoleRequests, rounds: int) -> None:
    """Print the times of the requests that htmx sends for each key press, and of those for the filter counts."""
    results = {"hx-request": "true", "hx-target": "results"}
    times: list[float] = []
    for _ in range(rounds):
        for text in _SEARCH_TEXTS:
            for length in range(2, len(text) + 1):
                started = time.perf_counter()
                await requests._get("/console/catalogue?q=" + text[:length].replace(" ", "+"), results)  # noqa: SLF001
                times.append(time.perf_counter() - started)
                await asyncio.sleep(0.01)
    print_figure("results after a key press", _format_times(times))
    filters, counts = {"hx-request": "true", "hx-target": "filters"}, []
    for text in _SEARCH_TEXTS * rounds:
        started = time.perf_counter()
        await requests._get("/console/catalogue?q=" + text.replace(" ", "+"), filters)  # noqa: SLF001
        counts.append(time.perf_counter() - started)
    print_figure("filter counts", _format_times(counts))


def _format_times(times: Sequence[float]) -> str:
    ordered = sorted(times)
    p50, p95 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    return f"p50 {p50 * 1000:.1f} ms  p95 {p95 * 1000:.1f} ms  max {ordered[-1] * 1000:.1f} ms, {len(ordered)} requests"


def measure_first_paint(cookie: str, paths: Mapping[str, str]) -> None:
    """Print the first contentful paint of each path in Chromium; print a notice if Playwright is not installed."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  only where it is installed
    except ImportError:
        print_figure("first paint", "not measured: playwright is not installed")
        return
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as api:
        for name, path in {"plain text page": "/healthz", **paths}.items():
            first_loads: list[float] = []
            later_loads: list[float] = []
            for _ in range(3):
                browser = api.chromium.launch(
                    executable_path=executable, args=["--headless", "--no-sandbox", "--disable-gpu"]
                )
                context = browser.new_context(viewport={"width": 1280, "height": 900})
                context.add_cookies([{"name": "joinery", "value": cookie, "url": ADDRESS}])
                page: Any = context.new_page()
                for number in range(5):
                    page.goto(ADDRESS + path, wait_until="networkidle")
                    (later_loads if number else first_loads).append(page.evaluate(_FIRST_PAINT_SCRIPT) or 0.0)
                browser.close()
            print_figure(
                f"first paint, {name}",
                f"median {statistics.median(later_loads):.0f} ms, in a newly started browser {statistics.median(first_loads):.0f} ms",
            )


async def wait_for_api(api: "subprocess.Popen[bytes]") -> None:
    """Wait up to a minute until the API accepts connections. Raises TimeoutError."""
    for _ in range(600):
        assert api.poll() is None, "the API process has ended"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", PORT)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise TimeoutError("the API does not accept connections")


async def main(products: int, requests_per_page: int, rounds: int) -> None:
    """Run all measurements."""
    async with running_stack(port=PORT) as stack:
        cookie, product = await prepare(stack, products)
        api = stack.start_process("api")
        try:
            await wait_for_api(api)
            async with aiohttp.ClientSession(headers={"cookie": f"joinery={cookie}"}) as session:
                requests = ConsoleRequests(session, api.pid)
                await measure_pages(requests, product, requests_per_page)
                await measure_typing(requests, rounds)
            paths = {"first page": "/console", "list": "/console/catalogue", "product": f"/console/catalogue/{product}"}
            await asyncio.to_thread(measure_first_paint, cookie, paths)
        finally:
            api.terminate()
            api.wait(20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--products", type=int, default=100_000)
    parser.add_argument("--tries", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    asyncio.run(main(options.products, options.tries, options.rounds))
