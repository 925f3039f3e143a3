"""Cost of the event log for writers and readers, and a check that readers receive every event (`make bench-feed`)."""

import argparse
import asyncio
import subprocess
import sys

from adapters.postgres.nodes.pool import Pool
from benchmarks.append_costs import measure_appending
from benchmarks.event_publisher import Publisher
from benchmarks.feed_completeness import measure_reader_completeness
from benchmarks.idle_connections import measure_idle_connections
from benchmarks.network_log import measure_network_log
from benchmarks.read import MINIMAL_APP_PORT, SERVICE_PORT, ComparisonBench, wait_for_port
from benchmarks.stack import AUDIT_CONTEXT, Stack, running_stack
from domain.access.usecases import AccessService, KeyRequest
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

MEASUREMENTS = ("append", "readers", "page", "idle", "network")
EVENT_COUNT, BATCH = 20_000, 1000


def build_disk_settings(milliseconds: float) -> dict[str, str]:
    """Return PostgreSQL settings that delay each flush of the write-ahead log, to imitate a slower disk."""
    return {"commit_delay": str(int(milliseconds * 1000)), "commit_siblings": "0"} if milliseconds else {}


async def measure_pages(stack: Stack, rounds: int, seconds: float) -> None:
    """Print the cost of a page of 1,000 events, compared with a minimal application on the same server software."""
    organisation = await stack.create_organisation("Read")
    tenant = Tenant(organisation.id, True)
    publisher = Publisher(tenant, organisation.get_catalogue_id(True))
    for _ in range(EVENT_COUNT // BATCH):
        async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            await tx[EventLog].append(publisher.generate_events(BATCH))
    async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
        _, secret = await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench"))
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute("VACUUM ANALYZE events")
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
        pids = ({"app": api.pid, "pg": stack.postgres_pid}, {"app": minimal_app.pid, "pg": stack.postgres_pid})
        await ComparisonBench(secret, *pids, seconds, rounds).compare_with_minimal_app(
            "page of 1,000 events", "/v1/changes?limit=1000"
        )
    finally:
        for process in (api, minimal_app):
            process.terminate()
            process.wait(20)


async def main(arguments: argparse.Namespace) -> None:
    """Run the selected measurements."""
    if "network" in arguments.only:
        await measure_network_log(arguments.rounds, arguments.seconds, arguments.published, arguments.minutes * 60)
    if arguments.only == ["network"]:
        return
    async with running_stack(port=SERVICE_PORT, postgres_settings=build_disk_settings(arguments.disk_ms)) as stack:
        if "append" in arguments.only:
            await measure_appending(stack, arguments.rounds, arguments.seconds)
        if "readers" in arguments.only:
            await measure_reader_completeness(stack, arguments.minutes * 60, arguments.rate)
        if "page" in arguments.only:
            await measure_pages(stack, arguments.rounds, arguments.seconds)
        if "idle" in arguments.only:
            await measure_idle_connections(stack, arguments.waiting, arguments.waiting, arguments.minutes * 60)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", default=list(MEASUREMENTS), choices=MEASUREMENTS)
    options.add_argument("--rounds", type=int, default=5, help="rounds per comparison (default: 5)")
    options.add_argument("--seconds", type=float, default=2.0, help="seconds per variant and round (default: 2)")
    options.add_argument("--minutes", type=float, default=1.0, help="minutes of reading, and of idling (default: 1)")
    options.add_argument(
        "--rate", type=float, default=1000.0, help="events a second written for the readers (default: 1000)"
    )
    options.add_argument(
        "--published", type=float, default=200.0, help="total events a second of all vendors (default: 200)"
    )
    options.add_argument(
        "--waiting", type=int, default=1000, help="number of idle long polls and of idle streams (default: 1000)"
    )
    options.add_argument("--disk-ms", type=float, default=0.0, help="additional milliseconds for every flush to disk")
    asyncio.run(main(options.parse_args()))
