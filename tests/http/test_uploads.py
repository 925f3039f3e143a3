"""Uploads over HTTP: announcement, PUT of the bytes, completion."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from domain.runs.model import MAX_SNAPSHOT_BYTES
from domain.runs.ports import RunStore
from domain.uploads.model import Upload
from tests.http.client import Response
from tests.http.sources import FILE_SOURCE, PUSH_SOURCE, SourceHarness, open_source_harness

pytestmark = pytest.mark.asyncio
FILE = {"filename": "prices.csv", "content_type": "text/csv", "bytes": 10}


@pytest_asyncio.fixture(name="harness")
async def open_harness() -> AsyncIterator[SourceHarness]:
    """Run the application."""
    async with open_source_harness() as harness:
        yield harness


async def _create_source(harness: SourceHarness) -> Any:
    return await harness.create_source(**FILE_SOURCE, config={})


async def _announce_upload(harness: SourceHarness, source: Any, **fields: Any) -> Response:
    return await harness.client.post(f"/v1/sources/{source['id']}/uploads", FILE | fields)


async def _upload_bytes(harness: SourceHarness, upload: Any, tmp_path: Path, bytes: int = 10) -> None:
    """Send the bytes to the target of the upload."""
    file = tmp_path / "file"
    file.write_bytes(b"x" * bytes)
    async with harness.application.uow.begin_reading(harness.tenant) as tx:
        key = (await tx.store(Upload).get(upload["id"])).key
    await harness.services.objects.put_file(key, file)


async def test_announce(harness: SourceHarness) -> None:
    source = await _create_source(harness)
    response = await _announce_upload(harness, source)
    upload = response.json()
    assert response.status == 201 and response.headers["location"].endswith(f"/v1/uploads/{upload['id']}")
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
    read = (await harness.client.get(f"/v1/uploads/{upload['id']}")).json()
    assert read["target"].pop("url").startswith("http")
    assert read == upload
    assert (await harness.list_audit_entries(upload["id"]))[0].change.after["filename"] == "prices.csv"


async def test_complete(harness: SourceHarness, tmp_path: Path) -> None:
    source = await _create_source(harness)
    upload = (await _announce_upload(harness, source)).json()
    await _upload_bytes(harness, upload, tmp_path)
    harness.application.clock.advance(timedelta(minutes=14))
    response = await harness.client.post(f"/v1/uploads/{upload['id']}/complete")
    completed = response.json()
    assert response.status == 200 and completed["status"] == "completed" and "target" not in completed
    assert completed["completed_at"] == "2026-11-20T13:22:00.000Z"
    run = (await harness.client.get(f"/v1/runs/{completed['run']}")).json()
    assert (run["trigger"], run["status"], run["source"]) == ("upload", "queued", source["id"])
    async with harness.application.uow.begin_reading(harness.tenant) as tx:
        assert (await tx[RunStore].get(run["id"])).input.upload == upload["id"]
    assert [job.key for job in harness.list_jobs()] == [run["id"]]
    harness.application.clock.advance(timedelta(hours=1))
    assert (await harness.client.post(f"/v1/uploads/{upload['id']}/complete")).json() == completed
    assert (await harness.client.get(f"/v1/uploads/{upload['id']}")).json() == completed
    assert len(harness.list_jobs()) == 1


async def test_complete_requires_the_announced_bytes(harness: SourceHarness, tmp_path: Path) -> None:
    upload = (await _announce_upload(harness, await _create_source(harness))).json()
    path = f"/v1/uploads/{upload['id']}/complete"
    missing = await harness.client.post(path)
    assert missing.code == "conflict" and "target.url" in missing.json()["detail"]
    await _upload_bytes(harness, upload, tmp_path, bytes=9)
    wrong = await harness.client.post(path)
    assert wrong.code == "unprocessable" and "9 bytes" in wrong.json()["detail"]
    await _upload_bytes(harness, upload, tmp_path)
    assert (await harness.client.post(path)).status == 200


async def test_an_expired_upload(harness: SourceHarness, tmp_path: Path) -> None:
    upload = (await _announce_upload(harness, await _create_source(harness))).json()
    await _upload_bytes(harness, upload, tmp_path)
    harness.application.clock.advance(timedelta(minutes=15))
    read = (await harness.client.get(f"/v1/uploads/{upload['id']}")).json()
    assert read["status"] == "expired" and "target" not in read
    refused = await harness.client.post(f"/v1/uploads/{upload['id']}/complete")
    assert refused.code == "conflict" and "expired" in refused.json()["detail"]


async def test_one_run_at_a_time(harness: SourceHarness, tmp_path: Path) -> None:
    source = await _create_source(harness)
    uploads = [(await _announce_upload(harness, source)).json() for _ in range(2)]
    for upload in uploads:
        await _upload_bytes(harness, upload, tmp_path)
    assert (await harness.client.post(f"/v1/uploads/{uploads[0]['id']}/complete")).status == 200
    second = await harness.client.post(f"/v1/uploads/{uploads[1]['id']}/complete")
    assert second.code == "conflict"
    assert (await harness.client.get(f"/v1/uploads/{uploads[1]['id']}")).json()["status"] == "pending"


async def test_a_paused_source_accepts_no_files(harness: SourceHarness, tmp_path: Path) -> None:
    source = await _create_source(harness)
    upload = (await _announce_upload(harness, source)).json()
    await _upload_bytes(harness, upload, tmp_path)
    await harness.change_source(source["id"], status="paused")
    assert (await harness.client.post(f"/v1/uploads/{upload['id']}/complete")).code == "conflict"
    assert (await _announce_upload(harness, source)).code == "conflict"


async def test_only_file_sources_accept_files(harness: SourceHarness) -> None:
    for fields in ({}, PUSH_SOURCE):
        assert (await _announce_upload(harness, await harness.create_source(**fields))).code == "unprocessable"


async def test_a_file_over_the_limit(harness: SourceHarness) -> None:
    source = await _create_source(harness)
    assert (await _announce_upload(harness, source, bytes=MAX_SNAPSHOT_BYTES)).status == 201
    assert (await _announce_upload(harness, source, bytes=MAX_SNAPSHOT_BYTES + 1)).code == "unprocessable"


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
async def test_invalid_announcements_are_refused(harness: SourceHarness, fields: Any, fault: tuple[str, str]) -> None:
    response = await _announce_upload(harness, await _create_source(harness), **fields)
    assert response.status == 400 and fault in response.faults


async def test_uploads_of_others_are_not_found(harness: SourceHarness) -> None:
    upload = (await _announce_upload(harness, await _create_source(harness))).json()
    for client in (
        await harness.application.create_client("Oak"),
        await harness.application.create_client(livemode=False),
    ):
        assert (await client.get(f"/v1/uploads/{upload['id']}")).code == "not_found"
        assert (await client.post(f"/v1/uploads/{upload['id']}/complete")).code == "not_found"
