"""Webhooks on the served application: no secret is stored in plain text, and samples are in the feed."""

import base64
from typing import Any

import psycopg
import pytest

from tests.support.postgres import database
from tests.tenancy.application import BODIES, ServedApplication
from tests.tenancy.schema import list_tenant_tables

pytestmark = pytest.mark.asyncio(loop_scope="module")
PLACE = "/v1/webhook-endpoints"


async def _read_rows(org: str) -> bytes:
    """Return every row of the organisation, with binary columns unchanged."""
    values = []
    async with await psycopg.AsyncConnection.connect(await database(), autocommit=True) as owner:
        for table in await list_tenant_tables(owner):
            if not table.is_partition:
                cursor = owner.cursor(binary=True)
                await cursor.execute(f"SELECT * FROM {table.name} WHERE org = %s".encode(), (org,))
                values += [value for row in await cursor.fetchall() for value in row]
    return b"\n".join(_encode(value) for value in values)


def _encode(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else repr(value).encode()


async def test_secrets_are_encrypted_wherever_they_are_stored(application: ServedApplication) -> None:
    mine = await application.create_tenancy(await application.create_organisation(), True)
    secrets = []
    made = await mine.client.post(PLACE, BODIES["webhooks.create"], idempotency_key="create")
    secrets.append(made.json()["secret"])
    target = f"{PLACE}/{made.json()['id']}/rotate-secret"
    for key in ("rotate", "rotate again"):
        secrets.append((await mine.client.post(target, None, idempotency_key=key)).json()["secret"])
    everything = await _read_rows(mine.tenant.org)
    assert made.json()["id"].encode() in everything, "the searched rows contain the endpoint"
    for secret in secrets:
        assert secret.removeprefix("whsec_").encode() not in everything
        assert base64.b64decode(secret.removeprefix("whsec_")) not in everything
    again = await mine.client.post(PLACE, BODIES["webhooks.create"], idempotency_key="create")
    assert (again.body, again.headers["idempotent-replayed"]) == (made.body, "true")
    again = await mine.client.post(target, None, idempotency_key="rotate")
    assert again.json()["secret"] == secrets[1]


async def test_samples_appear_in_the_feed(application: ServedApplication) -> None:
    mine = await application.create_tenancy(await application.create_organisation(), False)
    sent = (await mine.client.post("/v1/test/events", {"type": "offer.changed"})).json()
    page = (await mine.client.get("/v1/changes?types=offer.changed&wait=5")).json()
    assert [event["id"] for event in page["data"]][-1:] == [sent["id"]]
    assert page["data"][-1] == sent["event"]
