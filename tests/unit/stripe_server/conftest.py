"""Server that imitates Stripe, and the SDK on both transports."""

from collections.abc import Iterator

import pytest
import stripe

from tests.stripe_server import HttpServer, InProcessClient, StripeServer
from tests.unit.stripe_server.accounts import START, Account


@pytest.fixture
def server() -> Iterator[StripeServer]:
    made = StripeServer(start=START)
    yield made
    made.assert_valid()


@pytest.fixture(params=["in_process", "http"])
def client(request: pytest.FixtureRequest, server: StripeServer) -> Iterator[stripe.StripeClient]:
    if request.param == "in_process":
        yield stripe.StripeClient(server.key, http_client=InProcessClient(server))
        return
    with HttpServer(server) as http:
        yield stripe.StripeClient(server.key, base_addresses={"api": http.url})


@pytest.fixture
def account(server: StripeServer) -> Account:
    return Account(server)
