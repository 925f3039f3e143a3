"""Integration with the blocking client: run by tests with an address, a key, a file and a webhook address."""

import json
import sys

from joinery_client import Joinery, NotFound, PreconditionFailed, Unprocessable, types

path, hook = sys.argv[1:]
called: list[str] = []


def passed(name: str, fits: bool) -> None:
    assert fits, name
    called.append(name)


with Joinery() as client:
    passed("orgs.get", client.orgs.get()["object"] == "organisation")
    passed("orgs.list_plans", len(client.orgs.list_plans()["data"]) > 0)
    passed("platform.status", client.platform.status()["object"] == "platform_status")
    wanted: types.SourceCreate = {"name": "Price list", "kind": "file", "config": {"currency": "usd"}}
    passed("sources.create (explained)", client.sources.create(wanted, explain=True)["allowed"])
    passed("sources.create (dry run)", client.sources.create(wanted, dry_run=True)["kind"] == "file")
    source = client.sources.create(wanted, idempotency_key="the-one")
    passed("sources.create", client.sources.create(wanted, idempotency_key="the-one")["id"] == source["id"])
    passed("sources.get", client.sources.get(source["id"])["name"] == "Price list")
    renamed = client.sources.update(source["id"], {"name": "Renamed"}, if_match=source["version"])
    passed("sources.update", renamed["version"] == source["version"] + 1)
    try:
        client.sources.update(source["id"], {"name": "Again"}, if_match=source["version"])
    except PreconditionFailed as error:
        passed("sources.update (refused)", error.status == 412 and not error.maybe_done)
    passed("sources.list", [one["id"] for one in client.sources.list()] == [source["id"]])
    cursor = client.changes.now()
    upload = client.sources.upload_file(source["id"], path)
    run = client.runs.wait(upload["run"], timeout=60)
    passed("runs.get", run["status"] == "succeeded")
    passed("uploads.get", client.uploads.get(upload["id"])["status"] == "completed")
    passed("runs.list", [one["id"] for one in client.runs.list(source["id"])] == [run["id"]])
    products = list(client.products.list(source=source["id"], status="active", limit=4))
    passed("products.list", len(products) == 10)
    passed("products.get", client.products.get(products[0]["id"]) == products[0])
    offers = [offer for page in client.offers.list(product=products[0]["id"]).pages() for offer in page["data"]]
    passed("offers.list", {offer["product"] for offer in offers} == {products[0]["id"]})
    passed("categories.list", len(client.categories.list()["categories"]) > 10)
    passed("mappings.list", len(list(client.mappings.list(source["id"]))) == 1)
    passed("runs.list_categories", client.runs.list_categories(source["id"])["object"] == "category_rules")
    pushed = client.sources.create({"name": "Pushed", "kind": "push", "config": {"currency": "usd"}})
    record: types.PushedRecord = {"product": {"external_id": "chair", "title": "Oak chair"}, "variants": []}
    passed(
        "runs.push",
        client.runs.wait(client.runs.push(pushed["id"], {"records": [record]})["id"])["status"] == "succeeded",
    )
    changed: list[str] = []
    for page in client.changes.follow(cursor, types=["product.created"], wait=1).pages():
        for event in page["data"]:
            if event["type"] == "product.created":
                changed.append(event["data"]["id"])
        if page["caught_up"] and len(changed) >= 11:
            break
    passed("changes.page", set(changed) >= {product["id"] for product in products})
    passed("changes.recent", next(iter(client.changes.recent(types=["product.created"])))["type"] == "product.created")
    endpoint = client.webhooks.create({"url": hook, "event_types": ["product.created"]})
    passed("webhooks.create", endpoint["secret"].startswith("whsec_"))
    passed("webhooks.get", client.webhooks.get(endpoint["id"])["url"] == hook)
    altered = client.webhooks.update(endpoint["id"], {"description": "Ours"}, if_match=endpoint["version"])
    passed("webhooks.update", altered.get("description") == "Ours")
    passed("webhooks.list", len(list(client.webhooks.list())) == 1)
    rotated = client.webhooks.rotate_secret(endpoint["id"], {"overlap_hours": 1})
    passed("webhooks.rotate_secret", rotated["secret"] != endpoint["secret"])
    delivery = client.webhooks.test(endpoint["id"])
    passed("webhooks.test", delivery["object"] == "webhook_delivery")
    passed(
        "webhooks.list_deliveries",
        delivery["id"] in {one["id"] for one in client.webhooks.list_deliveries(endpoint["id"])},
    )
    client.webhooks.delete(endpoint["id"])
    try:
        client.webhooks.get(endpoint["id"])
    except NotFound as error:
        passed("webhooks.delete", error.code == "not_found" and error.request_id is not None)
    try:
        client.runs.push(source["id"], {"records": [record]})
    except Unprocessable as error:
        passed("runs.push (refused)", error.status == 422)
    passed("request_logs.list", next(iter(client.request_logs.list()))["object"] == "request_log")
print(json.dumps(called))
