"""Billing across processes: the API and a worker, and Stripe's SDK with the imitated server over HTTP."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import stripe

from tests.flows.api_client import ApiClient
from tests.flows.service_processes import ServiceProcesses, wait_until
from tests.flows.test_vendor import run_command
from tests.postgres.databases import create_database
from tests.stripe_server import HttpServer, StripeServer
from tests.stripe_server.transports import post_webhook


@dataclass
class Shop:
    """Organisation with an owner, and the services that it uses."""

    processes: ServiceProcesses
    server: StripeServer
    stripe_client: Any
    org: str
    owner: ApiClient

    def deliver(self) -> list[int]:
        """Send the pending notifications, shuffled and some of them twice; return the statuses."""
        statuses: list[int] = []
        url = f"http://127.0.0.1:{self.processes.port}/hooks/stripe"
        self.server.deliver(
            lambda body, headers: statuses.append(post_webhook(url, body, headers)), order="shuffled", duplicates=0.5
        )
        return statuses

    def wait_for_status(self, purchase: str, status: str) -> Any:
        """Wait until the purchase has the status; return the purchase."""

        def read() -> Any:
            found = self.owner.get(f"/v1/billing/credits/purchases/{purchase}")
            return found if found["status"] == status else None

        return wait_until(read, f"the purchase is {status}")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Run the processes for an organisation."""
    server = StripeServer()
    with HttpServer(server) as http:
        settings = {
            "JOINERY_STRIPE_SECRET_KEY": server.key,
            "JOINERY_STRIPE_PUBLISHABLE_KEY": "pk_test_server",
            "JOINERY_STRIPE_WEBHOOK_SECRET": server.webhook_secret,
            "JOINERY_STRIPE_URL": http.url,
        }
        processes = ServiceProcesses(asyncio.run(create_database("billing")), tmp_path, settings)
        try:
            processes.start("worker")
            processes.start_api()
            org = run_command(processes, "org", "create", "--name", "Fjord", "--kind", "retailer")["organisation"]
            member = ("--org", org, "--email", "ada@fjord.example")
            run_command(processes, "member", "add", *member, "--role", "owner")
            token = run_command(processes, "token", "create", *member)["token"]
            client = stripe.StripeClient(server.key, base_addresses={"api": http.url}).v1
            yield Shop(processes, server, client, org, ApiClient(processes.port, token))
        finally:
            processes.stop()
        server.assert_valid()


def test_credit_is_bought_refunded_and_reconciled(shop: Shop) -> None:
    account = shop.owner.get("/v1/billing")
    assert (account["enabled"], account["live"], account["plan"]) == (True, False, "free")
    details = {"email": "billing@fjord.example", "address": {"country": "NO", "city": "Bergen"}}
    details |= {"tax_id": {"type": "no_vat", "value": "NO 995 525 828 MVA"}}
    changed = shop.owner.call("PATCH", "/v1/billing/details", details)
    assert (changed.status, changed.json()["tax_id"]["value"]) == (200, "995525828MVA"), changed.body
    wrong = shop.owner.call("PATCH", "/v1/billing/details", {"tax_id": {"type": "no_vat", "value": "995525829MVA"}})
    assert wrong.status == 400
    assert shop.owner.post("/v1/billing/card")["kind"] == "setup"
    assert shop.owner.post("/v1/billing/preview", {"plan": "standard"})["due_now"]["amount"] == 9900
    purchase = shop.owner.post("/v1/billing/credits/purchases", {"credits": 1500})
    assert purchase["status"] == "requires_payment"
    intent = purchase["confirmation"]["client_secret"].partition("_secret")[0]
    shop.stripe_client.payment_intents.confirm(intent, {"payment_method": "pm_card_visa"})
    assert set(shop.deliver()) == {204}
    assert shop.wait_for_status(purchase["id"], "succeeded")["credit_micros"] == 15_000_000
    assert shop.owner.get("/v1/billing/credits")["available_micros"] == 15_000_000
    [invoice] = shop.owner.get("/v1/billing/invoices")["data"]
    assert (invoice["status"], invoice["total"], invoice["amount_due"]) == ("paid", 1500, 0)
    refunded = run_command(
        shop.processes, "billing", "refund", "--org", shop.org, "--purchase", purchase["id"], "--total", "500"
    )
    assert refunded["refunded"] == 500
    assert shop.owner.get("/v1/billing/credits")["available_micros"] == 10_000_000
    # a refund in Stripe's dashboard, of which the notification is lost
    shop.stripe_client.refunds.create({"payment_intent": intent, "amount": 1000})
    reconciled = run_command(shop.processes, "billing", "reconcile")
    assert list(reconciled["differing"]) == [shop.org]
    assert run_command(shop.processes, "billing", "reconcile")["differing"] == {}
    assert shop.owner.get("/v1/billing/credits")["available_micros"] == 0
    kinds = [one["kind"] for one in shop.owner.get("/v1/billing/credits/entries")["data"]]
    assert kinds == ["refund", "refund", "purchase"]
    assert run_command(shop.processes, "billing", "arrears") == {"accounts": []}


def test_a_notification_with_a_wrong_signature_is_refused(shop: Shop) -> None:
    url = f"http://127.0.0.1:{shop.processes.port}/hooks/stripe"
    assert post_webhook(url, b"{}", {"Stripe-Signature": "t=1,v1=00"}) == 400
