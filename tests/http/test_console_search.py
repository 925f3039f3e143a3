"""Search over products, sources, pages and actions."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.http.application import ApplicationHarness, run_application
from tests.support.console_seed import HOSTILE, seed_console

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


async def test_products_sources_pages_and_actions_are_found(application: ApplicationHarness) -> None:
    made = await seed_console(application, ("Oak table", "Walnut chair"))
    browser = await application.open_browser()
    text = (await browser.get("/console/search?q=walnut")).text
    assert "Walnut chair" in text and "Oak table</span>" not in text
    assert 'href="/console/catalogue?q=walnut"' in text
    names = [f'href="/console/sources/{source}"' for source in made.sources]
    assert [name in text for name in names].count(True) == 1
    assert "/console/organisation/audit" in (await browser.get("/console/search?q=AUDIT")).text
    assert "/console/developers/keys/new" in (await browser.get("/console/search?q=api+key")).text
    assert "Nothing found" in (await browser.get("/console/search?q=zzzzqq")).text


async def test_only_the_results_are_sent_to_the_dialog(application: ApplicationHarness) -> None:
    await seed_console(application, ("Oak table",))
    browser = await application.open_browser()
    part = await browser.get("/console/search?q=oak", hx_request="true", hx_target="found")
    assert part.text.startswith('<div id="found"') and "<nav" not in part.text
    home = (await browser.get("/console")).text
    assert 'id="palette"' in home and 'href="/console/search"' in home


async def test_results_depend_on_the_role(application: ApplicationHarness) -> None:
    await seed_console(application, ("Oak table",))
    text = (await (await application.open_browser(role="billing")).get("/console/search?q=oak")).text
    assert "Oak table" not in text
    viewer = await application.open_browser(role="viewer")
    assert "/console/developers/keys/new" not in (await viewer.get("/console/search?q=key")).text


async def test_hostile_texts_are_escaped_and_short_queries_are_no_errors(application: ApplicationHarness) -> None:
    await seed_console(application, HOSTILE)
    browser = await application.open_browser()
    for q in ("a", "%3Cscript%3E", "%00", "-", "a+b+c+d+e+f+g+h+i+j+k", "%F0%9F%9B%8B", "x" * 300):
        page = await browser.get(f"/console/search?q={q}")
        assert page.status == 200 and "<script>" not in page.text
