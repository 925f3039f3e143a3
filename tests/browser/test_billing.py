"""Billing pages of the console in Chromium, in all states, and the card form with a stand-in for Stripe.js."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.billing import BILLING, CARD, BillingStates, run_billing
from tests.browser.page_checks import PICTURES, find_violations
from tests.browser.service import LiveService
from tests.browser.test_console import LAYOUTS
from tests.browser.test_site import NARROW, OVERFLOW, WIDE
from tests.support import builders

pytestmark = pytest.mark.browser
STAND_IN = (Path(__file__).parent / "stripe.js").read_text()
DECLINED = {"type": "card_error", "code": "card_declined", "message": "Your card was declined."}
PATHS = [
    ("none", ""), ("none", "?currency=eur"), ("none", "/plans/standard"), ("none", "/card?confirmed=1"), ("none", "/invoices"),
    ("none", "/credit"), ("incomplete", ""), ("incomplete", "/cancel"), ("active", ""), ("active", "/card"), ("active", "/invoices"),
    ("active", "/plans/high"), ("active", "/cancel"), ("scheduled", ""), ("scheduled", "/invoices"), ("cancelled", ""),
    ("past_due", ""), ("past_due", "/invoices"), ("credit", "/credit"), ("credit", "/credit/buy?credits=1000"),
    ("first_credit", "/credit"), ("editor", ""), ("editor", "/card"), ("editor", "/credit"),
]  # fmt: skip
"""Pages by the state of the organisation or the role of the member."""
REFUSED_PATHS = [("credit", "/credit/buy?credits=1"), ("viewer", ""), ("viewer", "/credit")]
"""Pages with an error, which the browser's console reports as well."""


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with run_billing() as made:
        yield made


def _open_page(browser: Any, service: LiveService, state: str, **options: Any) -> Any:
    """Open a page with a member of the organisation in the state; `faults` contains errors of its scripts and policies."""
    context = browser.new_context(reduced_motion="reduce", **options)
    context.add_cookies(
        [{"name": "joinery", "value": service.prepared["states"].cookies[state], "url": service.address}]
    )
    page = context.new_page()
    page.faults = []
    page.on(
        "console", lambda message: page.faults.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    return page


def _serve_stripe(page: Any, confirm: Callable[[str, str], Any]) -> None:
    """Serve the stand-in for Stripe.js; `confirm` gets kind and secret of a confirmation, and returns Stripe's error or None."""

    def respond(route: Any) -> None:
        kind, secret = route.request.url.split("/")[-3:-1]
        route.fulfill(body=json.dumps(confirm(kind, secret)), headers={"access-control-allow-origin": "*"})

    page.route("https://js.stripe.com/**", lambda route: route.fulfill(content_type="text/javascript", body=STAND_IN))
    for host in ("https://js.stripe.com/v3/*", "https://*.js.stripe.com/*", "https://hooks.stripe.com/*"):
        page.route(host, lambda route: route.fulfill(content_type="text/html", body="<title>Stripe</title>"))
    page.route("https://api.stripe.com/**", respond)


def _complete(service: LiveService, state: str, secret: str) -> None:
    """Confirm what the secret belongs to at the provider, and store its state, as after a notification."""
    states: BillingStates = service.prepared["states"]
    tenant = states.find_tenant(state)

    async def complete() -> None:
        if secret.startswith("seti_"):
            states.payments.store_card(secret.removeprefix("seti_").removesuffix("_secret"), CARD)
        else:
            states.payments.confirm_payment(secret.removesuffix("_secret"), CARD)
        await states.accounts.synchronise(tenant, builders.CALL)

    service.run(complete())


def _tab_to(page: Any, text: str) -> None:
    """Press Tab until the element with the text has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim().replace(/\\s+/g, ' ')") == text:
            return
    raise AssertionError(text)


@pytest.mark.parametrize(
    ("size", "scheme"), LAYOUTS, ids=["wide, light", "wide, dark", "narrow, light", "narrow, dark"]
)
def test_pages_are_accessible_and_not_cut_off(
    browser: Any, service: LiveService, size: dict[str, int], scheme: str
) -> None:
    faults: list[Any] = []
    for state, path in [*PATHS, *REFUSED_PATHS]:
        page = _open_page(browser, service, state, viewport=size, color_scheme=scheme)
        response = page.goto(service.address + BILLING + path)
        name = f"{state}{path}"
        assert (response.status >= 400) == ((state, path) in REFUSED_PATHS), name
        assert "stripe.com" not in response.header_value("content-security-policy"), name
        faults += [(name, fault) for fault in page.faults if response.status < 400]
        faults += [(name, "cut off", each) for each in page.evaluate(OVERFLOW)[:3]]
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true })")
        faults += [(name, *each) for each in find_violations(page)]
        faults += [(name, "cut off, unfolded", each) for each in page.evaluate(OVERFLOW)[:3]]
        if PICTURES:
            file = "".join(char if char.isalnum() else "-" for char in name)
            page.screenshot(path=f"{PICTURES}/billing-{file}-{scheme}-{size['width']}.png", full_page=True)
        page.context.close()
    assert not faults, faults[:12]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_operators_see_arrears(browser: Any, service: LiveService, size: dict[str, int]) -> None:
    page = browser.new_context(viewport=size).new_page()
    page.goto(service.second_address)
    page.get_by_role("row").filter(has_text="past_due").get_by_text("$299.00").wait_for()
    assert find_violations(page) == []
    assert page.evaluate(OVERFLOW) == []
    page.context.close()


def test_an_organisation_subscribes_by_keyboard(browser: Any, service: LiveService) -> None:
    page = _open_page(browser, service, "payment", viewport=WIDE)
    _serve_stripe(page, lambda _, secret: _complete(service, "payment", secret))
    page.goto(service.address + BILLING)
    _tab_to(page, "Select Standard")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Subscribe to Standard").wait_for()
    _tab_to(page, "Subscribe")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Pay $99.00", disabled=False).wait_for()
    assert find_violations(page) == []
    page.get_by_label("Card number").focus()
    page.keyboard.type("4242424242424242")
    _tab_to(page, "Pay $99.00")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{BILLING}?confirmed=1")
    page.get_by_role("heading", name="Standard plan").wait_for()
    assert page.get_by_text("Active", exact=True).count() == 1
    assert page.faults == []
    page.context.close()


def test_a_declined_card_can_be_replaced(browser: Any, service: LiveService) -> None:
    page = _open_page(browser, service, "declined", viewport=NARROW)
    errors = [
        DECLINED,
        {"type": "invalid_request_error", "message": "No such payment_intent: 'pi_1'"},
        {"type": "invalid_request_error", "code": "payment_intent_unexpected_state"},
    ]
    _serve_stripe(page, lambda *_: errors.pop(0))
    page.goto(f"{service.address}{BILLING}/plans/high")
    page.get_by_role("button", name="Subscribe").click()
    pay, alert = page.get_by_role("button", name="Pay"), page.get_by_role("alert")
    pay.click()
    alert.get_by_text("Your card was declined.").wait_for()
    assert find_violations(page) == [] and page.evaluate(OVERFLOW) == []
    pay.click()
    alert.get_by_text("Stripe couldn't process the card.").wait_for()
    assert "pi_1" not in alert.inner_text()
    pay.click()
    page.wait_for_url(f"**{BILLING}?confirmed=1")
    page.get_by_text("The provider is processing your payment.").wait_for()
    assert page.faults == []
    page.context.close()


def test_the_page_explains_that_stripe_is_unavailable(browser: Any, service: LiveService) -> None:
    page = _open_page(browser, service, "unavailable", viewport=NARROW)
    page.route("https://js.stripe.com/**", lambda route: route.abort())
    page.goto(f"{service.address}{BILLING}/plans/standard")
    page.get_by_role("button", name="Subscribe").click()
    alert = page.get_by_role("alert").get_by_text("allow js.stripe.com in your ad blocker, and reload the page")
    alert.wait_for()
    assert not page.get_by_role("button", name="Pay").is_visible()
    assert find_violations(page) == [] and page.evaluate(OVERFLOW) == []
    _serve_stripe(page, lambda *_: None)
    page.add_init_script("window.StripeFails = true")
    page.reload()
    alert.wait_for()
    assert not page.get_by_role("button", name="Pay").is_visible()
    page.add_init_script("window.StripeFails = false")
    page.reload()
    page.get_by_role("button", name="Pay", disabled=False).wait_for()
    page.context.close()


def test_a_card_is_stored_and_credit_is_bought(browser: Any, service: LiveService) -> None:
    page = _open_page(browser, service, "setup", viewport=WIDE, color_scheme="dark")
    _serve_stripe(page, lambda _, secret: _complete(service, "setup", secret))
    page.goto(f"{service.address}{BILLING}/card")
    page.get_by_role("button", name="Add card").click()
    page.get_by_role("button", name="Save card").click()
    page.wait_for_url(f"**{BILLING}/card?confirmed=1")
    page.get_by_text("•••• 4242").wait_for()
    page.get_by_role("link", name="Credit", exact=True).click()
    page.get_by_label("Credits", exact=True).fill("2000")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Buy for $20.00").click()
    page.get_by_role("button", name="Pay").click()
    page.get_by_text("Succeeded", exact=True).wait_for()
    page.get_by_role("link", name="Credit", exact=True).click()
    page.get_by_role("img", name="Balance of the last 30 days").wait_for()
    assert page.faults == []
    page.context.close()


def test_only_the_card_requires_scripts(browser: Any, service: LiveService) -> None:
    page = _open_page(browser, service, "scriptless", viewport=NARROW, java_script_enabled=False)
    page.goto(service.address + BILLING)
    page.get_by_role("button", name="EUR").click()
    page.get_by_role("link", name="Select High").click()
    page.get_by_text("The card ending in 4242 is charged.").wait_for()
    page.get_by_role("button", name="Subscribe").click()
    page.get_by_text("€269.00").first.wait_for()
    page.get_by_role("link", name="Cancel subscription").click()
    page.get_by_role("button", name="Cancel subscription").click()
    page.get_by_role("button", name="Resume subscription").click()
    page.get_by_text("Subscription resumed").wait_for()
    page.get_by_role("link", name="Card and details").click()
    page.get_by_role("button", name="Replace card").click()
    page.get_by_role("heading", name="Card", exact=True).wait_for()
    assert "Entering a card requires JavaScript." in page.get_by_role("main").inner_text()
    assert page.faults == []
    page.context.close()
