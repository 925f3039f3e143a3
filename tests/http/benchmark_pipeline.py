"""CPU time of the pipeline around a hot read, step by step: `python -m tests.http.benchmark_pipeline` prints microseconds."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from statistics import median
from time import process_time
from typing import Any

from entrypoints.http.checks import RequestState
from entrypoints.http.exchange import build_request, read_no_body
from entrypoints.http.fast_path import FastPathMiddleware
from entrypoints.http.pipeline import Pipeline
from entrypoints.operations.operation import Operation, Reply, RequestContext
from entrypoints.operations.table import OperationTable
from ports.limits import RateLimitBucket, TakeResult
from tests.http import example_area
from tests.http.application import ApplicationHarness, run_application
from tests.support.memory.clock import SystemClock

ROUNDS, TIMES = 9, 4000
TAKE = TakeResult(True, 3999, 0.4, 0.0)
BODY = b'{"object":"list","data":[' + b",".join([b'{"object":"product"}'] * 20) + b'],"has_more":true,"next_cursor":"'


class UnlimitedRates:
    """Rate limits without any cost."""

    async def take_token(self, limit: RateLimitBucket) -> TakeResult:
        return TAKE


class DiscardingSink:
    """Request log that discards its records."""

    async def write(self, logs: Any) -> None:
        return None


class StubUnitOfWork:
    """Unit of work without any cost."""

    @asynccontextmanager
    async def read(self, tenant: Any) -> Any:
        yield None


async def read_hot(call: RequestContext) -> Reply:
    """Return a reply like those of the catalogue: bytes, a cursor and an ETag."""
    cursor = call.sign_cursor("prod_01J8ZQ5T3V7XK2M9RB4CDW") or ""
    return Reply(BODY + cursor.encode() + b'"}', etag="0123456789abcdef01234567")


ROW = Operation(
    "things.hot", "GET", "/v1/hot", "hot", read_hot, "products:read", example_area.THING, "read", paging="forward"
)


def build_scope(secret: str, query: bytes) -> dict[str, Any]:
    """Build the ASGI scope of a typical request."""
    headers = [
        (b"host", b"api.example"),
        (b"accept", b"application/json"),
        (b"accept-encoding", b"gzip, deflate"),
        (b"user-agent", b"acme-sync/1.4"),
        (b"authorization", f"Bearer {secret}".encode()),
    ]
    return {
        "type": "http",
        "method": "GET",
        "path": "/v1/hot",
        "raw_path": b"/v1/hot",
        "query_string": query,
        "headers": headers,
        "client": ("203.0.113.7", 4000),
    }


async def measure(work: Callable[[], Awaitable[Any] | Any]) -> float:
    """Return the median CPU time of one call in microseconds."""
    results = []
    for _ in range(ROUNDS):
        start = process_time()
        for _ in range(TIMES):
            pending = work()
            if inspect.isawaitable(pending):
                await pending
        results.append((process_time() - start) / TIMES * 1e6)
        await asyncio.sleep(0.6)
    return median(results)


async def measure_request(pipeline: Pipeline, secret: str, query: bytes) -> float:
    """Measure the whole request, from scope to sent response."""
    lane = FastPathMiddleware(pipeline.process_request, pipeline)  # type: ignore[arg-type]
    scope = build_scope(secret, query)

    async def send(_: Any) -> None:
        return None

    return await measure(lambda: lane(scope, send, send))  # type: ignore[arg-type]


async def measure_steps(pipeline: Pipeline, application: ApplicationHarness, secret: str, query: bytes) -> None:
    """Measure each step on a request that has passed the earlier ones."""
    request = build_request(build_scope(secret, query), read_no_body)
    match = pipeline.table.match_request("GET", "/v1/hot")
    now = application.clock.now()
    print(
        f"{await measure(lambda: build_request(build_scope(secret, query), read_no_body)):7.2f}  request from scope (and scope)"
    )
    print(f"{await measure(lambda: pipeline.table.match_request('GET', '/v1/hot')):7.2f}  routing")
    print(f"{await measure(lambda: RequestState(request, match, now)):7.2f}  visit")
    state = RequestState(request, match, now)
    for step in pipeline._checks:
        name = getattr(step, "__name__", type(step).__name__)

        async def once(step: Any = step) -> None:
            pending = step(state)
            if pending is not None:
                await pending

        print(f"{await measure(once):7.2f}  {name} (0.2 of it for measuring)")
    print(
        f"{await measure(lambda: pipeline._execute(state)):7.2f}  perform: unit of work, handler, cursor, answer, ETag"
    )
    response = await pipeline._execute(state)
    plain = list(response.headers)

    def finish() -> None:
        response.headers = list(plain)
        pipeline._complete_response(state, response)

    print(f"{await measure(finish):7.2f}  finish: headers, metrics")
    print(f"{await measure(lambda: pipeline._request_logger(state, response)):7.2f}  request log")


async def main() -> None:
    """Print the figures."""
    parts: dict[str, Any] = {
        "limits": UnlimitedRates(),
        "request_logs": DiscardingSink(),
        "uow": StubUnitOfWork(),
        "table": OperationTable([ROW]),
        "clock": SystemClock(),
    }
    async with run_application(**parts) as application:
        _, secret = await application.create_key(application.orgs["Fjord"])
        lane: Any = application.app.asgi_app
        for query in (b"", b"limit=50&starting_after="):
            if query:
                lane = application.app.asgi_app
                context = await _create_context(lane._pipeline, secret, b"limit=50")
                query += context.encode()
            print(f"\nGET /v1/hot?{query.decode()}")
            print(f"{await measure_request(lane._pipeline, secret, query):7.2f}  all of it")
            await measure_steps(lane._pipeline, application, secret, query)


async def _create_context(pipeline: Pipeline, secret: str, query: bytes) -> str:
    """Create a context with a valid cursor."""
    response = await pipeline.process_request(build_request(build_scope(secret, query), read_no_body))
    return response.body.decode().rsplit('"', 2)[1]


if __name__ == "__main__":
    asyncio.run(main())
