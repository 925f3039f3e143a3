"""Temporary installation of the service with a new database, for benchmarks."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.schema_migrations import migrate
from domain.catalogue.model import LicenceBasis
from domain.jobs.ports import JobStore
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgRegistry
from domain.runs.model import Run, RunTrigger, UploadInput
from domain.runs.ports import RunStore
from domain.runs.run_queue import new_execution_job, new_run
from domain.sources.model import Schedule, Source, SourceKind, SourceStatus
from domain.sources.ports import SourceStore
from domain.uploads.model import Upload, UploadStatus
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.settings import Settings, read_settings
from entrypoints.up.servers import Postgres
from ports.clock import Clock
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork

AUDIT_CONTEXT = AuditContext(Actor("service", "benchmark"), "benchmark")


@dataclass(slots=True)
class Stack:
    """Running installation of the service.

    Attributes:
        env: Environment variables for the service's processes.
        settings: Settings of the service.
        dependencies: Dependencies for direct calls in this process.
        postgres_pid: Process ID of the database server.
    """

    env: dict[str, str]
    settings: Settings
    dependencies: Dependencies
    postgres_pid: int

    async def create_organisation(self, name: str = "Bench", plan: str = "max") -> Organisation:
        """Create an organisation."""
        registry = self.dependencies[OrgRegistry]
        subscribed_plan = await registry.find_plan(plan)
        assert subscribed_plan is not None
        organisation = Organisation(
            new_id("org"),
            name,
            "retailer",
            subscribed_plan,
            None,
            (new_id("cat"), new_id("cat")),
            self.dependencies[Clock].now(),
        )
        await registry.create(organisation)
        return organisation

    async def create_source(
        self, organisation: Organisation, connector: str = "csv", kind: str = "file", **config: Any
    ) -> Source:
        """Create an active source in the organisation's live mode; `config` is added to its settings."""
        now = self.dependencies[Clock].now()
        source = Source(
            id=new_id("src"), catalogue=organisation.get_catalogue_id(True), name="bench", kind=SourceKind(kind), connector=connector,
            config={"currency": "usd", **config}, schedule=Schedule(), status=SourceStatus.ACTIVE, licence_basis=LicenceBasis.OWN_DATA,
            first_party=False, has_credentials=False, version=1, created_at=now, updated_at=now,
        )  # fmt: skip
        async with self.dependencies[UnitOfWork].begin(Tenant(organisation.id, True), AUDIT_CONTEXT) as tx:
            await tx[SourceStore].add(source)
        return source

    async def start_run(self, tenant: Tenant, source: Source, path: Path) -> str:
        """Upload a file, complete the upload, and return the ID of the run."""
        now, upload_id = self.dependencies[Clock].now(), new_id("upl")
        key = f"uploads/{tenant.org}/{upload_id}"
        await self.dependencies[ObjectStore].put_file(key, path)
        run = new_run(source.id, RunTrigger.UPLOAD, now, input=UploadInput(upload_id, key))
        upload = Upload(
            upload_id,
            source.id,
            path.name,
            "text/csv",
            path.stat().st_size,
            UploadStatus.COMPLETED,
            key,
            now,
            now,
            run.id,
            now,
        )
        async with self.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            await tx.store(Upload).add(upload)
            await tx[RunStore].add(run)
            await tx[JobStore].add(new_execution_job(run, tenant))
        return run.id

    async def wait_for_run(self, tenant: Tenant, run_id: str) -> Run:
        """Wait until the run has ended, and return the run."""
        while True:
            async with self.dependencies[UnitOfWork].begin_reading(tenant) as tx:
                run = await tx[RunStore].get(run_id)
            if run is not None and run.finished_at is not None:
                return run
            await asyncio.sleep(0.1)

    async def import_file(self, tenant: Tenant, source: Source, path: Path) -> Run:
        """Upload a file and wait for the end of the run."""
        return await self.wait_for_run(tenant, await self.start_run(tenant, source, path))

    async def query_value(self, sql: str) -> Any:
        """Return the value that a query selects, with a superuser's connection to all tenants."""
        async with self.dependencies[Pool].connect_to_coordinator() as pooled:
            cursor = await pooled.driver_connection.execute(sql.encode())
            row = await cursor.fetchone()
        return row[0] if row else None

    def start_process(self, name: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
        """Start the process `joinery <name>`; its error output is appended to a file in BENCH_HOME."""
        env = {**os.environ, **self.env, **(environment or {})}
        log = Path(self.env["BENCH_HOME"]) / f"{name}.log"
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "entrypoints.cli.main", name],
            env=env,
            stderr=log.open("ab"),
            stdout=subprocess.DEVNULL,
        )


@asynccontextmanager
async def running_stack(
    port: int = 18999, postgres_settings: Mapping[str, str] | None = None, **environment: str
) -> AsyncIterator[Stack]:
    """Start a database server in a temporary folder, and stop it afterwards.

    Args:
        port: Port of the API.
        postgres_settings: Additional settings of PostgreSQL.
        environment: Further environment variables.
    """
    with tempfile.TemporaryDirectory(prefix="jb") as name:
        home = Path(name)
        home.chmod(0o755)
        server = Postgres(home, postgres_settings)
        process = await server.start()
        try:
            async with connect_stack(server.build_url(), home, port, process.pid, **environment) as stack:
                yield stack
        finally:
            await server.stop()


@asynccontextmanager
async def connect_stack(url: str, home: Path, port: int, postgres_pid: int, **environment: str) -> AsyncIterator[Stack]:
    """Migrate a database and open the dependencies for it.

    Args:
        url: URL of the database.
        home: Folder for objects and logs.
        port: Port of the API.
        postgres_pid: Process ID of the database server.
        environment: Further environment variables.
    """
    env = {
        "JOINERY_DATABASE_URL": url,
        "JOINERY_SECRET": "benchmark" * 8,
        "JOINERY_OBJECTS_URL": (home / "objects").as_uri(),
        "JOINERY_PORT": str(port),
        "BENCH_HOME": str(home),
        **environment,
    }
    await migrate(url)
    settings = read_settings(env)
    async with open_dependencies(settings) as dependencies:
        yield Stack(env, settings, dependencies, postgres_pid)


def read_cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and of its running child processes."""
    total = 0.0
    for stat in [Path(f"/proc/{pid}/stat"), *_find_child_stats(pid)]:
        try:
            fields = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _find_child_stats(pid: int) -> list[Path]:
    stats = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == pid:
                stats.append(entry / "stat")
    return stats
