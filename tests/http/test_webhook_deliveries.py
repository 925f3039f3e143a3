"""Deliveries over HTTP: reading, sending again, tests and samples, dry runs, and notification of workers."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from adapters.api_json.webhooks import TEST_EVENT
from domain.events.model import TYPES
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from entrypoints.operations.validation import Validator
from tests.http.application import OPERATOR
from tests.http.webhooks import ENDPOINT, ENDPOINTS_PATH, WebhookHarness, decode_secret, open_webhook_harness
from tests.support import builders

pytestmark = pytest.mark.asyncio
UNKNOWN = f"{ENDPOINTS_PATH}/whe_0000000000000000000000"


@pytest_asyncio.fixture(name="harness")
async def open_harness() -> AsyncIterator[WebhookHarness]:
    """Run the application."""
    async with open_webhook_harness() as harness:
        yield harness


# Deliveries


def _build_failed_delivery(endpoint: str, **changes: Any) -> Any:
    fields = {"status": "failed", "next_attempt_at": None, "body": b'{"a":1.50}', "tries": 11, **changes}
    return builders.delivery(endpoint, **fields)


async def test_deliveries_are_listed_and_read(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    attempt = builders.attempt()
    first = _build_failed_delivery(made["id"], attempts=(attempt,), completed_at=builders.MOMENT)
    second = builders.delivery(made["id"], type="product.created")
    await harness.store_deliveries(first, second)
    target = f"{ENDPOINTS_PATH}/{made['id']}/deliveries"
    page = (await harness.client.get(target)).json()
    assert [entry["id"] for entry in page["data"]] == [second.id, first.id]
    assert page["data"][1] == await harness.read_delivery(made["id"], first.id) == {
        "object": "webhook_delivery",
        "id": first.id,
        "endpoint": made["id"],
        "event": first.event,
        "type": "offer.changed",
        "subject": first.subject,
        "status": "failed",
        "body": '{"a":1.50}',
        "attempts": [
            {
                "at": "2026-11-20T13:08:00.000Z",
                "status": "failed",
                "duration_ms": 41,
                "failure": "http_status",
                "response_status": 503,
                "response_body": "upstream busy",
                "response_headers": {"retry-after": "30"},
            }
        ],
        "created_at": "2026-11-20T13:08:00.000Z",
        "completed_at": "2026-11-20T13:08:00.000Z",
    }  # fmt: skip
    for query, expected in (
        ("status=failed", [first.id]),
        ("type=product.created", [second.id]),
        (f"event={first.event}", [first.id]),
        ("status=succeeded", []),
    ):
        found = (await harness.client.get(f"{target}?{query}")).json()["data"]
        assert [entry["id"] for entry in found] == expected
    assert ("query.status", "invalid_value") in (await harness.client.get(f"{target}?status=lost")).faults
    assert (await harness.client.get(f"{UNKNOWN}/deliveries")).code == "not_found"
    assert (await harness.client.get(f"{target}/dlv_0000000000000000000000")).code == "not_found"


@pytest.mark.parametrize("status", ["failed", "succeeded"])
async def test_resend(harness: WebhookHarness, status: str) -> None:
    made = await harness.create_endpoint()
    delivery = _build_failed_delivery(made["id"], status=status)
    await harness.store_deliveries(delivery)
    harness.application.clock.advance(timedelta(hours=1))
    response = await harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/deliveries/{delivery.id}/resend")
    again = response.json()
    assert (response.status, again["status"]) == (200, "pending")
    assert (again["next_attempt_at"], again["event"]) == ("2026-11-20T14:08:00.000Z", delivery.event)
    [kept] = await harness.load_deliveries()
    assert (kept.tries, kept.body) == (0, delivery.body)
    assert (await harness.list_audit_entries(delivery.id))[-1].context.operation == "webhooks.resend"


@pytest.mark.parametrize("status", ["pending", "sending"])
async def test_open_deliveries_are_not_resent(harness: WebhookHarness, status: str) -> None:
    made = await harness.create_endpoint()
    delivery = builders.delivery(made["id"], status=status)
    await harness.store_deliveries(delivery)
    response = await harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/deliveries/{delivery.id}/resend")
    assert (response.status, response.code) == (409, "conflict")


async def test_nothing_is_sent_to_a_disabled_endpoint(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    delivery = _build_failed_delivery(made["id"])
    await harness.store_deliveries(delivery)
    await harness.disable_endpoint(made["id"])
    place = f"{ENDPOINTS_PATH}/{made['id']}"
    for target, body in (
        (f"{place}/deliveries/{delivery.id}/resend", None),
        (f"{place}/recover", {"since": "2026-11-01T00:00:00Z"}),
        (f"{place}/test", None),
    ):
        response = await harness.client.post(target, body)
        assert (response.status, response.code) == (409, "conflict"), target


async def test_recover(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    moments = [builders.MOMENT - timedelta(hours=hour) for hour in (1, 2, 3)]
    failed = [_build_failed_delivery(made["id"], created_at=moment) for moment in moments]
    await harness.store_deliveries(*failed, builders.delivery(made["id"], status="succeeded", created_at=moments[0]))
    target = f"{ENDPOINTS_PATH}/{made['id']}/recover"
    response = await harness.client.post(
        target, {"since": "2026-11-20T12:00:00+01:00", "until": "2026-11-20T11:08:00Z"}
    )
    assert response.json() == {"object": "webhook_recovery", "endpoint": made["id"], "requeued": 1, "has_more": False}
    assert (await harness.read_delivery(made["id"], failed[1].id))["status"] == "pending"
    response = await harness.client.post(target, {"since": "2026-11-01T00:00:00Z"})
    assert (response.status, response.json()["requeued"]) == (200, 2)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, ("since", "required")),
        ({"since": "yesterday"}, ("since", "invalid_format")),
        ({"since": "2026-11-20T13:08:00Z"}, ("since", "invalid_value")),
        ({"since": "2026-11-20T10:00:00Z", "until": "2026-11-20T10:00:00Z"}, ("since", "invalid_value")),
        ({"since": "2026-11-20T10:00:00Z", "to": "x"}, ("to", "unknown_field")),
        ({"since": "9999-12-31T23:59:59.9999999Z"}, ("since", "invalid_value")),
        ({"since": "2026-11-20T10:00:00Z", "until": "2026-11-20T10:00:00.0000009Z"}, ("since", "invalid_value")),
    ],
)
async def test_invalid_ranges_are_refused(harness: WebhookHarness, body: Any, fault: tuple[str, str]) -> None:
    made = await harness.create_endpoint()
    response = await harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/recover", body)
    assert response.status == 400 and fault in response.faults


@pytest.mark.parametrize("since", ["2020-01-01T00:00:00+00:99", "2020-01-01T00:00:00.123456789Z"])
async def test_every_accepted_timestamp_is_parsed(harness: WebhookHarness, since: str) -> None:
    made = await harness.create_endpoint()
    range = {"since": since, "until": "9999-12-31T23:59:59.9999999Z"}
    response = await harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/recover", range)
    assert (response.status, response.json()["requeued"]) == (200, 0)


async def test_unknown_deliveries_return_404(harness: WebhookHarness) -> None:
    for target, body in (
        ("/recover", {"since": "2026-11-01T00:00:00Z"}),
        ("/test", None),
        ("/rotate-secret", None),
        ("/deliveries/dlv_0000000000000000000000/resend", None),
    ):
        assert (await harness.client.post(UNKNOWN + target, body)).code == "not_found", target


async def test_a_test_event_is_sent_regardless_of_subscriptions(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    response = await harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/test")
    delivery = response.json()
    assert (response.status, delivery["status"], delivery["type"]) == (202, "pending", "webhook.test")
    assert response.headers["location"].endswith(f"{ENDPOINTS_PATH}/{made['id']}/deliveries/{delivery['id']}")
    envelope = json.loads(delivery["body"])
    assert (envelope["id"], envelope["type"], envelope["subject"]) == (delivery["event"], "webhook.test", made["id"])
    assert envelope["livemode"] is True and envelope["data"]["id"] == made["id"]
    [kept] = await harness.load_deliveries()
    assert (kept.positions, kept.next_attempt_at) == ((), harness.application.clock.now())
    assert harness.list_events() == [], "a test is no event of the log"


# Samples


@pytest.mark.parametrize("type", sorted(name for name, entry in TYPES.items() if entry.has_sample))
async def test_samples_are_events_in_test_mode(harness: WebhookHarness, type: str) -> None:
    response = await harness.sandbox.post("/v1/test/events", {"type": type})
    sample = response.json()
    assert response.status == 202
    assert Validator(TEST_EVENT).find_field_errors(sample) == ()
    [event] = harness.list_events()
    assert (sample["id"], sample["type"], sample["subject"]) == (event.id, type, event.subject)
    assert sample["event"]["livemode"] is False and sample["event"]["data"]["id"] == event.subject
    assert event.catalogue == harness.application.orgs["Fjord"].catalogues[1]


async def test_samples_are_of_test_mode_and_known_types(harness: WebhookHarness) -> None:
    live = await harness.client.post("/v1/test/events", {"type": "offer.changed"})
    assert (live.status, live.code) == (409, "conflict")
    for type in ("export.completed", "webhook.test", "offer.exploded"):
        response = await harness.sandbox.post("/v1/test/events", {"type": type})
        assert (response.status, response.faults) == (400, {("type", "invalid_value")})
    assert harness.list_events() == []


# Dry runs


async def test_explain_previews_the_delivery(harness: WebhookHarness) -> None:
    subjects = [new_id("ofr") for _ in range(3)]
    events = [builders.event(subject, type="offer.changed", data={"id": subject}) for subject in subjects]
    async with harness.application.uow.begin(harness.tenant(), OPERATOR) as tx:
        await tx[EventLog].append(
            [*events, builders.event(subjects[0], type="offer.changed", data={"id": subjects[0]})]
        )
        await tx[EventLog].append([builders.event("src_1")])
    harness.application.clock.advance(timedelta(days=6))
    response = await harness.client.post(
        ENDPOINTS_PATH, {**ENDPOINT, "coalesce_seconds": 10}, service_dry_run="explain"
    )
    preview = response.json()
    assert preview["forecast"] == {"days": 7, "events": 4, "peak_per_minute": 4, "deliveries": 3}
    assert [change["action"] for change in preview["changes"]] == ["create"]
    assert (await harness.client.get(ENDPOINTS_PATH)).json()["data"] == []
    made = await harness.create_endpoint()
    tag = f'"{made["version"]}-0"'
    changed = await harness.client.send_json(
        "PATCH", f"{ENDPOINTS_PATH}/{made['id']}", {"event_types": ["*"]}, if_match=tag, service_dry_run="explain"
    )
    assert changed.json()["forecast"] == {"days": 7, "events": 5, "peak_per_minute": 5, "deliveries": 5}
    assert (await harness.read_endpoint(made["id"]))["version"] == 1


async def test_dry_runs_do_nothing(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    delivery = _build_failed_delivery(made["id"])
    await harness.store_deliveries(delivery)
    place, before = f"{ENDPOINTS_PATH}/{made['id']}", await harness.read_endpoint(made["id"])
    for method, target, body in (
        ("POST", ENDPOINTS_PATH, ENDPOINT),
        ("PATCH", place, {"status": "disabled"}),
        ("DELETE", place, None),
        ("POST", f"{place}/rotate-secret", None),
        ("POST", f"{place}/test", None),
        ("POST", f"{place}/recover", {"since": "2026-11-01T00:00:00Z"}),
        ("POST", f"{place}/deliveries/{delivery.id}/resend", None),
    ):
        for mode in ("true", "explain"):
            headers = {"service_dry_run": mode, "idempotency_key": f"{target} {mode}", "if_match": "*"}
            response = await harness.client.send_json(method, target, body, **headers)
            assert response.status in (200, 201, 202, 204), (method, target, response.body)
            assert response.headers["service-dry-run"] == mode
    assert await harness.read_endpoint(made["id"]) == before
    assert (await harness.load_deliveries()) == [delivery]
    assert (await harness.decrypt_keys(made["id"])) == (decode_secret(made["secret"]),)


async def test_secrets_are_in_no_preview(harness: WebhookHarness) -> None:
    response = await harness.client.post(ENDPOINTS_PATH, ENDPOINT, service_dry_run="explain")
    assert "whsec_" not in response.body.decode()


# Workers are notified


async def test_workers_are_notified_when_changes_commit(harness: WebhookHarness) -> None:
    harness.application.database.execute("LISTEN joinery_webhooks")
    made = await harness.create_endpoint()
    notification = f"{harness.tenant().org} t {made['id']}"
    assert harness.application.database.take_notifications() == [notification]
    for step in (
        lambda: harness.update_endpoint(made, coalesce_seconds=4),
        lambda: harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/test"),
        lambda: harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/rotate-secret"),
        lambda: harness.client.send_json("DELETE", f"{ENDPOINTS_PATH}/{made['id']}"),
    ):
        await step()
        assert notification in harness.application.database.take_notifications()
    await harness.client.post(ENDPOINTS_PATH, ENDPOINT, service_dry_run="true")
    assert harness.application.database.take_notifications() == []
    harness.application.database.execute("UNLISTEN *")
