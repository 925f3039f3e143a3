"""What a thousand long polls and a thousand streams cost while nothing happens."""

import asyncio
import random
import resource

from benchmarks.idle import watched
from benchmarks.ingest import line
from benchmarks.readers import LongPolls, Stream
from benchmarks.stack import CALL, Stack
from benchmarks.write import ready
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

ORGANISATIONS = 20
"""So many, that the budgets of the plan `max` let all streams be opened at once."""
WAIT = 25
FILES = 20_000


def allow_files() -> None:
    """As many open files as may be, for this process and those that it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, hard) if hard > 0 else FILES, hard))


async def waiting_figures(parts: Stack, polls: int, streams: int, seconds: float) -> None:
    """CPU and statements while all of them wait."""
    allow_files()
    secrets = []
    for number in range(ORGANISATIONS):
        organisation = await parts.organisation(f"Waiting {number}")
        async with parts.container[UnitOfWork].begin(Tenant(organisation.id, True), CALL) as tx:
            secrets.append((await parts.container[AccessService].issue_key(tx, KeyRequest("bench")))[1])
    api = parts.process("api")
    base = f"http://127.0.0.1:{parts.settings.port}"
    try:
        await ready(parts.settings.port)
        asking = [LongPolls(base, secrets[number % ORGANISATIONS]) for number in range(polls)]
        listening = [Stream(base, secrets[number % ORGANISATIONS]) for number in range(streams)]
        tasks = [asyncio.create_task(_later(one, random.random() * WAIT)) for one in asking]
        tasks += [asyncio.create_task(one.run()) for one in listening]
        await asyncio.sleep(WAIT + 5)
        calls, breaks = sum(one.calls for one in asking), sum(one.breaks for one in (*asking, *listening))
        share = await watched(parts, {"API": api.pid, "postgres": parts.postgres}, seconds)
        calls = sum(one.calls for one in asking) - calls
        breaks = sum(one.breaks for one in (*asking, *listening)) - breaks
        share.tell(f"idle: {polls} long polls, {sum(one.calls > 0 for one in listening)} streams")
        line("  long polls answered, connections broken", f"{calls:8,} {breaks:8,}")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        api.terminate()
        api.wait(30)


async def _later(one: LongPolls, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await one.run(WAIT)
