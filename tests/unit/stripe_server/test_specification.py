"""Requests, answers and events match the specification of the installed SDK."""

import gzip
import hashlib
import tomllib

import pytest
import stripe

from tests.stripe_server import StripeServer
from tests.stripe_server.prune import FOLDER
from tests.stripe_server.routes import ROUTES
from tests.stripe_server.validation import decode_form, find_violations, load_specification
from tests.unit.stripe_server.accounts import Account


def test_the_specification_is_of_the_version_of_the_sdk() -> None:
    source = tomllib.loads((FOLDER / "SOURCE.toml").read_text("utf-8"))
    pruned = gzip.decompress((FOLDER / "specification.json.gz").read_bytes())
    assert load_specification()["info"]["version"] == stripe.api_version == source["version"]
    assert hashlib.sha256(pruned).hexdigest() == source["pruned_sha256"]


def test_the_specification_contains_exactly_the_routes() -> None:
    assert load_specification()["operations"].keys() == {f"{each.method} {each.path}" for each in ROUTES}


def test_a_form_is_decoded_to_nested_values() -> None:
    assert decode_form("a[b][0][c]=1&a[b][1][c]=2&d=&e[]=x&e[]=y") == {
        "a": {"b": {"0": {"c": "1"}, "1": {"c": "2"}}}, "d": "", "e": {"0": "x", "1": "y"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "code", "param"),
    [
        ({"nmae": "x"}, "parameter_unknown", "nmae"),
        ({"address": {"town": "x"}}, "parameter_unknown", "address[town]"),
        ({"balance": "many"}, "parameter_invalid_integer", "balance"),
        ({"tax_exempt": "maybe"}, None, "tax_exempt"),
    ],
)
def test_invalid_parameters_are_refused(client: stripe.StripeClient, parameters, code, param) -> None:
    with pytest.raises(stripe.InvalidRequestError) as caught:
        client.v1.customers.create(parameters)
    assert (caught.value.http_status, caught.value.code, caught.value.param) == (400, code, param)


def test_a_missing_parameter_is_named(client: stripe.StripeClient) -> None:
    with pytest.raises(stripe.InvalidRequestError) as caught:
        client.v1.products.create({})
    assert (caught.value.code, caught.value.param) == ("parameter_missing", "name")


def test_a_deviating_answer_is_a_violation(server: StripeServer, account: Account) -> None:
    customer = account.create_customer()
    server.state.get("customer", customer.id)["undocumented"] = 1
    with pytest.raises(stripe.APIError):
        account.v1.customers.retrieve(customer.id)
    with pytest.raises(AssertionError, match="undocumented"):
        server.assert_valid()
    server.violations.clear()


def test_an_unknown_route_is_a_violation(server: StripeServer, account: Account) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        account.v1.payouts.list()
    with pytest.raises(AssertionError, match="unknown route"):
        server.assert_valid()
    server.violations.clear()


def test_objects_are_closed() -> None:
    refund = {"id": "re_1", "object": "refund", "amount": 1, "created": 1, "currency": "eur"}
    assert find_violations("component|refund", refund | {"customr": None})


def test_a_parameter_without_an_implementation_is_a_violation(server: StripeServer, account: Account) -> None:
    account.subscribe(trial_period_days=3)
    with pytest.raises(AssertionError, match="does not support trial_period_days"):
        server.assert_valid()
    server.violations.clear()


def test_an_unknown_type_of_event_is_a_violation(server: StripeServer, account: Account) -> None:
    server.state.emit("customer.renamed", server.state.get("customer", account.create_customer().id))
    server.advance(server.now)
    with pytest.raises(AssertionError, match=r"customer\.renamed"):
        server.assert_valid()
    server.violations.clear()
