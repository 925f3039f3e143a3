"""Sign-in pages in Chromium: passkeys of a virtual device, and accessibility."""

import re
from collections.abc import Iterator
from typing import Any

import pyotp
import pytest

from domain.kernel.ids import new_id
from domain.people.model import LinkPurpose, User
from domain.people.usecases.auth_services import AuthServices
from domain.people.usecases.sessions import ClientInfo, LinkService
from entrypoints.settings import Settings
from tests.browser.page_checks import check_page
from tests.browser.service import LiveService, run_service
from tests.http.application import ApplicationHarness

pytestmark = pytest.mark.browser
EMAIL, PASSWORD = "ingrid@fjord.example", "correct horse battery staple"


async def _prepare(application: ApplicationHarness) -> dict[str, str]:
    """Create an account and a sign-in link."""
    user = await application.people.add(User(new_id("usr"), EMAIL, "Ingrid", None, application.clock.now()))
    await application.add_member(user, "Fjord")
    await application.dependencies[AuthServices].passwords.change(user, PASSWORD, None, ClientInfo("127.0.0.1"))
    _, secret = await application.dependencies[LinkService].create(
        user, LinkPurpose.SIGN_IN, application.orgs["Fjord"].id
    )
    return {"link": f"{application.dependencies[Settings].base_url}/console/link/{secret}"}


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with run_service(_prepare) as made:
        yield made


def _sign_in_by_password(page: Any, address: str, place: str = "/console/account") -> None:
    page.goto(f"{address}/console/sign-in?next={place}")
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_a_passkey_is_created_and_signs_in(browser: Any, service: LiveService, width: int, scheme: str) -> None:
    size = {"width": width, "height": 850}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", bypass_csp=False)
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    device = context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    device.send(
        "WebAuthn.addVirtualAuthenticator",
        {"options": options | {"isUserVerified": True, "automaticPresenceSimulation": True}},
    )

    _sign_in_by_password(page, service.address, "/console/account/passkeys")
    page.get_by_label("Name").last.fill(f"Laptop {width}")
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_text("Passkey added").wait_for()
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_text("already has a passkey for your account").wait_for()

    context.clear_cookies()
    page.goto(f"{service.address}/console/sign-in?next=/console/account")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_role("heading", name="Your account").wait_for()
    assert "· Passkey" in page.inner_text("main") and "Chrome on Linux" in page.inner_text("main")
    page.goto(f"{service.address}/console/confirm?next=/console/account/password")
    page.get_by_role("button", name="Continue with a passkey").click()
    page.get_by_label("New password").wait_for()

    page.goto(f"{service.address}/console/account/passkeys")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name=f"Remove Laptop {width}").click()
    page.get_by_text("Passkey removed").wait_for()
    context.clear_cookies()
    page.goto(f"{service.address}/console/sign-in")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_text("could not be used").wait_for()
    context.close()
    assert [fault for fault in faults if "403" not in fault] == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_pages_are_accessible(browser: Any, service: LiveService, width: int, scheme: str) -> None:
    size = {"width": width, "height": 850}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True)
    page, name = context.new_page(), f"{width}"
    page.goto(f"{service.address}/console/sign-in")
    check_page(page, f"sign-in-{name}")
    page.goto(service.prepared["link"])
    check_page(page, f"link-{name}")
    page.goto(f"{service.address}/console/forgot")
    check_page(page, f"forgot-{name}")
    _sign_in_by_password(page, service.address)
    for place in ("account", "account/password", "account/codes", "account/passkeys", "confirm"):
        page.goto(f"{service.address}/console/{place}")
        check_page(page, f"{place.replace('/', '-')}-{name}")
    context.close()


def test_everything_works_without_scripts(browser: Any, service: LiveService) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(service.prepared["link"])
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{service.address}/console/account/codes")
    secret = re.search(r"[A-Z2-7]{32}", page.inner_text("main"))
    assert secret and not page.get_by_role("button", name="passkey").is_visible()
    app, clock = pyotp.TOTP(secret[0]), service.application.clock
    page.get_by_label("Authenticator code").fill(app.at(clock.now()))
    page.get_by_role("button", name="Turn on").click()
    codes = page.inner_text("pre").split()
    context.clear_cookies()
    _sign_in_by_password(page, service.address)
    page.get_by_label("Code").fill(codes[3])
    page.get_by_role("button", name="Continue").click()
    assert "9 recovery codes left" in page.inner_text("main")
    page.goto(f"{service.address}/console/account/codes")
    page.get_by_role("button", name="Turn off").click()
    assert "One-time codes are off" in page.inner_text("main")
    context.close()
