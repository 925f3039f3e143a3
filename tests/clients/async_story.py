"""Integration with the asyncio client: run by tests with an address, a key, a file and a webhook address."""

import asyncio
import json
import sys

from joinery_client import AsyncJoinery, InvalidRequest, types

path, hook = sys.argv[1:]
called: list[str] = []


def passed(name: str, fits: bool) -> None:
    assert fits, name
    called.append(name)


async def catalogue(client: AsyncJoinery) -> None:
    wanted: types.SourceCreate = {"name": "Price list", "kind": "file", "config": {"currency": "usd"}}
    passed("sources.create (explained)", (await client.sources.create(wanted, explain=True))["allowed"])
    source = await client.sources.create(wanted)
    passed("sources.create", source["object"] == "source")
    passed("sources.get", (await client.sources.get(source["id"]))["id"] == source["id"])
    passed("sources.list", [one["id"] async for one in client.sources.list()] == [source["id"]])
    altered = await client.sources.update(source["id"], {"name": "Renamed"}, if_match="*")
    passed("sources.update", altered["name"] == "Renamed")
    cursor = await client.changes.now()
    upload = await client.sources.upload_file(source["id"], path)
    run = await client.runs.wait(upload["run"], timeout=60)
    passed("runs.get", run["status"] == "succeeded")
    passed("uploads.get", (await client.uploads.get(upload["id"]))["status"] == "completed")
    passed("runs.list", len([one async for one in client.runs.list(source["id"])]) == 1)
    products = [one async for one in client.products.list(source=source["id"], limit=4)]
    passed("products.list", len(products) == 10)
    several = await asyncio.gather(*(client.products.get(one["id"]) for one in products))
    passed("products.get", list(several) == products)
    passed("offers.list", len([one async for one in client.offers.list(product=products[0]["id"])]) == 2)
    passed("categories.list", len((await client.categories.list())["categories"]) > 10)
    seen = []
    async for event in client.changes.follow(cursor, types=["product.created"], wait=1):
        seen.append(event["id"])
        if len(seen) == 10:
            break
    passed("changes.page", len(set(seen)) == 10)
    passed(
        "changes.recent", [one["id"] async for one in client.changes.recent(types=["product.created"])] == seen[::-1]
    )


async def webhooks(client: AsyncJoinery) -> None:
    try:
        await client.webhooks.create({"url": "no address", "event_types": ["*"]})
    except InvalidRequest as error:
        passed("webhooks.create (refused)", error.errors[0]["field"] == "url")
    endpoint = await client.webhooks.create({"url": hook, "event_types": ["*"]})
    passed("webhooks.create", endpoint["secret"].startswith("whsec_"))
    passed("webhooks.get", (await client.webhooks.get(endpoint["id"]))["url"] == hook)
    passed("webhooks.list", [one["id"] async for one in client.webhooks.list()] == [endpoint["id"]])
    passed("webhooks.test", (await client.webhooks.test(endpoint["id"]))["type"] == "webhook.test")
    passed("webhooks.list_deliveries", len([one async for one in client.webhooks.list_deliveries(endpoint["id"])]) == 1)
    await client.webhooks.delete(endpoint["id"])
    passed("webhooks.delete", [one async for one in client.webhooks.list()] == [])


async def main() -> None:
    async with AsyncJoinery() as client:
        passed("orgs.get", (await client.orgs.get())["object"] == "organisation")
        passed("platform.status", (await client.platform.status())["object"] == "platform_status")
        await catalogue(client)
        await webhooks(client)
    print(json.dumps(called))


asyncio.run(main())
