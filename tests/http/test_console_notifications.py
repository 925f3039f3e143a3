"""Console pages of rules about notifications, and the link that stops emails."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.events.model import Event, FieldChange
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.outbox.usecases import OutgoingMail
from domain.webhooks.model import AttemptFailure
from domain.webhooks.ports import PostResult
from tests.http.application import OPERATOR, ApplicationHarness, run_application
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.support import builders
from tests.support.catalogues import add_products
from tests.support.notifications import SLACK_URL, FakeReceiver

pytestmark = pytest.mark.asyncio
HERE = "/console/organisation/notifications"
SPITE = "<img src=x onerror=alert(1)>\"'{{123457*123457}}"
RECEIVER = FakeReceiver()
FORM = {
    "name": "Cheaper chairs",
    "kind": "price_change",
    "threshold": "2.5",
    "prices": "price",
    "channel": "email",
    "frequency": "daily",
    "send_at": "07:30",
    "weekday": "0",
    "time_zone": "Europe/Berlin",
    "quiet_from": "22:00",
    "quiet_until": "06:00",
    "action": "save",
}


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    RECEIVER.posts.clear()
    RECEIVER.results.clear()
    async with run_application(sender=RECEIVER) as application:
        yield application


async def _create_rule(browser: ConsoleBrowser, **fields: str) -> BrowserPage:
    form = await browser.get(f"{HERE}/new")
    return await browser.submit(form, f"{HERE}/new", **FORM | fields)


def _find_rule_id(page: BrowserPage) -> str:
    found = re.search(r"ntr_[0-9A-Za-z]{22}", page.header("location") or page.text)
    assert found, page.text
    return found[0]


async def _add_price_change(application: ApplicationHarness, title: str, *, livemode: bool = True) -> str:
    """Add a product, and an event in which its price rises by half; return the product's ID."""
    tenant = Tenant(application.orgs["Fjord"].id, livemode)
    product = builders.product(new_id("src"), new_id("cat"), new_id("prod"), data={"title": title, "brand": SPITE})
    offer = builders.offer(builders.variant(product, new_id("var")))
    await add_products(application.uow, tenant, product)
    event = Event(
        "offer.changed", offer.id, 2, {"id": offer.id, "product": product.id}, fields=[FieldChange("price", 100, 150)]
    )
    async with application.uow.begin(tenant, OPERATOR) as tx:
        await tx[EventLog].append([event])
    return product.id


async def test_one_click_adds_a_daily_email_and_shows_what_it_would_have_found(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="viewer")
    product = await _add_price_change(application, f"Chair {SPITE}")
    listed = await browser.get(HERE)
    assert listed.status == 200 and "No rules yet" in listed.text
    added = await browser.submit(listed, f"{HERE}/presets/price_change", time_zone="Europe/Berlin")
    page = await browser.follow(added)
    assert "Rule added" in page.text and "1 match in the last 7 days" in page.text and product in page.text
    assert "$1.00 → $1.50 (+50%)" in page.text and "Daily digest, 08:00 (Europe/Berlin)" in page.text
    assert "<img src=x" not in page.text and str(123457**2) not in page.text
    listed = await browser.get(HERE)
    assert "Price changes" in listed.text and "None yet" in listed.text
    for kind in ("out_of_stock", "back_in_stock", "new_products", "feed", "problems"):
        assert (await browser.submit(listed, f"{HERE}/presets/{kind}", time_zone="")).status == 303, kind
    assert (await browser.submit(listed, f"{HERE}/presets/everything")).status == 404


async def test_a_rule_is_created_changed_paused_and_deleted(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="editor")
    rule = _find_rule_id(await _create_rule(browser, brands="Fjord\n\nNordhaus"))
    page = await browser.get(f"{HERE}/{rule}")
    for text in ("Cheaper chairs", "2.5% or more", "Fjord, Nordhaus", "07:30 (Europe/Berlin)", "22:00–06:00"):
        assert text in page.text, text
    form = await browser.get(f"{HERE}/{rule}/edit")
    assert 'value="2.5"' in form.text and "Europe/Berlin" in form.text
    saved = await browser.submit(
        form, f"{HERE}/{rule}/edit", **FORM | {"name": "Mine", "version": "1", "frequency": "weekly"}
    )
    assert saved.status == 303
    outdated = await browser.submit(form, f"{HERE}/{rule}/edit", **FORM | {"version": "1"})
    assert outdated.status == 412
    page = await browser.follow(saved)
    assert "Mine" in page.text and "Weekly digest, Monday, 07:30" in page.text
    page = await browser.follow(await browser.submit(page, f"{HERE}/{rule}/disable"))
    assert "Rule paused" in page.text and "Resume" in page.text
    page = await browser.follow(await browser.submit(page, f"{HERE}/{rule}/enable"))
    assert "Rule resumed" in page.text
    deletion = await browser.get(f"{HERE}/{rule}/delete")
    assert (await browser.submit(deletion, f"{HERE}/{rule}/delete")).status == 303
    assert (await browser.get(f"{HERE}/{rule}")).status == 404


async def test_a_preview_before_saving(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    await _add_price_change(application, "Chair")
    page = await _create_rule(browser, action="preview", threshold="60")
    assert page.status == 200 and "0 matches in the last 7 days" in page.text and 'value="60"' in page.text
    page = await _create_rule(browser, action="preview", threshold="40")
    assert "1 match in the last 7 days" in page.text
    assert "Cheaper chairs" not in (await browser.get(HERE)).text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"threshold": "a lot"}, "Enter a percentage"),
        ({"threshold": "0.001"}, "Enter a percentage"),
        ({"threshold": "1e400000"}, "Enter a percentage"),
        ({"threshold": "9e999999"}, "Enter a percentage"),
        ({"send_at": "25:00"}, "Enter a time such as 08:00."),
        ({"quiet_from": "x"}, "Enter a time such as 08:00."),
        ({"time_zone": SPITE}, "Select a time zone"),
        ({"name": ""}, "Enter a name"),
        ({"channel": "slack", "url": "http://hooks.slack.example/a"}, "starts with https://"),
        ({"channel": "slack", "url": "https://127.0.0.1/a"}, "not public"),
        ({"channel": "pigeon"}, "Select a channel."),
        ({"kind": "everything"}, "Select what to report."),
        ({"prices": "weight"}, "Select at least one price."),
        ({"category": "ctg_x"}, "A category does not exist."),
    ],
)
@pytest.mark.parametrize("action", ["save", "preview"])
async def test_invalid_forms_are_shown_again(
    application: ApplicationHarness, fields: dict[str, str], text: str, action: str
) -> None:
    browser = await application.open_browser()
    page = await _create_rule(browser, **fields, action=action)
    if action == "preview" and fields.keys() & {"name", "url"}:
        assert page.status == 200, "a preview needs neither name nor address"
        return
    assert page.status == 400 and text in page.text
    assert "<img src=x" not in page.text


async def test_a_test_message_shows_its_result_at_once(application: ApplicationHarness) -> None:
    browser = await application.open_browser(role="developer")
    rule = _find_rule_id(await _create_rule(browser, channel="slack", url=SLACK_URL))
    page = await browser.get(f"{HERE}/{rule}")
    assert "hooks.slack.example …x9Zk" in page.text and SLACK_URL not in page.text
    page = await browser.follow(await browser.submit(page, f"{HERE}/{rule}/test"))
    assert "The receiver answered 200 ok." in page.text
    [(url, _, body)] = RECEIVER.posts
    assert url == SLACK_URL and "Sample product" in str(body)
    RECEIVER.results += [PostResult(None, 404, {}, f"no_service {SPITE}".encode()), PostResult(AttemptFailure.DNS)]
    page = await browser.follow(await browser.submit(page, f"{HERE}/{rule}/test"))
    assert "was not accepted: 404 no_service" in page.text and "<img src=x" not in page.text
    page = await browser.follow(await browser.submit(page, f"{HERE}/{rule}/test"))
    assert "The host name could not be resolved." in page.text


async def test_the_secret_of_a_signed_webhook_is_shown_once(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    page = await _create_rule(browser, channel="webhook", url="https://shop.example/hook")
    assert page.status == 201 and "whsec_" in page.text and page.header("cache-control") == "no-store"
    rule = _find_rule_id(page)
    assert "whsec_" not in (await browser.get(f"{HERE}/{rule}")).text
    form = await browser.get(f"{HERE}/{rule}/edit")
    changed = FORM | {"channel": "webhook", "url": "https://shop.example/other"}
    assert (await browser.submit(form, f"{HERE}/{rule}/edit", **changed)).status == 303
    assert "…ther" in (await browser.get(f"{HERE}/{rule}")).text


async def test_editors_cannot_send_to_other_receivers(application: ApplicationHarness) -> None:
    owner, editor = await application.open_browser(), await application.open_browser(role="editor")
    assert (await _create_rule(editor, channel="slack", url=SLACK_URL)).status == 403
    assert "URL for Slack or webhook" not in (await editor.get(f"{HERE}/new")).text
    shared = _find_rule_id(await _create_rule(owner, channel="slack", url=SLACK_URL))
    page = await editor.get(f"{HERE}/{shared}")
    assert page.status == 200 and "Send test" not in page.text
    for action in ("test", "disable", "delete", "edit"):
        assert (await editor.submit(await editor.get(f"{HERE}/new"), f"{HERE}/{shared}/{action}", **FORM)).status in (
            403,
            404,
        )
    assert RECEIVER.posts == []
    assert (await application.open_browser(role="billing")) and (
        await (await application.open_browser(role="billing")).get(HERE)
    ).status == 403


async def test_rules_of_other_people_organisations_and_modes_are_unknown(application: ApplicationHarness) -> None:
    ada, ben = await application.open_browser(), await application.open_browser()
    outsider = await application.open_browser("Oak")
    mine = _find_rule_id(await _create_rule(ada))
    shared = _find_rule_id(await _create_rule(ada, channel="slack", url=SLACK_URL))
    form = await ben.get(f"{HERE}/new")
    for browser, rule in ((ben, mine), (outsider, mine), (outsider, shared)):
        assert rule not in (await browser.get(HERE)).text
        for action in ("", "/edit", "/delete", "/messages/ntf_0000000000000000000000"):
            assert (await browser.get(f"{HERE}/{rule}{action}")).status == 404, action
        form = await browser.get(f"{HERE}/new")
        for action in ("edit", "delete", "test", "enable", "disable"):
            assert (await browser.submit(form, f"{HERE}/{rule}/{action}", **FORM)).status == 404, action
    switched = await ada.submit(await ada.get(HERE), "/console/switch", mode="test", next=HERE)
    assert mine not in (await ada.follow(switched)).text
    assert (await ada.get(f"{HERE}/{mine}")).status == 404


async def _send_test_mail(application: ApplicationHarness, browser: ConsoleBrowser) -> tuple[str, str]:
    """Create a rule by email and send its test message; return the rule and the path that stops emails."""
    rule = _find_rule_id(await _create_rule(browser))
    page = await browser.get(f"{HERE}/{rule}")
    page = await browser.follow(await browser.submit(page, f"{HERE}/{rule}/test"))
    assert f"Test message sent to {browser.user.email}" in page.text
    mail = application.dependencies[OutgoingMail]
    [message] = [one for one in await mail.list_latest() if one.to == browser.user.email]
    assert message.subject == "Test: 1 price change: Cheaper chairs"
    found = re.search(r"https://api\.joinery\.test(/console/unsubscribe/\S+)", mail.decrypt_text(message))
    assert found
    return rule, found[1]


async def test_the_link_in_an_email_stops_emails_without_signing_in(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    rule, path = await _send_test_mail(application, browser)
    anonymous = await application.open_browser(None)
    anonymous.cookies.clear()
    page = await anonymous.get(path)
    assert page.status == 200 and "Stop notifications by email?" in page.text
    assert "Active" in (await browser.get(f"{HERE}/{rule}")).text, "opening the link changes nothing"
    page = await anonymous.submit(page, path)
    assert page.status == 200 and "Emails stopped" in page.text
    shown = await browser.get(f"{HERE}/{rule}")
    assert "Stopped by the link in an email" in shown.text
    assert "Rule resumed" in (await browser.follow(await browser.submit(shown, f"{HERE}/{rule}/enable"))).text


async def test_mail_programs_unsubscribe_with_one_post(application: ApplicationHarness) -> None:
    """RFC 8058: without cookies, origin and token of a form."""
    browser = await application.open_browser()
    rule, path = await _send_test_mail(application, browser)
    program = ConsoleBrowser(application.app)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    page = await program.send("POST", path, b"List-Unsubscribe=One-Click", headers)
    assert page.status == 200
    assert "Stopped by the link in an email" in (await browser.get(f"{HERE}/{rule}")).text


async def test_forged_links_stop_nothing(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    rule, path = await _send_test_mail(application, browser)
    program = ConsoleBrowser(application.app)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    for forged in (
        # The last character also has bits that belong to no byte of the signature.
        path[:-2] + ("a" if path[-2] != "a" else "b") + path[-1],
        path.replace(".", "x."),
        "/console/unsubscribe/x",
        path + "/x",
    ):
        page = await program.send("POST", forged, b"List-Unsubscribe=One-Click", headers)
        assert page.status == 404, forged
    assert "Active" in (await browser.get(f"{HERE}/{rule}")).text
    other = await program.send("POST", f"{HERE}/{rule}/disable", b"csrf=x", headers)
    assert other.status == 403, "other pages still require the origin"


async def test_pages_are_in_the_persons_language(application: ApplicationHarness) -> None:
    browser = await application.open_browser()
    page = await browser.get(HERE, accept_language="de")
    assert page.status == 200 and 'lang="de"' in page.text
