"""A database of its own and a worker process, for measuring what users get."""

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

from adapters.postgres.migrate import migrate
from adapters.postgres.nodes.pool import Pool
from domain.catalogue.model import LicenceBasis
from domain.jobs.ports import JobStore
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgRegistry
from domain.runs.model import Run, RunTrigger, UploadInput
from domain.runs.ports import RunStore
from domain.runs.queueing import execution, queued
from domain.sources.model import Schedule, Source, SourceKind, SourceStatus
from domain.sources.ports import SourceStore
from domain.uploads.model import Upload, UploadStatus
from entrypoints.container import opened
from entrypoints.dependencies import Dependencies
from entrypoints.settings import Settings, from_environment
from entrypoints.up.servers import Postgres
from ports.clock import Clock
from ports.objects import Objects
from ports.unit_of_work import UnitOfWork

CALL = AuditContext(Actor("service", "benchmark"), "benchmark")


@dataclass(slots=True)
class Stack:
    """The running parts: `env` for processes, `container` for direct calls, `postgres` the server's process id."""

    env: dict[str, str]
    settings: Settings
    container: Dependencies
    postgres: int

    async def organisation(self, name: str = "Bench", plan: str = "max") -> Organisation:
        """A new organisation."""
        registry = self.container[OrgRegistry]
        found = await registry.plan(plan)
        assert found is not None
        made = Organisation(
            new_id("org"), name, "retailer", found, None, (new_id("cat"), new_id("cat")), self.container[Clock].now()
        )
        await registry.create(made)
        return made

    async def source(
        self, organisation: Organisation, connector: str = "csv", kind: str = "file", **config: Any
    ) -> Source:
        """A source of that organisation's live data."""
        now = self.container[Clock].now()
        source = Source(
            id=new_id("src"), catalogue=organisation.catalogue(True), name="bench", kind=SourceKind(kind), connector=connector,
            config={"currency": "usd", **config}, schedule=Schedule(), status=SourceStatus.ACTIVE, licence_basis=LicenceBasis.OWN_DATA,
            first_party=False, has_credentials=False, version=1, created_at=now, updated_at=now,
        )  # fmt: skip
        async with self.container[UnitOfWork].begin(Tenant(organisation.id, True), CALL) as tx:
            await tx[SourceStore].add(source)
        return source

    async def start(self, tenant: Tenant, source: Source, path: Path) -> str:
        """Hand a file in, as a completed upload does; answers its run."""
        now, upload_id = self.container[Clock].now(), new_id("upl")
        key = f"uploads/{tenant.org}/{upload_id}"
        await self.container[Objects].put_file(key, path)
        run = queued(source.id, RunTrigger.UPLOAD, now, input=UploadInput(upload_id, key))
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
        async with self.container[UnitOfWork].begin(tenant, CALL) as tx:
            await tx.store(Upload).add(upload)
            await tx[RunStore].add(run)
            await tx[JobStore].add(execution(run, tenant))
        return run.id

    async def ended(self, tenant: Tenant, run_id: str) -> Run:
        """Wait for the run to end."""
        while True:
            async with self.container[UnitOfWork].read(tenant) as tx:
                run = await tx[RunStore].get(run_id)
            if run is not None and run.finished_at is not None:
                return run
            await asyncio.sleep(0.1)

    async def ingest(self, tenant: Tenant, source: Source, path: Path) -> Run:
        """Hand a file in and wait for its run's end."""
        return await self.ended(tenant, await self.start(tenant, source, path))

    async def value(self, sql: str) -> Any:
        """One value, as superuser (across tenants)."""
        async with self.container[Pool].coordinator() as link:
            cursor = await link.connection.execute(sql.encode())
            row = await cursor.fetchone()
        return row[0] if row else None

    def process(self, name: str, extra: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
        """Start `joinery <name>`."""
        env = {**os.environ, **self.env, **(extra or {})}
        log = Path(self.env["BENCH_HOME"]) / f"{name}.log"
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "entrypoints.cli.main", name],
            env=env,
            stderr=log.open("ab"),
            stdout=subprocess.DEVNULL,
        )


@asynccontextmanager
async def stack(
    port: int = 18999, postgres_settings: Mapping[str, str] | None = None, **extra: str
) -> AsyncIterator[Stack]:
    """A fresh stack in a temporary folder, gone afterwards; `extra` is added to the environment."""
    with tempfile.TemporaryDirectory(prefix="jb") as name:
        home = Path(name)
        home.chmod(0o755)
        server = Postgres(home, postgres_settings)
        process = await server.start()
        try:
            async with at(server.url(), home, port, process.pid, **extra) as parts:
                yield parts
        finally:
            await server.stop()


@asynccontextmanager
async def at(url: str, home: Path, port: int, postgres: int, **extra: str) -> AsyncIterator[Stack]:
    """A stack on the database at `url`, of the server with that process id; files and logs go to `home`."""
    env = {
        "JOINERY_DATABASE_URL": url,
        "JOINERY_SECRET": "benchmark" * 8,
        "JOINERY_OBJECTS_URL": (home / "objects").as_uri(),
        "JOINERY_PORT": str(port),
        "BENCH_HOME": str(home),
        **extra,
    }
    await migrate(url)
    settings = from_environment(env)
    async with opened(settings) as container:
        yield Stack(env, settings, container, postgres)


def cpu_seconds(pid: int) -> float:
    """CPU seconds that a process and the children it waits for have used so far."""
    total = 0.0
    for stat in [Path(f"/proc/{pid}/stat"), *_children(pid)]:
        try:
            fields = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _children(pid: int) -> list[Path]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == pid:
                found.append(entry / "stat")
    return found
