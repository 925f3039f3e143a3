"""Signing in and the account, page by page, as a browser without JavaScript meets them."""

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
from tests.http.browser import COOKIE, Browser, Page
from tests.http.fakes import World, running
from tests.support.authenticator import SoftAuthenticator

pytestmark = pytest.mark.asyncio
PASSWORD, OTHER = "correct horse battery staple", "schrank unter wasser"
DEVICE = f"{COOKIE}-device"


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    async with running() as made:
        yield made


@pytest_asyncio.fixture
async def ingrid(world: World) -> User:
    """An owner of Fjord with a password."""
    user: User = await world.people.add(User(new_id("usr"), "ingrid@fjord.example", "Ingrid", None, world.clock.now()))
    await world.join(user, "Fjord")
    await world.dependencies[AuthServices].passwords.change(user, PASSWORD, None, ClientInfo("203.0.113.7"))
    return user


async def _signed_in(world: World, browser: Browser | None = None, password: str = PASSWORD, **fields: str) -> Page:
    browser = browser or Browser(world.app)
    form = await browser.get("/console/sign-in")
    sent = {"email": "ingrid@fjord.example", "password": password} | fields
    return await browser.submit(form, "/console/sign-in", **sent)


def _codes(page: Page) -> list[str]:
    found = re.search(r"<pre[^>]*>(.*?)</pre>", page.text, re.S)
    return found[1].split() if found else []


def _next(page: Page) -> str:
    """Where the page's own form leads; those of the menu come before."""
    return unescape(re.findall(r'name="next" value="([^"]*)"', page.text)[-1])


async def _mail(world: World) -> list[str]:
    await world.dependencies[AuthServices].notices.wait_until_idle()
    outgoing = world.dependencies[OutgoingMail]
    return [outgoing.decrypt_text(one) for one in await outgoing.list_latest()]


async def test_one_signs_in_and_is_led_back(world: World, ingrid: User) -> None:
    browser = Browser(world.app)
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


async def test_no_session_survives_a_sign_in(world: World, ingrid: User) -> None:
    browser = Browser(world.app, "svc_session_fixed")
    entered = await _signed_in(world, browser)
    first = browser.cookies[COOKIE]
    assert entered.status == 303 and first != "svc_session_fixed"
    page = await browser.get("/console/account")
    again = await browser.submit(page, "/console/sign-in", email=ingrid.email, password=PASSWORD)
    assert again.status == 303 and browser.cookies[COOKIE] != first
    assert await world.sessions.find(first) is None


async def test_wrong_and_unknown_read_alike_and_lead_nowhere_else(world: World, ingrid: User) -> None:
    seen = []
    for email in (ingrid.email, "stranger@fjord.example"):
        page = await _signed_in(world, password="wrong", email=email, next="https://evil.test/")
        assert page.status == 403 and page.field("next") == "/console" and COOKIE not in dict(page.headers)
        seen.append(re.sub(r'value="[^"]*"|data-csrf="[^"]*"', "", page.text))
    assert seen[0] == seen[1] and "Address or password is wrong" in seen[0]


async def test_too_many_attempts_are_reported_with_the_alternative(world: World, ingrid: User) -> None:
    for _ in range(10):
        await _signed_in(world, password="wrong")
    page = await _signed_in(world)
    assert page.status == 429 and int(page.header("retry-after") or 0) > 0 and "passkey" in page.text


async def test_a_form_of_another_site_signs_nobody_in(world: World, ingrid: User) -> None:
    browser = Browser(world.app)
    form = await browser.get("/console/sign-in")
    fields = {"email": ingrid.email, "password": PASSWORD}
    assert (await browser.submit(form, "/console/sign-in", {"origin": "https://evil.test"}, **fields)).status == 403
    assert (await browser.post("/console/sign-in", **fields)).status == 403


async def _code(world: World, app: pyotp.TOTP) -> str:
    world.clock.advance(timedelta(seconds=30))
    return app.at(world.clock.now())


async def _with_codes(world: World, browser: Browser) -> tuple[pyotp.TOTP, list[str]]:
    page = await browser.get("/console/account/codes")
    found = re.search(r"<code>([A-Z2-7]{32})</code>", page.text)
    assert found and "<svg" in page.text and "style=" not in page.text
    app = pyotp.TOTP(found[1])
    wrong = await browser.submit(page, "/console/account/codes", code="000000")
    assert wrong.status == 400 and found[1] in wrong.text, "the same secret is shown on"
    shown = await browser.submit(page, "/console/account/codes", code=await _code(world, app))
    codes = _codes(shown)
    assert len(codes) == 10
    return app, codes


async def test_one_time_codes_from_enrolment_to_sign_in_to_the_end(world: World, ingrid: User) -> None:
    browser = Browser(world.app)
    await _signed_in(world, browser)
    app, codes = await _with_codes(world, browser)
    step = await _signed_in(world, next="/console/account")
    assert step.status == 200 and COOKIE not in str(step.headers) and step.field("next") == "/console/account"
    other = Browser(world.app)
    wrong = await other.submit(step, "/console/sign-in/code", token=step.field("token"), code="000000")
    assert wrong.status == 403 and wrong.field("token") == step.field("token")
    entered = await other.submit(step, "/console/sign-in/code", token=step.field("token"), code=await _code(world, app))
    assert entered.status == 303 and other.cookies[COOKIE]
    third = Browser(world.app)
    assert (await third.submit(step, "/console/sign-in/code", token=step.field("token"), code=codes[0])).status == 303
    over = await Browser(world.app).submit(
        await _signed_in(world), "/console/sign-in/code", token="usr_x.1.00", code="1"
    )
    assert over.status == 403 and 'name="password"' in over.text
    page = await browser.get("/console/account/codes")
    assert "9 recovery codes left" in page.text
    fresh = await browser.submit(page, "/console/account/codes/recovery")
    assert codes[1] not in fresh.text and len(_codes(fresh)) == 10
    assert (await browser.submit(page, "/console/account/codes/off")).status == 303
    assert (await _signed_in(world)).status == 303


async def test_security_settings_require_recent_authentication(world: World, ingrid: User) -> None:
    browser = Browser(world.app)
    await _signed_in(world, browser)
    page = await browser.get("/console/account/password")
    world.clock.advance(timedelta(minutes=16))
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
    fields = {"next": _next(confirm)}
    assert (await browser.submit(confirm, "/console/confirm", password="wrong", **fields)).status == 403
    before = browser.cookies[COOKIE]
    proved = await browser.submit(confirm, "/console/confirm", password=PASSWORD, **fields)
    assert browser.cookies[COOKIE] != before and await world.sessions.find(before) is None, "a new session's secret"
    assert "New password" in (await browser.follow(proved)).text
    confirm = await browser.get("/console/confirm")
    assert (await browser.submit(confirm, "/console/confirm", password=PASSWORD, next="//evil.test")).header(
        "location"
    ) == "/console"


async def test_a_password_change_ends_other_sessions_and_is_reported_by_mail(world: World, ingrid: User) -> None:
    browser, other = Browser(world.app), Browser(world.app)
    await _signed_in(world, browser)
    await _signed_in(world, other)
    page = await browser.get("/console/account/password")
    refused = await browser.submit(page, "/console/account/password", password="password123")
    assert refused.status == 400 and "easy to guess" in refused.text and "password123" not in refused.text
    assert (await browser.submit(page, "/console/account/password", password=OTHER)).status == 303
    assert (await browser.get("/console/account")).status == 200
    assert await world.sessions.find(other.cookies[COOKIE]) is None
    assert (await _signed_in(world)).status == 403 and (await _signed_in(world, password=OTHER)).status == 303
    assert any("password of your account was changed" in one for one in await _mail(world))


async def test_a_forgotten_password_is_set_by_a_link(world: World, ingrid: User) -> None:
    browser = Browser(world.app)
    form = await browser.get("/console/forgot")
    answers = [await browser.submit(form, "/console/forgot", email=one) for one in ("x@y.example", ingrid.email)]
    same = [re.sub(r'value="[^"]*"', "", page.text).replace(ingrid.email, "x@y.example") for page in answers]
    assert same[0] == same[1] and answers[0].status == 200
    mails = [one for one in await _mail(world) if "/console/set-password/" in one]
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
    assert (await _signed_in(world, password=OTHER)).status == 303


async def test_a_link_is_used_by_its_button_alone(world: World, ingrid: User) -> None:
    org = world.orgs["Fjord"].id
    _, secret = await world.dependencies[LinkService].create(ingrid, LinkPurpose.SIGN_IN, org)
    scanner, browser = Browser(world.app), Browser(world.app)
    for method in ("GET", "HEAD"):
        await scanner.send(method, f"/console/link/{secret}", b"", {})
    page = await browser.get(f"/console/link/{secret}")
    assert "Sign in" in page.text and COOKIE not in browser.cookies
    entered = await browser.submit(page, f"/console/link/{secret}")
    assert "Fjord" in (await browser.follow(entered)).text
    assert (await browser.get(f"/console/link/{secret}")).status == 410
    assert (await Browser(world.app).submit(page, f"/console/link/{secret}")).status == 410
    assert (await scanner.get("/console/link/nonsense")).status == 410


async def test_sessions_are_seen_and_ended(world: World, ingrid: User) -> None:
    browsers = [Browser(world.app) for _ in range(3)]
    for browser in browsers:
        await _signed_in(world, browser)
    here, _second, _ = browsers
    page = await here.get("/console/account")
    places = re.findall(r'action="(/console/account/sessions/ses_\w+/end)"', page.text)
    assert len(places) == 2 and page.text.count("This session") == 1
    assert (await here.submit(page, places[0])).status == 303
    assert (await here.submit(page, "/console/account/sessions/end-others")).status == 303
    assert (await here.get("/console/account")).status == 200
    for browser in browsers[1:]:
        assert await world.sessions.find(browser.cookies[COOKIE]) is None
    other = await world.browser("Oak")
    own = (await world.sessions.list_active(ingrid.id))[0].id
    foreign = await other.submit(await other.get("/console/account"), f"/console/account/sessions/{own}/end")
    assert foreign.status == 404 and (await here.get("/console/account")).status == 200


async def test_a_passkey_is_added_used_renamed_and_removed(world: World, ingrid: User) -> None:
    device, browser, signed_out = SoftAuthenticator("https://api.joinery.test"), Browser(world.app), Browser(world.app)
    await _signed_in(world, browser)
    page = await browser.get("/console/account/passkeys")

    async def request_options(browser: Browser, page: Page, place: str) -> tuple[str, str]:
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
    again = await Browser(world.app).submit(form, "/console/sign-in/passkey", **signed)
    assert again.status == 403 and "another sign-in method" in again.text

    world.clock.advance(timedelta(minutes=16))
    confirm = await signed_out.get("/console/confirm?next=/console/account/passkeys")
    options, challenge = await request_options(signed_out, confirm, "/console/confirm/options")
    proved = {"credential": device.get(options), "challenge": challenge, "next": _next(confirm)}
    page = await signed_out.follow(await signed_out.submit(confirm, "/console/confirm", **proved))
    (id_,) = set(re.findall(r"pky_\w+", page.text))
    renamed = await signed_out.submit(page, f"/console/account/passkeys/{id_}/rename", name="Phone")
    assert "Phone" in (await signed_out.follow(renamed)).text
    assert (await signed_out.submit(page, f"/console/account/passkeys/{id_}/remove")).status == 303
    assert (await signed_out.submit(page, f"/console/account/passkeys/{id_}/remove")).status == 404
    events = unescape((await signed_out.get("/console/account")).text)
    assert "Passkey added: <Laptop>" in events and "Passkey removed" in events


async def test_an_account_without_an_organisation_has_its_pages(world: World) -> None:
    browser = await world.browser(None)
    page = await browser.get("/console/account")
    assert page.status == 200 and "<nav" not in page.text
    renamed = await browser.submit(page, "/console/account/profile", name="  Ada   Lovelace ")
    assert 'value="Ada Lovelace"' in (await browser.follow(renamed)).text
    world.clock.advance(timedelta(minutes=16))
    assert "Send password link" in (await browser.get("/console/confirm")).text
    for place in ("/console/account/passkeys", "/console/account/codes"):
        assert "/console/confirm" in ((await browser.get(place)).header("location") or "")
