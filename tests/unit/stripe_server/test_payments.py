"""Customers, cards, intents, charges and refunds."""

import pytest
import stripe

from tests.stripe_server import StripeServer
from tests.unit.stripe_server.accounts import Account


def test_a_customer_is_created_updated_and_expanded(client: stripe.StripeClient) -> None:
    v1 = client.v1
    customer = v1.customers.create({"name": "Ada", "metadata": {"org": "o1", "old": "x"}})
    method = v1.payment_methods.attach("pm_card_mastercard", {"customer": customer.id})
    v1.customers.update(
        customer.id,
        {
            "email": "b@example.com",
            "address": {"country": "DE", "line1": "Street 1"},
            "metadata": {"old": "", "new": "y"},
            "invoice_settings": {"default_payment_method": method.id},
        },
    )
    v1.customers.tax_ids.create(customer.id, {"type": "eu_vat", "value": "DE123456789"})
    found = v1.customers.retrieve(customer.id, {"expand": ["invoice_settings.default_payment_method", "tax_ids"]})
    assert found.metadata.to_dict() == {"org": "o1", "new": "y"}
    assert found.address.country == "DE"
    assert found.invoice_settings.default_payment_method.card.last4 == "4444"
    assert [each.value for each in found.tax_ids.data] == ["DE123456789"]
    v1.customers.tax_ids.delete(customer.id, found.tax_ids.data[0].id)
    assert v1.customers.tax_ids.list(customer.id).data == []
    assert "tax_ids" not in v1.customers.retrieve(customer.id)
    assert v1.payment_methods.detach(method.id).customer is None
    assert v1.customers.retrieve(customer.id).invoice_settings.default_payment_method is None


def test_a_product_id_is_unique(client: stripe.StripeClient) -> None:
    client.v1.products.create({"id": "prod_x", "name": "X"})
    with pytest.raises(stripe.InvalidRequestError) as caught:
        client.v1.products.create({"id": "prod_x", "name": "Y"})
    assert (caught.value.http_status, caught.value.code) == (400, "resource_already_exists")
    assert client.v1.products.update("prod_x", {"name": "Z"}).name == "Z"
    with pytest.raises(stripe.InvalidRequestError) as caught:
        client.v1.products.retrieve("prod_y")
    assert (caught.value.http_status, caught.value.code) == (404, "resource_missing")


def setup(account: Account, card: str) -> stripe.SetupIntent:
    customer = account.create_customer(None)
    intent = account.v1.setup_intents.create(
        {"customer": customer.id, "usage": "off_session", "automatic_payment_methods": {"enabled": True}}
    )
    assert intent.status == "requires_payment_method"
    return account.v1.setup_intents.confirm(intent.id, {"payment_method": card, "return_url": "https://example.com"})


def test_a_setup_intent_attaches_the_card(account: Account) -> None:
    intent = setup(account, "pm_card_visa")
    assert intent.status == "succeeded"
    assert account.v1.payment_methods.retrieve(intent.payment_method).customer == intent.customer
    assert {"setup_intent.succeeded", "payment_method.attached"} <= set(account.list_event_types())


@pytest.mark.parametrize("is_successful", [True, False])
def test_a_setup_intent_is_authenticated(account: Account, server: StripeServer, is_successful: bool) -> None:
    intent = setup(account, "pm_card_authenticationRequired")
    assert (intent.status, intent.next_action.type) == ("requires_action", "redirect_to_url")
    server.complete_authentication(intent.id, is_successful=is_successful)
    intent = account.v1.setup_intents.retrieve(intent.id, {"expand": ["payment_method"]})
    assert intent.status == ("succeeded" if is_successful else "requires_payment_method")
    assert (intent.payment_method is not None) == is_successful


def test_declining_cards_cannot_be_stored(account: Account) -> None:
    with pytest.raises(stripe.CardError) as caught:
        setup(account, "pm_card_chargeDeclinedInsufficientFunds")
    assert (caught.value.code, caught.value.error.decline_code) == ("card_declined", "insufficient_funds")
    assert setup(account, "pm_card_chargeCustomerFail").status == "succeeded"


def test_the_first_payment_is_confirmed_in_the_browser(account: Account, client: stripe.StripeClient) -> None:
    subscription = account.subscribe(
        customer=account.create_customer(None).id,
        payment_behavior="default_incomplete",
        payment_settings={"save_default_payment_method": "on_subscription"},
        expand=["latest_invoice.confirmation_secret", "latest_invoice.payments"],
    )
    invoice = subscription.latest_invoice
    id = invoice.payments.data[0].payment.payment_intent
    assert subscription.status == "incomplete"
    assert invoice.confirmation_secret.client_secret.startswith(id)
    with pytest.raises(stripe.CardError) as caught:
        client.v1.payment_intents.confirm(id, {"payment_method": "pm_card_chargeDeclinedInsufficientFunds"})
    assert (caught.value.http_status, caught.value.error.decline_code) == (402, "insufficient_funds")
    assert caught.value.error.payment_intent.status == "requires_payment_method"
    intent = client.v1.payment_intents.confirm(id, {"payment_method": "pm_card_visa", "expand": ["latest_charge"]})
    assert (intent.status, intent.latest_charge.amount) == ("succeeded", 1000)
    found = client.v1.subscriptions.retrieve(subscription.id)
    assert (found.status, found.default_payment_method) == ("active", intent.payment_method)
    paid = client.v1.invoices.retrieve(invoice.id)
    assert (paid.status, paid.amount_paid, "payments" in paid) == ("paid", 1000, False)
    types = account.list_event_types()
    assert types.index("invoice.payment_failed") < types.index("charge.succeeded") < types.index("invoice.paid")


def test_a_payment_is_authenticated(account: Account, server: StripeServer) -> None:
    subscription = account.subscribe(customer=account.create_customer(None).id, payment_behavior="default_incomplete")
    id = account.find_intent(subscription.latest_invoice)
    for is_successful in (False, True):
        intent = account.v1.payment_intents.confirm(id, {"payment_method": "pm_card_authenticationRequired"})
        assert (intent.status, intent.next_action.type) == ("requires_action", "use_stripe_sdk")
        server.complete_authentication(id, is_successful=is_successful)
    assert account.v1.subscriptions.retrieve(subscription.id).status == "active"


def test_a_charge_is_refunded_in_parts(account: Account, client: stripe.StripeClient) -> None:
    subscription = account.subscribe()
    (charge,) = client.v1.charges.list({"customer": subscription.customer}).data
    refund = client.v1.refunds.create(
        {"payment_intent": charge.payment_intent, "amount": 400, "reason": "requested_by_customer"}
    )
    assert client.v1.refunds.retrieve(refund.id).amount == 400
    with pytest.raises(stripe.InvalidRequestError, match="greater than unrefunded amount"):
        client.v1.refunds.create({"payment_intent": charge.payment_intent, "amount": 601})
    client.v1.refunds.create({"charge": charge.id})
    charge = client.v1.charges.retrieve(charge.id)
    assert (charge.amount_refunded, charge.refunded) == (1000, True)
    with pytest.raises(stripe.InvalidRequestError) as caught:
        client.v1.refunds.create({"charge": charge.id})
    assert caught.value.code == "charge_already_refunded"
    assert len(client.v1.refunds.list({"payment_intent": charge.payment_intent}).data) == 2
    assert (
        account.list_event_types().count("charge.refunded") == account.list_event_types().count("refund.created") == 2
    )
