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
from tests.http.fakes import OPERATOR
from tests.http.webhooks import ENDPOINT, PLACE, Desk, desk, key_in
from tests.support import builders

pytestmark = pytest.mark.asyncio
UNKNOWN = f"{PLACE}/whe_0000000000000000000000"


@pytest_asyncio.fixture(name="desk")
async def running_desk() -> AsyncIterator[Desk]:
    """A running application."""
    async with desk() as made:
        yield made


# Deliveries


def _failed(endpoint: str, **changes: Any) -> Any:
    fields = {"status": "failed", "next_attempt_at": None, "body": b'{"a":1.50}', "tries": 11, **changes}
    return builders.delivery(endpoint, **fields)


async def test_deliveries_are_listed_and_read(desk: Desk) -> None:
    made = await desk.create()
    attempt = builders.attempt()
    first = _failed(made["id"], attempts=(attempt,), completed_at=builders.MOMENT)
    second = builders.delivery(made["id"], type="product.created")
    await desk.deliver(first, second)
    target = f"{PLACE}/{made['id']}/deliveries"
    page = (await desk.client.get(target)).json()
    assert [entry["id"] for entry in page["data"]] == [second.id, first.id]
    assert page["data"][1] == await desk.delivery(made["id"], first.id) == {
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
        found = (await desk.client.get(f"{target}?{query}")).json()["data"]
        assert [entry["id"] for entry in found] == expected
    assert ("query.status", "invalid_value") in (await desk.client.get(f"{target}?status=lost")).faults
    assert (await desk.client.get(f"{UNKNOWN}/deliveries")).code == "not_found"
    assert (await desk.client.get(f"{target}/dlv_0000000000000000000000")).code == "not_found"


@pytest.mark.parametrize("status", ["failed", "succeeded"])
async def test_resend(desk: Desk, status: str) -> None:
    made = await desk.create()
    delivery = _failed(made["id"], status=status)
    await desk.deliver(delivery)
    desk.world.clock.advance(timedelta(hours=1))
    answer = await desk.client.post(f"{PLACE}/{made['id']}/deliveries/{delivery.id}/resend")
    again = answer.json()
    assert (answer.status, again["status"]) == (200, "pending")
    assert (again["next_attempt_at"], again["event"]) == ("2026-11-20T14:08:00.000Z", delivery.event)
    [kept] = await desk.kept_deliveries()
    assert (kept.tries, kept.body) == (0, delivery.body)
    assert (await desk.audited(delivery.id))[-1].context.operation == "webhooks.resend"


@pytest.mark.parametrize("status", ["pending", "sending"])
async def test_what_is_on_its_way_is_not_sent_again(desk: Desk, status: str) -> None:
    made = await desk.create()
    delivery = builders.delivery(made["id"], status=status)
    await desk.deliver(delivery)
    answer = await desk.client.post(f"{PLACE}/{made['id']}/deliveries/{delivery.id}/resend")
    assert (answer.status, answer.code) == (409, "conflict")


async def test_nothing_is_sent_to_a_disabled_endpoint(desk: Desk) -> None:
    made = await desk.create()
    delivery = _failed(made["id"])
    await desk.deliver(delivery)
    await desk.disable(made["id"])
    place = f"{PLACE}/{made['id']}"
    for target, body in (
        (f"{place}/deliveries/{delivery.id}/resend", None),
        (f"{place}/recover", {"since": "2026-11-01T00:00:00Z"}),
        (f"{place}/test", None),
    ):
        answer = await desk.client.post(target, body)
        assert (answer.status, answer.code) == (409, "conflict"), target


async def test_recover(desk: Desk) -> None:
    made = await desk.create()
    moments = [builders.MOMENT - timedelta(hours=hour) for hour in (1, 2, 3)]
    failed = [_failed(made["id"], created_at=moment) for moment in moments]
    await desk.deliver(*failed, builders.delivery(made["id"], status="succeeded", created_at=moments[0]))
    target = f"{PLACE}/{made['id']}/recover"
    answer = await desk.client.post(target, {"since": "2026-11-20T12:00:00+01:00", "until": "2026-11-20T11:08:00Z"})
    assert answer.json() == {"object": "webhook_recovery", "endpoint": made["id"], "requeued": 1, "has_more": False}
    assert (await desk.delivery(made["id"], failed[1].id))["status"] == "pending"
    answer = await desk.client.post(target, {"since": "2026-11-01T00:00:00Z"})
    assert (answer.status, answer.json()["requeued"]) == (200, 2)


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
async def test_ranges_that_are_none(desk: Desk, body: Any, fault: tuple[str, str]) -> None:
    made = await desk.create()
    answer = await desk.client.post(f"{PLACE}/{made['id']}/recover", body)
    assert answer.status == 400 and fault in answer.faults


@pytest.mark.parametrize("since", ["2020-01-01T00:00:00+00:99", "2020-01-01T00:00:00.123456789Z"])
async def test_every_moment_that_is_let_through_is_read(desk: Desk, since: str) -> None:
    made = await desk.create()
    range = {"since": since, "until": "9999-12-31T23:59:59.9999999Z"}
    answer = await desk.client.post(f"{PLACE}/{made['id']}/recover", range)
    assert (answer.status, answer.json()["requeued"]) == (200, 0)


async def test_unknown_ones_answer_404(desk: Desk) -> None:
    for target, body in (
        ("/recover", {"since": "2026-11-01T00:00:00Z"}),
        ("/test", None),
        ("/rotate-secret", None),
        ("/deliveries/dlv_0000000000000000000000/resend", None),
    ):
        assert (await desk.client.post(UNKNOWN + target, body)).code == "not_found", target


async def test_a_test_event_is_sent_whatever_is_subscribed(desk: Desk) -> None:
    made = await desk.create()
    answer = await desk.client.post(f"{PLACE}/{made['id']}/test")
    delivery = answer.json()
    assert (answer.status, delivery["status"], delivery["type"]) == (202, "pending", "webhook.test")
    assert answer.headers["location"].endswith(f"{PLACE}/{made['id']}/deliveries/{delivery['id']}")
    envelope = json.loads(delivery["body"])
    assert (envelope["id"], envelope["type"], envelope["subject"]) == (delivery["event"], "webhook.test", made["id"])
    assert envelope["livemode"] is True and envelope["data"]["id"] == made["id"]
    [kept] = await desk.kept_deliveries()
    assert (kept.positions, kept.next_attempt_at) == ((), desk.world.clock.now())
    assert desk.events() == [], "a test is no event of the log"


# Samples


@pytest.mark.parametrize("type", sorted(name for name, entry in TYPES.items() if entry.has_sample))
async def test_samples_are_events_of_the_sandbox(desk: Desk, type: str) -> None:
    answer = await desk.sandbox.post("/v1/test/events", {"type": type})
    sample = answer.json()
    assert answer.status == 202
    assert Validator(TEST_EVENT).find_field_errors(sample) == ()
    [event] = desk.events()
    assert (sample["id"], sample["type"], sample["subject"]) == (event.id, type, event.subject)
    assert sample["event"]["livemode"] is False and sample["event"]["data"]["id"] == event.subject
    assert event.catalogue == desk.world.orgs["Fjord"].catalogues[1]


async def test_samples_are_of_test_mode_and_known_types(desk: Desk) -> None:
    live = await desk.client.post("/v1/test/events", {"type": "offer.changed"})
    assert (live.status, live.code) == (409, "conflict")
    for type in ("export.completed", "webhook.test", "offer.exploded"):
        answer = await desk.sandbox.post("/v1/test/events", {"type": type})
        assert (answer.status, answer.faults) == (400, {("type", "invalid_value")})
    assert desk.events() == []


# Dry runs


async def test_explain_forecasts(desk: Desk) -> None:
    subjects = [new_id("ofr") for _ in range(3)]
    events = [builders.event(subject, type="offer.changed", data={"id": subject}) for subject in subjects]
    async with desk.world.uow.begin(desk.tenant(), OPERATOR) as tx:
        await tx[EventLog].append(
            [*events, builders.event(subjects[0], type="offer.changed", data={"id": subjects[0]})]
        )
        await tx[EventLog].append([builders.event("src_1")])
    desk.world.clock.advance(timedelta(days=6))
    answer = await desk.client.post(PLACE, {**ENDPOINT, "coalesce_seconds": 10}, service_dry_run="explain")
    preview = answer.json()
    assert preview["forecast"] == {"days": 7, "events": 4, "peak_per_minute": 4, "deliveries": 3}
    assert [change["action"] for change in preview["changes"]] == ["create"]
    assert (await desk.client.get(PLACE)).json()["data"] == []
    made = await desk.create()
    tag = f'"{made["version"]}-0"'
    changed = await desk.client.send_json(
        "PATCH", f"{PLACE}/{made['id']}", {"event_types": ["*"]}, if_match=tag, service_dry_run="explain"
    )
    assert changed.json()["forecast"] == {"days": 7, "events": 5, "peak_per_minute": 5, "deliveries": 5}
    assert (await desk.read(made["id"]))["version"] == 1


async def test_dry_runs_do_nothing(desk: Desk) -> None:
    made = await desk.create()
    delivery = _failed(made["id"])
    await desk.deliver(delivery)
    place, before = f"{PLACE}/{made['id']}", await desk.read(made["id"])
    for method, target, body in (
        ("POST", PLACE, ENDPOINT),
        ("PATCH", place, {"status": "disabled"}),
        ("DELETE", place, None),
        ("POST", f"{place}/rotate-secret", None),
        ("POST", f"{place}/test", None),
        ("POST", f"{place}/recover", {"since": "2026-11-01T00:00:00Z"}),
        ("POST", f"{place}/deliveries/{delivery.id}/resend", None),
    ):
        for mode in ("true", "explain"):
            headers = {"service_dry_run": mode, "idempotency_key": f"{target} {mode}", "if_match": "*"}
            answer = await desk.client.send_json(method, target, body, **headers)
            assert answer.status in (200, 201, 202, 204), (method, target, answer.body)
            assert answer.headers["service-dry-run"] == mode
    assert await desk.read(made["id"]) == before
    assert (await desk.kept_deliveries()) == [delivery]
    assert (await desk.keys(made["id"])) == (key_in(made["secret"]),)


async def test_secrets_are_in_no_preview(desk: Desk) -> None:
    answer = await desk.client.post(PLACE, ENDPOINT, service_dry_run="explain")
    assert "whsec_" not in answer.body.decode()


# Workers are notified


async def test_workers_are_notified_when_changes_commit(desk: Desk) -> None:
    desk.world.database.execute("LISTEN joinery_webhooks")
    made = await desk.create()
    notification = f"{desk.tenant().org} t {made['id']}"
    assert desk.world.database.take_notifications() == [notification]
    for step in (
        lambda: desk.patch(made, coalesce_seconds=4),
        lambda: desk.client.post(f"{PLACE}/{made['id']}/test"),
        lambda: desk.client.post(f"{PLACE}/{made['id']}/rotate-secret"),
        lambda: desk.client.send_json("DELETE", f"{PLACE}/{made['id']}"),
    ):
        await step()
        assert notification in desk.world.database.take_notifications()
    await desk.client.post(PLACE, ENDPOINT, service_dry_run="true")
    assert desk.world.database.take_notifications() == []
    desk.world.database.execute("UNLISTEN *")
