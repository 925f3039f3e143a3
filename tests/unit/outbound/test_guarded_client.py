"""The guarded client with a real server that misbehaves in every known way."""

import asyncio
import gzip
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.abc import ResolveResult

from adapters.http import errors
from adapters.http.body import MinimumResponseRate
from adapters.http.client import GuardedClient, HttpBounds
from connectors.sdk import HttpClient, HttpFailure, Validators

pytestmark = pytest.mark.asyncio

MIB = 1024 * 1024


def create_lookup(*answers: str) -> Callable[[str, int, socket.AddressFamily], Awaitable[list[ResolveResult]]]:
    """Return a name service that returns these addresses in order and repeats the last one."""
    addresses = list(answers)

    async def lookup(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        address = addresses.pop(0) if len(addresses) > 1 else addresses[0]
        return [ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)]

    return lookup


class ScriptedSite:
    """Server on the loopback interface with paths set by tests."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.requests: list[web.BaseRequest] = []
        self.paths: dict[str, Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]] = {}

    @property
    def name(self) -> str:
        """The host and port."""
        return self.base.removeprefix("http://")

    def serve(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> None:
        """Set the response of the path."""

        async def handler(_: web.BaseRequest) -> web.StreamResponse:
            return web.Response(body=body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})

        self.paths[path] = handler


@pytest_asyncio.fixture
async def site() -> AsyncIterator[ScriptedSite]:
    """Run a site."""
    server = web.Server(lambda request: _dispatch(holder[0], request))
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    tcp_site = web.TCPSite(runner, "127.0.0.1", 0)
    await tcp_site.start()
    port = runner.addresses[0][1]
    holder = [ScriptedSite(f"http://127.0.0.1:{port}")]
    yield holder[0]
    await runner.cleanup()


async def _dispatch(site: ScriptedSite, request: web.BaseRequest) -> web.StreamResponse:
    site.requests.append(request)
    handler = site.paths.get(request.path)
    return web.Response(status=404) if handler is None else await handler(request)


def create_client(site: ScriptedSite, **more: Any) -> GuardedClient:
    """Return a client whose operator allows the site."""
    return GuardedClient(allowed_hosts=frozenset({site.name}), version="1.2", **more)


async def read_body(guarded: GuardedClient, url: str, **more: Any) -> bytes:
    """Return the complete body."""
    async with guarded.get(url, **more) as response:
        return b"".join([chunk async for chunk in response.chunks])


async def test_a_plain_response_is_read(site: ScriptedSite) -> None:
    site.serve("/a", b"hello", ETag='"1"', Set_Cookie="a=b")
    typed: HttpClient
    async with create_client(site) as guarded:
        typed = guarded
        async with typed.get(f"{site.base}/a", headers={"X-One": "1"}) as answer:
            assert (answer.status, answer.headers["etag"], answer.final_url) == (200, '"1"', f"{site.base}/a")
            assert b"".join([chunk async for chunk in answer.chunks]) == b"hello"
        await read_body(guarded, f"{site.base}/a", conditional=Validators(etag='"1"', last_modified="x"))
    first, second = site.requests
    assert first.headers["User-Agent"] == "Joinery/1.2"
    assert first.headers["X-One"] == "1"
    assert second.headers["If-None-Match"] == '"1"'
    assert second.headers["If-Modified-Since"] == "x"
    assert "Cookie" not in second.headers


async def test_every_failure_has_a_kind(site: ScriptedSite) -> None:
    async with create_client(site) as guarded:
        with pytest.raises(errors.OutboundError) as caught:
            await read_body(guarded, "http://127.0.0.1/")
    assert isinstance(caught.value, HttpFailure)
    assert caught.value.kind == "refused_address"


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://169.254.169.254/latest/meta-data", "http://[::ffff:127.0.0.1]/", "http://0x7f.1/"],
)
async def test_internal_addresses_are_refused(site: ScriptedSite, url: str) -> None:
    async with create_client(site) as guarded:
        with pytest.raises(errors.RefusedAddress):
            await read_body(guarded, url)
        site.serve("/go", status=302, Location=url)
        with pytest.raises(errors.RefusedAddress):
            await read_body(guarded, f"{site.base}/go")


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.1.2.3", "100.64.0.1"])
async def test_names_of_internal_addresses_are_refused(address: str) -> None:
    async with GuardedClient(lookup=create_lookup(address)) as guarded:
        with pytest.raises(errors.RefusedAddress):
            await read_body(guarded, "http://files.example/")


async def test_a_name_with_changing_addresses_is_vetted_again(site: ScriptedSite) -> None:
    """The second answer is an internal address; the name is resolved and vetted again for each connection."""
    connected: list[str] = []
    answers = create_lookup("192.0.2.1", "127.0.0.1")

    async def lookup(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        found = await answers(host, port, family)
        connected.append(found[0]["host"])
        return found

    async with GuardedClient(lookup=lookup, allows_any_port=True) as guarded:
        for _ in range(2):
            with pytest.raises(errors.RefusedAddress):
                await read_body(guarded, site.base.replace("127.0.0.1", "files.example"))
    assert connected == ["192.0.2.1", "127.0.0.1"]
    assert not site.requests


async def test_only_public_addresses_of_a_name_are_used() -> None:
    async def lookup(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in ("127.0.0.1", "8.8.8.8", "10.0.0.1")
        ]

    from adapters.http.resolver import AddressVetting, VettingResolver

    found = await VettingResolver(AddressVetting(), lookup).resolve("files.example", 80)
    assert [entry["host"] for entry in found] == ["8.8.8.8"]


async def test_an_unknown_name_is_reported() -> None:
    async def lookup(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        raise OSError("no such name")

    async with GuardedClient(lookup=lookup) as guarded:
        with pytest.raises(errors.DnsFailed):
            await read_body(guarded, "http://files.example/")


async def test_redirects_are_followed_five_times(site: ScriptedSite) -> None:
    for number in range(6):
        site.serve(f"/{number}", status=302, Location=f"/{number + 1}")
    site.serve("/6", b"end")
    async with create_client(site) as guarded:
        assert await read_body(guarded, f"{site.base}/1") == b"end"
        with pytest.raises(errors.RedirectRefused, match="more than 5"):
            await read_body(guarded, f"{site.base}/0")


async def test_credentials_stay_with_their_origin(site: ScriptedSite) -> None:
    port = site.name.rsplit(":", 1)[1]
    site.serve("/a", status=302, Location="/b")
    site.serve("/b", status=307, Location=f"http://files.example:{port}/c")
    site.serve("/c", b"end")
    allowed = frozenset({site.name, f"files.example:{port}"})
    async with GuardedClient(allowed_hosts=allowed, lookup=create_lookup("127.0.0.1")) as guarded:
        sent = {"Authorization": "Bearer x", "X-Api-Key": "y", "Accept": "text/csv"}
        assert await read_body(guarded, f"{site.base}/a", headers=sent) == b"end"
    assert [("Authorization" in request.headers, "X-Api-Key" in request.headers) for request in site.requests] == [
        (True, True), (True, True), (False, False)
    ]  # fmt: skip
    assert site.requests[2].headers["Accept"] == "text/csv"


@pytest.mark.parametrize("spelt", ["k=to%20ken%2F9", "k=to+ken%2f9", "to%20ken/9", "k=%74o+ken/9"])
async def test_secrets_stay_with_their_origin(site: ScriptedSite, spelt: str) -> None:
    """At any position of a request, and in any spelling of a redirect."""
    port = site.name.rsplit(":", 1)[1]
    site.serve("/a", status=302, Location=f"/b?{spelt}")
    site.serve("/b", status=302, Location=f"http://files.example:{port}/c?{spelt}")
    site.serve("/d", status=302, Location=f"http://files.example:{port}/e")
    site.serve("/e", b"end")
    allowed = frozenset({site.name, f"files.example:{port}"})
    async with GuardedClient(allowed_hosts=allowed, lookup=create_lookup("127.0.0.1")) as guarded:
        private = frozenset({"to ken/9"})
        with pytest.raises(errors.RedirectRefused, match="credentials"):
            await read_body(guarded, f"{site.base}/a?k=to%20ken%2F9", secrets=private)
        assert [request.path for request in site.requests] == ["/a", "/b"]
        sent = {"Accept": "to ken/9", "Accept-Language": "de"}
        assert await read_body(guarded, f"{site.base}/d", headers=sent, secrets=private) == b"end"
    last = site.requests[-1].headers
    assert "to ken" not in last.get("Accept", "") and last["Accept-Language"] == "de" and "Referer" not in last


async def test_redirects_are_restricted_to_the_hosts_of_a_connector(site: ScriptedSite) -> None:
    site.serve("/a", status=302, Location="http://8.8.8.8/")
    async with create_client(site) as guarded:
        with pytest.raises(errors.RefusedAddress, match="connector"):
            await read_body(guarded, f"{site.base}/a", hosts=frozenset({"127.0.0.1"}))


async def test_redirects_from_https_to_http_are_refused() -> None:
    from yarl import URL

    from adapters.http.client import _resolve_redirect

    with pytest.raises(errors.RedirectRefused):
        _resolve_redirect(URL("https://files.example/"), "http://files.example/")
    with pytest.raises(errors.RedirectRefused):
        _resolve_redirect(URL("https://files.example/"), "http://[::1")


async def test_posts_are_not_redirected(site: ScriptedSite) -> None:
    site.serve("/a", status=307, Location="/b")
    async with create_client(site) as guarded, guarded.post(f"{site.base}/a", body=b"{}") as answer:
        assert answer.status == 307
    assert len(site.requests) == 1


async def _send_endlessly(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x" * 65_536)


async def test_an_endless_body_is_refused(site: ScriptedSite) -> None:
    site.paths["/a"] = _send_endlessly
    async with create_client(site, bounds=HttpBounds(max_received_bytes=2 * MIB)) as guarded:
        with pytest.raises(errors.TooLarge, match="2 MiB"):
            await read_body(guarded, f"{site.base}/a")


async def test_a_declared_length_beyond_the_limit_is_refused(site: ScriptedSite) -> None:
    site.serve("/a", b"x" * 2 * MIB)
    async with create_client(site, bounds=HttpBounds(max_received_bytes=MIB)) as guarded:
        with pytest.raises(errors.TooLarge):
            await read_body(guarded, f"{site.base}/a")


async def _send_slowly(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x")
        await asyncio.sleep(0.02)


async def test_a_very_slow_body_is_refused(site: ScriptedSite) -> None:
    site.paths["/a"] = _send_slowly
    bounds = HttpBounds(minimum_rate=MinimumResponseRate(bytes_per_second=1_000, grace_seconds=0.2))
    before = monotonic()
    async with create_client(site, bounds=bounds) as guarded:
        with pytest.raises(errors.TooSlow):
            await read_body(guarded, f"{site.base}/a")
    assert monotonic() - before < 2


async def test_a_slow_reader_is_not_a_slow_server(site: ScriptedSite) -> None:
    site.serve("/a", b"x" * 300_000)
    bounds = HttpBounds(minimum_rate=MinimumResponseRate(bytes_per_second=1_000_000, grace_seconds=0.05))
    async with create_client(site, bounds=bounds) as guarded, guarded.get(f"{site.base}/a") as answer:
        size = 0
        async for chunk in answer.chunks:
            size += len(chunk)
            await asyncio.sleep(0.1)
    assert size == 300_000


async def _send_nothing(request: web.BaseRequest) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response()


async def test_a_missing_response_is_a_timeout(site: ScriptedSite) -> None:
    site.paths["/a"] = _send_nothing
    async with create_client(site, bounds=HttpBounds(idle_seconds=0.2)) as guarded:
        with pytest.raises(errors.TimedOut):
            await read_body(guarded, f"{site.base}/a")
    async with create_client(site, bounds=HttpBounds(response_seconds=0.1, connect_seconds=0.1)) as guarded:
        with pytest.raises(errors.TimedOut):
            await read_body(guarded, f"{site.base}/a")


async def test_the_total_time_is_limited(site: ScriptedSite) -> None:
    site.paths["/a"] = _send_slowly
    async with create_client(site, bounds=HttpBounds(total_seconds=0.3)) as guarded:
        with pytest.raises(errors.TimedOut):
            await read_body(guarded, f"{site.base}/a")


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
        ("deflate", zlib.compress),
        ("deflate", _raw_deflate),
        ("identity", bytes),
    ],
    ids=["gzip", "gzip in two", "deflate", "raw deflate", "identity"],
)
async def test_compressed_bodies_are_decompressed(
    site: ScriptedSite, coding: str, pack: Callable[[bytes], bytes]
) -> None:
    site.serve("/a", pack(b"SKU,Qty\nA,1\n" * 50), Content_Encoding=coding)
    async with create_client(site) as guarded:
        assert await read_body(guarded, f"{site.base}/a") == b"SKU,Qty\nA,1\n" * 50


async def test_a_gzip_bomb_is_refused(site: ScriptedSite) -> None:
    site.serve("/a", gzip.compress(b"\0" * (64 * MIB)), Content_Encoding="gzip")
    async with create_client(site) as guarded:
        with pytest.raises(errors.TooLarge, match="compression ratio"):
            await read_body(guarded, f"{site.base}/a")
    async with create_client(site, bounds=HttpBounds(max_body_bytes=MIB)) as guarded:
        with pytest.raises(errors.TooLarge, match="1 MiB"):
            await read_body(guarded, f"{site.base}/a")


@pytest.mark.parametrize(
    ("coding", "data"),
    [("br", b"x"), ("gzip", b"not gzip"), ("gzip", gzip.compress(b"x" * 99)[:-9])],
    ids=[
        "not requested",
        "no gzip",
        "cut off",
    ],  # gzip writes the time, so the data as an ID would differ between processes
)
async def test_invalid_compression_is_refused(site: ScriptedSite, coding: str, data: bytes) -> None:
    site.serve("/a", data, Content_Encoding=coding)
    async with create_client(site) as guarded:
        with pytest.raises(errors.BadEncoding):
            await read_body(guarded, f"{site.base}/a")


async def _disconnect(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b"x" * 10)
    assert request.transport is not None
    request.transport.close()
    return response


async def test_an_interrupted_body_is_an_error(site: ScriptedSite) -> None:
    site.paths["/a"] = _disconnect
    async with create_client(site) as guarded:
        with pytest.raises(errors.Aborted):
            await read_body(guarded, f"{site.base}/a")


async def test_a_refused_connection_is_reported() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        name = f"127.0.0.1:{held.getsockname()[1]}"
        async with GuardedClient(allowed_hosts=frozenset({name})) as guarded:
            with pytest.raises(errors.ConnectFailed):
                await read_body(guarded, f"http://{name}/")


async def test_a_server_without_tls_is_reported(site: ScriptedSite) -> None:
    async with create_client(site, tls=ssl.create_default_context()) as guarded:
        with pytest.raises(errors.TlsFailed):
            await read_body(guarded, site.base.replace("http:", "https:"))


async def test_proxies_of_the_environment_are_ignored(site: ScriptedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    site.serve("/a", b"ok")
    async with create_client(site) as guarded:
        assert await read_body(guarded, f"{site.base}/a") == b"ok"


async def test_requests_respect_the_retry_after_of_the_host(site: ScriptedSite) -> None:
    async def pressed(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=429, headers={"Retry-After": "60"})

    site.paths["/"] = pressed
    async with GuardedClient(allowed_hosts=frozenset({site.name}), allows_any_port=True) as client:
        fjord: HttpClient = client.for_organisation("org_fjord", frozenset())
        async with fjord.get(f"{site.base}/") as answer:
            assert answer.status == 429
        for request in (fjord.get(f"{site.base}/other"), fjord.post(f"{site.base}/other", body=b"")):
            with pytest.raises(errors.HostBusy) as busy:
                async with request:
                    pass
            assert isinstance(busy.value, HttpFailure) and busy.value.kind == "host_busy"
        for caller in (
            client.for_organisation("org_fjord", frozenset({"an account"})),
            client.for_organisation("org_oak", frozenset()),
        ):
            async with caller.get(f"{site.base}/") as answer:
                assert answer.status == 429, "other callers and callers with credentials need not wait"
    assert len(site.requests) == 3
