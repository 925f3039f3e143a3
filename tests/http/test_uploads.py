"""Uploads over HTTP: announcing a file, handing in its bytes, completing."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from domain.runs.model import MAX_SNAPSHOT_BYTES
from domain.runs.ports import RunStore
from domain.uploads.model import Upload
from tests.http.client import Answer
from tests.http.sources import FILE_SOURCE, PUSH_SOURCE, Shop, shop

pytestmark = pytest.mark.asyncio
FILE = {"filename": "prices.csv", "content_type": "text/csv", "bytes": 10}


@pytest_asyncio.fixture(name="shop")
async def running_shop() -> AsyncIterator[Shop]:
    """A running application."""
    async with shop() as made:
        yield made


async def _source(shop: Shop) -> Any:
    return await shop.create(**FILE_SOURCE, config={})


async def _announce(shop: Shop, source: Any, **fields: Any) -> Answer:
    return await shop.client.post(f"/v1/sources/{source['id']}/uploads", FILE | fields)


async def _put(shop: Shop, upload: Any, tmp_path: Path, bytes: int = 10) -> None:
    """Hand in the bytes, as a client would at the target."""
    file = tmp_path / "file"
    file.write_bytes(b"x" * bytes)
    async with shop.world.uow.begin_reading(shop.tenant) as tx:
        key = (await tx.store(Upload).get(upload["id"])).key
    await shop.services.objects.put_file(key, file)


async def test_announce(shop: Shop) -> None:
    source = await _source(shop)
    answer = await _announce(shop, source)
    upload = answer.json()
    assert answer.status == 201 and answer.headers["location"].endswith(f"/v1/uploads/{upload['id']}")
    assert upload["target"].pop("url").startswith("http")
    assert upload == {
        "object": "upload",
        "id": upload["id"],
        "source": source["id"],
        "filename": "prices.csv",
        "content_type": "text/csv",
        "bytes": 10,
        "status": "pending",
        "target": {
            "method": "PUT",
            "headers": {"Content-Type": "text/csv"},
            "expires_at": "2026-11-20T13:23:00.000Z",
        },
        "expires_at": "2026-11-20T13:23:00.000Z",
        "created_at": "2026-11-20T13:08:00.000Z",
    }
    read = (await shop.client.get(f"/v1/uploads/{upload['id']}")).json()
    assert read["target"].pop("url").startswith("http")
    assert read == upload
    assert (await shop.audited(upload["id"]))[0].change.after["filename"] == "prices.csv"


async def test_complete(shop: Shop, tmp_path: Path) -> None:
    source = await _source(shop)
    upload = (await _announce(shop, source)).json()
    await _put(shop, upload, tmp_path)
    shop.world.clock.advance(timedelta(minutes=14))
    answer = await shop.client.post(f"/v1/uploads/{upload['id']}/complete")
    completed = answer.json()
    assert answer.status == 200 and completed["status"] == "completed" and "target" not in completed
    assert completed["completed_at"] == "2026-11-20T13:22:00.000Z"
    run = (await shop.client.get(f"/v1/runs/{completed['run']}")).json()
    assert (run["trigger"], run["status"], run["source"]) == ("upload", "queued", source["id"])
    async with shop.world.uow.begin_reading(shop.tenant) as tx:
        assert (await tx[RunStore].get(run["id"])).input.upload == upload["id"]
    assert [job.key for job in shop.jobs()] == [run["id"]]
    shop.world.clock.advance(timedelta(hours=1))
    assert (await shop.client.post(f"/v1/uploads/{upload['id']}/complete")).json() == completed
    assert (await shop.client.get(f"/v1/uploads/{upload['id']}")).json() == completed
    assert len(shop.jobs()) == 1


async def test_complete_needs_the_announced_bytes(shop: Shop, tmp_path: Path) -> None:
    upload = (await _announce(shop, await _source(shop))).json()
    path = f"/v1/uploads/{upload['id']}/complete"
    missing = await shop.client.post(path)
    assert missing.code == "conflict" and "target.url" in missing.json()["detail"]
    await _put(shop, upload, tmp_path, bytes=9)
    wrong = await shop.client.post(path)
    assert wrong.code == "unprocessable" and "9 bytes" in wrong.json()["detail"]
    await _put(shop, upload, tmp_path)
    assert (await shop.client.post(path)).status == 200


async def test_an_expired_upload(shop: Shop, tmp_path: Path) -> None:
    upload = (await _announce(shop, await _source(shop))).json()
    await _put(shop, upload, tmp_path)
    shop.world.clock.advance(timedelta(minutes=15))
    read = (await shop.client.get(f"/v1/uploads/{upload['id']}")).json()
    assert read["status"] == "expired" and "target" not in read
    refused = await shop.client.post(f"/v1/uploads/{upload['id']}/complete")
    assert refused.code == "conflict" and "expired" in refused.json()["detail"]


async def test_one_run_at_a_time(shop: Shop, tmp_path: Path) -> None:
    source = await _source(shop)
    uploads = [(await _announce(shop, source)).json() for _ in range(2)]
    for upload in uploads:
        await _put(shop, upload, tmp_path)
    assert (await shop.client.post(f"/v1/uploads/{uploads[0]['id']}/complete")).status == 200
    second = await shop.client.post(f"/v1/uploads/{uploads[1]['id']}/complete")
    assert second.code == "conflict"
    assert (await shop.client.get(f"/v1/uploads/{uploads[1]['id']}")).json()["status"] == "pending"


async def test_a_paused_source_takes_no_files(shop: Shop, tmp_path: Path) -> None:
    source = await _source(shop)
    upload = (await _announce(shop, source)).json()
    await _put(shop, upload, tmp_path)
    await shop.change(source["id"], status="paused")
    assert (await shop.client.post(f"/v1/uploads/{upload['id']}/complete")).code == "conflict"
    assert (await _announce(shop, source)).code == "conflict"


async def test_only_file_sources_take_files(shop: Shop) -> None:
    for fields in ({}, PUSH_SOURCE):
        assert (await _announce(shop, await shop.create(**fields))).code == "unprocessable"


async def test_a_file_over_the_limit(shop: Shop) -> None:
    source = await _source(shop)
    assert (await _announce(shop, source, bytes=MAX_SNAPSHOT_BYTES)).status == 201
    assert (await _announce(shop, source, bytes=MAX_SNAPSHOT_BYTES + 1)).code == "unprocessable"


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"bytes": 0}, ("bytes", "too_small")),
        ({"bytes": "10"}, ("bytes", "invalid_type")),
        ({"filename": ""}, ("filename", "too_short")),
        ({"filename": "../../etc/passwd"}, ("filename", "invalid_format")),
        ({"content_type": "text/csv\r\nX-Evil: 1"}, ("content_type", "invalid_format")),
        ({"content_type": "csv"}, ("content_type", "invalid_format")),
        ({"sha256": "x"}, ("sha256", "unknown_field")),
    ],
)
async def test_bad_announcements(shop: Shop, fields: Any, fault: tuple[str, str]) -> None:
    answer = await _announce(shop, await _source(shop), **fields)
    assert answer.status == 400 and fault in answer.faults


async def test_others_see_nothing(shop: Shop) -> None:
    upload = (await _announce(shop, await _source(shop))).json()
    for client in (await shop.world.client("Oak"), await shop.world.client(livemode=False)):
        assert (await client.get(f"/v1/uploads/{upload['id']}")).code == "not_found"
        assert (await client.post(f"/v1/uploads/{upload['id']}/complete")).code == "not_found"
