"""Webhook endpoints over HTTP: creation, reads, changes, deletion and disabling by the service."""

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
from tests.http.application import OPERATOR, create_plan
from tests.http.webhooks import ENDPOINT, ENDPOINTS_PATH, WebhookHarness, decode_secret, open_webhook_harness
from tests.support import builders

pytestmark = pytest.mark.asyncio
UNKNOWN = f"{ENDPOINTS_PATH}/whe_0000000000000000000000"


@pytest_asyncio.fixture(name="harness")
async def open_harness() -> AsyncIterator[WebhookHarness]:
    """Run the application."""
    async with open_webhook_harness() as harness:
        yield harness


async def _refused(harness: WebhookHarness, status: int, fields: Any) -> Any:
    response = await harness.client.post(ENDPOINTS_PATH, {**ENDPOINT, **fields})
    assert response.status == status, response.body
    return response


async def _create_source(harness: WebhookHarness) -> str:
    source = builders.source()
    async with harness.application.uow.begin(harness.tenant(), OPERATOR) as tx:
        await tx[SourceStore].add(source)
    return source.id


# Making


async def test_create(harness: WebhookHarness) -> None:
    response = await harness.client.post(ENDPOINTS_PATH, ENDPOINT)
    made = response.json()
    assert response.status == 201
    assert response.headers["location"].endswith(f"{ENDPOINTS_PATH}/{made['id']}")
    assert response.headers["etag"].startswith('"1-')
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
    assert len(decode_secret(secret)) == 32
    assert (await harness.decrypt_keys(made["id"])) == (decode_secret(secret),)
    [entry] = await harness.list_audit_entries(made["id"])
    assert (entry.change.action, entry.context.operation) == ("create", "webhooks.create")
    assert secret not in str(entry)


async def test_create_with_all_fields(harness: WebhookHarness) -> None:
    source, category = await _create_source(harness), next(iter(categories.category_by_id()))
    filters = {"sources": [source], "categories": [category], "catalogues": [new_id("cat")]}
    fields = {
        "event_types": ["offer.changed", "export.completed"],
        "filters": filters,
        "coalesce_seconds": 300,
        "api_version": "2026-10-01",
        "description": "Prices",
    }
    made = await harness.create_endpoint(**fields)
    assert {name: made[name] for name in fields} == fields
    assert await harness.read_endpoint(made["id"]) == {name: value for name, value in made.items() if name != "secret"}


async def test_the_api_version_is_that_of_the_request(harness: WebhookHarness) -> None:
    response = await harness.client.post(ENDPOINTS_PATH, ENDPOINT, service_version="2026-10-01")
    assert response.json()["api_version"] == "2026-10-01"


async def test_an_endpoint_starts_at_the_end_of_both_logs(harness: WebhookHarness) -> None:
    async with harness.application.uow.begin(harness.tenant(), OPERATOR) as tx:
        await tx[EventLog].append([builders.event("src_1"), builders.event("src_2")])
        high_watermark = await tx[EventLog].get_high_watermark()
    async with harness.application.uow.begin_reading(harness.tenant()) as tx:
        high_watermark = await tx[EventLog].get_high_watermark()
    made = await harness.create_endpoint()
    assert harness.read_checkpoint(made["id"]) == high_watermark > 0


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
async def test_invalid_fields_are_reported(harness: WebhookHarness, fields: Any, fault: tuple[str, str]) -> None:
    assert fault in (await _refused(harness, 400, fields)).faults
    made = await harness.create_endpoint()
    if fields not in ({"status": "disabled"}, {"description": None}):
        assert fault in (await harness.update_endpoint(made, **fields)).faults


@pytest.mark.parametrize("missing", ["url", "event_types"])
async def test_required_fields(harness: WebhookHarness, missing: str) -> None:
    body = {name: value for name, value in ENDPOINT.items() if name != missing}
    response = await harness.client.post(ENDPOINTS_PATH, body)
    assert (missing, "required") in response.faults


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
async def test_urls_that_are_refused_in_live_mode(harness: WebhookHarness, url: str) -> None:
    assert (await _refused(harness, 422, {"url": url})).code == "unprocessable"
    made = await harness.create_endpoint()
    assert (await harness.update_endpoint(made, url=url)).status == 422


@pytest.mark.parametrize("url", REFUSED_EVERYWHERE)
async def test_urls_that_are_refused_in_test_mode(harness: WebhookHarness, url: str) -> None:
    assert (await harness.sandbox.post(ENDPOINTS_PATH, {**ENDPOINT, "url": url})).status == 422


@pytest.mark.parametrize(
    "url", ["http://receiver.example/hooks", "http://receiver.example:8080/", "https://r.example:1/"]
)
async def test_test_mode_accepts_plain_http_and_any_port(harness: WebhookHarness, url: str) -> None:
    response = await harness.sandbox.post(ENDPOINTS_PATH, {**ENDPOINT, "url": url})
    assert response.status == 201 and response.json()["livemode"] is False


async def test_hosts_of_the_operator_may_be_private(harness: WebhookHarness) -> None:
    assert (await harness.create_endpoint(url="https://receiver.internal:8443/x"))["status"] == "enabled"
    assert (await harness.sandbox.post(ENDPOINTS_PATH, {**ENDPOINT, "url": "http://127.0.0.1:9000/x"})).status == 201


@pytest.mark.parametrize("filters", [{"sources": [new_id("src")]}, {"categories": [new_id("ctg")]}])
async def test_filters_must_name_existing_objects(harness: WebhookHarness, filters: Any) -> None:
    assert (await _refused(harness, 422, {"filters": filters})).code == "unprocessable"
    made = await harness.create_endpoint()
    assert (await harness.update_endpoint(made, filters=filters)).code == "unprocessable"


async def test_sources_of_the_other_mode_are_unknown(harness: WebhookHarness) -> None:
    filters = {"sources": [await _create_source(harness)]}
    assert (await harness.sandbox.post(ENDPOINTS_PATH, {**ENDPOINT, "filters": filters})).status == 422
    assert (await harness.client.post(ENDPOINTS_PATH, {**ENDPOINT, "filters": filters})).status == 201


async def test_fat_payloads_require_the_feature(harness: WebhookHarness) -> None:
    assert (await _refused(harness, 403, {"payload": "fat"})).code == "feature_unavailable"
    made = await harness.create_endpoint()
    assert (await harness.update_endpoint(made, payload="fat")).code == "feature_unavailable"
    rich = await harness.application.create_organisation("Rich", create_plan("max", "max", "fat_webhooks"))
    client = await harness.application.create_client("Rich")
    response = await client.post(ENDPOINTS_PATH, {**ENDPOINT, "payload": "fat"})
    assert (response.status, response.json()["payload"]) == (201, "fat") and rich


async def test_endpoints_are_limited_to_twenty_per_mode(harness: WebhookHarness) -> None:
    made = [await harness.create_endpoint() for _ in range(20)]
    assert (await _refused(harness, 409, {})).code == "conflict"
    assert (await harness.sandbox.post(ENDPOINTS_PATH, ENDPOINT)).status == 201
    await harness.client.send_json("DELETE", f"{ENDPOINTS_PATH}/{made[0]['id']}")
    assert (await harness.create_endpoint())["status"] == "enabled"


# Reading and changing


async def test_list_and_read(harness: WebhookHarness) -> None:
    made = [await harness.create_endpoint(description=str(number)) for number in range(3)]
    page = (await harness.client.get(f"{ENDPOINTS_PATH}?limit=2")).json()
    assert [entry["id"] for entry in page["data"]] == [made[2]["id"], made[1]["id"]]
    rest = (await harness.client.get(f"{ENDPOINTS_PATH}?starting_after={page['next_cursor']}")).json()
    assert [entry["id"] for entry in rest["data"]] == [made[0]["id"]]
    assert "secret" not in json.dumps(page).replace("secret_last4", "")
    assert (await harness.sandbox.get(ENDPOINTS_PATH)).json()["data"] == []
    assert (await harness.client.get(UNKNOWN)).code == "not_found"


async def test_update(harness: WebhookHarness) -> None:
    made, source = (
        await harness.create_endpoint(description="x", filters={"catalogues": [new_id("cat")]}),
        await _create_source(harness),
    )
    harness.application.clock.advance(timedelta(seconds=1))
    changes = {"url": "https://other.example/", "event_types": ["*"], "filters": {"sources": [source]}}
    response = await harness.update_endpoint(made, **changes, coalesce_seconds=5, description=None)
    changed = response.json()
    assert (response.status, changed["version"]) == (200, 2)
    assert response.headers["etag"].startswith('"2-')
    assert {name: changed[name] for name in changes} == changes
    assert changed["updated_at"] == "2026-11-20T13:08:01.000Z" and "description" not in changed
    assert changed == await harness.read_endpoint(made["id"])
    entry = (await harness.list_audit_entries(made["id"]))[-1]
    assert entry.change.before["coalesce_seconds"] == 0 and entry.change.after["coalesce_seconds"] == 5
    assert entry.change.before["description"] == "x" and "description" not in entry.change.after


async def test_an_unchanged_endpoint_keeps_its_version(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    response = await harness.update_endpoint(made, url=made["url"], status="enabled", filters={})
    assert (response.status, response.json()["version"]) == (200, 1)
    assert len(await harness.list_audit_entries(made["id"])) == 1


async def test_if_match(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    target = f"{ENDPOINTS_PATH}/{made['id']}"
    assert (await harness.client.send_json("PATCH", target, {"coalesce_seconds": 1})).code == "precondition_required"
    assert (await harness.update_endpoint(made, coalesce_seconds=1)).status == 200
    stale = await harness.update_endpoint(made, coalesce_seconds=2)
    assert (stale.status, stale.code) == (412, "precondition_failed")
    assert "version 2" in stale.json()["detail"]
    assert (await harness.client.send_json("PATCH", target, {"coalesce_seconds": 2}, if_match="*")).status == 200
    missing = await harness.client.send_json("PATCH", UNKNOWN, {}, if_match='"1-x"')
    assert missing.code == "not_found"


async def test_disabling_fails_open_deliveries(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    waiting = builders.delivery(made["id"])
    await harness.store_deliveries(waiting)
    changed = (await harness.update_endpoint(made, status="disabled")).json()
    assert changed["status"] == "disabled" and "status_reason" not in changed
    assert (await harness.read_delivery(made["id"], waiting.id))["status"] == "failed"
    assert harness.list_events() == [], "what people do themselves is no news to them"


async def test_enabling_starts_at_the_current_position(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    await harness.disable_endpoint(made["id"], "failing")
    disabled = await harness.read_endpoint(made["id"])
    assert disabled["status_reason"] == {"code": "failing"}
    endpoint, _ = await harness.load_endpoint(made["id"])
    async with harness.application.uow.begin(harness.tenant(), OPERATOR) as tx:
        await tx[WebhookStore].save(replace(endpoint, failing_since=tx.now))
    enabled = (await harness.update_endpoint(disabled, status="enabled")).json()
    assert enabled["status"] == "enabled"
    assert "status_reason" not in enabled and "failing_since" not in enabled
    async with harness.application.uow.begin_reading(harness.tenant()) as tx:
        assert harness.read_checkpoint(made["id"]) == await tx[EventLog].get_high_watermark() > 0


async def test_delete(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    response = await harness.client.send_json("DELETE", f"{ENDPOINTS_PATH}/{made['id']}")
    assert (response.status, response.body) == (204, b"")
    for target in (f"{ENDPOINTS_PATH}/{made['id']}", f"{ENDPOINTS_PATH}/{made['id']}/deliveries"):
        assert (await harness.client.get(target)).code == "not_found"
    assert (await harness.client.send_json("DELETE", f"{ENDPOINTS_PATH}/{made['id']}")).code == "not_found"
    assert (await harness.list_audit_entries(made["id"]))[-1].change.action == "delete"


@pytest.mark.parametrize("reason", ["gone", "failing"])
async def test_the_service_disables_an_endpoint(harness: WebhookHarness, reason: str) -> None:
    made = await harness.create_endpoint()
    waiting = builders.delivery(made["id"])
    await harness.store_deliveries(waiting)
    await harness.disable_endpoint(made["id"], reason)
    await harness.disable_endpoint(made["id"], "failing")
    now = await harness.read_endpoint(made["id"])
    assert (now["status"], now["status_reason"], now["version"]) == ("disabled", {"code": reason}, 2)
    [event] = harness.list_events()
    payload = json.loads(event.body)
    assert (event.type, event.subject, event.version, payload["source"]) == (
        "delivery.disabled", made["id"], 2, "service/webhooks",
    )  # fmt: skip
    assert payload["data"] == now
    assert (await harness.read_delivery(made["id"], waiting.id))["status"] == "failed"
    assert (await harness.list_audit_entries(made["id"]))[-1].context == OPERATOR
    await harness.disable_endpoint("whe_0000000000000000000000")
