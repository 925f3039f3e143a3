"""Console in Chromium: accessibility, overflow and scripts."""

from collections.abc import Iterator
from typing import Any

import pytest

from domain.orgs.model import VENDOR
from entrypoints.console.pages import PAGES
from tests.browser.console import LiveConsole, run_console
from tests.browser.page_checks import find_violations
from tests.browser.test_site import NARROW, OVERFLOW, WIDE

pytestmark = pytest.mark.browser
LAYOUTS = [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")]
_EXPECTED_ERRORS = (
    "ERR_NAME_NOT_RESOLVED",
    "ERR_INTERNET_DISCONNECTED",
    "ERR_CONNECTION",
    "ERR_TUNNEL",
    "status of 404",
    "status of 400",
)
"""Missing images of vendors, a missing page, and /oauth/authorize without an app."""


@pytest.fixture(scope="module")
def console() -> Iterator[LiveConsole]:
    with run_console() as made:
        yield made


def list_paths(console: LiveConsole) -> list[str]:
    """List the paths of all pages of retailers."""
    plain = [
        page.path_pattern
        for page in PAGES
        if "GET" in page.methods and "<" not in page.path_pattern and page.organisation_kind != VENDOR
    ]
    product = f"/console/catalogue/{console.data.products[1].id}"
    return [
        *plain,
        product,
        f"{product}?part=history",
        "/console/catalogue?q=oak",
        "/console/catalogue?q=nothing",
        "/console/nowhere",
    ]


def open_page(console: LiveConsole, browser: Any, **more: Any) -> Any:
    page = console.open_context(browser, **more).new_page()
    page.faults = []
    page.on(
        "console", lambda message: page.faults.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    return page


@pytest.mark.parametrize(
    ("size", "scheme"), LAYOUTS, ids=["wide, light", "wide, dark", "narrow, light", "narrow, dark"]
)
def test_pages_are_accessible_and_not_cut_off(
    browser: Any, console: LiveConsole, size: dict[str, int], scheme: str
) -> None:
    page, faults = open_page(console, browser, viewport=size, color_scheme=scheme, bypass_csp=True), []
    empty = open_page(
        console, browser, cookie=console.empty_cookie, viewport=size, color_scheme=scheme, bypass_csp=True
    )
    for at, place in [
        *((page, place) for place in list_paths(console)),
        (empty, "/console"),
        (empty, "/console/catalogue"),
    ]:
        at.goto(console.address + place)
        faults += [(place, "cut off", each) for each in at.evaluate(OVERFLOW)[:3]]
        at.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        at.wait_for_timeout(60)
        faults += [(place, *each) for each in find_violations(at)]
        faults += [(place, "cut off, unfolded", each) for each in at.evaluate(OVERFLOW)[:3]]
    page.context.close()
    empty.context.close()
    assert not faults, faults[:12]


@pytest.mark.parametrize("path", ["catalogue", "changes", "merges", "matching", "sources", "sources/scorecard"])
def test_no_column_is_cut_off_at_twice_the_size(browser: Any, console: LiveConsole, path: str) -> None:
    page = open_page(console, browser, viewport={"width": 720, "height": 450})
    page.goto(f"{console.address}/console/{path}")
    regions = "[...document.querySelectorAll('.table')].map(each => each.scrollWidth - each.clientWidth)"
    assert all(hidden <= 1 for hidden in page.evaluate(regions)), page.evaluate(regions)
    page.context.close()


def test_no_page_violates_its_content_security_policy(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser, viewport=WIDE)
    for place in list_paths(console):
        response = page.goto(console.address + place)
        assert "stripe.com" not in response.header_value("content-security-policy"), place
        page.wait_for_timeout(80)
    assert [message for message in page.faults if not any(known in message for known in _EXPECTED_ERRORS)] == []
    page.context.close()


def test_products_are_found_as_one_types(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser, viewport=WIDE)
    page.goto(console.address + "/console/catalogue")
    page.keyboard.press("/")
    page.keyboard.type("walnut lou", delay=10)
    page.wait_for_url(lambda url: url.endswith("lou"))  # results of an earlier keystroke would be replaced later
    page.wait_for_selector("#results tbody tr:first-child:last-child")
    assert "q=walnut" in page.url
    page.wait_for_selector("#filters .filter:first-of-type .count:text-is('1')")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("Escape")
    page.locator("body").click(position={"x": 5, "y": 5})
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Walnut lounge chair')")
    page.wait_for_selector("#history svg")
    page.context.close()


def test_the_keyboard_reaches_all_controls_in_order(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser, viewport=WIDE)
    page.goto(console.address + "/console")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("!!document.activeElement.closest('main')")
    page.context.close()


def test_everything_is_found_by_keyboard(console: LiveConsole, browser: Any) -> None:
    page = open_page(console, browser)
    page.goto(f"{console.address}/console")
    page.keyboard.press("Control+k")
    page.keyboard.type("linen")
    result = page.get_by_role("dialog").get_by_role("link", name="Linen sofa")
    result.wait_for()
    assert find_violations(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/catalogue/prod_*")
    assert page.get_by_role("heading", level=1).inner_text() == "Linen sofa"
    page.keyboard.press("Control+k")
    page.keyboard.type("audit")
    page.get_by_role("dialog").get_by_role("link", name="Audit log").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/organisation/audit")
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    assert [fault for fault in page.faults if not any(text in fault for text in _EXPECTED_ERRORS)] == []
    page.context.close()


def test_everything_works_without_scripts(browser: Any, console: LiveConsole) -> None:
    page = open_page(console, browser, viewport=NARROW, java_script_enabled=False)
    page.goto(console.address + "/console")
    page.locator(".menu-toggle summary").click()
    page.locator("nav a", has_text="Catalogue").click()
    page.locator("#q").fill("linen")
    page.locator(".search-form button").click()
    page.locator("tbody a").first.click()
    page.locator("a", has_text="Show history").click()
    assert page.locator("svg .line").count() > 0
    page.locator(".menu-toggle summary").click()
    page.locator(".user-menu summary").click()
    page.locator("button[value=dark]").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.locator(".menu-toggle summary").click()
    page.locator(".user-menu summary").click()
    page.locator("button", has_text="Sign out").click()  # ends the session, so this test is the last one
    assert "/console/sign-in" in page.url
    page.context.close()
