"""The stream of changes over the whole edge (docs/conventions.md#stream; WHATWG HTML, Server-sent events)."""

import asyncio
import json
from datetime import timedelta
from time import monotonic

import pytest
import pytest_asyncio

from adapters.postgres.nodes.pool import Pool
from domain.access.ports import KeyStore
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from entrypoints.http import execute as open_streams
from entrypoints.http import fast_path as lane
from entrypoints.operations import event_stream
from tests.http.client import Client
from tests.http.fakes import OPERATOR, World
from tests.http.streams import opened
from tests.http.test_changes import Log, ids, place
from tests.support.log_changes import delete_events, raise_low_watermark

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def client(world: World) -> Client:
    """A client of Elm, whose plan has the stream."""
    return await world.client("Elm")


@pytest_asyncio.fixture
async def log(world: World) -> Log:
    """Elm's live log."""
    return Log(world, "Elm")


async def test_events_come_as_they_are_written(client: Client, log: Log) -> None:
    await log.write(2)
    async with opened(client) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-cache, no-transform"
        assert stream.headers["x-accel-buffering"] == "no"
        assert {"etag", "content-length"}.isdisjoint(stream.headers)
        assert stream.reader.retry is not None and 1000 <= stream.reader.retry <= 4000
        written = await log.write(3)
        events = await stream.next(3)
        assert [event.json()["id"] for event in events] == written
        assert {event.type for event in events} == {"source.degraded"}
        since = await client.get(f"/v1/changes?cursor={stream.headers['service-stream-from']}")
        assert since.json()["data"] == [event.json() for event in events]
        assert ids(await client.get(f"/v1/changes?cursor={events[1].id}")) == written[2:]


async def test_resuming(world: World, client: Client, log: Log) -> None:
    start = (await client.get("/v1/changes?cursor=now")).json()["next_cursor"]
    written = await log.write(250)
    async with opened(client, f"/v1/stream?cursor={start}") as stream:
        assert place(world, log, stream.headers["service-stream-from"]) == place(world, log, start)
        events = await stream.next(250)
        assert [event.json()["id"] for event in events] == written
    async with opened(client, f"/v1/stream?cursor={start}", last_event_id=events[99].id) as stream:
        assert place(world, log, stream.headers["service-stream-from"]) == place(world, log, events[99].id)
        more = await log.write(2)
        assert [event.json()["id"] for event in await stream.next(152)] == [*written[100:], *more]


async def test_filters(client: Client, log: Log) -> None:
    cat = new_id("cat")
    async with opened(client, f"/v1/stream?types=source.blocked&catalogues={cat}") as stream:
        await log.write(3, catalogue=cat)
        await log.write(3, type="source.blocked")
        wanted = await log.write(1, type="source.blocked", catalogue=cat)
        assert [event.json()["id"] for event in await stream.next()] == wanted


async def test_no_tenant_receives_events_of_another(world: World, client: Client, log: Log) -> None:
    async with opened(client) as stream:
        await Log(world, "Oak").write(3)
        await Log(world, "Elm", livemode=False).write(3)
        written = await log.write()
        assert [event.json()["id"] for event in await stream.next()] == written


async def test_refusals(world: World, client: Client, log: Log) -> None:
    cursor = (await client.get("/v1/changes")).json()["next_cursor"]
    assert (await client.get("/v1/stream?cursor=x")).faults == {("query.cursor", "invalid_cursor")}
    assert (await client.get("/v1/stream", last_event_id="x")).faults == {("header.Last-Event-ID", "invalid_cursor")}
    assert (await client.get("/v1/stream?types=x")).faults == {("query.types.0", "invalid_value")}
    sandbox = await world.client("Elm", livemode=False)
    assert (await sandbox.get("/v1/stream", last_event_id=cursor)).status == 400
    answer = await (await world.client("Fjord")).get("/v1/stream")
    assert (answer.status, answer.code) == (403, "feature_unavailable")
    await log.write(3)
    await raise_low_watermark(world.dependencies[Pool], log.tenant, 2)
    await world.app.asgi_app._pipeline.services["changes"].changes.find_end(log.tenant)
    answer = await client.get("/v1/stream", last_event_id=cursor)
    assert (answer.status, answer.code) == (410, "cursor_expired")


async def test_head_opens_nothing(world: World, client: Client) -> None:
    answer = await client.send("HEAD", "/v1/stream")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"] == "text/event-stream" and "content-length" not in answer.headers
    assert len(world.app.asgi_app._pipeline.streams) == 0


async def test_connections_are_budgeted(world: World, client: Client) -> None:
    for _ in range(20):
        assert (await client.get("/v1/stream")).status == 200
    answer = await client.get("/v1/stream")
    assert (answer.status, answer.code) == (429, "rate_limited")
    assert answer.headers["ratelimit-policy"] == '"high.stream";q=20;w=4'


async def test_an_organisation_waits_only_so_often(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.app.asgi_app._pipeline.waiting_requests, "max_per_key", 2)
    mine, others = await world.client("Elm"), await world.client()
    async with opened(mine), opened(mine):
        refused = await mine.get("/v1/stream")
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "1")
        assert (await mine.get("/v1/changes?cursor=now&wait=5")).status == 429
        assert (await mine.get("/v1/changes?cursor=now")).status == 200
        assert (await others.get("/v1/changes?cursor=now&wait=0")).status == 200
        async with opened(others):
            pass
    async with opened(mine):
        pass


async def test_a_client_that_goes_away_leaves_nothing_behind(world: World, client: Client) -> None:
    pipeline = world.app.asgi_app._pipeline
    async with opened(client), opened(client):
        assert len(pipeline.streams) == 2
        assert pipeline.pressure.in_flight == 0
    assert len(pipeline.streams) == 0
    assert pipeline.services["changes"].changes.tailer._channels == {}


async def test_heartbeats_also_while_filtered_events_go_by(
    client: Client, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.2)
    async with opened(client, "/v1/stream?types=offer.changed") as stream:
        before = stream.reader.comments
        for _ in range(20):
            await log.write()
            await asyncio.sleep(0.05)
        await stream.until(lambda: stream.reader.comments >= before + 3)
        assert await stream.next(0) == [] and b"\n\n" not in stream.body


async def _ended(world: World, client: Client, log: Log, reason: str, make: object) -> None:
    async with opened(client) as stream:
        await log.write()
        [event] = await stream.next()
        await make()  # type: ignore[operator]
        *_, last = await stream.end()
        assert last.type == "stream.end"
        assert last.json() == {"reason": reason, "cursor": last.id}
        written = await log.write(2)
        assert ids(await client.get(f"/v1/changes?cursor={event.id}"))[-2:] == written
        assert stream.reader.last_id == last.id


async def test_stopping_ends_streams(world: World, client: Client, log: Log) -> None:
    async def stop() -> None:
        world.app.asgi_app._pipeline.services["changes"].changes.tailer.close()

    await _ended(world, client, log, "shutdown", stop)


async def test_a_stream_does_not_last_for_ever(world: World, client: Client, log: Log) -> None:
    world.app.asgi_app._pipeline.streams._lifetime = (0.3, 0.4)

    async def wait() -> None:
        await asyncio.sleep(0)

    await _ended(world, client, log, "lifetime", wait)


async def test_a_revoked_key_ends_its_streams(world: World, log: Log) -> None:
    key, secret = await world.key(world.orgs["Elm"])
    other = await world.client("Elm")
    async with opened(Client(world.app, secret)) as stream, opened(other) as unharmed:
        async with world.uow.begin(Tenant(world.orgs["Elm"].id, True), OPERATOR) as tx:
            assert await tx[KeyStore].revoke(key.id)
        [last] = await stream.end(within=5)
        assert last.json()["reason"] == "credential"
        written = await log.write()
        assert [event.json()["id"] for event in await unharmed.next()] == written


async def test_an_expired_key_ends_its_streams(world: World, log: Log) -> None:
    _, secret = await world.key(world.orgs["Elm"], expires_at=world.clock.now() + timedelta(minutes=1))
    async with opened(Client(world.app, secret)) as stream:
        world.clock.advance(timedelta(minutes=2))
        [last] = await stream.end(within=5)
        assert last.json()["reason"] == "credential"


async def test_what_a_key_loses_ends_its_streams(world: World, client: Client) -> None:
    key, secret = await world.key(world.orgs["Elm"])
    async with opened(Client(world.app, secret)) as stream:
        world.credentials.lost.add(key.id)
        [last] = await stream.end(within=5)
        assert last.json()["reason"] == "credential"


async def test_one_statement_looks_after_all_streams_and_only_while_there_are_any(world: World) -> None:
    clients = [await world.client("Elm") for _ in range(3)]
    async with opened(clients[0]), opened(clients[1]), opened(clients[2]):
        lookups, began = world.credentials.looked, monotonic()
        await asyncio.sleep(open_streams.CREDENTIAL_CHECK_SECONDS * 2.5)
        assert (
            1 <= world.credentials.looked - lookups <= 1 + (monotonic() - began) / open_streams.CREDENTIAL_CHECK_SECONDS
        )
    await asyncio.sleep(open_streams.CREDENTIAL_CHECK_SECONDS * 1.5)
    lookups = world.credentials.looked
    await asyncio.sleep(open_streams.CREDENTIAL_CHECK_SECONDS * 1.5)
    assert world.credentials.looked == lookups


async def test_an_outage_of_the_store_ends_no_stream(world: World, client: Client, log: Log) -> None:
    async with opened(client) as stream:
        world.credentials.down = True
        await asyncio.sleep(open_streams.CREDENTIAL_CHECK_SECONDS * 2.5)
        written = await log.write()
        assert [event.json()["id"] for event in await stream.next()] == written


async def test_a_slow_consumer_is_disconnected_with_retry(world: World, client: Client, log: Log) -> None:
    world.app.asgi_app._pipeline.services["changes"].changes.tailer._max_waiting = 50
    async with opened(client) as stream:
        written = await log.write(2)
        await stream.next(2)
        stream.blocked.clear()
        for _ in range(30):
            written += await log.write(10)
            await asyncio.sleep(0.01)
        stream.blocked.set()
        *events, last = await stream.end()
        assert last.json()["reason"] == "slow_consumer"
    seen = written[:2] + [event.json()["id"] for event in events]
    async with opened(client, last_event_id=stream.reader.last_id) as stream:
        seen += [event.json()["id"] for event in await stream.next(len(written) - len(seen))]
    assert seen == written


async def test_a_client_that_reads_nothing_is_disconnected(
    world: World, client: Client, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "MAX_SEND_SECONDS", 0.3)
    pipeline = world.app.asgi_app._pipeline
    async with opened(client) as stream:
        stream.blocked.clear()
        await log.write()
        async with asyncio.timeout(10):
            while len(pipeline.streams):
                await asyncio.sleep(0.02)
        stream.blocked.set()


async def test_a_log_that_goes_back_in_time_ends_its_streams(
    world: World, client: Client, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.app.asgi_app._pipeline.services["changes"].changes.tailer, "_idle", 0.1)
    async with opened(client) as stream:
        await log.write(3)
        await stream.next(3)
        await delete_events(world.dependencies[Pool], log.tenant, 2)
        world.clock.advance(timedelta(seconds=1))
        await log.write(2)
        [last] = await stream.end(within=10)
        assert last.json()["reason"] == "cursor_expired"
    answer = await client.get("/v1/stream", last_event_id=stream.reader.last_id)
    assert (answer.status, answer.code) == (410, "cursor_expired")


async def test_the_data_is_the_events_own_bytes(client: Client, log: Log) -> None:
    async with opened(client) as stream:
        await log.write(1, data={"text": "two\nlines \u2028 and ümlaut"})
        [event] = await stream.next()
        assert event.json() == (await client.get("/v1/changes")).json()["data"][0]
        assert json.loads(event.data)["data"]["text"] == "two\nlines \u2028 and ümlaut"
