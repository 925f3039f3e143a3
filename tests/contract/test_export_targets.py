"""Targets of scheduled exports on real servers: SFTP (asyncssh) and S3 (moto)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
import boto3  # type: ignore[import-untyped]
import pytest
import pytest_asyncio

from adapters.http.client import GuardedClient
from adapters.http.outbound import UPLOAD_BOUNDS, HttpOutbound
from adapters.http.sockets import VettedSockets
from adapters.s3.bucket_target import PART_BYTES, BucketTarget
from adapters.sftp import SftpTarget
from domain.exports.ports import DeliveryFailed
from domain.exports.schedules import ExportTarget, TargetKind
from domain.kernel.clock import CLOCK
from tests.contract.test_object_stores import s3_endpoint  # noqa: F401
from tests.support.sftp import PASSWORD, USER, SftpServer, run_sftp_server

pytestmark = pytest.mark.asyncio
LOCAL = frozenset({"127.0.0.1"})
BY_PASSWORD = {"password": PASSWORD}


async def iterate(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[SftpServer]:
    async with run_sftp_server(tmp_path) as running:
        yield running


def build_sftp_target(server: SftpServer, **changes: Any) -> ExportTarget:
    target = ExportTarget(TargetKind.SFTP, host="127.0.0.1", port=server.port, user=USER)
    return replace(target, **changes)


async def test_a_test_pins_the_key_of_the_server_and_leaves_no_file(server: SftpServer) -> None:
    client = SftpTarget(VettedSockets(LOCAL))
    (server.folder / "in").mkdir()
    tested = await client.test(build_sftp_target(server, folder="/in"), BY_PASSWORD)
    assert tested.host_key == server.host_key.export_public_key().decode().strip()
    assert server.files == {} and len(server.seen) == 1
    assert await client.test(tested, BY_PASSWORD) == tested


async def test_no_password_is_sent_to_a_server_with_another_key(server: SftpServer) -> None:
    client = SftpTarget(VettedSockets(LOCAL))
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    for attempt in (
        client.test(build_sftp_target(server, host_key=other), BY_PASSWORD),
        client.send(build_sftp_target(server, host_key=other), BY_PASSWORD, "a.csv", 1, iterate(b"a")),
    ):
        with pytest.raises(DeliveryFailed, match="differs from the pinned one") as refused:
            await attempt
        assert refused.value.is_final
    assert server.passwords == [] and server.files == {}


@pytest.mark.parametrize("supports_posix_rename", [True, False])
async def test_a_file_becomes_visible_when_it_is_complete_and_replaces_an_older_one(
    server: SftpServer, supports_posix_rename: bool
) -> None:
    server.supports_posix_rename = supports_posix_rename
    client = SftpTarget(VettedSockets(LOCAL))
    target = await client.test(build_sftp_target(server), BY_PASSWORD)
    server.seen.clear()
    data = b"x" * 200_000
    await client.send(target, BY_PASSWORD, "products 2026.csv", len(data), iterate(data[:70_000], data[70_000:]))
    assert server.seen == {".products 2026.csv.part"}, "no reader saw a part"
    assert server.files == {"products 2026.csv": data}
    await client.send(target, BY_PASSWORD, "products 2026.csv", 3, iterate(b"new"))
    assert server.files == {"products 2026.csv": b"new"}


async def test_an_interrupted_file_is_not_visible_and_the_next_attempt_completes_it(server: SftpServer) -> None:
    client = SftpTarget(VettedSockets(LOCAL))
    target = await client.test(build_sftp_target(server), BY_PASSWORD)
    server.broken_after = 50_000
    data = b"y" * 300_000
    with pytest.raises(DeliveryFailed) as failure:
        await client.send(target, BY_PASSWORD, "p.csv", len(data), iterate(data[:100_000], data[100_000:]))
    assert not failure.value.is_final and "p.csv" not in server.files
    server.broken_after = None
    await client.send(target, BY_PASSWORD, "p.csv", len(data), iterate(data))
    assert server.files == {"p.csv": data}


async def test_a_file_of_another_size_is_not_renamed(server: SftpServer) -> None:
    client = SftpTarget(VettedSockets(LOCAL))
    target = await client.test(build_sftp_target(server), BY_PASSWORD)
    with pytest.raises(DeliveryFailed, match="stored 3 of 9 bytes"):
        await client.send(target, BY_PASSWORD, "p.csv", 9, iterate(b"abc"))
    assert "p.csv" not in server.files


async def test_private_keys_and_refused_credentials(server: SftpServer) -> None:
    client, target = SftpTarget(VettedSockets(LOCAL)), build_sftp_target(server)
    key = server.client_key.export_private_key().decode()
    locked = server.client_key.export_private_key("pkcs8-pem", passphrase="oak").decode()
    assert (await client.test(target, {"private_key": key})).host_key
    for credentials, text in (
        ({"password": "wrong secret"}, "refused the user name"),
        ({"private_key": locked}, "passphrase"),
        ({"private_key": "no key"}, "invalid"),
        ({"private_key": asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()}, "refused"),
    ):
        with pytest.raises(DeliveryFailed, match=text) as refused:
            await client.test(target, credentials)
        assert "wrong secret" not in str(refused.value)
    with pytest.raises(DeliveryFailed, match="refused the file"):
        await client.test(build_sftp_target(server, folder="/missing"), BY_PASSWORD)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1", "0x7f.1", "2130706433"]
)
async def test_private_addresses_are_not_contacted(server: SftpServer, host: str) -> None:
    client = SftpTarget(VettedSockets())
    with pytest.raises(DeliveryFailed, match="not public|unusual notation|no address"):
        await client.test(build_sftp_target(server, host=host), BY_PASSWORD)
    assert server.users == []
    async with GuardedClient() as http:
        bucket = ExportTarget(TargetKind.BUCKET, endpoint=f"https://{host}", bucket="blobs")
        with pytest.raises(DeliveryFailed):
            await BucketTarget(HttpOutbound(http), CLOCK).test(bucket, {"access_key": "a", "secret_key": "b"})


async def test_an_endpoint_without_tls_is_refused() -> None:
    async with GuardedClient() as http:
        bucket = ExportTarget(TargetKind.BUCKET, endpoint="http://s3.example.com", bucket="blobs")
        with pytest.raises(DeliveryFailed, match="https://"):
            await BucketTarget(HttpOutbound(http), CLOCK).test(bucket, {"access_key": "a", "secret_key": "b"})


async def test_files_are_stored_in_a_bucket(s3_endpoint: str) -> None:
    hosts = LOCAL | {s3_endpoint.removeprefix("http://")}
    credentials = {"access_key": "key", "secret_key": "secret"}
    target = ExportTarget(
        TargetKind.BUCKET, endpoint=s3_endpoint, bucket="blobs", prefix="/from joinery/", region="eu-central-1"
    )
    blobs = boto3.resource(
        "s3", endpoint_url=s3_endpoint, aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1"
    ).Bucket("blobs")
    large = bytes(range(256)) * (PART_BYTES // 256) * 2 + b"end"
    async with GuardedClient(allowed_hosts=hosts) as http:
        client = BucketTarget(HttpOutbound(http, hosts, UPLOAD_BOUNDS), CLOCK)
        assert await client.test(target, credentials) == target
        assert [item.key for item in blobs.objects.filter(Prefix="from joinery/")] == []
        await client.send(target, credentials, "small 1.csv", 5, iterate(b"sm", b"all"))
        await client.send(target, credentials, "large.xlsx", len(large), iterate(large[:5_000_000], large[5_000_000:]))

        async def fail() -> AsyncIterator[bytes]:
            yield b"z" * PART_BYTES
            raise OSError("the object store failed")

        with pytest.raises(OSError, match="failed"):
            await client.send(target, credentials, "broken.csv", PART_BYTES * 2, fail())
        with pytest.raises(DeliveryFailed, match="NoSuchBucket"):
            await client.test(replace(target, bucket="unknown-bucket"), credentials)
    stored = {item.key: item.get()["Body"].read() for item in blobs.objects.filter(Prefix="from joinery/")}
    assert stored == {"from joinery/small 1.csv": b"small", "from joinery/large.xlsx": large}
    assert list(blobs.multipart_uploads.all()) == [], "an interrupted upload is aborted"
