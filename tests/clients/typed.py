"""Types that the checker must accept or refuse: an unneeded ignore is an error."""

from http.server import BaseHTTPRequestHandler

import httpx
from joinery_client import AsyncJoinery, Joinery, Listing, types, verify_webhook


def checks(client: Joinery, event: types.TypedEvent) -> None:
    preview: types.Preview = client.sources.create({"name": "a", "kind": "file"}, explain=True)
    source: types.Source = client.sources.create({"name": "a", "kind": "file"})
    client.sources.create({"name": "a", "kind": "sofa"})  # type: ignore[call-overload]
    client.sources.update(source["id"], {"name": "b"})  # type: ignore[call-overload]
    wrong: types.Source = preview  # type: ignore[assignment]
    if event["type"] == "offer.changed":
        facets: list[types.Facet] = event["data"]["facets"]
        print(facets)
    if event["type"] == "source.degraded":
        event["data"]["facets"]  # type: ignore[typeddict-item]
    client.products.list(colour="oak")  # type: ignore[call-arg]
    for product in client.products.list():
        title: str = product["data"]["title"]
        print(title, wrong)
    for one in client.changes.follow():
        if one["type"] == "product.created":
            print(one["data"]["id"])
    checked: types.TypedEvent = verify_webhook(b"", {}, "whsec_")
    print(checked)


def titles(products: Listing[types.Product]) -> list[str]:
    return [product["data"]["title"] for product in products]


def received(handler: BaseHTTPRequestHandler, request: httpx.Request) -> None:
    verify_webhook(handler.rfile.read(), handler.headers, "whsec_")
    verify_webhook(request.content, request.headers, ["whsec_", "whsec_"])


async def awaited(client: AsyncJoinery) -> None:
    source: types.Source = await client.sources.get("src_1")
    async for page in client.sources.list().pages():
        items: list[types.Source] = page["data"]
        print(items, source)
    cursor: str = await client.changes.now()
    print(cursor)
