"""What a cluster costs beside one PostgreSQL, both on this machine, asked in turns (`make bench-cluster`; docs/cluster.md).

Both databases are taken as they are: give it empty ones. The cluster's is distributed first.
"""

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import psycopg
from psycopg.conninfo import make_conninfo

from adapters.postgres.cluster import coordinator, distribute
from adapters.postgres.migrate import migrate
from adapters.postgres.nodes.pool import Pool
from benchmarks import feeds
from benchmarks.ingest import line, seconds
from benchmarks.load import Figures, load
from benchmarks.read import request, wait_for
from benchmarks.stack import CALL, Stack, at
from benchmarks.watching import Watched
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Organisation
from ports.unit_of_work import UnitOfWork

SHARDS = 8
_NODES = "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
_AT_COORDINATOR = """
SELECT p.groupid = 0 FROM pg_dist_placement p WHERE p.shardid = get_shard_id_for_distribution_column('jobs', %s::text)
"""


@dataclass(frozen=True)
class Side:
    """One of the two: its parts, its API's port, and the process ids of its servers by name."""

    name: str
    parts: Stack
    port: int
    servers: Mapping[str, int]


@dataclass(frozen=True)
class Loaded:
    """What a first load came to: rows a second, processor time a row in microseconds, and whose it was."""

    tenant: Tenant
    rate: float
    cost: float


async def _asked(address: str, statement: str, *values: str) -> list[tuple[str, ...]]:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as link:
        return await (await link.execute(statement.encode(), values)).fetchall()


async def _postmaster(address: str) -> int:
    [[folder]] = await _asked(address, "SHOW data_directory")
    return int((Path(folder) / "postmaster.pid").read_text("ascii").split()[0])


async def _servers(address: str, *, cluster: bool) -> dict[str, int]:
    if not cluster:
        return {"pg": await _postmaster(address)}
    nodes = await _asked(address, _NODES)
    return {f"node {port}": await _postmaster(make_conninfo(address, host=host, port=port)) for host, port in nodes}


@asynccontextmanager
async def _side(name: str, address: str, port: int) -> AsyncIterator[Side]:
    """One of the two, with a worker and an API."""
    with tempfile.TemporaryDirectory(prefix="jb") as folder:
        servers = await _servers(address, cluster=name == "cluster")
        async with at(address, Path(folder), port, next(iter(servers.values()))) as parts:
            processes = [parts.process("worker"), parts.process("api")]
            try:
                await wait_for(port)
                yield Side(name, parts, port, {"app": processes[1].pid, **servers})
            finally:
                for process in processes:
                    process.terminate()
                    process.wait(20)


async def _organisation(side: Side) -> Organisation:
    """A new one; on a cluster one that lies beside the coordinator, not on it."""
    while True:
        organisation = await side.parts.organisation()
        address = side.parts.env["JOINERY_DATABASE_URL"]
        if side.name == "plain" or not (await _asked(address, _AT_COORDINATOR, organisation.id))[0][0]:
            return organisation


async def _load(side: Side, path: Path, rows: int) -> Loaded:
    organisation = await _organisation(side)
    tenant, source = Tenant(organisation.id, True), await side.parts.source(organisation)
    async with AsyncExitStack() as stack:
        watched = [stack.enter_context(Watched(pid)) for name, pid in side.servers.items() if name != "app"]
        begun = sum(one.seconds for one in watched)
        run = await side.parts.ingest(tenant, source, path)
        await asyncio.sleep(0.5)
        spent = sum(one.seconds for one in watched) - begun
    return Loaded(tenant, rows / seconds(run), spent * 1e6 / rows)


async def _paths(side: Side, tenant: Tenant) -> tuple[str, dict[str, str]]:
    """A key of the tenant, and what is read."""
    async with side.parts.container[UnitOfWork].begin(tenant, CALL) as tx:
        _, secret = await side.parts.container[AccessService].issue_key(tx, KeyRequest("bench"))
    headers = {"Authorization": f"Bearer {secret}"}
    address = f"http://127.0.0.1:{side.port}/v1/products"
    async with aiohttp.ClientSession(headers=headers) as session, session.get(address) as answer:
        answer.raise_for_status()
        product = (await answer.json())["data"][7]["id"]
    return secret, {
        "page of 20": "/v1/products",
        "one product": f"/v1/products/{product}",
        "q, one word": "/v1/products?" + urlencode({"q": "walnut"}),
        "q, three words": "/v1/products?" + urlencode({"q": "halden walnut sofa"}),
    }


async def _read(sides: Sequence[Side], tenants: Sequence[Tenant], rounds: int, each: float) -> None:
    keys = [await _paths(side, tenant) for side, tenant in zip(sides, tenants, strict=True)]
    for name in keys[0][1]:
        found: dict[str, list[Figures]] = {side.name: [] for side in sides}
        for _ in range(rounds):
            for side, (secret, paths) in zip(sides, keys, strict=True):
                asked = [request(paths[name], secret)]
                await load(side.port, asked, connections=8, seconds=0.4, pids=dict(side.servers))
                found[side.name].append(
                    await load(side.port, asked, connections=8, seconds=each, pids=dict(side.servers))
                )
        plain, cluster = found["plain"], found["cluster"]
        turns = list(zip(plain, cluster, strict=True))
        cpu = statistics.median(two.total / one.total for one, two in turns)
        p50 = statistics.median(two.p50 / one.p50 for one, two in turns)
        for side in sides:
            least = min(found[side.name], key=lambda figures: figures.total)
            groups = "  ".join(f"{group} {micro:.0f}" for group, micro in least.cpu.items())
            line(f"{name}, {side.name}", f"p50 {least.p50:5.1f} ms   CPU us: {groups}   sum {least.total:6.0f}")
        line("  ratio, median of rounds", f"CPU {cpu:.2f}   p50 {p50:.2f}")


async def main(plain: str, cluster: str, products: int, rounds: int, each: float) -> None:
    """Loads in turns, then reads in turns."""
    await migrate(cluster)
    async with coordinator(cluster) as found:
        await distribute(found, SHARDS, print)
    async with AsyncExitStack() as stack:
        sides = [
            await stack.enter_async_context(_side("plain", plain, 18_993)),
            await stack.enter_async_context(_side("cluster", cluster, 18_994)),
        ]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jf")))
        rows = feeds.write_catalogue(folder / "catalogue.csv", products)
        loads: dict[str, list[Loaded]] = {side.name: [] for side in sides}
        for number in range(rounds):
            for side in sides if number % 2 else reversed(sides):
                loads[side.name].append(await _load(side, folder / "catalogue.csv", rows))
        for name, ones in loads.items():
            rates = ", ".join(f"{one.rate:,.0f}" for one in ones)
            line(f"first loads of {rows:,} rows, {name}", f"{rates} rows/s   servers {ones[-1].cost:.0f} us a row")
        ratio = [two.rate / one.rate for one, two in zip(loads["plain"], loads["cluster"], strict=True)]
        line("  ratio of rates, median of rounds", f"{statistics.median(ratio):.2f}")
        for side in sides:
            async with side.parts.container[Pool].owner() as link:
                await link.connection.execute("VACUUM ANALYZE")
        await _read(sides, [loads[side.name][-1].tenant for side in sides], rounds, each)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--plain", required=True, help="address of an empty database, as its owner")
    options.add_argument("--cluster", required=True, help="address of one at a coordinator that knows its workers")
    options.add_argument("--products", type=int, default=4_000, help="of 5 variants each, a load (default: 4,000)")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=2)
    told = options.parse_args()
    asyncio.run(main(told.plain, told.cluster, told.products, told.rounds, told.seconds))
