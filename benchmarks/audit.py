"""Cost of the audit log: PATCH with and without it, undo, a page of entries, and verification (`make bench-audit`)."""

# ruff: noqa: SLF001  switches the audit log off inside units of work

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
from benchmarks.stack import AUDIT_CONTEXT, Stack, read_cpu_seconds, running_stack
from domain.access.usecases import AccessService, KeyRequest
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.audit.usecases import AuditService
from domain.kernel.tenancy import Tenant
from entrypoints.api.app import create_app
from entrypoints.http.exchange import build_request
from entrypoints.http.pipeline import Pipeline
from ports.unit_of_work import UnitOfWork

PORT = 18_996
BATCH = 100


def print_figure(name: str, figure: str) -> None:
    """Print one measurement."""
    print(f"{name:<58} {figure}", flush=True)


@dataclass
class PipelineClient:
    """Client that sends one organisation's requests through the API's pipeline in this process.

    Attributes:
        pipeline: Pipeline of the API.
        secret: API key of the organisation.
        source: ID of the source that requests rename.
        numbers: Consecutive numbers that make requests distinct.
    """

    pipeline: Pipeline
    secret: str
    source: str
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the decoded JSON of the response. Raises RuntimeError for an error response."""
        path, _, query = path.partition("?")
        headers = {"authorization": f"Bearer {self.secret}", "content-type": "application/json"}
        headers |= {"if-match": "*"} if method == "PATCH" else {}
        headers |= {"idempotency-key": f"bench-{next(self.numbers)}"} if method == "POST" else {}
        content = b"" if body is None else json.dumps(body).encode()
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()], "client": ("127.0.0.1", 4000),
        }  # fmt: skip

        async def read(limit: int) -> bytes:
            return content

        response = await self.pipeline.process_request(build_request(scope, read))
        if response.status >= 300:
            raise RuntimeError(response.body.decode())
        return json.loads(response.body)

    async def rename_source(self) -> None:
        """Rename the source by one PATCH request."""
        await self.send("PATCH", f"/v1/sources/{self.source}", {"name": f"Renamed {next(self.numbers)}"})


async def _skip_flush(log: PostgresAuditLog) -> None:
    log._stored_count = len(log._session.recorded.changes)


async def _skip_add(log: PostgresAuditLog, change: Change) -> str:
    return ""


def _replace_audit_methods(flush: Any, add: Any) -> None:
    """Replace two methods of every audit log."""
    setattr(PostgresAuditLog, "flush", flush)  # noqa: B010  mypy forbids assignments to methods
    setattr(PostgresAuditLog, "add", add)  # noqa: B010


@dataclass
class BatchTimer:
    """Timer of batches of calls.

    Attributes:
        postgres_pid: Process ID of the database server.
        elapsed: Elapsed seconds of each batch.
        own_cpu: CPU seconds of this process in each batch.
        postgres_cpu: CPU seconds of the database server in each batch.
    """

    postgres_pid: int
    elapsed: list[float] = field(default_factory=list)
    own_cpu: list[float] = field(default_factory=list)
    postgres_cpu: list[float] = field(default_factory=list)

    async def measure_batch(self, call: Callable[[], Awaitable[None]]) -> None:
        """Call the function BATCH times in succession and record the times."""
        started, own_before, postgres_before = (
            time.perf_counter(),
            time.process_time(),
            read_cpu_seconds(self.postgres_pid),
        )
        for _ in range(BATCH):
            await call()
        self.elapsed.append(time.perf_counter() - started)
        self.own_cpu.append(time.process_time() - own_before)
        self.postgres_cpu.append(read_cpu_seconds(self.postgres_pid) - postgres_before)

    def describe(self) -> str:
        """Format the microseconds per call: the median of the batches.

        For PostgreSQL it is the mean, because the CPU time of other processes has a resolution of 10 ms.
        """
        groups = (("time", self.elapsed), ("CPU of the API", self.own_cpu))
        medians = [f"{name} {statistics.median(seconds) / BATCH * 1e6:6.0f} µs" for name, seconds in groups]
        return "   ".join([*medians, f"PostgreSQL {statistics.mean(self.postgres_cpu) / BATCH * 1e6:6.0f} µs"])


async def measure_patches(caller: PipelineClient, postgres_pid: int, batches: int) -> None:
    """Print the costs of PATCH requests in alternating batches with and without the audit log."""
    audited, unaudited = BatchTimer(postgres_pid), BatchTimer(postgres_pid)
    flush, add = PostgresAuditLog.flush, PostgresAuditLog.add
    for _ in range(batches):
        await audited.measure_batch(caller.rename_source)
        _replace_audit_methods(_skip_flush, _skip_add)
        try:
            await unaudited.measure_batch(caller.rename_source)
        finally:
            _replace_audit_methods(flush, add)
    print_figure("PATCH /v1/sources/{id}", audited.describe())
    print_figure("PATCH /v1/sources/{id} without an audit entry", unaudited.describe())
    audited_seconds, unaudited_seconds = statistics.median(audited.elapsed), statistics.median(unaudited.elapsed)
    print_figure(
        "  audit log's share of the PATCH, time", f"{(audited_seconds - unaudited_seconds) / audited_seconds:6.1%}"
    )
    audited_cpu, unaudited_cpu = (
        statistics.median(timer.own_cpu) + statistics.mean(timer.postgres_cpu) for timer in (audited, unaudited)
    )
    print_figure("  audit log's share of the PATCH, all CPU", f"{(audited_cpu - unaudited_cpu) / audited_cpu:6.1%}")


async def measure_reads(caller: PipelineClient, tenant: Tenant, stack: Stack, entries: int) -> None:
    """Print the times of pages of audit entries, of an undo, and of the verification of the chain."""
    for query in ("limit=20", "limit=20&undoable=true", f"limit=20&target={caller.source}&action=sources.update"):

        async def request_page(query: str = query) -> None:
            await caller.send("GET", f"/v1/audit-events?{query}")

        await _print_times(f"GET /v1/audit-events?{query[:34]}", request_page, 30)

    async def undo() -> None:
        await caller.rename_source()
        newest = (await caller.send("GET", "/v1/audit-events?limit=1"))["data"][0]["id"]
        await caller.send("POST", f"/v1/audit-events/{newest}/undo")

    await _print_times("PATCH, GET and POST …/undo", undo)
    for first in range(0, entries, 1_000):
        async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            changes = [
                Change("source", f"src_{first + n}", "update", {"name": "a"}, {"name": "b"}) for n in range(1_000)
            ]
            started = time.perf_counter()
            await tx[AuditLog].add_all(changes)
    print_figure("1,000 entries in one transaction", f"{(time.perf_counter() - started) * 1e3:8.1f} ms")
    started = time.perf_counter()
    async with stack.dependencies[UnitOfWork].begin_reading(tenant) as tx:
        report = await AuditService().verify_chain(tx)
    took = time.perf_counter() - started
    print_figure(
        "joinery audit verify",
        f"{report.valid_entries / took:8.0f} entries/s ({report.valid_entries} entries, faults {len(report.faults)})",
    )


async def _print_times(name: str, call: Callable[[], Awaitable[Any]], repetitions: int = 100) -> None:
    times: list[float] = []
    for _ in range(repetitions):
        started = time.perf_counter()
        await call()
        times.append(time.perf_counter() - started)
    print_figure(
        name,
        f"p50 {statistics.median(times) * 1e3:6.2f} ms   p95 {sorted(times)[int(repetitions * 0.95)] * 1e3:6.2f} ms",
    )


async def measure_concurrent_writers(stack: Stack, tenant: Tenant, counts: Sequence[int]) -> None:
    """Print the audit entries a second of one tenant for each number of concurrent writers."""
    for count in counts:

        async def write() -> None:
            for _ in range(100):
                async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
                    await tx[AuditLog].add(Change("source", "src_1", "update", {"name": "a"}, {"name": "b"}))

        started = time.perf_counter()
        await asyncio.gather(*(write() for _ in range(count)))
        print_figure(
            f"transactions with one audit entry, {count} concurrent",
            f"{100 * count / (time.perf_counter() - started):8.0f}/s",
        )


async def main(batches: int, entries: int) -> None:
    """Run all measurements."""
    async with running_stack(PORT) as stack:
        organisation = await stack.create_organisation("Audited")
        source = await stack.create_source(organisation, connector="push", kind="push")
        tenant = Tenant(organisation.id, True)
        async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            _, secret = await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench"))
        app = create_app(stack.dependencies)
        async with app.test_app():
            pipeline: Pipeline = app.asgi_app._pipeline  # type: ignore[attr-defined]
            pipeline._checks = tuple(step for step in pipeline._checks if type(step).__name__ != "RateLimit")
            caller = PipelineClient(pipeline, secret, source.id)
            for _ in range(BATCH):
                await caller.rename_source()
            await measure_patches(caller, stack.postgres_pid, batches)
            await measure_concurrent_writers(stack, tenant, (1, 8))
            await measure_reads(caller, tenant, stack, entries)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--batches", type=int, default=20, help=f"batches of {BATCH} PATCH requests each (default: 20)"
    )
    options.add_argument(
        "--entries", type=int, default=20_000, help="entries added before the verification (default: 20,000)"
    )
    asyncio.run(main(**vars(options.parse_args())))
