"""Lists and cursors (docs/conventions.md#paging)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.api_json.cursors import CursorSigner, build_cursor_context
from domain.kernel.tenancy import Tenant
from domain.secrets.keys import SigningKeys
from tests.http.application import ApplicationHarness
from tests.http.client import Client, Response


def _read_numbers(response: Response) -> list[int]:
    return [item["number"] for item in response.json()["data"]]


@pytest.mark.asyncio
async def test_pages_contain_every_item_once(client: Client) -> None:
    seen: list[int] = []
    response = await client.get("/v1/things?limit=30")
    while True:
        seen += _read_numbers(response)
        page = response.json()
        assert page["object"] == "list"
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            break
        response = await client.get(f"/v1/things?limit=30&starting_after={page['next_cursor']}")
    assert seen == list(range(1, 101))


@pytest.mark.asyncio
async def test_defaults_and_both_directions(client: Client) -> None:
    first = await client.get("/v1/things")
    assert _read_numbers(first) == list(range(1, 21))
    cursor = (await client.get("/v1/things?limit=50")).json()["next_cursor"]
    before = await client.get(f"/v1/things?limit=10&ending_before={cursor}")
    assert _read_numbers(before) == list(range(40, 50))
    further = before.json()["next_cursor"]
    assert _read_numbers(await client.get(f"/v1/things?limit=10&ending_before={further}")) == list(range(30, 40))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "faults"),
    [
        ("limit=0", {("query.limit", "too_small")}),
        ("limit=101", {("query.limit", "too_large")}),
        ("limit=ten", {("query.limit", "invalid_type")}),
        ("limit=", {("query.limit", "invalid_type")}),
        ("limit=1.5", {("query.limit", "invalid_type")}),
        ("limit=%31", None),
        ("limit=1&limit=1", {("query.limit", "duplicate")}),
        ("limits=1", {("query.limits", "unknown_field")}),
        ("limits=1&colours=2&limit=0", {("query.limits", "unknown_field"), ("query.colours", "unknown_field"), ("query.limit", "too_small")}),
        ("colour=", {("query.colour", "too_short")}),
        ("colour=%FF", {("query.colour", "invalid_format")}),
        ("colour=a%00b", {("query.colour", "invalid_format")}),
        ("big=yes", {("query.big", "invalid_type")}),
        ("big=true&colour=a+b&&", None),
        ("starting_after=nonsense", {("query.starting_after", "invalid_cursor")}),
        ("starting_after=", {("query.starting_after", "invalid_cursor")}),
        ("ending_before=%21", {("query.ending_before", "invalid_cursor")}),
        ("starting_after=a&ending_before=b", {("query.ending_before", "invalid_value")}),
    ],
)  # fmt: skip
async def test_parameters(client: Client, query: str, faults: set[tuple[str, str]] | None) -> None:
    response = await client.get(f"/v1/things?{query}")
    if faults is None:
        assert response.status == 200
    else:
        assert response.status == 400
        assert response.faults == faults


@pytest.mark.asyncio
async def test_a_forward_list_has_no_ending_before(client: Client) -> None:
    assert (await client.get("/v1/forward?ending_before=a")).faults == {("query.ending_before", "unknown_field")}


@pytest.mark.asyncio
async def test_cursors_are_valid_only_for_their_list_and_tenant(
    application: ApplicationHarness, client: Client
) -> None:
    cursor = (await client.get("/v1/things?colour=red")).json()["next_cursor"]
    assert (await client.get(f"/v1/things?colour=red&limit=3&starting_after={cursor}")).status == 200
    sandbox, other = await application.create_client(livemode=False), await application.create_client("Oak")
    for carrier, target in (
        (client, "/v1/things?"),
        (client, "/v1/things?colour=blue&"),
        (client, "/v1/things?colour=red&big=true&"),
        (client, "/v1/forward?"),
        (sandbox, "/v1/things?colour=red&"),
        (other, "/v1/things?colour=red&"),
    ):
        response = await carrier.get(f"{target}starting_after={cursor}")
        assert response.faults == {("query.starting_after", "invalid_cursor")}


@given(key=st.text(max_size=80), flip=st.integers(0, 2000), letter=st.sampled_from("AZaz09-_=+/ \n"))
def test_tampering(key: str, flip: int, letter: str) -> None:
    cursors, context = (
        CursorSigner(SigningKeys(b"secret")),
        build_cursor_context("list", Tenant("org", True), {}, {"q": "a"}),
    )
    key = key.encode("utf-8", "ignore").decode()
    cursor = cursors.sign(context, key)
    assert cursor is not None
    assert cursors.verify(context, cursor) == key
    assert CursorSigner(SigningKeys(b"other")).verify(context, cursor) is None
    at = flip % (len(cursor) + 1)
    forged = cursor[:at] + letter + cursor[at + 1 :]
    if forged != cursor:
        assert cursors.verify(context, forged) is None
    assert cursors.verify(context, cursor + letter) is None


def test_a_page_without_a_key_has_no_cursor() -> None:
    assert CursorSigner(SigningKeys(b"secret")).sign(b"", None) is None
    assert CursorSigner(SigningKeys(b"secret")).verify(b"", "a" * 2000) is None
    assert CursorSigner(SigningKeys(b"secret")).verify(b"", "ä") is None
