"""The documentation site in Chromium: nothing keeps people out, nothing is cut off, and search answers as one types."""

from typing import Any

import pytest

from entrypoints.site.site import Site
from tests.browser.looking import barriers
from tests.support.table import whole

pytestmark = pytest.mark.browser
PAGES = [
    "/docs/search?q=webhook" if path == "/docs/search" else path
    for path in [*Site(whole(), "http://x", "http://x").addresses(), "/docs/quickstat"]
]
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
OVERFLOW = """() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > wide + 1 && !e.closest('pre,.scroll'))
    .map(e => e.tagName + ' ' + e.textContent.slice(0, 60));
}"""
UNREACHABLE = """() => [...document.querySelectorAll('pre,.scroll')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.tabIndex !== 0).map(e => e.textContent.slice(0, 60))"""


def opened(browser: Any, size: dict[str, int], scheme: str = "light", **more: Any) -> Any:
    page = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", **more).new_page()
    page.faults = []
    page.on("console", lambda said: page.faults.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    return page


def unfold(page: Any) -> None:
    page.evaluate("document.querySelectorAll('main details').forEach(d => d.open = true)")


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")], ids=["wide, light", "narrow, dark"])
def test_nothing_keeps_people_out(browser: Any, address: str, size: dict[str, int], scheme: str) -> None:
    """Axe finds nothing, with everything unfolded, and nothing goes past the policy."""
    page, faults = opened(browser, size, scheme, bypass_csp=True), []
    for path in PAGES:
        page.goto(address + path)
        unfold(page)
        faults += [(path, *each) for each in barriers(page)]
    page.context.close()
    assert not faults, faults[:12]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_nothing_is_cut_off(browser: Any, address: str, size: dict[str, int]) -> None:
    """No page scrolls sideways, and what scrolls inside a page can be reached with the keyboard."""
    page, faults = opened(browser, size), []
    for path in PAGES:
        page.goto(address + path)
        for round in ("folded", "unfolded"):
            faults += [(path, round, each) for each in page.evaluate(OVERFLOW)[:3]]
            faults += [(path, round, "no key", each) for each in page.evaluate(UNREACHABLE)[:3]]
            unfold(page)
            page.wait_for_timeout(15)
    assert not [said for said in page.faults if "404" not in said]
    page.context.close()
    assert not faults, faults[:12]


def test_the_keyboard_scrolls_what_is_wide(browser: Any, address: str) -> None:
    page = opened(browser, NARROW)
    page.goto(address + "/docs/quickstart")
    block = page.locator("pre[tabindex='0']").first
    block.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    assert block.evaluate("e => e.scrollLeft") > 0
    page.context.close()


def test_search_as_one_types(browser: Any, address: str) -> None:
    page = opened(browser, WIDE)
    page.goto(address + "/docs/quickstart")
    page.keyboard.press("/")
    page.keyboard.type("offer.ch")
    page.wait_for_selector(".panel-results .results a")
    assert page.locator(".panel-results .results a").first.get_attribute("href") == "/docs/events/offer.changed"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/events/offer.changed")
    page.keyboard.press("/")
    page.keyboard.type("paging")
    page.wait_for_selector(".panel-results")
    page.keyboard.press("Escape")
    assert page.locator(".panel-results").count() == 0
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/search?q=paging")
    assert page.locator("main .results a").first.get_attribute("href") == "/docs/guides/paging"
    assert not page.faults
    page.context.close()


def test_where_nothing_may_be_kept(browser: Any, address: str) -> None:
    """A browser that blocks a site's storage still searches, and shows the language that was chosen."""
    page = opened(browser, WIDE)
    page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('blocked') }})")
    page.goto(address + "/docs/quickstart")
    page.locator("fieldset.tabs label", has_text="Python").first.click()
    assert page.locator("fieldset.tabs .panel:visible").count() == page.locator("fieldset.tabs").count()
    assert page.locator("fieldset.tabs").nth(1).locator(".panel").nth(1).is_visible()
    page.keyboard.press("/")
    page.fill("#q", "offer.ch")
    page.wait_for_selector(".panel-results .results a")
    assert not page.faults
    page.context.close()


def test_an_address_that_there_is_not(browser: Any, address: str) -> None:
    page = opened(browser, NARROW)
    assert page.goto(address + "/docs/quickstat").status == 404
    page.locator("main a", has_text="Quickstart").click()
    page.wait_for_url("**/docs/quickstart")
    page.context.close()


def test_without_a_script(browser: Any, address: str) -> None:
    """Search answers a form, tabs and the menu open, everything can be read."""
    page = opened(browser, NARROW, java_script_enabled=False)
    page.goto(address + "/docs/quickstart")
    assert not page.locator("nav").is_visible()
    page.locator("details.menu summary").click()
    assert page.locator("nav").is_visible()
    tabs = page.locator("fieldset.tabs").first
    assert tabs.locator(".panel").nth(0).is_visible() and not tabs.locator(".panel").nth(1).is_visible()
    tabs.locator("label", has_text="Python").click()
    assert tabs.locator(".panel").nth(1).is_visible() and not tabs.locator(".panel").nth(0).is_visible()
    page.fill("#q", "rate_limited")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/search?q=rate_limited")
    assert page.locator(".results a").first.get_attribute("href") == "/errors/rate_limited"
    page.context.close()


def test_skipping_to_the_contents(browser: Any, address: str) -> None:
    page = opened(browser, WIDE)
    page.goto(address + "/errors")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to contents"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.context.close()


def test_old_addresses_of_operations_lead_to_the_new_ones(browser: Any, address: str) -> None:
    page = opened(browser, WIDE)
    page.goto(address + "/docs#webhooks.create")
    page.wait_for_url("**/docs/reference/webhooks#webhooks.create")
    page.context.close()
