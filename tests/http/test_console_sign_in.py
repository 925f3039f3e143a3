"""Sign-in and account pages in a browser without JavaScript."""

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape

import pyotp
import pytest
import pytest_asyncio

from domain.kernel.ids import new_id
from domain.outbox.usecases import OutgoingMail
from domain.people.model import LinkPurpose, User
from domain.people.usecases.auth_services import AuthServices
from domain.people.usecases.sessions import ClientInfo, LinkService
from tests.http.application import ApplicationHarness, run_application
from tests.http.browser import COOKIE, BrowserPage, ConsoleBrowser
from tests.support.authenticator import SoftAuthenticator

pytestmark = pytest.mark.asyncio
PASSWORD, OTHER = "correct horse battery staple", "schrank unter wasser"
DEVICE = f"{COOKIE}-device"


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


@pytest_asyncio.fixture
async def ingrid(application: ApplicationHarness) -> User:
    """Create an owner of Fjord with a password."""
    user: User = await application.people.add(
        User(new_id("usr"), "ingrid@fjord.example", "Ingrid", None, application.clock.now())
    )
    await application.add_member(user, "Fjord")
    await application.dependencies[AuthServices].passwords.change(user, PASSWORD, None, ClientInfo("203.0.113.7"))
    return user


async def _sign_in(
    application: ApplicationHarness, browser: ConsoleBrowser | None = None, password: str = PASSWORD, **fields: str
) -> BrowserPage:
    browser = browser or ConsoleBrowser(application.app)
    form = await browser.get("/console/sign-in")
    sent = {"email": "ingrid@fjord.example", "password": password} | fields
    return await browser.submit(form, "/console/sign-in", **sent)


def _read_codes(page: BrowserPage) -> list[str]:
    found = re.search(r"<pre[^>]*>(.*?)</pre>", page.text, re.S)
    return found[1].split() if found else []


def _find_form_target(page: BrowserPage) -> str:
    """Return the target of the page's last form, after those of the menu."""
    return unescape(re.findall(r'name="next" value="([^"]*)"', page.text)[-1])


async def _read_mail(application: ApplicationHarness) -> list[str]:
    await application.dependencies[AuthServices].notices.wait_until_idle()
    outgoing = application.dependencies[OutgoingMail]
    return [outgoing.decrypt_text(one) for one in await outgoing.list_latest()]


async def test_signing_in_returns_to_the_requested_page(application: ApplicationHarness, ingrid: User) -> None:
    browser = ConsoleBrowser(application.app)
    redirect = await browser.get("/console/account")
    page = await browser.follow(redirect)
    sent = {"email": ingrid.email, "password": PASSWORD, "next": page.field("next")}
    entered = await browser.submit(page, "/console/sign-in", **sent)
    assert entered.status == 303 and entered.header("location") == "/console/account"
    cookies = [value for name, value in entered.headers if name == "set-cookie" and value.startswith((COOKIE, DEVICE))]
    assert len(cookies) == 2 and all(
        {"HttpOnly", "SameSite=Lax", "Secure", "Path=/"} <= set(one.split("; ")) for one in cookies
    )
    assert "Your account" in (await browser.follow(entered)).text
    assert (await browser.get("/console/sign-in?next=/console/catalogue")).header("location") == "/console/catalogue"


async def test_no_session_survives_a_sign_in(application: ApplicationHarness, ingrid: User) -> None:
    browser = ConsoleBrowser(application.app, "svc_session_fixed")
    entered = await _sign_in(application, browser)
    first = browser.cookies[COOKIE]
    assert entered.status == 303 and first != "svc_session_fixed"
    page = await browser.get("/console/account")
    again = await browser.submit(page, "/console/sign-in", email=ingrid.email, password=PASSWORD)
    assert again.status == 303 and browser.cookies[COOKIE] != first
    assert await application.sessions.find(first) is None


async def test_wrong_and_unknown_credentials_get_the_same_response(
    application: ApplicationHarness, ingrid: User
) -> None:
    seen = []
    for email in (ingrid.email, "stranger@fjord.example"):
        page = await _sign_in(application, password="wrong", email=email, next="https://evil.test/")
        assert page.status == 403 and page.field("next") == "/console" and COOKIE not in dict(page.headers)
        seen.append(re.sub(r'value="[^"]*"|data-csrf="[^"]*"', "", page.text))
    assert seen[0] == seen[1] and "Address or password is wrong" in seen[0]


async def test_too_many_attempts_are_reported_with_the_alternative(
    application: ApplicationHarness, ingrid: User
) -> None:
    for _ in range(10):
        await _sign_in(application, password="wrong")
    page = await _sign_in(application)
    assert page.status == 429 and int(page.header("retry-after") or 0) > 0 and "passkey" in page.text


async def test_forms_of_other_sites_cannot_sign_in(application: ApplicationHarness, ingrid: User) -> None:
    browser = ConsoleBrowser(application.app)
    form = await browser.get("/console/sign-in")
    fields = {"email": ingrid.email, "password": PASSWORD}
    assert (await browser.submit(form, "/console/sign-in", {"origin": "https://evil.test"}, **fields)).status == 403
    assert (await browser.post("/console/sign-in", **fields)).status == 403


async def _compute_code(application: ApplicationHarness, app: pyotp.TOTP) -> str:
    application.clock.advance(timedelta(seconds=30))
    return app.at(application.clock.now())


async def _enrol_codes(application: ApplicationHarness, browser: ConsoleBrowser) -> tuple[pyotp.TOTP, list[str]]:
    page = await browser.get("/console/account/codes")
    found = re.search(r"<code>([A-Z2-7]{32})</code>", page.text)
    assert found and "<svg" in page.text and "style=" not in page.text
    app = pyotp.TOTP(found[1])
    wrong = await browser.submit(page, "/console/account/codes", code="000000")
    assert wrong.status == 400 and found[1] in wrong.text, "the same secret is shown on"
    shown = await browser.submit(page, "/console/account/codes", code=await _compute_code(application, app))
    codes = _read_codes(shown)
    assert len(codes) == 10
    return app, codes


async def test_one_time_codes_are_enrolled_used_and_removed(application: ApplicationHarness, ingrid: User) -> None:
    browser = ConsoleBrowser(application.app)
    await _sign_in(application, browser)
    app, codes = await _enrol_codes(application, browser)
    step = await _sign_in(application, next="/console/account")
    assert step.status == 200 and COOKIE not in str(step.headers) and step.field("next") == "/console/account"
    other = ConsoleBrowser(application.app)
    wrong = await other.submit(step, "/console/sign-in/code", token=step.field("token"), code="000000")
    assert wrong.status == 403 and wrong.field("token") == step.field("token")
    entered = await other.submit(
        step, "/console/sign-in/code", token=step.field("token"), code=await _compute_code(application, app)
    )
    assert entered.status == 303 and other.cookies[COOKIE]
    third = ConsoleBrowser(application.app)
    assert (await third.submit(step, "/console/sign-in/code", token=step.field("token"), code=codes[0])).status == 303
    over = await ConsoleBrowser(application.app).submit(
        await _sign_in(application), "/console/sign-in/code", token="usr_x.1.00", code="1"
    )
    assert over.status == 403 and 'name="password"' in over.text
    page = await browser.get("/console/account/codes")
    assert "9 recovery codes left" in page.text
    fresh = await browser.submit(page, "/console/account/codes/recovery")
    assert codes[1] not in fresh.text and len(_read_codes(fresh)) == 10
    assert (await browser.submit(page, "/console/account/codes/off")).status == 303
    assert (await _sign_in(application)).status == 303


async def test_security_settings_require_recent_authentication(application: ApplicationHarness, ingrid: User) -> None:
    browser = ConsoleBrowser(application.app)
    await _sign_in(application, browser)
    page = await browser.get("/console/account/password")
    application.clock.advance(timedelta(minutes=16))
    for rule in ("password", "codes", "passkeys"):
        response = await browser.get(f"/console/account/{rule}")
        assert response.header("location") == f"/console/confirm?next=/console/account/{rule}"
    late = await browser.submit(page, "/console/account/password", password=OTHER)
    assert late.header("location") == "/console/confirm?next=/console/account/password"
    for rule in (
        "codes/off",
        "codes/recovery",
        "passkeys",
        "passkeys/options",
        "passkeys/x/remove",
        "passkeys/x/rename",
    ):
        assert "/console/confirm" in ((await browser.submit(page, f"/console/account/{rule}")).header("location") or "")
    confirm = await browser.follow(late)
    fields = {"next": _find_form_target(confirm)}
    assert (await browser.submit(confirm, "/console/confirm", password="wrong", **fields)).status == 403
    before = browser.cookies[COOKIE]
    proved = await browser.submit(confirm, "/console/confirm", password=PASSWORD, **fields)
    assert browser.cookies[COOKIE] != before and await application.sessions.find(before) is None, (
        "a new session's secret"
    )
    assert "New password" in (await browser.follow(proved)).text
    confirm = await browser.get("/console/confirm")
    assert (await browser.submit(confirm, "/console/confirm", password=PASSWORD, next="//evil.test")).header(
        "location"
    ) == "/console"


async def test_a_password_change_ends_other_sessions_and_is_reported_by_mail(
    application: ApplicationHarness, ingrid: User
) -> None:
    browser, other = ConsoleBrowser(application.app), ConsoleBrowser(application.app)
    await _sign_in(application, browser)
    await _sign_in(application, other)
    page = await browser.get("/console/account/password")
    refused = await browser.submit(page, "/console/account/password", password="password123")
    assert refused.status == 400 and "easy to guess" in refused.text and "password123" not in refused.text
    assert (await browser.submit(page, "/console/account/password", password=OTHER)).status == 303
    assert (await browser.get("/console/account")).status == 200
    assert await application.sessions.find(other.cookies[COOKIE]) is None
    assert (await _sign_in(application)).status == 403 and (await _sign_in(application, password=OTHER)).status == 303
    assert any("password of your account was changed" in one for one in await _read_mail(application))


async def test_a_forgotten_password_is_set_by_a_link(application: ApplicationHarness, ingrid: User) -> None:
    browser = ConsoleBrowser(application.app)
    form = await browser.get("/console/forgot")
    responses = [await browser.submit(form, "/console/forgot", email=one) for one in ("x@y.example", ingrid.email)]
    same = [re.sub(r'value="[^"]*"', "", page.text).replace(ingrid.email, "x@y.example") for page in responses]
    assert same[0] == same[1] and responses[0].status == 200
    mails = [one for one in await _read_mail(application) if "/console/set-password/" in one]
    assert len(mails) == 1
    place = re.search(r"https://api\.joinery\.test(\S+)", mails[0])
    assert place
    page = await browser.get(place[1])
    assert ingrid.email in page.text and (await browser.get(place[1])).status == 200
    assert (await browser.submit(page, place[1], password="short")).status == 400
    done = await browser.submit(page, place[1], password=OTHER)
    assert "Password saved" in (await browser.follow(done)).text
    assert (await browser.get(place[1])).status == 410
    assert (await browser.submit(page, place[1], password=PASSWORD)).status == 410
    assert (await _sign_in(application, password=OTHER)).status == 303


async def test_a_link_is_consumed_only_by_its_button(application: ApplicationHarness, ingrid: User) -> None:
    org = application.orgs["Fjord"].id
    _, secret = await application.dependencies[LinkService].create(ingrid, LinkPurpose.SIGN_IN, org)
    scanner, browser = ConsoleBrowser(application.app), ConsoleBrowser(application.app)
    for method in ("GET", "HEAD"):
        await scanner.send(method, f"/console/link/{secret}", b"", {})
    page = await browser.get(f"/console/link/{secret}")
    assert "Sign in" in page.text and COOKIE not in browser.cookies
    entered = await browser.submit(page, f"/console/link/{secret}")
    assert "Fjord" in (await browser.follow(entered)).text
    assert (await browser.get(f"/console/link/{secret}")).status == 410
    assert (await ConsoleBrowser(application.app).submit(page, f"/console/link/{secret}")).status == 410
    assert (await scanner.get("/console/link/nonsense")).status == 410


async def test_sessions_are_listed_and_ended(application: ApplicationHarness, ingrid: User) -> None:
    browsers = [ConsoleBrowser(application.app) for _ in range(3)]
    for browser in browsers:
        await _sign_in(application, browser)
    here, _second, _ = browsers
    page = await here.get("/console/account")
    places = re.findall(r'action="(/console/account/sessions/ses_\w+/end)"', page.text)
    assert len(places) == 2 and page.text.count("This session") == 1
    assert (await here.submit(page, places[0])).status == 303
    assert (await here.submit(page, "/console/account/sessions/end-others")).status == 303
    assert (await here.get("/console/account")).status == 200
    for browser in browsers[1:]:
        assert await application.sessions.find(browser.cookies[COOKIE]) is None
    other = await application.open_browser("Oak")
    own = (await application.sessions.list_active(ingrid.id))[0].id
    foreign = await other.submit(await other.get("/console/account"), f"/console/account/sessions/{own}/end")
    assert foreign.status == 404 and (await here.get("/console/account")).status == 200


async def test_a_passkey_is_added_used_renamed_and_removed(application: ApplicationHarness, ingrid: User) -> None:
    device, browser, signed_out = (
        SoftAuthenticator("https://api.joinery.test"),
        ConsoleBrowser(application.app),
        ConsoleBrowser(application.app),
    )
    await _sign_in(application, browser)
    page = await browser.get("/console/account/passkeys")

    async def request_options(browser: ConsoleBrowser, page: BrowserPage, place: str) -> tuple[str, str]:
        options = (await browser.submit(page, place)).text
        return options, json.loads(options)["challenge"]

    options, challenge = await request_options(browser, page, "/console/account/passkeys/options")
    made = {"credential": device.create(options), "challenge": challenge, "name": "<Laptop>"}
    added = await browser.follow(await browser.submit(page, "/console/account/passkeys", **made))
    assert "&lt;Laptop&gt;" in added.text
    assert (await browser.submit(page, "/console/account/passkeys", **made)).status == 403, "the challenge is used up"

    form = await signed_out.get("/console/sign-in")
    options, challenge = await request_options(signed_out, form, "/console/sign-in/passkey/options")
    signed = {"credential": device.get(options), "challenge": challenge, "next": "/console/account"}
    entered = await signed_out.submit(form, "/console/sign-in/passkey", **signed)
    assert entered.header("location") == "/console/account" and signed_out.cookies[COOKIE]
    again = await ConsoleBrowser(application.app).submit(form, "/console/sign-in/passkey", **signed)
    assert again.status == 403 and "another sign-in method" in again.text

    application.clock.advance(timedelta(minutes=16))
    confirm = await signed_out.get("/console/confirm?next=/console/account/passkeys")
    options, challenge = await request_options(signed_out, confirm, "/console/confirm/options")
    proved = {"credential": device.get(options), "challenge": challenge, "next": _find_form_target(confirm)}
    page = await signed_out.follow(await signed_out.submit(confirm, "/console/confirm", **proved))
    (id_,) = set(re.findall(r"pky_\w+", page.text))
    renamed = await signed_out.submit(page, f"/console/account/passkeys/{id_}/rename", name="Phone")
    assert "Phone" in (await signed_out.follow(renamed)).text
    assert (await signed_out.submit(page, f"/console/account/passkeys/{id_}/remove")).status == 303
    assert (await signed_out.submit(page, f"/console/account/passkeys/{id_}/remove")).status == 404
    events = unescape((await signed_out.get("/console/account")).text)
    assert "Passkey added: <Laptop>" in events and "Passkey removed" in events


async def test_an_account_without_an_organisation_has_account_pages(application: ApplicationHarness) -> None:
    browser = await application.open_browser(None)
    page = await browser.get("/console/account")
    assert page.status == 200 and "<nav" not in page.text
    renamed = await browser.submit(page, "/console/account/profile", name="  Ada   Lovelace ")
    assert 'value="Ada Lovelace"' in (await browser.follow(renamed)).text
    application.clock.advance(timedelta(minutes=16))
    assert "Send password link" in (await browser.get("/console/confirm")).text
    for place in ("/console/account/passkeys", "/console/account/codes"):
        assert "/console/confirm" in ((await browser.get(place)).header("location") or "")
