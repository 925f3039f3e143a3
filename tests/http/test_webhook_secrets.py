"""Signing secrets over HTTP: shown once, sealed in store, rotated with an overlap."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.kernel.tenancy import Tenant
from domain.webhooks.ports import DeliveryStore
from domain.webhooks.usecases.attempts import decrypt_signing_keys
from domain.webhooks.usecases.service import RotationExpiry
from tests.http.fakes import OPERATOR
from tests.http.webhooks import ENDPOINT, PLACE, Desk, desk, key_in

pytestmark = pytest.mark.asyncio
UNKNOWN = f"{PLACE}/whe_0000000000000000000000"


@pytest_asyncio.fixture(name="desk")
async def running_desk() -> AsyncIterator[Desk]:
    """A running application."""
    async with desk() as made:
        yield made


# Secrets in store


@pytest.mark.parametrize("path", ["", "/rotate-secret"])
async def test_a_repeated_request_returns_the_sealed_secret(desk: Desk, path: str) -> None:
    made = await desk.create() if path else {"id": ""}
    target = f"{PLACE}/{made['id']}{path}" if path else PLACE
    body = None if path else ENDPOINT
    first = await desk.client.post(target, body, idempotency_key="the key")
    again = await desk.client.post(target, body, idempotency_key="the key")
    assert again.headers["idempotent-replayed"] == "true"
    assert (again.status, again.body) == (first.status, first.body)
    secret = first.json()["secret"]
    everything = repr(desk.world.database.fetch_contents())
    assert all(form not in everything for form in (secret, secret.encode().hex(), key_in(secret).hex()))


async def test_a_refusal_is_repeated_too(desk: Desk) -> None:
    for _ in range(2):
        answer = await desk.client.post(f"{UNKNOWN}/rotate-secret", None, idempotency_key="k")
        assert (answer.status, answer.code) == (404, "not_found")
    assert answer.headers["idempotent-replayed"] == "true"


# Rotating


async def test_rotation_signs_with_both_for_the_overlap(desk: Desk) -> None:
    made = await desk.create()
    answer = await desk.client.post(f"{PLACE}/{made['id']}/rotate-secret", {"overlap_hours": 2})
    rotated = answer.json()
    assert (answer.status, rotated["version"]) == (200, 2)
    assert rotated["secret"] != made["secret"] and rotated["secret_last4"] == rotated["secret"][-4:]
    assert rotated["rotation"] == {"expires_at": "2026-11-20T15:08:00.000Z", "last4": made["secret_last4"]}
    assert (await desk.keys(made["id"])) == (key_in(rotated["secret"]), key_in(made["secret"]))
    desk.world.clock.advance(timedelta(hours=2) - timedelta(milliseconds=1))
    assert len(await desk.keys(made["id"])) == 2
    desk.world.clock.advance(timedelta(milliseconds=1))
    assert (await desk.keys(made["id"])) == (key_in(rotated["secret"]),)
    assert "rotation" not in await desk.read(made["id"])


async def test_a_former_secret_is_forgotten_once_its_overlap_is_over(desk: Desk) -> None:
    made, other = await desk.create(), await desk.create()
    rotated = (await desk.client.post(f"{PLACE}/{made['id']}/rotate-secret", {"overlap_hours": 2})).json()
    await desk.client.post(f"{PLACE}/{other['id']}/rotate-secret", {"overlap_hours": 3})
    rotations = RotationExpiry(desk.world.uow, desk.world.dependencies[DeliveryStore], desk.service, desk.world.clock)
    desk.world.clock.advance(timedelta(hours=2) - timedelta(milliseconds=1))
    assert await rotations.end_rotations() == 0 and (await desk.kept(made["id"]))[1].previous is not None
    desk.world.clock.advance(timedelta(milliseconds=1))
    before = await desk.read(made["id"])
    assert await rotations.end_rotations() == 1 and await rotations.end_rotations() == 0
    endpoint, secrets = await desk.kept(made["id"])
    assert secrets.previous is None and endpoint.rotation is None
    assert (await desk.keys(made["id"])) == (key_in(rotated["secret"]),)
    assert await desk.read(made["id"]) == before, "nothing that anybody sees has changed"
    assert (await desk.kept(other["id"]))[1].previous is not None
    entry = (await desk.audited(made["id"]))[-1]
    assert (entry.context.actor.kind, entry.context.operation) == ("service", "webhooks.end_rotation")
    ended = {"expires_at": "2026-11-20T15:08:00.000Z", "last4": made["secret_last4"]}
    assert (entry.change.before, entry.change.after) == ({"rotation": ended}, {})


async def test_a_rotation_begun_meanwhile_is_not_ended(desk: Desk) -> None:
    made = await desk.create()
    target = f"{PLACE}/{made['id']}/rotate-secret"
    await desk.client.post(target, {"overlap_hours": 1})
    desk.world.clock.advance(timedelta(hours=1))
    await desk.client.post(target, {"overlap_hours": 1})
    async with desk.world.uow.begin(Tenant(desk.world.orgs["Fjord"].id, True), OPERATOR) as tx:
        await desk.service.end_rotation(tx, made["id"])
        await desk.service.end_rotation(tx, "whe_0000000000000000000000")
    assert (await desk.kept(made["id"]))[1].previous is not None and len(await desk.keys(made["id"])) == 2


async def test_rotation_overlaps_a_day_by_default(desk: Desk) -> None:
    made = await desk.create()
    rotated = (await desk.client.post(f"{PLACE}/{made['id']}/rotate-secret", None)).json()
    assert rotated["rotation"]["expires_at"] == "2026-11-21T13:08:00.000Z"


async def test_rotation_without_overlap_ends_the_old_secret(desk: Desk) -> None:
    made = await desk.create()
    rotated = (await desk.client.post(f"{PLACE}/{made['id']}/rotate-secret", {"overlap_hours": 0})).json()
    assert "rotation" not in rotated
    assert (await desk.keys(made["id"])) == (key_in(rotated["secret"]),)
    assert (await desk.kept(made["id"]))[1].previous is None


async def test_rotating_again_keeps_the_newest_previous(desk: Desk) -> None:
    made = await desk.create()
    target = f"{PLACE}/{made['id']}/rotate-secret"
    second = (await desk.client.post(target, {"overlap_hours": 72})).json()
    third = (await desk.client.post(target, {"overlap_hours": 1})).json()
    assert (await desk.keys(made["id"])) == (key_in(third["secret"]), key_in(second["secret"]))
    assert third["rotation"]["last4"] == second["secret_last4"]


@pytest.mark.parametrize(("hours", "code"), [(-1, "too_small"), (73, "too_large"), ("1", "invalid_type")])
async def test_overlaps_have_bounds(desk: Desk, hours: Any, code: str) -> None:
    made = await desk.create()
    answer = await desk.client.post(f"{PLACE}/{made['id']}/rotate-secret", {"overlap_hours": hours})
    assert ("overlap_hours", code) in answer.faults


async def test_secrets_of_another_endpoint_do_not_open(desk: Desk) -> None:
    one, other = await desk.create(), await desk.create()
    _, secrets = await desk.kept(one["id"])
    with pytest.raises(ValueError, match="encrypted"):
        decrypt_signing_keys(desk.service.vault, (await desk.kept(other["id"]))[0], secrets, desk.world.clock.now())
