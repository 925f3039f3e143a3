"""Cost of a Citus cluster compared with one PostgreSQL on this machine (`make bench-cluster`; docs/cluster.md).

Both databases must be empty. The tables of the cluster are distributed first; then both are measured in alternating rounds.
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

from adapters.postgres.cluster import connect_to_coordinator, distribute_tables
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.schema_migrations import migrate
from benchmarks import vendor_files
from benchmarks.http_load import LoadResult, run_load
from benchmarks.ingest import measure_run_seconds, print_figure
from benchmarks.process_monitor import ProcessMonitor
from benchmarks.read import build_request, wait_for_port
from benchmarks.stack import AUDIT_CONTEXT, Stack, connect_stack
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Organisation
from ports.unit_of_work import UnitOfWork

SHARDS = 8
_NODES_SQL = "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
_IS_AT_COORDINATOR_SQL = """
SELECT p.groupid = 0 FROM pg_dist_placement p WHERE p.shardid = get_shard_id_for_distribution_column('jobs', %s::text)
"""


@dataclass(frozen=True)
class TestedDatabase:
    """One of the two compared databases with a worker and an API.

    Attributes:
        name: `plain` or `cluster`.
        stack: Settings and dependencies for the database.
        port: Port of the API.
        servers: Process IDs of the API and the database servers, by name.
    """

    name: str
    stack: Stack
    port: int
    servers: Mapping[str, int]


@dataclass(frozen=True)
class FirstLoad:
    """Result of a first load.

    Attributes:
        tenant: Tenant that owns the loaded catalogue.
        rate: Rows a second.
        cost: CPU microseconds of the database servers per row.
    """

    tenant: Tenant
    rate: float
    cost: float


async def _fetch_rows(address: str, statement: str, *values: str) -> list[tuple[str, ...]]:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        return await (await connection.execute(statement.encode(), values)).fetchall()


async def _read_server_pid(address: str) -> int:
    [[folder]] = await _fetch_rows(address, "SHOW data_directory")
    return int((Path(folder) / "postmaster.pid").read_text("ascii").split()[0])


async def _find_server_pids(address: str, *, cluster: bool) -> dict[str, int]:
    if not cluster:
        return {"pg": await _read_server_pid(address)}
    nodes = await _fetch_rows(address, _NODES_SQL)
    return {
        f"node {port}": await _read_server_pid(make_conninfo(address, host=host, port=port)) for host, port in nodes
    }


@asynccontextmanager
async def _running_database(name: str, address: str, port: int) -> AsyncIterator[TestedDatabase]:
    """Run a worker and an API on one of the two databases."""
    with tempfile.TemporaryDirectory(prefix="jb") as folder:
        servers = await _find_server_pids(address, cluster=name == "cluster")
        async with connect_stack(address, Path(folder), port, next(iter(servers.values()))) as stack:
            processes = [stack.start_process("worker"), stack.start_process("api")]
            try:
                await wait_for_port(port)
                yield TestedDatabase(name, stack, port, {"app": processes[1].pid, **servers})
            finally:
                for process in processes:
                    process.terminate()
                    process.wait(20)


async def _create_organisation(tested: TestedDatabase) -> Organisation:
    """Create an organisation; on a cluster, repeat until the organisation is placed on a worker node."""
    while True:
        organisation = await tested.stack.create_organisation()
        address = tested.stack.env["JOINERY_DATABASE_URL"]
        if tested.name == "plain" or not (await _fetch_rows(address, _IS_AT_COORDINATOR_SQL, organisation.id))[0][0]:
            return organisation


async def _measure_first_load(tested: TestedDatabase, path: Path, rows: int) -> FirstLoad:
    organisation = await _create_organisation(tested)
    tenant, source = Tenant(organisation.id, True), await tested.stack.create_source(organisation)
    async with AsyncExitStack() as exit_stack:
        monitors = [
            exit_stack.enter_context(ProcessMonitor(pid)) for name, pid in tested.servers.items() if name != "app"
        ]
        cpu_before = sum(monitor.cpu_seconds for monitor in monitors)
        run = await tested.stack.import_file(tenant, source, path)
        await asyncio.sleep(0.5)
        cpu_used = sum(monitor.cpu_seconds for monitor in monitors) - cpu_before
    return FirstLoad(tenant, rows / measure_run_seconds(run), cpu_used * 1e6 / rows)


async def _prepare_reads(tested: TestedDatabase, tenant: Tenant) -> tuple[str, dict[str, str]]:
    """Create an API key of the tenant; return the key, and the measured paths by name."""
    async with tested.stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
        _, secret = await tested.stack.dependencies[AccessService].create_key(tx, KeyRequest("bench"))
    headers = {"Authorization": f"Bearer {secret}"}
    address = f"http://127.0.0.1:{tested.port}/v1/products"
    async with aiohttp.ClientSession(headers=headers) as session, session.get(address) as response:
        response.raise_for_status()
        product = (await response.json())["data"][7]["id"]
    return secret, {
        "page of 20 products": "/v1/products",
        "one product": f"/v1/products/{product}",
        "search, one word": "/v1/products?" + urlencode({"q": "walnut"}),
        "search, three words": "/v1/products?" + urlencode({"q": "halden walnut sofa"}),
    }


async def _measure_reads(
    tested_databases: Sequence[TestedDatabase], tenants: Sequence[Tenant], rounds: int, seconds: float
) -> None:
    prepared_reads = [
        await _prepare_reads(tested, tenant) for tested, tenant in zip(tested_databases, tenants, strict=True)
    ]
    for name in prepared_reads[0][1]:
        results_by_database: dict[str, list[LoadResult]] = {tested.name: [] for tested in tested_databases}
        for _ in range(rounds):
            for tested, (secret, paths) in zip(tested_databases, prepared_reads, strict=True):
                requests = [build_request(paths[name], secret)]
                await run_load(tested.port, requests, connections=8, seconds=0.4, pids=dict(tested.servers))
                results_by_database[tested.name].append(
                    await run_load(tested.port, requests, connections=8, seconds=seconds, pids=dict(tested.servers))
                )
        plain, cluster = results_by_database["plain"], results_by_database["cluster"]
        rounds_of_both = list(zip(plain, cluster, strict=True))
        cpu = statistics.median(
            cluster_round.total_cpu / plain_round.total_cpu for plain_round, cluster_round in rounds_of_both
        )
        p50 = statistics.median(cluster_round.p50 / plain_round.p50 for plain_round, cluster_round in rounds_of_both)
        for tested in tested_databases:
            cheapest = min(results_by_database[tested.name], key=lambda figures: figures.total_cpu)
            groups = "  ".join(f"{group} {micro:.0f}" for group, micro in cheapest.cpu_by_process.items())
            print_figure(
                f"{name}, {tested.name}",
                f"p50 {cheapest.p50:5.1f} ms   CPU µs a request: {groups}   total {cheapest.total_cpu:6.0f}",
            )
        print_figure("  ratio, cluster to plain, median of rounds", f"CPU {cpu:.2f}   p50 {p50:.2f}")


async def main(plain: str, cluster: str, products: int, rounds: int, seconds: float) -> None:
    """Measure first loads in alternating order, then reads in alternating rounds."""
    await migrate(cluster)
    async with connect_to_coordinator(cluster) as coordinator:
        await distribute_tables(coordinator, SHARDS, print)
    async with AsyncExitStack() as exit_stack:
        tested_databases = [
            await exit_stack.enter_async_context(_running_database("plain", plain, 18_993)),
            await exit_stack.enter_async_context(_running_database("cluster", cluster, 18_994)),
        ]
        folder = Path(exit_stack.enter_context(tempfile.TemporaryDirectory(prefix="jf")))
        rows = vendor_files.write_catalogue(folder / "catalogue.csv", products)
        loads: dict[str, list[FirstLoad]] = {tested.name: [] for tested in tested_databases}
        for number in range(rounds):
            for tested in tested_databases if number % 2 else reversed(tested_databases):
                loads[tested.name].append(await _measure_first_load(tested, folder / "catalogue.csv", rows))
        for name, first_loads in loads.items():
            rates = ", ".join(f"{plain_load.rate:,.0f}" for plain_load in first_loads)
            print_figure(
                f"first loads of {rows:,} rows, {name}",
                f"{rates} rows/s   PostgreSQL {first_loads[-1].cost:.0f} µs CPU a row",
            )
        ratios = [
            cluster_load.rate / plain_load.rate
            for plain_load, cluster_load in zip(loads["plain"], loads["cluster"], strict=True)
        ]
        print_figure("  ratio of the rates, cluster to plain, median", f"{statistics.median(ratios):.2f}")
        for tested in tested_databases:
            async with tested.stack.dependencies[Pool].connect_as_owner() as pooled:
                await pooled.driver_connection.execute("VACUUM ANALYZE")
        await _measure_reads(
            tested_databases, [loads[tested.name][-1].tenant for tested in tested_databases], rounds, seconds
        )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--plain", required=True, help="URL of an empty database, with its owner's credentials")
    options.add_argument(
        "--cluster",
        required=True,
        help="URL of an empty database on a coordinator to which the workers have been added",
    )
    options.add_argument(
        "--products", type=int, default=4_000, help="products per first load, with 5 variants each (default: 4,000)"
    )
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=2)
    arguments = options.parse_args()
    asyncio.run(main(arguments.plain, arguments.cluster, arguments.products, arguments.rounds, arguments.seconds))
