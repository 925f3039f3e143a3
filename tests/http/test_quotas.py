"""Requests beyond the quotas of a plan are refused without effects (docs/conventions.md#quotas)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from adapters.files.objects import FileObjects
from domain.orgs.model import MeterAllowance, Plan
from domain.runs.ports import PushStore, RunStore
from domain.runs.usecases.scheduling import BatchExpiry
from domain.secrets.keys import SigningKeys, derive_link_key
from domain.storage.model import MAX_PENDING_UPLOADS
from domain.storage.ports import StorageLedger, StorageUpkeep
from entrypoints.http.objects import MAX_PUTS_PER_ORGANISATION
from tests.http.application import BASE, ApplicationHarness, run_application
from tests.http.client import Client, Response
from tests.http.sources import FILE_SOURCE, PUSH_SOURCE, URL_SOURCE, SourceHarness, open_source_harness
from tests.support.connectors import FakeConnectors

pytestmark = pytest.mark.asyncio
MONTHS_END = "903120"
"""Seconds from the tests' moment, 20 November 13:08, to December."""
CSV = {"content-type": "text/csv"}


async def set_quotas(application: ApplicationHarness, **meters: int) -> None:
    """Change the quotas of Fjord's plan."""
    made = Plan(
        "standard",
        "Standard",
        "standard",
        "usd",
        9900,
        frozenset(),
        {name: MeterAllowance(n, 1, 0) for name, n in meters.items()},
    )
    application.database.save_plan(made)


def is_refused(response: Response, meter: str) -> None:
    assert (response.status, response.code, response.json()["meter"]) == (429, "quota_exceeded", meter), response.body
    assert response.headers["retry-after"] == MONTHS_END and "ratelimit" in response.headers


async def read_usage(at: SourceHarness) -> int:
    async with at.application.uow.begin_reading(at.tenant) as tx:
        counted: int = await tx[StorageLedger].count_used_bytes()
    return counted


async def test_sources() -> None:
    async with open_source_harness() as at:
        for number in range(10):
            await at.create_source(name=f"Feed {number}")
        for headers in ({}, {"service_dry_run": "true"}, {"service_dry_run": "explain"}):
            refused = await at.client.post("/v1/sources", URL_SOURCE, idempotency_key="once", **headers)
            is_refused(refused, "sources")
            assert "10 sources" in refused.json()["detail"]
        assert len((await at.client.get("/v1/sources?limit=100")).json()["data"]) == 10
        sandbox = await at.application.create_client(livemode=False)
        assert (await sandbox.post("/v1/sources", URL_SOURCE)).status == 201, "each mode by itself"
        assert (await (await at.application.create_client("Oak")).post("/v1/sources", URL_SOURCE)).status == 201
        first = (await at.client.get("/v1/sources?limit=1")).json()["data"][0]
        await at.change_source(first["id"], status="paused")
        is_refused(await at.client.post("/v1/sources", URL_SOURCE), "sources")
        await at.change_source(first["id"], status="disabled")
        again = await at.client.post("/v1/sources", URL_SOURCE, idempotency_key="once")
        assert again.status == 201, "a refusal by quota is not kept under the key"


async def test_an_invalid_source_is_reported_before_the_quota() -> None:
    async with open_source_harness() as at:
        for number in range(10):
            await at.create_source(name=f"Feed {number}")
        assert (await at.client.post("/v1/sources", {"name": "x", "kind": "url"})).code == "invalid_request"


async def test_announcing_a_file() -> None:
    async with open_source_harness() as at:
        await set_quotas(at.application, stored_bytes=100)
        source = await at.create_source(**FILE_SOURCE, config={})
        path = f"/v1/sources/{source['id']}/uploads"

        async def announce(bytes: int, **headers: str) -> Response:
            return await at.client.post(
                path, {"filename": "a.csv", "content_type": "text/csv", "bytes": bytes}, **headers
            )

        assert (await announce(90, service_dry_run="true")).status == 201
        assert await read_usage(at) == 0, "a dry run counts nothing"
        assert (await announce(60, idempotency_key="one")).status == 201
        assert (await announce(60, idempotency_key="one")).headers["idempotent-replayed"] == "true"
        assert await read_usage(at) == 60
        is_refused(await announce(41), "stored_bytes")
        is_refused(await announce(41, service_dry_run="true"), "stored_bytes")
        assert (await announce(40)).status == 201
        assert await read_usage(at) == 100


async def test_too_many_open_files() -> None:
    async with open_source_harness() as at:
        source = await at.create_source(**FILE_SOURCE, config={})
        path, body = f"/v1/sources/{source['id']}/uploads", {"filename": "a", "content_type": "a/b", "bytes": 1}
        for _ in range(MAX_PENDING_UPLOADS):
            at.application.clock.advance(timedelta(seconds=1))
            assert (await at.client.post(path, body)).status == 201
        refused = await at.client.post(path, body)
        assert refused.code == "conflict" and await read_usage(at) == MAX_PENDING_UPLOADS


async def test_pushing() -> None:
    async with open_source_harness() as at:
        await set_quotas(at.application, stored_bytes=400)
        source = await at.create_source(**PUSH_SOURCE)
        path = f"/v1/sources/{source['id']}/records"
        body = {"records": [{"product": {"external_id": "A", "title": "x" * 100}}], "batch": "b", "more": True}
        first = await at.client.post(path, body)
        assert first.status == 202
        one = await read_usage(at)
        for _ in range(400 // one - 1):
            assert (await at.client.post(path, body)).status == 202
        counted = await read_usage(at)
        for more in ({}, {"more": False}, {"batch": "other"}):
            is_refused(await at.client.post(path, body | more), "stored_bytes")
        run = (await at.client.get(f"/v1/runs/{first.json()['id']}")).json()
        assert (run["status"], await read_usage(at)) == ("queued", counted)
        async with at.application.uow.begin_reading(at.tenant) as tx:
            assert (await tx[RunStore].get(run["id"])).input.parts == 400 // one
            last = 400 // one - 1
            assert [await tx[PushStore].get_part(run["id"], number) is None for number in (last, last + 1)] == [
                False,
                True,
            ]
        await set_quotas(at.application, stored_bytes=800)
        assert (await at.client.post(path, body | {"more": False})).status == 202


async def test_an_expired_batch_accepts_no_more_parts() -> None:
    async with open_source_harness() as at:
        source = await at.create_source(**PUSH_SOURCE)
        path = f"/v1/sources/{source['id']}/records"
        body = {"records": [{"product": {"external_id": "A", "title": "A"}}], "batch": "b", "more": True}
        run = (await at.client.post(path, body)).json()["id"]
        at.application.clock.advance(timedelta(hours=23))
        assert (await at.client.post(path, body)).json()["id"] == run
        expiry = BatchExpiry(at.application.uow, at.application.dependencies[StorageUpkeep], at.application.clock)
        at.application.clock.advance(timedelta(hours=23))
        assert await expiry.expire_batches() == 0
        at.application.clock.advance(timedelta(hours=2))
        assert await expiry.expire_batches() == 1
        ended = (await at.client.get(f"/v1/runs/{run}")).json()
        assert (ended["status"], ended["error"]["code"]) == ("cancelled", "batch_expired") and await read_usage(at) == 0
        late = await at.client.post(path, body | {"more": False, "complete": True})
        assert (late.code, late.status) == ("conflict", 409) and run in late.json()["detail"]
        assert (await at.client.post(path, body | {"batch": "c"})).status == 202
        assert (await at.client.post(path, {"records": body["records"]})).status == 202
        at.application.clock.advance(timedelta(days=7))
        assert (await at.client.post(path, body)).status == 202


# PUTs of bytes, by links.


@asynccontextmanager
async def open_application(folder: Path) -> AsyncIterator[tuple[ApplicationHarness, Client, FileObjects]]:
    """Run an application that serves its own objects."""
    objects = FileObjects(folder, BASE, SigningKeys(derive_link_key("a secret of at least thirty-two characters")))
    async with run_application(objects=objects, connectors=FakeConnectors()) as application:
        yield application, await application.create_client(), objects


async def announce_upload(client: Client, bytes: int = 10) -> tuple[Any, str]:
    """Announce an upload; return it and the target of its PUT."""
    source = (await client.post("/v1/sources", FILE_SOURCE)).json()
    body = {"filename": "a.csv", "content_type": "text/csv", "bytes": bytes}
    upload = (await client.post(f"/v1/sources/{source['id']}/uploads", body)).json()
    parts = urlsplit(upload["target"]["url"])
    return upload, f"{parts.path}?{parts.query}"


async def test_bytes_are_accepted_only_while_the_upload_is_pending(tmp_path: Path) -> None:
    async with open_application(tmp_path) as (application, client, objects):
        upload, link = await announce_upload(client)
        anonymous = application.build_client()
        for _ in range(2):
            assert (await anonymous.send("PUT", link, body=b"0123456789", headers=CSV)).status == 200
        assert (await client.post(f"/v1/uploads/{upload['id']}/complete")).status == 200
        refused = await anonymous.send("PUT", link, body=b"9876543210", headers=CSV)
        assert (refused.status, refused.code) == (409, "conflict") and "completed" in refused.json()["detail"]
        key = link.partition("?")[0].removeprefix("/objects/")
        assert b"".join([chunk async for chunk in objects.read(key)]) == b"0123456789"


async def test_a_body_above_the_announced_size_is_refused_unread(tmp_path: Path) -> None:
    async with open_application(tmp_path) as (application, client, _):
        _, link = await announce_upload(client)
        taken: list[str] = []

        async def receive() -> Any:
            taken.append("asked" if not sent else "drained")
            return {"type": "http.request", "body": b"x" * 11, "more_body": False}

        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        path, _, query = link.partition("?")
        scope = {
            "type": "http", "method": "PUT", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(b"content-type", b"text/csv"), (b"content-length", b"11")], "client": ("203.0.113.7", 1),
        }  # fmt: skip
        await application.app(scope, receive, send)
        assert sent[0]["status"] == 413 and "asked" not in taken
        odd = [(b"content-type", b"text/csv"), (b"content-length", b"-1x")]
        sent.clear()
        await application.app({**scope, "headers": odd}, receive, send)
        assert sent[0]["status"] == 413 and "asked" in taken, "what says nothing of its length is counted as it comes"


class PausedUpload:
    """PUT whose body is sent when `released` is set."""

    def __init__(self, application: ApplicationHarness, link: str) -> None:
        self.released, self.started, self.status = asyncio.Event(), asyncio.Event(), 0
        path, _, query = link.partition("?")
        scope = {
            "type": "http", "method": "PUT", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(b"content-type", b"text/csv")], "client": ("203.0.113.7", 1),
        }  # fmt: skip
        self.task = asyncio.create_task(application.app(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        self.started.set()
        await self.released.wait()
        return {"type": "http.request", "body": b"0123456789", "more_body": False}

    async def _send(self, message: Any) -> None:
        self.status = message.get("status", self.status)


async def test_few_files_at_a_time(tmp_path: Path) -> None:
    async with open_application(tmp_path) as (application, client, _):
        links = [(await announce_upload(client))[1] for _ in range(MAX_PUTS_PER_ORGANISATION + 1)]
        other = (await announce_upload(await application.create_client("Oak")))[1]
        held = [PausedUpload(application, link) for link in links[:MAX_PUTS_PER_ORGANISATION]]
        await asyncio.gather(*(put.started.wait() for put in held))
        anonymous = application.build_client()
        same = await anonymous.send("PUT", links[0], body=b"x" * 10, headers=CSV)
        assert (same.status, same.code) == (409, "conflict")
        more = await anonymous.send("PUT", links[-1], body=b"x" * 10, headers=CSV)
        assert (more.status, more.code, more.headers["retry-after"]) == (429, "rate_limited", "5")
        assert (await anonymous.send("PUT", other, body=b"x" * 10, headers=CSV)).status == 200, "others are not held up"
        for put in held:
            put.released.set()
        await asyncio.gather(*(put.task for put in held))
        assert [put.status for put in held] == [200] * MAX_PUTS_PER_ORGANISATION
        assert (await anonymous.send("PUT", links[-1], body=b"x" * 10, headers=CSV)).status == 200


async def test_puts_are_rate_limited(tmp_path: Path) -> None:
    async with open_application(tmp_path) as (application, client, _):
        _, link = await announce_upload(client)
        anonymous = application.build_client()
        responses = [await anonymous.send("PUT", link, body=b"x" * 10, headers=CSV) for _ in range(41)]
        assert [response.status for response in responses] == [200] * 40 + [429]
        assert responses[-1].code == "rate_limited" and responses[-1].headers["retry-after"] == "1"
        other = (await announce_upload(await application.create_client("Oak")))[1]
        assert (await anonymous.send("PUT", other, body=b"x" * 10, headers=CSV)).status == 200
        application.clock.advance(timedelta(seconds=1))
        assert (await anonymous.send("PUT", link, body=b"x" * 10, headers=CSV)).status == 200
