"""Signing in with Chromium: a passkey of a virtual device from making it to proving with it, and pages that keep nobody out."""

import asyncio
import os
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyotp
import pytest
from hypercorn.asyncio import serve
from hypercorn.config import Config

from domain.kernel.ids import new_id
from domain.people.model import Purpose, User
from domain.people.usecases.sessions import Visitor
from tests.http.fakes import World, running, settings

pytestmark = pytest.mark.browser
EMAIL, PASSWORD = "ingrid@fjord.example", "correct horse battery staple"


@dataclass
class Served:
    """A service at `address`, where Ingrid has an account, and a link that signs her in."""

    address: str
    link: str
    world: World


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    told: list[Served] = []
    begun, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(told, begun, over)), daemon=True)
    thread.start()
    assert begun.wait(30) and told
    yield told[0]
    over.set()
    thread.join(10)


async def _serve(told: list[Served], begun: threading.Event, over: threading.Event) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://localhost:{port}"
    async with running(settings=settings(base_url=address)) as world:
        user = await world.people.add(User(new_id("usr"), EMAIL, "Ingrid", None, world.clock.now()))
        await world.join(user, "Fjord")
        await world.dependencies.accounts.passwords.change(user, PASSWORD, None, Visitor("127.0.0.1"))
        _, secret = await world.dependencies.links.make(user, Purpose.SIGN_IN, world.orgs["Fjord"].id)
        config = Config()
        config.bind, config.accesslog = [f"127.0.0.1:{port}"], None

        async def ended() -> None:
            while not over.is_set():
                await asyncio.sleep(0.1)

        serving = asyncio.create_task(serve(_started(world.app), config, shutdown_trigger=ended))  # type: ignore[arg-type]
        await asyncio.sleep(0.5)
        told.append(Served(address, f"{address}/console/link/{secret}", world))
        begun.set()
        await serving


def _started(app: Any) -> Any:
    """The application, which runs already."""

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for step in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{step}.complete"})

    return asgi


def _looked_at(page: Any, name: str) -> None:
    """axe finds nothing on the page; JOINERY_PICTURES names a folder for how it looks."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert not found, (name, [(each["id"], each["nodes"][0]["html"][:200]) for each in found])
    if folder := os.environ.get("JOINERY_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def _with_password(page: Any, address: str, place: str = "/console/account") -> None:
    page.goto(f"{address}/console/sign-in?next={place}")
    page.get_by_label("Mail address").fill(EMAIL)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_a_passkey_from_making_it_to_signing_in(browser: Any, served: Served, width: int, scheme: str) -> None:
    size = {"width": width, "height": 850}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", bypass_csp=False)
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    device = context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    device.send(
        "WebAuthn.addVirtualAuthenticator",
        {"options": options | {"isUserVerified": True, "automaticPresenceSimulation": True}},
    )

    _with_password(page, served.address, "/console/account/passkeys")
    page.get_by_label("Name").last.fill(f"Laptop {width}")
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_text("The passkey is added").wait_for()
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_text("has a passkey for your account already").wait_for()

    context.clear_cookies()
    page.goto(f"{served.address}/console/sign-in?next=/console/account")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_role("heading", name="Your account").wait_for()
    assert "by passkey" in page.inner_text("main") and "Chrome on Linux" in page.inner_text("main")
    page.goto(f"{served.address}/console/confirm?next=/console/account/password")
    page.get_by_role("button", name="Go on with a passkey").click()
    page.get_by_label("New password").wait_for()

    page.goto(f"{served.address}/console/account/passkeys")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name=f"Remove Laptop {width}").click()
    page.get_by_text("The passkey is removed").wait_for()
    context.clear_cookies()
    page.goto(f"{served.address}/console/sign-in")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_text("could not be used").wait_for()
    context.close()
    assert [fault for fault in faults if "403" not in fault] == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_pages_keep_nobody_out(browser: Any, served: Served, width: int, scheme: str) -> None:
    size = {"width": width, "height": 850}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", bypass_csp=True)
    page, name = context.new_page(), f"{width}"
    page.goto(f"{served.address}/console/sign-in")
    _looked_at(page, f"sign-in-{name}")
    page.goto(served.link)
    _looked_at(page, f"link-{name}")
    page.goto(f"{served.address}/console/forgot")
    _looked_at(page, f"forgot-{name}")
    _with_password(page, served.address)
    for place in ("account", "account/password", "account/codes", "account/passkeys", "confirm"):
        page.goto(f"{served.address}/console/{place}")
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), place
        _looked_at(page, f"{place.replace('/', '-')}-{name}")
    context.close()


def test_everything_works_without_scripts(browser: Any, served: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(served.link)
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{served.address}/console/account/codes")
    secret = re.search(r"[A-Z2-7]{32}", page.inner_text("main"))
    assert secret and not page.get_by_role("button", name="passkey").is_visible()
    app, clock = pyotp.TOTP(secret[0]), served.world.clock
    page.get_by_label("The code that the app shows").fill(app.at(clock.now()))
    page.get_by_role("button", name="Turn codes on").click()
    codes = page.inner_text("pre").split()
    context.clear_cookies()
    _with_password(page, served.address)
    page.get_by_label("Code").fill(codes[3])
    page.get_by_role("button", name="Go on").click()
    assert "9 recovery codes left" in page.inner_text("main")
    page.goto(f"{served.address}/console/account/codes")
    page.get_by_role("button", name="Turn codes off").click()
    assert "One-time codes are off" in page.inner_text("main")
    context.close()
