"""A database and service processes on it, as an operator starts them. All functions block."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Member, Organisation
from domain.orgs.ports import OrgRegistry, OrgStore
from domain.people.model import User
from domain.people.ports import People
from domain.people.usecases.sessions import SessionService
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.settings import read_settings
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork
from tests.flows.api_client import ApiClient
from tests.support import builders
from tests.support.forkserver import FORKS

FEEDS = "127.0.0.2"
"""Address of feed servers: a private address that the operator allows; 127.0.0.1 remains refused."""
ROOT = Path(__file__).parents[2]
T = TypeVar("T")


def wait_until(look: Callable[[], T | None], what: str, within: float = 20.0, every: float = 0.02) -> T:
    """Call `look` until its result is true; return the result."""
    until = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < until, f"{what}: not within {within} s"
        time.sleep(every)


def is_stopped(process: "subprocess.Popen[bytes]") -> bool:
    """Return whether the process is stopped (SIGSTOP)."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(process.pid)], capture_output=True, text=True, check=True)
    return shown.stdout.startswith("T")


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Tenancy:
    """A tenant and an API client with all permissions."""

    tenant: Tenant
    api: ApiClient
    organisation: Organisation


@dataclass
class ServiceProcesses:
    """Service processes on one database. `env` are their settings; `home` contains logs and objects."""

    database_url: str
    home: Path
    env: dict[str, str] = field(default_factory=dict)
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        """Complete the environment."""
        self.env = {
            "JOINERY_DATABASE_URL": self.database_url,
            "JOINERY_SECRET": "a secret of at least thirty-two characters",
            "JOINERY_OBJECTS_URL": (self.home / "objects").as_uri(),
            "JOINERY_PORT": str(self.port),
            "JOINERY_DRAIN_SECONDS": "0",
            "JOINERY_ALLOW_PRIVATE_HOSTS": FEEDS,
            "JOINERY_MAIL_DOMAIN": "in.joinery.example",
            "JOINERY_PLUGINS": str(ROOT / "plugins.toml"),
            **self.env,
        }

    def start(self, name: str, argv: Sequence[str] = (), **env: str) -> "subprocess.Popen[bytes]":
        """Start `joinery <name>` (or another Python program); it ends with this process at the latest."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("JOINERY_")}
        environment = {**kept, "PYTHONPATH": str(ROOT), **self.env, **env}
        argv = argv or ("-m", "entrypoints.cli.main", name)
        if sys.platform == "linux":
            process: subprocess.Popen[bytes] = FORKS.start(argv, environment, self.home, self.log_path(name))
        else:
            with self.log_path(name).open("ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-P", *argv],
                    env=environment,
                    cwd=self.home,
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                )
        self.processes.append(process)
        return process

    def log_path(self, name: str) -> Path:
        """Return the path of the process's log."""
        return self.home / f"{name}.log"

    def start_api(self, argv: Sequence[str] = ()) -> "subprocess.Popen[bytes]":
        """Start the API (or a replacement) and wait until it is ready."""
        process = self.start("api", argv)
        api = ApiClient(self.port, None)

        def ready() -> bool:
            assert process.poll() is None, self.log_path("api").read_text()
            return api.is_ready()

        wait_until(ready, "the API is ready", within=40)
        return process

    def stop(self, *processes: "subprocess.Popen[bytes]", number: signal.Signals = signal.SIGTERM) -> None:
        """Stop the processes, by default all."""
        for process in processes or tuple(self.processes):
            if process.poll() is None:
                process.send_signal(number)
                process.send_signal(signal.SIGCONT)
        for process in processes or tuple(self.processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)
            self.processes.remove(process)

    def create_organisation(self, *, livemode: bool = True, plan: str = "max", kind: str = "retailer") -> Tenancy:
        """Create an organisation and a client for one of its modes."""

        async def make(container: Dependencies) -> tuple[Organisation, str]:
            found = await container[OrgRegistry].find_plan(plan)
            assert found is not None
            organisation = builders.organisation(plan=found, kind=kind)
            await container[OrgRegistry].create(organisation)
            async with container[UnitOfWork].begin(Tenant(organisation.id, livemode), builders.CALL) as tx:
                return organisation, (await container[AccessService].create_key(tx, KeyRequest("tests")))[1]

        organisation, secret = self.run_with_dependencies(make)
        return Tenancy(Tenant(organisation.id, livemode), ApiClient(self.port, secret), organisation)

    def create_token(self, tenancy: Tenancy, role: str = "owner") -> str:
        """Create a member of the organisation; return a token with which a program acts as this person."""

        async def create(container: Dependencies) -> str:
            now, tenant = container[Clock].now(), tenancy.tenant
            user = await container[People].add(
                User(new_id("usr"), f"{new_id('usr')[4:]}@lindgren.test", "Ada", now, now)
            )
            async with container[UnitOfWork].begin(tenant, builders.CALL) as tx:
                await tx[OrgStore].add_member(Member(user.id, tenant.org, user.email, role, now))
            return (await container[SessionService].create_token(user, tenant.org))[1]

        return str(self.run_with_dependencies(create))

    def run_with_dependencies(self, work: Callable[[Dependencies], Any]) -> Any:
        """Return the result of `work`, called with dependencies of the processes' settings."""

        async def run() -> Any:
            async with open_dependencies(read_settings(self.env)) as container:
                return await work(container)

        return asyncio.run(run())

    def fetch_rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return rows of the database, read as superuser."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def change_plan(self, tenancy: Tenancy, **included: int) -> None:
        """Assign the organisation a new plan that limits the given meters only."""
        meters = json.dumps({name: {"included": most, "per": 1, "amount": 0} for name, most in included.items()})
        self.fetch_rows(
            "WITH made AS (INSERT INTO plans SELECT %(code)s, name, tier, currency, monthly, features, %(meters)s::jsonb, "
            "delivery_days, request_log_days, position FROM plans WHERE code = 'max' RETURNING code) "
            "UPDATE organisations SET plan = made.code FROM made WHERE id = %(org)s RETURNING id",
            code=f"plan-{tenancy.tenant.org}",
            org=tenancy.tenant.org,
            meters=meters,
        )

    def fetch_value(self, statement: str, **values: Any) -> Any:
        """Return the first column of the first row."""
        return self.fetch_rows(statement, **values)[0][0]
