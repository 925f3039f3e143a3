"""A server to be struck with the whole service on it: three organisations, their writers, followers and receivers.

The first has nothing to do with others, the second publishes all that it writes, the third may read what that is.
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
from domain.changes.model import NETWORK_GROUPS
from tests.faults.followers import Follower, Reading, followers
from tests.faults.log_checks import Logged, faults
from tests.faults.postgres_server import FLUSHED, UNFLUSHED, Server
from tests.faults.writers import Writers
from tests.flows.api_client import ApiClient
from tests.flows.service_processes import FEEDS, ServiceProcesses, Tenancy, wait_until
from tests.support.webhook_endpoints import EndpointClient, create_endpoint, run_receiver

_LOG = """
SELECT org, position, id, type, subject, version, coalesce(owner, org) FROM events WHERE NOT livemode ORDER BY org, position
"""
_LIVING = ("api", "worker", "scheduler")
CALM = 45.0
"""Seconds for which nothing comes any more, once nothing is struck: what is missing then does not come."""
DOING_BADLY: Final[Sequence[Mapping[str, Any]]] = ({}, {"status": 500, "times": 1, "share": 0.02})


@dataclass
class Scene:
    """The parts, and how often each was struck."""

    server: Server
    stage: ServiceProcesses
    tenancies: list[Tenancy] = field(default_factory=list)
    living: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    struck: Counter[str] = field(default_factory=Counter)
    hooks: dict[str, list[EndpointClient]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    """Events that were in a log before the database went back."""

    def begin(self, at: ReceiverClient, behaviours: Sequence[Mapping[str, Any]]) -> None:
        """Start the service, and make the organisations."""
        self.start_processes()
        self.tenancies = [self.stage.create_organisation(livemode=False) for _ in range(3)]
        _, publisher, reader = self.tenancies
        self.server.rows(
            "INSERT INTO licences (org, livemode, catalogue, holder, groups) VALUES (%(org)s, false, %(catalogue)s, %(holder)s, %(groups)s)",
            org=publisher.tenant.org, catalogue=publisher.organisation.get_catalogue_id(False), holder=reader.tenant.org,
            groups=sorted(NETWORK_GROUPS),
        )  # fmt: skip
        self.hooks = {
            one.tenant.org: [create_endpoint(one.api, at, does=dict(kind)) for kind in behaviours]
            for one in self.tenancies
        }
        self.writers = Writers(self.tenancies, frozenset({publisher.tenant}), self.stage.env, seed=1)
        self.followers: list[Follower] = [
            one for tenancy in self.tenancies for one in followers(tenancy, self.writers.books)
        ]
        self.reading = Reading(self.followers, self.stage.env, self.stage.port)
        self.at = at

    def start_processes(self) -> None:
        """Start the service."""
        self.living = {name: self.stage.start(name) for name in ("worker", "scheduler")}
        self.living["api"] = self.stage.start("api")
        wait_until(ApiClient(self.stage.port, None).is_ready, "the API is ready", within=120, every=0.2)

    def end_processes(self) -> None:
        """Stop the service, as an operator does."""
        self.stage.stop(*self.living.values())

    def log(self) -> list[Logged]:
        """Every event of every log, in its order."""
        return [Logged(*row) for row in self.server.rows(_LOG)]

    def faults(self) -> list[str]:
        """What is wrong by now; what is only late goes away by itself."""
        lasts = dict(self.server.rows("SELECT org, last FROM event_logs WHERE NOT livemode"))
        return faults(self.log(), lasts, self.writers, self.followers, self.hooks, self.at, self.lost)

    def in_the_end(self) -> list[str]:
        """The same, once all had time to get everything: as long as anything comes, one waits."""
        heard, until = -1, 0.0
        while True:
            found = self.faults()
            if (now := self._heard()) != heard:
                heard, until = now, time.monotonic() + CALM
            if not found or time.monotonic() > until or self.reading.strange:
                return found + self.writers.strange + self.reading.strange
            time.sleep(1)

    def _heard(self) -> int:
        """How much was told so far."""
        return self.at.count_deliveries() + sum(len(life) for one in self.followers for life in one.lives)

    def strike(self, dice: random.Random) -> None:
        """Something happens to the database, and now and then to one of the service's processes."""
        blows: dict[str, tuple[int, Callable[[random.Random], None]]] = {
            "server killed": (3, self._kill_server),
            "postmaster killed alone": (2, self._kill_postmaster),
            "backend killed": (4, self._kill_backend),
            "backend killed before its commit was written": (4, lambda dice: self._kill_committing(UNFLUSHED, dice)),
            "backend killed behind its commit": (4, lambda dice: self._kill_committing(FLUSHED, dice)),
            "server killed behind a commit": (3, self._kill_all_committing),
        }
        name = dice.choices(list(blows), weights=[weight for weight, _ in blows.values()])[0]
        if dice.random() < 0.1:
            self._kill_process(dice.choice(_LIVING))
        self.struck[name] += 1
        blows[name][1](dice)
        self.server.settle()

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
        pid = self.server.caught_committing(place)
        assert pid is not None, "nobody commits"
        self.server.kill_process(pid)

    def _kill_all_committing(self, dice: random.Random) -> None:
        assert self.server.caught_committing(FLUSHED) is not None, "nobody commits"
        self.server.kill()
        self.server.start()

    def _kill_process(self, name: str) -> None:
        process = self.living[name]
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        self.stage.processes.remove(process)
        self.living[name] = self.stage.start(name)
        self.struck[name + " killed"] += 1

    def figures(self) -> Iterator[str]:
        """How much of everything there was."""
        for tenant, book in self.writers.books.items():
            yield (
                f"{tenant.org}: {len(book.acknowledged):,} events acknowledged, {len(book.found):,} broken off and there, "
                f"{len(book.undone):,} undone"
            )
        for one in self.followers:
            yield (
                f"{one.kind}: {len(one.received):,} events, broke off {one.breaks}, caught up {one.caught_up:,} times, "
                f"began anew {len(one.lives) - 1}"
            )
        yield f"receivers: {self.at.count_deliveries():,} deliveries"

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        """These processes do nothing meanwhile."""
        for name in names:
            self.living[name].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for name in names:
                self.living[name].send_signal(signal.SIGCONT)

    def gone_back(self, before: Sequence[Logged]) -> None:
        """The database is what it was once: the writers, at rest, go on from there, and others' books are corrected."""
        log = self.log()
        self.lost |= {one.id for one in before} - {one.id for one in log}
        for tenancy in self.tenancies:
            own = [(one.id, one.subject, one.version) for one in log if one.org == tenancy.tenant.org]
            self.writers.restart(tenancy.tenant, own)

    def goes_on(self, count: int, within: float = 60) -> None:
        """Wait until so many more events of each organisation are acknowledged."""
        before = self.writers.acknowledged
        wait_until(
            lambda: all(now >= before[tenant] + count for tenant, now in self.writers.acknowledged.items()),
            "the writers go on",
            within,
        )


@contextmanager
def scene(behaviours: Sequence[Mapping[str, Any]] = DOING_BADLY) -> Iterator[Scene]:
    """All of it, with nobody writing or reading yet; each organisation has receivers that behave so."""
    home = Path(tempfile.mkdtemp(prefix="jk", dir="/tmp"))
    home.chmod(0o755)
    server = Server(home)
    server.start()
    try:
        asyncio.run(migrate(server.url))
        made = Scene(server, ServiceProcesses(server.url, home, {"JOINERY_ALLOW_PRIVATE_HOSTS": FEEDS}))
        try:
            with run_receiver(made.stage) as at:
                made.begin(at, behaviours)
                yield made
        finally:
            made.stage.stop(number=signal.SIGKILL)
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)
