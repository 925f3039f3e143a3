"""Webhook endpoints over HTTP: making, reading, changing, deleting, and what the service does to them."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.catalogue import categories
from domain.events.ports import EventLog
from domain.kernel.ids import is_id, new_id
from domain.sources.ports import SourceStore
from domain.webhooks.ports import WebhookStore
from tests.http.fakes import OPERATOR, plan_of
from tests.http.webhooks import ENDPOINT, PLACE, Desk, desk, key_in
from tests.support import builders

pytestmark = pytest.mark.asyncio
UNKNOWN = f"{PLACE}/whe_0000000000000000000000"


@pytest_asyncio.fixture(name="desk")
async def running_desk() -> AsyncIterator[Desk]:
    """A running application."""
    async with desk() as made:
        yield made


async def _refused(desk: Desk, status: int, fields: Any) -> Any:
    answer = await desk.client.post(PLACE, {**ENDPOINT, **fields})
    assert answer.status == status, answer.body
    return answer


async def _source(desk: Desk) -> str:
    source = builders.source()
    async with desk.world.uow.begin(desk.tenant(), OPERATOR) as tx:
        await tx[SourceStore].add(source)
    return source.id


# Making


async def test_create(desk: Desk) -> None:
    answer = await desk.client.post(PLACE, ENDPOINT)
    made = answer.json()
    assert answer.status == 201
    assert answer.headers["location"].endswith(f"{PLACE}/{made['id']}")
    assert answer.headers["etag"].startswith('"1-')
    assert is_id("whe", made["id"])
    secret = made["secret"]
    assert made == {
        "object": "webhook_endpoint",
        "id": made["id"],
        "livemode": True,
        "url": "https://receiver.example/hooks",
        "event_types": ["offer.changed"],
        "filters": {},
        "payload": "thin",
        "coalesce_seconds": 0,
        "api_version": "2026-10-04",
        "status": "enabled",
        "secret": secret,
        "secret_last4": secret[-4:],
        "version": 1,
        "created_at": "2026-11-20T13:08:00.000Z",
        "updated_at": "2026-11-20T13:08:00.000Z",
    }
    assert len(key_in(secret)) == 32
    assert (await desk.keys(made["id"])) == (key_in(secret),)
    [entry] = await desk.audited(made["id"])
    assert (entry.change.action, entry.context.operation) == ("create", "webhooks.create")
    assert secret not in str(entry)


async def test_create_with_everything(desk: Desk) -> None:
    source, category = await _source(desk), next(iter(categories.category_by_id()))
    filters = {"sources": [source], "categories": [category], "catalogues": [new_id("cat")]}
    fields = {
        "event_types": ["offer.changed", "export.completed"],
        "filters": filters,
        "coalesce_seconds": 300,
        "api_version": "2026-10-01",
        "description": "Prices",
    }
    made = await desk.create(**fields)
    assert {name: made[name] for name in fields} == fields
    assert await desk.read(made["id"]) == {name: value for name, value in made.items() if name != "secret"}


async def test_the_version_is_the_requests(desk: Desk) -> None:
    answer = await desk.client.post(PLACE, ENDPOINT, service_version="2026-10-01")
    assert answer.json()["api_version"] == "2026-10-01"


async def test_it_begins_at_the_ends_of_both_logs(desk: Desk) -> None:
    async with desk.world.uow.begin(desk.tenant(), OPERATOR) as tx:
        await tx[EventLog].append([builders.event("src_1"), builders.event("src_2")])
        high_watermark = await tx[EventLog].get_high_watermark()
    async with desk.world.uow.begin_reading(desk.tenant()) as tx:
        high_watermark = await tx[EventLog].get_high_watermark()
    made = await desk.create()
    assert desk.checkpoint(made["id"]) == high_watermark > 0


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"event_types": []}, ("event_types", "too_few")),
        ({"event_types": ["offer.changed"] * 2}, ("event_types", "duplicate")),
        ({"event_types": ["offer.exploded"]}, ("event_types.0", "invalid_value")),
        ({"event_types": ["webhook.test"]}, ("event_types.0", "invalid_value")),
        ({"event_types": ["*", "offer.changed"]}, ("event_types", "invalid_value")),
        ({"url": "ftp://receiver.example/"}, ("url", "invalid_format")),
        ({"url": "not a url"}, ("url", "invalid_format")),
        ({"payload": "thick"}, ("payload", "invalid_value")),
        ({"coalesce_seconds": 301}, ("coalesce_seconds", "too_large")),
        ({"coalesce_seconds": -1}, ("coalesce_seconds", "too_small")),
        ({"coalesce_seconds": 1.5}, ("coalesce_seconds", "invalid_type")),
        ({"api_version": "2026-10-02"}, ("api_version", "invalid_value")),
        ({"description": "x" * 501}, ("description", "too_long")),
        ({"description": None}, ("description", "invalid_type")),
        ({"filters": {"sources": []}}, ("filters.sources", "too_few")),
        ({"filters": {"sources": ["prod_0000000000000000000000"]}}, ("filters.sources.0", "invalid_format")),
        ({"filters": {"sources": ["src_1"]}}, ("filters.sources.0", "invalid_format")),
        ({"filters": {"sources": [new_id("src")] * 101}}, ("filters.sources", "too_many")),
        ({"filters": {"categories": [new_id("ctg")] * 101}}, ("filters.categories", "too_many")),
        ({"filters": {"catalogues": [new_id("cat")] * 51}}, ("filters.catalogues", "too_many")),
        ({"filters": {"brands": ["x"]}}, ("filters.brands", "unknown_field")),
        ({"secret": "whsec_mine"}, ("secret", "unknown_field")),
        ({"status": "disabled"}, ("status", "unknown_field")),
    ],
)
async def test_bad_fields_are_named(desk: Desk, fields: Any, fault: tuple[str, str]) -> None:
    assert fault in (await _refused(desk, 400, fields)).faults
    made = await desk.create()
    if fields not in ({"status": "disabled"}, {"description": None}):
        assert fault in (await desk.patch(made, **fields)).faults


@pytest.mark.parametrize("missing", ["url", "event_types"])
async def test_what_must_be_given(desk: Desk, missing: str) -> None:
    body = {name: value for name, value in ENDPOINT.items() if name != missing}
    answer = await desk.client.post(PLACE, body)
    assert (missing, "required") in answer.faults


REFUSED_EVERYWHERE = [
    "https://127.0.0.1/hooks",
    "https://localhost/hooks",
    "https://0x7f.1/hooks",
    "https://2130706433/hooks",
    "https://[::ffff:10.0.0.1]/hooks",
    "https://[64:ff9b::7f00:1]/hooks",
    "https://169.254.169.254/latest/meta-data",
    "https://anna:secret@receiver.example/hooks",
]


@pytest.mark.parametrize(
    "url", [*REFUSED_EVERYWHERE, "http://receiver.example/hooks", "https://receiver.example:8443/hooks"]
)
async def test_urls_that_are_refused_in_live_mode(desk: Desk, url: str) -> None:
    assert (await _refused(desk, 422, {"url": url})).code == "unprocessable"
    made = await desk.create()
    assert (await desk.patch(made, url=url)).status == 422


@pytest.mark.parametrize("url", REFUSED_EVERYWHERE)
async def test_urls_that_are_refused_in_test_mode(desk: Desk, url: str) -> None:
    assert (await desk.sandbox.post(PLACE, {**ENDPOINT, "url": url})).status == 422


@pytest.mark.parametrize(
    "url", ["http://receiver.example/hooks", "http://receiver.example:8080/", "https://r.example:1/"]
)
async def test_mode_test_takes_plain_http_and_any_port(desk: Desk, url: str) -> None:
    answer = await desk.sandbox.post(PLACE, {**ENDPOINT, "url": url})
    assert answer.status == 201 and answer.json()["livemode"] is False


async def test_hosts_of_the_operator_may_be_private(desk: Desk) -> None:
    assert (await desk.create(url="https://receiver.internal:8443/x"))["status"] == "enabled"
    assert (await desk.sandbox.post(PLACE, {**ENDPOINT, "url": "http://127.0.0.1:9000/x"})).status == 201


@pytest.mark.parametrize("filters", [{"sources": [new_id("src")]}, {"categories": [new_id("ctg")]}])
async def test_filters_name_what_there_is(desk: Desk, filters: Any) -> None:
    assert (await _refused(desk, 422, {"filters": filters})).code == "unprocessable"
    made = await desk.create()
    assert (await desk.patch(made, filters=filters)).code == "unprocessable"


async def test_sources_of_the_other_mode_are_unknown(desk: Desk) -> None:
    filters = {"sources": [await _source(desk)]}
    assert (await desk.sandbox.post(PLACE, {**ENDPOINT, "filters": filters})).status == 422
    assert (await desk.client.post(PLACE, {**ENDPOINT, "filters": filters})).status == 201


async def test_fat_needs_the_feature(desk: Desk) -> None:
    assert (await _refused(desk, 403, {"payload": "fat"})).code == "feature_unavailable"
    made = await desk.create()
    assert (await desk.patch(made, payload="fat")).code == "feature_unavailable"
    rich = await desk.world.org("Rich", plan_of("max", "max", "fat_webhooks"))
    client = await desk.world.client("Rich")
    answer = await client.post(PLACE, {**ENDPOINT, "payload": "fat"})
    assert (answer.status, answer.json()["payload"]) == (201, "fat") and rich


async def test_at_most_twenty_in_each_mode(desk: Desk) -> None:
    made = [await desk.create() for _ in range(20)]
    assert (await _refused(desk, 409, {})).code == "conflict"
    assert (await desk.sandbox.post(PLACE, ENDPOINT)).status == 201
    await desk.client.send_json("DELETE", f"{PLACE}/{made[0]['id']}")
    assert (await desk.create())["status"] == "enabled"


# Reading and changing


async def test_list_and_read(desk: Desk) -> None:
    made = [await desk.create(description=str(number)) for number in range(3)]
    page = (await desk.client.get(f"{PLACE}?limit=2")).json()
    assert [entry["id"] for entry in page["data"]] == [made[2]["id"], made[1]["id"]]
    rest = (await desk.client.get(f"{PLACE}?starting_after={page['next_cursor']}")).json()
    assert [entry["id"] for entry in rest["data"]] == [made[0]["id"]]
    assert "secret" not in json.dumps(page).replace("secret_last4", "")
    assert (await desk.sandbox.get(PLACE)).json()["data"] == []
    assert (await desk.client.get(UNKNOWN)).code == "not_found"


async def test_update(desk: Desk) -> None:
    made, source = await desk.create(description="x", filters={"catalogues": [new_id("cat")]}), await _source(desk)
    desk.world.clock.advance(timedelta(seconds=1))
    changes = {"url": "https://other.example/", "event_types": ["*"], "filters": {"sources": [source]}}
    answer = await desk.patch(made, **changes, coalesce_seconds=5, description=None)
    changed = answer.json()
    assert (answer.status, changed["version"]) == (200, 2)
    assert answer.headers["etag"].startswith('"2-')
    assert {name: changed[name] for name in changes} == changes
    assert changed["updated_at"] == "2026-11-20T13:08:01.000Z" and "description" not in changed
    assert changed == await desk.read(made["id"])
    entry = (await desk.audited(made["id"]))[-1]
    assert entry.change.before["coalesce_seconds"] == 0 and entry.change.after["coalesce_seconds"] == 5
    assert entry.change.before["description"] == "x" and "description" not in entry.change.after


async def test_nothing_changed_keeps_the_version(desk: Desk) -> None:
    made = await desk.create()
    answer = await desk.patch(made, url=made["url"], status="enabled", filters={})
    assert (answer.status, answer.json()["version"]) == (200, 1)
    assert len(await desk.audited(made["id"])) == 1


async def test_if_match(desk: Desk) -> None:
    made = await desk.create()
    target = f"{PLACE}/{made['id']}"
    assert (await desk.client.send_json("PATCH", target, {"coalesce_seconds": 1})).code == "precondition_required"
    assert (await desk.patch(made, coalesce_seconds=1)).status == 200
    stale = await desk.patch(made, coalesce_seconds=2)
    assert (stale.status, stale.code) == (412, "precondition_failed")
    assert "version 2" in stale.json()["detail"]
    assert (await desk.client.send_json("PATCH", target, {"coalesce_seconds": 2}, if_match="*")).status == 200
    missing = await desk.client.send_json("PATCH", UNKNOWN, {}, if_match='"1-x"')
    assert missing.code == "not_found"


async def test_disabling_fails_what_is_on_its_way(desk: Desk) -> None:
    made = await desk.create()
    waiting = builders.delivery(made["id"])
    await desk.deliver(waiting)
    changed = (await desk.patch(made, status="disabled")).json()
    assert changed["status"] == "disabled" and "status_reason" not in changed
    assert (await desk.delivery(made["id"], waiting.id))["status"] == "failed"
    assert desk.events() == [], "what people do themselves is no news to them"


async def test_enabling_starts_at_the_current_position(desk: Desk) -> None:
    made = await desk.create()
    await desk.disable(made["id"], "failing")
    disabled = await desk.read(made["id"])
    assert disabled["status_reason"] == {"code": "failing"}
    endpoint, _ = await desk.kept(made["id"])
    async with desk.world.uow.begin(desk.tenant(), OPERATOR) as tx:
        await tx[WebhookStore].save(replace(endpoint, failing_since=tx.now))
    enabled = (await desk.patch(disabled, status="enabled")).json()
    assert enabled["status"] == "enabled"
    assert "status_reason" not in enabled and "failing_since" not in enabled
    async with desk.world.uow.begin_reading(desk.tenant()) as tx:
        assert desk.checkpoint(made["id"]) == await tx[EventLog].get_high_watermark() > 0


async def test_delete(desk: Desk) -> None:
    made = await desk.create()
    answer = await desk.client.send_json("DELETE", f"{PLACE}/{made['id']}")
    assert (answer.status, answer.body) == (204, b"")
    for target in (f"{PLACE}/{made['id']}", f"{PLACE}/{made['id']}/deliveries"):
        assert (await desk.client.get(target)).code == "not_found"
    assert (await desk.client.send_json("DELETE", f"{PLACE}/{made['id']}")).code == "not_found"
    assert (await desk.audited(made["id"]))[-1].change.action == "delete"


@pytest.mark.parametrize("reason", ["gone", "failing"])
async def test_the_service_disables(desk: Desk, reason: str) -> None:
    made = await desk.create()
    waiting = builders.delivery(made["id"])
    await desk.deliver(waiting)
    await desk.disable(made["id"], reason)
    await desk.disable(made["id"], "failing")
    now = await desk.read(made["id"])
    assert (now["status"], now["status_reason"], now["version"]) == ("disabled", {"code": reason}, 2)
    [event] = desk.events()
    payload = json.loads(event.body)
    assert (event.type, event.subject, event.version, payload["source"]) == (
        "delivery.disabled", made["id"], 2, "service/webhooks",
    )  # fmt: skip
    assert payload["data"] == now
    assert (await desk.delivery(made["id"], waiting.id))["status"] == "failed"
    assert (await desk.audited(made["id"]))[-1].context == OPERATOR
    await desk.disable("whe_0000000000000000000000")
