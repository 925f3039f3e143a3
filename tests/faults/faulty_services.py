"""Service processes and servers that can fail: workers, API, PostgreSQL, Valkey, clocks."""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import redis

from adapters.postgres.schema_migrations import migrate
from entrypoints.up.process import ChildProcess
from entrypoints.up.servers import Postgres, Valkey
from tests.flows.service_processes import FEEDS, ServiceProcesses, wait_until

WORKER = ("-m", "tests.faults.clocks")
WORKERS = 2


@dataclass
class FaultyServices:
    """Service processes and servers, with the number of faults of each kind."""

    services: ServiceProcesses
    postgres: Postgres
    valkey: Valkey
    servers: dict[str, ChildProcess]
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    api: Any = None
    fault_counts: Counter[str] = field(default_factory=Counter)

    def start(self) -> None:
        """Start the processes of the service."""
        self.workers = [self._start_worker(number) for number in range(WORKERS)]
        self.services.start("scheduler")
        self.api = self.services.start_api()

    def _start_worker(self, number: int) -> "subprocess.Popen[bytes]":
        return self.services.start(f"worker-{number}", WORKER)

    def fetch_rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return rows of the database, read as superuser."""
        with psycopg.connect(self.postgres.build_url(role="postgres"), autocommit=True) as connection:
            return connection.execute(statement.encode(), values).fetchall()

    def inject_fault(self, dice: random.Random) -> None:
        """Inject a random fault into one of the components."""
        faults: dict[str, Callable[[random.Random], None]] = {
            "worker killed": self._kill_worker,
            "worker frozen": self._freeze_worker,
            "worker's clock stepped": self._step_clock,
            "API killed": self._kill_api,
            "PostgreSQL stopped at once": self._kill_postgres,
            "Valkey emptied": self._empty_valkey,
            "Valkey killed": self._kill_valkey,
        }
        name = dice.choices(list(faults), weights=(6, 2, 2, 2, 2, 1, 1))[0]
        self.fault_counts[name] += 1
        faults[name](dice)

    def _kill_process(self, process: "subprocess.Popen[bytes]") -> None:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        self.services.processes.remove(process)

    def _kill_worker(self, dice: random.Random) -> None:
        number = dice.randrange(WORKERS)
        self._kill_process(self.workers[number])
        time.sleep(dice.random())
        self.workers[number] = self._start_worker(number)

    def _freeze_worker(self, dice: random.Random) -> None:
        worker = dice.choice(self.workers)
        worker.send_signal(signal.SIGSTOP)
        time.sleep(dice.uniform(0.5, 4))
        worker.send_signal(signal.SIGCONT)

    def _step_clock(self, dice: random.Random) -> None:
        number = dice.randrange(WORKERS)
        if self._handles_signals(number):
            self.workers[number].send_signal(dice.choice((signal.SIGUSR1, signal.SIGUSR2)))

    def _handles_signals(self, number: int) -> bool:
        """Return whether the worker has installed its signal handlers; before, the signals would end it."""
        status = Path(f"/proc/{self.workers[number].pid}/status").read_text("ascii")
        caught = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt"))
        return bool(caught >> (signal.SIGUSR1 - 1) & 1 and caught >> (signal.SIGUSR2 - 1) & 1)

    def _kill_api(self, dice: random.Random) -> None:
        self._kill_process(self.api)
        time.sleep(dice.random())
        self.api = self.services.start("api")

    def _kill_postgres(self, dice: random.Random) -> None:
        server = self.servers["postgres"]
        server._send_signal(signal.SIGQUIT)
        wait_until(lambda: server.get_exit_code() is not None, "PostgreSQL has stopped")
        time.sleep(dice.uniform(0, 2))
        self.servers["postgres"] = asyncio.run(self.postgres.start())

    def _empty_valkey(self, dice: random.Random) -> None:
        redis.Redis(unix_socket_path=self.valkey.build_url().removeprefix("unix://")).flushall()

    def _kill_valkey(self, dice: random.Random) -> None:
        self.servers["valkey"].kill()
        wait_until(lambda: self.servers["valkey"].get_exit_code() is not None, "Valkey has stopped")
        time.sleep(dice.random())
        self.servers["valkey"] = asyncio.run(self.valkey.start())


@contextmanager
def run_faulty_services() -> Iterator[FaultyServices]:
    """Run servers and the service processes on them."""
    home = Path(tempfile.mkdtemp(prefix="jg", dir="/tmp"))
    home.chmod(0o755)
    postgres, valkey = Postgres(home), Valkey(home)
    servers = {"postgres": asyncio.run(postgres.start()), "valkey": asyncio.run(valkey.start())}
    asyncio.run(migrate(postgres.build_url()))
    env = {"JOINERY_REDIS_URL": valkey.build_url(), "JOINERY_ALLOW_PRIVATE_HOSTS": FEEDS}
    faulty_services = FaultyServices(ServiceProcesses(postgres.build_url(), home, env), postgres, valkey, servers)
    try:
        faulty_services.start()
        yield faulty_services
    finally:
        faulty_services.services.stop()
        asyncio.run(valkey.stop())
        asyncio.run(postgres.stop())
        if not os.environ.get("SOAK_KEEP"):
            shutil.rmtree(home, ignore_errors=True)
