"""The demo as a client of the service: retries, messages, and which run it resumes and follows."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from aiohttp import ClientSession, web

from entrypoints.demo import client
from entrypoints.demo.client import ApiKeyRejected, DemoApi, DemoError, FollowedRun, follow_runs
from entrypoints.up.service_processes import find_free_port

Answer = tuple[int, Any] | tuple[int, Any, Mapping[str, str]]
RUNS = "GET /v1/sources/src_1/runs"
START = "POST /v1/sources/src_1/runs"


class Service:
    """Answers each address with what it is given, one after the other, the last one for ever."""

    def __init__(self, answers: Mapping[str, Sequence[Answer]]) -> None:
        self._answers = {key: list(given) for key, given in answers.items()}
        self.requests: list[tuple[str, Mapping[str, str]]] = []

    async def _answer(self, request: web.Request) -> web.Response:
        key = f"{request.method} {request.path}"
        self.requests.append((key, request.headers))
        left = self._answers[key]
        status, body, *headers = left.pop(0) if len(left) > 1 else left[0]
        return web.json_response(body, status=status, headers=headers[0] if headers else None)

    def with_api(self, use: Callable[[DemoApi], Awaitable[Any]]) -> Any:
        """What `use` comes to with this service."""

        async def run() -> Any:
            app, port = web.Application(), find_free_port()
            app.router.add_route("*", "/{path:.*}", self._answer)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", port).start()
            try:
                async with ClientSession() as session:
                    return await use(DemoApi(session, f"http://127.0.0.1:{port}/", "svc_live_x"))
            finally:
                await runner.cleanup()

        return asyncio.run(run())


def run(status: str, id: str = "run_1", **more: Any) -> dict[str, Any]:
    return {"id": id, "stream": "catalogue", "status": status, "stage": "parse", "stats": {}, "problems": []} | more


def test_requests_to_a_busy_service_are_retried() -> None:
    service = Service(
        {"GET /v1/org": [(429, {}, {"Retry-After": "0"}), (503, {}, {"Retry-After": "0"}), (200, {"id": 1})]}
    )
    assert service.with_api(lambda api: api.get("/v1/org")) == {"id": 1}
    assert {headers["Authorization"] for _, headers in service.requests} == {"Bearer svc_live_x"}


def test_refusals_include_the_reason() -> None:
    wrong = {"detail": "x", "errors": [{"field": "config.url", "detail": "Port 9 is not reached."}]}
    service = Service({"PATCH /v1/sources/src_1": [(400, wrong)], "GET /v1/org": [(401, {"detail": "no"})]})
    with pytest.raises(DemoError, match=r"config\.url: Port 9 is not reached"):
        service.with_api(lambda api: api.patch("/v1/sources/src_1", {}))
    with pytest.raises(ApiKeyRejected):
        service.with_api(lambda api: api.get("/v1/org"))
    assert service.requests[0][1]["If-Match"] == "*"


def taken_up(runs: Sequence[Any]) -> tuple[FollowedRun, Service]:
    service = Service({RUNS: [(200, {"data": list(runs)})], START: [(202, run("queued", "run_new"))]})
    reading = FollowedRun("Lindgren", "src_1")
    service.with_api(reading.start_or_resume)
    return reading, service


def test_first_start_starts_a_run_once() -> None:
    reading, service = taken_up([])
    assert reading.run["id"] == "run_new"
    assert service.requests[-1][1]["Idempotency-Key"] == "demo-run-src_1-catalogue-0"


def test_later_start_resumes_the_last_run() -> None:
    whole = run("succeeded", "run_whole", stats={"rows": 9})
    unchanged = run("succeeded", "run_same", stats={"unchanged_feed": 1})
    assert taken_up([whole])[0].run["id"] == "run_whole"
    assert taken_up([unchanged, whole])[0].run["id"] == "run_whole"
    assert taken_up([unchanged])[0].run["id"] == "run_same"
    assert taken_up([run("running", "run_open"), whole])[0].run["id"] == "run_open"
    assert taken_up([run("failed"), whole])[0].run["id"] == "run_new"
    assert taken_up([run("succeeded", stream="stock")])[0].run["id"] == "run_new"


def test_follows_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PAUSE", 0)
    end = run("succeeded", stats={"rows": 12, "products_created": 4})
    service = Service({"GET /v1/runs/run_1": [(200, run("running")), (200, end)]})
    reading, out = FollowedRun("Lindgren", "src_1", run=run("queued")), io.StringIO()
    service.with_api(lambda api: follow_runs(api, [reading], out))
    assert reading.run == end
    assert [line.split()[1] for line in out.getvalue().splitlines()] == ["queued", "parse", "succeeded"]


def test_a_stuck_run_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(client, "_PAUSE", 0.02)
    service = Service({"GET /v1/runs/run_1": [(200, run("queued"))]})
    reading = FollowedRun("Lindgren", "src_1", run=run("queued"))
    with pytest.raises(DemoError, match="worker.log"):
        service.with_api(lambda api: follow_runs(api, [reading], io.StringIO()))
