"""The story of a vendor over running processes: claim, sign, publish, license, change a price, hide a product, withdraw."""

import asyncio
import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.receiver_client import ReceiverClient
from tests.flows.api_client import ApiClient
from tests.flows.feeds import build_record
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until
from tests.postgres.databases import create_database
from tests.support.forkserver import run_joinery
from tests.support.webhook_endpoints import EndpointClient, create_endpoint, run_receiver


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcesses]:
    """Run an API, a worker and a scheduler, which relays events to other organisations."""
    made = ServiceProcesses(asyncio.run(create_database("vendor")), tmp_path_factory.mktemp("vendor"))
    try:
        made.start("worker")
        made.start("scheduler")
        made.start_api()
        yield made
    finally:
        made.stop()


def run_command(processes: ServiceProcesses, *words: str) -> Any:
    """Run a command of the operator; return the JSON that it prints."""
    done = run_joinery(*words, "--json", env=processes.env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Vendor:
    """A vendor with a pushed catalogue, and its owner, who signs."""

    def __init__(self, processes: ServiceProcesses, name: str, folder: Path) -> None:
        self.processes, self.name = processes, name
        made = run_command(processes, "org", "create", "--name", name, "--kind", "vendor", "--plan", "max")
        self.org, self.catalogue = str(made["organisation"]), str(made["catalogues"]["live"])
        run_command(processes, "member", "add", "--org", self.org, "--email", "ada@lindgren.example", "--role", "owner")
        key = run_command(processes, "key", "create", "--org", self.org, "--mode", "live")
        token = run_command(processes, "token", "create", "--org", self.org, "--email", "ada@lindgren.example")
        self.api = ApiClient(processes.port, key["secret"])
        self.owner = ApiClient(processes.port, token["token"])
        self.folder = folder
        self.source = self.api.create_source("push", config={"currency": "usd"}, licence_basis="own_data")

    def push(self, *names: str, price: str = "10.50", quantity: int = 4) -> None:
        self.push_records([build_record(name, price=price, quantity=quantity) for name in names])

    def push_records(self, records: list[dict[str, Any]]) -> None:
        assert self.api.wait_for_end(self.api.push(self.source, records)["id"])["status"] == "succeeded"

    def claim(self) -> None:
        """Claim the own profile by an invitation of the operator."""
        profile = self.api.get("/v1/brand")["id"]
        invitation = run_command(
            self.processes, "invitation", "create", "--profile", profile, "--email", "ada@lindgren.example"
        )
        evidence = [{"kind": "invitation", "value": invitation["code"]}]
        claim = self.owner.post("/v1/brand/claims", {"profile": profile, "evidence": evidence})
        claim = self.owner.post(f"/v1/brand/claims/{claim['id']}/check")
        if claim["status"] == "pending":
            run_command(self.processes, "claim", "approve", claim["id"], "--reason", "The documents were checked.")
        assert self.api.get("/v1/brand")["verified"]

    def sign(self) -> None:
        """Accept the newest data agreement in person."""
        agreement = self.owner.get("/v1/agreements/vendor_data")
        body = {"version": agreement["version"], "sha256": agreement["sha256"], "authority_confirmed": True}
        self.owner.post("/v1/agreements/vendor_data/acceptances", {**body, "signer_name": "Ada", "signer_title": "CEO"})

    def prepare(self, folder: Path) -> None:
        """Claim the profile, and accept a data agreement that is published now."""
        self.claim()
        text = folder / "agreement.md"
        text.write_text(f"# Data agreement\n\nWe may publish the data of {self.name}.\n")
        run_command(
            self.processes, "agreement", "publish", str(text), "--kind", "vendor_data", "--title", "Data agreement"
        )
        self.sign()

    def run(self, operation: str, **body: Any) -> Any:
        """Publish or withdraw; return the run after its end."""
        run = self.api.post(f"/v1/catalogue/{operation}", body)
        return wait_until(lambda: self.find_ended(run["id"]), f"{operation} ends", within=60)

    def find_ended(self, run: str) -> Any:
        found = self.api.get(f"/v1/catalogue/publication-runs/{run}")
        return found if found["status"] in ("succeeded", "failed") else None


@pytest.fixture(scope="module")
def vendor(processes: ServiceProcesses, tmp_path_factory: pytest.TempPathFactory) -> Vendor:
    made = Vendor(processes, "Lindgren", tmp_path_factory.mktemp("agreement"))
    made.push("A", "B", "C")
    return made


def read_changes(tenancy: Tenancy, cursor: str, until: str) -> tuple[list[Any], str]:
    """Read the change feed until it has an event of the type; return the events and the cursor."""
    events: list[Any] = []

    def read() -> bool:
        nonlocal cursor
        page = tenancy.api.get("/v1/changes", cursor=cursor)
        events.extend(page["data"])
        cursor = page["next_cursor"]
        return any(event["type"] == until for event in events)

    wait_until(read, f"an event {until}")
    return events, cursor


def test_a_vendor_publishes_and_a_retailer_follows(processes: ServiceProcesses, vendor: Vendor, tmp_path: Path) -> None:
    retailer = processes.create_organisation()
    own = retailer.api.create_source("push", config={"currency": "usd"})
    assert retailer.api.wait_for_end(retailer.api.push(own, [build_record("Own")])["id"])["status"] == "succeeded"
    cursor = retailer.api.get("/v1/changes", cursor="now")["next_cursor"]

    refused = vendor.api.call("POST", "/v1/catalogue/publish", {})
    assert (refused.status, refused.json()["code"]) == (409, "brand_unverified")
    vendor.claim()
    refused = vendor.api.call("POST", "/v1/catalogue/publish", {})
    assert (refused.status, refused.json()["code"]) == (409, "conflict") and "agreement" in refused.json()["detail"]
    text = tmp_path / "agreement.md"
    text.write_text("# Data agreement\n\nWe may publish your data.\n")
    run_command(processes, "agreement", "publish", str(text), "--kind", "vendor_data", "--title", "Data agreement")
    vendor.sign()

    preview = vendor.api.call("POST", "/v1/catalogue/publish", {}, Service_Dry_Run="explain").json()
    assert preview["publication"]["products"] == 3 and preview["publication"]["field_groups"] == ["base", "retail"]
    assert retailer.api.get("/v1/products", catalogue=vendor.catalogue)["data"] == []
    run = vendor.run("publish")
    assert (run["status"], run["progress"]) == ("succeeded", {"done": 3, "total": 3}), run
    assert vendor.api.get("/v1/catalogue")["listed"] == 3

    products = retailer.api.get("/v1/products", catalogue=vendor.catalogue)["data"]
    assert {product["external_id"] for product in products} == {"A", "B", "C"}
    assert len(retailer.api.get("/v1/products")["data"]) == 4, "own and licensed products"
    offer = products[0]["variants"][0]["offers"][0]
    assert offer["price"] == 1050 and "quantity" not in offer
    events, cursor = read_changes(retailer, cursor, "offer.created")
    assert events[0]["type"] == "product.published"

    run_command(
        processes,
        "licence",
        "grant",
        "--catalogue",
        vendor.catalogue,
        "--org",
        retailer.tenant.org,
        "--groups",
        "stock",
    )
    [shown] = retailer.api.get("/v1/products", id=products[0]["id"])["data"]
    wait_until(
        lambda: "quantity" in retailer.api.get(f"/v1/products/{products[0]['id']}")["variants"][0]["offers"][0],
        "the stock is visible",
    )
    [line] = retailer.api.get("/v1/offers", product=products[0]["id"])["data"]
    assert line["quantity"] == 4 and shown["id"] == products[0]["id"]

    vendor.push("A", price="12.00", quantity=7)
    events, cursor = read_changes(retailer, cursor, "offer.changed")
    changed = {field["path"]: field["new"] for field in events[-1]["data"]["fields"]}
    assert changed == {"availability": "in_stock", "price": 1200, "quantity": 7}
    export = retailer.api.post("/v1/exports", {"kind": "products"})
    exported = wait_until(
        lambda: (found := retailer.api.get(f"/v1/exports/{export['id']}"))["status"] == "succeeded" and found,
        "the export ends",
    )
    assert exported["rows"] == 4

    hidden = next(product["id"] for product in products if product["external_id"] == "A")
    answer = vendor.api.post("/v1/catalogue/visibility", {"products": [hidden], "visibility": "hidden"})
    assert (answer["changed"], answer["not_found"]) == (1, [])
    assert retailer.api.call("GET", f"/v1/products/{hidden}").status == 404
    events, cursor = read_changes(retailer, cursor, "product.withdrawn")
    assert events[-1]["subject"] == hidden
    run_command(processes, "licence", "revoke", "--catalogue", vendor.catalogue, "--org", retailer.tenant.org)
    [line] = retailer.api.get("/v1/offers", product=products[1]["id"])["data"] or [{}]
    assert "quantity" not in line

    assert vendor.run("withdraw")["status"] == "succeeded"
    assert retailer.api.get("/v1/products", catalogue=vendor.catalogue)["data"] == []
    assert vendor.api.get("/v1/catalogue")["published"] is False


def test_a_publication_continues_after_the_worker_was_killed(processes: ServiceProcesses, vendor: Vendor) -> None:
    names = [f"K{number}" for number in range(400)]
    vendor.push(*names)
    worker = processes.processes[0]
    run = vendor.api.post("/v1/catalogue/publish", {})

    def has_begun() -> bool:
        return int(vendor.api.get(f"/v1/catalogue/publication-runs/{run['id']}")["progress"]["done"]) > 0

    wait_until(has_begun, "the run has begun", every=0.005)
    processes.stop(worker, number=signal.SIGKILL)
    processes.processes.insert(0, processes.start("worker"))
    ended = wait_until(lambda: vendor.find_ended(run["id"]), "the run ends", within=90)
    assert ended["status"] == "succeeded"
    assert ended["progress"]["done"] == ended["progress"]["total"]
    published = processes.fetch_rows(
        "SELECT subject, count(*) FROM events WHERE org = %(org)s AND type = 'product.published' AND time > %(since)s::timestamptz "
        "GROUP BY subject HAVING count(*) > 1", org=vendor.org, since=run["created_at"],
    )  # fmt: skip
    assert published == [], "each product was published once"


def _build_article(name: str, price: str) -> dict[str, Any]:
    """Return a record of an article that vendor and retailer describe alike."""
    record = build_record(name, title="Halden oak dining table 180 cm", price=price)
    record["variants"][0] |= {"sku": f"HALDEN-180-{name}", "mpn": "HALDEN-180", "gtin": "4006381333931"}
    return record


def create_plain_endpoint(
    processes: ServiceProcesses, api: ApiClient, receiver: ReceiverClient, source: str
) -> EndpointClient:
    """Create an endpoint for changed offers of a source in live mode, with the receiver's address, which has no certificate."""
    url, filters = receiver.url("/copies"), {"sources": [source]}
    made = create_endpoint(api, receiver, ("offer.changed",), url=url.replace("http://", "https://"), filters=filters)
    processes.fetch_rows("UPDATE webhook_endpoints SET url = %(url)s WHERE id = %(id)s", url=url, id=made.id)
    endpoint = replace(made, path="/copies")
    endpoint.trust_secret(made.secrets[0])
    endpoint.patch_endpoint(event_types=["offer.changed", "offer.created"])  # the worker reads the endpoint again
    return endpoint


def test_a_licensed_catalogue_is_a_source_of_the_retailer(processes: ServiceProcesses, tmp_path: Path) -> None:
    vendor = Vendor(processes, "Falk", tmp_path)
    vendor.push_records([_build_article("A", "899.00"), build_record("B", title="Ash bench 140 cm")])
    vendor.prepare(tmp_path)
    assert vendor.run("publish")["status"] == "succeeded"
    retailer = processes.create_organisation()
    api = retailer.api
    own = api.create_source("push", config={"currency": "usd"})
    assert api.wait_for_end(api.push(own, [_build_article("Own", "949.00")])["id"])["status"] == "succeeded"

    settings = {"connector": "network", "config": {"catalogue": vendor.catalogue}}
    for wrong in ({"licence_basis": "own_data"}, {"config": {"catalogue": f"cat_{vendor.catalogue[4:][::-1]}"}}):
        refused = api.call("POST", "/v1/sources", {"name": "Falk", "kind": "api", **settings, **wrong})
        assert refused.status == 422, refused.body
    source = api.create_source("api", **settings)
    [first] = wait_until(lambda: api.list_all(f"/v1/sources/{source}/runs"), "the first run is queued")
    assert api.wait_for_end(first["id"])["status"] == "succeeded"
    assert api.post(f"/v1/sources/{source}/test")["ok"]

    def find_merged() -> Any:
        found = [one for one in api.get("/v1/products", source=own)["data"] if one.get("merged_from")]
        return found[0] if found else None

    merged = wait_until(find_merged, "rules merge the article", within=60)
    offers = {offer["source"]: offer for offer in merged["variants"][0]["offers"]}
    assert {id: offer["price"] for id, offer in offers.items()} == {own: 94900, source: 89900}
    with run_receiver(processes) as receiver:
        endpoint = create_plain_endpoint(processes, api, receiver, source)
        vendor.push_records([_build_article("A", "849.00")])
        [delivery] = endpoint.wait_for_received(1)
        event = json.loads(delivery.body)
        assert ([field["path"] for field in event["data"]["fields"]], event["data"]["id"]) == (
            ["price"],
            offers[source]["id"],
        )
        assert api.get("/v1/offers", id=event["data"]["id"])["data"][0]["price"] == 84900
    original = next(
        one["id"]
        for one in api.get("/v1/products", catalogue=vendor.catalogue)["data"]
        if one["variants"][0]["data"].get("mpn") == "HALDEN-180"
    )
    vendor.api.post("/v1/catalogue/visibility", {"products": [original], "visibility": "hidden"})

    def find_withdrawn() -> Any:
        offers = {one["source"]: one for one in api.get(f"/v1/products/{merged['id']}")["variants"][0]["offers"]}
        return offers if "withdrawn_at" in offers[source] else None

    offers = wait_until(find_withdrawn, "the copy follows")
    assert "price" not in offers[source] and offers[own]["price"] == 94900 and "withdrawn_at" not in offers[own]
    shown = api.get(f"/v1/products/{merged['id']}")
    assert shown["status"] == "active" and shown["data"]["title"].startswith("Halden")
    for part in (shown, shown["variants"][0]):
        assert {one["source"] for one in part["provenance"].values()} == {own} and part["status"] == "active"

    merges = [one for one in api.get("/v1/merges")["data"] if one["object"] == "merge"]
    assert api.call("POST", f"/v1/merges/{merges[0]['id']}/undo").status == 200
    [mine] = api.get("/v1/products", source=own)["data"]
    copies = {one["external_id"]: one for one in api.get("/v1/products", source=source)["data"]}
    assert mine["data"]["title"].startswith("Halden") and mine["status"] == "active"
    assert (copies[original]["data"], copies[original]["status"]) == ({}, "discontinued")
    vendor.api.post("/v1/catalogue/visibility", {"products": [original], "visibility": "listed"})
    again = wait_until(
        lambda: (found := api.get(f"/v1/products/{copies[original]['id']}"))["data"] and found, "the copy returns"
    )
    assert again["variants"][0]["offers"][0]["price"] == 84900
