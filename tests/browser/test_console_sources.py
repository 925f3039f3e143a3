"""Source and match pages of the console in Chromium: file drop, live runs, keyboard review and accessibility."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from domain.kernel.resource import require_found
from domain.kernel.tenancy import Tenant
from domain.matching.model import MatchPair, PairEvidence
from domain.runs.model import RunError, RunErrorCode
from domain.runs.ports import RunStore
from domain.sources.ports import SourceStore
from entrypoints.dependencies import Dependencies
from ports.unit_of_work import UnitOfWork
from tests.browser.page_checks import check_page, find_violations
from tests.browser.test_site import NARROW, OVERFLOW, WIDE, open_page
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.flows.test_console import FEED
from tests.postgres.databases import create_database
from tests.support import builders
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


def test_a_schedule_is_set_by_keyboard_and_a_failure_is_shown(browser: Any, console: ConsoleProcesses) -> None:
    source = console.tenancy.api.create_source("url", config={"url": "https://vendor.example/feed.csv"})
    error = RunError(RunErrorCode.FETCH_FAILED, "The address answered 404.")
    failed = builders.run(
        source, status="failed", error=error, created_at=datetime.now(UTC), finished_at=datetime.now(UTC)
    )

    async def add_failed_run(container: Dependencies) -> None:
        tenant = Tenant(console.tenancy.tenant.org, True)
        async with container[UnitOfWork].begin(tenant, builders.CALL) as tx:
            found = require_found(await tx[SourceStore].get(source, lock=True))
            await tx[SourceStore].save(replace(found, catalogue_at=tx.now))
            await tx[RunStore].add(failed)

    with ThreadPoolExecutor(1) as executor:  # Chromium's loop runs in this thread
        executor.submit(console.stage.run_with_dependencies, add_failed_run).result()
    page = console.page(browser, timezone_id="America/New_York")
    page.goto(f"{console.base}/console")
    page.get_by_role("link", name=re.compile("last run failed")).press("Enter")
    page.wait_for_url(f"**/console/runs/{failed.id}")
    page.goto(f"{console.base}/console/sources/{source}")
    assert page.get_by_text("The address answered 404.").first.is_visible()
    assert page.locator("main .badge", has_text="Failed").first.is_visible()
    page.get_by_role("link", name="Schedule", exact=True).press("Enter")
    page.get_by_text("No run is scheduled.").wait_for()
    assert not page.locator("#f-times").is_visible(), "there are no times on request"
    page.locator("#f-frequency-request").focus()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    assert page.locator("#f-frequency-daily").is_checked() and not page.locator("#f-weekdays-mon").is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Control+a")
    page.keyboard.type("6:30, 18:00")
    page.keyboard.press("Tab")
    assert page.locator("#f-time_zone").evaluate("element => element === document.activeElement")
    assert page.locator("#f-time_zone").input_value() == "America/New_York", "the browser's zone"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Saved").wait_for()
    assert re.search(r"(today|tomorrow) (06:30|18:00) .America/New_York", page.locator(".next-run").inner_text())
    page.goto(f"{console.base}/console/sources/{source}")
    assert page.get_by_text("Every day at 06:30 and 18:00 (America/New_York)").is_visible()


def _open_price_list(page: Any, console: ConsoleProcesses, folder: Path) -> None:
    """Upload a German price list with 40 prices without currency, two without a number, and an unknown column."""
    file = folder / "Preise Eiche.csv"
    rows = [f"ST-{n};Stuhl Halden {n};{100 + n},50;{40 + n} cm;beech nat." for n in range(1, 41)]
    rows += [f"ST-{n};Stuhl Halden {n};auf Anfrage;50 cm;oak" for n in (41, 42)]
    file.write_text("\n".join(["Artikelnummer;Bezeichnung;EK netto;Breite;Zorb", *rows]), "cp1252")
    page.goto(f"{console.base}/console/sources/new/file")
    page.set_input_files("#file", file)
    page.wait_for_url("**/console/sources/new/file?draft=*")


def test_a_price_list_is_fixed_mapped_and_connected(browser: Any, console: ConsoleProcesses, tmp_path: Path) -> None:
    page = console.page(browser)
    _open_price_list(page, console, tmp_path)
    group = page.locator(".problem-groups .group", has_text="Unknown currency")
    assert group.locator(".count").inner_text() == "40"
    group.get_by_label("Default currency").fill("EUR")
    group.get_by_role("button", name="Use for all 40").click()
    page.get_by_text("42 problems → 2").wait_for()
    page.locator("#c-0-4 > summary").focus()
    for key in ("Enter", "Tab"):
        page.keyboard.press(key)
    page.keyboard.type("materials")
    page.keyboard.press("Tab")
    page.locator("#r-0-4 .parsed-value", has_text="beech nat").first.wait_for()
    assert page.evaluate("document.activeElement !== document.body"), "the update keeps the focus"
    page.locator("[name='from.0.4']").fill("Beech nat.")
    page.keyboard.press("Tab")
    page.keyboard.type("beech")
    page.keyboard.press("Tab")
    page.locator("#r-0-4 .parsed-value", has_text=re.compile("^beech$")).first.wait_for()
    page.get_by_role("searchbox", name="Search columns").fill("netto")
    assert page.locator(".editor-column:visible").count() == 1
    page.get_by_role("button", name="Connect and import").click()
    page.wait_for_url("**/console/runs/*")
    page.locator(".run-progress .badge", has_text="Succeeded").wait_for(timeout=20_000)
    run = page.url
    page.goto(f"{console.base}/console/catalogue?q=Stuhl+Halden")
    assert page.get_by_text("Stuhl Halden 4").first.is_visible()
    page.goto(run)
    page.locator("#group").get_by_role("button", name="Ignore", exact=True).first.click()
    page.locator("#group .ignored").wait_for()
    assert page.locator("#group .count").first.inner_text() == "1"
    with page.expect_download() as download:
        page.get_by_role("button", name="Send to vendor").click()
    path = tmp_path / "vendor.xlsx"
    download.value.save_as(path)
    sheet = load_workbook(path).worksheets[0]
    assert [cell.value for cell in sheet[2]][:4] == ["43", "ST-42", "Stuhl Halden 42", "auf Anfrage"]
    assert sheet["D2"].comment is not None and sheet["D2"].fill.fgColor.rgb == "FFFFC7CE"
    # A change replaces the request of the previous one, which htmx logs.
    assert not [fault for fault in page.faults if not fault.startswith(("htmx:sendAbort", "htmx:afterRequest"))]
    page.context.close()


@pytest.mark.parametrize(("size", "scheme"), LAYOUTS, ids=["light", "dark", "phone"])
def test_the_editor_and_the_problems_are_accessible(
    browser: Any, console: ConsoleProcesses, tmp_path: Path, size: dict[str, int], scheme: str
) -> None:
    page, name = console.page(browser, size, scheme, bypass_csp=True), f"import-{size['width']}-{scheme}"
    _open_price_list(page, console, tmp_path)
    page.locator("#c-0-2 > summary").click()
    check_page(page, f"{name}-editor")
    page.get_by_role("button", name="Connect and import").click()
    page.wait_for_url("**/console/runs/*")
    page.locator(".run-progress .badge", has_text="Succeeded").wait_for(timeout=20_000)
    check_page(page, f"{name}-run")
    run = page.url
    page.goto(f"{run}/sheet")
    check_page(page, f"{name}-sheet")
    cells = "[...document.querySelectorAll('.grid tbody td:not([colspan])')].map(cell => cell.offsetWidth)"
    assert min(page.evaluate(cells)) > 90, "words are not broken"
    page.goto(run)
    page.get_by_role("link", name="Review mapping").click()
    page.locator("#preview .lead").wait_for()
    check_page(page, f"{name}-mapping")
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
    assert page.locator("#preview").get_by_text("$99.00").first.is_visible()
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
        "/console/judge", "/console/sources/scorecard",
        *(f"/console/sources/{one['id']}{part}" for one in found if one["kind"] == "url" for part in ("", "/schedule")),
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
