"""What auditing costs: a PATCH with and without it, undoing, a page, and checking a chain (`make bench-audit`)."""

# ruff: noqa: SLF001  it takes the audit log out of the units of work

import argparse
import asyncio
import itertools
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.postgres.audit import PostgresAuditLog
from benchmarks.stack import CALL, Stack, cpu_seconds, stack
from domain.access.usecases import AccessService, KeyRequest
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.audit.usecases import AuditService
from domain.kernel.tenancy import Tenant
from entrypoints.api.app import create_app
from entrypoints.http.exchange import from_scope
from entrypoints.http.pipeline import Pipeline
from ports.unit_of_work import UnitOfWork

PORT = 18_996
BATCH = 100


def line(name: str, figure: str) -> None:
    """One figure."""
    print(f"{name:<58} {figure}", flush=True)


@dataclass
class Caller:
    """Sends requests of one organisation through the pipeline, in this process."""

    pipeline: Pipeline
    secret: str
    source: str
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the answer."""
        path, _, query = path.partition("?")
        headers = {"authorization": f"Bearer {self.secret}", "content-type": "application/json"}
        headers |= {"if-match": "*"} if method == "PATCH" else {}
        headers |= {"idempotency-key": f"bench-{next(self.numbers)}"} if method == "POST" else {}
        text = b"" if body is None else json.dumps(body).encode()
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()], "client": ("127.0.0.1", 4000),
        }  # fmt: skip

        async def read(limit: int) -> bytes:
            return text

        response = await self.pipeline.answer(from_scope(scope, read))
        if response.status >= 300:
            raise RuntimeError(response.body.decode())
        return json.loads(response.body)

    async def rename(self) -> None:
        """One PATCH."""
        await self.send("PATCH", f"/v1/sources/{self.source}", {"name": f"Renamed {next(self.numbers)}"})


async def _nothing(log: PostgresAuditLog) -> None:
    log._flushed = len(log._session.recorded.changes)


async def _not_added(log: PostgresAuditLog, change: Change) -> str:
    return ""


def _replace(flush: Any, add: Any) -> None:
    """Have every audit log work like that."""
    setattr(PostgresAuditLog, "flush", flush)  # noqa: B010  mypy takes methods to be fixed
    setattr(PostgresAuditLog, "add", add)  # noqa: B010


@dataclass
class Meter:
    """Seconds of time, and of processors by whose they were, of each batch."""

    postgres: int
    took: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    async def batch(self, act: Callable[[], Awaitable[None]]) -> None:
        """Do it often, one after the other."""
        began, own, theirs = time.perf_counter(), time.process_time(), cpu_seconds(self.postgres)
        for _ in range(BATCH):
            await act()
        self.took.append(time.perf_counter() - began)
        self.own.append(time.process_time() - own)
        self.theirs.append(cpu_seconds(self.postgres) - theirs)

    def told(self) -> str:
        """Microseconds an act: the median of the batches; of PostgreSQL the mean, for its CPU is told by hundredths of a second."""
        parts = (("time", self.took), ("CPU here", self.own))
        told = [f"{name} {statistics.median(some) / BATCH * 1e6:6.0f} µs" for name, some in parts]
        return "   ".join([*told, f"PostgreSQL {statistics.mean(self.theirs) / BATCH * 1e6:6.0f} µs"])


async def patches(caller: Caller, postgres: int, batches: int) -> None:
    """Alternating batches with and without the audit log."""
    audited, bare = Meter(postgres), Meter(postgres)
    flush, add = PostgresAuditLog.flush, PostgresAuditLog.add
    for _ in range(batches):
        await audited.batch(caller.rename)
        _replace(_nothing, _not_added)
        try:
            await bare.batch(caller.rename)
        finally:
            _replace(flush, add)
    line("PATCH /v1/sources/{id}", audited.told())
    line("the same without its audit entry", bare.told())
    took, without = statistics.median(audited.took), statistics.median(bare.took)
    line("  auditing's share of the PATCH, time", f"{(took - without) / took:6.1%}")
    cpu, less = (statistics.median(one.own) + statistics.mean(one.theirs) for one in (audited, bare))
    line("  auditing's share of the PATCH, all CPU", f"{(cpu - less) / cpu:6.1%}")


async def reading(caller: Caller, tenant: Tenant, parts: Stack, entries: int) -> None:
    """A page, undoing, and checking the chain."""
    for query in ("limit=20", "limit=20&undoable=true", f"limit=20&target={caller.source}&action=sources.update"):

        async def page(query: str = query) -> None:
            await caller.send("GET", f"/v1/audit-events?{query}")

        await _timed(f"GET /v1/audit-events?{query[:34]}", page, 30)

    async def undo() -> None:
        await caller.rename()
        newest = (await caller.send("GET", "/v1/audit-events?limit=1"))["data"][0]["id"]
        await caller.send("POST", f"/v1/audit-events/{newest}/undo")

    await _timed("PATCH, GET and POST …/undo", undo)
    for first in range(0, entries, 1_000):
        async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
            changes = [
                Change("source", f"src_{first + n}", "update", {"name": "a"}, {"name": "b"}) for n in range(1_000)
            ]
            began = time.perf_counter()
            await tx[AuditLog].add_all(changes)
    line("1,000 entries of one transaction", f"{(time.perf_counter() - began) * 1e3:8.1f} ms")
    began = time.perf_counter()
    async with parts.container[UnitOfWork].read(tenant) as tx:
        report = await AuditService().verify(tx)
    took = time.perf_counter() - began
    line(
        "joinery audit verify",
        f"{report.entries / took:8.0f} entries/s ({report.entries} entries, faults {len(report.faults)})",
    )


async def _timed(name: str, act: Callable[[], Awaitable[Any]], often: int = 100) -> None:
    times: list[float] = []
    for _ in range(often):
        began = time.perf_counter()
        await act()
        times.append(time.perf_counter() - began)
    line(name, f"p50 {statistics.median(times) * 1e3:6.2f} ms   p95 {sorted(times)[int(often * 0.95)] * 1e3:6.2f} ms")


async def writers(parts: Stack, tenant: Tenant, counts: Sequence[int]) -> None:
    """Entries a second of one tenant by how many write at a time."""
    for count in counts:

        async def write() -> None:
            for _ in range(100):
                async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
                    await tx[AuditLog].add(Change("source", "src_1", "update", {"name": "a"}, {"name": "b"}))

        began = time.perf_counter()
        await asyncio.gather(*(write() for _ in range(count)))
        line(
            f"transactions with an entry alone, {count} at a time",
            f"{100 * count / (time.perf_counter() - began):8.0f}/s",
        )


async def main(batches: int, entries: int) -> None:
    """Every figure of the command."""
    async with stack(PORT) as parts:
        organisation = await parts.organisation("Audited")
        source = await parts.source(organisation, connector="push", kind="push")
        tenant = Tenant(organisation.id, True)
        async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
            _, secret = await parts.container[AccessService].issue_key(tx, KeyRequest("bench"))
        app = create_app(parts.container)
        async with app.test_app():
            pipeline: Pipeline = app.asgi_app._pipeline  # type: ignore[attr-defined]
            pipeline._checks = tuple(step for step in pipeline._checks if type(step).__name__ != "RateLimit")
            caller = Caller(pipeline, secret, source.id)
            for _ in range(BATCH):
                await caller.rename()
            await patches(caller, parts.postgres, batches)
            await writers(parts, tenant, (1, 8))
            await reading(caller, tenant, parts, entries)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--batches", type=int, default=20, help=f"of {BATCH} PATCHes, with and without (default: 20)")
    options.add_argument(
        "--entries", type=int, default=20_000, help="more in the chain that is checked (default: 20,000)"
    )
    asyncio.run(main(**vars(options.parse_args())))
