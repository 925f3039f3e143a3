"""Rules about notifications in Chromium, with and without scripts."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.console import LiveConsole, run_console
from tests.browser.page_checks import check_page

pytestmark = pytest.mark.browser
HERE = "/console/organisation/notifications"


@pytest.fixture(scope="module")
def console() -> Iterator[LiveConsole]:
    with run_console() as made:
        yield made


def test_one_click_adds_a_rule_in_the_time_zone_of_the_browser(browser: Any, console: LiveConsole) -> None:
    context = console.open_context(browser, timezone_id="Asia/Tokyo")
    page = context.new_page()
    page.goto(console.address + HERE)
    check_page(page, "notifications")
    page.get_by_role("button", name=re.compile("Add ?: Out of stock")).click()
    page.get_by_text("Rule added").wait_for()
    page.get_by_text("Daily digest, 08:00 (Asia/Tokyo)").wait_for()
    check_page(page, "notification-rule")
    page.get_by_role("button", name="Send test").click()
    page.get_by_text("Test message sent to").wait_for()
    context.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_rule_is_previewed_created_and_deleted(browser: Any, console: LiveConsole, scripts: bool, width: int) -> None:
    context = console.open_context(
        browser, java_script_enabled=scripts, viewport={"width": width, "height": 900}, color_scheme="dark"
    )
    page = context.new_page()
    page.goto(f"{console.address}{HERE}/new?kind=price_change")
    name = f"Chairs {scripts} {width}"
    page.get_by_label("Name").fill(name)
    page.get_by_label("Price change of at least (%)").fill("0")
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("Enter a percentage").first.wait_for()
    page.get_by_label("Price change of at least (%)").fill("2.5")
    page.get_by_label("Quiet from").fill("22:00")
    page.get_by_label("Quiet until").fill("06:30")
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("in the last 7 days").wait_for()
    assert page.get_by_label("Name").input_value() == name
    if scripts:
        check_page(page, f"notification-form-{width}")
    page.get_by_role("button", name="Add rule").click()
    page.get_by_text("Rule added").wait_for()
    page.get_by_text("22:00–06:30").wait_for()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete rule").click()
    page.get_by_text("Rule deleted").wait_for()
    assert page.get_by_text(name).count() == 0
    context.close()
