"""What reading costs through the whole pipeline, beside a bare app on the same server software (`make bench-read`)."""

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
from benchmarks import feeds, lists
from benchmarks.ingest import line
from benchmarks.load import Figures, load
from benchmarks.stack import CALL, Stack, stack
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

OURS, BARE = 18_991, 18_992
CLONED = ("products", "product_terms", "product_documents", "variants", "offers")


async def prepare(parts: Stack, products: int) -> tuple[Tenant, str]:
    """Five organisations of as many products each; answers the first one's tenant and a key of it."""
    organisation = await parts.organisation()
    tenant, source = Tenant(organisation.id, True), await parts.source(organisation)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalogue.csv"
        feeds.write_catalogue(path, products, variants=2)
        worker = parts.process("worker")
        run = await parts.ingest(tenant, source, path)
        worker.terminate()
        worker.wait(20)
        assert run.status == "succeeded", run.error
    for number in range(4):
        other = await parts.organisation(f"Other {number}")
        async with parts.container[Pool].owner() as link:
            for table in CLONED:
                columns = await _columns(link, table)
                sql = f"INSERT INTO {table} (org, {columns}) SELECT '{other.id}', {columns} FROM {table} WHERE org = '{tenant.org}'"
                await link.connection.execute(sql.encode())
    async with parts.container[Pool].owner() as link:
        await link.connection.execute("VACUUM ANALYZE")
    async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
        _, secret = await parts.container[AccessService].issue_key(tx, KeyRequest("bench"))
    return tenant, secret


async def _columns(link, table: str) -> str:  # type: ignore[no-untyped-def]
    cursor = await link.connection.execute(
        "SELECT string_agg(column_name, ', ') FROM information_schema.columns WHERE table_name = %s AND column_name <> 'org' "
        "AND table_schema = 'public'", (table,),
    )  # fmt: skip
    return str((await cursor.fetchone())[0])


def request(path: str, secret: str) -> bytes:
    """The request's bytes."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n".encode()


def tell(name: str, figures: Figures, against: Figures | None = None) -> None:
    """One line."""
    cpu = "  ".join(f"{group} {micro:6.0f}" for group, micro in figures.cpu.items())
    ratio = f"  ratio {figures.total / against.total:.2f}" if against else ""
    line(
        name,
        f"{figures.requests / figures.seconds:7,.0f}/s  p50 {figures.p50:5.1f} ms  p99 {figures.p99:5.1f} ms  CPU us: {cpu}  sum {figures.total:6.0f}{ratio}",
    )


def best(rounds: Sequence[Figures]) -> Figures:
    """The round that cost least."""
    return min(rounds, key=lambda figures: figures.total)


class Bench:
    """Asks both servers in turn, so that each ratio comes from the same moments of the machine."""

    def __init__(
        self, secret: str, pids: dict[str, int], bare_pids: dict[str, int], seconds: float, rounds: int
    ) -> None:
        self._secret, self._pids, self._bare_pids = secret, pids, bare_pids
        self._seconds, self._rounds = seconds, rounds

    async def pair(self, name: str, path: str) -> None:
        """Ours against the bare app."""
        ours, bare, ratios = [], [], []
        for _ in range(self._rounds):
            bare.append(await self.ask(BARE, [path], self._bare_pids))
            ours.append(await self.ask(OURS, [path], self._pids))
            ratios.append(ours[-1].total / bare[-1].total)
        tell(f"{name}, bare", best(bare))
        tell(f"{name}, ours", best(ours), best(bare))
        line("  ratio, median of rounds", f"{statistics.median(ratios):.2f}")

    async def against(self, name: str, paths: Sequence[str], first: str) -> None:
        """One read of ours against another of ours."""
        asked, base = [], []
        for _ in range(self._rounds):
            base.append(await self.ask(OURS, [first], self._pids))
            asked.append(await self.ask(OURS, paths, self._pids))
        ratio = statistics.median(a.total / b.total for a, b in zip(asked, base, strict=True))
        tell(name, best(asked))
        line("  ratio to the first page", f"{ratio:.2f}")

    async def ask(self, port: int, paths: Sequence[str], pids: dict[str, int]) -> Figures:
        """One round."""
        requests = [request(path, self._secret) for path in paths]
        await load(port, requests, connections=8, seconds=0.4, pids=pids)
        return await load(port, requests, connections=8, seconds=self._seconds, pids=pids)


async def deep_page(secret: str, pages: int) -> tuple[str, list[dict[str, Any]]]:
    """Walk the list; the address of its page number `pages`, and the first page's products."""
    headers = {"Authorization": f"Bearer {secret}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        path = "/v1/products"
        first: list[dict[str, Any]] = []
        for _ in range(pages - 1):
            while True:
                async with session.get(f"http://127.0.0.1:{OURS}{path}") as answer:
                    page = await answer.json()
                if answer.status == 200:
                    break
                await asyncio.sleep(0.1)
            first = first or page["data"]
            if not page["next_cursor"]:
                break
            path = f"/v1/products?starting_after={page['next_cursor']}"
    return path, first


async def wait_for(port: int) -> None:
    """Until the port answers."""
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    sys.exit(f"nothing answers on port {port}")


async def long_lists(rows: int) -> None:
    """Lists of an organisation with so many rows of each kind."""
    async with stack(port=OURS) as parts:
        large = await lists.prepare(parts, rows)
        api = parts.process("api")
        try:
            await wait_for(OURS)
            await lists.list_figures(parts, f"http://127.0.0.1:{OURS}", large)
        finally:
            api.terminate()
            api.wait(20)


async def main(products: int, seconds: float, rounds: int, deep: int) -> None:
    """The catalogue's figures, beside a bare app."""
    async with stack(port=OURS) as parts:
        started = time.perf_counter()
        tenant, secret = await prepare(parts, products)
        line(f"prepared 5 x {products:,} products", f"{time.perf_counter() - started:.1f} s")
        env = {
            "JOINERY_DATABASE_URL_SUPER": parts.env["JOINERY_DATABASE_URL"].replace("//joinery@", "//postgres@"),
            "PATH": "/usr/bin:/bin",
        }
        api = parts.process("api")
        bare = subprocess.Popen([sys.executable, "-m", "benchmarks.bare", tenant.org, str(BARE)], env=env)
        try:
            await wait_for(OURS)
            await wait_for(BARE)
            bench = Bench(
                secret, {"app": api.pid, "pg": parts.postgres}, {"app": bare.pid, "pg": parts.postgres}, seconds, rounds
            )
            await figures(bench, secret, deep)
        finally:
            for process in (api, bare):
                process.terminate()
                process.wait(20)


async def figures(bench: Bench, secret: str, deep: int) -> None:
    """Page, product, depth, filters, search."""
    deep_path, first = await deep_page(secret, deep)
    product = first[0]
    await bench.pair("page of 20 products", "/v1/products")
    await bench.pair("one product", f"/v1/products/{product['id']}")
    await bench.against(f"page {deep:,} of the list", [deep_path], "/v1/products")
    source = product["variants"][0]["offers"][0]["source"]
    single = {
        "status": "active", "brand": product["data"]["brand"], "availability": "low_stock", "source": source,
        "catalogue": product["catalogue"], "updated_since": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    for name, value in single.items():
        await bench.against(f"filter {name}", ["/v1/products?" + urlencode({name: value})], "/v1/products")
    names = list(single)
    for triple in zip(names, names[1:] + names[:1], names[2:] + names[:2], strict=True):
        chosen = {name: single[name] for name in triple}
        await bench.against(f"filters {', '.join(triple)}", ["/v1/products?" + urlencode(chosen)], "/v1/products")
    sku = product["variants"][0]["data"]["sku"]
    for q in ("walnut sofa", "oak", "halden walnut dining table", sku):
        await bench.against(f"q={q}", ["/v1/products?" + urlencode({"q": q})], "/v1/products")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--products", type=int, default=20_000, help="per organisation, of five (default: 20,000)")
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--deep", type=int, default=900)
    options.add_argument("--rows", type=int, default=100_000, help="of the long lists (default: 100,000)")
    options.add_argument("--only", nargs="+", default=["catalogue", "lists"], choices=("catalogue", "lists"))
    told = options.parse_args()
    if "catalogue" in told.only:
        asyncio.run(main(told.products, told.seconds, told.rounds, told.deep))
    if "lists" in told.only:
        asyncio.run(long_lists(told.rows))
