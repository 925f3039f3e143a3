"""Documentation site in Chromium: accessibility, overflow and search as one types."""

from typing import Any

import pytest

from entrypoints.site.build import build_pages
from tests.browser.page_checks import find_violations

pytestmark = pytest.mark.browser
PAGES = ["/docs/" if name == "index" else f"/docs/{name}" for name in build_pages()] + [
    "/docs/search?q=webhook",
    "/docs/quickstat",
]
PARTS = 5
"""Number of tests over which the pages are spread, so that none of them reaches the time limit of a test."""
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
OVERFLOW = """() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > wide + 1 && !e.closest('pre,.scroll'))
    .map(e => e.tagName + ' ' + e.textContent.slice(0, 60));
}"""
UNREACHABLE = """() => [...document.querySelectorAll('pre,.scroll')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.tabIndex !== 0).map(e => e.textContent.slice(0, 60))"""


def open_page(browser: Any, size: dict[str, int], scheme: str = "light", **more: Any) -> Any:
    page = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", **more).new_page()
    page.faults = []
    page.on(
        "console", lambda message: page.faults.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    return page


def unfold_all(page: Any) -> None:
    page.evaluate("document.querySelectorAll('main details').forEach(d => d.open = true)")


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")], ids=["wide, light", "narrow, dark"])
def test_pages_are_accessible(browser: Any, address: str, size: dict[str, int], scheme: str, part: int) -> None:
    """Axe finds no violation with all sections open, and the content security policy is not violated."""
    page, faults = open_page(browser, size, scheme, bypass_csp=True), []
    for path in PAGES[part::PARTS]:
        page.goto(address + path)
        unfold_all(page)
        faults += [(path, *each) for each in find_violations(page)]
    page.context.close()
    assert not faults, faults[:12]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_nothing_is_cut_off(browser: Any, address: str, size: dict[str, int]) -> None:
    """No page scrolls sideways, and scrollable elements are reachable by keyboard."""
    page, faults = open_page(browser, size), []
    for path in PAGES:
        page.goto(address + path)
        for round in ("folded", "unfolded"):
            faults += [(path, round, each) for each in page.evaluate(OVERFLOW)[:3]]
            faults += [(path, round, "no key", each) for each in page.evaluate(UNREACHABLE)[:3]]
            unfold_all(page)
            page.wait_for_timeout(15)
    assert not [message for message in page.faults if "404" not in message]
    page.context.close()
    assert not faults, faults[:12]


def test_the_keyboard_scrolls_wide_content(browser: Any, address: str) -> None:
    page = open_page(browser, NARROW)
    page.goto(address + "/docs/quickstart")
    block = page.locator("pre[tabindex='0']").first
    block.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    assert block.evaluate("e => e.scrollLeft") > 0
    page.context.close()


def test_search(browser: Any, address: str) -> None:
    page = open_page(browser, WIDE)
    page.goto(address + "/docs/quickstart")
    page.keyboard.press("/")
    page.keyboard.type("rate_limited")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/search?q=rate_limited*")
    page.wait_for_selector("#search-results li a")
    page.locator("#search-results a", has_text="rate_limited").first.click()
    page.wait_for_url("**/docs/errors/rate_limited*")
    assert not page.faults
    page.context.close()


def test_the_language_is_stored(browser: Any, address: str) -> None:
    page = open_page(browser, WIDE)
    page.goto(address + "/docs/quickstart")
    page.locator(".sd-tab-label", has_text="Python").first.click()
    for _ in range(2):
        assert page.locator(".sd-tab-content:visible").first.inner_text().startswith("from joinery_client")
        page.reload()
    page.context.close()


def test_a_missing_page(browser: Any, address: str) -> None:
    page = open_page(browser, NARROW)
    assert page.goto(address + "/docs/quickstat").status == 404
    page.locator("main a", has_text="Quickstart").click()
    page.wait_for_url("**/docs/quickstart")
    page.context.close()


def test_pages_work_without_scripts(browser: Any, address: str) -> None:
    """Tabs and menu open, and all content is readable."""
    page = open_page(browser, WIDE, java_script_enabled=False)
    page.goto(address + "/docs/quickstart")
    assert page.locator("nav, .sidebar-tree").first.is_visible()
    tabs = page.locator(".sd-tab-set").first
    tabs.locator("label", has_text="Python").click()
    assert (
        tabs.locator(".sd-tab-content").nth(1).is_visible() and not tabs.locator(".sd-tab-content").nth(0).is_visible()
    )
    page.context.close()


def test_old_addresses_of_operations_redirect_to_new_ones(browser: Any, address: str) -> None:
    page = open_page(browser, WIDE)
    page.goto(address + "/docs#webhooks.create")
    page.wait_for_url("**/docs/reference/webhooks#webhooks.create")
    page.context.close()
