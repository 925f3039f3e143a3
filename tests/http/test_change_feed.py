"""Change feed over HTTP: pages, cursors, filters, long polls (docs/conventions.md#change-feed)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator

from adapters.api_json import changes as wire
from adapters.api_json.cursors import CursorSigner, FeedCursorSigner, build_cursor_context
from adapters.postgres.nodes.pool import Pool
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from ports.signals import Signals
from tests.http.application import OPERATOR, ApplicationHarness
from tests.http.client import Client, Response
from tests.support import builders
from tests.support.log_changes import delete_events, grant_licence, raise_low_watermark
from tests.support.network import relay_events

pytestmark = pytest.mark.asyncio


class EventWriter:
    """Writes events of one tenant."""

    def __init__(self, application: ApplicationHarness, name: str = "Fjord", *, livemode: bool = True) -> None:
        self.application = application
        self.tenant = Tenant(application.orgs[name].id, livemode)

    async def write(self, count: int = 1, **changes: Any) -> list[str]:
        """Write that many events in one transaction; return their IDs."""
        events = [builders.event(new_id("src"), **changes) for _ in range(count)]
        async with self.application.uow.begin(self.tenant, OPERATOR) as tx:
            await tx[EventLog].append(events)
        return [event.id for event in events]


@pytest_asyncio.fixture
async def log(application: ApplicationHarness) -> EventWriter:
    """Create a writer of Fjord's live log."""
    return EventWriter(application)


def read_ids(response: Response) -> list[str]:
    """Return the IDs of the events on a page."""
    assert response.status == 200, response.body
    return [event["id"] for event in response.json()["data"]]


def read_positions(application: ApplicationHarness, log: EventWriter, cursor: str) -> tuple[int, int]:
    """Return a cursor's positions in its own log and in the network log."""
    opened = application.dependencies[FeedCursorSigner].verify(log.tenant, cursor)
    return opened.own.position, opened.network.position


async def test_a_page_fits_its_schema(client: Client, log: EventWriter) -> None:
    written = await log.write(3)
    response = await client.get("/v1/changes")
    page = response.json()
    Draft202012Validator(wire.CHANGE_PAGE).validate(page)
    assert read_ids(response) == written
    assert (page["object"], page["caught_up"]) == ("change_page", True)
    assert set(page) == {"object", "data", "next_cursor", "caught_up"}
    assert page["data"][0]["tenant_id"] == log.tenant.org and page["data"][0]["livemode"] is True


async def test_pages_contain_every_event_once_in_order(client: Client, log: EventWriter) -> None:
    written = await log.write(25)
    seen, cursor, caught_up = [], "", False
    while not caught_up:
        response = await client.get(f"/v1/changes?limit=10{cursor}")
        seen += read_ids(response)
        caught_up = response.json()["caught_up"]
        cursor = "&cursor=" + response.json()["next_cursor"]
    assert seen == written
    written = await log.write(2)
    assert read_ids(await client.get("/v1/changes?limit=10" + cursor)) == written


async def test_an_empty_log_is_caught_up_and_has_a_cursor(client: Client, log: EventWriter) -> None:
    page = (await client.get("/v1/changes")).json()
    assert (page["data"], page["caught_up"]) == ([], True)
    written = await log.write()
    assert read_ids(await client.get(f"/v1/changes?cursor={page['next_cursor']}")) == written


async def test_the_cursor_now_follows_the_newest_event(client: Client, log: EventWriter) -> None:
    await log.write(3)
    page = (await client.get("/v1/changes?cursor=now")).json()
    assert (page["data"], page["caught_up"]) == ([], True)
    written = await log.write()
    assert read_ids(await client.get(f"/v1/changes?cursor={page['next_cursor']}")) == written


async def test_a_cursor_is_valid_with_all_filters(client: Client, log: EventWriter) -> None:
    await log.write()
    cursor = (await client.get("/v1/changes?types=offer.changed")).json()["next_cursor"]
    assert cursor == (await client.get("/v1/changes")).json()["next_cursor"]
    assert (await client.get(f"/v1/changes?types=source.blocked&cursor={cursor}")).status == 200


async def test_filters(client: Client, log: EventWriter) -> None:
    cat, other = new_id("cat"), new_id("cat")
    degraded = await log.write(catalogue=cat)
    blocked = await log.write(type="source.blocked", catalogue=cat)
    elsewhere = await log.write(catalogue=other)
    for query, expected in (
        ("types=source.blocked", blocked),
        ("types=source.blocked,source.degraded", [*degraded, *blocked, *elsewhere]),
        (f"catalogues={cat}", [*degraded, *blocked]),
        (f"catalogues={other},{cat}&types=source.degraded", [*degraded, *elsewhere]),
        (f"catalogues={new_id('cat')}", []),
    ):
        response = await client.get(f"/v1/changes?{query}")
        assert read_ids(response) == expected, query
        assert response.json()["caught_up"] is True
        recent = await client.get(f"/v1/changes/recent?{query}")
        assert read_ids(recent) == expected[::-1], query


async def test_webhook_only_events_are_not_on_the_feed(client: Client, log: EventWriter) -> None:
    await log.write(type="credits.low")
    written = await log.write()
    assert read_ids(await client.get("/v1/changes")) == written
    assert read_ids(await client.get("/v1/changes/recent")) == written
    assert (await client.get("/v1/changes?types=credits.low")).faults == {("query.types.0", "invalid_value")}


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("limit=0", ("query.limit", "too_small")),
        ("limit=1001", ("query.limit", "too_large")),
        ("wait=31", ("query.wait", "too_large")),
        ("wait=-1", ("query.wait", "too_small")),
        ("wait=x", ("query.wait", "invalid_type")),
        ("types=nonsense", ("query.types.0", "invalid_value")),
        ("types=", ("query.types", "too_few")),
        ("catalogues=cat_x", ("query.catalogues.0", "invalid_format")),
        ("catalogues=" + ",".join(["cat_" + "0" * 22] * 51), ("query.catalogues", "too_many")),
        ("cursor=", ("query.cursor", "invalid_cursor")),
        ("cursor=nonsense", ("query.cursor", "invalid_cursor")),
        ("cursor=" + "x" * 1025, ("query.cursor", "invalid_cursor")),
        ("starting_after=x", ("query.starting_after", "unknown_field")),
    ],
)
async def test_invalid_parameters_are_refused(client: Client, query: str, fault: tuple[str, str]) -> None:
    response = await client.get(f"/v1/changes?{query}")
    assert (response.status, response.code) == (400, "invalid_request")
    assert fault in response.faults


async def test_cursors_of_other_tenants_are_refused(application: ApplicationHarness, client: Client) -> None:
    cursor = (await client.get("/v1/changes")).json()["next_cursor"]
    for outsider in (await application.create_client("Oak"), await application.create_client(livemode=False)):
        for target in (f"/v1/changes?cursor={cursor}", f"/v1/changes?cursor={cursor}&wait=1"):
            assert (await outsider.get(target)).faults == {("query.cursor", "invalid_cursor")}
    listed = await client.get(f"/v1/changes/recent?starting_after={cursor}")
    assert listed.faults == {("query.starting_after", "invalid_cursor")}


async def test_no_tenant_receives_events_of_another(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    await EventWriter(application, "Oak").write(3)
    await EventWriter(application, livemode=False).write(3)
    written = await log.write(2)
    assert read_ids(await client.get("/v1/changes")) == written
    assert read_ids(await client.get("/v1/changes/recent")) == written[::-1]


async def test_a_cursor_below_the_low_watermark_expires(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    old = (await client.get("/v1/changes?cursor=now")).json()["next_cursor"]
    await log.write(3)
    await raise_low_watermark(application.dependencies[Pool], log.tenant, 2)
    await application.app.asgi_app._pipeline.services["changes"].changes.find_end(log.tenant)
    for target in ("/v1/changes", "/v1/changes?wait=1"):
        response = await client.get(f"{target}{'&' if '?' in target else '?'}cursor={old}")
        assert (response.status, response.code) == (410, "cursor_expired")
        assert "cursor=now" in response.json()["detail"]
    assert len(read_ids(await client.get("/v1/changes"))) == 1


async def _is_expired(client: Client, cursor: str) -> bool:
    """Return whether both reads and long polls reject the cursor as expired."""
    responses = [await client.get(f"/v1/changes?cursor={cursor}{wait}") for wait in ("", "&wait=1")]
    assert {response.status for response in responses} in ({200}, {410})
    return responses[0].status == 410 and {response.code for response in responses} == {"cursor_expired"}


async def test_cursors_expire_when_the_log_is_restored(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    """Lost events, events written since, and cursors issued before the restore was noticed."""
    await log.write(3)
    cursors = [(await client.get(f"/v1/changes?limit={limit}")).json()["next_cursor"] for limit in (1, 2, 3)]
    await delete_events(application.dependencies[Pool], log.tenant, 2)
    application.clock.advance(timedelta(seconds=1))
    await log.write(1)
    assert [await _is_expired(client, cursor) for cursor in cursors[:2]] == [False, True]
    assert await _is_expired(client, cursors[2]), "beyond the end: everybody is to learn of it"
    await log.write(5)
    assert [await _is_expired(client, cursor) for cursor in cursors] == [True, True, True]
    fresh = (await client.get("/v1/changes")).json()
    assert len(fresh["data"]) == 7 and not await _is_expired(client, fresh["next_cursor"])


async def test_a_cursor_with_only_a_position_remains_valid(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    """The first cursors had this format."""
    written = await log.write(3)
    old = CursorSigner(application.keys.cursor_keys).sign(build_cursor_context("changes", log.tenant, {}, {}), "2")
    response = await client.get(f"/v1/changes?cursor={old}")
    assert read_ids(response) == written[2:]
    assert read_ids(await client.get(f"/v1/changes?cursor={response.json()['next_cursor']}")) == []


async def test_licensed_events_are_paged_with_own_events(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    oak, catalogue = EventWriter(application, "Oak"), new_id("cat")
    await grant_licence(application.dependencies[Pool], oak.tenant, catalogue, log.tenant.org)
    made = [await log.write()]
    application.clock.advance(timedelta(seconds=1))
    made.append(await oak.write(2, type="product.updated", catalogue=catalogue, is_published=True))
    await oak.write(catalogue=new_id("cat"), is_published=True)
    await relay_events(application.network, application.dependencies[Signals])
    application.clock.advance(timedelta(seconds=1))
    made.append(await log.write())
    written = [id for part in made for id in part]
    for limit in (1, 2, 3, 100):
        seen, cursor, caught_up = list[str](), "", False
        while not caught_up:
            page = (await client.get(f"/v1/changes?limit={limit}{cursor}")).json()
            seen += [event["id"] for event in page["data"]]
            cursor, caught_up = f"&cursor={page['next_cursor']}", page["caught_up"]
        assert seen == written
    recent = await client.get("/v1/changes/recent")
    assert read_ids(recent) == written[::-1]
    licensed = recent.json()["data"][1]
    assert (licensed["tenant_id"], licensed["livemode"]) == (oak.tenant.org, True)


async def test_conditional(client: Client, log: EventWriter) -> None:
    await log.write()
    response = await client.get("/v1/changes")
    assert (await client.get("/v1/changes", if_none_match=response.headers["etag"])).status == 304
    await log.write()
    assert (await client.get("/v1/changes", if_none_match=response.headers["etag"])).status == 200
    assert (await client.send("HEAD", "/v1/changes")).body == b""


async def test_a_long_poll_ends_with_the_first_event(client: Client, log: EventWriter) -> None:
    cursor = (await client.get("/v1/changes?cursor=now")).json()["next_cursor"]
    waiting = asyncio.create_task(client.get(f"/v1/changes?cursor={cursor}&wait=30"))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    written = await log.write(2)
    response = await asyncio.wait_for(waiting, 10)
    assert read_ids(response) == written
    assert read_ids(await client.get(f"/v1/changes?cursor={response.json()['next_cursor']}")) == []


async def test_a_long_poll_advances_the_cursor_past_filtered_events(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    cursor = (await client.get("/v1/changes?cursor=now")).json()["next_cursor"]
    waiting = asyncio.create_task(client.get(f"/v1/changes?cursor={cursor}&wait=1&types=offer.changed"))
    await asyncio.sleep(0.1)
    await log.write(2)
    page = (await waiting).json()
    assert (page["data"], page["caught_up"]) == ([], True)
    end = (await client.get("/v1/changes")).json()["next_cursor"]
    assert (
        read_positions(application, log, page["next_cursor"])
        == read_positions(application, log, end)
        != read_positions(application, log, cursor)
    )


async def test_long_polls_cause_no_load_shedding(
    application: ApplicationHarness, client: Client, log: EventWriter
) -> None:
    pressure = application.app.asgi_app._pipeline.pressure
    waiting = [asyncio.create_task(client.get("/v1/changes?cursor=now&wait=30")) for _ in range(20)]
    await asyncio.sleep(0.2)
    async with asyncio.timeout(10):
        while pressure.in_flight:
            await asyncio.sleep(0.02)
    await log.write()
    assert all(len(read_ids(response)) == 1 for response in await asyncio.gather(*waiting))
    assert pressure.in_flight == 0


async def test_shutdown_ends_long_polls_immediately(application: ApplicationHarness, client: Client) -> None:
    waiting = asyncio.create_task(client.get("/v1/changes?cursor=now&wait=30"))
    await asyncio.sleep(0.1)
    application.app.asgi_app._pipeline.services["changes"].changes.tailer.close()
    response = await asyncio.wait_for(waiting, 10)
    assert read_ids(response) == []
    assert read_ids(await client.get("/v1/changes?cursor=now&wait=30")) == []


async def test_recent_pages(client: Client, log: EventWriter) -> None:
    written = await log.write(25)
    seen, cursor = [], ""
    for _ in range(3):
        response = await client.get(f"/v1/changes/recent?limit=10{cursor}")
        seen += read_ids(response)
        await log.write()
        cursor = f"&starting_after={response.json()['next_cursor']}"
    assert seen == written[::-1]
    assert response.json()["has_more"] is False and response.json()["next_cursor"] is None
    foreign = await client.get(f"/v1/changes/recent?types=source.blocked{cursor}")
    assert foreign.status == 400
