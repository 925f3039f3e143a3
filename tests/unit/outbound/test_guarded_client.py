"""The guarded client against a real server that misbehaves in every way we know of."""

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


def looks_up(*answers: str) -> Callable[[str, int, socket.AddressFamily], Awaitable[list[ResolveResult]]]:
    """A name service that gives these addresses, one after the other, the last one for ever."""
    left = list(answers)

    async def lookup(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        address = left.pop(0) if len(left) > 1 else left[0]
        return [ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)]

    return lookup


class Site:
    """A server on the loopback whose paths are set by tests."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.seen: list[web.BaseRequest] = []
        self.paths: dict[str, Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]] = {}

    @property
    def name(self) -> str:
        """host:port."""
        return self.base.removeprefix("http://")

    def answers(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> None:
        """Answer the path with this."""

        async def handler(_: web.BaseRequest) -> web.StreamResponse:
            return web.Response(body=body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})

        self.paths[path] = handler


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    """A running server."""
    server = web.Server(lambda request: _served(holder[0], request))
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    port = runner.addresses[0][1]
    holder = [Site(f"http://127.0.0.1:{port}")]
    yield holder[0]
    await runner.cleanup()


async def _served(site: Site, request: web.BaseRequest) -> web.StreamResponse:
    site.seen.append(request)
    handler = site.paths.get(request.path)
    return web.Response(status=404) if handler is None else await handler(request)


def client(site: Site, **more: Any) -> GuardedClient:
    """A client whose operator allows the site."""
    return GuardedClient(allowed_hosts=frozenset({site.name}), version="1.2", **more)


async def body(guarded: GuardedClient, url: str, **more: Any) -> bytes:
    """The whole body."""
    async with guarded.get(url, **more) as answer:
        return b"".join([chunk async for chunk in answer.chunks])


async def test_a_plain_answer(site: Site) -> None:
    site.answers("/a", b"hello", ETag='"1"', Set_Cookie="a=b")
    typed: HttpClient
    async with client(site) as guarded:
        typed = guarded
        async with typed.get(f"{site.base}/a", headers={"X-One": "1"}) as answer:
            assert (answer.status, answer.headers["etag"], answer.final_url) == (200, '"1"', f"{site.base}/a")
            assert b"".join([chunk async for chunk in answer.chunks]) == b"hello"
        await body(guarded, f"{site.base}/a", conditional=Validators(etag='"1"', last_modified="x"))
    first, second = site.seen
    assert first.headers["User-Agent"] == "Joinery/1.2"
    assert first.headers["X-One"] == "1"
    assert second.headers["If-None-Match"] == '"1"'
    assert second.headers["If-Modified-Since"] == "x"
    assert "Cookie" not in second.headers


async def test_every_failure_has_its_kind(site: Site) -> None:
    async with client(site) as guarded:
        with pytest.raises(errors.OutboundError) as caught:
            await body(guarded, "http://127.0.0.1/")
    assert isinstance(caught.value, HttpFailure)
    assert caught.value.kind == "refused_address"


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://169.254.169.254/latest/meta-data", "http://[::ffff:127.0.0.1]/", "http://0x7f.1/"],
)
async def test_refused_addresses(site: Site, url: str) -> None:
    async with client(site) as guarded:
        with pytest.raises(errors.RefusedAddress):
            await body(guarded, url)
        site.answers("/go", status=302, Location=url)
        with pytest.raises(errors.RefusedAddress):
            await body(guarded, f"{site.base}/go")


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.1.2.3", "100.64.0.1"])
async def test_names_of_closed_addresses(address: str) -> None:
    async with GuardedClient(lookup=looks_up(address)) as guarded:
        with pytest.raises(errors.RefusedAddress):
            await body(guarded, "http://files.example/")


async def test_a_name_that_changes_its_answer(site: Site) -> None:
    """The second answer is an internal address; the name is resolved and vetted again for each connection."""
    connected: list[str] = []
    answers = looks_up("192.0.2.1", "127.0.0.1")

    async def lookup(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        found = await answers(host, port, family)
        connected.append(found[0]["host"])
        return found

    async with GuardedClient(lookup=lookup, allows_any_port=True) as guarded:
        for _ in range(2):
            with pytest.raises(errors.RefusedAddress):
                await body(guarded, site.base.replace("127.0.0.1", "files.example"))
    assert connected == ["192.0.2.1", "127.0.0.1"]
    assert not site.seen


async def test_only_public_ones_of_many_addresses() -> None:
    async def lookup(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in ("127.0.0.1", "8.8.8.8", "10.0.0.1")
        ]

    from adapters.http.resolver import AddressVetting, VettingResolver

    found = await VettingResolver(AddressVetting(), lookup).resolve("files.example", 80)
    assert [entry["host"] for entry in found] == ["8.8.8.8"]


async def test_an_unknown_name() -> None:
    async def lookup(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        raise OSError("no such name")

    async with GuardedClient(lookup=lookup) as guarded:
        with pytest.raises(errors.DnsFailed):
            await body(guarded, "http://files.example/")


async def test_redirects_are_followed_five_times(site: Site) -> None:
    for number in range(6):
        site.answers(f"/{number}", status=302, Location=f"/{number + 1}")
    site.answers("/6", b"end")
    async with client(site) as guarded:
        assert await body(guarded, f"{site.base}/1") == b"end"
        with pytest.raises(errors.RedirectRefused, match="more than 5"):
            await body(guarded, f"{site.base}/0")


async def test_credentials_stay_with_their_origin(site: Site) -> None:
    port = site.name.rsplit(":", 1)[1]
    site.answers("/a", status=302, Location="/b")
    site.answers("/b", status=307, Location=f"http://files.example:{port}/c")
    site.answers("/c", b"end")
    allowed = frozenset({site.name, f"files.example:{port}"})
    async with GuardedClient(allowed_hosts=allowed, lookup=looks_up("127.0.0.1")) as guarded:
        sent = {"Authorization": "Bearer x", "X-Api-Key": "y", "Accept": "text/csv"}
        assert await body(guarded, f"{site.base}/a", headers=sent) == b"end"
    assert [("Authorization" in request.headers, "X-Api-Key" in request.headers) for request in site.seen] == [
        (True, True), (True, True), (False, False)
    ]  # fmt: skip
    assert site.seen[2].headers["Accept"] == "text/csv"


@pytest.mark.parametrize("spelt", ["k=to%20ken%2F9", "k=to+ken%2f9", "to%20ken/9", "k=%74o+ken/9"])
async def test_private_texts_stay_with_their_origin(site: Site, spelt: str) -> None:
    """Wherever in a request they stand, and however a redirect spells them."""
    port = site.name.rsplit(":", 1)[1]
    site.answers("/a", status=302, Location=f"/b?{spelt}")
    site.answers("/b", status=302, Location=f"http://files.example:{port}/c?{spelt}")
    site.answers("/d", status=302, Location=f"http://files.example:{port}/e")
    site.answers("/e", b"end")
    allowed = frozenset({site.name, f"files.example:{port}"})
    async with GuardedClient(allowed_hosts=allowed, lookup=looks_up("127.0.0.1")) as guarded:
        private = frozenset({"to ken/9"})
        with pytest.raises(errors.RedirectRefused, match="credentials"):
            await body(guarded, f"{site.base}/a?k=to%20ken%2F9", secrets=private)
        assert [request.path for request in site.seen] == ["/a", "/b"]
        sent = {"Accept": "to ken/9", "Accept-Language": "de"}
        assert await body(guarded, f"{site.base}/d", headers=sent, secrets=private) == b"end"
    last = site.seen[-1].headers
    assert "to ken" not in last.get("Accept", "") and last["Accept-Language"] == "de" and "Referer" not in last


async def test_redirects_keep_to_the_hosts_of_a_connector(site: Site) -> None:
    site.answers("/a", status=302, Location="http://8.8.8.8/")
    async with client(site) as guarded:
        with pytest.raises(errors.RefusedAddress, match="connector"):
            await body(guarded, f"{site.base}/a", hosts=frozenset({"127.0.0.1"}))


async def test_https_is_not_left() -> None:
    from yarl import URL

    from adapters.http.client import _resolve_redirect

    with pytest.raises(errors.RedirectRefused):
        _resolve_redirect(URL("https://files.example/"), "http://files.example/")
    with pytest.raises(errors.RedirectRefused):
        _resolve_redirect(URL("https://files.example/"), "http://[::1")


async def test_posts_are_not_redirected(site: Site) -> None:
    site.answers("/a", status=307, Location="/b")
    async with client(site) as guarded, guarded.post(f"{site.base}/a", body=b"{}") as answer:
        assert answer.status == 307
    assert len(site.seen) == 1


async def _endless(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x" * 65_536)


async def test_an_endless_body(site: Site) -> None:
    site.paths["/a"] = _endless
    async with client(site, bounds=HttpBounds(max_received_bytes=2 * MIB)) as guarded:
        with pytest.raises(errors.TooLarge, match="2 MiB"):
            await body(guarded, f"{site.base}/a")


async def test_a_body_whose_declared_length_is_too_large(site: Site) -> None:
    site.answers("/a", b"x" * 2 * MIB)
    async with client(site, bounds=HttpBounds(max_received_bytes=MIB)) as guarded:
        with pytest.raises(errors.TooLarge):
            await body(guarded, f"{site.base}/a")


async def _drips(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x")
        await asyncio.sleep(0.02)


async def test_slow_drip(site: Site) -> None:
    site.paths["/a"] = _drips
    bounds = HttpBounds(minimum_rate=MinimumResponseRate(bytes_per_second=1_000, grace_seconds=0.2))
    before = monotonic()
    async with client(site, bounds=bounds) as guarded:
        with pytest.raises(errors.TooSlow):
            await body(guarded, f"{site.base}/a")
    assert monotonic() - before < 2


async def test_a_slow_reader_is_not_a_slow_server(site: Site) -> None:
    site.answers("/a", b"x" * 300_000)
    bounds = HttpBounds(minimum_rate=MinimumResponseRate(bytes_per_second=1_000_000, grace_seconds=0.05))
    async with client(site, bounds=bounds) as guarded, guarded.get(f"{site.base}/a") as answer:
        size = 0
        async for chunk in answer.chunks:
            size += len(chunk)
            await asyncio.sleep(0.1)
    assert size == 300_000


async def _silent(request: web.BaseRequest) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response()


async def test_silence(site: Site) -> None:
    site.paths["/a"] = _silent
    async with client(site, bounds=HttpBounds(idle_seconds=0.2)) as guarded:
        with pytest.raises(errors.TimedOut):
            await body(guarded, f"{site.base}/a")
    async with client(site, bounds=HttpBounds(response_seconds=0.1, connect_seconds=0.1)) as guarded:
        with pytest.raises(errors.TimedOut):
            await body(guarded, f"{site.base}/a")


async def test_total_time(site: Site) -> None:
    site.paths["/a"] = _drips
    async with client(site, bounds=HttpBounds(total_seconds=0.3)) as guarded:
        with pytest.raises(errors.TimedOut):
            await body(guarded, f"{site.base}/a")


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
async def test_packed_bodies(site: Site, coding: str, pack: Callable[[bytes], bytes]) -> None:
    site.answers("/a", pack(b"SKU,Qty\nA,1\n" * 50), Content_Encoding=coding)
    async with client(site) as guarded:
        assert await body(guarded, f"{site.base}/a") == b"SKU,Qty\nA,1\n" * 50


async def test_gzip_bomb(site: Site) -> None:
    site.answers("/a", gzip.compress(b"\0" * (64 * MIB)), Content_Encoding="gzip")
    async with client(site) as guarded:
        with pytest.raises(errors.TooLarge, match="compression ratio"):
            await body(guarded, f"{site.base}/a")
    async with client(site, bounds=HttpBounds(max_body_bytes=MIB)) as guarded:
        with pytest.raises(errors.TooLarge, match="1 MiB"):
            await body(guarded, f"{site.base}/a")


@pytest.mark.parametrize(
    ("coding", "data"),
    [("br", b"x"), ("gzip", b"not gzip"), ("gzip", gzip.compress(b"x" * 99)[:-9])],
    ids=["unasked", "no gzip", "cut off"],  # gzip writes the time: as a name it would be another in each process
)
async def test_bad_packing(site: Site, coding: str, data: bytes) -> None:
    site.answers("/a", data, Content_Encoding=coding)
    async with client(site) as guarded:
        with pytest.raises(errors.BadEncoding):
            await body(guarded, f"{site.base}/a")


async def _breaks_off(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b"x" * 10)
    assert request.transport is not None
    request.transport.close()
    return response


async def test_breaking_off(site: Site) -> None:
    site.paths["/a"] = _breaks_off
    async with client(site) as guarded:
        with pytest.raises(errors.Aborted):
            await body(guarded, f"{site.base}/a")


async def test_connection_refused() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        name = f"127.0.0.1:{held.getsockname()[1]}"
        async with GuardedClient(allowed_hosts=frozenset({name})) as guarded:
            with pytest.raises(errors.ConnectFailed):
                await body(guarded, f"http://{name}/")


async def test_server_without_tls(site: Site) -> None:
    async with client(site, tls=ssl.create_default_context()) as guarded:
        with pytest.raises(errors.TlsFailed):
            await body(guarded, site.base.replace("http:", "https:"))


async def test_proxies_of_the_environment_are_ignored(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    site.answers("/a", b"ok")
    async with client(site) as guarded:
        assert await body(guarded, f"{site.base}/a") == b"ok"


async def test_requests_follow_the_pace_of_the_host(site: Site) -> None:
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
    assert len(site.seen) == 3
