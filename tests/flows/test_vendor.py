"""The story of a vendor over running processes: claim, sign, publish, license, change a price, hide a product, withdraw."""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.api_client import ApiClient
from tests.flows.feeds import build_record
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until
from tests.postgres.databases import create_database
from tests.support.forkserver import run_joinery


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
        records = [build_record(name, price=price, quantity=quantity) for name in names]
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
