"""Faults of a database server under the whole service: three organisations with writers, followers and receivers.

The first is independent, the second publishes all of its events, and the third has a licence for them.
"""

import asyncio
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from adapters.postgres.schema_migrations import migrate
from benchmarks.receiver_client import ReceiverClient
from domain.catalogue.licences import NETWORK_GROUPS
from tests.faults.followers import Follower, FollowerThread, create_followers
from tests.faults.log_checks import LoggedEvent, find_violations
from tests.faults.postgres_server import FLUSHED, UNFLUSHED, PostgresServer
from tests.faults.writers import Writers
from tests.flows.api_client import ApiClient
from tests.flows.service_processes import FEEDS, ServiceProcesses, Tenancy, wait_until
from tests.support.webhook_endpoints import EndpointClient, create_endpoint, run_receiver

_LOG = """
SELECT org, position, id, type, subject, version, coalesce(owner, org) FROM events WHERE NOT livemode ORDER BY org, position
"""
_PROCESSES = ("api", "worker", "scheduler")
SETTLE_SECONDS = 45.0
"""Seconds without events after the last fault, after which missing events count as lost."""
RECEIVER_BEHAVIOURS: Final[Sequence[Mapping[str, Any]]] = ({}, {"status": 500, "times": 1, "share": 0.02})


@dataclass
class DatabaseFaultScenario:
    """Service processes and servers, with the number of faults of each kind."""

    server: PostgresServer
    services: ServiceProcesses
    tenancies: list[Tenancy] = field(default_factory=list)
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    fault_counts: Counter[str] = field(default_factory=Counter)
    endpoints: dict[str, list[EndpointClient]] = field(default_factory=dict)
    lost_events: set[str] = field(default_factory=set)
    """Events that were in a log before the restore of the database."""

    def start(self, receiver: ReceiverClient, behaviours: Sequence[Mapping[str, Any]]) -> None:
        """Start the service, and create the organisations."""
        self.start_processes()
        self.tenancies = [self.services.create_organisation(livemode=False) for _ in range(3)]
        _, publisher, reader = self.tenancies
        self.server.fetch_rows(
            "INSERT INTO licences (org, livemode, catalogue, holder, groups) VALUES (%(org)s, false, %(catalogue)s, %(holder)s, %(groups)s)",
            org=publisher.tenant.org, catalogue=publisher.organisation.get_catalogue_id(False), holder=reader.tenant.org,
            groups=sorted(NETWORK_GROUPS),
        )  # fmt: skip
        self.endpoints = {
            one.tenant.org: [create_endpoint(one.api, receiver, does=dict(kind)) for kind in behaviours]
            for one in self.tenancies
        }
        self.writers = Writers(self.tenancies, frozenset({publisher.tenant}), self.services.env, seed=1)
        self.followers: list[Follower] = [
            one for tenancy in self.tenancies for one in create_followers(tenancy, self.writers.records)
        ]
        self.follower_thread = FollowerThread(self.followers, self.services.env, self.services.port)
        self.receiver = receiver

    def start_processes(self) -> None:
        """Start the service."""
        self.processes = {name: self.services.start(name) for name in ("worker", "scheduler")}
        self.processes["api"] = self.services.start("api")
        wait_until(ApiClient(self.services.port, None).is_ready, "the API is ready", within=120, every=0.2)

    def stop_processes(self) -> None:
        """Stop the service, as an operator does."""
        self.services.stop(*self.processes.values())

    def fetch_log(self) -> list[LoggedEvent]:
        """Return every event of every log in order."""
        return [LoggedEvent(*row) for row in self.server.fetch_rows(_LOG)]

    def find_violations(self) -> list[str]:
        """Return the current violations; delays resolve themselves."""
        lasts = dict(self.server.fetch_rows("SELECT org, last FROM event_logs WHERE NOT livemode"))
        return find_violations(
            self.fetch_log(), lasts, self.writers, self.followers, self.endpoints, self.receiver, self.lost_events
        )

    def wait_for_consistency(self) -> list[str]:
        """Wait while events still arrive; return the remaining violations."""
        heard, until = -1, 0.0
        while True:
            found = self.find_violations()
            if (now := self._count_received()) != heard:
                heard, until = now, time.monotonic() + SETTLE_SECONDS
            if not found or time.monotonic() > until or self.follower_thread.unexpected_errors:
                return found + self.writers.unexpected_errors + self.follower_thread.unexpected_errors
            time.sleep(1)

    def _count_received(self) -> int:
        """Return the number of received events and deliveries."""
        return self.receiver.count_deliveries() + sum(len(life) for one in self.followers for life in one.lives)

    def inject_fault(self, dice: random.Random) -> None:
        """Inject a random fault into the database, and sometimes into a service process."""
        faults: dict[str, tuple[int, Callable[[random.Random], None]]] = {
            "server killed": (3, self._kill_server),
            "postmaster killed alone": (2, self._kill_postmaster),
            "backend killed": (4, self._kill_backend),
            "backend killed before its commit was written": (4, lambda dice: self._kill_committing(UNFLUSHED, dice)),
            "backend killed behind its commit": (4, lambda dice: self._kill_committing(FLUSHED, dice)),
            "server killed behind a commit": (3, self._kill_all_committing),
        }
        name = dice.choices(list(faults), weights=[weight for weight, _ in faults.values()])[0]
        if dice.random() < 0.1:
            self._kill_process(dice.choice(_PROCESSES))
        self.fault_counts[name] += 1
        faults[name][1](dice)
        self.server.reset_settings()

    def _kill_server(self, dice: random.Random) -> None:
        self.server.kill()
        time.sleep(dice.random())
        self.server.start()

    def _kill_postmaster(self, dice: random.Random) -> None:
        self.server.kill(whole=False)
        self.server.start()

    def _kill_backend(self, dice: random.Random) -> None:
        self.server.kill_backend(dice)

    def _kill_committing(self, place: Sequence[str], dice: random.Random) -> None:
        pid = self.server.pause_commit(place)
        assert pid is not None, "no transaction commits"
        self.server.kill_process(pid)

    def _kill_all_committing(self, dice: random.Random) -> None:
        assert self.server.pause_commit(FLUSHED) is not None, "no transaction commits"
        self.server.kill()
        self.server.start()

    def _kill_process(self, name: str) -> None:
        process = self.processes[name]
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        self.services.processes.remove(process)
        self.processes[name] = self.services.start(name)
        self.fault_counts[name + " killed"] += 1

    def format_totals(self) -> Iterator[str]:
        """Yield lines with the totals."""
        for tenant, book in self.writers.records.items():
            yield (
                f"{tenant.org}: {len(book.acknowledged):,} events acknowledged, {len(book.recovered):,} broken off and there, "
                f"{len(book.rolled_back):,} undone"
            )
        for one in self.followers:
            yield (
                f"{one.kind}: {len(one.received):,} events, broke off {one.disconnects}, caught up {one.caught_up:,} times, "
                f"began anew {len(one.lives) - 1}"
            )
        yield f"receivers: {self.receiver.count_deliveries():,} deliveries"

    @contextmanager
    def freeze_processes(self, *names: str) -> Iterator[None]:
        """Pause the processes."""
        for name in names:
            self.processes[name].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for name in names:
                self.processes[name].send_signal(signal.SIGCONT)

    def record_restore(self, before: Sequence[LoggedEvent]) -> None:
        """Record that the database was restored: paused writers continue from there, and records of others are corrected."""
        log = self.fetch_log()
        self.lost_events |= {one.id for one in before} - {one.id for one in log}
        for tenancy in self.tenancies:
            own = [(one.id, one.subject, one.version) for one in log if one.org == tenancy.tenant.org]
            self.writers.restart(tenancy.tenant, own)

    def wait_for_events(self, count: int, within: float = 60) -> None:
        """Wait until `count` more events of each organisation are acknowledged."""
        before = self.writers.count_acknowledged
        wait_until(
            lambda: all(now >= before[tenant] + count for tenant, now in self.writers.count_acknowledged.items()),
            "the writers go on",
            within,
        )


@contextmanager
def run_scenario(behaviours: Sequence[Mapping[str, Any]] = RECEIVER_BEHAVIOURS) -> Iterator[DatabaseFaultScenario]:
    """Run the scenario without writers and readers; each organisation has receivers with the behaviours."""
    home = Path(tempfile.mkdtemp(prefix="jk", dir="/tmp"))
    home.chmod(0o755)
    server = PostgresServer(home)
    server.start()
    try:
        asyncio.run(migrate(server.url))
        scenario = DatabaseFaultScenario(
            server, ServiceProcesses(server.url, home, {"JOINERY_ALLOW_PRIVATE_HOSTS": FEEDS})
        )
        try:
            with run_receiver(scenario.services) as receiver:
                scenario.start(receiver, behaviours)
                yield scenario
        finally:
            scenario.services.stop(number=signal.SIGKILL)
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)
