"""What the console's pages cost: processor time, size, a key press in the search, and the first paint (`make bench-console`)."""

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
from benchmarks import feeds
from benchmarks.ingest import line
from benchmarks.stack import CALL, Stack, cpu_seconds, stack
from domain.catalogue.model import ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.people.model import Method, User
from domain.people.ports import People
from domain.people.usecases.sessions import SessionService, Visitor
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

PORT = 18_971
ADDRESS = f"http://127.0.0.1:{PORT}"
_TYPED = ("oak dining table", "halden sofa", "walnut", "lm-10", "bench zzz", "grey armchair")
_PAINT = "() => (performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime"


@dataclass(frozen=True)
class Asking:
    """A browser's requests to the API's process."""

    session: aiohttp.ClientSession
    pid: int

    async def page(self, path: str, tries: int, headers: Mapping[str, str] | None = None) -> tuple[float, float, bytes]:
        """Processor and elapsed milliseconds of one request, the median of the latter, and its body as sent."""
        for _ in range(10):
            await self._get(path, headers)
        began, times = cpu_seconds(self.pid), []
        for _ in range(tries):
            started = time.perf_counter()
            body = await self._get(path, headers)
            times.append(time.perf_counter() - started)
        return (cpu_seconds(self.pid) - began) / tries * 1000, statistics.median(times) * 1000, body

    async def _get(self, path: str, headers: Mapping[str, str] | None) -> bytes:
        while True:
            async with self.session.get(ADDRESS + path, headers=headers, auto_decompress=False) as answer:
                body = await answer.read()
                if answer.status != 429:
                    assert answer.status == 200, (path, answer.status)
                    return body
            await asyncio.sleep(0.2)


async def prepare(parts: Stack, products: int) -> tuple[str, str]:
    """An organisation with so many products, read from a feed; the cookie of a member, and the id of a product."""
    organisation = await parts.organisation()
    tenant, source = Tenant(organisation.id, True), await parts.source(organisation)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalogue.csv"
        feeds.write_catalogue(path, products, variants=2)
        worker = parts.process("worker")
        run = await parts.ingest(tenant, source, path)
        worker.terminate()
        worker.wait(20)
        assert run.status == "succeeded", run.error
    async with parts.container[Pool].owner() as link:
        await link.connection.execute("VACUUM ANALYZE")
    line(f"prepared {products:,} products", f"{time.perf_counter() - started:.1f} s")
    dependencies, now = parts.container, parts.container[Clock].now()
    user = await parts.container[People].add(User(new_id("usr"), "bench@joinery.test", "Bench", now, now))
    async with dependencies[UnitOfWork].begin(tenant, CALL) as tx:
        await tx[OrgStore].add_member(Member(user.id, organisation.id, user.email, "owner", now))
    _, cookie = await dependencies[SessionService].begin(user, [Method.PASSWORD], Visitor("127.0.0.1"))
    async with dependencies[UnitOfWork].read(tenant) as tx:
        page = await tx[CatalogueStore].products(ProductFilter(), PageRequest(limit=1))
    return cookie, page.items[0].id


async def pages(asking: Asking, product: str, tries: int) -> None:
    """Each page, whole."""
    for name, path in (
        ("first page", "/console"),
        ("list of products", "/console/catalogue"),
        ("list of products, searched", "/console/catalogue?q=oak"),
        ("product", f"/console/catalogue/{product}"),
        ("product with its history", f"/console/catalogue/{product}?part=history"),
    ):
        cpu, median, body = await asking.page(path, tries, {"accept-encoding": "gzip"})
        whole = gzip.decompress(body)
        line(
            name,
            f"CPU {cpu:5.1f} ms  median {median:5.1f} ms  {len(whole) / 1000:5.1f} KB, {len(body) / 1000:.1f} KB in gzip",
        )


async def typing(asking: Asking, rounds: int) -> None:
    """What each key press waits for, as htmx asks; and the counts beside it, which come after half a second."""
    results = {"hx-request": "true", "hx-target": "results"}
    times: list[float] = []
    for _ in range(rounds):
        for text in _TYPED:
            for length in range(2, len(text) + 1):
                started = time.perf_counter()
                await asking._get("/console/catalogue?q=" + text[:length].replace(" ", "+"), results)  # noqa: SLF001
                times.append(time.perf_counter() - started)
                await asyncio.sleep(0.01)
    line("a key press", _spread(times))
    filters, counts = {"hx-request": "true", "hx-target": "filters"}, []
    for text in _TYPED * rounds:
        started = time.perf_counter()
        await asking._get("/console/catalogue?q=" + text.replace(" ", "+"), filters)  # noqa: SLF001
        counts.append(time.perf_counter() - started)
    line("the counts beside it", _spread(counts))


def _spread(times: Sequence[float]) -> str:
    ordered = sorted(times)
    p50, p95 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    return f"p50 {p50 * 1000:.1f} ms  p95 {p95 * 1000:.1f} ms  worst {ordered[-1] * 1000:.1f} ms of {len(ordered)}"


def paint(cookie: str, paths: Mapping[str, str]) -> None:
    """The first contentful paint in Chromium, where there is one."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  only where it is installed
    except ImportError:
        line("first paint", "not measured: playwright is not installed")
        return
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as api:
        for name, path in {"a page of one word": "/healthz", **paths}.items():
            first: list[float] = []
            seen: list[float] = []
            for _ in range(3):
                browser = api.chromium.launch(
                    executable_path=program, args=["--headless", "--no-sandbox", "--disable-gpu"]
                )
                context = browser.new_context(viewport={"width": 1280, "height": 900})
                context.add_cookies([{"name": "joinery", "value": cookie, "url": ADDRESS}])
                page: Any = context.new_page()
                for number in range(5):
                    page.goto(ADDRESS + path, wait_until="networkidle")
                    (seen if number else first).append(page.evaluate(_PAINT) or 0.0)
                browser.close()
            line(
                f"first paint, {name}",
                f"median {statistics.median(seen):.0f} ms, in a browser just started {statistics.median(first):.0f} ms",
            )


async def ready(api: "subprocess.Popen[bytes]") -> None:
    """Until the API answers, however busy the machine is."""
    for _ in range(600):
        assert api.poll() is None, "the API has ended"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", PORT)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise TimeoutError("the API does not answer")


async def main(products: int, tries: int, rounds: int) -> None:
    """All figures."""
    async with stack(port=PORT) as parts:
        cookie, product = await prepare(parts, products)
        api = parts.process("api")
        try:
            await ready(api)
            async with aiohttp.ClientSession(headers={"cookie": f"joinery={cookie}"}) as session:
                asking = Asking(session, api.pid)
                await pages(asking, product, tries)
                await typing(asking, rounds)
            shown = {"first page": "/console", "list": "/console/catalogue", "product": f"/console/catalogue/{product}"}
            await asyncio.to_thread(paint, cookie, shown)
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
