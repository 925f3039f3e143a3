"""Idempotency, faults, lists and webhooks on both transports."""

import asyncio
import random
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
import stripe

from tests.stripe_server import Fault, HttpServer, InProcessClient, StripeServer
from tests.unit.stripe_server.accounts import DAY, START, Account

CUSTOMERS = "/v1/customers$"


def create(client: stripe.StripeClient, key: str | None = None, **fields) -> stripe.Customer:
    return client.v1.customers.create({"name": "Ada", **fields}, {"idempotency_key": key} if key else {})


def test_an_idempotency_key_repeats_the_answer(client: stripe.StripeClient, server: StripeServer) -> None:
    first, second = create(client, "k"), create(client, "k")
    assert first.id == second.id
    assert second.last_response.headers["idempotent-replayed"] == "true"
    assert first.last_response.headers["request-id"].startswith("req_")
    with pytest.raises(stripe.IdempotencyError):
        create(client, "k", email="a@example.com")
    server.advance(server.now + DAY)
    assert create(client, "k").id != first.id


def test_an_error_after_the_commit_is_repeated(client: stripe.StripeClient, server: StripeServer) -> None:
    server.faults.append(Fault("POST", CUSTOMERS, "500_after"))
    for _ in range(2):
        with pytest.raises(stripe.APIError) as caught:
            create(client, "k")
        assert caught.value.http_status == 500
    assert len(client.v1.customers.list().data) == 1


def test_a_concurrent_request_with_the_same_key_is_refused(server: StripeServer) -> None:
    client = stripe.StripeClient(server.key, http_client=InProcessClient(server))
    server.faults.append(Fault("POST", CUSTOMERS, "delay", seconds=0.3))
    thread = threading.Thread(target=create, args=(client, "k"))
    thread.start()
    time.sleep(0.1)
    with pytest.raises(stripe.APIError) as caught:
        create(client, "k")
    thread.join()
    assert caught.value.http_status == 409
    assert create(client, "k").id


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("402", stripe.CardError), ("409", stripe.APIError), ("429", stripe.RateLimitError), ("500", stripe.APIError),
        ("503", stripe.APIError), ("cut", stripe.APIConnectionError), ("cut_after", stripe.APIConnectionError),
        ("500_after", stripe.APIError),
    ],
)  # fmt: skip
def test_a_fault_reaches_the_sdk(client: stripe.StripeClient, server: StripeServer, kind, error) -> None:
    server.faults.append(Fault("POST", CUSTOMERS, kind))
    with pytest.raises(error):
        create(client)
    assert len(client.v1.customers.list().data) == (1 if kind.endswith("_after") else 0)
    assert create(client).id
    assert server.faults == []


@pytest.mark.parametrize("kind", ["timeout", "timeout_after"])
def test_a_timeout_ends_the_request(server: StripeServer, kind: str) -> None:
    with HttpServer(server, hold=10) as http:
        slow = stripe.StripeClient(
            server.key, base_addresses={"api": http.url}, http_client=stripe.HTTPXClient(timeout=0.3)
        )
        for client in (slow, stripe.StripeClient(server.key, http_client=InProcessClient(server))):
            server.faults.append(Fault("POST", CUSTOMERS, kind))
            call = client.v1.customers.create_async({}) if client is slow else None
            with pytest.raises(stripe.APIConnectionError):
                asyncio.run(call) if call else create(client)
    assert len(server.state.select("customer")) == (2 if kind == "timeout_after" else 0)


def test_the_sdk_retries_with_one_key(server: StripeServer) -> None:
    account = Account(server, retries=2)
    server.faults += [Fault("POST", CUSTOMERS, "cut_after"), Fault("POST", CUSTOMERS, "503")]
    assert create(account.client).id
    assert len(server.state.select("customer")) == 1
    server.faults.append(Fault("POST", CUSTOMERS, "429", should_retry=True))
    assert create(account.client).id
    server.faults.append(Fault("POST", CUSTOMERS, "500", should_retry=False))
    with pytest.raises(stripe.APIError):
        create(account.client)


def test_a_wrong_key_is_refused(server: StripeServer) -> None:
    with pytest.raises(stripe.AuthenticationError):
        create(stripe.StripeClient("sk_test_other", http_client=InProcessClient(server)))


def test_lists_have_pages(client: stripe.StripeClient) -> None:
    ids = [create(client, email=f"{i % 2}@example.com").id for i in range(7)]
    page = client.v1.customers.list({"limit": 3})
    assert [each.id for each in page.data] == ids[:3:-1]
    assert page.has_more
    rest = client.v1.customers.list({"limit": 100, "starting_after": page.data[-1].id})
    assert [each.id for each in rest.data] == ids[3::-1]
    assert not rest.has_more
    assert [each.id for each in client.v1.customers.list({"limit": 2}).auto_paging_iter()] == ids[::-1]
    assert len(client.v1.customers.list({"email": "1@example.com"}).data) == 3
    for limit in (0, 101):
        with pytest.raises(stripe.InvalidRequestError):
            client.v1.customers.list({"limit": limit})


def test_async_calls_work(server: StripeServer) -> None:
    client = stripe.StripeClient(server.key, http_client=InProcessClient(server))
    assert asyncio.run(client.v1.customers.create_async({"name": "Ada"})).name == "Ada"


def test_webhooks_are_signed_reordered_repeated_and_dropped(server: StripeServer, account: Account) -> None:
    account.subscribe()
    expected = [each["id"] for each in server.pending_events]
    received: list[stripe.Event] = []

    def receive(body: bytes, headers: dict[str, str]) -> None:
        received.append(stripe.Webhook.construct_event(body, headers["Stripe-Signature"], server.webhook_secret))

    server.deliver(receive, order="reversed")
    assert [each.id for each in received] == expected[::-1]
    assert received[0].api_version == stripe.api_version
    assert server.pending_events == []
    account.subscribe()
    count = len(server.pending_events)
    received.clear()
    server.deliver(receive, order="shuffled", duplicates=0.5, drop=0.2, rng=random.Random(4))
    ids = [each.id for each in received]
    assert len(set(ids)) < count
    assert len(ids) > len(set(ids))
    assert account.v1.events.retrieve(ids[0]).id == ids[0]
    assert len(account.v1.events.list({"type": "invoice.paid"}).data) == 2
    account.create_customer()
    with pytest.raises(stripe.SignatureVerificationError):
        server.deliver(receive, at=START - 10_000_000)


def test_a_process_serves_and_is_controlled_by_http() -> None:
    command = [sys.executable, "-m", "tests.stripe_server", "--start", str(START)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    received: list[bytes] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    endpoint = HTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        url = process.stdout.readline().strip()
        client = stripe.StripeClient("sk_test_server", base_addresses={"api": url})
        fault = {"method": "POST", "path": CUSTOMERS, "kind": "429"}
        httpx.post(f"{url}/_control/faults", json={"faults": [fault]})
        with pytest.raises(stripe.RateLimitError):
            create(client)
        create(client)
        settings = {"tax_rates": {"DE": 19}, "final_status": "unpaid"}
        httpx.post(f"{url}/_control/settings", json=settings)
        state = httpx.post(f"{url}/_control/advance", json={"seconds": DAY}).json()
        assert (state["now"], state["violations"], len(state["objects"]["customer"])) == (START + DAY, [], 1)
        target = f"http://127.0.0.1:{endpoint.server_address[1]}/"
        answer = httpx.post(f"{url}/_control/deliver", json={"url": target, "order": "reversed"}).json()
        assert answer["statuses"] == [204]
        assert b"customer.created" in received[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        process.stdout.close()
        endpoint.shutdown()
        endpoint.server_close()
