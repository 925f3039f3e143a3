"""What the event log costs its writers and its readers, and whether readers miss anything (`make bench-feed`)."""

import argparse
import asyncio
import subprocess
import sys

from adapters.postgres.nodes.pool import Pool
from benchmarks.append import append_figures
from benchmarks.network import network_figures
from benchmarks.publishing import Publisher
from benchmarks.read import BARE, OURS, Bench, wait_for
from benchmarks.stack import CALL, Stack, stack
from benchmarks.waiting import waiting_figures
from benchmarks.witnesses import witness_figures
from domain.access.usecases import AccessService, KeyRequest
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

PARTS = ("append", "readers", "page", "idle", "network")
EVENTS, BATCH = 20_000, 1000


def slower(milliseconds: float) -> dict[str, str]:
    """Settings under which PostgreSQL waits so long before each flush of its log, as for a slower disk."""
    return {"commit_delay": str(int(milliseconds * 1000)), "commit_siblings": "0"} if milliseconds else {}


async def page_figures(parts: Stack, rounds: int, seconds: float) -> None:
    """A page of a thousand events through the whole pipeline, beside a bare app on the same server software."""
    organisation = await parts.organisation("Read")
    tenant = Tenant(organisation.id, True)
    publisher = Publisher(tenant, organisation.catalogue(True))
    for _ in range(EVENTS // BATCH):
        async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
            await tx[EventLog].append(publisher.next(BATCH))
    async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
        _, secret = await parts.container[AccessService].issue_key(tx, KeyRequest("bench"))
    async with parts.container[Pool].owner() as link:
        await link.connection.execute("VACUUM ANALYZE events")
    env = {
        "JOINERY_DATABASE_URL_SUPER": parts.env["JOINERY_DATABASE_URL"].replace("//joinery@", "//postgres@"),
        "PATH": "/usr/bin:/bin",
    }
    api = parts.process("api")
    bare = subprocess.Popen([sys.executable, "-m", "benchmarks.bare", tenant.org, str(BARE)], env=env)
    try:
        await wait_for(OURS)
        await wait_for(BARE)
        pids = ({"app": api.pid, "pg": parts.postgres}, {"app": bare.pid, "pg": parts.postgres})
        await Bench(secret, *pids, seconds, rounds).pair("page of 1,000 events", "/v1/changes?limit=1000")
    finally:
        for process in (api, bare):
            process.terminate()
            process.wait(20)


async def main(told: argparse.Namespace) -> None:
    """Every figure of the command, or those that are named."""
    if "network" in told.only:
        await network_figures(told.rounds, told.seconds, told.published, told.minutes * 60)
    if told.only == ["network"]:
        return
    async with stack(port=OURS, postgres_settings=slower(told.disk_ms)) as parts:
        if "append" in told.only:
            await append_figures(parts, told.rounds, told.seconds)
        if "readers" in told.only:
            await witness_figures(parts, told.minutes * 60, told.rate)
        if "page" in told.only:
            await page_figures(parts, told.rounds, told.seconds)
        if "idle" in told.only:
            await waiting_figures(parts, told.waiting, told.waiting, told.minutes * 60)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS)
    options.add_argument("--rounds", type=int, default=5, help="of each comparison (default: 5)")
    options.add_argument("--seconds", type=float, default=2.0, help="of each way in each round (default: 2)")
    options.add_argument("--minutes", type=float, default=1.0, help="of the readers, and of idling (default: 1)")
    options.add_argument(
        "--rate", type=float, default=1000.0, help="events a second beside the readers (default: 1000)"
    )
    options.add_argument(
        "--published", type=float, default=200.0, help="events a second of all vendors together (default: 200)"
    )
    options.add_argument("--waiting", type=int, default=1000, help="idle long polls, and streams (default: 1000)")
    options.add_argument("--disk-ms", type=float, default=0.0, help="make every flush to disk so much slower")
    asyncio.run(main(options.parse_args()))
