"""The organisation's pages in Chromium, with scripts and without: single sign-on set up and used, a change undone, an export, mail to hand over."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import urlencode

import pytest
from hypercorn.asyncio import serve
from hypercorn.config import Config

from domain.jobs.model import Backlog
from domain.kernel.ids import new_id
from domain.people.model import Method, User
from domain.people.usecases.sessions import Visitor
from entrypoints.operators.service import OperatorsPage
from tests.http.fakes import World, running, settings
from tests.support.identity_provider import CLIENT, ISSUER, SECRET

pytestmark = pytest.mark.browser
EMAIL = "ada@fjord.example"
SECTION = "/console/organisation"
PAGES = ("single-sign-on", "audit", "usage", "exports", "settings")


@dataclass
class Served:
    """The console at `address`, the operators' page at `operators`, and an owner."""

    address: str
    operators: str
    owner: User
    world: World
    loop: asyncio.AbstractEventLoop

    def cookie(self) -> str:
        """That of a new session of the owner."""
        begun = self.world.sessions.begin(self.owner, [Method.PASSKEY], Visitor("127.0.0.1"))
        return str(asyncio.run_coroutine_threadsafe(begun, self.loop).result(10)[1])

    def page(self, browser: Any, **more: Any) -> Any:
        """A page of a browser in which the owner is signed in, and which knows the way to the provider."""
        context = browser.new_context(reduced_motion="reduce", **more)
        context.add_cookies([{"name": "joinery", "value": self.cookie(), "url": self.address}])
        context.route(f"{ISSUER}/**", self._provided)
        return context.new_page()

    def _provided(self, route: Any) -> None:
        """The provider's own page, on which somebody signs in."""
        answer = self.world.provider.authorize(route.request.url)
        back = f"{self.address}{SECTION.removesuffix('/organisation')}/sso/callback/{self.world.orgs['Fjord'].id}"
        link = escape(f"{back}?{urlencode(answer)}")
        route.fulfill(content_type="text/html", body=f'<title>Provider</title><a href="{link}">I am Ada</a>')


class Lanes:
    """A dispatch that tells of what waits."""

    async def backlog(self) -> list[Backlog]:
        return [Backlog("source", 3, 1, datetime.now(UTC)), Backlog("exports", 0, 1, None)]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    told: list[Served] = []
    begun, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(told, begun, over)), daemon=True)
    thread.start()
    assert begun.wait(60) and told
    yield told[0]
    over.set()
    thread.join(10)


async def _serve(told: list[Served], begun: threading.Event, over: threading.Event) -> None:
    ports = [_free_port(), _free_port()]
    address = f"http://localhost:{ports[0]}"
    async with running(settings=settings(base_url=address), dispatch=Lanes()) as world:
        world.clock.set(datetime.now(UTC))
        world.provider.now = int(world.clock.now().timestamp())
        user = await world.people.add(User(new_id("usr"), EMAIL, "Ada Moreau", world.clock.now(), world.clock.now()))
        await world.join(user, "Fjord")
        await world.dependencies.outgoing_mail.queue(
            "mei@fjord.example", "An invitation", f"Open {address}/x", "invitation"
        )
        client = await world.client()
        await client.post("/v1/webhook-endpoints", {"url": "https://shop.example/hook", "event_types": ["*"]})
        apps = (world.app, OperatorsPage(world.dependencies, ports[1]))
        serving = [
            asyncio.create_task(_served(_started(app), port, over)) for app, port in zip(apps, ports, strict=True)
        ]
        await asyncio.sleep(0.5)
        told.append(Served(address, f"http://127.0.0.1:{ports[1]}", user, world, asyncio.get_running_loop()))
        begun.set()
        await asyncio.gather(*serving)


async def _served(app: Any, port: int, over: threading.Event) -> None:
    config = Config()
    config.bind, config.accesslog = [f"127.0.0.1:{port}"], None

    async def ended() -> None:
        while not over.is_set():
            await asyncio.sleep(0.1)

    await serve(app, config, shutdown_trigger=ended)


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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _looked_at(page: Any, name: str) -> None:
    """axe finds nothing on the page and nothing is cut off; JOINERY_PICTURES names a folder for how it looks."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert not found, (name, [(each["id"], each["nodes"][0]["html"][:200]) for each in found])
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
    if folder := os.environ.get("JOINERY_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_single_sign_on_from_setting_it_up_to_coming_in(browser: Any, served: Served, scripts: bool) -> None:
    page = served.page(browser, java_script_enabled=scripts)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{served.address}{SECTION}/single-sign-on")
    page.get_by_label("Issuer").fill(ISSUER)
    page.get_by_label("Client id").fill(CLIENT)
    page.get_by_label("Client secret").fill(SECRET)
    page.get_by_role("button", name="Set up").click()
    page.get_by_text("The provider is set up.").wait_for()
    page.get_by_label("Add a domain").fill("fjord.example")
    page.get_by_role("button", name="Add", exact=True).click()
    record = page.get_by_text("joinery-verification=").inner_text()
    page.get_by_role("button", name="Check now").click()
    page.get_by_text("has no such record yet").wait_for()
    served.world.names.put("fjord.example", "TXT", record)
    page.get_by_role("button", name="Check now").click()
    page.get_by_text("fjord.example is proven.").wait_for()
    page.get_by_role("link", name=f"Sign in by it as {EMAIL}").click()
    page.get_by_role("link", name="I am Ada").click()
    page.get_by_text("It works").wait_for()
    page.get_by_role("button", name="Enforce single sign-on").click()
    page.get_by_text("Members of your domains come in by single sign-on alone now.").wait_for()
    if scripts:
        _looked_at(page, "single-sign-on")
    page.goto(f"{served.address}/console/sign-in?next=/console/organisation/audit")  # who is signed in goes on at once
    page.get_by_role("heading", name="Audit log").wait_for()
    page.goto(f"{served.address}{SECTION}/single-sign-on")
    page.get_by_role("button", name="Let people sign in in other ways").click()
    page.get_by_role("button", name="Remove", exact=True).last.click()
    page.get_by_text("Single sign-on is removed.").wait_for()
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_text("The domain is removed.").wait_for()
    page.context.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_change_is_undone_and_done_again(browser: Any, served: Served, scripts: bool) -> None:
    page = served.page(browser, java_script_enabled=scripts)
    for again in ("Undo…", "Undo…"):
        page.goto(f"{served.address}{SECTION}/audit?object=webhook_endpoint&undoable=true")
        page.locator("ol.entries summary").first.click()
        page.get_by_role("link", name=again).first.click()
        page.get_by_text("Nothing is done yet.").wait_for()
        if scripts:
            _looked_at(page, "undo")
        page.get_by_role("button", name="Undo it").click()
        page.get_by_text("as it was before").first.wait_for()
    page.context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")])
def test_nothing_keeps_people_out_or_is_cut_off(browser: Any, served: Served, width: int, scheme: str) -> None:
    page = served.page(browser, viewport={"width": width, "height": 850}, color_scheme=scheme)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    for name in PAGES:
        page.goto(f"{served.address}{SECTION}/{name}")
        page.get_by_role("navigation", name="Console").or_(page.locator(".menu-toggle")).first.wait_for(
            state="attached"
        )
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true })")
        _looked_at(page, f"{name}-{scheme}-{width}")
    page.goto(served.operators)
    page.locator(".messages summary", has_text="An invitation").click()
    page.get_by_text("Open http").wait_for()
    _looked_at(page, f"operators-{scheme}-{width}")
    page.goto(f"{served.address}/console/sso")
    _looked_at(page, f"sso-{scheme}-{width}")
    assert not faults
    page.context.close()
