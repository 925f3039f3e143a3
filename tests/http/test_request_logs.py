"""Request log: content, omissions and writing (docs/conventions.md#request-log)."""

import asyncio

import pytest

from domain.kernel.errors import Conflict
from domain.kernel.tenancy import Actor, Tenant
from domain.request_logs.model import RequestLog
from entrypoints.http import logs as request_log_queue
from entrypoints.http.logs import RequestLogQueue
from tests.http import example_area
from tests.http.application import ApplicationHarness
from tests.http.client import Client
from tests.support.memory.clock import SettableClock

pytestmark = pytest.mark.asyncio


async def _wait_for_flush(application: ApplicationHarness) -> list[RequestLog]:
    await asyncio.sleep(request_log_queue.WRITE_INTERVAL_SECONDS + 0.1)
    logs: list[RequestLog] = application.sink.written
    return logs


async def test_a_request_is_logged(application: ApplicationHarness) -> None:
    key, secret = await application.create_key(application.orgs["Fjord"])
    client = Client(application.app, secret)
    thing = example_area.add_thing(application.orgs["Fjord"].id)
    response = await client.get(f"/v1/things/{thing.id}?", user_agent="acme-sync/1.4")
    entry = (await _wait_for_flush(application))[0]
    assert entry == RequestLog(
        id=response.headers["request-id"],
        tenant=Tenant(application.orgs["Fjord"].id, True),
        method="GET",
        path=f"/v1/things/{thing.id}",
        route="/v1/things/{id}",
        query=None,
        status=200,
        error_code=None,
        duration_ms=entry.duration_ms,
        actor=Actor("api_key", key.id),
        via="api",
        api_version="2026-10-04",
        idempotency_key=None,
        ip="203.0.113.7",
        user_agent="acme-sync/1.4",
        created_at=application.clock.now(),
    )
    assert 0 <= entry.duration_ms < 1000


async def test_refusals_are_logged_but_not_401s(application: ApplicationHarness, client: Client) -> None:
    await application.build_client().get("/v1/things")
    await client.get("/v1/things?limit=0")
    await client.get("/v1/nothing")
    await client.send("PUT", "/v1/things")
    await client.get("/v1/things", service_mode="nonsense")
    await client.post("/v1/owner")
    for _ in range(6):
        await client.post("/v1/heavy")
    example_area.BEHAVIOUR["then"] = RuntimeError("x")
    await client.get("/v1/things/special")
    logs = await _wait_for_flush(application)
    refusals = [(log.status, log.error_code) for log in logs if log.status != 200]
    assert refusals == [
        (400, "invalid_request"),
        (404, "not_found"),
        (405, "method_not_allowed"),
        (400, "invalid_request"),
        (403, "permission_denied"),
        (429, "rate_limited"),
        (500, "internal_error"),
    ]
    assert logs[1].route is None


async def test_replays_are_logged_with_their_code(application: ApplicationHarness, client: Client) -> None:
    example_area.BEHAVIOUR["then"] = Conflict("Busy.")
    for _ in range(2):
        await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")
    logs = await _wait_for_flush(application)
    assert [(log.status, log.error_code, log.idempotency_key) for log in logs] == [(409, "conflict", "k")] * 2


async def test_no_secrets(application: ApplicationHarness, client: Client) -> None:
    _, secret = await application.create_key(application.orgs["Fjord"])
    await client.get(f"/v1/things?token={secret}", user_agent=secret)
    await client.get(f"/v1/{secret}")
    await client.post("/v1/things", {"name": "oak"}, idempotency_key=secret)
    logs = await _wait_for_flush(application)
    assert len(logs) == 3
    assert secret[12:] not in repr(logs)


async def test_list_and_read(application: ApplicationHarness, client: Client) -> None:
    for number in range(5):
        application.clock.advance(example_area.MINUTE)
        await client.get("/v1/things", request_id=f"req_000000000000000000000{number}")
    await _send_other_requests(application)
    await _wait_for_flush(application)
    first = (await client.get("/v1/request-logs?limit=2")).json()
    assert [item["id"][-1] for item in first["data"]] == ["4", "3"]
    second = (await client.get(f"/v1/request-logs?limit=2&starting_after={first['next_cursor']}")).json()
    assert [item["id"][-1] for item in second["data"]] == ["2", "1"]
    back = (await client.get(f"/v1/request-logs?limit=2&ending_before={second['next_cursor']}")).json()
    assert [item["id"][-1] for item in back["data"]] == ["3", "2"]
    one = (await client.get(f"/v1/request-logs/{first['data'][0]['id']}")).json()
    assert one == first["data"][0]
    assert one["object"] == "request_log"
    assert one["actor"]["on_behalf_of"] is None
    assert one["livemode"] is True
    assert (await client.get("/v1/request-logs/req_zzzzzzzzzzzzzzzzzzzzzz")).status == 404
    assert (await (await application.create_client("Oak")).get(f"/v1/request-logs/{one['id']}")).status == 404


async def _send_other_requests(application: ApplicationHarness) -> None:
    """Send requests of another organisation and mode."""
    await (await application.create_client("Oak")).get("/v1/things")
    await (await application.create_client(livemode=False)).get("/v1/things")


async def test_the_newest_of_a_reused_id(application: ApplicationHarness, client: Client) -> None:
    same = "req_0000000000000000000007"
    await client.get("/v1/things", request_id=same)
    application.clock.advance(example_area.MINUTE)
    await client.get("/v1/plans", request_id=same)
    await _wait_for_flush(application)
    assert (await client.get(f"/v1/request-logs/{same}")).json()["path"] == "/v1/plans"


def _build_entry(number: int) -> RequestLog:
    now = SettableClock().now()
    actor = Actor("api_key", "key_1")
    entry = RequestLog(
        "", Tenant("org", True), "GET", "/", None, None, 200, None, 1, actor, "api", "", None, None, None, now
    )
    return entry._replace(id=str(number))


class UnreliableSink:
    """Sink that can fail or be slow."""

    def __init__(self) -> None:
        self.written: list[RequestLog] = []
        self.batches: list[int] = []
        self.failures = 0

    async def write(self, logs: list[RequestLog]) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("down")
        await asyncio.sleep(0)
        self.written += logs
        self.batches.append(len(logs))


async def test_batches_and_the_clean_stop() -> None:
    sink = UnreliableSink()
    queue = RequestLogQueue(sink)  # type: ignore[arg-type]
    await queue.start()
    for number in range(1201):
        queue.put(_build_entry(number))
    await queue.stop()
    assert [entry.id for entry in sink.written] == [str(number) for number in range(1201)]
    assert max(sink.batches) == request_log_queue.BATCH_SIZE
    assert len(queue) == 0


async def test_few_entries_wait_half_a_second_at_most() -> None:
    sink = UnreliableSink()
    queue = RequestLogQueue(sink)  # type: ignore[arg-type]
    await queue.start()
    queue.put(_build_entry(1))
    await asyncio.sleep(0.1)
    queue.put(_build_entry(2))
    assert sink.written == []
    await asyncio.sleep(0.5)
    assert sink.batches == [2]
    await queue.stop()


async def test_entries_added_during_a_write_are_batched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log_queue, "WRITE_INTERVAL_SECONDS", 0.05)

    class Busy(UnreliableSink):
        async def write(self, logs: list[RequestLog]) -> None:
            if not self.batches:
                queue.put(_build_entry(2))
                asyncio.get_running_loop().call_later(0.001, queue.put, _build_entry(3))
            await super().write(logs)

    sink = Busy()
    queue = RequestLogQueue(sink)  # type: ignore[arg-type]
    await queue.start()
    queue.put(_build_entry(1))
    async with asyncio.timeout(10):
        while len(sink.written) < 3:
            await asyncio.sleep(0.01)
    assert sink.batches == [1, 2]
    await queue.stop()


async def test_an_unavailable_store_loses_no_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log_queue, "BACKOFF_SECONDS", (0.01, 0.01))
    sink = UnreliableSink()
    sink.failures = 7
    queue = RequestLogQueue(sink)  # type: ignore[arg-type]
    await queue.start()
    for number in range(700):
        queue.put(_build_entry(number))
    await queue.stop()
    assert [entry.id for entry in sink.written] == [str(number) for number in range(700)]


async def test_entries_of_an_unavailable_node_delay_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log_queue, "DEFERRED_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(request_log_queue, "WRITE_INTERVAL_SECONDS", 0.01)

    class Parted(UnreliableSink):
        away = True

        async def write(self, logs: list[RequestLog]) -> list[RequestLog]:  # type: ignore[override]
            apart = [entry for entry in logs if self.away and int(entry.id) % 2]
            await super().write([entry for entry in logs if entry not in apart])
            return apart

    sink = Parted()
    queue = RequestLogQueue(sink)  # type: ignore[arg-type]
    await queue.start()
    for number in range(6):
        queue.put(_build_entry(number))
    async with asyncio.timeout(10):
        while len(sink.written) < 3:
            await asyncio.sleep(0.01)
    assert [entry.id for entry in sink.written] == ["0", "2", "4"] and len(queue) == 3
    sink.away = False
    async with asyncio.timeout(10):
        while len(sink.written) < 6:
            await asyncio.sleep(0.01)
    assert [entry.id for entry in sink.written] == ["0", "2", "4", "1", "3", "5"]
    await queue.stop()


async def test_entries_of_a_recovered_node_are_written_under_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_log_queue, "DEFERRED_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(request_log_queue, "WRITE_INTERVAL_SECONDS", 0.01)

    class Busy(UnreliableSink):
        number = 1

        async def write(self, logs: list[RequestLog]) -> list[RequestLog]:  # type: ignore[override]
            self.number += 1
            queue.put(_build_entry(self.number))  # the next entry arrives during the write of a batch
            apart = [entry for entry in logs if entry.id == "0" and self.number < 4]
            await super().write([entry for entry in logs if entry not in apart])
            return apart

    sink = Busy()
    queue = RequestLogQueue(sink)  # type: ignore[arg-type]
    await queue.start()
    queue.put(_build_entry(0))
    async with asyncio.timeout(5):
        while "0" not in {entry.id for entry in sink.written}:
            await asyncio.sleep(0.01)


async def test_an_entry_that_the_store_rejects_blocks_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log_queue, "BACKOFF_SECONDS", (0.01,))

    class RefusingSink(UnreliableSink):
        async def write(self, logs: list[RequestLog]) -> None:
            if any(entry.id == "3" for entry in logs):
                raise ValueError("no such characters")
            await super().write(logs)

    sink = RefusingSink()
    queue = RequestLogQueue(sink)  # type: ignore[arg-type]
    await queue.start()
    for number in range(6):
        queue.put(_build_entry(number))
    await queue.stop()
    assert [entry.id for entry in sink.written] == ["0", "1", "2", "4", "5"]
    assert queue.dropped_count == 1


async def test_a_refused_batch_is_divided_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without delay, in about twenty statements for five hundred entries."""
    monkeypatch.setattr(request_log_queue, "BACKOFF_SECONDS", (3600.0,))

    class RefusingSink(UnreliableSink):
        writes = 0

        async def write(self, logs: list[RequestLog]) -> None:
            self.writes += 1
            if any(entry.id == "77" for entry in logs):
                raise ValueError("no such characters")
            await super().write(logs)

    sink = RefusingSink()
    queue = RequestLogQueue(sink)  # type: ignore[arg-type]
    await queue.start()
    for number in range(500):
        queue.put(_build_entry(number))
    await queue.stop()
    assert {int(entry.id) for entry in sink.written} == set(range(500)) - {77} and queue.dropped_count == 1
    assert sink.writes <= 1 + 2 * 9


async def test_back_pressure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log_queue, "DELAY_THRESHOLD", 3)
    monkeypatch.setattr(request_log_queue, "MAX_WAITING_ENTRIES", 5)
    monkeypatch.setattr(request_log_queue, "MAX_DELAY_SECONDS", 0.05)
    queue = RequestLogQueue(UnreliableSink())  # type: ignore[arg-type]
    assert [queue.put(_build_entry(number)) for number in range(3)] == [None] * 3
    waiting = queue.put(_build_entry(3))
    assert waiting is not None
    loop = asyncio.get_running_loop()
    before = loop.time()
    await waiting
    assert 0.04 < loop.time() - before < 0.5
    blocked = queue.put(_build_entry(4))
    assert blocked is not None
    await queue.start()
    await blocked
    await queue.stop()
    assert queue.dropped_count == 0
    for number in range(10):
        if (pending := queue.put(_build_entry(number))) is not None:
            pending.close()  # type: ignore[attr-defined]
    assert queue.dropped_count == 5
