"""Checks of a page: accessibility and overflow."""

import os
from typing import Any

PICTURES = os.environ.get("JOINERY_PICTURES")
"""Folder for screenshots of the pages."""


def find_violations(page: Any) -> list[tuple[str, str]]:
    """Return the violations that axe finds: rule and start of the first element."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found]


def check_page(page: Any, name: str) -> None:
    """Check a page, and store a screenshot if a folder is set."""
    found = find_violations(page)
    assert found == [], (name, found)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)
