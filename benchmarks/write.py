"""Cost of a change through a real API process, and the time of each step of the pipeline (`make bench-write`)."""

# ruff: noqa: SLF001  wraps private attributes of the pipeline

import argparse
import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from benchmarks.http_load import run_load
from benchmarks.stack import AUDIT_CONTEXT, Stack, running_stack
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from entrypoints.api.app import create_app
from entrypoints.http.exchange import build_request
from entrypoints.http.pipeline import Pipeline
from ports.unit_of_work import UnitOfWork

PORT = 18_995
ORGANISATIONS = 4
"""Number of organisations; rate limits apply to an organisation (400 writes a second on the plan max)."""
IN_PROCESS_REQUESTS = 600


@dataclass(frozen=True, slots=True)
class Target:
    """Source that receives pushes, and an API key of its organisation."""

    source: str
    secret: str


def print_figure(name: str, figure: str) -> None:
    """Print one measurement."""
    print(f"{name:<50} {figure}", flush=True)


def build_push_body(number: int) -> bytes:
    """Return the body of a push with one record."""
    offer = {"price": {"amount": "499.00", "currency": "usd"}, "quantity": number % 50}
    variant = {"external_id": f"LM-{number}-OAK", "sku": f"LM-{number}-OAK", "colour": "natural", "offers": [offer]}
    product = {"external_id": f"LM-{number}", "title": f"Oak dining table {number}", "brand": "Lindgren"}
    return json.dumps({"records": [{"product": product, "variants": [variant]}]}).encode()


@dataclass
class WriteRequests(Sequence[bytes]):
    """Endless sequence of different requests; each has another body and idempotency key."""

    targets: Sequence[Target]
    method: str
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: Any) -> Any:
        number = next(self.numbers)
        target = self.targets[number % len(self.targets)]
        path, headers, body = self.build_request(target, number)
        header_lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{self.method} {path} HTTP/1.1\r\n{header_lines}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def build_request(self, target: Target, number: int) -> tuple[str, dict[str, str], bytes]:
        """Return path, headers and body of a request."""
        headers = {"Host": "127.0.0.1", "Authorization": f"Bearer {target.secret}", "Content-Type": "application/json"}
        path = f"/v1/sources/{target.source}"
        if self.method == "PATCH":
            return path, headers | {"If-Match": "*"}, json.dumps({"name": f"Renamed {number}"}).encode()
        return (
            path + "/records",
            headers | {"Idempotency-Key": f"{self.method}-{id(self)}-{number}"},
            build_push_body(number),
        )


async def create_targets(stack: Stack) -> list[Target]:
    """Create a source for pushes in each of several organisations."""
    targets = []
    for number in range(ORGANISATIONS):
        organisation = await stack.create_organisation(f"Writer {number}")
        source = await stack.create_source(organisation, connector="push", kind="push")
        async with stack.dependencies[UnitOfWork].begin(Tenant(organisation.id, True), AUDIT_CONTEXT) as tx:
            _, secret = await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench"))
        targets.append(Target(source.id, secret))
    return targets


async def wait_until_ready(port: int, max_wait_seconds: float = 30.0) -> None:
    """Wait until GET /readyz responds with 200. Raises TimeoutError."""
    deadline = time.monotonic() + max_wait_seconds
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < deadline:
            try:
                async with session.get(f"http://127.0.0.1:{port}/readyz") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)
    raise TimeoutError("the API did not become ready")


async def measure_server(stack: Stack, targets: Sequence[Target], seconds: float) -> None:
    """Print throughput, latency and CPU of requests to a real API process."""
    api = stack.start_process("api")
    try:
        await wait_until_ready(PORT)
        pids = {"server": api.pid, "postgres": stack.postgres_pid}
        for name, method in (("POST …/records, one record", "POST"), ("PATCH /v1/sources/{id}", "PATCH")):
            for connections in (1, 8):
                requests = WriteRequests(targets, method)
                await run_load(PORT, requests, connections=connections, seconds=0.5, pids=pids)
                result = await run_load(PORT, requests, connections=connections, seconds=seconds, pids=pids)
                cpu = "   ".join(
                    f"{process} {microseconds:5.0f}" for process, microseconds in result.cpu_by_process.items()
                )
                print_figure(
                    f"{name}, {connections} concurrent",
                    f"{result.requests / result.seconds:6.0f}/s   p50 {result.p50:6.2f} ms   p99 {result.p99:6.2f} ms   "
                    f"CPU µs per request: {cpu}   total {result.total_cpu:5.0f}",
                )
    finally:
        api.terminate()
        api.wait(20)


class Stopwatch:
    """Elapsed seconds, by name of the step."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def add(self, name: str, since: float) -> None:
        """Add the time since `since` (`time.perf_counter()`) to a step."""
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - since

    def wrap_step(self, step: Any) -> Any:
        """Return the step of the pipeline with a measurement of its time."""
        name = getattr(step, "__name__", type(step).__name__)

        async def run_timed(state: Any) -> None:
            started = time.perf_counter()
            pending = step(state)
            if pending is not None:
                await pending
            self.add(name, started)

        return run_timed


class TimedUnitOfWork:
    """Unit of work that measures the beginning, the work and the commit of transactions separately."""

    def __init__(self, inner: Any, watch: Stopwatch) -> None:
        self._inner, self._watch = inner, watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def begin(self, *arguments: Any) -> AsyncIterator[Any]:
        """Begin a transaction; measure its phases."""
        transaction, started = self._inner.begin(*arguments), time.perf_counter()
        tx = await transaction.__aenter__()
        self._watch.add("perform: begin", started)
        started = time.perf_counter()
        try:
            yield tx
        except BaseException as error:
            await transaction.__aexit__(type(error), error, error.__traceback__)
            raise
        self._watch.add("perform: statements, handler and response", started)
        started = time.perf_counter()
        await transaction.__aexit__(None, None, None)
        self._watch.add("perform: commit", started)


async def measure_pipeline(stack: Stack, targets: Sequence[Target], method: str) -> None:
    """Print the share of each step in the time of requests, sent one after the other in this process."""
    app = create_app(stack.dependencies)
    async with app.test_app():
        pipeline: Pipeline = app.asgi_app._pipeline  # type: ignore[attr-defined]
        for request_count, is_warm_up in ((60, True), (IN_PROCESS_REQUESTS, False)):
            watch = Stopwatch()
            steps, unit_of_work = pipeline._checks, pipeline._execute._uow
            pipeline._checks = tuple(map(watch.wrap_step, steps))
            pipeline._execute._uow = TimedUnitOfWork(unit_of_work, watch)
            started = time.perf_counter()
            await _send_requests(pipeline, targets, method, request_count)
            total = time.perf_counter() - started
            pipeline._checks, pipeline._execute._uow = steps, unit_of_work
            if not is_warm_up:
                _print_shares(watch, total, method)


async def _send_requests(pipeline: Pipeline, targets: Sequence[Target], method: str, request_count: int) -> None:
    writes = WriteRequests(targets, method)
    for number in range(request_count):
        path, headers, body = writes.build_request(targets[number % len(targets)], number)
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 4000),
        }  # fmt: skip

        async def read(limit: int, body: bytes = body) -> bytes:
            return body

        response = await pipeline.process_request(build_request(scope, read))
        if response.status >= 300:
            raise RuntimeError(response.body.decode())


def _print_shares(watch: Stopwatch, total: float, method: str) -> None:
    measured = sum(watch.spent.values())
    for name, seconds in (*watch.spent.items(), ("everything else", total - measured)):
        print_figure(f"  {method}: {name}", f"{seconds / IN_PROCESS_REQUESTS * 1e6:8.1f} µs   {seconds / total:6.1%}")


async def main(seconds: float) -> None:
    """Run all measurements."""
    async with running_stack(PORT) as stack:
        targets = await create_targets(stack)
        await measure_server(stack, targets, seconds)
        for method in ("POST", "PATCH"):
            await measure_pipeline(stack, targets, method)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=5.0, help="seconds of load per measurement (default: 5)")
    asyncio.run(main(options.parse_args().seconds))
