"""Responses in gzip (RFC 9110 §12.5.3): conditions, headers and equal content."""

import gzip
import threading
from typing import Any

import httpx
import pytest

from domain.kernel.ids import new_id
from entrypoints.http import representations as content_coding
from entrypoints.http.representations import MAX_INLINE_BYTES, MIN_COMPRESSED_BYTES, compress, should_compress
from tests.http import example_area
from tests.http.application import ApplicationHarness
from tests.http.client import Client, Response
from tests.http.streams import open_stream
from tests.http.test_server import serve_application
from tests.support.built_site import build_site

pytestmark = pytest.mark.asyncio
PAGE = "/v1/things?limit=100"


@pytest.mark.parametrize(
    ("accept", "large", "small"),
    [
        (None, False, False),
        ("", False, False),
        ("gzip", True, False),
        ("GZIP", True, False),
        ("x-gzip", True, False),
        ("br, deflate", False, False),
        ("gzip, deflate, br", True, False),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", True, False),
        ("*", True, False),
        ("gzip;q=0", False, False),
        ("gzip;q=0.000, *", False, False),
        ("*;q=0", False, False),
        ("identity", False, False),
        ("identity;q=0, gzip", True, True),
        ("gzip, *;q=0", True, True),
        ("identity;q=0", False, False),
        ("identity, gzip;q=0.5", False, False),
        ("identity;q=0.5, gzip;q=0.5", True, False),
        ("gzip ; q=1", True, False),
        ("gzip;q=nonsense", False, False),
        ("gzip;q=٣", False, False),
        ("gzip;q=9", True, False),
        (";;,=,q", False, False),
        ("gzipped", False, False),
        ("gzip," + "a," * 250, False, False),
    ],
)
async def test_responses_are_compressed_on_request_and_by_size(accept: str | None, large: bool, small: bool) -> None:
    assert should_compress(accept, MIN_COMPRESSED_BYTES) is large
    assert should_compress(accept, MIN_COMPRESSED_BYTES - 1) is small
    assert not should_compress(accept, 0)


def _is_same_response(plain: Response, packed: Response) -> None:
    """Return whether both responses are equal after decompression, except for the headers of the coding."""
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-length"] == str(len(packed.body))
    assert len(packed.body) < len(plain.body)
    assert "content-encoding" not in plain.headers
    of_packing = {"content-encoding", "content-length", "etag", "request-id", "ratelimit"}
    assert {name: value for name, value in packed.headers.items() if name not in of_packing} == {
        name: value for name, value in plain.headers.items() if name not in of_packing
    }


async def test_a_page_is_equal_when_compressed(client: Client) -> None:
    plain, small = await client.get(PAGE), await client.get(PAGE, accept_encoding="gzip, deflate")
    _is_same_response(plain, small)
    assert small.headers["etag"] == plain.headers["etag"][:-1] + '-gzip"'
    assert small.headers["vary"].endswith("Accept-Encoding")
    assert "content-encoding" not in (await client.get("/v1/things?limit=2", accept_encoding="gzip")).headers
    head = await client.send("HEAD", PAGE, headers={"accept-encoding": "gzip"})
    assert head.body == b""
    changing = {"request-id": "", "ratelimit": ""}
    assert head.headers | changing == small.headers | changing


async def test_both_etags_are_valid_validators(client: Client) -> None:
    tags = {accept: (await client.get(PAGE, accept_encoding=accept)).headers["etag"] for accept in ("identity", "gzip")}
    assert len(set(tags.values())) == 2
    for accept, own in tags.items():
        for held in (*tags.values(), f"W/{tags['gzip']}", f'"x", {tags["gzip"]}'):
            response = await client.get(PAGE, accept_encoding=accept, if_none_match=held)
            assert (response.status, response.body, response.headers["etag"]) == (304, b"", own)
            assert "content-encoding" not in response.headers
    assert (await client.get(PAGE, accept_encoding="gzip", if_none_match='"x-gzip"')).status == 200


async def test_if_match_accepts_both_etags(application: ApplicationHarness, client: Client) -> None:
    thing = example_area.add_thing(application.orgs["Fjord"].id)
    read = await client.get(f"/v1/things/{thing.id}", accept_encoding="gzip, identity;q=0")
    assert read.headers["etag"].startswith('"1-') and read.headers["etag"].endswith('-gzip"')
    for status in (200, 412):
        response = await client.send_json(
            "PATCH", f"/v1/things/{thing.id}", {"name": "elm"}, if_match=read.headers["etag"]
        )
        assert response.status == status


async def test_problem_responses_are_compressed(client: Client) -> None:
    path = "/v1/things?" + "&".join(f"unknown{number}=1" for number in range(40))
    plain, small = await client.get(path), await client.get(path, accept_encoding="gzip")
    assert (plain.status, small.status) == (400, 400)
    assert small.headers["content-type"] == "application/problem+json"
    unpacked = gzip.decompress(small.body)
    assert unpacked.replace(small.headers["request-id"].encode(), b"") == plain.body.replace(
        plain.headers["request-id"].encode(), b""
    )


async def test_repetitions_negotiate_their_own_coding(client: Client) -> None:
    """The response is stored uncompressed; each repetition negotiates its own coding."""
    path, value = f"/v1/things/{new_id('src')}/poke", {"a": "walnut " * 300}
    accepts = ("gzip", "identity", "gzip")
    responses = [await client.post(path, value, idempotency_key="k", accept_encoding=accept) for accept in accepts]
    assert [response.headers.get("content-encoding") for response in responses] == ["gzip", None, "gzip"]
    assert [response.headers.get("idempotent-replayed") for response in responses] == [None, "true", "true"]
    assert gzip.decompress(responses[0].body) == responses[1].body == gzip.decompress(responses[2].body)
    assert len(example_area.CALLS) == 1


async def test_large_bodies_are_compressed_outside_the_event_loop(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def watched(body: bytes) -> bytes:
        threads.append(threading.current_thread())
        return compress(body)

    monkeypatch.setattr(content_coding, "compress", watched)
    path = f"/v1/things/{new_id('src')}/poke"
    for size in (MAX_INLINE_BYTES // 2, MAX_INLINE_BYTES):
        response = await client.post(path, {"a": "a" * size}, accept_encoding="gzip")
        assert response.headers["content-encoding"] == "gzip"
        assert gzip.decompress(response.body).count(b"a") > size
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


async def test_streams_are_not_compressed(application: ApplicationHarness) -> None:
    async with open_stream(await application.create_client("Elm"), accept_encoding="gzip, identity;q=0") as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert "content-encoding" not in stream.headers


@pytest.fixture(scope="module")
def built_site() -> None:
    """Build the documentation."""
    build_site()


@pytest.mark.usefixtures("built_site")
@pytest.mark.parametrize("path", ["/docs/", "/openapi.json", "/docs/errors"])
async def test_documentation_pages_are_equal_when_compressed(application: ApplicationHarness, path: str) -> None:
    anonymous = application.build_client()
    plain, small = await anonymous.get(path), await anonymous.get(path, accept_encoding="gzip")
    _is_same_response(plain, small)
    assert small.headers["etag"] == plain.headers["etag"][:-1] + '-gzip"'
    assert (await anonymous.get(path, accept_encoding="gzip;q=0")).body == plain.body
    for held in (plain.headers["etag"], small.headers["etag"]):
        response = await anonymous.get(path, accept_encoding="gzip", if_none_match=held)
        assert (response.status, response.headers["etag"]) == (304, small.headers["etag"])


async def test_a_client_decompresses_responses_of_the_server() -> None:
    async with serve_application() as connection:
        headers = {"Authorization": f"Bearer {connection.secret}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{connection.port}", headers=headers) as client:
            bodies: list[Any] = []
            for accept, coding in (("gzip, deflate", "gzip"), ("identity", None)):
                for path in (PAGE, "/openapi.json"):
                    response = await client.get(path, headers={"Accept-Encoding": accept})
                    assert (response.status_code, response.headers.get("content-encoding")) == (200, coding)
                    bodies.append(response.content)
            assert bodies[:2] == bodies[2:]
            made = await client.post(
                f"/v1/things/{new_id('src')}/poke", json={"a": "b" * 2000}, headers={"Idempotency-Key": "k"}
            )
            assert made.headers["content-encoding"] == "gzip"
            assert made.json()["body"]["a"] == "b" * 2000
