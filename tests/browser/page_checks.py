"""A page looked at: nothing on it keeps anybody out, and nothing is cut off."""

import os
from typing import Any

PICTURES = os.environ.get("JOINERY_PICTURES")
"""A folder to keep pictures of the pages in."""


def find_violations(page: Any) -> list[tuple[str, str]]:
    """What axe finds: its rule, and the beginning of the first element that breaks it."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found]


def check_page(page: Any, name: str) -> None:
    """Hold a page to both, and keep how it looks where a folder is named."""
    assert find_violations(page) == [], name
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)
