"""Corrections in Chromium: a value is corrected and restored with the keyboard, and edit links appear where they can be used."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.console import LiveConsole, run_console
from tests.browser.page_checks import find_violations
from tests.browser.test_site import NARROW, OVERFLOW, WIDE

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def console() -> Iterator[LiveConsole]:
    with run_console() as made:
        yield made


def _opacity(page: Any, name: str) -> str:
    link = page.get_by_role("link", name=name).first
    return str(link.evaluate("element => getComputedStyle(element).opacity"))


def test_a_value_is_corrected_and_restored_with_the_keyboard(browser: Any, console: LiveConsole) -> None:
    product = console.data.products[2]
    page = console.open_context(browser, viewport=WIDE).new_page()
    page.goto(f"{console.address}/console/catalogue/{product.id}")
    assert _opacity(page, "Edit Title") == "0"
    page.get_by_role("link", name="Edit Title").first.focus()
    assert _opacity(page, "Edit Title") == "1"
    page.keyboard.press("Enter")
    form = page.get_by_role("form", name="Correct Title")
    form.wait_for()
    value = form.get_by_label("Value")
    assert value.evaluate("element => element === document.activeElement"), "the form's input has the focus"
    page.keyboard.press("Control+A")
    page.keyboard.type("Linen sofa Halden")
    page.keyboard.press("Enter")
    page.get_by_text("Value corrected").wait_for()
    assert page.get_by_role("heading", level=1).inner_text() == "Linen sofa Halden"
    assert "the feed states “Linen sofa”" in page.inner_text("main")
    assert not page.evaluate(OVERFLOW)
    page.get_by_role("link", name="Edit Title").first.focus()
    page.keyboard.press("Enter")
    remove = page.get_by_role("button", name="Remove correction")
    remove.focus()
    page.keyboard.press("Enter")
    page.get_by_text("Correction removed").wait_for()
    assert page.get_by_role("heading", level=1).inner_text() == "Linen sofa"


def test_an_open_form_is_accessible_and_not_cut_off(browser: Any, console: LiveConsole) -> None:
    product = console.data.products[1]
    offer = product.variants[0].offers[0].id
    for size, scheme in ((WIDE, "light"), (NARROW, "dark")):
        page = console.open_context(browser, viewport=size, color_scheme=scheme, bypass_csp=True).new_page()
        for place in (
            f"catalogue/{product.id}?edit={product.id}:description",
            f"catalogue/{product.id}?edit={offer}:price",
            "catalogue/corrections",
            f"catalogue/correct?id={product.id}",
        ):
            page.goto(f"{console.address}/console/{place}")
            assert not page.evaluate(OVERFLOW), (place, size)
            assert not find_violations(page), (place, size)


def test_edit_links_are_always_visible_on_touch_screens(browser: Any, console: LiveConsole) -> None:
    page = console.open_context(browser, viewport=NARROW, has_touch=True, is_mobile=True).new_page()
    page.goto(f"{console.address}/console/catalogue/{console.data.products[1].id}")
    assert _opacity(page, "Edit Title") == "1"


def test_a_value_is_corrected_without_scripts(browser: Any, console: LiveConsole) -> None:
    product = console.data.products[3]
    page = console.open_context(browser, viewport=WIDE, java_script_enabled=False).new_page()
    page.goto(f"{console.address}/console/catalogue/{product.id}")
    page.get_by_role("link", name="Edit Brand").first.click()
    page.get_by_role("form", name="Correct Brand").get_by_label("Value").fill("Halden")
    page.get_by_role("button", name="Save").click()
    assert "Value corrected" in page.inner_text("body")
