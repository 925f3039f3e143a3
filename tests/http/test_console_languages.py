"""Languages of the console: the person's setting, otherwise the browser's Accept-Language."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.http.application import ApplicationHarness, run_application
from tests.http.browser import BrowserPage
from tests.support.console_seed import seed_console

pytestmark = pytest.mark.asyncio
ACCOUNT = "/console/account"


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


def read_language(page: BrowserPage) -> str:
    return page.text.partition('<html lang="')[2].partition('"')[0]


async def test_the_language_follows_the_browser(application: ApplicationHarness) -> None:
    browser = await application.open_browser(None)
    german = await browser.get(ACCOUNT, accept_language="fr, de-AT;q=0.9, en;q=0.8")
    assert read_language(german) == "de" and "Ihr Konto" in german.text
    other = await browser.get(ACCOUNT, accept_language="fr")
    assert read_language(other) == "en" and "Your account" in other.text


async def test_the_persons_setting_precedes_the_browsers(application: ApplicationHarness) -> None:
    browser = await application.open_browser(None)
    page = await browser.get(ACCOUNT)
    saved = await browser.submit(page, f"{ACCOUNT}/profile", name="Ada", language="de")
    page = await browser.follow(saved)
    assert read_language(page) == "de" and "Profil gespeichert" in page.text
    assert read_language(await browser.get(ACCOUNT, accept_language="en")) == "de"
    for value in ("", "xx"):
        page = await browser.follow(await browser.submit(page, f"{ACCOUNT}/profile", name="Ada", language=value))
        assert read_language(page) == "en"


async def test_amounts_are_written_by_locale(application: ApplicationHarness) -> None:
    [product] = (await seed_console(application)).products
    browser = await application.open_browser()
    place = f"/console/catalogue/{product.id}"
    assert "€499.00" in (await browser.get(place)).text
    assert "499,00\xa0€" in (await browser.get(place, accept_language="de")).text
