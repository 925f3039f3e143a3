"""Contract of object stores (ports/objects.py), including links for plain HTTP clients."""

import asyncio
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import boto3  # type: ignore[import-untyped]
import pytest
from aiohttp import web
from botocore.auth import S3SigV4QueryAuth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]

from adapters.files.objects import FileObjects
from adapters.s3.address import BucketAddress, parse_bucket_address
from adapters.s3.objects import S3Objects
from adapters.s3.presign import sign_url
from domain.kernel.errors import PayloadTooLarge, PermissionDenied
from domain.secrets.keys import SigningKeys, derive_link_key
from ports.objects import ObjectInfo, ObjectMissing, ObjectStore, download_headers
from tests.support.memory.objects import MemoryObjects

KINDS = ("memory", "files", "s3")
pytestmark = pytest.mark.asyncio

StoreFactory = Callable[[str], ObjectStore]


def compute_expiry() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    """Start an S3 server (moto) in a separate process and yield its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = Path(sys.executable).with_name("moto_server")
    server = subprocess.Popen(
        [sys.executable, str(program), "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    endpoint = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(urllib.request.Request(f"{endpoint}/blobs", method="PUT"), timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                assert server.poll() is None and time.monotonic() < until
                time.sleep(0.05)
        yield endpoint
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(params=KINDS)
def open_objects(request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
    """Return a factory of the store; links of memory and files point to the given base URL."""
    if request.param == "memory":
        return MemoryObjects
    if request.param == "files":
        return lambda base_url: FileObjects(tmp_path / "objects", base_url, SigningKeys(derive_link_key("s" * 32)))
    endpoint = request.getfixturevalue("s3_endpoint")
    url = f"s3://blobs/{secrets.token_hex(4)}?endpoint={endpoint}&region=eu-west-1"
    credentials = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret+/example"}
    return lambda base_url: S3Objects(url, credentials)


@pytest.fixture
def objects(open_objects: StoreFactory) -> ObjectStore:
    return open_objects("http://127.0.0.1:1")


@pytest.fixture
def create_file(tmp_path: Path) -> Callable[[bytes], Path]:
    def create(data: bytes) -> Path:
        path = tmp_path / secrets.token_hex(4)
        path.write_bytes(data)
        return path

    return create


async def read_content(objects: ObjectStore, key: str) -> bytes:
    return b"".join([chunk async for chunk in objects.read(key)])


async def test_stored_objects_are_read_back(objects: ObjectStore, create_file: Callable[[bytes], Path]) -> None:
    data = os.urandom(700_001)
    await objects.put_file("snapshots/ab/cdef", create_file(data))
    assert await read_content(objects, "snapshots/ab/cdef") == data
    assert await objects.get_size("snapshots/ab/cdef") == len(data)


@pytest.mark.parametrize("sizes", [(), (0,), (700_001,), (5 << 20, 1, 4 << 20, 3 << 20)])
async def test_streamed_objects_are_read_back(objects: ObjectStore, sizes: tuple[int, ...]) -> None:
    pieces = [os.urandom(size) for size in sizes]

    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    await objects.put_stream("exports/ab/cdef", chunks())
    assert await read_content(objects, "exports/ab/cdef") == b"".join(pieces)


async def test_an_interrupted_stream_stores_nothing(objects: ObjectStore) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield os.urandom(9 << 20)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await objects.put_stream("exports/ab/cdef", chunks())
    with pytest.raises(ObjectMissing):
        await objects.get_size("exports/ab/cdef")


async def test_large_objects_are_read_in_chunks(objects: ObjectStore, create_file: Callable[[bytes], Path]) -> None:
    await objects.put_file("large", create_file(bytes(12 * 2**20)))
    sizes = [len(chunk) async for chunk in objects.read("large")]
    assert sum(sizes) == 12 * 2**20
    assert max(sizes) <= 11 * 2**20


async def test_an_empty_object_is_stored(objects: ObjectStore, create_file: Callable[[bytes], Path]) -> None:
    await objects.put_file("empty", create_file(b""))
    assert await read_content(objects, "empty") == b""
    assert await objects.get_size("empty") == 0


async def test_a_key_is_replaced(objects: ObjectStore, create_file: Callable[[bytes], Path]) -> None:
    await objects.put_file("a", create_file(b"old and long"))
    await objects.put_file("a", create_file(b"new"))
    assert await read_content(objects, "a") == b"new"


async def test_a_key_can_extend_another(objects: ObjectStore, create_file: Callable[[bytes], Path]) -> None:
    await objects.put_file("a", create_file(b"1"))
    await objects.put_file("a/b.csv", create_file(b"2"))
    await objects.put_file("a/b.csv/c", create_file(b"3"))
    assert [await read_content(objects, key) for key in ("a", "a/b.csv", "a/b.csv/c")] == [b"1", b"2", b"3"]


async def test_unknown_keys_are_reported(objects: ObjectStore) -> None:
    with pytest.raises(ObjectMissing):
        await objects.get_size("none")
    with pytest.raises(ObjectMissing):
        await anext(objects.read("none"))
    await objects.delete("none")


async def test_objects_are_deleted(objects: ObjectStore, create_file: Callable[[bytes], Path]) -> None:
    await objects.put_file("gone", create_file(b"x"))
    await objects.delete("gone")
    with pytest.raises(ObjectMissing):
        await objects.get_size("gone")


async def test_a_missing_source_file_changes_nothing(
    objects: ObjectStore, create_file: Callable[[bytes], Path], tmp_path: Path
) -> None:
    await objects.put_file("kept", create_file(b"x"))
    with pytest.raises(FileNotFoundError):
        await objects.put_file("kept", tmp_path / "nowhere")
    assert await read_content(objects, "kept") == b"x"


async def list_by_key(objects: ObjectStore, prefix: str) -> dict[str, ObjectInfo]:
    pages = [page async for page in objects.list_objects(prefix)]
    found = [info for page in pages for info in page]
    assert len({info.key for info in found}) == len(found) and all(len(page) <= 1000 for page in pages)
    return {info.key: info for info in found}


async def test_lists_stored_objects(objects: ObjectStore, create_file: Callable[[bytes], Path]) -> None:
    began = datetime.now(UTC) - timedelta(seconds=2)
    keys = {f"snapshots/org_{number % 3}/live/{number}" for number in range(7)} | {"uploads/org_1/live/1", "snapshots"}
    for key in keys:
        await objects.put_file(key, create_file(key.encode()))
    found = await list_by_key(objects, "snapshots/")
    assert found.keys() == {key for key in keys if key.startswith("snapshots/")}
    assert all(info.bytes == len(key) for key, info in found.items())
    assert all(began <= info.modified_at <= datetime.now(UTC) + timedelta(seconds=2) for info in found.values())
    assert (await list_by_key(objects, "snapshots/org_1/")).keys() == {key for key in found if "/org_1/" in key}
    assert await list_by_key(objects, "exports/") == {}
    await objects.delete("snapshots/org_1/live/1")
    assert "snapshots/org_1/live/1" not in await list_by_key(objects, "snapshots/")


async def test_lists_several_pages(objects: ObjectStore, create_file: Callable[[bytes], Path], tmp_path: Path) -> None:
    one = create_file(b"x")
    for start in range(0, 1030, 103):
        await asyncio.gather(*(objects.put_file(f"snapshots/o/live/{start + n}", one) for n in range(103)))
    assert len(await list_by_key(objects, "snapshots/")) == 1030


async def test_cleanup_of_an_empty_store_does_nothing(
    objects: ObjectStore, create_file: Callable[[bytes], Path]
) -> None:
    await objects.put_file("snapshots/o/live/1", create_file(b"x"))
    assert await objects.delete_temporary_files(timedelta(days=1)) == 0
    assert await read_content(objects, "snapshots/o/live/1") == b"x"


# Links for plain HTTP clients


@asynccontextmanager
async def serve_objects(open_objects: StoreFactory) -> AsyncIterator[ObjectStore]:
    """Yield the store, with an HTTP server for stores that have none."""
    objects: Any = None

    async def handle_request(request: web.Request) -> web.Response:
        key = unquote(request.match_info["key"])
        try:
            grant = objects.verify_link(request.method, key, dict(request.query), datetime.now(UTC))
            if request.method == "PUT":
                await objects.store_upload(key, request.content.iter_chunked(65536), grant.max_bytes)
                return web.Response()
        except PermissionDenied:
            return web.Response(status=403)
        except PayloadTooLarge:
            return web.Response(status=413)
        return web.Response(body=await read_content(objects, key), headers=download_headers(grant.filename))

    app = web.Application(client_max_size=2**30)
    app.router.add_route("*", "/objects/{key:.+}", handle_request)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        objects = open_objects(f"http://127.0.0.1:{runner.addresses[0][1]}")
        yield objects
    finally:
        await runner.cleanup()


def send_request(method: str, url: str, data: bytes | None = None, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=10) as answer:
            return answer.status, answer.read(), {name.lower(): value for name, value in answer.headers.items()}
    except urllib.error.HTTPError as error:
        return error.code, error.read(), {}


async def test_links_permit_put_and_get(open_objects: StoreFactory) -> None:
    async with serve_objects(open_objects) as objects:
        put = await objects.sign_put("in/1.csv", content_type="text/csv", max_bytes=100, expires_at=compute_expiry())
        assert put.headers == {"Content-Type": "text/csv"}
        status, *_ = await asyncio.to_thread(send_request, "PUT", put.url, b"sku,price\n1,2\n", **put.headers)
        assert status == 200
        assert await read_content(objects, "in/1.csv") == b"sku,price\n1,2\n"
        url = await objects.sign_get("in/1.csv", filename="prices.csv", expires_at=compute_expiry())
        status, body, headers = await asyncio.to_thread(send_request, "GET", url)
        assert (status, body) == (200, b"sku,price\n1,2\n")
        assert headers["content-disposition"] == "attachment; filename*=UTF-8''prices.csv"
        assert headers["content-type"] == "application/octet-stream"
        url = await objects.sign_get("in/1.csv", filename="img_1.webp", expires_at=compute_expiry())
        _, _, headers = await asyncio.to_thread(send_request, "GET", url)
        assert headers["content-disposition"] == "inline; filename*=UTF-8''img_1.webp"
        assert headers["content-type"] == "image/webp"


@pytest.mark.parametrize("open_objects", ("memory", "files"), indirect=True)
async def test_links_enforce_their_limits(open_objects: StoreFactory) -> None:
    async with serve_objects(open_objects) as objects:
        put = await objects.sign_put("in/2", content_type="text/csv", max_bytes=10, expires_at=compute_expiry())
        get = await objects.sign_get("in/2", filename="x", expires_at=compute_expiry())
        past = datetime.now(UTC) - timedelta(seconds=61)
        late = await objects.sign_put("in/2", content_type="text/csv", max_bytes=10, expires_at=past)
        assert (await asyncio.to_thread(send_request, "PUT", put.url, b"0123456789"))[0] == 200
        assert (await asyncio.to_thread(send_request, "PUT", put.url, b"0123456789a"))[0] == 413
        assert (await asyncio.to_thread(send_request, "PUT", late.url, b"x"))[0] == 403
        assert (await asyncio.to_thread(send_request, "PUT", get, b"x"))[0] == 403
        assert (await asyncio.to_thread(send_request, "GET", put.url))[0] == 403
        assert (await asyncio.to_thread(send_request, "PUT", put.url.replace("in/2", "in/3"), b"x"))[0] == 403
        assert await read_content(objects, "in/2") == b"0123456789"


# Files only


@pytest.fixture
def files(tmp_path: Path) -> FileObjects:
    return FileObjects(tmp_path / "objects", "http://x", SigningKeys(derive_link_key("s" * 32)))


@pytest.mark.parametrize(
    "key",
    ("", "/", "../x", "a/../b", "a//b", "/etc/passwd", "a/", ".fresh/x", "a\\b", "a\0", "ä", "a b", "a~", "-" * 901),
)
async def test_unsafe_keys_are_refused(files: FileObjects, key: str) -> None:
    with pytest.raises(ValueError, match="key is invalid"):
        await files.get_size(key)
    with pytest.raises(ValueError, match="key is invalid"):
        await files.sign_get(key, filename="x", expires_at=compute_expiry())


@pytest.mark.parametrize("name", ("expires", "limit", "type", "signature"))
async def test_no_part_of_a_link_can_be_changed(files: FileObjects, name: str) -> None:
    put = await files.sign_put("k", content_type="text/csv", max_bytes=10, expires_at=compute_expiry())
    query = dict(parse_qsl(urlsplit(put.url).query))
    assert files.verify_link("PUT", "k", query, datetime.now(UTC)).max_bytes == 10
    with pytest.raises(PermissionDenied):
        files.verify_link("PUT", "k", {**query, name: query[name] + "0"}, datetime.now(UTC))
    with pytest.raises(PermissionDenied):
        files.verify_link(
            "PUT", "k", {field: value for field, value in query.items() if field != name}, datetime.now(UTC)
        )
    with pytest.raises(PermissionDenied):
        FileObjects(Path("/"), "http://x", SigningKeys(derive_link_key("t" * 32))).verify_link(
            "PUT", "k", query, datetime.now(UTC)
        )


async def test_partial_writes_are_invisible_and_removed(files: FileObjects, tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    async def whole() -> AsyncIterator[bytes]:
        yield b"who"
        yield b"le"

    assert await files.store_upload("k", whole(), 5) == 5
    for chunks, limit, error in ((broken(), 100, ConnectionResetError), (whole(), 4, PayloadTooLarge)):
        with pytest.raises(error):
            await files.store_upload("k", chunks, limit)
    assert await read_content(files, "k") == b"whole"
    assert not list((tmp_path / "objects" / ".fresh").iterdir())


async def test_cleanup_removes_files_of_killed_writers(files: FileObjects, tmp_path: Path) -> None:
    stale = tmp_path / "objects" / ".fresh" / "stale"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"x")
    assert await files.delete_temporary_files(timedelta(days=1)) == 0
    assert await files.delete_temporary_files(timedelta(seconds=-1)) == 1
    assert not stale.exists()


async def test_cleanup_removes_empty_folders(
    files: FileObjects, tmp_path: Path, create_file: Callable[[bytes], Path]
) -> None:
    for key in ("snapshots/org_1/live/a", "snapshots/org_2/live/b", "uploads/org_1/live/c"):
        await files.put_file(key, create_file(b"x"))
    await files.delete("snapshots/org_1/live/a")
    await files.delete("uploads/org_1/live/c")
    assert await files.delete_temporary_files(timedelta(days=1)) == 0
    await files.delete_temporary_files(timedelta(seconds=-1))
    left = {path.relative_to(tmp_path / "objects") for path in (tmp_path / "objects").rglob("*")}
    assert left == set(
        map(Path, ("snapshots", "snapshots/org_2", "snapshots/org_2/live", "snapshots/org_2/live/b~", ".fresh"))
    )


async def test_writes_during_cleanup_succeed(
    files: FileObjects, tmp_path: Path, create_file: Callable[[bytes], Path]
) -> None:
    one, done = create_file(b"x"), asyncio.Event()

    async def tidy() -> None:
        while not done.is_set():
            await asyncio.to_thread(files._delete_empty_folders, tmp_path / "objects", time.time() + 1000)

    async def write(name: int) -> None:
        for number in range(60):
            await files.put_file(f"snapshots/org_{name}/live/{number}", one)
            await files.delete(f"snapshots/org_{name}/live/{number}")

    async with asyncio.TaskGroup() as group:
        tidying = group.create_task(tidy())
        await asyncio.gather(*map(write, range(4)))
        done.set()
        await tidying


# S3 only


async def test_incomplete_multipart_uploads_are_aborted(s3_endpoint: str) -> None:
    prefix = secrets.token_hex(4)
    credentials = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret+/example"}
    client = boto3.client("s3", endpoint_url=s3_endpoint, region_name="eu-west-1", **credentials)

    def begin(key: str) -> None:
        upload = client.create_multipart_upload(Bucket="blobs", Key=key)["UploadId"]
        client.upload_part(Bucket="blobs", Key=key, UploadId=upload, PartNumber=1, Body=b"x")

    def open_uploads() -> set[str]:
        return {upload["Key"] for upload in client.list_multipart_uploads(Bucket="blobs").get("Uploads", [])}

    for key in (f"{prefix}/snapshots/org_1/live/a b+c", f"{prefix}/snapshots/org_1/live/d", f"{prefix}x/other"):
        await asyncio.to_thread(begin, key)
    keys = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret+/example"}
    objects = S3Objects(f"s3://blobs/{prefix}?endpoint={s3_endpoint}&region=eu-west-1", keys)
    assert await objects.delete_temporary_files(timedelta(days=100 * 365)) == 0, (
        "this server says that every upload was begun in 2010"
    )
    assert await objects.delete_temporary_files(timedelta(days=1)) == 2
    assert await asyncio.to_thread(open_uploads) == {f"{prefix}x/other"}


async def test_a_store_that_refuses_is_reported(s3_endpoint: str) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret+/example"}
    objects = S3Objects(f"s3://no-such-bucket/p?endpoint={s3_endpoint}", keys)
    with pytest.raises(OSError, match="404"):
        await objects.delete_temporary_files(timedelta(days=1))
    with pytest.raises(OSError, match="(?i)bucket"):
        await list_by_key(objects, "snapshots/")


SIGNED_AT = datetime(2026, 11, 20, 13, 8, tzinfo=UTC)


@pytest.mark.parametrize("token", ("", "session/token+"))
@pytest.mark.parametrize(
    ("method", "headers", "query"),
    (
        ("PUT", {"Content-Type": "text/csv; charset=utf-8", "Content-Length": "48213"}, {}),
        (
            "GET",
            {},
            {
                "response-content-type": "image/webp",
                "response-content-disposition": "inline; filename*=UTF-8''b%C3%A4r%20~1.webp",
            },
        ),
    ),
)
async def test_links_are_signed_as_the_reference_client_signs_them(
    monkeypatch: pytest.MonkeyPatch, method: str, headers: dict[str, str], query: dict[str, str], token: str
) -> None:
    address = BucketAddress("blobs", "pre/fix", "http://s3.example:9000", "eu-west-1", "AKID", "secret+/", token)
    ours = sign_url(address, method, "a/b c~ü.csv", now=SIGNED_AT, lifetime_seconds=900, headers=headers, query=query)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda remove_tzinfo=True: SIGNED_AT)
    request = AWSRequest(method, address.build_object_url("a/b c~ü.csv"), headers=dict(headers), params=dict(query))
    S3SigV4QueryAuth(Credentials("AKID", "secret+/", token or None), "s3", "eu-west-1", expires=900).add_auth(request)
    assert urlsplit(ours).path == urlsplit(request.url).path
    assert dict(parse_qsl(urlsplit(ours).query)) == dict(parse_qsl(urlsplit(request.url).query))


async def test_links_are_signed_with_discovered_credentials(
    s3_endpoint: str, monkeypatch: pytest.MonkeyPatch, create_file: Callable[[bytes], Path]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    objects = S3Objects(f"s3://blobs/roles?endpoint={s3_endpoint}", {})
    put = await objects.sign_put("k", content_type="text/csv", max_bytes=9, expires_at=compute_expiry())
    assert (await asyncio.to_thread(send_request, "PUT", put.url, b"told", **put.headers))[0] == 200
    url = await objects.sign_get("k", filename="x", expires_at=compute_expiry())
    assert (await asyncio.to_thread(send_request, "GET", url))[1] == b"told"


async def test_store_addresses_are_parsed() -> None:
    env = {"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "hidden"}
    address = parse_bucket_address("s3://bucket/some/prefix/", env)
    assert (address.bucket, address.prefix, address.region) == ("bucket", "some/prefix", "eu-central-1")
    assert address.endpoint == "https://s3.eu-central-1.amazonaws.com"
    assert address.has_credentials
    assert "hidden" not in repr(address)
    assert not parse_bucket_address("s3://bucket", {}).has_credentials
    for wrong in ("http://bucket", "s3://", "s3://bucket?endpont=x"):
        with pytest.raises(ValueError, match="s3://bucket/prefix"):
            parse_bucket_address(wrong, {})
