"""Forbidden addresses, and endless, slow, invalid or oversized responses: the run fails with a reason."""

import gzip
import time
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import pytest_asyncio

from tests.flows.feeds import FeedServer, build_catalogue, serve_feeds
from tests.flows.in_process_service import InProcessService, open_service

pytestmark = pytest.mark.asyncio
LINK_LOCAL = "http://169.254.169.254/latest/meta-data/"
FORBIDDEN = [
    "http://127.0.0.1/", "http://127.0.0.1:{port}/feed.csv", "http://localhost/", "http://x.localhost/feed.csv",
    LINK_LOCAL, "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:a9fe:a9fe]/", "http://0x7f000001/",
    "http://2130706433/", "http://127.1/", "http://0/", "http://10.0.0.1/", "http://192.168.1.1/", "http://172.16.0.9/",
    "http://100.64.0.1/", "http://[fd00::1]/", "http://[fe80::1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
    "http://224.0.0.1/", "http://255.255.255.255/", "http://user:password@example.com/feed.csv",
    "http://example.com:8080/feed.csv", "http://[::127.0.0.1]/",
]  # fmt: skip


@pytest.fixture
def hostile_server() -> Iterator[FeedServer]:
    """Run a separate server for each test."""
    with serve_feeds() as served:
        yield served


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[InProcessService]:
    """Run the service in this process."""
    async with open_service(tmp_path) as in_process_service:
        yield in_process_service


@pytest.mark.parametrize("url", FORBIDDEN)
async def test_forbidden_addresses_are_refused_on_creation(
    service: InProcessService, hostile_server: FeedServer, url: str
) -> None:
    url = url.replace("{port}", str(hostile_server.port))
    answer = await service.client.post("/v1/sources", {"name": "A", "kind": "url", "config": {"url": url}})
    assert (answer.status, answer.code) in {(422, "unprocessable"), (400, "invalid_request")}, answer.body
    assert (await service.client.get("/v1/sources")).json()["data"] == []
    good = await service.create_source(config={"url": hostile_server.serve("/feed.csv", build_catalogue(1))})
    changed = {"config": {"url": url}}
    patched = await service.client.send_json("PATCH", f"/v1/sources/{good}", changed, if_match="*")
    assert patched.status in (400, 422), patched.body


@pytest.mark.parametrize("url", [url for url in FORBIDDEN if not ("example.com" in url or "x.localhost" in url)])
async def test_redirects_to_forbidden_addresses(
    service: InProcessService, hostile_server: FeedServer, url: str
) -> None:
    first = hostile_server.fail("/feed.csv", 302, Location=url.replace("{port}", str(hostile_server.port)))
    run = await service.pull(first)
    assert (run["status"], run["error"]["code"]) == ("failed", "fetch_refused"), run
    assert hostile_server.count("/feed.csv") == 1
    source = (await service.client.get(f"/v1/sources/{run['source']}")).json()
    assert (source["status"], source["status_reason"]["code"]) == ("blocked", "fetch_refused")
    assert await service.fetch_catalogue_rows() == [
        row for row in await service.fetch_catalogue_rows() if "source.blocked" in row[0]
    ]


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/x", "http://", "::"]
)
async def test_redirects_to_other_schemes_are_refused(
    service: InProcessService, hostile_server: FeedServer, location: str
) -> None:
    run = await service.pull(hostile_server.fail("/feed.csv", 302, Location=location))
    assert run["status"] == "failed" and run["error"]["code"] in ("fetch_refused", "fetch_failed")


async def test_a_name_that_resolves_to_a_private_address_is_refused_at_the_connection(
    service: InProcessService,
) -> None:
    """The URL is valid; the resolved address is checked when the connection is opened."""
    name = "localhost.localdomain"
    run = await service.pull(f"http://{name}/feed.csv")
    assert run["status"] == "failed" and run["error"]["code"] in ("fetch_refused", "fetch_failed")


def _send_endlessly(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nSKU,Title\n")
    line = b"A1,Chair\n" * 8000
    try:
        for _ in range(10_000):
            handler.wfile.write(line)
    except OSError:
        pass


def _send_slowly(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    try:
        for _ in range(60):
            handler.wfile.write(b"a")
            time.sleep(0.1)
    except OSError:
        pass


def _send_nothing(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nSKU")
    time.sleep(2)


def _mute(_: BaseHTTPRequestHandler) -> None:
    time.sleep(4)


def _send_truncated(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nSKU,Title\nA1,Chair\n")


def _send_garbage(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"\x00\xff\x00 this is no HTTP\r\n\r\n")


def _send_endless_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"a" * 200_000 + b"\r\n\r\n")


@pytest.mark.parametrize(
    "behave",
    [_send_endlessly, _send_slowly, _send_nothing, _mute, _send_truncated, _send_garbage, _send_endless_headers],
)
async def test_servers_that_misbehave(service: InProcessService, hostile_server: FeedServer, behave: object) -> None:
    hostile_server.raw["/feed.csv"] = behave  # type: ignore[assignment]
    started = time.monotonic()
    run = await service.pull(hostile_server.url("/feed.csv"))
    assert (run["status"], run["error"]["code"]) == ("failed", "fetch_failed"), run
    assert len(run["error"]["message"]) > 10 and time.monotonic() - started < 8
    assert await service.fetch_catalogue_rows() == []


async def test_gzip_is_unpacked_within_limits(service: InProcessService, hostile_server: FeedServer) -> None:
    packed = gzip.compress(build_catalogue(5))
    hostile_server.pages["/good.csv"] = lambda _: (200, {"Content-Encoding": "gzip"}, packed)
    assert (await service.pull(hostile_server.url("/good.csv")))["stats"]["products_created"] == 5
    before = await service.fetch_catalogue_rows()
    bomb = gzip.compress(b"a" * (50 << 20))
    for name, body in (("bomb", bomb), ("twice", gzip.compress(bomb)), ("broken", packed[:40] + b"x" * 40)):
        hostile_server.pages[f"/{name}.csv"] = lambda _, body=body: (200, {"Content-Encoding": "gzip"}, body)  # type: ignore[misc]
        run = await service.pull(hostile_server.url(f"/{name}.csv"))
        assert run["status"] == "failed", (name, run)
    assert await service.fetch_catalogue_rows() == before


async def test_a_feed_larger_than_the_limit(service: InProcessService, hostile_server: FeedServer) -> None:
    run = await service.pull(hostile_server.serve("/large.csv", b"SKU,Title\n" + b"A1,Chair\n" * 200_000))
    assert run["status"] == "failed" and run["error"]["code"] in ("fetch_failed", "parse_failed")
    assert await service.fetch_catalogue_rows() == []


async def test_a_password_page_instead_of_a_feed(service: InProcessService, hostile_server: FeedServer) -> None:
    run = await service.pull(
        hostile_server.serve("/login.csv", b"<html><body>Sign in</body></html>", content_type="text/html")
    )
    assert run["status"] == "failed" and "web page" in run["error"]["message"]
