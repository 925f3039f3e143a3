"""Source and match pages of the console in Chromium: file drop, live runs, keyboard review and accessibility."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from domain.kernel.tenancy import Tenant
from domain.matching.model import MatchPair, PairEvidence
from entrypoints.dependencies import Dependencies
from ports.unit_of_work import UnitOfWork
from tests.browser.page_checks import find_violations
from tests.browser.test_site import NARROW, OVERFLOW, WIDE, open_page
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.flows.test_console import FEED
from tests.postgres.databases import create_database
from tests.support.console_browser import COOKIE, create_session
from tests.support.merged_catalogues import MergedCatalogue

pytestmark = pytest.mark.browser
LAYOUTS = [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light")]


@dataclass
class ConsoleProcesses:
    """Running console with a signed-in person."""

    stage: ServiceProcesses
    tenancy: Tenancy
    cookie: str
    pairs: list[MatchPair]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.stage.port}"

    def page(self, browser: Any, size: dict[str, int] = WIDE, scheme: str = "light", **more: Any) -> Any:
        page = open_page(browser, size, scheme, **more)
        page.context.add_cookies([{"name": COOKIE, "value": self.cookie, "url": self.base}])
        page.route("https://pictures.example/**", lambda route: route.abort())
        return page


async def _create_pairs(container: Dependencies, tenancy: Tenancy) -> list[MatchPair]:
    shop = MergedCatalogue(container[UnitOfWork], Tenant(tenancy.tenant.org, True))
    first = await shop.create_source(catalogue=tenancy.organisation.get_catalogue_id(True))
    second, made = await shop.create_source(), []
    for number in range(4):
        media = [{"url": "https://pictures.example/a.jpg", "role": "hero", "position": 1}]
        ours = await shop.load_product(first, f"A{number}", "red", title=f"Halden oak bench {number}", media=media)
        theirs = await shop.load_product(second, f"B{number}", "red", title=f"Bench HALDEN oak {number}")
        evidence = (
            PairEvidence("title", 3, 5.5, "alike", "Halden oak bench", "Bench HALDEN oak"),
            PairEvidence("price", 1, -1.0, "far apart", 99.0, 149.0),
        )
        conflicts = ("colour",) if number == 3 else ()
        made.append(
            await shop.create_pair(ours.variants[0], theirs.variants[0], evidence=evidence, conflicts=conflicts)
        )
    return sorted(made, key=lambda pair: pair.id, reverse=True)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Iterator[ConsoleProcesses]:
    """Run the service processes, with four open pairs."""
    # Chromium's loop runs in this thread, and processes end with their starting thread: start them in another one.
    with ThreadPoolExecutor(1) as executor:
        database = executor.submit(lambda: asyncio.run(create_database("console"))).result()
        stage = ServiceProcesses(database, tmp_path_factory.mktemp("console"))
        try:
            stage.start("worker")
            stage.start_api()
            yield executor.submit(_prepare, stage).result()
        finally:
            stage.stop()


def _prepare(stage: ServiceProcesses) -> ConsoleProcesses:
    tenancy = stage.create_organisation()
    cookie = stage.run_with_dependencies(lambda container: create_session(container, tenancy.tenant))
    return ConsoleProcesses(
        stage, tenancy, cookie, stage.run_with_dependencies(lambda container: _create_pairs(container, tenancy))
    )


def test_a_dropped_file_starts_a_run_with_live_progress(
    browser: Any, console: ConsoleProcesses, tmp_path: Path
) -> None:
    page = console.page(browser)
    page.goto(f"{console.base}/console/sources/new")
    handle = page.evaluate_handle(
        "text => { const t = new DataTransfer(); t.items.add(new File([text], 'ash.csv', {type: 'text/csv'})); return t; }",
        FEED.decode(),
    )
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": handle})
    page.wait_for_url("**/console/sources/new/file?draft=*")
    assert page.locator("#preview").get_by_text("Ash chair").first.is_visible()
    page.fill("#f-currency", "eur")
    page.press("#f-currency", "Tab")
    page.locator("#preview").get_by_text("€99.00").first.wait_for()
    page.get_by_role("button", name="Connect and import").click()
    page.wait_for_url("**/console/runs/*")
    page.locator(".run-progress .badge", has_text="Succeeded").wait_for(timeout=20_000)
    page.get_by_role("link", name="View in file").first.click()
    assert "ca. wide" in page.locator(".cell-with-problem").first.inner_text()
    assert not page.faults
    page.context.close()


def test_pairs_are_decided_by_keyboard(browser: Any, console: ConsoleProcesses) -> None:
    page = console.page(browser)
    page.goto(f"{console.base}/console/matching/review")
    first = page.url
    for key, expected in (("n", 1), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        page.wait_for_url(f"**/{console.pairs[expected].id}*")
    page.goto(first)
    page.keyboard.press("m")
    page.wait_for_url(f"**/{console.pairs[1].id}?last=*")
    page.keyboard.press("u")
    page.wait_for_url(f"**/{console.pairs[0].id}")
    page.get_by_text("Decision undone").wait_for()
    page.keyboard.press("d")
    page.wait_for_url(f"**/{console.pairs[1].id}?last=*")
    assert not [message for message in page.faults if "ERR_FAILED" not in message]
    page.context.close()


def test_everything_works_without_a_script(browser: Any, console: ConsoleProcesses, tmp_path: Path) -> None:
    page = console.page(browser, java_script_enabled=False)
    file = tmp_path / "ash.csv"
    file.write_bytes(FEED)
    page.goto(f"{console.base}/console/sources/new/file")
    page.set_input_files("#file", file)
    page.get_by_role("button", name="Preview").click()
    page.fill("#f-currency", "usd")
    page.get_by_role("button", name="Refresh preview").click()
    assert page.get_by_text("$99.00").first.is_visible()
    page.get_by_role("button", name="Connect and import").click()
    while page.get_by_role("link", name="Refresh").count():
        page.get_by_role("link", name="Refresh").click()
    assert page.locator(".run-progress .badge", has_text="Succeeded").is_visible()
    page.goto(f"{console.base}/console/matching/review")
    page.get_by_role("button", name="Dismiss").click()
    assert page.get_by_text("Match dismissed").is_visible()
    page.context.close()


@pytest.mark.parametrize(("size", "scheme"), LAYOUTS, ids=["light", "dark", "phone"])
def test_pages_are_accessible(browser: Any, console: ConsoleProcesses, size: dict[str, int], scheme: str) -> None:
    found = console.tenancy.api.get("/v1/sources")["data"]
    source = next((one["id"] for one in found if one["kind"] == "file"), found[0]["id"])
    runs = console.tenancy.api.get(f"/v1/sources/{source}/runs")["data"]
    mappings = console.tenancy.api.get(f"/v1/sources/{source}/mappings")["data"]
    paths = [
        "/console/sources", "/console/sources/new", "/console/sources/new/file", "/console/sources/new/address",
        "/console/sources/new/shop", "/console/sources/new/shop?connector=api", "/console/sources/new/mail", "/console/sources/new/push",
        *(f"/console/sources/{source}{part}" for part in ("", "/settings", "/runs", "/columns", "/categories")),
        *(f"/console/runs/{run['id']}{part}" for run in runs[:1] for part in ("", "/sheet")),
        *(f"/console/mappings/{mapping['id']}" for mapping in mappings[:1]),
        "/console/matching", "/console/matching?status=dismissed", f"/console/matching/pairs/{console.pairs[-1].id}", "/console/merges",
        "/console/judge",
    ]  # fmt: skip
    page, faults = console.page(browser, size, scheme, bypass_csp=True), []
    for path in paths:
        assert page.goto(console.base + path).status == 200, path
        faults += [(path, *each) for each in find_violations(page)]
        faults += [
            (path, "sideways", each) for each in page.evaluate(OVERFLOW.replace("pre,.scroll", "pre,.table,.tabs"))[:3]
        ]
    page.context.close()
    assert not faults, faults[:12]
