"""Signing secrets over HTTP: shown once, stored encrypted, rotated with an overlap."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.kernel.tenancy import Tenant
from domain.webhooks.ports import DeliveryStore
from domain.webhooks.usecases.attempts import decrypt_signing_keys
from domain.webhooks.usecases.service import RotationExpiry
from tests.http.application import OPERATOR
from tests.http.webhooks import ENDPOINT, ENDPOINTS_PATH, WebhookHarness, decode_secret, open_webhook_harness

pytestmark = pytest.mark.asyncio
UNKNOWN = f"{ENDPOINTS_PATH}/whe_0000000000000000000000"


@pytest_asyncio.fixture(name="harness")
async def open_harness() -> AsyncIterator[WebhookHarness]:
    """Run the application."""
    async with open_webhook_harness() as harness:
        yield harness


# Secrets in store


@pytest.mark.parametrize("path", ["", "/rotate-secret"])
async def test_a_repeated_request_returns_the_sealed_secret(harness: WebhookHarness, path: str) -> None:
    made = await harness.create_endpoint() if path else {"id": ""}
    target = f"{ENDPOINTS_PATH}/{made['id']}{path}" if path else ENDPOINTS_PATH
    body = None if path else ENDPOINT
    first = await harness.client.post(target, body, idempotency_key="the key")
    again = await harness.client.post(target, body, idempotency_key="the key")
    assert again.headers["idempotent-replayed"] == "true"
    assert (again.status, again.body) == (first.status, first.body)
    secret = first.json()["secret"]
    everything = repr(harness.application.database.fetch_contents())
    assert all(form not in everything for form in (secret, secret.encode().hex(), decode_secret(secret).hex()))


async def test_a_refusal_is_replayed(harness: WebhookHarness) -> None:
    for _ in range(2):
        response = await harness.client.post(f"{UNKNOWN}/rotate-secret", None, idempotency_key="k")
        assert (response.status, response.code) == (404, "not_found")
    assert response.headers["idempotent-replayed"] == "true"


# Rotating


async def test_rotation_signs_with_both_for_the_overlap(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    response = await harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/rotate-secret", {"overlap_hours": 2})
    rotated = response.json()
    assert (response.status, rotated["version"]) == (200, 2)
    assert rotated["secret"] != made["secret"] and rotated["secret_last4"] == rotated["secret"][-4:]
    assert rotated["rotation"] == {"expires_at": "2026-11-20T15:08:00.000Z", "last4": made["secret_last4"]}
    assert (await harness.decrypt_keys(made["id"])) == (decode_secret(rotated["secret"]), decode_secret(made["secret"]))
    harness.application.clock.advance(timedelta(hours=2) - timedelta(milliseconds=1))
    assert len(await harness.decrypt_keys(made["id"])) == 2
    harness.application.clock.advance(timedelta(milliseconds=1))
    assert (await harness.decrypt_keys(made["id"])) == (decode_secret(rotated["secret"]),)
    assert "rotation" not in await harness.read_endpoint(made["id"])


async def test_a_previous_secret_is_deleted_after_its_overlap(harness: WebhookHarness) -> None:
    made, other = await harness.create_endpoint(), await harness.create_endpoint()
    rotated = (await harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/rotate-secret", {"overlap_hours": 2})).json()
    await harness.client.post(f"{ENDPOINTS_PATH}/{other['id']}/rotate-secret", {"overlap_hours": 3})
    rotations = RotationExpiry(
        harness.application.uow,
        harness.application.dependencies[DeliveryStore],
        harness.service,
        harness.application.clock,
    )
    harness.application.clock.advance(timedelta(hours=2) - timedelta(milliseconds=1))
    assert await rotations.end_rotations() == 0 and (await harness.load_endpoint(made["id"]))[1].previous is not None
    harness.application.clock.advance(timedelta(milliseconds=1))
    before = await harness.read_endpoint(made["id"])
    assert await rotations.end_rotations() == 1 and await rotations.end_rotations() == 0
    endpoint, secrets = await harness.load_endpoint(made["id"])
    assert secrets.previous is None and endpoint.rotation is None
    assert (await harness.decrypt_keys(made["id"])) == (decode_secret(rotated["secret"]),)
    assert await harness.read_endpoint(made["id"]) == before, "nothing that anybody sees has changed"
    assert (await harness.load_endpoint(other["id"]))[1].previous is not None
    entry = (await harness.list_audit_entries(made["id"]))[-1]
    assert (entry.context.actor.kind, entry.context.operation) == ("service", "webhooks.end_rotation")
    ended = {"expires_at": "2026-11-20T15:08:00.000Z", "last4": made["secret_last4"]}
    assert (entry.change.before, entry.change.after) == ({"rotation": ended}, {})


async def test_a_concurrent_rotation_is_not_ended(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    target = f"{ENDPOINTS_PATH}/{made['id']}/rotate-secret"
    await harness.client.post(target, {"overlap_hours": 1})
    harness.application.clock.advance(timedelta(hours=1))
    await harness.client.post(target, {"overlap_hours": 1})
    async with harness.application.uow.begin(Tenant(harness.application.orgs["Fjord"].id, True), OPERATOR) as tx:
        await harness.service.end_rotation(tx, made["id"])
        await harness.service.end_rotation(tx, "whe_0000000000000000000000")
    assert (await harness.load_endpoint(made["id"]))[1].previous is not None and len(
        await harness.decrypt_keys(made["id"])
    ) == 2


async def test_rotation_overlaps_a_day_by_default(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    rotated = (await harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/rotate-secret", None)).json()
    assert rotated["rotation"]["expires_at"] == "2026-11-21T13:08:00.000Z"


async def test_rotation_without_overlap_ends_the_old_secret(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    rotated = (await harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/rotate-secret", {"overlap_hours": 0})).json()
    assert "rotation" not in rotated
    assert (await harness.decrypt_keys(made["id"])) == (decode_secret(rotated["secret"]),)
    assert (await harness.load_endpoint(made["id"]))[1].previous is None


async def test_a_second_rotation_keeps_the_latest_previous_secret(harness: WebhookHarness) -> None:
    made = await harness.create_endpoint()
    target = f"{ENDPOINTS_PATH}/{made['id']}/rotate-secret"
    second = (await harness.client.post(target, {"overlap_hours": 72})).json()
    third = (await harness.client.post(target, {"overlap_hours": 1})).json()
    assert (await harness.decrypt_keys(made["id"])) == (decode_secret(third["secret"]), decode_secret(second["secret"]))
    assert third["rotation"]["last4"] == second["secret_last4"]


@pytest.mark.parametrize(("hours", "code"), [(-1, "too_small"), (73, "too_large"), ("1", "invalid_type")])
async def test_overlaps_have_bounds(harness: WebhookHarness, hours: Any, code: str) -> None:
    made = await harness.create_endpoint()
    response = await harness.client.post(f"{ENDPOINTS_PATH}/{made['id']}/rotate-secret", {"overlap_hours": hours})
    assert ("overlap_hours", code) in response.faults


async def test_secrets_of_another_endpoint_cannot_be_decrypted(harness: WebhookHarness) -> None:
    one, other = await harness.create_endpoint(), await harness.create_endpoint()
    _, secrets = await harness.load_endpoint(one["id"])
    with pytest.raises(ValueError, match="encrypted"):
        decrypt_signing_keys(
            harness.service.vault,
            (await harness.load_endpoint(other["id"]))[0],
            secrets,
            harness.application.clock.now(),
        )
