"""What a change costs through the real API process, and where in the pipeline the time goes (`make bench-write`)."""

# ruff: noqa: SLF001  it measures the pipeline from the inside

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

from benchmarks.load import load
from benchmarks.stack import CALL, Stack, stack
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from entrypoints.api.app import create_app
from entrypoints.http.exchange import from_scope
from entrypoints.http.pipeline import Pipeline
from ports.unit_of_work import UnitOfWork

PORT = 18_995
ORGANISATIONS = 4
"""Budgets are an organisation's (400 writes a second on the plan max): the load is spread over a few."""
IN_PROCESS = 600


@dataclass(frozen=True, slots=True)
class Target:
    """A pushed source and a key to its organisation."""

    source: str
    secret: str


def line(name: str, figure: str) -> None:
    """One figure."""
    print(f"{name:<50} {figure}", flush=True)


def record(number: int) -> bytes:
    """A call with one record."""
    offer = {"price": {"amount": "499.00", "currency": "usd"}, "quantity": number % 50}
    variant = {"external_id": f"LM-{number}-OAK", "sku": f"LM-{number}-OAK", "colour": "natural", "offers": [offer]}
    product = {"external_id": f"LM-{number}", "title": f"Oak dining table {number}", "brand": "Lindgren"}
    return json.dumps({"records": [{"product": product, "variants": [variant]}]}).encode()


@dataclass
class Writes(Sequence[bytes]):
    """Requests that are all different, whatever the index: each with a key and a body of its own."""

    targets: Sequence[Target]
    method: str
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: Any) -> Any:
        number = next(self.numbers)
        target = self.targets[number % len(self.targets)]
        path, headers, body = self.request(target, number)
        told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{self.method} {path} HTTP/1.1\r\n{told}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def request(self, target: Target, number: int) -> tuple[str, dict[str, str], bytes]:
        """Path, headers and body of one request."""
        headers = {"Host": "127.0.0.1", "Authorization": f"Bearer {target.secret}", "Content-Type": "application/json"}
        path = f"/v1/sources/{target.source}"
        if self.method == "PATCH":
            return path, headers | {"If-Match": "*"}, json.dumps({"name": f"Renamed {number}"}).encode()
        return path + "/records", headers | {"Idempotency-Key": f"{self.method}-{id(self)}-{number}"}, record(number)


async def targets_of(parts: Stack) -> list[Target]:
    """One pushed source in each of a few organisations."""
    made = []
    for number in range(ORGANISATIONS):
        organisation = await parts.organisation(f"Writer {number}")
        source = await parts.source(organisation, connector="push", kind="push")
        async with parts.container[UnitOfWork].begin(Tenant(organisation.id, True), CALL) as tx:
            _, secret = await parts.container[AccessService].issue_key(tx, KeyRequest("bench"))
        made.append(Target(source.id, secret))
    return made


async def ready(port: int, within: float = 30.0) -> None:
    """Until the API answers /readyz."""
    until = time.monotonic() + within
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < until:
            try:
                async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)
    raise TimeoutError("the API does not come up")


async def through_the_server(parts: Stack, targets: Sequence[Target], seconds: float) -> None:
    """Figures from outside."""
    api = parts.process("api")
    try:
        await ready(PORT)
        pids = {"server": api.pid, "postgres": parts.postgres}
        for name, method in (("POST …/records, one record, idempotent", "POST"), ("PATCH /v1/sources/{id}", "PATCH")):
            for connections in (1, 8):
                requests = Writes(targets, method)
                await load(PORT, requests, connections=connections, seconds=0.5, pids=pids)
                got = await load(PORT, requests, connections=connections, seconds=seconds, pids=pids)
                cpu = "   ".join(f"{part} {microseconds:5.0f}" for part, microseconds in got.cpu.items())
                line(
                    f"{name}, {connections} at a time",
                    f"{got.requests / got.seconds:6.0f}/s   p50 {got.p50:6.2f} ms   p99 {got.p99:6.2f} ms   "
                    f"CPU µs a request: {cpu}   together {got.total:5.0f}",
                )
    finally:
        api.terminate()
        api.wait(20)


class Stopwatch:
    """Seconds by name."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def add(self, name: str, since: float) -> None:
        """Count the time since then."""
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - since

    def step(self, inner: Any) -> Any:
        """The step, timed under its own name."""
        name = getattr(inner, "__name__", type(inner).__name__)

        async def timed(visit: Any) -> None:
            began = time.perf_counter()
            pending = inner(visit)
            if pending is not None:
                await pending
            self.add(name, began)

        return timed


class TimedUnits:
    """Units of work whose beginning and commit are timed apart from the work itself."""

    def __init__(self, inner: Any, watch: Stopwatch) -> None:
        self._inner, self._watch = inner, watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def begin(self, *given: Any) -> AsyncIterator[Any]:
        """Begin, work, commit."""
        entering, began = self._inner.begin(*given), time.perf_counter()
        tx = await entering.__aenter__()
        self._watch.add("perform: begin", began)
        began = time.perf_counter()
        try:
            yield tx
        except BaseException as error:
            await entering.__aexit__(type(error), error, error.__traceback__)
            raise
        self._watch.add("perform: statements, handler and answer", began)
        began = time.perf_counter()
        await entering.__aexit__(None, None, None)
        self._watch.add("perform: commit", began)


async def inside(parts: Stack, targets: Sequence[Target], method: str) -> None:
    """The share of each step, measured in this process one request after the other."""
    app = create_app(parts.container)
    async with app.test_app():
        pipeline: Pipeline = app.asgi_app._pipeline  # type: ignore[attr-defined]
        for rounds, warm in ((60, True), (IN_PROCESS, False)):
            watch = Stopwatch()
            steps, units = pipeline._checks, pipeline._execute._uow
            pipeline._checks = tuple(map(watch.step, steps))
            pipeline._execute._uow = TimedUnits(units, watch)
            began = time.perf_counter()
            await _send(pipeline, targets, method, rounds)
            total = time.perf_counter() - began
            pipeline._checks, pipeline._execute._uow = steps, units
            if not warm:
                _tell(watch, total, method)


async def _send(pipeline: Pipeline, targets: Sequence[Target], method: str, rounds: int) -> None:
    writes = Writes(targets, method)
    for number in range(rounds):
        path, headers, body = writes.request(targets[number % len(targets)], number)
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 4000),
        }  # fmt: skip

        async def read(limit: int, body: bytes = body) -> bytes:
            return body

        response = await pipeline.answer(from_scope(scope, read))
        if response.status >= 300:
            raise RuntimeError(response.body.decode())


def _tell(watch: Stopwatch, total: float, method: str) -> None:
    told = sum(watch.spent.values())
    for name, seconds in (*watch.spent.items(), ("everything else", total - told)):
        line(f"  {method}: {name}", f"{seconds / IN_PROCESS * 1e6:8.1f} µs   {seconds / total:6.1%}")


async def main(seconds: float) -> None:
    """Every figure of the command."""
    async with stack(PORT) as parts:
        targets = await targets_of(parts)
        await through_the_server(parts, targets, seconds)
        for method in ("POST", "PATCH"):
            await inside(parts, targets, method)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=5.0, help="of load for each figure (default: 5)")
    asyncio.run(main(options.parse_args().seconds))
