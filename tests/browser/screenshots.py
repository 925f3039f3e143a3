"""Takes the screenshots in docs/pictures from a running demo: `python -m tests.browser.screenshots LINK`, with the sign-in link that the demo prints."""

import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.browser.conftest import FLAGS, find_chromium

FOLDER = Path(__file__).parents[2] / "docs/pictures"
SIZE: Final[Any] = {"width": 1280, "height": 860}
PATHS = {
    "home": "/console",
    "catalogue": "/console/catalogue?q=bed",
    "connect": "/console/sources/new",
    "pair": "/console/matching/review",
    "usage": "/console/organisation/usage",
}
"""Pages with an address of their own, by the name of their picture."""


def main(link: str) -> None:
    """Sign in by the link and take all screenshots."""
    from playwright.sync_api import sync_playwright

    origin = "{0.scheme}://{0.netloc}".format(urlsplit(link))
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        page = browser.new_context(viewport=SIZE, reduced_motion="reduce").new_page()
        page.goto(link)
        page.click("main button")
        for name, place in PATHS.items():
            _take_screenshot(page, origin + place, name)
        page.goto(origin + "/console/catalogue?q=bed")
        first = page.locator("table .title").first.get_attribute("href") or ""
        _take_screenshot(page, origin + first, "product")
        browser.close()


def _take_screenshot(page: Any, url: str, name: str) -> None:
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1])
