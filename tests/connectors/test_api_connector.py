"""JSON services described by settings: paging styles, signing, and the end of pagination."""

import json
from typing import Any

import pytest

from connectors.api.connector import SPEC
from connectors.sdk import BadData, ConnectorError, Refused, Unreachable
from connectors.sdk.testing import FakeContext, FakeHttp, StubResponse, parse_snapshot, run_fetch

URL = "https://api.example/v1/items"


def build_response(*skus: str, link: str | None = None, **more: Any) -> StubResponse:
    """Return a page of items."""
    headers = {} if link is None else {"Link": link}
    return StubResponse(
        json.dumps({"items": [{"sku": sku} for sku in skus], **more}, indent=1).encode(), headers=headers
    )


def fetch_skus(context: FakeContext) -> list[str]:
    """Return the SKUs of all pages."""
    ((table, rows),) = parse_snapshot(SPEC, context, run_fetch(SPEC, context))
    at = table.headers.index("sku")
    return [cells[at] for _, cells in rows]


def build_context(answers: dict[str, Any], credentials: dict[str, str] | None = None, **config: Any) -> FakeContext:
    """Return a context whose service has the responses, by the rest of the URL."""
    http = FakeHttp({f"{URL}{rest}": it for rest, it in answers.items()})
    return FakeContext(config={"url": URL, **config}, credentials=credentials, http=http)


@pytest.mark.parametrize(
    ("paging", "answers"),
    [
        (
            {"style": "page"},
            {"?page=1": build_response("A"), "?page=2": build_response("B"), "?page=3": build_response()},
        ),
        ({"style": "page", "start": 0, "page_param": "p"}, {"?p=0": build_response("A"), "?p=1": build_response("B")}),
        (
            {"style": "page"},
            {"?page=1": build_response("A"), "?page=2": build_response("B"), "?page=3": build_response("B")},
        ),
        (
            {"style": "offset", "size": 1, "size_param": "n", "offset_param": "at"},
            {"?n=1&at=0": build_response("A"), "?n=1&at=1": build_response("B"), "?n=1&at=2": build_response()},
        ),
        (
            {"style": "cursor", "cursor_path": "page.next", "cursor_param": "after"},
            {"": build_response("A", page={"next": "x y"}), "?after=x+y": build_response("B", page={"next": None})},
        ),
        (
            {"style": "next_link", "next_path": "@odata.nextLink"},
            {"": build_response("A", **{"@odata.nextLink": f"{URL}?skip=1"}), "?skip=1": build_response("B")},
        ),
        (
            {"style": "link_header"},
            {
                "": build_response("A", link=f'<{URL}?page=9>; rel="last", <{URL}?page=2>; rel="next"'),
                "?page=2": build_response("B"),
            },
        ),
        ({}, {"": build_response("A", link="</v1/items?page=2>; rel=next"), "?page=2": build_response("B")}),
        (
            {"style": "auto"},
            {"": build_response("A", links={"next": "?page=2"}), "?page=2": build_response("B", links={"next": None})},
        ),
    ],
    ids=[
        "page",
        "page from 0",
        "repeating",
        "offset",
        "cursor",
        "next link",
        "link header",
        "auto header",
        "auto body",
    ],
)
def test_paging(paging: dict[str, Any], answers: dict[str, Any]) -> None:
    assert fetch_skus(build_context(answers, paging=paging)) == ["A", "B"]


def test_without_paging() -> None:
    context = build_context(
        {"": build_response("A", next="?page=2"), "?page=2": build_response("B")}, paging={"style": "none"}
    )
    assert fetch_skus(context) == ["A"]


def test_the_number_of_pages_is_limited() -> None:
    context = build_context(
        {f"?page={n}": build_response(f"S{n}") for n in range(1, 9)}, paging={"style": "page", "max_pages": 3}
    )
    assert len(fetch_skus(context)) == 3
    assert "more than 3 pages" in context.reports[0].detail


def test_links_to_other_hosts_are_not_followed() -> None:
    context = build_context({"": build_response("A", link="<https://evil.example/>; rel=next")}, {"token": "s3cret"})
    with pytest.raises(BadData, match="another host"):
        run_fetch(SPEC, context)


@pytest.mark.parametrize(
    ("credentials", "header", "value"),
    [
        ({"token": "s3cret"}, "Authorization", "Bearer s3cret"),
        ({"username": "ann", "password": "s3cret"}, "Authorization", "Basic YW5uOnMzY3JldA=="),
        ({"header": "X-Api-Key", "value": "s3cret"}, "X-Api-Key", "s3cret"),
    ],
)
def test_signing(credentials: dict[str, str], header: str, value: str) -> None:
    context = build_context({"": build_response("A")}, credentials, headers={"X-Shop": "7"})
    fetch_skus(context)
    assert context.http.requests[0].headers.get(header) == value
    assert context.http.requests[0].headers.get("X-Shop") == "7"


def test_a_key_in_the_query_is_never_shown() -> None:
    context = build_context(
        {"?page=1&key=s3cret": build_response("A")}, {"query": "key", "value": "s3cret"}, paging={"style": "page"}
    )

    async def run() -> str | None:
        async with SPEC.open().fetch(context) as begun:
            return begun.final_url

    import asyncio

    assert asyncio.run(run()) == f"{URL}?page=1"


def test_end_by_404() -> None:
    assert fetch_skus(
        build_context({"?page=1": build_response("A"), "?page=2": build_response("B")}, paging={"style": "page"})
    ) == ["A", "B"]
    with pytest.raises(Unreachable):
        run_fetch(SPEC, build_context({}, paging={"style": "page"}))


def test_refused_credentials() -> None:
    for status in (401, 403):
        with pytest.raises(Refused) as caught:
            run_fetch(SPEC, build_context({"": StubResponse(status=status)}, {"token": "s3cret"}))
        assert caught.value.is_credentials_error


@pytest.mark.parametrize("body", [b"not json", b"\xff", b'{"a": Infinity}'])
def test_invalid_responses(body: bytes) -> None:
    with pytest.raises(ConnectorError):
        run_fetch(SPEC, build_context({"": StubResponse(body)}))


def test_settings_that_carry_secrets_are_refused() -> None:
    import jsonschema_rs

    schema = jsonschema_rs.Draft202012Validator(dict(SPEC.config_schema))
    assert schema.is_valid({"url": URL, "headers": {"X-Shop": "7"}})
    for name in ("Authorization", "AUTHORIZATION", "cookIE", "Content-TYPE", "accept-encoding", "HOST"):
        assert not schema.is_valid({"url": URL, "headers": {name: "x"}}), name
    assert not schema.is_valid({"url": "ftp://x.example"})
    assert not schema.is_valid({"url": URL, "unknown": 1})
