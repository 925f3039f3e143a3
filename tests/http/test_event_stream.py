"""Event stream over HTTP (docs/conventions.md#stream; WHATWG HTML, Server-sent events)."""

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
from tests.http.application import OPERATOR, ApplicationHarness
from tests.http.client import Client
from tests.http.streams import open_stream
from tests.http.test_change_feed import EventWriter, read_ids, read_positions
from tests.support.log_changes import delete_events, raise_low_watermark

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def client(application: ApplicationHarness) -> Client:
    """Create a client of Elm, whose plan includes the stream."""
    return await application.create_client("Elm")


@pytest_asyncio.fixture
async def log(application: ApplicationHarness) -> EventWriter:
    """Create a writer of Elm's live log."""
    return EventWriter(application, "Elm")


async def test_events_are_streamed_as_written(client: Client, log: EventWriter) -> None:
    await log.write(2)
    async with open_stream(client) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-cache, no-transform"
        assert stream.headers["x-accel-buffering"] == "no"
        assert {"etag", "content-length"}.isdisjoint(stream.headers)
        assert stream.parser.retry is not None and 1000 <= stream.parser.retry <= 4000
        written = await log.write(3)
        events = await stream.read_events(3)
        assert [event.json()["id"] for event in events] == written
        assert {event.type for event in events} == {"source.degraded"}
        since = await client.get(f"/v1/changes?cursor={stream.headers['service-stream-from']}")
        assert since.json()["data"] == [event.json() for event in events]
        assert read_ids(await client.get(f"/v1/changes?cursor={events[1].id}")) == written[2:]


async def test_resuming(application: ApplicationHarness, client: Client, log: EventWriter) -> None:
    start = (await client.get("/v1/changes?cursor=now")).json()["next_cursor"]
    written = await log.write(250)
    async with open_stream(client, f"/v1/stream?cursor={start}") as stream:
        assert read_positions(application, log, stream.headers["service-stream-from"]) == read_positions(
            application, log, start
        )
        events = await stream.read_events(250)
        assert [event.json()["id"] for event in events] == written
    async with open_stream(client, f"/v1/stream?cursor={start}", last_event_id=events[99].id) as stream:
        assert read_positions(application, log, stream.headers["service-stream-from"]) == read_positions(
            application, log, events[99].id
        )
        more = await log.write(2)
        assert [event.json()["id"] for event in await stream.read_events(152)] == [*written[100:], *more]


async def test_filters(client: Client, log: EventWriter) -> None:
    cat = new_id("cat")
    async with open_stream(client, f"/v1/stream?types=source.blocked&catalogues={cat}") as stream:
        await log.write(3, catalogue=cat)
        await log.write(3, type="source.blocked")
        wanted = await log.write(1, type="source.blocked", catalogue=cat)
        assert [event.json()["id"] for event in await stream.read_events()] == wanted


async def test_no_tenant_receives_events_of_another(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    async with open_stream(client) as stream:
        await EventWriter(application, "Oak").write(3)
        await EventWriter(application, "Elm", livemode=False).write(3)
        written = await log.write()
        assert [event.json()["id"] for event in await stream.read_events()] == written


async def test_refusals(application: ApplicationHarness, client: Client, log: EventWriter) -> None:
    cursor = (await client.get("/v1/changes")).json()["next_cursor"]
    assert (await client.get("/v1/stream?cursor=x")).faults == {("query.cursor", "invalid_cursor")}
    assert (await client.get("/v1/stream", last_event_id="x")).faults == {("header.Last-Event-ID", "invalid_cursor")}
    assert (await client.get("/v1/stream?types=x")).faults == {("query.types.0", "invalid_value")}
    sandbox = await application.create_client("Elm", livemode=False)
    assert (await sandbox.get("/v1/stream", last_event_id=cursor)).status == 400
    response = await (await application.create_client("Fjord")).get("/v1/stream")
    assert (response.status, response.code) == (403, "feature_unavailable")
    await log.write(3)
    await raise_low_watermark(application.dependencies[Pool], log.tenant, 2)
    await application.app.asgi_app._pipeline.services["changes"].changes.find_end(log.tenant)
    response = await client.get("/v1/stream", last_event_id=cursor)
    assert (response.status, response.code) == (410, "cursor_expired")


async def test_head_opens_nothing(application: ApplicationHarness, client: Client) -> None:
    response = await client.send("HEAD", "/v1/stream")
    assert (response.status, response.body) == (200, b"")
    assert response.headers["content-type"] == "text/event-stream" and "content-length" not in response.headers
    assert len(application.app.asgi_app._pipeline.streams) == 0


async def test_connections_are_rate_limited(application: ApplicationHarness, client: Client) -> None:
    for _ in range(20):
        assert (await client.get("/v1/stream")).status == 200
    response = await client.get("/v1/stream")
    assert (response.status, response.code) == (429, "rate_limited")
    assert response.headers["ratelimit-policy"] == '"high.stream";q=20;w=4'


async def test_waiting_requests_of_an_organisation_are_limited(
    application: ApplicationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application.app.asgi_app._pipeline.waiting_requests, "max_per_key", 2)
    mine, others = await application.create_client("Elm"), await application.create_client()
    async with open_stream(mine), open_stream(mine):
        refused = await mine.get("/v1/stream")
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "1")
        assert (await mine.get("/v1/changes?cursor=now&wait=5")).status == 429
        assert (await mine.get("/v1/changes?cursor=now")).status == 200
        assert (await others.get("/v1/changes?cursor=now&wait=0")).status == 200
        async with open_stream(others):
            pass
    async with open_stream(mine):
        pass


async def test_a_disconnected_client_leaves_no_resources(application: ApplicationHarness, client: Client) -> None:
    pipeline = application.app.asgi_app._pipeline
    async with open_stream(client), open_stream(client):
        assert len(pipeline.streams) == 2
        assert pipeline.pressure.in_flight == 0
    assert len(pipeline.streams) == 0
    assert pipeline.services["changes"].changes.tailer._channels == {}


async def test_heartbeats_are_sent_while_events_are_filtered(
    client: Client, log: EventWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.2)
    async with open_stream(client, "/v1/stream?types=offer.changed") as stream:
        before = stream.parser.comments
        for _ in range(20):
            await log.write()
            await asyncio.sleep(0.05)
        await stream.wait_until(lambda: stream.parser.comments >= before + 3)
        assert await stream.read_events(0) == [] and b"\n\n" not in stream.body


async def _check_end(
    application: ApplicationHarness, client: Client, log: EventWriter, reason: str, make: object
) -> None:
    async with open_stream(client) as stream:
        await log.write()
        [event] = await stream.read_events()
        await make()  # type: ignore[operator]
        *_, last = await stream.read_to_end()
        assert last.type == "stream.end"
        assert last.json() == {"reason": reason, "cursor": last.id}
        written = await log.write(2)
        assert read_ids(await client.get(f"/v1/changes?cursor={event.id}"))[-2:] == written
        assert stream.parser.last_id == last.id


async def test_shutdown_ends_streams(application: ApplicationHarness, client: Client, log: EventWriter) -> None:
    async def stop() -> None:
        application.app.asgi_app._pipeline.services["changes"].changes.tailer.close()

    await _check_end(application, client, log, "shutdown", stop)


async def test_a_stream_has_a_maximum_duration(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    application.app.asgi_app._pipeline.streams._lifetime = (0.3, 0.4)

    async def wait() -> None:
        await asyncio.sleep(0)

    await _check_end(application, client, log, "lifetime", wait)


async def test_a_revoked_key_ends_its_streams(application: ApplicationHarness, log: EventWriter) -> None:
    key, secret = await application.create_key(application.orgs["Elm"])
    other = await application.create_client("Elm")
    async with open_stream(Client(application.app, secret)) as stream, open_stream(other) as unharmed:
        async with application.uow.begin(Tenant(application.orgs["Elm"].id, True), OPERATOR) as tx:
            assert await tx[KeyStore].revoke(key.id)
        [last] = await stream.read_to_end(within=5)
        assert last.json()["reason"] == "credential"
        written = await log.write()
        assert [event.json()["id"] for event in await unharmed.read_events()] == written


async def test_an_expired_key_ends_its_streams(application: ApplicationHarness, log: EventWriter) -> None:
    _, secret = await application.create_key(
        application.orgs["Elm"], expires_at=application.clock.now() + timedelta(minutes=1)
    )
    async with open_stream(Client(application.app, secret)) as stream:
        application.clock.advance(timedelta(minutes=2))
        [last] = await stream.read_to_end(within=5)
        assert last.json()["reason"] == "credential"


async def test_lost_permissions_end_streams(application: ApplicationHarness, client: Client) -> None:
    key, secret = await application.create_key(application.orgs["Elm"])
    async with open_stream(Client(application.app, secret)) as stream:
        application.credentials.lost.add(key.id)
        [last] = await stream.read_to_end(within=5)
        assert last.json()["reason"] == "credential"


async def test_one_statement_checks_all_open_streams(
    application: ApplicationHarness,
) -> None:
    clients = [await application.create_client("Elm") for _ in range(3)]
    async with open_stream(clients[0]), open_stream(clients[1]), open_stream(clients[2]):
        lookups, began = application.credentials.lookups, monotonic()
        await asyncio.sleep(open_streams.CREDENTIAL_CHECK_SECONDS * 2.5)
        assert (
            1
            <= application.credentials.lookups - lookups
            <= 1 + (monotonic() - began) / open_streams.CREDENTIAL_CHECK_SECONDS
        )
    await asyncio.sleep(open_streams.CREDENTIAL_CHECK_SECONDS * 1.5)
    lookups = application.credentials.lookups
    await asyncio.sleep(open_streams.CREDENTIAL_CHECK_SECONDS * 1.5)
    assert application.credentials.lookups == lookups


async def test_a_database_outage_ends_no_stream(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    async with open_stream(client) as stream:
        application.credentials.down = True
        await asyncio.sleep(open_streams.CREDENTIAL_CHECK_SECONDS * 2.5)
        written = await log.write()
        assert [event.json()["id"] for event in await stream.read_events()] == written


async def test_a_slow_consumer_is_disconnected_with_retry(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    application.app.asgi_app._pipeline.services["changes"].changes.tailer._max_waiting = 50
    async with open_stream(client) as stream:
        written = await log.write(2)
        await stream.read_events(2)
        stream.writable.clear()
        for _ in range(30):
            written += await log.write(10)
            await asyncio.sleep(0.01)
        stream.writable.set()
        *events, last = await stream.read_to_end()
        assert last.json()["reason"] == "slow_consumer"
    seen = written[:2] + [event.json()["id"] for event in events]
    async with open_stream(client, last_event_id=stream.parser.last_id) as stream:
        seen += [event.json()["id"] for event in await stream.read_events(len(written) - len(seen))]
    assert seen == written


async def test_a_client_that_reads_nothing_is_disconnected(
    application: ApplicationHarness, client: Client, log: EventWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "MAX_SEND_SECONDS", 0.3)
    pipeline = application.app.asgi_app._pipeline
    async with open_stream(client) as stream:
        stream.writable.clear()
        await log.write()
        async with asyncio.timeout(10):
            while len(pipeline.streams):
                await asyncio.sleep(0.02)
        stream.writable.set()


async def test_restoring_a_log_ends_its_streams(
    application: ApplicationHarness, client: Client, log: EventWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application.app.asgi_app._pipeline.services["changes"].changes.tailer, "_idle", 0.1)
    async with open_stream(client) as stream:
        await log.write(3)
        await stream.read_events(3)
        await delete_events(application.dependencies[Pool], log.tenant, 2)
        application.clock.advance(timedelta(seconds=1))
        await log.write(2)
        [last] = await stream.read_to_end(within=10)
        assert last.json()["reason"] == "cursor_expired"
    response = await client.get("/v1/stream", last_event_id=stream.parser.last_id)
    assert (response.status, response.code) == (410, "cursor_expired")


async def test_the_data_equals_the_stored_event(client: Client, log: EventWriter) -> None:
    async with open_stream(client) as stream:
        await log.write(1, data={"text": "two\nlines \u2028 and ümlaut"})
        [event] = await stream.read_events()
        assert event.json() == (await client.get("/v1/changes")).json()["data"][0]
        assert json.loads(event.data)["data"]["text"] == "two\nlines \u2028 and ümlaut"
