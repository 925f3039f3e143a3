"""The demo as a client of the service: retries, messages, and the run that it resumes and follows."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from aiohttp import ClientSession, web

from entrypoints.demo import client
from entrypoints.demo.client import ApiKeyRejected, DemoApi, DemoError, FollowedPublication, FollowedRun, follow_runs
from entrypoints.up.service_processes import find_free_port

StubResponse = tuple[int, Any] | tuple[int, Any, Mapping[str, str]]
RUNS = "GET /v1/sources/src_1/runs"
START = "POST /v1/sources/src_1/runs"
CATALOGUE = "GET /v1/catalogue"
PUBLISH = "POST /v1/catalogue/publish"


class FakeService:
    """Service that sends the given responses of each address in order and repeats the last one."""

    def __init__(self, answers: Mapping[str, Sequence[StubResponse]]) -> None:
        self._answers = {key: list(given) for key, given in answers.items()}
        self.requests: list[tuple[str, Mapping[str, str]]] = []

    async def _respond(self, request: web.Request) -> web.Response:
        key = f"{request.method} {request.path}"
        self.requests.append((key, request.headers))
        left = self._answers[key]
        status, body, *headers = left.pop(0) if len(left) > 1 else left[0]
        return web.json_response(body, status=status, headers=headers[0] if headers else None)

    def run_with_api(self, use: Callable[[DemoApi], Awaitable[Any]]) -> Any:
        """Return the result of `use` with an API client of this service."""

        async def run() -> Any:
            app, port = web.Application(), find_free_port()
            app.router.add_route("*", "/{path:.*}", self._respond)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", port).start()
            try:
                async with ClientSession() as session:
                    return await use(DemoApi(session, f"http://127.0.0.1:{port}/", "svc_live_x"))
            finally:
                await runner.cleanup()

        return asyncio.run(run())


def build_run(status: str, id: str = "run_1", **more: Any) -> dict[str, Any]:
    return {"id": id, "stream": "catalogue", "status": status, "stage": "parse", "stats": {}, "problems": []} | more


def test_requests_to_a_busy_service_are_retried() -> None:
    service = FakeService(
        {"GET /v1/org": [(429, {}, {"Retry-After": "0"}), (503, {}, {"Retry-After": "0"}), (200, {"id": 1})]}
    )
    assert service.run_with_api(lambda api: api.get("/v1/org")) == {"id": 1}
    assert {headers["Authorization"] for _, headers in service.requests} == {"Bearer svc_live_x"}


def test_refusals_include_the_reason() -> None:
    wrong = {"detail": "x", "errors": [{"field": "config.url", "detail": "Port 9 is not reached."}]}
    service = FakeService({"PATCH /v1/sources/src_1": [(400, wrong)], "GET /v1/org": [(401, {"detail": "no"})]})
    with pytest.raises(DemoError, match=r"config\.url: Port 9 is not reached"):
        service.run_with_api(lambda api: api.patch("/v1/sources/src_1", {}))
    with pytest.raises(ApiKeyRejected):
        service.run_with_api(lambda api: api.get("/v1/org"))
    assert service.requests[0][1]["If-Match"] == "*"


def start_or_resume(runs: Sequence[Any]) -> tuple[FollowedRun, FakeService]:
    service = FakeService({RUNS: [(200, {"data": list(runs)})], START: [(202, build_run("queued", "run_new"))]})
    reading = service.run_with_api(lambda api: start(FollowedRun(api, "Lindgren", "src_1")))
    return reading, service


async def start(followed: FollowedRun) -> FollowedRun:
    await followed.start_or_resume()
    return followed


def start_publication(catalogue: Mapping[str, Any]) -> str:
    """Return the ID of the publication run that is selected or started."""
    service = FakeService({CATALOGUE: [(200, catalogue)], PUBLISH: [(202, {"id": "pub_new"})]})
    followed = service.run_with_api(lambda api: start(FollowedPublication(api, "Lindgren")))
    return str(followed.run["id"])


def test_a_catalogue_is_published_once() -> None:
    def select(kind: str, status: str) -> str:
        return start_publication({"last_run": {"id": "pub_1", "kind": kind, "status": status}})

    assert start_publication({}) == select("publish", "failed") == "pub_new"
    assert {select("publish", "running"), select("publish", "succeeded"), select("withdraw", "succeeded")} == {"pub_1"}


def test_a_publication_is_followed_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PAUSE", 0)
    end = {"id": "pub_1", "status": "succeeded", "progress": {"done": 120, "total": 120}}
    service, out = FakeService({"GET /v1/catalogue/publication-runs/pub_1": [(200, end)]}), io.StringIO()
    queued = end | {"status": "queued", "progress": {"done": 0, "total": 120}}
    service.run_with_api(lambda api: follow_runs([FollowedPublication(api, "Lindgren", run=queued)], out))
    first, last = out.getvalue().splitlines()
    assert first.split()[1:] == "queued 0 of 120 products published".split()
    assert last.split()[1:] == "succeeded 120 of 120 products published".split()


def test_the_first_start_starts_one_run() -> None:
    reading, service = start_or_resume([])
    assert reading.run["id"] == "run_new"
    assert service.requests[-1][1]["Idempotency-Key"] == "demo-run-src_1-catalogue-0"


def test_a_later_start_resumes_the_last_run() -> None:
    whole = build_run("succeeded", "run_whole", stats={"rows": 9})
    unchanged = build_run("succeeded", "run_same", stats={"unchanged_feed": 1})
    assert start_or_resume([whole])[0].run["id"] == "run_whole"
    assert start_or_resume([unchanged, whole])[0].run["id"] == "run_whole"
    assert start_or_resume([unchanged])[0].run["id"] == "run_same"
    assert start_or_resume([build_run("running", "run_open"), whole])[0].run["id"] == "run_open"
    assert start_or_resume([build_run("failed"), whole])[0].run["id"] == "run_new"
    assert start_or_resume([build_run("succeeded", stream="stock")])[0].run["id"] == "run_new"


def test_runs_are_followed_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PAUSE", 0)
    end = build_run("succeeded", stats={"rows": 12, "products_created": 4})
    service = FakeService({"GET /v1/runs/run_1": [(200, build_run("running")), (200, end)]})
    out = io.StringIO()

    async def follow(api: DemoApi) -> FollowedRun:
        reading = FollowedRun(api, "Lindgren", "src_1", run=build_run("queued"))
        await follow_runs([reading], out)
        return reading

    assert service.run_with_api(follow).run == end
    assert [line.split()[1] for line in out.getvalue().splitlines()] == ["queued", "parse", "succeeded"]


def test_a_stuck_run_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(client, "_PAUSE", 0.02)
    service = FakeService({"GET /v1/runs/run_1": [(200, build_run("queued"))]})
    queued = build_run("queued")
    with pytest.raises(DemoError, match="worker.log"):
        service.run_with_api(
            lambda api: follow_runs([FollowedRun(api, "Lindgren", "src_1", run=queued)], io.StringIO())
        )
