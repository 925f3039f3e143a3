"""Repeatedly kills a follower while events are written, and checks the received events."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from entrypoints.dependencies import Dependencies
from ports.unit_of_work import UnitOfWork
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until
from tests.support import builders
from tests.support.faulty_proxy import Fault, faulty_proxy

PAGE = 7
"""Events per page that the followers request."""


def follow_across_kills(
    services: ServiceProcesses,
    tenancy: Tenancy,
    argv: Sequence[str],
    home: Path,
    *,
    kills: int = 6,
    wanted: int = 400,
    **env: str,
) -> None:
    """Kill a follower repeatedly and check its events: complete, in order, and at most one page repeated after each kill.

    The arguments of the follower are a file for its cursor and a file for the received IDs.
    """
    place, file = home / "cursor", home / "seen"
    file.touch()

    async def write(container: Dependencies) -> None:
        for _ in range(wanted // 10):
            async with container[UnitOfWork].begin(tenancy.tenant, builders.CALL) as tx:
                await tx[EventLog].append([builders.event(new_id("src")) for _ in range(10)])
            await asyncio.sleep(0.1)

    with faulty_proxy(services.port) as proxy:
        settings = {**os.environ, "JOINERY_URL": proxy.url, "JOINERY_KEY": str(tenancy.api.secret), **env}

        def start() -> "subprocess.Popen[bytes]":
            return subprocess.Popen([*argv, str(place), str(file)], env=settings, cwd=home)

        writer = threading.Thread(target=services.run_with_dependencies, args=(write,))
        writer.start()
        for kill in range(kills):
            before = file.stat().st_size
            proxy.faults.append(Fault(503, {"Retry-After": "1"}) if kill % 3 == 2 else Fault(late=kill % 3 == 1))
            process = start()
            wait_until(lambda: file.stat().st_size > before or not writer.is_alive(), "it follows", 30)
            process.kill()
            process.wait()
        writer.join()
        process = start()
        feed = [event["id"] for event in tenancy.api.get("/v1/changes", limit=1000)["data"]]
        try:
            wait_until(lambda: feed[-1] in file.read_text(), "the last event", 30)
        finally:
            process.kill()
            process.wait()
    seen = [line for line in file.read_text().splitlines() if len(line) == len(feed[0])]
    assert len(feed) >= wanted
    assert list(dict.fromkeys(seen)) == feed
    assert len(seen) - len(feed) <= PAGE * (kills + 1)
