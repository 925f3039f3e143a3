"""Languages of the console: the person's setting, else the browser's Accept-Language."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.http.browser import Page
from tests.http.fakes import World, running
from tests.support.console_seed import seed_console

pytestmark = pytest.mark.asyncio
ACCOUNT = "/console/account"


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    async with running() as world:
        yield world


def language_of(page: Page) -> str:
    return page.text.partition('<html lang="')[2].partition('"')[0]


async def test_the_language_follows_the_browser(world: World) -> None:
    browser = await world.browser(None)
    german = await browser.get(ACCOUNT, accept_language="fr, de-AT;q=0.9, en;q=0.8")
    assert language_of(german) == "de" and "Ihr Konto" in german.text
    other = await browser.get(ACCOUNT, accept_language="fr")
    assert language_of(other) == "en" and "Your account" in other.text


async def test_the_persons_setting_precedes_the_browsers(world: World) -> None:
    browser = await world.browser(None)
    page = await browser.get(ACCOUNT)
    saved = await browser.submit(page, f"{ACCOUNT}/profile", name="Ada", language="de")
    page = await browser.follow(saved)
    assert language_of(page) == "de" and "Profil gespeichert" in page.text
    assert language_of(await browser.get(ACCOUNT, accept_language="en")) == "de"
    for value in ("", "xx"):
        page = await browser.follow(await browser.submit(page, f"{ACCOUNT}/profile", name="Ada", language=value))
        assert language_of(page) == "en"


async def test_amounts_are_written_by_locale(world: World) -> None:
    [product] = (await seed_console(world)).products
    browser = await world.browser()
    place = f"/console/catalogue/{product.id}"
    assert "€499.00" in (await browser.get(place)).text
    assert "499,00\xa0€" in (await browser.get(place, accept_language="de")).text
