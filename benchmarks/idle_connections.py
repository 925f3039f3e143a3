"""Cost of a thousand long polls and a thousand event streams without events."""

import asyncio
import random
import resource

from benchmarks.feed_readers import LongPollReader, StreamReader
from benchmarks.idle_usage import measure_idle_usage
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack
from benchmarks.write import wait_until_ready
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

ORGANISATIONS = 20
"""Number of organisations, so that the rate limits of the plan `max` allow opening all streams at once."""
WAIT_SECONDS = 25
MAX_FILES = 20_000


def raise_file_limit() -> None:
    """Raise the limit of open files for this process and its child processes."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (min(MAX_FILES, hard_limit) if hard_limit > 0 else MAX_FILES, hard_limit)
    )


async def measure_idle_connections(stack: Stack, polls: int, streams: int, seconds: float) -> None:
    """Print CPU and database statements a second while all connections wait."""
    raise_file_limit()
    secrets = []
    for number in range(ORGANISATIONS):
        organisation = await stack.create_organisation(f"Waiting {number}")
        async with stack.dependencies[UnitOfWork].begin(Tenant(organisation.id, True), AUDIT_CONTEXT) as tx:
            secrets.append((await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench")))[1])
    api = stack.start_process("api")
    base = f"http://127.0.0.1:{stack.settings.port}"
    try:
        await wait_until_ready(stack.settings.port)
        poll_readers = [LongPollReader(base, secrets[number % ORGANISATIONS]) for number in range(polls)]
        stream_readers = [StreamReader(base, secrets[number % ORGANISATIONS]) for number in range(streams)]
        tasks = [asyncio.create_task(_run_after(reader, random.random() * WAIT_SECONDS)) for reader in poll_readers]
        tasks += [asyncio.create_task(reader.run()) for reader in stream_readers]
        await asyncio.sleep(WAIT_SECONDS + 5)
        poll_count, error_count = (
            sum(reader.calls for reader in poll_readers),
            sum(reader.breaks for reader in (*poll_readers, *stream_readers)),
        )
        usage = await measure_idle_usage(stack, {"API": api.pid, "postgres": stack.postgres_pid}, seconds)
        poll_count = sum(reader.calls for reader in poll_readers) - poll_count
        error_count = sum(reader.breaks for reader in (*poll_readers, *stream_readers)) - error_count
        usage.print_report(f"idle: {polls} long polls, {sum(reader.calls > 0 for reader in stream_readers)} streams")
        print_figure("  answered long polls, lost connections", f"{poll_count:8,} {error_count:8,}")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        api.terminate()
        api.wait(30)


async def _run_after(reader: LongPollReader, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await reader.run(WAIT_SECONDS)
