"""A single text for a list parameter is a list of one item, split neither into characters nor at commas."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from entrypoints.operations.query_string import QueryParser
from tests.support.operation_table import load_operation_table
from tests.support.shipped_clients import import_client
from tests.unit.clients.test_typescript_runtime import RunScript, run_script

__all__ = ["run_script"]
PAGE = {"data": [], "has_more": False, "next_cursor": "c1", "caught_up": True}
CASES = [
    ("catalogue.list_offers", "offers", {"sku": "AB,1"}, {"sku": ["AB,1"]}),
    (
        "catalogue.list_offers",
        "offers",
        {"sku": ["AB,1", "b"], "external_id": "x,2"},
        {"sku": ["AB,1", "b"], "external_id": ["x,2"]},
    ),
    ("changes.page", "changes", {"types": "offer.changed"}, {"types": ["offer.changed"]}),
    ("changes.follow", "changes", {"types": "offer.changed"}, {"types": ["offer.changed"]}),
]


def parse_query(operation: str, query: str) -> dict[str, Any]:
    row = next(row for row in load_operation_table() if row.id == operation.replace("follow", "page"))
    values, faults = QueryParser(row).parse(query)
    assert faults == ()
    return {name: value for name, value in values.items() if name != "limit"}


@pytest.mark.parametrize(("operation", "group", "query", "expected"), CASES)
def test_python_sends_a_text_as_one_item(
    operation: str, group: str, query: dict[str, Any], expected: dict[str, Any]
) -> None:
    seen = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.query.decode())
        return httpx.Response(200, json=PAGE)

    method = operation.partition(".")[2].partition("_")[0]
    with import_client().Joinery("http://x", "k", transport=httpx.MockTransport(respond)) as client:
        listing = getattr(getattr(client, group), method)(**query)
        next(listing.pages()) if hasattr(listing, "pages") else listing

    async def run() -> None:
        async with import_client().AsyncJoinery("http://x", "k", transport=httpx.MockTransport(respond)) as client:
            listing = getattr(getattr(client, group), method)(**query)
            await (anext(listing.pages()) if hasattr(listing, "pages") else listing)

    asyncio.run(run())
    assert [parse_query(operation, one) for one in seen] == [expected] * 2


@pytest.mark.parametrize(("operation", "group", "query", "expected"), CASES)
def test_typescript_sends_a_text_as_one_item(
    run_script: RunScript, operation: str, group: str, query: dict[str, Any], expected: dict[str, Any]
) -> None:
    method = operation.partition(".")[2].partition("_")[0]
    url = run_script("requestUrl", {"group": group, "method": method, "query": query, "page": json.dumps(PAGE)})
    assert parse_query(operation, url.partition("?")[2]) == expected
