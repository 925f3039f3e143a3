"""ETag, 304, HEAD and If-Match (RFC 9110 §13; docs/conventions.md#etag-and-if-match)."""

import pytest

from domain.kernel.errors import InvalidRequest
from entrypoints.http.checks import UNMATCHABLE_VERSIONS, parse_if_match
from tests.http import example_area
from tests.http.application import ApplicationHarness
from tests.http.client import Client

pytestmark = pytest.mark.asyncio


async def test_etags(application: ApplicationHarness, client: Client) -> None:
    thing = example_area.add_thing(application.orgs["Fjord"].id)
    one = await client.get(f"/v1/things/{thing.id}")
    assert one.headers["etag"].startswith('"1-')
    assert (await client.get(f"/v1/things/{thing.id}")).headers["etag"] == one.headers["etag"]
    thing.name = "elm"
    assert (await client.get(f"/v1/things/{thing.id}")).headers["etag"] != one.headers["etag"]
    listed = (await client.get("/v1/things")).headers["etag"]
    assert "-" not in listed
    example_area.BEHAVIOUR["etag"] = "abc"
    assert (await client.get("/v1/things/special")).headers["etag"] == '"abc"'


async def test_not_modified(application: ApplicationHarness, client: Client) -> None:
    path = f"/v1/things/{example_area.add_thing(application.orgs['Fjord'].id).id}"
    etag = (await client.get(path)).headers["etag"]
    for held in (etag, f"W/{etag}", f'"other", {etag}', f'"a,b",W/{etag} , "c"', "*"):
        response = await client.get(path, if_none_match=held)
        assert (response.status, response.body) == (304, b"")
        assert response.headers["etag"] == etag
        assert response.headers["vary"] == "Authorization, Service-Version, Service-Mode, Accept-Encoding"
        assert response.headers["cache-control"] == "private, no-cache"
        assert response.headers["ratelimit"]
        assert response.headers["request-id"]
        assert "content-type" not in response.headers
    for held in ('"other"', etag[:-1], etag.strip('"'), "nonsense", ""):
        assert (await client.get(path, if_none_match=held)).status == 200


async def test_head(application: ApplicationHarness, client: Client) -> None:
    path = f"/v1/things/{example_area.add_thing(application.orgs['Fjord'].id).id}"
    get, head = await client.get(path), await client.send("HEAD", path)
    assert head.body == b""
    changing = {"request-id": "", "ratelimit": ""}
    assert head.headers | changing == get.headers | changing
    missing = await client.send("HEAD", "/v1/nothing")
    assert (missing.status, missing.body) == (404, b"")
    assert int(missing.headers["content-length"]) > 0
    assert (await client.send("HEAD", path, headers={"if-none-match": get.headers["etag"]})).status == 304


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("*", 200),
        ('"1-anything"', 200),
        ('"1"', 200),
        ('"2-x"', 412),
        ('W/"1-x"', 412),
        ('"7-x", "1-y"', 200),
        ('"1-x", "7-y"', 200),
        ('W/"1-x", "1-y"', 200),
        ('"7-x", "8-y"', 412),
        ('"abc"', 412),
        ('""', 412),
        ('"-1"', 412),
        ("1-x", 400),
        ('"1-x', 400),
        ('"1-x" "2-x"', 400),
        (", ".join(['"7-x"'] * 9), 400),
    ],
)
async def test_if_match(application: ApplicationHarness, client: Client, header: str, status: int) -> None:
    thing = example_area.add_thing(application.orgs["Fjord"].id)
    response = await client.send_json("PATCH", f"/v1/things/{thing.id}", {"name": "elm"}, if_match=header)
    assert response.status == status
    assert thing.version == (2 if status == 200 else 1)
    if status == 200:
        assert response.headers["etag"].startswith('"2-')
    if status == 412:
        assert response.code == "precondition_failed"
        assert "1" in response.json()["detail"]
    if status == 400:
        assert {field for field, _ in response.faults} == {"header.If-Match"}


async def test_missing_resources_come_first(client: Client) -> None:
    for path in ("/v1/things/nonsense", "/v1/things/src_0000000000000000000000"):
        response = await client.send_json("PATCH", path, {"name": "a"}, if_match='"1-x"')
        assert response.code == "not_found"


async def test_the_etag_of_a_change_serves_for_the_next(application: ApplicationHarness, client: Client) -> None:
    path = f"/v1/things/{example_area.add_thing(application.orgs['Fjord'].id).id}"
    first = await client.send_json("PATCH", path, {"name": "elm"}, if_match=(await client.get(path)).headers["etag"])
    assert first.headers["etag"] == (await client.get(path)).headers["etag"]
    assert (await client.send_json("PATCH", path, {"name": "ash"}, if_match=first.headers["etag"])).status == 200


async def test_versions_of() -> None:
    assert parse_if_match("*") is None
    assert parse_if_match('"3-a","5-b", W/"9-c"') == (5, 3)
    assert parse_if_match('W/"9-c"') == UNMATCHABLE_VERSIONS
    assert parse_if_match("") == UNMATCHABLE_VERSIONS
    assert parse_if_match('"99999999999999999999-x"') == UNMATCHABLE_VERSIONS
    with pytest.raises(InvalidRequest):
        parse_if_match("nonsense")
